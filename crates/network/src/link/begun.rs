//! Lazy ports, and eager ports whose discipline sees every packet: both know which packets of their ring have
//! begun to be sent.
//!
//! An eager port whose discipline sees every packet asks for its queue each time. Packets begin in the
//! order of the ring, so a cursor that only goes on replaces counting: what it has passed is being
//! sent or on the wire.
//!
//! A [lazy](super::Mode::Lazy) port decides at the cursor. Until then a packet's place in the ring
//! says when it came; from then on, when it arrives. The decision may be late, but not late enough for
//! anybody to see: a packet is sent when the one before it has left, so it is due by the time at which
//! that one arrives, and that is an event of the same link. So the head of the ring has always begun
//! when an event is over, and whoever looks at queues or losses settles first.

use super::{Link, Offer, Passage};
use crate::losses::Cause;
use crate::pool::PacketPool;
use crate::queue::{Backlog, Discipline, Head, Plan};
use eastwest_types::Time;

impl Link {
    /// What has not begun to be sent, as far as that is known.
    pub(super) fn not_begun(&self) -> Backlog {
        Backlog {
            packets: self.on_wire.len() - self.begun as usize,
            bytes: self.held_bytes - self.begun_bytes,
        }
    }

    /// What waits at an eager port without faults.
    #[inline]
    pub(super) fn count_begun(&mut self, now: Time) -> Backlog {
        while self.next_start <= now
            && let Some(held) = self.on_wire.get(self.begun)
        {
            let sent = held.arrive.before(self.delay);
            self.begun += 1;
            self.begun_bytes += u64::from(held.ip_len);
            let more = self.begun < self.on_wire.len() as u32;
            self.next_start = if more { sent } else { Time::NEVER };
        }
        self.not_begun()
    }

    /// Offers a packet to an eager port whose discipline sees every packet.
    #[inline(always)]
    pub(super) fn offer_counted(
        &mut self,
        now: Time,
        passage: Passage,
        pool: &mut PacketPool,
    ) -> Offer {
        if self.takes_unseen(now) {
            return self.enqueue(now, passage);
        }
        self.offer_seen(now, passage, pool)
    }

    #[inline(always)]
    fn takes_unseen(&mut self, now: Time) -> bool {
        let held = self.on_wire.len();
        self.calm.as_mut().is_some_and(|calm| calm.takes(held, now, self.busy_until))
    }

    #[inline(never)]
    fn offer_seen(&mut self, now: Time, passage: Passage, pool: &mut PacketPool) -> Offer {
        self.look_up();
        if self.takes_unseen(now) {
            return self.enqueue(now, passage);
        }
        let backlog = self.count_begun(now);
        if let Some(cause) = self.judge(now, &passage, backlog, self.busy_until, pool) {
            return Offer::Dropped(cause);
        }
        let offer = self.enqueue_counted(now, passage);
        self.calm_down();
        offer
    }

    /// Lets a packet in where [`Link::count_begun`] counts.
    #[inline]
    pub(super) fn enqueue_counted(&mut self, now: Time, passage: Passage) -> Offer {
        if self.next_start == Time::NEVER {
            self.next_start = self.busy_until.max(now);
        }
        self.enqueue(now, passage)
    }

    /// Offers a packet to a lazy port.
    pub(super) fn offer_lazy(
        &mut self,
        now: Time,
        mut passage: Passage,
        pool: &mut PacketPool,
    ) -> Offer {
        self.settle(now, pool);
        let backlog = self.not_begun();
        if (backlog.packets >= self.surely_fits as usize || self.queue.sees_all())
            && let Some(cause) = self.judge(now, &passage, backlog, self.busy_until, pool)
        {
            return Offer::Dropped(cause);
        }
        let ip_len = u32::from(passage.ip_len);
        let free_at = self.busy_until; // if nothing waits
        self.extend_backlog(now, self.send_time(ip_len));
        self.held_bytes += u64::from(ip_len);
        passage.arrive = now;
        let first = self.on_wire.is_empty();
        self.on_wire.push(passage);
        if backlog.packets == 0 {
            self.next_start = free_at.max(now);
            self.settle(now, pool);
        }
        match (self.late.is_none(), first) {
            (false, _) => Offer::Displaced(self.next_key(now)),
            (true, true) => Offer::Sooner(self.next_key(now)),
            (true, false) => Offer::Queued,
        }
    }

    /// The packet in front is about to arrive.
    #[inline(always)]
    pub(super) fn before_arrival(&mut self, now: Time, pool: &mut PacketPool) {
        if self.lazy {
            self.settle(now, pool);
        } else if self.begun == 0 {
            match self.divided.is_some() {
                true => self.count_gone(now, false),
                false => _ = self.count_begun(now),
            }
        }
        if self.begun > 0
            && let Some(held) = self.on_wire.get(0)
        {
            self.begun_bytes -= u64::from(held.ip_len);
            self.begun -= 1;
            self.on_wire.prefetch(self.begun + 2);
        }
    }

    /// Decides all departures of a lazy port that are due by now.
    #[inline(always)]
    pub(crate) fn settle(&mut self, now: Time, pool: &mut PacketPool) {
        while self.next_start <= now {
            self.begin(self.next_start, pool);
        }
    }

    /// A lazy port takes the next packet that waits.
    #[inline(never)]
    fn begin(&mut self, start: Time, pool: &mut PacketPool) {
        let mut left = self.not_begun();
        let since = self.on_wire.get(self.begun).map_or(start, |held| held.arrive);
        if !self.queue.surely_lets_out(start, since) {
            let (ring, begun, known) = (&self.on_wire, self.begun, &*pool);
            let plan = self.queue.at_dequeue(start, || {
                (begun..).map_while(|place| ring.get(place)).map(move |p| {
                    left.packets -= 1;
                    left.bytes -= u64::from(p.ip_len);
                    Head { since: p.arrive, left, packet: known.get(p.slot) }
                })
            });
            if plan != Plan::default() {
                self.carry_out(plan, start, pool);
            }
        }
        self.next_start = Time::NEVER;
        if let Some(&Passage { ip_len, .. }) = self.on_wire.get(self.begun) {
            let ip_len = u32::from(ip_len);
            let sent = start + self.send_time(ip_len);
            let arrive = sent + self.delay;
            self.on_wire.change(self.begun, |held| held.arrive = arrive);
            self.begun += 1;
            self.begun_bytes += u64::from(ip_len);
            if self.on_wire.len() > self.begun as usize {
                self.next_start = sent;
            }
        }
    }

    /// Drops and marks what is next.
    #[cold]
    #[inline(never)]
    fn carry_out(&mut self, plan: Plan, now: Time, pool: &mut PacketPool) {
        for _ in 0..plan.drop {
            let passage = self.on_wire.remove(self.begun);
            let ip_len = u32::from(passage.ip_len);
            self.held_bytes -= u64::from(ip_len);
            self.busy_until = Time(self.busy_until.0 - self.send_time(ip_len).0);
            self.late.get_or_insert_default().0.push((now, passage));
        }
        if plan.mark
            && let Some(&passage) = self.on_wire.get(self.begun)
        {
            self.mark(now, passage.slot, passage.identity, pool);
        }
        let late = self.late.as_ref().map_or(&[][..], |late| &late.0);
        let dropped: Vec<Passage> = late[late.len() - plan.drop..].iter().map(|l| l.1).collect();
        for passage in dropped {
            self.count_loss(now, &passage, pool.get(passage.slot), Cause::Sojourn);
        }
    }

    /// Packets that the discipline of a lazy port has dropped since the last call, and when. They are
    /// counted already.
    pub(crate) fn take_late(&mut self) -> Vec<(Time, Passage)> {
        self.late.take().map_or(Vec::new(), |late| late.0)
    }

    /// Whether departures are decided late.
    pub(crate) fn is_lazy(&self) -> bool {
        self.lazy
    }

    /// Whether there are such packets.
    #[inline]
    pub(crate) fn has_late(&self) -> bool {
        !self.plain && self.late.is_some()
    }

    #[cfg(test)]
    pub(super) fn is_calm(&self) -> bool {
        self.calm.as_ref().is_some_and(|calm| calm.is_calm)
    }

    /// When the packet at this place of the ring begins to be sent, or began.
    fn start_of(&self, held: &Passage) -> Time {
        held.arrive.before(self.delay + self.send_time(u32::from(held.ip_len)))
    }

    /// At a calm port that can no longer take packets unseen: tells RED what it missed. The port stays
    /// calm where the average allows it, and otherwise knows again what has begun.
    fn look_up(&mut self) {
        let Some(calm) = self.calm.as_mut().filter(|c| c.is_calm) else { return };
        let average = self.queue.steady_average().expect("only ports with RED are calm");
        if calm.stays(average, self.on_wire.len()) {
            return;
        }
        self.keeps_begun = true;
        self.next_start = self.on_wire.get(0).map_or(Time::NEVER, |held| self.start_of(held));
    }

    /// Becomes calm if the packet that was just let in has left the queue short and the average low.
    #[inline]
    fn calm_down(&mut self) {
        let Some(calm) = &self.calm else { return };
        if self.on_wire.len() as u32 > calm.most / 2 {
            return; // where it comes and goes, both ways cost
        }
        let average = self.queue.steady_average().expect("only ports with RED are calm");
        if let Some(left) = calm.can_begin(average) {
            self.begin_calm(left);
        }
    }

    #[inline(never)]
    fn begin_calm(&mut self, left: u32) {
        let mut calm = self.calm.take().expect("it has been looked at");
        calm.begin(left);
        if calm.notes_all {
            for place in self.begun..self.on_wire.len() as u32 {
                let held = self.on_wire.get(place).expect("it was counted");
                calm.note_known(self.start_of(held));
            }
        }
        self.keeps_begun = false;
        (self.begun, self.begun_bytes, self.next_start) = (0, 0, Time::NEVER);
        self.calm = Some(calm);
    }
}
