//! The fabric: links, packets and routes. Moves packets from link to link.

mod partitioned;
mod several_cards;

use crate::cards::Cards;
use crate::config::FabricConfig;
use crate::dcb::eventless::SwitchPorts;
use crate::dcb::pfc::Wire;
use crate::dcb::port_state::{DcbPort, PortSite};
use crate::dcb::{DcbConfig, Deadlock};
use crate::energy::eee;
use crate::energy::eee::StateTimes;
use crate::energy::{ClassEnergy, EnergyConfig, Joules};
use crate::fault::{Change, Effect, Schedule};
use crate::journeys::Journeys;
use crate::link::{Kinds, Link, LinkSpec, Mode, Outcome};
use crate::losses::{Cause, Losses, Lost};
use crate::pace::{Pace, Train};
use crate::packet_handle::{PacketHandle, PacketWords};
use crate::partition::Partition;
use crate::pool::PacketPool;
use crate::queue::QueueConfig;
use crate::routing::{
    ABSORBED, AdaptiveCounts, EXPLICIT_BIT, NO_ROUTE, RouteError, Routing, Transit, View,
};
use crate::shared_buffer::SharedBuffer;
use crate::taps::Taps;
use crate::topology::{CableConfig, Graph, Topology, reverse};
use eastwest_engine::interrupt;
use eastwest_engine::memory;
use eastwest_engine::order::{Class, Key};
use eastwest_engine::random::mix;
use eastwest_engine::tournament::Tournament;
use eastwest_types::{EndpointId, HostId, NO_SACK, Packet, SackBlocks, Span, Time};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Number of links from which on data is prefetched; with fewer links, the data of an event is in
/// the cache anyway.
const MANY_LINKS: usize = 1_000;

/// Schedule of the faults of a scenario, and their current effect on routes.
#[derive(Serialize, Deserialize)]
struct Faults {
    schedule: Schedule,
    /// Routes without failures, from which ideal times of messages are computed; `None` if faults
    /// do not change routes.
    whole: Option<Routing>,
    /// Number of current failures that switches know, by cable.
    known: Vec<u32>,
    failures: u64,
    reroutings: u64,
}

/// Numbers of packets of a fabric: sent, delivered, dropped and absorbed.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Number of packets that hosts have passed to their network cards, and of CNMs that switches
    /// have sent.
    pub sent: u64,
    /// Number of packets delivered to hosts.
    pub delivered: u64,
    /// Number of packets lost, for any cause.
    pub dropped: u64,
    /// Number of CNMs (congestion notification messages) that a switch has absorbed, since it has
    /// rerouted their flow.
    pub absorbed: u64,
}

/// Energy settings of links, and, in flow-level runs, the time of each link in each energy state.
#[derive(Serialize, Deserialize)]
pub struct Power {
    config: EnergyConfig,
    /// Time of each link in each energy state (awake, asleep, in transition), by link number. Set
    /// in a flow-level run; empty in a packet-level run, in which ports measure it.
    pub given_states: Vec<StateTimes>,
}

/// Lazy ports with packets whose departures were not decided when they were last used.
#[derive(Serialize, Deserialize)]
struct Unsettled {
    links: Vec<u32>,
    /// By link, whether `links` contains it; empty in a fabric without lazy ports.
    contains: Vec<bool>,
}

impl Unsettled {
    fn new(links: &[Link]) -> Unsettled {
        let any = links.iter().any(Link::is_lazy);
        Unsettled { links: Vec::new(), contains: vec![false; if any { links.len() } else { 0 }] }
    }

    /// Adds a link after a packet was enqueued, if its port is lazy with open departures.
    #[inline]
    fn note(&mut self, number: u32, link: &Link) {
        if let Some(contains) = self.contains.get_mut(number as usize)
            && link.is_lazy()
            && link.has_open_departures()
            && !std::mem::replace(contains, true)
        {
            self.links.push(number);
        }
    }
}

/// The fabric: all links, the packets on them, and the routes between them.
#[derive(Serialize, Deserialize)]
pub struct Fabric {
    /// Nodes and cables of the fabric.
    pub graph: Graph,
    /// Links by number: `2i` is cable `i` in the direction from a to b, `2i + 1` the opposite
    /// direction.
    pub links: Vec<Link>,
    /// Pool of the packets in flight.
    pub pool: PacketPool,
    pub(crate) routing: Routing,
    faults: Faults,
    /// By host, the link from its first card to the switch.
    pub(crate) up: Vec<u32>,
    /// Cards of hosts; `None` if every host has one.
    pub(crate) cards: Option<Box<Cards>>,
    /// Whether more is done with a packet that a host sends than to enqueue it at the first card:
    /// hosts have several cards, or parts of a partitioned fabric
    /// [replicate](Partition::replicates) workloads.
    pub(crate) observes_cards: bool,
    unsettled: Unsettled,
    /// Energy settings of links, and, in flow-level runs, the time of each link in each energy
    /// state.
    pub power: Power,
    /// Endpoint that will soon get a packet, as a hint for prefetching; `None` if none is known.
    pub next_reader: Option<EndpointId>,
    /// Whether all paths between any two hosts have links of equal rates and delays.
    uniform: bool,
    /// Numbers of packets sent, delivered, dropped and absorbed.
    pub tally: Tally,
    /// Packets lost recently, see [`Losses::take_before`].
    pub losses: Losses,
    /// Packet captures (taps) at the far ends of links.
    pub taps: Taps,
    /// Waiting and flight times of packets in flight.
    pub journeys: Journeys,
    pub(crate) dcb: Arc<DcbConfig>,
    /// Egress ports and numbers of pauses in force (XOFF) of each switch with data-centre bridging
    /// (DCB).
    pub(crate) switch_ports: SwitchPorts,
    pub(crate) deadlock: Option<Deadlock>,
    /// Time of the last search for a PFC deadlock.
    pub(crate) deadlock_searched_at: Time,
    /// Number of the event source that gets an event when a PFC deadlock is found.
    pub(crate) halt: u32,
    /// State of this part, if the fabric is simulated in several parts (threads); `None` otherwise.
    pub partition: Option<Box<Partition>>,
}

impl Fabric {
    /// Builds the fabric. Every host must have a cable and a path to every other host, otherwise an
    /// error is returned.
    pub fn build(config: &FabricConfig, seed: u64) -> Result<Fabric, RouteError> {
        let graph = config.graph();
        let routes = || {
            let seed = mix(seed ^ mix(0x6563_6d70));
            Routing::build(&graph, &config.routing, &config.equal_paths, seed)
        };
        let routing = routes()?;
        let mut links = Vec::with_capacity(graph.cables.len() * 2);
        let mut up = vec![u32::MAX; graph.hosts as usize];
        let buffers: Vec<Option<Arc<SharedBuffer>>> = (0..graph.names.len() as u32)
            .map(|node| config.shared_queues().filter(|_| node >= graph.hosts))
            .map(|shared| shared.map(|c| Arc::new(SharedBuffer::new(c))))
            .collect();
        let observed = observed_links(config, graph.cables.len() * 2);
        let dcb = Arc::new(config.dcb.clone());
        let mut kinds = Kinds::default();
        for (i, cable) in graph.cables.iter().enumerate() {
            interrupt::steps(16);
            for (from, to) in [(cable.a, cable.b), (cable.b, cable.a)] {
                let place = (links.len(), from, to, cable.config);
                let mut spec = link_spec(config, &graph, seed, place, observed[links.len()]);
                spec.shared.clone_from(&buffers[from as usize]);
                spec.dcb = dcb_port(&dcb, config, graph.hosts, place, observed[links.len()], seed);
                let mut link = Link::new(spec);
                kinds.share(&mut link.kind);
                links.push(link);
            }
            if cable.a < graph.hosts && up[cable.a as usize] == u32::MAX {
                up[cable.a as usize] = 2 * i as u32;
            }
        }
        for fault in &config.faults {
            for &link in &fault.links {
                links[link as usize].expect_faults(seed, link);
            }
        }
        let down = config.faults.iter().any(|f| matches!(f.effect, Effect::Down { .. }));
        let faults = Faults {
            whole: if down { Some(routes()?) } else { None },
            known: vec![0; if down { graph.cables.len() } else { 0 }],
            schedule: Schedule::new(config.faults.clone()),
            failures: 0,
            reroutings: 0,
        };
        let unsettled = Unsettled::new(&links);
        let switch_ports = SwitchPorts::new(&links, graph.names.len(), &dcb);
        let cards = Cards::new(&graph, config.cards, mix(seed ^ mix(0x6361_7264)));
        let mut fabric = Fabric {
            uniform: cards.is_none() && !matches!(config.topology, Topology::Graph { .. }),
            observes_cards: cards.is_some(),
            cards: cards.map(Box::new),
            graph,
            links,
            pool: PacketPool::default(),
            routing,
            faults,
            up,
            unsettled,
            power: Power { config: config.energy, given_states: Vec::new() },
            next_reader: None,
            tally: Tally::default(),
            losses: Losses::default(),
            taps: Taps::default(),
            journeys: Journeys::default(),
            dcb,
            switch_ports,
            deadlock: None,
            deadlock_searched_at: Time::ZERO,
            halt: u32::MAX,
            partition: None,
        };
        if config.reads_remaining() {
            fabric.pool.keep_remaining();
        }
        if config.telemetry {
            fabric.pool.keep_telemetry(fabric.graph.hosts);
        }
        fabric.apply_due_faults(Time::ZERO);
        Ok(fabric)
    }

    /// Returns the time at which a fault next begins, ends or becomes known to switches;
    /// [`Time::NEVER`] if there is no further change.
    pub fn next_change(&self) -> Time {
        self.faults.schedule.next()
    }

    /// Applies all faults that begin, end or become known to switches by `now`, and sets the next
    /// events of the affected links.
    pub fn change(&mut self, now: Time, events: &mut Tournament) {
        for link in self.apply_due_faults(now) {
            let next = self.links[link as usize].next_key(now);
            events.set(link, next);
        }
    }

    /// Applies all faults that begin, end or become known to switches by `now`. Returns the links
    /// whose next event may have changed.
    fn apply_due_faults(&mut self, now: Time) -> Vec<u32> {
        let (mut touched, mut learned) = (Vec::new(), false);
        let f = &mut self.faults;
        while let Some(change) = f.schedule.pop(now) {
            let (Change::Begins(number)
            | Change::Ends(number)
            | Change::KnownDown(number)
            | Change::KnownUp(number)) = change;
            let fault = f.schedule.fault(number);
            for &link in &fault.links {
                let known = f.known.get_mut(link as usize / 2);
                match (change, known) {
                    (Change::KnownDown(_), Some(known)) => *known += 1,
                    (Change::KnownUp(_), Some(known)) => *known -= 1,
                    _ => {
                        let begins = matches!(change, Change::Begins(_));
                        self.links[link as usize].change(now, &fault.effect, begins);
                        touched.push(link);
                    }
                }
            }
            let down = matches!(fault.effect, Effect::Down { .. });
            f.failures += u64::from(down && matches!(change, Change::Begins(_)));
            learned |= matches!(change, Change::KnownDown(_) | Change::KnownUp(_));
        }
        if learned {
            let known = &f.known;
            let usable = |cable: usize| known[cable] == 0;
            self.routing.keep_to(&self.graph, &usable);
            if let Some(cards) = &mut self.cards {
                cards.keep_to(&usable);
            }
            f.reroutings += 1;
        }
        touched
    }

    /// Returns the energy that a link has used until `now`, and its time in each state.
    pub fn energy_of(&self, link: usize, now: Time) -> (Joules, StateTimes) {
        let l = &self.links[link];
        let class = self.power.config.of_link(l.from.min(l.to) < self.graph.hosts);
        let run = now.since(Time::ZERO);
        let busy = l.sending_time(run);
        if let Some(times) = self.power.given_states.get(link) {
            return (Joules::of(&class.phy(l.cable.rate), times, busy), *times);
        }
        let times = l.state_times(now).unwrap_or_else(|| class.policy.states(run, busy));
        let times = match (class.both, l.lpi(), self.links[reverse(link as u32) as usize].lpi()) {
            (true, Some(a), Some(b)) => {
                times.asleep_only(a.common_sleep() + eee::common_sleep(a, b, now))
            }
            _ => times,
        };
        (Joules::of(&class.phy(l.cable.rate), &times, busy), times)
    }

    /// Returns the energy settings of a link.
    pub fn class_of(&self, link: usize) -> &ClassEnergy {
        let l = &self.links[link];
        self.power.config.of_link(l.from.min(l.to) < self.graph.hosts)
    }

    /// Returns the number of failures (a switch that fails with all its cables counts once), and
    /// how often routes were computed again.
    pub fn failures(&self) -> (u64, u64) {
        (self.faults.failures, self.faults.reroutings)
    }

    /// Enqueues a packet of a host at the network card of the host.
    // The function is inlined, so that the fields of the packet pass through registers.
    #[inline(always)]
    pub fn send(
        &mut self,
        now: Time,
        from: HostId,
        mut packet: Packet,
        sack: Option<SackBlocks>,
        events: &mut Tournament,
    ) {
        self.tally.sent += 1;
        packet.sack = sack.map_or(NO_SACK, |blocks| self.pool.put_sack(blocks));
        let slot = self.pool.insert(&packet);
        self.enqueue_at_card(now, from, PacketHandle::new(slot, &packet).words(), events);
    }

    /// Enqueues a packet that is in the pool at the network card of host `from`.
    #[inline(never)]
    fn enqueue_at_card(
        &mut self,
        now: Time,
        from: HostId,
        packet: PacketWords,
        events: &mut Tournament,
    ) {
        let (up, packet) = match self.observes_cards {
            false => (self.up[from.0 as usize], packet),
            true => {
                let mut handle = packet.arriving(Time::NEVER);
                (self.choose_card(from, &mut handle), handle.words())
            }
        };
        self.enqueue(now, up, packet, up, events);
    }

    /// Returns the link from the switch of a host down to its first card.
    pub fn down_to(&self, host: HostId) -> u32 {
        reverse(self.up[host.0 as usize])
    }

    /// Enqueues a packet that arrived on link `before` at the port of link `link`.
    // The function is inlined in both callers, since a call would cost 5 % of the time for a packet
    // on one link.
    #[inline(always)]
    fn enqueue(
        &mut self,
        now: Time,
        link: u32,
        packet: PacketWords,
        before: u32,
        events: &mut Tournament,
    ) {
        // Handles are only built where they are needed, so that the packet stays in registers.
        let handle = || packet.arriving(Time::NEVER);
        let Some(l) = self.links.get_mut(link as usize) else {
            return self.end_without_link(now, link, before, handle());
        };
        if !l.enqueues_fast() {
            let is_left = l.has_dcb() || (self.partition.is_some() && !l.decides_late());
            return match is_left {
                true => self.enqueue_via_fabric(now, link, packet, before, events),
                false => self.enqueue_slow_path(now, link, packet, before, events),
            };
        }
        match l.enqueue_fast(now, packet, &mut self.pool) {
            Ok(None) => {}
            Ok(Some(key)) => events.set_sooner(link, key),
            Err(outcome) => self.end_enqueue(now, link, (handle(), before), outcome, events),
        }
    }

    /// Enqueues a packet like [`Fabric::enqueue`], at a port that is not on the fastest path.
    #[inline(never)]
    fn enqueue_slow_path(
        &mut self,
        now: Time,
        link: u32,
        packet: PacketWords,
        before: u32,
        events: &mut Tournament,
    ) {
        let l = &mut self.links[link as usize];
        if l.has_flow_queues() {
            let (outcome, opens) = l.enqueue_in_flow_queue(now, packet, &mut self.pool);
            match outcome {
                Outcome::Queued if !opens => return,
                Outcome::Sooner(key) => return events.set_sooner(link, key),
                outcome => {
                    let handle = packet.arriving(Time::NEVER);
                    return self.end_enqueue(now, link, (handle, before), outcome, events);
                }
            }
        }
        let outcome = l.enqueue(now, packet, &mut self.pool);
        if outcome == Outcome::Queued {
            return self.unsettled.note(link, l);
        }
        self.end_enqueue(now, link, (packet.arriving(Time::NEVER), before), outcome, events);
    }

    /// Updates the events and the losses after a packet that arrived on link `before` was enqueued
    /// at the port of link `link`, which is not on the fastest path, or was dropped.
    #[inline]
    fn end_enqueue(
        &mut self,
        now: Time,
        link: u32,
        (handle, before): (PacketHandle, u32),
        outcome: Outcome,
        events: &mut Tournament,
    ) {
        self.unsettled.note(link, &self.links[link as usize]);
        match outcome {
            Outcome::Queued => {}
            Outcome::Sooner(key) => events.set_sooner(link, key),
            Outcome::Dropped(cause) => self.drop_at_port(now, link, handle, cause, before),
            Outcome::Displaced(key) => {
                events.set(link, key);
                self.set_during(now, link, before);
                self.record_drops(now, link);
            }
        }
    }

    /// Removes a packet that has no next link. Either it has no route and is dropped, or it is a
    /// congestion notification message (CNM) that a switch has absorbed.
    #[cold]
    #[inline(never)]
    pub(crate) fn end_without_link(
        &mut self,
        now: Time,
        link: u32,
        before: u32,
        handle: PacketHandle,
    ) {
        if link != ABSORBED {
            return self.drop_packet(now, before, handle, Cause::NoRoute);
        }
        self.tally.absorbed += 1;
        self.pool.remove(handle.slot());
    }

    /// Returns the counts of adaptive routing; `None` if the routing policy is another one.
    pub fn adaptive_counts(&self) -> Option<AdaptiveCounts> {
        self.routing.adaptive_counts()
    }

    /// Drops a packet that a port has not admitted.
    #[cold]
    #[inline(never)]
    pub(crate) fn drop_at_port(
        &mut self,
        now: Time,
        link: u32,
        handle: PacketHandle,
        cause: Cause,
        before: u32,
    ) {
        self.record_deferred_drops(link);
        self.set_during(now, link, before);
        self.drop_packet(now, link, handle, cause);
    }

    /// Sets the position of the current event, in which the port of link `link` drops packets, among
    /// the events of all parts of a partitioned fabric.
    #[cold]
    fn set_during(&mut self, now: Time, link: u32, before: u32) {
        let ingress = if before == link { reverse(link) } else { before };
        let number = self.links[ingress as usize].counters().packets.saturating_sub(1);
        if let Some(partition) = &mut self.partition {
            partition.during = (Key::new(now, Class::Arrival), ingress, number);
        }
    }

    /// Drops a packet at a link: counts the drop, records it in the list of losses, and removes the
    /// packet from the pool.
    #[cold]
    #[inline(never)]
    pub(crate) fn drop_packet(&mut self, now: Time, link: u32, handle: PacketHandle, cause: Cause) {
        let packet = self.pool.get(handle.slot());
        self.links[link as usize].count_loss(now, &handle, packet, cause);
        let lost = self.remove_lost(now, link, handle, cause);
        self.losses.note(lost);
    }

    /// Counts a lost packet, removes it from the pool, and returns a record of the loss.
    fn remove_lost(&mut self, at: Time, link: u32, handle: PacketHandle, cause: Cause) -> Lost {
        self.tally.dropped += 1;
        let packet = self.pool.remove(handle.slot());
        self.pool.take_sack(packet.sack);
        let order = match &self.partition {
            None => ((Key::NEVER, 0), 0),
            Some(_) if cause == Cause::Sojourn => Lost::order_at_dequeue(at, link),
            Some(partition) => partition.order_of_drop(),
        };
        Lost { at, link, cause, dst: self.host_of(handle.dst()), order, packet }
    }

    /// Records the packets that a discipline has dropped at dequeue at the lazy port of a link,
    /// each with the time of its drop.
    #[cold]
    #[inline(never)]
    fn record_deferred_drops(&mut self, link: u32) {
        for (at, handle, cause) in self.links[link as usize].take_deferred_drops() {
            let lost = self.remove_lost(at, link, handle, cause);
            self.losses.note(lost);
        }
    }

    /// Connects each port to the shared buffer of its switch, and links to the properties that they
    /// share; necessary after reading a checkpoint.
    pub fn share_memory(&mut self) {
        let mut memories = vec![None; self.graph.names.len()];
        let mut kinds = Kinds::default();
        for link in &mut self.links {
            kinds.share(&mut link.kind);
            if let Some(memory) = memories.get_mut(link.from as usize) {
                link.share_memory(memory);
            }
        }
    }

    /// Executes all departures that are due by `now`. Must be called before queues are read, and
    /// after all other events at this time that move packets.
    pub fn settle(&mut self, now: Time) {
        self.settle_lazy(now);
        self.settle_dcb(now);
    }

    /// Executes all departures of lazy ports (ports without an event for departures) that are due
    /// by `now`. Must be called before losses are read.
    pub fn settle_lazy(&mut self, now: Time) {
        let mut links = std::mem::take(&mut self.unsettled.links);
        links.retain(|&link| {
            self.links[link as usize].starts_after(now) || self.settle_link(now, link)
        });
        self.unsettled.links = links;
    }

    /// Executes the departures of a lazy port that are due by `now`. Returns whether the port has
    /// further queued packets.
    #[inline(never)]
    fn settle_link(&mut self, now: Time, link: u32) -> bool {
        self.links[link as usize].settle(now, &mut self.pool);
        if self.links[link as usize].has_deferred_drops() {
            self.record_deferred_drops(link);
        }
        let stays = self.links[link as usize].has_open_departures();
        self.unsettled.contains[link as usize] = stays;
        stays
    }

    /// Prefetches the link of the event that is now the earliest, which is almost always executed
    /// next.
    #[inline(always)]
    pub(crate) fn prefetch_next(&self, events: &Tournament) {
        if self.links.len() >= MANY_LINKS
            && let Some(source) = events.leader()
            && let Some(link) = self.links.get(source as usize)
        {
            memory::prefetch_lines(link, 1);
        }
    }

    /// Prefetches the second packet in flight on a link to a host, and records the endpoint of the
    /// first one in `next_reader`.
    #[inline(always)]
    fn prefetch_deliveries(&mut self, link: u32) {
        let link = &self.links[link as usize];
        if let Some(slot) = link.upcoming(1) {
            self.pool.prefetch(slot);
        }
        if let Some(slot) = link.upcoming(0) {
            self.next_reader = Some(self.pool.get(slot).dst_endpoint);
        }
    }

    /// Executes the next event of a link. If a packet has reached a host, returns its slot, and the
    /// caller [removes](PacketPool::remove) it from the pool; otherwise returns `None`. A packet
    /// that has reached a switch is enqueued at once at its next link. `TAPPED` must be true if
    /// [`Taps`] or [`Journeys`] observe packets, or if this is a part of a partitioned fabric and
    /// [has late ports](Fabric::has_late_ports); `DCB` must be the result of [`Fabric::has_dcb`].
    // The function and all functions that it calls for every packet are inlined, since each call
    // would cost 5 % of the time for a packet on one link.
    #[inline(always)]
    pub fn fire<const TAPPED: bool, const DCB: bool>(
        &mut self,
        key: Key,
        link: u32,
        events: &mut Tournament,
    ) -> Option<u32> {
        if TAPPED && self.partition.is_some() {
            self.note_event(key, link);
        }
        if DCB {
            if key.is_departure() {
                self.fire_departure(key, link, events);
                return None;
            }
            return self.arrive_dcb::<TAPPED>(key, link, events);
        }
        let l = &mut self.links[link as usize];
        if !l.arrives_fast() {
            return self.fire_slow_path::<TAPPED>(key, link, events);
        }
        let to = l.to;
        let (handle, next) = l.arrive_fast(key);
        events.set(link, next);
        self.prefetch_next(events);
        self.pass_on::<TAPPED>(key.time(), (link, to), handle, events)
    }

    /// Executes the next event of a link that is not on the fast path, in a fabric without
    /// data-centre bridging (DCB). Returns the result of [`Fabric::fire`].
    #[inline(never)]
    fn fire_slow_path<const TAPPED: bool>(
        &mut self,
        key: Key,
        link: u32,
        events: &mut Tournament,
    ) -> Option<u32> {
        let l = &mut self.links[link as usize];
        if l.starts_first() {
            l.settle(key.time(), &mut self.pool);
            let to = l.to;
            let (handle, next) = l.arrive_fast(key);
            let has_deferred = l.has_deferred_drops();
            events.set(link, next);
            self.prefetch_next(events);
            if has_deferred {
                self.record_deferred_drops(link);
            }
            return self.pass_on::<TAPPED>(key.time(), (link, to), handle, events);
        }
        if l.is_partitioned() {
            return self.fire_partitioned::<TAPPED>(key, link, events);
        }
        if key.is_departure() {
            self.fire_departure(key, link, events);
            return None;
        }
        let to = l.to;
        let (handle, next) = l.arrive(key, &mut self.pool);
        events.set(link, next);
        self.prefetch_next(events);
        self.pass_on::<TAPPED>(key.time(), (link, to), handle, events)
    }

    /// Enqueues a packet that has reached the node `to` on `link` at its next link. If the node is
    /// a host, returns the slot of the packet instead.
    #[inline(always)]
    fn pass_on<const TAPPED: bool>(
        &mut self,
        now: Time,
        (link, to): (u32, u32),
        handle: PacketHandle,
        events: &mut Tournament,
    ) -> Option<u32> {
        if TAPPED {
            if self.ends_elsewhere(link, &handle) {
                return None;
            }
            self.observe(now, link, &handle);
        }
        if to < self.graph.hosts {
            self.note_delivery(link);
            return Some(handle.slot());
        }
        let next_link = self.next_link(now, to, link, handle.words());
        self.enqueue(now, next_link, handle.words(), link, events);
        None
    }

    /// Records a packet that a link has delivered in the packet captures ([`Taps`]) and in the
    /// waiting and flight times ([`Journeys`]).
    #[inline(always)]
    pub(crate) fn observe(&mut self, now: Time, link: u32, handle: &PacketHandle) {
        if self.partition.is_some() {
            return; // runs with captures or waiting times are not partitioned
        }
        let to = self.host_of(handle.dst());
        self.taps.look(link, handle, to, &self.pool);
        let l = &self.links[link as usize];
        self.journeys.pass(now, (link, l, self.graph.hosts), (handle, to), &self.pool);
    }

    /// Counts a packet that a link has delivered to a host, and prefetches data of the packets
    /// after it.
    #[inline(always)]
    pub(crate) fn note_delivery(&mut self, link: u32) {
        self.tally.delivered += 1;
        if self.links.len() >= MANY_LINKS {
            self.prefetch_deliveries(link);
        }
    }

    /// Returns the link on which a packet leaves a switch that it has entered on link `ingress`.
    /// [`NO_ROUTE`] and [`ABSORBED`] mean that there is no next link.
    #[inline(always)]
    pub(crate) fn next_link(
        &mut self,
        now: Time,
        switch: u32,
        ingress: u32,
        packet: PacketWords,
    ) -> u32 {
        match self.routing.next_by_hash(switch - self.graph.hosts, packet.dst(), packet.hash()) {
            Some(link) => link,
            None => self.next_link_by_view(now, switch, ingress, packet),
        }
    }

    /// Returns the next link like [`Fabric::next_link`], if the choice depends on the packet, the
    /// time or the queues of ports.
    #[inline(never)]
    fn next_link_by_view(
        &mut self,
        now: Time,
        switch: u32,
        ingress: u32,
        handle: PacketWords,
    ) -> u32 {
        let (links, pool) = (&self.links, &self.pool);
        let shown = self.routing.is_shown(handle.hash());
        let comes_from_host = shown && links[ingress as usize].from < self.graph.hosts;
        let tag = if shown && !comes_from_host { pool.tag(handle.slot()) } else { 0 };
        let view = || View { now, packet: pool.get(handle.slot()), links, ingress, tag };
        let number = switch - self.graph.hosts;
        let link = self.routing.next_link(number, handle.dst(), handle.hash(), view);
        if shown && let Some(out) = self.links.get(link as usize) {
            let transit = Transit {
                now,
                dst: handle.dst(),
                flow_hash: handle.hash() & !EXPLICIT_BIT,
                packet: self.pool.get(handle.slot()),
                ingress,
                port: link,
                edge: 0,
                from_host: comes_from_host,
                to_host: out.to < self.graph.hosts,
                wire_bytes: out.wire_bytes(u32::from(handle.ip_len())),
                tag,
                links: &self.links,
            };
            let tag = self.routing.forward(number, transit);
            self.pool.set_tag(handle.slot(), tag);
        }
        link
    }

    /// Whether ports have data-centre bridging (DCB); either all ports have it or none.
    pub fn has_dcb(&self) -> bool {
        self.dcb.is_on()
    }

    #[inline(never)]
    fn fire_departure(&mut self, key: Key, link: u32, events: &mut Tournament) {
        if self.has_dcb() {
            return self.depart_dcb(key, link, events);
        }
        if self.power.config.host.both || self.power.config.fabric.both {
            self.note_both_asleep(key.time(), link);
        }
        let (lost, next) = self.links[link as usize].depart(key, &mut self.pool);
        events.set(link, next);
        self.prefetch_next(events);
        if let Some((handle, cause)) = lost {
            self.drop_packet(key.time(), link, handle, cause);
        }
        if self.links[link as usize].has_dropped() {
            self.record_drops(key.time(), link);
        }
    }

    /// Adds the time for which both directions of a cable slept together to both links, if `link`
    /// wakes at `now`. The current sleep periods count until `now`, so that no time is missed or
    /// counted twice.
    #[cold]
    fn note_both_asleep(&mut self, now: Time, link: u32) {
        let (this, other) = (link as usize, reverse(link) as usize);
        let (Some(a), Some(b)) = (self.links[this].lpi(), self.links[other].lpi()) else {
            return;
        };
        if a.awake_at() == Some(now) {
            let span = eee::common_sleep(a, b, now);
            self.links[this].add_common_sleep(span);
            self.links[other].add_common_sleep(span);
        }
    }

    /// Records the packets that a queue discipline has dropped after they were queued.
    #[inline(never)]
    pub(crate) fn record_drops(&mut self, now: Time, link: u32) {
        self.record_deferred_drops(link);
        for (handle, cause) in self.links[link as usize].take_dropped() {
            self.drop_packet(now, link, handle, cause);
        }
    }

    /// Returns the value of [`Packet::hash`] for a flow whose five-tuple has the hash `five_tuple`,
    /// see [`Routing::flow_hash`].
    pub fn flow_hash(&self, from: HostId, to: HostId, five_tuple: u64) -> u16 {
        self.routing.flow_hash(from, to, five_tuple)
    }

    /// Returns the links of the path of a flow from one host to another; `hash` is the
    /// [`Packet::hash`] of its packets. Requires routing per flow. The path ends early if there is
    /// no route.
    pub fn path(&mut self, from: HostId, to: HostId, hash: u16) -> Vec<u32> {
        let mut links = vec![self.up_link(from, to, hash)];
        let to = self.cards.as_ref().map_or(to, |cards| cards.address(to, hash));
        loop {
            let at = self.links[links[links.len() - 1] as usize].to;
            if at < self.graph.hosts {
                return links;
            }
            let routing = &mut self.routing;
            let per_flow = || unreachable!("a path belongs to a flow");
            let next = routing.next_link(at - self.graph.hosts, to, hash, per_flow);
            if next == NO_ROUTE {
                return links;
            }
            links.push(next);
        }
    }

    /// Returns the number of packet transmissions completed on all links, which is the unit of
    /// simulation speed.
    pub fn packet_hops(&self) -> u64 {
        self.links.iter().map(|l| l.counters().packets).sum()
    }

    /// Returns the time from writing a message of `bytes` bytes to its arrival, over an idle path
    /// without faults. The message is sent in segments of `segment` bytes, each with `headers`
    /// bytes of headers. No message can be faster while no link fails. If paths differ and routing
    /// chooses among them, the result is a lower bound for all paths.
    pub fn ideal_time(
        &self,
        from: HostId,
        to: HostId,
        bytes: u64,
        segment: u32,
        headers: u32,
    ) -> Span {
        let train = Train::new(bytes, segment, headers);
        if self.cards.is_some() {
            return self.ideal_time_of_cards(from, to, &train);
        }
        let routing = self.faults.whole.as_ref().unwrap_or(&self.routing);
        let route = routing.flow_hash(from, to, 0);
        let up = &self.links[self.up[from.0 as usize] as usize];
        // Nodes that are equally many hops away, in order of their numbers.
        let mut at = vec![(up.to, Pace::default().over(up, &train, false))];
        let mut next: Vec<(u32, Pace)> = Vec::new();
        loop {
            // All shortest paths have equally many hops, so that all reach the host in the same
            // step of this loop.
            for (node, mut pace) in at.drain(..) {
                let mut links = routing.links_from(node - self.graph.hosts, route, to);
                if links.len() > 1 && routing.deals() {
                    pace = pace.dealt();
                }
                if self.uniform {
                    links = &links[..1];
                }
                for &link in links {
                    let l = &self.links[link as usize];
                    let pace = pace.over(l, &train, l.to < self.graph.hosts);
                    match next.binary_search_by_key(&l.to, |&(node, _)| node) {
                        Ok(found) => next[found].1 = next[found].1.or(pace),
                        Err(place) => next.insert(place, (l.to, pace)),
                    }
                }
            }
            if let Ok(found) = next.binary_search_by_key(&to.0, |&(node, _)| node) {
                return next[found].1.arrival();
            }
            std::mem::swap(&mut at, &mut next);
        }
    }
}

/// Returns the parameters of one direction of a cable for [`Link::new`].
fn link_spec(
    config: &FabricConfig,
    graph: &Graph,
    seed: u64,
    (link, from, to, cable): (usize, u32, u32, CableConfig),
    observed: bool,
) -> LinkSpec {
    let classes = config.scheduler.classes();
    let queue = if from < graph.hosts { &config.host_queue } else { &config.switch_queue };
    let shared = config.shared_queues().is_some() && from >= graph.hosts;
    let measured = config.measured.contains(from, to);
    let target = queue.target(cable.rate, config.mtu + config.framing);
    let class = config.energy.of_link(from.min(to) < graph.hosts);
    let sleep = class.sleeping(cable.rate, target);
    let several = !classes.is_empty() || !queue.is_one_fifo();
    let at_dequeue = several || queue.decides_at_dequeue();
    let two_event = config.reference_ports
        || shared
        || (config.telemetry && from >= graph.hosts)
        || config.dcb.is_on()
        || measured
        || (several && from < graph.hosts && (config.nics_read_queues || config.telemetry))
        || (sleep.is_some() && (at_dequeue || class.both))
        || ((sleep.is_some() || at_dequeue) && observed);
    let mode = match (two_event, at_dequeue) {
        (true, _) => Mode::TwoEvent,
        (false, true) => Mode::Lazy,
        (false, false) => Mode::Eager,
    };
    LinkSpec {
        from,
        to,
        cable,
        queue: queue.clone(),
        framing: at_most_u16(config.framing),
        min_frame: at_most_u16(config.min_frame),
        mtu: config.mtu,
        jitter: if to < graph.hosts { config.processing_jitter } else { Span::ZERO },
        jitter_seed: mix(seed ^ mix(0x6a69_7474 ^ (link as u64) << 32)),
        mode,
        classes,
        measured,
        shared: None,
        sleep,
        dcb: None,
        seed: (seed, link as u64),
    }
}

/// Returns the state of data-centre bridging (DCB) of a port; `None` if the fabric has no DCB.
fn dcb_port(
    dcb: &Arc<DcbConfig>,
    config: &FabricConfig,
    hosts: u32,
    (link, from, to, cable): (usize, u32, u32, CableConfig),
    observed: bool,
    seed: u64,
) -> Option<Box<DcbPort>> {
    if !dcb.is_on() {
        return None;
    }
    let (mtu, framing, min_frame) = (config.mtu, config.framing, config.min_frame);
    let classes = config.scheduler.classes();
    let own = classes.iter().filter_map(|class| class.queue.as_ref());
    let queue = if from < hosts { &config.host_queue } else { &config.switch_queue };
    let observed = observed
        || config.reference_ports
        || config.measured.contains(from, to)
        || own.chain([queue]).any(QueueConfig::decides_at_dequeue);
    let site = PortSite {
        observed,
        one_class: classes.len() <= 1,
        from_host: from < hosts,
        to_host: to < hosts,
        wire: Wire { mtu, framing, min_frame },
        seed,
        link: link as u64,
    };
    Some(Box::new(DcbPort::new(dcb, &cable, &site)))
}

/// Returns, by link, whether faults or the routing policy read the queue of the port between the
/// events of the link.
fn observed_links(config: &FabricConfig, links: usize) -> Vec<bool> {
    let mut observed = vec![config.routing.looks_at_queues(); links];
    for &link in config.faults.iter().flat_map(|fault| &fault.links) {
        observed[link as usize] = true;
    }
    observed
}

/// Converts the number of framing bytes to 16 bits. The number fits, since the scenario reader
/// allows no more framing than the length of a packet.
fn at_most_u16(bytes: u32) -> u16 {
    u16::try_from(bytes).expect("framing needs at most 16 bits")
}
