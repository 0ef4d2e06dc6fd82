//! Settings of the replay of an MPI program.

use super::collective::Algorithms;
use super::groups::Groups;
use super::trace::Program;
use eastwest_types::{ClassId, HostId, Rate, Span};
use serde::{Deserialize, Serialize};

/// Settings of the replay of an MPI program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MpiConfig {
    /// Program to replay: source of the records (actions) of its ranks.
    pub program: Program,
    /// Groups of ranks that the program defines ([`check`](super::check::check) returns them).
    pub groups: Groups,
    /// Host of each rank, by rank number.
    pub hosts: Vec<HostId>,
    /// Floating-point operations that a core executes per second.
    pub flops_per_s: f64,
    /// Factor by which all computing times of the program are multiplied.
    pub compute_scale: f64,
    /// Largest message in bytes that is sent eagerly, that is at once; larger messages need a
    /// rendezvous with the receiver first.
    pub eager_limit: u64,
    /// Bytes of the envelope that is sent with each message (MPI header).
    pub envelope: u32,
    /// Processor time of the sender for each message of the program, before the message is sent: the
    /// parameter o of LogP (Culler et al. 1993). In a graph it occupies stream 0.
    pub send_overhead: Span,
    /// Processor time of the receiver for each message of the program, after its arrival.
    pub receive_overhead: Span,
    /// Time of the processor or proxy thread of a rank for each message of a collective call that
    /// crosses the network: before the message leaves, and after it has arrived. Messages of a rank
    /// wait for each other.
    pub chunk_overhead: Span,
    /// Latency of a message between two ranks on one host.
    pub local_latency: Span,
    /// Rate of messages between two ranks on one host.
    pub local_rate: Rate,
    /// Whether each rank has one port of this rate to a switch inside its host, in each direction;
    /// otherwise each pair of ranks has a path of its own.
    pub local_switch: bool,
    /// Bytes of a full frame without link framing, if messages are sent as [parcels](crate::Parcel)
    /// of Ethernet frames on a lossless network; `None`: messages use TCP connections.
    pub frame: Option<u16>,
    /// Algorithm of each kind of collective call.
    pub algorithms: Algorithms,
    /// Number of records of all ranks together, for the progress bar; 0 if unknown.
    pub records: u64,
    /// Traffic class of all packets of the program.
    pub class: ClassId,
}

impl MpiConfig {
    /// Default of `flops_per_s`: 10⁹ operations per second, the value of SimGrid's example
    /// platforms.
    pub const FLOPS_PER_S: f64 = 1e9;
    /// Default of `eager_limit`: 65,536 bytes, the value of Open MPI over TCP
    /// (`btl_tcp_eager_limit`) and of SimGrid (`smpi/send-is-detached-thresh`).
    pub const EAGER_LIMIT: u64 = 65_536;
    /// Default of `envelope`: 32 bytes, about the sum of Open MPI's TCP header and matching header.
    pub const ENVELOPE: u32 = 32;
    /// Default of `local_latency`: 500 ns, the latency of shared memory on current machines.
    pub const LOCAL_LATENCY: Span = Span::from_ns(500);
    /// Default of `local_rate`: the bandwidth of shared memory on current machines, 5 GB/s.
    pub const LOCAL_RATE: Rate = Rate::gbit(40);
    /// Largest number of ranks of an MPI program.
    pub const MOST_RANKS: u32 = 65_536;
}
