//! Tests of RACK and tail loss probes. Unless stated otherwise, the link carries a segment per
//! millisecond, so that the ACK of the n-th segment sent at 20 ms arrives at 30 + n ms.

use super::super::config::TcpConfig;
use super::super::rules::{PrrRule, RackRule, RecoveryRules};
use super::super::states::RecoveryPhase;
use super::net::{Fate, Net, SEGMENT, assert_dialogue, settings};
use eastwest_engine::random::Stream;
use eastwest_types::{Rate, Side, Span};

fn rules() -> RecoveryRules {
    RecoveryRules {
        prr: PrrRule::Linux,
        rack: RackRule::Linux,
        probes: true,
        dsack: true,
        ..RecoveryRules::default()
    }
}

fn rack() -> TcpConfig {
    TcpConfig { recovery: rules(), ..settings() }
}

/// Returns a test network with a connection whose link carries a segment per millisecond.
fn paced(config: TcpConfig) -> Net {
    let mut net = Net::established(config);
    net.wires.rate = Some(Rate(8 * (SEGMENT + 52) * 1000));
    net
}

/// Returns the client's retransmissions as (milliseconds, number of the segment).
fn again(net: &Net) -> Vec<(u64, u64)> {
    let sent = net.wires.log.iter().filter(|s| s.is_again() && s.from == Side::Client);
    sent.map(|s| (s.at.0 / 1_000_000_000, s.packet.seq / SEGMENT + 1)).collect()
}

#[test]
fn the_third_sacked_segment_starts_the_recovery_at_once() {
    let mut net = paced(rack());
    net.lose(&[3]);
    net.write_segments(30);
    net.run_to(1000);
    assert_eq!(again(&net), [(36, 3)]);
    let totals = net.stack.totals();
    assert_eq!((totals.fast_recoveries, totals.timeouts, totals.probes), (1, 0, 0));
}

#[test]
fn with_fewer_the_loss_is_judged_when_the_window_for_reordering_has_passed() {
    // Segment 9 of ten is lost, and the SACK of segment 10 arrives at 40 ms. Both were sent at 20
    // ms, so the RTT is 20 ms. The reordering window is a quarter of the smallest RTT, 2.5 ms; the
    // timer adds 2 ms.
    let mut net = paced(rack());
    net.lose(&[9]);
    net.write_segments(10);
    net.run_to(1000);
    assert_dialogue(&net, Some(Side::Client), &{
        let first: Vec<String> =
            (0..10).map(|i| format!("20 > {}:{} ack 1", i * 1000 + 1, i * 1000 + 1001)).collect();
        format!("{}\n44.5 > 8001:9001* ack 1", first.join("\n"))
    });
    assert_eq!(net.stack.totals().timeouts, 0);
}

#[test]
fn what_overtakes_by_less_than_the_window_is_not_sent_again() {
    // The smallest RTT is 10 ms. Two segments are 2 ms late, and each is overtaken by two others.
    let mut net = paced(rack());
    net.wires.fate = Box::new(|s| match (s.from, s.nth) {
        (Side::Client, 3 | 12) => Fate::Late(Span::from_us(2_200)),
        _ => Fate::Deliver,
    });
    net.write_segments(40);
    net.run_to(1000);
    assert_eq!(again(&net), []);
    assert_eq!(net.end(Side::Server).received(), 40 * SEGMENT);
}

/// Delays segments 5 to 7, and three single segments later, so that each arrives four places later.
/// Returns the number of retransmissions and the degree of reordering.
fn late_by_four(recovery: RecoveryRules) -> (usize, u32) {
    let mut net = paced(TcpConfig { recovery, ..settings() });
    net.wires.fate = Box::new(|s| match (s.from, s.packet.seq / SEGMENT) {
        (Side::Client, 4..=6 | 24 | 44 | 64) => Fate::Late(Span::from_us(4_200)),
        _ => Fate::Deliver,
    });
    net.write_segments(80);
    net.run_to(2000);
    assert_eq!(net.end(Side::Server).received(), 80 * SEGMENT);
    (again(&net).len(), net.stack.info(net.client).reordering)
}

#[test]
fn the_degree_of_reordering_grows_with_what_comes_late() {
    // Two segments are SACKed above the first hole, which begins five segments below their end.
    // Four are SACKed above each later hole.
    let plain = RecoveryRules::default();
    assert_eq!(late_by_four(plain.clone()), (3, 3));
    let adapting = RecoveryRules { adapt_reordering: true, ..plain.clone() };
    assert_eq!(late_by_four(adapting), (0, 5));
    assert_eq!(late_by_four(RecoveryRules { reordering: 5, ..plain }), (0, 5));
    // RACK detects the reordering as well.
    assert_eq!(late_by_four(RecoveryRules { adapt_reordering: true, ..rules() }), (0, 5));
}

#[test]
fn the_smallest_round_trip_is_forgotten_after_five_minutes() {
    let mut net = Net::established(rack());
    let smallest =
        |net: &Net| net.end(Side::Client).recovery.scoreboard.as_ref().unwrap().rack.min_rtt();
    net.write_segments(1);
    net.run_to(100);
    net.wires.delay = Span::from_ms(20);
    for s in 1..=310 {
        net.run_to(s * 1_000);
        net.write_segments(1);
        net.run_to(s * 1_000 + 100);
        let expected = if s < 300 { 10 } else { 40 };
        assert_eq!(smallest(&net), Span::from_ms(expected), "{s} s");
    }
}

#[test]
fn without_timestamps_each_ack_times_a_round_trip() {
    // Ten segments wait in one queue: their ACKs arrive 11, 12, … 20 ms after all were sent. With
    // one sample per ACK the average rises from 10 to 14.8 ms; with one per window it would rise to
    // 10.1 ms.
    let mut net = Net::established(TcpConfig { timestamps: false, ..rack() });
    net.wires.rate = Some(Rate(8 * (SEGMENT + 40) * 1000));
    net.write_segments(10);
    net.run_to(1000);
    let srtt = net.end(Side::Client).timers.rtt.srtt().unwrap();
    assert!(Span::from_us(14_800) < srtt && srtt < Span::from_us(14_900), "{srtt}");
}

#[test]
fn a_lost_retransmission_is_found_without_a_timeout() {
    // Segment 1 is lost, and its retransmission, which is the 13th packet, is lost too.
    let mut net = paced(rack());
    net.lose(&[1, 13]);
    net.write_segments(40);
    net.run_to(1000);
    let sent = again(&net);
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert_eq!((sent[0], sent[1].1), ((34, 1), 1));
    // The lost retransmission is found an RTT later, when data sent after it is SACKed.
    assert!(sent[1].0 < 60, "{sent:?}");
    let totals = net.stack.totals();
    assert_eq!((totals.timeouts, totals.lost_retransmits), (0, 1));
}

#[test]
fn a_timeout_spares_what_was_sent_last() {
    // All ACKs are lost from 20 ms on. The timer expires 200 ms after the first segment. A segment
    // written at 215 ms was sent less than an RTT ago and is not deemed lost.
    let mut net = Net::established(TcpConfig {
        recovery: RecoveryRules { probes: false, ..rules() },
        ..settings()
    });
    net.lose(&[1, 2, 3]);
    net.write_segments(3);
    net.run_to(215);
    net.write_segments(1);
    net.run_to(221);
    let client = net.end(Side::Client);
    assert_eq!(
        (client.recovery.phase, client.pipe(net.stack.config())),
        (RecoveryPhase::Loss, 2 * SEGMENT)
    );
    net.run_to(1000);
    // The fourth segment arrives and is SACKed, so it is not retransmitted.
    assert_eq!(again(&net), [(220, 1), (225, 2), (230, 3)]);
    assert_eq!(net.stack.totals().timeouts, 1);
}

#[test]
fn reordering_costs_fewer_needless_retransmissions_than_counting_duplicates() {
    let run = |recovery: RecoveryRules| {
        let mut net = paced(TcpConfig { recovery, ..settings() });
        let mut random = Stream::new(7, "reordering");
        net.wires.fate = Box::new(move |s| match s.from {
            Side::Client if random.below(20) == 0 => {
                Fate::Late(Span::from_us(2_000 + random.below(7_000)))
            }
            _ => Fate::Deliver,
        });
        net.write_segments(2000);
        net.run_to(20_000);
        assert_eq!(net.end(Side::Server).received(), 2000 * SEGMENT);
        // No packet is lost, so every retransmission is spurious.
        net.stack.totals().retransmits
    };
    let counting = run(RecoveryRules { prr: PrrRule::Linux, ..RecoveryRules::default() });
    let by_time = run(rules());
    let without_dsack = run(RecoveryRules { dsack: false, ..rules() });
    assert!(by_time * 4 < counting, "{by_time} and {counting}");
    assert!(by_time <= without_dsack, "{by_time} and {without_dsack}");
}

#[test]
fn a_lost_tail_costs_a_probe_and_no_timeout() {
    // Segments 8 to 10 of ten are lost. The last ACK of new data arrives at 37 ms, when the
    // smoothed RTT is 12.6 ms. The probe, a copy of segment 10, is sent 2·SRTT + 2 ms later. Its
    // SACK shows, after the reordering window, that the other two are lost.
    let mut net = paced(rack());
    net.lose(&[8, 9, 10]);
    net.write_segments(10);
    net.run_to(1000);
    let sent = again(&net);
    assert_eq!(sent.iter().map(|s| s.1).collect::<Vec<_>>(), [10, 8, 9]);
    let srtt = net.end(Side::Client).timers.rtt.srtt().unwrap();
    assert!(sent[0].0 > 37 + 20 && sent[0].0 < 37 + 2 + 2 * 20, "{sent:?} {srtt:?}");
    let totals = net.stack.totals();
    assert_eq!((totals.timeouts, totals.probes, totals.fast_recoveries), (0, 1, 1));
    assert!(net.end(Side::Server).received() == 10 * SEGMENT);
}

#[test]
fn a_probe_that_repairs_the_only_loss_cuts_the_window_once_more_is_acknowledged() {
    let mut net = paced(rack());
    net.lose(&[10]);
    net.write_segments(10);
    net.run_to(400);
    assert_eq!(again(&net).len(), 1);
    assert_eq!(net.end(Side::Client).outstanding(), 0);
    let cwnd = net.end(Side::Client).cwnd();
    net.write_segments(1);
    net.run_to(600);
    let totals = net.stack.totals();
    assert_eq!((totals.probe_recoveries, totals.timeouts, totals.retransmits), (1, 0, 1));
    assert!(net.end(Side::Client).cwnd() <= cwnd / 2 + SEGMENT);
}

#[test]
fn a_probe_that_was_not_needed_leaves_the_window() {
    // Only the ACK of the last segment is lost. The probe arrives as a duplicate, which DSACK
    // reports.
    let mut net = paced(rack());
    net.wires.fate = Box::new(|s| match (s.from, s.nth) {
        (Side::Server, 10) => Fate::Drop,
        _ => Fate::Deliver,
    });
    net.write_segments(10);
    net.run_to(400);
    net.write_segments(1);
    net.run_to(600);
    let totals = net.stack.totals();
    assert_eq!((totals.probes, totals.dsacks, totals.probe_recoveries), (1, 1, 0));
    assert_eq!((totals.timeouts, net.end(Side::Client).ssthresh()), (0, u64::MAX));
}

#[test]
fn new_data_is_the_better_probe() {
    // The window of four segments is full and their ACKs are lost. The probe is the fifth segment,
    // which is new data.
    let mut net = Net::established(TcpConfig { initial_window: 4, ..rack() });
    net.wires.fate = Box::new(|s| match (s.from, s.nth) {
        (Side::Server, 1..=4) => Fate::Drop,
        _ => Fate::Deliver,
    });
    net.write_segments(6);
    net.run_to(1000);
    assert_dialogue(
        &net,
        Some(Side::Client),
        "20 > 1:1001 ack 1
         20 > 1001:2001 ack 1
         20 > 2001:3001 ack 1
         20 > 3001:4001 ack 1
         42 > 4001:5001 ack 1
         52 > 5001:6001 ack 1",
    );
    assert_eq!(net.stack.totals().probes, 1);
}

#[test]
fn a_single_segment_is_given_time_for_a_delayed_ack() {
    // The RTO of 200 ms limits the time of the probe, since 2·10 ms plus the minimum timeout would
    // be later. The probe is sent instead of the timeout, which follows one RTO later.
    let mut net = Net::established(rack());
    net.lose(&[1, 2]);
    net.write(Side::Client, 100);
    net.run_to(1000);
    assert_dialogue(
        &net,
        Some(Side::Client),
        "20 > 1:101 ack 1
         220 > 1:101* ack 1
         420 > 1:101* ack 1",
    );
    let totals = net.stack.totals();
    assert_eq!((totals.probes, totals.timeouts), (1, 1));
}
