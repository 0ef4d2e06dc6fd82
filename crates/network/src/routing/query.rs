//! Input of a choice among equal paths: the packet, its possible ports, and the state of the
//! network.

use crate::link::Link;
use crate::pool::Stored;
use eastwest_engine::random::Stream;
use eastwest_types::{HostId, Time};

/// A packet at a switch with several ports on shortest paths to the receiver.
pub struct Query<'f> {
    /// Number of the switch, counted from 0 among switches.
    pub switch: u32,
    /// Host that receives the packet.
    pub dst: HostId,
    /// Hash of the flow, see [`eastwest_types::Packet::hash`].
    pub flow_hash: u16,
    /// Numbers of the links of the possible ports.
    pub members: &'f [u32],
}

/// State of the network that a policy may read when it chooses among equal paths.
pub struct View<'f> {
    /// Simulated time.
    pub now: Time,
    /// The packet for which a port is chosen.
    pub packet: &'f Stored,
    /// All links of the fabric, by number.
    pub links: &'f [Link],
    /// Link on which the packet entered the switch. Its [reverse](crate::topology::reverse) is the
    /// link towards the previous node. For a congestion notification message
    /// ([`Cnm`](crate::dcb::Cnm)), this reverse link is the port of the switch that leads to the
    /// congestion.
    pub ingress: u32,
    /// [Tag](super::Transit::tag) of the packet; 0 without routing that sees every packet.
    pub tag: u64,
}

/// Properties of a switch that chooses among equal paths: its number, and the seed of the run.
#[derive(Clone, Copy, Debug)]
pub struct SwitchPlace {
    /// Number of the switch, counted from 0 among switches.
    pub switch: u32,
    /// Seed of the run.
    pub seed: u64,
}

impl SwitchPlace {
    /// Returns the stream of random numbers named `what` of this switch; each switch has its own
    /// stream.
    pub fn random(&self, what: &str) -> Stream {
        Stream::new(self.seed, &format!("routing/{what}/{}", self.switch))
    }
}
