//! Settings of a replayed MPI program.

use super::collective::Algorithms;
use super::trace::Program;
use eastwest_types::{ClassId, HostId, Rate, Span};
use serde::{Deserialize, Serialize};

/// Settings of a replayed MPI program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MpiConfig {
    /// Program: source of the records of its ranks.
    pub program: Program,
    /// Host of each rank.
    pub hosts: Vec<HostId>,
    /// Floating-point operations per second of a core.
    pub flops_per_s: f64,
    /// Factor by which all computing times are multiplied.
    pub compute_scale: f64,
    /// Bytes of the largest eager message, which is sent without a rendezvous.
    pub eager_limit: u64,
    /// Bytes of the envelope that is sent with each message.
    pub envelope: u32,
    /// Latency of messages within a host.
    pub local_latency: Span,
    /// Memory bandwidth for messages within a host.
    pub local_rate: Rate,
    /// Bytes of a full frame without link framing, if messages are sent as [parcels](crate::Parcel)
    /// on a lossless network; `None` for TCP connections.
    pub frame: Option<u16>,
    /// Algorithms of collectives.
    pub algorithms: Algorithms,
    /// Number of records of all ranks, for the progress bar; 0 if unknown.
    pub records: u64,
    /// Traffic class of all packets.
    pub class: ClassId,
}

impl MpiConfig {
    /// Default of `flops_per_s`: that of SimGrid's example platforms.
    pub const FLOPS_PER_S: f64 = 1e9;
    /// Default of `eager_limit`: that of Open MPI over TCP (`btl_tcp_eager_limit`) and of SimGrid
    /// (`smpi/send-is-detached-thresh`).
    pub const EAGER_LIMIT: u64 = 65_536;
    /// Default of `envelope`: about the size of Open MPI's TCP and matching headers.
    pub const ENVELOPE: u32 = 32;
    /// Default of `local_latency`: shared memory of current machines.
    pub const LOCAL_LATENCY: Span = Span::from_ns(500);
    /// Default of `local_rate`: shared memory of current machines, 5 GB/s.
    pub const LOCAL_RATE: Rate = Rate::gbit(40);
    /// Largest number of ranks of a program.
    pub const MOST_RANKS: u32 = 65_536;
}
