//! Ports of links that sleep (low-power idle, LPI).
//!
//! A two-event port, which has an event at the end of each transmission, also has an event when the
//! link becomes awake. An eager port, which fixes departures at enqueue, needs no further event:
//! when a packet arrives, the latest time at which the link will be awake is known. If a later
//! packet wakes the link earlier, the port moves the departures of all waiting packets to earlier
//! times. A packet has the same departure, marks and drops at both kinds of ports.
//!
//! If the link layer has its own buffer (`SleepBuffer::Link`), a packet passes first the queue,
//! then the buffer, then the wire. While the link is not awake, a packet bypasses the empty queue
//! and enters the buffer. Once the link is awake, packets stay in the queue and leave after the
//! packets in the buffer.

use super::port_queues::Admission;
use super::{Link, Outcome, PacketHandle};
use crate::energy::eee::{LpiLog, LpiState, StateTimes};
use crate::losses::Cause;
use crate::pool::PacketPool;
use crate::queue::{Arrival, Backlog, Discipline, Verdict};
use eastwest_types::{Span, Time};

impl Link {
    /// Whether a packet that arrives at `now` has to wait until the link is awake.
    pub(super) fn is_asleep(&self, now: Time) -> bool {
        self.lpi.as_ref().is_some_and(|s| s.is_asleep(now))
    }

    /// Returns the time at which the port will have sent all earlier packets
    /// ([`Arrival::clear_at`]), for a packet that arrives at `now`. If the link is asleep, this
    /// time is in the future, since even the first packet has to wait, so that the queue must admit
    /// it.
    pub(super) fn clear_for(&self, now: Time, asleep: bool) -> Time {
        if asleep { self.busy_until.max(now.next()) } else { self.busy_until }
    }

    /// Plans, after an arrival at a sleeping link, when the link will be awake. For a port with an
    /// event at the end of each transmission (two-event). Returns whether this time is earlier than
    /// the time planned before.
    pub(super) fn plan_wake_two_event(&mut self, now: Time) -> bool {
        let q = self.queues.as_mut().expect("a two-event port has queues");
        let held = q.backlog().and(q.link_buffer());
        let lpi = self.lpi.as_mut().expect("the link sleeps");
        let ready = lpi.plan_wake(now, held.packets, held.bytes);
        let before = std::mem::replace(&mut q.sent_at, ready);
        self.move_start(ready, before);
        ready < before
    }

    /// Moves the first transmission after the wake-up from the time `before` to the earlier time
    /// `ready`; `before` is [`Time::NEVER`] if no packet was waiting.
    fn move_start(&mut self, ready: Time, before: Time) {
        if before == Time::NEVER {
            self.busy_until = ready;
        } else {
            self.busy_until = Time(self.busy_until.0 - before.since(ready).0);
        }
    }

    /// Whether an arriving packet of `ip_len` IP bytes enters the buffer of the sleeping link
    /// layer; false at a port that is not in mode `TwoEvent`.
    pub(super) fn uses_link_buffer(&self, ip_len: u16) -> bool {
        let (Some(q), Some(lpi)) = (&self.queues, &self.lpi) else { return false };
        lpi.fits_link_buffer(q.link_buffer(), q.backlog().packets, ip_len)
    }

    /// Returns the input of the queue discipline for a packet that bypasses the empty queue and
    /// enters the buffer of the link layer.
    fn arrival_below_queue<'p>(
        &self,
        now: Time,
        handle: &PacketHandle,
        pool: &'p PacketPool,
    ) -> Arrival<'p> {
        let lpi = self.lpi.as_ref().expect("the link sleeps");
        let since = lpi.queue_empty_since(self.busy_until);
        let arrival = self.arrival(now, handle, Backlog::default(), since, pool);
        Arrival { send_time: Span::ZERO, ..arrival }
    }

    /// Enqueues a packet in the [buffer of the link layer](Link::uses_link_buffer), at a two-event
    /// port. The queue discipline still decides about the packet.
    #[inline(never)]
    pub(super) fn enqueue_in_link_buffer(
        &mut self,
        now: Time,
        handle: PacketHandle,
        pool: &mut PacketPool,
    ) -> Outcome {
        let arrival = self.arrival_below_queue(now, &handle, pool);
        self.note_arrival(&arrival);
        let q = self.queues.as_mut().expect("a two-event port has queues");
        match q.push(handle, arrival, pool) {
            Admission::Admitted { mark: true } => {
                self.mark(now, handle.slot(), handle.identity(), pool)
            }
            Admission::Admitted { mark: false } => {}
            Admission::Trimmed(_) => self.trim(now, &handle, pool),
            Admission::Dropped(cause) => return Outcome::Dropped(cause),
        }
        let q = self.queues.as_mut().expect("a two-event port has queues");
        let Some((handle, mark)) = q.pop(now, pool) else {
            return Outcome::Displaced(self.next_key(now)); // the discipline has dropped the packet
        };
        q.push_to_link_buffer(handle);
        if mark {
            self.mark(now, handle.slot(), handle.identity(), pool);
        }
        let sooner = self.plan_wake_two_event(now);
        self.lpi.as_mut().expect("the link sleeps").bypass_queue(now);
        self.extend_below_queue(now, &handle);
        // If the wake time of the link is zero, the packet is sent at once, as at other ports.
        if sooner && self.queues.as_ref().is_some_and(|q| q.sent_at <= now) {
            self.start_sending(now, pool);
            return Outcome::Displaced(self.next_key(now));
        }
        if sooner { Outcome::Sooner(self.next_key(now)) } else { Outcome::Queued }
    }

    /// Adds the transmission of a packet in the buffer of the link layer to `busy_until`. The
    /// longest waiting time in the queue does not change, since this packet bypasses the queue.
    fn extend_below_queue(&mut self, now: Time, handle: &PacketHandle) {
        let longest = self.longest_wait();
        self.extend_backlog(now, self.send_time(u32::from(handle.ip_len())));
        self.set_longest_wait(longest);
    }

    /// Applies the queue discipline to a packet that bypasses its empty queue, at a port that fixes
    /// departures at enqueue (eager). Returns the cause if the packet is dropped.
    fn apply_aqm_passing(
        &mut self,
        now: Time,
        handle: &PacketHandle,
        pool: &mut PacketPool,
    ) -> Option<Cause> {
        let arrival = self.arrival_below_queue(now, handle, pool);
        let verdict = self.queue.at_enqueue(&arrival);
        if verdict == Verdict::Mark {
            self.mark(now, handle.slot(), handle.identity(), pool);
        }
        verdict.loss()
    }

    /// Returns the part of the waiting packets `waits` that is in the queue and not in the buffer
    /// of the link layer, at a port that fixes departures at enqueue (eager).
    pub(super) fn above_link_buffer(&self, waits: Backlog) -> Backlog {
        let Some(lpi) = &self.lpi else { return waits };
        let next = self.counters().packets + (self.on_wire.len() - waits.packets) as u64;
        lpi.queue_backlog(next, waits)
    }

    /// Enqueues a packet at a port whose link can sleep and that fixes departures at enqueue
    /// (eager).
    pub(super) fn enqueue_sleeping(
        &mut self,
        now: Time,
        handle: PacketHandle,
        pool: &mut PacketPool,
    ) -> Outcome {
        let clear_at = self.busy_until;
        let lpi = self.lpi.as_mut().expect("the link sleeps");
        lpi.catch_up(now, clear_at);
        let planned = lpi.awake_at();
        let asleep = planned.is_some() || lpi.is_asleep(now);
        let held = self.update_waiting(now);
        let queued = self.above_link_buffer(held);
        let lpi = self.lpi.as_ref().expect("the link sleeps");
        let bypasses =
            asleep && lpi.fits_link_buffer(held.without(queued), queued.packets, handle.ip_len());
        let lost = if bypasses {
            self.apply_aqm_passing(now, &handle, pool)
        } else {
            self.apply_aqm(now, &handle, queued, self.clear_for(now, asleep), pool)
        };
        if let Some(cause) = lost {
            return Outcome::Dropped(cause);
        }
        let number = self.counters().packets + self.on_wire.len() as u64;
        let lpi = self.lpi.as_mut().expect("the link sleeps");
        lpi.count_queued(handle.ip_len());
        if !asleep {
            if clear_at <= now {
                lpi.send(now);
            }
            self.count_enqueued(now, handle.ip_len());
            return self.schedule_departure(now, handle.words());
        }
        let one = Backlog { packets: 1, bytes: u64::from(handle.ip_len()) };
        let held = held.and(one);
        let ready = lpi.plan_wake(now, held.packets, held.bytes);
        if bypasses {
            lpi.bypass_queue_eager(now, number);
        }
        let before = planned.unwrap_or(Time::NEVER);
        self.move_start(ready, before);
        if planned.is_some() && ready < before {
            self.advance_held(before.since(ready));
        }
        let longest = self.longest_wait();
        self.count_enqueued(now, handle.ip_len());
        let outcome = self.schedule_departure(now, handle.words());
        if bypasses {
            self.set_longest_wait(longest); // the packet bypasses the queue
        }
        let moved = self.waiting as usize == self.on_wire.len() && ready < before;
        if moved { Outcome::Sooner(self.next_key(now)) } else { outcome }
    }

    /// Makes the departures and arrivals of all packets that wait for the wake-up earlier by the
    /// time `by`.
    fn advance_held(&mut self, by: Span) {
        self.next_start = self.next_start.before(by);
        for place in self.first_waiting()..self.on_wire.len() as u32 {
            self.on_wire.change(place, |handle| handle.arrive = handle.arrive.before(by));
        }
    }

    /// Returns the low-power idle (LPI) state; `None` if the link never sleeps.
    pub(crate) fn lpi(&self) -> Option<&LpiState> {
        self.lpi.as_deref()
    }

    /// Adds `span`, a time for which both directions of the cable slept, to the total of this link.
    pub(crate) fn add_common_sleep(&mut self, span: Span) {
        if let Some(lpi) = &mut self.lpi {
            lpi.add_common_sleep(span);
        }
    }

    /// Returns the time that the link has spent in each energy state until `now`; `None` if the
    /// link never sleeps.
    pub fn state_times(&self, now: Time) -> Option<StateTimes> {
        let mut lpi = self.lpi.as_ref()?.without_log();
        if self.queues.is_none() {
            lpi.catch_up(now, self.busy_until);
        }
        Some(lpi.times(now))
    }

    /// Whether the link has low-power idle (LPI), so that it can sleep.
    pub fn sleeps_at_all(&self) -> bool {
        self.lpi.is_some()
    }

    /// Starts to record periods of low-power idle (LPI) in `log`. No effect if the link never
    /// sleeps.
    pub fn log_lpi(&mut self, log: LpiLog) {
        if let Some(lpi) = &mut self.lpi {
            lpi.keep_log(log);
        }
    }

    /// Removes and returns the log of low-power idle (LPI) periods until `now`; `None` if there is
    /// no log.
    pub fn take_lpi_log(&mut self, now: Time) -> Option<LpiLog> {
        let lpi = self.lpi.as_mut()?;
        if self.queues.is_none() {
            lpi.catch_up(now, self.busy_until);
        }
        lpi.take_log(now)
    }
}
