//! Network of a run and the order of its events: links, switches, and timers of transports.

use crate::plan::ClassPlan;
use crate::processing::{Processing, ProcessingConfig, Segment, Work};
use eastwest_engine::order::{Class, Key};
use eastwest_engine::random::mix;
use eastwest_engine::timers::Timers;
use eastwest_engine::tournament::Tournament;
use eastwest_network::fabric::Fabric;
use eastwest_types::{ClassId, EndpointId, HostId, Packet, SackBlocks, Time};
use serde::{Deserialize, Serialize};

/// Sources of events other than links. In the event list, their numbers follow those of the links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Source {
    /// Timers of transports.
    Timers = 0,
    /// Wake-ups that workloads have requested.
    Wakes = 1,
    /// Samples over time.
    Samples = 2,
    /// Begins and ends of faults.
    Faults = 3,
    /// Work of the cores of hosts; only with `[hosts]`.
    Processing = 4,
}

impl Source {
    /// All sources, in the order of their numbers.
    const ALL: [Source; 5] =
        [Source::Timers, Source::Wakes, Source::Samples, Source::Faults, Source::Processing];
}

/// Links, switches, timers, and the list of next events.
#[derive(Serialize, Deserialize)]
pub struct Network {
    /// Simulated time.
    pub now: Time,
    /// Links, switches, packets.
    pub fabric: Fabric,
    /// Event list: the next event of every link and of every other source.
    pub sources: Tournament,
    /// Timers of transports.
    pub timers: Timers,
    /// Traffic classes.
    pub classes: Vec<ClassPlan>,
    /// Number of connections and datagrams so far. Flow hashes use it in place of the client's
    /// port.
    pub opened: u64,
    /// Cores of hosts, if hosts take time for packets.
    pub processing: Option<Box<Processing>>,
}

impl Network {
    /// Returns the network of a fabric, at time zero.
    pub fn new(
        mut fabric: Fabric,
        classes: Vec<ClassPlan>,
        hosts: Option<ProcessingConfig>,
        seed: u64,
    ) -> Network {
        let links = fabric.links.len();
        let processing = hosts.map(|c| Box::new(Processing::new(c, fabric.graph.hosts, seed)));
        // Without this source the event list is as short as possible.
        let others = Source::ALL.len() - usize::from(processing.is_none());
        fabric.halt_with(links as u32 + Source::Faults as u32);
        let mut network = Network {
            now: Time::ZERO,
            fabric,
            sources: Tournament::new(links + others, seed),
            timers: Timers::new(Class::Timer, seed),
            classes,
            opened: 0,
            processing,
        };
        network.set(Source::Faults, network.next_change());
        network
    }

    /// Returns the event source with this number in the event list; `None` if it is a link.
    pub fn source(&self, number: u32) -> Option<Source> {
        let number = number.checked_sub(self.fabric.links.len() as u32)?;
        Some(Source::ALL[number as usize])
    }

    /// Returns the number of an event source in the event list.
    pub fn number_of(&self, source: Source) -> u32 {
        self.fabric.links.len() as u32 + source as u32
    }

    /// Sets the next event of a source other than a link in the event list.
    pub fn set(&mut self, source: Source, next: Key) {
        self.sources.set(self.number_of(source), next);
    }

    /// Returns the event key of the next change of links by a fault; [`Key::NEVER`] if there is
    /// none.
    pub fn next_change(&self) -> Key {
        match self.fabric.next_change() {
            Time::NEVER => Key::NEVER,
            at => Key::new(at, Class::Change),
        }
    }

    /// Removes the earliest timer, which has expired. Returns the number with which it was armed.
    pub fn take_timer(&mut self) -> u64 {
        let id = self.timers.pop().expect("the timer list stood in the tree");
        self.set(Source::Timers, self.timers.first());
        id
    }

    /// Arms a timer of a transport that expires at time `at`; `id` identifies it then.
    #[inline]
    pub fn arm(&mut self, at: Time, id: u64) {
        if self.timers.push(at, id, id) {
            self.set(Source::Timers, self.timers.first());
        }
    }

    /// Enqueues a packet at the NIC of its host.
    #[inline]
    pub fn send(&mut self, from: HostId, packet: Packet, sack: Option<eastwest_types::SackBlocks>) {
        self.fabric.send(self.now, from, packet, sack, &mut self.sources);
    }

    /// Calls the cores of hosts and schedules their next event. Returns `None` if hosts take no time.
    fn process<R>(&mut self, act: impl FnOnce(&mut Processing, Time) -> R) -> Option<R> {
        let processing = self.processing.as_mut()?;
        let answer = act(processing, self.now);
        let first = processing.first();
        self.set(Source::Processing, first);
        Some(answer)
    }

    /// Lets a segment wait until a core of its host sends it.
    pub fn send_by_core(&mut self, from: HostId, segment: Segment) {
        self.process(|cores, now| cores.send(now, from, segment));
    }

    /// Enqueues a segment that a core has finished at the NIC of its host.
    pub fn send_segment(&mut self, from: HostId, segment: Segment) {
        if self.fabric.pool.keeps_remaining() {
            self.fabric.pool.set_remaining(segment.remaining);
        }
        self.send(from, segment.packet, segment.sack);
    }

    /// Puts a received segment into the ring of a core of its host.
    pub fn receive_by_core(&mut self, host: HostId, packet: Packet, sack: Option<SackBlocks>) {
        self.process(|cores, now| cores.receive(now, host, Segment { packet, sack, remaining: 0 }));
    }

    /// Adds the time of a message that an end of a connection writes or reads, if hosts take time.
    pub fn message_by_core(&mut self, host: HostId, end: EndpointId) {
        self.process(|cores, now| cores.message(now, host, end));
    }

    /// Removes the next event of the cores. Returns the work that it finishes, if any.
    pub fn next_work(&mut self) -> Option<Work> {
        self.process(Processing::next).flatten()
    }

    /// Returns the differentiated services codepoint (DSCP) of a traffic class.
    pub fn dscp(&self, class: ClassId) -> u8 {
        self.classes[usize::from(class.0)].dscp
    }

    /// Returns the flow hashes of a new connection, from client to server and back. Switches use
    /// them to choose among equal paths.
    pub fn hashes_of_new(&mut self, client: HostId, server: HostId) -> (u16, u16) {
        assert_ne!(client, server, "a host never talks to itself over the network");
        // Replaces the client's port: connections of a pair of hosts have different hashes.
        self.opened += 1;
        let tuple = mix(u64::from(client.0) << 32 | u64::from(server.0)) ^ self.opened;
        (
            self.fabric.flow_hash(client, server, mix(tuple)),
            self.fabric.flow_hash(server, client, mix(tuple ^ 1 << 63)),
        )
    }

    /// Returns a packet of `ip_len` IP bytes that belongs to no connection. The caller sets its
    /// payload, number and flow hash.
    pub fn datagram(&self, from: HostId, to: HostId, class: ClassId, ip_len: u16) -> Packet {
        Packet {
            born: self.now,
            dst_endpoint: EndpointId(u32::from(class.0)),
            ip_len,
            tos: self.dscp(class) << 2,
            notes: Packet::DATAGRAM,
            window: from.0,
            ..Packet::blank(to)
        }
    }

    /// Whether this world simulates the host; false only in a partitioned run.
    pub fn owns(&self, host: HostId) -> bool {
        self.fabric.partition.as_ref().is_none_or(|partition| partition.owns(host))
    }

    /// Returns the name of the port that sends into a link, such as `leaf0->h3`.
    pub fn port_name(&self, link: usize) -> String {
        let (names, link) = (&self.fabric.graph.names, &self.fabric.links[link]);
        format!("{}->{}", names[link.from as usize], names[link.to as usize])
    }

    /// Returns the end of an error message that names the links that are down; empty if none is
    /// down.
    pub fn describe_failures(&self) -> String {
        let links = &self.fabric.links;
        let mut down = (0..links.len()).filter(|l| links[*l].is_down());
        let some: Vec<String> = down.by_ref().take(6).map(|l| self.port_name(l)).collect();
        match (some.is_empty(), down.count()) {
            (true, _) => String::new(),
            (_, 0) => format!("; links that are down: {}", some.join(", ")),
            (_, more) => format!("; links that are down: {} and {more} more", some.join(", ")),
        }
    }
}
