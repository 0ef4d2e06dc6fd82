//! Functions of the Python module `eastwest._core`: a thin layer that converts arguments and
//! results. No other crate reads the clock. The module itself is built by `crates/extension`, or by
//! a mechanism crate of the user (see [`mechanisms!`]).
//!
//! Without the feature `run`, this crate is only the interface for mechanism crates,
//! [`eastwest_mechanism`]. `cargo check --no-default-features` then finds the errors of a mechanism
//! crate without compiling the simulator.
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
mod live;
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

/// Only checks the type of its argument, a function that adds mechanisms. With the feature `run`, a
/// macro with this name makes the Python module of a mechanism crate.
#[cfg(not(feature = "run"))]
#[macro_export]
macro_rules! mechanisms {
    ($add:expr) => {
        const _: fn(&mut $crate::Mechanisms) = $add;
    };
}
