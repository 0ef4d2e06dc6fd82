//! Ports with special functions in a partitioned fabric, which is simulated in several parts
//! (threads): ports whose packets may arrive in another part, and ports to hosts that soon receive
//! the last byte of a message from another part.
//!
//! A packet whose next node is in another part is sent to that part when it is enqueued. This is
//! possible because the port fixes departures at enqueue, so that the arrival time is known. A copy
//! of its handle, marked as *elsewhere*, stays in the ring of the port among the packets that arrive
//! in this part: it is a part of the queue until its transmission starts, and the counters of the
//! port need it in the order of arrivals. Only packets that arrive in this part have events. An
//! event, a decision of the queue discipline, a full ring, and readers of the counters first count
//! the packets that have arrived elsewhere before.
//!
//! A port that decides later, when the transmission of a packet starts (CoDel, several queues,
//! shared buffers, data-centre bridging), works as in a fabric that is not partitioned. The packet is
//! sent to the other part at the end of the window in which its transmission starts, which is early
//! enough: it then still needs the delay of the cable. Its arrival is an event in both parts: in the
//! other part it arrives, in this part the port only counts it.

use super::{ARRIVES_HERE, FAST_ENQUEUE, Link, Outcome, PARTITIONED, PacketHandle, PacketWords};
use crate::losses::Cause;
use crate::pool::PacketPool;
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
        assert!(self.kind.jitter == Span::ZERO, "the next node is a switch");
        self.set_path(FAST_ENQUEUE, false);
        self.set_path(PARTITIONED, true);
        self.choose_arrival_path();
    }

    /// Whether packets of the port may arrive in another part of the partitioned fabric, so that
    /// [`Fabric`](crate::fabric::Fabric) enqueues them.
    #[inline]
    pub(crate) fn is_partitioned(&self) -> bool {
        self.paths & PARTITIONED != 0
    }

    /// Marks the packets on the wire whose next node is in another part of the partitioned fabric.
    /// Returns them in order, and the key of the next event of the link.
    pub(crate) fn split(
        &mut self,
        is_elsewhere: impl Fn(&PacketHandle) -> bool,
    ) -> (Vec<PacketHandle>, Key) {
        let mut elsewhere = Vec::new();
        for place in 0..self.on_wire.len() as u32 {
            self.on_wire.change(place, |handle| {
                if is_elsewhere(handle) {
                    elsewhere.push(*handle);
                    *handle = handle.elsewhere();
                }
            });
        }
        self.set_path(ARRIVES_HERE, true);
        (elsewhere, self.next_arrival_here())
    }

    /// Returns the key of the next arrival in this part of the partitioned fabric.
    #[inline(always)]
    fn next_arrival_here(&mut self) -> Key {
        let mut next = self.on_wire.first();
        let mut place = 0;
        while let Some(handle) = next {
            if !handle.is_elsewhere() {
                return Key::new(handle.arrive, Class::Arrival);
            }
            place += 1;
            next = self.on_wire.get(place);
        }
        self.paths &= !ARRIVES_HERE;
        Key::NEVER
    }

    /// Makes the port leave all packets to [`Fabric`](crate::fabric::Fabric), which observes them
    /// and calls [`Link::enqueue_left`] (`on` is true), or enqueue packets itself again.
    pub(crate) fn leave_to_fabric(&mut self, on: bool) {
        debug_assert!(!self.decides_late() && !self.is_partitioned());
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
    pub(crate) fn arrives_elsewhere(&self, now: Time) -> bool {
        let first = self.on_wire.get(0);
        first.is_some_and(|handle| handle.is_elsewhere() && handle.arrive == now)
    }

    /// Makes this link the receiving side of a port that another part of the partitioned fabric
    /// owns. Packets then arrive without additional random delay.
    pub(crate) fn only_arrives(&mut self) {
        if self.kind.jitter > Span::ZERO {
            Arc::make_mut(&mut self.kind).jitter = Span::ZERO;
        }
        self.choose_arrival_path();
    }

    /// Whether the next packet needs [`Link::decide_partitioned`] before it is enqueued at a port
    /// whose packets may arrive in another part: the queue discipline must decide, or packets that
    /// have arrived elsewhere may fill the ring.
    #[inline(always)]
    pub(crate) fn must_decide(&self) -> bool {
        self.on_wire.len() >= self.kind.admits_below as usize || self.on_wire.is_full()
    }

    /// Applies the queue discipline to a packet if it must decide. Returns the cause if the packet is
    /// dropped. Arrivals in other parts must have been counted ([`Link::count_elsewhere`]).
    pub(crate) fn decide_partitioned(
        &mut self,
        now: Time,
        packet: PacketWords,
        pool: &mut PacketPool,
    ) -> Option<Cause> {
        if self.on_wire.len() < self.kind.admits_below as usize {
            return None;
        }
        match self.decide(now, packet, pool) {
            Some(Outcome::Dropped(cause)) => Some(cause),
            _ => None,
        }
    }

    /// Enqueues an admitted packet whose next node is in this part of the partitioned fabric. Returns
    /// the key of its arrival if this is the next event of the link, otherwise `None`.
    #[inline(always)]
    pub(crate) fn append_here(&mut self, now: Time, packet: PacketWords) -> Option<Key> {
        let arrive = self.append(now, packet);
        let is_next = self.paths & ARRIVES_HERE == 0;
        self.paths |= ARRIVES_HERE;
        is_next.then(|| Key::new(arrive, Class::Arrival))
    }

    /// Enqueues an admitted packet whose next node is in another part of the partitioned fabric.
    /// Returns its arrival time.
    #[inline(always)]
    pub(crate) fn append_elsewhere(&mut self, now: Time, packet: PacketWords) -> Time {
        self.append(now, packet.elsewhere())
    }

    /// Fixes the departure of an admitted packet, and appends it to the ring. Returns its arrival
    /// time at the far end.
    #[inline(always)]
    fn append(&mut self, now: Time, packet: PacketWords) -> Time {
        let ip_bytes = packet.ip_bytes();
        let depart = self.extend_backlog(now, self.send_time(ip_bytes as u32));
        let arrive = depart.after(self.kind.delay);
        self.on_wire.hold(ip_bytes as u32);
        self.on_wire.push(packet.arriving(arrive));
        arrive
    }

    /// Executes the next event of a link whose packets may arrive in another part of the partitioned
    /// fabric, an arrival in this part. Returns the packet, and the key of the next event. First
    /// counts the packets that have arrived in other parts before.
    #[inline(always)]
    pub(crate) fn arrive_here(&mut self, key: Key) -> (PacketHandle, Key) {
        let mut handle = self.count_first();
        while handle.is_elsewhere() {
            handle = self.count_first();
        }
        debug_assert!(handle.arrive == key.time());
        (handle, self.next_arrival_here())
    }

    /// Removes the first packet from the ring, counts its arrival, and returns it.
    #[inline(always)]
    fn count_first(&mut self) -> PacketHandle {
        let handle = self.on_wire.pop().expect("an arrival needs a packet on the wire");
        let ip_len = handle.ip_bytes() as u32;
        self.on_wire.release(ip_len);
        self.count_arrival(ip_len);
        self.fold(Key::new(handle.arrive, Class::Arrival).0, handle.identity());
        handle
    }

    /// Counts the packets that have arrived at their next node in other parts of the partitioned
    /// fabric before `now`; with `at_now`, also packets that arrive at `now`.
    pub(crate) fn count_elsewhere(&mut self, now: Time, at_now: bool) {
        while let Some(handle) = self.on_wire.get(0)
            && handle.is_elsewhere()
            && (handle.arrive < now || (at_now && handle.arrive == now))
        {
            self.count_first();
        }
    }

    /// Adds a packet that another part of the partitioned fabric has sent on this link. Returns the
    /// event key of its arrival if it is the first packet on the wire, otherwise `None`.
    #[inline(always)]
    pub(crate) fn arrives(&mut self, handle: PacketHandle) -> Option<Key> {
        let first = self.on_wire.is_empty();
        debug_assert!(
            first || self.on_wire.iter().next_back().is_none_or(|p| p.arrive <= handle.arrive)
        );
        self.on_wire.hold(handle.ip_bytes() as u32);
        self.on_wire.push(handle);
        // Packets arrive without additional random delay, see `Link::only_arrives`.
        first.then(|| match self.queues.is_some() {
            true => self.next_key(Time::ZERO),
            false => Key::new(handle.arrive, Class::Arrival),
        })
    }

    /// Returns the number of packets of this link like [`Link::held`], without those that are in
    /// another part of the partitioned fabric.
    pub(crate) fn held_here(&self) -> usize {
        let elsewhere = self.on_wire.iter().filter(|handle| handle.is_elsewhere());
        self.held() - elsewhere.count()
    }

    /// Removes the packets on the wire, and returns those whose next node is in this part of the
    /// partitioned fabric. The port is then an ordinary port.
    pub(crate) fn take_on_wire(&mut self) -> impl Iterator<Item = PacketHandle> + use<> {
        self.set_path(PARTITIONED, false);
        let mut ring = std::mem::take(&mut self.on_wire);
        self.on_wire.note = ring.note;
        std::iter::from_fn(move || ring.pop()).filter(|handle| !handle.is_elsewhere())
    }

    /// Appends a packet, which [`Link::take_on_wire`] has removed, to the packets on the wire.
    /// Calls must be in the order of arrivals.
    pub(crate) fn put_on_wire(&mut self, handle: PacketHandle) {
        self.on_wire.push(handle);
    }

    /// Returns the packets in flight to a host, each with its place in the order of arrival (0: the
    /// next one). At a port that [decides late](Link::decides_late), these are the packets whose
    /// transmission has started by `until`.
    pub(crate) fn handed_over(&self, until: Time) -> impl Iterator<Item = (u32, PacketHandle)> {
        let decides_late = self.decides_late();
        (0u32..).map_while(move |place| {
            let handle = match decides_late {
                true => self.started_by(until, place)?,
                false => *self.on_wire.get(place)?,
            };
            Some((place, handle))
        })
    }

    /// Returns the delivery time of the packet at position `place` in the order of arrival, which is
    /// [in flight](Link::handed_over), and the number of packets delivered before. `now` is the time
    /// of the last event.
    pub(crate) fn delivery_of(&self, place: u32, now: Time) -> (Time, u64) {
        let arrived = self.counters().packets;
        let jitter = self.kind.jitter;
        let mut at = now;
        // A packet is not delivered before an earlier one. Packets that arrive too early for this
        // precede all others, since packets arrive in order.
        for place in (0..=place).rev() {
            let handle = self.on_wire.get(place).expect("the packet is in flight");
            if handle.arrive + jitter < at {
                break;
            }
            let delivered = match jitter {
                Span::ZERO => handle.arrive,
                _ => self.jittered(handle.arrive, arrived + u64::from(place)),
            };
            at = at.max(delivered);
        }
        (at, arrived + u64::from(place))
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

    /// Executes the next event of a test port, an arrival. Returns the result of [`Link::arrive`].
    fn arrive(link: &mut Link, key: Key, pool: &mut PacketPool) -> (PacketHandle, Key) {
        match link.is_partitioned() {
            true => link.arrive_here(key),
            false => link.arrive(key, pool),
        }
    }

    /// Enqueues packets (time, IP bytes) and runs until the port is empty. The packets selected by
    /// `crosses` arrive in another part of a partitioned fabric; at a port that is not partitioned,
    /// they are left to the fabric.
    fn play(link: &mut Link, offers: &[(Time, u16)], crosses: impl Fn(usize) -> bool) -> Did {
        let (mut pool, mut next) = (PacketPool::default(), Key::NEVER);
        let (mut arrived, mut lost, mut queues) = (Vec::new(), Vec::new(), Vec::new());
        for (number, &(at, ip_len)) in offers.iter().enumerate() {
            while next < Key::new(at, Class::Arrival) {
                let (handle, then) = arrive(link, next, &mut pool);
                arrived.push((next.time(), handle.slot()));
                next = then;
            }
            queues.push(link.queue(at));
            let packet = packet(ip_len, 0);
            let slot = pool.insert(&packet);
            let handle = PacketHandle::new(slot, &packet);
            if link.is_partitioned() && link.must_decide() {
                link.count_elsewhere(at, false);
                if let Some(cause) = link.decide_partitioned(at, handle.words(), &mut pool) {
                    link.count_loss(at, &handle, pool.get(slot), cause);
                    lost.push(slot);
                    continue;
                }
            }
            let outcome = match (link.is_partitioned(), crosses(number)) {
                (false, leaves) => {
                    // Packets before the next one also arrive in this state of the port.
                    link.leave_to_fabric(leaves);
                    assert_ne!(link.enqueues_fast(), leaves);
                    match leaves {
                        true => link.enqueue_left(at, handle.words(), &mut pool),
                        false => link.enqueue(at, handle.words(), &mut pool),
                    }
                }
                (true, false) => match link.append_here(at, handle.words()) {
                    Some(key) => Outcome::Sooner(key),
                    None => Outcome::Queued,
                },
                (true, true) => {
                    arrived.push((link.append_elsewhere(at, handle.words()), slot));
                    Outcome::Queued
                }
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
            let (handle, then) = arrive(link, next, &mut pool);
            arrived.push((next.time(), handle.slot()));
            next = then;
        }
        link.count_elsewhere(Time::NEVER, false);
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
        let arrive = link.append_elsewhere(Time(7), handle.words());
        link.count_elsewhere(arrive, false);
        assert_eq!((link.counters().packets, link.arrives_elsewhere(arrive)), (0, true));
        assert!(!link.arrives_elsewhere(Time(arrive.0 + 1)));
        link.count_elsewhere(arrive, true);
        assert_eq!((link.counters().packets, link.held_bytes()), (1, 0));
    }
}
