//! Tests of flow completion times: they are never less than transmission (size over rate), store
//! and forward and propagation together, and equal to this sum on an idle path.

use crate::harness::{Outcome, context_with, finish, graph, outcome, scenario_in, shipped};

/// Checks that no flow is faster than its path allows when idle.
pub fn assert_bounded(name: &str, done: &Outcome) {
    let least = done.f64s("flows", "slowdown").iter().copied().fold(f64::INFINITY, f64::min);
    assert!(least >= 1.0, "{name}: a flow took {least} of its ideal time");
}

/// Checks shipped scenarios; `crates/fuzz` does the same with generated ones.
#[test]
fn no_flow_of_s1_or_the_demo_beats_its_idle_path() {
    let small = [("workload.bulk.bytes", "20 KB")];
    assert_bounded("S1", &outcome(&shipped("s1"), &small));
    assert_bounded("demo", &outcome(&shipped("demo"), &[("workload.hadoop.trace_to", "3 min")]));
}

/// Returns a scenario with one flow whose duration depends only on the path: one sender, one
/// receiver, an open connection, and a window that never limits it.
fn alone(fabric: &str, receiver: &str, sender: &str, bytes: u64, routing: &str) -> String {
    format!(
        "schema = 1\n[fabric]\n{fabric}\nprocessing_jitter = '0 s'\nrouting = '{routing}'\n\
         host_queue = {{ limit = '100 MB' }}\nqueue = {{ limit = '100 MB' }}\n[tcp]\n\
         initial_window = 10000\nmax_window = '100 MB'\n[[workload]]\nname = 'read'\n\
         kind = 'incast'\nreceiver = '{receiver}'\nsenders = '{sender}'\nstart_jitter = '0 s'\n\
         block_bytes = '{bytes} B'\n"
    )
}

/// Returns the transmission time of `bytes` bytes at `mbit` Mbit/s in picoseconds; it must be a
/// whole number.
fn ps(bytes: u64, mbit: u64) -> u64 {
    assert_eq!(bytes * 8_000_000 % mbit, 0);
    bytes * 8_000_000 / mbit
}

#[test]
fn an_idle_path_takes_exactly_the_closed_form() {
    // a full packet takes 1538 B on the link: 1448 payload + 52 headers + 38 framing
    let full = ps(1538, 1_000);
    let hop = 5_000_000; // 5 µs of propagation in ps
    let star = "kind = 'star'\nhosts = 3\nhost_rate = '1 Gbit/s'";
    let tree = "kind = 'leaf-spine'\nleaves = 2\nhosts_per_leaf = 2\nspines = 2\n\
                host_rate = '1 Gbit/s'\nuplink_rate = '10 Gbit/s'";
    let thin = "kind = 'leaf-spine'\nleaves = 2\nhosts_per_leaf = 2\nspines = 2\n\
                host_rate = '10 Gbit/s'\nuplink_rate = '1 Gbit/s'";
    for packets in [1, 2, 10, 800] {
        let bytes = 1448 * packets;
        let expect = [
            // all packets pass the first link one after the other, then the last packet passes the
            // other links
            (star, "h2", packets * full + full + 2 * hop),
            (tree, "h3", packets * full + 2 * ps(1538, 10_000) + full + 4 * hop),
            // one packet passes the first link, all packets pass the slow second link, then the
            // last packet passes the other links
            (thin, "h3", ps(1538, 10_000) + packets * full + full + ps(1538, 10_000) + 4 * hop),
        ];
        for (fabric, receiver, time) in expect {
            let done = outcome(&alone(fabric, receiver, "h0", bytes, "ecmp"), &[]);
            let fct = done.f64s("flows", "fct_us")[0];
            assert_eq!(fct, time as f64 / 1e6, "{packets} packets, {fabric}");
            assert_eq!(done.f64s("flows", "slowdown"), [1.0], "{packets} packets, {fabric}");
            assert_eq!(done.count("tcp.retransmits"), 0);
        }
    }
}

#[test]
fn a_short_last_packet_waits_for_the_one_before() {
    // 1448 + 100 B: the short packet arrives at the switch while the full packet is being
    // forwarded.
    let star = "kind = 'star'\nhosts = 2\nhost_rate = '1 Gbit/s'";
    let done = outcome(&alone(star, "h1", "h0", 1548, "ecmp"), &[]);
    let time = 2 * ps(1538, 1_000) + ps(190, 1_000) + 2 * 5_000_000;
    assert_eq!(done.f64s("flows", "fct_us"), [time as f64 / 1e6]);
    assert_eq!(done.f64s("flows", "slowdown"), [1.0]);
}

#[test]
fn ethernet_pads_a_short_packet() {
    // 1 B of payload without timestamps has 41 IP bytes, 79 B with framing, and is padded to 84 B
    // on the link.
    let star = "kind = 'star'\nhosts = 2\nhost_rate = '1 Gbit/s'";
    let text = alone(star, "h1", "h0", 1, "ecmp");
    let done = outcome(&text, &[("tcp.timestamps", "false")]);
    assert_eq!(done.f64s("flows", "fct_us"), [(2 * ps(84, 1_000) + 10_000_000) as f64 / 1e6]);
    assert_eq!(done.f64s("flows", "slowdown"), [1.0]);
}

#[test]
fn a_new_connection_adds_its_handshake() {
    let text = "schema = 1\n[fabric]\nkind = 'star'\nhosts = 2\nhost_rate = '1 Gbit/s'\n\
        processing_jitter = '0 s'\n[tcp]\ninitial_window = 100\n[[workload]]\nname = 'one'\n\
        kind = 'poisson'\nload = 0.1\nsizes = '144800 B'\nflows = 1\n";
    let done = outcome(text, &[]);
    // SYN and SYN-ACK take 60 + 38 B over two links each; the ACK of 90 B is sent before the data
    let handshake = 4 * ps(98, 1_000) + 4 * 5_000_000 + ps(90, 1_000);
    let data = 101 * ps(1538, 1_000) + 2 * 5_000_000;
    assert_eq!(done.f64s("flows", "fct_us"), [(handshake + data) as f64 / 1e6]);
}

#[test]
fn rates_that_do_not_divide_evenly_keep_the_bound() {
    for rate in ["3 Gbit/s", "333 Mbit/s", "7 Gbit/s", "999999999 bit/s"] {
        let star = format!("kind = 'star'\nhosts = 2\nhost_rate = '{rate}'");
        for bytes in [1, 1448, 5_000_000] {
            let done = outcome(&alone(&star, "h1", "h0", bytes, "ecmp"), &[]);
            assert_eq!(done.f64s("flows", "slowdown"), [1.0], "{rate}, {bytes} B");
        }
    }
}

#[test]
fn packets_in_turn_over_slow_uplinks_add_up_their_rates() {
    // Two paths of 1 Gbit/s between hosts of 10 Gbit/s carry about 2 Gbit/s, and the flow is not
    // faster than its ideal time.
    let thin = "kind = 'leaf-spine'\nleaves = 2\nhosts_per_leaf = 1\nspines = 2\n\
                host_rate = '10 Gbit/s'\nuplink_rate = '1 Gbit/s'";
    let time = |routing| {
        let done = outcome(&alone(thin, "h1", "h0", 1_448_000, routing), &[]);
        assert_bounded(routing, &done);
        done.f64s("flows", "fct_us")[0]
    };
    let gain = time("ecmp") / time("round-robin");
    assert!((gain - 2.0).abs() < 0.02, "in turn over two paths is {gain} times as fast");
}

#[test]
fn the_ideal_time_is_that_of_the_path_taken() {
    // Two paths have equally many links, one of them slow and long, the other fast. ECMP may choose
    // either.
    let slow_first = [
        ("a", "s", "10 Gbit/s", "1 us"),
        ("b", "t", "10 Gbit/s", "1 us"),
        ("s", "slow", "1 Gbit/s", "1 ms"),
        ("slow", "t", "1 Gbit/s", "1 ms"),
        ("s", "fast", "10 Gbit/s", "1 us"),
        ("fast", "t", "10 Gbit/s", "1 us"),
        ("s", "far", "10 Gbit/s", "1 us"),
        ("far", "away", "10 Gbit/s", "1 us"),
        ("away", "t", "10 Gbit/s", "1 us"),
    ];
    let switches = ["s", "t", "slow", "fast", "far", "away"];
    let context = context_with("two.toml", &graph(&["a", "b"], &switches, &slow_first));
    let text = alone("kind = 'graph'\nfile = 'two.toml'", "b", "a", 144_800, "ecmp");
    let mut fast = 0;
    for seed in 1..=12 {
        let done = finish(&scenario_in(&context, &text, &[("seed", &seed.to_string())]));
        assert_bounded("graph", &done);
        fast += usize::from(done.f64s("flows", "fct_us")[0] < 1_000.0);
    }
    assert!((1..12).contains(&fast), "{fast} of 12 took the fast path");
    // the explicit route has one switch more than the shortest path
    let route = "route = [{ from = 'a', to = 'b', via = ['s', 'far', 'away', 't'] }]\nmtu = 1500";
    let text = alone(
        &format!("kind = 'graph'\nfile = 'two.toml'\n{route}"),
        "b",
        "a",
        144_800,
        "explicit",
    );
    let done = finish(&scenario_in(&context, &text, &[]));
    assert_eq!(done.f64s("flows", "slowdown"), [1.0]);
    let time = 100 * ps(1538, 10_000) + 4 * ps(1538, 10_000) + 5 * 1_000_000;
    assert_eq!(done.f64s("flows", "fct_us"), [time as f64 / 1e6]);
}
