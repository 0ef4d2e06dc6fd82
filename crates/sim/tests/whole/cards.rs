//! Tests of hosts with several network cards: bonds against closed forms, dual top-of-rack with a failure, rails,
//! and refused combinations.

use crate::harness::{
    Outcome, attempt, context_with, finish, graph, outcome, scenario, scenario_in, shipped,
};
use eastwest_sim::scenario::{Context, read};
use std::path::PathBuf;

/// Returns a star whose hosts have two cards with 1 Gbit/s each.
fn bond(hosts: u32, fabric: &str, rest: &str) -> String {
    format!(
        "schema = 1\n[fabric]\nkind = 'star'\nhosts = {hosts}\ncards = 2\nhost_rate = '1 Gbit/s'\n\
         processing_jitter = '0 s'\n{fabric}\n{rest}"
    )
}

/// Returns a list of flows from `h0` to `h1`, and its workload.
fn flows(bytes: &[u64]) -> (String, &'static str) {
    let rows: String = bytes.iter().map(|bytes| format!("h0,h1,{bytes},0\n")).collect();
    let workload = "[[workload]]\nname = 'list'\nkind = 'flow-list'\nfile = 'flows.csv'\n";
    (format!("src,dst,bytes,start_s\n{rows}"), workload)
}

/// Returns the bytes on the link of each port whose name begins with `from` and contains `to`.
fn bytes_of(out: &Outcome, from: &str, to: &str) -> Vec<u64> {
    let names = out.texts("links", "name");
    let bytes = out.u64s("links", "bytes");
    let named = names.iter().zip(bytes).filter(|(n, _)| n.starts_with(from) && n.contains(to));
    named.map(|(_, bytes)| bytes).collect()
}

/// Returns the time of a flow of `bytes` on a link of 1 Gbit/s, in seconds.
fn wire_s(bytes: f64) -> f64 {
    (bytes / 1448.0).ceil() * 1538.0 * 8.0 / 1e9
}

#[test]
fn ports_are_named_by_their_cards() {
    let (list, workload) = flows(&[1_000]);
    let context = context_with("flows.csv", &list);
    let out = finish(&scenario_in(&context, &bond(2, "", workload), &[]));
    let names = out.texts("links", "name");
    assert_eq!(
        names[..4],
        ["h0:eth0->switch0", "switch0->h0:eth0", "h0:eth1->switch0", "switch0->h0:eth1"]
    );
    assert_eq!(out.texts("links", "src")[2], "h0");
}

#[test]
fn two_flows_share_a_card_or_have_one_each() {
    let (list, workload) = flows(&[2_000_000, 2_000_000]);
    let context = context_with("flows.csv", &list);
    let (mut shared, mut apart) = (0, 0);
    for seed in 1..=12 {
        let fabric = "queue = { limit = '1000 packets' }\n[tcp]\nmax_window = '256 KB'\n";
        let text = format!("seed = {seed}\n{}", bond(2, fabric, workload));
        let out = finish(&scenario_in(&context, &text, &[]));
        let loads = [bytes_of(&out, "h0:", "switch0"), bytes_of(&out, "switch0", "->h0:")];
        assert!(loads.iter().all(|cards| cards.len() == 2));
        let down = bytes_of(&out, "switch0", "->h1:");
        let one = |cards: &[u64]| cards.iter().any(|&bytes| bytes < 100_000);
        let last = out.f64s("flows", "fct_us").iter().fold(0.0f64, |a, &b| a.max(b)) / 1e6;
        let alone = wire_s(2e6);
        // the flows are apart only if both the host and the switch have chosen different cables
        if one(&loads[0]) || one(&down) {
            shared += 1;
            assert!(last > 1.95 * alone && last < 2.3 * alone, "seed {seed}: {last} {alone}");
        } else {
            apart += 1;
            assert!(last > alone && last < 1.2 * alone, "seed {seed}: {last} {alone}");
        }
        out.assert_conserved();
    }
    // each of the two choices puts both flows on one cable with probability 1/2
    assert!(shared >= 5 && apart >= 1, "{shared} {apart}");
}

#[test]
fn a_bond_of_two_cards_carries_twice_the_rate_with_many_flows() {
    let text = bond(
        2,
        "",
        "[[workload]]\nname = 'bulk'\nkind = 'bulk'\npairs = 'h0->h1'\nconnections = 32\n\
         duration = '20 ms'\nstart_window = '0 s'\n",
    );
    let out = outcome(&text, &[("fabric.host_rate", "\"10 Gbit/s\"")]);
    let cards = bytes_of(&out, "h0:", "->switch0");
    let of_one = 10e9 / 8.0 * 20e-3;
    let total = cards.iter().sum::<u64>() as f64;
    assert!(total > 1.85 * of_one && total < 2.15 * of_one, "{cards:?} of {of_one}");
    out.assert_conserved();
}

#[test]
fn the_fullest_card_has_the_share_of_balls_in_bins() {
    // every host has eight equal flows on two cards
    let text = "schema = 1\n[fabric]\nleaves = 4\nhosts_per_leaf = 20\nspines = 2\ncards = 2\n\
        host_rate = '10 Gbit/s'\nuplink_rate = '100 Gbit/s'\n[[workload]]\nname = 'all'\nkind = 'stride'\n\
        stride = 9\ncount = 8\nbytes = '100 KB'\n";
    let out = outcome(text, &[]);
    let share = |host: u32| {
        let cards = bytes_of(&out, &format!("h{host}:"), "->leaf");
        let data = cards.iter().map(|&bytes| bytes as f64);
        data.clone().fold(0.0, f64::max) / data.sum::<f64>()
    };
    let mean = (0..80).map(share).sum::<f64>() / 80.0;
    // E max(X, 8 - X) / 8 for X of the binomial distribution (8, 1/2), with its deviation over 80 hosts
    let binomial = [1.0, 8.0, 28.0, 56.0, 70.0, 56.0, 28.0, 8.0, 1.0];
    let expected =
        (0..=8usize).map(|k| k.max(8 - k) as f64 * binomial[k]).sum::<f64>() / 256.0 / 8.0;
    assert!((expected - 0.6367).abs() < 1e-4);
    // ACKs of the flows in the other direction take part, so that the shares are a little more even
    assert!((mean - expected).abs() < 0.035, "{mean} {expected}");
}

/// Returns two hosts that are connected by two separate switches, the second with cables of `delay`.
fn two_switches(delay: &str) -> String {
    let (rate, near) = ("1 Gbit/s", "5 us");
    graph(
        &["h0", "h1"],
        &["s", "t"],
        &[
            ("h0", "s", rate, near),
            ("h0", "t", rate, delay),
            ("h1", "s", rate, near),
            ("h1", "t", rate, delay),
        ],
    )
}

#[test]
fn one_flow_exceeds_one_card_only_in_turn_and_then_with_reordering() {
    let text = |mode: &str| {
        format!(
            "schema = 1\n[fabric]\nkind = 'graph'\nfile = 'two.toml'\nbond_mode = '{mode}'\n\
             processing_jitter = '0 s'\n[tcp]\nmax_window = '256 KB'\n[[workload]]\nname = 'flow'\n\
             kind = 'incast'\nsenders = 'h0'\nreceiver = 'h1'\nwarm_up = '0 s'\nstart_jitter = '0 s'\n\
             block_bytes = '10 MB'\n"
        )
    };
    let run = |mode: &str, delay: &str| {
        let context = context_with("two.toml", &two_switches(delay));
        finish(&scenario_in(&context, &text(mode), &[]))
    };
    let fct = |out: &Outcome| out.f64s("flows", "fct_us")[0] / 1e6;
    let alone = wire_s(10e6);
    let hashed = run("802.3ad", "5 us");
    assert!(fct(&hashed) > alone, "{} {alone}", fct(&hashed));
    let in_turn = run("balance-rr", "5 us");
    assert!(
        fct(&in_turn) > alone / 2.0 && fct(&in_turn) < 0.6 * alone,
        "{} {alone}",
        fct(&in_turn)
    );
    let cards = bytes_of(&in_turn, "h0:", "->");
    assert!(cards[0].abs_diff(cards[1]) < 4_000, "{cards:?}");
    // no packet is faster than the ideal
    for out in [&hashed, &in_turn] {
        assert!(out.f64s("flows", "slowdown").iter().all(|&s| (1.0..1.3).contains(&s)));
    }
    // packets on the slower way arrive late: duplicate ACKs cause needless retransmissions, without any loss
    let apart = run("balance-rr", "100 us");
    assert_eq!(apart.count("packets.dropped"), 0);
    assert!(apart.u64s("flows", "retransmits")[0] > 0);
    assert_eq!(in_turn.u64s("flows", "retransmits")[0], 0);
}

/// Returns three hosts of which the second has a card only at the first switch.
fn partly_connected() -> String {
    let cable = |host, switch| (host, switch, "1 Gbit/s", "1 us");
    graph(
        &["a", "b", "c"],
        &["s0", "s1"],
        &[cable("a", "s0"), cable("b", "s0"), cable("c", "s0"), cable("a", "s1"), cable("c", "s1")],
    )
}

#[test]
fn a_switch_without_a_route_to_a_card_is_possible() {
    let text = |more: &str| {
        format!(
            "schema = 1\n{more}\n[[workload]]\nname = 'all'\nkind = 'all-to-all'\nbytes = '100 KB'\n"
        )
    };
    let context = context_with("g.toml", &partly_connected());
    let fabric = "[fabric]\nkind = 'graph'\nfile = 'g.toml'\n";
    for more in ["", "[fabric.pfc]\npriorities = [3]\n"] {
        let out = finish(&scenario_in(&context, &text(&format!("{fabric}{more}")), &[]));
        assert_eq!(out.u64s("links", "lost_no_route").iter().sum::<u64>(), 0, "{more}");
        assert_eq!(out.f64s("flows", "fct_us").len(), 6);
        out.assert_conserved();
    }
    let flow = format!("fidelity = 'flow'\n{fabric}");
    let out = finish(&scenario_in(&context, &text(&flow), &[]));
    assert_eq!(out.f64s("flows", "fct_us").len(), 6);
    // without a bond, connections are bound to a card also where it leads nowhere
    let off = text(&format!("{flow}bond_mode = 'off'\n"));
    let why =
        attempt(&scenario_in(&context, &off, &[]), false).err().expect("lost packets").to_string();
    assert!(why.contains("has no path from the card that it uses"), "{why}");
    let packets = text(&format!("{fabric}bond_mode = 'off'\n[tcp]\nmax_retries = 3\n"));
    let why = attempt(&scenario_in(&context, &packets, &[]), false).err().expect("lost packets");
    let why = why.to_string();
    assert!(why.contains("was given up after"), "{why}");
    assert!(why.contains("packets were lost because a switch had no route"), "{why}");
}

/// Two racks with two leaves each; every host has a card at both leaves of its rack.
const DUAL: &str = "schema = 1\n[fabric]\nleaves = 4\nhosts_per_leaf = 4\nspines = 2\ncards = 2\n\
    homing = 'multi-homed'\nhost_rate = '1 Gbit/s'\nuplink_rate = '4 Gbit/s'\n";

const STRIDE: &str =
    "[[workload]]\nname = 'all'\nkind = 'stride'\nstride = 1\ncount = 7\nbytes = '400 KB'\n";

/// Returns the number of packets that were lost on dead cables or without a route.
fn lost_to_faults(out: &Outcome) -> u64 {
    ["lost_down", "lost_no_route"].iter().flat_map(|cause| out.u64s("links", cause)).sum()
}

#[test]
fn dual_top_of_rack_survives_a_leaf_a_card_and_a_cable() {
    let whole = outcome(&format!("{DUAL}{STRIDE}"), &[]);
    assert_eq!(lost_to_faults(&whole), 0);
    let ups =
        |out: &Outcome, leaf: &str| bytes_of(out, "h", &format!("->{leaf}")).iter().sum::<u64>();
    assert!(ups(&whole, "leaf0") > 0 && ups(&whole, "leaf1") > 0);
    // the fabric delivers by both leaves
    let down = |leaf: &str| bytes_of(&whole, leaf, "->h").iter().sum::<u64>();
    assert!(down("leaf2") > 0 && down("leaf3") > 0);
    for place in
        ["'leaf0'", "'h0:eth0..h7:eth0'", "'h1:eth1'", "'h0--leaf0'", "['h0:eth0', 'h1:eth1']"]
    {
        let fault =
            format!("[[fault]]\non = {place}\nkind = 'down'\nfrom = '3 ms'\nreroute = '2 ms'\n");
        let out = outcome(&format!("{DUAL}{STRIDE}{fault}"), &[("tcp.min_rto", "\"10 ms\"")]);
        assert_eq!(out.f64s("flows", "fct_us").len(), 8 * 7, "{place}: all connections survive");
        assert!(out.count("drops.link_down.data") > 0, "{place}");
        out.assert_conserved();
    }
}

#[test]
fn after_the_reconvergence_the_other_leaf_carries_everything() {
    let fault = "[[fault]]\non = 'leaf0'\nkind = 'down'\nreroute = '0 s'\n";
    let out = outcome(&format!("{DUAL}{STRIDE}{fault}"), &[]);
    assert_eq!(bytes_of(&out, "h0:eth0", "->").iter().sum::<u64>(), 0);
    assert_eq!(lost_to_faults(&out), 0, "known from the beginning");
    assert_eq!(out.f64s("flows", "fct_us").len(), 8 * 7);
    // a leaf without uplinks has no route, so that hosts avoid it for receivers elsewhere
    let uplinks =
        "[[fault]]\non = ['leaf0--spine0', 'leaf0--spine1']\nkind = 'down'\nreroute = '0 s'\n";
    let out = outcome(&format!("{DUAL}{STRIDE}{uplinks}"), &[]);
    assert_eq!(lost_to_faults(&out), 0);
    assert!(bytes_of(&out, "h0:eth0", "->").iter().sum::<u64>() > 0, "within the rack it is used");
}

#[test]
fn names_of_cards_give_their_links() {
    let links = |on: &str| {
        let text = format!("{DUAL}{STRIDE}[[fault]]\non = {on}\nkind = 'down'\n");
        scenario(&text, &[]).fabric.faults[0].links.clone()
    };
    assert_eq!(links("'h1:eth1'"), [6, 7]);
    assert_eq!(links("'h0:eth1..h1:eth1'"), [2, 3, 6, 7]);
    assert_eq!(links("'h1:eth0..h1:eth1'"), links("'h1'"));
    assert_eq!(links("'h1:eth1'"), links("'h1--leaf1'"));
    for (on, why) in [
        ("h1:eth2", "the cards of this host are eth0 to eth1"),
        ("leaf0:eth0", "which is not a host"),
        ("h1:eth1..h0:eth1", "ends before it starts"),
    ] {
        let text = format!("{DUAL}{STRIDE}[[fault]]\non = '{on}'\nkind = 'down'\n");
        let problems = read(&text, &Context::default(), &[]).expect_err("refused");
        assert!(problems.iter().any(|p| p.to_string().contains(why)), "{problems:?}");
    }
}

/// A folder for the trace of a test, which is deleted afterwards.
struct Trace(PathBuf);

impl Trace {
    fn new(name: &str, ranks: &[String]) -> Trace {
        let folder =
            std::env::temp_dir().join(format!("eastwest-cards-{name}-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("t")).expect("a folder");
        for (rank, calls) in ranks.iter().enumerate() {
            let lines = calls.split(';').map(|call| format!("{rank} {}\n", call.trim()));
            std::fs::write(folder.join(format!("t/rank-{rank:02}.txt")), lines.collect::<String>())
                .expect("written");
        }
        Trace(folder)
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the calls of 8 ranks, two on each of four hosts: each sends to every rank whose number differs by a
/// multiple of two (same rail), or to all others.
fn all_to_all(same_rail: bool) -> Vec<String> {
    let peers =
        |rank: u32| (0..8u32).filter(move |&p| p != rank && (!same_rail || p % 2 == rank % 2));
    let calls = |rank: u32| {
        let receives = peers(rank).map(|p| format!("irecv {p} 0 50000"));
        let sends = peers(rank).map(|p| format!("isend {p} 0 50000"));
        let all: Vec<String> = receives.chain(sends).collect();
        format!("init; {}; waitall; finalize", all.join("; "))
    };
    (0..8).map(calls).collect()
}

/// Four hosts with two cards, card `i` at rail switch `i`; two ranks on each host.
const RAILS: &str = "schema = 1\n[fabric]\nleaves = 2\nhosts_per_leaf = 4\nspines = 2\ncards = 2\n\
    homing = 'multi-homed'\nbond_mode = 'off'\nhost_rate = '1 Gbit/s'\nuplink_rate = '4 Gbit/s'\n\
    [[workload]]\nname = 'app'\nkind = 'mpi'\ntrace = 't'\nranks_per_host = 2\n";

#[test]
fn ranks_within_a_rail_use_no_spine() {
    let spines = |out: &Outcome| bytes_of(out, "leaf", "->spine").iter().sum::<u64>();
    for transport in ["tcp", "rocev2"] {
        let sets = [("workload.app.transport", transport)];
        let sets = sets.map(|(path, value)| (path, format!("\"{value}\"")));
        let sets = [(sets[0].0, sets[0].1.as_str())];
        let run = |name: &str, same_rail: bool| {
            let trace = Trace::new(&format!("{name}-{transport}"), &all_to_all(same_rail));
            let context = Context { base_dir: trace.0.clone(), ..Context::default() };
            let out = finish(&scenario_in(&context, RAILS, &sets));
            out.assert_conserved();
            out
        };
        let within = run("within", true);
        assert_eq!(spines(&within), 0, "{transport}");
        // both cards of every host send three messages of 50 KB each
        for card in ["h0:eth0", "h0:eth1", "h3:eth1"] {
            let sent = bytes_of(&within, card, "->leaf")[0];
            assert!((150_000..190_000).contains(&sent), "{transport} {card}: {sent}");
        }
        let across = run("across", false);
        assert!(spines(&across) > 0);
        // of six peers on other hosts, three are on the other rail: 12 of 24 messages of each leaf
        let up = bytes_of(&across, "leaf0", "->spine").iter().sum::<u64>();
        assert!((600_000..800_000).contains(&up), "{transport}: {up}");
    }
}

#[test]
fn a_card_of_a_rail_has_no_other_card_to_use() {
    let trace = Trace::new("fails", &all_to_all(true));
    let context = Context { base_dir: trace.0.clone(), ..Context::default() };
    let fault = "[[fault]]\non = 'h1:eth1'\nkind = 'down'\nreroute = '0 s'\n[tcp]\nmax_retries = 3\n\
        min_rto = '10 ms'\ninitial_rto = '10 ms'\n";
    let error = attempt(&scenario_in(&context, &format!("{RAILS}{fault}"), &[]), false);
    let Err(error) = error else { panic!("the rank has no other card") };
    assert!(error.to_string().contains("h1:eth1"), "{error}");
}

#[test]
fn rocev2_has_the_rate_of_each_card() {
    let text = bond(
        2,
        "[fabric.pfc]",
        "[[class]]\nname = 'rdma'\npriority = 3\n[[workload]]\nname = 'list'\nkind = 'flow-list'\n\
         file = 'flows.csv'\ntransport = 'rocev2'\nclass = 'rdma'\n",
    );
    let (list, _) = flows(&[500_000; 16]);
    let context = context_with("flows.csv", &list);
    let out = finish(&scenario_in(&context, &text, &[("rocev2.congestion", "\"none\"")]));
    let cards = bytes_of(&out, "h0:", "->");
    let last = out.f64s("flows", "fct_us").iter().fold(0.0f64, |a, &b| a.max(b)) / 1e6;
    assert_eq!(out.count("packets.dropped"), 0);
    // all 16 flows start at once: the fuller card, or cable to the receiver, decides the end
    let all = cards.iter().chain(&bytes_of(&out, "switch0", "->h1:")).copied().max().unwrap_or(0);
    let least = all as f64 * 8.0 / 1e9;
    assert!(last >= 0.98 * least && last < 1.5 * least, "{last} {least} {cards:?}");
    assert!(
        last < 0.9 * cards.iter().sum::<u64>() as f64 * 8.0 / 1e9,
        "{last}: more than one card"
    );
    out.assert_conserved();
}

#[test]
fn results_do_not_depend_on_the_mode_of_ports() {
    let fault = "[[fault]]\non = 'h0:eth0'\nkind = 'down'\nfrom = '2 ms'\nreroute = '1 ms'\n";
    for mode in ["802.3ad", "balance-rr", "off"] {
        for more in ["", "routing = 'spray'\n", "xmit_hash_policy = 'layer2+3'\n"] {
            if more.contains("policy") && mode != "802.3ad" {
                continue;
            }
            let fault = if mode == "off" { "" } else { fault };
            let text = format!("{DUAL}bond_mode = '{mode}'\n{more}{STRIDE}{fault}");
            let scenario = scenario(&text, &[("tcp.profile", "\"linux\"")]);
            let (fast, reference) = (finish(&scenario), attempt(&scenario, true).expect("it runs"));
            assert_eq!(fast.digest(), reference.digest(), "{mode} {more}");
            fast.assert_conserved();
        }
    }
}

#[test]
fn queue_pairs_survive_the_failure_of_a_leaf() {
    let fault = "[[fault]]\non = 'leaf0'\nkind = 'down'\nfrom = '3 ms'\nreroute = '2 ms'\n";
    let text = format!("{DUAL}[fabric.pfc]\n{STRIDE}transport = 'rocev2'\n{fault}");
    let out = outcome(&text, &[]);
    assert_eq!(out.f64s("flows", "fct_us").len(), 8 * 7);
    assert!(out.count("rocev2.retransmits") > 0);
    out.assert_conserved();
}

#[test]
fn shipped_workloads_use_the_cards() {
    for (name, more) in [
        ("first", &[][..]),
        ("demo", &[("workload.hadoop.trace_to", "3 min")]),
        ("service", &[("duration", "\"1 s\"")]),
    ] {
        for mode in ["\"802.3ad\"", "\"balance-rr\"", "\"off\""] {
            let sets = [more, &[("fabric.cards", "2"), ("fabric.bond_mode", mode)]].concat();
            let out = outcome(&shipped(name), &sets);
            out.assert_conserved();
            for card in [":eth0->", ":eth1->"] {
                assert!(bytes_of(&out, "h", card).iter().sum::<u64>() > 0, "{name} {mode} {card}");
            }
        }
    }
}

#[test]
fn a_flow_level_run_uses_the_cards() {
    let out = outcome(&format!("{DUAL}{STRIDE}"), &[("fidelity", "\"flow\"")]);
    assert_eq!(out.f64s("flows", "fct_us").len(), 8 * 7);
    assert!(bytes_of(&out, "h0:", "->leaf").iter().all(|&bytes| bytes > 0));
}

#[test]
fn impossible_combinations_are_refused_with_the_reason() {
    let star = |fabric: &str, rest: &str| bond(3, fabric, rest);
    let incast =
        "[[workload]]\nname = 'in'\nkind = 'incast'\nreceiver = 'h0'\nblock_bytes = '1 KB'\n";
    let roce = format!("{incast}transport = 'rocev2'\n");
    for (text, why) in [
        (star("routing = 'explicit'", incast), "names the switches of a path"),
        (star("[fabric.qcn]", incast), "limits the rate of all packets of a host"),
        (star("bond_mode = 'balance-rr'", &roce), "bound to one card"),
        (
            star("bond_mode = 'balance-rr'", incast).replacen(
                "schema = 1",
                "schema = 1\nfidelity = 'flow'",
                1,
            ),
            "simulates flows with one path",
        ),
        (
            star("bond_mode = 'off'\nxmit_hash_policy = 'layer2+3'", incast),
            "has an effect only with bond_mode",
        ),
        (
            star("", incast).replacen("cards = 2", "bond_mode = 'balance-rr'", 1),
            "has an effect only if hosts have several cards",
        ),
        (star("", incast).replacen("cards = 2", "cards = 17", 1), "must be 1 to 16"),
        (
            format!("{DUAL}{STRIDE}").replacen("leaves = 4", "leaves = 5", 1),
            "must be a multiple of 2",
        ),
        (
            format!("{DUAL}{STRIDE}").replacen("cards = 2\n", "", 1),
            "has an effect only if `cards` is above 1",
        ),
    ] {
        let problems = read(&text, &Context::default(), &[]).expect_err("refused");
        assert!(problems.iter().any(|p| p.to_string().contains(why)), "{why}: {problems:?}");
    }
    let unequal = graph(
        &["h0", "h1"],
        &["s"],
        &[
            ("h0", "s", "1 Gbit/s", "1 us"),
            ("h0", "s", "10 Gbit/s", "1 us"),
            ("h1", "s", "1 Gbit/s", "1 us"),
        ],
    );
    let apart = graph(
        &["h0", "h1", "h2"],
        &["s", "t"],
        &[
            ("h0", "s", "1 Gbit/s", "1 us"),
            ("h1", "s", "1 Gbit/s", "1 us"),
            ("h1", "t", "1 Gbit/s", "1 us"),
            ("h2", "t", "1 Gbit/s", "1 us"),
        ],
    );
    for (file, why) in [(unequal, "different rates"), (apart, "does not forward packets")] {
        let text = format!(
            "schema = 1\n[fabric]\nkind = 'graph'\nfile = 'g.toml'\n{}",
            incast.replace("receiver = 'h0'", "receiver = 'h0'\nsenders = 'h1'")
        );
        let problems = read(&text, &context_with("g.toml", &file), &[]).expect_err("refused");
        assert!(problems.iter().any(|p| p.to_string().contains(why)), "{why}: {problems:?}");
    }
}

#[test]
fn a_resolved_scenario_gives_the_same_run() {
    for text in [format!("{DUAL}bond_mode = 'balance-rr'\n{STRIDE}"), format!("{DUAL}{STRIDE}")] {
        let first = scenario(&text, &[]);
        let second = scenario(first.resolved(), &[]);
        assert_eq!(finish(&first).digest(), finish(&second).digest());
    }
}

#[test]
fn the_shipped_scenario_survives_the_failure_of_a_leaf() {
    let out = outcome(&shipped("dual-tor"), &[]);
    assert!(out.count("faults.failures") >= 1);
    assert!(out.count("drops.link_down.data") > 0);
    out.assert_conserved();
}
