//! Choices among equal paths from other crates: the interface for a mechanism crate (`eastwest new`).
//!
//! A [`RoutingModel`] has the settings of a scenario: from it every switch gets its own [`CustomRouting`],
//! which is called for every packet that has more than one shortest path. The fabric computes the paths, also
//! when links fail.

use super::chooser::{Chooser, RoutingSettings};
use super::query::{Query, SwitchPlace, View};
use crate::link::Link;
use crate::pool::Stored;
use crate::queue::Backlog;
use eastwest_settings::Section;
use eastwest_types::{HostId, Rate, Span, Time};
use std::fmt;
use std::sync::Arc;

/// Choice among equal paths at one switch, from another crate: settings and state.
pub trait CustomRouting: fmt::Debug + Send {
    /// Returns the number of the path that a packet takes, below [`Choice::paths`]; a larger number is taken
    /// modulo the number of paths.
    fn choose(&mut self, choice: &Choice) -> usize;
}

/// Settings of a choice among equal paths from another crate, from which the choice of each switch
/// is made.
pub trait RoutingModel: fmt::Debug + Send + Sync {
    /// Returns the state of a switch before any packet.
    fn start(&self, place: &SwitchPlace) -> Box<dyn CustomRouting>;
}

/// A packet with several possible paths.
#[derive(Clone, Copy)]
pub struct Choice<'f> {
    /// Simulated time.
    pub now: Time,
    /// Receiving host.
    pub dst: HostId,
    /// 15 bits of a seeded hash of the five-tuple: equal for all packets of a connection in this direction.
    pub flow_hash: u16,
    /// The packet for which a path is chosen.
    pub packet: &'f Stored,
    /// Number of the link on which the packet entered the switch.
    pub ingress: u32,
    members: &'f [u32],
    links: &'f [Link],
}

impl Choice<'_> {
    /// Returns the number of paths, at least two. Their order does not change while no link fails.
    pub fn paths(&self) -> usize {
        self.members.len()
    }

    /// Returns the number of the link of a path, which stays its own: the number of a path may change when
    /// another path fails, or comes back. A path that has failed is no longer among the paths as soon as the
    /// fabric has new routes.
    pub fn port(&self, path: usize) -> u32 {
        self.members[path]
    }

    /// Returns the path on a link; `None` if none of the paths is on it.
    pub fn path_of(&self, port: u32) -> Option<usize> {
        self.members.iter().position(|&link| link == port)
    }

    /// Returns the time until the port of a path will have sent all its packets, the one that is being sent
    /// included.
    pub fn clears_in(&self, path: usize) -> Span {
        let clear_at = self.link(path).clear_at(self.packet.dscp());
        Span(clear_at.0.saturating_sub(self.now.0))
    }

    /// Returns the backlog at the port of a path, without the packet that is being sent.
    pub fn waiting(&self, path: usize) -> Backlog {
        let (packets, bytes) = self.link(path).queue(self.now);
        Backlog { packets: packets as usize, bytes }
    }

    /// Returns the rate of the link of a path.
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

/// State of a choice among equal paths from another crate, one for every switch.
pub struct Custom(Vec<Box<dyn CustomRouting>>);

impl Chooser for Custom {
    fn choose<'f>(&mut self, query: &Query, _: &mut u32, view: impl FnOnce() -> View<'f>) -> usize {
        let &Query { switch, dst, flow_hash, members } = query;
        let View { now, packet, links, ingress } = view();
        let choice = Choice { now, dst, flow_hash, packet, ingress, members, links };
        self.0[switch as usize].choose(&choice) % members.len()
    }
}
