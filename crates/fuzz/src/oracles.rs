//! Oracles: runs a scenario in several ways whose results must agree, and checks rules that hold
//! for every run.
//!
//! | oracle | rule |
//! |---|---|
//! | check | the reader of scenarios does not panic |
//! | run | no run panics; a run with more than [`MOST_EVENTS`] events is not checked |
//! | mechanism | with mechanisms of the user: no mechanism reports an error |
//! | repeat | with mechanisms of the user: a second run has equal tables and summary |
//! | reference | run with two events for each packet and port: equal tables |
//! | conservation | between events every packet is delivered, lost, or on exactly one link |
//! | checkpoint | run stopped, saved, loaded and continued: equal tables and summary |
//! | threads | run on several threads, stopped, saved and continued: equal tables and summary, if the run can be partitioned |
//! | frames | run that passes its state to a caller at random times: equal tables and summary; no counter of the state decreases, and the last state agrees with the tables |
//! | early | a limit that the run surely misses at a random time is missed at its end; the least value of a measure never decreases, and the value at the end is not below it |
//! | order | scenario with the settings of each table in another order: equal tables and summary |
//! | resolved | the resolved text reads back as an equal scenario and gives an equal run |
//! | bounds | no message is faster than an idle path; the parts of a flow's time add up to it; counts in the summary and in the table of links agree; switches with PFC lose no packets; the times in the states of a link add up to the run's duration; energy is between ideal and always on |

use crate::early;
use crate::frames::Observer;
use crate::generate::{Case, shuffled};
use eastwest_engine::random::Stream;
use eastwest_measure::table::{Column, Table};
use eastwest_network::config::FabricConfig;
use eastwest_network::fault::{Effect, Fault};
use eastwest_sim::approximate_run::ApproximateRun;
use eastwest_sim::checkpoint::{self, Identity, Keep, Kept};
use eastwest_sim::flow_world::FlowWorld;
use eastwest_sim::plan::Plan;
use eastwest_sim::results::Results;
use eastwest_sim::scenario::{Context, Fidelity, Scenario, read};
use eastwest_sim::threads::{
    self, Outcome, ParallelOptions, Parts, PartsSnapshot, Request, TrialTimes, Watcher,
};
use eastwest_sim::world::{Progress, RunError, World};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Maximum number of events in the first run of a generated scenario; a scenario with more is too
/// large and is not checked.
pub const MOST_EVENTS: u64 = 150_000;

/// Options for a run on several threads that is partitioned from its first event until only three
/// flows are left, even if it has few events.
const ALWAYS_IN_PARTS: ParallelOptions = ParallelOptions {
    last_flows: 3,
    check_interval: Duration::ZERO,
    min_events_per_window: (0, 0),
    spans: None,
};

/// Options like [`ALWAYS_IN_PARTS`], but the run alternates between one thread and several threads.
/// One thread executes most windows: where threads outnumber cores, parallel windows take several times
/// as long, since each barrier needs switches between threads.
const BY_TURNS: ParallelOptions = ParallelOptions {
    spans: Some(TrialTimes {
        try_alone: Duration::from_millis(7),
        try_together: Duration::from_millis(9),
        together: Duration::from_millis(16),
        alone: Duration::from_millis(100),
        max_failed_trials: u32::MAX,
        trial_period: Duration::ZERO,
    }),
    ..ALWAYS_IN_PARTS
};

/// Watcher of a run on several threads, which stops the run after `looks` progress reports and
/// saves a checkpoint.
struct Stopping {
    looks: u64,
    identity: Identity,
    bytes: Vec<u8>,
}

impl Stopping {
    fn after(looks: u64, scenario: &Scenario) -> Stopping {
        Stopping { looks, identity: identity(scenario), bytes: Vec::new() }
    }

    fn read_back(&self) -> Result<Parts, String> {
        match checkpoint::load(&self.bytes, &self.identity) {
            Ok(Kept::Parts(parts)) => Ok(parts),
            Ok(Kept::One(_)) => {
                Err("a run on several threads was saved as a run on one thread".to_owned())
            }
            Err(refused) => Err(refused.to_string()),
        }
    }
}

impl Watcher for Stopping {
    fn on_progress(&mut self, _: &Progress) -> Request {
        self.looks = self.looks.saturating_sub(1);
        Request { proceed: self.looks > 0, checkpoint: self.looks == 0 }
    }

    fn checkpoint(&mut self, parts: &PartsSnapshot) {
        self.bytes.clear();
        checkpoint::save(&Keep::Parts(parts), &self.identity, &mut self.bytes)
            .expect("a vector takes it");
    }
}

fn identity(scenario: &Scenario) -> Identity {
    Identity { build: "fuzz".to_owned(), plan: scenario.resolved().to_owned() }
}

/// An oracle (a rule that holds for every run) that a generated scenario violates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Name of the oracle, such as `checkpoint`.
    pub oracle: &'static str,
    /// The difference between two runs, the violated rule, or the message of the panic.
    pub message: String,
}

/// Statistics of a generated scenario (case) that violates no oracle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// Number of events in the scenario's first run, which uses one thread and does not stop.
    pub events: u64,
    /// Whether a run of the scenario was stopped, saved in a checkpoint, loaded and continued.
    pub kept: bool,
    /// Whether a run of the scenario was partitioned among several threads until its end.
    pub in_parts: bool,
    /// Number of packets sent in the scenario's first run, which uses one thread and does not stop.
    pub packets: u64,
}

/// Verdict about a generated scenario (case): it violates no oracle, or one, or it is too large to
/// be checked.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// The scenario violates no oracle.
    Holds(Looked),
    /// The scenario's first run has more than [`MOST_EVENTS`] events, so that nothing was checked.
    TooLarge,
    /// The scenario violates an oracle.
    Fails(Failure),
}

/// Result of one run of a scenario.
enum End {
    Done(Box<Results>),
    /// The simulator reports an error: the run cannot continue, or it has reached a limit.
    Stopped(String),
    TooLarge,
}

thread_local! {
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Records panics of this process, instead of printing them, until the returned guard is dropped.
/// [`judge`] reports them as failures.
pub fn catch_panics() -> impl Drop {
    catch_panics_as(|info| info.to_string())
}

/// Records panics like [`catch_panics`], with the text that `describe` returns for a panic.
pub fn catch_panics_as(describe: fn(&std::panic::PanicHookInfo<'_>) -> String) -> impl Drop {
    type Hook = Box<dyn Fn(&std::panic::PanicHookInfo<'_>) + Sync + Send>;
    struct Guard(Option<Hook>);
    impl Drop for Guard {
        fn drop(&mut self) {
            if let Some(hook) = self.0.take().filter(|_| !std::thread::panicking()) {
                std::panic::set_hook(hook);
            }
        }
    }
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let message = describe(info);
        PANIC.with(|said| *said.borrow_mut() = message);
    }));
    Guard(Some(before))
}

/// Function that removes and returns the error that a user's own mechanism has reported since the
/// last call; `None` if there is none.
pub type Reported = dyn Fn() -> Option<String> + Send + Sync;

/// Judges a case like [`judge`]. If a mechanism of the user has reported an error, the verdict is a
/// failure with this error.
pub fn judge_with(
    case: &Case,
    context: &Context,
    (threads, seed): (usize, u64),
    fault: &Reported,
) -> Verdict {
    let verdict = judge(case, context, threads, seed);
    match fault() {
        Some(message) => Verdict::Fails(Failure { oracle: "mechanism", message }),
        None => verdict,
    }
}

/// Runs a case in all ways that must agree, one of them on `threads` threads, and checks all
/// oracles. The verdict depends only on the arguments.
pub fn judge(case: &Case, context: &Context, threads: usize, seed: u64) -> Verdict {
    let judged = || Judge { case, context, threads, seed }.all();
    match catch_unwind(AssertUnwindSafe(judged)) {
        Ok(Ok(verdict)) => verdict,
        Ok(Err(failure)) => Verdict::Fails(failure),
        Err(_) => {
            let message = PANIC.with(|said| said.borrow().clone());
            Verdict::Fails(Failure { oracle: "run", message })
        }
    }
}

/// Runs a case on one thread and on each of the numbers `threads`, with a checkpoint in between.
/// Returns `None` if the case is too large or cannot run to its end. Fails if the results of two
/// runs differ.
pub fn compare_threads(
    case: &Case,
    context: &Context,
    threads: &[usize],
    seed: u64,
) -> Result<Option<Compared>, Failure> {
    let expected = guarded("run", || plain(&case.scenario, false))?;
    let End::Done(results) = &expected else { return Ok(None) };
    let on = |&threads: &usize| Judge { case, context, threads, seed }.on_threads(&expected);
    let runs = threads.iter().map(on).collect::<Result<_, _>>()?;
    let count_of = |name: &str| count(&results.summary["dcb"], name);
    Ok(Some(Compared { runs, pauses: count_of("pauses"), messages: count_of("qcn_messages") }))
}

/// Equal runs of a case on several numbers of threads.
pub struct Compared {
    /// For each number of threads, the number of parts if the run was partitioned to its end,
    /// otherwise the reason why it was not.
    pub runs: Vec<InParts>,
    /// Number of PFC pauses in one run.
    pub pauses: u64,
    /// Number of congestion notification messages (CNM) of QCN in one run.
    pub messages: u64,
}

/// Number of parts of a run that was partitioned to its end, or the reason why it was not.
pub type InParts = Result<usize, &'static str>;

struct Judge<'a> {
    case: &'a Case,
    context: &'a Context,
    threads: usize,
    seed: u64,
}

impl Judge<'_> {
    fn all(&self) -> Result<Verdict, Failure> {
        let scenario = &self.case.scenario;
        let plain = match plain(scenario, false) {
            End::TooLarge => return Ok(Verdict::TooLarge),
            end => end,
        };
        if !self.context.mechanisms.names().is_empty() {
            self.repeated(&plain)?;
        }
        let (events, packets) = match &plain {
            End::Done(results) => {
                check_bounds(scenario, results).map_err(fails("bounds"))?;
                (count(&results.summary, "events"), count(&results.summary["packets"], "sent"))
            }
            _ => (0, 0),
        };
        let mut looked = Looked { events, packets, ..Looked::default() };
        let packet = scenario.fidelity == Fidelity::Packet;
        if packet {
            self.reference(&plain)?;
            looked.kept = self.stopped_and_gone_on(&plain, events)?;
            looked.in_parts = self.on_threads(&plain)?.is_ok();
        }
        self.observed(&plain)?;
        self.stopped_early(&plain)?;
        self.in_another_order(&plain)?;
        self.resolved(&plain)?;
        Ok(Verdict::Holds(looked))
    }

    /// Runs the scenario a second time and compares the results, because a user's mechanism may
    /// depend on a clock or on memory addresses.
    fn repeated(&self, expected: &End) -> Result<(), Failure> {
        let again = guarded("repeat", || plain(&self.case.scenario, false))?;
        same(expected, &again).map_err(|difference| {
            fails("repeat")(format!(
                "two runs of one scenario differ: {difference}; a mechanism of your own depends on \
                 more than its arguments, its settings and its random numbers"
            ))
        })
    }

    fn reference(&self, expected: &End) -> Result<(), Failure> {
        let other = guarded("reference", || plain(&self.case.scenario, true))?;
        // The reference mode has other numbers of events and samples by definition, so only tables
        // are compared.
        same_tables(expected, &other).map_err(fails("reference"))
    }

    /// Runs the scenario with three stops, at which packets must be conserved. At the second stop
    /// the run is saved as a checkpoint, dropped and loaded, if a checkpoint of the scenario is
    /// possible. Returns whether a checkpoint was loaded.
    fn stopped_and_gone_on(&self, expected: &End, events: u64) -> Result<bool, Failure> {
        let scenario = &self.case.scenario;
        let mut random = Stream::new(self.seed, "stops");
        let mut stops = [0; 3].map(|_| 1 + random.below(events.max(2)));
        stops.sort_unstable();
        let can_be_kept = checkpoint::obstacle(scenario).is_none();
        let run = || -> Result<(End, bool), Failure> {
            let (mut world, mut kept) = (new_world(scenario, false), false);
            let Ok(world) = &mut world else { return Ok((plain(scenario, false), false)) };
            for (number, stop) in stops.into_iter().enumerate() {
                if world.run_to(stop, &mut |_| true) != Err(RunError::Interrupted) {
                    return Ok((plain(scenario, false), kept));
                }
                world.conserved().map_err(fails("conservation"))?;
                if number == 1 && can_be_kept {
                    *world = read_back(scenario, world).map_err(fails("checkpoint"))?;
                    kept = true;
                }
            }
            Ok((
                finished(world.run(&mut |_| true), || std::mem::replace(world, empty(scenario))),
                kept,
            ))
        };
        let (end, kept) = guarded("checkpoint", run)??;
        same(expected, &end).map_err(fails("checkpoint"))?;
        Ok(kept)
    }

    /// Runs the scenario on several threads. After some progress reports the run is saved as a
    /// checkpoint, dropped and loaded.
    fn on_threads(&self, expected: &End) -> Result<InParts, Failure> {
        let scenario = &self.case.scenario;
        let plan = || Plan::new(scenario).map_err(|e| RunError::Limit(e.join("; ")));
        let always = (self.seed + self.threads as u64) % 4 == 0;
        let options = if always { ALWAYS_IN_PARTS } else { BY_TURNS };
        // artificial clock that advances by a millisecond each time it is read
        let ticks = Cell::new(0);
        let clock = || {
            ticks.set(ticks.get() + 1);
            Duration::from_millis(ticks.get())
        };
        let run = || {
            let mut stopping = Stopping::after(1 + self.seed * 37 % 400, scenario);
            match threads::run(&plan, self.threads, options, &clock, &mut stopping) {
                // The run was to be stopped when the reason for one thread was found.
                Err(RunError::Interrupted) if stopping.bytes.is_empty() => {
                    Ok(threads::run(&plan, self.threads, options, &clock, &mut |_: &_| true))
                }
                Err(RunError::Interrupted) => match stopping.read_back() {
                    Ok(parts) => Ok(threads::resume(parts, options, &clock, &mut |_: &_| true)),
                    Err(why) => Err(why),
                },
                ended => Ok(ended),
            }
        };
        let mut parts = 1;
        let end = match guarded("threads", run)?.map_err(fails("threads"))? {
            Ok(Outcome::Sequential(why)) => return Ok(Err(why)),
            Ok(Outcome::Done(run)) => {
                parts = run.parallel().threads;
                End::Done(Box::new(run.into_results()))
            }
            Err(error) => End::Stopped(error.to_string()),
        };
        same(expected, &end).map_err(fails("threads"))?;
        Ok(Ok(parts))
    }

    /// Runs the scenario with a caller that receives the state of the run at random times. Link
    /// mode has only the state at the end.
    fn observed(&self, expected: &End) -> Result<(), Failure> {
        if self.case.scenario.fidelity == Fidelity::Links {
            return Ok(());
        }
        let run_s = match expected {
            End::Done(results) => results.summary["simulated_s"].as_f64().unwrap_or(0.0),
            _ => 1e-3,
        };
        let mut observer = Observer::new(self.seed, run_s);
        let run = || match self.case.scenario.fidelity {
            Fidelity::Packet => observed_with_packets(&self.case.scenario, &mut observer),
            _ => Ok(observed_without_packets(&self.case.scenario, &mut observer)),
        };
        let end = guarded("frames", run)?.map_err(fails("frames"))?;
        if let End::Done(results) = &end {
            observer.judged(results).map_err(fails("frames"))?;
        }
        same(expected, &end).map_err(fails("frames"))
    }

    /// Runs the scenario with a caller that observes at random times which limits the run surely
    /// misses.
    fn stopped_early(&self, expected: &End) -> Result<(), Failure> {
        let scenario = &self.case.scenario;
        let End::Done(end) = expected else { return Ok(()) };
        let run = || match scenario.fidelity {
            Fidelity::Packet => {
                let mut world = empty(scenario);
                let mut observer = early::Observer::new(scenario, world.site_mut(), end, self.seed);
                while world.run_to(observer.next(), &mut |_| true) == Err(RunError::Interrupted) {
                    observer.look(world.site_mut());
                }
                observer.judged(end)
            }
            Fidelity::Flow => {
                let plan = Plan::new(scenario).expect("the plan was made before");
                let mut world = FlowWorld::new(plan).expect("the world was built before");
                let mut observer = early::Observer::new(scenario, world.site_mut(), end, self.seed);
                let ended = world.run(1, &mut |site| {
                    observer.look(site);
                    true
                });
                ended.map_err(|error| error.to_string())?;
                observer.judged(end)
            }
            Fidelity::Links => Ok(()),
        };
        guarded("early", run)?.map_err(fails("early"))
    }

    fn in_another_order(&self, expected: &End) -> Result<(), Failure> {
        let text = shuffled(&self.case.given, &mut Stream::new(self.seed, "order"));
        let scenario = read(&text, self.context, &[])
            .map_err(|problems| problems[0].to_string())
            .map_err(fails("order"))?;
        if scenario == self.case.scenario {
            return Ok(()); // equal scenarios have equal runs
        }
        let end = guarded("order", || plain(&scenario, false))?;
        same(expected, &end).map_err(fails("order"))
    }

    fn resolved(&self, expected: &End) -> Result<(), Failure> {
        let scenario = &self.case.scenario;
        let held = scenario.attached.iter().filter(|file| file.path.is_none());
        let mut context = self.context.clone();
        context.files = held.map(|file| (file.name.clone(), file.bytes.clone())).collect();
        if scenario.attached.iter().any(|file| file.path.is_some()) {
            return Ok(()); // such files are read from the folder of the result
        }
        let again = read(scenario.resolved(), &context, &[])
            .map_err(|problems| problems[0].to_string())
            .map_err(fails("resolved"))?;
        if again.resolved() != scenario.resolved() {
            return Err(fails("resolved")(
                "the scenario text with all defaults, when it is read again, gives another text"
                    .to_owned(),
            ));
        }
        if again == *scenario {
            return Ok(());
        }
        let end = guarded("resolved", || plain(&again, false))?;
        same(expected, &end).map_err(fails("resolved"))
    }
}

fn fails(oracle: &'static str) -> impl Fn(String) -> Failure {
    move |message| Failure { oracle, message }
}

/// Executes a function that may panic; returns a panic as a failure of the oracle `oracle`.
pub fn guarded<T>(oracle: &'static str, run: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(run))
        .map_err(|_| fails(oracle)(PANIC.with(|said| said.borrow().clone())))
}

fn new_world(scenario: &Scenario, reference: bool) -> Result<World, String> {
    let mut plan = Plan::new(scenario).map_err(|reasons| reasons.join("; "))?;
    plan.fabric.reference_ports |= reference;
    World::new(plan)
}

/// Returns a new simulation (`World`) of the scenario, which replaces one that is moved out of a
/// reference.
fn empty(scenario: &Scenario) -> World {
    new_world(scenario, false).expect("the world of this plan was built before")
}

/// Executes one run of a scenario from begin to end; with `reference`, ports use two events for
/// each packet.
fn plain(scenario: &Scenario, reference: bool) -> End {
    if scenario.fidelity != Fidelity::Packet {
        let look = &mut |progress: &Progress| progress.events < MOST_EVENTS;
        return match eastwest_sim::run::run(scenario, false, look) {
            Ok(results) => End::Done(Box::new(results)),
            Err(RunError::Interrupted) => End::TooLarge,
            Err(error) => End::Stopped(error.to_string()),
        };
    }
    match new_world(scenario, reference) {
        Err(error) => End::Stopped(error),
        Ok(mut world) => {
            // the reference mode has more events, so its limit is four times as high
            let most = if reference { 4 * MOST_EVENTS } else { MOST_EVENTS };
            let ended = world.run_to(most, &mut |_| true);
            finished(ended, || world)
        }
    }
}

/// Executes one run of a scenario whose caller `observer` receives frames. Fails if packets are not
/// conserved at a frame.
fn observed_with_packets(scenario: &Scenario, observer: &mut Observer) -> Result<End, String> {
    let mut world = match new_world(scenario, false) {
        Ok(world) => world,
        Err(error) => return Ok(End::Stopped(error)),
    };
    observer.begin(world.site_mut());
    let mut conserved = Ok(());
    let ended = world.run_to(MOST_EVENTS, &mut |world| {
        observer.look(world.site_mut());
        conserved = world.conserved();
        conserved.is_ok()
    });
    conserved?;
    observer.look(world.site_mut());
    Ok(finished(ended, || world))
}

/// Executes one run of a scenario in flow mode whose caller `observer` receives frames.
fn observed_without_packets(scenario: &Scenario, observer: &mut Observer) -> End {
    let plan = Plan::new(scenario).map_err(|reasons| reasons.join("; "));
    let mut world = match plan.and_then(FlowWorld::new) {
        Ok(world) => world,
        Err(error) => return End::Stopped(error),
    };
    observer.begin(world.site_mut());
    let ended = world.run(1, &mut |site| {
        observer.look(site);
        site.events < MOST_EVENTS
    });
    observer.look(world.site_mut());
    match ended {
        Ok(()) => End::Done(Box::new(Results::new(world.finish()))),
        Err(RunError::Interrupted) => End::TooLarge,
        Err(error) => End::Stopped(error.to_string()),
    }
}

fn finished(ended: Result<(), RunError>, world: impl FnOnce() -> World) -> End {
    match ended {
        Ok(()) => End::Done(Box::new(Results::new(world()))),
        Err(RunError::Interrupted) => End::TooLarge,
        Err(error) => End::Stopped(error.to_string()),
    }
}

fn read_back(scenario: &Scenario, world: &World) -> Result<World, String> {
    let identity = identity(scenario);
    let mut bytes = Vec::new();
    checkpoint::save(&Keep::One(world), &identity, &mut bytes).map_err(|e| e.to_string())?;
    let kept = checkpoint::load(&bytes, &identity).map_err(|refused| refused.to_string())?;
    kept.into_world()
        .ok_or_else(|| "a run on one thread was saved as a run on several threads".to_owned())
}

/// Compares all results of two runs; returns the first difference as error.
fn same(expected: &End, other: &End) -> Result<(), String> {
    same_tables(expected, other)?;
    let (End::Done(a), End::Done(b)) = (expected, other) else { return Ok(()) };
    if a.files != b.files {
        return Err("the files of the two results differ".to_owned());
    }
    let (Some(a), Some(b)) = (a.summary.as_object(), b.summary.as_object()) else { return Ok(()) };
    for (name, value) in a {
        let other = b.get(name).unwrap_or(&Value::Null);
        if value != other {
            return Err(format!(
                "{name} in the summary is {value} in one run and {other} in the other"
            ));
        }
    }
    Ok(())
}

/// Compares the tables and the digests of two runs; returns the first difference as error.
fn same_tables(expected: &End, other: &End) -> Result<(), String> {
    let (a, b) = match (expected, other) {
        (End::Done(a), End::Done(b)) => (a, b),
        (End::Stopped(a), End::Stopped(b)) if a == b => return Ok(()),
        (a, b) => {
            return Err(format!(
                "of two runs that should be equal, one {}, the other {}",
                said(a),
                said(b)
            ));
        }
    };
    for (a, b) in a.tables.iter().zip(&b.tables) {
        if a != b {
            return Err(difference(a, b));
        }
    }
    match (&a.summary["digest"], &b.summary["digest"]) {
        (a, b) if a != b => {
            Err(format!("the digests of two runs that should be equal are {a} and {b}"))
        }
        _ => Ok(()),
    }
}

fn said(end: &End) -> String {
    match end {
        End::Done(_) => "completes".to_owned(),
        End::Stopped(why) => format!("stops with an error ({why})"),
        End::TooLarge => format!("has more than {MOST_EVENTS} events"),
    }
}

/// Returns a description of the first difference between two tables.
fn difference(a: &Table, b: &Table) -> String {
    if a.rows() != b.rows() {
        return format!(
            "table {} has {} rows in one run and {} in the other",
            a.name,
            a.rows(),
            b.rows()
        );
    }
    for ((name, a_column), (_, b_column)) in a.columns.iter().zip(&b.columns) {
        let differs = |row: &usize| a_column.text(*row) != b_column.text(*row);
        if let Some(row) = (0..a.rows()).find(differs) {
            let (x, y) = (a_column.text(row), b_column.text(row));
            return format!(
                "table {}, column {name}, row {row}: {x} in one run and {y} in the other",
                a.name
            );
        }
    }
    format!("the two runs have different columns in table {}", a.name)
}

fn count(summary: &Value, name: &str) -> u64 {
    summary[name].as_u64().unwrap_or(0)
}

/// Checks the rules that hold for every run, and returns the first violation.
fn check_bounds(scenario: &Scenario, results: &Results) -> Result<(), String> {
    if scenario.fidelity == Fidelity::Packet {
        // after a link failure, a detour may have faster links, or several paths may be used at
        // once
        let fails = |fault: &Fault| matches!(fault.effect, Effect::Down { .. });
        if !scenario.fabric.faults.iter().any(fails) {
            no_message_is_too_fast(results)?;
        }
        counts_add_up(results)?;
        parts_fill_the_time(results)?;
        pauses_mean_no_loss(scenario, results)?;
        memory_is_free_at_the_end(results)?;
    }
    states_fill_the_time(results)
}

fn column<'r>(results: &'r Results, table: &str, column: &str) -> &'r [f64] {
    let found = results.tables.iter().find(|t| t.name == table).and_then(|t| t.column(column));
    match found {
        Some(Column::F64(values)) => values,
        _ => &[],
    }
}

/// Checks that no message is faster than over an idle path (slowdown at least 1).
fn no_message_is_too_fast(results: &Results) -> Result<(), String> {
    match column(results, "flows", "slowdown").iter().enumerate().find(|(_, s)| **s < 1.0) {
        Some((row, slowdown)) => Err(format!(
            "table flows, row {row}: the flow took only {slowdown} times the time that it needs over \
             an idle path, although less than 1 is impossible"
        )),
        None => Ok(()),
    }
}

/// Checks that the parts of the flows' times add up: all parts to the completion time of the flow,
/// and the queueing times by link to the queueing time.
fn parts_fill_the_time(results: &Results) -> Result<(), String> {
    let of = |name: &str| column(results, "flow_parts", name);
    for (whole, parts) in [
        (
            "completion_us",
            &["injection_us", "cores_us", "queueing_us", "flight_us", "retransmission_us"][..],
        ),
        (
            "cores_us",
            &[
                "send_core_queue_us",
                "send_core_us",
                "interrupt_delay_us",
                "receive_core_queue_us",
                "receive_core_us",
            ],
        ),
        (
            "injection_us",
            &["application_us", "earlier_us", "host_queue_us", "pacing_us", "delayed_ack_us"],
        ),
        (
            "flight_us",
            &[
                "handshake_us",
                "slow_start_us",
                "congestion_window_us",
                "receiver_window_us",
                "transmission_us",
                "propagation_us",
                "processing_us",
            ],
        ),
    ] {
        for (row, expected) in of(whole).iter().enumerate() {
            let sum: f64 = parts.iter().map(|part| of(part)[row]).sum();
            // tolerance: one picosecond plus the rounding errors of doubles
            if (sum - expected).abs() > 1e-6 + expected * 1e-12 {
                return Err(format!(
                    "table flow_parts, row {row}: the parts of {whole} add up to {sum} µs \
                     instead of {expected} µs"
                ));
            }
        }
    }
    let sum = |values: &[f64]| values.iter().sum::<f64>();
    let (hops, queued) = (sum(column(results, "flow_hops", "queueing_us")), sum(of("queueing_us")));
    if (hops - queued).abs() > 1e-6 + queued * 1e-9 {
        return Err(format!(
            "the column queueing_us of all rows adds up to {hops} µs in the table flow_hops, but \
             to {queued} µs in the table flow_parts"
        ));
    }
    Ok(())
}

/// Returns the sum of an integer column of the table of links; 0 if the column does not exist.
fn of_links(results: &Results, name: &str) -> u64 {
    let links = results.tables.iter().find(|table| table.name == "links");
    match links.and_then(|table| table.column(name)) {
        Some(Column::U64(values)) => values.iter().sum(),
        Some(Column::U32(values)) => values.iter().map(|n| u64::from(*n)).sum(),
        _ => 0,
    }
}

/// Returns the sum of all whole numbers in a JSON value, at any depth.
fn sum_of(value: &Value) -> u64 {
    match value {
        Value::Object(below) => below.values().map(sum_of).sum(),
        other => other.as_u64().unwrap_or(0),
    }
}

/// Checks that the numbers of packets in the summary and in the table of links are equal, for each
/// kind of packet and each cause of loss.
fn counts_add_up(results: &Results) -> Result<(), String> {
    let summary = &results.summary;
    let packets = &summary["packets"];
    let dropped = count(packets, "dropped");
    let links = results.tables.iter().find(|table| table.name == "links");
    let names: Vec<&str> = links.iter().flat_map(|t| t.columns.iter().map(|c| c.0)).collect();
    let is_cause = |name: &&str| {
        name.starts_with("lost_")
            || ["drops_queue_full", "drops_early", "drops_shared_buffer", "drops_sojourn"]
                .contains(name)
    };
    let sum = |names: &mut dyn Iterator<Item = &str>| {
        names.map(|name| of_links(results, name)).sum::<u64>()
    };
    let by_cause = sum(&mut names.iter().copied().filter(|n| is_cause(n)));
    let is_kind = |name: &&str| name.starts_with("drops_") && !is_cause(name);
    let by_kind = sum(&mut names.iter().copied().filter(is_kind));
    for (what, a, b) in [
        ("packets lost (table of links; summary)", of_links(results, "drops"), dropped),
        ("packets lost (sum of all causes in the table of links; summary)", by_cause, dropped),
        ("packets lost (sum of all packet kinds in the table of links; summary)", by_kind, dropped),
        (
            "packets lost (sum of all packet kinds in the summary; its total)",
            sum_of(&summary["drops"]),
            dropped,
        ),
        (
            "packets marked (table of links; summary)",
            of_links(results, "marks"),
            sum_of(&summary["marks"]),
        ),
        (
            "packets on links (table of links; packet_hops of the summary)",
            of_links(results, "packets"),
            count(summary, "packet_hops"),
        ),
    ] {
        if a != b {
            return Err(format!("two numbers that should be equal differ: {what}: {a} and {b}"));
        }
    }
    // congestion notification messages belong to no class and have no latency; frames that hosts
    // have not processed have no latency either
    let (latencies, delivered) =
        (count(&summary["latency_us"], "count"), count(packets, "delivered"));
    let messages = count(&summary["dcb"], "qcn_messages");
    let hosts = &summary["hosts"];
    let of_hosts = count(hosts, "ring_drops") + count(hosts, "unprocessed_frames");
    if latencies + of_hosts > delivered || delivered - latencies - of_hosts > messages {
        return Err(format!(
            "{delivered} packets were delivered, but {latencies} latencies were recorded and \
             {of_hosts} packets were not processed by hosts; only up to {messages} congestion \
             notification messages may have no latency"
        ));
    }
    Ok(())
}

/// Checks that the memory of switches is free if no packet is in flight at the end.
fn memory_is_free_at_the_end(results: &Results) -> Result<(), String> {
    let memory = &results.summary["dcb"]["memory"];
    let used: u64 = ["shared_bytes", "headroom_bytes", "lossy_bytes"]
        .map(|name| count(memory, name))
        .iter()
        .sum();
    if used > 0 && count(&results.summary["packets"], "in_flight") == 0 {
        return Err(format!("no packet is in flight, but switches use memory: {memory}"));
    }
    Ok(())
}

/// Checks that switches drop only congestion notification messages, and no data packets, if all
/// traffic has lossless priorities.
fn pauses_mean_no_loss(scenario: &Scenario, results: &Results) -> Result<(), String> {
    let FabricConfig { dcb, faults, .. } = &scenario.fabric;
    let Some(pfc) = &dcb.pfc else { return Ok(()) };
    let is_lossless = |dscp: u8| pfc.priorities >> (dscp >> 3) & 1 == 1;
    let all = scenario.classes.iter().all(|class| is_lossless(class.dscp));
    let applies =
        all && faults.is_empty() && pfc.watchdog.is_none() && !scenario.further.are_used();
    let drops = &results.summary["ports"]["switch"]["drops"];
    let lost = sum_of(drops);
    let messages = count(&results.summary["dcb"], "qcn_messages");
    // a headroom or a headroom pool of the file may be too small
    let applies = applies
        && pfc.shared.is_none_or(|pool| pool.headroom.is_none() && pool.headroom_pool.is_none());
    if applies && lost > messages {
        return Err(format!(
            "switches lost {lost} packets although all traffic has lossless priorities (PFC)"
        ));
    }
    Ok(())
}

/// Checks that the times in the states of each link add up to the run's duration, and that its
/// energy is between the ideal energy and the energy of a link that is always on.
fn states_fill_the_time(results: &Results) -> Result<(), String> {
    let run_s = results.summary["simulated_s"].as_f64().unwrap_or(0.0);
    let of = |name| column(results, "links", name);
    let states = ["awake_s", "falling_asleep_s", "asleep_s", "waking_s"].map(of);
    let [used, ideal, always] = ["energy_j", "energy_ideal_j", "energy_always_on_j"].map(of);
    for link in 0..states[0].len() {
        let sum: f64 = states.iter().map(|state| state[link]).sum();
        if (sum - run_s).abs() > 1e-9 * run_s.max(1e-3) {
            return Err(format!(
                "the times of link {link} in its power states add up to {sum} s, but the run \
                 took {run_s} s"
            ));
        }
        let slack = 1e-9 * always[link].abs() + 1e-15;
        if used[link] < ideal[link] - slack || used[link] > always[link] + slack {
            return Err(format!(
                "link {link} used {} J, which is not between the ideal {} J and the {} J of a \
                 link that is always on",
                used[link], ideal[link], always[link]
            ));
        }
    }
    Ok(())
}
