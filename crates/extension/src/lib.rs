//! The Python module `eastwest._core`: the bindings with the built-in mechanisms. A mechanism crate
//! of the user (`eastwest new`) makes an equal module with its own mechanisms in addition.
#![allow(missing_docs)]

use pyo3::prelude::*;

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    eastwest_bindings::fill(m, None)
}
