//! Functions of the Python module `eastwest._core`: a thin layer without logic. The only crate that reads the
//! clock. The module itself is made in `crates/extension`, or from a mechanism crate (see [`mechanisms!`]).
//!
//! Without the feature `run` this crate is only the interface for mechanism crates, [`eastwest_mechanism`]. So
//! `cargo check --no-default-features` finds the errors of a mechanism crate without the simulator.
#![allow(missing_docs)]

#[cfg(feature = "run")]
mod blame;
#[cfg(feature = "run")]
mod convert;
#[cfg(feature = "complete")]
mod drilling;
#[cfg(feature = "complete")]
mod fuzzing;
#[cfg(feature = "run")]
mod keeping;
#[cfg(feature = "run")]
mod module;
#[cfg(feature = "run")]
mod mpi;
#[cfg(feature = "run")]
mod own;
#[cfg(feature = "run")]
mod patience;
#[cfg(feature = "run")]
mod running;
#[cfg(feature = "run")]
mod sketch;

pub use eastwest_mechanism::*;
#[cfg(feature = "run")]
pub use {module::fill, own::Own, pyo3};

/// Checks the argument of the macro of the same name that makes a Python module, which needs the feature `run`.
#[cfg(not(feature = "run"))]
#[macro_export]
macro_rules! mechanisms {
    ($add:expr) => {
        const _: fn(&mut $crate::Mechanisms) = $add;
    };
}
