//! A key–value store with clients in a closed loop: each client has a fixed number of operations in
//! progress.
//!
//! The operations are as in YCSB (Cooper et al. 2010): reads and writes of records whose keys have
//! a Zipf distribution; the defaults are taken from YCSB's workload B (95 % reads, records of 1 kB,
//! exponent 0.99). Keys are drawn with the method of Gray et al. (1994, *Quickly generating
//! billion-record synthetic databases*), as YCSB does. A key belongs to one server, chosen by a
//! hash.

use super::answers::{Answers, read_bytes, read_server_time};
use super::declared::Statistic;
use super::interface::{Application, BuiltIn};
use super::process::{Content, Message, Place, Process};
use super::role::Role;
use crate::arrivals::exponential;
use eastwest_engine::random::{Stream, mix};
use eastwest_settings::{Fraction, Ratio, Section, key};
use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// Settings of the application "key-value": a key–value store with clients in a closed loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyValueConfig {
    /// Number of operations (reads and writes) of each client.
    pub operations: u64,
    /// Number of operations that a client has in progress at one time.
    pub outstanding: u32,
    /// Mean time from a response until the client sends its next request.
    pub think_time: Span,
    /// Fraction of operations that are reads; the others are writes.
    pub read_share: f64,
    /// Zipf distribution from which the keys of operations are drawn.
    pub keys: Zipf,
    /// Bytes of a key: size of the request of a read, and of the response to a write.
    pub key_bytes: u64,
    /// Bytes of a value: size of the response to a read, and of the request of a write.
    pub value_bytes: u64,
    /// Mean service time at a server, from the arrival of a request to its response.
    pub server_time: Span,
}

const CLIENT: usize = 0;
const SERVER: usize = 1;
const READ: u64 = 0;
const WRITE: u64 = 1;

impl BuiltIn for KeyValueConfig {
    const NAME: &'static str = "key-value";
    const DOC: &'static str =
        "a key–value store with clients in a closed loop (YCSB, Cooper et al. 2010)";
    const ROLES: &'static [Role] = &[
        Role { name: "clients", doc: "Hosts that read and write." },
        Role { name: "servers", doc: "Hosts that store the values; each key belongs to one." },
    ];
    const COUNTERS: &'static [Statistic] = &[
        Statistic { name: "reads", doc: "Reads that clients have started." },
        Statistic { name: "writes", doc: "Writes that clients have started." },
    ];
    const MEASURES: &'static [Statistic] = &[
        Statistic { name: "read", doc: "Time from a read to its response." },
        Statistic { name: "write", doc: "Time from a write to its response." },
    ];
    type State = KeyValue;

    fn read(s: &mut Section) -> KeyValueConfig {
        let count =
            s.get(key("keys", "Number of keys.").default("1000000").range("1", "100000000"));
        const SKEW: &str = "Exponent of the Zipf distribution of keys; 0 makes all keys equally \
                            likely (YCSB: 0.99).";
        let skew: Ratio = s.get(key("skew", SKEW).default("0.99").range("0", "0.9999"));
        KeyValueConfig {
            operations: s.get(
                key("operations", "Number of operations of each client.")
                    .default("1000")
                    .range("1", "100000000"),
            ),
            outstanding: s.get(
                key(
                    "outstanding",
                    "Number of operations of a client that are in progress at once.",
                )
                .default("1")
                .range("1", "100000"),
            ),
            think_time: s.get(
                key(
                    "think_time",
                    "Mean time between a response and the next request, exponentially distributed.",
                )
                .default("0 s")
                .range("0 s", "1 h"),
            ),
            read_share: s
                .get(
                    key::<Fraction>("read_share", "Share of reads among operations.")
                        .default("95 %")
                        .range("0", "1"),
                )
                .0,
            keys: Zipf::new(count, skew.0),
            key_bytes: read_bytes(
                s,
                "key_bytes",
                "Bytes of the request of a read, and of the response of a write.",
                50,
            ),
            value_bytes: read_bytes(s, "value_bytes", "Bytes of a value.", 1_000),
            server_time: read_server_time(s),
        }
    }

    fn start(&self, place: &Place) -> KeyValue {
        KeyValue {
            config: *self,
            servers: place.members[SERVER].clone(),
            begun: 0,
            answers: Answers::default(),
        }
    }
}

/// Zipf distribution of integers from 0 to `count` − 1: number k has a probability proportional to
/// (k + 1)^−skew.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Zipf {
    count: u64,
    skew: f64,
    /// Sum of i^−skew for i = 1 … count, by which probabilities are normalized.
    zeta: f64,
}

impl Zipf {
    /// Returns the Zipf distribution of `count` integers, at least one. The exponent `skew` is at
    /// least 0 and below 1.
    pub fn new(count: u64, skew: f64) -> Zipf {
        // Adds the first terms one by one; the Euler–Maclaurin formula gives the sum of the others.
        let added = count.min(10_000);
        let head: f64 = (1..=added).map(|i| libm::pow(i as f64, -skew)).sum();
        let (m, n) = (added as f64, count as f64);
        let integral = (libm::pow(n, 1.0 - skew) - libm::pow(m, 1.0 - skew)) / (1.0 - skew);
        let ends = (libm::pow(n, -skew) - libm::pow(m, -skew)) / 2.0;
        let slopes = skew / 12.0 * (libm::pow(m, -skew - 1.0) - libm::pow(n, -skew - 1.0));
        Zipf { count, skew, zeta: head + integral + ends + slopes }
    }

    /// Draws an integer from the distribution (Gray et al. 1994, figure 8).
    pub fn draw(&self, random: &mut Stream) -> u64 {
        let n = self.count as f64;
        if self.skew == 0.0 || self.count < 3 {
            return self.few(random);
        }
        let u = random.unit();
        let second = libm::pow(0.5, self.skew);
        if u * self.zeta < 1.0 {
            return 0;
        }
        if u * self.zeta < 1.0 + second {
            return 1;
        }
        let eta = (1.0 - libm::pow(2.0 / n, 1.0 - self.skew)) / (1.0 - (1.0 + second) / self.zeta);
        let at = n * libm::pow(eta * u - eta + 1.0, 1.0 / (1.0 - self.skew));
        (at as u64).min(self.count - 1)
    }

    /// Draws an integer if the distribution is uniform or has at most two integers.
    fn few(&self, random: &mut Stream) -> u64 {
        match self.skew == 0.0 {
            true => random.below(self.count),
            false => u64::from(random.unit() * self.zeta >= 1.0),
        }
    }
}

/// State of a process of the application "key-value": a client or a server.
#[derive(Debug, Serialize, Deserialize)]
pub struct KeyValue {
    config: KeyValueConfig,
    servers: Vec<u32>,
    begun: u64,
    answers: Answers,
}

impl Application for KeyValue {
    fn on_start(&mut self, p: &mut Process) {
        if p.role() == CLIENT {
            p.plan(self.config.operations);
            (0..self.config.outstanding).for_each(|_| self.operate(p));
        }
    }

    fn on_timer(&mut self, p: &mut Process, value: u64) {
        match p.role() {
            SERVER => self.answers.on_timer(p, value),
            _ => self.operate(p),
        }
    }

    fn on_message(&mut self, p: &mut Process, message: &Message) {
        let [operation, begun, _] = message.content.words;
        if message.is_request() {
            let bytes = match operation {
                READ => self.config.value_bytes,
                _ => self.config.key_bytes,
            };
            let service = exponential(self.config.server_time, p.random());
            return self.answers.after(p, service, message, bytes);
        }
        let name = if operation == READ { "read" } else { "write" };
        p.measure(name, Span(p.now().0 - begun));
        p.complete(1);
        if self.config.think_time == Span::ZERO {
            return self.operate(p);
        }
        let pause = exponential(self.config.think_time, p.random());
        p.timer(pause, 0);
    }
}

impl KeyValue {
    /// Starts the client's next operation, unless all operations have started.
    fn operate(&mut self, p: &mut Process) {
        if self.begun == self.config.operations {
            return;
        }
        self.begun += 1;
        let key = self.config.keys.draw(p.random());
        let server = self.servers[(mix(key) % self.servers.len() as u64) as usize];
        let (operation, counter, bytes) = match p.random().unit() < self.config.read_share {
            true => (READ, "reads", self.config.key_bytes),
            false => (WRITE, "writes", self.config.value_bytes),
        };
        p.count(counter, 1);
        p.begin(1);
        let words = [operation, p.now().0, key];
        p.request(server, Content { bytes, words, ..Content::default() });
    }
}

#[cfg(test)]
mod tests {
    use super::super::deployment::tests::run;
    use super::*;
    use eastwest_types::Time;

    #[test]
    fn frequent_keys_have_their_shares() {
        let mut random = Stream::new(1, "keys");
        for skew in [0.0, 0.5, 0.99] {
            let zipf = Zipf::new(1_000, skew);
            let mut drawn = vec![0u32; 1_000];
            (0..200_000).for_each(|_| drawn[zipf.draw(&mut random) as usize] += 1);
            for key in [0, 1] {
                let share = f64::from(drawn[key]) / 200_000.0;
                let expected = libm::pow(key as f64 + 1.0, -skew) / zipf.zeta;
                assert!((share - expected).abs() < 0.003, "{skew} {key}: {share} {expected}");
            }
            let first: u32 = drawn[..100].iter().sum();
            let expected: f64 = (1..=100).map(|i| libm::pow(f64::from(i), -skew) / zipf.zeta).sum();
            let share = f64::from(first) / 200_000.0;
            assert!((share - expected).abs() < 0.02, "{skew}: {share} {expected}");
        }
        for count in [1, 2] {
            let zipf = Zipf::new(count, 0.9);
            assert!((0..1_000).all(|_| zipf.draw(&mut random) < count));
        }
    }

    #[test]
    fn the_constant_of_many_keys_is_the_sum_of_their_terms() {
        for skew in [0.0, 0.3, 0.99] {
            let sum: f64 = (1..=300_000).map(|i| libm::pow(f64::from(i), -skew)).sum();
            assert!((Zipf::new(300_000, skew).zeta / sum - 1.0).abs() < 1e-10, "{skew}");
        }
    }

    #[test]
    fn a_closed_loop_has_its_operations_in_progress() {
        let config = KeyValueConfig {
            operations: 3_000,
            outstanding: 3,
            think_time: Span::ZERO,
            read_share: 0.9,
            keys: Zipf::new(100, 0.0),
            key_bytes: 50,
            value_bytes: 1_000,
            server_time: Span::ZERO,
        };
        let model = super::super::family::Model::KeyValue(config);
        let outcome = run(model, KeyValueConfig::ROLES, &[&[0], &[1, 2, 3]]);
        let (reads, writes) = (outcome.counter("reads"), outcome.counter("writes"));
        assert_eq!(reads + writes, 3_000);
        assert!((2_600..2_800).contains(&reads), "{reads}");
        assert_eq!(outcome.measures["read"], (reads, 100.0));
        // Little's law: 3,000 operations, 3 in progress at one time, 100 µs each.
        assert_eq!(outcome.ideal.ended, Time::ZERO + Span::from_us(100_000));
        let bytes: u64 = outcome.ideal.rows.iter().map(|row| row.payload).sum();
        assert_eq!(bytes, 3_000 * 1_050);
    }
}
