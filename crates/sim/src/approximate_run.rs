//! What runs of the approximate modes (flow mode and link mode) have in common.

use crate::plan::Plan;
use crate::progress::RunError;
use crate::site::Site;
use eastwest_workload::{Action, Event};

/// A run that does not simulate the packets of the whole fabric: flow mode or link mode.
pub trait ApproximateRun: Sized {
    /// Builds the state of a run from its plan. Fails if the fabric cannot be built, for example
    /// because a host has no path to another one.
    fn new(plan: Plan) -> Result<Self, String>;

    /// Returns mutable access to the state that all modes share (workloads, routes, records).
    fn site_mut(&mut self) -> &mut Site;

    /// Executes an action that a workload requests.
    fn act(&mut self, workload: u16, action: Action);

    /// Runs the simulation to its end on at most `threads` threads; their number does not change
    /// the results. `look` is called regularly, and when a requested [frame](crate::frame) is due.
    /// It may remove rows of the tables; if it returns false, the run stops with
    /// [`RunError::Interrupted`].
    fn run(
        &mut self,
        threads: usize,
        look: &mut dyn FnMut(&mut Site) -> bool,
    ) -> Result<(), RunError>;

    /// Returns the state of the finished run, from which the results are made.
    fn finish(self) -> Site;

    /// Notifies a workload of an event and executes the actions that the workload returns, up to
    /// one that ends the run.
    fn tell(&mut self, workload: u16, event: Event) {
        let Site { network, drivers, .. } = self.site_mut();
        let mut actions = Vec::new();
        drivers.handle(workload, network.now, event, &mut actions);
        for action in actions {
            self.act(workload, action);
            if self.site_mut().drivers.stuck.is_some() {
                return; // the next actions may use a connection that could not be opened
            }
        }
    }
}
