//! Tests of BBR version 3 over a path of 100 Mbit/s and 10 ms, with packets of 1500 B without
//! framing.

use crate::harness::{CableText, Outcome, context_with, finish, graph, scenario_in};

/// Runs one flow of 60 MB from each of `senders` senders through a common queue of `limit` packets.
fn flows(congestion: &str, limit: u32, senders: usize) -> Outcome {
    let names: Vec<String> = (0..senders).map(|n| format!("s{n}")).collect();
    let mut hosts: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut cables: Vec<CableText> =
        hosts.iter().map(|s| (*s, "x", "1 Gbit/s", "2.5 ms")).collect();
    cables.push(("x", "r", "100 Mbit/s", "2.5 ms"));
    hosts.push("r");
    let context = context_with("path.toml", &graph(&hosts, &["x"], &cables));
    let text = format!(
        "schema = 1\nduration = '60 s'\n[fabric]\nkind = 'graph'\nfile = 'path.toml'\n\
         framing = '0 B'\nqueue = {{ limit = '{limit} packets' }}\n\
         host_queue = {{ limit = '10000 packets' }}\n[tcp]\nprofile = 'linux'\n\
         congestion = '{congestion}'\nmax_window = '8 MB'\n\
         [[workload]]\nname = 'bulk'\nkind = 'incast'\n\
         receiver = 'r'\nblock_bytes = '60 MB'\nrequest_bytes = '0 B'\nwarm_up = '0 s'\n"
    );
    finish(&scenario_in(&context, &text, &[]))
}

/// Returns the goodput in Mbit/s until the last flow has finished, and the fraction of segments
/// lost.
fn goodput_and_loss(done: &Outcome, senders: usize) -> (f64, f64) {
    let last = done.f64s("flows", "fct_us").iter().copied().fold(0.0, f64::max);
    let bytes = senders as f64 * 60e6;
    let lost = done.count("packets.dropped") as f64 / (bytes / 1448.0);
    (bytes * 8.0 / last, lost)
}

#[test]
fn fills_the_path_whatever_the_queue_and_loses_little() {
    // 83 packets are the bandwidth-delay product; the link carries at most 96.5 Mbit/s of payload
    for (limit, least, most_lost) in [(500, 94.0, 0.0), (50, 93.0, 0.006), (10, 87.0, 0.008)] {
        let done = flows("bbr3", limit, 1);
        let (goodput, lost) = goodput_and_loss(&done, 1);
        println!("{limit} packets: {goodput} Mbit/s, {lost} lost");
        assert!(goodput > least, "{limit} packets: {goodput} Mbit/s");
        assert!(lost <= most_lost, "{limit} packets: {lost} lost");
        assert_eq!(done.count("tcp.timeouts"), 0);
    }
    // BBR version 1 does not react to losses, so it loses many packets
    let (_, lost) = goodput_and_loss(&flows("bbr", 10, 1), 1);
    assert!(lost > 0.03, "{lost}");
}

#[test]
fn several_flows_share_a_short_queue() {
    let done = flows("bbr3", 50, 8);
    let (goodput, lost) = goodput_and_loss(&done, 8);
    println!("{goodput} Mbit/s, {lost} lost");
    assert!(goodput > 93.0, "{goodput} Mbit/s");
    assert!(lost < 0.04, "{lost} lost");
    assert!(goodput_and_loss(&flows("bbr", 50, 8), 8).1 > 0.15);
    let fct = done.f64s("flows", "fct_us");
    let first = fct.iter().copied().fold(f64::MAX, f64::min);
    let last = fct.iter().copied().fold(0.0, f64::max);
    assert!(first > 0.85 * last, "{first} and {last}");
}
