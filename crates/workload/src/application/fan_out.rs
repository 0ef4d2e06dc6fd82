//! Fan-out with a deadline: a front end sends each query to many workers at once. It answers the
//! query when all workers have responded, or at the deadline with the responses that have arrived.
//!
//! This is the partition–aggregate pattern of web search (Alizadeh et al. 2010, section 2.1): the
//! slowest of many responses determines the time of a query, and responses after the deadline are
//! lost work. Queries of a front end are a Poisson process and do not wait for each other.

use super::answers::{Answers, read_bytes, read_server_time};
use super::declared::Statistic;
use super::interface::{Application, BuiltIn};
use super::process::{Content, Message, Place, Process};
use super::role::Role;
use crate::arrivals::exponential;
use crate::service::ServiceConfig;
use eastwest_settings::{Section, key};
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Settings of the application "fan-out": queries to many workers with a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FanOutConfig {
    /// Number of queries of each front end.
    pub queries: u64,
    /// Mean time between two queries of a front end.
    pub gap: Span,
    /// Number of workers to which a query is sent; `None`: all workers.
    pub width: Option<u32>,
    /// Time from a query to its deadline, at which it is answered without the missing responses.
    pub deadline: Span,
    /// Bytes of a front end's request to a worker.
    pub request_bytes: u64,
    /// Bytes of a worker's response to a front end.
    pub response_bytes: u64,
    /// Mean service time at a worker, from the arrival of a request to its response.
    pub server_time: Span,
}

const FRONT_END: usize = 0;
const WORKER: usize = 1;

impl BuiltIn for FanOutConfig {
    const NAME: &'static str = "fan-out";
    const DOC: &'static str = "queries to many workers at once, answered at a deadline with what has arrived \
                               (partition–aggregate, Alizadeh et al. 2010)";
    const ROLES: &'static [Role] = &[
        Role { name: "front_ends", doc: "Hosts that send queries to workers." },
        Role { name: "workers", doc: "Hosts that respond to queries." },
    ];
    const COUNTERS: &'static [Statistic] = &[
        Statistic { name: "queries", doc: "Queries that front ends have sent." },
        Statistic { name: "missed", doc: "Queries that were not complete at their deadline." },
        Statistic {
            name: "responses",
            doc: "Responses that arrived before the deadline of their query.",
        },
        Statistic {
            name: "late",
            doc: "Responses that arrived after the deadline of their query.",
        },
    ];
    const MEASURES: &'static [Statistic] = &[Statistic {
        name: "query",
        doc: "Time from a query to its answer, at most the deadline.",
    }];
    type State = FanOut;

    fn read(s: &mut Section) -> FanOutConfig {
        const DEADLINE: &str = "Time after which a query is answered without the missing responses \
                                (Alizadeh et al. 2010: 10 to 100 ms for workers). \
                                No query_us is above it.";
        FanOutConfig {
            queries: s.get(
                key("queries", "Number of queries of each front end.")
                    .default("100")
                    .range("1", "100000000"),
            ),
            gap: s.get(
                key("gap", "Mean time between queries of a front end, exponentially distributed.")
                    .default("1 ms")
                    .range("1 ns", "1 h"),
            ),
            width: s.find(
                key("width", "Number of workers of each query, chosen at random. Without it, each query goes to all.")
                    .optional("all workers")
                    .range("1", "100000"),
            ),
            deadline: s.get(key("deadline", DEADLINE).default("10 ms").range("1 ns", "1 h")),
            request_bytes: read_bytes(
                s,
                "request_bytes",
                "Bytes of a request to a worker.",
                ServiceConfig::REQUEST_BYTES,
            ),
            response_bytes: read_bytes(
                s,
                "response_bytes",
                "Bytes of the response of each worker, not of the whole query.",
                ServiceConfig::RESPONSE_BYTES,
            ),
            server_time: read_server_time(s),
        }
    }

    fn problems(&self, members: &[usize]) -> Vec<String> {
        let workers = members[WORKER];
        let width = self.width.filter(|&width| width as usize > workers);
        width
            .map(|width| {
                format!("width: a query needs {width} workers, but there are only {workers}")
            })
            .into_iter()
            .collect()
    }

    fn start(&self, place: &Place) -> FanOut {
        FanOut {
            config: *self,
            workers: place.members[WORKER].clone(),
            asked: 0,
            open: BTreeMap::new(),
            answers: Answers::default(),
        }
    }
}

/// A query of a front end that is not answered yet.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Query {
    asked: Time,
    missing: u32,
    deadline: u64,
}

/// State of a process of the application "fan-out": a front end or a worker.
#[derive(Debug, Serialize, Deserialize)]
pub struct FanOut {
    config: FanOutConfig,
    /// Process numbers of all workers. Each query reorders the list: the workers to which it is
    /// sent are moved to its beginning.
    workers: Vec<u32>,
    asked: u64,
    open: BTreeMap<u64, Query>,
    answers: Answers,
}

/// Value of the timer for the next query. The timer for the deadline of a query has the number of
/// the query as value.
const NEXT: u64 = u64::MAX;

impl Application for FanOut {
    fn on_start(&mut self, p: &mut Process) {
        if p.role() == FRONT_END {
            p.plan(self.config.queries);
            self.await_query(p);
        }
    }

    fn on_timer(&mut self, p: &mut Process, value: u64) {
        if p.role() == WORKER {
            self.answers.on_timer(p, value);
        } else if value == NEXT {
            self.ask(p);
        } else if let Some(query) = self.open.remove(&value) {
            p.count("missed", 1);
            answered(p, query);
        }
    }

    fn on_message(&mut self, p: &mut Process, message: &Message) {
        if message.is_request() {
            let service = exponential(self.config.server_time, p.random());
            return self.answers.after(p, service, message, self.config.response_bytes);
        }
        let number = message.content.words[0];
        let Some(query) = self.open.get_mut(&number) else { return p.count("late", 1) };
        p.count("responses", 1);
        query.missing -= 1;
        if query.missing == 0 {
            let query = *query;
            self.open.remove(&number);
            p.cancel(query.deadline);
            answered(p, query);
        }
    }
}

fn answered(p: &mut Process, query: Query) {
    p.measure("query", p.now().since(query.asked));
    p.complete(1);
}

impl FanOut {
    fn await_query(&mut self, p: &mut Process) {
        if self.asked < self.config.queries {
            let gap = exponential(self.config.gap, p.random());
            p.timer(gap, NEXT);
        }
    }

    fn ask(&mut self, p: &mut Process) {
        let (number, count) = (self.asked, self.workers.len());
        let width = self.config.width.map_or(count, |w| w as usize).min(count);
        // Draws a random sample without repetition: the first steps of a Fisher–Yates shuffle.
        for i in 0..width {
            if width < count {
                let other = i + p.random().below((count - i) as u64) as usize;
                self.workers.swap(i, other);
            }
            let content = Content { words: [number, 0, 0], ..self.config.request_bytes.into() };
            p.request(self.workers[i], content);
        }
        let deadline = p.timer(self.config.deadline, number);
        let query = Query { asked: p.now(), missing: width as u32, deadline };
        self.open.insert(number, query);
        self.asked += 1;
        p.count("queries", 1);
        p.begin(1);
        self.await_query(p);
    }
}

#[cfg(test)]
mod tests {
    use super::super::deployment::tests::{Outcome, run};
    use super::*;
    use crate::ideal::Ideal;

    fn config() -> FanOutConfig {
        FanOutConfig {
            queries: 50,
            gap: Span::from_ms(1),
            width: None,
            deadline: Span::from_ms(10),
            request_bytes: 100,
            response_bytes: 2_000,
            server_time: Span::ZERO,
        }
    }

    fn on_five_hosts(config: FanOutConfig) -> Outcome {
        run(
            super::super::family::Model::FanOut(config),
            FanOutConfig::ROLES,
            &[&[0], &[1, 2, 3, 4]],
        )
    }

    #[test]
    fn a_query_takes_two_latencies_and_asks_every_worker() {
        let outcome = on_five_hosts(config());
        let expected = [("late", 0), ("missed", 0), ("queries", 50), ("responses", 200)];
        assert_eq!(outcome.counters, expected.map(|(name, n)| (name.to_owned(), n)));
        let both_ways = Span(2 * Ideal::LATENCY.0).as_us_f64();
        assert_eq!(outcome.measures["query"], (50, both_ways));
        assert_eq!(outcome.ideal.rows.len(), 400);
        assert!(outcome.ideal.finished && outcome.ideal.open == 0 && outcome.ideal.opened == 4);
    }

    #[test]
    fn the_deadline_answers_without_the_missing_responses() {
        // The network takes 100 µs for request and response, so each query misses a deadline of 99
        // µs.
        let outcome = on_five_hosts(FanOutConfig { deadline: Span::from_us(99), ..config() });
        let expected = [("late", 200), ("missed", 50), ("queries", 50), ("responses", 0)];
        assert_eq!(outcome.counters, expected.map(|(name, n)| (name.to_owned(), n)));
        assert_eq!(outcome.measures["query"], (50, 99.0));
    }

    #[test]
    fn a_narrow_query_asks_random_workers_equally_often() {
        let outcome = on_five_hosts(FanOutConfig { queries: 4_000, width: Some(2), ..config() });
        let requests = outcome.ideal.rows.iter().filter(|row| row.payload == 100);
        let mut asked = [0; 5];
        requests.for_each(|row| asked[row.dst.0 as usize] += 1);
        assert_eq!((asked[0], asked.iter().sum::<i32>()), (0, 8_000));
        assert!(asked[1..].iter().all(|n| (1_850..2_150).contains(n)), "{asked:?}");
    }

    #[test]
    fn the_slowest_of_n_exponential_servers_takes_the_harmonic_number_of_means() {
        // Expected maximum of n exponential times: mean · (1 + 1/2 + … + 1/n).
        let mean = Span::from_ms(1);
        let outcome = on_five_hosts(FanOutConfig {
            queries: 20_000,
            server_time: mean,
            deadline: Span::from_ms(10_000),
            ..config()
        });
        let expected = 100.0 + 1_000.0 * (1.0 + 1.0 / 2.0 + 1.0 / 3.0 + 1.0 / 4.0);
        let (count, mean_us) = outcome.measures["query"];
        assert_eq!(count, 20_000);
        assert!((mean_us / expected - 1.0).abs() < 0.02, "{mean_us} {expected}");
    }
}
