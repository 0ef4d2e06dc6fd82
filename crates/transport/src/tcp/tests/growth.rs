//! Tests of the initial window, slow start, congestion avoidance, idle restart and the receive window.

use super::super::config::TcpConfig;
use super::net::{Net, SEGMENT, assert_dialogue, settings};
use eastwest_types::Side;

/// Returns the numbers of data segments that the client sent at the same time, as (milliseconds,
/// number).
fn bursts(net: &Net) -> Vec<(u64, usize)> {
    let mut bursts: Vec<(u64, usize)> = Vec::new();
    for s in net.wires.log.iter().filter(|s| s.from == Side::Client && s.is_data()) {
        let ms = s.at.0 / 1_000_000_000;
        match bursts.last_mut() {
            Some(last) if last.0 == ms => last.1 += 1,
            _ => bursts.push((ms, 1)),
        }
    }
    bursts
}

#[test]
fn slow_start_doubles_from_ten_segments() {
    for ack_every in [1, 2] {
        let mut net = Net::established(TcpConfig { ack_every, ..settings() });
        net.write_segments(100);
        net.run_to(29);
        assert_eq!(net.end(Side::Client).cwnd(), 10 * SEGMENT);
        net.run_to(30);
        // Ten ACKs of single segments, or five ACKs of two segments each, double the window (RFC
        // 3465, L = 2).
        assert_eq!(net.end(Side::Client).cwnd(), 20 * SEGMENT);
        net.run_to(500);
        assert_eq!(bursts(&net), [(20, 10), (30, 20), (40, 40), (50, 30)]);
    }
}

#[test]
fn an_ack_for_many_segments_counts_for_two() {
    let mut net = Net::established(TcpConfig { ack_every: 5, ..settings() });
    net.write_segments(100);
    net.run_to(30);
    assert_eq!(net.end(Side::Client).cwnd(), 14 * SEGMENT);
}

#[test]
fn the_window_does_not_grow_while_the_application_is_the_limit() {
    let mut net = Net::established(settings());
    for round in 0..20 {
        net.write_segments(4);
        net.run_to(20 + 10 * (round + 1));
    }
    assert_eq!(net.end(Side::Client).cwnd(), 10 * SEGMENT);
}

#[test]
fn congestion_avoidance_adds_a_segment_in_each_round_trip() {
    for ack_every in [1, 2] {
        let mut net = Net::established(TcpConfig { ack_every, ..settings() });
        net.stack.endpoints[net.client.slot()].window.ssthresh = 10 * SEGMENT;
        net.write_segments(1000);
        for round in 1..=20 {
            net.run_to(20 + 10 * round);
            let cwnd = net.end(Side::Client).cwnd() / SEGMENT;
            assert!(cwnd.abs_diff(10 + round) <= 1, "{cwnd} segments after {round} round trips");
        }
    }
}

#[test]
fn after_an_idle_timeout_the_window_is_the_initial_one() {
    for (idle_restart, pause, burst) in [(true, 150, 40), (true, 201, 10), (false, 201, 40)] {
        let mut net = Net::established(TcpConfig { idle_restart, ..settings() });
        net.write_segments(60); // 10, 20 and 30 segments: the window is 40 or more then
        net.run_to(60);
        assert!(net.end(Side::Client).cwnd() >= 40 * SEGMENT);
        net.wires.log.clear();
        net.run_to(40 + pause); // the last burst left at 40 ms
        net.write_segments(40);
        assert_eq!(bursts(&net)[0].1, burst, "after {pause} ms");
    }
}

#[test]
fn a_window_of_64_kb_sends_whole_segments_only() {
    let mut net = Net::established(TcpConfig { max_window: 65_535, ..settings() });
    net.write_segments(500);
    net.run_to(2000);
    let sizes: Vec<u16> =
        net.wires.log.iter().filter(|s| s.is_data()).map(|s| s.packet.payload).collect();
    assert_eq!(sizes, [SEGMENT as u16; 500]);
    let most = bursts(&net).iter().map(|b| b.1).max();
    assert_eq!(most, Some(65));
    assert_eq!(net.end(Side::Server).received(), 500 * SEGMENT);
}

#[test]
fn a_window_below_a_segment_is_filled_when_nothing_is_under_way() {
    let mut net = Net::established(TcpConfig { max_window: 400, ..settings() });
    net.write(Side::Client, 1000);
    net.run_to(60);
    assert_dialogue(
        &net,
        Some(Side::Client),
        "20 > 1:401 ack 1
         30 > 401:801 ack 1
         40 > 801:1001 ack 1",
    );
}

#[test]
fn small_writes_leave_at_once() {
    // Without Nagle's algorithm, written data is sent if it fits into the window.
    let mut net = Net::established(settings());
    net.write(Side::Client, 10);
    net.write(Side::Client, 1500);
    assert_dialogue(
        &net,
        None,
        "20 > 1:11 ack 1
         20 > 11:1011 ack 1
         20 > 1011:1511 ack 1",
    );
}

#[test]
fn data_both_ways_carries_the_acknowledgements() {
    let mut net = Net::established(TcpConfig { ack_every: 2, ..settings() });
    net.write(Side::Client, 500);
    net.write(Side::Server, 700);
    net.run_to(25);
    net.write(Side::Client, 100);
    net.write(Side::Server, 100);
    net.run_to(200);
    // Only the last segment of each end needs a separate ACK, which the delayed-ACK timer sends.
    assert_dialogue(
        &net,
        None,
        "20 > 1:501 ack 1
         20 < 1:701 ack 1
         25 > 501:601 ack 701
         25 < 701:801 ack 501
         70 < ack 601
         70 > ack 801",
    );
}
