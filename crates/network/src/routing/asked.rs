//! What a choice among equal paths is asked, and what it may look at.

use crate::link::Link;
use crate::pool::Stored;
use eastwest_engine::random::Stream;
use eastwest_types::{HostId, Time};

/// A packet at a switch with several ports for it.
pub struct Asked<'f> {
    /// The switch.
    pub switch: u32,
    /// Receiving host.
    pub dst: HostId,
    /// See [`eastwest_types::Packet::hash`].
    pub flow_hash: u16,
    /// The links of these ports.
    pub members: &'f [u32],
}

/// State of the network that a choice may look at.
pub struct View<'f> {
    /// Simulated time.
    pub now: Time,
    /// The packet.
    pub packet: &'f Stored,
    /// All links.
    pub links: &'f [Link],
    /// The link it came on. The port towards where it comes from is `ingress ^ 1`, which is how a switch
    /// that looks at [messages](crate::dcb::Cnm) learns which of its ports leads to congestion.
    pub ingress: u32,
}

/// Number and seed of the switch that a choice is made at.
#[derive(Clone, Copy, Debug)]
pub struct SwitchPlace {
    /// Number of the switch, from 0.
    pub switch: u32,
    /// Seed of the run.
    pub seed: u64,
}

impl SwitchPlace {
    /// The stream of random numbers of this name: one of its own for each switch.
    pub fn random(&self, what: &str) -> Stream {
        Stream::new(self.seed, &format!("routing/{what}/{}", self.switch))
    }
}
