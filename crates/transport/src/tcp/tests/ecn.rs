//! Tests of explicit congestion notification: negotiation, ECN-capable packets, echo and reaction (RFC 3168),
//! and the differences of DCTCP (RFC 8257).

use super::super::config::TcpConfig;
use super::super::rules::RecoveryRules;
use super::net::{Fate, Net, SEGMENT, assert_dialogue, settings};
use crate::congestion::Algorithm;
use crate::congestion::CongestionKind;
use crate::congestion::rules::{CongestionRules, EcnRule, EcnRules};
use eastwest_types::{Side, Span, ecn, flag};

fn with(rule: EcnRule) -> TcpConfig {
    let ecn = EcnRules { rule, ..EcnRules::default() };
    TcpConfig { rules: CongestionRules { ecn, ..CongestionRules::default() }, ..settings() }
}

fn dctcp() -> TcpConfig {
    let ecn = EcnRules { rule: EcnRule::On, all_packets: true, ..EcnRules::default() };
    TcpConfig {
        congestion: CongestionKind::Dctcp,
        rules: CongestionRules { ecn, ..CongestionRules::default() },
        ..settings()
    }
}

/// Returns the number of packets sent by the client for which `which` is true.
fn count(net: &Net, which: impl Fn(&super::net::Sent) -> bool) -> usize {
    net.wires.log.iter().filter(|s| s.from == Side::Client && which(s)).count()
}

#[test]
fn the_handshake_asks_and_agrees_and_only_new_data_may_be_marked() {
    let mut net = Net::new(with(EcnRule::On));
    net.open();
    net.run_to(20);
    net.write(Side::Client, 1500);
    net.run_to(35);
    net.close(Side::Client);
    net.run_to(50);
    assert_dialogue(
        &net,
        None,
        "0 > SYN ECE CWR 0:1
         5 < SYN ECE 0:1 ack 1
         10 > ack 1
         20 > ect 1:1001 ack 1
         20 > ect 1001:1501 ack 1
         25 < ack 1001
         25 < ack 1501
         35 > FIN 1501:1502 ack 1
         40 < ack 1502",
    );
}

#[test]
fn without_a_request_there_is_none() {
    for rule in [EcnRule::Off, EcnRule::Accept] {
        let mut net = Net::new(with(rule));
        net.open();
        net.run_to(20);
        net.write_segments(2);
        net.run_to(50);
        assert!(!net.wires.log.iter().any(|s| s.has(flag::ECE) || s.packet.tos & ecn::MASK != 0));
    }
}

#[test]
fn a_syn_that_was_lost_asks_no_more_and_one_whose_answer_was_lost_is_agreed_to() {
    let mut net = Net::new(with(EcnRule::On));
    net.lose(&[1]);
    net.open();
    net.run_to(230);
    net.write(Side::Client, 100);
    net.run_to(240);
    assert_dialogue(
        &net,
        None,
        "0 > SYN ECE CWR 0:1
         200 > SYN 0:1
         205 < SYN 0:1 ack 1
         210 > ack 1
         230 > 1:101 ack 1
         235 < ack 101",
    );
    let mut net = Net::new(with(EcnRule::On));
    let first = |s: &super::net::Sent| s.from == Side::Server && s.nth == 1;
    net.wires.fate = Box::new(move |s| if first(s) { Fate::Drop } else { Fate::Deliver });
    net.open();
    net.run_to(230);
    net.write(Side::Client, 100);
    net.run_to(240);
    assert!(net.dialogue(Some(Side::Client)).ends_with("230 > ect 1:101 ack 1"));
}

#[test]
fn without_fallback_a_syn_asks_again() {
    let mut config = with(EcnRule::On);
    config.rules.ecn.fallback = false;
    let mut net = Net::new(config);
    net.lose(&[1]);
    net.open();
    net.run_to(210);
    assert_dialogue(
        &net,
        Some(Side::Client),
        "0 > SYN ECE CWR 0:1\n200 > SYN ECE CWR 0:1\n210 > ack 1",
    );
}

#[test]
fn a_mark_is_echoed_until_cwr_and_cuts_once_per_window() {
    let mut net = Net::established(with(EcnRule::On));
    net.mark(&[1, 2, 5, 9]);
    net.write_segments(200);
    net.run_to(30);
    assert_eq!(
        (net.end(Side::Client).cwnd(), net.end(Side::Client).ssthresh()),
        (5 * SEGMENT, 5 * SEGMENT)
    );
    // All ten ACKs of the first window carry ECE, but the window is reduced only once.
    assert_eq!(net.wires.log.iter().filter(|s| s.has(flag::ECE)).count(), 10);
    assert_eq!(net.stack.totals().ecn_reductions, 1);
    net.run_to(40);
    // The next new segment carries CWR, and its ACK has no ECE.
    assert_eq!(count(&net, |s| s.has(flag::CWR)), 1);
    let cwr = net.wires.log.iter().find(|s| s.has(flag::CWR)).expect("a CWR");
    assert_eq!(cwr.packet.seq, 1 + 10 * SEGMENT);
    let later = net.wires.log.iter().filter(|s| s.has(flag::ECE) && s.packet.ack > cwr.packet.seq);
    assert_eq!(later.count(), 0);
    net.run_to(100);
    assert_eq!(net.stack.totals().ecn_reductions, 1);
    assert!(net.end(Side::Client).cwnd() > 5 * SEGMENT, "it grows again");
}

#[test]
fn marks_after_the_cut_cut_again_one_window_later() {
    // As in Linux with a step marking queue, data sent after the reduction still reaches the full
    // queue.
    let mut net = Net::established(with(EcnRule::On));
    net.mark(&[1, 2, 3, 11, 12]);
    net.write_segments(400);
    net.run_to(60);
    assert_eq!(net.stack.totals().ecn_reductions, 2);
}

#[test]
fn the_window_does_not_grow_until_the_window_of_the_mark_is_acknowledged() {
    let mut net = Net::established(with(EcnRule::On));
    net.mark(&[1]);
    net.write_segments(400);
    net.run_to(30); // ten ACKs: the first reduces the window to 5
    assert_eq!(net.end(Side::Client).cwnd(), 5 * SEGMENT);
    net.run_to(40); // congestion avoidance over five segments
    assert_eq!(net.end(Side::Client).cwnd(), 6 * SEGMENT);
}

#[test]
fn what_is_sent_again_may_not_be_marked_and_one_window_is_not_cut_twice() {
    let mut net = Net::established(with(EcnRule::On));
    let before = 0;
    net.wires.fate = Box::new(move |s| match (s.from, s.nth - before) {
        (Side::Client, 1) => Fate::Mark,
        (Side::Client, 3) => Fate::Drop,
        _ => Fate::Deliver,
    });
    net.write_segments(200);
    net.run_to(60);
    assert_eq!(net.end(Side::Client).ssthresh(), 5 * SEGMENT);
    assert_eq!(net.stack.totals().fast_recoveries, 1);
    let again: Vec<_> = net.wires.log.iter().filter(|s| s.is_again()).collect();
    assert_eq!(again.len(), 1);
    assert!(again.iter().all(|s| s.packet.tos & ecn::MASK == 0 && !s.has(flag::CWR)));
}

#[test]
fn a_delayed_ack_tells_of_the_first_mark_at_once() {
    let mut net = Net::established(TcpConfig { ack_every: 2, ..with(EcnRule::On) });
    net.mark(&[1]);
    net.write(Side::Client, 100);
    net.run_to(30);
    assert_dialogue(&net, Some(Side::Server), "25 < ECE ack 101");
}

#[test]
fn dctcp_sends_every_packet_as_ecn_capable() {
    let mut net = Net::new(dctcp());
    net.open();
    net.run_to(20);
    net.lose(&[1]);
    net.write_segments(8);
    net.run_to(300);
    assert!(net.wires.log.iter().any(|s| s.is_again()));
    assert!(
        net.wires.log.iter().all(|s| s.packet.tos & ecn::MASK == ecn::ECT0),
        "{}",
        net.dialogue(None)
    );
}

#[test]
fn dctcp_echoes_each_mark_and_says_so_at_once_where_it_changes() {
    let mut net = Net::established(TcpConfig { ack_every: 2, ..dctcp() });
    net.mark(&[2, 3, 4, 5]);
    net.write_segments(10);
    net.run_to(29);
    // ACKs: segment 1 alone in the old state; 2 at once; 3 and 4; 5 alone; 6 at once; 7 and 8; 9
    // and 10.
    assert_dialogue(
        &net,
        Some(Side::Server),
        "25 < ect ack 1001
         25 < ECE ect ack 2001
         25 < ECE ect ack 4001
         25 < ECE ect ack 5001
         25 < ect ack 6001
         25 < ect ack 8001
         25 < ect ack 10001",
    );
}

#[test]
fn dctcp_cuts_by_half_of_alpha_and_never_without_marks() {
    let mut net = Net::established(dctcp());
    net.write_segments(100_000);
    net.run_to(25);
    let alpha = |net: &Net| match net.end(Side::Client).control.as_deref().map(|c| &c.algorithm) {
        Some(Algorithm::Dctcp(d)) => d.alpha as f64 / (1 << 20) as f64,
        other => panic!("{other:?}"),
    };
    // In twenty windows without a mark α decreases by the factor 1 − g each, and the window is not
    // reduced.
    net.stack.endpoints[net.client.slot()].window.ssthresh = 20 * SEGMENT;
    net.run_to(226);
    let last = net.end(Side::Client).cwnd();
    assert!(last >= 39 * SEGMENT, "{last}");
    let expected = (0..22).fold(1.0, |x, _| x * 15.0 / 16.0);
    assert!((alpha(&net) / expected - 1.0).abs() < 0.01, "{} and {expected}", alpha(&net));
    net.mark(&[1]);
    let before = alpha(&net);
    net.run_to(245);
    let expected = last as f64 * (1.0 - before / 2.0);
    let cwnd = net.end(Side::Client).cwnd() as f64;
    // The reduction comes one window later, when α has also increased by a sixteenth of the marked
    // share.
    assert!((cwnd / expected - 1.0).abs() < 0.05, "{cwnd} and {expected}");
    assert_eq!(net.stack.totals().ecn_reductions, 1);
}

#[test]
fn dctcp_halves_the_window_after_a_loss() {
    let mut net = Net::established(dctcp());
    net.write_segments(1000);
    net.run_to(24);
    let alpha_small = |net: &mut Net| {
        let slot = net.client.slot();
        let control = net.stack.endpoints[slot].control.as_deref_mut();
        if let Some(Algorithm::Dctcp(d)) = control.map(|c| &mut c.algorithm) {
            d.alpha = 0;
        }
    };
    alpha_small(&mut net);
    net.lose(&[1]);
    net.run_until(net.now() + Span::from_ms(30));
    assert_eq!(net.stack.totals().fast_recoveries, 1);
    let e = net.end(Side::Client);
    assert!(e.ssthresh() >= 19 * SEGMENT / 2 && e.ssthresh() <= 21 * SEGMENT, "{}", e.ssthresh());
}

#[test]
fn in_reno_a_timeout_after_a_mark_leaves_the_threshold() {
    // The mark halves the window of ten segments. When all segments are lost it has grown to eight,
    // which NewReno halves.
    for (partial_acks, threshold) in [(false, 5), (true, 4)] {
        let recovery = RecoveryRules { partial_acks, ..RecoveryRules::default() };
        let mut net = Net::established(TcpConfig { sack: false, recovery, ..with(EcnRule::On) });
        net.mark(&[1]);
        net.write_segments(100);
        net.run_to(59);
        assert_eq!(net.stack.totals().ecn_reductions, 1);
        net.wires.fate =
            Box::new(|s| if s.from == Side::Client { Fate::Drop } else { Fate::Deliver });
        net.run_to(150);
        assert_eq!(net.end(Side::Client).cwnd(), 8 * SEGMENT);
        net.run_to(300);
        assert_eq!(net.stack.totals().timeouts, 1);
        assert_eq!(net.end(Side::Client).ssthresh(), threshold * SEGMENT, "{partial_acks}");
    }
}
