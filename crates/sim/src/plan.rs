//! Plan of a run: the settings and workloads that the simulation needs, made from a checked
//! scenario.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

use crate::endpoint_settings::TcpOverride;
use crate::processing::ProcessingConfig;
use crate::scenario::{MeasureConfig, Scenario, racks};
use crate::stream_transports::FurtherSettings;
pub use crate::stream_transports::Transport;
use crate::switch_power::SwitchPower;
use eastwest_engine::random::Stream;
use eastwest_network::config::FabricConfig;
use eastwest_transport::tcp::config::TcpConfig;
use eastwest_types::Time;
use eastwest_workload::{Cluster, Workload};
use serde::{Deserialize, Serialize};

/// A traffic class: its name, and the codepoint (DSCP) of its packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassPlan {
    /// Name of the traffic class in the tables of results.
    pub name: String,
    /// Differentiated services codepoint (DSCP) of the packets of the class, 0–63.
    pub dscp: u8,
}

/// A workload and its role in a run: name, transport, and whether the run waits for the end of the
/// workload.
pub struct WorkloadPlan {
    /// Name of the workload in the tables of results.
    pub name: String,
    /// Whether the run may end before this workload has finished.
    pub background: bool,
    /// Transport of the workload's connections.
    pub transport: Transport,
    /// State machine of the workload.
    pub workload: Workload,
}

/// Plan of a run: all settings that the simulation needs.
pub struct Plan {
    /// Seed of all random number streams of the run.
    pub seed: u64,
    /// Simulated time at which the run ends at the latest; [`Time::NEVER`] if it ends when its
    /// workloads have finished.
    pub until: Time,
    /// Settings of the network: links, switches, routes.
    pub fabric: FabricConfig,
    /// Power model of switches.
    pub switch_power: SwitchPower,
    /// Settings of all TCP endpoints that no override matches.
    pub tcp: TcpConfig,
    /// Overrides of TCP settings for some endpoints; the first override that matches an endpoint
    /// applies.
    pub tcp_overrides: Vec<TcpOverride>,
    /// Settings of the transports beside TCP that workloads use, such as RoCEv2.
    pub further: FurtherSettings,
    /// Settings of the processing of packets by hosts; `None`: hosts process packets in zero time.
    pub hosts: Option<ProcessingConfig>,
    /// Traffic classes; workloads refer to a class by its index.
    pub classes: Vec<ClassPlan>,
    /// Workloads of the run.
    pub workloads: Vec<WorkloadPlan>,
    /// Settings of the measurements of the run.
    pub measure: MeasureConfig,
}

impl Plan {
    /// Returns the plan of a checked scenario. Workloads whose settings contradict the fabric were
    /// refused when the scenario was read, so an error here is a defect of Eastwest.
    pub fn new(scenario: &Scenario) -> Result<Plan, Vec<String>> {
        let rack_of = racks(&scenario.fabric.topology);
        let mut workloads = Vec::new();
        for spec in &scenario.workloads {
            // Each workload has its own seed, so that two workloads of one kind draw different
            // random numbers.
            let seed = Stream::new(scenario.seed, &format!("workload/{}", spec.name)).next_u64();
            let cluster = Cluster { rack_of: rack_of.clone(), seed };
            workloads.push(WorkloadPlan {
                name: spec.name.clone(),
                background: spec.background,
                transport: spec.transport,
                workload: spec.kind.build(&cluster)?,
            });
        }
        Ok(Plan {
            seed: scenario.seed,
            until: scenario.duration.map_or(Time::NEVER, |d| Time::ZERO + d),
            fabric: FabricConfig {
                measured: scenario.measure.ports.clone(),
                ..scenario.fabric.clone()
            },
            switch_power: scenario.switch_power,
            tcp: scenario.tcp.clone(),
            tcp_overrides: scenario.tcp_overrides.clone(),
            further: scenario.further.clone(),
            hosts: scenario.hosts,
            classes: scenario
                .classes
                .iter()
                .map(|c| ClassPlan { name: c.name.clone(), dscp: c.dscp })
                .collect(),
            workloads,
            measure: scenario.measure.clone(),
        })
    }
}
