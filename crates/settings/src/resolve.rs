//! The resolved scenario as TOML text: it contains the values of all keys, defaults included.

/// A table of the resolved scenario; it contains the values of all keys, defaults included.
#[derive(Default)]
pub struct Out {
    values: Vec<(&'static str, String)>,
    /// Tables below this one, with their names; the text has them after the values of this table.
    pub tables: Vec<(&'static str, Body)>,
}

/// Content below a name of the resolved scenario: one TOML table, or an array of TOML tables.
pub enum Body {
    /// One table, written under `[name]`.
    Table(Out),
    /// An array of tables, each written under `[[name]]`.
    Array(Vec<Out>),
}

impl Out {
    /// Adds the line `name = text`, where `text` is a TOML value.
    pub fn value(&mut self, name: &'static str, text: String) {
        self.values.push((name, text));
    }

    /// Sets `name = text`; adds the key if it is not present.
    pub fn replace(&mut self, name: &'static str, text: String) {
        match self.values.iter_mut().find(|(n, _)| *n == name) {
            Some(entry) => entry.1 = text,
            None => self.value(name, text),
        }
    }

    /// Removes the key `name` if there is one.
    pub fn remove(&mut self, name: &'static str) {
        self.values.retain(|(n, _)| *n != name);
    }

    /// Sorts the values, and the tables, in the order of the keys in `names`.
    pub fn order(&mut self, names: &[&'static str]) {
        let place = |name: &str| names.iter().position(|n| *n == name);
        self.values.sort_by_key(|(name, _)| place(name));
        self.tables.sort_by_key(|(name, _)| place(name));
    }

    /// Returns the table as TOML text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.write("", &mut text);
        text
    }

    fn write(&self, path: &str, text: &mut String) {
        for (name, value) in &self.values {
            text.push_str(&format!("{name} = {value}\n"));
        }
        for (name, body) in &self.tables {
            let path = if path.is_empty() { (*name).to_owned() } else { format!("{path}.{name}") };
            match body {
                Body::Table(out) => {
                    text.push_str(&format!("\n[{path}]\n"));
                    out.write(&path, text);
                }
                Body::Array(outs) => {
                    for out in outs {
                        text.push_str(&format!("\n[[{path}]]\n"));
                        out.write(&path, text);
                    }
                }
            }
        }
    }
}
