//! The interface between applications and the simulator: what an application implements.

use super::process::{Message, Place, Process};
use super::role::Role;
use eastwest_settings::Section;
use std::fmt;

/// State of one process of an application, with its reactions.
pub trait Application: fmt::Debug + Send {
    /// Starts the process, at the `start` of the workload.
    fn on_start(&mut self, process: &mut Process);

    /// Handles a message whose last byte has arrived. Messages of one connection arrive in the
    /// order in which they were sent.
    fn on_message(&mut self, process: &mut Process, message: &Message) {
        let _ = (process, message);
    }

    /// Handles the end of a timer; `value` is that of [`Process::timer`].
    fn on_timer(&mut self, process: &mut Process, value: u64) {
        let _ = (process, value);
    }

    /// Handles the end of a connection with the process `peer`: the other process has closed it and
    /// all its messages have arrived, or (`failed`) the transport has given up and undelivered
    /// messages of both directions are lost.
    fn on_close(&mut self, process: &mut Process, peer: u32, failed: bool) {
        let _ = (process, peer, failed);
    }
}

/// Settings of an application, from which each of its processes is made.
pub trait ApplicationModel: fmt::Debug + Send + Sync {
    /// Returns objections to the numbers of processes of each role. Each begins with the key of the
    /// scenario: `"replicas: …"`.
    fn problems(&self, members: &[usize]) -> Vec<String> {
        let _ = members;
        Vec::new()
    }

    /// Returns a process before its start.
    fn start(&self, place: &Place) -> Box<dyn Application>;
}

/// An application of Eastwest: its settings, and how they are read.
pub(crate) trait BuiltIn: Sized {
    /// Kind of the workload in scenarios.
    const NAME: &'static str;
    /// One line that explains the application, with its source.
    const DOC: &'static str;
    /// Roles of its processes.
    const ROLES: &'static [Role];
    /// State of one process.
    type State: Application;

    /// Reads the settings.
    fn read(s: &mut Section) -> Self;

    /// Returns objections to the numbers of processes of each role; each begins with the key.
    fn problems(&self, members: &[usize]) -> Vec<String> {
        let _ = members;
        Vec::new()
    }

    /// Returns a process before its start.
    fn start(&self, place: &Place) -> Self::State;
}
