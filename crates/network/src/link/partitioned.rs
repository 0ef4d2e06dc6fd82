//! Ports with special functions in a partitioned fabric, which is simulated in several parts
//! (threads): ports whose packets may arrive in another part, and ports to hosts that soon receive
//! the last byte of a message from another part.
//!
//! A packet whose next node is in another part is sent to that part when it is enqueued. This is
//! possible because the port fixes departures at enqueue, so that the arrival time is known. Until
//! its transmission starts, the packet still counts in the queue of the sending port. The counters
//! of this port count the packet when the port is next used after its arrival.
//!
//! A port that decides later, when the transmission of a packet starts (CoDel, several queues,
//! shared buffers, data-centre bridging), works as in a fabric that is not partitioned. The packet is
//! sent to the other part at the end of the window in which its transmission starts, which is early
//! enough: it then still needs the delay of the cable. Its arrival is an event in both parts: in the
//! other part it arrives, in this part the port only counts it.

use super::{FAST_ENQUEUE, Link, Outcome, PacketHandle, PacketWords};
use crate::losses::Cause;
use crate::pool::PacketPool;
use crate::queue::Backlog;
use crate::ring::Ring;
use eastwest_engine::order::{Class, Key};
use eastwest_types::{Span, Time};
use std::sync::Arc;

impl Link {
    /// Whether the port can send packets to another part of a partitioned fabric, and to hosts that
    /// receive messages from there: it has no faults, and its link never sleeps.
    pub(crate) fn can_be_partitioned(&self) -> bool {
        self.fault_state.is_none() && self.lpi().is_none()
    }

    /// Whether the port knows the arrival time of a packet at enqueue: the port fixes departures at
    /// enqueue (eager), has no faults, and its link never sleeps.
    fn fixes_departures(&self) -> bool {
        self.enqueues_fast()
    }

    /// Whether the port decides about a packet when its transmission starts.
    #[inline]
    pub(crate) fn decides_late(&self) -> bool {
        self.lazy || self.queues.is_some()
    }

    /// Executes the departures that are due by `until`, at a port that [decides
    /// then](Link::decides_late). All events until this time must have been executed.
    pub(crate) fn depart_until(&mut self, until: Time, pool: &mut PacketPool) {
        if self.lazy {
            self.settle(until, pool);
        } else {
            self.catch_up(until.next(), pool);
        }
    }

    /// Whether a port that [decides then](Link::decides_late) has no packet, neither queued nor in
    /// flight, and no unread drop.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.on_wire.is_empty()
            && self.queues.as_ref().is_none_or(|queues| !queues.waits())
            && !self.has_deferred_drops()
    }

    /// Returns the packet at position `place` in the order of arrival at the far end if its
    /// transmission has started by `until`; otherwise `None`. For a port that [decides
    /// then](Link::decides_late) and has executed its departures until this time.
    pub(crate) fn started_by(&self, until: Time, place: u32) -> Option<PacketHandle> {
        let handle = *self.on_wire.get(place)?;
        let has_started = match (self.has_dcb(), self.queues.is_some()) {
            (true, _) => place < self.first_waiting(),
            (false, true) => true,
            // a lazy port that fixes departures for now, and one that does not
            (false, false) if self.enqueues_fast() => self.start_of(&handle) <= until,
            (false, false) => place < self.first_waiting(),
        };
        has_started.then_some(handle)
    }

    /// Returns the time at which the transmission of the next packet starts after `until`, at a port
    /// that [decides then](Link::decides_late); [`Time::NEVER`] if there is none, or if its start is
    /// an event.
    pub(crate) fn next_start_after(&self, until: Time) -> Time {
        if self.has_dcb() {
            return self.next_start_dcb();
        }
        if !(self.lazy && self.enqueues_fast()) {
            return if self.lazy { self.next_start } else { Time::NEVER };
        }
        let mut starts = self.on_wire.iter().map(|handle| self.start_of(handle));
        starts.find(|&start| start > until).unwrap_or(Time::NEVER)
    }

    /// Prepares a port whose packets may arrive in another part of a fabric that is simulated in
    /// several parts: [`Fabric`](crate::fabric::Fabric) itself then enqueues packets here.
    pub(crate) fn partition(&mut self) {
        assert!(self.fixes_departures(), "only eager ports can be partitioned");
        self.set_path(FAST_ENQUEUE, false);
        self.acts_before_arrival = true;
        self.choose_arrival_path();
        self.partitioned = Some(Box::default());
    }

    /// Removes and returns the packets on the wire whose next node is in another part of the
    /// partitioned fabric, in order. The port counts them when they have arrived.
    pub(crate) fn split(
        &mut self,
        is_elsewhere: impl Fn(&PacketHandle) -> bool,
    ) -> Vec<PacketHandle> {
        let held = self.on_wire.note;
        let (elsewhere, here): (Vec<_>, Vec<_>) =
            self.on_wire.iter().copied().partition(is_elsewhere);
        self.on_wire = here.into_iter().collect();
        self.on_wire.note = held;
        if let Some(partitioned) = &mut self.partitioned {
            elsewhere.iter().for_each(|&handle| partitioned.departed.push(handle));
        }
        elsewhere
    }

    /// Makes the port leave all packets to [`Fabric`](crate::fabric::Fabric), which observes them
    /// and calls [`Link::enqueue_left`] (`on` is true), or enqueue packets itself again.
    pub(crate) fn leave_to_fabric(&mut self, on: bool) {
        debug_assert!(!self.decides_late() && self.partitioned.is_none());
        // Arrivals at the far end keep their path: only enqueues differ.
        self.set_path(FAST_ENQUEUE, !on);
    }

    /// Enqueues a packet that the port has left to the fabric, see [`Link::leave_to_fabric`].
    pub(crate) fn enqueue_left(
        &mut self,
        now: Time,
        packet: PacketWords,
        pool: &mut PacketPool,
    ) -> Outcome {
        self.leave_to_fabric(false);
        let outcome = self.enqueue(now, packet, pool);
        self.leave_to_fabric(true);
        outcome
    }

    /// Whether a packet of this port arrives at its next node in another part of the partitioned
    /// fabric at the time `now`. Earlier arrivals must have been counted.
    #[inline]
    pub(crate) fn arrives_elsewhere(&self, now: Time) -> bool {
        let first = self.partitioned.as_ref().and_then(|d| d.departed.get(0));
        first.is_some_and(|handle| handle.arrive == now)
    }

    /// Makes this link the receiving side of a port that another part of the partitioned fabric
    /// owns. Packets then arrive without additional random delay.
    pub(crate) fn only_arrives(&mut self) {
        if self.kind.jitter > Span::ZERO {
            Arc::make_mut(&mut self.kind).jitter = Span::ZERO;
        }
        self.choose_arrival_path();
    }

    /// Enqueues a packet whose next node is in this part of the partitioned fabric. Arrivals in
    /// other parts must have been counted ([`Link::count_remote`]).
    #[inline]
    pub(crate) fn enqueue_local(
        &mut self,
        now: Time,
        handle: PacketHandle,
        pool: &mut PacketPool,
    ) -> Outcome {
        match self.admit(now, &handle, pool) {
            Some(cause) => Outcome::Dropped(cause),
            None => self.schedule_departure(now, handle.words()),
        }
    }

    /// Enqueues a packet whose next node is in another part of the partitioned fabric. Returns its
    /// arrival time, or the cause if it is dropped. Arrivals in other parts must have been counted
    /// ([`Link::count_remote`]).
    #[inline]
    pub(crate) fn enqueue_crossing(
        &mut self,
        now: Time,
        mut handle: PacketHandle,
        pool: &mut PacketPool,
    ) -> Result<Time, Cause> {
        if let Some(cause) = self.admit(now, &handle, pool) {
            return Err(cause);
        }
        let ip_len = u32::from(handle.ip_len());
        handle.arrive = self.extend_backlog(now, self.send_time(ip_len)) + self.kind.delay;
        self.on_wire.hold(ip_len);
        if let Some(partitioned) = &mut self.partitioned {
            partitioned.departed.push(handle);
        }
        Ok(handle.arrive)
    }

    /// Applies the queue discipline to a packet if a decision is necessary. Returns the cause if
    /// the packet is dropped.
    #[inline]
    fn admit(&mut self, now: Time, handle: &PacketHandle, pool: &mut PacketPool) -> Option<Cause> {
        let departed = self.partitioned.as_ref().map_or(0, |d| d.departed.len());
        let fits = self.on_wire.len() + departed < self.kind.admits_below as usize
            || self.busy_until <= now;
        if fits && !self.sees_all {
            return None;
        }
        self.decide_partitioned(now, handle, pool)
    }

    #[inline(never)]
    fn decide_partitioned(
        &mut self,
        now: Time,
        handle: &PacketHandle,
        pool: &mut PacketPool,
    ) -> Option<Cause> {
        let backlog = self.backlog_partitioned(now);
        self.apply_aqm(now, handle, backlog, self.busy_until, pool)
    }

    /// Returns the queued packets of this port, including packets whose next node is in another
    /// part of the partitioned fabric.
    fn backlog_partitioned(&self, now: Time) -> Backlog {
        let departed = self.partitioned.as_ref().map(|d| &d.departed);
        let all = self.on_wire.len() + departed.map_or(0, Ring::len);
        let mut waiting = Backlog { packets: all, bytes: self.held_bytes() };
        // Each of the two rings is in order of arrival. Packets whose first bit has left the port
        // are not counted, as in `Link::waits_in_ring`.
        let then = now + self.kind.delay;
        for ring in [Some(&self.on_wire), departed].into_iter().flatten() {
            for handle in ring.iter() {
                let way = handle.arrive.since(then);
                if way > Span::ZERO && way > self.send_time(u32::from(handle.ip_len())) {
                    break;
                }
                waiting.packets -= 1;
                waiting.bytes -= u64::from(handle.ip_len());
            }
        }
        waiting
    }

    /// Puts the packets of all parts of the fabric into `on_wire`, so that the queue of the port
    /// can be read (`open` is true), or restores the packets of this part alone.
    pub(crate) fn expose_all(&mut self, open: bool) {
        let Some(partitioned) = &mut self.partitioned else { return };
        if !open {
            self.on_wire = partitioned.own_ring.take().unwrap_or_default();
            return;
        }
        let mut all: Vec<PacketHandle> =
            self.on_wire.iter().chain(partitioned.departed.iter()).copied().collect();
        all.sort_by_key(|handle| handle.arrive);
        let mut ring: Ring<PacketHandle> = all.into_iter().collect();
        ring.note = self.on_wire.note;
        partitioned.own_ring = Some(std::mem::replace(&mut self.on_wire, ring));
    }

    /// Counts the packets that have arrived at their next node in other parts of the partitioned
    /// fabric before `now`; with `at_now`, also packets that arrive at `now`.
    #[inline]
    pub(crate) fn count_remote(&mut self, now: Time, at_now: bool) {
        while let Some(partitioned) = &mut self.partitioned
            && let Some(&handle) = partitioned.departed.get(0)
            && (handle.arrive < now || (at_now && handle.arrive == now))
        {
            partitioned.departed.pop();
            let ip_len = u32::from(handle.ip_len());
            self.on_wire.release(ip_len);
            self.count_arrival(ip_len);
            self.fold(Key::new(handle.arrive, Class::Arrival).0, handle.identity());
        }
    }

    /// Adds a packet that another part of the partitioned fabric has sent on this link. Returns the
    /// event key of its arrival if it is the first packet on the wire, otherwise `None`.
    pub(crate) fn arrives(&mut self, handle: PacketHandle) -> Option<Key> {
        let first = self.on_wire.is_empty();
        debug_assert!(
            first || self.on_wire.iter().next_back().is_none_or(|p| p.arrive <= handle.arrive)
        );
        self.on_wire.hold(handle.ip_len().into());
        self.on_wire.push(handle);
        first.then(|| self.next_key(Time::ZERO))
    }

    /// Removes and returns the packets on the wire whose next node is in this part of the
    /// partitioned fabric.
    pub(crate) fn take_on_wire(&mut self) -> impl Iterator<Item = PacketHandle> + use<> {
        self.partitioned = None;
        let mut ring = std::mem::take(&mut self.on_wire);
        self.on_wire.note = ring.note;
        std::iter::from_fn(move || ring.pop())
    }

    /// Appends a packet, which [`Link::take_on_wire`] has removed, to the packets on the wire.
    /// Calls must be in the order of arrivals.
    pub(crate) fn put_on_wire(&mut self, handle: PacketHandle) {
        self.on_wire.push(handle);
    }

    /// Returns the packets in flight to a host, each with its delivery time and the number of
    /// packets delivered before. At a port that [decides late](Link::decides_late), these are the
    /// packets whose transmission has started by `until`. `now` is the time of the last event.
    pub(crate) fn handed_over(
        &self,
        (now, until): (Time, Time),
    ) -> impl Iterator<Item = (Time, u64, PacketHandle)> {
        let mut before = now;
        (0u32..).map_while(move |place| {
            let handle = match self.decides_late() {
                true => self.started_by(until, place)?,
                false => *self.on_wire.get(place)?,
            };
            let number = self.counters().packets + u64::from(place);
            before = self.arrival_of(&handle, number).max(before);
            Some((before, number, handle))
        })
    }

    /// Returns the delivery time of the packet number `number` of this link, ignoring earlier
    /// packets.
    fn arrival_of(&self, handle: &PacketHandle, number: u64) -> Time {
        match self.kind.jitter {
            Span::ZERO => handle.arrive,
            _ => self.jittered(handle.arrive, number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{packet, red, red_from_six, spec};
    use super::super::{LinkSpec, Mode, QueueConfig};
    use super::*;
    use crate::queue::DropTail;
    use eastwest_engine::random::Stream;
    use eastwest_types::Limit;

    /// Behaviour of a test port: arrivals (time, packet), lost packets, and the queue (packets,
    /// bytes) before each enqueue.
    type Did = (Vec<(Time, u32)>, Vec<u32>, Vec<(u32, u64)>);

    /// Enqueues packets (time, IP bytes) and runs until the port is empty. The packets selected by
    /// `crosses` arrive in another part of a partitioned fabric; at a port that is not partitioned,
    /// they are left to the fabric.
    fn play(link: &mut Link, offers: &[(Time, u16)], crosses: impl Fn(usize) -> bool) -> Did {
        let (mut pool, mut next) = (PacketPool::default(), Key::NEVER);
        let (mut arrived, mut lost, mut queues) = (Vec::new(), Vec::new(), Vec::new());
        for (number, &(at, ip_len)) in offers.iter().enumerate() {
            while next < Key::new(at, Class::Arrival) {
                let (handle, then) = link.arrive(next, &mut pool);
                arrived.push((next.time(), handle.slot()));
                next = then;
            }
            link.count_remote(at, false);
            link.expose_all(true);
            queues.push(link.queue(at));
            link.expose_all(false);
            let packet = packet(ip_len, 0);
            let slot = pool.insert(&packet);
            let handle = PacketHandle::new(slot, &packet);
            let outcome = match (link.partitioned.is_some(), crosses(number)) {
                (false, leaves) => {
                    // Packets before the next one also arrive in this state of the port.
                    link.leave_to_fabric(leaves);
                    assert_ne!(link.enqueues_fast(), leaves);
                    match leaves {
                        true => link.enqueue_left(at, handle.words(), &mut pool),
                        false => link.enqueue(at, handle.words(), &mut pool),
                    }
                }
                (true, false) => link.enqueue_local(at, handle, &mut pool),
                (true, true) => match link.enqueue_crossing(at, handle, &mut pool) {
                    Ok(arrive) => {
                        arrived.push((arrive, slot));
                        Outcome::Queued
                    }
                    Err(cause) => Outcome::Dropped(cause),
                },
            };
            match outcome {
                Outcome::Dropped(cause) => {
                    link.count_loss(at, &handle, pool.get(slot), cause);
                    lost.push(slot);
                }
                Outcome::Sooner(key) => next = key,
                _ => {}
            }
        }
        while next != Key::NEVER {
            let (handle, then) = link.arrive(next, &mut pool);
            arrived.push((next.time(), handle.slot()));
            next = then;
        }
        link.count_remote(Time::NEVER, false);
        arrived.sort_unstable();
        (arrived, lost, queues)
    }

    #[test]
    fn a_port_is_the_same_whether_packets_arrive_here_or_elsewhere() {
        let mut random = Stream::new(5, "divided ports");
        for case in 0..200 {
            let packets = Limit::Packets(1 + random.below(9) as u32);
            let queue = match case % 5 {
                0 => QueueConfig::DropTail(DropTail(packets)),
                1 => QueueConfig::DropTail(DropTail(Limit::Bytes(1_500 + random.below(9_000)))),
                2 => QueueConfig::Red(red(0.3, false, packets)),
                3 => QueueConfig::Red(red_from_six(1.0, false)),
                _ => QueueConfig::Red(red_from_six(0.02, false)),
            };
            let port = || LinkSpec { queue: queue.clone(), ..spec(packets, Mode::Eager) };
            let mut at = 0;
            let offers: Vec<(Time, u16)> = (0..80)
                .map(|_| {
                    at += random.below(3) * random.below(12_000_000);
                    (Time(at), 40 + random.below(1_461) as u16)
                })
                .collect();
            let chosen = random.below(u64::MAX);
            let (mut whole, mut partitioned) = (Link::new(port()), Link::new(port()));
            partitioned.partition();
            let one = play(&mut whole, &offers, |_| false);
            let parts = play(&mut partitioned, &offers, |n| chosen >> (n % 64) & 1 == 1);
            assert_eq!(one, parts, "case {case}");
            let left = play(&mut Link::new(port()), &offers, |n| chosen >> (n % 64) & 1 == 1);
            assert_eq!(one, left, "case {case}");
            let (one, parts) = (whole.counters(), partitioned.counters());
            assert_eq!(
                (one.packets, one.bytes, one.trail),
                (parts.packets, parts.bytes, parts.trail)
            );
            assert_eq!(whole.longest_wait(), partitioned.longest_wait());
            assert_eq!(
                (whole.lost(), whole.held_bytes()),
                (partitioned.lost(), partitioned.held_bytes())
            );
        }
    }

    #[test]
    fn what_arrives_at_the_very_instant_is_counted_where_it_goes_first() {
        let mut link = Link::new(spec(Limit::Packets(9), Mode::Eager));
        link.partition();
        let (mut pool, packet) = (PacketPool::default(), packet(1_500, 0));
        let handle = PacketHandle::new(pool.insert(&packet), &packet);
        let arrive = link.enqueue_crossing(Time(7), handle, &mut pool).expect("there is room");
        link.count_remote(arrive, false);
        assert_eq!((link.counters().packets, link.arrives_elsewhere(arrive)), (0, true));
        assert!(!link.arrives_elsewhere(Time(arrive.0 + 1)));
        link.count_remote(arrive, true);
        assert_eq!((link.counters().packets, link.held_bytes()), (1, 0));
    }
}
