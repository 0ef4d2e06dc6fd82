//! Ports that count the packets in their ring whose transmission has started. These ports are lazy
//! ports (departures decided at dequeue), and eager ports (departures fixed at enqueue) whose
//! discipline must see every packet.
//!
//! An eager port of this kind needs its queue length for each packet. Packets start in the order of
//! the ring, so that one cursor suffices, which only moves forward: packets before the cursor are
//! in transmission or on the wire.
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

use super::{Link, Outcome, PacketHandle, PacketWords};
use crate::losses::Cause;
use crate::pool::PacketPool;
use crate::queue::{Backlog, Discipline, Head, Plan};
use eastwest_types::Time;

impl Link {
    /// Returns number and IP bytes of the packets whose transmission has not started, according to
    /// the counters of the port (`started`, `started_bytes`).
    pub(super) fn not_started(&self) -> Backlog {
        Backlog {
            packets: self.on_wire.len() - self.started as usize,
            bytes: self.held_bytes - self.started_bytes,
        }
    }

    /// Counts the packets whose transmission has started by `now`, and returns number and IP bytes
    /// of the queued packets. For ports without faults that fix departures at enqueue (eager).
    #[inline]
    pub(super) fn update_started(&mut self, now: Time) -> Backlog {
        while self.next_start <= now
            && let Some(handle) = self.on_wire.get(self.started)
        {
            let sent = handle.arrive.before(self.delay);
            self.started += 1;
            self.started_bytes += u64::from(handle.ip_len());
            let more = self.started < self.on_wire.len() as u32;
            self.next_start = if more { sent } else { Time::NEVER };
        }
        self.not_started()
    }

    /// Enqueues a packet at a port that fixes departures at enqueue (eager) and whose discipline
    /// sees every packet.
    #[inline(always)]
    pub(super) fn enqueue_counted(
        &mut self,
        now: Time,
        packet: PacketWords,
        pool: &mut PacketPool,
    ) -> Outcome {
        if self.admits_on_fast_path(now) {
            return self.schedule_departure(now, packet);
        }
        self.enqueue_counted_slow(now, packet, pool)
    }

    #[inline(always)]
    fn admits_on_fast_path(&mut self, now: Time) -> bool {
        let held = self.on_wire.len();
        self.red_fast_path.as_mut().is_some_and(|path| path.admits(held, now, self.busy_until))
    }

    #[inline(never)]
    fn enqueue_counted_slow(
        &mut self,
        now: Time,
        packet: PacketWords,
        pool: &mut PacketPool,
    ) -> Outcome {
        self.resync_red();
        if self.admits_on_fast_path(now) {
            return self.schedule_departure(now, packet);
        }
        let (handle, backlog) = (packet.arriving(Time::NEVER), self.update_started(now));
        if let Some(cause) = self.apply_aqm(now, &handle, backlog, self.busy_until, pool) {
            return Outcome::Dropped(cause);
        }
        let outcome = self.schedule_counted(now, packet);
        self.try_red_fast_path();
        outcome
    }

    /// Fixes the departure of an admitted packet at a port that counts the packets whose
    /// transmission has started.
    #[inline]
    pub(super) fn schedule_counted(&mut self, now: Time, packet: PacketWords) -> Outcome {
        if self.next_start == Time::NEVER {
            self.next_start = self.busy_until.max(now);
        }
        self.schedule_departure(now, packet)
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
        if backlog.packets == 0 && self.admits_below > 0 && self.enters_fast_path(now) {
            return self.schedule_departure(now, handle.words());
        }
        if (backlog.packets >= self.admits_below as usize || self.queue.sees_all())
            && let Some(cause) = self.apply_aqm(now, &handle, backlog, self.busy_until, pool)
        {
            return Outcome::Dropped(cause);
        }
        let ip_len = u32::from(handle.ip_len());
        let free_at = self.busy_until; // time from which the port is free, if no packet is queued
        self.extend_backlog(now, self.send_time(ip_len));
        self.held_bytes += u64::from(ip_len);
        handle.arrive = now;
        let first = self.on_wire.is_empty();
        self.on_wire.push(handle);
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
            && self.partitioned.is_none()
            && self.busy_until.since(now) < self.queue.passes_below();
        if enters {
            (self.eager_fast_path, self.tracks_started) = (true, false);
            (self.started, self.started_bytes, self.next_start) = (0, 0, Time::NEVER);
            self.choose_arrival_path();
        }
        enters
    }

    /// Ends the state in which a lazy port fixes departures at enqueue. All packets whose
    /// transmission starts after `now` count as enqueued at the time of this start: the discipline
    /// passes them in any case.
    pub(super) fn leave_fast_path(&mut self, now: Time) {
        (self.eager_fast_path, self.tracks_started) = (false, true);
        self.choose_arrival_path();
        (self.started, self.started_bytes) = (self.on_wire.len() as u32, self.held_bytes);
        while let Some(place) = self.started.checked_sub(1)
            && let Some(handle) = self.on_wire.get(place)
            && let start = self.start_of(handle)
            && start > now
        {
            let ip_len = u64::from(handle.ip_len());
            self.on_wire.change(place, |handle| handle.arrive = start);
            (self.started, self.next_start) = (place, start);
            self.started_bytes -= ip_len;
        }
    }

    /// Whether departures of the lazy port are not decided yet.
    pub(crate) fn has_open_departures(&self) -> bool {
        self.next_start != Time::NEVER
    }

    /// Updates the count of packets whose transmission has started, before the first packet on the
    /// wire arrives.
    #[inline(always)]
    pub(super) fn before_arrival(&mut self, now: Time, pool: &mut PacketPool) {
        if self.lazy {
            self.settle(now, pool);
        } else if self.started == 0 {
            match self.partitioned.is_some() {
                true => self.count_remote(now, false),
                false => _ = self.update_started(now),
            }
        }
        if self.started > 0
            && let Some(handle) = self.on_wire.get(0)
        {
            self.started_bytes -= u64::from(handle.ip_len());
            self.started -= 1;
            self.on_wire.prefetch(self.started + 2);
        }
    }

    /// Decides all departures that are due by `now` at a lazy port (departures are decided at
    /// dequeue).
    #[inline(always)]
    pub(crate) fn settle(&mut self, now: Time, pool: &mut PacketPool) {
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
        self.settle(now, pool);
        let idle = self.busy_until <= now;
        let handle = packet.arriving(now);
        let q = self.queues.as_mut().expect("the port has several queues");
        let send_time = if let Some((flows, dropped)) = q.flow_queues() {
            if idle && self.deferred_drops.is_none() {
                flows.pass(&handle);
                return self.schedule_departure(now, packet);
            }
            flows.push(handle, idle, dropped);
            self.send_time(u32::from(handle.ip_len()))
        } else {
            match self.push_to_queues(now, handle, self.busy_until, pool) {
                Ok(send_time) => send_time,
                Err(cause) => return Outcome::Dropped(cause),
            }
        };
        let free_at = self.busy_until; // time from which the port is free, if no packet is queued
        self.extend_backlog(now, send_time);
        let first = self.on_wire.is_empty();
        if self.has_dropped() {
            self.shorten_backlog(0);
        }
        if self.next_start == Time::NEVER && self.queues.as_ref().is_some_and(|q| q.waits()) {
            self.next_start = free_at.max(now);
            self.track_started(true);
            self.settle(now, pool);
        }
        match (self.deferred_drops.is_some() || self.has_dropped(), first) {
            (true, _) => Outcome::Displaced(self.next_key(now)),
            (false, true) => Outcome::Sooner(self.next_key(now)),
            (false, false) => Outcome::Queued,
        }
    }

    /// Starts the transmission of the next packet at a lazy port with several queues. Disciplines
    /// may first drop packets.
    #[inline]
    fn start_next_of_queues(&mut self, start: Time, pool: &mut PacketPool) {
        let q = self.queues.as_mut().expect("the port has several queues");
        let (next, waits) = match q.flow_queues() {
            Some((flows, dropped)) => {
                (flows.pop(start, pool, dropped), flows.backlog().packets > 0)
            }
            None => (q.pop(start, pool), q.waits()),
        };
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
            self.held_bytes += u64::from(handle.ip_len());
            self.on_wire.push(handle.arriving(sent_at + self.delay));
        }
        self.next_start = if waits { sent_at } else { Time::NEVER };
        if let Some(q) = &mut self.queues {
            q.sent_at = sent_at;
        }
        if has_dropped {
            self.defer_drops(start, pool);
        }
        if !waits && self.deferred_drops.is_none() {
            self.track_started(false);
        }
    }

    /// Sets whether the port has queued packets, so that arrivals at the far end must first start
    /// the transmissions that are due. For a lazy port with several queues.
    fn track_started(&mut self, tracks: bool) {
        self.tracks_started = tracks;
        self.choose_arrival_path();
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
        let since = self.on_wire.get(self.started).map_or(start, |handle| handle.arrive);
        if !self.queue.passes_without_decision(start, since) {
            let (ring, started, known) = (&self.on_wire, self.started, &*pool);
            let plan = self.queue.at_dequeue(start, || {
                (started..).map_while(|place| ring.get(place)).map(move |p| {
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
        if let Some(handle) = self.on_wire.get(self.started) {
            let ip_len = u32::from(handle.ip_len());
            let sent = start + self.send_time(ip_len);
            let arrive = sent + self.delay;
            self.on_wire.change(self.started, |handle| handle.arrive = arrive);
            self.started += 1;
            self.started_bytes += u64::from(ip_len);
            if self.on_wire.len() > self.started as usize {
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
            let handle = self.on_wire.remove(self.started);
            let ip_len = u32::from(handle.ip_len());
            self.held_bytes -= u64::from(ip_len);
            self.busy_until = Time(self.busy_until.0 - self.send_time(ip_len).0);
            self.deferred_drops.get_or_insert_default().0.push((now, handle, Cause::Sojourn));
        }
        if plan.mark
            && let Some(&handle) = self.on_wire.get(self.started)
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
        self.tracks_started && self.deferred_drops.is_some()
    }

    #[cfg(test)]
    pub(super) fn is_on_red_fast_path(&self) -> bool {
        self.red_fast_path.as_ref().is_some_and(|path| path.is_active)
    }

    /// Returns the time at which the transmission of a packet in the ring starts.
    fn start_of(&self, handle: &PacketHandle) -> Time {
        handle.arrive.before(self.delay + self.send_time(u32::from(handle.ip_len())))
    }

    /// Updates the average of RED with the arrivals that its fast path has logged, if the fast path
    /// is active. If the fast path then ends, packets whose transmission has started are counted
    /// again.
    fn resync_red(&mut self) {
        let Some(path) = self.red_fast_path.as_mut().filter(|c| c.is_active) else { return };
        let average = self.queue.steady_average().expect("only RED has a fast path");
        if path.renew(average, self.on_wire.len()) {
            return;
        }
        self.tracks_started = true;
        self.choose_arrival_path();
        self.next_start = self.on_wire.get(0).map_or(Time::NEVER, |handle| self.start_of(handle));
    }

    /// Starts the fast path of RED if, after the packet just admitted, the queue is short and the
    /// average low.
    #[inline]
    fn try_red_fast_path(&mut self) {
        let Some(path) = &self.red_fast_path else { return };
        if self.on_wire.len() as u32 > path.max_held / 2 {
            return; // near the limit, starting and leaving the fast path costs more than it saves
        }
        let average = self.queue.steady_average().expect("only RED has a fast path");
        if let Some(left) = path.budget_to_start(average) {
            self.start_red_fast_path(left);
        }
    }

    #[inline(never)]
    fn start_red_fast_path(&mut self, left: u32) {
        let mut path = self.red_fast_path.take().expect("a port with RED has this state");
        path.start(left);
        if path.logs_arrivals {
            for place in self.started..self.on_wire.len() as u32 {
                let handle = self.on_wire.get(place).expect("counted packets are in the ring");
                path.log_known(self.start_of(handle));
            }
        }
        self.tracks_started = false;
        self.choose_arrival_path();
        (self.started, self.started_bytes, self.next_start) = (0, 0, Time::NEVER);
        self.red_fast_path = Some(path);
    }
}
