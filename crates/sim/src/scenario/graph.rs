//! Fabrics of any shape (`kind = 'graph'`), from a file that lists hosts, switches and cables.

use super::files::{Context, Files};
use eastwest_network::cards::MOST_CARDS;
use eastwest_network::topology::{CableConfig, Topology};
use eastwest_settings::narrow::at_most;
use eastwest_settings::problem::{Problem, nearest};
use eastwest_settings::quantity::{FileName, Name, Quantity};
use eastwest_settings::reader::{Section, State, key, read_table};
use eastwest_settings::syntax::parse_within;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum size of a topology file in bytes.
const MOST_BYTES: u64 = 16 << 20;
/// Maximum number of hosts and switches of a topology file; the maximum number of cables is four
/// times as large.
const MOST_NODES: usize = 200_000;

/// A cable of a graph: the numbers of the nodes at its ends, rate and delay.
type Cable = (u32, u32, CableConfig);

/// Reads the key `file` of a fabric of kind `graph`, and the topology in the file that it names.
/// Returns `None` if there is a problem, which is reported.
pub fn read(s: &mut Section, context: &Context, files: &mut Files) -> Option<Topology> {
    let file: FileName =
        s.get(key("file", "Topology file; its path is relative to the directory of the scenario."));
    if s.describing() {
        read_table(s.state(), "Topology file: ", None, read_graph);
        return None;
    }
    if !s.good(&["file"]) {
        return None;
    }
    let attached = match files.load(context, &file.0, MOST_BYTES) {
        Ok(attached) => attached,
        Err(message) => {
            s.wrong("file", message);
            return None;
        }
    };
    s.resolve_as("file", FileName(attached.name).show());
    let Ok(text) = std::str::from_utf8(&attached.bytes) else {
        s.wrong("file", "is not text in UTF-8");
        return None;
    };
    let prefix = format!("{}: ", file.0);
    let document = match parse_within(text, at_most(MOST_BYTES)) {
        Ok(document) => document,
        Err(problems) => {
            let named =
                problems.into_iter().map(|p| Problem { path: format!("{prefix}{}", p.path), ..p });
            s.state().problems.extend(named);
            s.wrong("file", "is not a topology file: its text is not valid TOML");
            return None;
        }
    };
    let lines =
        document.lines.into_iter().map(|(path, line)| (format!("{prefix}{path}"), line)).collect();
    let mut state = State { lines, schema: s.state().schema, ..State::default() };
    let (topology, _) = read_table(&mut state, &prefix, Some(&document.table), read_graph);
    let good = state.problems.is_empty();
    s.state().problems.append(&mut state.problems);
    if !good {
        s.spoil("file");
    }
    topology.filter(|_| good)
}

/// Names of the nodes of a topology file.
struct NodeNames<'a> {
    /// Numbers of the nodes by name, hosts first.
    numbers: BTreeMap<&'a str, u32>,
    hosts: usize,
    /// Names in lists that contain a wrong name; the nodes of these lists have no numbers.
    unnumbered: BTreeSet<String>,
    /// Whether a list of names is missing or is no list, so that any name may be correct.
    unknown: bool,
}

impl NodeNames<'_> {
    /// Adds the names of the list `name` if the list has a problem, which is reported.
    fn add_spoilt(&mut self, s: &Section, name: &str) {
        if s.good(&[name]) {
            return;
        }
        match s.own(name).and_then(toml::Value::as_array) {
            Some(list) => {
                let names = list.iter().filter_map(toml::Value::as_str);
                self.unnumbered.extend(names.map(str::to_owned));
            }
            None => self.unknown = true,
        }
    }
}

fn read_graph(s: &mut Section) -> Option<Topology> {
    let hosts: Vec<Name> = s.get(key(
        "hosts",
        "Names of the hosts. Each cable of a host leads to a switch; a host with several cables has a network \
         card for each, numbered in the order of the cables.",
    ));
    let switches: Vec<Name> = s.get(key("switches", "Names of the switches."));
    s.demand(hosts.len() + switches.len() <= MOST_NODES, &["hosts", "switches"], || {
        format!("there are more than {MOST_NODES} hosts and switches, the maximum")
    });
    let mut names = NodeNames {
        numbers: BTreeMap::new(),
        hosts: hosts.len(),
        unnumbered: BTreeSet::new(),
        unknown: false,
    };
    for list in ["hosts", "switches"] {
        names.add_spoilt(s, list);
    }
    let (mut twice, mut degrees) = (None, vec![0u32; hosts.len()]);
    for (name, number) in hosts.iter().chain(&switches).zip(0..) {
        if names.numbers.insert(&name.0, number).is_some() {
            twice = Some(name.0.clone());
        }
    }
    s.demand(twice.is_none(), &["hosts", "switches"], || {
        format!("there are two nodes named {}", twice.as_deref().unwrap_or(""))
    });
    s.demand(!hosts.is_empty(), &["hosts"], || "at least one host is required".to_owned());
    let cables = s.tables(
        "cable",
        "A cable between two nodes, with both directions.",
        4 * MOST_NODES,
        |c, _| read_cable(c, &names),
    );
    if s.describing() || !s.good(&["hosts", "switches"]) {
        return None;
    }
    let cables: Vec<Cable> = cables.into_iter().collect::<Option<_>>()?;
    for &(a, b, _) in &cables {
        for end in [a, b] {
            if let Some(degree) = degrees.get_mut(end as usize) {
                *degree += 1;
            }
        }
    }
    let wrong: Vec<&str> = hosts
        .iter()
        .zip(&degrees)
        .filter(|(_, degree)| !(1..=MOST_CARDS).contains(*degree))
        .map(|(host, _)| host.0.as_str())
        .collect();
    s.demand(wrong.is_empty(), &["hosts"], || {
        let some = wrong.iter().take(8).copied().collect::<Vec<_>>().join(", ");
        let more = if wrong.len() > 8 { ", …" } else { "" };
        let number = wrong.len();
        format!(
            "a host must have 1 to {MOST_CARDS} cables; hosts with fewer or more ({number}): \
             {some}{more}"
        )
    });
    let nodes = hosts.len() + switches.len();
    let reached = reachable(nodes, &cables);
    let all: Vec<&str> = hosts.iter().chain(&switches).map(|n| n.0.as_str()).collect();
    let lost: Vec<&str> = all.iter().zip(&reached).filter(|(_, r)| !**r).map(|(n, _)| *n).collect();
    s.demand(lost.is_empty(), &["hosts"], || {
        let some = lost.iter().take(8).copied().collect::<Vec<_>>().join(", ");
        format!("the fabric is not connected: no path leads from {} to {some}", all[0])
    });
    // a host does not forward packets of other hosts
    if degrees.iter().any(|degree| *degree > 1) && s.good(&["hosts"]) {
        let all_reach = reach_each_other(hosts.len(), nodes, &cables);
        s.demand(all_reach, &["hosts"], || {
            "no network of switches reaches all hosts: two hosts have a path only through another host, \
             which does not forward packets"
                .to_owned()
        });
    }
    let plain = |names: Vec<Name>| names.into_iter().map(|n| n.0).collect();
    s.good(&["hosts"]).then(|| Topology::Graph {
        hosts: plain(hosts.clone()),
        switches: plain(switches.clone()),
        cables,
        regular: None,
    })
}

fn read_cable(c: &mut Section, names: &NodeNames) -> Option<Cable> {
    let a: Name = c.get(key("a", "Node at one end."));
    let b: Name = c.get(key("b", "Node at the other end."));
    let rate = c.get(key("rate", "Rate in each direction.").range("1 kbit/s", "10 Tbit/s"));
    let delay = c.get(
        key(
            "delay",
            "Delay of the cable: propagation delay plus the processing delay of a switch \
                      (as in S1).",
        )
        .default("5 us")
        .range("0 s", "1 s"),
    );
    let mut end = |key: &'static str, name: &Name| {
        let number = names.numbers.get(name.0.as_str()).copied();
        let listed = number.is_some() || names.unknown || names.unnumbered.contains(&name.0);
        if !listed && c.good(&[key]) {
            let near = nearest(&name.0, names.numbers.keys().copied()).map(str::to_owned);
            c.wrong_hint(key, "is not in the list of hosts or the list of switches", near);
        }
        number
    };
    let (a, b) = (end("a", &a), end("b", &b));
    let (a, b) = (a?, b?);
    c.demand(a != b, &["b", "a"], || "a cable must join two different nodes".to_owned());
    c.demand(a.max(b) as usize >= names.hosts, &["b", "a"], || {
        "a host's cable must lead to a switch".to_owned()
    });
    c.good(&["a", "b", "rate", "delay"]).then_some((a, b, CableConfig { rate, delay }))
}

/// Returns, for each node, whether a path of cables joins the node to node 0.
fn reachable(nodes: usize, cables: &[Cable]) -> Vec<bool> {
    let mut neighbours: Vec<Vec<u32>> = vec![Vec::new(); nodes];
    for &(a, b, _) in cables {
        neighbours[a as usize].push(b);
        neighbours[b as usize].push(a);
    }
    let mut reached = vec![false; nodes];
    let mut waiting = vec![0usize];
    reached[0] = true;
    while let Some(node) = waiting.pop() {
        for &next in &neighbours[node] {
            if !std::mem::replace(&mut reached[next as usize], true) {
                waiting.push(next as usize);
            }
        }
    }
    reached
}

/// Whether one connected network of switches has a cable to every host. Paths through hosts do not
/// count, because hosts do not forward packets.
fn reach_each_other(hosts: usize, nodes: usize, cables: &[Cable]) -> bool {
    let mut reached: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
    for (host, cards) in networks_of_cards(hosts, nodes, cables).into_iter().enumerate() {
        for network in cards {
            reached.entry(network).or_default().insert(host);
        }
    }
    reached.values().any(|of_network| of_network.len() == hosts)
}

/// Returns the number of the network of switches to which each card leads, by host and card. No
/// path joins cards with different numbers, because hosts do not forward packets.
pub fn networks_of_cards(hosts: usize, nodes: usize, cables: &[Cable]) -> Vec<Vec<u32>> {
    let (of_hosts, between): (Vec<Cable>, Vec<Cable>) =
        cables.iter().partition(|(a, b, _)| (*a.min(b) as usize) < hosts);
    let network = networks(nodes, &between);
    let mut cards = vec![Vec::new(); hosts];
    for (a, b, _) in of_hosts {
        cards[a.min(b) as usize].push(network[a.max(b) as usize]);
    }
    cards
}

/// Returns the connected component of each node, as the lowest node number of the component.
fn networks(nodes: usize, cables: &[Cable]) -> Vec<u32> {
    let mut neighbours: Vec<Vec<u32>> = vec![Vec::new(); nodes];
    for &(a, b, _) in cables {
        neighbours[a as usize].push(b);
        neighbours[b as usize].push(a);
    }
    let mut network = vec![u32::MAX; nodes];
    for first in 0..nodes {
        let mut waiting = vec![first];
        while let Some(node) = waiting.pop() {
            if network[node] == u32::MAX {
                network[node] = at_most(first);
                waiting.extend(neighbours[node].iter().map(|&next| next as usize));
            }
        }
    }
    network
}
