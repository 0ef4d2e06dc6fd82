//! Work before and after a simulation: reading the scenario, building the network, making tables.
//! Ctrl-C interrupts it, and so does an exception of the progress callback, for example because
//! memory is short.

use eastwest_engine::interrupt;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Wall-clock time between two checks for Ctrl-C.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Runs `work`, which counts its steps ([`interrupt::steps`]). Several times per second, checks for
/// Ctrl-C and calls the method `busy` of the Python object `progress`, if there is one. Ctrl-C, or
/// an exception of `busy`, interrupts the work and is returned as the error.
pub fn patiently<R>(progress: Option<&Py<PyAny>>, work: impl FnOnce() -> R) -> PyResult<R> {
    let raised = Rc::new(RefCell::new(None));
    let busy = Python::attach(|py| progress.and_then(|p| p.getattr(py, "busy").ok()));
    #[allow(clippy::disallowed_methods)]
    let mut looked = Instant::now();
    let look = {
        let raised = raised.clone();
        move || {
            let since = looked.elapsed();
            if since < LOOK_EVERY {
                return true;
            }
            looked += since;
            *raised.borrow_mut() = Python::attach(|py| {
                py.check_signals()?;
                busy.as_ref().map_or(Ok(()), |busy| busy.call0(py).map(|_| ()))
            })
            .err();
            raised.borrow().is_none()
        }
    };
    interrupt::watched(look, work).map_err(|interrupt::Stopped| {
        raised.take().unwrap_or_else(|| PyKeyboardInterrupt::new_err(()))
    })
}
