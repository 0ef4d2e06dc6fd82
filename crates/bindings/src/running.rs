//! One simulation for a Python program: it is looked at while it runs, stops when Python asks it to, and
//! is kept meanwhile where that is wanted.

use crate::keeping::Keeping;
use crate::progress_dict;
use crate::sketch::Watch;
use eastwest_sim::flow_world::FlowWorld;
use eastwest_sim::plan::Plan;
use eastwest_sim::results::Results;
use eastwest_sim::scenario::{Fidelity, Scenario};
use eastwest_sim::world::{Progress, RunError, World};
use pyo3::exceptions::{PyException, PyMemoryError};
use pyo3::prelude::*;
use std::time::{Duration, Instant};

/// Time between two calls of the progress callback, and between two looks for Ctrl-C.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A simulation and who watches it.
pub struct Running<'a> {
    scenario: &'a Scenario,
    reference: bool,
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

impl<'a> Running<'a> {
    /// A run that begins now.
    pub fn new(
        scenario: &'a Scenario,
        reference: bool,
        watch: &'a Watch,
        progress: Option<Py<PyAny>>,
        keeping: Option<Keeping>,
    ) -> Running<'a> {
        #[allow(clippy::disallowed_methods)]
        let started = Instant::now();
        let (looked, raised) = (started, None);
        Running { scenario, reference, watch, progress, keeping, started, looked, raised }
    }

    /// Runs to the end, from where an earlier run has been kept. The outer error is what Python has
    /// raised meanwhile.
    pub fn finish(mut self) -> PyResult<Result<Results, RunError>> {
        if self.scenario.fidelity == Fidelity::Flow {
            return self.finish_without_packets();
        }
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
        let plan = Plan::new(self.scenario).map_err(|reasons| RunError::Limit(reasons.join("; ")));
        plan.map(|mut plan| {
            plan.fabric.reference_ports |= self.reference;
            plan
        })
    }

    /// Whether the run may go on.
    fn look(&mut self, world: &mut World) -> bool {
        if self.looked.elapsed() < LOOK_EVERY {
            return true;
        }
        self.looked += self.looked.elapsed();
        if self.watch.failed() {
            return false;
        }
        self.raised = self.tell(&world.progress()).and_then(|()| self.keep(world)).err();
        self.raised.is_none()
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
