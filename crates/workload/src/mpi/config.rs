//! Settings of a replayed MPI program.

use super::collective::Algorithms;
use super::trace::Program;
use eastwest_types::{ClassId, HostId, Rate, Span};
use serde::{Deserialize, Serialize};

/// Settings of a replayed MPI program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MpiConfig {
    /// What its ranks do.
    pub program: Program,
    /// Where they are: the host of each.
    pub hosts: Vec<HostId>,
    /// Floating-point operations per second of a core.
    pub flops_per_s: f64,
    /// What computing times are multiplied by.
    pub compute_scale: f64,
    /// Bytes of the largest message that is sent unasked.
    pub eager_limit: u64,
    /// Bytes that accompany each message on the wire.
    pub envelope: u32,
    /// Time of the smallest message within a host.
    pub local_latency: Span,
    /// Rate of memory, for messages within a host.
    pub local_rate: Rate,
    /// Bytes of a full frame without link framing, where messages travel as [parcels](crate::Parcel) on a
    /// network that loses none; over connections else.
    pub frame: Option<u16>,
    /// How collectives are done.
    pub algorithms: Algorithms,
    /// How many records all ranks have, for the progress bar; 0 where that is not known.
    pub records: u64,
    /// Class of all packets.
    pub class: ClassId,
}

impl MpiConfig {
    /// Default of `flops_per_s`: that of SimGrid's example platforms.
    pub const FLOPS_PER_S: f64 = 1e9;
    /// Default of `eager_limit`: that of Open MPI over TCP (`btl_tcp_eager_limit`) and of SimGrid
    /// (`smpi/send-is-detached-thresh`).
    pub const EAGER_LIMIT: u64 = 65_536;
    /// Default of `envelope`: about what Open MPI's TCP and matching headers take.
    pub const ENVELOPE: u32 = 32;
    /// Default of `local_latency`: shared memory of today's machines.
    pub const LOCAL_LATENCY: Span = Span::from_ns(500);
    /// Default of `local_rate`: likewise, 5 GB/s.
    pub const LOCAL_RATE: Rate = Rate::gbit(40);
    /// Most ranks.
    pub const MOST_RANKS: u32 = 65_536;
}
