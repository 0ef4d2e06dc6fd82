//! Tests of the memory of an idle connection: the structs of both ends in the pool, and all their
//! memory on the heap. The overhead of the allocator and pending timer events are not counted.

use super::super::config::TcpConfig;
use super::super::endpoint::Endpoint;
use super::super::interface::Connect;
use super::super::rules::{AckRule, PrrRule, RackRule, ReceiverRules, RecoveryRules};
use super::super::stack::Stack;
use super::net::{Net, settings};
use crate::congestion::Algorithm;
use crate::congestion::CongestionKind;
use crate::congestion::rules::{CongestionRules, Counting, HyStartRule};
use crate::congestion::small_queue::SmallQueueRules;
use eastwest_types::{HostId, Side};

/// Returns TCP settings with all mechanisms of the profile `linux` that keep state.
fn linux() -> TcpConfig {
    TcpConfig {
        congestion: CongestionKind::Cubic,
        rules: CongestionRules {
            counting: Counting::Segments,
            hystart: HyStartRule::Linux,
            ..CongestionRules::default()
        },
        recovery: RecoveryRules {
            prr: PrrRule::Linux,
            rack: RackRule::Linux,
            probes: true,
            dsack: true,
            frto: true,
            undo: true,
            ..RecoveryRules::default()
        },
        small_queues: SmallQueueRules { on: true, ..SmallQueueRules::default() },
        receiver: ReceiverRules {
            acks: AckRule::Linux,
            window_from: Some(65_535),
            ..ReceiverRules::default()
        },
        ..settings()
    }
}

/// Returns the bytes of memory of one end of a connection.
fn taken(e: &Endpoint) -> usize {
    assert!(e.recovery.sacked.is_empty() && e.receiver.out_of_order.is_empty());
    let scoreboard =
        e.recovery.scoreboard.as_ref().map_or(0, |b| size_of_val(&**b) + b.heap_bytes());
    let control = e.control.as_ref().map_or(0, |c| {
        assert!(c.small_queue.is_none());
        assert!(matches!(c.algorithm, Algorithm::NewReno(_) | Algorithm::Cubic(_)));
        size_of_val(&**c)
    });
    let cold = e.recovery.cold.as_ref().map_or(0, |r| size_of_val(&**r));
    let linux = e.receiver.linux.as_ref().map_or(0, |i| size_of_val(&**i));
    size_of::<Endpoint>() + scoreboard + control + cold + linux
}

/// Returns the bytes of memory of an idle connection that has carried data in one or both
/// directions.
fn idle(config: TcpConfig, both_ways: bool) -> usize {
    let mut net = Net::established(config);
    net.write_segments(500);
    if both_ways {
        net.write(Side::Server, 500_000);
    }
    net.run_to(5_000);
    assert_eq!(net.end(Side::Client).outstanding() + net.end(Side::Server).outstanding(), 0);
    let used = taken(net.end(Side::Client)) + taken(net.end(Side::Server));
    println!("{used} B");
    used
}

#[test]
fn an_idle_connection_takes_less_than_a_kilobyte() {
    assert_eq!(idle(settings(), true), 512);
    let bytes = idle(linux(), false);
    assert!(bytes < 1024, "{bytes}");
    // Both ends have sent and received, so both have all state.
    assert!(idle(linux(), true) < 1600);
}

/// A part of a partitioned run that has no connections of its own may take over many.
#[test]
fn an_empty_stack_takes_over_more_endpoints_than_it_has_reserved() {
    let (client, server) = (HostId(0), HostId(1));
    let c = Connect { client, server, hashes: (0, 0), dscp: 0, class: 0, settings: (0, 0) };
    let (mut mine, mut theirs) = (Stack::new(settings()), Stack::new(settings()));
    mine.reserve(1_000);
    let last = (0..5_000).map(|_| theirs.allocate(&c).expect("a free slot")).last();
    mine.adopt_endpoints(&mut theirs, |_| true);
    assert!(mine.is_live(last.expect("a connection")));
}
