//! Tests of switch memories for which lossless inputs and lossy queues compete, and of headroom pools.

use crate::dcb::{goes_on, random_fabric};
use crate::harness::{
    Outcome, attempt, context, context_with, graph, outcome, scenario, scenario_in,
};
use eastwest_engine::random::Stream;
use eastwest_sim::plan::Plan;
use eastwest_sim::scenario::read;
use eastwest_sim::world::World;

/// Returns a star at 10 Gbit/s with lossless frames of class `frames` and lossy frames of class `lossy`.
fn star(hosts: u32, first: &str, pfc: &str) -> String {
    format!(
        "schema = 1\n{first}\n[fabric]\nkind = 'star'\nhosts = {hosts}\nhost_rate = '10 Gbit/s'\n\
         host_delay = '1 us'\nprocessing_jitter = '0 s'\n[fabric.pfc]\n{pfc}\n\
         [[class]]\nname = 'frames'\npriority = 3\n[[class]]\nname = 'lossy'\npriority = 0\n"
    )
}

/// Returns a workload of frames, each of the `sources` to the destination at its place.
fn frames(name: &str, sources: &[u32], destinations: &[u32], more: &str) -> String {
    let hosts = |all: &[u32]| all.iter().map(|h| format!("'h{h}'")).collect::<Vec<_>>().join(", ");
    format!(
        "[[workload]]\nname = '{name}'\nkind = 'ethernet'\npattern = 'pairs'\nsources = [{}]\n\
         destinations = [{}]\n{more}\n",
        hosts(sources),
        hosts(destinations)
    )
}

const ENDLESS: &str = "background = true\nload = 0.8";

fn largest(done: &Outcome, column: &str) -> u64 {
    done.u64s("pfc", column).into_iter().max().expect("there are rows")
}

/// Returns the number of packets that found no room in the memory of a switch.
fn rejected(done: &Outcome) -> u64 {
    done.u64s("links", "drops_shared_buffer").iter().sum()
}

#[test]
fn n_lossy_queues_get_the_shares_of_choudhury_and_hahne() {
    for (alpha, n) in [(0.5, 1), (1.0, 2), (8.0, 3)] {
        let mut text = star(
            9,
            "duration = '3 ms'",
            &format!("shared = '2 MB'\nlossy = '300 KB'\nlossy_alpha = {alpha}"),
        );
        let sources: Vec<u32> = (0..2 * n).collect();
        let receivers: Vec<u32> = sources.iter().map(|source| 6 + source / 2).collect();
        text.push_str(&frames("lossy", &sources, &receivers, ENDLESS));
        let done = outcome(&text, &[]);
        let all = f64::from(n) * alpha;
        let expected = all / (1.0 + all) * 300_000.0;
        let most = done.number("dcb.memory.lossy_most_bytes");
        let slack = 1_500.0 * f64::from(n);
        assert!((most - expected).abs() <= 2.0 * slack, "alpha {alpha}, {n}: {most}, {expected}");
        assert!(rejected(&done) > 500 && done.count("dcb.pauses") == 0);
    }
}

#[test]
fn lossless_inputs_share_what_lossy_queues_leave() {
    // One lossy queue holds Q = a E / (1 + a) of its part E. Four inputs hold the rest of the memory I by
    // their own threshold: alpha (I - Q) / (1 + 4 alpha) each.
    for (lossy, queue) in [("", 0.0), ("lossy = '400 KB'", 200_000.0)] {
        let pfc = format!("shared = '600 KB'\nxon_offset = '0 B'\n{lossy}");
        let mut text = star(8, "duration = '10 ms'", &pfc);
        text.push_str("[fabric.queue]\nlimit = '1 MB'\n");
        text.push_str(&frames("lossy", &[4, 5], &[7, 7], ENDLESS));
        text.push_str(&frames("frames", &[0, 1, 2, 3], &[6, 6, 6, 6], ENDLESS));
        let done = outcome(&text, &[]);
        let rest = 600_000.0 - queue;
        let expected = rest / 5.0;
        let priorities = done.u64s("pfc", "priority");
        let inputs = priorities.iter().zip(done.u64s("pfc", "input_bytes"));
        let held: Vec<f64> =
            inputs.filter(|(p, bytes)| **p == 3 && *bytes > 0).map(|(_, b)| b as f64).collect();
        assert_eq!(held.len(), 4, "{held:?}");
        for bytes in &held {
            // XON comes when the headroom is empty, so that inputs hold up to 11,000 B more
            let fits = *bytes > 0.95 * expected && *bytes < expected + 11_000.0;
            assert!(fits, "{lossy}: {held:?}, {expected}");
        }
        assert_eq!(done.count("dcb.overflow_drops"), 0);
        let used = done.number("dcb.memory.shared_bytes");
        assert!((used - (queue + 4.0 * expected)).abs() < 12_000.0, "{used} {expected}");
    }
}

#[test]
fn a_full_memory_drops_lossy_packets_at_their_input_and_loses_no_lossless_ones() {
    // The queues may hold more than the memory: only the inputs limit them.
    let limits = [("", 200_000.0), ("lossy_input_alpha = 0.25", 0.5 * 200_000.0 / 1.5)];
    for (more, expected) in limits {
        let pfc = format!("shared = '200 KB'\nlossy = '10 MB'\nlossy_alpha = 8\n{more}");
        let mut text = star(8, "duration = '3 ms'", &pfc);
        text.push_str(&frames("lossy", &[4, 5], &[7, 7], ENDLESS));
        let done = outcome(&text, &[]);
        let used = done.number("dcb.memory.shared_most_bytes");
        assert!(used <= 200_000.0 && (used - expected).abs() < 4_500.0, "{more}: {used}");
        assert_eq!(done.count("dcb.overflow_drops"), 0);
        let drops = rejected(&done);
        assert!(drops > 500, "{drops}");
        // beside lossless frames, whose inputs then have only their headroom
        text.push_str(&frames("frames", &[0, 1, 2], &[6, 6, 6], "load = 0.8\nframes = 2000"));
        let text = text.replace("duration = '3 ms'", "duration = '40 ms'");
        let done = outcome(&text, &[]);
        assert_eq!(done.count("dcb.overflow_drops"), 0);
        let (sent, received) =
            (done.u64s("streams", "frames_sent"), done.u64s("streams", "frames_received"));
        assert_eq!(sent[2..], received[2..], "{sent:?} {received:?}");
    }
}

#[test]
fn one_egress_pool_counts_lossless_queues_against_lossy_ones() {
    let most = |more: &str| {
        let pfc = format!("shared = '900 KB'\nlossy = '900 KB'\nreserve = '200 KB'\n{more}");
        let mut text = star(8, "duration = '5 ms'", &pfc);
        text.push_str(&frames(
            "frames",
            &[0, 1, 2, 3],
            &[6, 6, 6, 6],
            "background = true\nload = 1",
        ));
        text.push_str(&frames("lossy", &[4, 5], &[7, 7], "background = true\nload = 0.55"));
        let done = outcome(&text, &[]);
        let rows =
            done.u64s("pfc", "priority").into_iter().zip(done.u64s("pfc", "output_most_bytes"));
        rows.filter(|(p, _)| *p == 0).map(|(_, bytes)| bytes).max().expect("a lossy queue")
    };
    // Alone, the lossy queue may hold half of its part.
    let (own, common) = (most(""), most("lossy_counts_lossless = true"));
    assert!(own.abs_diff(450_000) < 3_000, "{own}");
    // Beside lossless queues that fill the pool, it has only what it held before.
    assert!(common < 100_000, "{common}");
}

/// Returns a fabric with a sender at 10 Gbit/s behind a slow link of 97 Mbit/s, and two other hosts,
/// which with `reverse` send more to the sender than its link can carry.
fn slow_receiver(delay_us: f64, pfc: &str, reverse: bool) -> (String, String) {
    let delay = format!("{delay_us} us");
    let cables = [
        ("h0", "s0", "10 Gbit/s", delay.as_str()),
        ("h1", "s1", "10 Gbit/s", "1 us"),
        ("s0", "s1", "97 Mbit/s", "1 us"),
        ("h2", "s0", "10 Gbit/s", "1 us"),
        ("h3", "s0", "10 Gbit/s", "1 us"),
    ];
    let topology = graph(&["h0", "h1", "h2", "h3"], &["s0", "s1"], &cables);
    let mut text = format!(
        "schema = 1\n[fabric]\nkind = 'graph'\nfile = 'any.toml'\nprocessing_jitter = '0 s'\n\
         [fabric.pfc]\nshared = '60 KB'\n{pfc}\n[[class]]\nname = 'frames'\npriority = 3\n\
         [[class]]\nname = 'lossy'\npriority = 0\n"
    );
    text.push_str(&frames("frames", &[0], &[1], "load = 1\nframes = 800\nburst = 800"));
    if reverse {
        text.push_str(&frames("lossy", &[2, 3], &[0, 0], ENDLESS));
    }
    (text, topology)
}

#[test]
fn headroom_is_exactly_what_arrives_after_xoff() {
    // A frame occupies the link for 1538 B, a PFC frame for 84 B. The sender stops when the PFC frame has been
    // sent, has propagated, and has been obeyed; frames that it began before still arrive.
    let (frame, pause) = (1.2304, 0.0672);
    for (delay, response, reverse) in [
        (1.0, 0.0, false),
        (1.0, 3.072, false),
        (3.0, 3.072, false),
        (20.0, 1.0, false),
        (1.0, 3.072, true),
        (7.0, 0.5, true),
    ] {
        let case = format!("{delay} us, {response} us, {reverse}");
        let run = |more: &str| {
            let pfc = format!("response = '{response} us'\n{more}");
            let (text, topology) = slow_receiver(delay, &pfc, reverse);
            Outcome(
                eastwest_sim::run::run(
                    &scenario_in(&context_with("any.toml", &topology), &text, &[]),
                    false,
                    &mut |_| true,
                )
                .expect("it finishes"),
            )
        };
        // In the worst case, the PFC frame waits for a whole frame in the other direction.
        let wait = if reverse { frame } else { 0.0 };
        let late = (wait + pause + 2.0 * delay + response) / frame;
        let expected = 1_500 * late.ceil() as u64;
        let done = run("");
        assert_eq!(done.count("dcb.memory.headroom_most_bytes"), expected, "{case}");
        assert_eq!(done.count("dcb.overflow_drops"), 0, "{case}");
        // The headroom by the formula also has room for the frame in the other direction, and for the packet
        // that reached XOFF.
        let formula = largest(&done, "headroom_bytes");
        let bytes = 1.25e3 * (2.0 * delay + response) + 2.0 * 1538.0 + 84.0 + 1500.0;
        assert!((formula as f64 - bytes).abs() <= 1.0 && formula >= expected, "{case}: {formula}");
        let enough = run(&format!("headroom = '{expected} B'"));
        assert_eq!(enough.count("dcb.overflow_drops"), 0, "{case}");
        assert_eq!(
            enough.count("streams.frames_lost"),
            done.count("streams.frames_lost"),
            "{case}"
        );
        let small = run(&format!("headroom = '{} B'", expected - 1));
        let lost = small.count("dcb.overflow_drops");
        assert!(lost > 0, "{case}");
        assert_eq!(small.u64s("streams", "frames_lost")[0], lost, "{case}");
    }
}

#[test]
fn a_headroom_pool_loses_nothing_until_it_is_smaller_than_what_inputs_need() {
    let run = |more: &str| {
        let mut text = star(10, "", &format!("shared = '60 KB'\n{more}"));
        let (sources, destinations): (Vec<u32>, Vec<u32>) = (0..8).map(|h| (h, 8)).unzip();
        text.push_str(&frames(
            "frames",
            &sources,
            &destinations,
            "load = 1\nframes = 8000\nburst = 1000",
        ));
        let scenario = scenario(&text, &[]);
        let notes = scenario.notes.clone();
        (attempt(&scenario, false).expect("it finishes"), notes)
    };
    let (own, notes) = run("");
    assert!(notes.iter().all(|note| !note.contains("headroom")), "{notes:?}");
    let most = own.count("dcb.memory.headroom_most_bytes");
    let each = largest(&own, "headroom_bytes");
    assert!(own.count("dcb.overflow_drops") == 0 && most > 3 * each, "{most} of 8 times {each}");
    // a pool that has the sum of all headrooms, or what was used, is as good as own headrooms
    for pool in ["over_subscribe = 1".to_owned(), format!("headroom_pool = '{most} B'")] {
        let (pooled, notes) = run(&pool);
        assert_eq!(pooled.digest(), own.digest(), "{pool}");
        assert_eq!(
            notes.iter().any(|n| n.contains("headroom pool")),
            pool.contains('B'),
            "{notes:?}"
        );
    }
    for pool in ["over_subscribe = 8".to_owned(), format!("headroom_pool = '{} B'", most - 1)] {
        let (small, notes) = run(&pool);
        let lost = small.count("dcb.overflow_drops");
        assert!(lost > 0 && small.count("streams.frames_lost") == lost, "{pool}: {lost}");
        assert!(notes.iter().any(|n| n.contains("10 lossless priorities")), "{notes:?}");
    }
    let small = format!("headroom = '{} B'", each - 1);
    let (_, notes) = run(&small);
    assert!(notes.iter().any(|n| n.contains(&format!("fewer than the {each} B"))), "{notes:?}");
}

#[test]
fn tcp_and_rocev2_compete_for_one_memory() {
    // Eight hosts send to one by TCP, eight by RoCEv2 to another.
    let run = |profile: &str| {
        let mut text = star(18, "duration = '20 ms'", profile);
        for (name, transport, receiver, from, to) in
            [("lossy", "tcp", 16, 0, 7), ("frames", "rocev2", 17, 8, 15)]
        {
            text.push_str(&format!(
                "[[workload]]\nname = '{name}'\nkind = 'incast'\ntransport = '{transport}'\n\
                 receiver = 'h{receiver}'\nsenders = 'h{from}..h{to}'\nblock_bytes = '20 MB'\n\
                 warm_up = '0 s'\nbackground = true\n"
            ));
        }
        text.push_str(
            "[tcp]\nprofile = 'linux'\ncongestion = 'cubic'\n[rocev2]\ncongestion = 'none'\n",
        );
        outcome(&text, &[])
    };
    let done = run("profile = 'arista-7060cx'\nshared = '800 KB'\nlossy = '400 KB'");
    done.assert_conserved();
    assert_eq!((done.count("dcb.overflow_drops"), done.count("rocev2.retransmits")), (0, 0));
    assert!(done.count("dcb.pauses") > 0 && rejected(&done) > 0);
    // the queue of TCP reaches alpha E / (1 + alpha) of its part
    let most = done.number("dcb.memory.lossy_most_bytes");
    let expected = 8.0 / 9.0 * 400_000.0;
    let full = most > 0.98 * expected && most < expected + 3_000.0;
    assert!(full, "{most} {expected}");
}

#[test]
fn in_any_fabric_no_lossless_frame_is_lost_and_the_memory_adds_up() {
    let cases = std::env::var("EASTWEST_CASES").map_or(60, |n| n.parse().expect("a number"));
    let (mut whole, mut paused, mut dropped) = (0, 0, 0);
    for case in 0..cases {
        let mut random = Stream::new(case, "memories");
        let (text, topology) = random_fabric(&mut random);
        let at = text.find("buffer = ").expect("it has a buffer");
        let end = at + text[at..].find('\n').expect("a line");
        let mut pick = |from: &[&str]| from[random.below(from.len() as u64) as usize].to_owned();
        let alphas = ["0.125", "0.5", "1", "8"];
        let (alpha, lossy_alpha) = (pick(&alphas), pick(&alphas));
        let more = [
            pick(&["", "lossy_input_alpha = 0.5\n", "lossy_input_alpha = 8\n"]),
            pick(&["", "lossy_counts_lossless = true\n"]),
            pick(&["", "lossy_reserve = '3 KB'\n"]),
            pick(&["", "over_subscribe = 1\n"]),
        ]
        .concat();
        let memory = format!(
            "shared = '{} KB'\nalpha = {alpha}\nreserve = '{} KB'\nlossy = '{} KB'\n\
             lossy_alpha = {lossy_alpha}\n{more}",
            30 + random.below(400),
            random.below(20),
            10 + random.below(400),
        );
        let lossy = format!(
            "[[class]]\nname = 'lossy'\npriority = 0\n[[workload]]\nname = 'lossy'\n\
             kind = 'ethernet'\ndestinations = ['h0', 'h1']\nload = {}\nframes = {}\nburst = {}\n",
            0.3 + 0.7 * random.unit(),
            1_000 + random.below(2_000),
            1 + random.below(100),
        );
        let text = format!("{}{memory}{}{lossy}", &text[..at], &text[end..]);
        let own_limit = text.find("queue = ").expect("it has a limit");
        let rest = text[own_limit..].find('\n').expect("a line") + own_limit;
        let text = match random.below(3) {
            0 => text,
            _ => format!("{}{}", &text[..own_limit], &text[rest..]),
        };
        let scenario = scenario_in(&context_with("any.toml", &topology), &text, &[]);
        let place = format!("case {case}\n{text}\n{topology}");
        let [one, other] = [false, true].map(|reference| {
            attempt(&scenario, reference).unwrap_or_else(|e| panic!("{e}: {place}"))
        });
        assert_eq!(one.digest(), other.digest(), "{place}");
        assert_eq!(one.count("dcb.overflow_drops"), 0, "{place}");
        // between events, inputs and queues use what the memories count
        let mut world = World::new(Plan::new(&scenario).expect("a plan")).expect("a world");
        for part in 1..8 {
            let _ = world.run_to(one.count("events") * part / 8, &mut |_| true);
            world.conserved().unwrap_or_else(|e| panic!("{e}: {place}"));
        }
        paused += one.count("dcb.pauses");
        dropped += rejected(&one);
        if one.value("dcb.deadlock").is_null() {
            let memory = one.value("dcb.memory");
            let used =
                ["shared_bytes", "headroom_bytes", "lossy_bytes"].map(|n| memory[n].as_u64());
            assert_eq!(used, [Some(0); 3], "{place}");
            // the streams of the first two workloads are lossless
            let (sent, lost) = (one.count("streams.frames_sent"), one.count("streams.frames_lost"));
            assert_eq!(sent - lost, one.count("streams.frames_received"), "{place}");
            let (workloads, lost) =
                (one.texts("streams", "workload"), one.u64s("streams", "frames_lost"));
            for (workload, lost) in workloads.iter().zip(lost).filter(|(w, _)| **w != "lossy") {
                assert_eq!(lost, 0, "{workload}: {place}");
            }
            whole += 1;
        }
        if case % 10 == 0 && one.value("dcb.deadlock").is_null() {
            goes_on(&scenario, &one);
        }
    }
    println!("{whole} of {cases} complete, {paused} pauses, {dropped} drops");
    assert!(whole > cases / 2 && paused > 10 * cases && dropped > 10 * cases, "{whole} {dropped}");
}

#[test]
fn memories_that_are_impossible_are_refused() {
    for (pfc, key) in [
        ("shared = '1 MB'\nlossy = '1 KB'", "fabric.pfc.lossy"),
        ("shared = '1 MB'\nlossy = '10 KB'\nlossy_reserve = '20 KB'", "fabric.pfc.lossy_reserve"),
        (
            "shared = '1 MB'\nheadroom_pool = '1 MB'\nover_subscribe = 2",
            "fabric.pfc.over_subscribe",
        ),
        ("shared = '1 MB'\nover_subscribe = 0.5", "fabric.pfc.over_subscribe"),
        ("shared = '1 MB'\nlossy_alpha = 2", "fabric.pfc.lossy_alpha"),
        ("lossy = '1 MB'", "fabric.pfc.lossy"),
    ] {
        let text = star(3, "", pfc) + &frames("frames", &[0], &[1], "frames = 10");
        let problems = read(&text, &context(), &[]).expect_err("wrong");
        let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(all.iter().any(|one| one.contains(key)), "{key}: {all:?}");
    }
}
