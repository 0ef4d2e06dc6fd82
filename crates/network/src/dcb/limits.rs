//! Flows that QCN limits at a host: a queue and a rate for each destination.
//!
//! A limited flow waits apart until its rate lets the next packet go. Of the packets that may go, the port sends
//! the one that came first.

use super::held::Held;
use super::qcn::QcnConfig;
use super::reaction::ReactionPoint;
use crate::ring::Ring;
use eastwest_engine::random::Stream;
use eastwest_types::{Rate, Time};
use serde::{Deserialize, Serialize};

/// A flow of a host that QCN limits or has limited a moment ago.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Limited {
    pub point: ReactionPoint,
    packets: Ring<Held>,
    bytes: u64,
    /// When its last packet began to be sent, and how many bytes on the link it had.
    sent: (Time, u32),
    /// When its next packet may go.
    next: Time,
}

impl Limited {
    /// The rate has changed, or a packet was sent.
    fn set_next(&mut self) {
        self.next = match self.point.is_free() {
            true => Time::ZERO,
            false => self.sent.0 + self.point.rate().time_for(u64::from(self.sent.1)),
        };
    }
}

/// The flows that a host limits in one priority, in the order of their destinations: there are few.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Limits {
    dsts: Vec<u32>,
    /// The first packet that waits of each flow: who goes next is decided by these alone.
    first: Vec<First>,
    flows: Vec<Limited>,
}

/// The first packet that waits of a flow.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct First {
    /// When it may go; never where none waits.
    due: Time,
    /// Its number, and its bytes.
    number: u64,
    bytes: u32,
}

impl First {
    /// The value for a flow without waiting packets.
    const NONE: First = First { due: Time::NEVER, number: u64::MAX, bytes: 0 };

    fn of(flow: &Limited) -> First {
        flow.packets.get(0).map_or(First::NONE, |held| First {
            due: flow.next,
            number: held.number,
            bytes: u32::from(held.passage.ip_len()),
        })
    }
}

impl Limits {
    /// The place of the flow to a host, if it is limited.
    #[inline]
    pub fn place(&self, dst: u32) -> Option<usize> {
        // counted in full: where a search ends cannot be predicted
        let place = self.dsts.iter().map(|other| usize::from(*other < dst)).sum();
        (self.dsts.get(place) == Some(&dst)).then_some(place)
    }

    /// Bytes of the flow to a host that wait, if it is limited.
    pub fn bytes(&self, dst: u32) -> Option<u64> {
        self.place(dst).map(|place| self.flows[place].bytes)
    }

    /// The place of the flow whose packet goes next, when that may go, and its number. Of those that may
    /// go by now it is the one that came first, else the first to be let go.
    #[inline]
    pub fn next(&self, now: Time) -> Option<(Time, u64, usize)> {
        let (mut best, mut place) = (u128::MAX, 0);
        for (other, first) in self.first.iter().enumerate() {
            let order = u128::from(first.due.max(now).0) << 64 | u128::from(first.number);
            // chosen, not jumped over: which of ten it will be cannot be predicted
            let is_sooner = order < best;
            best = if is_sooner { order } else { best };
            place = if is_sooner { other } else { place };
        }
        let at = Time((best >> 64) as u64);
        (at != Time::NEVER).then_some((at, best as u64, place))
    }

    /// Bytes of the first packet of a flow.
    pub fn bytes_of(&self, place: usize) -> u32 {
        self.first[place].bytes
    }

    /// Has a packet of the flow at a place wait.
    #[inline]
    pub fn put(&mut self, place: usize, held: Held) {
        let flow = &mut self.flows[place];
        flow.bytes += u64::from(held.passage.ip_len());
        flow.packets.push(held);
        if flow.packets.len() == 1 {
            self.first[place] = First::of(flow);
        }
    }

    /// Takes out the first packet of a flow.
    #[inline]
    pub fn take(&mut self, place: usize) -> Option<Held> {
        let flow = &mut self.flows[place];
        let held = flow.packets.pop()?;
        flow.bytes -= u64::from(held.passage.ip_len());
        self.first[place] = First::of(flow);
        Some(held)
    }

    /// Takes out all packets.
    pub fn empty(&mut self) -> impl Iterator<Item = Held> {
        self.first.fill(First::NONE);
        self.flows.iter_mut().flat_map(|flow| {
            flow.bytes = 0;
            std::iter::from_fn(|| flow.packets.pop())
        })
    }

    /// All packets.
    pub fn packets(&self) -> impl Iterator<Item = &Held> {
        self.flows.iter().flat_map(|flow| flow.packets.iter())
    }

    /// When a timer next rings.
    pub fn next_timer(&self) -> Option<Time> {
        self.flows.iter().map(|flow| flow.point.timer_at).min()
    }

    /// Rates by destination.
    pub fn rates(&self) -> impl Iterator<Item = (u32, Rate)> {
        self.dsts.iter().zip(&self.flows).map(|(dst, flow)| (*dst, flow.point.rate()))
    }

    /// The place of the flow to a host, which is limited from now on; `move_own` hands over its packets that
    /// wait, if it was not.
    pub fn limit(
        &mut self,
        dst: u32,
        line: Rate,
        move_own: impl FnOnce(&mut dyn FnMut(Held)),
    ) -> usize {
        let place = self.dsts.partition_point(|other| *other < dst);
        if self.dsts.get(place) != Some(&dst) {
            let (mut packets, mut bytes) = (Ring::default(), 0);
            move_own(&mut |held| {
                bytes += u64::from(held.passage.ip_len());
                packets.push(held);
            });
            let (point, sent) = (ReactionPoint::new(line), (Time::ZERO, 0));
            self.dsts.insert(place, dst);
            self.first.insert(place, First::NONE);
            self.flows.insert(place, Limited { point, packets, bytes, sent, next: Time::ZERO });
        }
        place
    }

    /// A message has come about a flow: it goes slower.
    pub fn slow_down(
        &mut self,
        now: Time,
        place: usize,
        fb: u8,
        config: &QcnConfig,
        random: &mut Stream,
    ) {
        let flow = &mut self.flows[place];
        flow.point.slow_down(now, fb, config, random);
        flow.set_next();
        self.first[place] = First::of(flow);
    }

    /// A packet of a flow begins to be sent.
    #[inline]
    pub fn sends(
        &mut self,
        now: Time,
        place: usize,
        bytes: u32,
        config: &QcnConfig,
        random: &mut Stream,
    ) {
        let flow = &mut self.flows[place];
        flow.sent = (now, bytes);
        flow.point.sends(bytes, config, random);
        flow.set_next();
        if !flow.packets.is_empty() {
            self.first[place].due = flow.next;
        } else if flow.point.is_free() {
            self.remove(place);
        }
    }

    #[inline(never)]
    fn remove(&mut self, place: usize) {
        self.dsts.remove(place);
        self.first.remove(place);
        self.flows.remove(place);
    }

    /// Timers ring. Flows that are free and have no packets are limited no more.
    pub fn ring(&mut self, now: Time, config: &QcnConfig, random: &mut Stream) {
        for (flow, first) in self.flows.iter_mut().zip(&mut self.first) {
            if flow.point.timer_at > now {
                continue;
            }
            if flow.point.is_free() {
                flow.point.timer_at = Time::NEVER;
            } else {
                flow.point.times(now, config, random);
            }
            flow.set_next();
            *first = First::of(flow);
        }
        for place in (0..self.flows.len()).rev() {
            if self.flows[place].point.is_free() && self.flows[place].packets.is_empty() {
                self.remove(place);
            }
        }
    }

    /// When a new packet of a flow may go; never where others wait already.
    #[inline]
    pub fn may_go(&self, place: usize) -> Time {
        match self.flows[place].packets.is_empty() {
            true => self.flows[place].next,
            false => Time::NEVER,
        }
    }
}
