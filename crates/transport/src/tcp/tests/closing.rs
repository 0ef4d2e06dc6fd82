//! Tests of FINs, their losses, TIME-WAIT and the reuse of slots.

use super::super::Notice;
use super::net::{Fate, Net, SEGMENT, assert_dialogue, settings};
use eastwest_types::{Packet, Side, Span, flag};

#[test]
fn the_fin_goes_with_the_last_byte_where_that_is_still_to_be_sent() {
    let mut net = Net::established(settings());
    net.write_segments(11); // one segment more than the window
    net.close(Side::Client);
    net.run_to(40);
    let last = net.wires.log.iter().rfind(|s| s.is_data()).expect("data");
    assert!(last.has(flag::FIN));
    assert_eq!((last.packet.seq, last.packet.payload, last.end()), (10_001, 1000, 11_002));
    assert_eq!(net.end(Side::Server).received(), 11_000);
    assert_eq!(net.end(Side::Client).outstanding(), 0);
}

#[test]
fn one_side_closes_then_the_other() {
    let mut net = Net::established(settings());
    net.write(Side::Client, 10);
    net.run_to(40);
    net.close(Side::Client);
    net.run_to(100);
    net.write(Side::Server, 20); // half closed: the server may still send
    net.run_to(120);
    net.close(Side::Server);
    net.run_to(5000);
    assert_dialogue(
        &net,
        None,
        "20 > 1:11 ack 1
         25 < ack 11
         40 > FIN 11:12 ack 1
         45 < ack 12
         100 < 1:21 ack 12
         105 > ack 21
         120 < FIN 21:22 ack 12
         125 > ack 22",
    );
    // The server's FIN is acknowledged at 130 ms, and both ends stay in TIME-WAIT for a second.
    assert_eq!(net.told(Side::Client), [(1130, Notice::Closed)]);
    assert_eq!(net.told(Side::Server), []);
}

#[test]
fn both_close_at_once() {
    let mut net = Net::established(settings());
    net.close(Side::Client);
    net.close(Side::Server);
    net.run_to(5000);
    assert_dialogue(
        &net,
        None,
        "20 > FIN 1:2 ack 1
         20 < FIN 1:2 ack 1
         25 < ack 2
         25 > ack 2",
    );
    assert_eq!(net.told(Side::Client), [(1030, Notice::Closed)]);
}

#[test]
fn a_close_before_the_handshake_ends_waits_for_it() {
    let mut net = Net::new(settings());
    net.open();
    net.close(Side::Client);
    net.close(Side::Server);
    net.run_to(5000);
    assert_dialogue(
        &net,
        None,
        "0 > SYN 0:1
         5 < SYN 0:1 ack 1
         10 > ack 1
         10 > FIN 1:2 ack 1
         15 < FIN 1:2 ack 1
         15 < ack 2
         20 > ack 2",
    );
    assert_eq!(net.told(Side::Client).len(), 1);
}

#[test]
fn a_lost_fin_is_sent_again() {
    let mut net = Net::established(settings());
    net.lose(&[1, 2]);
    net.close(Side::Client);
    net.run_to(5000);
    assert_dialogue(
        &net,
        None,
        "20 > FIN 1:2 ack 1
         220 > FIN 1:2* ack 1
         620 > FIN 1:2* ack 1
         625 < ack 2",
    );
    assert_eq!(net.stack.totals().retransmits, 2);
}

#[test]
fn a_lost_ack_of_the_last_fin_is_answered_again_however_long_it_takes() {
    let mut net = Net::established(settings());
    net.wires.fate = Box::new(|s| {
        // Five consecutive losses last longer than TIME-WAIT.
        let lost = s.from == Side::Client && (2..=6).contains(&s.nth);
        if lost { Fate::Drop } else { Fate::Deliver }
    });
    net.close(Side::Client);
    net.run_to(30);
    net.close(Side::Server);
    net.run_to(60_000);
    assert_eq!(net.told(Side::Client).len(), 1);
    assert_eq!(net.stack.totals().timeouts, 5);
}

#[test]
fn nobody_answers_late_packets_of_a_connection_that_is_gone() {
    let mut net = Net::established(settings());
    let old = (net.client, net.server);
    net.write_segments(1);
    net.close(Side::Client);
    net.close(Side::Server);
    net.run_to(3000);
    assert_eq!(net.told(Side::Client), [(1030, Notice::Closed)]);
    net.wires.log.clear();
    let host = net.end(Side::Server).local();
    let mut late = Packet::blank(host);
    (late.seq, late.payload, late.flags, late.dst_endpoint) = (1, 1000, flag::ACK, old.1);
    net.stack.on_packet(net.now(), &late, None, &mut net.wires);
    // The new connection uses the slots of the ended connection again.
    net.open();
    assert_eq!((net.client.slot(), net.server.slot()), (old.0.slot(), old.1.slot()));
    assert_ne!((net.client, net.server), old);
    net.write(Side::Client, 10);
    for (flags, payload) in [(flag::SYN, 0), (flag::ACK, 1000), (flag::ACK | flag::FIN, 0)] {
        (late.flags, late.payload) = (flags, payload);
        net.stack.on_packet(net.now(), &late, None, &mut net.wires);
    }
    net.stack.close(net.now(), old.0, &mut net.wires); // closing an ended connection does nothing
    net.run_to(4000);
    assert_dialogue(
        &net,
        None,
        "3000 > SYN 0:1
         3005 < SYN 0:1 ack 1
         3010 > ack 1
         3010 > 1:11 ack 1
         3015 < ack 11",
    );
    assert_eq!(net.end(Side::Server).received(), 10);
}

#[test]
fn counters_outlive_their_connection() {
    let mut net = Net::established(settings());
    net.lose(&[1]);
    net.write(Side::Client, 10);
    net.close(Side::Client);
    net.close(Side::Server);
    net.run_to(9000);
    assert_eq!(net.told(Side::Client).len(), 1);
    let totals = net.stack.totals();
    assert_eq!((totals.retransmits, totals.timeouts), (1, 1), "data and FIN as one segment");
}

#[test]
fn the_fin_is_acknowledged_only_in_order() {
    let mut net = Net::established(settings());
    net.wires.fate = Box::new(|s| match (s.from, s.nth) {
        (Side::Client, 1) => Fate::Late(Span::from_ms(2)),
        _ => Fate::Deliver,
    });
    net.write(Side::Client, SEGMENT + 500);
    net.close(Side::Client);
    net.run_to(100);
    assert_dialogue(
        &net,
        None,
        "20 > 1:1001 ack 1
         20 > 1001:1501 ack 1
         20 > FIN 1501:1502 ack 1
         25 < ack 1 sack 1001:1501
         25 < ack 1 sack 1001:1502
         27 < ack 1502",
    );
    assert_eq!(net.end(Side::Server).received(), 1500);
}

#[test]
fn an_aborted_connection_is_gone_at_both_ends_at_once() {
    let mut net = Net::established(settings());
    net.lose(&[1]);
    net.write_segments(20);
    net.run_to(31);
    let again = net.end(Side::Client).counters().retransmits;
    assert!(again > 0 && net.end(Side::Client).outstanding() > 0);
    let (client, server) = (net.client, net.server);
    net.stack.abort(client);
    assert!(!net.stack.is_live(client) && !net.stack.is_live(server));
    net.wires.log.clear();
    net.wires.notices.clear();
    // Late packets and timer events are ignored, and no application is notified.
    net.run_to(3000);
    assert_eq!((net.wires.log.len(), net.wires.notices.len()), (0, 0));
    assert_eq!(net.stack.totals().retransmits, again);
    net.stack.abort(client); // a second abort does nothing
    net.stack.close(net.now(), client, &mut net.wires);
    net.wires.fate = Box::new(|_| Fate::Deliver);
    net.open();
    assert_eq!(net.client.slot(), client.slot());
    assert_ne!(net.client, client);
    net.run_to(3020);
    net.write_segments(5);
    net.run_to(3100);
    assert_eq!(net.end(Side::Server).received(), 5 * SEGMENT);
    assert_eq!(net.stack.totals().retransmits, again);
}
