//! Tests of data-centre bridging in whole runs: no loss with PFC, shares of ETS, rate limits of
//! QCN, and reports of deadlocks.

use crate::harness::{
    Outcome, attempt, context, context_with, graph, outcome, scenario, scenario_in,
};
use eastwest_engine::random::Stream;
use eastwest_sim::checkpoint::{Identity, Keep, load, plan, save};
use eastwest_sim::plan::Plan;
use eastwest_sim::results::Results;
use eastwest_sim::run::run;
use eastwest_sim::scenario::{Scenario, read};
use eastwest_sim::world::World;
use serde_json::Value;

/// Returns a star of `hosts` hosts at 10 Gbit/s, with the PFC settings of the study by Gusat et al.
/// (2009) and the lines `more`.
fn star(hosts: u32, more: &str) -> String {
    format!(
        "schema = 1\n[fabric]\nkind = 'star'\nhosts = {hosts}\nhost_rate = '10 Gbit/s'\n\
         host_delay = '1 us'\nprocessing_jitter = '0 s'\nqueue = {{ limit = '20 packets' }}\n\
         {more}\n[[class]]\nname = 'frames'\npriority = 3\n"
    )
}

const FOUR_TO_ONE: &str = "[[workload]]\nname = 'frames'\nkind = 'ethernet'\npattern = 'pairs'\n\
    sources = ['h0', 'h1', 'h2', 'h3']\ndestinations = ['h4', 'h4', 'h4', 'h5']\nload = 0.6\n\
    frames = 12000\n";

fn four_to_one(more: &str) -> Outcome {
    outcome(&format!("{}{FOUR_TO_ONE}", star(6, more)), &[])
}

#[test]
fn pfc_loses_nothing_where_drop_tail_loses_a_lot() {
    let plain = four_to_one("");
    assert!(plain.count("packets.dropped") > 2_000, "{}", plain.count("packets.dropped"));
    let done = four_to_one("[fabric.pfc]");
    done.assert_conserved();
    assert_eq!(done.count("packets.dropped"), 0);
    assert_eq!(done.count("streams.frames_received"), 12_000);
    assert!(done.count("dcb.pauses") > 100 && done.number("dcb.paused_s") > 1e-3);
    assert_eq!(done.count("dcb.overflow_drops") + done.count("dcb.watchdog_drops"), 0);
    // at the end all ingress buffers are empty, and none ever held more than its XOFF threshold and
    // headroom
    let (most, headroom) =
        (done.u64s("pfc", "input_most_bytes"), done.u64s("pfc", "headroom_bytes"));
    assert!(done.u64s("pfc", "input_bytes").iter().all(|b| *b == 0));
    let largest = most.iter().copied().max().unwrap();
    assert!(largest <= 150_000 && largest > 150_000 - headroom.iter().max().unwrap(), "{largest}");
    // three hosts share a link of 10 Gbit/s equally; the stream of the fourth host has a link to
    // itself
    let rates = done.f64s("streams", "throughput_bps");
    for rate in &rates[..3] {
        assert!((rate / (10e9 / 3.0 * 1500.0 / 1538.0) - 1.0).abs() < 0.05, "{rates:?}");
    }
    assert!((rates[3] / 6e9 - 1.0).abs() < 0.05, "{rates:?}");
}

#[test]
fn sources_back_up_while_they_are_paused_and_the_wait_counts() {
    let done = four_to_one("[fabric.pfc]");
    let waits = done.f64s("streams", "latency_us_max");
    // three hosts send 3,000 frames each at 60 % of the link rate, in total 180 %: the last frames
    // wait for 0.8 of the time in which the frames were generated
    assert!(waits[0] > 2_000.0 && waits[3] < 200.0, "{waits:?}");
}

#[test]
fn headroom_is_tight_on_a_long_link_with_traffic_both_ways() {
    // full packets are also sent in the opposite direction, so that PAUSE frames must wait for them
    let both = FOUR_TO_ONE.replace("'h3']", "'h4']").replace("'h5']", "'h0']");
    let text = format!(
        "{}{both}",
        star(6, "mtu = 1500\n[fabric.pfc]\nbuffer = '100 KB'\nresponse = '0 s'")
    );
    let text = text.replace("'1 us'", "'20 us'").replace("0.6", "0.9");
    let done = outcome(&text, &[]);
    assert_eq!(done.count("packets.dropped"), 0);
    let (most, room) = (done.u64s("pfc", "input_most_bytes"), done.u64s("pfc", "headroom_bytes"));
    let headroom = *room.iter().max().unwrap();
    assert_eq!(headroom, 50_000 + 2 * 1538 + 84 + 1500);
    let largest = *most.iter().max().unwrap();
    // headroom is computed in bytes on the link, but ingress buffers count IP bytes, which are 2.5
    // % fewer
    assert!(largest > 100_000 - 5_000 && largest <= 100_000, "{largest} B of 100 kB were of use");
}

#[test]
fn other_priorities_and_other_directions_go_on() {
    let lossy = "[[class]]\nname = 'lossy'\npriority = 0\n[[workload]]\nname = 'lossy'\n\
        kind = 'ethernet'\npattern = 'pairs'\nsources = 'h0'\ndestinations = 'h5'\nload = 0.1\n\
        frames = 500\n";
    let done = outcome(&format!("{}{FOUR_TO_ONE}{lossy}", star(6, "[fabric.pfc]")), &[]);
    assert_eq!(done.count("packets.dropped"), 0);
    // the lossless frames of the same host wait for milliseconds
    let waits = done.f64s("streams", "latency_us_max");
    assert!(waits[0] > 2_000.0 && waits[4] < 100.0, "{waits:?}");
}

#[test]
fn tcp_over_a_lossless_class_neither_loses_nor_times_out() {
    let incast = "[[workload]]\nname = 'frames'\nkind = 'incast'\nreceiver = 'h0'\nrounds = 3\n\
        block_bytes = '200 KB'\n";
    let text = |more| format!("{}{incast}", star(20, more));
    let plain = outcome(&text(""), &[]);
    assert!(plain.count("packets.dropped") > 100);
    let done = outcome(&text("[fabric.pfc]"), &[]);
    done.assert_conserved();
    assert_eq!((done.count("packets.dropped"), done.count("tcp.timeouts")), (0, 0));
    assert_eq!(done.count("rounds.count"), 3);
}

#[test]
fn bridged_runs_have_one_digest_and_go_on_from_checkpoints() {
    for more in [
        "[fabric.pfc]",
        "[fabric.pfc]\nwatchdog = '50 us'",
        "[fabric.pfc]\nshared = '100 KB'\nlossy = '60 KB'\nover_subscribe = 2\nwatchdog = '50 us'",
        "[fabric.qcn]",
        "[fabric.pfc]\n[fabric.qcn]\nq_eq = '15000 B'\n[measure]\npauses = '*'\nflow_samples = '*'",
        "queue = { kind = 'red', min = '5 packets', max = '15 packets', limit = '20 packets' }\n\
         [fabric.pfc]",
    ] {
        let base = star(6, more);
        let base = match more.contains("queue") {
            true => base.replacen("queue = { limit = '20 packets' }\n", "", 1),
            false => base,
        };
        let text = format!("{base}{FOUR_TO_ONE}");
        let scenario = scenario(&text, &[]);
        let [a, b] = [false, true].map(|reference| attempt(&scenario, reference).unwrap());
        assert_eq!(a.digest(), b.digest(), "{more}");
        goes_on(&scenario, &a);
    }
}

/// Checks that a run which is saved in the middle and continued from the checkpoint has the results
/// of the run `whole`.
pub fn goes_on(scenario: &Scenario, whole: &Outcome) {
    let mut world = World::new(Plan::new(scenario).expect("a plan")).expect("a world");
    world.run_to(whole.count("events") / 2, &mut |_| true).expect_err("it stops half-way");
    let identity = Identity { build: "this".into(), plan: plan(scenario, false) };
    let mut bytes = Vec::new();
    save(&Keep::One(&world), &identity, &mut bytes).expect("a vector takes everything");
    let run = load(&bytes, &identity).expect("it reads back");
    let mut world = run.into_world().expect("it is on one thread");
    world.run(&mut |_| true).expect("the run finishes");
    let results = Results::new(world);
    assert_eq!(results.summary["digest"], whole.digest());
    for (table, same) in results.tables.iter().zip(&whole.0.tables) {
        assert!(table == same, "the tables {} differ", table.name);
    }
}

#[test]
fn ets_gives_each_class_its_share_and_strict_ones_what_they_want() {
    let classes = "scheduler = 'classes'\n[[fabric.class]]\npriorities = [7]\n\
        [[fabric.class]]\npriorities = [3, 4]\nshare = '60 %'\n\
        [[fabric.class]]\npriorities = [0, 1, 2]\nshare = '30 %'\n\
        [[fabric.class]]\npriorities = [5, 6]\nshare = '10 %'\n[fabric.pfc]\n\
        priorities = [0, 3, 5, 7]\n";
    let mut text = star(6, classes);
    for (name, priority, from, load) in
        [("a", 7, 0, 0.1), ("frames", 3, 1, 0.95), ("c", 0, 2, 0.95), ("d", 5, 3, 0.95)]
    {
        if name != "frames" {
            text.push_str(&format!("[[class]]\nname = '{name}'\npriority = {priority}\n"));
        }
        text.push_str(&format!(
            "[[workload]]\nname = '{name}'\nkind = 'ethernet'\nbackground = true\n\
             pattern = 'pairs'\nsources = 'h{from}'\ndestinations = 'h5'\nload = {load}\n"
        ));
    }
    let done = outcome(&text.replacen("schema = 1", "schema = 1\nduration = '20 ms'", 1), &[]);
    assert_eq!(done.count("packets.dropped"), 0);
    let rates = done.f64s("streams", "throughput_bps");
    let line = 10e9 * 1500.0 / 1538.0;
    assert!((rates[0] / 1e9 - 1.0).abs() < 0.06, "{rates:?}");
    for (rate, share) in rates[1..].iter().zip([0.6, 0.3, 0.1]) {
        let got = rate / (line - rates[0]);
        // the standard (IEEE 802.1Q, ETS) allows a deviation of 10 % of the link rate
        assert!((got - share).abs() < 0.02, "{got} for {share}: {rates:?}");
    }
}

#[test]
fn ets_shares_the_link_and_not_the_payload() {
    let classes = "scheduler = 'classes'\n[[fabric.class]]\npriorities = [0, 1, 2, 3]\n\
        share = '50 %'\n[[fabric.class]]\npriorities = [4, 5, 6, 7]\nshare = '50 %'\n[fabric.pfc]\n\
        priorities = [3, 5]\n";
    let mut text = star(4, classes);
    text.push_str("[[class]]\nname = 'short'\npriority = 5\n");
    for (name, from, bytes, load) in [("frames", 0, 1500, 0.95), ("short", 1, 46, 0.5)] {
        text.push_str(&format!(
            "[[workload]]\nname = '{name}'\nkind = 'ethernet'\nbackground = true\n\
             pattern = 'pairs'\nsources = 'h{from}'\ndestinations = 'h3'\nload = {load}\n\
             bytes = {bytes}\n"
        ));
    }
    let done = outcome(&text.replacen("schema = 1", "schema = 1\nduration = '5 ms'", 1), &[]);
    let rates = done.f64s("streams", "throughput_bps");
    // frames of 1500 and 46 B with 38 B of framing take 1538 and 84 B on the link
    let (long, short) = (rates[0] * 1538.0 / 1500.0, rates[1] * 84.0 / 46.0);
    assert!((long / 5e9 - 1.0).abs() < 0.05 && (short / 5e9 - 1.0).abs() < 0.05, "{rates:?}");
}

#[test]
fn a_host_holds_no_more_than_its_queue_and_counts_what_it_loses() {
    let done = four_to_one("host_queue = { limit = '10 packets' }\n[fabric.pfc]");
    done.assert_conserved();
    let lost = done.count("packets.dropped");
    assert!(lost > 1_000, "{lost}");
    assert_eq!(done.count("streams.frames_received") + lost, 12_000);
    assert_eq!(done.count("dcb.overflow_drops"), 0);
    // a port of a host holds at most ten packets and the one that is being sent
    let (link, most) = (done.u64s("pfc", "link"), done.u64s("pfc", "output_most_bytes"));
    for (link, most) in link.into_iter().zip(most) {
        assert!(link % 2 == 1 || most <= 11 * 1500, "link {link} from a host: {most}");
    }
}

#[test]
fn qcn_holds_the_queue_near_its_set_point_and_spares_the_pauses() {
    let text = |more: &str| {
        format!("{}{FOUR_TO_ONE}", star(6, more)).replace("frames = 12000", "frames = 120000")
    };
    let pfc = outcome(&text("[fabric.pfc]"), &[]);
    let qcn = outcome(&text("[fabric.pfc]\n[fabric.qcn]"), &[]);
    for done in [&pfc, &qcn] {
        assert_eq!(done.count("packets.dropped"), 0);
        assert_eq!(done.count("streams.frames_received"), 120_000);
    }
    let messages = qcn.count("dcb.qcn_messages");
    assert!(messages > 50 && qcn.count("dcb.qcn_samples") > messages, "{messages}");
    assert_eq!(pfc.count("dcb.qcn_samples"), 0);
    let (with, without) = (qcn.number("dcb.paused_s"), pfc.number("dcb.paused_s"));
    assert!(with < 0.2 * without, "paused for {with} s with QCN, {without} s without");
    // all hosts use the link until 60 ms; flows that got more CNMs finish later
    let cut = |more| {
        outcome(&text(more).replacen("schema = 1", "schema = 1\nduration = '60 ms'", 1), &[])
    };
    let carried = |done: &Outcome| done.number("streams.frames_received");
    let ratio = carried(&cut("[fabric.pfc]\n[fabric.qcn]")) / carried(&cut("[fabric.pfc]"));
    assert!(ratio > 0.85, "{ratio}");
}

/// Returns a scenario and its topology file: three switches in a ring with three hosts each. All
/// traffic goes two switches clockwise, so that pauses can form a cycle.
pub fn ring(more: &str) -> (String, String) {
    let hosts: Vec<String> = (0..9).map(|h| format!("h{h}")).collect();
    let names: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let switches = ["s0", "s1", "s2"];
    let mut cables = Vec::new();
    for (h, host) in names.iter().enumerate() {
        cables.push((*host, switches[h / 3], "10 Gbit/s", "1 us"));
    }
    for s in 0..3 {
        cables.push((switches[s], switches[(s + 1) % 3], "10 Gbit/s", "1 us"));
    }
    let mut text = format!(
        "schema = 1\n[fabric]\nkind = 'graph'\nfile = 'ring.toml'\nrouting = 'explicit'\n\
         [fabric.pfc]\npriorities = [3]\n{more}\n[[class]]\nname = 'frames'\npriority = 3\n"
    );
    let (mut from, mut to) = (Vec::new(), Vec::new());
    for h in 0..9 {
        let (s, dst) = (h / 3, (h + 6) % 9);
        from.push(format!("'h{h}'"));
        to.push(format!("'h{dst}'"));
        let via = [s, (s + 1) % 3, (s + 2) % 3].map(|s| format!("'s{s}'"));
        text.push_str(&format!(
            "[[fabric.route]]\nfrom = 'h{h}'\nto = 'h{dst}'\nvia = [{}]\n",
            via.join(", ")
        ));
    }
    text.push_str(&format!(
        "[[workload]]\nname = 'frames'\nkind = 'ethernet'\npattern = 'pairs'\nsources = [{}]\n\
         destinations = [{}]\nload = 0.9\nframes = 30000\n",
        from.join(", "),
        to.join(", ")
    ));
    (text, graph(&names, &switches, &cables))
}

#[test]
fn a_ring_of_pauses_ends_the_run_and_names_its_cycle() {
    let (text, topology) = ring("");
    let context = context_with("ring.toml", &topology);
    let scenario = scenario_in(&context, &text, &[]);
    let results = run(&scenario, false, &mut |_| true).expect("a deadlock is a result");
    let found = &results.summary["dcb"]["deadlock"];
    let cycle: Vec<&str> =
        found["cycle"].as_array().expect("a cycle").iter().map(|p| p.as_str().unwrap()).collect();
    let mut sorted = cycle.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, ["s0->s1", "s1->s2", "s2->s0"]);
    assert_is_cycle(found);
    assert_eq!(found["priority"], 3);
    assert!(found["at_s"].as_f64().unwrap() < 0.02 && found["bytes"].as_u64().unwrap() > 100_000);
}

#[test]
fn routes_that_allow_a_deadlock_are_told_before_the_run() {
    let told = |text: &str, topology: &str| {
        let scenario = scenario_in(&context_with("ring.toml", topology), text, &[]);
        scenario.notes.iter().find(|n| n.contains("a deadlock is possible")).cloned()
    };
    let (text, topology) = ring("");
    let note = told(&text, &topology).expect("there is a cycle");
    assert!(note.contains("s0 -> s1 -> s2 -> s0"), "{note}");
    // no cycle without PFC, and none with shortest paths, each of which has only one link between
    // switches
    assert_eq!(told(&text.replace("[fabric.pfc]\npriorities = [3]\n", ""), &topology), None);
    let routes = text.find("[[fabric.route]]").unwrap()..text.find("[[workload]]").unwrap();
    let shortest = text.replace(&text[routes], "").replace("routing = 'explicit'\n", "");
    assert_eq!(told(&shortest, &topology), None);
    // no cycle if the two routes that close the ring at a switch are missing
    let part = text
        .replace("from = 'h6'\nto = 'h3'\nvia = ['s2', 's0', 's1']", "")
        .replace("from = 'h7'\nto = 'h4'\nvia = ['s2', 's0', 's1']", "")
        .replace("from = 'h8'\nto = 'h5'\nvia = ['s2', 's0', 's1']", "")
        .replace("[[fabric.route]]\n\n", "");
    assert_ne!(part, text);
    assert_eq!(told(&part, &topology), None);
    // explicit routes of a leaf–spine fabric that go down and up again, with the shortest paths
    let route = |leaves: [u32; 3], [first, second]: [u32; 2]| {
        let [from, over, to] = leaves;
        format!(
            "[[fabric.route]]\nfrom = 'h{from}'\nto = 'h{to}'\nvia = ['leaf{from}', \
             'spine{first}', 'leaf{over}', 'spine{second}', 'leaf{to}']\n"
        )
    };
    let fabric = "schema = 1\n[fabric]\nleaves = 4\nhosts_per_leaf = 1\nspines = 2\n\
        host_rate = '10 Gbit/s'\nuplink_rate = '10 Gbit/s'\nrouting = 'explicit'\n[fabric.pfc]\n";
    let stride =
        "[[workload]]\nname = 'w'\nkind = 'stride'\nstride = 1\ncount = 1\nbytes = '1 KB'\n";
    let one = format!("{fabric}{}", route([0, 1, 3], [0, 1]));
    assert_eq!(told(&format!("{one}{stride}"), ""), None);
    let both = format!("{one}{}{stride}", route([3, 2, 0], [1, 0]));
    let note = told(&both, "").expect("there is a cycle");
    assert!(note.contains("leaf1 -> spine1 -> leaf2"), "{note}");
    // a star, a topology that Eastwest builds, has no cycle
    assert_eq!(told(&format!("{}{FOUR_TO_ONE}", star(6, "[fabric.pfc]")), ""), None);
}

#[test]
fn shortest_ways_around_a_larger_ring_allow_a_deadlock() {
    let hosts = ["h0", "h1", "h2", "h3", "h4"];
    let switches = ["s0", "s1", "s2", "s3", "s4"];
    let mut cables = Vec::new();
    for n in 0..5 {
        cables.push((hosts[n], switches[n], "10 Gbit/s", "1 us"));
        cables.push((switches[n], switches[(n + 1) % 5], "10 Gbit/s", "1 us"));
    }
    let text = "schema = 1\n[fabric]\nkind = 'graph'\nfile = 'ring.toml'\n[fabric.pfc]\n\
        [[class]]\nname = 'frames'\npriority = 3\n[[workload]]\nname = 'frames'\n\
        kind = 'ethernet'\nload = 0.1\nframes = 10\n";
    let context = context_with("ring.toml", &graph(&hosts, &switches, &cables));
    let notes = scenario_in(&context, text, &[]).notes;
    let note = notes.iter().find(|n| n.contains("a deadlock is possible")).expect("a cycle");
    assert!(note.matches("->").count() == 5, "{note}");
}

#[test]
fn a_deadlock_is_told_at_the_end_of_a_short_run() {
    let (text, topology) = ring("");
    let context = context_with("ring.toml", &topology);
    let short = [("duration".to_owned(), "1.5 ms".to_owned())];
    let scenario = read(&text, &context, &short).expect("it is right");
    let results = run(&scenario, false, &mut |_| true).expect("a deadlock is a result");
    assert_is_cycle(&results.summary["dcb"]["deadlock"]);
}

#[test]
fn what_is_taken_for_a_deadlock_never_moves_again() {
    // short pauses and small buffers: many pauses are about to end when others are refreshed
    for (seed, load) in [(1, 0.1), (2, 0.15), (3, 0.2), (573, 0.1), (573, 0.15), (573, 0.2)] {
        let settings = "quanta = 300\nbuffer = '60 KB'\n";
        let found = |more: &str, end: Option<f64>| {
            let (text, topology) = ring(&format!("{settings}{more}"));
            let context = context_with("ring.toml", &topology);
            let mut set = vec![
                ("seed".to_owned(), seed.to_string()),
                ("workload.0.load".to_owned(), load.to_string()),
                ("workload.0.burst".to_owned(), "40".to_owned()),
                ("workload.0.frames".to_owned(), "4000".to_owned()),
            ];
            set.extend(end.map(|s| ("duration".to_owned(), format!("{:.0} ns", s * 1e9))));
            let scenario = read(&text, &context, &set).expect("it is right");
            attempt(&scenario, false).expect("it ends")
        };
        let first = found("", None);
        let Some(at) = first.value("dcb.deadlock.at_s").as_f64() else { continue };
        // the run with a watchdog, which does not expire in this time, continues after the time at
        // which the other run reports the deadlock
        let later = found("watchdog = '20 ms'\n", Some(at + 300e-6));
        // the cables between the switches have the numbers after those of the nine hosts
        let carried = |done: &Outcome| done.u64s("links", "packets")[18..24].to_vec();
        for (before, after) in carried(&first).into_iter().zip(carried(&later)) {
            // at the time of the deadlock two frames may be on the cable, and one is being sent
            assert!(after <= before + 3, "seed {seed}, load {load}: {before} and {after} packets");
        }
    }
}

#[test]
fn a_watchdog_breaks_the_ring_drops_and_counts() {
    let (text, topology) = ring("watchdog = '1 ms'");
    let context = context_with("ring.toml", &topology);
    let done = attempt(&scenario_in(&context, &text, &[]), false).expect("it finishes");
    done.assert_conserved();
    let dropped = done.count("packets.dropped");
    assert!(dropped > 0);
    assert_eq!(dropped, done.count("dcb.watchdog_drops"));
    assert_eq!(dropped, done.count("drops.sojourn.datagram"));
    assert_eq!(done.count("streams.frames_received") + dropped, 30_000);
}

/// Checks that the ports of a reported deadlock form a cycle: each ends at the switch at which the
/// next one begins.
fn assert_is_cycle(found: &Value) {
    let ports: Vec<(String, String)> = found["cycle"]
        .as_array()
        .expect("a cycle")
        .iter()
        .map(|p| p.as_str().unwrap().split_once("->").expect("a port"))
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .collect();
    assert!(ports.len() >= 2, "{found}");
    for (i, port) in ports.iter().enumerate() {
        assert_eq!(port.1, ports[(i + 1) % ports.len()].0, "{found}");
    }
}

/// Returns a random scenario and its topology file: some switches in a ring with chords or in a
/// tree, and traffic between all hosts.
pub fn random_fabric(random: &mut Stream) -> (String, String) {
    let switches: Vec<String> = (0..2 + random.below(6)).map(|s| format!("s{s}")).collect();
    let hosts: Vec<String> = (0..4 + random.below(9)).map(|h| format!("h{h}")).collect();
    let names = |all: &[String]| all.iter().map(|n| (*n).clone()).collect::<Vec<_>>();
    let pick =
        |random: &mut Stream, from: &[&'static str]| from[random.below(from.len() as u64) as usize];
    let rates = ["10 Gbit/s", "10 Gbit/s", "1 Gbit/s", "25 Gbit/s"];
    let delays = ["1 us", "100 ns", "3 us", "10 us"];
    let (n, mut cables) = (switches.len(), Vec::new());
    let mut cable = |random: &mut Stream, a: &str, b: &str| {
        cables.push((a.to_owned(), b.to_owned(), pick(random, &rates), pick(random, &delays)));
    };
    for host in &hosts {
        let at = random.below(n as u64) as usize;
        cable(random, host, &switches[at]);
    }
    for s in 1..n {
        cable(random, &switches[s - 1], &switches[s]);
    }
    if n > 2 && random.below(4) > 0 {
        cable(random, &switches[n - 1], &switches[0]);
    }
    for _ in 0..random.below(3) {
        let (a, b) = (random.below(n as u64) as usize, random.below(n as u64) as usize);
        if a != b {
            cable(random, &switches[a], &switches[b]);
        }
    }
    let cables: Vec<_> =
        cables.iter().map(|(a, b, r, d)| (a.as_str(), b.as_str(), *r, *d)).collect();
    let (hosts_, switches_) = (names(&hosts), names(&switches));
    let topology = graph(
        &hosts_.iter().map(String::as_str).collect::<Vec<_>>(),
        &switches_.iter().map(String::as_str).collect::<Vec<_>>(),
        &cables,
    );
    let list = pick(random, &["[3]", "[3, 4]"]);
    let qcn = pick(random, &["", "", "[fabric.qcn]\nq_eq = '10000 B'\n"]);
    let routing = pick(random, &["ecmp", "round-robin"]);
    let mut text = format!(
        "schema = 1\nseed = {}\n[fabric]\nkind = 'graph'\nfile = 'any.toml'\nrouting = '{routing}'\n\
         queue = {{ limit = '{} packets' }}\n[fabric.pfc]\npriorities = {list}\n\
         buffer = '{} KB'\nquanta = {}\nresponse = '1 us'\n{qcn}\
         [[class]]\nname = 'three'\npriority = 3\n[[class]]\nname = 'four'\npriority = {}\n",
        random.below(1_000),
        1 + random.below(30),
        (80 + random.below(30)) * if list == "[3]" { 1 } else { 2 },
        20_000 + random.below(45_000),
        if list == "[3]" { 3 } else { 4 },
    );
    for name in ["three", "four"] {
        let few = "destinations = ['h0', 'h1', 'h2']\n";
        text.push_str(&format!(
            "[[workload]]\nname = '{name}'\nkind = 'ethernet'\n{}load = {}\nframes = {}\nburst = {}\n",
            pick(random, &["", few]),
            0.3 + 0.7 * random.unit(),
            1_000 + random.below(2_000),
            1 + random.below(100),
        ));
    }
    (text, topology)
}

#[test]
fn in_any_fabric_every_frame_arrives_or_a_deadlock_is_named_with_its_cycle() {
    // EASTWEST_CASES=3000 tests 3,000 cases; EASTWEST_DIGESTS=FILE writes each digest (for
    // benches/digests.py).
    let mut digests = String::new();
    let cases = std::env::var("EASTWEST_CASES").map_or(100, |n| n.parse().expect("a number"));
    let (mut whole, mut stuck, mut paused) = (0, 0, 0u64);
    for case in 0..cases {
        let mut random = Stream::new(case, "fabrics under PFC");
        let (text, topology) = random_fabric(&mut random);
        let scenario = scenario_in(&context_with("any.toml", &topology), &text, &[]);
        let results = run(&scenario, false, &mut |_| true)
            .unwrap_or_else(|e| panic!("case {case}: {e}\n{text}\n{topology}"));
        let summary = &results.summary;
        digests.push_str(&format!("fabric {case} {}\n", summary["digest"].as_str().unwrap()));
        let dropped = summary["packets"]["dropped"].as_u64().unwrap();
        let messages = summary["dcb"]["qcn_messages"].as_u64().unwrap();
        let lost = summary["streams"]["frames_lost"].as_u64().unwrap();
        assert!(lost == 0 && dropped <= messages, "case {case}: {summary}\n{text}\n{topology}");
        paused += summary["dcb"]["pauses"].as_u64().unwrap();
        if summary["dcb"]["deadlock"].is_null() {
            let all = &summary["streams"];
            assert_eq!(all["frames_sent"], all["frames_received"], "case {case}");
            whole += 1;
        } else {
            assert_is_cycle(&summary["dcb"]["deadlock"]);
            stuck += 1;
        }
    }
    if let Ok(file) = std::env::var("EASTWEST_DIGESTS") {
        std::fs::write(file, digests).expect("the digests can be written");
    }
    assert!(paused > 10 * cases, "{paused} pauses");
    println!("{whole} whole, {stuck} stuck, {paused} pauses");
    assert!(whole > cases / 3 && (stuck > 0 || cases < 100), "{whole} whole, {stuck} stuck");
}

#[test]
fn what_cannot_be_is_refused_with_its_arithmetic() {
    let refused = |more: &str| {
        let text = format!("{}{FOUR_TO_ONE}", star(6, more));
        let problems = read(&text, &context(), &[]).expect_err("wrong");
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let said = refused("[fabric.pfc]\nbuffer = '10 KB'");
    assert!(said.contains("fabric.pfc.buffer") && said.contains("11000 B of headroom"), "{said}");
    let said = refused("[fabric.pfc]\nxoff = '145 KB'");
    assert!(
        said.contains("fabric.pfc.xoff") && said.contains("the buffer has 5000 B above it"),
        "{said}"
    );
    let said = refused("[fabric.pfc]\npriorities = [3, 9]");
    assert!(said.contains("9 is not a priority; priorities are 0 to 7"), "{said}");
    let said = refused("[fabric.pfc]\nxon = '140 KB'\nxoff = '100 KB'");
    assert!(said.contains("must be below `xoff`"), "{said}");
    let said = refused("[fabric.pfc]\nquanta = 100");
    assert!(said.contains("fabric.pfc.quanta") && said.contains("too short"), "{said}");
    let said = refused("shared_buffer = { size = '1 MB' }\n[fabric.pfc]");
    assert!(said.contains("`shared` and `lossy` in [fabric.pfc]"), "{said}");
    let said = refused("mtu = 500\n[fabric.pfc]\n[fabric.qcn]\ncnm_bytes = '1500 B'");
    assert!(said.contains("fabric.qcn.cnm_bytes") && said.contains("fabric.mtu"), "{said}");
    let said = refused("[fabric.qcn]\npriorities = [7]");
    assert!(
        said.contains(
            "is one of the priorities that QCN controls; notification messages need another \
                           priority"
        ),
        "{said}"
    );
    let shares = |a, b| {
        refused(&format!(
            "scheduler = 'classes'\n[[fabric.class]]\npriorities = [0, 1, 2, 3]\nshare = '{a}'\n\
             [[fabric.class]]\npriorities = [4, 5, 6, 7]\nshare = '{b}'\n"
        ))
    };
    assert!(shares("60 %", "50 %").contains("add up to 110 %"));
    assert!(shares("60 %", "12.5 %").contains("must be a whole number of percent"));
}
