//! Settings of a sketch (mechanism in Python): read from the scenario, and set as attributes of its
//! Python objects.

use eastwest_mechanism::parameters::{Key, Quantity, Ratio, Section, key};
use eastwest_types::Span;
use pyo3::prelude::*;
use std::collections::BTreeSet;
use std::sync::Mutex;

/// Value of one setting of a sketch (mechanism in Python).
#[derive(Clone, Copy, Debug)]
enum Value {
    Whole(u64),
    Number(f64),
    Duration(Span),
    Flag(bool),
}

/// Settings of a sketch (mechanism in Python): name and value of each parameter.
#[derive(Clone, Debug)]
pub struct Settings(Vec<(&'static str, Value)>);

impl Settings {
    /// Reads the parameters of a sketch (mechanism in Python) from a scenario. Each is declared as
    /// (name, type, default); sketch.py has already checked the types.
    pub fn read(s: &mut Section, parameters: &[(String, String, String)]) -> Settings {
        let read = |(name, kind, default): &(String, String, String)| {
            let name = lasting(name);
            let value = match kind.as_str() {
                "int" => Value::Whole(s.get(declared(name, default))),
                "duration" => Value::Duration(s.get(declared(name, default))),
                "bool" => Value::Flag(s.get(declared(name, default))),
                _ => Value::Number(s.get(declared::<Ratio>(name, default)).0),
            };
            (name, value)
        };
        Settings(parameters.iter().map(read).collect())
    }

    /// Sets each setting as an attribute of a Python object.
    pub fn set(&self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        for (name, value) in &self.0 {
            match *value {
                Value::Whole(n) => object.setattr(*name, n)?,
                Value::Duration(time) => object.setattr(*name, time.0)?,
                Value::Number(x) => object.setattr(*name, x)?,
                Value::Flag(b) => object.setattr(*name, b)?,
            }
        }
        Ok(())
    }
}

fn declared<T: Quantity>(name: &'static str, default: &str) -> Key<T> {
    key(name, "A parameter of the sketch.").default(lasting(default))
}

/// Returns the text with the lifetime of the program: the reader of scenarios needs static names.
/// Each different text is stored once, and sketches have few.
pub fn lasting(text: &str) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut kept = KEPT.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(known) = kept.get(text) {
        return known;
    }
    let new: &'static str = Box::leak(text.to_owned().into_boxed_str());
    kept.insert(new);
    new
}
