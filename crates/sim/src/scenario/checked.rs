//! A checked scenario: the result of reading a scenario file.

use super::classes::TrafficClassConfig;
use super::fidelity::Fidelity;
use super::files::Attached;
use super::measure::MeasureConfig;
use super::workload::spec::WorkloadSpec;
use crate::endpoint_settings::TcpOverride;
use crate::processing::ProcessingConfig;
use crate::stream_transports::FurtherSettings;
use crate::switch_power::SwitchPower;
use eastwest_network::config::FabricConfig;
use eastwest_transport::tcp::config::TcpConfig;
use eastwest_types::Span;

/// Version of the scenario format that this program reads, the key `schema`.
pub const SCHEMA: u32 = 1;

/// A checked scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Version of the scenario format, the key `schema`.
    pub schema: u32,
    /// Name of the scenario.
    pub name: String,
    /// Seed of all random streams.
    pub seed: u64,
    /// Level of detail: whether packets or flows are simulated.
    pub fidelity: Fidelity,
    /// Simulated time at which the run ends even if workloads have not finished; `None`: the run
    /// ends when all workloads have finished.
    pub duration: Option<Span>,
    /// Settings of the network: nodes, cables, queues, routes.
    pub fabric: FabricConfig,
    /// Power model of switches, for the energy in the results.
    pub switch_power: SwitchPower,
    /// Settings of every TCP endpoint that matches no override in `tcp_overrides`.
    pub tcp: TcpConfig,
    /// TCP settings of some endpoints (`[[tcp.override]]`). For each endpoint the first override
    /// applies whose filters match.
    pub tcp_overrides: Vec<TcpOverride>,
    /// Settings of the transports other than TCP that workloads use.
    pub further: FurtherSettings,
    /// Times that hosts need to process packets; `None`: zero.
    pub hosts: Option<ProcessingConfig>,
    /// Traffic classes, indexed by [`eastwest_types::ClassId`].
    pub classes: Vec<TrafficClassConfig>,
    /// Workloads of the scenario, in the order of the file.
    pub workloads: Vec<WorkloadSpec>,
    /// Settings of the measurements of the run.
    pub measure: MeasureConfig,
    /// Notes to the user about unusual but valid settings.
    pub notes: Vec<String>,
    /// Files that the scenario reads. The scenario text with all defaults uses the names of this
    /// list, so a program that stores the text must store the files beside it.
    pub attached: Vec<Attached>,
    /// The scenario as TOML text with all defaults.
    pub(super) resolved: String,
}

impl Scenario {
    /// Returns the scenario as TOML text with all defaults. If a program reads this text, with the
    /// files [`Scenario::attached`] beside it, it gets an equal scenario.
    pub fn resolved(&self) -> &str {
        &self.resolved
    }
}
