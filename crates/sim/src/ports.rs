//! What ports have counted, as tables and in the summary: who was lost, why, and who was marked.

use crate::results::{label, names};
use crate::world::World;
use eastwest_engine::interrupt;
use eastwest_measure::table::{Column, Table};
use eastwest_network::account::{Counts, Group};
use eastwest_network::fabric::Fabric;
use eastwest_network::link::Link;
use eastwest_network::link::meter::{ClassMeter, Meter};
use eastwest_network::losses::Cause;
use eastwest_types::{PacketKind, Span, Time};
use serde_json::{Map, Value, json};

/// Columns of losses by cause, in the order of the causes' numbers.
const CAUSES: [&str; Cause::ALL.len()] = [
    "drops_queue_full",
    "lost_random",
    "lost_down",
    "lost_no_route",
    "drops_early",
    "drops_shared_buffer",
    "drops_sojourn",
];

/// The same in the summary.
const SHORT_CAUSES: [&str; Cause::ALL.len()] =
    ["full", "loss", "link_down", "no_route", "early", "shared_buffer", "sojourn"];

/// Columns of losses by kind of packet, in the order of the kinds' numbers.
const KINDS: [&str; PacketKind::COUNT] = [
    "drops_data",
    "drops_retransmission",
    "drops_ack",
    "drops_ece_ack",
    "drops_syn",
    "drops_syn_ack",
    "drops_fin",
    "drops_datagram",
];

/// Share of the run during which a link was sending.
fn utilisation(bytes: u64, rate_bps: u64, run: Span) -> f64 {
    if run == Span::ZERO {
        return 0.0;
    }
    bytes as f64 * 8.0 / rate_bps as f64 / run.as_secs_f64()
}

/// The table `links`.
pub fn links(w: &World) -> Table {
    let l = &w.fabric.links;
    let run = w.now.since(Time::ZERO);
    let node = |n: u32| w.fabric.graph.names[n as usize].clone();
    let tiers: Vec<String> = w.records.tiers.iter().map(|t| t.to_string()).collect();
    let u64s = |of: &dyn Fn(&Link) -> u64| Column::U64(l.iter().map(of).collect());
    let used = |l: &Link| utilisation(l.counters.bytes, l.cable.rate.0, run);
    let name = |l: &Link| {
        interrupt::steps(4);
        format!("{}->{}", node(l.from), node(l.to))
    };
    let mut columns = vec![
        ("link", Column::U32((0..l.len() as u32).collect())),
        ("name", Column::Text(l.iter().map(name).collect())),
        ("tier", label(w.records.tier_of_link.iter().map(|t| u32::from(*t)), &tiers)),
        ("src", Column::Text(l.iter().map(|l| node(l.from)).collect())),
        ("dst", Column::Text(l.iter().map(|l| node(l.to)).collect())),
        ("rate_bps", u64s(&|l| l.cable.rate.0)),
        ("packets", u64s(&|l| l.counters.packets)),
        ("bytes", u64s(&|l| l.counters.bytes)),
        ("utilisation", Column::F64(l.iter().map(used).collect())),
        ("drops", u64s(&Link::lost)),
    ];
    for (kind, name) in KINDS.into_iter().enumerate() {
        columns.push((name, u64s(&|l| l.account().drops()[kind])));
    }
    let wait_us = l.iter().map(|l| l.longest().0.as_secs_f64() * 1e6);
    columns.push(("queue_max_us", Column::F64(wait_us.collect())));
    columns.push(("queue_max_bytes", u64s(&|l| l.longest().1)));
    for (cause, name) in Cause::ALL.into_iter().zip(CAUSES) {
        columns.push((name, u64s(&|l| l.account().lost_to(cause))));
    }
    columns.push(("marks", u64s(&|l| l.account().marks().iter().sum())));
    columns.extend(crate::energy::columns(w));
    Table::new("links", columns)
}

/// The table `drops`: a row for every port, class, kind of packet and ECT where anything was counted.
pub fn drops(fabric: &Fabric) -> Table {
    let links = fabric.links.iter().zip(0u32..);
    let rows: Vec<(u32, Group, &Counts)> = links
        .flat_map(|(l, link)| l.account().rows().map(move |(group, counts)| (link, group, counts)))
        .collect();
    let u64s = |of: &dyn Fn(&Counts) -> u64| Column::U64(rows.iter().map(|r| of(r.2)).collect());
    let kinds = PacketKind::ALL.map(|k| k.name().to_owned());
    let mut columns = vec![
        ("link", Column::U32(rows.iter().map(|r| r.0).collect())),
        ("class", Column::U32(rows.iter().map(|r| u32::from(r.1.class)).collect())),
        ("kind", label(rows.iter().map(|r| r.1.kind as u32), &kinds)),
        ("ect", label(rows.iter().map(|r| u32::from(r.1.ect)), &names(["not-ect", "ect"]))),
        ("arrivals", u64s(&|c| c.arrivals)),
        ("marks", u64s(&|c| c.marks)),
        ("drops", u64s(&Counts::drops)),
    ];
    for (cause, name) in CAUSES.into_iter().enumerate() {
        columns.push((name, u64s(&|c| c.lost[cause])));
    }
    Table::new("drops", columns)
}

/// The histograms of measured ports, with link and class.
fn meters(fabric: &Fabric) -> impl Iterator<Item = (u32, u32, &ClassMeter)> {
    let links = fabric.links.iter().zip(0u32..);
    links.flat_map(|(l, link)| {
        let classes = l.meter().into_iter().flat_map(Meter::classes);
        classes.map(move |(class, meter)| (link, class, meter))
    })
}

/// The table `depths`: what packets found waiting at measured ports.
pub fn depths(fabric: &Fabric) -> Table {
    let (mut link, mut class, mut unit, mut most, mut count) =
        (vec![], vec![], vec![], vec![], vec![]);
    for (l, c, meter) in meters(fabric) {
        for (u, histogram) in [&meter.packets, &meter.bytes].into_iter().enumerate() {
            for (largest, n) in histogram.buckets() {
                link.push(l);
                class.push(c);
                unit.push(u as u32);
                most.push(largest);
                count.push(n);
            }
        }
    }
    Table::new(
        "depths",
        vec![
            ("link", Column::U32(link)),
            ("class", Column::U32(class)),
            ("unit", Column::Label(unit, names(["packets", "bytes"]))),
            ("most", Column::U64(most)),
            ("count", Column::U64(count)),
        ],
    )
}

/// The table `sojourn`: how long packets waited at measured ports.
pub fn sojourn(fabric: &Fabric) -> Table {
    let (mut link, mut class, mut upper, mut count) = (vec![], vec![], vec![], vec![]);
    for (l, c, meter) in meters(fabric) {
        for (upper_us, n) in meter.sojourn.rows() {
            link.push(l);
            class.push(c);
            upper.push(upper_us);
            count.push(n);
        }
    }
    Table::new(
        "sojourn",
        vec![
            ("link", Column::U32(link)),
            ("class", Column::U32(class)),
            ("upper_us", Column::F64(upper)),
            ("count", Column::U64(count)),
        ],
    )
}

fn by_kind(counts: [u64; PacketKind::COUNT]) -> Value {
    let counts = PacketKind::ALL.map(|k| (k.name().to_owned(), Value::from(counts[k as usize])));
    counts.into_iter().collect::<Map<_, _>>().into()
}

/// Sums over ports, by kind of packet.
fn sums<'a>(links: impl Iterator<Item = &'a Link>, of: impl Fn(&Counts) -> u64) -> Value {
    let mut sums = [0; PacketKind::COUNT];
    for link in links {
        sums.iter_mut().zip(link.account().by_kind(&of)).for_each(|(sum, n)| *sum += n);
    }
    by_kind(sums)
}

/// Packets lost at these ports, by cause and kind.
pub fn lost<'a>(links: impl Iterator<Item = &'a Link> + Clone) -> Value {
    let causes = SHORT_CAUSES.into_iter().enumerate();
    let of = |(cause, name): (usize, &str)| {
        (name.to_owned(), sums(links.clone(), |counts| counts.lost[cause]))
    };
    causes.map(of).collect::<Map<_, _>>().into()
}

/// Packets marked at these ports, by kind.
pub fn marked<'a>(links: impl Iterator<Item = &'a Link>) -> Value {
    sums(links, |counts| counts.marks)
}

/// The ports of hosts and those of switches apart.
pub fn summary(fabric: &Fabric) -> Value {
    let hosts = fabric.graph.hosts;
    let of = |at_host: bool| {
        let links = fabric.links.iter().filter(move |l| (l.from < hosts) == at_host);
        let measured = links.clone().filter(|l| l.meter().is_some());
        json!({
            "count": links.clone().count(), "measured": measured.clone().count(),
            "arrivals": sums(measured, |counts| counts.arrivals),
            "marks": marked(links.clone()), "drops": lost(links),
        })
    };
    json!({ "host": of(true), "switch": of(false) })
}
