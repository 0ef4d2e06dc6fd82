//! Tests of the three-way handshake and its losses.

use super::super::Notice;
use super::super::config::TcpConfig;
use super::net::{Fate, Net, SEGMENT, assert_dialogue, settings};
use eastwest_types::{Side, Span, flag};

#[test]
fn three_packets_then_data() {
    let mut net = Net::new(settings());
    net.open();
    net.write(Side::Client, 300);
    net.run_to(100);
    assert_dialogue(
        &net,
        None,
        "0 > SYN 0:1
         5 < SYN 0:1 ack 1
         10 > ack 1
         10 > 1:301 ack 1
         15 < ack 301",
    );
    assert_eq!(net.end(Side::Server).received(), 300);
    assert_eq!(net.stack.totals().retransmits, 0);
}

#[test]
fn lengths_of_syns_follow_their_options() {
    // Bytes of options: MSS 4, window scale 3 + 1, SACK-permitted 2 (+ 2 without timestamps),
    // timestamps 10 (+ 2 without SACK).
    for (sack, timestamps, length) in
        [(true, true, 60), (false, true, 60), (true, false, 52), (false, false, 48)]
    {
        let mut net = Net::new(TcpConfig { sack, timestamps, ..settings() });
        net.open();
        net.run_to(100);
        let ack = if timestamps { 52 } else { 40 };
        let lengths: Vec<u16> = net.wires.log.iter().map(|s| s.packet.ip_len).collect();
        assert_eq!(lengths, [length, length, ack]);
    }
}

#[test]
fn a_lost_syn_is_sent_again_after_the_initial_timeout_which_doubles() {
    let mut net = Net::new(settings());
    net.lose(&[1, 2, 3]);
    net.open();
    net.run_to(2000);
    assert_dialogue(
        &net,
        None,
        "0 > SYN 0:1
         200 > SYN 0:1
         600 > SYN 0:1
         1400 > SYN 0:1
         1405 < SYN 0:1 ack 1
         1410 > ack 1",
    );
    let totals = net.stack.totals();
    assert_eq!((totals.retransmits, totals.timeouts), (3, 3));
    // After the loss of more than one SYN the client's initial window is one segment (RFC 6928, 2),
    // but not the server's.
    assert_eq!(net.end(Side::Client).cwnd(), SEGMENT);
    assert_eq!(net.end(Side::Server).cwnd(), 10 * SEGMENT);
}

#[test]
fn one_lost_syn_leaves_the_initial_window_and_its_echo_still_gives_a_sample() {
    for timestamps in [true, false] {
        let mut net = Net::new(TcpConfig { timestamps, ..settings() });
        net.lose(&[1]);
        net.open();
        net.run_to(2000);
        assert_eq!(net.end(Side::Client).cwnd(), 10 * SEGMENT);
        // Without timestamps, Karn's algorithm takes no RTT sample from a retransmitted SYN.
        let sample = timestamps.then_some(Span::from_ms(10));
        assert_eq!(net.end(Side::Client).timers.rtt.srtt(), sample);
        assert_eq!(net.end(Side::Server).timers.rtt.srtt(), Some(Span::from_ms(10)));
    }
}

#[test]
fn a_lost_syn_ack_is_sent_again_by_whichever_timer_is_first() {
    let mut net = Net::new(settings());
    net.wires.fate = Box::new(|s| {
        let lost = s.from == Side::Server && s.nth == 1;
        if lost { Fate::Drop } else { Fate::Deliver }
    });
    net.open();
    net.run_to(1000);
    assert_dialogue(
        &net,
        None,
        "0 > SYN 0:1
         5 < SYN 0:1 ack 1
         200 > SYN 0:1
         205 < SYN 0:1 ack 1
         205 < SYN 0:1 ack 1
         210 > ack 1
         210 > ack 1",
    );
    assert_eq!(net.stack.totals().retransmits, 3);
}

#[test]
fn a_lost_third_ack_is_made_good_by_the_syn_ack_again() {
    let mut net = Net::new(settings());
    net.lose(&[2]);
    net.open();
    net.run_to(1000);
    assert_dialogue(
        &net,
        None,
        "0 > SYN 0:1
         5 < SYN 0:1 ack 1
         10 > ack 1
         205 < SYN 0:1 ack 1
         210 > ack 1",
    );
    assert!(net.end(Side::Server).is_established());
}

#[test]
fn data_stands_in_for_a_lost_third_ack() {
    let mut net = Net::new(settings());
    net.lose(&[2]);
    net.open();
    net.write(Side::Client, 100);
    net.write(Side::Server, 200);
    net.run_to(100);
    assert_dialogue(
        &net,
        None,
        "0 > SYN 0:1
         5 < SYN 0:1 ack 1
         10 > ack 1
         10 > 1:101 ack 1
         15 < ack 101
         15 < 1:201 ack 101
         20 > ack 201",
    );
}

#[test]
fn the_timeout_of_the_first_data_counts_from_its_own_echo() {
    // Five idle seconds after the handshake do not count as an RTT sample.
    let mut net = Net::new(settings());
    net.run_to(1); // a timestamp of 0 would not be echoed
    net.open();
    net.run_to(5000);
    net.write(Side::Client, 100);
    net.run_to(6000);
    assert_eq!(net.end(Side::Client).timers.rtt.srtt(), Some(Span::from_ms(10)));
    assert!(net.end(Side::Client).rto(net.stack.config()) <= Span::from_ms(200));
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let mut net = Net::new(TcpConfig { max_retries: 3, ..settings() });
    net.wires.fate = Box::new(|_| Fate::Drop);
    net.open();
    net.run_to(20_000);
    // The connection fails after timeouts of 200 + 400 + 800 + 1600 ms.
    assert_eq!(net.wires.log.iter().filter(|s| s.has(flag::SYN)).count(), 4);
    assert_eq!(net.told(Side::Client), [(3000, Notice::Failed)]);
}
