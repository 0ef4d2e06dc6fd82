//! Tests of runs on several threads: tables, summary and digest equal those of one thread.

use crate::harness::{scenario, shipped};
use eastwest_sim::checkpoint::{Identity, Keep, Kept, load, plan as plan_of, save};
use eastwest_sim::plan::Plan;
use eastwest_sim::results::Results;
use eastwest_sim::scenario::Scenario;
use eastwest_sim::threads::{
    Outcome, ParallelOptions, Parts, PartsSnapshot, Request, TrialTimes, Watcher, resume, run,
};
use eastwest_sim::world::{Progress, RunError, World};
use eastwest_types::{Span, Time};
use std::cell::Cell;
use std::time::Duration;

/// Options with which a run is partitioned from the first event to nearly the last, even if there
/// are few events.
const ALWAYS: ParallelOptions = ParallelOptions {
    last_flows: 3,
    check_interval: Duration::MAX,
    min_events_per_window: (0, 0),
    spans: None,
};

/// Options like `ALWAYS`, except that one thread and several threads alternate. The clock that
/// decides advances by 1 ms at each reading.
const BY_TURNS: ParallelOptions = ParallelOptions {
    spans: Some(TrialTimes {
        try_alone: Duration::from_millis(7),
        try_together: Duration::from_millis(9),
        together: Duration::from_millis(16),
        alone: Duration::from_millis(5),
        max_failed_trials: u32::MAX,
        trial_period: Duration::ZERO,
    }),
    ..ALWAYS
};

/// Returns summary, tables and files of a run as text, to compare two runs.
fn said(results: &Results) -> String {
    format!("{:#}\n{:#?}\n{:?}", results.summary, results.tables, results.files)
}

fn in_one(scenario: &Scenario) -> String {
    let mut world = World::new(Plan::new(scenario).unwrap()).unwrap();
    world.run(&mut |_| true).unwrap_or_else(|e| panic!("{}: {e}", scenario.name));
    said(&Results::new(world))
}

/// Runs the scenario on several threads, stops it after a number of calls of the watcher, saves it
/// and continues it. Returns the results, or the reason why it can only run on one thread.
fn in_parts(
    scenario: &Scenario,
    threads: usize,
    options: ParallelOptions,
    looks: u64,
) -> Result<(String, bool), &'static str> {
    let plan = || Plan::new(scenario).map_err(|e| RunError::Limit(e.join("; ")));
    let ticks = Cell::new(0);
    let clock = || {
        ticks.set(ticks.get() + 1);
        Duration::from_millis(ticks.get())
    };
    let identity = Identity { build: "test".into(), plan: plan_of(scenario, false) };
    let mut stopping = Stopping { done: 0, looks, identity: &identity, bytes: Vec::new() };
    let (ended, was_stopped) = match run(&plan, threads, options, &clock, &mut stopping) {
        Err(RunError::Interrupted) => {
            let Ok(Kept::Parts(parts)) = load(&stopping.bytes, &identity) else {
                panic!("parts were written and are read back")
            };
            (resume(parts, options, &clock, &mut |_: &Progress| true), true)
        }
        ended => (ended, false),
    };
    match ended.unwrap() {
        Outcome::Done(run) => Ok((said(&run.into_results()), was_stopped)),
        Outcome::Sequential(why) => Err(why),
    }
}

/// Checks that runs on one and on several threads have the same results. Returns whether the run
/// was stopped meanwhile, or the reason why it could not be partitioned.
fn same(
    scenario: &Scenario,
    text: &str,
    threads: usize,
    options: ParallelOptions,
    looks: u64,
) -> Result<bool, &'static str> {
    match in_parts(scenario, threads, options, looks) {
        Err(why) => Err(why),
        Ok((parts, was_stopped)) => {
            let one = in_one(scenario);
            let differ: Vec<_> =
                one.lines().zip(parts.lines()).filter(|(a, b)| a != b).take(8).collect();
            assert!(one == parts, "{} on {threads} threads: {differ:#?}\n{text}", scenario.name);
            Ok(was_stopped)
        }
    }
}

#[test]
fn shipped_scenarios_are_the_same_on_any_number_of_threads() {
    let scenario = scenario(&shipped("s1"), &[("workload.bulk.bytes", "60 KB")]);
    for (threads, options) in [(2, ALWAYS), (3, BY_TURNS), (4, ALWAYS)] {
        assert_eq!(same(&scenario, "S1", threads, options, u64::MAX), Ok(false));
    }
}

#[test]
fn who_watches_sees_how_far_all_parts_are_and_can_stop_them() {
    let scenario = scenario(&shipped("s1"), &[("workload.bulk.bytes", "60 KB")]);
    let plan = || Plan::new(&scenario).map_err(|e| RunError::Limit(e.join("; ")));
    let options = ParallelOptions { check_interval: Duration::ZERO, ..ALWAYS };
    let mut seen: Vec<(u64, u64, u64)> = Vec::new();
    let mut look = |p: &Progress| {
        assert_eq!((p.until, p.done.1), (Time::ZERO + Span::from_secs(300), 1280));
        seen.push((p.packet_hops, p.events, p.done.0));
        true
    };
    let Outcome::Done(run_in_parts) =
        run(&plan, 2, options, &|| Duration::ZERO, &mut look).unwrap()
    else {
        panic!("S1 can be divided");
    };
    let end = run_in_parts.progress();
    let last = *seen.last().unwrap();
    // the watcher has seen nearly all flows; the hops that it sees are some windows old
    assert!(seen.is_sorted() && last.0 > end.packet_hops / 2 && last.0 <= end.packet_hops);
    assert!(last.1 > end.events / 2 && last.1 <= end.events && last.2 > 1000);

    let mut looks = 0;
    let mut stop = |_: &Progress| {
        looks += 1;
        looks < 100
    };
    let stopped = run(&plan, 3, options, &|| Duration::ZERO, &mut stop);
    assert!(matches!(stopped, Err(RunError::Interrupted)) && looks == 100);
}

/// Flows of 1 byte that the run waits for, in a rack and between racks, and background flows from
/// the other racks. A host delays packets by much more than the time between them and keeps their
/// order, so that most packets arrive at a host together with others.
const ARRIVE_TOGETHER: &str = r#"
schema = 1
name = "together"
duration = "20 ms"
[fabric]
kind = "leaf-spine"
leaves = 4
hosts_per_leaf = 2
spines = 2
host_rate = "1 Gbit/s"
uplink_rate = "10 Gbit/s"
processing_jitter = "1 ms"
[[workload]]
name = "behind"
kind = "poisson"
background = true
load = 0.5
sizes = "400 B"
[[workload]]
name = "awaited"
kind = "stride"
stride = 1
count = 1
bytes = "1 B"
"#;

#[test]
fn the_run_ends_between_packets_that_arrive_at_one_host_at_one_time() {
    let mut in_parts = 0;
    for seed in 1..=8 {
        let scenario = scenario(ARRIVE_TOGETHER, &[("seed", &seed.to_string())]);
        for threads in [2, 4] {
            let told = same(&scenario, &format!("seed {seed}"), threads, ALWAYS, u64::MAX);
            in_parts += u32::from(told.is_ok());
        }
    }
    assert!(in_parts >= 12, "{in_parts} of 16 runs were in parts to their end");
}

/// Jobs that take longer than two checks of read timeouts, with an incast that ends before them.
const JOBS: &str = r#"
schema = 1
name = "jobs"
duration = "500 s"

[fabric]
kind = "leaf-spine"
leaves = 4
hosts_per_leaf = 3
spines = 2
host_rate = "1 Gbit/s"
uplink_rate = "2 Gbit/s"

[[workload]]
name = "hadoop"
kind = "mapreduce"
split_bytes = "2 MB"

[[workload.job]]
kind = "terasort"
input = "24 MB"
reduces = 5

[[workload.job]]
kind = "sort"
input = "6 MB"
reduces = 2
submit = "21 s"

[[workload]]
name = "reads"
kind = "incast"
receiver = "h1"
block_bytes = "20 KB"
rounds = 3
"#;

#[test]
fn jobs_are_the_same_on_any_number_of_threads() {
    let scenario = scenario(JOBS, &[]);
    let mut world = World::new(Plan::new(&scenario).unwrap()).unwrap();
    world.run(&mut |_| true).unwrap();
    assert!(
        world.progress().now > Time::ZERO + Span::from_secs(25),
        "two read timeouts are checked"
    );
    for (threads, options) in [(2, ALWAYS), (3, BY_TURNS), (4, ALWAYS)] {
        assert_eq!(same(&scenario, JOBS, threads, options, u64::MAX), Ok(false));
    }
    let often = ParallelOptions { check_interval: Duration::ZERO, ..ALWAYS };
    assert_eq!(same(&scenario, JOBS, 2, often, 3_000), Ok(true));
}

#[test]
fn a_job_with_few_events_uses_one_thread() {
    let scenario = scenario(JOBS, &[]);
    let options = ParallelOptions { min_events_per_window: (10, 400), ..ALWAYS };
    let told = in_parts(&scenario, 2, options, u64::MAX);
    assert!(told.is_err_and(|why| why.starts_with("too few events")));
}

/// Watcher that stops a partitioned run and saves it: when at least `done` flows are done, after a
/// number of further calls.
struct Stopping<'a> {
    done: u64,
    looks: u64,
    identity: &'a Identity,
    bytes: Vec<u8>,
}

impl Watcher for Stopping<'_> {
    fn on_progress(&mut self, p: &Progress) -> Request {
        self.looks -= u64::from(p.done.0 >= self.done);
        let stops = self.looks == 0;
        Request { proceed: !stops, checkpoint: stops }
    }

    fn checkpoint(&mut self, parts: &PartsSnapshot) {
        assert!(self.bytes.is_empty(), "it is kept once");
        save(&Keep::Parts(parts), self.identity, &mut self.bytes).expect("a vector takes it");
    }
}

/// Returns the parts of a run that was stopped and saved after `done` flows and `looks` further
/// calls of the watcher.
fn stopped_after((done, looks): (u64, u64), identity: &Identity, begin: Begin) -> Parts {
    let mut stopping = Stopping { done, looks, identity, bytes: Vec::new() };
    let ended = begin(&mut stopping);
    assert!(matches!(ended, Err(RunError::Interrupted)), "it is over before {looks} looks");
    match load(&stopping.bytes, identity).expect("it reads back") {
        Kept::Parts(parts) => parts,
        Kept::One(_) => panic!("it was in parts"),
    }
}

/// Function that begins a run, or continues one.
type Begin<'a> = &'a mut dyn FnMut(&mut dyn Watcher) -> Result<Outcome, RunError>;

#[test]
fn what_was_stopped_goes_on_to_the_same_end() {
    // the last case stops during the flows that are executed in step
    let in_step = ParallelOptions { last_flows: 300, ..ALWAYS };
    for (options, then) in [(ALWAYS, (0, 200)), (BY_TURNS, (0, 200)), (in_step, (1000, 2))] {
        let scenario = scenario(&shipped("s1"), &[("workload.bulk.bytes", "60 KB")]);
        let plan = || Plan::new(&scenario).map_err(|e| RunError::Limit(e.join("; ")));
        let identity = Identity { build: "test".into(), plan: plan_of(&scenario, false) };
        let options = ParallelOptions { check_interval: Duration::ZERO, ..options };
        let ticks = Cell::new(0);
        let clock = || {
            ticks.set(ticks.get() + 1);
            Duration::from_millis(ticks.get())
        };
        let mut begin = |watcher: &mut dyn Watcher| run(&plan, 3, options, &clock, watcher);
        let first = stopped_after((0, 300), &identity, &mut begin);
        let mut first = Some(first);
        let mut go_on = |watcher: &mut dyn Watcher| {
            resume(first.take().expect("it goes on once"), options, &clock, watcher)
        };
        let second = stopped_after(then, &identity, &mut go_on);
        let mut seen = 0;
        let mut look = |p: &Progress| {
            seen = seen.max(p.packet_hops);
            true
        };
        let Outcome::Done(end) = resume(second, options, &clock, &mut look).unwrap() else {
            panic!("it has been in parts all the time");
        };
        assert!(seen > 0 && end.parallel().threads == 3);
        assert!(said(&end.into_results()) == in_one(&scenario), "{}", scenario.name);
    }
}
