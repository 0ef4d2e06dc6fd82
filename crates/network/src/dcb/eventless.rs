//! Ports with data-centre bridging (DCB) that need no event at the end of a transmission (eventless
//! ports), and departures that are decided at enqueue (precommitted departures).
//!
//! **Eventless ports.** When a transmission ends, the ingress buffer no longer counts the packet,
//! and the next packet starts. Usually nothing reads this state at once. An eventless port
//! therefore updates its state later, when the port is next used, with the times at which the
//! changes were due, like a [lazy](crate::link::Mode::Lazy) port. The transmission of a queued
//! packet starts when the previous packet has been sent, and before the previous packet arrives at
//! the far end, which is an event of the same link.
//!
//! A port is eventless while no priority is paused, no PAUSE frame is to be sent, and no input of
//! its switch has sent XOFF (after XOFF, each departing packet may lead to XON at that moment). A
//! port whose queue is read between its own events is never eventless.
//!
//! **Precommitted departures.** If nothing can block queued packets and the port has one class, the
//! departure time of a packet is known when it is enqueued. The packet then enters at once the ring
//! of packets on the wire. A pause, a PAUSE frame that the port is to send, or the first rate limit
//! *revokes* the departures that have not started: their packets return from the ring to their
//! priority queues, and the port uses these queues until they are empty. For the packets in the
//! ring, the port has only two counters: the number of packets that have not started, and the number
//! of packets that ingress buffers no longer count.
//!
//! **Fast path.** Normally a port must update its state before it admits a packet, since the
//! backlog affects the decision. The backlog does not matter if, even with all counted packets
//! still queued, the packet sets no new maximum of the queue and the discipline admits every
//! packet. A port with precommitted departures then admits the packet like an eager port
//! (departures fixed at enqueue), from the time until which it is busy, and updates its state
//! later. The waiting time of the packet that follows from this time must be exact. Therefore a
//! byte must take a whole number of picoseconds, and no queued packet may be padded to the smallest
//! frame.
//!
//! **Ingress buffers.** A packet that has left an eventless port is subtracted from its ingress
//! buffer when it arrives at the next node. The packet is subtracted earlier if the exact occupancy
//! matters: if one more packet would set a new maximum of the buffer or reach XOFF. Then the port
//! that this packet enters is updated first, and all ports of the switch only if the buffer could
//! still be fuller than ever. Until the subtraction, the recorded occupancy is too large.
//!
//! **Rate-limited flows.** While no limited flow may send, the port knows which flow may send
//! first, and therefore when its packet arrives at the far end. If no other packet is enqueued,
//! this arrival is the next event of the link. The start of the transmission needs no event.
//!
//! **Order.** A PAUSE frame takes effect as one of the departures at its time. If a transmission
//! ends at the same time, the tie rule of the event list decides which of the two is executed
//! first.

use super::config::DcbConfig;
use super::ingress_pool::SwitchMemory;
use super::pfc::Input;
use super::port_state::DcbPort;
use super::priority_queues::{DcbAdmission, Next, transmission_time};
use super::queued_packet::{LOCAL_ORIGIN, QueuedPacket};
use crate::link::{Link, PortQueues};
use crate::losses::Cause;
use crate::packet_handle::PacketHandle;
use crate::pool::PacketPool;
use crate::queue::{Arrival, Backlog};
use crate::topology::reverse;
use eastwest_engine::order::{Class, Key};
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};

/// Egress ports, numbers of pauses in force (XOFF), and use of shared memory of each switch in a
/// fabric with data-centre bridging (DCB).
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SwitchPorts {
    /// Numbers of the outgoing links of each node, by node.
    pub(super) out_links: Vec<Vec<u32>>,
    /// Number of (input, priority) pairs of each node for which XOFF is in force, by node.
    pub(super) xoff_counts: Vec<u32>,
    /// Memory that the inputs of a node share, by node; empty if inputs share no memory.
    pub(super) memories: Vec<SwitchMemory>,
}

impl SwitchPorts {
    /// Returns the state of `nodes` nodes without XOFF. The result is empty if ports have no
    /// data-centre bridging.
    pub fn new(links: &[Link], nodes: usize, config: &DcbConfig) -> SwitchPorts {
        if !links.first().is_some_and(Link::has_dcb) {
            return SwitchPorts::default();
        }
        let mut out_links = vec![Vec::new(); nodes];
        for (number, link) in (0..).zip(links) {
            out_links[link.from as usize].push(number);
        }
        let mut headrooms = vec![0u64; nodes];
        for link in links {
            let each = link.input().map_or(0, Input::headroom);
            let all = each.saturating_mul(u64::from(config.lossless().count_ones()));
            headrooms[link.to as usize] = headrooms[link.to as usize].saturating_add(all);
        }
        let memories = config.pool().map_or(Vec::new(), |pool| {
            headrooms.iter().map(|sum| SwitchMemory::new(pool, *sum)).collect()
        });
        SwitchPorts { out_links, xoff_counts: vec![0; nodes], memories }
    }
}

impl SwitchPorts {
    /// Exchanges the state of a node with `other`, the same fabric in another part of a partitioned
    /// run.
    pub fn swap_node(&mut self, other: &mut SwitchPorts, node: usize) {
        if let (Some(mine), Some(theirs)) =
            (self.xoff_counts.get_mut(node), other.xoff_counts.get_mut(node))
        {
            std::mem::swap(mine, theirs);
        }
        if let (Some(mine), Some(theirs)) =
            (self.memories.get_mut(node), other.memories.get_mut(node))
        {
            std::mem::swap(mine, theirs);
        }
    }
}

/// A packet that has reached the far end of a link with data-centre bridging.
pub(crate) struct Arrived {
    pub handle: PacketHandle,
    /// Whether its ingress buffer at the previous node has been told that the packet has left.
    pub was_released: bool,
    /// Key of the next event of the link.
    pub next: Key,
}

impl Link {
    /// Returns the number of packets whose departure is decided, but whose transmission has not
    /// started according to the state of the port.
    #[inline]
    pub(crate) fn precommitted(&self) -> usize {
        self.waiting as usize
    }

    /// Starts the transmission of the next packet whose departure was decided at enqueue. Returns
    /// false if there is no such packet.
    #[inline(always)]
    pub(super) fn start_precommitted(&mut self, now: Time, pool: &PacketPool) -> bool {
        let Some(&handle) = self.on_wire.get(self.first_waiting()) else { return false };
        let Some(q) = self.queues.as_deref_mut() else { return false };
        let Some((queues, dcb, sent_at)) = q.single_class() else { return false };
        let priority = pool.ingress_tag(handle.slot()).priority();
        queues.count_departure(now, priority, u32::from(handle.ip_len()));
        dcb.sending_packet = true;
        *sent_at = handle.arrived().before(self.kind.delay);
        self.waiting -= 1;
        true
    }

    /// Executes the departures that were due before `until`, if the departures of all queued packets
    /// were decided at enqueue. Returns whether they were.
    #[inline(always)]
    fn start_precommitted_until(&mut self, until: Time, pool: &PacketPool) -> bool {
        let mut first = self.first_waiting();
        let Some(q) = self.queues.as_deref_mut() else { return false };
        let Some((queues, dcb, sent_at)) = q.single_class() else { return false };
        if !dcb.precommitted {
            return false;
        }
        debug_assert_eq!(dcb.wakes_at, Time::NEVER, "rate limits revoke decided departures");
        let mut at = *sent_at;
        while at < until {
            let Some(handle) = self.on_wire.get(first) else {
                at = Time::NEVER;
                dcb.sending_packet = false;
                break;
            };
            let priority = pool.ingress_tag(handle.slot()).priority();
            queues.count_departure(at, priority, u32::from(handle.ip_len()));
            at = handle.arrived().before(self.kind.delay);
            dcb.sending_packet = true;
            first += 1;
        }
        self.waiting = self.on_wire.len() as u32 - first;
        *sent_at = at;
        true
    }

    /// Executes the departures and the starts of rate-limited flows that were due before `until`,
    /// at a port with data-centre bridging.
    #[inline(always)]
    pub(crate) fn catch_up(&mut self, until: Time, pool: &mut PacketPool) {
        if let Some((sent_at, dcb)) = self.dcb_parts()
            && dcb.wakes_at.min(*sent_at) < until
        {
            self.carry_out_until(until, pool);
        }
    }

    #[inline(never)]
    fn carry_out_until(&mut self, until: Time, pool: &mut PacketPool) {
        if self.start_precommitted_until(until, pool) || self.start_rate_limited_until(until) {
            return;
        }
        while let Some((sent_at, dcb)) = self.dcb_parts()
            && dcb.wakes_at.min(*sent_at) < until
        {
            let at = dcb.wakes_at.min(*sent_at);
            (*sent_at, dcb.wakes_at) = (Time::NEVER, Time::NEVER);
            dcb.sending_packet = false;
            if !self.start_precommitted(at, pool)
                && self.queues.as_deref_mut().is_some_and(PortQueues::has_packets)
            {
                self.start_next_dcb(at, pool);
            }
        }
    }

    /// Returns the next packet that has left the port but is still counted by its ingress buffer,
    /// and marks it as released; `None` if there is no such packet. `transmitted` is the number of
    /// packets on the wire whose last bit has left the port.
    #[inline]
    pub(super) fn release_next(&mut self, transmitted: u32) -> Option<PacketHandle> {
        let dcb = self.queues.as_deref_mut()?.dcb.as_deref_mut()?;
        if dcb.released >= transmitted {
            return None;
        }
        dcb.released += 1;
        self.on_wire.get(dcb.released - 1).copied()
    }

    /// Whether the departures of all queued packets were decided at enqueue.
    #[inline]
    pub(super) fn is_precommitted(&self) -> bool {
        let dcb = self.queues.as_deref().and_then(|q| q.dcb.as_deref());
        dcb.is_some_and(|dcb| dcb.precommitted)
    }

    /// Returns the next packet whose last bit has left the port by `now` but that is still counted
    /// by its ingress buffer, and marks it as released; `None` if there is no such packet. All
    /// packets that have left must be in the ring: either the departures of the port that are due
    /// have been executed, or the departures of all queued packets were decided at enqueue. The end
    /// of a transmission follows from the arrival time in the ring. Ports at which each departure is
    /// an event have no such packets.
    #[inline]
    pub(super) fn release_departed(&mut self, now: Time) -> Option<PacketHandle> {
        let delay = self.kind.delay;
        let dcb = self.queues.as_deref_mut()?.dcb.as_deref_mut()?;
        let handle = self.on_wire.get(dcb.released)?;
        if handle.arrived().before(delay) > now || dcb.always_events {
            return None;
        }
        dcb.released += 1;
        Some(*handle)
    }

    /// Executes an arrival at the far end of a link with data-centre bridging.
    #[inline(always)]
    pub(crate) fn arrive_dcb(&mut self, key: Key, pool: &mut PacketPool) -> Arrived {
        let now = key.time();
        let Some((_, dcb)) = self.dcb_parts() else { unreachable!("the port has DCB") };
        if dcb.fast_path_from == Time::NEVER {
            self.catch_up(now.next(), pool);
        } else if self.first_waiting() == 0 {
            self.start_precommitted(now, pool);
        }
        let Some((sent_at, dcb)) = self.dcb_parts() else { unreachable!("the port has DCB") };
        let was_released = dcb.released > 0;
        dcb.released -= u32::from(was_released);
        let due = dcb.is_eventless().then(|| dcb.eventless_due(*sent_at));
        let handle = self.take_first(key);
        let next = match due {
            Some(due) => self.eventless_key_by(now, due),
            None => self.next_key(now),
        };
        Arrived { handle, was_released, next }
    }

    /// Returns the key of the next event of a port with data-centre bridging that needs no event at
    /// the end of a transmission (eventless).
    #[inline(always)]
    pub(super) fn eventless_key(&mut self, now: Time) -> Key {
        let due = self.queues.as_deref().and_then(|q| q.due_unless_paused()).unwrap_or(Time::NEVER);
        self.eventless_key_by(now, due)
    }

    /// Returns the key of the next event like [`Link::eventless_key`]. `due` is the time of the next
    /// event of the port other than an arrival at the far end.
    #[inline(always)]
    fn eventless_key_by(&mut self, now: Time, due: Time) -> Key {
        let arrive = match self.on_wire.first().map(|handle| handle.arrived()) {
            Some(arrive) => arrive,
            None => self.foreseen_arrival(),
        };
        let next = match arrive {
            Time::NEVER => Key::NEVER,
            arrive => self.arrival_key(now, arrive),
        };
        match due {
            Time::NEVER => next,
            due => next.min(Key::new(due.max(now), Class::Departure)),
        }
    }

    /// Updates the counters of the port after the first packet on the wire was lost in flight.
    /// Returns whether its ingress buffer still counts the packet.
    pub(super) fn release_lost(&mut self) -> bool {
        let Some((_, dcb)) = self.dcb_parts() else { return false };
        let is_counted = dcb.released == 0;
        dcb.released = dcb.released.saturating_sub(1);
        is_counted
    }

    /// Returns the end of the current transmission, and the state of data-centre bridging (DCB);
    /// `None` at a port without DCB.
    #[inline(always)]
    fn dcb_parts(&mut self) -> Option<(&mut Time, &mut DcbPort)> {
        let q = self.queues.as_deref_mut()?;
        Some((&mut q.sent_at, q.dcb.as_deref_mut()?))
    }

    /// Enqueues a packet on the fast path, without first executing the departures of the port that
    /// are due. Returns whether QCN must now sample the queue; `None`, without any change, if the
    /// departures must be executed first.
    #[inline(always)]
    pub(super) fn enqueue_fast_path(
        &mut self,
        now: Time,
        mut handle: PacketHandle,
        (ingress, priority): (u32, u8),
    ) -> Option<bool> {
        let ip_len = u32::from(handle.ip_len());
        let (wire_bytes, framing) = (self.wire_bytes(ip_len), self.framing());
        let all_started = self.waiting == 0;
        let (queues, dcb, sent_at) = self.queues.as_deref_mut()?.single_class()?;
        if now < dcb.fast_path_from
            || reverse(ingress) == dcb.link
            || wire_bytes != ip_len + framing
            || (*sent_at == Time::NEVER && !dcb.is_eventless())
        {
            return None;
        }
        let idle = all_started && dcb.free_at <= now;
        let is_admitted = match idle {
            true => queues.admit_idle(now, priority, ip_len),
            false => queues.admit_fast_path(now, priority, ip_len),
        };
        if !is_admitted {
            return None;
        }
        let is_due = dcb.samples_in.is_due(priority, ip_len);
        let start = dcb.free_at.max(now);
        let sent = start + Span((u64::from(wire_bytes) * self.kind.ps_per_byte_q16) >> 16);
        dcb.free_at = sent;
        if idle {
            *sent_at = sent;
            dcb.sending_packet = true;
        } else {
            self.waiting += 1;
            if *sent_at == Time::NEVER {
                *sent_at = now; // the packet starts when the port is next updated
            }
        }
        self.note_wait(start.since(now));
        self.busy_until = sent;
        self.on_wire.hold(ip_len);
        handle.arrive = sent + self.kind.delay;
        self.on_wire.push(handle);
        Some(is_due)
    }

    /// Enqueues a packet like [`Link::enqueue_fast_path`], but first executes the departures of the
    /// port that are due: without the packets that have left, the queue may set no new maximum.
    #[inline(never)]
    pub(super) fn enqueue_after_departures(
        &mut self,
        now: Time,
        handle: PacketHandle,
        tag: (u32, u8),
        pool: &mut PacketPool,
    ) -> Option<bool> {
        let (queues, dcb, _) = self.queues.as_deref_mut()?.single_class()?;
        if now < dcb.fast_path_from || queues.sees_all(tag.1) {
            return None;
        }
        self.catch_up(now.next(), pool);
        self.enqueue_fast_path(now, handle, tag)
    }

    /// Enqueues a packet and decides its departure at once (precommits it). Returns whether the
    /// packet has started, or the cause of its drop. Returns `None` if departures cannot be
    /// precommitted, since packets may be blocked. This also applies to a packet that returns to
    /// the node from which it arrived, since the packet may cause a PAUSE frame, which is sent
    /// first.
    pub(super) fn enqueue_precommitted(
        &mut self,
        now: Time,
        mut handle: PacketHandle,
        (ingress, priority): (u32, u8),
        pool: &mut PacketPool,
    ) -> Option<Result<bool, Cause>> {
        let ip_len = u32::from(handle.ip_len());
        let (send_time, framing) = (self.send_time(ip_len), self.framing());
        let is_small = self.wire_bytes(ip_len) != ip_len + framing;
        self.try_precommitting();
        let (queues, dcb, sent_at) = self.queues.as_deref_mut()?.single_class()?;
        if !dcb.precommitted {
            return None;
        }
        if reverse(ingress) == dcb.link {
            self.revoke_precommitted(now, pool);
            return None;
        }
        let idle = *sent_at == Time::NEVER;
        let rest = if idle { now } else { *sent_at };
        let clear_at =
            rest + transmission_time(queues.backlog(), framing, self.kind.ps_per_byte_q16);
        let arrival = || {
            let packet = pool.get(handle.slot());
            let backlog = Backlog::default();
            Arrival { now, ip_len, send_time, backlog, clear_at, packet, handle, pool }
        };
        let mark = match queues.admit(now, priority, ip_len, arrival) {
            DcbAdmission::Admitted { mark } => mark,
            DcbAdmission::Dropped(cause) => return Some(Err(cause)),
        };
        let start = if idle { now } else { dcb.free_at };
        let sent = start + send_time;
        dcb.free_at = sent;
        if idle {
            queues.count_departure(now, priority, ip_len);
            dcb.sending_packet = true;
            *sent_at = sent;
        } else {
            self.waiting += 1;
            if is_small {
                dcb.padded_until = start;
                dcb.update_fast_path();
            }
        }
        self.note_wait(clear_at.since(now));
        self.busy_until = clear_at + send_time;
        self.on_wire.hold(ip_len);
        handle.arrive = sent + self.kind.delay;
        self.on_wire.push(handle);
        if mark {
            self.mark(now, handle.slot(), handle.identity(), pool);
        }
        Some(Ok(idle))
    }

    /// Starts to precommit departures (to decide them at enqueue), if the queue is empty and
    /// nothing can block a packet.
    fn try_precommitting(&mut self) {
        let Some(q) = self.queues.as_deref_mut() else { return };
        let Some((queues, dcb, sent_at)) = q.single_class() else { return };
        if dcb.precommitted
            || queues.backlog().packets > 0
            || !(dcb.can_precommit && dcb.is_unblocked())
        {
            return;
        }
        dcb.precommitted = true;
        dcb.free_at = if *sent_at == Time::NEVER { Time::ZERO } else { *sent_at };
        dcb.update_fast_path();
    }

    /// Decides (precommits) the departures of all queued packets, after the packet that has just
    /// started, if nothing can block them any more. Since departures were last revoked, the port
    /// must have sent at least as many packets as are queued. Without this condition, short pauses
    /// would repeatedly move a long queue.
    pub(super) fn precommit_backlog(&mut self) {
        let Some(q) = self.queues.as_deref_mut() else { return };
        let Some((queues, dcb, sent_at)) = q.single_class() else { return };
        let waits = queues.backlog().packets;
        if waits == 0 || waits > dcb.sent_since_revoke || !(dcb.can_precommit && dcb.is_unblocked())
        {
            return;
        }
        let Some((_, packets)) = queues.single_fifo() else { return };
        let mut sent = *sent_at;
        for QueuedPacket { mut handle, .. } in packets.drain(..) {
            let bytes = u32::from(handle.ip_len());
            let wire_bytes = dcb.wire.bytes(bytes);
            if wire_bytes != bytes + dcb.wire.framing {
                dcb.padded_until = sent;
            }
            sent += Span((u64::from(wire_bytes) * self.kind.ps_per_byte_q16) >> 16);
            handle.arrive = sent + self.kind.delay;
            self.on_wire.hold(bytes);
            self.on_wire.push(handle);
            self.waiting += 1;
        }
        dcb.precommitted = true;
        dcb.free_at = sent;
        dcb.update_fast_path();
    }

    /// Revokes departures that were decided at enqueue: moves packets that have not started from
    /// the ring back to their queues, since a pause or a rate limit may block them.
    /// Departures of the port that are due must have been executed before.
    pub(super) fn revoke_precommitted(&mut self, now: Time, pool: &PacketPool) {
        let q = self.queues.as_mut().expect("the port has DCB");
        let Some((queues, dcb, _)) = q.single_class() else { return };
        dcb.precommitted = false;
        dcb.update_fast_path();
        let first = self.on_wire.len() as u32 - std::mem::take(&mut self.waiting);
        for place in first.. {
            let Some(&(mut handle)) = self.on_wire.get(place) else { break };
            dcb.sent_since_revoke = 0;
            self.on_wire.release(handle.ip_len().into());
            handle.arrive = now;
            let tag = pool.ingress_tag(handle.slot());
            queues.store(handle, tag.link(), tag.priority());
        }
        self.on_wire.truncate(first);
    }
}

impl Link {
    /// Whether QCN limits flows at this port, and nothing else can block a packet.
    #[inline]
    pub(super) fn has_only_rate_limits(&self) -> bool {
        let dcb = self.queues.as_deref().and_then(|q| q.dcb.as_deref());
        dcb.is_some_and(DcbPort::has_only_rate_limits)
    }

    /// Enqueues a packet of a host at a port [with rate-limited flows](Link::has_only_rate_limits).
    /// Departures of the port that are due must have been executed before. Returns whether the next
    /// event of the link may have changed, or the cause if the packet is dropped.
    pub(super) fn enqueue_rate_limited(
        &mut self,
        now: Time,
        mut handle: PacketHandle,
        priority: u8,
        pool: &mut PacketPool,
    ) -> Result<bool, Cause> {
        let ip_len = u32::from(handle.ip_len());
        let (wire_bytes, send_time) = (self.wire_bytes(ip_len), self.send_time(ip_len));
        let framing = self.framing();
        let q = self.queues.as_deref_mut().expect("the port has DCB");
        let (queues, dcb, sent_at) =
            q.single_class().expect("a port with only rate limits has one class");
        let (backlog, idle) = (queues.backlog(), *sent_at == Time::NEVER);
        let rest = if idle { now } else { *sent_at };
        let mut clear_at = rest + transmission_time(backlog, framing, self.kind.ps_per_byte_q16);
        if idle && backlog.packets > 0 {
            clear_at = clear_at.max(now.next()); // the packet waits: the queue must admit it
        }
        let arrival = || {
            let packet = pool.get(handle.slot());
            let backlog = Backlog::default();
            Arrival { now, ip_len, send_time, backlog, clear_at, packet, handle, pool }
        };
        let mark = match queues.admit(now, priority, ip_len, arrival) {
            DcbAdmission::Admitted { mark } => mark,
            DcbAdmission::Dropped(cause) => return Err(cause),
        };
        self.busy_until = clear_at + send_time;
        let flows = queues.queue(priority).flows.as_deref();
        let flow = flows.and_then(|flows| Some((flows, flows.index_of(handle.dst().0)?)));
        let start = if idle {
            flow.map_or(Time::ZERO, |(flows, index)| flows.start_time(index))
        } else {
            Time::NEVER
        };
        let flow = flow.map(|(_, index)| index);
        let mut changes = idle && self.on_wire.is_empty();
        if start <= now {
            queues.count_departure(now, priority, ip_len);
            *sent_at = now + send_time;
            dcb.on_transmit(queues, now, (priority, flow), wire_bytes);
            self.transmit_rate_limited(now + send_time, handle);
        } else {
            handle.arrive = now;
            queues.store_in_flow(handle, LOCAL_ORIGIN, priority, flow);
            changes &= start < dcb.wakes_at;
            if idle && start < dcb.wakes_at {
                (dcb.wakes_at, dcb.wake_bytes) = (start, ip_len);
            }
        }
        self.note_wait(clear_at.since(now));
        if mark {
            self.mark(now, handle.slot(), handle.identity(), pool);
        }
        Ok(changes)
    }

    /// Executes the departures and the starts of rate-limited flows that were due before `until`, at
    /// a port [with rate-limited flows](Link::has_only_rate_limits). Returns false at other ports.
    #[inline(always)]
    fn start_rate_limited_until(&mut self, until: Time) -> bool {
        let Some(q) = self.queues.as_deref_mut() else { return false };
        let Some((queues, dcb, sent_at)) = q.single_class() else { return false };
        if !dcb.has_only_rate_limits() {
            return false;
        }
        loop {
            let at = dcb.wakes_at.min(*sent_at);
            if at >= until {
                return true;
            }
            (*sent_at, dcb.wakes_at) = (Time::NEVER, Time::NEVER);
            dcb.sending_packet = false;
            match queues.choose(at) {
                Next::Later(next, bytes) => {
                    (dcb.wakes_at, dcb.wake_bytes) = (next.max(at.next()), bytes);
                }
                Next::Now(priority, flow) => {
                    let Some(mut handle) = queues.dequeue_chosen(at, priority, flow) else {
                        continue;
                    };
                    let bytes = u32::from(handle.ip_len());
                    let wire_bytes = dcb.wire.bytes(bytes);
                    let sent = at + Span((u64::from(wire_bytes) * self.kind.ps_per_byte_q16) >> 16);
                    dcb.on_transmit(queues, at, (priority, flow), wire_bytes);
                    *sent_at = sent;
                    dcb.sending_packet = true;
                    dcb.sent_since_revoke += 1;
                    self.on_wire.hold(bytes);
                    handle.arrive = sent + self.kind.delay;
                    self.on_wire.push(handle);
                }
            }
        }
    }

    /// Starts the transmission of a packet, whose last bit is sent at `sent`.
    #[inline(always)]
    fn transmit_rate_limited(&mut self, sent: Time, mut handle: PacketHandle) {
        if let Some(dcb) = self.queues.as_deref_mut().and_then(|q| q.dcb.as_deref_mut()) {
            (dcb.wakes_at, dcb.sending_packet) = (Time::NEVER, true);
            dcb.sent_since_revoke += 1;
        }
        self.on_wire.hold(handle.ip_len().into());
        handle.arrive = sent + self.kind.delay;
        self.on_wire.push(handle);
    }

    /// Returns the arrival time at the far end of the next rate-limited packet, if the port is idle
    /// and has no other packet, and if the start of this packet needs no event; otherwise
    /// [`Time::NEVER`].
    #[inline]
    pub(crate) fn foreseen_arrival(&self) -> Time {
        let dcb = self.queues.as_deref().and_then(|q| q.dcb.as_deref());
        match dcb {
            Some(b) if b.wakes_at != Time::NEVER && b.wakes_without_event() => {
                b.wakes_at + self.send_time(b.wake_bytes) + self.kind.delay
            }
            _ => Time::NEVER,
        }
    }
}
