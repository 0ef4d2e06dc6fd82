//! One simulation for a Python program: it is looked at while it runs, stops when Python asks it to, and
//! is kept meanwhile where that is wanted.

use crate::keeping::Keeping;
use crate::progress_dict;
use crate::sketch::Watch;
use eastwest_sim::checkpoint;
use eastwest_sim::flow_world::FlowWorld;
use eastwest_sim::plan::Plan;
use eastwest_sim::results::Results;
use eastwest_sim::scenario::{Fidelity, Scenario};
use eastwest_sim::threads::{self, Ended, Habits, Parallel};
use eastwest_sim::world::{Progress, RunError, World};
use pyo3::exceptions::{PyException, PyMemoryError};
use pyo3::prelude::*;
use std::num::NonZero;
use std::thread;
use std::time::{Duration, Instant};

/// Time between two calls of the progress callback, and between two looks for Ctrl-C.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A simulation and who watches it.
pub struct Running<'a> {
    scenario: &'a Scenario,
    reference: bool,
    /// Threads that it may use.
    threads: usize,
    /// What sketches do.
    watch: &'a Watch,
    /// Is told how far the run is.
    progress: Option<Py<PyAny>>,
    keeping: Option<Keeping>,
    started: Instant,
    looked: Instant,
    /// What Python has raised: the run stops.
    raised: Option<PyErr>,
}

/// What a run gives, and what there is to say of how it was done.
pub struct Finished {
    /// Tables and summary.
    pub results: Results,
    /// Of its threads, where several were asked for.
    pub note: Option<String>,
}

impl From<Results> for Finished {
    fn from(results: Results) -> Finished {
        Finished { results, note: None }
    }
}

impl<'a> Running<'a> {
    /// A run that begins now.
    pub fn new(
        scenario: &'a Scenario,
        reference: bool,
        threads: usize,
        watch: &'a Watch,
        progress: Option<Py<PyAny>>,
        keeping: Option<Keeping>,
    ) -> Running<'a> {
        #[allow(clippy::disallowed_methods)]
        let started = Instant::now();
        let (looked, raised) = (started, None);
        Running { scenario, reference, threads, watch, progress, keeping, started, looked, raised }
    }

    /// Runs to the end, from where an earlier run has been kept. The outer error is what Python has
    /// raised meanwhile.
    pub fn finish(mut self) -> PyResult<Result<Finished, RunError>> {
        let mut note = None;
        if self.threads > 1 {
            match self.finish_on_threads()? {
                Ok(Ended::Done(done)) => {
                    let note = Some(of_threads(&done.parallel()));
                    return Ok(Ok(Finished { results: done.into_results(), note }));
                }
                Ok(Ended::InOne(why)) => note = Some(format!("One thread, since {why}.")),
                Err(error) => return Ok(Err(error)),
            }
        }
        let ended = match self.scenario.fidelity {
            Fidelity::Flow => self.finish_without_packets()?,
            _ => self.finish_in_one()?,
        };
        Ok(ended.map(|results| Finished { note, ..results.into() }))
    }

    /// Runs it on several threads, if that is possible. Nothing of it is kept meanwhile.
    fn finish_on_threads(&mut self) -> PyResult<Result<Ended, RunError>> {
        if self.scenario.fidelity == Fidelity::Flow {
            return Ok(Ok(Ended::InOne("no packets are simulated")));
        }
        if checkpoint::obstacle(self.scenario).is_some() {
            return Ok(Ok(Ended::InOne("a mechanism of your own is used")));
        }
        // more would only wait for each other
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let threads = self.threads.min(cores);
        if threads == 1 {
            return Ok(Ok(Ended::InOne("there is one core")));
        }
        let (scenario, reference, started) = (self.scenario, self.reference, self.started);
        let plan = || plan_of(scenario, reference);
        let clock = || started.elapsed();
        let mut look = |progress: &Progress| self.look_at(progress);
        let ended = threads::run(&plan, threads, Habits::default(), &clock, &mut look);
        match self.raised.take() {
            Some(raised) => Err(raised),
            None => Ok(ended),
        }
    }

    fn finish_in_one(&mut self) -> PyResult<Result<Results, RunError>> {
        let mut world = match self.begin()? {
            Ok(world) => world,
            Err(error) => return Ok(Err(error)),
        };
        let ended = world.run(&mut |world| self.look(world));
        match (ended, self.raised.take()) {
            (Ok(()), _) => Ok(Ok(Results::new(world))),
            (Err(_), Some(raised)) => {
                self.keep_if_interrupted(&world, &raised);
                Err(raised)
            }
            (Err(error), None) => Ok(Err(error)),
        }
    }

    fn finish_without_packets(&mut self) -> PyResult<Result<Results, RunError>> {
        let world = self.plan().and_then(|plan| FlowWorld::new(plan).map_err(RunError::Limit));
        let mut world = match world {
            Ok(world) => world,
            Err(error) => return Ok(Err(error)),
        };
        let ended = world.run(&mut |world| self.look(world));
        match self.raised.take() {
            Some(raised) => Err(raised),
            None => Ok(ended.map(|()| Results::new(world.finish()))),
        }
    }

    fn begin(&mut self) -> PyResult<Result<World, RunError>> {
        if let Some(keeping) = &mut self.keeping
            && let Some(world) = keeping.resume()?
        {
            return Ok(Ok(world));
        }
        Ok(self.plan().and_then(|plan| World::new(plan).map_err(RunError::Limit)))
    }

    fn plan(&self) -> Result<Plan, RunError> {
        plan_of(self.scenario, self.reference)
    }

    /// Whether the run may go on.
    fn look(&mut self, world: &mut World) -> bool {
        if !self.is_time() {
            return true;
        }
        if self.watch.failed() {
            return false;
        }
        self.raised = self.tell(&world.progress()).and_then(|()| self.keep(world)).err();
        self.raised.is_none()
    }

    /// As `look`, where there is no world to keep.
    fn look_at(&mut self, progress: &Progress) -> bool {
        if !self.is_time() {
            return true;
        }
        self.raised = self.tell(progress).err();
        self.raised.is_none() && !self.watch.failed()
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
            match &self.progress {
                Some(callback) => {
                    callback.call1(py, (progress_dict(py, progress, self.started)?,)).map(|_| ())
                }
                None => Ok(()),
            }
        })
    }

    fn keep(&mut self, world: &mut World) -> PyResult<()> {
        let Some(keeping) = &mut self.keeping else { return Ok(()) };
        Python::attach(|py| keeping.hand_rows(py, world))?;
        if keeping.is_due() { keeping.keep(world) } else { Ok(()) }
    }

    /// Ctrl-C and the like are no errors, and where memory was short there may be more: what has been
    /// done is kept for the next time.
    fn keep_if_interrupted(&mut self, world: &World, raised: &PyErr) {
        let wrong = |py: Python<'_>| {
            raised.is_instance_of::<PyException>(py) && !raised.is_instance_of::<PyMemoryError>(py)
        };
        if Python::attach(wrong) {
            return;
        }
        let keeping = self.keeping.as_mut().filter(|keeping| keeping.is_worth_it());
        if let Some(Err(error)) = keeping.map(|keeping| keeping.keep(world)) {
            Python::attach(|py| error.write_unraisable(py, None));
        }
    }
}

fn plan_of(scenario: &Scenario, reference: bool) -> Result<Plan, RunError> {
    let mut plan = Plan::new(scenario).map_err(|reasons| RunError::Limit(reasons.join("; ")))?;
    plan.fabric.reference_ports |= reference;
    Ok(plan)
}

/// What is said of a run that several threads have done.
fn of_threads(parallel: &Parallel) -> String {
    let threads = format!("{} threads, each for a share of the racks", parallel.threads);
    match 100 * parallel.alone / parallel.windows.max(1) {
        0..5 => format!("{threads}."),
        share => {
            format!("{threads}; {share} % of the time one did the work of all: it was faster.")
        }
    }
}
