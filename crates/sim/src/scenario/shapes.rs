//! Fabrics that are built as graphs from a few numbers: trees, tori, DCell, dragonflies, a
//! dumbbell, and two groups of hosts.

use super::cables::{read_host_cable, read_uplink_cable};
use eastwest_network::topology::dragonfly::Dragonfly;
use eastwest_network::topology::xgft::Xgft;
use eastwest_network::topology::{CableConfig, Topology};
use eastwest_network::topology::{dcell, dumbbell, torus, two_groups};
use eastwest_settings::reader::{Section, key};
use eastwest_types::Span;

/// Maximum number of nodes of a fabric that is built from a few numbers.
const MOST_NODES: u64 = 200_000;
/// Maximum number of cables of a fabric that is built from a few numbers.
const MOST_CABLES: u64 = 800_000;
/// Maximum number of levels of a tree, and of dimensions of a torus.
const MOST_LEVELS: usize = 16;
/// Maximum value of the numbers in the settings `children`, `parents` and `sizes`.
const LARGEST: u32 = 100_000;

/// Kinds of fabrics that are built from a few numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A k-ary n-tree of switches.
    KAryNTree,
    /// An extended generalised fat tree (XGFT).
    Xgft,
    /// A torus of switches: a grid whose lines are closed to rings in every dimension.
    Torus,
    /// A DCell, in which hosts forward packets too.
    DCell,
    /// A dragonfly: groups of switches, and cables between all pairs of groups.
    Dragonfly,
    /// A dumbbell: two switches joined by one cable, with hosts on both.
    Dumbbell,
    /// Two groups of hosts with several paths between them.
    TwoGroups,
}

/// Reads the settings of a fabric of the kind `shape`, and builds its topology. Returns `None` if
/// there is a problem, which is reported.
pub fn read(s: &mut Section, shape: Shape) -> Option<Topology> {
    match shape {
        Shape::KAryNTree => read_k_ary_n_tree(s),
        Shape::Xgft => read_xgft(s),
        Shape::Torus => read_torus(s),
        Shape::DCell => read_dcell(s),
        Shape::Dragonfly => read_dragonfly(s),
        Shape::Dumbbell => read_dumbbell(s),
        Shape::TwoGroups => read_two_groups(s),
    }
}

/// Returns the topology that `build` makes; `None` in describing mode, or if a setting has a
/// problem. A size `(nodes, cables)` above the maximum is reported as a problem of the settings
/// `names`.
fn lay_out(
    s: &mut Section,
    names: &[&'static str],
    (nodes, cables): (u64, u64),
    build: impl FnOnce() -> Topology,
) -> Option<Topology> {
    if s.describing() {
        return None;
    }
    s.demand(nodes <= MOST_NODES, names, || {
        format!("leads to a fabric of {nodes} nodes; at most {MOST_NODES} are allowed")
    });
    s.demand(cables <= MOST_CABLES, names, || {
        format!("leads to a fabric of {cables} cables; at most {MOST_CABLES} are allowed")
    });
    (s.good(names) && s.good(&["host_rate", "host_delay", "uplink_rate", "uplink_delay"]))
        .then(build)
}

fn read_k_ary_n_tree(s: &mut Section) -> Option<Topology> {
    let k = s.get(
        key("k", "Number of ports of each switch downwards, and also upwards.").range("2", "1000"),
    );
    let levels = s.get(key("levels", "Number of levels of switches (n).").range("1", "16"));
    let (host, uplink) = (read_host_cable(s), read_uplink_cable(s));
    let tree = Xgft::k_ary_n_tree(k, levels);
    lay_out(s, &["k", "levels"], (tree.all_nodes(), tree.cables()), || tree.build(host, uplink))
}

/// Reports a problem unless the list of the setting `name` has 1 to 16 numbers, each from `least`
/// to 100,000.
fn demand_numbers(s: &mut Section, name: &'static str, list: &[u32], least: u32) {
    s.demand((1..=MOST_LEVELS).contains(&list.len()), &[name], || {
        format!("must be a list of 1 to {MOST_LEVELS} numbers")
    });
    s.demand(list.iter().all(|n| (least..=LARGEST).contains(n)), &[name], || {
        format!("must contain only numbers from {least} to {LARGEST}")
    });
}

fn read_xgft(s: &mut Section) -> Option<Topology> {
    let children: Vec<u32> = s.get(key(
        "children",
        "Number of children of each node, for every level from the hosts \
                               upwards (m).",
    ));
    let parents: Vec<u32> = s.get(key(
        "parents",
        "Number of parents of each node, for every level from the hosts upwards (w). The first is \
         1, because a host has one cable.",
    ));
    let (host, uplink) = (read_host_cable(s), read_uplink_cable(s));
    demand_numbers(s, "children", &children, 1);
    demand_numbers(s, "parents", &parents, 1);
    s.demand(children.len() == parents.len(), &["parents", "children"], || {
        format!(
            "has {} levels, but `children` has {}: both need one number for each level",
            parents.len(),
            children.len()
        )
    });
    s.demand(parents.first() == Some(&1), &["parents", "children"], || {
        "must begin with 1, because a host has one cable".to_owned()
    });
    if !s.good(&["children", "parents"]) || s.describing() {
        return None;
    }
    let tree = Xgft { children, parents };
    let size = (tree.all_nodes(), tree.cables());
    s.demand(tree.nodes(0) > 1, &["children"], || {
        "leads to a single host; at least two are needed".to_owned()
    });
    lay_out(s, &["children", "parents"], size, || tree.build(host, uplink))
}

fn read_torus(s: &mut Section) -> Option<Topology> {
    let sizes: Vec<u32> =
        s.get(key("sizes", "Number of switches along every dimension: [4, 4] or [4, 4, 4]."));
    let per_switch = s.get(
        key("hosts_per_switch", "Number of hosts at each switch.").default("1").range("1", "10000"),
    );
    let (host, uplink) = (read_host_cable(s), read_uplink_cable(s));
    demand_numbers(s, "sizes", &sizes, 2);
    if !s.good(&["sizes", "hosts_per_switch"]) {
        return None;
    }
    let switches = torus::switches(&sizes);
    let nodes = switches.saturating_add(switches.saturating_mul(u64::from(per_switch)));
    let size = (nodes, torus::cables(&sizes, per_switch));
    lay_out(s, &["sizes", "hosts_per_switch"], size, || {
        torus::build(&sizes, per_switch, host, uplink)
    })
}

fn read_dcell(s: &mut Section) -> Option<Topology> {
    let n = s.get(key("n", "Number of servers on each mini-switch.").range("2", "1000"));
    let levels = s.get(
        key(
            "levels",
            "Number of the highest level (k). Level 0 is a mini-switch with its servers.",
        )
        .default("1")
        .range("0", "4"),
    );
    let uplink = read_uplink_cable(s);
    let inside = s.get(
        key(
            "host_rate",
            "Rate between the applications of a server and its forwarding, in each \
                          direction.",
        )
        .range("1 kbit/s", "10 Tbit/s"),
    );
    let delay = s.get(
        key::<Span>("host_delay", "Delay between the applications of a server and its forwarding.")
            .default("0 s")
            .range("0 s", "1 s"),
    );
    let host = CableConfig { rate: inside, delay };
    let (servers, minis) = dcell::servers(n, levels);
    let nodes = servers.saturating_mul(2).saturating_add(minis);
    lay_out(s, &["n", "levels"], (nodes, dcell::cables(n, levels)), || {
        dcell::build(n, levels, host, uplink)
    })
}

fn read_dragonfly(s: &mut Section) -> Option<Topology> {
    let switches = s.get(
        key("switches_per_group", "Number of switches of a group (a); each pair has a cable.")
            .range("1", "1000"),
    );
    let hosts =
        s.get(key("hosts_per_switch", "Number of hosts of a switch (p).").range("1", "1000"));
    let global = s.get(
        key("global_cables", "Number of cables of a switch to other groups (h).")
            .range("1", "1000"),
    );
    let one = Dragonfly { groups: 2, switches, hosts, global };
    let most = u32::try_from(one.most_groups()).unwrap_or(u32::MAX);
    let groups = s.get(
        key("groups", "Number of groups (g), at most a h + 1.")
            .computed("a h + 1", most)
            .range("2", "1000001"),
    );
    let (host, local) = (read_host_cable(s), read_uplink_cable(s));
    let delay = s.get(
        key("global_delay", "Delay of a cable between groups.")
            .computed("uplink_delay", local.delay)
            .range("0 s", "1 s"),
    );
    s.demand(groups <= most, &["groups", "switches_per_group", "global_cables"], || {
        format!("is more than a h + 1 = {most}: not all pairs of groups would have a cable")
    });
    let names = ["groups", "switches_per_group", "hosts_per_switch", "global_cables"];
    if !s.good(&names) {
        return None;
    }
    let of = Dragonfly { groups, ..one };
    lay_out(s, &names, (of.nodes(), of.cables()), || {
        of.build(host, local, CableConfig { rate: local.rate, delay })
    })
}

fn read_dumbbell(s: &mut Section) -> Option<Topology> {
    let most = "100000";
    let left = s.get(
        key(
            "hosts_left",
            "Number of hosts at the left switch; these hosts have the first \
                                 numbers.",
        )
        .range("1", most),
    );
    let right = s.get(key("hosts_right", "Number of hosts at the right switch.").range("1", most));
    let (host, trunk) = (read_host_cable(s), read_uplink_cable(s));
    let hosts: u64 = u64::from(left) + u64::from(right);
    lay_out(s, &["hosts_left", "hosts_right"], (hosts + 2, hosts + 1), || {
        dumbbell::build(left, right, host, trunk)
    })
}

fn read_two_groups(s: &mut Section) -> Option<Topology> {
    let hosts = s.get(
        key("hosts_per_group", "Number of hosts in each of the two groups (Gusat et al. 2009: 3).")
            .default("3")
            .range("1", "10000"),
    );
    let paths = s.get(
        key("paths", "Number of disjoint paths between the groups (Gusat et al. 2009: 3).")
            .default("3")
            .range("1", "256"),
    );
    let (host, uplink) = (read_host_cable(s), read_uplink_cable(s));
    let nodes = 2 * u64::from(hosts) + two_groups::switches(paths);
    let size = (nodes, two_groups::cables(hosts, paths));
    lay_out(s, &["hosts_per_group", "paths"], size, || {
        two_groups::build(hosts, paths, host, uplink)
    })
}
