//! The key `routing` and related keys of `[fabric]`: choice among equal-cost paths, weights of
//! ports, and explicit routes, in the scenario or in a file.
//!
//! A file of routes is CSV with the columns `from`, `to` and `via`, named in the first line; `via`
//! lists the names of the switches on the path in order, separated by spaces.

use super::files::{Context, Files};
use super::nodes::{MAX_HOPS, Nodes};
use eastwest_network::routing::{
    self, EqualPaths, ExplicitConfig, ExplicitRoute, MOST_ROUTES, RoutingConfig,
};
use eastwest_settings::problem::shorten;
use eastwest_settings::quantity::{FileName, Name, Quantity};
use eastwest_settings::reader::{Section, key};
use std::collections::BTreeSet;
use std::io::Read;

/// Maximum size of a file of routes, in bytes.
const MOST_FILE_BYTES: u64 = 64 << 20;
/// Maximum number of ports with a weight.
const MOST_WEIGHTS: usize = 100_000;

/// Reads the settings of routing: choice among equal-cost paths, weights of ports, and explicit
/// routes.
pub fn read(
    s: &mut Section,
    nodes: Option<&Nodes>,
    context: &Context,
    files: &mut Files,
) -> (RoutingConfig, EqualPaths) {
    let routing = routing::read(s, &context.mechanisms.routing);
    let same_hash: Option<bool> = s.find(
        key(
            "same_hash",
            "Whether all switches use the same hash of a flow, so that a flow makes the same \
             choice at every tier (hash polarisation).",
        )
        .optional("false: each switch adds its own seed to the hash"),
    );
    let weights = s.tables(
        "weight",
        "Weight of a port among ports of equal cost (WCMP, Zhou et al. 2014).",
        MOST_WEIGHTS,
        |w, _| read_weight(w, nodes),
    );
    let listed =
        s.tables("route", "Path of all packets from one host to another.", MOST_ROUTES, |r, _| {
            read_route(r, nodes)
        });
    let file = read_file(s, nodes, context, files);
    if s.describing() {
        return (routing, EqualPaths::default());
    }
    let weights: Vec<_> = weights.into_iter().flatten().collect();
    if !weights.is_empty() && !routing.weighs() {
        s.wrong(
            "weight",
            "weights have no effect with this fabric.routing, which ignores the weights of \
             ports: remove them, or choose another routing, such as \"ecmp\"",
        );
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = weights.iter().find(|w| !seen.insert((w.0, w.1))) {
        let name = |n| nodes.map_or_else(String::new, |nodes| nodes.name(n));
        let (from, to) = (name(twice.0), name(twice.1));
        s.wrong("weight", format!("there are two weights from {from} to {to}: give only one"));
    }
    let equal_paths = EqualPaths { same_hash: same_hash.unwrap_or(false), weights };
    let listed = listed.into_iter().flatten().collect();
    (with_routes(s, routing, listed, file.unwrap_or_default(), nodes), equal_paths)
}

/// Returns the settings `routing` with the explicit routes that are `listed` in the scenario, and
/// those of its file of routes (`of_file`). Reports as a problem if another routing ignores these
/// routes, or if two routes have the same sender and receiver.
fn with_routes(
    s: &mut Section,
    routing: RoutingConfig,
    listed: Vec<ExplicitRoute>,
    of_file: Vec<ExplicitRoute>,
    nodes: Option<&Nodes>,
) -> RoutingConfig {
    if !matches!(routing, RoutingConfig::Explicit(_)) {
        for name in ["route", "routes"] {
            if s.has(name) {
                s.wrong(name, "routes have an effect only with routing = \"explicit\"");
            }
        }
        return routing;
    }
    let in_scenario = listed.len();
    let mut routes = listed;
    routes.extend(of_file);
    let mut seen = BTreeSet::new();
    if let Some(second) = routes.iter().position(|r| !seen.insert((r.from, r.to))) {
        let twice = &routes[second];
        let name = |n| nodes.map_or_else(String::new, |nodes| nodes.name(n));
        let message = format!(
            "there are two routes from {} to {}: give only one",
            name(twice.from),
            name(twice.to)
        );
        s.wrong(if second < in_scenario { "route" } else { "routes" }, message);
    }
    if routes.len() > MOST_ROUTES {
        let both = if in_scenario > 0 { " with those of `route`" } else { "" };
        s.wrong(
            "routes",
            format!("there are {} routes{both}; at most {MOST_ROUTES} are allowed", routes.len()),
        );
    }
    RoutingConfig::Explicit(ExplicitConfig(routes))
}

fn read_weight(w: &mut Section, nodes: Option<&Nodes>) -> Option<(u32, u32, u32)> {
    let from: Name = w.get(key("from", "Switch that owns the port."));
    let to: Name = w.get(key(
        "to",
        "Switch at the other end; the weight applies to all parallel \
                                    cables.",
    ));
    let weight = w.get(
        key(
            "weight",
            "Weight of the port relative to other ports; ports without an entry have \
                       weight 1.",
        )
        .range("1", "64"),
    );
    let nodes = nodes?;
    if w.describing() || !w.good(&["from", "to", "weight"]) {
        return None;
    }
    let mut switch = |key: &'static str, name: &Name| {
        let number = nodes.number(&name.0).filter(|&n| n >= nodes.hosts());
        if number.is_none() {
            w.wrong_hint(key, "is not a switch of this fabric", nodes.nearest(&name.0));
        }
        number
    };
    let (from_number, to_number) = (switch("from", &from), switch("to", &to));
    let (a, b) = (from_number?, to_number?);
    w.demand(nodes.adjacent(a, b), &["to", "from"], || {
        format!("there is no cable between {} and {}", from.0, to.0)
    });
    Some((a, b, weight))
}

/// Returns a message about the first problem of a path, given as node numbers: two consecutive
/// nodes without a cable, or a node that the path visits twice (with the nodes of the loop). `None`
/// if the path has no problem.
fn problem_of_path(nodes: &Nodes, stops: &[u32]) -> Option<String> {
    let names = |path: &[u32]| path.iter().map(|&n| nodes.name(n)).collect::<Vec<_>>().join(" -> ");
    if let Some(gap) = stops.windows(2).find(|pair| !nodes.adjacent(pair[0], pair[1])) {
        let (a, b) = (nodes.name(gap[0]), nodes.name(gap[1]));
        return Some(format!("there is no cable between {a} and {b}"));
    }
    stops.iter().enumerate().find_map(|(second, node)| {
        let first = stops[..second].iter().position(|n| n == node)?;
        Some(format!("must not visit a node twice: {}", names(&stops[first..=second])))
    })
}

/// Returns the explicit route from host `from` to host `to` through the nodes `via`, or a message
/// about its problem.
fn checked(nodes: &Nodes, from: u32, to: u32, via: Vec<u32>) -> Result<ExplicitRoute, String> {
    if from == to {
        return Err("goes from a host to itself, but must join two different hosts".to_owned());
    }
    if via.len() > MAX_HOPS {
        return Err(format!("has more than {MAX_HOPS} switches, the maximum for a route"));
    }
    let stops: Vec<u32> = [from].into_iter().chain(via.iter().copied()).chain([to]).collect();
    match problem_of_path(nodes, &stops) {
        Some(problem) => Err(problem),
        None => Ok(ExplicitRoute { from, to, via }),
    }
}

fn read_route(r: &mut Section, nodes: Option<&Nodes>) -> Option<ExplicitRoute> {
    let from: Name = r.get(key("from", "Sending host."));
    let to: Name = r.get(key("to", "Receiving host."));
    let via: Vec<Name> = r.get(key("via", "Switches on the path, in order."));
    let nodes = nodes?;
    if r.describing() {
        return None;
    }
    let mut host = |name: &'static str, given: &Name| match nodes.number(&given.0) {
        Some(n) if n < nodes.hosts() => Some(n),
        _ if !r.good(&[name]) => None,
        _ => {
            r.wrong_hint(name, format!("is not a host; hosts are {}", nodes.host_names()), None);
            None
        }
    };
    let (from, to) = (host("from", &from), host("to", &to));
    let (from, to) = (from?, to?);
    if !r.good(&["via"]) {
        return None;
    }
    let mut path = Vec::new();
    for name in via.iter().take(MAX_HOPS + 1) {
        match nodes.number(&name.0) {
            Some(n) if n >= nodes.hosts() => path.push(n),
            _ => {
                r.wrong("via", format!("{} is not a switch of this fabric", name.0));
                return None;
            }
        }
    }
    match checked(nodes, from, to, path) {
        Ok(route) => Some(route),
        Err(message) => {
            r.wrong("via", message);
            None
        }
    }
}

fn read_file(
    s: &mut Section,
    nodes: Option<&Nodes>,
    context: &Context,
    files: &mut Files,
) -> Option<Vec<ExplicitRoute>> {
    const DOC: &str = "CSV file of routes in addition to [[fabric.route]], with the columns from, \
                       to and via (switches in order, separated by spaces).";
    let file: FileName = s.find(key("routes", DOC).optional("none"))?;
    let attached = match files.load(context, &file.0, MOST_FILE_BYTES) {
        Ok(attached) => attached,
        Err(message) => {
            s.wrong("routes", message);
            return None;
        }
    };
    s.resolve_as("routes", FileName(attached.name).show());
    match parse(&attached.bytes[..], nodes?) {
        Ok(routes) => Some(routes),
        Err(problems) => {
            for message in problems {
                s.wrong("routes", format!("{}{message}", shorten(&file.0)));
            }
            None
        }
    }
}

/// Maximum number of problems that are reported for a file of routes.
const MOST_PROBLEMS: usize = 20;

/// Returns the explicit routes in a file, or its problems, each as `:line: message`.
fn parse(text: impl Read, nodes: &Nodes) -> Result<Vec<ExplicitRoute>, Vec<String>> {
    let one = |message: String| vec![message];
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text);
    let unreadable = |e: csv::Error| one(format!(": cannot be read: {}", shorten(&e.to_string())));
    let header = reader.byte_headers().map_err(unreadable)?;
    let column = |name: &str| {
        header.iter().position(|h| h == name.as_bytes()).ok_or_else(|| {
            one(format!(":1: has no column {name}; the first line must name from, to and via"))
        })
    };
    let columns = [column("from")?, column("to")?, column("via")?];
    let (mut routes, mut problems) = (Vec::new(), Vec::new());
    let mut row = csv::ByteRecord::new();
    while reader.read_byte_record(&mut row).map_err(unreadable)? {
        let line = row.position().map_or(0, csv::Position::line);
        if routes.len() == MOST_ROUTES {
            return Err(one(format!(":{line}: more than {MOST_ROUTES} routes, the maximum")));
        }
        let cells = columns.map(|c| std::str::from_utf8(&row[c]).unwrap_or("�"));
        match route_of(cells, nodes) {
            Ok(route) => routes.push(route),
            Err(message) => problems.push(format!(":{line}: {message}")),
        }
        if problems.len() == MOST_PROBLEMS {
            break;
        }
    }
    if problems.is_empty() { Ok(routes) } else { Err(problems) }
}

fn route_of([from, to, via]: [&str; 3], nodes: &Nodes) -> Result<ExplicitRoute, String> {
    let host = |name: &str| {
        nodes.number(name).filter(|&n| n < nodes.hosts()).ok_or_else(|| {
            let hosts = nodes.host_names();
            format!("there is no host \"{}\"; hosts are {hosts}", shorten(name))
        })
    };
    let switch = |name: &str| {
        nodes
            .number(name)
            .filter(|&n| n >= nodes.hosts())
            .ok_or_else(|| format!("\"{}\" is not a switch of this fabric", shorten(name)))
    };
    let names = via.split_ascii_whitespace().take(MAX_HOPS + 1);
    let path = names.map(switch).collect::<Result<Vec<u32>, String>>()?;
    checked(nodes, host(from)?, host(to)?, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::rows::damaged;
    use eastwest_engine::random::Stream;
    use eastwest_network::topology::{CableConfig, HostCards, Topology};
    use eastwest_types::{Rate, Span};

    const GOOD: &str = "to,from,via\nh2,h0,leaf0 spine1 leaf1\n h0 ,h3, leaf1  spine0 leaf0 \n";

    fn nodes() -> Nodes {
        let cable = CableConfig { rate: Rate::gbit(1), delay: Span::from_us(5) };
        let (host, uplink) = (cable, cable);
        Nodes::new(&Topology::LeafSpine {
            leaves: 2,
            hosts_per_leaf: 2,
            spines: 2,
            cables_per_spine: 1,
            cards: HostCards::ONE,
            host,
            uplink,
        })
    }

    #[test]
    fn routes_are_read_from_a_file() {
        let route = |from, to, via: [u32; 3]| ExplicitRoute { from, to, via: via.to_vec() };
        let routes = parse(GOOD.as_bytes(), &nodes()).expect("two routes");
        assert_eq!(routes, [route(0, 2, [4, 7, 5]), route(3, 0, [5, 6, 4])]);
    }

    #[test]
    fn gaps_and_loops_are_shown_with_their_line_all_at_once() {
        let text = "from,to,via\nh0,h2,leaf0 leaf1\n\
                    h0,h2,leaf0 spine0 leaf1 spine1 leaf0 spine1 leaf1\nh0,h9,leaf0\n\
                    h0,h1,leaf0 spone0\nh0,h0,leaf0\nh0,h2,\n";
        let problems = parse(text.as_bytes(), &nodes()).expect_err("six mistakes");
        let expected = [
            ":2: there is no cable between leaf0 and leaf1",
            ":3: must not visit a node twice: leaf0 -> spine0 -> leaf1 -> spine1 -> leaf0",
            ":4: there is no host \"h9\"; hosts are h0 to h3",
            ":5: \"spone0\" is not a switch of this fabric",
            ":6: goes from a host to itself, but must join two different hosts",
            ":7: there is no cable between h0 and h2",
        ];
        assert_eq!(problems, expected);
        let lacking = parse("from,via\n".as_bytes(), &nodes()).expect_err("no column");
        assert!(lacking[0].starts_with(":1: has no column to"), "{lacking:?}");
    }

    #[test]
    fn damaged_files_give_routes_or_reasons() {
        let mut random = Stream::new(1, "fuzz/routes");
        let nodes = nodes();
        let (mut good, mut bad) = (0, 0);
        for _ in 0..20_000 {
            let text = damaged(GOOD.as_bytes(), b"\",\n\0-9e 0123", &mut random);
            match parse(&text[..], &nodes) {
                Ok(routes) => {
                    good += 1;
                    for r in routes {
                        assert!(checked(&nodes, r.from, r.to, r.via).is_ok());
                    }
                }
                Err(problems) => {
                    bad += 1;
                    assert!(!problems.is_empty() && problems.len() <= MOST_PROBLEMS);
                    assert!(problems.iter().all(|p| p.starts_with(':') && !p.contains('\0')));
                }
            }
        }
        assert!(good > 500 && bad > 1000, "{good} good, {bad} bad");
    }
}
