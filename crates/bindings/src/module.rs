//! Functions of the Python module `eastwest._core` that simulate and describe scenarios.

use crate::convert::{
    OWN, RunError, ScenarioError, SketchError, context, describe, problem_list, read, tables_dict,
};
use crate::own::Own;
use crate::patience::patiently;
use crate::running::{Finished, Options, Running};
use crate::sketch::{Sketch, Watch};
use eastwest_network::topology::Graph;
use eastwest_sim::early_stop;
use eastwest_sim::memory_estimate;
use eastwest_sim::scenario::{self, Scenario};
use eastwest_sim::world::RunError as WorldError;
use eastwest_workload::application::tally::Tally;
use eastwest_workload::application::{Requests, Statistic};
use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Memory allocator (mimalloc) that packs small allocations densely, which makes runs faster if the
/// state of the fabric is larger than the CPU cache.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Returns the declarations of all tables of a run; see `DeclaredTable` in python/eastwest/core.py.
#[pyfunction]
fn tables(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let tables = PyList::empty(py);
    for table in eastwest_sim::results::TABLES {
        let columns = PyList::empty(py);
        for column in table.columns {
            let d = PyDict::new(py);
            d.set_item("name", column.name)?;
            d.set_item("kind", column.kind)?;
            d.set_item("since", column.since)?;
            d.set_item("about", column.about.trim())?;
            columns.append(d)?;
        }
        let d = PyDict::new(py);
        d.set_item("name", table.name)?;
        d.set_item("since", table.since)?;
        d.set_item("about", table.about.trim())?;
        d.set_item("columns", columns)?;
        tables.append(d)?;
    }
    Ok(tables)
}

/// Returns an estimate of the minimum memory of a run, as a list of its parts: name, bytes, and
/// whether the part is allocated before the first event.
fn memory_list<'py>(
    py: Python<'py>,
    scenario: &Scenario,
    threads: usize,
) -> PyResult<Bound<'py, PyList>> {
    let parts = memory_estimate::estimate(scenario, threads as u64);
    PyList::new(py, parts.into_iter().map(|part| (part.name, part.bytes, part.built)))
}

/// Reports the estimated memory of a run to the method `expect` of the Python object `progress`, if
/// it has this method. The method may refuse the run by an exception.
fn expect(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    scenario: &Scenario,
    threads: usize,
) -> PyResult<()> {
    let Some(expect) = progress.and_then(|p| p.getattr(py, "expect").ok()) else {
        return Ok(());
    };
    expect.call1(py, (memory_list(py, scenario, threads)?,)).map(|_| ())
}

/// Simulates a scenario; arguments and results are described in python/eastwest/_core.pyi.
#[pyfunction]
#[pyo3(signature = (text, base_dir, data_dir, overrides, seed, options, sketches = Vec::new()))]
#[allow(clippy::too_many_arguments)]
fn run<'py>(
    py: Python<'py>,
    text: &str,
    base_dir: &str,
    data_dir: &str,
    overrides: Vec<(String, String)>,
    seed: Option<u64>,
    options: Options,
    sketches: Vec<Sketch>,
) -> PyResult<Bound<'py, PyDict>> {
    let (watch, sketched) = (Arc::new(Watch::default()), !sketches.is_empty());
    let context = context(base_dir, data_dir, sketches, &watch)?;
    let scenario = read(py, text, &context, overrides, seed)?;
    expect(py, options.progress.as_ref(), &scenario, options.threads)?;
    let stop = options.stop.clone();
    let running = Running::new(py, &scenario, &watch, options)?;
    // other Python threads may run while the simulation runs
    let outcome = py.detach(|| running.finish());
    if let Some(cause) = watch.take_error() {
        if !cause.is_instance_of::<PyException>(py) {
            return Err(cause); // Ctrl-C, or an exit that a mechanism in Python requests
        }
        let error = SketchError::new_err(());
        error.set_cause(py, Some(cause));
        return Err(error);
    }
    let Finished { results, note, missed } = outcome?.map_err(|e| match e {
        WorldError::Interrupted => PyKeyboardInterrupt::new_err(()),
        other => RunError::new_err(other.to_string()),
    })?;
    let mut summary = serde_json::Map::new();
    summary.insert("scenario".into(), scenario.name.clone().into());
    summary.insert("seed".into(), scenario.seed.into());
    summary.insert("version".into(), env!("CARGO_PKG_VERSION").into());
    if let Some(missed) = missed {
        let (measure, bound, _) = &stop[missed.limit];
        let stopped = serde_json::json!({
            "at_s": missed.at.as_secs_f64(), "measure": measure, "limit": bound,
            "at_least": missed.at_least,
        });
        summary.insert("stopped_early".into(), stopped);
    }
    summary.extend(results.summary.as_object().cloned().unwrap_or_default());
    if sketched {
        let (calls, seconds) = watch.cost();
        summary.insert("sketch_calls".into(), calls.into());
        summary.insert("sketch_s".into(), seconds.into());
    }
    summary.insert("notes".into(), scenario.notes.clone().into());

    let d = PyDict::new(py);
    d.set_item("summary_json", serde_json::Value::Object(summary).to_string())?;
    describe(&d, &scenario)?;
    d.set_item("notes", scenario.notes.iter().chain(&note).collect::<Vec<_>>())?;
    d.set_item("tables", tables_dict(py, results.tables)?)?;
    let files = PyList::empty(py);
    for (name, bytes) in &results.files {
        files.append((*name, PyBytes::new(py, bytes)))?;
    }
    d.set_item("files", files)?;
    Ok(d)
}

/// Returns all problems of a scenario, and the notes for its author, without running it.
#[pyfunction]
#[pyo3(signature = (text, base_dir, data_dir, overrides, sketches = Vec::new()))]
fn check<'py>(
    py: Python<'py>,
    text: &str,
    base_dir: &str,
    data_dir: &str,
    overrides: Vec<(String, String)>,
    sketches: Vec<Sketch>,
) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    let context = context(base_dir, data_dir, sketches, &Arc::default())?;
    match patiently(None, || scenario::read(text, &context, &overrides))? {
        Ok(scenario) => {
            d.set_item("problems", PyList::empty(py))?;
            d.set_item("memory", memory_list(py, &scenario, 1)?)?;
            d.set_item("notes", scenario.notes)?;
        }
        Err(problems) => {
            d.set_item("problems", problem_list(py, &problems)?)?;
            d.set_item("memory", PyList::empty(py))?;
            d.set_item("notes", PyList::empty(py))?;
        }
    }
    Ok(d)
}

/// Returns a checked scenario as text with all defaults, and the files it reads. Nothing is
/// simulated.
#[pyfunction]
#[pyo3(signature = (text, base_dir, data_dir, overrides, seed, sketches = Vec::new()))]
fn resolve<'py>(
    py: Python<'py>,
    text: &str,
    base_dir: &str,
    data_dir: &str,
    overrides: Vec<(String, String)>,
    seed: Option<u64>,
    sketches: Vec<Sketch>,
) -> PyResult<Bound<'py, PyDict>> {
    let context = context(base_dir, data_dir, sketches, &Arc::default())?;
    let scenario = read(py, text, &context, overrides, seed)?;
    let d = PyDict::new(py);
    d.set_item("name", &scenario.name)?;
    describe(&d, &scenario)?;
    d.set_item("applications", declared_of_applications(py, &scenario)?)?;
    Ok(d)
}

/// Returns for each of these measures why it cannot stop runs of a scenario early; `None` if it can.
#[pyfunction]
#[pyo3(signature = (text, base_dir, data_dir, overrides, measures, sketches = Vec::new()))]
fn stop_obstacles(
    py: Python<'_>,
    text: &str,
    base_dir: &str,
    data_dir: &str,
    overrides: Vec<(String, String)>,
    measures: Vec<String>,
    sketches: Vec<Sketch>,
) -> PyResult<Vec<Option<String>>> {
    let context = context(base_dir, data_dir, sketches, &Arc::default())?;
    let scenario = read(py, text, &context, overrides, None)?;
    Ok(measures.iter().map(|measure| early_stop::obstacle(&scenario, measure)).collect())
}

/// Returns, by the name of each workload that is an application, the names of its declared counters
/// and measures (`None` if not declared), and of its further numbers; see `Declared` in
/// python/eastwest/core.py.
fn declared_of_applications<'py>(
    py: Python<'py>,
    scenario: &Scenario,
) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for spec in &scenario.workloads {
        let scenario::WorkloadKind::Application(config) = &spec.kind else { continue };
        let declared = config.model.declared();
        let names =
            |all: Vec<Statistic>| all.into_iter().map(|one| one.name).collect::<Vec<&str>>();
        let operations = Tally::OPERATIONS.map(|name| format!("operations.{name}"));
        let requests = Requests::NAMES.map(|name| format!("requests.{name}"));
        let one = PyDict::new(py);
        one.set_item("counters", declared.counters.map(names))?;
        one.set_item("measures", declared.measures.map(names))?;
        one.set_item("further", operations.into_iter().chain(requests).collect::<Vec<_>>())?;
        all.set_item(&spec.name, one)?;
    }
    Ok(all)
}

/// Returns a description of every setting of scenarios, as JSON.
#[pyfunction]
fn schema() -> String {
    scenario::schema().to_string()
}

/// Returns the nodes and cables of the fabric of a scenario.
#[pyfunction]
#[pyo3(signature = (text, base_dir, data_dir, overrides, sketches = Vec::new()))]
fn topology<'py>(
    py: Python<'py>,
    text: &str,
    base_dir: &str,
    data_dir: &str,
    overrides: Vec<(String, String)>,
    sketches: Vec<Sketch>,
) -> PyResult<Bound<'py, PyDict>> {
    let context = context(base_dir, data_dir, sketches, &Arc::default())?;
    let scenario = read(py, text, &context, overrides, None)?;
    let graph = patiently(None, || Graph::build(&scenario.fabric.topology))?;
    let cables = PyList::empty(py);
    for (i, c) in graph.cables.iter().enumerate() {
        if i % 0x1000 == 0 {
            py.check_signals()?;
        }
        let row = PyDict::new(py);
        row.set_item("a", &graph.names[c.a as usize])?;
        row.set_item("b", &graph.names[c.b as usize])?;
        row.set_item("rate_bps", c.config.rate.0)?;
        row.set_item("delay_us", c.config.delay.as_us_f64())?;
        row.set_item("tier", c.tiers.0)?;
        cables.append(row)?;
    }
    let d = PyDict::new(py);
    d.set_item("name", &scenario.name)?;
    d.set_item("nodes", &graph.names)?;
    d.set_item("hosts", graph.hosts)?;
    d.set_item("switches", graph.switches())?;
    d.set_item("cables", cables)?;
    d.set_item("notes", &scenario.notes)?;
    Ok(d)
}

/// Returns the number of nodes of a scenario's fabric, and the number of cables of each kind, in
/// the order in which the kinds first occur.
#[pyfunction]
#[pyo3(signature = (text, base_dir, data_dir, overrides, sketches = Vec::new()))]
fn topology_kinds<'py>(
    py: Python<'py>,
    text: &str,
    base_dir: &str,
    data_dir: &str,
    overrides: Vec<(String, String)>,
    sketches: Vec<Sketch>,
) -> PyResult<Bound<'py, PyDict>> {
    let context = context(base_dir, data_dir, sketches, &Arc::default())?;
    let scenario = read(py, text, &context, overrides, None)?;
    let (mut kinds, mut known) = (Vec::new(), BTreeMap::new());
    let graph = patiently(None, || Graph::build(&scenario.fabric.topology))?;
    for c in &graph.cables {
        let kind = (c.tiers.0, c.config.rate.0, c.config.delay);
        let place = *known.entry(kind).or_insert_with(|| {
            kinds.push((kind.0, kind.1, kind.2.as_us_f64(), 0u64));
            kinds.len() - 1
        });
        kinds[place].3 += 1;
    }
    let d = PyDict::new(py);
    d.set_item("name", &scenario.name)?;
    d.set_item("hosts", graph.hosts)?;
    d.set_item("switches", graph.switches())?;
    d.set_item("kinds", kinds)?;
    d.set_item("notes", &scenario.notes)?;
    Ok(d)
}

/// Returns the version of the simulator.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Returns the mechanism crate (the user's own Rust crate) from which this module was made, or
/// `None`; see `OwnCrate` in python/eastwest/core.py.
#[pyfunction]
fn own_crate(py: Python<'_>) -> PyResult<Option<Bound<'_, PyDict>>> {
    let Some(own) = OWN.get() else { return Ok(None) };
    let d = PyDict::new(py);
    d.set_item("name", own.name)?;
    d.set_item("version", own.version)?;
    d.set_item("folder", own.folder)?;
    d.set_item("profile", if own.development { "development" } else { "release" })?;
    d.set_item("mechanisms", own.mechanisms.names())?;
    Ok(Some(d))
}

/// Returns an error message for a name that a mechanism in Python of this kind cannot have; `None` if
/// the name is allowed and no built-in mechanism of the kind has it.
#[pyfunction]
fn mechanism_name_problem(kind: &str, name: &str) -> Option<&'static str> {
    eastwest_mechanism::name_problem(kind, name)
}

/// Removes and returns the last panic of the mechanism crate from which this module was made, as
/// (message, stack); `None` if there was none.
#[pyfunction]
fn own_panic() -> Option<(String, String)> {
    crate::blame::take().map(|panic| (panic.message, panic.stack))
}

/// Returns a dict that describes how the extension was compiled, such as the build profile.
#[pyfunction]
fn build_info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("profile", if cfg!(debug_assertions) { "debug" } else { "release" })?;
    d.set_item("target", format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS))?;
    d.set_item("scenario_schema", scenario::SCHEMA)?;
    Ok(d)
}

/// Makes the allocator return freed memory to the operating system at once. Growing tables leave
/// large holes, which the process would otherwise keep (scenario S1: 81 instead of 94 MB, at the
/// same speed).
fn give_memory_back() {
    // option `mi_option_purge_delay` of mimalloc.h, in milliseconds; the Rust bindings do not
    // define it
    const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
    // SAFETY: the call only stores a number, which the allocator reads whenever memory is freed.
    #[allow(unsafe_code)]
    unsafe {
        libmimalloc_sys::mi_option_set_default(PURGE_DELAY, 0);
    }
}

/// Adds the functions and exceptions of `eastwest._core` to a Python module. `own` is a mechanism
/// crate, whose mechanisms scenarios may use; `None` in the standard module. Fails if the name of a
/// mechanism is not allowed, or is used twice within a kind.
pub fn fill(m: &Bound<'_, PyModule>, own: Option<Own>) -> PyResult<()> {
    give_memory_back();
    if let Some(problem) = own.as_ref().and_then(|own| own.mechanisms.problem()) {
        return Err(PyValueError::new_err(problem));
    }
    if let Some(own) = own
        && OWN.set(own).is_ok()
    {
        crate::blame::watch();
    }
    m.add("ScenarioError", m.py().get_type::<ScenarioError>())?;
    m.add("RunError", m.py().get_type::<RunError>())?;
    m.add("SketchError", m.py().get_type::<SketchError>())?;
    m.add_function(wrap_pyfunction!(own_crate, m)?)?;
    m.add_function(wrap_pyfunction!(own_panic, m)?)?;
    m.add_function(wrap_pyfunction!(mechanism_name_problem, m)?)?;
    m.add_function(wrap_pyfunction!(run, m)?)?;
    m.add_function(wrap_pyfunction!(check, m)?)?;
    m.add_function(wrap_pyfunction!(resolve, m)?)?;
    m.add_function(wrap_pyfunction!(stop_obstacles, m)?)?;
    m.add_function(wrap_pyfunction!(schema, m)?)?;
    m.add_function(wrap_pyfunction!(tables, m)?)?;
    m.add_function(wrap_pyfunction!(topology, m)?)?;
    m.add_function(wrap_pyfunction!(topology_kinds, m)?)?;
    #[cfg(feature = "complete")]
    {
        m.add_function(wrap_pyfunction!(crate::drilling::drill, m)?)?;
        m.add_function(wrap_pyfunction!(crate::fuzzing::fuzz, m)?)?;
        m.add_function(wrap_pyfunction!(crate::fuzzing::fuzz_levels, m)?)?;
    }
    m.add_function(wrap_pyfunction!(crate::mpi::mpi_record, m)?)?;
    m.add_function(wrap_pyfunction!(crate::mpi::mpi_check, m)?)?;
    m.add_function(wrap_pyfunction!(crate::mpi::mpi_nodes, m)?)?;
    m.add_function(wrap_pyfunction!(version, m)?)?;
    m.add_function(wrap_pyfunction!(build_info, m)?)
}
