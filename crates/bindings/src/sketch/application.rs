//! Applications written in Python.
//!
//! A method of the user's class (a hook) requests actions, such as sending a message, through
//! methods of its base class (python/eastwest/mechanisms/application.py). The base class collects
//! the actions, and this module executes them in order. Python objects that messages and timers
//! carry are stored in the [`Shelf`]; a message carries only the index of its object.

use super::object::{Object, Origin};
use super::settings::lasting;
use eastwest_types::Span;
pub use eastwest_workload::application::Role;
use eastwest_workload::application::process::Kind;
use eastwest_workload::application::{
    self, ApplicationModel, Content, Declared, Place, Process, Statistic,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::sync::{Arc, Mutex, PoisonError};

/// An application written in Python: the user's class and its settings.
pub struct Model {
    origin: Origin,
    shelf: Arc<Mutex<Shelf>>,
}

impl Model {
    /// Returns the application defined by the Python class and settings in `origin`.
    pub fn new(origin: Origin) -> Model {
        Model { origin, shelf: Arc::default() }
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.origin.fmt(f) // settings only: scenarios are compared by this text
    }
}

impl ApplicationModel for Model {
    fn declared(&self) -> Declared {
        let quantity =
            |(name, doc): &(String, String)| Statistic { name: lasting(name), doc: lasting(doc) };
        let all = |given: &Option<Vec<(String, String)>>| {
            given.as_ref().map(|given| given.iter().map(quantity).collect())
        };
        let sketch = &self.origin.sketch;
        Declared { counters: all(&sketch.counters), measures: all(&sketch.measures) }
    }

    fn start(&self, place: &Place) -> Box<dyn application::Application> {
        let set = |object: &Bound<'_, PyAny>| {
            let members = PyDict::new(object.py());
            for (role, numbers) in place.roles.iter().zip(place.members) {
                members.set_item(role.name, numbers.clone())?;
            }
            object.setattr("number", place.number)?;
            object.setattr("role", place.roles[place.role].name)?;
            object.setattr("members", members)?;
            object.setattr("hosts", place.hosts.iter().map(|host| host.0).collect::<Vec<_>>())?;
            object.setattr("now_ps", 0)?;
            object.setattr("_next", 0)
        };
        let object = self.origin.object(|_| place.random(""), set);
        let has = |hook| self.origin.sketch.has(hook);
        Box::new(SketchApplication {
            object,
            on_message: has("on_message"),
            on_timer: has("on_timer"),
            on_close: has("on_close"),
            shelf: self.shelf.clone(),
        })
    }
}

/// Python objects that messages in flight and pending timers carry, shared by all processes of an
/// application.
#[derive(Debug, Default)]
pub struct Shelf {
    places: Vec<Option<Py<PyAny>>>,
    free: Vec<usize>,
}

impl Shelf {
    /// Stores a Python object. Returns its index plus one; 0 for Python's `None`, which is not
    /// stored.
    fn put(&mut self, object: &Bound<'_, PyAny>) -> u64 {
        if object.is_none() {
            return 0;
        }
        let object = Some(object.clone().unbind());
        let place = self.free.pop().unwrap_or(self.places.len());
        match self.places.get_mut(place) {
            Some(empty) => *empty = object,
            None => self.places.push(object),
        }
        place as u64 + 1
    }

    /// Removes and returns the object that [`Shelf::put`] stored under this number; `None` for 0.
    fn take(&mut self, place: u64) -> Option<Py<PyAny>> {
        let place = usize::try_from(place.checked_sub(1)?).ok()?;
        let object = self.places.get_mut(place)?.take();
        self.free.extend(object.is_some().then_some(place));
        object
    }
}

/// A process of an application written in Python.
#[derive(Debug)]
struct SketchApplication {
    object: Object,
    on_message: bool,
    on_timer: bool,
    on_close: bool,
    shelf: Arc<Mutex<Shelf>>,
}

/// Action that a method of the Python class has requested.
enum Act {
    Send { to: u32, content: Content, request: bool },
    Reply { request: u64, content: Content },
    Timer { delay: Span, value: u64 },
    Cancel(u64),
    Close { peer: u32, connection: u16 },
    Stop,
    Count(String, u64),
    Measure(String, Span),
    Plan(u64),
    Begin(u64),
    Complete(u64),
}

impl SketchApplication {
    fn shelf(&self) -> std::sync::MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the action described by a tuple of the Python base class: (name, arguments …).
    fn act(&self, act: &Bound<'_, PyTuple>) -> PyResult<Act> {
        let name: String = act.get_item(0)?.extract()?;
        let number = |at| act.get_item(at)?.extract::<u64>();
        let data = |at| Ok::<_, PyErr>([self.shelf().put(&act.get_item(at)?), 0, 0]);
        Ok(match name.as_str() {
            "send" | "request" => {
                let (bytes, connection) = (number(2)?, act.get_item(3)?.extract()?);
                let content = Content { bytes, words: data(4)?, connection };
                let to = act.get_item(1)?.extract()?;
                Act::Send { to, content, request: name == "request" }
            }
            "reply" => {
                let content = Content { bytes: number(2)?, words: data(3)?, connection: 0 };
                Act::Reply { request: number(1)?, content }
            }
            "timer" => Act::Timer { delay: Span(number(1)?), value: data(2)?[0] },
            "cancel" => Act::Cancel(number(1)?),
            "close" => {
                let (peer, connection) = (act.get_item(1)?.extract()?, act.get_item(2)?.extract()?);
                Act::Close { peer, connection }
            }
            "stop" => Act::Stop,
            "count" => Act::Count(act.get_item(1)?.extract()?, number(2)?),
            "measure" => Act::Measure(act.get_item(1)?.extract()?, Span(number(2)?)),
            "plan" => Act::Plan(number(1)?),
            "begin" => Act::Begin(number(1)?),
            "complete" => Act::Complete(number(1)?),
            _ => return Err(PyValueError::new_err("the application requested an unknown action")),
        })
    }

    /// Calls the method `hook` of the Python object with the arguments that `given` makes, and
    /// executes the actions that it requests.
    fn call(
        &self,
        p: &mut Process,
        hook: &'static str,
        given: impl FnOnce(Python<'_>) -> PyResult<Vec<Py<PyAny>>>,
    ) {
        let step = |py: Python<'_>| {
            let first = (p.now().0, p.next_number(), hook).into_pyobject(py)?;
            let mut all: Vec<Py<PyAny>> = first.iter().map(Bound::unbind).collect();
            all.extend(given(py)?);
            PyTuple::new(py, all).map(Bound::unbind)
        };
        let take = |answer: &Bound<'_, PyAny>| {
            let acts = answer.cast::<PyList>()?;
            acts.iter().map(|act| self.act(act.cast::<PyTuple>()?)).collect::<PyResult<Vec<_>>>()
        };
        let acts = self.object.call_with("_step", step, take).unwrap_or_default();
        for act in acts {
            match act {
                Act::Send { to, content, request: false } => p.send(to, content),
                Act::Send { to, content, request: true } => drop(p.request(to, content)),
                Act::Reply { request, content } => p.reply_to(request, content),
                Act::Timer { delay, value } => drop(p.timer(delay, value)),
                Act::Cancel(timer) => p.cancel(timer),
                Act::Close { peer, connection } => p.close(peer, connection),
                Act::Stop => p.stop(),
                Act::Count(counter, by) => p.count(&counter, by),
                Act::Measure(name, took) => p.measure(&name, took),
                Act::Plan(units) => p.plan(units),
                Act::Begin(units) => p.begin(units),
                Act::Complete(units) => p.complete(units),
            }
        }
    }
}

impl application::Application for SketchApplication {
    fn on_start(&mut self, p: &mut Process) {
        self.call(p, "on_start", |_| Ok(Vec::new()));
    }

    fn on_message(&mut self, p: &mut Process, message: &application::Message) {
        let data = self.shelf().take(message.content.words[0]);
        if self.on_message {
            let request = match message.kind {
                Kind::Request(request) => Some(request),
                Kind::Plain | Kind::Reply(_) => None,
            };
            let (answers, bytes) = (message.answers(), message.content.bytes);
            let (sender, sent_ps) = (message.from, message.sent.0);
            let message = Message { sender, bytes, data, sent_ps, request, answers };
            self.call(p, "on_message", |py| Ok(vec![Py::new(py, message)?.into_any()]));
        }
    }

    fn on_timer(&mut self, p: &mut Process, value: u64) {
        let data = self.shelf().take(value);
        if self.on_timer {
            self.call(p, "on_timer", |py| Ok(vec![data.unwrap_or_else(|| py.None())]));
        }
    }

    fn on_close(&mut self, p: &mut Process, peer: u32, failed: bool) {
        if self.on_close {
            self.call(p, "on_close", |py| {
                let both = (peer, failed).into_pyobject(py)?;
                Ok(both.iter().map(Bound::unbind).collect())
            });
        }
    }
}

/// A message that has arrived, as the Python method `on_message` receives it.
#[pyclass(module = "eastwest", frozen, get_all)]
struct Message {
    sender: u32,
    bytes: u64,
    data: Option<Py<PyAny>>,
    sent_ps: u64,
    request: Option<u64>,
    answers: Option<u64>,
}
