//! Tests of spurious timeouts and recoveries, which are detected and undone, or not.

use super::super::config::TcpConfig;
use super::super::rules::{RackRule, RecoveryRules};
use super::super::states::RecoveryPhase;
use super::net::{Fate, Net, SEGMENT, settings};
use eastwest_types::{Rate, Side, Span};

/// Returns the numbers of the segments that the client has retransmitted.
fn again(net: &Net) -> Vec<u64> {
    net.wires.log.iter().filter(|s| s.is_again()).map(|s| s.packet.seq / SEGMENT + 1).collect()
}

/// Returns a test network in which the whole first window is 300 ms late. The timer expires at 220
/// ms although nothing is lost.
fn delayed_window(config: TcpConfig) -> Net {
    let mut net = Net::established(config);
    net.wires.fate = Box::new(|s| match (s.from, s.nth) {
        (Side::Client, 1..=10) => Fate::Late(Span::from_ms(300)),
        _ => Fate::Deliver,
    });
    net.write_segments(40);
    net.run_to(221);
    assert_eq!(
        (net.end(Side::Client).cwnd(), net.end(Side::Client).recovery.phase),
        (SEGMENT, RecoveryPhase::Loss)
    );
    net
}

fn finish(net: &mut Net) {
    net.run_to(3000);
    assert_eq!(net.end(Side::Server).received(), 40 * SEGMENT);
    assert_eq!(net.end(Side::Client).recovery.phase, RecoveryPhase::Open);
}

fn frto(rack: RackRule, sack: bool) -> TcpConfig {
    let recovery = RecoveryRules { frto: true, rack, ..RecoveryRules::default() };
    TcpConfig { recovery, sack, timestamps: false, ..settings() }
}

/// Combinations of the RACK rule and SACK that are tested.
const VARIANTS: [(RackRule, bool); 4] = [
    (RackRule::Off, false),
    (RackRule::Off, true),
    (RackRule::Rfc8985, true),
    (RackRule::Linux, true),
];

#[test]
fn frto_sends_new_data_after_the_first_ack_and_falls_back_on_duplicates() {
    for (rack, sack) in VARIANTS {
        let mut net = delayed_window(frto(rack, sack));
        // The retransmission was acknowledged at 230 ms: new data is sent instead of segment 2.
        net.run_to(231);
        let last = net.wires.log.iter().rev().filter(|s| s.from == Side::Client).take(2);
        let last: Vec<u64> = last.map(|s| s.packet.seq / SEGMENT + 1).collect();
        assert_eq!(last, [12, 11], "{rack:?} {sack}");
        assert_eq!(again(&net), [1]);
        // The new data arrives out of order at 235 ms, which looks like a real loss.
        net.run_to(241);
        assert_eq!(again(&net)[..2], [1, 2]);
        assert_eq!(net.stack.totals().spurious_timeouts, 0);
        finish(&mut net);
        assert_eq!(net.stack.totals().timeouts, 1);
    }
}

#[test]
fn frto_undoes_a_timeout_of_acks_that_were_late() {
    // The data arrives, but its ACKs are late. The first ACK after the timeout acknowledges segment
    // 1, so new data is sent. The ACK of segment 2 shows that the timeout was spurious.
    for (rack, sack) in VARIANTS {
        let mut net = Net::established(frto(rack, sack));
        net.wires.fate = Box::new(|s| match (s.from, s.nth) {
            (Side::Server, n @ 1..=10) => Fate::Late(Span::from_ms(300 + n as u64)),
            (Side::Server, 11) => Fate::Drop, // the answer to the retransmission
            _ => Fate::Deliver,
        });
        net.write_segments(40);
        net.run_to(332);
        assert_eq!(again(&net), [1], "{rack:?} {sack}");
        assert_eq!(net.stack.totals().spurious_timeouts, 1);
        assert!(net.end(Side::Client).cwnd() >= 10 * SEGMENT);
        assert_eq!(net.end(Side::Client).ssthresh(), u64::MAX);
        finish(&mut net);
        assert_eq!(again(&net), [1]);
    }
}

#[test]
fn frto_leaves_a_true_timeout_alone() {
    for (rack, sack) in VARIANTS {
        let mut net = Net::established(frto(rack, sack));
        net.lose(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        net.write_segments(40);
        finish(&mut net);
        let totals = net.stack.totals();
        assert_eq!((totals.timeouts, totals.spurious_timeouts), (1, 0), "{rack:?} {sack}");
        let mut sent = again(&net);
        sent.dedup();
        assert_eq!(sent, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(net.end(Side::Client).ssthresh(), 5 * SEGMENT);
    }
}

#[test]
fn an_echo_from_before_the_timeout_undoes_it_at_once() {
    for rack in [RackRule::Off, RackRule::Rfc8985] {
        let recovery = RecoveryRules { undo: true, rack, ..RecoveryRules::default() };
        let mut net = Net::established(TcpConfig { recovery, ..settings() });
        net.wires.fate = Box::new(|s| match (s.from, s.nth) {
            (Side::Client, 1..=10) => Fate::Late(Span::from_ms(300)),
            (Side::Client, 11) => Fate::Late(Span::from_ms(200)),
            _ => Fate::Deliver,
        });
        net.write_segments(40);
        net.run_to(331);
        assert_eq!(again(&net), [1]);
        let totals = net.stack.totals();
        assert_eq!((totals.timeouts, totals.spurious_timeouts), (1, 1));
        assert_eq!(net.end(Side::Client).ssthresh(), u64::MAX);
        assert!(net.end(Side::Client).cwnd() >= 10 * SEGMENT);
        finish(&mut net);
        assert_eq!(again(&net), [1]);
    }
}

#[test]
fn a_coarse_timestamp_clock_hides_it() {
    // In units of a second, the echoed time and the time of the retransmission are equal.
    let recovery = RecoveryRules {
        undo: true,
        timestamp_clock: Span::from_secs(1),
        ..RecoveryRules::default()
    };
    let mut net = delayed_window(TcpConfig { recovery, ..settings() });
    finish(&mut net);
    assert!(net.end(Side::Client).ssthresh() < u64::MAX);
}

/// Returns a test network in which segment 2 arrives behind five others: three duplicate ACKs start
/// a spurious recovery.
fn reordered(recovery: RecoveryRules, timestamps: bool) -> Net {
    let mut net = Net::established(TcpConfig { recovery, timestamps, ..settings() });
    net.wires.rate = Some(Rate(8 * (SEGMENT + 52) * 1000));
    net.wires.fate = Box::new(|s| match (s.from, s.nth) {
        (Side::Client, 2) => Fate::Late(Span::from_us(5_500)),
        _ => Fate::Deliver,
    });
    net.write_segments(40);
    net.run_to(36);
    assert_eq!(net.end(Side::Client).recovery.phase, RecoveryPhase::Recovery);
    net
}

#[test]
fn a_dsack_undoes_a_recovery_even_after_its_end() {
    for rack in [RackRule::Off, RackRule::Rfc8985] {
        let recovery = RecoveryRules { undo: true, dsack: true, rack, ..RecoveryRules::default() };
        // At the second ACK the window is 11 segments, after it has grown by one.
        let mut net = reordered(recovery, false);
        finish(&mut net);
        let totals = net.stack.totals();
        let counted = (totals.fast_recoveries, totals.spurious_recoveries, totals.dsacks);
        assert_eq!(counted, (1, 1, 1), "{rack:?}");
        assert_eq!(net.end(Side::Client).ssthresh(), u64::MAX);
    }
}

#[test]
fn an_echo_undoes_a_recovery_when_the_late_segment_is_acknowledged() {
    for rack in [RackRule::Off, RackRule::Rfc8985] {
        let recovery = RecoveryRules { undo: true, rack, ..RecoveryRules::default() };
        let mut net = reordered(recovery, true);
        finish(&mut net);
        assert_eq!(net.stack.totals().spurious_recoveries, 1, "{rack:?}");
        assert_eq!(net.end(Side::Client).ssthresh(), u64::MAX);
    }
}

#[test]
fn a_true_recovery_is_not_undone() {
    for rack in [RackRule::Off, RackRule::Rfc8985] {
        let recovery =
            RecoveryRules { undo: true, dsack: true, frto: true, rack, ..RecoveryRules::default() };
        let mut net = Net::established(TcpConfig { recovery, ..settings() });
        net.wires.rate = Some(Rate(8 * (SEGMENT + 52) * 1000));
        net.lose(&[2, 5]);
        net.write_segments(40);
        finish(&mut net);
        let totals = net.stack.totals();
        assert_eq!((totals.fast_recoveries, totals.spurious_recoveries), (1, 0));
        assert!(net.end(Side::Client).ssthresh() < 10 * SEGMENT);
    }
}

#[test]
fn a_timeout_in_a_recovery_cuts_again_or_not() {
    // The first segment and its retransmission are lost.
    for (one_cut, segments) in [(false, 5), (true, 5)] {
        let recovery = RecoveryRules { one_cut, ..RecoveryRules::default() };
        let mut net = Net::established(TcpConfig { recovery, ..settings() });
        net.wires.rate = Some(Rate(8 * (SEGMENT + 52) * 1000));
        net.lose(&[1, 13]);
        net.write_segments(14);
        net.run_to(235);
        assert_eq!(net.stack.totals().timeouts, 1);
        let ssthresh = net.end(Side::Client).ssthresh() / SEGMENT;
        if one_cut {
            assert_eq!(ssthresh, segments);
        } else {
            assert!(ssthresh <= segments);
        }
    }
}
