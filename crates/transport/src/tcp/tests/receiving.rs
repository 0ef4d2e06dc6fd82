//! Tests of the receiver: when it sends ACKs, and which SACK blocks it reports.

use super::super::Notice;
use super::super::config::TcpConfig;
use super::net::{Fate, Net, SEGMENT, assert_dialogue, settings};
use eastwest_types::{Packet, Side, Span, flag};

#[test]
fn every_second_segment_is_acknowledged_and_a_single_one_after_the_timeout() {
    let mut net = Net::established(TcpConfig { ack_every: 2, ..settings() });
    net.write_segments(5);
    net.run_to(200);
    assert_dialogue(
        &net,
        Some(Side::Server),
        "25 < ack 2001
         25 < ack 4001
         65 < ack 5001",
    );
}

#[test]
fn the_delayed_ack_timeout_counts_from_the_first_segment() {
    let mut net = Net::established(TcpConfig { ack_every: 3, ..settings() });
    net.write(Side::Client, 100);
    net.run_to(50);
    net.write(Side::Client, 100);
    net.run_to(200);
    assert_dialogue(&net, Some(Side::Server), "65 < ack 201");
}

#[test]
fn out_of_order_and_the_filling_of_a_gap_are_acknowledged_at_once() {
    let mut net = Net::established(TcpConfig { ack_every: 2, ..settings() });
    net.wires.fate = Box::new(|s| match (s.from, s.nth) {
        (Side::Client, 1) => Fate::Late(Span::from_ms(3)),
        _ => Fate::Deliver,
    });
    net.write_segments(2);
    net.run_to(200);
    assert_dialogue(
        &net,
        Some(Side::Server),
        "25 < ack 1 sack 1001:2001
         28 < ack 2001",
    );
}

/// Delivers a data segment with the positions `from..to` directly to the server.
fn arrive(net: &mut Net, from: u64, to: u64) {
    let mut packet = Packet::blank(net.end(Side::Server).local());
    packet.born = net.now();
    (packet.seq, packet.ack) = (from, 1);
    packet.dst_endpoint = net.server;
    packet.payload = (to - from) as u16;
    packet.flags = flag::ACK;
    packet.window = 1 << 20;
    net.stack.on_packet(net.now(), &packet, None, &mut net.wires);
}

#[test]
fn sack_blocks_start_with_the_latest_and_then_repeat_the_most_recent() {
    for (timestamps, with_two_more) in [(true, ""), (false, " 2001:3001")] {
        let mut net = Net::established(TcpConfig { timestamps, ..settings() });
        // The block that has changed most recently comes first, and not the lowest (RFC 2018,
        // section 4).
        arrive(&mut net, 2001, 3001);
        arrive(&mut net, 8001, 9001);
        arrive(&mut net, 4001, 5001);
        arrive(&mut net, 6001, 7001);
        arrive(&mut net, 9001, 10001); // extends an old block, which comes first
        arrive(&mut net, 5001, 6001); // joins two blocks
        arrive(&mut net, 1, 1001); // fills the first gap: no block is new
        arrive(&mut net, 1, 1001); // a segment that has arrived before
        arrive(&mut net, 1001, 2001);
        arrive(&mut net, 3001, 4001);
        arrive(&mut net, 7001, 8001);
        let tail = with_two_more;
        assert_dialogue(
            &net,
            None,
            &format!(
                "20 < ack 1 sack 2001:3001
                 20 < ack 1 sack 8001:9001 2001:3001
                 20 < ack 1 sack 4001:5001 8001:9001 2001:3001
                 20 < ack 1 sack 6001:7001 4001:5001 8001:9001{tail}
                 20 < ack 1 sack 8001:10001 6001:7001 4001:5001{tail}
                 20 < ack 1 sack 4001:7001 8001:10001 2001:3001
                 20 < ack 1001 sack 4001:7001 8001:10001 2001:3001
                 20 < ack 1001 sack 4001:7001 8001:10001 2001:3001
                 20 < ack 3001 sack 4001:7001 8001:10001
                 20 < ack 7001 sack 8001:10001
                 20 < ack 10001"
            ),
        );
        let lengths: Vec<u16> = net.wires.log.iter().map(|s| s.packet.ip_len).collect();
        // The ACK has 40 B of headers, 12 B of timestamps, and 4 + 8 B for each SACK block.
        let bare = if timestamps { 52 } else { 40 };
        let blocks = if timestamps { 3 } else { 4 };
        assert_eq!([lengths[0], lengths[3], lengths[10]], [bare + 12, bare + 4 + 8 * blocks, bare]);
    }
}

#[test]
fn without_sack_no_blocks_are_sent() {
    let mut net = Net::established(TcpConfig { sack: false, ..settings() });
    arrive(&mut net, 2001, 3001);
    arrive(&mut net, 1, 2001);
    assert_dialogue(&net, None, "20 < ack 1\n20 < ack 3001");
}

#[test]
fn what_overlaps_old_bytes_counts_once() {
    let mut net = Net::established(settings());
    arrive(&mut net, 1, 1001);
    arrive(&mut net, 501, 1501);
    arrive(&mut net, 1701, 2001);
    arrive(&mut net, 1601, 1801);
    arrive(&mut net, 1401, 1701);
    assert_eq!(net.end(Side::Server).received(), 2000);
}

#[test]
fn an_old_segment_that_comes_late_does_not_set_the_echo_back() {
    // RFC 7323, 4.3: the timestamp to echo never decreases
    let mut net = Net::established(settings());
    net.run_to(1000);
    arrive(&mut net, 1, 1001);
    let mut late = Packet::blank(net.end(Side::Server).local());
    late.born = net.now();
    (late.seq, late.ack, late.dst_endpoint, late.payload) = (1, 1, net.server, 1000);
    (late.flags, late.window) = (flag::ACK, 1 << 20);
    net.run_to(1500);
    arrive(&mut net, 1001, 2001);
    net.stack.on_packet(net.now(), &late, None, &mut net.wires);
    let echoes: Vec<u32> = net.wires.log.iter().map(|s| s.packet.ts_echo_us).collect();
    assert_eq!(echoes, [1_000_000, 1_500_000, 1_500_000]);
}

#[test]
fn delivery_is_told_once_and_exactly() {
    let mut net = Net::established(settings());
    let server = net.server;
    assert!(!net.stack.expect(server, 2500));
    net.write(Side::Client, 2000);
    net.run_to(100);
    assert_eq!(net.told(Side::Server), []);
    net.write(Side::Client, 499);
    net.run_to(200);
    assert_eq!(net.told(Side::Server), []);
    net.write(Side::Client, 1);
    net.run_to(300);
    assert_eq!(net.told(Side::Server), [(205, Notice::Delivered)]);
    assert!(net.stack.expect(server, 2500), "is there already");
    assert!(net.stack.expect(server, 0));
    net.write(Side::Client, SEGMENT);
    net.run_to(400);
    assert_eq!(net.told(Side::Server).len(), 1, "nothing was expected");
    // The FIN does not count as a byte.
    assert!(!net.stack.expect(server, 3501));
    net.close(Side::Client);
    net.run_to(500);
    assert_eq!(net.told(Side::Server).len(), 1);
    assert_eq!(net.end(Side::Server).received(), 3500);
}
