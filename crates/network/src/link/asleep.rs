//! Ports of links that sleep.
//!
//! A two-event port has an event when the link is awake. An eager one needs none: when a packet comes,
//! it is known when the link will be awake, or when it will be at the latest; a packet that ends
//! holding moves all that are held nearer. Both do the same to every packet.

use super::{Link, Offer, Passage};
use crate::energy::eee::{NapLog, Sleeper, StateTimes};
use crate::pool::PacketPool;
use eastwest_types::{Span, Time};

impl Link {
    /// Whether a packet that comes now has to wait for the link to wake.
    pub(super) fn sleeps(&self, now: Time) -> bool {
        self.sleeper.as_ref().is_some_and(|s| s.sleeps(now))
    }

    /// When the port is clear for a packet that comes now: where the link sleeps also the first one
    /// waits, and needs room.
    pub(super) fn clear_for(&self, now: Time, asleep: bool) -> Time {
        if asleep { self.busy_until.max(now + Span(1)) } else { self.busy_until }
    }

    /// Sets when the sleeping link of a two-event port will be awake, now that a packet has come;
    /// tells whether that is sooner than before.
    pub(super) fn plan_to_wake(&mut self, now: Time) -> bool {
        let w = self.waiting.as_mut().expect("a two-event port has queues");
        let held = w.backlog();
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
        let mut held = self.count_begun(now);
        let clear_for = self.clear_for(now, asleep);
        if let Some(cause) = self.judge(now, &passage, held, clear_for, pool) {
            return Offer::Dropped(cause);
        }
        let sleeper = self.sleeper.as_mut().expect("the link sleeps");
        if !asleep {
            if clear_at <= now {
                sleeper.send(now);
            }
            return self.enqueue_counted(now, passage);
        }
        held.packets += 1;
        held.bytes += u64::from(passage.ip_len);
        let ready = sleeper.ready_at(now, held.packets, held.bytes);
        let before = planned.unwrap_or(Time::NEVER);
        self.wake_at(ready, before);
        if planned.is_some() && ready < before {
            self.advance_held(before.since(ready));
        }
        let offer = self.enqueue_counted(now, passage);
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
