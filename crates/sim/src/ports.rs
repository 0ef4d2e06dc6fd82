//! Packet counts of ports, as tables and in the summary: lost packets by cause, and marked packets.

use crate::energy;
use crate::network::Network;
use crate::records::Records;
use eastwest_engine::interrupt;
use eastwest_measure::table;
use eastwest_measure::table::Table;
use eastwest_network::account::{Counts, Group};
use eastwest_network::energy::Joules;
use eastwest_network::energy::eee::StateTimes;
use eastwest_network::fabric::Fabric;
use eastwest_network::link::Link;
use eastwest_network::link::meter::{ClassMeter, Meter};
use eastwest_network::losses::Cause;
use eastwest_types::{PacketKind, Span, Time};
use serde_json::{Map, Value, json};

/// Names of the causes of packet losses in the summary, in the order of the numbers of `Cause`.
const SHORT_CAUSES: [&str; Cause::ALL.len()] =
    ["full", "loss", "link_down", "no_route", "early", "shared_buffer", "sojourn"];

/// Returns the bytes that a link has carried as a fraction of its capacity at `rate_bps` in the
/// time `run`; 0 for a run without duration.
fn utilisation(bytes: u64, rate_bps: u64, run: Span) -> f64 {
    if run == Span::ZERO {
        return 0.0;
    }
    bytes as f64 * 8.0 / rate_bps as f64 / run.as_secs_f64()
}

/// Returns the table of links, `links`, with the counters of their sending ports.
pub fn links(network: &Network, records: &Records) -> Table {
    let energy = energy::of_links(network);
    let links = (0..).zip(&network.fabric.links).zip(energy);
    Links::of(links.map(|((n, l), e)| (n, l, e)), (network, records))
}

table! {
    /// Two rows per cable, one for each direction, with the counters of the port that sends into
    /// it.
    pub Links = "links"
    of (number, link, energy) in (u32, &'a Link, (Joules, StateTimes)), at: (&'a Network, &'a Records);

    /// number of the link
    link: u32 = number;

    /// name of the link: `from->to`, sending and receiving node
    name: str = {
        interrupt::steps(4);
        at.0.port_name(number as usize)
    };

    /// tier of the link: `host-up`, `host-down`, `leaf-up`, `leaf-down`, `edge-up`, `edge-down`,
    /// `agg-up`, `agg-down`, `switch`
    tier: few = at.1.tiers[usize::from(at.1.tier_of_link[number as usize])];

    /// name of the sending node
    src: str = at.0.fabric.graph.names[link.from as usize].clone();

    /// name of the receiving node
    dst: str = at.0.fabric.graph.names[link.to as usize].clone();

    /// rate of the link in bit/s
    rate_bps: u64 = link.cable.rate.0;

    /// packets that arrived at the other end of the link; their sum over all links is `packet_hops`
    packets: u64 = link.counters().packets;

    /// bytes of the `packets` on the link, including framing
    bytes: u64 = link.counters().bytes;

    /// `bytes` as a share of the bytes that the link could carry at its rate in the whole run; a
    /// lower rate or losses by a fault do not change the denominator
    utilisation: f64 = utilisation(link.counters().bytes, link.cable.rate.0, at.0.now.since(Time::ZERO));

    /// packets lost at this port or link whatever the cause: the sum of the following columns by
    /// kind of packet, and of the later columns by cause
    drops: u64 = link.lost();

    /// lost packets with payload sent for the first time
    drops_data: u64 = link.account().drops()[PacketKind::Data as usize];

    /// lost packets with payload sent again
    drops_retransmission: u64 = link.account().drops()[PacketKind::Retransmission as usize];

    /// lost pure acknowledgements without the ECE bit; in results of format 3 or older also those
    /// with this bit
    drops_ack: u64 = link.account().drops()[PacketKind::Ack as usize];

    /// lost pure acknowledgements with the ECE bit
    drops_ece_ack since 4: u64 = link.account().drops()[PacketKind::EceAck as usize];

    /// lost SYN packets
    drops_syn: u64 = link.account().drops()[PacketKind::Syn as usize];

    /// lost SYN-ACK packets
    drops_syn_ack: u64 = link.account().drops()[PacketKind::SynAck as usize];

    /// lost FIN packets
    drops_fin: u64 = link.account().drops()[PacketKind::Fin as usize];

    /// lost datagrams
    drops_datagram: u64 = link.account().drops()[PacketKind::Datagram as usize];

    /// longest waiting time of an admitted packet for the packets ahead of it, including the packet
    /// on the link
    queue_max_us: f64 = link.longest().0.as_secs_f64() * 1e6;

    /// `queue_max_us` as bytes on the link, at the rate that the link had at that time
    queue_max_bytes: u64 = link.longest().1;

    /// packets lost because they found the queue of the port full
    drops_queue_full since 2: u64 = link.account().lost_to(Cause::QueueFull);

    /// packets lost by a fault of kind `loss` or `bursty-loss` on the way
    lost_random since 2: u64 = link.account().lost_to(Cause::Loss);

    /// packets lost because the link was down while they were on it
    lost_down since 2: u64 = link.account().lost_to(Cause::LinkDown);

    /// packets that arrived on this link at a switch without a route to their destination, and were
    /// lost
    lost_no_route since 2: u64 = link.account().lost_to(Cause::NoRoute);

    /// packets dropped by the queue discipline at their arrival although the queue was not full
    /// (RED, PIE …); in results of format 3 or older also drops by CoDel
    drops_early since 3: u64 = link.account().lost_to(Cause::Early);

    /// packets lost because the memory that the ports of the switch share had no room for them
    drops_shared_buffer since 4: u64 = link.account().lost_to(Cause::SharedBuffer);

    /// packets dropped by the queue discipline when they were about to leave, after too long a wait
    /// (CoDel, FQ-CoDel)
    drops_sojourn since 4: u64 = link.account().lost_to(Cause::Sojourn);

    /// packets that this port marked "congestion experienced"
    marks since 3: u64 = link.account().marks().iter().sum::<u64>();

    /// joules used by the transceiver that sends, see [links that sleep](../mechanisms/eee.md)
    energy_j since 5: f64 = energy.0.used;

    /// joules that the transceiver would have used if it had been awake all the time
    energy_always_on_j since 5: f64 = energy.0.always_on;

    /// joules that the transceiver would have used if it had slept whenever it had nothing to send,
    /// with transitions that take no time
    energy_ideal_j since 5: f64 = energy.0.ideal;

    /// seconds in which the transceiver was awake, sending or with nothing to send
    awake_s since 5: seconds = energy.1.awake;

    /// seconds in which the transceiver was falling asleep
    falling_asleep_s since 5: seconds = energy.1.falling;

    /// seconds in which the transceiver was asleep
    asleep_s since 5: seconds = energy.1.asleep;

    /// seconds in which the transceiver was waking; the sum of `awake_s`, `falling_asleep_s`,
    /// `asleep_s` and `waking_s` is the duration of the run
    waking_s since 5: seconds = energy.1.waking;

    /// number of times the transceiver began to wake
    wakes since 5: u64 = energy.1.wakes;
}

/// Returns the table of arrivals, marks and losses of packets, `drops`.
pub fn drops(fabric: &Fabric) -> Table {
    let links = (0..).zip(&fabric.links);
    let rows =
        links.flat_map(|(link, l)| l.account().rows().map(move |(group, c)| (link, group, c)));
    Drops::of(rows, ())
}

table! {
    /// Arrivals, marks and losses of packets at ports. One row for each port, class of the port,
    /// kind of packet and ECT with a count above 0. Marks and losses are counted at every port,
    /// arrivals only at the ports that `measure.ports` names: `arrivals` is 0 at all other ports.
    pub Drops = "drops" since 4
    of (link, group, counts) in (u32, Group, &'a Counts), _at: ();

    /// number of the link into which the port sends
    link: u32 = link;

    /// class of the port in whose queue the packets wait: its index among `[[fabric.class]]`, from
    /// 0; with `strict-priority` 0 for priorities 4–7 and 1 for 0–3; 0 if the port has one queue
    class: u32 = group.class;

    /// kind of the packets. `data`: payload sent for the first time; `retransmission`: payload sent
    /// again; `ack`: pure acknowledgement without the ECE bit; `ece_ack`: pure acknowledgement with
    /// the ECE bit; `syn`; `syn_ack`; `fin`; `datagram`
    kind: few = group.kind.name();

    /// `ect`: the transport of the packets understands ECN marks (RFC 3168); `not-ect` otherwise
    ect: few = if group.ect { "ect" } else { "not-ect" };

    /// packets that arrived at the port
    arrivals: u64 = counts.arrivals;

    /// packets that the port marked "congestion experienced"
    marks: u64 = counts.marks;

    /// packets lost at the port or on its link, whatever the cause: the sum of `drops_queue_full` to
    /// `drops_sojourn`, one column for each cause (`links` has columns with the same names)
    drops: u64 = counts.drops();

    /// packets lost because they found the queue of the port full
    drops_queue_full: u64 = counts.lost[Cause::QueueFull as usize];

    /// packets lost by a fault of kind `loss` or `bursty-loss` on the way
    lost_random: u64 = counts.lost[Cause::Loss as usize];

    /// packets lost because the link was down while they were on it
    lost_down: u64 = counts.lost[Cause::LinkDown as usize];

    /// packets that arrived on this link at a switch without a route to their destination, and were
    /// lost
    lost_no_route: u64 = counts.lost[Cause::NoRoute as usize];

    /// packets dropped by the queue discipline at their arrival although the queue was not full
    drops_early: u64 = counts.lost[Cause::Early as usize];

    /// packets lost because the shared memory had no room for them
    drops_shared_buffer: u64 = counts.lost[Cause::SharedBuffer as usize];

    /// packets dropped by the queue discipline when they were about to leave
    drops_sojourn: u64 = counts.lost[Cause::Sojourn as usize];
}

/// Returns the histograms of queue length and waiting time of the measured ports, each with the
/// numbers of link and class.
fn meters(fabric: &Fabric) -> impl Iterator<Item = (u32, u32, &ClassMeter)> {
    let links = fabric.links.iter().zip(0u32..);
    links.flat_map(|(l, link)| {
        let classes = l.meter().into_iter().flat_map(Meter::classes);
        classes.map(move |(class, meter)| (link, class, meter))
    })
}

/// Returns the table of queue lengths, `depths`.
pub fn depths(fabric: &Fabric) -> Table {
    let rows = meters(fabric).flat_map(|(link, class, meter)| {
        let both = [("packets", &meter.packets), ("bytes", &meter.bytes)];
        both.into_iter().flat_map(move |(unit, histogram)| {
            histogram.buckets().map(move |bucket| (link, class, unit, bucket))
        })
    });
    Depths::of(rows, ())
}

table! {
    /// Queue length that arriving packets found at the ports that `measure.ports` names, including
    /// packets that were dropped: a histogram for each class of each port. Because packets arrive
    /// in bursts, it differs from the average of the queue length over time. Buckets are exact up
    /// to 255 and at most 0.8 % wide above; empty buckets have no row.
    pub Depths = "depths" since 5
    of (link, class, unit, (most, count)) in (u32, u32, &'static str, (u64, u64)), _at: ();

    /// number of the link into which the port sends
    link: u32 = link;

    /// class of the port, as in the table `drops`
    class: u32 = class;

    /// unit of `most`: `packets`, or `bytes` for IP bytes; the packet being sent is counted in
    /// neither
    unit: few = unit;

    /// largest queue length in the bucket, in `unit`
    most: u64 = most;

    /// number of packets that found a queue length within this bucket in their class
    count: u64 = count;
}

/// Returns the table of waiting times, `sojourn`.
pub fn sojourn(fabric: &Fabric) -> Table {
    let rows = meters(fabric)
        .flat_map(|(link, class, meter)| meter.sojourn.rows().map(move |row| (link, class, row)));
    Sojourn::of(rows, ())
}

table! {
    /// Waiting times of packets at the ports that `measure.ports` names, from the arrival of a
    /// packet until its first bit was sent. Dropped packets are not counted.
    pub Sojourn = "sojourn" since 5
    of (link, class, (upper_us, count)) in (u32, u32, (f64, u64)), _at: ();

    /// number of the link into which the port sends
    link: u32 = link;

    /// class of the port, as in the table `drops`
    class: u32 = class;

    /// upper end of the bucket of waiting times, in µs
    upper_us: f64 = upper_us;

    /// number of packets whose waiting time was within this bucket
    count: u64 = count;
}

fn by_kind(counts: [u64; PacketKind::COUNT]) -> Value {
    let counts = PacketKind::ALL.map(|k| (k.name().to_owned(), Value::from(counts[k as usize])));
    counts.into_iter().collect::<Map<_, _>>().into()
}

/// Returns counts summed over the ports of `links`, by kind of packet; `of` selects the count.
fn sums<'a>(links: impl Iterator<Item = &'a Link>, of: impl Fn(&Counts) -> u64) -> Value {
    let mut sums = [0; PacketKind::COUNT];
    for link in links {
        sums.iter_mut().zip(link.account().by_kind(&of)).for_each(|(sum, n)| *sum += n);
    }
    by_kind(sums)
}

/// Returns the numbers of packets lost at the ports of these links, by cause and kind of packet.
pub fn lost<'a>(links: impl Iterator<Item = &'a Link> + Clone) -> Value {
    let causes = SHORT_CAUSES.into_iter().enumerate();
    let of = |(cause, name): (usize, &str)| {
        (name.to_owned(), sums(links.clone(), |counts| counts.lost[cause]))
    };
    causes.map(of).collect::<Map<_, _>>().into()
}

/// Returns the numbers of packets that the ports of these links marked "congestion experienced", by
/// kind of packet.
pub fn marked<'a>(links: impl Iterator<Item = &'a Link>) -> Value {
    sums(links, |counts| counts.marks)
}

/// Returns the section `ports` of the summary: packet counts of the ports of hosts, and of the
/// ports of switches.
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
