//! Ports of links that sleep.
//!
//! A two-event port has an event when the link is awake. An eager one needs none: when a packet comes,
//! it is known when the link will be awake, or when it will be at the latest; a packet that ends
//! holding moves all that are held nearer. Both do the same to every packet.
//!
//! Where the link layer has a buffer of its own (`SleepBuffer::Link`), a packet goes queue, buffer,
//! wire: it passes the empty queue at once while the link is not awake, and waits in the queue as
//! soon as it is, behind what the buffer still holds.

use super::port_queues::Admission;
use super::{Link, Outcome, PacketHandle};
use crate::energy::eee::{LpiLog, LpiState, StateTimes};
use crate::losses::Cause;
use crate::pool::PacketPool;
use crate::queue::{Arrival, Backlog, Discipline, Verdict};
use eastwest_types::{Span, Time};

impl Link {
    /// Whether a packet that comes now has to wait for the link to wake.
    pub(super) fn sleeps(&self, now: Time) -> bool {
        self.lpi.as_ref().is_some_and(|s| s.sleeps(now))
    }

    /// When the port is clear for a packet that comes now: where the link sleeps also the first one
    /// waits, and needs room.
    pub(super) fn clear_for(&self, now: Time, asleep: bool) -> Time {
        if asleep { self.busy_until.max(now.next()) } else { self.busy_until }
    }

    /// Sets when the sleeping link of a two-event port will be awake, now that a packet has come;
    /// tells whether that is sooner than before.
    pub(super) fn plan_to_wake(&mut self, now: Time) -> bool {
        let q = self.queues.as_mut().expect("a two-event port has queues");
        let held = q.backlog().and(q.stored());
        let lpi = self.lpi.as_mut().expect("the link sleeps");
        let ready = lpi.ready_at(now, held.packets, held.bytes);
        let before = std::mem::replace(&mut q.sent_at, ready);
        self.wake_at(ready, before);
        ready < before
    }

    /// What is held, if anything, now begins to be sent at `ready` in place of `before`.
    fn wake_at(&mut self, ready: Time, before: Time) {
        if before == Time::NEVER {
            self.busy_until = ready;
        } else {
            self.busy_until = Time(self.busy_until.0 - before.since(ready).0);
        }
    }

    /// Whether the link layer of a sleeping link takes a packet offered to a two-event port.
    pub(super) fn stores(&self, ip_len: u16) -> bool {
        let (Some(q), Some(lpi)) = (&self.queues, &self.lpi) else { return false };
        lpi.takes(q.stored(), q.backlog().packets, ip_len)
    }

    /// What the discipline knows of a packet that passes its empty queue at once.
    fn passing<'p>(&self, now: Time, handle: &PacketHandle, pool: &'p PacketPool) -> Arrival<'p> {
        let lpi = self.lpi.as_ref().expect("the link sleeps");
        let since = lpi.queue_empty_since(self.busy_until);
        let arrival = self.arrival(now, handle, Backlog::default(), since, pool);
        Arrival { send_time: Span::ZERO, ..arrival }
    }

    /// Offers a packet to a two-event port whose link layer [takes](Link::stores) it.
    #[inline(never)]
    pub(super) fn enqueue_in_link_buffer(
        &mut self,
        now: Time,
        handle: PacketHandle,
        pool: &mut PacketPool,
    ) -> Outcome {
        let arrival = self.passing(now, &handle, pool);
        self.note_arrival(&arrival);
        let q = self.queues.as_mut().expect("a two-event port has queues");
        match q.push(handle, arrival) {
            Admission::Admitted { mark: true } => {
                self.mark(now, handle.slot, handle.identity, pool)
            }
            Admission::Admitted { mark: false } => {}
            Admission::Dropped(cause) => return Outcome::Dropped(cause),
        }
        let q = self.queues.as_mut().expect("a two-event port has queues");
        let Some((handle, mark)) = q.pop(now, pool) else {
            return Outcome::Displaced(self.next_key(now)); // its discipline has dropped it
        };
        q.store(handle);
        if mark {
            self.mark(now, handle.slot, handle.identity, pool);
        }
        let sooner = self.plan_to_wake(now);
        self.lpi.as_mut().expect("the link sleeps").pass(now);
        self.extend_below_queue(now, &handle);
        // as at other ports, a link that wakes in no time sends at once
        if sooner && self.queues.as_ref().is_some_and(|q| q.sent_at <= now) {
            self.start_sending(now, pool);
            return Outcome::Displaced(self.next_key(now));
        }
        if sooner { Outcome::Sooner(self.next_key(now)) } else { Outcome::Queued }
    }

    /// Adds a packet of the link layer's buffer to the time until which the port is busy. It does
    /// not wait in the queue, so that the longest wait there stays.
    fn extend_below_queue(&mut self, now: Time, handle: &PacketHandle) {
        let longest = self.counters.max_backlog;
        self.extend_backlog(now, self.send_time(u32::from(handle.ip_len)));
        self.counters.max_backlog = longest;
    }

    /// The discipline of an eager port looks at a packet that passes its empty queue.
    fn apply_aqm_passing(
        &mut self,
        now: Time,
        handle: &PacketHandle,
        pool: &mut PacketPool,
    ) -> Option<Cause> {
        let arrival = self.passing(now, handle, pool);
        let verdict = self.queue.at_enqueue(&arrival);
        if verdict == Verdict::Mark {
            self.mark(now, handle.slot, handle.identity, pool);
        }
        verdict.loss()
    }

    /// What waits in the queue of an eager port, of all that waits.
    pub(super) fn above_store(&self, waits: Backlog) -> Backlog {
        let Some(lpi) = &self.lpi else { return waits };
        let next = self.counters.packets + (self.on_wire.len() - waits.packets) as u64;
        lpi.queued(next, waits)
    }

    /// Offers a packet to an eager port whose link sleeps.
    pub(super) fn enqueue_sleeping(
        &mut self,
        now: Time,
        handle: PacketHandle,
        pool: &mut PacketPool,
    ) -> Outcome {
        let clear_at = self.busy_until;
        let lpi = self.lpi.as_mut().expect("the link sleeps");
        lpi.catch_up(now, clear_at);
        let planned = lpi.planned();
        let asleep = planned.is_some() || lpi.sleeps(now);
        let held = self.update_started(now);
        let queued = self.above_store(held);
        let lpi = self.lpi.as_ref().expect("the link sleeps");
        let stores = asleep && lpi.takes(held.without(queued), queued.packets, handle.ip_len);
        let lost = if stores {
            self.apply_aqm_passing(now, &handle, pool)
        } else {
            self.apply_aqm(now, &handle, queued, self.clear_for(now, asleep), pool)
        };
        if let Some(cause) = lost {
            return Outcome::Dropped(cause);
        }
        let number = self.counters.packets + self.on_wire.len() as u64;
        let lpi = self.lpi.as_mut().expect("the link sleeps");
        lpi.queue(handle.ip_len);
        if !asleep {
            if clear_at <= now {
                lpi.send(now);
            }
            return self.schedule_counted(now, handle);
        }
        let one = Backlog { packets: 1, bytes: u64::from(handle.ip_len) };
        let held = held.and(one);
        let ready = lpi.ready_at(now, held.packets, held.bytes);
        if stores {
            lpi.store(now, number);
        }
        let before = planned.unwrap_or(Time::NEVER);
        self.wake_at(ready, before);
        if planned.is_some() && ready < before {
            self.advance_held(before.since(ready));
        }
        let longest = self.counters.max_backlog;
        let enqueue = self.schedule_counted(now, handle);
        if stores {
            self.counters.max_backlog = longest; // it does not wait in the queue
        }
        let moved = self.started == 0 && ready < before;
        if moved { Outcome::Sooner(self.next_key(now)) } else { enqueue }
    }

    /// All that is held arrives so much sooner.
    fn advance_held(&mut self, by: Span) {
        self.next_start = self.next_start.before(by);
        for place in self.started..self.on_wire.len() as u32 {
            self.on_wire.change(place, |handle| handle.arrive = handle.arrive.before(by));
        }
    }

    /// The link's sleep, for those who look at both directions.
    pub(crate) fn lpi(&self) -> Option<&LpiState> {
        self.lpi.as_deref()
    }

    /// See [`LpiState::note_both`].
    pub(crate) fn note_both(&mut self, span: Span) {
        if let Some(lpi) = &mut self.lpi {
            lpi.note_both(span);
        }
    }

    /// How long the link was in each state until `now`, if it sleeps at all.
    pub fn state_times(&self, now: Time) -> Option<StateTimes> {
        let mut lpi = self.lpi.as_ref()?.without_log();
        if self.queues.is_none() {
            lpi.catch_up(now, self.busy_until);
        }
        Some(lpi.times(now))
    }

    /// Whether it ever sleeps.
    pub fn sleeps_at_all(&self) -> bool {
        self.lpi.is_some()
    }

    /// Logs its naps, if it sleeps.
    pub fn log_lpi(&mut self, log: LpiLog) {
        if let Some(lpi) = &mut self.lpi {
            lpi.keep_log(log);
        }
    }

    /// The log of its naps until `now`, if it has one.
    pub fn take_lpi_log(&mut self, now: Time) -> Option<LpiLog> {
        let lpi = self.lpi.as_mut()?;
        if self.queues.is_none() {
            lpi.catch_up(now, self.busy_until);
        }
        lpi.take_log(now)
    }
}
