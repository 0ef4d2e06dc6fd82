//! Tests of segmentation offload. The link carries a segment per millisecond, with 5 ms of delay
//! each way. Every second segment is acknowledged, so each ACK makes room for two or three
//! segments.

use super::super::config::TcpConfig;
use super::super::offload::OffloadRules;
use super::super::rules::{RackRule, RecoveryRules};
use super::net::{Net, SEGMENT, settings};
use crate::congestion::rules::CongestionRules;
use eastwest_types::{Rate, Side, Span};

/// Returns the numbers of segments that were sent at the same time, after the first RTTs; `per_ms`:
/// rate of the link in segments per millisecond (8 Mbit/s each).
fn bursts(offload: OffloadRules, pacing: bool, per_ms: u64) -> Vec<usize> {
    let mut net = Net::established(TcpConfig {
        ack_every: 2,
        offload,
        rules: CongestionRules { pacing, ..CongestionRules::default() },
        recovery: RecoveryRules { rack: RackRule::Linux, ..RecoveryRules::default() },
        max_window: 40 * per_ms * SEGMENT,
        ..settings()
    });
    net.wires.rate = Some(Rate(8 * (SEGMENT + 52) * 1000 * per_ms));
    net.write_segments(400 * per_ms);
    net.run_to(2_000);
    assert_eq!(net.end(Side::Server).received(), 400 * per_ms * SEGMENT);
    let sent = net.wires.log.iter().filter(|s| s.is_data());
    let times: Vec<u64> = sent.map(|s| s.at.0).filter(|t| *t > 120_000_000_000).collect();
    let runs = times.chunk_by(|a, b| a == b);
    runs.map(<[u64]>::len).collect()
}

fn on() -> OffloadRules {
    OffloadRules { on: true, ..OffloadRules::default() }
}

fn mean(bursts: &[usize]) -> f64 {
    bursts.iter().sum::<usize>() as f64 / bursts.len() as f64
}

#[test]
fn small_bursts_wait_for_a_milliseconds_worth() {
    // The link carries eight segments per millisecond, and the pacing rate is 1.2 times that:
    // bursts of nine.
    let without = bursts(OffloadRules::default(), false, 8);
    assert!(mean(&without) < 2.5, "{}", mean(&without));
    let with = bursts(on(), false, 8);
    assert!((6.0..=10.0).contains(&mean(&with)), "{} {with:?}", mean(&with));
    // With one segment per millisecond, a millisecond has passed since the last burst at the second
    // ACK.
    let slow = bursts(on(), false, 1);
    assert!(mean(&slow) < 3.5, "{}", mean(&slow));
}

#[test]
fn a_paced_sender_sends_the_same_bytes_in_fewer_pieces() {
    let without = bursts(OffloadRules::default(), true, 2);
    assert!(without.iter().all(|n| *n == 1));
    let with = bursts(on(), true, 2);
    // In slow start the rate is twice the window per RTT: about three segments in a millisecond.
    assert!(with.iter().all(|n| *n <= 4) && mean(&with) > 1.8, "{with:?}");
    // Bursts of four segments leave no room for more.
    let four = bursts(OffloadRules { min_segments: 4, ..on() }, true, 2);
    assert!(four.iter().filter(|n| **n == 4).count() * 10 > four.len() * 9, "{four:?}");
}

#[test]
fn what_is_left_of_a_stream_leaves_in_time() {
    // The application writes a few segments at a time, each time while the previous ones are in
    // flight.
    let mut net = Net::established(TcpConfig {
        offload: on(),
        recovery: RecoveryRules { rack: RackRule::Linux, ..RecoveryRules::default() },
        ..settings()
    });
    for ms in 0..50 {
        net.run_to(20 + 3 * ms);
        net.write_segments(1 + ms % 5);
    }
    net.run_to(400);
    let written = net.end(Side::Client).written();
    assert_eq!(net.end(Side::Server).received(), written);
    assert_eq!(net.stack.totals().timeouts, 0);
    assert!(net.now().since(net.wires.log.last().unwrap().at) > Span::from_ms(100));
}
