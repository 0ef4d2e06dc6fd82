//! DCB ports without an event at the end of a transmission, and precommitted departures.
//!
//! **Eventless ports.** When a transmission ends, the ingress buffer no longer counts the packet, and the next
//! packet starts. Mostly nothing reads that state at once. An eventless port therefore does it when it is next
//! touched, with the times at which it was due, like a [lazy](crate::link::Mode::Lazy) port: a queued packet
//! starts when the one before it has been sent, and that one arrives later still, as an event of the same link.
//!
//! A port is eventless while no priority is paused, no PAUSE frame waits to be sent, and no input of its switch
//! has sent XOFF (each packet that leaves may then lead to XON, at that moment). A port whose queue is read
//! between its own events is never eventless.
//!
//! **Precommitted departures.** Where nothing holds up queued packets and the port has one class, a packet goes
//! to the ring on the wire when it is enqueued: the time of its departure is known. When a pause, a PAUSE frame
//! to send or a first rate limit comes, packets that have not started are taken off the ring again (the
//! departures are *revoked*) and wait in their priority queues until those are empty. Two counters into the
//! ring hold all that such a port knows of its packets: how many have started, and how many the ingress buffers
//! no longer count.
//!
//! **Fast path.** Before a packet is admitted, a port has to catch up, since the backlog decides about the
//! packet. The decision is the same, though, if the packet sets no new maximum of the queue and the discipline
//! need not be asked, even if all counted packets were still queued. Then a port with precommitted departures
//! admits the packet as an eager port does, by the time until which it is busy, and catches up later. That time
//! must tell how long the packet waits: bytes take whole picoseconds, and no queued packet is padded to the
//! smallest frame.
//!
//! **Ingress buffers.** A packet that has left an eventless port is subtracted from its ingress buffer when it
//! arrives at the next node, or before that where it matters: when one more packet would set a new maximum of
//! the buffer or reach XOFF. Until then the occupancy is too large.
//!
//! **Rate-limited flows.** While no limited flow may send, the port knows which one may send first, and so when
//! that packet arrives at the far end. If nothing else comes, that arrival is the next event of the link. The
//! start of the packet needs no event.
//!
//! **Order.** A PAUSE frame takes effect as one of the departures of its instant. Whether a transmission that
//! ends at the same instant goes before it is decided as the event list would.

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

/// Ports and XOFF counts of the switches of a fabric with DCB.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SwitchPorts {
    /// By node, the numbers of its outgoing links.
    pub(super) out_links: Vec<Vec<u32>>,
    /// By node, the number of (input, priority) pairs for which XOFF is in force.
    pub(super) xoff_counts: Vec<u32>,
    /// By node, the used bytes of the memory that its inputs share; empty if they share none.
    pub(super) pool_used: Vec<u64>,
}

impl SwitchPorts {
    /// Returns the ports, without XOFF, of a fabric with these links and this number of nodes;
    /// empty without DCB.
    pub fn new(links: &[Link], nodes: usize, pool: bool) -> SwitchPorts {
        if !links.first().is_some_and(Link::has_dcb) {
            return SwitchPorts::default();
        }
        let mut out_links = vec![Vec::new(); nodes];
        for (number, link) in (0..).zip(links) {
            out_links[link.from as usize].push(number);
        }
        let pool_used = vec![0; if pool { nodes } else { 0 }];
        SwitchPorts { out_links, xoff_counts: vec![0; nodes], pool_used }
    }
}

impl Link {
    /// Returns the number of packets of a DCB port whose departure is decided, but whose
    /// transmission has not started as far as the port knows.
    #[inline]
    pub(crate) fn precommitted(&self) -> usize {
        self.on_wire.len() - self.started as usize
    }

    /// Starts the transmission of the next packet with precommitted departure. Returns whether
    /// there was one.
    #[inline(always)]
    pub(super) fn start_precommitted(&mut self, now: Time, pool: &PacketPool) -> bool {
        let Some(&handle) = self.on_wire.get(self.started) else { return false };
        let Some(q) = self.queues.as_deref_mut() else { return false };
        let Some((queues, dcb, sent_at)) = q.single_class() else { return false };
        let priority = pool.ingress_tag(handle.slot()).priority();
        queues.count_departure(now, priority, u32::from(handle.ip_len()));
        dcb.sending_packet = true;
        *sent_at = handle.arrived().before(self.delay);
        self.started += 1;
        true
    }

    /// Executes the departures and rate-limiter wake-ups of a DCB port that were due before
    /// `until`.
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
        while let Some(q) = self.queues.as_deref_mut()
            && let Some(dcb) = q.dcb.as_deref_mut()
            && q.sent_at.min(dcb.wakes_at) < until
        {
            let at = q.sent_at.min(dcb.wakes_at);
            (q.sent_at, dcb.wakes_at) = (Time::NEVER, Time::NEVER);
            dcb.sending_packet = false;
            if dcb.has_only_rate_limits() {
                self.start_rate_limited(at);
            } else if !self.start_precommitted(at, pool)
                && self.queues.as_deref_mut().is_some_and(PortQueues::has_packets)
            {
                self.start_next_dcb(at, pool);
            }
        }
    }

    /// Returns the number of packets on the wire whose last bit has left the port. The departures
    /// of the port that are due must have been executed.
    #[inline]
    pub(super) fn transmitted(&self) -> u32 {
        let Some(q) = self.queues.as_deref() else { return 0 };
        let is_sending =
            q.sent_at != Time::NEVER && q.dcb.as_deref().is_some_and(|b| b.sending_packet);
        self.started - u32::from(is_sending)
    }

    /// Returns the next packet that its ingress buffer still counts among the first `transmitted`
    /// packets on the wire, and marks it as released; `None` if there is none.
    #[inline]
    pub(super) fn release_next(&mut self, transmitted: u32) -> Option<PacketHandle> {
        let dcb = self.queues.as_deref_mut()?.dcb.as_deref_mut()?;
        if dcb.released >= transmitted {
            return None;
        }
        dcb.released += 1;
        self.on_wire.get(dcb.released - 1).copied()
    }

    /// Executes an arrival of a link with DCB. Returns the packet, whether its ingress buffer still
    /// counts it, and the key of the next event of the link.
    #[inline(always)]
    pub(crate) fn arrive_dcb(
        &mut self,
        key: Key,
        pool: &mut PacketPool,
    ) -> (PacketHandle, bool, Key) {
        let now = key.time();
        let Some((_, dcb)) = self.dcb_parts() else { unreachable!("it is a DCB port") };
        let (has_fast_path, is_eventless) = (dcb.fast_path_from != Time::NEVER, dcb.is_eventless());
        if !has_fast_path {
            self.catch_up(now.next(), pool);
        } else if self.started == 0 {
            self.start_precommitted(now, pool);
        }
        self.started -= 1;
        let handle = self.take_first(key);
        let Some((_, dcb)) = self.dcb_parts() else { unreachable!("it is a DCB port") };
        let is_counted = dcb.released == 0;
        dcb.released = dcb.released.saturating_sub(1);
        if !is_eventless {
            return (handle, is_counted, self.next_key(now));
        }
        let next = self.eventless_key(now);
        (handle, is_counted, next)
    }

    /// Returns the key of the next event of an eventless port (a DCB port without an event at the
    /// end of a transmission).
    #[inline(always)]
    pub(super) fn eventless_key(&mut self, now: Time) -> Key {
        let due = self.queues.as_deref().and_then(|q| q.due_unless_paused()).unwrap_or(Time::NEVER);
        let arrive =
            self.on_wire.get(0).map_or_else(|| self.foreseen_arrival(), |handle| handle.arrived());
        let next = match arrive {
            Time::NEVER => Key::NEVER,
            arrive => self.arrival_key(now, arrive),
        };
        match due {
            Time::NEVER => next,
            due => next.min(Key::new(due.max(now), Class::Departure)),
        }
    }

    /// Updates the counters of the port for the first packet on the wire, which was lost in flight.
    /// Returns whether the ingress buffer still counts the packet.
    pub(super) fn release_lost(&mut self) -> bool {
        self.started -= 1;
        let Some((_, dcb)) = self.dcb_parts() else { return false };
        let is_counted = dcb.released == 0;
        dcb.released = dcb.released.saturating_sub(1);
        is_counted
    }

    /// Returns the end of the current transmission, and the state of a DCB port.
    #[inline(always)]
    fn dcb_parts(&mut self) -> Option<(&mut Time, &mut DcbPort)> {
        let q = self.queues.as_deref_mut()?;
        Some((&mut q.sent_at, q.dcb.as_deref_mut()?))
    }

    /// Enqueues a packet without executing the due departures of the port first (fast path).
    /// Returns `false`, without any change, where they must be executed first.
    #[inline(always)]
    pub(super) fn enqueue_fast_path(
        &mut self,
        now: Time,
        mut handle: PacketHandle,
        (ingress, priority): (u32, u8),
    ) -> bool {
        let ip_len = u32::from(handle.ip_len());
        let wire_bytes = self.wire_bytes(ip_len);
        let Some(q) = self.queues.as_deref_mut() else { return false };
        let Some((queues, dcb, sent_at)) = q.single_class() else { return false };
        if now < dcb.fast_path_from
            || reverse(ingress) == dcb.link
            || wire_bytes != ip_len + u32::from(self.framing)
            || (*sent_at == Time::NEVER && !dcb.is_eventless())
            || !queues.admit_fast_path(now, priority, ip_len)
        {
            return false;
        }
        let start = dcb.free_at.max(now);
        let sent = start + Span((u64::from(wire_bytes) * self.ps_per_byte_q16) >> 16);
        dcb.free_at = sent;
        if *sent_at == Time::NEVER {
            *sent_at = now; // it starts when the port next catches up
        }
        self.counters.max_backlog = self.counters.max_backlog.max(start.since(now));
        self.busy_until = sent;
        self.held_bytes += u64::from(ip_len);
        handle.arrive = sent + self.delay;
        self.on_wire.push(handle);
        true
    }

    /// Enqueues a packet and precommits its departure, where nothing holds up the port. Returns
    /// whether the packet has started, or why it was dropped; `None` where departures cannot be
    /// precommitted. The departure of a packet towards its last node cannot be precommitted: it may
    /// cause a PAUSE frame that goes first.
    pub(super) fn enqueue_precommitted(
        &mut self,
        now: Time,
        mut handle: PacketHandle,
        (ingress, priority): (u32, u8),
        pool: &mut PacketPool,
    ) -> Option<Result<bool, Cause>> {
        let ip_len = u32::from(handle.ip_len());
        let send_time = self.send_time(ip_len);
        let is_small = self.wire_bytes(ip_len) != ip_len + u32::from(self.framing);
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
            rest + transmission_time(queues.backlog(), self.framing, self.ps_per_byte_q16);
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
            self.started += 1;
        } else if is_small {
            dcb.padded_until = start;
            dcb.update_fast_path();
        }
        self.counters.max_backlog = self.counters.max_backlog.max(clear_at.since(now));
        self.busy_until = clear_at + send_time;
        self.held_bytes += u64::from(ip_len);
        handle.arrive = sent + self.delay;
        self.on_wire.push(handle);
        if mark {
            self.mark(now, handle.slot(), handle.identity(), pool);
        }
        Some(Ok(idle))
    }

    /// Begins to precommit departures if the queue is empty and nothing would hold up a packet.
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

    /// Precommits the departures of all queued packets, after the packet that has just started, where nothing
    /// holds them up any more. Since the last revocation the port must have sent as many packets as are queued:
    /// otherwise pauses that come and go would move a long queue to and fro.
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
            sent += Span((u64::from(wire_bytes) * self.ps_per_byte_q16) >> 16);
            handle.arrive = sent + self.delay;
            self.held_bytes += u64::from(bytes);
            self.on_wire.push(handle);
        }
        dcb.precommitted = true;
        dcb.free_at = sent;
        dcb.update_fast_path();
    }

    /// Moves packets that have not started from the ring back to their queues, since something may
    /// hold them up. The departures of the port that are due must have been executed.
    pub(super) fn revoke_precommitted(&mut self, now: Time, pool: &PacketPool) {
        let q = self.queues.as_mut().expect("it is a DCB port");
        let Some((queues, dcb, _)) = q.single_class() else { return };
        dcb.precommitted = false;
        dcb.update_fast_path();
        for place in self.started.. {
            let Some(&(mut handle)) = self.on_wire.get(place) else { break };
            dcb.sent_since_revoke = 0;
            self.held_bytes -= u64::from(handle.ip_len());
            handle.arrive = now;
            let tag = pool.ingress_tag(handle.slot());
            queues.store(handle, tag.link(), tag.priority());
        }
        self.on_wire.truncate(self.started);
    }
}

impl Link {
    /// Whether QCN limits flows at this port, and nothing else can hold up a packet.
    #[inline]
    pub(super) fn has_only_rate_limits(&self) -> bool {
        let dcb = self.queues.as_deref().and_then(|q| q.dcb.as_deref());
        dcb.is_some_and(DcbPort::has_only_rate_limits)
    }

    /// Enqueues a packet of the host [where flows are limited](Link::has_only_rate_limits). The
    /// departures of the port that are due must have been executed. Returns whether the next event
    /// of the link may have changed, or why the packet was dropped.
    pub(super) fn enqueue_rate_limited(
        &mut self,
        now: Time,
        mut handle: PacketHandle,
        priority: u8,
        pool: &mut PacketPool,
    ) -> Result<bool, Cause> {
        let ip_len = u32::from(handle.ip_len());
        let (wire_bytes, send_time) = (self.wire_bytes(ip_len), self.send_time(ip_len));
        let q = self.queues.as_deref_mut().expect("it is a DCB port");
        let (queues, dcb, sent_at) =
            q.single_class().expect("ports with limits alone have one class");
        let (backlog, idle) = (queues.backlog(), *sent_at == Time::NEVER);
        let rest = if idle { now } else { *sent_at };
        let mut clear_at = rest + transmission_time(backlog, self.framing, self.ps_per_byte_q16);
        if idle && backlog.packets > 0 {
            clear_at = clear_at.max(now.next()); // it needs room
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
        self.counters.max_backlog = self.counters.max_backlog.max(clear_at.since(now));
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
        if mark {
            self.mark(now, handle.slot(), handle.identity(), pool);
        }
        Ok(changes)
    }

    /// Starts the next packet, [where flows are limited](Link::has_only_rate_limits).
    #[inline(never)]
    pub(super) fn start_rate_limited(&mut self, now: Time) {
        let Some(q) = self.queues.as_deref_mut() else { return };
        let Some((queues, dcb, sent_at)) = q.single_class() else { return };
        match queues.choose(now) {
            Next::Later(at, bytes) => {
                (dcb.wakes_at, dcb.wake_bytes) = (at.max(now.next()), bytes);
            }
            Next::Now(priority, flow) => {
                let Some(handle) = queues.dequeue_chosen(now, priority, flow) else { return };
                let wire_bytes = dcb.wire.bytes(u32::from(handle.ip_len()));
                let sent = now + Span((u64::from(wire_bytes) * self.ps_per_byte_q16) >> 16);
                *sent_at = sent;
                dcb.on_transmit(queues, now, (priority, flow), wire_bytes);
                self.transmit_rate_limited(sent, handle);
            }
        }
    }

    /// Puts a packet on the wire that will have been sent at `sent`.
    #[inline(always)]
    fn transmit_rate_limited(&mut self, sent: Time, mut handle: PacketHandle) {
        if let Some(dcb) = self.queues.as_deref_mut().and_then(|q| q.dcb.as_deref_mut()) {
            (dcb.wakes_at, dcb.sending_packet) = (Time::NEVER, true);
            dcb.sent_since_revoke += 1;
        }
        self.started += 1;
        self.held_bytes += u64::from(handle.ip_len());
        handle.arrive = sent + self.delay;
        self.on_wire.push(handle);
    }

    /// Returns the arrival time of the next packet of an eventless port at the far end, while the
    /// port is idle and all queued packets are rate-limited; otherwise never.
    #[inline]
    pub(crate) fn foreseen_arrival(&self) -> Time {
        let dcb = self.queues.as_deref().and_then(|q| q.dcb.as_deref());
        match dcb {
            Some(b) if b.wakes_at != Time::NEVER && b.wakes_without_event() => {
                b.wakes_at + self.send_time(b.wake_bytes) + self.delay
            }
            _ => Time::NEVER,
        }
    }
}
