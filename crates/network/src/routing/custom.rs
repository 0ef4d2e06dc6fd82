//! Interface for choices among equal paths from other crates (`eastwest new` creates such a crate).
//!
//! A [`RoutingModel`] contains the settings of the choice. From it every switch gets its own
//! [`CustomRouting`], which is called for every packet with more than one shortest path. The fabric
//! computes the paths, again after links have failed.

use super::chooser::{Chooser, RoutingSettings};
use super::query::{Query, SwitchPlace, View};
use crate::link::Link;
use crate::pool::Stored;
use crate::queue::Backlog;
use eastwest_settings::Section;
use eastwest_types::{HostId, Rate, Span, Time};
use std::fmt;
use std::sync::Arc;

/// Choice among equal paths at one switch, implemented in another crate: settings and state.
pub trait CustomRouting: fmt::Debug + Send {
    /// Returns the number of the path that a packet takes, below [`Choice::paths`]. A larger number
    /// is reduced modulo the number of paths.
    fn choose(&mut self, choice: &Choice) -> usize;
}

/// Settings of a choice among equal paths from another crate, from which the state of each switch
/// is created.
pub trait RoutingModel: fmt::Debug + Send + Sync {
    /// Returns the state of the choice at the switch `place`, before the first packet.
    fn start(&self, place: &SwitchPlace) -> Box<dyn CustomRouting>;
}

/// A packet that has several possible paths at a switch.
#[derive(Clone, Copy)]
pub struct Choice<'f> {
    /// Simulated time.
    pub now: Time,
    /// Receiving host.
    pub dst: HostId,
    /// Hash of the flow: 15 bits of a seeded hash of the five-tuple, equal for all packets that a
    /// connection sends in this direction.
    pub flow_hash: u16,
    /// The packet for which a path is chosen.
    pub packet: &'f Stored,
    /// Number of the link on which the packet entered the switch.
    pub ingress: u32,
    members: &'f [u32],
    links: &'f [Link],
}

impl Choice<'_> {
    /// Returns the number of paths, at least two. The order of paths changes only when a link fails
    /// or is repaired.
    pub fn paths(&self) -> usize {
        self.members.len()
    }

    /// Returns the number of the first link of a path. This number never changes, while the number
    /// of a path may change when another path fails or is repaired. A failed path is left out as
    /// soon as the fabric has computed new routes.
    pub fn port(&self, path: usize) -> u32 {
        self.members[path]
    }

    /// Returns the path whose first link is `port`; `None` if there is none.
    pub fn path_of(&self, port: u32) -> Option<usize> {
        self.members.iter().position(|&link| link == port)
    }

    /// Returns the time until the port of a path will have sent all its packets, including the
    /// packet in transmission.
    pub fn clears_in(&self, path: usize) -> Span {
        let clear_at = self.link(path).clear_at(self.packet.dscp());
        Span(clear_at.0.saturating_sub(self.now.0))
    }

    /// Returns the backlog at the port of a path, without the packet in transmission.
    pub fn waiting(&self, path: usize) -> Backlog {
        let (packets, bytes) = self.link(path).queue(self.now);
        Backlog { packets: packets as usize, bytes }
    }

    /// Returns the rate of the first link of a path.
    pub fn rate(&self, path: usize) -> Rate {
        self.link(path).cable.rate
    }

    fn link(&self, path: usize) -> &Link {
        &self.links[self.members[path] as usize]
    }
}

/// Settings of a choice among equal paths from another crate.
#[derive(Clone, Debug)]
pub struct CustomRoutingConfig(pub Arc<dyn RoutingModel>);

impl PartialEq for CustomRoutingConfig {
    fn eq(&self, other: &CustomRoutingConfig) -> bool {
        format!("{:?}", self.0) == format!("{:?}", other.0)
    }
}

impl RoutingSettings for CustomRoutingConfig {
    type Chooser = Custom;

    fn start(&self, switches: u32, seed: u64) -> Custom {
        Custom((0..switches).map(|switch| self.0.start(&SwitchPlace { switch, seed })).collect())
    }

    fn weighs(&self) -> bool {
        false
    }

    fn looks_at_queues(&self) -> bool {
        true
    }
}

/// Function that reads the settings of a choice among equal paths from another crate.
pub type ReadRouting = dyn Fn(&mut Section) -> Arc<dyn RoutingModel> + Send + Sync;

/// State of a choice among equal paths from another crate: one value for each switch.
pub struct Custom(Vec<Box<dyn CustomRouting>>);

impl Chooser for Custom {
    fn choose<'f>(&mut self, query: &Query, _: &mut u32, view: impl FnOnce() -> View<'f>) -> usize {
        let &Query { switch, dst, flow_hash, members } = query;
        let View { now, packet, links, ingress } = view();
        let choice = Choice { now, dst, flow_hash, packet, ingress, members, links };
        self.0[switch as usize].choose(&choice) % members.len()
    }
}
