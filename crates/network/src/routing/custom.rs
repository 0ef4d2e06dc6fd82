//! Interface for choices among equal paths from other crates (`eastwest new` creates such a crate).
//!
//! A [`RoutingModel`] contains the settings of the choice, and creates a [`CustomRouting`] for
//! every switch. The switch calls its [`CustomRouting`] for every packet with more than one
//! shortest path. The fabric computes the paths, and computes them again when links fail or are
//! repaired.

use super::chooser::{Chooser, RoutingSettings};
use super::query::{Query, SwitchPlace, View};
use crate::link::Link;
use crate::pool::Stored;
use crate::queue::Backlog;
use crate::topology::Graph;
use eastwest_settings::Section;
use eastwest_types::{HostId, Rate, Span, Time};
use std::fmt;
use std::sync::Arc;

/// Choice among equal paths at one switch, implemented in another crate: settings and state.
pub trait CustomRouting: fmt::Debug + Send {
    /// Returns the number of the path for a packet, below [`Choice::paths`]. A larger number is
    /// reduced modulo the number of paths.
    fn choose(&mut self, choice: &Choice) -> usize;

    /// Handles a packet that the switch is about to enqueue at a port, after the call of
    /// [`CustomRouting::choose`] if the packet has several paths. Called only if the model [sees
    /// all packets](RoutingModel::sees_all).
    fn forward(&mut self, transit: &mut Transit) {
        let _ = transit;
    }
}

/// Settings of a choice among equal paths from another crate, from which the state of each switch
/// is created.
pub trait RoutingModel: fmt::Debug + Send + Sync {
    /// Returns the state of the choice at the switch `place`, before the first packet.
    fn start(&self, place: &SwitchPlace) -> Box<dyn CustomRouting>;

    /// Whether [`CustomRouting::forward`] is called for every packet at every switch, also for
    /// packets with a single path. Runs are faster without these calls.
    fn sees_all(&self) -> bool {
        false
    }
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
    /// Number of the switch, from 0, to which the receiving host is attached.
    pub edge: u32,
    /// [Tag](Transit::tag) of the packet; 0 if the model does not see all packets.
    pub tag: u64,
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
    /// of a path may change when another path fails or is repaired. A failed path is left out from
    /// the time at which the fabric has computed new routes.
    pub fn port(&self, path: usize) -> u32 {
        self.members[path]
    }

    /// Returns the path whose first link is `port`; `None` if no path has this first link.
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
        self.link(path).rate()
    }

    /// Returns the bytes, framing included, that the link of a path has delivered to its far end
    /// since the start of the run.
    pub fn delivered(&self, path: usize) -> u64 {
        self.link(path).counters().bytes
    }

    fn link(&self, path: usize) -> &Link {
        &self.links[self.members[path] as usize]
    }
}

/// A packet that a switch is about to enqueue at a port.
#[derive(Clone, Copy)]
pub struct Transit<'f> {
    /// Simulated time.
    pub now: Time,
    /// Receiving host.
    pub dst: HostId,
    /// Hash of the flow: 15 bits of a seeded hash of the five-tuple, equal for all packets that a
    /// connection sends in this direction.
    pub flow_hash: u16,
    /// The packet that the switch forwards.
    pub packet: &'f Stored,
    /// Number of the link on which the packet entered the switch.
    pub ingress: u32,
    /// Number of the link on which the packet leaves the switch.
    pub port: u32,
    /// Number of the switch, from 0, to which the receiving host is attached.
    pub edge: u32,
    /// Whether the packet has entered the switch from a host, so that this is its first switch.
    pub from_host: bool,
    /// Whether the packet leaves to the receiving host, so that this is its last switch.
    pub to_host: bool,
    /// Bytes of the packet on the link, framing included.
    pub wire_bytes: u32,
    /// Number that the packet carries from switch to switch: 0 at the first switch, then the value
    /// that the previous switch has written. Receivers and queue disciplines cannot read the tag.
    pub tag: u64,
    pub(crate) links: &'f [Link],
}

impl Transit<'_> {
    fn link(&self) -> &Link {
        &self.links[self.port as usize]
    }

    /// Returns the current rate of the link on which the packet leaves.
    pub fn rate(&self) -> Rate {
        self.link().rate()
    }

    /// Returns the backlog at the port, without this packet and the packet in transmission.
    pub fn waiting(&self) -> Backlog {
        let (packets, bytes) = self.link().queue(self.now);
        Backlog { packets: packets as usize, bytes }
    }

    /// Returns the time until the port will have sent all its packets, without this packet.
    pub fn clears_in(&self) -> Span {
        Span(self.link().clear_at(self.packet.dscp()).0.saturating_sub(self.now.0))
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
        let switches = (0..switches).map(|switch| self.0.start(&SwitchPlace { switch, seed }));
        Custom { switches: switches.collect(), edges: Vec::new(), sees_all: self.0.sees_all() }
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

/// States of a choice among equal paths from another crate, one state for every switch.
pub struct Custom {
    switches: Vec<Box<dyn CustomRouting>>,
    /// By host, the number of the switch of its first card.
    edges: Vec<u32>,
    sees_all: bool,
}

impl Custom {
    /// Whether [`Custom::forward`] must be called for every packet.
    pub(super) fn sees_all(&self) -> bool {
        self.sees_all
    }

    /// Sets the edge switch of each host.
    pub(super) fn attach(&mut self, graph: &Graph) {
        self.edges = vec![0; graph.hosts as usize];
        // The first cable of a host is its first card; in reverse order, it is written last.
        for cable in graph.cables.iter().rev().filter(|cable| cable.a < graph.hosts) {
            self.edges[cable.a as usize] = cable.b - graph.hosts;
        }
    }

    /// Calls [`CustomRouting::forward`] of a switch for a packet. Returns the tag with which the
    /// packet leaves.
    pub(super) fn forward(&mut self, switch: u32, mut transit: Transit) -> u64 {
        transit.edge = self.edges[transit.dst.0 as usize];
        self.switches[switch as usize].forward(&mut transit);
        transit.tag
    }
}

impl Chooser for Custom {
    fn choose<'f>(&mut self, query: &Query, _: &mut u32, view: impl FnOnce() -> View<'f>) -> usize {
        let &Query { switch, dst, flow_hash, members } = query;
        let View { now, packet, links, ingress, tag } = view();
        let edge = self.edges[dst.0 as usize];
        let choice = Choice { now, dst, flow_hash, packet, ingress, edge, tag, members, links };
        self.switches[switch as usize].choose(&choice) % members.len()
    }
}
