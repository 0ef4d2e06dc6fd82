//! `[[tcp.override]]`: TCP settings that replace `[tcp]` at the endpoints of some workloads, hosts
//! or sides of connections.

use super::files::Context;
use super::hosts;
use super::nodes::Nodes;
use super::workload::spec::WorkloadSpec;
use crate::endpoint_settings::{MOST_OVERRIDES, TcpOverride};
use crate::stream_transports::Transport;
use eastwest_settings::problem::{Problem, nearest};
use eastwest_settings::quantity::Name;
use eastwest_settings::reader::{Section, key};
use eastwest_transport::tcp;
use eastwest_types::{HostId, Side};
use std::collections::BTreeSet;
use toml::{Table, Value};

/// Keys of a table `[[tcp.override]]` that are not settings of TCP: name, inheritance and filters.
const OWN: [&str; 6] = ["name", "inherit", "workloads", "hosts", "peers", "side"];

/// Settings of a table `[[tcp.override]]` in which workloads still have names. The table is read
/// before the workloads; [`place`] then replaces the names by numbers.
pub struct Unplaced {
    /// Filter: names of the workloads to which the settings apply; `None`: all workloads.
    workloads: Option<Vec<String>>,
    settings: TcpOverride,
}

/// Adds to every table `[[tcp.override]]` the keys of `[tcp]` that the table does not contain,
/// unless the table has `inherit = false`. Returns the paths of the added keys.
pub fn inherit(document: &mut Table) -> BTreeSet<String> {
    let mut added = BTreeSet::new();
    let Some(Value::Table(tcp)) = document.get_mut("tcp") else { return added };
    let Some(Value::Array(mut overrides)) = tcp.remove("override") else { return added };
    for (i, item) in overrides.iter_mut().enumerate() {
        let Value::Table(table) = item else { continue };
        if table.get("inherit") == Some(&Value::Boolean(false)) {
            continue;
        }
        // `[tcp.parameters]` is valid only for the congestion control of its own table
        let other_control = table.contains_key("congestion");
        for (name, value) in tcp.iter() {
            let fits = name != "parameters" || !other_control;
            if fits && !table.contains_key(name) && !OWN.contains(&name.as_str()) {
                table.insert(name.clone(), value.clone());
                added.insert(format!("tcp.override.{i}.{name}"));
            }
        }
    }
    tcp.insert("override".to_owned(), Value::Array(overrides));
    added
}

/// Removes the problems of keys that a table `[[tcp.override]]` has inherited from `[tcp]`, if the
/// key of `[tcp]` has a problem too: each problem is then reported once.
pub fn drop_repeated(problems: &mut Vec<Problem>, inherited: &BTreeSet<String>) {
    let original = |path: &str| {
        let name = path.splitn(4, '.').nth(3)?;
        inherited.contains(path).then(|| format!("tcp.{name}"))
    };
    let own: BTreeSet<String> = problems.iter().map(|p| p.path.clone()).collect();
    problems.retain(|p| original(&p.path).is_none_or(|path| !own.contains(&path)));
}

/// Reads the tables `[[tcp.override]]` from `s`, the section `[tcp]`: TCP settings of some
/// workloads, hosts, peers or sides.
pub fn read(
    s: &mut Section,
    mtu: Option<u32>,
    nodes: Option<&Nodes>,
    context: &Context,
    notes: &mut Vec<String>,
) -> Vec<Unplaced> {
    let doc = "Other TCP settings for some endpoints: its filters, and any key of [tcp]. A key \
               that is not given here has its value from [tcp]; if [tcp] does not give it either, \
               the profile decides. For each endpoint the first override applies whose filters \
               all match.";
    let mut names: Vec<String> = Vec::new();
    s.tables("override", doc, MOST_OVERRIDES, |o, _| {
        let name = o.find(
            key::<Name>(
                "name",
                "Unique name of the override, for --set and sweeps: tcp.override.NAME.congestion.",
            )
            .optional("the override has only a number, counted from 0"),
        );
        if let Some(Name(name)) = name {
            o.demand(!names.contains(&name), &["name"], || {
                "is already the name of another override".to_owned()
            });
            names.push(name);
        }
        // The function `inherit` has already added the inherited keys. The text with all defaults
        // lists every key, so its reader must not add keys again.
        let inherits = o.get::<bool>(
            key("inherit", "Whether keys that are not given here have their value from [tcp].")
                .default("true"),
        );
        if inherits {
            o.resolve_as("inherit", "false".to_owned());
        }
        let workloads = o.find(
            key::<Vec<Name>>("workloads", "Filter: endpoints of connections of these workloads.")
                .optional("of all"),
        );
        let doc = "Filter: endpoints on these hosts.";
        let on = hosts::read_list(o, "hosts", doc, Some("on all"), nodes);
        let doc = "Filter: endpoints whose peer is on these hosts.";
        let peers = hosts::read_list(o, "peers", doc, Some("on all"), nodes);
        let side = o.choice(
            "side",
            "Filter: side of the connection.",
            Some("both"),
            &[
                ("both", None, "both ends"),
                ("client", Some(Side::Client), "the endpoint that opens the connection"),
                (
                    "server",
                    Some(Side::Server),
                    "the endpoint that accepts the connection; in Hadoop's shuffle it sends the \
                     map output",
                ),
            ],
        );
        let filtered = ["workloads", "hosts", "peers", "side"].iter().any(|name| o.has(name));
        o.demand(filtered, &["workloads", "hosts", "peers", "side"], || {
            "is required unless `hosts`, `peers` or `side` is given: an override needs at least \
             one of these filters"
                .to_owned()
        });
        let mut own_notes = Vec::new();
        let config = tcp::read_config::read(o, mtu, &context.mechanisms.congestion, &mut own_notes);
        // a note about a key of [tcp] is not repeated for an override that only inherits the key
        own_notes.retain(|note| !notes.contains(&note.replacen(o.path(), "tcp", 1)));
        notes.append(&mut own_notes);
        let set = |hosts: Option<Vec<HostId>>| hosts.map(|all| all.into_iter().collect());
        let settings =
            TcpOverride { workloads: None, hosts: set(on), peers: set(peers), side, config };
        let names = workloads.map(|all| all.into_iter().map(|n| n.0).collect());
        Unplaced { workloads: names, settings }
    })
}

/// Replaces the names of workloads in overrides by their numbers. `running` are the names of the
/// workloads that run, in order, `all` the names of all workloads of the file; `s` is the top level
/// of the file.
pub fn place(
    s: &mut Section,
    unplaced: Vec<Unplaced>,
    running: &[WorkloadSpec],
    all: &BTreeSet<String>,
    notes: &mut Vec<String>,
) -> Vec<TcpOverride> {
    let mut placed = Vec::new();
    for (i, Unplaced { workloads, settings }) in unplaced.into_iter().enumerate() {
        for name in workloads.iter().flatten().filter(|name| !all.contains(*name)) {
            let path = format!("tcp.override.{i}.workloads");
            let near = nearest(name, all.iter().map(String::as_str)).map(str::to_owned);
            s.state().problem(&path, None, format!("there is no workload named {name}"), near);
        }
        let numbers = workloads.map(|names| {
            let named = (0..).zip(running).filter(|(_, w)| names.contains(&w.name));
            let named: Vec<(u16, &WorkloadSpec)> = named.collect();
            if !named.is_empty() && named.iter().all(|(_, w)| w.transport != Transport::Tcp) {
                notes.push(format!(
                    "tcp.override.{i} has no effect: none of its workloads has TCP connections"
                ));
            }
            named.into_iter().map(|(number, _)| number).collect()
        });
        placed.push(TcpOverride { workloads: numbers, ..settings });
    }
    placed
}
