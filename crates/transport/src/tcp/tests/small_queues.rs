//! Tests of TCP small queues. The client's link carries a segment per millisecond, with 5 ms of
//! delay each way. Packets that cannot be sent at once wait in the client's NIC.

use super::super::config::TcpConfig;
use super::super::offload::OffloadRules;
use super::super::rules::{PrrRule, RackRule, RecoveryRules};
use super::net::{Net, SEGMENT, settings};
use crate::congestion::rules::CongestionRules;
use crate::congestion::small_queue::SmallQueueRules;
use eastwest_types::{Rate, Side, Span, Time};

fn on() -> SmallQueueRules {
    SmallQueueRules { on: true, ..SmallQueueRules::default() }
}

fn net_with(config: TcpConfig) -> Net {
    let mut net = Net::established(TcpConfig { max_window: 1 << 20, ..config });
    net.wires.rate = Some(Rate(8 * (SEGMENT + 52) * 1000));
    net
}

/// Returns, for every data packet of the client, the number of packets that were in the NIC when it
/// was handed over.
fn waiting(net: &Net) -> Vec<usize> {
    let mut leave: Vec<Time> = Vec::new();
    let data = net.wires.log.iter().filter(|s| s.from == Side::Client && s.is_data());
    data.map(|s| {
        let before = leave.iter().filter(|t| **t > s.at).count();
        let start = leave.last().copied().unwrap_or(s.at).max(s.at);
        leave.push(start + Span::from_ms(1));
        before
    })
    .collect()
}

#[test]
fn little_waits_in_the_card_and_the_link_stays_busy() {
    // In slow start the rate is twice the window per RTT, so a millisecond's worth is a little more
    // than two segments.
    for (rules, most) in [(SmallQueueRules::default(), 100), (on(), 2)] {
        let mut net = net_with(TcpConfig { small_queues: rules, ..settings() });
        net.write_segments(400);
        net.run_to(20 + 400 + 12);
        // The transfer needs 10 ms for both directions, and the link is never idle.
        assert_eq!(net.end(Side::Server).received(), 400 * SEGMENT);
        let waiting = waiting(&net);
        let longest = *waiting.iter().max().expect("data");
        match rules.on {
            true => assert_eq!(longest, most),
            false => assert!(longest > most, "{longest}"),
        }
        assert_eq!(net.end(Side::Client).counters().retransmits, 0);
    }
}

#[test]
fn a_window_that_the_card_keeps_from_filling_does_not_grow() {
    let mut net = net_with(TcpConfig { small_queues: on(), ..settings() });
    net.write_segments(2000);
    net.run_to(1500);
    // Twelve segments are in flight, two of them in the NIC. Slow start stops at twice this number.
    let cwnd = net.end(Side::Client).cwnd() / SEGMENT;
    assert!((20..=30).contains(&cwnd), "{cwnd}");
}

#[test]
fn with_offload_the_next_burst_follows_when_little_more_than_one_is_left() {
    let mut net = net_with(TcpConfig {
        small_queues: on(),
        offload: OffloadRules { on: true, min_segments: 20, window_divisor: 3 },
        recovery: RecoveryRules { rack: RackRule::Linux, ..RecoveryRules::default() },
        ..settings()
    });
    net.write_segments(3000);
    net.run_to(2500);
    let late = waiting(&net).split_off(1000);
    // The limit is two bursts of 20,896 B, in segments of 1,896 B each: 22 may wait when 20 more
    // are handed over.
    assert_eq!((late.iter().min(), late.iter().max()), (Some(&22), Some(&41)));
}

#[test]
fn what_is_lost_goes_before_what_is_new_and_everything_arrives() {
    for rack in [RackRule::Off, RackRule::Linux] {
        for offload in [false, true] {
            let mut net = net_with(TcpConfig {
                small_queues: on(),
                offload: OffloadRules { on: offload, ..OffloadRules::default() },
                recovery: RecoveryRules { rack, prr: PrrRule::Linux, ..RecoveryRules::default() },
                ..settings()
            });
            net.lose(&[40, 41, 45, 60]);
            net.write_segments(300);
            net.run_to(600);
            assert_eq!(net.end(Side::Server).received(), 300 * SEGMENT);
            assert_eq!(net.end(Side::Client).counters().timeouts, 0);
            let again = net.wires.log.iter().filter(|s| s.is_again()).count();
            assert_eq!(again, 4, "rack {rack:?}, offload {offload}");
        }
    }
}

#[test]
fn a_paced_sender_waits_for_whichever_comes_later() {
    let mut net = net_with(TcpConfig {
        small_queues: on(),
        rules: CongestionRules { pacing: true, ..CongestionRules::default() },
        ..settings()
    });
    net.write_segments(300);
    net.run_to(1000);
    assert_eq!(net.end(Side::Server).received(), 300 * SEGMENT);
    assert_eq!(waiting(&net).iter().max(), Some(&2));
}

#[test]
fn nothing_is_kept_of_a_connection_that_has_nothing_under_way() {
    let mut net = net_with(TcpConfig { small_queues: on(), ..settings() });
    net.write_segments(50);
    net.run_to(40);
    let queue = |net: &Net| {
        let control = net.end(Side::Client).control.as_ref().expect("it has sent");
        control.small_queue.is_some()
    };
    assert!(queue(&net));
    net.run_to(200);
    assert!(!queue(&net));
}
