//! One direction of a cable with the output port that feeds it.
//!
//! A link holds the packets that have left its port, or whose departure is decided, in one FIFO
//! ring, in order of arrival at the far end. The ring contains a [`PacketHandle`] of each packet.
//! Until its departure is decided, a packet is handled as the mode of the port requires:
//!
//! * [`Mode::Eager`]: the departure is decided when a packet is enqueued, from the time until which
//!   the port is busy. There is one event per packet and link. This mode serves ports with one FIFO
//!   queue and decisions at enqueue.
//! * [`Mode::Lazy`]: departures are decided as of the time when they are due, but only computed
//!   when the port is next used. There is one event per packet and link. This mode serves ports
//!   with decisions at dequeue, with traffic classes or with several queues.
//! * [`Mode::TwoEvent`]: packets are in queues, and an event ends every transmission. This mode
//!   serves all other ports: ports with pauses, shared buffers or measurements, and lazy ports that
//!   sleep, have faults or are read by the routing. This mode is also the reference: in the other
//!   modes, every packet must have the same departure, marks and drops.
//!
//! If the scenario has faults for the link, the rules in `fault_state` also apply, in every mode.
//!
//! In all modes a packet counts as queued from its arrival until its first bit is sent, so that
//! decisions never depend on the mode. Among events at the same time, [`Class::Departure`] is
//! executed before [`Class::Arrival`]: a packet that arrives when the transmission of another
//! packet starts no longer counts that packet as queued.

mod asleep;
mod card;
mod counts;
mod fault_state;
mod faults;
mod flow_queues;
mod kind;
pub mod meter;
mod partitioned;
mod port_queues;
mod started;
#[cfg(test)]
mod tests;

use crate::account::{Account, Group, NOTHING};
use crate::dcb::port_state::DcbPort;
use crate::energy::eee::{LpiState, Policy};
use crate::energy::phy::Phy;
use crate::losses::Cause;
pub use crate::packet_handle::{PacketHandle, PacketWords};
use crate::pool::{PacketPool, Stored};
use crate::queue::{
    Arrival, Backlog, Discipline, DropTail, LARGEST_BARE_PACKET, Place, Queue, QueueConfig, Verdict,
};
use crate::ring::Ring;
use crate::scheduler::PortClass;
use crate::shared_buffer::SharedBuffer;
use crate::topology::CableConfig;
use eastwest_engine::order::{Class, Key};
use eastwest_engine::random::mix;
use eastwest_types::{HopTelemetry, Limit, Rate, Span, Time};
use fault_state::FaultState;
pub(crate) use kind::{Kinds, LinkKind};
use meter::Meter;
use port_queues::Admission;
pub(crate) use port_queues::PortQueues;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Mode of a port: when departures of packets are decided, and how many events they need.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Mode {
    /// The departure of a packet is decided when it is enqueued. No event ends the transmission.
    Eager,
    /// Departures are decided at dequeue. No event ends the transmission.
    Lazy,
    /// Departures are decided at dequeue, and an event ends every transmission.
    TwoEvent,
}

/// Counters of one link. `packets` and `bytes` count a packet when it arrives at the far end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Number of packets that have arrived at the far end.
    pub packets: u64,
    /// Bytes that have arrived at the far end, framing included.
    pub bytes: u64,
    /// Running hash over the events of every packet at this port, from which the digest of a run is
    /// computed.
    pub trail: u64,
}

/// Result of [`Link::enqueue`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The packet is dropped, for the given cause.
    Dropped(Cause),
    /// The packet is queued or in transmission; the next event of the link is unchanged.
    Queued,
    /// The packet is queued or in transmission. The next event of the link now has the given key,
    /// which is not later than the previous key.
    Sooner(Key),
    /// The packet is queued; other packets may have been dropped, see [`Link::take_dropped`]. The
    /// next event of the link now has the given key, which may be earlier or later than the
    /// previous key.
    Displaced(Key),
}

/// Packets that a discipline has dropped at dequeue, each with the time and the cause of its drop;
/// at least one packet. Used by lazy ports (departures decided at dequeue).
#[derive(Default, Serialize, Deserialize)]
struct DeferredDrops(Vec<(Time, PacketHandle, Cause)>);

/// A directed link and its output port. The fields that packets access at a port on the fastest path
/// are in the first cache line, so that a hop from link to link accesses two.
#[derive(Serialize, Deserialize)]
#[repr(C, align(64))]
pub struct Link {
    /// Packets that have left the port, or whose departure is decided, in order of arrival at the
    /// far end. Its `note` is the number of bytes that [`Link::held_bytes`] returns, modulo 2³².
    pub(crate) on_wire: Ring<PacketHandle>,
    /// Running hash over the events of every packet at this port, see [`Counters::trail`].
    trail: u64,
    /// Time at which the port will have sent all queued packets, if no more packets arrive.
    pub(crate) busy_until: Time,
    /// Properties that other links share.
    pub(crate) kind: Arc<LinkKind>,
    /// Number of the node at the far end.
    pub to: u32,
    /// Longest waiting time, see [`Link::longest_wait`], in units of 2¹⁶ ps: rounded up, at least 1.
    /// The largest number stands for all longer times.
    longest_wait_units: u32,
    /// Bytes, framing included, of the packets that `new_packets` counts.
    new_bytes: u32,
    /// Number of packets that have arrived at the far end and are not yet in `packets`.
    new_packets: u16,
    /// The bits [`SLOW_ARRIVAL`], [`WITH_JITTER`], [`FAST_ENQUEUE`], [`STARTS_FIRST`],
    /// [`FLOW_QUEUES`], [`PARTITIONED`] and [`ARRIVES_HERE`].
    paths: u16,

    /// Number of packets that have arrived at the far end, without `new_packets`.
    packets: u64,
    /// Bytes that have arrived at the far end, framing included, without `new_bytes`.
    bytes: u64,
    /// Longest time from the arrival of a packet at the port until its first bit can be sent.
    longest_wait: Span,
    /// Seed of the random delay at the far end.
    jitter_seed: u64,
    /// Number of packets at the end of the ring whose transmission is not known to have started.
    /// This count is used at ports with data-centre bridging (DCB), in mode `Lazy`, and in mode
    /// `Eager` if the discipline sees every packet or the link sleeps, see [`started`].
    pub(crate) waiting: u32,
    /// Number of the node that sends on this link.
    pub from: u32,
    /// Whether the port is in [`Mode::Lazy`], in which departures are decided at dequeue.
    lazy: bool,
    /// Whether the discipline must see every packet, at a port in mode `Eager`.
    sees_all: bool,
    /// Whether the port must start the transmissions that are due before a packet arrives at the far
    /// end (mode `Lazy`).
    acts_before_arrival: bool,

    /// Queues of a port in mode `TwoEvent`, or in mode `Lazy` with several queues (traffic classes,
    /// or a discipline without FIFO order); otherwise `None`.
    pub(crate) queues: Option<Box<PortQueues>>,
    /// Queue discipline of a port in mode `Eager` or `Lazy`.
    queue: Queue,
    /// IP bytes of the packets counted in `waiting`; not updated at ports with data-centre bridging
    /// (DCB).
    waiting_bytes: u64,
    /// Time at which the transmission of the first packet that `waiting` counts begins. Without
    /// such a packet [`Time::NEVER`] in mode `Lazy`, and not meaningful in mode `Eager`.
    next_start: Time,
    /// [`Discipline::packet_thresholds`]; zero and the largest number if there are none, so that
    /// the queue reaches only the first of them.
    packet_thresholds: [u32; 2],
    /// Packets that the discipline of a lazy port has dropped at dequeue, with the times of the
    /// drops; `None` if no drop is recorded.
    deferred_drops: Option<Box<DeferredDrops>>,
    /// State of low-power idle (LPI); `None` if the link never sleeps.
    lpi: Option<Box<LpiState>>,
    /// State under faults; `None` if the scenario has no faults for the link.
    fault_state: Option<Box<FaultState>>,
    /// Marks and drops by group of packets; `None` before the first one.
    pub(crate) account: Option<Box<Account>>,
    /// Number of packets lost at this link, for any cause.
    lost: u64,
    /// Histograms of queue lengths and waiting times; `None` unless `measure.ports` names the port.
    pub(crate) meter: Option<Box<Meter>>,
    /// Rate and propagation delay as configured, without the effect of faults.
    pub cable: CableConfig,
}

// The size is a power of two, so that a link is addressed with a shift.
const _: () = assert!(std::mem::offset_of!(Link, packets) == 64 && size_of::<Link>() == 256);

/// Bit of [`Link::paths`] that is set if an event of the link may be other than an arrival, or if its
/// arrivals need more than [`Link::arrive_fast`] does.
const SLOW_ARRIVAL: u16 = 1 << 0;
/// Bit of [`Link::paths`] that is set if the far end adds a random delay.
const WITH_JITTER: u16 = 1 << 1;
/// Bit of [`Link::paths`] that is set if [`Link::enqueue`] uses its fastest path: mode `Eager`, no
/// faults, and a link that never sleeps. In mode `Lazy`: if the port fixes departures at enqueue for
/// now, see [`started`].
const FAST_ENQUEUE: u16 = 1 << 2;
/// Bit of [`Link::paths`] that is set with [`SLOW_ARRIVAL`] at a lazy port: before a packet arrives at
/// the far end, [`Link::settle`] must start the transmissions that are due. Then
/// [`Link::arrive_fast`] executes the arrival.
const STARTS_FIRST: u16 = 1 << 3;
/// Bit of [`Link::paths`] that is set at a lazy port with the queues of FQ-CoDel, one traffic class
/// and no shared buffer, see [`flow_queues`].
const FLOW_QUEUES: u16 = 1 << 4;
/// Bit of [`Link::paths`] that is set if packets of the port may arrive in another part of a fabric
/// that is simulated in several parts (threads), see [`partitioned`].
const PARTITIONED: u16 = 1 << 5;
/// Bit of [`Link::paths`] that is set at a [`PARTITIONED`] port if the ring has a packet that arrives
/// in this part, whose arrival is then an event.
const ARRIVES_HERE: u16 = 1 << 6;

/// Parameters of a new link and its output port.
pub struct LinkSpec {
    /// Number of the node that sends on the link.
    pub from: u32,
    /// Number of the node that receives from the link.
    pub to: u32,
    /// Rate and propagation delay of the cable.
    pub cable: CableConfig,
    /// Queue discipline of the port, with the limit of its queue.
    pub queue: QueueConfig,
    /// Framing in bytes: bytes of a packet on the link in addition to its IP length.
    pub framing: u16,
    /// Smallest length of a packet on the link in bytes, framing included; shorter packets are
    /// padded.
    pub min_frame: u16,
    /// Largest packet in IP bytes.
    pub mtu: u32,
    /// Width in time of the uniform random delay at the far end (the processing jitter of a host).
    pub jitter: Span,
    /// Seed of the random delay at the far end.
    pub jitter_seed: u64,
    /// Mode of the output port.
    pub mode: Mode,
    /// Traffic classes, each with its own queue. A port with classes cannot have [`Mode::Eager`].
    pub classes: Vec<PortClass>,
    /// Whether the port records histograms of queue lengths and waiting times. Histograms need a
    /// port in [`Mode::TwoEvent`].
    pub measured: bool,
    /// Memory shared with other ports of the switch, which needs a port in [`Mode::TwoEvent`];
    /// `None` without shared memory.
    pub shared: Option<Arc<SharedBuffer>>,
    /// Sleep policy and transceiver of a link that can sleep, whose port must not be in
    /// [`Mode::Lazy`]; `None` for a link that is always awake.
    pub sleep: Option<(Policy, Phy)>,
    /// State of data-centre bridging (DCB), which needs a port in [`Mode::TwoEvent`]; `None` at a
    /// port without DCB.
    pub dcb: Option<Box<DcbPort>>,
    /// Seed of the random numbers of queue disciplines, and the number of this link.
    pub seed: (u64, u64),
}

impl Link {
    /// Returns a link without packets, with the given parameters.
    pub fn new(mut spec: LinkSpec) -> Link {
        let (two_event, lazy) = (spec.mode == Mode::TwoEvent, spec.mode == Mode::Lazy);
        let eager = spec.mode == Mode::Eager;
        assert!(spec.classes.is_empty() || !eager, "traffic classes cannot have mode Eager");
        assert!(spec.shared.is_none() || two_event, "a shared buffer needs mode TwoEvent");
        assert!(!spec.measured || two_event, "a measured port needs mode TwoEvent");
        assert!(spec.sleep.is_none() || !lazy, "a port in mode Lazy cannot sleep");
        assert!(
            !eager || !spec.queue.decides_at_dequeue(),
            "a discipline that decides at dequeue cannot have mode Eager"
        );
        let place = Place {
            rate: spec.cable.rate,
            mtu: spec.mtu,
            framing: u32::from(spec.framing),
            seed: spec.seed.0,
            number: spec.seed.1,
        };
        let several = !spec.classes.is_empty() || !spec.queue.is_one_fifo();
        let queues = (two_event || (lazy && several)).then(|| {
            let dcb = spec.dcb.take();
            PortQueues::new(&spec.classes, &spec.queue, &place, spec.shared.clone(), dcb)
        });
        let lpi = spec.sleep.map(|(policy, phy)| Box::new(LpiState::new(policy, &phy)));
        let queue = match queues {
            None => spec.queue.start(&place),
            Some(_) => Queue::DropTail(DropTail(Limit::Packets(0))),
        };
        let sees_all = eager && queue.sees_all();
        let framing = u32::from(spec.framing);
        let longest = (spec.mtu.max(LARGEST_BARE_PACKET) + framing).max(u32::from(spec.min_frame));
        assert!(longest <= u32::from(u16::MAX), "65,536 packets must have less than 2³² bytes");
        let kind = LinkKind {
            ps_per_byte_q16: spec.cable.rate.ps_per_byte_q16(),
            delay: spec.cable.delay,
            jitter: spec.jitter,
            admits_below: if sees_all { 0 } else { queue.admits_below(spec.mtu) },
            framing,
            min_frame: spec.min_frame.into(),
        };
        let mut link = Link {
            on_wire: Ring::default(),
            trail: 0,
            busy_until: Time::ZERO,
            kind: Arc::new(kind),
            to: spec.to,
            longest_wait_units: 1,
            new_bytes: 0,
            new_packets: 0,
            paths: if eager && lpi.is_none() { FAST_ENQUEUE } else { 0 },
            packets: 0,
            bytes: 0,
            longest_wait: Span::ZERO,
            jitter_seed: spec.jitter_seed,
            lazy,
            sees_all,
            acts_before_arrival: lazy && queues.is_none(),
            fault_state: None,
            packet_thresholds: queue.packet_thresholds().unwrap_or([0, u32::MAX]),
            queue,
            waiting: 0,
            waiting_bytes: 0,
            next_start: Time::NEVER,
            deferred_drops: None,
            lpi,
            account: None,
            lost: 0,
            meter: spec.measured.then(Default::default),
            queues: queues.map(Box::new),
            from: spec.from,
            cable: spec.cable,
        };
        link.choose_arrival_path();
        let has_flow_queues = link.queues.as_deref().is_some_and(PortQueues::has_flow_queues);
        link.set_path(FLOW_QUEUES, lazy && has_flow_queues);
        if lazy && link.queue.passes_below() > Span::ZERO {
            // With fewer packets, every packet waits for less than `passes_below`.
            let largest = link.send_time(spec.mtu.max(LARGEST_BARE_PACKET)).0.max(1);
            let short = link.queue.passes_below().0.div_ceil(largest);
            let admits_below = &mut Arc::make_mut(&mut link.kind).admits_below;
            *admits_below = (*admits_below).min(u32::try_from(short).unwrap_or(u32::MAX));
        }
        link
    }

    /// Decides whether arrivals use [`Link::arrive_fast`]. Must be called after every change of a
    /// field that this function reads.
    fn choose_arrival_path(&mut self) {
        let only_arrivals = self.enqueues_fast() || self.lazy;
        self.set_path(SLOW_ARRIVAL, !only_arrivals || self.acts_before_arrival);
        self.set_path(STARTS_FIRST, self.lazy && self.acts_before_arrival);
        self.set_path(WITH_JITTER, self.kind.jitter > Span::ZERO);
    }

    /// Sets or clears a bit of [`Link::paths`].
    fn set_path(&mut self, bit: u16, on: bool) {
        self.paths = if on { self.paths | bit } else { self.paths & !bit };
    }

    /// Whether events of the link may be executed by [`Link::arrive_fast`].
    #[inline]
    pub(crate) fn arrives_fast(&self) -> bool {
        self.paths & SLOW_ARRIVAL == 0
    }

    /// Whether events of the link may be executed by [`Link::arrive_fast`] after [`Link::settle`] has
    /// started the transmissions that are due.
    #[inline]
    pub(crate) fn starts_first(&self) -> bool {
        self.paths & STARTS_FIRST != 0
    }

    /// Returns the framing in bytes: bytes of a packet on the link in addition to its IP length.
    #[inline]
    pub(crate) fn framing(&self) -> u32 {
        self.kind.framing
    }

    /// Returns the current propagation delay, with the effect of faults.
    #[inline]
    pub(crate) fn delay(&self) -> Span {
        self.kind.delay
    }

    /// Returns the bytes on the link of a packet of `ip_len` IP bytes, framing and padding
    /// included.
    #[inline]
    pub fn wire_bytes(&self, ip_len: u32) -> u32 {
        self.kind.wire_bytes(ip_len)
    }

    /// Returns the transmission time of a packet of `ip_len` IP bytes, framing included, rounded
    /// down to a picosecond.
    #[inline]
    pub(crate) fn send_time(&self, ip_len: u32) -> Span {
        self.kind.send_time(ip_len)
    }

    /// Returns the counts of marks and drops at the port, by group of packets.
    pub fn account(&self) -> &Account {
        self.account.as_deref().unwrap_or(&NOTHING)
    }

    /// Returns the histograms of queue lengths and waiting times; `None` if the port is not
    /// measured. At a measured port, [`Link::account`] contains arrivals too.
    pub fn meter(&self) -> Option<&Meter> {
        self.meter.as_deref()
    }

    /// Returns the number of packets lost at this link, for any cause.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the group (traffic class, kind of packet, ECN-capable or not) in which the port
    /// counts a packet.
    pub(crate) fn group(&self, packet: &Stored) -> Group {
        let class = self.queues.as_ref().map_or(0, |q| q.class_of(packet.dscp()));
        Group { class, kind: packet.kind(), ect: packet.understands_marks() }
    }

    /// Counts a packet as lost at this link, for the cause `cause`.
    pub fn count_loss(&mut self, now: Time, handle: &PacketHandle, packet: &Stored, cause: Cause) {
        let group = self.group(packet);
        self.account.get_or_insert_default().of(group).lost[cause as usize] += 1;
        self.lost += 1;
        self.fold(!now.0 ^ (cause as u64) << 56, handle.identity());
    }

    /// Whether the port is on the fastest path of enqueue, [`Link::enqueue_fast`].
    #[inline]
    pub(crate) fn enqueues_fast(&self) -> bool {
        self.paths & FAST_ENQUEUE != 0
    }

    /// Enqueues a packet at the port of a link that [`enqueues_fast`](Link::enqueues_fast). `Some`:
    /// the next event of the link now has this key, which is not later than the previous key. An
    /// error is the outcome if the packet is dropped, or if a lazy port leaves the fastest path.
    #[inline(always)]
    pub(crate) fn enqueue_fast(
        &mut self,
        now: Time,
        packet: PacketWords,
        pool: &mut PacketPool,
    ) -> Result<Option<Key>, Outcome> {
        if self.on_wire.len() >= self.kind.admits_below as usize
            && let Some(outcome) = self.decide(now, packet, pool)
        {
            return Err(outcome);
        }
        Ok(self.append_to_wire(now, packet))
    }

    /// Decides about a packet that arrives at a port that fixes departures at enqueue (eager) with
    /// many packets. Returns the result like [`Link::decide_on_fast_path`].
    #[inline(always)]
    fn decide(&mut self, now: Time, packet: PacketWords, pool: &mut PacketPool) -> Option<Outcome> {
        match (self.sees_all, self.busy_until > now) {
            (true, _) => self.decide_and_count(now, packet, pool),
            (false, true) => self.decide_on_fast_path(now, packet, pool),
            (false, false) => None,
        }
    }

    /// Enqueues a packet at the port of the link, or drops it. The fabric itself enqueues packets
    /// at ports with data-centre bridging (DCB), and at ports to other parts of a partitioned
    /// fabric.
    #[inline(always)]
    pub fn enqueue(&mut self, now: Time, packet: PacketWords, pool: &mut PacketPool) -> Outcome {
        if self.enqueues_fast() {
            return match self.enqueue_fast(now, packet, pool) {
                Ok(None) => Outcome::Queued,
                Ok(Some(key)) => Outcome::Sooner(key),
                Err(outcome) => outcome,
            };
        }
        if self.lazy && self.queues.is_some() {
            return self.enqueue_lazy_queues(now, packet, pool);
        }
        debug_assert!(!self.has_dcb() && !self.is_partitioned());
        self.enqueue_slow_path(now, packet.arriving(Time::NEVER), pool)
    }

    /// Decides about a packet that arrives at a port on the fastest path with many packets. `None`:
    /// the packet is admitted, and its departure can be fixed. `Some`: the packet was dropped, or
    /// enqueued after the port has left the fastest path.
    #[inline(never)]
    fn decide_on_fast_path(
        &mut self,
        now: Time,
        packet: PacketWords,
        pool: &mut PacketPool,
    ) -> Option<Outcome> {
        if self.lazy && self.busy_until.since(now) >= self.queue.passes_below() {
            return Some(self.leave_fast_path_with(now, packet, pool));
        }
        let [low, high] = self.packet_thresholds;
        if !self.queue_reaches(low, now) {
            return None;
        }
        if self.queue_reaches(high, now) {
            return Some(Outcome::Dropped(Cause::QueueFull));
        }
        if high == u32::MAX {
            return self.decide_by_backlog(now, packet, pool);
        }
        let handle = packet.arriving(now);
        let verdict = self.queue.between_thresholds(pool.get(handle.slot()));
        self.carry_out_verdict(now, &handle, verdict, pool).map(Outcome::Dropped)
    }

    /// Decides about a packet like [`Link::decide_on_fast_path`], at a port whose discipline must see
    /// every packet.
    #[inline(never)]
    fn decide_and_count(
        &mut self,
        now: Time,
        packet: PacketWords,
        pool: &mut PacketPool,
    ) -> Option<Outcome> {
        let backlog = self.update_waiting(now);
        let lost = self.apply_aqm(now, &packet.arriving(now), backlog, self.busy_until, pool);
        if lost.is_none() {
            self.count_enqueued(now, packet.ip_len());
        }
        lost.map(Outcome::Dropped)
    }

    /// Decides like [`Link::decide_on_fast_path`], with a discipline that needs the exact length of
    /// the queue.
    #[inline(never)]
    fn decide_by_backlog(
        &mut self,
        now: Time,
        packet: PacketWords,
        pool: &mut PacketPool,
    ) -> Option<Outcome> {
        let (backlog, clear_at) = (self.backlog(now), self.busy_until);
        self.apply_aqm(now, &packet.arriving(now), backlog, clear_at, pool).map(Outcome::Dropped)
    }

    /// Fixes the departure of an admitted packet and appends it to the ring of packets in flight.
    /// For a port that fixes departures at enqueue (eager).
    #[inline(always)]
    fn schedule_departure(&mut self, now: Time, packet: PacketWords) -> Outcome {
        match self.append_to_wire(now, packet) {
            None => Outcome::Queued,
            Some(key) => Outcome::Sooner(key),
        }
    }

    /// Fixes the departure of an admitted packet like [`Link::schedule_departure`]. `Some`: the next
    /// event of the link now has this key.
    #[inline(always)]
    fn append_to_wire(&mut self, now: Time, packet: PacketWords) -> Option<Key> {
        let ip_bytes = packet.ip_bytes();
        let depart = self.extend_backlog(now, self.send_time(ip_bytes as u32));
        let arrive = depart.after(self.kind.delay);
        self.on_wire.hold(ip_bytes as u32);
        let first = self.on_wire.is_empty();
        self.on_wire.push(packet.arriving(arrive));
        first.then(|| self.arrival_key(now, arrive))
    }

    /// Returns the input of the queue discipline for an arriving packet. `backlog` is the queue of
    /// the port before the packet, and `clear_at` the time at which the port will have sent all
    /// earlier packets.
    pub(crate) fn arrival<'p>(
        &self,
        now: Time,
        handle: &PacketHandle,
        backlog: Backlog,
        clear_at: Time,
        pool: &'p PacketPool,
    ) -> Arrival<'p> {
        let ip_len = u32::from(handle.ip_len());
        Arrival {
            now,
            ip_len,
            send_time: self.send_time(ip_len),
            backlog,
            clear_at,
            packet: pool.get(handle.slot()),
            handle: *handle,
            pool,
        }
    }

    /// Applies the queue discipline to an arriving packet: marks it if required. Returns the cause
    /// if the packet is dropped.
    #[inline(always)]
    fn apply_aqm(
        &mut self,
        now: Time,
        handle: &PacketHandle,
        backlog: Backlog,
        clear_at: Time,
        pool: &mut PacketPool,
    ) -> Option<Cause> {
        let ip_len = u32::from(handle.ip_len());
        let (send_time, handle) = (self.send_time(ip_len), *handle);
        let arrival = || {
            let packet = pool.get(handle.slot());
            Arrival { now, ip_len, send_time, backlog, clear_at, packet, handle, pool }
        };
        let verdict = match &mut self.queue {
            // RED decides about every packet and reads few of its properties. Tested first, it needs
            // neither the other properties nor a jump table.
            Queue::Red(red) => red.at_enqueue(&arrival()),
            queue => queue.at_enqueue(&arrival()),
        };
        self.carry_out_verdict(now, &handle, verdict, pool)
    }

    /// Marks an arriving packet if the discipline has decided so. Returns the cause if the packet is
    /// dropped.
    #[inline(always)]
    fn carry_out_verdict(
        &mut self,
        now: Time,
        handle: &PacketHandle,
        verdict: Verdict,
        pool: &mut PacketPool,
    ) -> Option<Cause> {
        if verdict == Verdict::Mark {
            self.mark(now, handle.slot(), handle.identity(), pool);
        }
        verdict.loss()
    }

    /// Enqueues a packet at a port that is not on the fastest path: in mode `Lazy` or `TwoEvent`,
    /// with sleep or faults, or in a partitioned fabric.
    #[inline(never)]
    fn enqueue_slow_path(
        &mut self,
        now: Time,
        handle: PacketHandle,
        pool: &mut PacketPool,
    ) -> Outcome {
        if self.queues.is_some() {
            return self.enqueue_two_event(now, handle, pool);
        }
        if self.lazy {
            return self.enqueue_lazy(now, handle, pool);
        }
        if self.lpi.is_some() {
            return self.enqueue_sleeping(now, handle, pool);
        }
        debug_assert!(self.fault_state.is_some());
        let busy = self.busy_until > now;
        if (busy && self.on_wire.len() >= self.kind.admits_below as usize) || self.sees_all {
            let backlog = if busy { self.backlog(now) } else { Backlog::default() };
            if let Some(cause) = self.apply_aqm(now, &handle, backlog, self.busy_until, pool) {
                return Outcome::Dropped(cause);
            }
        }
        self.schedule_departure(now, handle.words());
        let place = self.on_wire.len() as u32 - 1;
        let arrive = self.arrival_after(self.busy_until, place as usize);
        self.on_wire.change(place, |handle| handle.arrive = arrive);
        if place == 0 { Outcome::Sooner(self.next_key(now)) } else { Outcome::Queued }
    }

    /// Adds the transmission of a packet to `busy_until`. Returns the time at which the packet will
    /// have been sent if packets leave in order of arrival.
    #[inline]
    fn extend_backlog(&mut self, now: Time, send_time: Span) -> Time {
        let start = self.busy_until.max(now);
        let backlog = Span(start.0 - now.0);
        self.note_wait(backlog);
        self.busy_until = start.after(send_time);
        self.busy_until
    }

    /// Returns the event key at which a packet that reaches the far end at `arrive` is delivered.
    /// Links to hosts add a random processing delay that does not change the order of packets.
    #[inline]
    pub(crate) fn arrival_key(&self, now: Time, arrive: Time) -> Key {
        let mut at = arrive;
        if self.paths & WITH_JITTER != 0 {
            at = self.jittered(arrive, self.counters().packets).max(now);
        }
        Key::new(at, Class::Arrival)
    }

    /// Returns the delivery time of the packet `number` of this link (counted from 0), with its
    /// random processing delay, ignoring earlier packets.
    #[inline]
    fn jittered(&self, arrive: Time, number: u64) -> Time {
        let random = mix(self.jitter_seed ^ number);
        let extra = (u128::from(random) * u128::from(self.kind.jitter.0)) >> 64;
        arrive.after(Span(extra as u64))
    }

    /// Sets the CE mark on the packet in `slot` and counts the mark, if the transport supports ECN
    /// and the packet is not marked yet.
    #[cold]
    #[inline(never)]
    pub(crate) fn mark(&mut self, now: Time, slot: u32, identity: u32, pool: &mut PacketPool) {
        if pool.mark(slot) {
            let group = self.group(pool.get(slot));
            self.account.get_or_insert_default().of(group).marks += 1;
            self.fold(now.0.rotate_left(32), identity);
        }
    }

    /// Removes the payload of a packet that a trimming discipline has admitted with its header
    /// alone.
    #[cold]
    fn trim(&mut self, now: Time, handle: &PacketHandle, pool: &mut PacketPool) {
        pool.trim(handle.slot());
        self.fold(now.0.rotate_left(16), handle.identity());
    }

    /// Writes the state of the port into a packet of which it begins the transmission.
    #[cold]
    fn record_hop(&self, now: Time, slot: u32, pool: &mut PacketPool) {
        let on_wire = self.on_wire.iter().map(|p| u64::from(self.wire_bytes(p.ip_len().into())));
        let hop = HopTelemetry {
            at: now,
            queued_bytes: self.queues.as_ref().map_or(0, |q| q.backlog().bytes),
            // `counters` has only packets that have arrived
            sent_bytes: self.counters().bytes + on_wire.sum::<u64>() + self.bytes_lost_in_flight(),
            rate: self.rate(),
        };
        pool.record_hop(self.from, slot, hop);
    }

    /// Adds an event of a packet to the running hash [`Counters::trail`], so that the hash changes if
    /// any packet is treated differently.
    #[inline(always)]
    fn fold(&mut self, when: u64, identity: u32) {
        let identity = u64::from(identity) << 32 | u64::from(identity);
        self.trail =
            (self.trail ^ when ^ identity).wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(29);
    }

    /// Executes the next event of a link that [`arrives_fast`](Link::arrives_fast), an arrival.
    /// Returns the packet that has reached the far end, and the key of the next event.
    #[inline(always)]
    pub(crate) fn arrive_fast(&mut self, key: Key) -> (PacketHandle, Key) {
        debug_assert!((self.arrives_fast() || self.starts_first()) && !key.is_departure());
        let handle = self.take_first(key);
        let next = match self.on_wire.first().map(|handle| handle.arrive) {
            None => Key::NEVER,
            Some(arrive) if self.paths & WITH_JITTER == 0 => Key::new(arrive, Class::Arrival),
            Some(arrive) => self.arrival_key(key.time(), arrive),
        };
        (handle, next)
    }

    /// Executes the next event of the link, an arrival. Returns the packet that has reached the far
    /// end, and the key of the next event. A lazy port (departures decided at dequeue) may have
    /// dropped packets, see [`Link::take_deferred_drops`].
    #[inline(always)]
    pub fn arrive(&mut self, key: Key, pool: &mut PacketPool) -> (PacketHandle, Key) {
        if self.acts_before_arrival {
            self.settle(key.time(), pool);
        }
        let handle = self.take_first(key);
        (handle, self.next_key(key.time()))
    }

    /// Removes and returns the packet that has arrived at the far end, and counts it.
    #[inline(always)]
    pub(crate) fn take_first(&mut self, key: Key) -> PacketHandle {
        let handle = self.on_wire.pop().expect("an arrival needs a packet on the wire");
        let ip_len = handle.ip_bytes() as u32;
        self.on_wire.release(ip_len);
        self.count_arrival(ip_len);
        self.fold(key.0, handle.identity());
        handle
    }

    /// Executes the next event of the link, a departure: a transmission has ended, or a packet was
    /// lost in flight. Returns the lost packet with the cause (`None` if no packet was lost), and
    /// the key of the next event.
    pub fn depart(
        &mut self,
        key: Key,
        pool: &mut PacketPool,
    ) -> (Option<(PacketHandle, Cause)>, Key) {
        let lost = self.take_lost_in_flight(key);
        if lost.is_none() {
            self.start_sending(key.time(), pool);
        }
        (lost, self.next_key(key.time()))
    }

    /// Returns the key of the next event of the link; [`Key::NEVER`] if the link has no event.
    #[inline]
    pub(crate) fn next_key(&mut self, now: Time) -> Key {
        // Ports in mode `Lazy` also have only arrivals as events.
        if !(self.enqueues_fast() || self.lazy)
            && (self.queues.is_some() || self.fault_state.is_some())
        {
            return self.next_key_slow_path(now);
        }
        match self.on_wire.first().map(|handle| handle.arrive) {
            None => Key::NEVER,
            Some(arrive) => self.arrival_key(now, arrive),
        }
    }

    #[inline(never)]
    fn next_key_slow_path(&mut self, now: Time) -> Key {
        if self.fault_state.is_none()
            && let Some(due) = self.queues.as_ref().and_then(|q| q.due_unless_paused())
        {
            let arrive =
                self.on_wire.get(0).map_or_else(|| self.foreseen_arrival(), |handle| handle.arrive);
            let first = match arrive {
                Time::NEVER => Key::NEVER,
                arrive => self.arrival_key(now, arrive),
            };
            return match due {
                Time::NEVER => first,
                due => first.min(Key::new(due.max(now), Class::Departure)),
            };
        }
        self.next_key_with_faults(now)
    }

    #[inline(never)]
    fn next_key_with_faults(&mut self, now: Time) -> Key {
        let first = self.first_key(now);
        match &self.queues {
            Some(q) if q.dcb.is_some() => self.next_key_dcb(first, now),
            Some(q) if q.sent_at < Time::NEVER => first.min(Key::new(q.sent_at, Class::Departure)),
            _ => first,
        }
    }

    /// Returns the slot in the pool of the packet at position `place` in the order of arrival at
    /// the far end (0: the next packet to arrive); `None` if fewer packets are in flight.
    #[inline]
    pub fn upcoming(&self, place: u32) -> Option<u32> {
        self.on_wire.get(place).map(|handle| handle.slot())
    }

    fn backlog(&self, now: Time) -> Backlog {
        let (packets, bytes) = self.queue(now);
        Backlog { packets: packets as usize, bytes }
    }

    /// Connects the port to the buffer shared by the ports of its switch. The first port of the
    /// switch provides the buffer.
    pub(crate) fn share_memory(&mut self, memory: &mut Option<Arc<SharedBuffer>>) {
        if let Some(queues) = &mut self.queues {
            queues.share(memory);
        }
    }

    /// Returns (number of packets, IP bytes) in the queues of the port at `now`. The packet in
    /// transmission, and packets in the buffer of a sleeping link layer, do not count. A lazy port
    /// must have computed its departures before ([`Link::settle`]).
    pub fn queue(&self, now: Time) -> (u32, u64) {
        if let Some(q) = &self.queues {
            let backlog = q.backlog();
            return (backlog.packets as u32, backlog.bytes);
        }
        if self.lazy && !self.enqueues_fast() {
            return (self.waiting, self.waiting_bytes);
        }
        if self.fault_state.is_some() {
            let (waiting, bytes, _) = self.count_waiting(now);
            return (waiting, bytes);
        }
        let waits = self.waits_in_ring(now);
        let queued = self.above_link_buffer(waits);
        (queued.packets as u32, queued.bytes)
    }

    /// Returns the packets in the ring whose transmission has not started, at a port without faults
    /// that fixes departures at enqueue (eager).
    fn waits_in_ring(&self, now: Time) -> Backlog {
        let (mut waiting, mut bytes) = (self.on_wire.len(), self.held_bytes());
        for handle in self.on_wire.iter().take_while(|handle| self.has_started(handle, now)) {
            waiting -= 1;
            bytes -= u64::from(handle.ip_len());
        }
        Backlog { packets: waiting, bytes }
    }

    /// Whether at least `packets` packets are queued at `now`, at a busy port that fixes departures
    /// at enqueue (eager), has no faults and never sleeps.
    #[inline]
    fn queue_reaches(&self, packets: u32, now: Time) -> bool {
        // The oldest of these packets is queued if the packet before it has not been sent. The
        // first packet in the ring has always started. A place below zero wraps around to a large
        // number, at which the ring has no packet.
        let before = (self.on_wire.len() as u32).wrapping_sub(packets).wrapping_sub(1);
        self.on_wire.get(before).is_some_and(|p| p.arrive > now.after(self.kind.delay))
    }

    /// Whether the transmission of a packet in the ring has started by `now`, at a port without
    /// faults that fixes departures at enqueue (eager).
    #[inline]
    fn has_started(&self, handle: &PacketHandle, now: Time) -> bool {
        // The first bit of a packet that has started reaches the far end by `now` plus the delay.
        let way = handle.arrive.since(now + self.kind.delay);
        way == Span::ZERO || way <= self.send_time(u32::from(handle.ip_len()))
    }

    /// Returns the time at which the port will have sent all queued packets with DSCP `dscp`,
    /// including the packets that are sent before them.
    #[inline]
    pub fn clear_at(&self, dscp: u8) -> Time {
        match &self.queues {
            Some(queues) if queues.may_reorder() => self.turn_ends(queues, dscp),
            _ => self.busy_until,
        }
    }

    /// Returns the time at which the port will have sent all queued packets with DSCP `dscp`, at a
    /// port with several classes or paused priorities. Future pauses are ignored.
    #[inline(never)]
    fn turn_ends(&self, queues: &PortQueues, dscp: u8) -> Time {
        if queues.sent_at == Time::NEVER {
            return self.busy_until;
        }
        let bytes = queues.bytes_until(dscp, u64::from(self.framing()));
        let span = (u128::from(bytes) * u128::from(self.kind.ps_per_byte_q16)) >> 16;
        queues.sent_at + Span(span as u64)
    }

    /// Returns the current rate: the configured rate of the cable, or the lower rate that a fault
    /// sets.
    pub fn rate(&self) -> Rate {
        let own = self.cable.rate;
        match self.kind.ps_per_byte_q16 {
            present if present <= own.ps_per_byte_q16() => own,
            present => Rate(((8_000_000_000_000_u128 << 16) / u128::from(present)) as u64),
        }
    }

    /// Returns the number of packets of this link: queued, in transmission or on the wire.
    pub fn held(&self) -> usize {
        let waiting =
            self.queues.as_ref().map_or(0, |q| q.backlog().packets + q.link_buffer().packets);
        let on_wire_already = if self.has_dcb() { self.precommitted() } else { 0 };
        self.on_wire.len() + waiting - on_wire_already
    }

    #[inline(never)]
    fn enqueue_two_event(
        &mut self,
        now: Time,
        handle: PacketHandle,
        pool: &mut PacketPool,
    ) -> Outcome {
        let asleep = self.is_asleep(now);
        if asleep && self.uses_link_buffer(handle.ip_len()) {
            return self.enqueue_in_link_buffer(now, handle, pool);
        }
        let sending = self.queues.as_ref().is_some_and(|q| q.sent_at != Time::NEVER);
        let send_time = match self.push_to_queues(now, handle, self.clear_for(now, asleep), pool) {
            Ok(send_time) => send_time,
            Err(cause) => return Outcome::Dropped(cause),
        };
        let sooner = asleep && self.plan_wake_two_event(now);
        self.extend_backlog(now, send_time);
        if !sending && !asleep {
            self.start_sending(now, pool);
            return Outcome::Sooner(self.next_key(now));
        }
        let displaced = self.shorten_backlog(0);
        // If the wake time of the link is zero, the packet is sent at once, as at an eager port.
        // The end of its transmission may be later than the planned wake-up, which was the next
        // event of the link.
        if sooner && self.queues.as_ref().is_some_and(|q| q.sent_at <= now) {
            self.start_sending(now, pool);
            return Outcome::Displaced(self.next_key(now));
        }
        match (sooner, displaced) {
            (_, true) => Outcome::Displaced(self.next_key(now)),
            (true, false) => Outcome::Sooner(self.next_key(now)),
            (false, false) => Outcome::Queued,
        }
    }

    /// Admits a packet to the queues of the port, where it may be marked or trimmed. `clear_at` is
    /// the time at which the port will have sent all earlier packets. Returns the transmission time
    /// of the packet, or the cause if it is dropped.
    #[inline]
    fn push_to_queues(
        &mut self,
        now: Time,
        handle: PacketHandle,
        clear_at: Time,
        pool: &mut PacketPool,
    ) -> Result<Span, Cause> {
        let arrival = self.arrival(now, &handle, Backlog::default(), clear_at, pool);
        let send_time = arrival.send_time;
        self.note_arrival(&arrival);
        let q = self.queues.as_mut().expect("the port has queues");
        match q.push(handle, arrival, pool) {
            Admission::Admitted { mark: true } => {
                self.mark(now, handle.slot(), handle.identity(), pool)
            }
            Admission::Admitted { mark: false } => {}
            Admission::Trimmed(ip_len) => {
                self.trim(now, &handle, pool);
                return Ok(self.send_time(ip_len.into()));
            }
            Admission::Dropped(cause) => return Err(cause),
        }
        Ok(send_time)
    }

    /// Records the arrival of a packet and the backlog that it finds, if the port is measured.
    #[inline]
    fn note_arrival(&mut self, arrival: &Arrival) {
        if self.meter.is_none() {
            return;
        }
        let group = self.group(arrival.packet);
        if let (Some(meter), Some(q)) = (&mut self.meter, &self.queues) {
            meter.comes(group.class, q.backlog_of(group.class));
            self.account.get_or_insert_default().of(group).arrivals += 1;
        }
    }

    /// Returns the time for which the port was transmitting the packets that have arrived or were
    /// lost in flight; at most `run`.
    pub fn sending_time(&self, run: Span) -> Span {
        Span(self.sent_for().min(u128::from(run.0)) as u64)
    }

    /// Subtracts the transmission times of packets in `PortQueues::dropped`, except the first
    /// `before` packets, from `busy_until`. Returns whether any packet was dropped.
    fn shorten_backlog(&mut self, before: usize) -> bool {
        let q = self.queues.as_ref().expect("a two-event port has queues");
        let spans =
            q.dropped[before..].iter().map(|(p, _)| self.send_time(u32::from(p.ip_len())).0);
        let saved: u64 = spans.sum();
        self.busy_until = Time(self.busy_until.0 - saved);
        saved > 0
    }

    /// Whether the queue discipline has dropped queued packets since the last call of
    /// [`Link::take_dropped`].
    pub(crate) fn has_dropped(&self) -> bool {
        self.queues.as_ref().is_some_and(|q| !q.dropped.is_empty())
    }

    /// Removes and returns the queued packets that the queue discipline has dropped since the last
    /// call, each with the cause.
    pub fn take_dropped(&mut self) -> Vec<(PacketHandle, Cause)> {
        self.queues.as_mut().map_or(Vec::new(), |q| std::mem::take(&mut q.dropped))
    }

    /// Starts the transmission of the next packet, if a packet is queued.
    fn start_sending(&mut self, now: Time, pool: &mut PacketPool) {
        let q = self.queues.as_mut().expect("a two-event port has queues");
        let before = q.dropped.len();
        let next = match q.pop_from_link_buffer() {
            Some(handle) => Some((handle, false)),
            None => q.pop(now, pool),
        };
        if q.dropped.len() > before {
            self.shorten_backlog(before);
        }
        let mut sent_at = Time::NEVER;
        if let Some((mut handle, mark)) = next {
            if mark {
                self.mark(now, handle.slot(), handle.identity(), pool);
            }
            if let (Some(meter), Some(q)) = (&mut self.meter, &self.queues) {
                let class = q.class_of(pool.get(handle.slot()).dscp());
                meter.goes(class, now.since(handle.arrive));
            }
            if pool.keeps_telemetry() {
                self.record_hop(now, handle.slot(), pool);
            }
            sent_at = now + self.send_time(u32::from(handle.ip_len()));
            handle.arrive = self.arrival_after(sent_at, self.on_wire.len());
            self.on_wire.hold(handle.ip_len().into());
            self.on_wire.push(handle);
        }
        let q = self.queues.as_mut().expect("a two-event port has queues");
        q.sent_at = sent_at;
        if let Some(lpi) = &mut self.lpi {
            lpi.send(now);
            if sent_at == Time::NEVER {
                lpi.become_idle(now);
            }
        }
    }
}
