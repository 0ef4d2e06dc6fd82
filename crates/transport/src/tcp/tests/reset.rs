//! Tests of resets, and of segments with flags that an established connection does not accept.

use super::super::Notice;
use super::super::info::ConnectionState;
use super::net::{Fate, Net, assert_dialogue, settings};
use eastwest_types::{HostId, Packet, Side, flag};

/// Delivers to the server a packet that the client has not sent.
fn inject(net: &mut Net, seq: u64, payload: u16, flags: u8) {
    let mut packet = Packet::blank(HostId(1));
    packet.dst_endpoint = net.id(Side::Server);
    packet.born = net.now();
    (packet.seq, packet.payload, packet.flags) = (seq, payload, flags);
    (packet.ack, packet.window) = (1, 65_535);
    net.stack.on_packet(net.now(), &packet, None, &mut net.wires);
}

fn state(net: &Net, side: Side) -> ConnectionState {
    net.stack.info(net.id(side)).connection
}

#[test]
fn a_segment_without_ack_is_dropped() {
    let mut net = Net::established(settings());
    for flags in [0, flag::PSH, flag::FIN] {
        inject(&mut net, 1, 100, flags);
    }
    net.run_to(1000);
    assert_dialogue(&net, None, "");
    assert_eq!(net.end(Side::Server).received(), 0);
    assert_eq!(state(&net, Side::Server), ConnectionState::Established);
    inject(&mut net, 1, 100, flag::ACK);
    assert_eq!(net.end(Side::Server).received(), 100);
}

#[test]
fn a_reset_ends_the_connection_only_with_the_sequence_number_expected_next() {
    let mut net = Net::established(settings());
    inject(&mut net, 500, 0, flag::RST);
    assert_dialogue(&net, None, "20 < ack 1");
    inject(&mut net, (1 << 20) + 1, 0, flag::RST); // above the receive window
    inject(&mut net, 0, 0, flag::RST); // below the receive window
    assert_eq!(net.wires.log.len(), 1);
    assert_eq!(state(&net, Side::Server), ConnectionState::Established);
    net.write(Side::Server, 100_000);
    net.wires.log.clear();
    inject(&mut net, 1, 0, flag::RST | flag::ACK);
    assert_eq!(net.told(Side::Server), [(20, Notice::Failed)]);
    net.run_to(5000);
    assert_dialogue(&net, Some(Side::Server), ""); // neither data nor its retransmission is sent
}

#[test]
fn a_reset_that_answers_the_syn_ends_the_attempt() {
    let mut net = Net::new(settings());
    net.wires.fate = Box::new(|_| Fate::Drop);
    net.open();
    let mut packet = Packet::blank(HostId(0));
    packet.dst_endpoint = net.id(Side::Client);
    packet.flags = flag::RST;
    net.stack.on_packet(net.now(), &packet, None, &mut net.wires);
    assert_eq!(state(&net, Side::Client), ConnectionState::SynSent);
    (packet.flags, packet.ack) = (flag::RST | flag::ACK, 1);
    net.stack.on_packet(net.now(), &packet, None, &mut net.wires);
    assert_eq!(net.told(Side::Client), [(0, Notice::Failed)]);
}

#[test]
fn an_application_that_resets_sends_nothing_more_and_the_other_end_knows() {
    let mut net = Net::established(settings());
    net.write(Side::Client, 20_000);
    net.wires.log.clear();
    net.stack.reset(net.now(), net.client, &mut net.wires);
    net.run_to(5000);
    let resets: Vec<_> = net.wires.log.iter().filter(|s| s.has(flag::RST)).collect();
    assert_eq!(resets.len(), 1);
    assert_eq!((resets[0].packet.seq, resets[0].packet.ack), (10_001, 1));
    assert!(net.wires.log.iter().all(|s| s.from == Side::Server || s.has(flag::RST)));
    let ended = [(25, Notice::Failed)];
    assert_eq!(net.told(Side::Server), ended);
}
