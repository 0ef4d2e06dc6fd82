//! The network of a run (links, switches, timers of transports), and the list of its next events.

use crate::card_alarms::CardAlarms;
use crate::plan::ClassPlan;
use crate::processing::{Processing, ProcessingConfig, Segment, Spent, Work};
use eastwest_engine::order::{Class, Key};
use eastwest_engine::random::mix;
use eastwest_engine::timers::Timers;
use eastwest_engine::tournament::Tournament;
use eastwest_network::fabric::Fabric;
use eastwest_network::losses::Cause;
use eastwest_types::{ClassId, EndpointId, HostId, Packet, Time};
use serde::{Deserialize, Serialize};

/// Sources of events other than links. Their numbers in the event list follow the numbers of the
/// links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Source {
    /// Timers of transports, such as the retransmission timeout of TCP.
    Timers = 0,
    /// Wake-ups that workloads have scheduled.
    Wakes = 1,
    /// Samples of queues, throughput and energy over time.
    Samples = 2,
    /// Begins and ends of faults of links and switches.
    Faults = 3,
    /// Processing of packets by the CPU cores of hosts; only with `[hosts]`.
    Processing = 4,
}

impl Source {
    /// All sources of events other than links, in the order of their numbers.
    const ALL: [Source; 5] =
        [Source::Timers, Source::Wakes, Source::Samples, Source::Faults, Source::Processing];
}

/// The network of a run: links, switches, timers, and the event list.
#[derive(Serialize, Deserialize)]
pub struct Network {
    /// Current simulated time.
    pub now: Time,
    /// Links, switches, and the packets in them.
    pub fabric: Fabric,
    /// Event list: the next event of every link and of every other source.
    pub sources: Tournament,
    /// Timers of transports.
    pub timers: Timers,
    /// Alarms of network cards; empty if no transport uses them.
    pub card_alarms: CardAlarms,
    /// Traffic classes of the run, indexed by [`ClassId`].
    pub classes: Vec<ClassPlan>,
    /// Number of connections opened and datagrams sent so far. Flow hashes use this number in place
    /// of the client's port number.
    pub opened: u64,
    /// CPU cores of all hosts; `None` if the processing time of hosts is not simulated.
    pub processing: Option<Box<Processing>>,
}

impl Network {
    /// Returns the network of a fabric at the simulated time zero. `has_card_alarms` is whether a
    /// transport uses alarms of network cards.
    pub fn new(
        mut fabric: Fabric,
        classes: Vec<ClassPlan>,
        hosts: Option<ProcessingConfig>,
        has_card_alarms: bool,
        seed: u64,
    ) -> Network {
        let links = fabric.links.len();
        let processing = hosts.map(|c| Box::new(Processing::new(c, fabric.graph.hosts, seed)));
        // The event list has no sources for CPU cores and cards that are not simulated, which makes
        // it shorter and faster.
        let others = Source::ALL.len() - usize::from(processing.is_none());
        let cards = if has_card_alarms { fabric.number_of_cards() } else { 0 };
        let dscps = classes.iter().map(|class| class.dscp).collect();
        let card_alarms = CardAlarms::new((links + others) as u32, cards, dscps);
        fabric.halt_with(links as u32 + Source::Faults as u32);
        let mut network = Network {
            now: Time::ZERO,
            fabric,
            sources: Tournament::new(links + others + card_alarms.count(), seed),
            timers: Timers::new(Class::Timer, seed),
            card_alarms,
            classes,
            opened: 0,
            processing,
        };
        network.set(Source::Faults, network.next_change());
        network
    }

    /// Returns the event source with this number in the event list, which is not the alarm of a
    /// card; `None` if a link has this number.
    pub fn source(&self, number: u32) -> Option<Source> {
        let number = number.checked_sub(self.fabric.links.len() as u32)?;
        Some(Source::ALL[number as usize])
    }

    /// Returns the number of an event source in the event list.
    pub fn number_of(&self, source: Source) -> u32 {
        self.fabric.links.len() as u32 + source as u32
    }

    /// Replaces the next event of a source (other than a link) in the event list.
    pub fn set(&mut self, source: Source, next: Key) {
        self.sources.set(self.number_of(source), next);
    }

    /// Returns the event key (time and order) of the next begin or end of a fault of links;
    /// [`Key::NEVER`] if there is none.
    pub fn next_change(&self) -> Key {
        match self.fabric.next_change() {
            Time::NEVER => Key::NEVER,
            at => Key::new(at, Class::Change),
        }
    }

    /// Takes the earliest timer of all transports, which has expired. Returns the identifier that was
    /// passed to [`Network::arm`]. [`Network::end_timer`] must be called after the expiry.
    pub fn take_timer(&mut self) -> u64 {
        self.timers.take().expect("a timer is due, so the list has one")
    }

    /// Removes the timer that was taken, unless it was armed again.
    pub fn end_timer(&mut self) {
        if self.timers.end_take() {
            self.set(Source::Timers, self.timers.first());
        }
    }

    /// Arms a timer of a transport, which expires at time `at`; `id` is returned at its expiry.
    #[inline]
    pub fn arm(&mut self, at: Time, id: u64) {
        if self.timers.push(at, id, id) {
            self.set(Source::Timers, self.timers.first());
        }
    }

    /// Arms the alarm `number` of a card, which expires at time `at`; `id` is passed to the
    /// transport at its expiry.
    #[inline]
    pub fn arm_card(&mut self, number: u32, at: Time, id: u64) {
        self.card_alarms.arm(&mut self.sources, number, at, id);
    }

    /// Returns the number of the alarm of the card that sends the packets of a flow with the
    /// codepoint `dscp`.
    pub fn card_alarm(&self, (from, to): (HostId, HostId), hash: u16, dscp: u8) -> u32 {
        self.card_alarms.number(self.fabric.card_among_all(from, to, hash), dscp)
    }

    /// Enqueues a packet at the NIC of its host.
    #[inline(always)]
    pub fn send(&mut self, from: HostId, packet: Packet, sack: Option<eastwest_types::SackBlocks>) {
        self.fabric.send(self.now, from, packet, sack, &mut self.sources);
    }

    /// Calls the function `act` with the CPU cores of all hosts, then updates the next event of the
    /// cores in the event list. Returns the result of `act`; `None` if no cores are simulated.
    fn process<R>(&mut self, act: impl FnOnce(&mut Processing, Time) -> R) -> Option<R> {
        let processing = self.processing.as_mut()?;
        let answer = act(processing, self.now);
        let first = processing.first();
        self.set(Source::Processing, first);
        Some(answer)
    }

    /// Enqueues a segment at a CPU core of its host, which later processes the segment and sends
    /// it.
    pub fn send_by_core(&mut self, from: HostId, segment: Segment) {
        self.process(|cores, now| cores.send(now, from, segment));
    }

    /// Enqueues a segment at the network card of its host, after a CPU core has processed it.
    pub fn send_segment(&mut self, from: HostId, segment: Segment) {
        if self.fabric.pool.keeps_remaining() {
            self.fabric.pool.set_remaining(segment.remaining);
        }
        self.send(from, segment.packet, segment.sack);
    }

    /// Puts a received segment into the receive ring of a CPU core of its host. Returns whether the
    /// ring had room; otherwise the segment is lost.
    pub fn receive_by_core(&mut self, host: HostId, segment: Segment) -> bool {
        self.process(|cores, now| cores.receive(now, host, segment)).unwrap_or(false)
    }

    /// Charges a CPU core of the host with the time of a message that the endpoint `end` writes or
    /// reads. Does nothing if no cores are simulated.
    pub fn message_by_core(&mut self, host: HostId, end: EndpointId) {
        self.process(|cores, now| cores.message(now, host, end));
    }

    /// Removes the next event of the CPU cores. Returns the work that ends with this event, if any,
    /// and the time that a core has spent on this work.
    pub fn next_work(&mut self) -> Option<(Work, Spent)> {
        self.process(Processing::next).flatten()
    }

    /// Returns the differentiated services codepoint (DSCP, 0–63) of a traffic class.
    pub fn dscp(&self, class: ClassId) -> u8 {
        self.classes[usize::from(class.0)].dscp
    }

    /// Returns the flow hashes of a new connection, from client to server and back. Switches choose
    /// among equal paths by these hashes. `cards` are the numbers of the network cards of client
    /// and server, for hosts whose cards have addresses; `None`: the hash chooses the cards.
    pub fn hashes_of_new(
        &mut self,
        client: HostId,
        server: HostId,
        cards: Option<(u32, u32)>,
    ) -> (u16, u16) {
        assert_ne!(client, server, "a connection has two different hosts");
        // `opened` replaces the client's port number: connections of the same pair of hosts have
        // different hashes.
        self.opened += 1;
        let tuple = mix(u64::from(client.0) << 32 | u64::from(server.0)) ^ self.opened;
        let there = self.fabric.flow_hash(client, server, mix(tuple));
        let back = self.fabric.flow_hash(server, client, mix(tuple ^ 1 << 63));
        let cards = cards.unwrap_or_else(|| self.fabric.draw_cards(there));
        (
            self.fabric.bind_to_cards(there, (client, server), cards),
            self.fabric.bind_to_cards(back, (server, client), (cards.1, cards.0)),
        )
    }

    /// Returns the links of the paths of a new connection, for a mode without packets: from client to
    /// server and back. `cards` is that of [`Network::hashes_of_new`]. Fails with an error message
    /// if a path does not lead to its end.
    pub fn paths_of_new(
        &mut self,
        (client, server): (HostId, HostId),
        cards: Option<(u32, u32)>,
    ) -> Result<[Box<[u32]>; 2], String> {
        let (there, back) = self.hashes_of_new(client, server, cards);
        let fabric = &mut self.fabric;
        let mut path = |from: HostId, to: HostId, hash| {
            let path = fabric.path(from, to, hash).into_boxed_slice();
            if path.last().map(|&link| fabric.links[link as usize].to) == Some(to.0) {
                return Ok(path);
            }
            let name = |host: HostId| fabric.graph.names[host.0 as usize].as_str();
            Err(format!(
                "a connection from {} to {} has no path from the card that it uses: with fidelity = \
                 \"packet\" its packets are lost, and the other modes cannot calculate that",
                name(from),
                name(to)
            ))
        };
        Ok([path(client, server, there)?, path(server, client, back)?])
    }

    /// Returns a packet of `ip_len` IP bytes that belongs to no connection. The caller sets its
    /// payload, sequence number and flow hash.
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

    /// Whether this network simulates the host. False only in a partitioned run (one run on several
    /// threads) for the hosts of other parts.
    pub fn owns(&self, host: HostId) -> bool {
        self.fabric.partition.as_ref().is_none_or(|partition| partition.owns(host))
    }

    /// Returns the flow hash of a datagram, which belongs to no connection. `tuple` distinguishes
    /// the datagrams between two hosts.
    pub fn hash_of_datagram(&self, from: HostId, to: HostId, tuple: u64) -> u16 {
        let hash = self.fabric.flow_hash(from, to, tuple);
        self.fabric.bind_to_cards(hash, (from, to), self.fabric.draw_cards(hash))
    }

    /// Returns the name of the port that sends into a link, such as `leaf0->h3`.
    pub fn port_name(&self, link: usize) -> String {
        self.fabric.port_name(link)
    }

    /// Returns the last clauses of an error message: the number of packets that were lost because a
    /// switch had no route, the names of at most six links that are down, and the number of further
    /// ones. Empty if there are no such packets and links.
    pub fn describe_failures(&self) -> String {
        let links = &self.fabric.links;
        let lost: u64 = links.iter().map(|l| l.account().lost_to(Cause::NoRoute)).sum();
        let no_route = match lost {
            0 => String::new(),
            1 => "; 1 packet was lost because a switch had no route to its receiver".to_owned(),
            _ => format!(
                "; {lost} packets were lost because a switch had no route to their receiver"
            ),
        };
        let mut down = (0..links.len()).filter(|l| links[*l].is_down());
        let some: Vec<String> = down.by_ref().take(6).map(|l| self.port_name(l)).collect();
        match (some.is_empty(), down.count()) {
            (true, _) => no_route,
            (_, 0) => format!("{no_route}; links that are down: {}", some.join(", ")),
            (_, more) => {
                format!("{no_route}; links that are down: {} and {more} more", some.join(", "))
            }
        }
    }
}
