//! Notes on combinations of settings that are valid but rarely intended.

use super::workload::spec::{WorkloadKind, WorkloadSpec};
use crate::stream_transports::Transport;
use eastwest_network::config::FabricConfig;
use eastwest_network::queue::{Protection, QueueConfig};
use eastwest_network::routing::RoutingConfig;
use eastwest_network::topology::Topology;
use eastwest_settings::units;
use eastwest_transport::congestion::CongestionKind;
use eastwest_transport::congestion::rules::EcnRule;
use eastwest_transport::tcp::config::TcpConfig;
use eastwest_types::{Limit, Rate, Span};
use eastwest_workload::mpi::Program;

/// Limit of a host's queue, in bytes, above which [`waits_at_hosts`] returns a note: 100 packets of
/// 1,500 B, whose transmission lasts 1.2 ms at 1 Gbit/s.
const LONG_QUEUE: u64 = 150_000;

/// Returns notes about TCP settings that do not suit this fabric. `settings` are the TCP settings
/// of all endpoints; `asks_for_ecn` is true if any TCP endpoint requests ECN.
pub fn notes(fabric: &FabricConfig, settings: &[&TcpConfig], asks_for_ecn: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let drops_only = |queue: &QueueConfig| matches!(queue, QueueConfig::DropTail(_));
    let classes = fabric.scheduler.classes();
    let own = classes.iter().filter_map(|class| class.queue.as_ref());
    let no_marks = own.chain([&fabric.switch_queue]).all(drops_only);
    if asks_for_ecn && no_marks {
        notes.push(
            "tcp.ecn is on, or tcp.congestion = \"dctcp\", but no switch marks packets: \
             fabric.queue.kind is drop-tail, so that connections behave as without ECN. \
             Queues of kind step-marking, red, pie and codel mark packets"
                .to_owned(),
        );
    }
    if asks_for_ecn && !no_marks && drops_only(&fabric.host_queue) {
        notes.extend(waits_at_hosts(fabric, settings));
    }
    for tcp in settings {
        if tcp.min_rto < tcp.delayed_ack_timeout && tcp.ack_every > 1 {
            notes.push(format!(
                "tcp.min_rto ({}) is shorter than tcp.delayed_ack_timeout ({}): a sender whose last \
                 packet waits for a delayed ACK times out without any loss",
                tcp.min_rto, tcp.delayed_ack_timeout
            ));
        }
    }
    if settings.iter().any(|tcp| matches!(tcp.congestion, CongestionKind::Dctcp)) {
        notes.extend(threshold_and_round_trip(fabric));
    }
    notes.dedup();
    notes
}

/// Returns a note if queues mark packets, although no connection requests ECN. `of_tcp` are the TCP
/// settings of all endpoints; empty if no workload uses TCP.
pub fn note_marks(fabric: &FabricConfig, of_tcp: &[&TcpConfig]) -> Option<String> {
    let mut queues = fabric.marking_queues().peekable();
    queues.peek()?;
    let enqueues = |queue: &QueueConfig| match queue {
        QueueConfig::StepMarking(queue) => queue.protection == Protection::Bypass,
        _ => false,
    };
    let fate = if queues.all(enqueues) {
        "above the threshold, packets are enqueued without a mark until the queue is full"
    } else {
        "above the threshold, packets are dropped unless the queue's `protection` spares them"
    };
    let accepts = of_tcp.iter().any(|tcp| tcp.rules.ecn.rule == EcnRule::Accept);
    let why = match (of_tcp.is_empty(), accepts) {
        (true, _) => "no transport reacts to marks",
        (false, true) => {
            "no connection requests ECN: tcp.ecn = \"accept\" accepts requests and sends none"
        }
        (false, false) => "no connection requests ECN (tcp.ecn = \"off\")",
    };
    Some(format!("queues can mark packets, but {why}. No packet is marked; {fate}"))
}

/// IP bytes of a TCP acknowledgement with timestamps.
const ACK: u64 = 52;

/// Number of idle round trips; if a queue at its marking threshold needs more time to drain,
/// [`threshold_and_round_trip`] returns a note.
const LATE: u64 = 4;

/// Returns the rate of the hosts' links, and the largest round-trip time on an idle path for a full
/// packet and its acknowledgement; `None` for a [`Topology::Graph`].
fn idle_round_trip(fabric: &FabricConfig) -> Option<(Rate, Span)> {
    let (host, uplink, uplinks) = match &fabric.topology {
        Topology::LeafSpine { leaves, host, uplink, .. } => {
            (host, uplink, if *leaves > 1 { 2 } else { 0 })
        }
        Topology::Star { host, .. } => (host, host, 0),
        Topology::FatTree { host, uplink, .. } => (host, uplink, 4),
        Topology::Graph { .. } => return None,
    };
    let packets = [u64::from(fabric.mtu), ACK]
        .map(|ip| (ip + u64::from(fabric.framing)).max(u64::from(fabric.min_frame)));
    let mut round_trip = fabric.processing_jitter; // sum of the means at both hosts
    for bytes in packets {
        for (cable, times) in [(host, 2), (uplink, uplinks)] {
            round_trip += (cable.rate.time_for(bytes) + cable.delay) * times;
        }
    }
    Some((host.rate, round_trip))
}

/// Returns a note if DCTCP's marking threshold K is below C × RTT / 7 (too low for full
/// utilization), or if a queue of length K needs more than four idle round trips to drain (too
/// high).
fn threshold_and_round_trip(fabric: &FabricConfig) -> Option<String> {
    let QueueConfig::StepMarking(queue) = &fabric.switch_queue else { return None };
    let (rate, round_trip) = idle_round_trip(fabric)?;
    let frame = u64::from(fabric.mtu + fabric.framing);
    let round = |span: Span| Span(span.0.next_multiple_of(10_000)); // to 10 ns, for display
    let (words, bytes) = match queue.mark_from {
        Limit::Packets(n) => (format!("{n} packets"), u64::from(n) * frame),
        Limit::Bytes(n) => (format!("{n} B"), n),
    };
    let drain = rate.time_for(bytes);
    let product = u128::from(rate.0) * u128::from(round_trip.0) / 8_000_000_000_000;
    let product = u64::try_from(product).unwrap_or(u64::MAX);
    if bytes.saturating_mul(7) < product {
        Some(format!(
            "fabric.queue marks from {words} ({bytes} B), which is below C × RTT / 7 = {} B \
             ({rate} and an idle round trip of {}): long flows of DCTCP can lose \
             throughput (Alizadeh et al. 2010, equation 13)",
            product / 7,
            round(round_trip)
        ))
    } else if drain > round_trip * LATE {
        Some(format!(
            "fabric.queue marks from {words} ({bytes} B), which take {} at {rate}: {} times the idle \
             round trip of {}. Queueing dominates the latency before DCTCP reacts; C × RTT / 7 is \
             {} B",
            round(drain),
            drain.0 / round_trip.0,
            round(round_trip),
            product / 7
        ))
    } else {
        None
    }
}

/// Returns a note if packets of TCP can wait long in the queue of their own host, because this
/// queue does not mark packets and small queues (a limit of TCP itself) are off.
fn waits_at_hosts(fabric: &FabricConfig, settings: &[&TcpConfig]) -> Option<String> {
    if settings.iter().all(|tcp| tcp.small_queues.on) {
        return None;
    }
    let (text, bytes) = match fabric.host_queue.limit() {
        Limit::Packets(n) => (format!("{n} packets"), u64::from(n) * u64::from(fabric.mtu)),
        Limit::Bytes(n) => (units::SIZE.show(n), n),
    };
    (bytes > LONG_QUEUE).then(|| {
        format!(
            "fabric.queue marks packets at switches, but fabric.host_queue does not: a packet can \
             wait behind {text} at its own host. Small queues of TCP (tcp.small_queues, profile \
             linux) or a marking fabric.host_queue prevent this"
        )
    })
}

/// Returns a note if the routing sends packets of one flow over several paths, so that they arrive
/// out of order, and a workload uses RoCEv2, which retransmits all packets after a gap. `used`
/// tells whether a workload uses a transport.
pub fn note_paths(routing: &RoutingConfig, used: impl Fn(Transport) -> bool) -> Option<String> {
    let name = match routing {
        RoutingConfig::Spray(_) => "spray",
        RoutingConfig::RoundRobin(_) => "round-robin",
        RoutingConfig::Adaptive(_) => "adaptive",
        _ => return None,
    };
    used(Transport::RoceV2).then(|| {
        format!(
            "fabric.routing = \"{name}\" reorders the packets of a connection, and rocev2 \
             retransmits all packets after a gap (go-back-N): reordered packets count as lost"
        )
    })
}

/// Returns a note if training jobs have messages without a cost at the processors and cards of
/// their hosts: their results are then too fast for short messages.
pub fn note_costs(workloads: &[WorkloadSpec]) -> Option<String> {
    let is_free = |workload: &&WorkloadSpec| match &workload.kind {
        WorkloadKind::Mpi(config) => {
            matches!(config.program, Program::Training(_)) && config.chunk_overhead == Span::ZERO
        }
        _ => false,
    };
    let free: Vec<&str> = workloads.iter().filter(is_free).map(|w| w.name.as_str()).collect();
    (!free.is_empty()).then(|| {
        format!(
            "messages of collective calls of {} take no time of proxies and cards \
             (chunk_overhead), and PCIe is no limit",
            free.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Context, read};

    /// Returns the notes on a leaf–spine fabric with these lines in `[fabric]` and `[tcp]`, and one
    /// workload.
    fn said(fabric: &str, tcp: &str, workload: &str) -> Vec<String> {
        let text = format!(
            "schema = 1\n[fabric]\nkind = 'leaf-spine'\nleaves = 2\nhosts_per_leaf = 2\nspines = 2\n\
             host_rate = '1 Gbit/s'\nuplink_rate = '1 Gbit/s'\n{fabric}\n[tcp]\n{tcp}\n\
             [[workload]]\nname = 'all'\nkind = 'all-to-all'\nbytes = '1 MB'\n{workload}"
        );
        read(&text, &Context::default(), &[]).unwrap_or_else(|p| panic!("{p:#?}")).notes
    }

    #[test]
    fn ecn_without_a_marking_switch_is_said() {
        let marks = "queue = { kind = 'step-marking', threshold = '20 packets' }";
        let short = "host_queue = { limit = '50 packets' }";
        for tcp in ["congestion = 'dctcp'", "ecn = 'on'"] {
            assert!(said("", tcp, "")[0].contains("no switch marks packets"), "{tcp}");
            assert_eq!(said(&format!("{marks}\n{short}"), tcp, ""), Vec::<String>::new());
        }
        assert_eq!(said("", "ecn = 'accept'", ""), Vec::<String>::new());
    }

    #[test]
    fn long_host_queues_without_marks_are_said() {
        let marks = "queue = { kind = 'step-marking', threshold = '20 packets' }";
        let notes = said(marks, "congestion = 'dctcp'", "");
        assert!(notes[0].contains("wait behind 1000 packets at its own host"), "{notes:?}");
        let bytes = format!("{marks}\nhost_queue = {{ limit = '1 GB' }}");
        let notes = said(&bytes, "congestion = 'dctcp'", "");
        assert!(notes[0].contains("wait behind 1 GB at its own host"), "{notes:?}");
        let linux = "profile = 'linux'\ncongestion = 'dctcp'";
        assert_eq!(said(marks, linux, ""), Vec::<String>::new(), "small queues");
        let both =
            format!("{marks}\nhost_queue = {{ kind = 'step-marking', threshold = '20 packets' }}");
        assert_eq!(said(&both, "congestion = 'dctcp'", ""), Vec::<String>::new());
    }

    #[test]
    fn a_threshold_is_compared_with_the_round_trip() {
        // idle round trip: a packet of 1,538 B and an ACK of 90 B over four links of 1 Gbit/s, two
        // of which have a delay
        let marks = |k: &str, delay: &str| {
            let fabric = format!(
                "queue = {{ kind = 'step-marking', threshold = '{k}' }}\nhost_queue = {{ limit = '50 packets' }}\n\
                 host_delay = '{delay}'\nuplink_delay = '0 s'\nprocessing_jitter = '0 s'"
            );
            said(&fabric, "congestion = 'dctcp'", "")
        };
        assert_eq!(marks("10 packets", "10 us"), Vec::<String>::new());
        // round trip of 452.1 µs: 56.5 kB in flight; with the threshold of one packet, marking
        // begins at the second packet
        let low = marks("1 packets", "100 us");
        assert!(low[0].contains("from 2 packets (3076 B)"), "{low:?}");
        assert!(low[0].contains("below C × RTT / 7 = 80"), "{low:?}");
        let high = marks("100 packets", "10 us");
        assert!(high[0].contains("13 times the idle round trip of 92"), "{high:?}");
        let reno = said(
            "queue = { kind = 'step-marking', threshold = '100 packets' }\n\
                         host_queue = { limit = '50 packets' }",
            "ecn = 'on'",
            "",
        );
        assert_eq!(reno, Vec::<String>::new());
    }

    #[test]
    fn a_minimum_timeout_below_the_delayed_ack_is_said() {
        let short = "min_rto = '10 ms'\nack_every = 2";
        assert!(said("", short, "")[0].contains("times out without any loss"));
        assert_eq!(said("", "min_rto = '10 ms'\nack_every = 1", ""), Vec::<String>::new());
    }

    #[test]
    fn reordered_packets_with_go_back_n_are_said() {
        let rocev2 = "transport = 'rocev2'";
        assert!(said("routing = 'spray'", "", rocev2)[0].contains("go-back-N"));
        assert_eq!(said("routing = 'flowlet'", "", rocev2), Vec::<String>::new());
        assert_eq!(said("routing = 'spray'", "", ""), Vec::<String>::new());
    }
}
