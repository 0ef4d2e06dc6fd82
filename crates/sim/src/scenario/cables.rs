//! Functions that read the settings of cables, and that list the cables of a topology.

use eastwest_network::energy::LinkRates;
use eastwest_network::topology::{CableConfig, Topology};
use eastwest_settings::reader::{Section, key};
use eastwest_types::{Rate, Span};

const LEAST_RATE: &str = "1 kbit/s";
const MOST_RATE: &str = "10 Tbit/s";

/// Reads rate and delay of the cables of hosts.
pub fn read_host_cable(s: &mut Section) -> CableConfig {
    let rate = s.get(
        key("host_rate", "Rate of a host's cable in each direction.").range(LEAST_RATE, MOST_RATE),
    );
    let delay = s.get(
        key(
            "host_delay",
            "Delay of a host's cable: propagation delay plus the processing delay of switch and \
             host (as in S1).",
        )
        .default("5 us")
        .range("0 s", "1 s"),
    );
    cable(rate, delay)
}

/// Reads rate and delay of the cables between switches.
pub fn read_uplink_cable(s: &mut Section) -> CableConfig {
    let rate = s.get(
        key("uplink_rate", "Rate of a cable between switches in each direction.")
            .range(LEAST_RATE, MOST_RATE),
    );
    let delay = s.get(
        key(
            "uplink_delay",
            "Delay of a cable between switches: propagation delay plus the processing delay of a \
             switch (as in S1).",
        )
        .default("5 us")
        .range("0 s", "1 s"),
    );
    cable(rate, delay)
}

/// Returns the settings of a cable with this rate and delay in each direction.
pub fn cable(rate: Rate, delay: Span) -> CableConfig {
    CableConfig { rate, delay }
}

/// Returns the rate of the slowest cable of any host; 1 Gbit/s without a topology.
pub fn host_rate(topology: Option<&Topology>) -> Rate {
    match topology {
        Some(
            Topology::LeafSpine { host, .. }
            | Topology::Star { host, .. }
            | Topology::FatTree { host, .. },
        ) => host.rate,
        Some(Topology::Graph { hosts, cables, .. }) => {
            let of_hosts = cables.iter().filter(|(a, b, _)| (*a.min(b) as usize) < hosts.len());
            of_hosts.map(|(_, _, c)| c.rate).min().unwrap_or(Rate::gbit(1))
        }
        None => Rate::gbit(1),
    }
}

/// Returns the sum of the rates of the cards of each host, indexed by host; empty without a
/// topology.
pub fn rates_of_hosts(topology: Option<&Topology>) -> Vec<Rate> {
    let equal = |hosts: u32, rate: Rate, cards: u32| {
        vec![Rate(rate.0.saturating_mul(u64::from(cards))); hosts as usize]
    };
    match topology {
        Some(Topology::LeafSpine { leaves, hosts_per_leaf, cards, host, .. }) => {
            equal(cards.hosts(*leaves, *hosts_per_leaf), host.rate, cards.number)
        }
        Some(Topology::Star { hosts, cards, host }) => equal(*hosts, host.rate, *cards),
        Some(Topology::FatTree { k, hosts_per_edge, host, .. }) => {
            equal(k * (k / 2) * hosts_per_edge, host.rate, 1)
        }
        Some(Topology::Graph { hosts, cables, .. }) => {
            let mut rates = vec![Rate(0); hosts.len()];
            for (a, b, cable) in cables {
                if let Some(rate) = rates.get_mut(*a.min(b) as usize) {
                    rate.0 = rate.0.saturating_add(cable.rate.0);
                }
            }
            rates
        }
        None => Vec::new(),
    }
}

/// Returns the distinct rates of the cables of a topology in ascending order; empty without a
/// topology.
pub fn rates(topology: Option<&Topology>) -> Vec<Rate> {
    let mut rates = match topology {
        Some(Topology::LeafSpine { host, uplink, .. } | Topology::FatTree { host, uplink, .. }) => {
            vec![host.rate, uplink.rate]
        }
        Some(Topology::Star { host, .. }) => vec![host.rate],
        Some(Topology::Graph { cables, .. }) => cables.iter().map(|(_, _, c)| c.rate).collect(),
        None => Vec::new(),
    };
    rates.sort_unstable();
    rates.dedup();
    rates
}

/// Returns the distinct cable types (rate and delay) of a topology; empty without a topology.
pub fn cables(topology: Option<&Topology>) -> Vec<CableConfig> {
    let mut cables = match topology {
        Some(Topology::LeafSpine { host, uplink, .. } | Topology::FatTree { host, uplink, .. }) => {
            vec![*host, *uplink]
        }
        Some(Topology::Star { host, .. }) => vec![*host],
        Some(Topology::Graph { cables, .. }) => cables.iter().map(|(_, _, c)| *c).collect(),
        None => Vec::new(),
    };
    cables.sort_unstable_by_key(|c| (c.rate, c.delay));
    cables.dedup();
    cables
}

/// Returns the rates of the cables of hosts, and of the cables between switches. For a graph, the
/// result can contain a rate several times.
pub fn link_rates(topology: Option<&Topology>) -> LinkRates {
    let (host, fabric) = match topology {
        Some(Topology::LeafSpine { host, uplink, .. } | Topology::FatTree { host, uplink, .. }) => {
            (vec![host.rate], vec![uplink.rate])
        }
        Some(Topology::Star { host, .. }) => (vec![host.rate], Vec::new()),
        Some(Topology::Graph { hosts, cables, .. }) => {
            let of_host = |(a, b, _): &&(u32, u32, CableConfig)| (*a.min(b) as usize) < hosts.len();
            let (host, fabric): (Vec<_>, Vec<_>) = cables.iter().partition(of_host);
            let rates = |of: Vec<&(u32, u32, CableConfig)>| of.iter().map(|c| c.2.rate).collect();
            (rates(host), rates(fabric))
        }
        None => (Vec::new(), Vec::new()),
    };
    LinkRates { host, fabric }
}
