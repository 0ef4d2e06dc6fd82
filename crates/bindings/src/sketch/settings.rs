//! Settings of a sketch: read with the means of the scenario, set on its objects.

use eastwest_sim::parameters::{Key, Quantity, Ratio, Section, key};
use pyo3::prelude::*;
use std::collections::BTreeSet;
use std::sync::Mutex;

/// A value by the name of its attribute.
#[derive(Clone, Copy, Debug)]
enum Value {
    Whole(u64),
    Number(f64),
    Flag(bool),
}

/// The settings of a sketch.
#[derive(Clone, Debug)]
pub struct Settings(Vec<(&'static str, Value)>);

impl Settings {
    /// Reads parameters, given as name, type and default; types are those that sketch.py checks.
    pub fn read(s: &mut Section, parameters: &[(String, String, String)]) -> Settings {
        let read = |(name, kind, default): &(String, String, String)| {
            let name = lasting(name);
            let value = match kind.as_str() {
                "int" => Value::Whole(s.get(declared(name, default))),
                "bool" => Value::Flag(s.get(declared(name, default))),
                _ => Value::Number(s.get(declared::<Ratio>(name, default)).0),
            };
            (name, value)
        };
        Settings(parameters.iter().map(read).collect())
    }

    /// Sets them on an object.
    pub fn set(&self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        for (name, value) in &self.0 {
            match *value {
                Value::Whole(n) => object.setattr(*name, n)?,
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

/// The text for as long as the program runs. The reader of scenarios wants such names; those of
/// sketches are few, and each is kept once.
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
