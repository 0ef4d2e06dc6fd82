//! What the Python module `eastwest._core` does: thin, no logic. The only crate that reads the clock.
//! The module itself is made in `crates/extension`, or of a mechanism crate (see [`mechanism`]).
#![allow(missing_docs)]

mod fuzzing;
mod keeping;
pub mod mechanism;
mod mpi;
mod patience;
mod running;
mod sketch;

pub use mechanism::*;
pub use pyo3;

use eastwest_drill::profile::Profile;
use eastwest_measure::table::{Column, Table};
use eastwest_network::topology::Graph;
use eastwest_settings::problem::Problem;
use eastwest_sim::memory_estimate;
use eastwest_sim::scenario::{self, Context, Scenario};
use eastwest_sim::world::{Progress, RunError as WorldError};
use patience::patiently;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use running::{Finished, Options, Running};
use sketch::{Sketch, Watch};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Packs small allocations densely: faster where a fabric is larger than the cache.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

create_exception!(_core, ScenarioError, PyException, "The input is wrong; see `problems`.");
create_exception!(_core, RunError, PyException, "The simulation cannot go on.");
create_exception!(_core, SketchError, PyException, "A sketch raised what is its cause.");

/// The mechanisms of the crate that this module was made of, if any.
static OWN: OnceLock<Own> = OnceLock::new();

/// Where scenarios find what they name: files, and mechanisms besides the built-in ones. What
/// sketches do is watched by `watch`.
fn context(
    base_dir: &str,
    data_dir: &str,
    sketches: Vec<Sketch>,
    watch: &Arc<Watch>,
) -> PyResult<Context> {
    let mut mechanisms = OWN.get().map_or_else(Mechanisms::default, |own| own.mechanisms.clone());
    sketch::add(&mut mechanisms, sketches, watch);
    if let Some(problem) = mechanisms.problem() {
        return Err(PyValueError::new_err(problem));
    }
    Ok(Context {
        base_dir: PathBuf::from(base_dir),
        data_dir: PathBuf::from(data_dir),
        mechanisms,
        ..Context::default()
    })
}

fn problem_list<'py>(py: Python<'py>, problems: &[Problem]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for p in problems {
        let d = PyDict::new(py);
        d.set_item("path", &p.path)?;
        d.set_item("line", p.line)?;
        d.set_item("value", &p.value)?;
        d.set_item("message", &p.message)?;
        d.set_item("hint", &p.hint)?;
        list.append(d)?;
    }
    Ok(list)
}

fn refuse(py: Python<'_>, problems: &[Problem]) -> PyErr {
    let error = ScenarioError::new_err(format!("{} problems in the scenario", problems.len()));
    match problem_list(py, problems).and_then(|l| error.value(py).setattr("problems", l)) {
        Ok(()) => error,
        Err(e) => e,
    }
}

/// Reads a scenario; a `seed` goes over the file's own.
fn read(
    py: Python<'_>,
    text: &str,
    context: &Context,
    mut overrides: Vec<(String, String)>,
    seed: Option<u64>,
) -> PyResult<Scenario> {
    if let Some(seed) = seed {
        overrides.push(("seed".into(), seed.to_string()));
    }
    let read = patiently(None, || scenario::read(text, context, &overrides))?;
    read.map_err(|problems| refuse(py, &problems))
}

/// Sets what a scenario was resolved to: its text with every default, the files it reads, as (name,
/// bytes) or (name, path) where they are large, and what its author should know.
fn describe(d: &Bound<'_, PyDict>, scenario: &Scenario) -> PyResult<()> {
    let attached = PyList::empty(d.py());
    for file in &scenario.attached {
        let content = match &file.path {
            Some(path) => path.into_pyobject(d.py())?.into_any(),
            None => PyBytes::new(d.py(), &file.bytes).into_any(),
        };
        attached.append((&file.name, content))?;
    }
    d.set_item("scenario_toml", scenario.resolved())?;
    d.set_item("attached", attached)?;
    d.set_item("notes", &scenario.notes)
}

/// Columns of all tables, by the tables' names.
fn tables_dict(py: Python<'_>, tables: Vec<Table>) -> PyResult<Bound<'_, PyDict>> {
    let d = PyDict::new(py);
    for table in tables {
        let columns = PyList::empty(py);
        // each column is given back as soon as Python has its own
        for (name, values) in table.columns {
            py.check_signals()?;
            let (kind, data) = column(py, &values)?;
            columns.append((name, kind, data))?;
        }
        d.set_item(table.name, columns)?;
    }
    Ok(d)
}

/// Every table that a run leaves, as it is declared; see `DeclaredTable` in python/eastwest/core.py.
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

/// A table column as (type, data), see `Column` in python/eastwest/core.py.
fn column<'py>(py: Python<'py>, column: &Column) -> PyResult<(&'static str, Bound<'py, PyAny>)> {
    fn bytes<'py, T: Copy, const N: usize>(
        py: Python<'py>,
        values: &[T],
        to: impl Fn(T) -> [u8; N],
    ) -> PyResult<Bound<'py, PyAny>> {
        let all = PyBytes::new_with(py, values.len() * N, |buffer| {
            for (place, &value) in buffer.chunks_exact_mut(N).zip(values) {
                place.copy_from_slice(&to(value));
            }
            Ok(())
        })?;
        Ok(all.into_any())
    }
    Ok(match column {
        Column::U32(v) => ("u32", bytes(py, v, u32::to_le_bytes)?),
        Column::U64(v) => ("u64", bytes(py, v, u64::to_le_bytes)?),
        Column::I64(v) => ("i64", bytes(py, v, i64::to_le_bytes)?),
        Column::F64(v) => ("f64", bytes(py, v, f64::to_le_bytes)?),
        Column::Text(v) => ("str", PyList::new(py, v)?.into_any()),
        Column::Label(index, names) => {
            let index = match names.len() {
                0..=256 => bytes(py, index, |i| [i as u8])?,
                _ => bytes(py, index, u32::to_le_bytes)?,
            };
            ("str", (index, PyList::new(py, names)?).into_pyobject(py)?.into_any())
        }
    })
}

fn progress_dict<'py>(
    py: Python<'py>,
    p: &Progress,
    started: Instant,
) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    let ends = p.until < eastwest_types::Time::NEVER;
    d.set_item("simulated_s", p.now.as_secs_f64())?;
    d.set_item("target_s", ends.then(|| p.until.as_secs_f64()))?;
    d.set_item("jobs_done", p.done.0)?;
    d.set_item("jobs_total", p.done.1)?;
    d.set_item("packet_hops", p.packet_hops)?;
    d.set_item("wall_s", started.elapsed().as_secs_f64())?;
    Ok(d)
}

/// Estimates the least memory of a run: for each part its name, its bytes, and whether it is allocated before
/// the first event.
fn memory_list<'py>(
    py: Python<'py>,
    scenario: &Scenario,
    threads: usize,
) -> PyResult<Bound<'py, PyList>> {
    let parts = memory_estimate::estimate(scenario, threads as u64);
    PyList::new(py, parts.into_iter().map(|part| (part.name, part.bytes, part.built)))
}

/// Tells whoever watches a run what it will take, if that is of interest: `expect` of `progress`, which may
/// refuse.
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

/// Simulates a scenario; see `_core.pyi`.
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
    let running = Running::new(py, &scenario, &watch, options)?;
    // other Python threads go on meanwhile
    let outcome = py.detach(|| running.finish());
    if let Some(cause) = watch.take_error() {
        if !cause.is_instance_of::<PyException>(py) {
            return Err(cause); // Ctrl-C, or an exit that the sketch asks for
        }
        let error = SketchError::new_err(());
        error.set_cause(py, Some(cause));
        return Err(error);
    }
    let Finished { results, note } = outcome?.map_err(|e| match e {
        WorldError::Interrupted => PyKeyboardInterrupt::new_err(()),
        other => RunError::new_err(other.to_string()),
    })?;
    let mut summary = serde_json::Map::new();
    summary.insert("scenario".into(), scenario.name.clone().into());
    summary.insert("seed".into(), scenario.seed.into());
    summary.insert("version".into(), env!("CARGO_PKG_VERSION").into());
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

/// All problems of a scenario, and what its author should know.
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

/// A checked scenario with every default spelled out, and the files it reads; nothing is simulated.
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
    Ok(d)
}

/// JSON description of every setting.
#[pyfunction]
fn schema() -> String {
    scenario::schema().to_string()
}

/// Nodes and cables of a scenario.
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

/// How many nodes a scenario has, and how many cables of each kind, in the order of the first ones.
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

/// Plays a packetdrill script; see `_core.pyi`.
#[pyfunction]
#[pyo3(signature = (text, profile, altered))]
fn drill<'py>(
    py: Python<'py>,
    text: &str,
    profile: Option<&str>,
    altered: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let profile = profile.and_then(Profile::named);
    let outcome = py.detach(|| eastwest_drill::drill(text, profile, altered));
    let d = PyDict::new(py);
    d.set_item("readable", outcome.readable)?;
    d.set_item("passed", outcome.problem.is_none())?;
    d.set_item("line", outcome.problem.as_ref().map(|p| p.place.line))?;
    d.set_item("column", outcome.problem.as_ref().map(|p| p.place.column))?;
    d.set_item("message", outcome.problem.map_or_else(String::new, |p| p.message))?;
    d.set_item("alterations", outcome.alterations)?;
    let unnoticed: Vec<_> = outcome.unnoticed.into_iter().map(|u| (u.place.line, u.what)).collect();
    d.set_item("unnoticed", unnoticed)?;
    Ok(d)
}

/// Version of the simulator.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

type KindsAndNames = Vec<(&'static str, &'static str)>;

/// The crate that this module was made of, if any: its name, its version, and the kind and name of
/// each of its mechanisms.
#[pyfunction]
fn own_crate() -> Option<(&'static str, &'static str, KindsAndNames)> {
    OWN.get().map(|own| (own.name, own.version, own.mechanisms.names()))
}

/// How the extension was compiled.
#[pyfunction]
fn build_info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("profile", if cfg!(debug_assertions) { "debug" } else { "release" })?;
    d.set_item("target", format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS))?;
    d.set_item("scenario_schema", scenario::SCHEMA)?;
    Ok(d)
}

/// Lets the allocator give memory back as soon as it is free: growing tables leave large holes, which
/// would otherwise stay with the process (S1: 81 instead of 94 MB, at the same speed).
fn give_memory_back() {
    // `mi_option_purge_delay` of mimalloc.h, in milliseconds; the bindings leave it out
    const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
    // SAFETY: sets a number that the allocator reads whenever something is freed.
    #[allow(unsafe_code)]
    unsafe {
        libmimalloc_sys::mi_option_set_default(PURGE_DELAY, 0);
    }
}

/// Fills a module, which has the mechanisms of `own` beside the built-in ones. Fails where scenarios
/// could not tell them apart.
pub fn fill(m: &Bound<'_, PyModule>, own: Option<Own>) -> PyResult<()> {
    give_memory_back();
    if let Some(problem) = own.as_ref().and_then(|own| own.mechanisms.problem()) {
        return Err(PyValueError::new_err(problem));
    }
    own.map(|own| OWN.set(own));
    m.add("ScenarioError", m.py().get_type::<ScenarioError>())?;
    m.add("RunError", m.py().get_type::<RunError>())?;
    m.add("SketchError", m.py().get_type::<SketchError>())?;
    m.add_function(wrap_pyfunction!(own_crate, m)?)?;
    m.add_function(wrap_pyfunction!(run, m)?)?;
    m.add_function(wrap_pyfunction!(check, m)?)?;
    m.add_function(wrap_pyfunction!(resolve, m)?)?;
    m.add_function(wrap_pyfunction!(schema, m)?)?;
    m.add_function(wrap_pyfunction!(tables, m)?)?;
    m.add_function(wrap_pyfunction!(topology, m)?)?;
    m.add_function(wrap_pyfunction!(topology_kinds, m)?)?;
    m.add_function(wrap_pyfunction!(drill, m)?)?;
    m.add_function(wrap_pyfunction!(fuzzing::fuzz, m)?)?;
    m.add_function(wrap_pyfunction!(fuzzing::fuzz_levels, m)?)?;
    m.add_function(wrap_pyfunction!(mpi::mpi_record, m)?)?;
    m.add_function(wrap_pyfunction!(mpi::mpi_check, m)?)?;
    m.add_function(wrap_pyfunction!(version, m)?)?;
    m.add_function(wrap_pyfunction!(build_info, m)?)
}
