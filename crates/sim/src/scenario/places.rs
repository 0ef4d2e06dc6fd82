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

/// Returns the numbers of the host and of the card in a name such as `h3:eth1`; `None` if `text`
/// does not name a card.
pub fn card(text: &str, nodes: &Nodes) -> Result<Option<(u32, usize)>, Wrong> {
    let named = text.rsplit_once(":eth").filter(|_| nodes.number(text).is_none());
    let Some((name, Ok(number))) = named.map(|(name, n)| (name, n.parse::<usize>())) else {
        return Ok(None);
    };
    let host = host(name, nodes)?;
    let cards = nodes.switches_of_cards(host).len();
    if number < cards && cards > 1 {
        return Ok(Some((host, number)));
    }
    let text = shorten(text);
    let message = match cards {
        0 | 1 => format!("contains {text}, but this host has one card: write only its name"),
        _ => format!("contains {text}, but the cards of this host are eth0 to eth{}", cards - 1),
    };
    Err((message, None))
}

/// One direction of the cables between two nodes, or of the cable of one card.
pub struct Port {
    /// Number of the sending node.
    pub from: u32,
    /// Number of the receiving node.
    pub to: u32,
    /// Number of the card whose cable is meant; `None`: all cables between the two nodes.
    pub card: Option<usize>,
}

/// Returns the number of the node in the name of a node or of a card, such as `h3` or `h3:eth1`,
/// and the number of the card.
fn end(name: &str, nodes: &Nodes) -> Result<(u32, Option<usize>), Wrong> {
    match card(name, nodes)? {
        Some((host, card)) => Ok((host, Some(card))),
        None => node(name, nodes).map(|node| (node, None)),
    }
}

/// Returns the port with the ends `from` and `to`, the names of nodes or cards; `None` if a name is
/// unknown or if no cable joins the ends.
pub fn joined(from: &str, to: &str, nodes: &Nodes) -> Option<Port> {
    let ((from, card), (to, other)) = (end(from, nodes).ok()?, end(to, nodes).ok()?);
    let port = Port { from, to, card: card.or(other) };
    let fits = |card: usize| {
        nodes.switches_of_cards(from.min(to)).get(card).is_some_and(|&at| at == from.max(to))
    };
    (nodes.adjacent(from, to) && port.card.is_none_or(fits)).then_some(port)
}

/// Returns the port that a text such as `leaf0->h3` or `h3:eth1->leaf0` names, or a message that no
/// cable joins its ends.
pub fn port_or_card(text: &str, nodes: &Nodes) -> Result<Port, Wrong> {
    let Some((from, to)) = ends(text) else {
        let message = format!(
            "contains {}, which is not a port; write a port as \"leaf0->h3\"",
            shorten(text)
        );
        return Err((message, None));
    };
    let mended = |from: &str, to: &str| Some(format!("{from}->{to}"));
    let (a, card) = end(from, nodes).map_err(|(m, near)| (m, near.and_then(|n| mended(&n, to))))?;
    let (b, other) =
        end(to, nodes).map_err(|(m, near)| (m, near.and_then(|n| mended(from, &n))))?;
    if let Some(port) = joined(from, to, nodes) {
        return Ok(port);
    }
    if let Some(number) = card.or(other) {
        let (name, at) = if card.is_some() { (from, a) } else { (to, b) };
        let switch = nodes.name(nodes.switches_of_cards(at)[number]);
        let message =
            format!("contains {}, but the cable of {name} leads to {switch}", shorten(text));
        let near = if card.is_some() { mended(from, &switch) } else { mended(&switch, to) };
        return Err((message, near));
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

/// Returns the numbers of the sending and the receiving node of a port such as `leaf0->h3`, or a
/// message that no cable joins them. A port of a card, such as `h3:eth1->leaf0`, is refused if
/// other cards of the host have cables to the same switch.
pub fn port(text: &str, nodes: &Nodes) -> Result<(u32, u32), Wrong> {
    let Port { from, to, card } = port_or_card(text, nodes)?;
    let (host, switch) = (from.min(to), from.max(to));
    let at_switch = || nodes.switches_of_cards(host).iter().filter(|&&at| at == switch).count();
    if card.is_none() || at_switch() == 1 {
        return Ok((from, to));
    }
    let all = format!("{}->{}", nodes.name(from), nodes.name(to));
    let message = format!(
        "contains {}, a single card, but only all cards of {} at {} together can be chosen: write \
         \"{all}\"",
        shorten(text),
        nodes.name(host),
        nodes.name(switch)
    );
    Err((message, None))
}
