//! Training with parameter servers: in each iteration every worker computes, sends its gradients to
//! all servers, and continues when it has the new parameters from all of them.
//!
//! Synchronous training as in Li et al., *Scaling Distributed Machine Learning with the Parameter
//! Server* (OSDI 2014): the parameters are divided equally among the servers; a server answers when
//! the gradients of all workers have arrived. So there is an incast in both directions, and the
//! slowest worker determines the time of an iteration.

use super::answers::read_bytes;
use super::declared::Statistic;
use super::interface::{Application, BuiltIn};
use super::process::{Content, Message, Place, Process};
use super::role::Role;
use crate::arrivals::exponential;
use eastwest_settings::{Section, key};
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};

/// Settings of the application "parameter-server": synchronous training with parameter servers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParameterServerConfig {
    /// Number of training iterations of each worker.
    pub iterations: u64,
    /// Bytes of all parameters together, which is also the size of the gradients of a worker.
    pub model_bytes: u64,
    /// Minimum time of the computation in each iteration.
    pub compute_time: Span,
    /// Mean of the exponentially distributed time that is added to each computation.
    pub compute_jitter: Span,
}

const WORKER: usize = 0;
const SERVER: usize = 1;

impl BuiltIn for ParameterServerConfig {
    const NAME: &'static str = "parameter-server";
    const DOC: &'static str =
        "synchronous training: workers send gradients, servers return parameters (Li et al. 2014)";
    const ROLES: &'static [Role] = &[
        Role { name: "workers", doc: "Hosts that compute gradients." },
        Role { name: "servers", doc: "Hosts that store an equal part of the parameters each." },
    ];
    const COUNTERS: &'static [Statistic] = &[Statistic {
        name: "iterations",
        doc: "Iterations that workers have finished, summed over the workers.",
    }];
    const MEASURES: &'static [Statistic] = &[
        Statistic { name: "iteration", doc: "Time of an iteration of a worker." },
        Statistic { name: "communication", doc: "Time of an iteration after its computation." },
    ];
    type State = ParameterServer;

    fn read(s: &mut Section) -> ParameterServerConfig {
        const COMPUTE: &str = "Least time of the computation in each iteration.";
        const JITTER: &str =
            "Mean of an exponentially distributed time that is added to each computation.";
        const MODEL: &str = "Bytes of all parameters, and of the gradients of a worker (ResNet-50: 25.6 \
                             million parameters of 4 B, He et al. 2016).";
        ParameterServerConfig {
            iterations: s.get(
                key("iterations", "Number of iterations.").default("10").range("1", "10000000"),
            ),
            model_bytes: read_bytes(s, "model_bytes", MODEL, 102_400_000),
            compute_time: s.get(key("compute_time", COMPUTE).default("100 ms").range("0 s", "1 h")),
            compute_jitter: s.get(key("compute_jitter", JITTER).default("0 s").range("0 s", "1 h")),
        }
    }

    fn problems(&self, members: &[usize]) -> Vec<String> {
        let (servers, bytes) = (members[SERVER] as u64, self.model_bytes);
        match bytes < servers {
            true => vec![format!(
                "model_bytes: {bytes} bytes are too few: each of the {servers} servers needs a byte"
            )],
            false => Vec::new(),
        }
    }

    fn start(&self, _: &Place) -> ParameterServer {
        ParameterServer {
            config: *self,
            begun: Time::ZERO,
            computed: Time::ZERO,
            iterations: 0,
            arrived: Vec::new(),
        }
    }
}

/// State of a process of the application "parameter-server": a worker or a server.
#[derive(Debug, Serialize, Deserialize)]
pub struct ParameterServer {
    config: ParameterServerConfig,
    /// Time at which the worker's present iteration began.
    begun: Time,
    /// Time at which the computation of the worker's present iteration ended.
    computed: Time,
    /// Number of iterations that this worker has finished.
    iterations: u64,
    /// Messages that have arrived in the present iteration: gradients at a server, parameters at a
    /// worker.
    arrived: Vec<Message>,
}

impl Application for ParameterServer {
    fn on_start(&mut self, p: &mut Process) {
        if p.role() == WORKER {
            p.plan(self.config.iterations);
            self.compute(p);
        }
    }

    fn on_timer(&mut self, p: &mut Process, _: u64) {
        self.computed = p.now();
        let servers = p.members(SERVER).to_vec();
        for (index, &server) in servers.iter().enumerate() {
            p.request(server, self.part(index, servers.len()));
        }
    }

    fn on_message(&mut self, p: &mut Process, message: &Message) {
        self.arrived.push(*message);
        let others = if p.role() == SERVER { WORKER } else { SERVER };
        if self.arrived.len() < p.members(others).len() {
            return;
        }
        let arrived = std::mem::take(&mut self.arrived);
        if p.role() == SERVER {
            return arrived
                .iter()
                .for_each(|gradients| p.reply(gradients, gradients.content.bytes));
        }
        p.measure("iteration", p.now().since(self.begun));
        p.measure("communication", p.now().since(self.computed));
        p.count("iterations", 1);
        p.complete(1);
        self.iterations += 1;
        if self.iterations < self.config.iterations {
            self.compute(p);
        }
    }
}

impl ParameterServer {
    fn compute(&mut self, p: &mut Process) {
        self.begun = p.now();
        p.begin(1);
        let jitter = exponential(self.config.compute_jitter, p.random());
        p.timer(self.config.compute_time + jitter, 0);
    }

    /// Returns the gradients that a worker sends to the server with the index `index`. The bytes of
    /// the model are divided equally among `count` servers; if there is a remainder, the first
    /// servers get one byte more.
    fn part(&self, index: usize, count: usize) -> Content {
        let (bytes, count) = (self.config.model_bytes, count as u64);
        Content::from(bytes / count + u64::from((index as u64) < bytes % count))
    }
}

#[cfg(test)]
mod tests {
    use super::super::deployment::tests::run;
    use super::*;

    #[test]
    fn an_iteration_is_the_slowest_computation_and_two_latencies() {
        let config = ParameterServerConfig {
            iterations: 20,
            model_bytes: 1_000_001,
            compute_time: Span::from_ms(3),
            compute_jitter: Span::ZERO,
        };
        let model = super::super::family::Model::ParameterServer(config);
        let hosts: &[&[u32]] = &[&[0, 1, 2], &[3, 4]];
        let outcome = run(model, ParameterServerConfig::ROLES, hosts);
        assert_eq!(outcome.measures["iteration"], (60, 3_100.0));
        assert_eq!(outcome.measures["communication"], (60, 100.0));
        let bytes: u64 = outcome.ideal.rows.iter().map(|row| row.payload).sum();
        assert_eq!(bytes, 20 * 3 * 2 * 1_000_001);
        assert_eq!(outcome.ideal.rows.len(), 20 * 3 * 2 * 2);
    }
}
