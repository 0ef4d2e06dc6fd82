//! A simulation started from Python: reports its progress, stops on request of Python, and saves
//! checkpoints if requested.

use crate::convert::progress_dict;
use crate::keeping::Keeping;
use crate::live::Live;
use crate::patience::patiently;
use crate::sketch::Watch;
use eastwest_sim::approximate_run::ApproximateRun;
use eastwest_sim::checkpoint::{self, Keep, Kept};
use eastwest_sim::early_stop::{Limit, Missed, StopRule};
use eastwest_sim::flow_world::FlowWorld;
use eastwest_sim::links::LinksWorld;
use eastwest_sim::plan::Plan;
use eastwest_sim::results::Results;
use eastwest_sim::scenario::{Fidelity, Scenario};
use eastwest_sim::site::Site;
use eastwest_sim::threads::{
    self, Outcome, Parallel, ParallelOptions, Parts, PartsSnapshot, Request, Watcher,
};
use eastwest_sim::world::{Progress, RunError, World};
use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyMemoryError};
use pyo3::prelude::*;
use std::num::NonZero;
use std::thread;
use std::time::{Duration, Instant};

/// Wall-clock time between two calls of the progress callback, and between two checks for Ctrl-C.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Options of a run; the fields are the attributes of `RunOptions` in python/eastwest/core.py.
#[derive(FromPyObject)]
pub struct Options {
    reference: bool,
    /// Number of threads that the run may use.
    pub threads: usize,
    /// Python callback that receives the progress; `None`: progress is not reported.
    pub progress: Option<Py<PyAny>>,
    /// Python object that stores checkpoints and rows of a run in progress; `None`: the run is not
    /// saved.
    keeper: Option<Py<PyAny>>,
    /// Python object that receives the state of the run at simulated times that it chooses; `None`:
    /// no object receives it.
    live: Option<Py<PyAny>>,
    /// Limits of measures that stop the run as soon as it surely misses one of them: name of the
    /// measure, bound, and whether the bound itself is not allowed.
    pub stop: Vec<(String, f64, bool)>,
}

/// A simulation with its progress callback, its checkpoints, and the counters of its sketches
/// (mechanisms in Python).
pub struct Running<'a> {
    scenario: &'a Scenario,
    options: Options,
    /// Counts calls of the sketches (mechanisms in Python) and holds their first exception.
    watch: &'a Watch,
    keeping: Option<Keeping>,
    live: Option<Live>,
    started: Instant,
    looked: Instant,
    /// Python exception that stops the run; `None` while nothing has failed.
    raised: Option<PyErr>,
    /// Rule that stops the run early; `None` if no limits are given, and before the run is built.
    rule: Option<StopRule>,
    /// Limit by which the run was stopped early; `None` if it was not.
    missed: Option<Missed>,
}

/// Results of a run, and a note on the number of threads.
pub struct Finished {
    /// Tables, files and summary of the run.
    pub results: Results,
    /// Note for the user: number of threads used and why. `None` if one thread was requested.
    pub note: Option<String>,
    /// Limit by which the run was stopped before its end; `None` if the run is complete.
    pub missed: Option<Missed>,
}

impl<'a> Running<'a> {
    /// Returns a simulation whose wall-clock time starts now. Fails if the Python object that
    /// stores checkpoints (`options.keeper`) or the one that receives frames (`options.live`) lacks
    /// a required attribute.
    pub fn new(
        py: Python<'_>,
        scenario: &'a Scenario,
        watch: &'a Watch,
        options: Options,
    ) -> PyResult<Running<'a>> {
        let keeper = options.keeper.as_ref().map(|keeper| keeper.clone_ref(py));
        let keep = |keeper| Keeping::new(py, keeper, scenario, options.reference);
        let keeping = keeper.map(keep).transpose()?;
        let live = options.live.as_ref().map(|live| Live::new(live.bind(py))).transpose()?;
        #[allow(clippy::disallowed_methods)]
        let started = Instant::now();
        Ok(Running {
            scenario,
            options,
            watch,
            keeping,
            live,
            started,
            looked: started,
            raised: None,
            rule: None,
            missed: None,
        })
    }

    /// Runs to the end, from the checkpoint of an earlier run if there is one. The outer error is a
    /// Python exception (Ctrl-C, progress callback, sketch), the inner one an error of the
    /// simulation.
    pub fn finish(mut self) -> PyResult<Result<Finished, RunError>> {
        let kept = self.keeping.as_mut().map(Keeping::resume).transpose()?.flatten();
        let parts = match kept {
            Some(Kept::One(world)) => {
                let note = (self.options.threads > 1).then(|| {
                    "One thread was used, as when the checkpoint of this run was written."
                        .to_owned()
                });
                return self.finish_in_one(Some(*world), note);
            }
            Some(Kept::Parts(parts)) => Some(parts),
            None => None,
        };
        if self.scenario.fidelity == Fidelity::Links {
            let threads = threads_on_cores(self.options.threads);
            let note = (self.options.threads > 1).then(|| match threads {
                Ok(threads) => {
                    format!("Up to {threads} threads were used, each for one link at a time.")
                }
                Err(why) => format!("One thread was used, because {why}."),
            });
            return self.finish_approximate::<LinksWorld>(threads.unwrap_or(1), note);
        }
        let asked = self.options.threads > 1 || parts.is_some();
        let why = match self.finish_on_threads(parts)? {
            Ok(Outcome::Done(mut done)) => {
                let mut note = of_threads(&done.parallel());
                if let Some(live) = &self.live {
                    live.show(&done.last_frame())?;
                    note += " Only the last frame was delivered, because the checkpoint of this run \
                             was written by a run on several threads.";
                }
                let results = done.into_results();
                return Ok(Ok(Finished { results, note: Some(note), missed: None }));
            }
            Ok(Outcome::Sequential(why)) => why,
            Err(error) => return Ok(Err(error)),
        };
        let note = asked.then(|| format!("One thread was used, because {why}."));
        match self.scenario.fidelity {
            Fidelity::Flow => self.finish_approximate::<FlowWorld>(1, note),
            _ => self.finish_in_one(None, note),
        }
    }

    /// Runs on several threads if possible: the whole run, or the rest of a run from its saved
    /// parts `kept`.
    fn finish_on_threads(&mut self, kept: Option<Parts>) -> PyResult<Result<Outcome, RunError>> {
        let started = self.started;
        let clock = || started.elapsed();
        let options = ParallelOptions::default();
        let ended = if let Some(parts) = kept {
            threads::resume(parts, options, &clock, self)
        } else {
            let threads = match self.threads_to_use() {
                Ok(threads) => threads,
                Err(why) => return Ok(Ok(Outcome::Sequential(why))),
            };
            let (scenario, reference) = (self.scenario, self.options.reference);
            // The parts are built and united outside the event loop, where `self` is not called;
            // `patiently` checks for Ctrl-C meanwhile.
            let progress = self.callback();
            let plan = || plan_of(scenario, reference);
            patiently(progress.as_ref(), || threads::run(&plan, threads, options, &clock, self))?
        };
        match self.raised.take() {
            Some(raised) => Err(raised),
            None => Ok(ended),
        }
    }

    /// Returns the number of threads to use, above 1; as error, the reason why only one is used.
    fn threads_to_use(&self) -> Result<usize, &'static str> {
        if self.options.threads == 1 {
            return Err("one thread was requested");
        }
        if !self.options.stop.is_empty() {
            return Err("the state of the whole run decides whether it stops early");
        }
        if self.live.is_some() {
            return Err("frames show the state of the whole run (RunOptions.live)");
        }
        if self.scenario.fidelity == Fidelity::Flow {
            return Err("no packets are simulated (fidelity = \"flow\")");
        }
        if checkpoint::obstacle(self.scenario).is_some() {
            return Err("the scenario uses a mechanism of your own");
        }
        threads_on_cores(self.options.threads)
    }

    fn finish_in_one(
        &mut self,
        kept: Option<World>,
        note: Option<String>,
    ) -> PyResult<Result<Finished, RunError>> {
        let world = match kept {
            Some(world) => Ok(world),
            None => self.build(World::new)?,
        };
        let mut world = match world {
            Ok(world) => world,
            Err(error) => return Ok(Err(error)),
        };
        self.request_frames(world.site_mut());
        self.watch_limits(world.site_mut());
        let ended = self.run_world(&mut world);
        let ended = match self.missed {
            Some(_) => ended,
            None => ended.and_then(|()| self.show_last(world.site_mut())),
        };
        match (ended, self.raised.take()) {
            (Ok(()), _) => {
                let results = patiently(self.options.progress.as_ref(), || Results::new(world))?;
                Ok(Ok(Finished { results, note, missed: self.missed }))
            }
            (Err(_), Some(raised)) => {
                if self.is_worth_keeping(&raised) {
                    self.keep_at_end(&Keep::One(&world));
                }
                Err(raised)
            }
            (Err(error), None) => Ok(Err(error)),
        }
    }

    /// Runs in flow mode or link mode, which have no checkpoints.
    fn finish_approximate<W: ApproximateRun>(
        &mut self,
        threads: usize,
        note: Option<String>,
    ) -> PyResult<Result<Finished, RunError>> {
        let mut world = match self.build(W::new)? {
            Ok(world) => world,
            Err(error) => return Ok(Err(error)),
        };
        self.request_frames(world.site_mut());
        self.watch_limits(world.site_mut());
        let ended = world.run(threads, &mut |site| self.look(site));
        let ended = match self.missed {
            Some(_) => Ok(()),
            None => ended.and_then(|()| self.show_last(world.site_mut())),
        };
        match (ended, self.raised.take()) {
            (_, Some(raised)) => Err(raised),
            (Err(error), None) => Ok(Err(error)),
            (Ok(()), None) => {
                let progress = self.options.progress.as_ref();
                let results = patiently(progress, || Results::new(world.finish()))?;
                Ok(Ok(Finished { results, note, missed: self.missed }))
            }
        }
    }

    /// Builds the state of a run (network, transports, workloads) from its plan.
    fn build<W>(
        &self,
        world: impl FnOnce(Plan) -> Result<W, String>,
    ) -> PyResult<Result<W, RunError>> {
        patiently(self.options.progress.as_ref(), || {
            let plan = plan_of(self.scenario, self.options.reference)?;
            world(plan).map_err(RunError::Limit)
        })
    }

    fn callback(&self) -> Option<Py<PyAny>> {
        Python::attach(|py| self.options.progress.as_ref().map(|progress| progress.clone_ref(py)))
    }

    /// Whether a run in flow mode or link mode may continue. About ten times a second it also
    /// reports progress and moves rows of long tables to Python. When a checkpoint is due, it
    /// reports why none can be written.
    fn look(&mut self, site: &mut Site) -> bool {
        if !self.show(site) || self.misses_limit(site) {
            return false;
        }
        if !self.is_time() {
            return true;
        }
        if self.report(site) {
            self.raised = match &mut self.keeping {
                Some(keeping) if keeping.is_due() => keeping.tell_obstacle().err(),
                _ => None,
            };
        }
        self.raised.is_none() && !self.watch.failed()
    }

    /// Whether a run in packet mode may continue. About ten times a second it also reports progress
    /// and moves rows of long tables to Python; it writes a checkpoint when one is due.
    fn look_and_keep(&mut self, world: &mut World) -> bool {
        if !self.show(world.site_mut()) {
            return false;
        }
        if !self.is_time() {
            return true;
        }
        if self.report(world.site_mut()) {
            self.raised = self.keep(world).err();
        }
        self.raised.is_none() && !self.watch.failed()
    }

    /// Runs in packet mode to the end of the run, or until the run surely misses a limit.
    fn run_world(&mut self, world: &mut World) -> Result<(), RunError> {
        while let Some(next) = self.rule.as_ref().map(StopRule::next_check) {
            let ended = world.run_to(next, &mut |world| self.look_and_keep(world));
            let is_due = ended == Err(RunError::Interrupted)
                && self.raised.is_none()
                && !self.watch.failed();
            if !is_due {
                return ended;
            }
            if self.misses_limit(world.site_mut()) {
                world.end_here();
                return Ok(());
            }
        }
        world.run(&mut |world| self.look_and_keep(world))
    }

    /// Makes the rule that stops the run early, if limits are given. The run has not begun.
    fn watch_limits(&mut self, site: &Site) {
        if self.options.stop.is_empty() {
            return;
        }
        let limit = |(measure, bound, strict): &(String, f64, bool)| Limit {
            measure: measure.clone(),
            bound: *bound,
            strict: *strict,
        };
        let limits: Vec<Limit> = self.options.stop.iter().map(limit).collect();
        self.rule = Some(StopRule::new(self.scenario, &limits, site));
    }

    /// Whether the run surely misses a limit, so that it stops early.
    fn misses_limit(&mut self, site: &Site) -> bool {
        self.missed = self.rule.as_mut().and_then(|rule| rule.check(site));
        self.missed.is_some()
    }

    /// Requests the frames of a run that the Python object `options.live` receives, if there is one.
    fn request_frames(&self, site: &mut Site) {
        if let Some(live) = &self.live {
            site.request_frames(live.first);
        }
    }

    /// Passes the frame that is due, if any, to the Python object `options.live`. Returns false if
    /// the object has raised an exception.
    fn show(&mut self, site: &mut Site) -> bool {
        let (Some(live), Some(frame)) = (&self.live, site.take_frame()) else { return true };
        match live.show(&frame) {
            Ok(next) => site.set_next_frame(next),
            Err(raised) => self.raised = Some(raised),
        }
        self.raised.is_none()
    }

    /// Passes the last frame of a run that has ended to the Python object `options.live`.
    fn show_last(&mut self, site: &mut Site) -> Result<(), RunError> {
        if self.show(site) { Ok(()) } else { Err(RunError::Interrupted) }
    }

    /// Reports progress, and moves rows of long tables to Python. Returns false if a sketch
    /// (mechanism in Python) or the progress callback has raised an exception.
    fn report(&mut self, site: &mut Site) -> bool {
        if self.watch.failed() {
            return false;
        }
        self.raised = self.tell(&site.progress()).and_then(|()| self.hand_rows(site)).err();
        self.raised.is_none()
    }

    fn is_time(&mut self) -> bool {
        let since = self.looked.elapsed();
        if since >= LOOK_EVERY {
            self.looked += since;
        }
        since >= LOOK_EVERY
    }

    fn tell(&self, progress: &Progress) -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            match &self.options.progress {
                Some(callback) => {
                    callback.call1(py, (progress_dict(py, progress, self.started)?,)).map(|_| ())
                }
                None => Ok(()),
            }
        })
    }

    fn hand_rows(&mut self, site: &mut Site) -> PyResult<()> {
        match &mut self.keeping {
            Some(keeping) => Python::attach(|py| keeping.hand_rows(py, site)),
            None => Ok(()),
        }
    }

    fn keep(&mut self, world: &World) -> PyResult<()> {
        match &mut self.keeping {
            Some(keeping) if keeping.is_due() => keeping.keep(&Keep::One(world), false),
            _ => Ok(()),
        }
    }

    /// Whether a run that stops with this exception is saved: after Ctrl-C, which is not an error,
    /// and after a lack of memory, because more memory may be free at the next attempt.
    fn is_worth_keeping(&self, raised: &PyErr) -> bool {
        let wrong = |py: Python<'_>| {
            raised.is_instance_of::<PyException>(py) && !raised.is_instance_of::<PyMemoryError>(py)
        };
        self.keeping.as_ref().is_some_and(Keeping::is_worth_it) && !Python::attach(wrong)
    }

    /// Saves a run that stops. If saving raises an exception, it is only printed, so that the
    /// exception which stopped the run is returned. A second Ctrl-C ends the saving.
    fn keep_at_end(&mut self, run: &Keep) {
        if let Some(Err(error)) = self.keeping.as_mut().map(|keeping| keeping.keep(run, true)) {
            Python::attach(|py| {
                if !error.is_instance_of::<PyKeyboardInterrupt>(py) {
                    error.write_unraisable(py, None);
                }
            });
        }
    }
}

/// Observes a run on several threads, and saves all its parts together.
impl Watcher for Running<'_> {
    fn on_progress(&mut self, progress: &Progress) -> Request {
        if self.raised.is_none() {
            if !self.is_time() {
                return Request { proceed: true, checkpoint: false };
            }
            self.raised = self.tell(progress).err();
        }
        let keep = match &self.raised {
            Some(raised) => self.is_worth_keeping(raised),
            None => self.keeping.as_ref().is_some_and(Keeping::is_due),
        };
        Request { proceed: self.raised.is_none() && !self.watch.failed(), checkpoint: keep }
    }

    fn checkpoint(&mut self, parts: &PartsSnapshot) {
        let run = Keep::Parts(parts);
        if self.raised.is_some() {
            return self.keep_at_end(&run);
        }
        // an exception in `raised` stops the run at its next call of `on_progress`
        self.raised = self.keeping.as_mut().and_then(|keeping| keeping.keep(&run, false).err());
    }
}

fn plan_of(scenario: &Scenario, reference: bool) -> Result<Plan, RunError> {
    let mut plan = Plan::new(scenario).map_err(|reasons| RunError::Limit(reasons.join("; ")))?;
    plan.fabric.reference_ports |= reference;
    Ok(plan)
}

/// Returns the number of threads to use if `asked` threads are requested; as error, the reason why
/// only one is used.
fn threads_on_cores(asked: usize) -> Result<usize, &'static str> {
    // more threads than cores would only wait for each other
    match thread::available_parallelism().map_or(1, NonZero::get) {
        1 => Err("this machine has only one processor core"),
        cores => Ok(asked.min(cores)),
    }
}

/// Returns a note for the user on a run on several threads: their number, and the share of time in
/// which one thread did all work.
fn of_threads(parallel: &Parallel) -> String {
    let threads = format!("{} threads were used, each for a part of the racks", parallel.threads);
    match 100 * parallel.alone / parallel.windows.max(1) {
        0..5 => format!("{threads}."),
        share => {
            format!(
                "{threads}; in {share} % of the steps one thread did all work, because this was \
                 faster."
            )
        }
    }
}
