//! Tests of ACKs, the receive window and small segments as in Linux.

use super::super::config::TcpConfig;
use super::super::rules::{AckRule, ReceiverRules};
use super::net::{Fate, Net, SEGMENT, assert_dialogue, settings};
use crate::congestion::rules::{CongestionRules, EcnRule, EcnRules};
use eastwest_types::{Rate, Side};

fn linux() -> TcpConfig {
    TcpConfig {
        receiver: ReceiverRules { acks: AckRule::Linux, ..ReceiverRules::default() },
        ..settings()
    }
}

/// Returns the ACKs of the server, as (milliseconds, acknowledged segments).
fn acks(net: &Net) -> Vec<(u64, u64)> {
    let of_server = net.wires.log.iter().filter(|s| s.from == Side::Server);
    of_server.map(|s| (s.at.0 / 1_000_000_000, s.packet.ack / SEGMENT)).collect()
}

#[test]
fn the_first_sixteen_segments_are_acknowledged_one_by_one_then_every_second() {
    let mut net = Net::established(TcpConfig { initial_window: 30, ..linux() });
    net.write_segments(30);
    net.run_to(26);
    let numbers: Vec<u64> = acks(&net).iter().map(|a| a.1).collect();
    let mut expected: Vec<u64> = (1..=16).collect();
    expected.extend([18, 20, 22, 24, 26, 28, 30]);
    assert_eq!(numbers, expected);
}

#[test]
fn a_small_window_is_quick_for_fewer_segments() {
    let mut net = Net::established(TcpConfig { initial_window: 10, max_window: 10_000, ..linux() });
    net.write_segments(10);
    net.run_to(26);
    let numbers: Vec<u64> = acks(&net).iter().map(|a| a.1).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 7, 9, 10]);
}

#[test]
fn an_odd_last_full_segment_of_a_write_is_acknowledged_when_it_is_read() {
    let mut net = Net::established(TcpConfig { initial_window: 40, ..linux() });
    net.write_segments(16 + 5);
    net.run_to(500);
    // The last ACK is sent at once: the segment ends the write, and the server has sent no data
    // itself.
    assert_eq!(acks(&net).last(), Some(&(25, 21)));
    assert!(acks(&net).iter().all(|a| a.0 == 25));
}

#[test]
fn requests_and_answers_carry_each_others_acks() {
    // In ping-pong mode the server answers each request. Its ACK waits for the answer, or for 40 ms
    // if there is no answer.
    let mut net = Net::established(linux());
    for round in 0..3u64 {
        let at = 20 + 20 * round;
        net.run_to(at);
        net.write(Side::Client, 100);
        net.run_to(at + 5);
        net.write(Side::Server, 300);
    }
    net.run_to(80);
    net.wires.log.clear();
    net.write(Side::Client, 100);
    net.run_to(300);
    assert_dialogue(
        &net,
        None,
        "80 > 301:401 ack 901
         125 < ack 401",
    );
    // The timer has ended ping-pong mode, so the next segment is acknowledged when it is read.
    net.wires.log.clear();
    net.write(Side::Client, 100);
    net.run_to(400);
    assert_dialogue(
        &net,
        None,
        "300 > 401:501 ack 901
         305 < ack 501",
    );
}

#[test]
fn acks_of_segments_out_of_order_are_put_together_after_the_third() {
    let receiver =
        ReceiverRules { acks: AckRule::Linux, compress: true, ..ReceiverRules::default() };
    let mut net = Net::established(TcpConfig { receiver, initial_window: 30, ..settings() });
    net.lose(&[1]);
    net.wires.rate = Some(Rate(8 * (SEGMENT + 52) * 10_000));
    net.write_segments(30);
    net.run_to(200);
    let ordinary = {
        let mut net = Net::established(TcpConfig { initial_window: 30, ..linux() });
        net.lose(&[1]);
        net.wires.rate = Some(Rate(8 * (SEGMENT + 52) * 10_000));
        net.write_segments(30);
        net.run_to(200);
        net.wires.log.iter().filter(|s| s.from == Side::Server && !s.sack.is_empty()).count()
    };
    let sacks: Vec<u64> = net
        .wires
        .log
        .iter()
        .filter(|s| s.from == Side::Server && !s.sack.is_empty())
        .map(|s| s.at.0 / 100_000_000)
        .collect();
    // A segment arrives every 100 µs: three ACKs are sent at once, then one for each 0.5 ms (a
    // twentieth of 10 ms).
    assert!(sacks.len() * 2 < ordinary, "{sacks:?} and {ordinary}");
    assert_eq!(sacks[..4], [252, 253, 254, 260]);
    assert_eq!(net.end(Side::Server).received(), 30 * SEGMENT);
}

#[test]
fn the_window_grows_with_what_arrives_and_its_right_edge_never_moves_back() {
    let receiver = ReceiverRules { window_from: Some(65_535), ..ReceiverRules::default() };
    let mut net = Net::established(TcpConfig { receiver, max_window: 600 * SEGMENT, ..settings() });
    net.write_segments(3000);
    net.run_to(400);
    let offered: Vec<(u64, u64)> = net
        .wires
        .log
        .iter()
        .filter(|s| s.from == Side::Server)
        .map(|s| (s.packet.ack, u64::from(s.packet.window)))
        .collect();
    assert_eq!(offered[0].1, 65_535 + 2 * SEGMENT, "two segments more for the first");
    assert!(offered.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0 + w[1].1), "an edge moved back");
    assert_eq!(offered.last().unwrap().1, 600 * SEGMENT);
    assert_eq!(net.end(Side::Server).received(), 3000 * SEGMENT);
    // The growing window was not the limit: the transfer is as fast as with the whole window from
    // the start.
    let finish = |config: TcpConfig| {
        let mut net = Net::established(config);
        net.stack.expect(net.server, 3000 * SEGMENT);
        net.write_segments(3000);
        net.run_to(2000);
        net.told(Side::Server)[0].0
    };
    let plain = finish(TcpConfig { max_window: 600 * SEGMENT, ..settings() });
    let receiver = ReceiverRules { window_from: Some(65_535), ..ReceiverRules::default() };
    let tuned = finish(TcpConfig { receiver, max_window: 600 * SEGMENT, ..settings() });
    assert!(tuned <= plain + 10, "{tuned} and {plain} ms");
}

#[test]
fn with_nagle_a_small_segment_waits_for_the_one_before() {
    let mut net = Net::established(TcpConfig { nagle: true, ..settings() });
    for _ in 0..3 {
        net.write(Side::Client, 100);
    }
    net.write(Side::Client, 1500);
    net.run_to(200);
    // Full segments are sent at once (Minshall: a small segment waits only for another small
    // segment).
    assert_dialogue(
        &net,
        Some(Side::Client),
        "20 > 1:101 ack 1
         20 > 101:1101 ack 1
         30 > 1101:1801 ack 1",
    );
    let mut net = Net::established(TcpConfig { nagle: true, ..settings() });
    net.write(Side::Client, 1500);
    net.close(Side::Client);
    net.run_to(200);
    assert_dialogue(
        &net,
        Some(Side::Client),
        "20 > 1:1001 ack 1
         20 > 1001:1501 ack 1
         20 > FIN 1501:1502 ack 1",
    );
}

#[test]
fn nagle_and_delayed_acks_wait_for_each_other_but_not_for_ever() {
    // Nagle's algorithm and delayed ACKs: the client sends two small writes and then waits for the
    // answer.
    let config = TcpConfig { nagle: true, ack_every: 2, ..settings() };
    let mut net = Net::established(config);
    net.wires.fate = Box::new(|_| Fate::Deliver);
    net.write(Side::Client, 100);
    net.write(Side::Client, 100);
    net.run_to(200);
    assert_eq!(net.end(Side::Server).received(), 200);
    let second = net.wires.log.iter().filter(|s| s.from == Side::Client).nth(1).unwrap();
    // The delay is 5 ms to the server, 40 ms of delayed ACK, and 5 ms back.
    assert_eq!(second.at.0 / 1_000_000_000, 20 + 5 + 40 + 5);
}

#[test]
fn segments_that_let_the_window_grow_are_acknowledged_one_by_one() {
    let receiver =
        ReceiverRules { acks: AckRule::Linux, window_from: Some(64 * SEGMENT), ..linux().receiver };
    let config = TcpConfig { receiver, initial_window: 40, max_window: 1000 * SEGMENT, ..linux() };
    let mut net = Net::established(config);
    net.write_segments(40);
    net.run_to(26);
    let numbers: Vec<u64> = acks(&net).iter().map(|a| a.1).collect();
    // The window grows from 64 to 80 segments in eight steps of two segments: eight ACKs in
    // addition to the sixteen.
    let mut expected: Vec<u64> = (1..=24).collect();
    expected.extend((26..=40).step_by(2));
    assert_eq!(numbers, expected);
}

#[test]
fn the_first_mark_and_what_is_sent_again_are_acknowledged_quickly() {
    let ecn = EcnRules { rule: EcnRule::On, ..EcnRules::default() };
    let rules = CongestionRules { ecn, ..CongestionRules::default() };
    let mut net = Net::established(TcpConfig { rules, initial_window: 40, ..linux() });
    net.mark(&[22, 25]);
    net.write_segments(40);
    net.run_to(26);
    let numbers: Vec<u64> = acks(&net).iter().map(|a| a.1).collect();
    let mut expected: Vec<u64> = (1..=16).collect();
    // Segment 22 is acknowledged in any case, 23 because two segments are; the mark on 25 is not
    // the first mark.
    expected.extend([18, 20, 22, 23, 25, 27, 29, 31, 33, 35, 37, 39, 40]);
    assert_eq!(numbers, expected);
}
