//! Python functions that generate random scenarios and check their runs (fuzzing).

use crate::blame;
use crate::convert::context;
use crate::sketch::{Sketch, Watch};
use eastwest_fuzz::campaign::{Campaign, Found, Progress};
use eastwest_fuzz::features::Pairs;
use eastwest_fuzz::generate::Wish;
use eastwest_fuzz::oracles::catch_panics_as;
use eastwest_fuzz::sources;
use pyo3::exceptions::{PyException, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Returns the values that generated scenarios combine in pairs: for each setting (an axis) its
/// values (the levels), in the order of their numbers, as (path of the setting, value).
#[pyfunction]
#[pyo3(signature = (sketches = Vec::new()))]
pub fn fuzz_levels(sketches: Vec<Sketch>) -> PyResult<Vec<(String, String)>> {
    let context = context("", "", sketches, &Arc::default())?;
    let campaign = Campaign::new(context, 0, None, 0);
    let features = campaign.features();
    let name = |number| {
        let (path, level) = features.name(features.level(number));
        (path.to_owned(), level.to_owned())
    };
    Ok((0..features.levels()).map(name).collect())
}

/// Generates random scenarios, runs them and checks the results; described in
/// python/eastwest/_core.pyi.
#[pyfunction]
#[pyo3(signature = (folder, data_dir, seed, first, cases, at_once, always, before, enough, progress, sketches = Vec::new()))]
#[allow(clippy::too_many_arguments)]
pub fn fuzz<'py>(
    py: Python<'py>,
    folder: &str,
    data_dir: &str,
    seed: u64,
    first: u64,
    cases: u64,
    at_once: usize,
    always: Vec<(String, String)>,
    before: Option<Vec<(u32, u32)>>,
    enough: u32,
    progress: Option<Py<PyAny>>,
    sketches: Vec<Sketch>,
) -> PyResult<Bound<'py, PyDict>> {
    let watch = Arc::new(Watch::default());
    let context = context(folder, data_dir, sketches, &watch)?;
    sources::write(Path::new(folder)).map_err(|e| PyOSError::new_err(e.to_string()))?;
    let levels = Campaign::new(context.clone(), seed, None, 0).features().levels();
    let before = before.map(|counts| Pairs::from_counts(levels, &counts)).transpose();
    let before = before.map_err(PyValueError::new_err)?;
    let always = always.iter().map(|(path, level)| Wish::firm(path, level)).collect();
    let campaign = Campaign::new(context, seed, before.as_ref(), enough).with(always);
    let asked_to_end: Arc<Mutex<Option<PyErr>>> = Arc::default();
    let campaign = campaign.with_fault(Box::new(fault_of(&watch, &asked_to_end)));
    let mut raised = None;
    let mut look = |state: &Progress| {
        let told = tell(progress.as_ref(), state);
        raised = raised.take().or(told.err());
        raised.is_none() && asked_to_end.lock().is_ok_and(|asked| asked.is_none())
    };
    let (covered, found) = py.detach(|| {
        let _remembered = catch_panics_as(blame::describe);
        campaign.run((first, cases), at_once, &mut look)
    });
    let asked = asked_to_end.lock().ok().and_then(|mut asked| asked.take());
    if let Some(raised) = asked.or(raised) {
        return Err(raised);
    }
    let d = PyDict::new(py);
    for (name, count) in [
        ("cases", covered.cases),
        ("refused", covered.refused),
        ("too_large", covered.too_large),
        ("kept", covered.kept),
        ("in_parts", covered.in_parts),
        ("events", covered.events),
        ("packets", covered.packets),
        ("wanted", campaign.pairs() as u64),
    ] {
        d.set_item(name, count)?;
    }
    d.set_item("pairs", covered.pairs.iter().map(|(_, t, r)| (t, r)).collect::<Vec<_>>())?;
    let list = PyList::empty(py);
    for one in found {
        list.append(found_dict(py, one)?)?;
    }
    d.set_item("found", list)?;
    Ok(d)
}

/// Returns a function that returns, as text, the exception which a sketch (mechanism in Python) has
/// raised since the function was last called. Ctrl-C, and an exit that a sketch requests, are
/// stored in `asked_to_end` instead.
fn fault_of(
    watch: &Arc<Watch>,
    asked_to_end: &Arc<Mutex<Option<PyErr>>>,
) -> impl Fn() -> Option<String> + Send + Sync + use<> {
    let (watch, asked_to_end) = (watch.clone(), asked_to_end.clone());
    move || {
        let error = watch.take_error()?;
        Python::attach(|py| {
            if error.is_instance_of::<PyException>(py) {
                let stack = error.traceback(py).and_then(|stack| stack.format().ok());
                return Some(format!("{error}\n{}", stack.unwrap_or_default()));
            }
            asked_to_end.lock().ok()?.get_or_insert(error);
            None
        })
    }
}

fn tell(progress: Option<&Py<PyAny>>, state: &Progress) -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        match progress {
            Some(callback) => {
                callback.call1(py, (state.done, state.failed, state.current.clone())).map(|_| ())
            }
            None => Ok(()),
        }
    })
}

fn found_dict(py: Python<'_>, one: Found) -> PyResult<Bound<'_, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("case", one.case)?;
    d.set_item("oracle", one.failure.oracle)?;
    d.set_item("message", one.failure.message)?;
    d.set_item("drawn", one.drawn)?;
    d.set_item("reduced", one.reduced)?;
    d.set_item("files", one.files)?;
    d.set_item("threads", one.threads)?;
    Ok(d)
}
