//! Frames of a running simulation for a Python object that shows the run while it continues; see
//! `Live` in python/eastwest/core.py.

use crate::convert::little_endian;
use eastwest_sim::frame::Frame;
use eastwest_types::{Span, Time};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

/// A Python object that receives the frames of a run.
pub struct Live {
    /// Method `frame` of the object.
    method: Py<PyAny>,
    /// Simulated time of the first frame.
    pub first: Time,
}

/// Returns the simulated time `seconds`; [`Time::NEVER`] if no run can reach it. Negative values
/// and NaN become zero.
fn time(seconds: f64) -> Time {
    Time::ZERO + Span::from_secs_f64_nearest(seconds)
}

impl Live {
    /// Returns the receiver of frames for the Python object `live`. Fails if a required attribute
    /// is missing or has a wrong value.
    pub fn new(live: &Bound<'_, PyAny>) -> PyResult<Live> {
        let first: f64 = live.getattr("first_s")?.extract()?;
        if first.is_nan() || first < 0.0 {
            return Err(PyValueError::new_err(format!(
                "first_s of RunOptions.live is {first:?}, but must be a simulated time in seconds, \
                 at least 0"
            )));
        }
        Ok(Live { method: live.getattr("frame")?.unbind(), first: time(first) })
    }

    /// Passes a frame to the Python object. Returns the simulated time of the next frame.
    pub fn show(&self, frame: &Frame) -> PyResult<Time> {
        Python::attach(|py| {
            let next = self.method.bind(py).call1((frame_dict(py, frame)?,))?;
            let seconds = next.extract::<f64>().map_err(|_| {
                PyTypeError::new_err(format!(
                    "the method frame of RunOptions.live returned {next:?}, but must return the \
                     simulated time of the next frame in seconds"
                ))
            })?;
            Ok(time(seconds))
        })
    }
}

/// Returns a frame as a dict, see `Frame` in python/eastwest/core.py.
fn frame_dict<'py>(py: Python<'py>, frame: &Frame) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    let progress = &frame.progress;
    d.set_item("time_s", progress.now.as_secs_f64())?;
    d.set_item("queue_packets", little_endian(py, &frame.queue_packets, u32::to_le_bytes)?)?;
    for (name, values) in [
        ("queue_bytes", &frame.queue_bytes),
        ("carried", &frame.carried),
        ("drops", &frame.drops),
        ("marks", &frame.marks),
    ] {
        d.set_item(name, little_endian(py, values, u64::to_le_bytes)?)?;
    }
    d.set_item("paused", PyBytes::new(py, &frame.paused))?;
    d.set_item("energy_j", PyList::new(py, &frame.energy)?)?;
    d.set_item("jobs_done", progress.done.0)?;
    d.set_item("jobs_total", progress.done.1)?;
    d.set_item("flows_done", frame.flows_done)?;
    d.set_item("open_messages", frame.open_messages)?;
    d.set_item("retransmits", frame.losses.0)?;
    d.set_item("timeouts", frame.losses.1)?;
    d.set_item("packet_hops", progress.packet_hops)?;
    Ok(d)
}
