//! Ports that count the packets in their ring whose transmission has not started. These ports are
//! lazy ports (departures decided at dequeue), and eager ports (departures fixed at enqueue) whose
//! discipline must see every packet or whose link sleeps.
//!
//! An eager port of this kind needs its queue length for each packet. Packets start in the order of
//! the ring, so that one cursor suffices, which only moves forward. The cursor is counted from the
//! end of the ring, so that arrivals at the far end do not change it. If the port was not used for
//! a time, counted packets may have arrived: then the cursor is beyond the head of the ring.
//!
//! A [lazy](super::Mode::Lazy) port decides about the packet at the cursor. Before this decision,
//! the handle in the ring has the arrival time at the port; afterwards, the arrival time at the far
//! end. The decision may be made late, but this has no effect. The transmission of a packet is due
//! when the previous packet has left the port, and thus before the previous packet arrives at the
//! far end, which is an event of the same link. Therefore, after each event, the packet at the head
//! of the ring has started. Code that reads queues or losses calls [`Link::settle`] first.
//!
//! While the discipline of a lazy port certainly decides nothing (CoDel: no packet waits for the
//! target delay), the port fixes departures at enqueue, on the fastest path of eager ports. The
//! first packet about which the discipline might decide ends this state; the departures of packets
//! that have not started are then open again.

use super::{FAST_ENQUEUE, Link, Outcome, PacketHandle, PacketWords, SLOW_ARRIVAL, STARTS_FIRST};
use crate::losses::Cause;
use crate::pool::PacketPool;
use crate::queue::{Backlog, Discipline, Head, Plan};
use eastwest_types::Time;

impl Link {
    /// Returns number and IP bytes of the packets whose transmission has not started, according to
    /// the counters of the port (`waiting`, `waiting_bytes`).
    #[inline]
    fn not_started(&self) -> Backlog {
        Backlog { packets: self.waiting as usize, bytes: self.waiting_bytes }
    }

    /// Returns the place in the ring of the first packet that `waiting` counts.
    #[inline]
    pub(crate) fn first_waiting(&self) -> u32 {
        self.on_wire.len() as u32 - self.waiting
    }

    /// Subtracts the packets whose transmission has started by `now` from the count of waiting
    /// packets, and returns number and IP bytes of the others. For ports without faults that fix
    /// departures at enqueue (eager).
    #[inline]
    pub(super) fn update_waiting(&mut self, now: Time) -> Backlog {
        let held = self.on_wire.len() as u32;
        if self.busy_until <= now {
            (self.waiting, self.waiting_bytes) = (0, 0);
        } else if self.waiting > held {
            // Counted packets have arrived, hence `next_start` is past and the next packet has
            // started too.
            (self.waiting, self.waiting_bytes) = (held, self.held_bytes());
        }
        while self.waiting > 0
            && self.next_start <= now
            && let Some(handle) = self.on_wire.get(held - self.waiting)
        {
            self.next_start = handle.arrive.before(self.kind.delay);
            self.waiting -= 1;
            self.waiting_bytes -= u64::from(handle.ip_len());
        }
        self.not_started()
    }

    /// Counts a packet that is enqueued at `now` as waiting, unless it starts at once. For ports
    /// that fix departures at enqueue (eager).
    #[inline]
    pub(super) fn count_enqueued(&mut self, now: Time, ip_len: u16) {
        if self.busy_until > now {
            if self.waiting == 0 {
                self.next_start = self.busy_until;
            }
            self.waiting += 1;
            self.waiting_bytes += u64::from(ip_len);
        }
    }

    /// Enqueues a packet at a lazy port (departures are decided at dequeue).
    pub(super) fn enqueue_lazy(
        &mut self,
        now: Time,
        mut handle: PacketHandle,
        pool: &mut PacketPool,
    ) -> Outcome {
        self.settle(now, pool);
        let backlog = self.not_started();
        if backlog.packets == 0 && self.kind.admits_below > 0 && self.enters_fast_path(now) {
            return self.schedule_departure(now, handle.words());
        }
        if (backlog.packets >= self.kind.admits_below as usize || self.queue.sees_all())
            && let Some(cause) = self.apply_aqm(now, &handle, backlog, self.busy_until, pool)
        {
            return Outcome::Dropped(cause);
        }
        let ip_len = u32::from(handle.ip_len());
        let free_at = self.busy_until; // time from which the port is free, if no packet is queued
        self.extend_backlog(now, self.send_time(ip_len));
        self.on_wire.hold(ip_len);
        handle.arrive = now;
        let first = self.on_wire.is_empty();
        self.on_wire.push(handle);
        self.waiting += 1;
        self.waiting_bytes += u64::from(ip_len);
        if backlog.packets == 0 {
            self.next_start = free_at.max(now);
            self.settle(now, pool);
        }
        match (self.deferred_drops.is_none(), first) {
            (false, _) => Outcome::Displaced(self.next_key(now)),
            (true, true) => Outcome::Sooner(self.next_key(now)),
            (true, false) => Outcome::Queued,
        }
    }

    /// Whether a lazy port without queued packets fixes departures at enqueue from now on, because
    /// its discipline certainly decides nothing about a packet that arrives at `now`.
    #[inline]
    fn enters_fast_path(&mut self, now: Time) -> bool {
        let enters = self.deferred_drops.is_none()
            && !self.is_partitioned()
            && self.busy_until.since(now) < self.queue.passes_below();
        if enters {
            self.set_path(FAST_ENQUEUE, true);
            self.acts_before_arrival = false;
            (self.waiting, self.waiting_bytes, self.next_start) = (0, 0, Time::NEVER);
            self.choose_arrival_path();
        }
        enters
    }

    /// Ends the state in which a lazy port fixes departures at enqueue, and enqueues a packet. All
    /// packets whose transmission starts after `now` count as enqueued at the time of this start:
    /// the discipline passes them in any case.
    #[inline(never)]
    pub(super) fn leave_fast_path_with(
        &mut self,
        now: Time,
        packet: PacketWords,
        pool: &mut PacketPool,
    ) -> Outcome {
        self.set_path(FAST_ENQUEUE, false);
        self.acts_before_arrival = true;
        self.choose_arrival_path();
        while let Some(place) = self.first_waiting().checked_sub(1)
            && let Some(handle) = self.on_wire.get(place)
            && let start = self.start_of(handle)
            && start > now
        {
            self.waiting += 1;
            self.waiting_bytes += u64::from(handle.ip_len());
            self.next_start = start;
            self.on_wire.change(place, |handle| handle.arrive = start);
        }
        self.enqueue_lazy(now, packet.arriving(Time::NEVER), pool)
    }

    /// Whether departures of the lazy port are not decided yet, and none of them is due by `now`.
    pub(crate) fn starts_after(&self, now: Time) -> bool {
        self.next_start > now && self.has_open_departures()
    }

    /// Whether departures of the lazy port are not decided yet.
    pub(crate) fn has_open_departures(&self) -> bool {
        self.next_start != Time::NEVER
    }

    /// Decides all departures that are due by `now` at a lazy port (departures are decided at
    /// dequeue).
    #[inline(always)]
    pub(crate) fn settle(&mut self, now: Time, pool: &mut PacketPool) {
        if self.next_start > now {
            return;
        }
        if self.has_flow_queues() {
            return self.start_from_flow_queues(now, pool);
        }
        while self.next_start <= now {
            self.start_next(self.next_start, pool);
        }
    }

    /// Enqueues a packet at a lazy port with several queues (traffic classes, or a discipline
    /// without FIFO order).
    #[inline(never)]
    pub(super) fn enqueue_lazy_queues(
        &mut self,
        now: Time,
        packet: PacketWords,
        pool: &mut PacketPool,
    ) -> Outcome {
        if self.has_flow_queues() {
            return self.enqueue_in_flow_queue(now, packet, pool).0;
        }
        self.settle(now, pool);
        let send_time = match self.push_to_queues(now, packet.arriving(now), self.busy_until, pool)
        {
            Ok(send_time) => send_time,
            Err(cause) => return Outcome::Dropped(cause),
        };
        let waits = self.queues.as_ref().is_some_and(|q| q.waits());
        let free_at = self.busy_until; // time from which the port is free, if no packet is queued
        self.extend_backlog(now, send_time);
        let first = self.on_wire.is_empty();
        let has_dropped = self.has_dropped();
        if has_dropped {
            self.shorten_backlog(0);
        }
        if self.next_start == Time::NEVER && waits {
            self.next_start = free_at.max(now);
            self.act_before_arrival(true);
            self.settle(now, pool);
        }
        match (has_dropped || self.deferred_drops.is_some(), first) {
            (true, _) => Outcome::Displaced(self.next_key(now)),
            (false, true) => Outcome::Sooner(self.next_key(now)),
            (false, false) => Outcome::Queued,
        }
    }

    /// Starts the transmission of the next packet at a lazy port with several queues. Disciplines
    /// may first drop packets.
    #[inline(never)]
    pub(super) fn start_next_of_queues(&mut self, start: Time, pool: &mut PacketPool) {
        let q = self.queues.as_mut().expect("the port has several queues");
        let (next, waits) = (q.pop(start, pool), q.waits());
        let has_dropped = !q.dropped.is_empty();
        if has_dropped {
            self.shorten_backlog(0);
        }
        let mut sent_at = Time::NEVER;
        if let Some((handle, mark)) = next {
            if mark {
                self.mark(start, handle.slot(), handle.identity(), pool);
            }
            sent_at = start + self.send_time(u32::from(handle.ip_len()));
            self.on_wire.hold(handle.ip_len().into());
            self.on_wire.push(handle.arriving(sent_at + self.kind.delay));
        }
        self.next_start = if waits { sent_at } else { Time::NEVER };
        if let Some(q) = &mut self.queues {
            q.sent_at = sent_at;
        }
        if has_dropped {
            self.defer_drops(start, pool);
        }
        if !waits && self.deferred_drops.is_none() {
            self.act_before_arrival(false);
        }
    }

    /// Sets whether the port has queued packets, so that arrivals at the far end must first start
    /// the transmissions that are due. For a lazy port with several queues.
    #[inline]
    pub(super) fn act_before_arrival(&mut self, acts: bool) {
        self.acts_before_arrival = acts;
        self.set_path(SLOW_ARRIVAL | STARTS_FIRST, acts);
    }

    /// Counts the packets that the disciplines of a lazy port with several queues have dropped at
    /// `now`, when the transmission of a packet started.
    #[cold]
    fn defer_drops(&mut self, now: Time, pool: &PacketPool) {
        for (handle, cause) in self.take_dropped() {
            self.count_loss(now, &handle, pool.get(handle.slot()), cause);
            self.deferred_drops.get_or_insert_default().0.push((now, handle, cause));
        }
    }

    /// Starts the transmission of the next queued packet at a lazy port (departures are decided at
    /// dequeue). The queue discipline may first drop packets.
    #[inline(never)]
    fn start_next(&mut self, start: Time, pool: &mut PacketPool) {
        if self.queues.is_some() {
            return self.start_next_of_queues(start, pool);
        }
        let mut left = self.not_started();
        let first = self.first_waiting();
        let since = self.on_wire.get(first).map_or(start, |handle| handle.arrive);
        if !self.queue.passes_without_decision(start, since) {
            let (ring, known) = (&self.on_wire, &*pool);
            let plan = self.queue.at_dequeue(start, || {
                (first..).map_while(|place| ring.get(place)).map(move |p| {
                    left.packets -= 1;
                    left.bytes -= u64::from(p.ip_len());
                    Head::new(p, left, known.get(p.slot()))
                })
            });
            if plan != Plan::default() {
                self.carry_out(plan, start, pool);
            }
        }
        self.next_start = Time::NEVER;
        if let Some(handle) = self.on_wire.get(first) {
            let ip_len = u32::from(handle.ip_len());
            let sent = start + self.send_time(ip_len);
            let arrive = sent + self.kind.delay;
            self.on_wire.change(first, |handle| handle.arrive = arrive);
            self.on_wire.prefetch(first + 2);
            self.waiting -= 1;
            self.waiting_bytes -= u64::from(ip_len);
            if self.waiting > 0 {
                self.next_start = sent;
            }
        }
    }

    /// Drops and marks packets at a lazy port (departures decided at dequeue), as the discipline
    /// has decided in `plan`.
    #[cold]
    #[inline(never)]
    fn carry_out(&mut self, plan: Plan, now: Time, pool: &mut PacketPool) {
        for _ in 0..plan.drop {
            let handle = self.on_wire.remove(self.first_waiting());
            let ip_len = u32::from(handle.ip_len());
            self.waiting -= 1;
            self.waiting_bytes -= u64::from(ip_len);
            self.on_wire.release(ip_len);
            self.busy_until = Time(self.busy_until.0 - self.send_time(ip_len).0);
            self.deferred_drops.get_or_insert_default().0.push((now, handle, Cause::Sojourn));
        }
        if plan.mark
            && let Some(&handle) = self.on_wire.get(self.first_waiting())
        {
            self.mark(now, handle.slot(), handle.identity(), pool);
        }
        let late = self.deferred_drops.as_ref().map_or(&[][..], |late| &late.0);
        let dropped: Vec<PacketHandle> =
            late[late.len() - plan.drop..].iter().map(|l| l.1).collect();
        for handle in dropped {
            self.count_loss(now, &handle, pool.get(handle.slot()), Cause::Sojourn);
        }
    }

    /// Removes and returns the packets that the discipline of a lazy port has dropped at dequeue
    /// since the last call, each with the time and the cause of its drop. These drops are already
    /// counted.
    pub(crate) fn take_deferred_drops(&mut self) -> Vec<(Time, PacketHandle, Cause)> {
        self.deferred_drops.take().map_or(Vec::new(), |late| late.0)
    }

    /// Whether the port is in [`Mode::Lazy`](super::Mode::Lazy), in which departures are decided at
    /// dequeue.
    pub(crate) fn is_lazy(&self) -> bool {
        self.lazy
    }

    /// Whether the discipline has dropped packets at dequeue since the last call of
    /// [`Link::take_deferred_drops`].
    #[inline]
    pub(crate) fn has_deferred_drops(&self) -> bool {
        self.acts_before_arrival && self.deferred_drops.is_some()
    }

    /// Returns the time at which the transmission of a packet in the ring starts.
    pub(super) fn start_of(&self, handle: &PacketHandle) -> Time {
        handle.arrive.before(self.kind.delay + self.send_time(u32::from(handle.ip_len())))
    }
}
