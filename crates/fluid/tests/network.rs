//! Messages over the network in flow mode: closed formulas on idle paths, conservation of bytes,
//! order, determinism.

use eastwest_fluid::delay::{PortSpec, Queue};
use eastwest_fluid::network::{Delivered, Network, Pace};
use eastwest_fluid::transfer::Rules;
use eastwest_types::{Rate, Side, Span, Time};

const RULES: Rules = Rules {
    segment: 1448,
    header: 52,
    ack: 52,
    ack_every: 1,
    framing: 38,
    min_frame: 84,
    initial_window: 14_480,
    max_window: 1 << 20,
    idle_restart: None,
};

/// Returns hosts on one switch: port 2 i leads from host i to the switch, port 2 i + 1 from the
/// switch to host i.
fn star(hosts: u32, delay: Span) -> Network {
    let port = PortSpec { rate: Rate::gbit(1), delay, queue: Queue::DropTail(300_000) };
    Network::new(vec![port; 2 * hosts as usize], RULES, Pace::default())
}

fn open(net: &mut Network, now: Time, from: u32, to: u32) -> u32 {
    let path = |a: u32, b: u32| vec![2 * a, 2 * b + 1].into_boxed_slice();
    net.open(now, [path(from, to), path(to, from)])
}

/// Executes all events. Returns all deliveries with their times.
fn run(net: &mut Network) -> Vec<(Time, Delivered)> {
    let mut all = Vec::new();
    while net.next() < Time::NEVER {
        let now = net.next();
        all.extend(net.advance().map(|d| (now, d)));
    }
    all
}

fn us(time: Time) -> f64 {
    time.since(Time::ZERO).as_us_f64()
}

#[test]
fn on_an_idle_path_a_message_takes_handshake_bytes_and_one_packet_more() {
    let mut net = star(2, Span::from_us(5));
    let conn = open(&mut net, Time::ZERO, 0, 1);
    net.send(Time::ZERO, conn, Side::Client, 10 * 1448);
    let arrived = run(&mut net);
    // SYN and SYN-ACK cross 4 links of 5 us with 90 B each; then follow ten packets of 1538 B, and
    // one more for store and forward.
    let handshake = 4.0 * (5.0 + 0.72);
    let wanted = handshake + 10.0 * 12.304 + 12.304 + 2.0 * 5.0;
    assert_eq!(arrived.len(), 1);
    assert!((us(arrived[0].0) - wanted).abs() < 0.01, "{} and {wanted}", us(arrived[0].0));
}

#[test]
fn slow_start_waits_a_round_trip_for_every_window_but_the_last() {
    let mut net = star(2, Span::from_us(250));
    let conn = open(&mut net, Time::ZERO, 0, 1);
    net.send(Time::ZERO, conn, Side::Client, 70 * 1448);
    let arrived = run(&mut net);
    // Slow start sends windows of 10, 20 and 40 segments: two round trips, then 40 segments at the
    // rate of the link.
    let round = 1000.0 + 2.0 * 12.304 + 2.0 * 0.72;
    let handshake = 4.0 * 250.72;
    let wanted = handshake + 2.0 * round + 40.0 * 12.304 + 12.304 + 500.0;
    assert!((us(arrived[0].0) - wanted).abs() < 1.0, "{} and {wanted}", us(arrived[0].0));
}

#[test]
fn flows_into_one_host_share_its_link() {
    let mut net = star(5, Span::from_us(1));
    let bytes = 1_000_000;
    for from in 0..4 {
        let conn = open(&mut net, Time::ZERO, from, 4);
        net.send(Time::ZERO, conn, Side::Client, bytes);
    }
    let arrived = run(&mut net);
    let wire_us = 4.0 * (RULES.train(bytes).wire as f64) * 8.0 / 1e3;
    let last = us(arrived.last().unwrap().0);
    assert_eq!(arrived.len(), 4);
    assert!(last > wire_us && last < wire_us * 1.01 + 50.0, "{last} and {wire_us}");
}

#[test]
fn every_byte_is_counted_once_on_every_port() {
    let mut net = star(4, Span::from_us(5));
    let sizes = [100, 1448, 30_000, 2_000_000, 0, 777_777];
    for (i, &bytes) in sizes.iter().enumerate() {
        let conn = open(&mut net, Time(i as u64 * 7_000_000), i as u32 % 3, 3);
        net.send(Time(i as u64 * 7_000_000), conn, Side::Client, bytes);
        net.send(Time(i as u64 * 7_000_000), conn, Side::Client, bytes / 2);
        net.close(conn);
    }
    let mut looks = 0;
    while net.next() < Time::NEVER {
        let now = net.next();
        if let Some(d) = net.advance() {
            net.free_if_quiet(d.conn);
        }
        // Reading the counters between events must not count anything twice.
        let _ = net.carried(now);
        looks += 1;
    }
    assert!(looks > 20);
    let bare = RULES.wire(RULES.ack);
    let trains = sizes.iter().flat_map(|&b| [RULES.train(b), RULES.train(b / 2)]);
    let data: u64 = trains.clone().map(|t| t.wire).sum();
    let acks: u64 = trains.map(|t| t.acks).sum();
    let n = sizes.len() as u64;
    let carried = net.carried(Time(u64::MAX >> 4)).to_vec();
    // SYN, ACK, FIN and the ACK of the other FIN travel in one direction.
    assert_eq!(carried[7].bytes, data + n * 4 * bare);
    assert_eq!(carried[6].bytes, acks * bare + n * 3 * bare);
    assert_eq!(carried[0].bytes + carried[2].bytes + carried[4].bytes, carried[7].bytes);
}

#[test]
fn messages_of_one_side_arrive_in_order() {
    let mut net = star(3, Span::from_us(5));
    let conn = open(&mut net, Time::ZERO, 0, 2);
    let other = open(&mut net, Time::ZERO, 1, 2);
    net.send(Time::ZERO, other, Side::Client, 5_000_000);
    for bytes in [900_000, 10, 300_000, 20, 0] {
        net.send(Time::ZERO, conn, Side::Client, bytes);
    }
    let mut received = 0;
    for (_, d) in run(&mut net) {
        received += u64::from(d.conn == conn);
    }
    assert_eq!(received, 5);
    assert_eq!(net.received(conn), [0, 1_200_030]);
}

#[test]
fn what_is_aborted_leaves_its_share_and_never_arrives() {
    let mut net = star(3, Span::from_us(5));
    let (a, b) = (open(&mut net, Time::ZERO, 0, 2), open(&mut net, Time::ZERO, 1, 2));
    net.send(Time::ZERO, a, Side::Client, 10_000_000);
    net.send(Time::ZERO, b, Side::Client, 1_000_000);
    while net.next() < Time(1_000_000_000) {
        net.advance();
    }
    net.abort(Time(1_000_000_000), a);
    let arrived = run(&mut net);
    assert!(arrived.iter().all(|(_, d)| d.conn == b));
    // The message has half of 1 Gbit/s for a millisecond, and the whole rate from the next round
    // trip on.
    let more_us = us(arrived[0].0) - RULES.train(1_000_000).wire as f64 * 8.0 / 1e3;
    assert!(more_us > 480.0 && more_us < 1_000.0, "{more_us}");
}

#[test]
fn starts_that_do_not_fit_into_a_queue_are_counted() {
    let start = |senders: u32| {
        let mut net = star(65, Span::from_us(5));
        for from in 0..senders {
            let conn = open(&mut net, Time::ZERO, from, 64);
            net.send(Time::ZERO, conn, Side::Client, 100_000);
        }
        run(&mut net);
        net.overflows()
    };
    let few = start(8);
    assert_eq!((few.starts, few.of), (0, 8));
    let many = start(64);
    // A queue of 300,000 B holds 19 initial windows of ten packets of 1538 B.
    assert_eq!((many.starts, many.of), (45, 64));
}
