//! `[[fault]]`: faults of cables, of single directions of cables and of nodes, and their times.
//!
//! Defaults: routing reacts to a failure after 65 ms, the convergence time measured on PortLand
//! after one failure (Niranjan Mysore et al. 2009, section 5; a fabric routed by OSPF takes longer,
//! one with local detours less). A flapping link is up half of the time. All other settings must be
//! given or are off: no default fits all fabrics.

use super::fabric::Fabric;
use super::nodes::Nodes;
use super::places::{self, Places, Port};
use eastwest_network::fault::{Degraded, Effect, Fault, Flapping, LossModel};
use eastwest_network::topology::Graph;
use eastwest_network::topology::Topology;
use eastwest_settings::narrow::whole_part;
use eastwest_settings::quantity::{Fraction, Ratio};
use eastwest_settings::reader::{Section, key};
use eastwest_types::{Rate, Span, Time};
use std::collections::BTreeMap;

/// Maximum number of tables `[[fault]]` of a scenario.
const MOST: usize = 10_000;
/// Maximum number of links of all faults together; a link counts once for each fault.
const MOST_LINKS: usize = 4_000_000;

#[derive(Clone, Copy)]
enum Kind {
    Loss,
    Bursts,
    Degrade,
    Delay,
    Down,
}

/// Nodes and cables of the fabric, which translate the places in faults (nodes, cards, cables) into
/// numbers of links. The cable with number `c` has the links `2 * c` and `2 * c + 1`.
struct Ground<'a> {
    nodes: &'a Nodes,
    graph: Graph,
    /// Numbers of the cables between each pair of nodes, the smaller node number first.
    between: BTreeMap<(u32, u32), Vec<u32>>,
    /// Numbers of the cables of each host, indexed by host and card; `None` if every host has one
    /// card.
    cards: Option<Vec<Vec<u32>>>,
}

impl<'a> Ground<'a> {
    fn new(topology: &Topology, nodes: &'a Nodes) -> Ground<'a> {
        let graph = Graph::build(topology);
        let mut between: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
        for (cable, number) in graph.cables.iter().zip(0..) {
            between.entry(ends_of(cable.a, cable.b)).or_default().push(number);
        }
        let cards = graph.cables_of_cards();
        Ground { nodes, graph, between, cards }
    }

    /// Returns the numbers of the links that `text` names: all links of a node `h0`, of a range of
    /// nodes `h0..h7`, of a card `h0:eth1`, of a range of cards `h0:eth1..h7:eth1` or of a cable
    /// `a--b`, or one direction of a cable, `a->b`, where an end can be a card, `h0:eth1->b`. `#1`
    /// after the names of two nodes chooses the second of parallel cables.
    fn links(&self, text: &str) -> Result<Vec<u32>, places::Wrong> {
        let (place, chosen) = match text.split_once('#') {
            None => (text, None),
            Some((place, number)) => match number.trim().parse::<usize>() {
                Ok(number) => (place.trim(), Some(number)),
                Err(_) => {
                    return Err((
                        format!("has {number:?} after #, not the number of a parallel cable"),
                        None,
                    ));
                }
            },
        };
        if places::ends(place).is_some() {
            let port = places::port_or_card(place, self.nodes)?;
            let mut links = self.choose(place, chosen, &port)?;
            links.retain(|&link| self.ends(link).0 == port.from);
            return Ok(links);
        }
        if let Some(port) = self.cable(place) {
            return self.choose(place, chosen, &port);
        }
        if place.contains("--") && self.nodes.number(place).is_none() {
            // the check of a single direction, `a->b`, reports which of the two names is wrong
            let one_way = place.replacen("--", "->", 1);
            return match places::port_or_card(&one_way, self.nodes) {
                Err((message, near)) => {
                    let both_ways = |text: String| text.replacen("->", "--", 1);
                    Err((both_ways(message), near.map(both_ways)))
                }
                Ok(_) => Err((
                    "is not a cable; write a cable as \"leaf0--h3\" and one of its directions as \
                     \"leaf0->h3\""
                        .to_owned(),
                    None,
                )),
            };
        }
        if let Some(links) = self.of_cards(place)? {
            return Ok(links);
        }
        let (first, last) = match place.split_once("..") {
            None => (places::node(place, self.nodes)?, places::node(place, self.nodes)?),
            Some((first, last)) => {
                (places::node(first.trim(), self.nodes)?, places::node(last.trim(), self.nodes)?)
            }
        };
        if first > last {
            return Err((format!("contains the range {place}, which ends before it starts"), None));
        }
        let named = |node: u32| (first..=last).contains(&node);
        let of_nodes =
            self.graph.cables.iter().zip(0u32..).filter(|(c, _)| named(c.a) || named(c.b));
        Ok(of_nodes.flat_map(|(_, i)| [2 * i, 2 * i + 1]).collect())
    }

    /// Returns the links of a card `h0:eth1`, or of a range of cards `h0:eth1..h7:eth2`: on every
    /// host of the range, the cards from the first number to the last. `None` if `place` names no
    /// card.
    fn of_cards(&self, place: &str) -> Result<Option<Vec<u32>>, places::Wrong> {
        let (first, last) = place.split_once("..").unwrap_or((place, place));
        let card = |text: &str| places::card(text.trim(), self.nodes);
        let (Some(first), Some(last)) = (card(first)?, card(last)?) else {
            return Ok(None);
        };
        if first.0 > last.0 || first.1 > last.1 {
            return Err((format!("contains the range {place}, which ends before it starts"), None));
        }
        let cards = self.cards.as_deref().unwrap_or_default();
        let hosts = cards.get(first.0 as usize..=last.0 as usize).unwrap_or_default();
        let chosen = |cables: &Vec<u32>| {
            let cables = cables.iter().skip(first.1).take(last.1 - first.1 + 1);
            cables.flat_map(|i| [2 * i, 2 * i + 1]).collect::<Vec<u32>>()
        };
        Ok(Some(hosts.iter().flat_map(chosen).collect()))
    }

    /// Returns the ends of a cable `a--b` of two nodes, or of a node and a card; `None` if `text`
    /// does not name a cable. Names of nodes may contain dashes, so every `--` is tried as the
    /// separator.
    fn cable(&self, text: &str) -> Option<Port> {
        text.match_indices("--").find_map(|(at, dashes)| {
            places::joined(text[..at].trim(), text[at + dashes.len()..].trim(), self.nodes)
        })
    }

    /// Returns the numbers of the links between the ends of `port`, in both directions: of all
    /// their cables, or only of the cable with the index `chosen`. `place` is the text for
    /// messages.
    fn choose(
        &self,
        place: &str,
        chosen: Option<usize>,
        port: &Port,
    ) -> Result<Vec<u32>, places::Wrong> {
        let ends = ends_of(port.from, port.to);
        let mut all = self.between.get(&ends).map_or(&[][..], Vec::as_slice);
        let of_card = port.card.zip(self.cards.as_ref());
        if let Some((card, cards)) = of_card {
            all = &cards[ends.0 as usize][card..=card];
        }
        let cables = match chosen {
            None => all,
            Some(number) => all.get(number..=number).ok_or_else(|| {
                let last = all.len().saturating_sub(1);
                (
                    format!(
                        "has no cable number {number}: the cables of {place} have the numbers 0 \
                          to {last}"
                    ),
                    None,
                )
            })?,
        };
        Ok(cables.iter().flat_map(|&i| [2 * i, 2 * i + 1]).collect())
    }

    /// Returns the source and destination node of a link.
    fn ends(&self, link: u32) -> (u32, u32) {
        let cable = &self.graph.cables[link as usize / 2];
        if link % 2 == 0 { (cable.a, cable.b) } else { (cable.b, cable.a) }
    }

    fn name(&self, link: u32) -> String {
        let (from, to) = self.ends(link);
        format!("{}->{}", self.nodes.name(from), self.nodes.name(to))
    }
}

fn ends_of(a: u32, b: u32) -> (u32, u32) {
    (a.min(b), a.max(b))
}

/// Reads all tables `[[fault]]`. Reports a problem if two faults set the same property of a link at
/// the same time.
pub fn read(s: &mut Section, fabric: &Fabric) -> Vec<Fault> {
    let nodes = fabric.nodes.as_ref().filter(|_| s.has("fault"));
    let ground = nodes.map(|nodes| Ground::new(&fabric.config.topology, nodes));
    let mut left = MOST_LINKS;
    let faults = s.tables(
        "fault",
        "A fault of links during a time: loss, lower rate, longer delay or failure.",
        MOST,
        |f, number| {
            let fault = read_fault(f, ground.as_ref())?;
            let fits = fault.links.len() <= left;
            f.demand(fits, &["on"], || {
                format!("has too many links: all faults together may have at most {MOST_LINKS}")
            });
            left -= fault.links.len().min(left);
            Some((number, fault))
        },
    );
    if let Some(ground) = &ground {
        let read: Vec<&(usize, Fault)> = faults.iter().flatten().collect();
        for (number, message) in contradictions(&read, ground) {
            s.state().problem(&format!("fault.{number}"), None, message, None);
        }
    }
    faults.into_iter().flatten().map(|(_, fault)| fault).collect()
}

/// Begin and end of a fault (simulated time), and its index in the scenario.
type Stay = (Time, Time, usize);

/// Returns a message for each fault, by index, that begins while another fault sets the same
/// property (loss, rate or delay) of the same link. Failures may overlap: a link is up when no
/// failure is in effect.
fn contradictions(faults: &[&(usize, Fault)], ground: &Ground) -> BTreeMap<usize, String> {
    let mut times: BTreeMap<(u8, u32), Vec<Stay>> = BTreeMap::new();
    for (number, fault) in faults.iter().copied() {
        let kind = match fault.effect {
            Effect::Loss(_) => 0,
            Effect::Degrade(_) => 1,
            Effect::Delay { .. } => 2,
            Effect::Down { .. } => continue,
        };
        for &link in &fault.links {
            times.entry((kind, link)).or_default().push((fault.from, fault.until, *number));
        }
    }
    let mut found = BTreeMap::new();
    for ((_, link), mut times) in times {
        times.sort_unstable();
        // the fault with the latest end among the faults that have begun
        let mut longest = times[0];
        for &(from, until, second) in &times[1..] {
            let (_, end, first) = longest;
            if until > end {
                longest = (from, until, second);
            }
            if from < end {
                found.entry(second).or_insert_with(|| {
                    format!(
                        "overlaps on {} at {from} with fault {first} (counted from 0), which sets \
                         the same property",
                        ground.name(link)
                    )
                });
            }
        }
    }
    found
}

fn read_fault(f: &mut Section, ground: Option<&Ground>) -> Option<Fault> {
    let on: Places = f.get(key(
        "on",
        "Where the fault occurs, one place or a list: a cable \"leaf0--spine1\", one direction of \
         it \"leaf0->spine1\", all cables of a node \"spine1\" \
         or of a range of nodes \"h0..h7\", a network card \"h0:eth1\" of a host with several, one \
         direction of its cable \"h0:eth1->leaf0\", or card \
         1 of a range of hosts \"h0:eth1..h7:eth1\". \"leaf0--spine1#1\" is the \
         second of parallel cables; without # it is all of them.",
    ));
    let from = f.get(
        key(
            "from",
            "Time at which the fault begins. A fault at 0 s is present before the first \
                     packet.",
        )
        .default("0 s")
        .range("0 s", "480 h"),
    );
    let until: Option<Span> = f.find(
        key("until", "Time at which the fault ends.")
            .optional("the fault lasts to the end of the simulation")
            .range("0 s", "480 h"),
    );
    f.demand(until.is_none_or(|end| end > from), &["until", "from"], || {
        format!("must be after `from`, which is {from}")
    });
    let effect = read_effect(f)?;
    let ground = ground?;
    let links = read_links(f, &on, ground)?;
    if let Effect::Degrade(Degraded::Rate(rate)) = effect {
        let slow =
            links.iter().find(|&&link| ground.graph.cables[link as usize / 2].config.rate < rate);
        f.demand(slow.is_none(), &["rate", "share"], || {
            let link = slow.copied().unwrap_or(0);
            let own = ground.graph.cables[link as usize / 2].config.rate;
            format!("must not be above the rate of {}, which is {own}", ground.name(link))
        });
    }
    let end = until.map_or(Time::NEVER, |until| Time::ZERO + until);
    f.all_good().then(|| Fault { links, effect, from: Time::ZERO + from, until: end })
}

fn read_effect(f: &mut Section) -> Option<Effect> {
    let kind = f.kind(
        "What happens.",
        None,
        &[
            ("loss", Kind::Loss, "packets are lost at random, independently of each other"),
            (
                "bursty-loss",
                Kind::Bursts,
                "packets are lost in bursts: a Markov chain with a good and a bad state, which \
                 can change with every packet (Gilbert 1960, Elliott 1963)",
            ),
            ("degrade", Kind::Degrade, "the link has a lower rate"),
            ("delay", Kind::Delay, "packets are delayed longer and stay in order"),
            (
                "down",
                Kind::Down,
                "no packet arrives; after a time switches detect the failure and avoid the cable",
            ),
        ],
    )?;
    Some(match kind {
        Kind::Loss => Effect::Loss(LossModel::independent(read_share(f))),
        Kind::Bursts => Effect::Loss(read_bursts(f)),
        Kind::Degrade => Effect::Degrade(read_degraded(f)),
        Kind::Delay => read_delay(f),
        Kind::Down => read_down(f),
    })
}

/// Returns the numbers of the links of a fault, each once, in ascending order.
fn read_links(f: &mut Section, on: &Places, ground: &Ground) -> Option<Vec<u32>> {
    let mut links = Vec::new();
    for text in &on.0 {
        match ground.links(text) {
            Ok(of_place) => links.extend(of_place),
            Err((message, near)) => {
                f.wrong_hint("on", message, near);
                return None;
            }
        }
    }
    f.demand(!links.is_empty(), &["on"], || "must name at least one link".to_owned());
    links.sort_unstable();
    links.dedup();
    Some(links)
}

fn read_share(f: &mut Section) -> f64 {
    f.get(key::<Fraction>("share", "Probability that a packet is lost.").range("0", "1")).0
}

fn read_bursts(f: &mut Section) -> LossModel {
    const KEYS: [&str; 6] =
        ["share", "mean_burst", "good_to_bad", "bad_to_good", "loss_in_good", "loss_in_bad"];
    const CHAIN: &str = "good_to_bad and bad_to_good are given";
    let share = f.find(
        key::<Fraction>("share", "Mean share of packets that are lost.")
            .optional(CHAIN)
            .range("0", "0.99"),
    );
    let mean_burst = f.find(
        key::<Ratio>("mean_burst", "Mean number of packets lost in a row.")
            .optional(CHAIN)
            .range("1", "1000000"),
    );
    const BURST: &str = "share and mean_burst are given";
    let mut probability = |name, doc, absent| {
        f.find(key::<Fraction>(name, doc).optional(absent).range("0", "1")).map(|p| p.0)
    };
    let good_to_bad = probability(
        "good_to_bad",
        "Probability that a packet in the good state is followed by one in the bad state.",
        BURST,
    );
    let bad_to_good = probability(
        "bad_to_good",
        "Probability that a packet in the bad state is followed by one in the good state.",
        BURST,
    );
    let loss_in_good = probability(
        "loss_in_good",
        "Probability that a packet is lost in the good state.",
        "0, Gilbert's model",
    );
    let loss_in_bad = probability(
        "loss_in_bad",
        "Probability that a packet is lost in the bad state.",
        "1, Gilbert's model",
    );
    let chain = [good_to_bad, bad_to_good, loss_in_good, loss_in_bad].iter().any(Option::is_some);
    let bursts = share.is_some() || mean_burst.is_some();
    let good = f.good(&KEYS);
    match (share, mean_burst, good_to_bad, bad_to_good) {
        _ if !good || f.describing() => {}
        (Some(Fraction(share)), Some(Ratio(mean)), ..) if !chain => {
            f.demand(share / (1.0 - share) <= mean, &["mean_burst", "share"], || {
                format!(
                    "is too short for share = {share}: it must be at least {:.3} packets",
                    share / (1.0 - share)
                )
            });
            return LossModel::bursty(share, mean);
        }
        (.., Some(good_to_bad), Some(bad_to_good)) if !bursts => {
            return LossModel {
                good_to_bad,
                bad_to_good,
                loss_in_good: loss_in_good.unwrap_or(0.0),
                loss_in_bad: loss_in_bad.unwrap_or(1.0),
            };
        }
        _ => f.wrong(
            "kind",
            "needs either share and mean_burst, or good_to_bad and bad_to_good (loss_in_good and \
             loss_in_bad are optional)",
        ),
    }
    LossModel::independent(0.0)
}

fn read_degraded(f: &mut Section) -> Degraded {
    let rate: Option<Rate> = f.find(
        key("rate", "Rate of the link during the fault.")
            .optional("share is given")
            .range("1 kbit/s", "10 Tbit/s"),
    );
    let share = f.find(
        key::<Fraction>(
            "share",
            "Rate of the link during the fault, as a share of its normal \
                                  rate.",
        )
        .optional("rate is given")
        .range("0.000001", "1"),
    );
    match (rate, share) {
        (Some(rate), None) => return Degraded::Rate(rate),
        (None, Some(share)) => return Degraded::Share(share.0),
        _ if !f.good(&["rate", "share"]) || f.describing() => {}
        _ => f.wrong("kind", "needs either rate or share, and not both keys"),
    }
    Degraded::Share(1.0)
}

fn read_delay(f: &mut Section) -> Effect {
    let extra = f.get(
        key("extra", "Time that is added to the propagation delay.")
            .default("0 s")
            .range("0 s", "10 s"),
    );
    let jitter = f.get(
        key(
            "jitter",
            "Upper end of a further uniform random delay of each packet. Packets stay \
                       in order.",
        )
        .default("0 s")
        .range("0 s", "10 s"),
    );
    let some = extra > Span::ZERO || jitter > Span::ZERO;
    f.demand(some, &["extra", "jitter"], || {
        "is 0 and jitter is 0 too, so that the fault has no effect: one of them must be above 0"
            .to_owned()
    });
    Effect::Delay { extra, jitter }
}

fn read_down(f: &mut Section) -> Effect {
    let reroute = f.get(
        key(
            "reroute",
            "Time after the failure during which switches still send into the failed cable; then \
             routes avoid it. The same time passes after the repair until routes use it again \
             (PortLand, 2009: 65 ms).",
        )
        .default("65 ms")
        .range("0 s", "1 h"),
    );
    let period: Option<Span> = f.find(
        key("period", "Flapping: time from one failure to the next.")
            .optional("the link fails once")
            // The minimum limits the run time: routes are computed again for each failure.
            .range("1 ms", "480 h"),
    );
    let up_share = f.find(
        key::<Fraction>(
            "up_share",
            "Flapping: share of each period during which the link is up; it is down first.",
        )
        .optional("half")
        .range("0", "1"),
    );
    f.demand(up_share.is_none() || period.is_some(), &["up_share", "period"], || {
        "has an effect only together with `period`".to_owned()
    });
    let up = up_share.map_or(0.5, |share| share.0);
    let flapping = period.map(|period| {
        let down = Span(whole_part(period.0 as f64 * (1.0 - up)));
        f.demand(down > Span::ZERO && down < period, &["up_share", "period"], || {
            "must be above 0 and below 1: the link is up and down in each period".to_owned()
        });
        Flapping { period, down }
    });
    Effect::Down { reroute, flapping }
}
