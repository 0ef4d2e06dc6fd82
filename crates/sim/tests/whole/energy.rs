//! Tests of links that sleep, in whole scenarios: power and waiting time under Poisson traffic
//! against the formulas of Energy-Efficient Ethernet (checks 17 to 20 of the reference list), and
//! invariants for any traffic, queue discipline and policy.

use crate::harness::{
    Outcome, attempt, context_with, finish, graph, outcome, scenario, scenario_in,
};

/// Simulates frames of 1500 B without framing on a 10GBASE-T link between two switches, with
/// Poisson arrivals. Ten hosts send on cables that are a thousand times as fast. Returns the mean
/// power relative to an active link, and the mean waiting time in µs.
fn under_poisson(policy: &str, load: f64) -> (f64, f64) {
    let cables = [
        ("a", "left", "10 Tbit/s", "0 s"),
        ("left", "right", "10 Gbit/s", "0 s"),
        ("b", "right", "10 Tbit/s", "0 s"),
    ];
    let context = context_with("link.toml", &graph(&["a", "b"], &["left", "right"], &cables));
    let text = format!(
        "schema = 1\n[fabric]\nkind = 'graph'\nfile = 'link.toml'\nframing = 0\n\
         processing_jitter = '0 s'\nqueue = {{ limit = '100000 packets' }}\n\
         host_queue = {{ limit = '100000 packets' }}\nenergy = {{ {policy} }}\n\
         host_energy = {{}}\n[[workload]]\nname = 'poisson'\nkind = 'datagrams'\nsources = 'a'\n\
         destination = 'b'\nbytes = 1500\nmean_gap = '{:.3} us'\npackets = 400000\n",
        1.2 / load
    );
    let done = finish(&scenario_in(&context, &text, &[]));
    done.assert_conserved();
    let link = done.texts("links", "name").iter().position(|n| *n == "left->right").expect("there");
    let power =
        done.f64s("links", "energy_j")[link] / done.f64s("links", "energy_always_on_j")[link];
    // idle latency: 1.2 µs on the measured link, and 1.2 ns on each of the two fast cables
    (power, done.number("latency_us.mean") - 1.2024)
}

#[test]
fn power_and_wait_are_those_of_the_formulas() {
    const TEN: &str = "kind = 'coalescing', hold = '1 s', trigger = '10 packets'";
    const TIMED: &str = "kind = 'coalescing', hold = '12 us', trigger = '10 packets'";
    const STALL: &str = "kind = 'stall-timer', stall = '3 us'";
    // values of checks 18 to 20 of the reference list; other values are computed by `eastwest model
    // eee`
    for (policy, load, power, wait) in [
        ("kind = 'standard'", 0.1, 0.545, 4.196),
        ("kind = 'standard'", 0.3, 0.868, 4.105),
        ("kind = 'standard'", 0.5, 0.960, 4.352),
        (TEN, 0.1, 0.238, 56.52),
        (TEN, 0.3, 0.474, 20.70),
        (TEN, 0.5, 0.666, 13.83),
        (TIMED, 0.1, 0.399, 11.78),
        (TIMED, 0.5, 0.727, 9.744),
        (STALL, 0.1, 0.622, 3.500),
        ("kind = 'ideal'", 0.3, 0.370, 0.257),
        ("kind = 'always-on'", 0.5, 1.0, 0.600),
    ] {
        let (p, w) = under_poisson(policy, load);
        assert!((p - power).abs() < 0.005, "{policy} at {load}: power {p}, formula {power}");
        assert!((w / wait - 1.0).abs() < 0.03, "{policy} at {load}: wait {w} µs, formula {wait}");
    }
}

/// Runs a shuffle and a request service on a fabric of two racks with two paths between them; the
/// arguments are settings of its queues, schedulers and links.
fn mixed(queue: &str, scheduler: &str, energy: &str) -> Outcome {
    let text = format!(
        "schema = 1\n[fabric]\nkind = 'leaf-spine'\nleaves = 2\nhosts_per_leaf = 4\nspines = 2\n\
         host_rate = '1 Gbit/s'\nuplink_rate = '10 Gbit/s'\nrouting = 'round-robin'\n\
         queue = {queue}\nscheduler = '{scheduler}'\n{energy}\n[tcp]\nmin_rto = '10 ms'\n\
         [[workload]]\nname = 'all'\nkind = 'all-to-all'\nbytes = '200 KB'\n[[workload]]\n\
         name = 'few'\nkind = 'poisson'\nload = 0.02\nsizes = '3 KB'\nflows = 200\n"
    );
    let done = outcome(&text, &[]);
    done.assert_conserved();
    assert_eq!(done.count("flows.completed"), 256, "{energy}");
    done
}

/// Checks invariants of energy and of times in power states, which hold for any behaviour of the
/// links.
fn assert_accounted(done: &Outcome) {
    let run_s = done.number("simulated_s");
    let column = |name: &str| done.f64s("links", name).to_vec();
    let states = ["awake_s", "falling_asleep_s", "asleep_s", "waking_s"].map(column);
    let (used, ideal) = (column("energy_j"), column("energy_ideal_j"));
    let always_on = column("energy_always_on_j");
    let rates = done.u64s("links", "rate_bps");
    for link in 0..used.len() {
        let sum: f64 = states.iter().map(|times| times[link]).sum();
        assert!((sum - run_s).abs() < 1e-9, "link {link}: {sum} s of {run_s}");
        let watts = if rates[link] == 1_000_000_000 { 0.5 } else { 2.5 };
        let joules = watts * (run_s - 0.9 * states[2][link]);
        assert!((used[link] - joules).abs() < 1e-9, "link {link}: {} J of {joules}", used[link]);
        assert!(ideal[link] <= used[link] + 1e-9, "link {link} beats the ideal");
        assert!(used[link] <= always_on[link] + 1e-9, "link {link} is worse than always on");
    }
    let total: f64 = used.iter().sum();
    assert!((done.number("energy_j.total") - total).abs() < 1e-6);
    let parts =
        done.number("energy_j.host_links.total") + done.number("energy_j.fabric_links.total");
    assert!((parts - total).abs() < 1e-6);
    assert_summed(done, &states);
    assert_over_time(done);
}

/// Checks that the times of the power states in the summary are sums over the links.
fn assert_summed(done: &Outcome, states: &[Vec<f64>; 4]) {
    let names = ["awake_s", "falling_asleep_s", "asleep_s", "waking_s"];
    for (name, times) in names.into_iter().zip(states) {
        let number = |class: &str| done.number(&format!("energy_j.{class}{name}"));
        let sum: f64 = times.iter().sum();
        assert!((number("") - sum).abs() < 1e-6, "{name}");
        assert!((number("host_links.") + number("fabric_links.") - sum).abs() < 1e-6, "{name}");
    }
    let wakes: u64 = done.u64s("links", "wakes").iter().sum();
    assert_eq!(done.count("energy_j.wakes"), wakes);
}

/// Returns sums over the rows of the table `power` that end by `until`: joules, ideal joules, and
/// seconds in all states.
fn over_time(done: &Outcome, until: f64) -> [f64; 3] {
    let times = done.f64s("power", "time_s");
    let sum = |column: &str| -> f64 {
        let values = times.iter().zip(done.f64s("power", column));
        values.filter(|(at, _)| **at <= until).map(|(_, value)| value).sum()
    };
    let states = ["awake_s", "falling_asleep_s", "asleep_s", "waking_s"].map(sum);
    [sum("energy_j"), sum("energy_ideal_j"), states.iter().sum()]
}

/// Checks that energy over time does not exceed the total, and that the states of a link fill every
/// interval.
fn assert_over_time(done: &Outcome) {
    let times = done.f64s("power", "time_s");
    let Some(&last) = times.last() else {
        assert_eq!(done.number("energy_j.of_always_on"), 1.0, "only links that stay awake");
        return;
    };
    let run_s = done.number("simulated_s");
    assert!(last <= run_s + 1e-12 && run_s < last + 2.0 * times[0], "{last} s of {run_s} s");
    let [used, ideal, states] = over_time(done, f64::MAX);
    let links = done.u64s("links", "rate_bps").len() as f64;
    assert!((states - links * last).abs() < 1e-6, "{states}");
    assert!(ideal <= used + 1e-9 && used <= done.number("energy_j.total") + 1e-9);
    let rest = done.number("energy_j.always_on") * (1.0 - last / run_s);
    assert!(done.number("energy_j.total") - used <= rest + 1e-9, "no joule is missing");
    for (tier, at) in done.texts("power", "tier").iter().zip(times) {
        assert!(done.texts("links", "tier").contains(tier), "{tier} at {at}");
    }
}

#[test]
fn nothing_is_lost_and_every_joule_is_accounted_for() {
    const QUEUES: [&str; 5] = [
        "{ limit = '200 packets' }",
        "{ kind = 'red', min = '25 packets', max = '75 packets', limit = '200 packets' }",
        "{ kind = 'codel', limit = '200 packets' }",
        "{ kind = 'fq-codel', limit = '100 packets' }",
        "{ kind = 'pie', limit = '200 packets' }",
    ];
    const POLICIES: [&str; 4] = [
        "energy = { kind = 'standard' }",
        "energy = { kind = 'stall-timer', stall = '50 us' }",
        "energy = { kind = 'coalescing', hold = '120 us', trigger = '15 KB' }",
        "energy = { kind = 'coalescing', hold = '1 ms', trigger = '1000 packets' }\n\
         host_energy = { kind = 'coalescing', hold = '12 us', trigger = '10 packets' }",
    ];
    for queue in QUEUES {
        for policy in POLICIES {
            assert_accounted(&mixed(queue, "fifo", policy));
        }
    }
    assert_accounted(&mixed(QUEUES[0], "strict-priority", POLICIES[2]));
}

#[test]
fn both_kinds_of_ports_sleep_alike() {
    for energy in [
        "{ kind = 'standard' }",
        "{ kind = 'stall-timer', stall = '50 us' }",
        "{ kind = 'coalescing', hold = '120 us', trigger = '15 KB' }",
        "{ kind = 'coalescing', hold = '1 ms', trigger = '20 packets' }",
        "{ kind = 'adaptive' }",
    ] {
        for queue in [
            "{ limit = '20 packets' }",
            "{ kind = 'red', min = '5 packets', max = '15 packets', limit = '200 packets' }",
            "{ kind = 'codel', target = '50 us', interval = '400 us' }",
        ] {
            let text = format!(
                "schema = 1\n[fabric]\nkind = 'leaf-spine'\nleaves = 2\nhosts_per_leaf = 3\n\
                 spines = 2\nhost_rate = '1 Gbit/s'\nuplink_rate = '10 Gbit/s'\n\
                 queue = {queue}\nenergy = {energy}\n[tcp]\nmin_rto = '10 ms'\n\
                 [[workload]]\nname = 'all'\nkind = 'all-to-all'\nbytes = '100 KB'\n"
            );
            let scenario = scenario(&text, &[]);
            let (ours, reference) = (finish(&scenario), attempt(&scenario, true).expect("an end"));
            assert_eq!(ours.digest(), reference.digest(), "{queue} {energy}");
            for table in ["links", "events", "flows"] {
                let same = ours.table_text(table) == reference.table_text(table);
                assert!(same, "{queue} {energy}: {table}");
            }
            assert!(ours.u64s("links", "wakes").iter().sum::<u64>() > 100);
        }
    }
}

#[test]
fn with_both_directions_a_cable_sleeps_as_one() {
    let run = |more: &str| {
        mixed(
            "{ limit = '200 packets' }",
            "fifo",
            &format!("energy = {{ kind = 'standard'{more} }}"),
        )
    };
    let (each, both) = (run(""), run(", both_directions = true"));
    assert_eq!(each.digest(), both.digest());
    assert_accounted(&both);
    let run_s = both.number("simulated_s");
    let asleep = [&each, &both].map(|done| done.f64s("links", "asleep_s").to_vec());
    for (cable, (each, both)) in asleep[0].chunks(2).zip(asleep[1].chunks(2)).enumerate() {
        assert!(both[0] == both[1] && both[0] > 0.0, "cable {cable}: {both:?}");
        // the time in which both directions sleep is at most the smaller of the two times, and at
        // least their overlap in the run
        let most = each[0].min(each[1]);
        let least = each[0] + each[1] - run_s;
        assert!(both[0] < most && both[0] >= least - 1e-9, "cable {cable}: {both:?} of {each:?}");
    }
}

#[test]
fn an_adaptive_timer_holds_less_than_the_queue_aims_at() {
    let queue = "{ kind = 'adaptive-red', target = '200 us', limit = '200 packets' }";
    let [standard, adaptive, fixed] = [
        "kind = 'standard'",
        "kind = 'adaptive'",
        "kind = 'coalescing', hold = '1 ms', trigger = '1000 packets'",
    ]
    .map(|energy| mixed(queue, "fifo", &format!("energy = {{ {energy} }}")));
    assert_accounted(&adaptive);
    let joules = |done: &Outcome| done.number("energy_j.total") / done.number("energy_j.always_on");
    assert!(joules(&adaptive) < joules(&standard));
    // a packet is held on at most four links, on each for at most half of the target delay
    let p50 = |done: &Outcome| done.number("latency_us.p50");
    assert!(p50(&adaptive) < p50(&standard) + 400.0, "{} {}", p50(&adaptive), p50(&standard));
    assert!(p50(&fixed) > 2.0 * p50(&adaptive), "{} {}", p50(&fixed), p50(&adaptive));
}

#[test]
fn what_is_said_of_transceivers_leaves_the_rest_to_the_rate_of_each_link() {
    let energy = "energy = { kind = 'standard', sleep_power = 0.5 }";
    let done = mixed("{ limit = '200 packets' }", "fifo", energy);
    let run_s = done.number("simulated_s");
    let columns = ["energy_j", "asleep_s", "waking_s"].map(|c| done.f64s("links", c));
    let (rates, wakes) = (done.u64s("links", "rate_bps"), done.u64s("links", "wakes"));
    for (link, rate) in rates.iter().enumerate() {
        let (watts, wake_s) = if *rate == 1_000_000_000 { (0.5, 16.5e-6) } else { (2.5, 4.48e-6) };
        let [used, asleep, waking] = columns.map(|c| c[link]);
        assert!((used - watts * (run_s - 0.5 * asleep)).abs() < 1e-9, "link {link}: {used} J");
        // the last wake may not have ended when the run ends
        assert!((waking - wakes[link] as f64 * wake_s).abs() <= wake_s, "link {link}: {waking} s");
    }
}

#[test]
fn a_link_that_need_not_wake_changes_nothing_but_its_power() {
    let queue = "{ limit = '200 packets' }";
    let on = mixed(queue, "fifo", "");
    let ideal = mixed(queue, "fifo", "energy = { kind = 'ideal' }");
    // a stall timer longer than the run keeps links awake: equal results, but with ports in the
    // two-event mode
    let awake = mixed(queue, "fifo", "energy = { kind = 'stall-timer', stall = '1 s' }");
    assert_eq!((on.digest(), on.digest()), (ideal.digest(), awake.digest()));
    [&on, &ideal, &awake].into_iter().for_each(assert_accounted);
    assert_eq!(on.number("energy_j.of_always_on"), 1.0);
    assert_eq!(ideal.number("energy_j.of_ideal"), 1.0);
    assert_eq!(awake.number("energy_j.total"), on.number("energy_j.total"));
}

#[test]
fn coalescing_trades_delay_for_energy() {
    let queue = "{ limit = '200 packets' }";
    let run = |policy| mixed(queue, "fifo", policy);
    let standard = run("energy = { kind = 'standard' }");
    let held = run("energy = { kind = 'coalescing', hold = '120 us', trigger = '100 packets' }");
    let wasted = |done: &Outcome| done.number("energy_j.of_ideal") - 1.0;
    assert!(wasted(&held) < 0.7 * wasted(&standard), "{} {}", wasted(&held), wasted(&standard));
    // single packets of the requests wait for the hold timer on links that no other traffic wakes
    let p50 = |done: &Outcome| done.number("latency_us.classes.few.p50");
    assert!(p50(&held) > p50(&standard) + 100.0, "{} {}", p50(&held), p50(&standard));
}

#[test]
fn the_series_is_the_same_however_often_it_is_folded() {
    let energy = "energy = { kind = 'coalescing', hold = '120 us', trigger = '15 KB' }";
    let text = |measure: &str| {
        format!(
            "schema = 1\n[fabric]\nkind = 'star'\nhosts = 3\nhost_rate = '1 Gbit/s'\n{energy}\n\
             [measure]\n{measure}\n[[workload]]\nname = 'few'\nkind = 'poisson'\nload = 0.002\n\
             sizes = '3 KB'\nflows = 300\n"
        )
    };
    let adaptive = outcome(&text(""), &[]);
    let step = adaptive.f64s("power", "time_s")[0];
    assert!(step > 0.0015, "the run is long enough for the series to fold: {step} s");
    let fine = outcome(&text("sample_interval = '100 us'"), &[]);
    for until in [100.0 * step, 400.0 * step] {
        let (a, b) = (over_time(&adaptive, until + 1e-9), over_time(&fine, until + 1e-9));
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6), "{a:?} {b:?}");
    }
}

#[test]
fn switches_count_apart_and_change_nothing() {
    let queue = "{ limit = '200 packets' }";
    let standard = "energy = { kind = 'standard' }";
    let links = mixed(queue, "fifo", standard);
    let power = "switch_power = { base_w = 100, port_w = 2, lane_w = 0.5 }";
    let both = mixed(queue, "fifo", &format!("{standard}\n{power}"));
    assert_eq!(both.digest(), links.digest());
    let number = |done: &Outcome, path: &str| done.number(&format!("energy_j.{path}"));
    assert_eq!(number(&both, "total"), number(&links, "total"));
    assert_eq!(number(&links, "switches.total"), 0.0);
    assert_eq!(number(&links, "with_switches.total"), number(&links, "total"));
    // 4 switches; 8 ports to hosts and 8 ports between switches, with one lane each
    let run_s = both.number("simulated_s");
    for (part, watts) in [("base", 400.0), ("ports", 32.0), ("lanes", 8.0), ("total", 440.0)] {
        let joules = number(&both, &format!("switches.{part}"));
        assert!((joules / run_s - watts).abs() < 1e-9, "{part}: {joules} J");
    }
    let whole = number(&both, "total") + number(&both, "switches.total");
    assert!((number(&both, "with_switches.total") - whole).abs() < 1e-9);
    let saved = number(&both, "with_switches.of_always_on");
    assert!(number(&both, "of_always_on") < saved && saved < 1.0, "{saved}");
}

/// Returns the sleep periods of a link from the table `lpi`, each as times in seconds: begin of the
/// transition to sleep, asleep, begin of waking, awake.
fn naps(done: &Outcome, link: u64) -> Vec<[f64; 4]> {
    let columns = ["falls_asleep_s", "asleep_s", "wakes_s", "awake_s"].map(|c| done.f64s("lpi", c));
    let rows = done.u64s("lpi", "link").into_iter().enumerate().filter(|(_, l)| *l == link);
    rows.map(|(row, _)| columns.map(|c| c[row])).collect()
}

#[test]
fn naps_add_up_to_the_states_of_their_links() {
    const POLICIES: [&str; 4] = [
        "{ kind = 'standard' }",
        "{ kind = 'stall-timer', stall = '50 us' }",
        "{ kind = 'coalescing', hold = '120 us', trigger = '15 KB' }",
        "{ kind = 'adaptive' }",
    ];
    for (policy, queue) in POLICIES.into_iter().flat_map(|p| [(p, "drop-tail"), (p, "codel")]) {
        let text = format!(
            "schema = 1\n[fabric]\nkind = 'leaf-spine'\nleaves = 2\nhosts_per_leaf = 3\nspines = 2\n\
             host_rate = '1 Gbit/s'\nuplink_rate = '10 Gbit/s'\nenergy = {policy}\n\
             queue = {{ kind = '{queue}' }}\n[tcp]\nmin_rto = '10 ms'\n[[workload]]\nname = 'all'\n\
             kind = 'all-to-all'\nbytes = '100 KB'\n"
        );
        let plain = outcome(&text, &[]);
        assert_eq!(plain.count("lpi.rows"), 0);
        let done = outcome(&text, &[("measure.lpi", "[\"*\"]")]);
        assert_eq!((done.digest(), done.count("lpi.left_out")), (plain.digest(), 0), "{policy}");
        let run_s = done.number("simulated_s");
        let states = ["awake_s", "falling_asleep_s", "asleep_s", "waking_s"];
        let states = states.map(|c| done.f64s("links", c));
        for link in done.u64s("links", "link") {
            let naps = naps(&done, link);
            assert!(!naps.is_empty(), "{policy}: link {link} slept");
            assert!(naps.iter().all(|nap| nap.is_sorted()), "{policy}: {naps:?}");
            assert!(naps.windows(2).all(|two| two[0][3] <= two[1][0]), "{policy}: {naps:?}");
            assert!(naps.iter().all(|nap| nap[3] <= run_s), "{policy}: {naps:?}");
            for state in 0..3 {
                let sum: f64 = naps.iter().map(|nap| nap[state + 1] - nap[state]).sum();
                let whole = states[state + 1][link as usize];
                assert!((sum - whole).abs() < 1e-9, "{policy}, link {link}: {sum} s of {whole} s");
            }
        }
    }
}

#[test]
fn ports_share_the_rows_of_the_log() {
    let run = |rows: &str| {
        let text = format!(
            "schema = 1\n[fabric]\nkind = 'star'\nhosts = 3\nhost_rate = '1 Gbit/s'\n\
             energy = {{ kind = 'standard' }}\n[measure]\nlpi = ['switch0', 'h0->switch0']\n\
             {rows}\n[[workload]]\nname = 'few'\nkind = 'poisson'\nload = 0.01\n\
             sizes = '3 KB'\nflows = 100\n"
        );
        outcome(&text, &[])
    };
    let (all, few) = (run("lpi_rows = 100000"), run("lpi_rows = 43"));
    let mut links = all.u64s("lpi", "link");
    links.dedup();
    assert_eq!(links, [0, 1, 3, 5], "the ports of the switch, and that of the host");
    assert_eq!((all.count("lpi.left_out"), few.count("lpi.rows")), (0, 40));
    assert_eq!(all.count("lpi.rows"), few.count("lpi.rows") + few.count("lpi.left_out"));
    for link in [0, 1, 3, 5] {
        assert_eq!(naps(&few, link), naps(&all, link)[..10], "the first ones");
    }
    let part = run("lpi_from = '5 ms'\nlpi_until = '9 ms'");
    for link in [0, 1, 3, 5] {
        let mut inside = naps(&all, link);
        inside.retain(|nap| nap[3] > 0.005 && nap[0] < 0.009);
        assert!(!inside.is_empty() && inside.len() < naps(&all, link).len());
        assert_eq!(naps(&part, link), inside, "those that lie partly in the window");
    }
    assert_eq!(part.count("lpi.left_out"), 0);
}
