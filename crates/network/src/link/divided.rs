//! Ports of a divided fabric that somebody has to look at: those whose packets may arrive in another
//! part, and those to hosts.
//!
//! A packet that arrives in another part is handed over when it is enqueued, for an eager port knows
//! then when it arrives. What stays here is its place in the queue, and its part in the counters, which
//! count arrivals in order: it is counted when the port is next touched after its arrival.

use super::{Link, Offer, Passage};
use crate::losses::Cause;
use crate::pool::PacketPool;
use crate::queue::Backlog;
use crate::ring::Ring;
use eastwest_engine::order::{Class, Key};
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};

/// See the module.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Divided {
    /// Whether packets may arrive elsewhere.
    pub crosses: bool,
    /// Those that do and are not yet counted.
    gone: Ring<Passage>,
}

impl Divided {
    /// Packets that are waiting here or on their way elsewhere.
    pub(super) fn held(&self) -> usize {
        self.gone.len()
    }
}

impl Link {
    /// Eager, without faults, always awake, and only asked where it may be full.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// Lets the fabric look at every packet offered here.
    pub(crate) fn divide(&mut self, crosses: bool) {
        assert!(self.plain, "only eager ports that need not see every packet are divided");
        self.plain = false;
        self.keeps_begun = crosses;
        self.divided = Some(Box::new(Divided { crosses, gone: Ring::default() }));
    }

    /// This side only takes packets off the wire: another part owns the port.
    pub(crate) fn only_arrives(&mut self) {
        self.jitter = Span::ZERO;
    }

    /// Offers a packet that stays in this part to a divided port.
    #[inline]
    pub(crate) fn offer_here(
        &mut self,
        now: Time,
        passage: Passage,
        tie: bool,
        pool: &mut PacketPool,
    ) -> Offer {
        match self.let_in(now, &passage, tie, pool) {
            Some(cause) => Offer::Dropped(cause),
            None => self.enqueue(now, passage),
        }
    }

    /// Offers a packet that arrives in another part; returns when.
    #[inline]
    pub(crate) fn offer_across(
        &mut self,
        now: Time,
        mut passage: Passage,
        tie: bool,
        pool: &mut PacketPool,
    ) -> Result<Time, Cause> {
        if let Some(cause) = self.let_in(now, &passage, tie, pool) {
            return Err(cause);
        }
        let ip_len = u32::from(passage.ip_len);
        passage.arrive = self.extend_backlog(now, self.send_time(ip_len)) + self.delay;
        self.held_bytes += u64::from(ip_len);
        if let Some(divided) = &mut self.divided {
            divided.gone.push(passage);
        }
        Ok(passage.arrive)
    }

    #[inline]
    fn let_in(
        &mut self,
        now: Time,
        passage: &Passage,
        tie: bool,
        pool: &mut PacketPool,
    ) -> Option<Cause> {
        self.count_gone(now, tie);
        let gone = self.divided.as_ref().map_or(0, |d| d.gone.len());
        if self.on_wire.len() + gone < self.surely_fits as usize || self.busy_until <= now {
            return None;
        }
        let (packets, bytes) = self.queue(now);
        let backlog = Backlog { packets: packets as usize, bytes };
        self.judge(now, passage, backlog, self.busy_until, pool)
    }

    /// Counts packets that have arrived elsewhere before now, or also at this instant.
    #[inline]
    pub(crate) fn count_gone(&mut self, now: Time, at_now: bool) {
        while let Some(divided) = &mut self.divided
            && let Some(&Passage { arrive, ip_len, identity, .. }) = divided.gone.get(0)
            && (arrive < now || (at_now && arrive == now))
        {
            divided.gone.pop();
            let ip_len = u32::from(ip_len);
            self.held_bytes -= u64::from(ip_len);
            self.counters.packets += 1;
            self.counters.bytes += u64::from(self.wire_bytes(ip_len));
            self.fold(Key::new(arrive, Class::Arrival).0, identity);
        }
    }

    /// Of so many packets and bytes those that wait.
    pub(super) fn count_divided(
        &self,
        then: Time,
        divided: &Divided,
        (mut waiting, mut bytes): (u32, u64),
    ) -> (u32, u64) {
        waiting += divided.gone.len() as u32;
        for held in divided.gone.iter() {
            let way = held.arrive.since(then);
            if way > Span::ZERO && way > self.send_time(u32::from(held.ip_len)) {
                break;
            }
            waiting -= 1;
            bytes -= u64::from(held.ip_len);
        }
        (waiting, bytes)
    }

    /// A packet that another part has sent arrives here at its time.
    pub(crate) fn arrives(&mut self, passage: Passage) -> Option<Key> {
        let first = self.on_wire.is_empty();
        debug_assert!(
            first || self.on_wire.iter().next_back().is_none_or(|p| p.arrive <= passage.arrive)
        );
        self.held_bytes += u64::from(passage.ip_len);
        self.on_wire.push(passage);
        first.then(|| Key::new(passage.arrive, Class::Arrival))
    }

    /// Takes out what is on the wire, for another ring; what arrives elsewhere is there.
    pub(crate) fn take_on_wire(&mut self) -> impl Iterator<Item = Passage> + use<> {
        self.divided = None;
        let mut ring = std::mem::take(&mut self.on_wire);
        std::iter::from_fn(move || ring.pop())
    }

    /// Puts back what [`Link::take_on_wire`] has taken, in order.
    pub(crate) fn put_on_wire(&mut self, passage: Passage) {
        self.on_wire.push(passage);
    }

    /// Packets on the way to a host, when each is handed over, and how many before it; the first is at
    /// `first`.
    pub(crate) fn handed_over(&self, first: Time) -> impl Iterator<Item = (Time, u64, &Passage)> {
        let mut before = first;
        self.on_wire.iter().zip(0u64..).map(move |(held, place)| {
            if place > 0 {
                before = self.jittered(held.arrive, self.counters.packets + place).max(before);
            }
            (before, self.counters.packets + place, held)
        })
    }
}
