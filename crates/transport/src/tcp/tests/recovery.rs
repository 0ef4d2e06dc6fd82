//! Tests of fast retransmit and fast recovery. The client's link carries a segment per millisecond,
//! so that each ACK arrives at a different time: the ACK of the n-th segment sent at 20 ms arrives
//! at 30 + n ms.

use super::super::RecoveryEvent;
use super::super::config::TcpConfig;
use super::super::rules::RecoveryRules;
use super::super::states::RecoveryPhase;
use super::net::{Fate, Net, SEGMENT, assert_dialogue, settings};
use eastwest_types::{Rate, Side, Span, Time};

/// Writes `segments` segments at the client and loses those numbered in `lost`. The log begins
/// after the initial window.
fn after_loss(config: TcpConfig, segments: u64, lost: &'static [usize]) -> Net {
    let mut net = Net::established(config);
    net.wires.rate = Some(Rate(8 * (SEGMENT + 52) * 1000));
    net.lose(lost);
    net.write_segments(segments);
    assert_eq!(net.wires.log.len(), 10);
    net.wires.log.clear();
    net
}

/// Returns the slow-start threshold in segments after everything is acknowledged.
fn finish(net: &mut Net, segments: u64) -> u64 {
    net.run_to(2000);
    assert_eq!(net.end(Side::Server).received(), segments * SEGMENT);
    assert_eq!(net.end(Side::Client).recovery.phase, RecoveryPhase::Open);
    assert_eq!(net.end(Side::Client).pipe(net.stack.config()), 0);
    net.end(Side::Client).ssthresh() / SEGMENT
}

#[test]
fn the_third_duplicate_sends_the_lost_segment_at_once() {
    // The ACKs of segments 1 and 2 at 31 and 32 ms release two segments each, so that 12 are
    // outstanding. Duplicate ACKs arrive at 34, 35 and 36 ms, and there is no new data to send.
    for sack in [true, false] {
        let mut net = after_loss(TcpConfig { sack, ..settings() }, 14, &[3]);
        assert_eq!(finish(&mut net, 14), 6);
        assert_dialogue(
            &net,
            Some(Side::Client),
            "31 > 10001:11001 ack 1
             31 > 11001:12001 ack 1
             32 > 12001:13001 ack 1
             32 > 13001:14001 ack 1
             36 > 2001:3001* ack 1",
        );
        let totals = net.stack.totals();
        assert_eq!((totals.retransmits, totals.fast_recoveries, totals.timeouts), (1, 1, 0));
        // Each step has the outstanding positions, or the positions that the last ACK of the
        // recovery acknowledged.
        let steps = [
            (36, RecoveryEvent::Recovery, 2001, 14001),
            (47, RecoveryEvent::Recovered, 2001, 14001),
        ];
        assert_eq!(net.repairs(Side::Client), steps);
    }
}

#[test]
fn limited_transmit_sends_one_new_segment_for_each_of_the_first_two_duplicates() {
    for sack in [true, false] {
        let mut net = after_loss(TcpConfig { sack, ..settings() }, 14, &[1]);
        net.run_to(36);
        assert_dialogue(
            &net,
            Some(Side::Client),
            "32 > 10001:11001 ack 1
             33 > 11001:12001 ack 1
             34 > 1:1001* ack 1",
        );
        // The two segments of limited transmit do not count for the threshold (RFC 5681, 3.2 step
        // 2).
        assert_eq!(finish(&mut net, 14), 5);

        let without = TcpConfig { sack, limited_transmit: false, ..settings() };
        let mut net = after_loss(without, 14, &[1]);
        net.run_to(36);
        assert_dialogue(&net, Some(Side::Client), "34 > 1:1001* ack 1");
        assert_eq!(finish(&mut net, 14), 5);
    }
}

#[test]
fn recovery_with_sack_fills_the_holes_in_order_as_the_pipe_allows() {
    // RFC 6675: 12 segments are outstanding at the third duplicate ACK, and the window is 5. There
    // are 9 in flight then, one less with each SACK (none at 36 ms, since segment 6 is lost), so
    // the second hole is retransmitted at 39 ms.
    let mut net = after_loss(settings(), 18, &[1, 3, 6]);
    assert_eq!(finish(&mut net, 18), 5);
    assert_dialogue(
        &net,
        Some(Side::Client),
        "32 > 10001:11001 ack 1
         34 > 11001:12001 ack 1
         35 > 1:1001* ack 1
         39 > 2001:3001* ack 1
         40 > 5001:6001* ack 1
         43 > 12001:13001 ack 1
         45 > 13001:14001 ack 1
         46 > 14001:15001 ack 1
         50 > 15001:16001 ack 1
         51 > 16001:17001 ack 1
         54 > 17001:18001 ack 1",
    );
    assert_eq!(net.stack.totals().fast_recoveries, 1);
}

#[test]
fn recovery_without_sack_repairs_one_hole_in_each_round_trip() {
    // RFC 6582: the window is 5 plus one segment for each duplicate ACK, so the first new segment
    // is sent at the eighth. The ACK at 46 ms is a partial ACK of two segments. It releases the
    // next hole and 5 + 10 − 2 + 1 − 13 = 1 new segment.
    let mut net = after_loss(TcpConfig { sack: false, ..settings() }, 18, &[1, 3]);
    assert_eq!(finish(&mut net, 18), 5);
    assert_dialogue(
        &net,
        Some(Side::Client),
        "32 > 10001:11001 ack 1
         34 > 11001:12001 ack 1
         35 > 1:1001* ack 1
         40 > 12001:13001 ack 1
         43 > 13001:14001 ack 1
         45 > 14001:15001 ack 1
         46 > 2001:3001* ack 1
         46 > 15001:16001 ack 1
         51 > 16001:17001 ack 1
         54 > 17001:18001 ack 1",
    );
    let totals = net.stack.totals();
    assert_eq!((totals.retransmits, totals.fast_recoveries, totals.timeouts), (2, 1, 0));
}

#[test]
fn suspicion_is_acted_on_where_nothing_better_can_be_sent() {
    // At the end of a stream, too few segments follow to prove a loss: one is SACKed above segment
    // 8 (NextSeg rule 3), none above segment 10 (rule 4). Both are retransmitted without a timeout.
    let mut net = after_loss(settings(), 10, &[1, 8, 10]);
    assert_eq!(finish(&mut net, 10), 5);
    assert_dialogue(
        &net,
        Some(Side::Client),
        "34 > 1:1001* ack 1
         39 > 7001:8001* ack 1
         45 > 9001:10001* ack 1",
    );
    assert_eq!(net.stack.totals().timeouts, 0);
}

#[test]
fn the_end_is_sent_again_on_suspicion_only_once() {
    let mut net = after_loss(settings(), 10, &[1, 10, 12]);
    assert_eq!(finish(&mut net, 10), 2);
    let ends = net.wires.log.iter().filter(|s| s.packet.seq == 9001).count();
    assert_eq!((ends, net.stack.totals().timeouts), (2, 1), "then it is the timer's turn");
}

#[test]
fn a_loss_above_the_last_recovery_cuts_the_window_again() {
    // The 14th packet is new data, sent in the recovery from the loss of the first.
    let mut net = after_loss(settings(), 40, &[1, 14]);
    finish(&mut net, 40);
    let totals = net.stack.totals();
    assert_eq!((totals.retransmits, totals.fast_recoveries, totals.timeouts), (2, 2, 0));
}

#[test]
fn the_pipe_keeps_counting_what_is_under_way_when_all_sacks_are_behind_it() {
    // Segment 10 is the last of its window and is lost as well. After the ACK of the first
    // retransmission no data is SACKed, while data sent in the recovery is still in flight.
    let mut net = after_loss(settings(), 60, &[1, 10]);
    for ms in 35..120 {
        net.run_to(ms);
        let e = net.end(Side::Client);
        if e.recovery.phase == RecoveryPhase::Recovery && ms > 44 {
            assert!(e.pipe(net.stack.config()) >= 4 * SEGMENT, "{ms} ms: a burst is coming");
        }
    }
    finish(&mut net, 60);
    assert_eq!(net.stack.totals().timeouts, 0);
}

#[test]
fn what_comes_late_by_three_segments_is_taken_for_lost() {
    let mut net = Net::established(settings());
    net.wires.rate = Some(Rate(8 * (SEGMENT + 52) * 1000));
    net.wires.fate = Box::new(|s| match (s.from, s.nth) {
        (Side::Client, 2) => Fate::Late(Span::from_us(2500)),
        (Side::Client, 6) => Fate::Late(Span::from_us(3500)),
        _ => Fate::Deliver,
    });
    net.write_segments(30);
    net.run_to(1000);
    let again: Vec<u64> =
        net.wires.log.iter().filter(|s| s.is_again()).map(|s| s.packet.seq).collect();
    assert_eq!(again, [5001], "two segments overtaking are no loss, three are");
    assert_eq!(net.end(Side::Server).received(), 30 * SEGMENT);
}

#[test]
fn duplicates_of_what_was_sent_again_needlessly_start_no_recovery() {
    // The ACKs of a window are late. The timeout and the following slow start retransmit segments
    // that have arrived. Their duplicate ACKs must not count as a loss of later data (RFC 6582, 3.2
    // step 2).
    let mut net = Net::established(TcpConfig { sack: false, ..settings() });
    let opens = Time::ZERO + Span::from_ms(320);
    net.wires.fate = Box::new(move |s| match s.from {
        Side::Server => Fate::Late(opens.since(s.at)),
        Side::Client => Fate::Deliver,
    });
    net.write_segments(30);
    net.run_to(2000);
    let needless = net.wires.log.iter().filter(|s| s.is_again()).count();
    assert!(needless > 3, "{needless} sent again");
    let totals = net.stack.totals();
    assert_eq!((totals.timeouts, totals.fast_recoveries), (1, 0));
    assert_eq!(net.end(Side::Server).received(), 30 * SEGMENT);
}

#[test]
fn a_partial_ack_sends_the_next_hole_at_once() {
    // Seven of ten segments are lost, and five duplicate ACKs arrive. The five segments that still
    // count as in flight are lost as well, so the window alone would wait for the timer (RFC 6582,
    // 3.2 step 3).
    let lost = &[1, 2, 3, 4, 5, 6, 7];
    let mut net = after_loss(TcpConfig { sack: false, ..settings() }, 12, lost);
    net.run_to(200);
    let again: Vec<u64> =
        net.wires.log.iter().filter(|s| s.is_again()).map(|s| s.packet.seq / SEGMENT + 1).collect();
    assert_eq!(again, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(finish(&mut net, 12), 5);
    assert_eq!(net.stack.totals().timeouts, 0);
}

#[test]
fn in_reno_a_partial_ack_ends_the_recovery_and_the_next_hole_waits_for_the_timer() {
    let recovery = RecoveryRules { partial_acks: false, ..RecoveryRules::default() };
    let reno = TcpConfig { sack: false, recovery, ..settings() };
    let mut net = after_loss(reno, 12, &[1, 3]);
    net.run_to(100);
    let again: Vec<u64> =
        net.wires.log.iter().filter(|s| s.is_again()).map(|s| s.packet.seq / SEGMENT + 1).collect();
    assert_eq!(again, [1]);
    assert_eq!(net.end(Side::Client).recovery.phase, RecoveryPhase::Open);
    finish(&mut net, 12);
    assert_eq!((net.stack.totals().fast_recoveries, net.stack.totals().timeouts), (1, 1));
}

#[test]
fn in_reno_duplicates_below_the_last_recovery_begin_another() {
    // Duplicate ACKs for segments 2 to 5 and 7 to 10 arrive, so that 11, 12 and 13 are sent. The
    // retransmission of 1 causes an ACK of 6, which ends the recovery, and these three cause
    // duplicate ACKs.
    let recovery = RecoveryRules { partial_acks: false, ..RecoveryRules::default() };
    let reno = TcpConfig { sack: false, limited_transmit: false, recovery, ..settings() };
    let mut net = after_loss(reno, 30, &[1, 6]);
    net.run_to(60);
    assert_dialogue(
        &net,
        Some(Side::Client),
        "34 > 1:1001* ack 1
         38 > 10001:11001 ack 1
         39 > 11001:12001 ack 1
         40 > 12001:13001 ack 1
         51 > 5001:6001* ack 1",
    );
    let steps = [
        (34, RecoveryEvent::Recovery, 1, 10001),
        (45, RecoveryEvent::Recovered, 1, 5001),
        (51, RecoveryEvent::Recovery, 5001, 13001),
    ];
    assert_eq!(net.repairs(Side::Client)[..3], steps);
    finish(&mut net, 30);
    assert_eq!((net.stack.totals().fast_recoveries, net.stack.totals().timeouts), (2, 0));
}

#[test]
fn in_reno_duplicates_after_a_timeout_inflate_the_window() {
    // The timeout at 248 ms comes after a recovery. Segments 5, 6, 9 (late), 10, 11 and 12, sent at
    // 270 and 271 ms, cause five duplicate ACKs, of which the fourth and the fifth release a
    // segment each. With the ACK of 14000 the window is reduced to two segments, the threshold.
    let recovery = RecoveryRules { partial_acks: false, ..RecoveryRules::default() };
    let reno = TcpConfig { sack: false, limited_transmit: false, recovery, ..settings() };
    let mut net = Net::established(reno);
    net.wires.rate = Some(Rate(8 * (SEGMENT + 52) * 1000));
    net.wires.fate = Box::new(|s| match (s.from, s.packet.seq / SEGMENT + 1, s.is_again()) {
        (Side::Client, 1 | 2 | 3 | 4 | 9, false) => Fate::Drop,
        (Side::Client, 9, true) => Fate::Late(Span::from_ms(20)),
        _ => Fate::Deliver,
    });
    net.write_segments(60);
    net.run_to(271);
    net.wires.log.clear();
    net.run_to(306);
    assert_dialogue(
        &net,
        Some(Side::Client),
        "285 > 12001:13001 ack 1
         286 > 13001:14001 ack 1
         296 > 14001:15001 ack 1
         297 > 15001:16001 ack 1
         303 > 16001:17001 ack 1",
    );
    finish(&mut net, 60);
    assert_eq!((net.stack.totals().fast_recoveries, net.stack.totals().timeouts), (1, 1));
}

#[test]
fn what_one_recovery_has_sent_again_the_next_does_not_repeat() {
    // Segment 13 is new data in the recovery from the losses of 1 and 8. It is lost, found lost and
    // retransmitted before this recovery ends, since the retransmission of 8 arrives late.
    let mut net = Net::established(settings());
    net.wires.rate = Some(Rate(8 * (SEGMENT + 52) * 1000));
    net.wires.fate = Box::new(|s| match (s.from, s.packet.seq / SEGMENT + 1, s.is_again()) {
        (Side::Client, 1 | 8 | 13, false) => Fate::Drop,
        (Side::Client, 8, true) => Fate::Late(Span::from_ms(9)),
        _ => Fate::Deliver,
    });
    net.write_segments(60);
    finish(&mut net, 60);
    let again: Vec<u64> =
        net.wires.log.iter().filter(|s| s.is_again()).map(|s| s.packet.seq / SEGMENT + 1).collect();
    assert_eq!(again, [1, 8, 13]);
    let totals = net.stack.totals();
    assert_eq!((totals.fast_recoveries, totals.timeouts), (2, 0));
}
