//! Workloads of a run, and their scheduled wake-ups.

use crate::network::{Network, Source};
use crate::plan::{Transport, WorkloadPlan};
use crate::progress::RunError;
use crate::wakes::{WakeUp, Wakes};
use eastwest_types::Time;
use eastwest_workload::{Action, Event, Workload};
use serde::{Deserialize, Serialize};

/// A workload of a run: its state machine, its name, and its role in the run.
#[derive(Serialize, Deserialize)]
pub struct Driver {
    /// Name of the workload in the tables of results.
    pub name: String,
    /// Whether the run may end before this workload has finished.
    pub background: bool,
    /// Transport of the workload's connections.
    pub transport: Transport,
    /// Whether the workload has nothing more to do.
    pub finished: bool,
    /// State machine of the workload.
    pub workload: Workload,
}

/// All workloads of a run.
#[derive(Serialize, Deserialize)]
pub struct Drivers {
    /// Workloads, indexed by their number.
    pub all: Vec<Driver>,
    /// Scheduled wake-ups of the workloads.
    pub wakes: Wakes,
    /// Number of unfinished workloads for which the run waits. The number is 1 if all workloads run
    /// in the background, so that only the configured end time ends the run.
    pub unfinished: usize,
    /// Error that ends the run after the current event; `None` if the run continues.
    #[serde(skip)]
    pub stuck: Option<RunError>,
}

impl Drivers {
    /// Returns the workloads of a plan before the run begins. The seed determines the order of
    /// wake-ups that are due at the same time.
    pub fn new(workloads: Vec<WorkloadPlan>, seed: u64) -> Drivers {
        let driver = |w: WorkloadPlan| Driver {
            name: w.name,
            background: w.background,
            transport: w.transport,
            finished: false,
            workload: w.workload,
        };
        let all: Vec<Driver> = workloads.into_iter().map(driver).collect();
        let unfinished = all.iter().filter(|d| !d.background).count().max(1);
        Drivers { all, wakes: Wakes::new(seed), unfinished, stuck: None }
    }

    /// Returns the workload with this number.
    pub fn of(&self, workload: u16) -> &Driver {
        &self.all[usize::from(workload)]
    }

    /// Returns the transport of all connections of a partitioned run; TCP if there are none.
    pub fn transport_in_parts(&self) -> Transport {
        let mut connected = self.all.iter().filter(|driver| driver.workload.has_connections());
        connected.next().map_or(Transport::Tcp, |driver| driver.transport)
    }

    /// Passes an event to the workload number `workload`. Appends the actions that the workload
    /// requests to `actions`.
    pub fn handle(&mut self, workload: u16, now: Time, event: Event, actions: &mut Vec<Action>) {
        self.all[usize::from(workload)].workload.handle(now, event, actions);
    }

    /// Marks a workload as finished: the run no longer waits for this workload.
    pub fn finish(&mut self, workload: u16) {
        let driver = &mut self.all[usize::from(workload)];
        if !driver.finished && !driver.background {
            self.unfinished -= 1;
        }
        driver.finished = true;
    }

    /// Schedules a wake-up of a workload at time `at`.
    pub fn wake(&mut self, network: &mut Network, at: Time, wake_up: WakeUp) {
        debug_assert!(at >= network.now, "a wake-up is scheduled before the current time");
        if self.wakes.push(at.max(network.now), wake_up) {
            network.set(Source::Wakes, self.wakes.first());
        }
    }

    /// Whether only the end time `until` can end the run: the time is finite, and all workloads run
    /// in the background.
    pub fn await_the_end(&self, until: Time) -> bool {
        until < Time::NEVER && self.all.iter().all(|d| d.background)
    }

    /// Returns the finished and the total amount of work (flows, requests, jobs …), summed over the
    /// workloads that have an end.
    pub fn done(&self) -> (u64, u64) {
        let of_each = self.all.iter().map(|d| d.workload.progress());
        of_each.filter(|p| p.1 > 0).fold((0, 0), |sum, p| (sum.0 + p.0, sum.1 + p.1))
    }

    /// Returns the names of the unfinished workloads for which the run waits, separated by commas.
    pub fn waiting(&self) -> String {
        let waiting = self.all.iter().filter(|d| !d.finished && !d.background);
        waiting.map(|d| d.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Ends the run after the current event at time `now`, because the workload number `workload`
    /// requires this for the reason `why`. An error of an application is an error of its code, and
    /// any other workload can no longer finish.
    pub fn fail(&mut self, workload: u16, now: Time, why: &str) {
        let Driver { name, workload, .. } = self.of(workload);
        self.stuck = Some(match workload {
            Workload::Application(_) => {
                RunError::Workload(name.clone(), format!("{why} (at {now})"))
            }
            _ => RunError::Stuck(format!("at {now}, {name}: {why}")),
        });
    }

    /// Ends the run after the current event with [`RunError::Stuck`] for the reason `why`.
    pub fn stop(&mut self, why: String) {
        self.stuck = Some(RunError::Stuck(why));
    }

    /// Ends the run after the current event with [`RunError::Limit`]; `what` describes the limit of
    /// the simulator that was reached.
    pub fn stop_at_limit(&mut self, what: String) {
        self.stuck = Some(RunError::Limit(what));
    }
}
