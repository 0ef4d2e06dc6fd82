//! Python function that plays a script in the language of packetdrill.

use eastwest_drill::profile::Profile;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Plays a packetdrill script; arguments and results are described in python/eastwest/_core.pyi.
#[pyfunction]
#[pyo3(signature = (text, profile, altered))]
pub fn drill<'py>(
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
