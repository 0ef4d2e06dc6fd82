//! Mechanisms of other crates that a scenario may name beside the built-in ones: queue disciplines,
//! congestion controls, choices among equal-cost paths, applications. Each has a function that
//! reads its settings in the same way, and with the same messages, as built-in mechanisms do
//! ([`crate::parameters`]).
//!
//! The user who runs a scenario chooses the available mechanisms; the scenario only names them. So
//! a scenario file alone can never make a program run code that its user has not chosen.

use eastwest_network::queue::{QueueModel, ReadQueue};
use eastwest_network::routing::{ReadRouting, RoutingModel};
use eastwest_settings::{Entry, Section};
use eastwest_transport::congestion::custom::{CongestionModel, ReadCongestion};
use eastwest_types::Limit;
use eastwest_workload::application::{
    self, ApplicationEntry, ApplicationModel, Model, ReadApplication, Role,
};
use std::fmt;
use std::sync::Arc;

/// Mechanisms of other crates that scenarios may name: queue disciplines, congestion controls,
/// choices among equal-cost paths, applications.
#[derive(Clone, Default)]
pub struct Mechanisms {
    /// Queue disciplines, in the order in which they were added.
    pub queues: Vec<Entry<ReadQueue>>,
    /// Congestion controls, in the order in which they were added.
    pub congestion: Vec<Entry<ReadCongestion>>,
    /// Choices among equal-cost paths, in the order in which they were added.
    pub routing: Vec<Entry<ReadRouting>>,
    /// Applications, in the order in which they were added.
    pub applications: Vec<ApplicationEntry>,
}

impl fmt::Debug for Mechanisms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl Mechanisms {
    /// Adds a queue discipline of another crate. `read` reads its settings from the table of the
    /// queue, after the limit has been read; `doc` explains the discipline in one line.
    pub fn queue<M: QueueModel + 'static>(
        &mut self,
        name: &'static str,
        doc: &'static str,
        read: impl Fn(&mut Section, Limit) -> M + Send + Sync + 'static,
    ) {
        let read: Arc<ReadQueue> = Arc::new(move |s, limit| Arc::new(read(s, limit)));
        self.queues.push(Entry { name, doc, read });
    }

    /// Adds a congestion control of another crate. `read` reads its settings from
    /// `[tcp.parameters]`.
    pub fn congestion<M: CongestionModel + 'static>(
        &mut self,
        name: &'static str,
        doc: &'static str,
        read: impl Fn(&mut Section) -> M + Send + Sync + 'static,
    ) {
        let read: Arc<ReadCongestion> = Arc::new(move |s| Arc::new(read(s)));
        self.congestion.push(Entry { name, doc, read });
    }

    /// Adds a choice among equal-cost paths of another crate. `read` reads its settings from
    /// `[fabric.routing_parameters]`.
    pub fn routing<M: RoutingModel + 'static>(
        &mut self,
        name: &'static str,
        doc: &'static str,
        read: impl Fn(&mut Section) -> M + Send + Sync + 'static,
    ) {
        let read: Arc<ReadRouting> = Arc::new(move |s| Arc::new(read(s)));
        self.routing.push(Entry { name, doc, read });
    }

    /// Adds an application of another crate. Its name is a `kind` of workloads; `roles` are the
    /// keys that list the hosts of its processes. `read` reads its settings from the table of the
    /// workload.
    pub fn application<M: ApplicationModel + 'static>(
        &mut self,
        name: &'static str,
        doc: &'static str,
        roles: &[Role],
        read: impl Fn(&mut Section) -> M + Send + Sync + 'static,
    ) {
        let read: Arc<ReadApplication> = Arc::new(move |s| Model::Custom(Arc::new(read(s))));
        self.applications
            .push(ApplicationEntry { entry: Entry { name, doc, read }, roles: roles.into() });
    }

    /// Returns (kind, name) of each added mechanism, grouped by kind (`queue`, `congestion`,
    /// `routing`, `application`), within a kind in the order in which they were added.
    pub fn names(&self) -> Vec<(&'static str, &'static str)> {
        let queues = self.queues.iter().map(|e| ("queue", e.name));
        let congestion = self.congestion.iter().map(|e| ("congestion", e.name));
        let routing = self.routing.iter().map(|e| ("routing", e.name));
        let applications = self.applications.iter().map(|e| ("application", e.entry.name));
        queues.chain(congestion).chain(routing).chain(applications).collect()
    }

    /// Returns an error message for the first mechanism whose name is not allowed, is that of a
    /// built-in mechanism, or is used twice within its kind; `None` if all names can be used.
    pub fn problem(&self) -> Option<String> {
        let names = self.names();
        for (at, (kind, name)) in names.iter().enumerate() {
            if let Some(problem) = name_problem(kind, name) {
                return Some(format!("{kind} {name:?}: {problem}"));
            }
            if names[..at].contains(&(kind, name)) {
                return Some(format!(
                    "{kind} {name:?}: two mechanisms have this name; names must be unique"
                ));
            }
        }
        None
    }
}

/// Returns an error message for the name of a mechanism of another crate or of a sketch that is not
/// allowed, or is that of a built-in mechanism of the kind; `None` if the name can be used. The kind
/// is `queue`, `congestion`, `routing` or `application`.
pub fn name_problem(kind: &str, name: &str) -> Option<&'static str> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
        return Some("a name must have 1 to 64 characters, each of a to z, 0 to 9, - or _");
    }
    let taken = built_in(kind).contains(&name);
    taken.then_some("a built-in mechanism has this name already; choose another one")
}

/// Returns the names of the built-in mechanisms of a kind: `queue`, `congestion`, `routing` or
/// `application`.
fn built_in(kind: &str) -> Vec<&'static str> {
    match kind {
        "queue" => eastwest_network::queue::BUILT_IN.iter().map(|c| c.0).collect(),
        "congestion" => eastwest_transport::congestion::BUILT_IN.iter().map(|c| c.0).collect(),
        "application" => application::BUILT_IN.iter().map(|c| c.name).collect(),
        _ => eastwest_network::routing::BUILT_IN.iter().map(|c| c.name).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eastwest_network::queue::{Arrival, CustomQueue, Place, Verdict};

    #[derive(Debug)]
    struct Any;

    impl CustomQueue for Any {
        fn at_enqueue(&mut self, _: &Arrival) -> Verdict {
            Verdict::Enqueue
        }
    }

    impl QueueModel for Any {
        fn start(&self, _: &Place) -> Box<dyn CustomQueue> {
            Box::new(Any)
        }
    }

    #[test]
    fn names_must_be_names_and_new() {
        let problem = |names: &[&'static str]| {
            let mut all = Mechanisms::default();
            names.iter().for_each(|&name| all.queue(name, "", |_, _| Any));
            all.problem().unwrap_or_default()
        };
        assert_eq!(problem(&["ramp", "ramp-2", "my_queue"]), "");
        assert!(problem(&["red"]).contains("built-in"));
        assert!(problem(&["ramp", "ramp"]).contains("two mechanisms"));
        for bad in ["", "Ramp", "a b", "a\"b", "é"] {
            assert!(problem(&[bad]).contains("a name must have"), "{bad}");
        }
    }
}
