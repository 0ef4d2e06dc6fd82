//! Interface between applications and the simulator: the traits that an application implements.

use super::declared::{Declared, Statistic};
use super::process::{Message, Place, Process};
use super::role::Role;
use eastwest_settings::Section;
use std::fmt;

/// One process of an application: its state, and the functions that handle its events.
pub trait Application: fmt::Debug + Send {
    /// Handles the start of the process, at the time `start` of the workload.
    fn on_start(&mut self, process: &mut Process);

    /// Handles a message after the arrival of its last byte. Messages of one connection arrive in
    /// the order in which they were sent.
    fn on_message(&mut self, process: &mut Process, message: &Message) {
        let _ = (process, message);
    }

    /// Handles the expiry of a timer; `value` is the value given to [`Process::timer`].
    fn on_timer(&mut self, process: &mut Process, value: u64) {
        let _ = (process, value);
    }

    /// Handles the end of a connection with the process `peer`. With `failed` false, the peer has
    /// closed it and all its messages have arrived. With `failed` true, the transport has aborted
    /// it and undelivered messages of both directions are lost.
    fn on_close(&mut self, process: &mut Process, peer: u32, failed: bool) {
        let _ = (process, peer, failed);
    }
}

/// Settings of an application, from which its processes are created.
pub trait ApplicationModel: fmt::Debug + Send + Sync {
    /// Returns the reasons why the application cannot run with `members[r]` processes of each role
    /// `r`; empty if it can run. Each reason begins with the key of the scenario, for example
    /// `"replicas: …"`.
    fn problems(&self, members: &[usize]) -> Vec<String> {
        let _ = members;
        Vec::new()
    }

    /// Returns the counters and measures of the application, if it declares them. Goals with
    /// another name are then refused before the run, and each declared counter begins at 0.
    fn declared(&self) -> Declared {
        Declared::default()
    }

    /// Returns the initial state of a process; `place` has its number, role and host, and the other
    /// processes of the application.
    fn start(&self, place: &Place) -> Box<dyn Application>;
}

/// A built-in application: its settings, and how they are read from a scenario.
pub(crate) trait BuiltIn: Sized {
    /// Name of the application, the `kind` of a `[[workload]]` in scenarios.
    const NAME: &'static str;
    /// Description of the application in one line, with its source.
    const DOC: &'static str;
    /// Roles of the application's processes.
    const ROLES: &'static [Role];
    /// All counters that the application uses, each with its name and meaning.
    const COUNTERS: &'static [Statistic];
    /// All measures (durations) that the application uses, each with its name and meaning.
    const MEASURES: &'static [Statistic];
    /// State of one process of the application.
    type State: Application;

    /// Reads the settings of the application from its table `[[workload]]`.
    fn read(s: &mut Section) -> Self;

    /// Returns the reasons why the application cannot run with `members[r]` processes of each role
    /// `r`; empty if it can run. Each reason begins with the key of the scenario.
    fn problems(&self, members: &[usize]) -> Vec<String> {
        let _ = members;
        Vec::new()
    }

    /// Returns the initial state of a process; `place` has its number, role and host, and the other
    /// processes of the application.
    fn start(&self, place: &Place) -> Self::State;
}
