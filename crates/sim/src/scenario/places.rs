//! Places in a fabric, written as text: a node such as `"h3"`, or two nodes such as `"leaf0->h3"`,
//! which stand for one direction of a cable or for the data stream from one host to another.

use super::nodes::Nodes;
use eastwest_settings::problem::shorten;
use eastwest_settings::quantity::{Quantity, instead};
use toml::Value;

/// Places as written in the scenario: a list of texts, or a single text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Places(pub Vec<String>);

/// Maximum length in bytes of the text of a place: two names and an arrow.
const LONGEST: usize = 140;

impl Quantity for Places {
    const TYPE: &'static str = "places";
    fn parse(value: &Value) -> Result<Places, String> {
        let one = |item: &Value| match item {
            Value::String(text) if text.len() <= LONGEST && !text.chars().any(char::is_control) => {
                Ok(text.trim().to_owned())
            }
            Value::String(_) => Err("is not a name; write names in quotes, such as \"h3\" or \
                                     \"leaf0->h3\""
                .to_owned()),
            other => Err(format!(
                "{}; write names in quotes, such as \"h3\" or [\"h0\", \"leaf0->h3\"]",
                instead(other)
            )),
        };
        match value {
            Value::Array(items) => items.iter().map(one).collect::<Result<_, _>>().map(Places),
            single => Ok(Places(vec![one(single)?])),
        }
    }
    fn show(&self) -> String {
        let items = self.0.iter().map(|text| Value::String(text.clone()).to_string());
        format!("[{}]", items.collect::<Vec<_>>().join(", "))
    }
    fn placeholder() -> Places {
        Places(Vec::new())
    }
}

/// Message about a wrong place, and the most similar correct place; `None` if no place is similar.
pub type Wrong = (String, Option<String>);

/// Returns the texts before and after the arrow of `a->b`; `None` if there is no arrow.
pub fn ends(text: &str) -> Option<(&str, &str)> {
    text.split_once("->").map(|(from, to)| (from.trim(), to.trim()))
}

/// Returns the number of the node with this name, or a message that there is no such node.
pub fn node(name: &str, nodes: &Nodes) -> Result<u32, Wrong> {
    nodes.number(name).ok_or_else(|| {
        (format!("names {}, which is not a node", shorten(name)), nodes.nearest(name))
    })
}

/// Returns the number of the host with this name, or a message that there is no such host.
pub fn host(name: &str, nodes: &Nodes) -> Result<u32, Wrong> {
    match nodes.number(name) {
        Some(n) if n < nodes.hosts() => Ok(n),
        _ => {
            let near = nodes.nearest(name);
            let is_host = |name: &String| nodes.number(name).is_some_and(|n| n < nodes.hosts());
            let hosts = nodes.host_names();
            let message =
                format!("names {}, which is not a host; hosts are {hosts}", shorten(name));
            Err((message, near.filter(is_host)))
        }
    }
}

/// Returns the numbers of the sending and the receiving node of a port such as `leaf0->h3`, or a
/// message that no cable joins them.
pub fn port(text: &str, nodes: &Nodes) -> Result<(u32, u32), Wrong> {
    let Some((from, to)) = ends(text) else {
        let message = format!(
            "contains {}, which is not a port; write a port as \"leaf0->h3\"",
            shorten(text)
        );
        return Err((message, None));
    };
    let mended = |from: &str, to: &str| Some(format!("{from}->{to}"));
    let a = node(from, nodes).map_err(|(m, near)| (m, near.and_then(|n| mended(&n, to))))?;
    let b = node(to, nodes).map_err(|(m, near)| (m, near.and_then(|n| mended(from, &n))))?;
    if nodes.adjacent(a, b) {
        return Ok((a, b));
    }
    let message =
        format!("contains {}, but there is no cable between these two nodes", shorten(text));
    // One of the two names is probably right. The hint prefers the name of a host to the name of a
    // switch.
    let near = if b < nodes.hosts() || a >= nodes.hosts() {
        nodes.neighbour(b).and_then(|n| mended(&nodes.name(n), to))
    } else {
        nodes.neighbour(a).and_then(|n| mended(from, &nodes.name(n)))
    };
    Err((message, near))
}
