//! A run on several threads gives what it gives on one: every table, the whole summary and the digest.

use crate::digest::random_scenario;
use crate::harness::{scenario, shipped};
use eastwest_engine::random::Stream;
use eastwest_sim::plan::Plan;
use eastwest_sim::results::Results;
use eastwest_sim::scenario::Scenario;
use eastwest_sim::threads::{Habits, Team};
use eastwest_sim::world::World;

/// Divides at every opportunity and puts together again soon.
const RESTLESS: Habits = Habits { taste: 61, alone: 61, together: 1_500, pays: 0, patience: 61 };

/// What a run says of itself: the summary and all tables as text.
fn said(results: &Results) -> String {
    format!("{:#}\n{:#?}\n{:?}", results.summary, results.tables, results.files)
}

fn in_one(scenario: &Scenario) -> String {
    let mut world = World::new(Plan::new(scenario).unwrap()).unwrap();
    world.run(&mut |_| true).unwrap_or_else(|e| panic!("{}: {e}", scenario.name));
    said(&Results::new(world))
}

/// The same on threads, and how often it was divided.
fn in_parts(scenario: &Scenario, threads: usize, habits: Habits) -> Result<(String, u64), String> {
    let plan = Plan::new(scenario).unwrap();
    let mut team = Team::new(&plan, threads)?;
    team.habits = habits;
    let mut world = World::new(plan).unwrap();
    world.run_with(&mut team, &mut |_| true).unwrap_or_else(|e| panic!("{}: {e}", scenario.name));
    Ok((said(&Results::new(world)), team.divided))
}

/// Compares, and tells how often the run was divided.
fn same(scenario: &Scenario, threads: usize, habits: Habits) -> u64 {
    let one = in_one(scenario);
    let (parts, divided) = in_parts(scenario, threads, habits).unwrap();
    if one != parts {
        let differ = one.lines().zip(parts.lines()).find(|(a, b)| a != b);
        panic!("{} on {threads} threads: {differ:?}", scenario.name);
    }
    divided
}

#[test]
fn shipped_scenarios_are_the_same_on_any_number_of_threads() {
    let cases: [(&str, &[(&str, &str)]); 4] = [
        ("first", &[]),
        ("s1", &[("workload.bulk.bytes", "60 KB")]),
        ("s2", &[("workload.incast.rounds", "2"), ("tcp.min_rto", "1 ms")]),
        (
            "s3",
            &[
                ("fabric.hosts_per_leaf", "4"),
                ("workload.terasort.master", "h15"),
                ("workload.terasort.job.0.input", "100 MB"),
                ("workload.terasort.job.0.maps", "12"),
                ("workload.terasort.job.0.reduces", "15"),
                ("fabric.queue.limit", "30 packets"),
            ],
        ),
    ];
    for (name, sets) in cases {
        let scenario = scenario(&shipped(name), sets);
        for threads in [2, 3] {
            assert!(same(&scenario, threads, RESTLESS) > 0, "{name} was never divided");
        }
    }
}

#[test]
fn a_busy_run_is_divided_without_being_told_to() {
    let scenario = scenario(&shipped("s1"), &[("workload.bulk.bytes", "100 KB")]);
    assert!(same(&scenario, 2, Habits::default()) > 0);
}

/// Random scenarios tried.
const RANDOM_SCENARIOS: u64 = 60;

#[test]
fn random_scenarios_are_the_same_on_any_number_of_threads() {
    let mut divided = 0;
    for case in 0..RANDOM_SCENARIOS {
        let text = random_scenario(&mut Stream::new(case, "random scenarios on threads"));
        let name = format!("random-{case}");
        // others are not divided
        let sets = [("fabric.scheduler", "fifo"), ("fabric.routing", "ecmp"), ("name", &name)];
        let scenario = scenario(&text, &sets);
        let threads = [2, 3, 4, 8][case as usize % 4];
        if let Ok((parts, times)) = in_parts(&scenario, threads, RESTLESS) {
            assert!(in_one(&scenario) == parts, "{threads} threads differ:\n{text}");
            divided += u64::from(times > 0);
        }
    }
    assert!(divided > RANDOM_SCENARIOS / 3, "only {divided} were divided");
}

/// An oversubscribed fabric with losses at hosts and switches, a queue that marks, or one that does not.
const BUSY: &str = "schema = 1\n[fabric]\nkind = 'fat-tree'\nk = 4\nhosts_per_edge = 3\n\
    host_rate = '1 Gbit/s'\nuplink_rate = '1 Gbit/s'\nhost_queue = { limit = '30 packets' }\n\
    [tcp]\nmin_rto = '1 ms'\ngranularity = '10 us'\n[[workload]]\nname = 'all'\n\
    kind = 'all-to-all'\nbytes = '30 KB'\nstart_window = '10 us'\n";

#[test]
fn queues_that_decide_at_once_are_the_same_on_any_number_of_threads() {
    for (kind, sets) in [
        ("drop-tail", &[("fabric.queue.limit", "20 packets")][..]),
        ("red", &[("fabric.queue", "{ kind = 'red', min = '5 packets', max = '20 packets' }")]),
        ("pie", &[("fabric.queue.kind", "pie")]),
        (
            "marks",
            &[("fabric.queue.kind", "step-marking"), ("fabric.queue.threshold", "9 packets")],
        ),
    ] {
        let scenario = scenario(BUSY, sets);
        for threads in [2, 3, 4, 8] {
            assert!(same(&scenario, threads, RESTLESS) > 3, "{kind} was not divided");
        }
    }
}

#[test]
fn what_cannot_be_divided_says_why() {
    for (sets, why) in [
        (&[("fabric.scheduler", "strict-priority")][..], "after they have been enqueued"),
        (&[("fabric.queue.kind", "codel")], "after they have been enqueued"),
        (&[("fabric.routing", "round-robin")], "keep in mind"),
        (&[("fabric.host_delay", "0 s"), ("fabric.framing", "0")], "no delay"),
    ] {
        let plan = Plan::new(&scenario(BUSY, sets)).unwrap();
        let said = Team::new(&plan, 2).err().expect("it is refused");
        assert!(said.contains(why), "{said}");
    }
}
