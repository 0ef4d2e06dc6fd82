//! What a run is made of: the checked scenario with nothing left to decide.

use eastwest_network::config::FabricConfig;
use eastwest_transport::tcp::config::TcpConfig;
use eastwest_types::{Span, Time};
use eastwest_workload::Workload;

/// A traffic class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassPlan {
    /// Name in tables.
    pub name: String,
    /// Priority 0–7 of its packets.
    pub priority: u8,
}

/// A workload and how it takes part.
pub struct WorkloadPlan {
    /// Name in tables.
    pub name: String,
    /// Whether the run may end without it.
    pub background: bool,
    /// The state machine.
    pub workload: Workload,
}

/// Everything a run needs.
pub struct Plan {
    /// Seed of all random streams.
    pub seed: u64,
    /// The run ends here at the latest.
    pub until: Time,
    /// Links, switches, routes.
    pub fabric: FabricConfig,
    /// Settings of all TCP endpoints.
    pub tcp: TcpConfig,
    /// Traffic classes; actions name them by index.
    pub classes: Vec<ClassPlan>,
    /// What drives the network.
    pub workloads: Vec<WorkloadPlan>,
    /// Time between samples; `None` starts at 1 ms and adapts.
    pub sample_interval: Option<Span>,
}
