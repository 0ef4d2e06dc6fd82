//! Requests with hedging and retries: a client that waits too long sends the request to a second
//! server, or sends it again after a back-off.
//!
//! Hedged requests follow Dean and Barroso, *The Tail at Scale* (CACM 2013): the second request is
//! sent when the first is slower than most, and the first response counts. Retries follow after a
//! timeout. The time before a retry is uniform between zero and `backoff` · 2^(number of earlier
//! retries), at most `max_backoff` (full jitter, as Amazon's architecture guides recommend).
//! Operations of a client are a Poisson process and do not wait for each other.

use super::answers::{Answers, read_bytes, read_server_time};
use super::declared::Statistic;
use super::interface::{Application, BuiltIn};
use super::process::{Content, Message, Place, Process};
use super::role::Role;
use crate::arrivals::exponential;
use crate::service::ServiceConfig;
use eastwest_settings::{Fraction, Section, key};
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Settings of the application "hedged": requests with hedging and retries.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HedgedConfig {
    /// Number of operations of each client.
    pub operations: u64,
    /// Mean time between the starts of two operations of a client.
    pub gap: Span,
    /// Time without response after which the request is also sent to a second server; `None`:
    /// never.
    pub hedge_after: Option<Span>,
    /// Time without response after which an attempt of an operation has failed; `None`: never.
    pub timeout: Option<Span>,
    /// Largest number of retries of an operation.
    pub retries: u32,
    /// Upper bound of the random time before the first retry; it doubles with each further retry.
    pub backoff: Span,
    /// Largest value of the upper bound of the random time before a retry.
    pub max_backoff: Span,
    /// Bytes of a request to a server.
    pub request_bytes: u64,
    /// Bytes of a response of a server.
    pub response_bytes: u64,
    /// Mean service time at a server, from the arrival of a request to its response.
    pub server_time: Span,
    /// Fraction of requests, chosen at random, whose service time at the server is `slow_time`.
    pub slow_share: f64,
    /// Service time of slow requests at the server.
    pub slow_time: Span,
}

const CLIENT: usize = 0;
const SERVER: usize = 1;

impl BuiltIn for HedgedConfig {
    const NAME: &'static str = "hedged";
    const DOC: &'static str =
        "requests with hedging and retries with back-off (Dean and Barroso 2013)";
    const ROLES: &'static [Role] = &[
        Role { name: "clients", doc: "Hosts that send requests." },
        Role { name: "servers", doc: "Hosts that respond. Each can answer each request." },
    ];
    const COUNTERS: &'static [Statistic] = &[
        Statistic { name: "operations", doc: "Operations that clients have started." },
        Statistic {
            name: "hedges",
            doc: "Second requests that were sent because the first was slow.",
        },
        Statistic { name: "retries", doc: "Attempts that followed a timeout." },
        Statistic { name: "duplicates", doc: "Responses after the first one of their operation." },
        Statistic { name: "failed", doc: "Operations without response after all retries." },
    ];
    const MEASURES: &'static [Statistic] = &[Statistic {
        name: "operation",
        doc: "Time from the start of an operation to its first response.",
    }];
    type State = Hedged;

    fn read(s: &mut Section) -> HedgedConfig {
        const BACKOFF: &str = "Upper end of the random time before the first retry. It doubles with \
                               each further retry.";
        let time = |name, doc| key::<Span>(name, doc).range("1 ns", "1 h");
        let config = HedgedConfig {
            operations: s.get(
                key("operations", "Number of operations of each client.")
                    .default("1000")
                    .range("1", "100000000"),
            ),
            gap: s.get(
                time("gap", "Mean time between operations of a client, exponentially distributed.")
                    .default("1 ms"),
            ),
            hedge_after: s.find(
                time("hedge_after", "Time without response after which a second server is asked.")
                    .optional("never"),
            ),
            timeout: s.find(
                time("timeout", "Time without response after which an attempt has failed.")
                    .optional("never"),
            ),
            retries: s.get(
                key("retries", "Maximum number of retries of an operation after timeouts.")
                    .default("3")
                    .range("0", "1000"),
            ),
            backoff: s.get(time("backoff", BACKOFF).default("10 ms")),
            max_backoff: s.get(
                time("max_backoff", "Largest upper end of the random time before a retry.")
                    .default("1 s"),
            ),
            request_bytes: read_bytes(
                s,
                "request_bytes",
                "Bytes of a request.",
                ServiceConfig::REQUEST_BYTES,
            ),
            response_bytes: read_bytes(
                s,
                "response_bytes",
                "Bytes of a response.",
                ServiceConfig::RESPONSE_BYTES,
            ),
            server_time: read_server_time(s),
            slow_share: s
                .get(
                    key::<Fraction>(
                        "slow_share",
                        "Share of requests that take `slow_time` at the server, at random.",
                    )
                    .default("0")
                    .range("0", "1"),
                )
                .0,
            slow_time: s.get(
                key("slow_time", "Time of slow requests at the server.")
                    .default("10 ms")
                    .range("0 s", "1 h"),
            ),
        };
        let hedges = match (config.hedge_after, config.timeout) {
            (Some(hedge_after), Some(timeout)) => hedge_after < timeout,
            _ => true,
        };
        s.demand(hedges, &["hedge_after", "timeout"], || {
            "must be below `timeout`: otherwise no second server is asked".to_owned()
        });
        config
    }

    fn start(&self, place: &Place) -> Hedged {
        Hedged {
            config: *self,
            servers: place.members[SERVER].clone(),
            begun: 0,
            open: BTreeMap::new(),
            answers: Answers::default(),
        }
    }
}

/// An operation of a client that has no response yet.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Operation {
    begun: Time,
    /// Server of the operation's last attempt, as index in the list of servers.
    server: usize,
    retries: u32,
    hedge: Option<u64>,
    timeout: Option<u64>,
}

/// State of a process of the application "hedged": a client or a server.
#[derive(Debug, Serialize, Deserialize)]
pub struct Hedged {
    config: HedgedConfig,
    servers: Vec<u32>,
    begun: u64,
    open: BTreeMap<u64, Operation>,
    answers: Answers,
}

/// Purpose of a client's timer: the next operation starts. The value of a timer is 4 · operation
/// number + purpose.
const NEXT: u64 = 0;
/// Purpose of a client's timer: an operation waits too long and also asks a second server.
const HEDGE: u64 = 1;
/// Purpose of a client's timer: an attempt of an operation has had no response for `timeout`.
const TIMEOUT: u64 = 2;
/// Purpose of a client's timer: the back-off of an operation ends, and the client sends the request
/// of the operation again.
const RETRY: u64 = 3;

impl Application for Hedged {
    fn on_start(&mut self, p: &mut Process) {
        if p.role() == CLIENT {
            p.plan(self.config.operations);
            self.await_next(p);
        }
    }

    fn on_timer(&mut self, p: &mut Process, value: u64) {
        if p.role() == SERVER {
            return self.answers.on_timer(p, value);
        }
        let (number, purpose) = (value / 4, value % 4);
        match purpose {
            NEXT => self.begin(p),
            HEDGE => self.hedge(p, number),
            TIMEOUT => self.time_out(p, number),
            _ => self.attempt(p, number),
        }
    }

    fn on_message(&mut self, p: &mut Process, message: &Message) {
        if message.is_request() {
            let slow = self.config.slow_share > 0.0 && p.random().unit() < self.config.slow_share;
            let service = match slow {
                true => self.config.slow_time,
                false => exponential(self.config.server_time, p.random()),
            };
            return self.answers.after(p, service, message, self.config.response_bytes);
        }
        let Some(operation) = self.open.remove(&message.content.words[0]) else {
            return p.count("duplicates", 1);
        };
        operation.hedge.into_iter().chain(operation.timeout).for_each(|timer| p.cancel(timer));
        p.measure("operation", p.now().since(operation.begun));
        p.complete(1);
    }
}

impl Hedged {
    fn await_next(&mut self, p: &mut Process) {
        if self.begun < self.config.operations {
            let gap = exponential(self.config.gap, p.random());
            p.timer(gap, NEXT);
        }
    }

    fn begin(&mut self, p: &mut Process) {
        let number = self.begun;
        self.begun += 1;
        p.count("operations", 1);
        p.begin(1);
        let begun = p.now();
        let operation = Operation { begun, server: 0, retries: 0, hedge: None, timeout: None };
        self.open.insert(number, operation);
        self.attempt(p, number);
        self.await_next(p);
    }

    fn request(&self, p: &mut Process, number: u64, server: usize) {
        let content = Content { words: [number, 0, 0], ..self.config.request_bytes.into() };
        p.request(self.servers[server], content);
    }

    /// Sends a request of an operation to a random server, and starts its timers for hedging and
    /// timeout.
    fn attempt(&mut self, p: &mut Process, number: u64) {
        let server = p.random().below(self.servers.len() as u64) as usize;
        let Some(operation) = self.open.get_mut(&number) else { return };
        operation.server = server;
        operation.hedge = self.config.hedge_after.map(|after| p.timer(after, 4 * number + HEDGE));
        operation.timeout = self.config.timeout.map(|after| p.timer(after, 4 * number + TIMEOUT));
        self.request(p, number, server);
    }

    /// Sends a second request of an operation to another random server, in addition to the first
    /// one.
    fn hedge(&mut self, p: &mut Process, number: u64) {
        let others = self.servers.len() as u64 - 1;
        let Some(operation) = self.open.get(&number).filter(|_| others > 0) else { return };
        let further = 1 + p.random().below(others) as usize;
        let server = (operation.server + further) % self.servers.len();
        p.count("hedges", 1);
        self.request(p, number, server);
    }

    fn time_out(&mut self, p: &mut Process, number: u64) {
        let Some(operation) = self.open.get_mut(&number) else { return };
        operation.hedge.take().into_iter().for_each(|timer| p.cancel(timer));
        if operation.retries == self.config.retries {
            self.open.remove(&number);
            p.count("failed", 1);
            return p.complete(1);
        }
        let doubled = self.config.backoff.0.saturating_mul(1 << operation.retries.min(40));
        operation.retries += 1;
        let wait = p.random().within(Span(doubled).min(self.config.max_backoff));
        p.count("retries", 1);
        p.timer(wait, 4 * number + RETRY);
    }
}

#[cfg(test)]
mod tests {
    use super::super::deployment::tests::{Outcome, run};
    use super::*;

    fn config() -> HedgedConfig {
        HedgedConfig {
            operations: 2_000,
            gap: Span::from_ms(1),
            hedge_after: None,
            timeout: None,
            retries: 3,
            backoff: Span::from_ms(10),
            max_backoff: Span::from_ms(1_000),
            request_bytes: 100,
            response_bytes: 2_000,
            server_time: Span::ZERO,
            slow_share: 0.0,
            slow_time: Span::from_ms(10),
        }
    }

    fn with_three_servers(config: HedgedConfig) -> Outcome {
        run(super::super::family::Model::Hedged(config), HedgedConfig::ROLES, &[&[0], &[1, 2, 3]])
    }

    #[test]
    fn without_slow_servers_an_operation_takes_two_latencies() {
        let outcome = with_three_servers(config());
        assert_eq!(outcome.measures["operation"], (2_000, 100.0));
        assert_eq!(outcome.counter("hedges") + outcome.counter("retries"), 0);
    }

    #[test]
    fn a_hedge_replaces_the_wait_for_a_slow_server() {
        let slow = HedgedConfig { slow_share: 0.05, ..config() };
        let (_, waiting) = with_three_servers(slow).measures["operation"];
        let hedged = HedgedConfig { hedge_after: Some(Span::from_us(200)), ..slow };
        let outcome = with_three_servers(hedged);
        let (count, mean) = outcome.measures["operation"];
        let hedges = outcome.counter("hedges");
        assert_eq!((count, outcome.counter("duplicates")), (2_000, hedges));
        // Without hedging, 5 % of operations take 10 ms. With hedging, these wait 200 µs, and again
        // 5 % of their second requests take 10 ms.
        let share = hedges as f64 / 2_000.0;
        assert!((0.03..0.07).contains(&share), "{share}");
        assert!(waiting > 450.0 && mean < 150.0, "{waiting} {mean}");
    }

    #[test]
    fn retries_follow_timeouts_and_end() {
        let never = HedgedConfig {
            operations: 50,
            timeout: Some(Span::from_us(200)),
            slow_share: 1.0,
            slow_time: Span::from_ms(9_000),
            retries: 2,
            ..config()
        };
        let outcome = with_three_servers(never);
        assert_eq!((outcome.counter("retries"), outcome.counter("failed")), (100, 50));
        assert_eq!(outcome.counter("duplicates"), 150);
        assert_eq!(outcome.measures["operation"], (0, 0.0));
    }
}
