//! The Python module `eastwest._core`: the bindings with the built-in mechanisms. A mechanism crate
//! (`eastwest new`) makes a module of the same kind with its own beside them.
#![allow(missing_docs)]

use pyo3::prelude::*;

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    eastwest_bindings::fill(m, None)
}
