//! Layers of Hadoop's properties: a later file replaces values of earlier files, unless the values
//! are `final`.

use super::hadoop_names as names;
use super::hadoop_xml;
use eastwest_settings::problem::shorten;
use eastwest_settings::quantity::Properties;
use std::collections::BTreeMap;

/// Maximum depth of nested references `${name}` (Hadoop's `Configuration`, MAX_SUBST).
pub const DEEPEST: usize = 20;
/// Maximum number of references that are replaced in one value.
const MOST_REFERENCES: usize = 10_000;
/// Maximum length in bytes of a value after the replacement of references.
const LONGEST: usize = 4096;

/// Value in effect of a Hadoop property, and the place that sets it.
pub struct Given {
    /// Name of the property as given, possibly a deprecated one.
    pub name: String,
    /// Value, with references `${name}` not yet replaced.
    pub value: String,
    /// File and line that set the property; `None` for properties in the scenario.
    pub place: Option<(String, usize)>,
    /// Number of the file among all files, from 1; 0 for properties in the scenario.
    layer: usize,
    /// Whether the property is `final`: later files must not replace its value.
    pub fixed: bool,
}

impl Given {
    /// Returns a property that the scenario sets.
    pub fn of_scenario(name: String, value: String) -> Given {
        Given { name, value, place: None, layer: 0, fixed: false }
    }

    /// Returns the name of a Hadoop property and the place that sets it, for messages:
    /// `dfs.replication in a.xml, line 3`.
    pub fn said(&self) -> String {
        let name = shorten(&self.name);
        match &self.place {
            Some((file, line)) => format!("{name} in {}, line {line}", shorten(file)),
            None => name,
        }
    }
}

/// All Hadoop properties that configuration files and the scenario contain.
#[derive(Default)]
pub struct Layers {
    /// The value in effect for each property, by its current name.
    pub all: BTreeMap<String, Given>,
    /// Number of files that have been added.
    files: usize,
}

impl Layers {
    /// Returns the value in effect of the property with the current name `name`, and its place;
    /// `None` if neither a file nor the scenario sets the property.
    pub fn given(&self, name: &str) -> Option<&Given> {
        self.all.get(name)
    }

    /// Returns the value of a property after the replacement of references `${name}`, or a message
    /// why references cannot be replaced; `None` if neither a file nor the scenario sets the
    /// property.
    pub fn value(&self, name: &str) -> Option<Result<String, String>> {
        self.all.get(name).map(|given| self.expand(&given.value, DEEPEST))
    }

    /// Returns a text after the replacement of references `${name}`, nested at most `depth` levels
    /// deep, or a message why references cannot be replaced.
    pub fn expand(&self, text: &str, depth: usize) -> Result<String, String> {
        self.expand_within(text, depth, &mut { MOST_REFERENCES })
    }

    /// Replaces references as [`Layers::expand`] does. `left` is the number of references that may
    /// still be replaced in the whole value.
    fn expand_within(&self, text: &str, depth: usize, left: &mut usize) -> Result<String, String> {
        let (mut done, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, behind)) = after.split_once('}') else { break };
            let Some(depth) = depth.checked_sub(1) else {
                return Err(format!(
                    "refers to other properties through more than {DEEPEST} levels"
                ));
            };
            // The number of references must be limited: properties, even with an empty value, can
            // refer to each other exponentially often.
            *left = left.checked_sub(1).ok_or_else(|| {
                format!("refers to other properties more than {MOST_REFERENCES} times")
            })?;
            let inner = self.all.get(names::current(name.trim())).ok_or_else(|| {
                format!("refers to ${{{}}}, but no file sets this property", shorten(name.trim()))
            })?;
            done.push_str(before);
            done.push_str(&self.expand_within(&inner.value, depth, left)?);
            if done.len() > LONGEST {
                return Err(format!("grows to more than {LONGEST} bytes by its references"));
            }
            rest = behind;
        }
        done.push_str(rest);
        Ok(done.trim().to_owned())
    }

    /// Adds the properties of a file as the top layer. Returns error messages, and the number of
    /// properties that keep an earlier value because this value is `final`.
    pub fn add(
        &mut self,
        file: &str,
        properties: Vec<hadoop_xml::Property>,
    ) -> (Vec<String>, usize) {
        let (mut complaints, mut kept) = (Vec::new(), 0);
        self.files += 1;
        let layer = self.files;
        for property in properties {
            let name = names::current(&property.name).to_owned();
            let place = Some((file.to_owned(), property.line));
            let given = Given {
                name: property.name,
                value: property.value,
                place,
                layer,
                fixed: property.fixed,
            };
            match self.all.get(&name) {
                Some(before) if before.layer == layer => {
                    if before.value.trim() != given.value.trim() {
                        let (said, other) = (given.said(), before.said());
                        complaints.push(format!(
                            "{said}: has another value under its other name \
                                                 {other}"
                        ));
                    }
                }
                Some(before) if before.fixed && before.value != given.value => kept += 1,
                _ => {
                    self.all.insert(name, given);
                }
            }
        }
        (complaints, kept)
    }

    /// Adds the properties in the scenario as the top layer. Returns errors as pairs (name of the
    /// property, message).
    pub fn set(&mut self, properties: &Properties) -> Vec<(String, String)> {
        let mut complaints = Vec::new();
        for (given_name, value) in &properties.0 {
            let name = names::current(given_name).to_owned();
            let given = Given::of_scenario(given_name.clone(), value.clone());
            match self.all.get(&name) {
                Some(before) if before.place.is_none() && before.value != given.value => {
                    let reason =
                        format!("has another value under its other name {}", before.said());
                    complaints.push((given_name.clone(), reason));
                }
                Some(before) if before.fixed && before.value.trim() != given.value.trim() => {
                    let reason = format!("cannot be set: its value is final: {}", before.said());
                    complaints.push((given_name.clone(), reason));
                }
                _ => {
                    self.all.insert(name, given);
                }
            }
        }
        complaints
    }
}
