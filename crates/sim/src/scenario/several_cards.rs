//! Hosts with several cards: the keys `cards` and `homing` of a regular fabric, and checks for
//! settings that are not possible with several cards.

use super::checked::Scenario;
use super::fidelity::Fidelity;
use super::graph;
use super::workload::spec::{WorkloadKind, WorkloadSpec};
use crate::stream_transports::Transport;
use eastwest_network::cards::{BondMode, MOST_CARDS};
use eastwest_network::config::FabricConfig;
use eastwest_network::footprint::Sizes;
use eastwest_network::queue::QueueConfig;
use eastwest_network::routing::RoutingConfig;
use eastwest_network::topology::{Homing, HostCards, Topology};
use eastwest_settings::reader::{Section, key};
use eastwest_types::Rate;
use eastwest_workload::mpi::local_ranks;

/// Reads the number of cards of each host.
pub fn read_number(s: &mut Section) -> u32 {
    let cards = s.find(
        key(
            "cards",
            "Number of network cards (ports) of each host, each with a cable, a queue and the rate `host_rate`. \
             `bond_mode` decides their use.",
        )
        .optional("1")
        .range("1", "16"),
    );
    debug_assert_eq!(MOST_CARDS, 16, "the range above");
    cards.unwrap_or(1)
}

/// Reads the number of cards of each host, and the leaves to which the cards lead. `leaves` is the
/// number of leaves of the fabric.
pub fn read(s: &mut Section, leaves: u32) -> HostCards {
    let number = read_number(s);
    let homing = s.choice(
        "homing",
        "With several cards: leaves to which the cards of a host lead.",
        Some("single-homed"),
        &[
            ("single-homed", Homing::Single, "all to one leaf"),
            (
                "multi-homed",
                Homing::Multi,
                "card i to leaf i of a group of as many leaves as a host has cards; hosts_per_leaf hosts share a \
                 group (two cards: dual top-of-rack; with bond_mode = \"off\": rails)",
            ),
        ],
    );
    if number == 1 {
        s.demand(!s.has("homing"), &["homing"], || {
            "has an effect only if `cards` is above 1, but `cards` is 1".to_owned()
        });
        s.resolve_without("homing");
        return HostCards::ONE;
    }
    let cards = HostCards { number, homing };
    s.demand(leaves % cards.switches() == 0, &["leaves", "cards", "homing"], || {
        format!("must be a multiple of {number}, the number of cards of each host, which lead to leaves of one group")
    });
    cards
}

/// Returns the settings of a scenario that are not possible with several cards, as pairs of the key
/// and the reason.
fn refused(c: &Scenario) -> Vec<(&'static str, &'static str)> {
    let f = &c.fabric;
    let mode = f.cards.bond_mode;
    let queues = [&f.switch_queue, &f.host_queue];
    let classes = f.scheduler.classes();
    let of_classes = classes.iter().filter_map(|class| class.queue.as_ref());
    let own_queue =
        queues.into_iter().chain(of_classes).any(|q| matches!(q, QueueConfig::Custom(_)));
    let frames = |w: &WorkloadSpec| match &w.kind {
        WorkloadKind::Ethernet(_) => true,
        WorkloadKind::Mpi(c) => c.frame.is_some(),
        _ => false,
    };
    let in_turn = mode == BondMode::RoundRobin;
    let queue_pairs =
        c.workloads.iter().any(|w| !matches!(w.transport, Transport::Tcp | Transport::Ethernet));
    [
        (f.dcb.qcn.is_some(), "fabric.qcn", "limits the rate of all packets of a host at one card"),
        (
            matches!(f.routing, RoutingConfig::Explicit(_)),
            "fabric.routing",
            "names the switches of a path, but not the card of the sender and the receiver",
        ),
        (
            matches!(f.routing, RoutingConfig::Adaptive(_)),
            "fabric.routing",
            "sends congestion notifications back to the sender, which must have one card",
        ),
        (
            mode == BondMode::Off && own_queue,
            "fabric",
            "has a queue of your own, which expects addresses of hosts, while bond_mode = \"off\" gives each card an \
             address",
        ),
        (
            mode == BondMode::Off && matches!(f.routing, RoutingConfig::Custom(_)),
            "fabric.routing",
            "is a routing of your own, which expects addresses of hosts, while bond_mode = \"off\" gives each card an \
             address",
        ),
        (
            c.workloads.iter().any(frames),
            "workload",
            "sends Ethernet frames, which leave a host by one card only",
        ),
        (
            in_turn && queue_pairs,
            "workload",
            "uses RoCEv2, whose queue pairs are bound to one card, while bond_mode = \"balance-rr\" sends packets over \
             all cards (RoCE LAG of real cards excludes this mode)",
        ),
        (
            in_turn && c.fidelity == Fidelity::Flow,
            "fidelity",
            "simulates flows with one path each, while bond_mode = \"balance-rr\" spreads the packets of a flow",
        ),
    ]
    .into_iter()
    .filter(|r| r.0)
    .map(|r| (r.1, r.2))
    .collect()
}

/// Returns the name of the first host whose cables have different rates; `None` if there is no such
/// host.
fn unequal(topology: &Topology) -> Option<&str> {
    let Topology::Graph { hosts, cables, .. } = topology else { return None };
    let mut rates: Vec<Option<Rate>> = vec![None; hosts.len()];
    let mut unequal = cables.iter().filter_map(|(a, b, cable)| {
        let host = *a.min(b) as usize;
        let first = *rates.get_mut(host)?.get_or_insert(cable.rate);
        (first != cable.rate).then_some(host)
    });
    unequal.next().map(|host| hosts[host].as_str())
}

/// Returns a note that names two cards without a path between them, if connections of the workloads
/// can be bound to these cards (`bond_mode = "off"`); `None` if there are no such cards.
pub fn note_rails(fabric: &FabricConfig, workloads: &[WorkloadSpec]) -> Option<String> {
    let Topology::Graph { hosts, switches, cables, .. } = &fabric.topology else { return None };
    if fabric.cards.bond_mode != BondMode::Off {
        return None;
    }
    let cards = graph::networks_of_cards(hosts.len(), hosts.len() + switches.len(), cables);
    let most = cards.iter().map(Vec::len).max()?;
    // Connections use cards with equal numbers, modulo the number of cards of each host.
    let drawn = || (0..most).find_map(|number| apart(&cards, (number, 1), (number, 1)));
    // Connections of MPI use the cards of both ranks, whose numbers can differ.
    let of_ranks = |ranks: usize| (0..ranks).find_map(|n| apart(&cards, (n, 1), (0, ranks)));
    let pair = workloads.iter().find_map(|w| match &w.kind {
        WorkloadKind::Mpi(c) => {
            let most_local = local_ranks(&c.hosts).into_iter().max()? as usize + 1;
            of_ranks(most_local.min(most))
        }
        _ => drawn(),
    })?;
    let name = |(host, card): (usize, usize)| match cards[host].len() {
        1 => hosts[host].clone(),
        _ => format!("{}:eth{card}", hosts[host]),
    };
    Some(format!(
        "fabric.bond_mode = \"off\": no path leads from {} to {}, so that packets of connections \
         that are bound to these cards are lost, until the connection is given up",
        name(pair.0),
        name(pair.1)
    ))
}

/// Returns two cards without a path between them, as (host, card): a card of the first host, with a
/// number of the range `own`, and a card of another host, with a number of the range `others`. A
/// range is (first number, count); numbers count modulo the number of cards of a host. `cards` has
/// the network of each card. `None` if a path joins all these cards.
fn apart(
    cards: &[Vec<u32>],
    own: (usize, usize),
    others: (usize, usize),
) -> Option<((usize, usize), (usize, usize))> {
    let of_range = |host: usize, (from, count): (usize, usize)| {
        let number = cards[host].len().max(1);
        (from..from + count).map(move |card| (host, card % number))
    };
    let network = |(host, card): (usize, usize)| cards[host].get(card);
    of_range(0, own).find_map(|here| {
        let mut there = (1..cards.len()).flat_map(|host| of_range(host, others));
        there.find(|&there| network(there) != network(here)).map(|there| (here, there))
    })
}

/// Reports every setting that is not possible with several cards as a problem.
pub fn check(s: &mut Section, scenario: &Scenario) {
    if s.describing() || Sizes::of(&scenario.fabric.topology).with_several_cards == 0 {
        return;
    }
    let fabric = &scenario.fabric;
    if fabric.cards.bond_mode != BondMode::Off
        && let Some(host) = unequal(&fabric.topology)
    {
        s.object(&format!(
            "fabric.bond_mode: the cables of {host} have different rates, but a bond has cards of one rate (IEEE \
             802.1AX); with \"off\", each card has an address"
        ));
    }
    for (path, what) in refused(scenario) {
        s.object(&format!(
            "{path}: {what}; this is not possible where hosts have several network cards"
        ));
    }
}
