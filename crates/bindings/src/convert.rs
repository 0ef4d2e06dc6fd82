//! Conversion between Rust and Python: contexts of scenarios, and tables, problems and progress as
//! Python objects.

use crate::own::Own;
use crate::patience::patiently;
use crate::sketch::{self, Sketch, Watch};
use eastwest_measure::table::{Column, Table};
use eastwest_mechanism::Mechanisms;
use eastwest_settings::problem::Problem;
use eastwest_sim::scenario::{self, Context, Scenario};
use eastwest_sim::world::Progress;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

create_exception!(
    _core,
    ScenarioError,
    PyException,
    "The scenario has problems; the attribute `problems` lists them."
);
create_exception!(
    _core,
    RunError,
    PyException,
    "The simulation cannot continue; the message gives the reason."
);
create_exception!(
    _core,
    SketchError,
    PyException,
    "A mechanism written in Python raised an exception, which is the cause of this one."
);

/// Mechanism crate (the user's own Rust crate) from which this Python module was made; empty in the
/// standard module.
pub static OWN: OnceLock<Own> = OnceLock::new();

/// Returns the context in which a scenario is read: the directories of its files, and the
/// mechanisms that it may use beside the built-in ones. `watch` counts the calls of `sketches`
/// (mechanisms in Python) and holds their first exception. Fails if the name of a mechanism is not
/// allowed, or is used twice within a kind.
pub fn context(
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

/// Returns the problems of a scenario as a list of dicts.
pub fn problem_list<'py>(py: Python<'py>, problems: &[Problem]) -> PyResult<Bound<'py, PyList>> {
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

/// Returns the Python exception `ScenarioError` for a scenario with these problems.
pub fn refuse(py: Python<'_>, problems: &[Problem]) -> PyErr {
    let error = ScenarioError::new_err(format!(
        "problems in the scenario: {}; the attribute `problems` lists them",
        problems.len()
    ));
    match problem_list(py, problems).and_then(|l| error.value(py).setattr("problems", l)) {
        Ok(()) => error,
        Err(e) => e,
    }
}

/// Reads a scenario with overrides (path of the setting, value); `seed`, if given, replaces the
/// seed of the file. Raises `ScenarioError` with all problems of the scenario.
pub fn read(
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

/// Adds to a dict the resolved form of a scenario: its text with all defaults, the files it reads,
/// and the notes for the user. A file is (name, bytes), or (name, path) if it is large.
pub fn describe(d: &Bound<'_, PyDict>, scenario: &Scenario) -> PyResult<()> {
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

/// Returns a dict from the name of each table to its columns; a column is (name, type, data).
pub fn tables_dict(py: Python<'_>, tables: Vec<Table>) -> PyResult<Bound<'_, PyDict>> {
    let d = PyDict::new(py);
    for table in tables {
        let columns = PyList::empty(py);
        // each column is released as soon as Python has a copy
        for (name, values) in table.columns {
            py.check_signals()?;
            let (kind, data) = column(py, &values)?;
            columns.append((name, kind, data))?;
        }
        d.set_item(table.name, columns)?;
    }
    Ok(d)
}

/// Returns numbers as Python bytes; `to` returns the bytes of a number in little-endian order.
pub fn little_endian<'py, T: Copy, const N: usize>(
    py: Python<'py>,
    values: &[T],
    to: impl Fn(T) -> [u8; N],
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, values.len() * N, |buffer| {
        for (place, &value) in buffer.chunks_exact_mut(N).zip(values) {
            place.copy_from_slice(&to(value));
        }
        Ok(())
    })
}

/// Returns a table column as (type, data), see `Column` in python/eastwest/core.py.
fn column<'py>(py: Python<'py>, column: &Column) -> PyResult<(&'static str, Bound<'py, PyAny>)> {
    Ok(match column {
        Column::U32(v) => ("u32", little_endian(py, v, u32::to_le_bytes)?.into_any()),
        Column::U64(v) => ("u64", little_endian(py, v, u64::to_le_bytes)?.into_any()),
        Column::I64(v) => ("i64", little_endian(py, v, i64::to_le_bytes)?.into_any()),
        Column::F64(v) => ("f64", little_endian(py, v, f64::to_le_bytes)?.into_any()),
        Column::Text(v) => ("str", PyList::new(py, v)?.into_any()),
        Column::Label(index, names) => {
            let index = match names.len() {
                0..=256 => little_endian(py, index, |i| [i as u8])?,
                _ => little_endian(py, index, u32::to_le_bytes)?,
            };
            ("str", (index, PyList::new(py, names)?).into_pyobject(py)?.into_any())
        }
    })
}

/// Returns the progress of a run as a dict. `started` is the wall-clock time at which the run
/// began.
pub fn progress_dict<'py>(
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
