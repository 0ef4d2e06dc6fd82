//! A checked scenario.

use super::classes::TrafficClassConfig;
use super::fidelity::Fidelity;
use super::files::Attached;
use super::measure::MeasureConfig;
use super::workload::spec::WorkloadSpec;
use crate::endpoint_settings::TcpOverride;
use crate::switch_power::SwitchPower;
use eastwest_network::config::FabricConfig;
use eastwest_transport::rocev2::RoceV2Config;
use eastwest_transport::tcp::config::TcpConfig;
use eastwest_types::Span;

/// Version of the scenario format this program reads.
pub const SCHEMA: u32 = 1;

/// A checked scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Version of the format.
    pub schema: u32,
    /// Its name.
    pub name: String,
    /// Seed of all random streams.
    pub seed: u64,
    /// Packets, or flows in their place.
    pub fidelity: Fidelity,
    /// When the simulation ends even if there is work left; `None` when it ends with its work.
    pub duration: Option<Span>,
    /// Nodes, cables, queues, routes.
    pub fabric: FabricConfig,
    /// What switches draw.
    pub switch_power: SwitchPower,
    /// Settings of every TCP endpoint that no override matches.
    pub tcp: TcpConfig,
    /// Settings of some endpoints: the first that matches counts.
    pub tcp_overrides: Vec<TcpOverride>,
    /// Settings of all queue pairs, where a workload has such.
    pub rocev2: Option<RoceV2Config>,
    /// Traffic classes, by [`eastwest_types::ClassId`].
    pub classes: Vec<TrafficClassConfig>,
    /// What drives the network.
    pub workloads: Vec<WorkloadSpec>,
    /// What is sampled.
    pub measure: MeasureConfig,
    /// What the user should know, though nothing is wrong.
    pub notes: Vec<String>,
    /// Files the scenario refers to, under the names of the resolved text. They belong beside it.
    pub attached: Vec<Attached>,
    pub(super) resolved: String,
}

impl Scenario {
    /// The scenario as TOML with every default spelled out. Reading it, with [`Scenario::attached`]
    /// beside it, gives the same scenario.
    pub fn resolved(&self) -> &str {
        &self.resolved
    }
}
