//! Quorum writes: a client sends a value to N replicas, and the write is complete when W of them
//! have confirmed it.
//!
//! This is the pattern of replicated stores such as Dynamo (DeCandia et al. 2007, section 4.5: N =
//! 3, W = 2): the W-th fastest of N replicas determines the time of a write, so one slow replica
//! does not delay it. A client has a fixed number of writes in progress and begins the next one
//! when one is complete.

use super::answers::{Answers, read_bytes, read_server_time};
use super::declared::Statistic;
use super::interface::{Application, BuiltIn};
use super::process::{Content, Message, Place, Process};
use super::role::Role;
use crate::arrivals::exponential;
use eastwest_settings::{Section, key};
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Settings of the application "quorum": writes that need the confirmation of W of N replicas.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuorumConfig {
    /// Number of writes of each client.
    pub writes: u64,
    /// Number of writes that a client has in progress at one time.
    pub outstanding: u32,
    /// Number of replicas of each value (N).
    pub replicas: u32,
    /// Number of confirmations after which a write is complete (W).
    pub quorum: u32,
    /// Bytes of a value that a client writes.
    pub value_bytes: u64,
    /// Bytes of the confirmation of a replica.
    pub confirmation_bytes: u64,
    /// Mean service time at a replica, from the arrival of a value to its confirmation.
    pub server_time: Span,
}

const CLIENT: usize = 0;
const STORE: usize = 1;

impl BuiltIn for QuorumConfig {
    const NAME: &'static str = "quorum";
    const DOC: &'static str = "writes to N replicas that are complete when W have confirmed (Dynamo, DeCandia et al. 2007)";
    const ROLES: &'static [Role] = &[
        Role { name: "clients", doc: "Hosts that write." },
        Role { name: "stores", doc: "Hosts that store replicas." },
    ];
    const COUNTERS: &'static [Statistic] = &[
        Statistic { name: "writes", doc: "Writes that clients have started." },
        Statistic { name: "confirmations", doc: "Confirmations that have arrived at clients." },
    ];
    const MEASURES: &'static [Statistic] = &[
        Statistic { name: "write", doc: "Time from a write to confirmation number `quorum`." },
        Statistic {
            name: "replicated",
            doc: "Time from a write to the confirmation of the last replica.",
        },
    ];
    type State = Quorum;

    fn read(s: &mut Section) -> QuorumConfig {
        const REPLICAS: &str = "Number of replicas of each value (N), on stores chosen at random.";
        const QUORUM: &str = "Number of confirmations that complete a write (W).";
        let replicas = s.get(key("replicas", REPLICAS).default("3").range("1", "1000"));
        let quorum = s.get(key("quorum", QUORUM).default("2").range("1", "1000"));
        s.demand(quorum <= replicas, &["quorum", "replicas"], || {
            format!("must be at most `replicas`, which is {replicas}")
        });
        let config = QuorumConfig {
            writes: s.get(
                key("writes", "Number of writes of each client.")
                    .default("1000")
                    .range("1", "100000000"),
            ),
            outstanding: s.get(
                key("outstanding", "Number of writes of a client that are in progress at once.")
                    .default("1")
                    .range("1", "100000"),
            ),
            replicas,
            quorum,
            value_bytes: read_bytes(s, "value_bytes", "Bytes of a value.", 1_000),
            confirmation_bytes: read_bytes(s, "confirmation_bytes", "Bytes of a confirmation.", 50),
            server_time: read_server_time(s),
        };
        let at_once = u64::from(config.outstanding) * u64::from(config.replicas);
        s.demand(at_once <= 1_000_000, &["outstanding", "replicas"], || {
            format!(
                "`outstanding` times `replicas` is {at_once}, but at most 1,000,000 is possible"
            )
        });
        config
    }

    fn problems(&self, members: &[usize]) -> Vec<String> {
        let (stores, replicas) = (members[STORE], self.replicas);
        match replicas as usize > stores {
            true => {
                vec![format!(
                    "replicas: {replicas} replicas need at least {replicas} stores, but there \
                     are only {stores}"
                )]
            }
            false => Vec::new(),
        }
    }

    fn start(&self, place: &Place) -> Quorum {
        Quorum {
            config: *self,
            stores: place.members[STORE].clone(),
            begun: 0,
            open: BTreeMap::new(),
            answers: Answers::default(),
        }
    }
}

/// A write that at least one replica has not confirmed yet.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Write {
    begun: Time,
    confirmations: u32,
}

/// State of a process of the application "quorum": a client or a store of replicas.
#[derive(Debug, Serialize, Deserialize)]
pub struct Quorum {
    config: QuorumConfig,
    /// Process numbers of all stores. Each write reorders the list: the stores to which it is sent
    /// are moved to its beginning.
    stores: Vec<u32>,
    begun: u64,
    open: BTreeMap<u64, Write>,
    answers: Answers,
}

impl Application for Quorum {
    fn on_start(&mut self, p: &mut Process) {
        if p.role() == CLIENT {
            p.plan(self.config.writes);
            (0..self.config.outstanding).for_each(|_| self.write(p));
        }
    }

    fn on_timer(&mut self, p: &mut Process, value: u64) {
        self.answers.on_timer(p, value);
    }

    fn on_message(&mut self, p: &mut Process, message: &Message) {
        if message.is_request() {
            let service = exponential(self.config.server_time, p.random());
            return self.answers.after(p, service, message, self.config.confirmation_bytes);
        }
        let number = message.content.words[0];
        let Some(write) = self.open.get_mut(&number) else { return };
        p.count("confirmations", 1);
        write.confirmations += 1;
        let Write { begun, confirmations } = *write;
        let took = p.now().since(begun);
        if confirmations == self.config.replicas {
            p.measure("replicated", took);
            self.open.remove(&number);
        }
        if confirmations == self.config.quorum {
            p.measure("write", took);
            p.complete(1);
            self.write(p);
        }
    }
}

impl Quorum {
    /// Begins the client's next write, unless all writes have begun.
    fn write(&mut self, p: &mut Process) {
        if self.begun == self.config.writes {
            return;
        }
        let number = self.begun;
        self.begun += 1;
        p.count("writes", 1);
        p.begin(1);
        self.open.insert(number, Write { begun: p.now(), confirmations: 0 });
        for i in 0..self.config.replicas as usize {
            let other = i + p.random().below((self.stores.len() - i) as u64) as usize;
            self.stores.swap(i, other);
            let content = Content { words: [number, 0, 0], ..self.config.value_bytes.into() };
            p.request(self.stores[i], content);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::deployment::tests::{Outcome, run};
    use super::*;

    fn config() -> QuorumConfig {
        QuorumConfig {
            writes: 10_000,
            outstanding: 1,
            replicas: 3,
            quorum: 2,
            value_bytes: 1_000,
            confirmation_bytes: 50,
            server_time: Span::ZERO,
        }
    }

    fn on_six_hosts(config: QuorumConfig) -> Outcome {
        run(
            super::super::family::Model::Quorum(config),
            QuorumConfig::ROLES,
            &[&[0], &[1, 2, 3, 4, 5]],
        )
    }

    #[test]
    fn a_closed_loop_writes_once_in_two_latencies() {
        let outcome = on_six_hosts(config());
        assert_eq!(outcome.measures["write"], (10_000, 100.0));
        assert_eq!(outcome.counter("confirmations"), 30_000);
        assert_eq!(outcome.ideal.ended, Time::ZERO + Span::from_us(10_000 * 100));
    }

    #[test]
    fn the_second_of_three_exponential_replicas_takes_five_sixths_of_the_mean() {
        // Order statistics of n exponential times: E[k-th smallest] = mean · Σ 1/(n − i), i = 0 … k
        // − 1.
        let outcome = on_six_hosts(QuorumConfig { server_time: Span::from_ms(1), ..config() });
        let expected =
            [("write", 1.0 / 3.0 + 1.0 / 2.0), ("replicated", 1.0 / 3.0 + 1.0 / 2.0 + 1.0)];
        for (name, means) in expected {
            let (count, mean) = outcome.measures[name];
            assert_eq!(count, 10_000);
            assert!((mean / (100.0 + 1_000.0 * means) - 1.0).abs() < 0.03, "{name} {mean}");
        }
    }

    #[test]
    fn more_replicas_than_stores_are_refused() {
        let few = QuorumConfig { replicas: 6, ..config() };
        assert_eq!(
            few.problems(&[1, 5]),
            ["replicas: 6 replicas need at least 6 stores, but there are only 5"]
        );
        assert!(few.problems(&[1, 6]).is_empty());
    }
}
