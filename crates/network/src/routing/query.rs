//! Input of a choice among equal paths: the packet with its possible ports, and the state of the network.

use crate::link::Link;
use crate::pool::Stored;
use eastwest_engine::random::Stream;
use eastwest_types::{HostId, Time};

/// A packet at a switch with several ports on shortest paths to its host.
pub struct Query<'f> {
    /// Number of the switch, from 0.
    pub switch: u32,
    /// Host that receives the packet.
    pub dst: HostId,
    /// Hash of the flow, see [`eastwest_types::Packet::hash`].
    pub flow_hash: u16,
    /// Numbers of the links of the possible ports.
    pub members: &'f [u32],
}

/// State of the network that a choice among equal paths may read.
pub struct View<'f> {
    /// Simulated time.
    pub now: Time,
    /// The packet for which a port is chosen.
    pub packet: &'f Stored,
    /// All links of the fabric, by number.
    pub links: &'f [Link],
    /// Link on which the packet entered the switch. The port towards its last node is the
    /// [reverse](crate::topology::reverse) of that link, by which a switch that reads [CNMs](crate::dcb::Cnm)
    /// learns which of its ports leads to the congestion.
    pub ingress: u32,
    /// [Tag](super::Transit::tag) of the packet; 0 without routing that sees every packet.
    pub tag: u64,
}

/// Number of a switch at which packets choose among equal paths, and seed of the run.
#[derive(Clone, Copy, Debug)]
pub struct SwitchPlace {
    /// Number of the switch, from 0.
    pub switch: u32,
    /// Seed of the run.
    pub seed: u64,
}

impl SwitchPlace {
    /// Returns the stream of random numbers named `what`; each switch has its own.
    pub fn random(&self, what: &str) -> Stream {
        Stream::new(self.seed, &format!("routing/{what}/{}", self.switch))
    }
}
