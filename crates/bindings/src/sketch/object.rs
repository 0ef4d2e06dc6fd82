//! Sketches (Python classes that are mechanisms), their objects, and calls of their methods.

use super::settings::Settings;
use eastwest_engine::random::Stream;
use eastwest_types::Span;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A sketch: a Python class that is a mechanism, with its description; see `Sketch` in
/// python/eastwest/mechanisms/sketch.py.
#[derive(FromPyObject)]
pub struct Sketch {
    /// Kind of mechanism: `queue`, `congestion`, `routing` or `application`.
    pub kind: String,
    /// Name by which scenarios refer to the sketch.
    pub name: String,
    /// One line that explains the sketch, for the documentation of settings and for error messages.
    pub doc: String,
    /// Name of the random number stream of the sketch's objects.
    stream: String,
    /// Parameters of the sketch: name, type, and default as TOML text.
    parameters: Vec<(String, String, String)>,
    /// Names of the methods that the Python class defines.
    methods: Vec<String>,
    #[pyo3(attribute("class_"))]
    class: Py<PyAny>,
    /// Roles of the processes of an application: name and meaning of each; empty for other
    /// mechanisms.
    pub roles: Vec<(String, String)>,
    /// Name and meaning of each counter that an application declares; `None`: not declared.
    pub counters: Option<Vec<(String, String)>>,
    /// Name and meaning of each measure that an application declares; `None`: not declared.
    pub measures: Option<Vec<(String, String)>>,
}

impl Sketch {
    /// Whether the Python class defines a method with this name.
    pub fn has(&self, method: &str) -> bool {
        self.methods.iter().any(|m| m == method)
    }
}

/// Number and duration of all calls of sketches (mechanisms in Python) in a run, and the exception
/// of the first call that failed.
#[derive(Debug, Default)]
pub struct Watch {
    calls: AtomicU64,
    ns: AtomicU64,
    failed: AtomicBool,
    error: Mutex<Option<PyErr>>,
}

impl Watch {
    /// Calls Python and counts the call. `None` if this call raises an exception, or if an earlier
    /// call of a sketch in the run has failed; Python is not called then.
    fn ask<R>(&self, question: impl FnOnce(Python<'_>) -> PyResult<R>) -> Option<R> {
        if self.failed() {
            return None;
        }
        #[allow(clippy::disallowed_methods)]
        let began = Instant::now();
        let answer = Python::attach(question);
        let ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.ns.fetch_add(ns, Ordering::Relaxed);
        answer.map_err(|error| self.fail(error)).ok()
    }

    fn fail(&self, error: PyErr) {
        self.failed.store(true, Ordering::Relaxed);
        if let Ok(mut first) = self.error.lock() {
            first.get_or_insert(error);
        }
    }

    /// Whether a call of a sketch has raised an exception.
    pub fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Removes and returns the exception of the first call that failed; `None` if no call has
    /// failed. From then on, sketches are called again.
    pub fn take_error(&self) -> Option<PyErr> {
        let error = self.error.lock().ok()?.take();
        self.failed.store(false, Ordering::Relaxed);
        error
    }

    /// Returns the number of calls of sketches, and the time spent in them in seconds.
    pub fn cost(&self) -> (u64, f64) {
        (self.calls.load(Ordering::Relaxed), self.ns.load(Ordering::Relaxed) as f64 / 1e9)
    }
}

/// A sketch (mechanism in Python) with its settings. The Python objects of ports, senders, switches
/// or processes are made from it.
pub struct Origin {
    /// The Python class and its description.
    pub sketch: Arc<Sketch>,
    /// Values of the parameters of the sketch, from the scenario.
    pub settings: Settings,
    watch: Arc<Watch>,
}

impl std::fmt::Debug for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.sketch.name, self.settings)
    }
}

impl Origin {
    /// Reads the settings of a sketch (mechanism in Python) from a scenario. `watch` counts the
    /// calls of the sketch's objects.
    pub fn read(
        s: &mut eastwest_mechanism::parameters::Section,
        sketch: &Arc<Sketch>,
        watch: &Arc<Watch>,
    ) -> Origin {
        let settings = Settings::read(s, &sketch.parameters);
        Origin { sketch: sketch.clone(), settings, watch: watch.clone() }
    }

    /// Returns a new Python object of the sketch's class. Before its `__init__`, it gets its
    /// settings, its random stream and the attributes that `set` sets. If a step fails, the object
    /// is empty and [`Watch`] holds the exception.
    pub fn object(
        &self,
        random: impl Fn(&str) -> Stream,
        set: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>,
    ) -> Object {
        let made = self.watch.ask(|py| {
            let class = self.sketch.class.bind(py);
            let object = class.call_method1("__new__", (class,))?;
            self.settings.set(&object)?;
            object.setattr("random", Random { stream: random(&self.sketch.stream) })?;
            set(&object)?;
            object.call_method0("__init__")?;
            Ok(object.unbind())
        });
        Object { object: made, watch: self.watch.clone() }
    }
}

/// A Python object of a sketch (mechanism in Python); empty if its creation failed, and then all
/// calls return `None`.
#[derive(Debug)]
pub struct Object {
    object: Option<Py<PyAny>>,
    watch: Arc<Watch>,
}

impl Object {
    /// Calls a method of the Python object and converts its return value with `take`. `None` if
    /// this call, or any earlier call of a sketch in the run, has failed.
    pub fn call<A, R>(
        &self,
        method: &str,
        arguments: A,
        take: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<R>,
    ) -> Option<R>
    where
        A: for<'py> pyo3::call::PyCallArgs<'py>,
    {
        let object = self.object.as_ref()?;
        self.watch.ask(|py| {
            let answer = object.bind(py).call_method1(method, arguments)?;
            take(&answer).map_err(|_| wrong_answer(object.bind(py), method, &answer))
        })
    }

    /// Calls a method as [`Object::call`] does, with arguments that the function `arguments` makes.
    pub fn call_with<R>(
        &self,
        method: &str,
        arguments: impl FnOnce(Python<'_>) -> PyResult<Py<PyTuple>>,
        take: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<R>,
    ) -> Option<R> {
        let object = self.object.as_ref()?;
        self.watch.ask(|py| {
            let answer = object.bind(py).call_method1(method, arguments(py)?.into_bound(py))?;
            take(&answer)
        })
    }

    /// Reads an attribute of the Python object, an integer of at least `least`. The attribute may
    /// be Python's `None` unless the value is `needed`. Returns `None` for Python's `None`, and if
    /// this read or an earlier call of a sketch in the run has failed.
    pub fn number(&self, attribute: &str, least: u64, needed: bool) -> Option<u64> {
        let object = self.object.as_ref()?;
        if self.watch.failed() {
            return None;
        }
        let read = |py: Python<'_>| {
            let object = object.bind(py);
            let value = object.getattr(attribute)?;
            match value.extract::<Option<u64>>() {
                Ok(None) if !needed => Ok(None),
                Ok(Some(number)) if number >= least => Ok(Some(number)),
                _ => Err(wrong_attribute(object, attribute, &value, least, needed)),
            }
        };
        Python::attach(read).unwrap_or_else(|error| {
            self.watch.fail(error);
            None
        })
    }
}

/// Returns the exception for an attribute of a Python object whose value is not an allowed number.
fn wrong_attribute(
    object: &Bound<'_, PyAny>,
    attribute: &str,
    value: &Bound<'_, PyAny>,
    least: u64,
    needed: bool,
) -> PyErr {
    let (class, value) = (class_name(object), shown(value));
    let none = if needed { "" } else { "None or " };
    PyTypeError::new_err(format!(
        "{class}.{attribute} must be {none}a whole number of at least {least}, not {value}"
    ))
}

fn class_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "the sketch".to_owned(), |n| n.to_string())
}

/// Returns the text (`repr`) of a Python value, cut to a short length for messages.
fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map_or_else(|_| "something else".to_owned(), |r| r.to_string());
    text.chars().take(60).collect()
}

/// Returns the exception for a wrong return value of a Python method.
fn wrong_answer(object: &Bound<'_, PyAny>, method: &str, answer: &Bound<'_, PyAny>) -> PyErr {
    let (class, answer) = (class_name(object), shown(answer));
    let should = match method {
        "at_enqueue" => "an eastwest.Verdict, and TRIM only if the class has trims = True",
        "at_dequeue" => "an eastwest.Verdict other than TRIM",
        "choose" => "the number of a path, a whole number from 0 to choice.paths - 1",
        "rank" => "a whole number from 0 to 2**64 - 1",
        "forward" => "None or a whole number from 0 to 2**64 - 1",
        "at_timer" => "None or a bool",
        "observe" => "None or a number of bytes, 0 or more",
        _ => "a number of bytes, 0 or more",
    };
    PyTypeError::new_err(format!("{class}.{method} must return {should}, not {answer}"))
}

/// A stream of random numbers for a Python object of a sketch. It depends only on the seed of the
/// run and on the port, sender, switch or process to which the object belongs.
#[pyclass(module = "eastwest")]
struct Random {
    stream: Stream,
}

#[pymethods]
impl Random {
    /// Returns a random number uniform in [0, 1).
    fn unit(&mut self) -> f64 {
        self.stream.unit()
    }

    /// Returns an exponentially distributed random time with the mean `mean_ps`, in ps.
    fn exponential(&mut self, mean_ps: &Bound<'_, PyAny>) -> PyResult<u64> {
        let mean = whole(mean_ps, 0, "exponential(mean_ps) needs a mean in ps")?;
        Ok(eastwest_workload::arrivals::exponential(Span(mean), &mut self.stream).0)
    }

    /// Returns a random integer, uniform from 0 to `n` - 1.
    fn below(&mut self, n: &Bound<'_, PyAny>) -> PyResult<u64> {
        Ok(self.stream.below(whole(n, 1, "below(n) draws a number from 0 to n - 1 and needs n")?))
    }
}

/// Returns a Python number that is whole and at least `least`. For other values, fails with a
/// message that begins with `needs`.
fn whole(value: &Bound<'_, PyAny>, least: u64, needs: &str) -> PyResult<u64> {
    value.extract().ok().filter(|n| *n >= least).ok_or_else(|| {
        let value = shown(value);
        let message = format!("{needs}, a whole number from {least} to 2**64 - 1, not {value}");
        PyValueError::new_err(message)
    })
}
