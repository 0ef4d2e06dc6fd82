//! Tests of retransmission timeouts: their times, the backoff, and the loss phase after them.

use super::super::config::TcpConfig;
use super::super::rules::TimerRules;
use super::super::states::RecoveryPhase;
use super::super::{Notice, RecoveryEvent, TimeoutCause};
use super::net::{Fate, Net, SEGMENT, assert_dialogue, settings};
use eastwest_types::{Rate, Side, Span};

#[test]
fn the_timeout_doubles_up_to_its_maximum() {
    let mut net = Net::established(TcpConfig { max_rto: Span::from_ms(1000), ..settings() });
    net.lose(&[1, 2, 3, 4, 5]);
    net.write(Side::Client, 10);
    net.run_to(6000);
    assert_dialogue(
        &net,
        Some(Side::Client),
        "20 > 1:11 ack 1
         220 > 1:11* ack 1
         620 > 1:11* ack 1
         1420 > 1:11* ack 1
         2420 > 1:11* ack 1
         3420 > 1:11* ack 1",
    );
    assert_eq!(net.stack.totals().timeouts, 5);
    // The ACK has given an RTT sample, which ends the backoff.
    assert_eq!(net.end(Side::Client).rto(net.stack.config()), Span::from_ms(200));
}

#[test]
fn without_timestamps_the_doubled_timeout_stays_until_something_new_is_timed() {
    // Karn's algorithm (RFC 6298, section 3 and 5.7) takes no sample from a retransmitted segment.
    let mut net = Net::established(TcpConfig { timestamps: false, ..settings() });
    let rto = |net: &Net| net.end(Side::Client).rto(net.stack.config());
    net.lose(&[1, 2]);
    net.write(Side::Client, 10);
    net.run_to(1000);
    assert_eq!(net.end(Side::Client).outstanding(), 0);
    assert_eq!(rto(&net), Span::from_ms(800));
    net.write(Side::Client, 10);
    net.run_to(1100);
    assert_eq!(rto(&net), Span::from_ms(200));
    assert_eq!(net.end(Side::Client).timers.rtt.srtt(), Some(Span::from_ms(10)));
}

#[test]
fn as_in_ns_2_any_new_ack_can_end_the_doubling() {
    let timers = TimerRules { ack_ends_backoff: true, ..TimerRules::default() };
    let mut net = Net::established(TcpConfig { timestamps: false, timers, ..settings() });
    net.lose(&[1, 2]);
    net.write(Side::Client, 10);
    net.run_to(1000);
    assert_eq!(net.end(Side::Client).outstanding(), 0);
    assert_eq!(net.end(Side::Client).rto(net.stack.config()), Span::from_ms(200));
}

#[test]
fn after_a_timeout_all_is_sent_again_in_slow_start() {
    for sack in [true, false] {
        let mut net = Net::established(TcpConfig { sack, ..settings() });
        net.lose(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        net.write_segments(20);
        net.run_to(221);
        // The threshold is half of the ten outstanding segments (RFC 5681, equation 4).
        assert_eq!(net.end(Side::Client).ssthresh(), 5 * SEGMENT);
        assert_eq!(net.end(Side::Client).cwnd(), SEGMENT);
        net.wires.log.drain(..10);
        net.run_to(255);
        // Slow start sends 1, 2 and 4 segments, then one more for each ACK up to the threshold of
        // 5.
        assert_dialogue(
            &net,
            Some(Side::Client),
            "220 > 1:1001* ack 1
             230 > 1001:2001* ack 1
             230 > 2001:3001* ack 1
             240 > 3001:4001* ack 1
             240 > 4001:5001* ack 1
             240 > 5001:6001* ack 1
             240 > 6001:7001* ack 1
             250 > 7001:8001* ack 1
             250 > 8001:9001* ack 1
             250 > 9001:10001* ack 1
             250 > 10001:11001 ack 1
             250 > 11001:12001 ack 1",
        );
        net.run_to(1000);
        assert_eq!(net.end(Side::Server).received(), 20 * SEGMENT);
        let totals = net.stack.totals();
        assert_eq!((totals.timeouts, totals.retransmits, totals.fast_recoveries), (1, 10, 0));
    }
}

#[test]
fn what_was_sacked_is_not_sent_again_after_a_timeout() {
    // Two SACKs are too few for a fast retransmit; limited transmit is off and the stream ends.
    let mut net = Net::established(TcpConfig { limited_transmit: false, ..settings() });
    net.lose(&[1, 3, 4, 5, 6, 7, 8, 9]);
    net.write_segments(10);
    net.run_to(1000);
    let again: Vec<u64> =
        net.wires.log.iter().filter(|s| s.is_again()).map(|s| s.packet.seq / SEGMENT + 1).collect();
    assert_eq!(again, [1, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(net.stack.totals().timeouts, 1);
}

#[test]
fn a_segment_that_times_out_again_does_not_lower_the_threshold_again() {
    // The threshold is constant from the second timeout of a segment on (RFC 5681, 3.1).
    let mut net = Net::established(settings());
    net.lose(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    net.write_segments(10);
    net.run_to(700);
    assert_eq!(net.stack.totals().timeouts, 2);
    assert_eq!(net.end(Side::Client).ssthresh(), 5 * SEGMENT);
}

#[test]
fn a_timeout_of_another_segment_lowers_the_threshold_without_timestamps_too() {
    // Segment 1 is repaired at 220 ms; segment 2, retransmitted at 230 ms, is lost again: nine are
    // outstanding.
    for timestamps in [true, false] {
        let mut net = Net::established(TcpConfig { timestamps, ..settings() });
        net.lose(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13]);
        net.write_segments(10);
        net.run_to(2000);
        assert_eq!(net.stack.totals().timeouts, 2);
        assert_eq!(net.end(Side::Client).ssthresh(), 4 * SEGMENT + SEGMENT / 2);
        assert_eq!(net.end(Side::Server).received(), 10 * SEGMENT);
    }
}

#[test]
fn a_lost_retransmission_is_left_to_the_timer_and_leaves_the_threshold() {
    let mut net = Net::established(settings());
    net.wires.rate = Some(Rate(8 * (SEGMENT + 52) * 1000));
    net.lose(&[1, 13]);
    net.write_segments(40);
    net.run_to(40);
    assert_eq!(net.end(Side::Client).recovery.phase, RecoveryPhase::Recovery);
    net.run_to(500);
    let again: Vec<u64> =
        net.wires.log.iter().filter(|s| s.is_again()).map(|s| s.at.0 / 1_000_000_000).collect();
    // The timer restarts at 34 ms, when the first segment is retransmitted, and expires 200 ms
    // later.
    assert_eq!(again, [34, 234]);
    // At the timeout 17 or more segments are outstanding. Half of them must not raise the threshold
    // of 5.
    assert_eq!(net.end(Side::Client).ssthresh(), 5 * SEGMENT);
    assert_eq!(net.end(Side::Server).received(), 40 * SEGMENT);
}

#[test]
fn the_timer_starts_anew_with_every_ack_that_moves_on() {
    // An ACK of new data restarts the timer (RFC 6298, 5.3).
    let mut net = Net::established(settings());
    net.lose(&[2]);
    net.write(Side::Client, 100);
    net.write(Side::Client, 100);
    net.run_to(500);
    let again: Vec<u64> =
        net.wires.log.iter().filter(|s| s.is_again()).map(|s| s.at.0 / 1_000_000_000).collect();
    assert_eq!(again, [230]);
}

#[test]
fn timeouts_are_rounded_up_to_the_granularity() {
    let coarse =
        TcpConfig { min_rto: Span::from_ms(1), granularity: Span::from_ms(7), ..settings() };
    let mut net = Net::established(coarse);
    net.lose(&[1]);
    net.write(Side::Client, 100);
    net.run_to(500);
    // After one sample of 10 ms the timeout is 10 + 4·5 = 30 ms, rounded up to 35 ms.
    assert_eq!(net.wires.log[1].at.0, 55_000_000_000);
    assert!(net.wires.log[1].is_again());
}

#[test]
fn a_spike_of_delay_is_counted_as_a_spurious_timeout() {
    let mut net = Net::established(settings());
    net.wires.fate = Box::new(|s| match (s.from, s.nth) {
        (Side::Client, 1) => Fate::Late(Span::from_ms(300)),
        _ => Fate::Deliver,
    });
    net.write(Side::Client, 100);
    net.run_to(210);
    assert_eq!(net.stack.totals().spurious_timeouts, 0);
    net.run_to(1000);
    // The ACK of the retransmission at 220 ms arrives first, so the timeout is not known to be
    // spurious.
    assert_eq!(net.stack.totals().spurious_timeouts, 0);

    let mut net = Net::established(settings());
    net.wires.fate = Box::new(|s| match (s.from, s.nth) {
        // Both packets leave the queue at 455 ms.
        (Side::Client, 1) => Fate::Late(Span::from_ms(430)),
        (Side::Client, 2) => Fate::Late(Span::from_ms(230)),
        _ => Fate::Deliver,
    });
    net.write(Side::Client, 100);
    net.run_to(2000);
    // Original and retransmission were late in a queue; the ACK echoes the timestamp of the
    // original.
    let totals = net.stack.totals();
    assert_eq!((totals.timeouts, totals.spurious_timeouts), (1, 1));
    // The ACK that ends the loss phase shows that the timeout was spurious.
    assert_eq!(
        net.repairs(Side::Client),
        [
            (220, RecoveryEvent::Timeout(TimeoutCause::Request), 1, 101),
            (460, RecoveryEvent::Spurious, 1, 101),
            (460, RecoveryEvent::Recovered, 1, 101)
        ]
    );
}

#[test]
fn a_second_timeout_does_not_make_a_true_one_spurious() {
    // The original is lost, and its retransmission is only late: the ACK arrives after the second
    // timeout.
    let mut net = Net::established(settings());
    net.wires.fate = Box::new(|s| match (s.from, s.nth) {
        (Side::Client, 1) => Fate::Drop,
        (Side::Client, 2) => Fate::Late(Span::from_ms(500)),
        _ => Fate::Deliver,
    });
    net.write(Side::Client, 100);
    net.run_to(3000);
    let totals = net.stack.totals();
    assert_eq!((totals.timeouts, totals.spurious_timeouts), (2, 0));
}

#[test]
fn a_connection_that_times_out_too_often_is_given_up() {
    let mut net = Net::established(TcpConfig { max_retries: 2, ..settings() });
    net.wires.fate = Box::new(|_| Fate::Drop);
    net.write(Side::Client, 100);
    net.run_to(60_000);
    assert_dialogue(
        &net,
        None,
        "20 > 1:101 ack 1
         220 > 1:101* ack 1
         620 > 1:101* ack 1",
    );
    assert_eq!(net.told(Side::Client), [(1420, Notice::Failed)]);
    let again = TimeoutCause::LostRetransmission;
    let timeouts = [(220, TimeoutCause::Request), (620, again), (1420, again)]
        .map(|(ms, cause)| (ms, RecoveryEvent::Timeout(cause), 1, 101));
    assert_eq!(net.repairs(Side::Client), timeouts);
    assert_eq!(net.stack.totals().timeouts, 3);
}

#[test]
fn timeouts_with_progress_between_them_never_give_a_connection_up() {
    // Every original is lost and every retransmission arrives, so no two timeouts are consecutive.
    let config = TcpConfig { max_retries: 1, timestamps: false, ..settings() };
    let mut net = Net::established(config);
    net.wires.fate = Box::new(|s| match s.from {
        Side::Client if s.is_data() && !s.is_again() => Fate::Drop,
        _ => Fate::Deliver,
    });
    net.write_segments(30);
    net.run_to(600_000);
    assert_eq!(net.told(Side::Client), []);
    assert_eq!(net.end(Side::Server).received(), 30 * SEGMENT);
}
