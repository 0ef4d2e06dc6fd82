//! Tests of PFC with ingress buffers that share the memory of their switch: nothing is lost, limits
//! follow the free memory, and every pause ends or belongs to a deadlock.

use crate::dcb::random_fabric;
use crate::harness::{Outcome, context, context_with, outcome, scenario, scenario_in};
use eastwest_engine::random::Stream;
use eastwest_network::dcb::ingress_pool::HeadroomPool;
use eastwest_sim::run::run;
use eastwest_sim::scenario::read;

/// Returns a scenario in which four hosts send to one, each with 60 % of the rate of a link; the
/// ports of the switch share memory.
fn four_to_one(pfc: &str) -> String {
    format!(
        "schema = 1\n[fabric]\nkind = 'star'\nhosts = 6\nhost_rate = '10 Gbit/s'\n\
         host_delay = '1 us'\nprocessing_jitter = '0 s'\n[fabric.pfc]\n{pfc}\n\
         [[class]]\nname = 'frames'\npriority = 3\n\
         [[workload]]\nname = 'frames'\nkind = 'ethernet'\npattern = 'pairs'\n\
         sources = ['h0', 'h1', 'h2', 'h3']\ndestinations = ['h4', 'h4', 'h4', 'h4']\nload = 0.6\n\
         frames = 12000\n"
    )
}

fn largest(done: &Outcome) -> u64 {
    done.u64s("pfc", "input_most_bytes").into_iter().max().expect("there are inputs")
}

#[test]
fn nothing_is_lost_and_every_input_is_empty_at_the_end() {
    let done = outcome(&four_to_one("shared = '200 KB'"), &[]);
    done.assert_conserved();
    assert_eq!(done.count("packets.dropped"), 0);
    assert_eq!(done.count("streams.frames_received"), 12_000);
    assert!(done.count("dcb.pauses") > 100, "{}", done.count("dcb.pauses"));
    assert!(done.u64s("pfc", "input_bytes").iter().all(|b| *b == 0));
    let rates = done.f64s("streams", "throughput_bps");
    for rate in rates {
        assert!((rate / (10e9 / 4.0 * 1500.0 / 1538.0) - 1.0).abs() < 0.05, "{rates:?}");
    }
}

#[test]
fn inputs_hold_what_choudhury_and_hahne_say() {
    // Choudhury and Hahne: each of n inputs with unlimited demand holds alpha B / (1 + alpha n),
    // where B is the memory. A single input holds up to alpha B / (1 + alpha), plus its headroom.
    let headroom = outcome(&four_to_one("shared = '1 MB'"), &[]).u64s("pfc", "headroom_bytes");
    let headroom = headroom.into_iter().max().expect("there are inputs");
    for alpha in [0.125, 1.0, 8.0] {
        let done = outcome(&four_to_one(&format!("shared = '400 KB'\nalpha = {alpha}")), &[]);
        let [fair, alone] = [4.0, 1.0].map(|n| alpha * 400_000.0 / (1.0 + n * alpha));
        let held = largest(&done) as f64;
        assert_eq!(done.count("packets.dropped"), 0, "{alpha}");
        assert!(held > 0.95 * fair && held < alone + headroom as f64, "{alpha} {held} {fair}");
    }
}

#[test]
fn a_reserve_is_held_while_others_use_the_memory() {
    let with = largest(&outcome(&four_to_one("shared = '20 KB'\nreserve = '60 KB'"), &[]));
    let without = largest(&outcome(&four_to_one("shared = '20 KB'"), &[]));
    assert!(with >= without + 40_000, "{with} {without}");
}

#[test]
fn in_any_fabric_every_frame_arrives_or_a_deadlock_is_named() {
    let cases = std::env::var("EASTWEST_CASES").map_or(60, |n| n.parse().expect("a number"));
    let (mut whole, mut stuck, mut paused) = (0, 0, 0);
    for case in 0..cases {
        let mut random = Stream::new(case, "pools");
        let (text, topology) = random_fabric(&mut random);
        let at = text.find("buffer = ").expect("it has a buffer");
        let end = at + text[at..].find('\n').expect("a line");
        let alpha = [0.125, 0.5, 1.0, 8.0][random.below(4) as usize];
        let size = 30 + random.below(400);
        let reserve = random.below(20);
        let pool = format!("shared = '{size} KB'\nalpha = {alpha}\nreserve = '{reserve} KB'");
        let text = format!("{}{pool}{}", &text[..at], &text[end..]);
        let scenario = scenario_in(&context_with("any.toml", &topology), &text, &[]);
        let [one, other] = [false, true].map(|reference| {
            run(&scenario, reference, &mut |_| true)
                .unwrap_or_else(|e| panic!("case {case}: {e}\n{text}\n{topology}"))
                .summary
        });
        assert_eq!(one["digest"], other["digest"], "case {case}\n{text}\n{topology}");
        let dropped = one["packets"]["dropped"].as_u64().expect("a count");
        let messages = one["dcb"]["qcn_messages"].as_u64().expect("a count");
        let lost = one["streams"]["frames_lost"].as_u64().expect("a count");
        assert!(lost == 0 && dropped <= messages, "case {case}: {one}\n{text}\n{topology}");
        paused += one["dcb"]["pauses"].as_u64().expect("a count");
        if one["dcb"]["deadlock"].is_null() {
            let all = &one["streams"];
            assert_eq!(all["frames_sent"], all["frames_received"], "case {case}\n{text}");
            whole += 1;
        } else {
            stuck += 1;
        }
    }
    println!("{whole} whole, {stuck} stuck, {paused} pauses");
    assert!(whole > cases / 2 && paused > 10 * cases, "{whole} {stuck} {paused}");
}

#[test]
fn a_profile_sets_the_memory_of_a_switch() {
    let named = scenario(&four_to_one("profile = 'arista-7050cx3'"), &[]);
    assert!(named.resolved().contains("shared = \"31965 KiB\""), "{}", named.resolved());
    let pool = named.fabric.dcb.pfc.clone();
    let pool = pool.and_then(|pfc| pfc.shared).expect("a pool");
    assert_eq!((pool.size, pool.reserve, pool.xon_offset), (32_732_160, 4_608, 4_608));
    assert_eq!(pool.headroom_pool, Some(HeadroomPool::Size(1_622_016)));
    let lossy = pool.lossy.expect("lossy queues");
    assert_eq!((lossy.queues.size, lossy.queues.reserve), (24_709_632, 1_792));
    assert_eq!((lossy.queues.alpha, lossy.counts_lossless, lossy.input_alpha), (8.0, false, None));
    assert!(named.resolved().contains("lossy_alpha = 8.0"), "{}", named.resolved());
    let own = "profile = 'nvidia-sn4280'\nreserve = '1 KB'";
    let pool = scenario(&four_to_one(own), &[]).fabric.dcb.pfc.and_then(|pfc| pfc.shared);
    assert_eq!(pool.map(|pool| pool.reserve), Some(1_000));
    let ratio = "profile = 'arista-7060x6'\nover_subscribe = 4";
    let pool = scenario(&four_to_one(ratio), &[]).fabric.dcb.pfc.and_then(|pfc| pfc.shared);
    let pool = pool.expect("a pool");
    assert_eq!(pool.headroom_pool, Some(HeadroomPool::OverSubscribed(4.0)));
    assert!(pool.lossy.is_some_and(|lossy| lossy.counts_lossless));
    // the resolved text is a scenario with equal settings
    for name in ["arista-7050cx3", "arista-7060cx", "arista-7060x6", "nvidia-sn4280"] {
        let named = scenario(&four_to_one(&format!("profile = '{name}'")), &[]);
        let again = scenario(named.resolved(), &[]);
        assert_eq!(named.fabric.dcb, again.fabric.dcb, "{name}");
        assert_eq!(named.fabric.switch_queue, again.fabric.switch_queue, "{name}");
    }
}

#[test]
fn a_memory_below_one_packet_is_refused() {
    let text = four_to_one("shared = '1 KB'");
    let problems = read(&text, &context(), &[]).expect_err("wrong");
    let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert!(all.iter().any(|one| one.contains("too small")), "{all:?}");
    let both = four_to_one("shared = '1 MB'\nxoff = '3 KB'");
    let problems = read(&both, &context(), &[]).expect_err("wrong");
    assert!(problems.len() == 1 && problems[0].message.contains("has no effect with `shared`"));
}
