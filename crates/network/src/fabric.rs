//! The fabric as it runs: links, packets and routes.

mod partitioned;

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
use crate::link::{Link, LinkSpec, Mode, Outcome};
use crate::losses::{Cause, Losses, Lost};
use crate::pace::{Pace, Train};
use crate::packet_handle::PacketHandle;
use crate::partition::Partition;
use crate::pool::PacketPool;
use crate::queue::QueueConfig;
use crate::routing::{ABSORBED, AdaptiveCounts, NO_ROUTE, RouteError, Routing, View};
use crate::shared_buffer::SharedBuffer;
use crate::taps::Taps;
use crate::topology::{CableConfig, Graph, Topology, reverse};
use eastwest_engine::interrupt;
use eastwest_engine::memory;
use eastwest_engine::order::Key;
use eastwest_engine::random::mix;
use eastwest_engine::tournament::Tournament;
use eastwest_types::{EndpointId, HostId, NO_SACK, Packet, SackBlocks, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// With fewer links than this, what an event touches is in the cache anyway.
const MANY_LINKS: usize = 1_000;

/// Faults as they happen.
#[derive(Serialize, Deserialize)]
struct Faults {
    schedule: Schedule,
    /// Routes with all cables in use, where faults may change them.
    whole: Option<Routing>,
    /// By cable, how many failures of it switches know of.
    known: Vec<u32>,
    failures: u64,
    reroutings: u64,
}

/// How many packets there were.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Packets that hosts have handed to their network cards.
    pub sent: u64,
    /// Packets handed to hosts.
    pub delivered: u64,
    /// Packets lost.
    pub dropped: u64,
    /// Congestion notifications that ended at a switch which found another way.
    pub absorbed: u64,
}

/// What links use.
#[derive(Serialize, Deserialize)]
pub struct Power {
    config: EnergyConfig,
    /// States of links by their numbers, where they are known without packets.
    pub given_states: Vec<StateTimes>,
}

/// All links, the packets on them, and the way from one to the next.
#[derive(Serialize, Deserialize)]
pub struct Fabric {
    /// Nodes and cables.
    pub graph: Graph,
    /// Link `2i` is cable `i` from a to b, `2i + 1` the other direction.
    pub links: Vec<Link>,
    /// Packets under way.
    pub pool: PacketPool,
    pub(crate) routing: Routing,
    faults: Faults,
    /// The link up from every host.
    pub(crate) up: Vec<u32>,
    /// Links with lazy ports.
    lazy: Vec<u32>,
    /// What links use.
    pub power: Power,
    /// Who will soon get a packet: a hint for prefetching.
    pub next_reader: Option<EndpointId>,
    /// All paths between two hosts are alike.
    uniform: bool,
    /// What became of packets.
    pub tally: Tally,
    /// The latest packets that were lost, see [`Losses::take_before`].
    pub losses: Losses,
    /// What is captured.
    pub taps: Taps,
    /// How long packets waited where.
    pub journeys: Journeys,
    pub(crate) dcb: Arc<DcbConfig>,
    /// Pauses that bridged switches ask for at their inputs.
    pub(crate) switch_ports: SwitchPorts,
    pub(crate) deadlock: Option<Deadlock>,
    /// When a deadlock was last looked for.
    pub(crate) deadlock_searched_at: Time,
    /// The source of events that a deadlock sets off.
    pub(crate) halt: u32,
    /// What this part of a divided fabric has to do with others.
    pub partition: Option<Box<Partition>>,
}

impl Fabric {
    /// Builds the fabric; every host must have exactly one cable and a path to every other.
    pub fn build(config: &FabricConfig, seed: u64) -> Result<Fabric, RouteError> {
        let graph = Graph::build(&config.topology);
        let routes = || {
            let seed = mix(seed ^ mix(0x6563_6d70));
            Routing::build(&graph, &config.routing, &config.equal_paths, seed)
        };
        let routing = routes()?;
        let mut links = Vec::with_capacity(graph.cables.len() * 2);
        let mut up = vec![u32::MAX; graph.hosts as usize];
        let buffers: Vec<Option<Arc<SharedBuffer>>> = (0..graph.names.len() as u32)
            .map(|node| config.shared_buffer.filter(|_| node >= graph.hosts))
            .map(|shared| shared.map(|c| Arc::new(SharedBuffer::new(c))))
            .collect();
        let watched = watched_links(config, graph.cables.len() * 2);
        let dcb = Arc::new(config.dcb.clone());
        for (i, cable) in graph.cables.iter().enumerate() {
            interrupt::steps(16);
            for (from, to) in [(cable.a, cable.b), (cable.b, cable.a)] {
                let place = (links.len(), from, to, cable.config);
                let mut spec = link_spec(config, &graph, seed, place, watched[links.len()]);
                spec.shared.clone_from(&buffers[from as usize]);
                spec.dcb = dcb_port(&dcb, config, graph.hosts, place, watched[links.len()], seed);
                links.push(Link::new(spec));
            }
            if cable.a < graph.hosts {
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
        let lazy = (0..links.len() as u32).filter(|&l| links[l as usize].is_lazy()).collect();
        let switch_ports = SwitchPorts::new(&links, graph.names.len());
        let mut fabric = Fabric {
            graph,
            links,
            pool: PacketPool::default(),
            routing,
            faults,
            up,
            lazy,
            power: Power { config: config.energy, given_states: Vec::new() },
            next_reader: None,
            uniform: !matches!(config.topology, Topology::Graph { .. }),
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
        fabric.apply_due_faults(Time::ZERO);
        Ok(fabric)
    }

    /// When faults next begin, end or become known.
    pub fn next_change(&self) -> Time {
        self.faults.schedule.next()
    }

    /// Carries out what faults do by now.
    pub fn change(&mut self, now: Time, events: &mut Tournament) {
        for link in self.apply_due_faults(now) {
            let next = self.links[link as usize].next_key(now);
            events.set(link, next);
        }
    }

    /// Carries out what faults do by now; returns the links whose next event may have changed.
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
            self.routing.keep_to(&self.graph, &|cable| known[cable] == 0);
            f.reroutings += 1;
        }
        touched
    }

    /// What a link has used until `now`, and how long it was in each state.
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
            (true, Some(a), Some(b)) => times.asleep_only(a.both() + eee::together(a, b, now)),
            _ => times,
        };
        (Joules::of(&class.phy(l.cable.rate), &times, busy), times)
    }

    /// Energy settings of a link.
    pub fn class_of(&self, link: usize) -> &ClassEnergy {
        let l = &self.links[link];
        self.power.config.of_link(l.from.min(l.to) < self.graph.hosts)
    }

    /// How often links have failed (a switch with all its cables counts once), and how often routes
    /// were computed anew.
    pub fn failures(&self) -> (u64, u64) {
        (self.faults.failures, self.faults.reroutings)
    }

    /// A host hands a packet to its network card.
    #[inline]
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
        let up = self.up[from.0 as usize];
        self.enqueue(now, up, PacketHandle::new(slot, &packet), up, events);
    }

    /// The link down to a host.
    pub fn down_to(&self, host: HostId) -> u32 {
        reverse(self.up[host.0 as usize])
    }

    /// When all that a host has handed to its network card with this codepoint will have left it, if
    /// nothing that comes later goes first and no fault changes the link.
    pub fn leaves_at(&self, from: HostId, dscp: u8) -> Time {
        self.links[self.up[from.0 as usize] as usize].clear_at(dscp)
    }

    /// Hands a packet that came on link `before` to a link.
    // in both of its callers: the call alone costs a twentieth of a hop
    #[inline(always)]
    fn enqueue(
        &mut self,
        now: Time,
        link: u32,
        handle: PacketHandle,
        before: u32,
        events: &mut Tournament,
    ) {
        let Some(l) = self.links.get_mut(link as usize) else {
            return self.end_without_link(now, link, before, handle);
        };
        match l.enqueue(now, handle, &mut self.pool) {
            Outcome::Queued => {}
            Outcome::Sooner(key) => events.set_sooner(link, key),
            Outcome::Dropped(cause) => self.drop_at_port(now, link, handle, cause, before),
            Outcome::Displaced(key) => {
                events.set(link, key);
                self.record_drops(now, link);
            }
            Outcome::LeftToFabric => self.enqueue_via_fabric(now, link, handle, before, events),
        }
    }

    /// A packet goes to no link: there is no way, or it is a notification that has done its work.
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
        self.pool.remove(handle.slot);
    }

    /// What adaptive routing did, where it is asked for.
    pub fn adaptive_counts(&self) -> Option<AdaptiveCounts> {
        self.routing.adaptive_counts()
    }

    /// A port does not let a packet in.
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
        let during = self.event_at(now, if before == link { reverse(link) } else { before });
        if let Some(partition) = &mut self.partition {
            partition.during = during;
        }
        self.drop_packet(now, link, handle, cause);
    }

    /// A packet is lost at a link.
    #[cold]
    #[inline(never)]
    pub(crate) fn drop_packet(&mut self, now: Time, link: u32, handle: PacketHandle, cause: Cause) {
        let packet = self.pool.get(handle.slot);
        self.links[link as usize].count_loss(now, &handle, packet, cause);
        let lost = self.remove_lost(now, link, handle, cause);
        self.losses.note(lost);
    }

    fn remove_lost(&mut self, at: Time, link: u32, handle: PacketHandle, cause: Cause) -> Lost {
        self.tally.dropped += 1;
        let packet = self.pool.remove(handle.slot);
        self.pool.take_sack(packet.sack);
        let order =
            self.partition.as_ref().map_or(((Key::NEVER, 0), 0), |partition| partition.during);
        Lost { at, link, cause, dst: handle.dst, order, packet }
    }

    /// Packets are lost that a lazy port has dropped, which may have been a while ago.
    #[cold]
    #[inline(never)]
    fn record_deferred_drops(&mut self, link: u32) {
        for (at, handle) in self.links[link as usize].take_deferred_drops() {
            let lost = self.remove_lost(at, link, handle, Cause::Sojourn);
            self.losses.note(lost);
        }
    }

    /// What a fabric read from a checkpoint needs to be whole: its ports share the memory of their
    /// switch again.
    pub fn share_memory(&mut self) {
        let mut memories = vec![None; self.graph.names.len()];
        for link in &mut self.links {
            if let Some(memory) = memories.get_mut(link.from as usize) {
                link.share_memory(memory);
            }
        }
    }

    /// Lets all ports do what they have to by now: whoever looks at queues wants that first, after all that
    /// moves packets at this instant.
    pub fn settle(&mut self, now: Time) {
        self.settle_lazy(now);
        self.settle_dcb(now);
    }

    /// Lets lazy ports do so: whoever looks at losses wants that first.
    pub fn settle_lazy(&mut self, now: Time) {
        for at in 0..self.lazy.len() {
            let link = self.lazy[at];
            self.links[link as usize].settle(now, &mut self.pool);
            if self.links[link as usize].has_deferred_drops() {
                self.record_deferred_drops(link);
            }
        }
    }

    /// The event after this one is almost always the one that leads now: asks for its link while
    /// this one is being worked on.
    #[inline(always)]
    pub(crate) fn prefetch_next(&self, events: &Tournament) {
        if self.links.len() >= MANY_LINKS
            && let Some(source) = events.leader()
            && let Some(link) = self.links.get(source as usize)
        {
            memory::prefetch(link);
        }
    }

    /// A link to a host has handed over a packet: asks for the one after the next, and notes who the
    /// next one is for.
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

    /// Carries out the next event of a link. Returns the packet where one has reached a host;
    /// at a switch it goes on to the next link at once. [`Taps`] and [`Journeys`] look only where `TAPPED`;
    /// `DCB` is what [`Fabric::has_dcb`] tells.
    // this and what it calls on every hop: as calls they cost a twentieth each
    #[inline(always)]
    pub fn fire<const TAPPED: bool, const DCB: bool>(
        &mut self,
        key: Key,
        link: u32,
        events: &mut Tournament,
    ) -> Option<Packet> {
        if key.is_departure() {
            self.fire_departure(key, link, events);
            return None;
        }
        if DCB {
            return self.arrive_dcb::<TAPPED>(key, link, events);
        }
        let l = &mut self.links[link as usize];
        let to = l.to;
        let (handle, next) = l.arrive(key, &mut self.pool);
        let has_deferred = l.has_deferred_drops();
        events.set(link, next);
        self.prefetch_next(events);
        if has_deferred {
            self.record_deferred_drops(link);
        }
        if TAPPED {
            self.observe(key.time(), link, &handle);
        }
        if to < self.graph.hosts {
            self.tally.delivered += 1;
            self.prefetch_deliveries(link);
            return Some(self.pool.remove(handle.slot));
        }
        let (now, links, pool) = (key.time(), &self.links, &self.pool);
        let view = || View { now, packet: pool.get(handle.slot), links, ingress: link };
        let (dst, hash) = (handle.dst, handle.hash);
        let next_link = self.routing.next_link(to - self.graph.hosts, dst, hash, view);
        self.enqueue(now, next_link, handle, link, events);
        None
    }

    /// Taps and journeys look at a packet that a link has handed over.
    #[inline(always)]
    pub(crate) fn observe(&mut self, now: Time, link: u32, handle: &PacketHandle) {
        self.taps.look(link, handle, &self.pool);
        let l = &self.links[link as usize];
        self.journeys.pass(now, (l, self.graph.hosts), handle, &self.pool);
    }

    /// Takes out the packet that a link has handed over, if that was to a host.
    #[inline(always)]
    pub(crate) fn deliver(&mut self, link: u32, to: u32, handle: &PacketHandle) -> Option<Packet> {
        if to >= self.graph.hosts {
            return None;
        }
        self.tally.delivered += 1;
        self.prefetch_deliveries(link);
        Some(self.pool.remove(handle.slot))
    }

    /// Where a packet goes from the switch to which a link has brought it.
    #[inline(always)]
    pub(crate) fn next_link(
        &mut self,
        now: Time,
        switch: u32,
        ingress: u32,
        handle: &PacketHandle,
    ) -> u32 {
        let (links, pool) = (&self.links, &self.pool);
        let view = || View { now, packet: pool.get(handle.slot), links, ingress };
        self.routing.next_link(switch - self.graph.hosts, handle.dst, handle.hash, view)
    }

    /// Whether all ports are bridged; else none is.
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

    /// Where a link is about to be awake: how long it slept together with the other direction. What
    /// that one sleeps now is noted here, too, so that nothing is missed and nothing twice.
    #[cold]
    fn note_both_asleep(&mut self, now: Time, link: u32) {
        let (this, other) = (link as usize, reverse(link) as usize);
        let (Some(a), Some(b)) = (self.links[this].lpi(), self.links[other].lpi()) else {
            return;
        };
        if a.planned() == Some(now) {
            let span = eee::together(a, b, now);
            self.links[this].note_both(span);
            self.links[other].note_both(span);
        }
    }

    /// Packets are lost that a discipline has dropped out of its queue.
    #[inline(never)]
    pub(crate) fn record_drops(&mut self, now: Time, link: u32) {
        self.record_deferred_drops(link);
        for (handle, cause) in self.links[link as usize].take_dropped() {
            self.drop_packet(now, link, handle, cause);
        }
    }

    /// The value for [`Packet::hash`], see [`Routing::flow_hash`].
    pub fn flow_hash(&self, from: HostId, to: HostId, five_tuple: u64) -> u16 {
        self.routing.flow_hash(from, to, five_tuple)
    }

    /// The links from one host to another for packets with this hash, where a path belongs to a flow
    /// (not to every packet). Stops where no route goes on.
    pub fn path(&mut self, from: HostId, to: HostId, hash: u16) -> Vec<u32> {
        let mut links = vec![self.up[from.0 as usize]];
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

    /// Packet transmissions completed on all links: the unit of simulation speed.
    pub fn packet_hops(&self) -> u64 {
        self.links.iter().map(|l| l.counters.packets).sum()
    }

    /// The time from writing a message of `bytes` to its arrival over an idle path without faults, in
    /// segments of `segment` with `headers` bytes each; no message can be faster while no link fails. Where
    /// paths differ and ECMP or turns choose among them it is a lower bound for all.
    pub fn ideal_time(
        &self,
        from: HostId,
        to: HostId,
        bytes: u64,
        segment: u32,
        headers: u32,
    ) -> Span {
        let routing = self.faults.whole.as_ref().unwrap_or(&self.routing);
        let train = Train::new(bytes, segment, headers);
        let route = routing.flow_hash(from, to, 0);
        let up = &self.links[self.up[from.0 as usize] as usize];
        let mut at = BTreeMap::from([(up.to, Pace::default().over(up, &train, false))]);
        loop {
            // shortest paths are equally long: all get to the host in the same step
            let mut next: BTreeMap<u32, Pace> = BTreeMap::new();
            for (node, mut pace) in at {
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
                    next.entry(l.to).and_modify(|p| *p = p.or(pace)).or_insert(pace);
                }
            }
            if let Some(pace) = next.get(&to.0) {
                return pace.arrival();
            }
            at = next;
        }
    }
}

/// Settings of one direction of a cable.
fn link_spec(
    config: &FabricConfig,
    graph: &Graph,
    seed: u64,
    (link, from, to, cable): (usize, u32, u32, CableConfig),
    watched: bool,
) -> LinkSpec {
    let classes = config.scheduler.classes();
    let queue = if from < graph.hosts { &config.host_queue } else { &config.switch_queue };
    let shared = config.shared_buffer.is_some() && from >= graph.hosts;
    let measured = config.measured.contains(from, to);
    let target = queue.target(cable.rate, config.mtu + config.framing);
    let class = config.energy.of_link(from.min(to) < graph.hosts);
    let sleep = class.sleeping(cable.rate, target);
    let at_dequeue = queue.decides_at_dequeue();
    let two_event = config.reference_ports
        || shared
        || config.dcb.is_on()
        || measured
        || !classes.is_empty()
        || !queue.is_one_fifo()
        || (sleep.is_some() && (at_dequeue || class.both))
        || ((sleep.is_some() || at_dequeue) && watched);
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

/// What a port of a fabric with data-centre bridging has besides.
fn dcb_port(
    dcb: &Arc<DcbConfig>,
    config: &FabricConfig,
    hosts: u32,
    (link, from, to, cable): (usize, u32, u32, CableConfig),
    watched: bool,
    seed: u64,
) -> Option<Box<DcbPort>> {
    if !dcb.is_on() {
        return None;
    }
    let (mtu, framing, min_frame) = (config.mtu, config.framing, config.min_frame);
    let classes = config.scheduler.classes();
    let own = classes.iter().filter_map(|class| class.queue.as_ref());
    let queue = if from < hosts { &config.host_queue } else { &config.switch_queue };
    let observed = watched
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

/// Links that somebody looks at between their own events: faults, or routing that goes by queues.
fn watched_links(config: &FabricConfig, links: usize) -> Vec<bool> {
    let mut watched = vec![config.routing.looks_at_queues(); links];
    for &link in config.faults.iter().flat_map(|fault| &fault.links) {
        watched[link as usize] = true;
    }
    watched
}

/// Framing is some tens of bytes; the scenario reader allows no more than a packet's length.
fn at_most_u16(bytes: u32) -> u16 {
    u16::try_from(bytes).expect("framing fits into a packet length")
}
