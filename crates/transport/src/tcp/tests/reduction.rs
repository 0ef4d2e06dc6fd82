//! Tests of proportional rate reduction in dialogues. The link carries a segment per millisecond,
//! as in [`recovery`](super::recovery).

use super::super::config::TcpConfig;
use super::super::rules::{PrrRule, RecoveryRules};
use super::net::{Net, SEGMENT, assert_dialogue, settings};
use eastwest_types::{Rate, Side};

fn after_loss(prr: PrrRule, sack: bool, lost: &'static [usize]) -> Net {
    let recovery = RecoveryRules { prr, ..RecoveryRules::default() };
    let mut net = Net::established(TcpConfig { recovery, sack, ..settings() });
    net.wires.rate = Some(Rate(8 * (SEGMENT + 52) * 1000));
    net.lose(lost);
    net.write_segments(60);
    net.wires.log.clear();
    net
}

#[test]
fn segments_leave_at_half_the_pace_of_acks() {
    // Segment 2 of ten is lost. The ACK of segment 1 and two duplicate ACKs release segments 11 to
    // 14. At the third duplicate ACK, at 35 ms, the window is 11 and the threshold 5.5 segments.
    // From then on, about every second ACK releases a segment (none arrives at 41 ms, since the
    // link was idle at 30 ms).
    let mut net = after_loss(PrrRule::Linux, true, &[2]);
    net.run_to(45);
    assert_dialogue(
        &net,
        Some(Side::Client),
        "31 > 10001:11001 ack 1
         31 > 11001:12001 ack 1
         33 > 12001:13001 ack 1
         34 > 13001:14001 ack 1
         35 > 1001:2001* ack 1
         37 > 14001:15001 ack 1
         39 > 15001:16001 ack 1
         42 > 16001:17001 ack 1
         45 > 17001:18001 ack 1",
    );
}

#[test]
fn every_rule_ends_with_the_threshold_and_all_there() {
    for sack in [true, false] {
        for prr in [PrrRule::Off, PrrRule::Rfc6937, PrrRule::Linux] {
            let mut net = after_loss(prr, sack, &[2, 5]);
            net.run_to(2000);
            assert_eq!(net.end(Side::Server).received(), 60 * SEGMENT);
            let totals = net.stack.totals();
            assert_eq!((totals.retransmits, totals.fast_recoveries, totals.timeouts), (2, 1, 0));
            let cwnd = net.end(Side::Client).cwnd();
            assert!(cwnd >= net.end(Side::Client).ssthresh(), "{prr:?} {sack} {cwnd}");
        }
    }
}

#[test]
fn after_heavy_loss_the_window_grows_back_to_the_threshold_in_slow_start() {
    // Seven of ten segments are lost. Below the threshold of 5, each ACK of a retransmission
    // releases two segments.
    for prr in [PrrRule::Rfc6937, PrrRule::Linux] {
        let mut net = after_loss(prr, true, &[1, 2, 3, 4, 5, 6, 7]);
        net.run_to(1000);
        assert_eq!(net.end(Side::Server).received(), 60 * SEGMENT);
        let totals = net.stack.totals();
        assert_eq!((totals.retransmits, totals.timeouts), (7, 0), "{prr:?}");
    }
}
