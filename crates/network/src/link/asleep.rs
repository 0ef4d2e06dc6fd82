//! Ports of links that sleep.
//!
//! A two-event port has an event when the link is awake. An eager one needs none: when a packet comes,
//! it is known when the link will be awake, or when it will be at the latest; a packet that ends
//! holding moves all that are held nearer. Both do the same to every packet.
//!
//! Where the link layer has a buffer of its own (`SleepBuffer::Link`), a packet goes queue, buffer,
//! wire: it passes the empty queue at once while the link is not awake, and waits in the queue as
//! soon as it is, behind what the buffer still holds.

use super::waiting::Entry;
use super::{Link, Offer, Passage};
use crate::energy::eee::{NapLog, Sleeper, StateTimes};
use crate::losses::Cause;
use crate::pool::PacketPool;
use crate::queue::{Arrival, Backlog, Discipline, Verdict};
use eastwest_types::{Span, Time};

impl Link {
    /// Whether a packet that comes now has to wait for the link to wake.
    pub(super) fn sleeps(&self, now: Time) -> bool {
        self.sleeper.as_ref().is_some_and(|s| s.sleeps(now))
    }

    /// When the port is clear for a packet that comes now: where the link sleeps also the first one
    /// waits, and needs room.
    pub(super) fn clear_for(&self, now: Time, asleep: bool) -> Time {
        if asleep { self.busy_until.max(now.next()) } else { self.busy_until }
    }

    /// Sets when the sleeping link of a two-event port will be awake, now that a packet has come;
    /// tells whether that is sooner than before.
    pub(super) fn plan_to_wake(&mut self, now: Time) -> bool {
        let w = self.waiting.as_mut().expect("a two-event port has queues");
        let held = w.backlog().and(w.stored());
        let sleeper = self.sleeper.as_mut().expect("the link sleeps");
        let ready = sleeper.ready_at(now, held.packets, held.bytes);
        let before = std::mem::replace(&mut w.sent_at, ready);
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
        let (Some(w), Some(sleeper)) = (&self.waiting, &self.sleeper) else { return false };
        sleeper.takes(w.stored(), w.backlog().packets, ip_len)
    }

    /// What the discipline knows of a packet that passes its empty queue at once.
    fn passing<'p>(&self, now: Time, passage: &Passage, pool: &'p PacketPool) -> Arrival<'p> {
        let sleeper = self.sleeper.as_ref().expect("the link sleeps");
        let since = sleeper.queue_empty_since(self.busy_until);
        let arrival = self.arrival(now, passage, Backlog::default(), since, pool);
        Arrival { send_time: Span::ZERO, ..arrival }
    }

    /// Offers a packet to a two-event port whose link layer [takes](Link::stores) it.
    #[inline(never)]
    pub(super) fn offer_store(
        &mut self,
        now: Time,
        passage: Passage,
        pool: &mut PacketPool,
    ) -> Offer {
        let arrival = self.passing(now, &passage, pool);
        self.note_arrival(&arrival);
        let w = self.waiting.as_mut().expect("a two-event port has queues");
        match w.push(passage, arrival) {
            Entry::In { mark: true } => self.mark(now, passage.slot, passage.identity, pool),
            Entry::In { mark: false } => {}
            Entry::Lost(cause) => return Offer::Dropped(cause),
        }
        let w = self.waiting.as_mut().expect("a two-event port has queues");
        let Some((passage, mark)) = w.pop(now, pool) else {
            return Offer::Displaced(self.next_key(now)); // its discipline has dropped it
        };
        w.store(passage);
        if mark {
            self.mark(now, passage.slot, passage.identity, pool);
        }
        let sooner = self.plan_to_wake(now);
        self.sleeper.as_mut().expect("the link sleeps").pass(now);
        self.extend_below_queue(now, &passage);
        // as at other ports, a link that wakes in no time sends at once
        if sooner && self.waiting.as_ref().is_some_and(|w| w.sent_at <= now) {
            self.start_sending(now, pool);
            return Offer::Displaced(self.next_key(now));
        }
        if sooner { Offer::Sooner(self.next_key(now)) } else { Offer::Queued }
    }

    /// Adds a packet of the link layer's buffer to the time until which the port is busy. It does
    /// not wait in the queue, so that the longest wait there stays.
    fn extend_below_queue(&mut self, now: Time, passage: &Passage) {
        let longest = self.counters.max_backlog;
        self.extend_backlog(now, self.send_time(u32::from(passage.ip_len)));
        self.counters.max_backlog = longest;
    }

    /// The discipline of an eager port looks at a packet that passes its empty queue.
    fn judge_passing(
        &mut self,
        now: Time,
        passage: &Passage,
        pool: &mut PacketPool,
    ) -> Option<Cause> {
        let arrival = self.passing(now, passage, pool);
        let verdict = self.queue.at_enqueue(&arrival);
        if verdict == Verdict::Mark {
            self.mark(now, passage.slot, passage.identity, pool);
        }
        verdict.loss()
    }

    /// What waits in the queue of an eager port, of all that waits.
    pub(super) fn above_store(&self, waits: Backlog) -> Backlog {
        let Some(sleeper) = &self.sleeper else { return waits };
        let next = self.counters.packets + (self.on_wire.len() - waits.packets) as u64;
        sleeper.queued(next, waits)
    }

    /// Offers a packet to an eager port whose link sleeps.
    pub(super) fn offer_sleeping(
        &mut self,
        now: Time,
        passage: Passage,
        pool: &mut PacketPool,
    ) -> Offer {
        let clear_at = self.busy_until;
        let sleeper = self.sleeper.as_mut().expect("the link sleeps");
        sleeper.catch_up(now, clear_at);
        let planned = sleeper.planned();
        let asleep = planned.is_some() || sleeper.sleeps(now);
        let held = self.count_begun(now);
        let queued = self.above_store(held);
        let sleeper = self.sleeper.as_ref().expect("the link sleeps");
        let stores = asleep && sleeper.takes(held.without(queued), queued.packets, passage.ip_len);
        let lost = if stores {
            self.judge_passing(now, &passage, pool)
        } else {
            self.judge(now, &passage, queued, self.clear_for(now, asleep), pool)
        };
        if let Some(cause) = lost {
            return Offer::Dropped(cause);
        }
        let number = self.counters.packets + self.on_wire.len() as u64;
        let sleeper = self.sleeper.as_mut().expect("the link sleeps");
        sleeper.queue(passage.ip_len);
        if !asleep {
            if clear_at <= now {
                sleeper.send(now);
            }
            return self.enqueue_counted(now, passage);
        }
        let one = Backlog { packets: 1, bytes: u64::from(passage.ip_len) };
        let held = held.and(one);
        let ready = sleeper.ready_at(now, held.packets, held.bytes);
        if stores {
            sleeper.store(now, number);
        }
        let before = planned.unwrap_or(Time::NEVER);
        self.wake_at(ready, before);
        if planned.is_some() && ready < before {
            self.advance_held(before.since(ready));
        }
        let longest = self.counters.max_backlog;
        let offer = self.enqueue_counted(now, passage);
        if stores {
            self.counters.max_backlog = longest; // it does not wait in the queue
        }
        let moved = self.begun == 0 && ready < before;
        if moved { Offer::Sooner(self.next_key(now)) } else { offer }
    }

    /// All that is held arrives so much sooner.
    fn advance_held(&mut self, by: Span) {
        self.next_start = self.next_start.before(by);
        for place in self.begun..self.on_wire.len() as u32 {
            self.on_wire.change(place, |held| held.arrive = held.arrive.before(by));
        }
    }

    /// The link's sleep, for those who look at both directions.
    pub(crate) fn sleeper(&self) -> Option<&Sleeper> {
        self.sleeper.as_deref()
    }

    /// See [`Sleeper::note_both`].
    pub(crate) fn note_both(&mut self, span: Span) {
        if let Some(sleeper) = &mut self.sleeper {
            sleeper.note_both(span);
        }
    }

    /// How long the link was in each state until `now`, if it sleeps at all.
    pub fn state_times(&self, now: Time) -> Option<StateTimes> {
        let mut sleeper = self.sleeper.as_ref()?.without_log();
        if self.waiting.is_none() {
            sleeper.catch_up(now, self.busy_until);
        }
        Some(sleeper.times(now))
    }

    /// Whether it ever sleeps.
    pub fn sleeps_at_all(&self) -> bool {
        self.sleeper.is_some()
    }

    /// Logs its naps, if it sleeps.
    pub fn log_naps(&mut self, log: NapLog) {
        if let Some(sleeper) = &mut self.sleeper {
            sleeper.keep_log(log);
        }
    }

    /// The log of its naps until `now`, if it has one.
    pub fn take_naps(&mut self, now: Time) -> Option<NapLog> {
        let sleeper = self.sleeper.as_mut()?;
        if self.waiting.is_none() {
            sleeper.catch_up(now, self.busy_until);
        }
        sleeper.take_log(now)
    }
}
