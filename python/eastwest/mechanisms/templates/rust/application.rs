//! `@NAME@`: queries to many workers at once, each answered when all workers have responded, or at a
//! deadline.
//!
//! Parts to change: `Settings` has the keys of the scenario, in the table of the workload; `ROLES`
//! has the lists of hosts in this table; `FanOut` is a process. The methods of `Process` are the
//! actions of a process.

use eastwest::application::{
    Application, ApplicationModel, Content, Declared, Message, Place, Process, Role, Statistic,
    exponential,
};
use eastwest::parameters::{Bytes, Section, key};
use eastwest::{Mechanisms, Span, Time};
use std::collections::BTreeMap;

/// Settings of the scenario, in the table of the workload.
#[derive(Clone, Copy, Debug)]
struct Settings {
    queries: u64,
    gap: Span,
    deadline: Span,
    request_bytes: u64,
    response_bytes: u64,
}

impl Settings {
    fn read(s: &mut Section) -> Settings {
        let queries = s.get(key("queries", "Number of queries of each front end.").default("100"));
        let gap = s.get(
            key("gap", "Mean time between queries of a front end.")
                .default("1 ms")
                .range("1 ns", "1 h"),
        );
        let deadline = s.get(
            key("deadline", "Time after which a query is answered.")
                .default("10 ms")
                .range("1 ns", "1 h"),
        );
        let mut bytes = |name, doc, default| {
            s.get(key::<Bytes>(name, doc).default(default).range("1 B", "1 GB")).0
        };
        let request_bytes = bytes("request_bytes", "Bytes of a request.", "1600 B");
        let response_bytes = bytes("response_bytes", "Bytes of a response.", "2000 B");
        Settings { queries, gap, deadline, request_bytes, response_bytes }
    }
}

const FRONT_END: usize = 0;
const WORKER: usize = 1;
const ROLES: &[Role] = &[
    Role { name: "front_ends", doc: "Hosts that send queries to workers." },
    Role { name: "workers", doc: "Hosts that respond to queries." },
];

const COUNTERS: &[Statistic] =
    &[Statistic { name: "missed", doc: "Queries that were not complete at their deadline." }];
const MEASURES: &[Statistic] =
    &[Statistic { name: "query", doc: "Time from a query to its answer." }];

impl ApplicationModel for Settings {
    /// Returns all counters and measures: goals with another name are refused before the run.
    fn declared(&self) -> Declared {
        Declared { counters: Some(COUNTERS.to_vec()), measures: Some(MEASURES.to_vec()) }
    }

    /// Returns a process; each host of a role has one.
    fn start(&self, _: &Place) -> Box<dyn Application> {
        Box::new(FanOut { settings: *self, asked: 0, open: BTreeMap::new() })
    }
}

/// A query that is not answered yet.
#[derive(Clone, Copy, Debug)]
struct Query {
    asked: Time,
    deadline: u64,
    missing: usize,
}

/// Process of a front end or of a worker.
#[derive(Debug)]
struct FanOut {
    settings: Settings,
    asked: u64,
    open: BTreeMap<u64, Query>,
}

/// Value of the timer for the next query. The timer of a deadline has the number of its query.
const NEXT: u64 = u64::MAX;

impl Application for FanOut {
    fn on_start(&mut self, p: &mut Process) {
        if p.role() == FRONT_END {
            p.plan(self.settings.queries);
            self.await_query(p);
        }
    }

    fn on_timer(&mut self, p: &mut Process, value: u64) {
        if value == NEXT {
            self.ask(p);
        } else if let Some(query) = self.open.remove(&value) {
            p.count("missed", 1);
            answer(p, query);
        }
    }

    fn on_message(&mut self, p: &mut Process, message: &Message) {
        let words = message.content.words;
        if message.is_request() {
            let bytes = self.settings.response_bytes;
            return p.reply(message, Content { bytes, words, ..Content::default() });
        }
        let Some(query) = self.open.get_mut(&words[0]) else { return };
        query.missing -= 1;
        if query.missing == 0 {
            let query = *query;
            self.open.remove(&words[0]);
            p.cancel(query.deadline);
            answer(p, query);
        }
    }
}

impl FanOut {
    /// Starts the timer of the next query, unless all queries have been sent.
    fn await_query(&mut self, p: &mut Process) {
        if self.asked < self.settings.queries {
            let gap = exponential(self.settings.gap, p.random());
            p.timer(gap, NEXT);
        }
    }

    fn ask(&mut self, p: &mut Process) {
        let (number, workers) = (self.asked, p.members(WORKER).to_vec());
        for &worker in &workers {
            let words = [number, 0, 0];
            let bytes = self.settings.request_bytes;
            p.request(worker, Content { bytes, words, ..Content::default() });
        }
        let deadline = p.timer(self.settings.deadline, number);
        self.open.insert(number, Query { asked: p.now(), deadline, missing: workers.len() });
        self.asked += 1;
        p.begin(1);
        self.await_query(p);
    }
}

/// Records the time of a query, and counts the query as completed.
fn answer(p: &mut Process, query: Query) {
    p.measure("query", p.now().since(query.asked));
    p.complete(1);
}

/// Registers the mechanism under its name in scenarios; register further mechanisms here.
pub fn add(all: &mut Mechanisms) {
    all.application("@NAME@", "queries answered at a deadline", ROLES, Settings::read);
}

#[cfg(not(test))]
eastwest::mechanisms!(add);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_a_name_that_scenarios_can_use() {
        let mut all = Mechanisms::default();
        add(&mut all);
        assert_eq!((all.names(), all.problem()), (vec![("application", "@NAME@")], None));
    }
}
