//! One direction of a cable with the output port that feeds it.
//!
//! A link keeps the packets that have left its port (or whose departure is decided) in one FIFO
//! ring, in order of arrival at the far end; the ring holds a [`Passage`] of each. What happens before depends on the port's mode:
//!
//! * [`Mode::Eager`]: departure is decided when a packet is enqueued, from the time until which the
//!   port is busy. One event per hop. Serves one FIFO with decisions at enqueue.
//! * [`Mode::TwoEvent`]: packets wait in queues and an event ends every transmission. Serves
//!   anything: priorities, decisions at dequeue, pause, sleep. It is also the reference that the
//!   eager mode must agree with, packet for packet.
//!
//! A link that faults speak of follows the rules in `conditions` besides, in either mode.
//!
//! A port never decides anything from counters that the modes keep differently: both count a packet
//! as waiting from its arrival until its first bit is sent, and [`Class::Departure`] goes before
//! [`Class::Arrival`], so a packet that arrives when another one starts finds its place free.

mod conditions;

use crate::config::{CableConfig, QueueConfig};
use crate::losses::Cause;
use crate::pool::PacketPool;
use crate::queue::{Backlog, Head, Queue, Verdict};
use crate::ring::Ring;
use conditions::{Conditions, ps_per_byte_q16};
use eastwest_engine::order::{Class, Key};
use eastwest_engine::random::mix;
use eastwest_types::{HostId, Packet, PacketKind, Span, Time};
use std::collections::VecDeque;

/// How a port works off its queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Mode {
    /// Departure decided at enqueue.
    Eager,
    /// An event at the end of every transmission.
    TwoEvent,
}

/// What travels from link to link in a packet's place: all that a hop needs to know. The packet
/// itself stays where it is, untouched from its creation to its delivery, and with it the cache line
/// that would have to be fetched.
#[derive(Clone, Copy, Debug)]
pub struct Passage {
    /// When its last bit reaches the far end of the link it is on.
    arrive: Time,
    /// Where the packet lies.
    pub slot: u32,
    /// Receiving host.
    pub dst: HostId,
    /// A hash of what distinguishes this packet from others, for the digest.
    identity: u32,
    /// See [`Packet::ip_len`].
    ip_len: u16,
    /// See [`Packet::hash`].
    pub hash: u16,
}

impl Passage {
    /// The passage of a packet that lies in `slot`.
    #[inline]
    pub fn new(slot: u32, packet: &Packet) -> Passage {
        let what = packet.seq.rotate_left(32) ^ packet.ack ^ u64::from(packet.dst_endpoint.0) << 16;
        Passage {
            arrive: Time::NEVER,
            slot,
            dst: packet.dst,
            identity: (what.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32,
            ip_len: packet.ip_len,
            hash: packet.hash,
        }
    }

    /// When its last bit has reached the far end of the link it is on.
    pub fn arrived(&self) -> Time {
        self.arrive
    }

    /// See [`Packet::ip_len`].
    pub fn ip_len(&self) -> u16 {
        self.ip_len
    }
}

/// What waits at a two-event port.
#[derive(Debug)]
struct Waiting {
    /// Queue 0 is the urgent one; a port with one FIFO uses it alone.
    queues: [VecDeque<Passage>; 2],
    bytes: [u64; 2],
    /// Packets that the discipline has dropped, until [`Link::take_dropped`].
    dropped: Vec<Passage>,
    /// When the packet being sent has left, or never.
    sent_at: Time,
    /// Priorities of this value and above go to queue 0.
    urgent_from: u8,
}

/// Counters of one link. The first two are taken when a packet arrives at the far end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Packets carried.
    pub packets: u64,
    /// Bytes carried, framing included.
    pub bytes: u64,
    /// Running hash over the fate of every packet that came to this port.
    pub trail: u64,
    /// Longest time a packet had to wait for those before it to be sent.
    pub max_backlog: Span,
}

/// What became of a packet offered to a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offer {
    /// It did not fit.
    Dropped,
    /// It is in; the link's next event stays.
    Queued,
    /// It is in, and the link's next event is now this one, not later than before.
    Sooner(Key),
}

/// A directed link and its port. What every packet touches comes first and fills two cache lines.
#[repr(C, align(64))]
pub struct Link {
    on_wire: Ring<Passage>,
    busy_until: Time,
    /// Picoseconds per byte, times 2¹⁶.
    ps_per_byte_q16: u64,
    delay: Span,
    /// IP bytes of the packets on the wire or, at eager ports, waiting.
    held_bytes: u64,

    /// Counters, see [`Counters`].
    pub counters: Counters,
    /// Width of the random delay at the far end, and what seeds it.
    jitter: Span,
    jitter_seed: u64,
    /// Node at the far end.
    pub to: u32,
    /// While no more packets than this are held, the queue lets every packet in.
    surely_fits: u32,
    framing: u16,
    min_frame: u16,
    /// Eager and without faults: what every packet does here is in [`Link::offer`] and
    /// [`Link::arrive`], and everything else is out of their way.
    plain: bool,

    waiting: Option<Box<Waiting>>,
    queue: Queue,
    /// Packets marked, by kind; made with the first.
    marks: Option<Box<[u64; PacketKind::COUNT]>>,
    conditions: Option<Box<Conditions>>,
    /// Packets that found the queue full, by kind.
    full: [u64; PacketKind::COUNT],
    /// Packets lost for the other causes, from [`Cause::Loss`] on.
    others: Option<Box<[[u64; PacketKind::COUNT]; Cause::ALL.len() - 1]>>,
    /// Node that sends.
    pub from: u32,
    /// Rate and delay as configured.
    pub cable: CableConfig,
}

// a power of two: links are found by a shift
const _: () = assert!(std::mem::offset_of!(Link, waiting) == 128 && size_of::<Link>() == 256);

/// What a new link is made of.
pub struct LinkSpec {
    /// Sending node.
    pub from: u32,
    /// Receiving node.
    pub to: u32,
    /// Rate and delay.
    pub cable: CableConfig,
    /// Room for waiting packets, and what is done with them.
    pub queue: QueueConfig,
    /// Bytes per packet beyond its IP length.
    pub framing: u16,
    /// Smallest packet on the wire, framing included.
    pub min_frame: u16,
    /// Largest IP packet.
    pub mtu: u32,
    /// Width of the random delay at the far end.
    pub jitter: Span,
    /// Seed of that delay.
    pub jitter_seed: u64,
    /// How the port works.
    pub mode: Mode,
    /// Two queues instead of one; needs [`Mode::TwoEvent`].
    pub strict_priority: bool,
}

impl Link {
    /// A link without packets.
    pub fn new(spec: &LinkSpec) -> Link {
        assert!(!spec.strict_priority || spec.mode == Mode::TwoEvent, "priorities need two events");
        let two_event = spec.mode == Mode::TwoEvent;
        assert!(two_event || !spec.queue.decides_at_dequeue(), "this queue needs two events");
        let queue = Queue::new(spec.queue, spec.mtu);
        Link {
            on_wire: Ring::default(),
            surely_fits: queue.surely_lets_in(spec.mtu),
            busy_until: Time::ZERO,
            ps_per_byte_q16: ps_per_byte_q16(spec.cable.rate),
            delay: spec.cable.delay,
            jitter: spec.jitter,
            jitter_seed: spec.jitter_seed,
            to: spec.to,
            framing: spec.framing,
            min_frame: spec.min_frame,
            plain: !two_event,
            conditions: None,
            queue,
            held_bytes: 0,
            counters: Counters::default(),
            full: [0; PacketKind::COUNT],
            others: None,
            marks: None,
            waiting: two_event.then(|| {
                Box::new(Waiting {
                    queues: Default::default(),
                    bytes: [0; 2],
                    dropped: Vec::new(),
                    sent_at: Time::NEVER,
                    urgent_from: if spec.strict_priority { 4 } else { 0 },
                })
            }),
            from: spec.from,
            cable: spec.cable,
        }
    }

    /// Bytes a packet of `ip_len` IP bytes occupies on this link.
    #[inline]
    pub fn wire_bytes(&self, ip_len: u32) -> u32 {
        (ip_len + u32::from(self.framing)).max(u32::from(self.min_frame))
    }

    /// The time a packet takes to be sent, rounded down to a picosecond.
    #[inline]
    pub(crate) fn send_time(&self, ip_len: u32) -> Span {
        Span((u64::from(self.wire_bytes(ip_len)) * self.ps_per_byte_q16) >> 16)
    }

    /// Packets lost here for one cause, by [`PacketKind`].
    pub fn drops_by(&self, cause: Cause) -> [u64; PacketKind::COUNT] {
        match (cause, &self.others) {
            (Cause::QueueFull, _) => self.full,
            (_, Some(others)) => others[cause as usize - 1],
            (_, None) => [0; PacketKind::COUNT],
        }
    }

    /// Packets lost here whatever the cause, by [`PacketKind`].
    pub fn drops(&self) -> [u64; PacketKind::COUNT] {
        let mut sum = self.full;
        for others in self.others.iter().flat_map(|o| o.iter()) {
            sum.iter_mut().zip(others).for_each(|(sum, n)| *sum += n);
        }
        sum
    }

    /// Packets lost here, whatever the cause.
    pub fn lost(&self) -> u64 {
        let others = self.others.iter().flat_map(|o| o.as_flattened());
        self.full.iter().chain(others).sum()
    }

    /// Counts a packet that is lost here.
    pub fn count_loss(&mut self, now: Time, passage: &Passage, kind: PacketKind, cause: Cause) {
        let counts = match cause {
            Cause::QueueFull => &mut self.full,
            _ => &mut self.others.get_or_insert_default()[cause as usize - 1],
        };
        counts[kind as usize] += 1;
        self.fold(!now.0 ^ (cause as u64) << 56, passage.identity);
    }

    /// Packets that got the mark "congestion experienced" at this port, by [`PacketKind`].
    pub fn marks(&self) -> [u64; PacketKind::COUNT] {
        self.marks.as_deref().copied().unwrap_or_default()
    }

    /// Offers a packet to the port.
    #[inline(always)]
    pub fn offer(&mut self, now: Time, passage: Passage, pool: &mut PacketPool) -> Offer {
        if !self.plain {
            return self.offer_elsewhere(now, passage, pool);
        }
        self.offer_eager(now, passage, pool)
    }

    #[inline(always)]
    fn offer_eager(&mut self, now: Time, mut passage: Passage, pool: &mut PacketPool) -> Offer {
        let ip_len = u32::from(passage.ip_len);
        if self.on_wire.len() >= self.surely_fits as usize && self.busy_until > now {
            let (packets, bytes) = self.queue(now);
            match self.queue.at_enqueue(Backlog { packets: packets as usize, bytes }, ip_len) {
                Verdict::Enqueue => {}
                Verdict::Mark => self.mark(now, passage.slot, passage.identity, pool),
                Verdict::Drop => return Offer::Dropped,
            }
        }
        let depart = self.extend_backlog(now, self.send_time(ip_len));
        let arrive = depart + self.delay;
        self.held_bytes += u64::from(ip_len);
        let first = self.on_wire.is_empty();
        passage.arrive = arrive;
        self.on_wire.push(passage);
        if first { Offer::Sooner(self.arrival_key(now, arrive)) } else { Offer::Queued }
    }

    /// At ports that are not plain.
    #[inline(never)]
    fn offer_elsewhere(&mut self, now: Time, passage: Passage, pool: &mut PacketPool) -> Offer {
        if self.waiting.is_some() {
            return self.offer_two_event(now, passage, pool);
        }
        let offer = self.offer_eager(now, passage, pool);
        if offer == Offer::Dropped {
            return offer;
        }
        let place = self.on_wire.len() as u32 - 1;
        let arrive = self.arrival_after(self.busy_until, place as usize);
        self.on_wire.set(place, Passage { arrive, ..passage });
        if place == 0 { Offer::Sooner(self.next_key(now)) } else { Offer::Queued }
    }

    /// Adds a packet to the time until which the port is busy; returns when it has been sent if
    /// packets go in order of arrival.
    #[inline]
    fn extend_backlog(&mut self, now: Time, send_time: Span) -> Time {
        let start = self.busy_until.max(now);
        let backlog = Span(start.0 - now.0);
        self.counters.max_backlog = self.counters.max_backlog.max(backlog);
        self.busy_until = start + send_time;
        self.busy_until
    }

    /// The key at which a packet that arrives at `arrive` is handed over: host links add a random
    /// processing delay, which keeps the order.
    #[inline]
    fn arrival_key(&self, now: Time, arrive: Time) -> Key {
        let mut at = arrive;
        if self.jitter.0 > 0 {
            let random = mix(self.jitter_seed ^ self.counters.packets);
            let extra = (u128::from(random) * u128::from(self.jitter.0)) >> 64;
            at = (at + Span(extra as u64)).max(now);
        }
        Key::new(at, Class::Arrival)
    }

    #[cold]
    #[inline(never)]
    fn mark(&mut self, now: Time, slot: u32, identity: u32, pool: &mut PacketPool) {
        if pool.mark(slot) {
            let kind = pool.get(slot).kind();
            self.marks.get_or_insert_default()[kind as usize] += 1;
            self.fold(now.0.rotate_left(32), identity);
        }
    }

    /// Extends the running hash: a different fate of any packet gives a different value.
    #[inline]
    fn fold(&mut self, when: u64, identity: u32) {
        let identity = u64::from(identity) << 32 | u64::from(identity);
        self.counters.trail = (self.counters.trail ^ when ^ identity)
            .wrapping_mul(0xd6e8_feb8_6659_fd93)
            .rotate_left(29);
    }

    /// Carries out the link's next event, an arrival: the packet that has reached the far end, and the
    /// key of the event after it.
    #[inline(always)]
    pub fn arrive(&mut self, key: Key) -> (Passage, Key) {
        let passage = self.on_wire.pop().expect("an arrival needs a packet on the wire");
        let ip_len = u32::from(passage.ip_len);
        self.held_bytes -= u64::from(ip_len);
        self.counters.packets += 1;
        self.counters.bytes += u64::from(self.wire_bytes(ip_len));
        self.fold(key.0, passage.identity);
        (passage, self.next_key(key.time()))
    }

    /// Carries out the link's next event, a departure: the port has finished sending, or a packet was
    /// lost on the way. Also returns the key of the event after it.
    pub fn depart(&mut self, key: Key, pool: &mut PacketPool) -> (Option<(Passage, Cause)>, Key) {
        let lost = self.lose_first(key);
        if lost.is_none() {
            self.start_sending(key.time(), pool);
        }
        (lost, self.next_key(key.time()))
    }

    /// The key of the link's next event.
    #[inline]
    pub(crate) fn next_key(&mut self, now: Time) -> Key {
        if !self.plain {
            return self.next_key_elsewhere(now);
        }
        match self.on_wire.get(0) {
            None => Key::NEVER,
            Some(held) => self.arrival_key(now, held.arrive),
        }
    }

    #[inline(never)]
    fn next_key_elsewhere(&mut self, now: Time) -> Key {
        let first = self.first_key(now);
        match &self.waiting {
            Some(w) if w.sent_at < Time::NEVER => first.min(Key::new(w.sent_at, Class::Departure)),
            _ => first,
        }
    }

    /// The slot of the packet that arrives next (0), after that (1) …
    #[inline]
    pub fn upcoming(&self, place: u32) -> Option<u32> {
        self.on_wire.get(place).map(|passage| passage.slot)
    }

    /// Packets and IP bytes that wait at the port now, the one being sent not counted.
    pub fn queue(&self, now: Time) -> (u32, u64) {
        if let Some(w) = &self.waiting {
            return (w.queues.iter().map(|q| q.len() as u32).sum(), w.bytes.iter().sum());
        }
        if self.conditions.is_some() {
            let (waiting, bytes, _) = self.count_waiting(now);
            return (waiting, bytes);
        }
        let (mut waiting, mut bytes) = (self.on_wire.len() as u32, self.held_bytes);
        // what has begun to be sent by now will be there then, or is being sent then
        let then = now + self.delay;
        for held in self.on_wire.iter() {
            let way = held.arrive.since(then);
            if way > Span::ZERO && way > self.send_time(u32::from(held.ip_len)) {
                break;
            }
            waiting -= 1;
            bytes -= u64::from(held.ip_len);
        }
        (waiting, bytes)
    }

    /// Packets this link holds, waiting, being sent or on the wire.
    pub fn held(&self) -> usize {
        let waiting = self.waiting.as_ref().map_or(0, |w| w.queues.iter().map(VecDeque::len).sum());
        self.on_wire.len() + waiting
    }

    #[inline(never)]
    fn offer_two_event(&mut self, now: Time, passage: Passage, pool: &mut PacketPool) -> Offer {
        let ip_len = u32::from(passage.ip_len);
        let w = self.waiting.as_ref().expect("a two-event port has queues");
        let queue = usize::from(pool.get(passage.slot).priority() < w.urgent_from);
        let sending = w.sent_at != Time::NEVER;
        let backlog = Backlog { packets: w.queues[queue].len(), bytes: w.bytes[queue] };
        if sending {
            match self.queue.at_enqueue(backlog, ip_len) {
                Verdict::Enqueue => {}
                Verdict::Mark => self.mark(now, passage.slot, passage.identity, pool),
                Verdict::Drop => return Offer::Dropped,
            }
        }
        let w = self.waiting.as_mut().expect("a two-event port has queues");
        w.queues[queue].push_back(Passage { arrive: now, ..passage });
        w.bytes[queue] += u64::from(ip_len);
        self.extend_backlog(now, self.send_time(ip_len));
        if sending {
            return Offer::Queued;
        }
        self.start_sending(now, pool);
        Offer::Sooner(self.next_key(now))
    }

    /// Lets the discipline drop or mark at the head of the queue that is next in turn.
    #[inline(never)]
    fn thin_out(&mut self, now: Time, pool: &mut PacketPool) {
        let w = self.waiting.as_mut().expect("a two-event port has queues");
        let Queue::CoDel(codel) = &mut self.queue else { return };
        let Some(queue) = (0..2).find(|&q| !w.queues[q].is_empty()) else {
            codel.at_dequeue(0, now, std::iter::empty());
            return;
        };
        let mut left = w.bytes[queue];
        let heads = w.queues[queue].iter().map(|p| {
            left -= u64::from(p.ip_len);
            Head { since: p.arrive, left, ecn: pool.get(p.slot).understands_marks() }
        });
        let plan = codel.at_dequeue(queue, now, heads);
        let marked = w.queues[queue].get(plan.drop).filter(|_| plan.mark).copied();
        for _ in 0..plan.drop {
            let passage = w.queues[queue].pop_front().expect("the plan drops what waits");
            w.bytes[queue] -= u64::from(passage.ip_len);
            w.dropped.push(passage);
        }
        let lens: Vec<u16> = w.dropped.iter().map(|p| p.ip_len).collect();
        for ip_len in lens {
            self.busy_until = Time(self.busy_until.0 - self.send_time(u32::from(ip_len)).0);
        }
        if let Some(passage) = marked {
            self.mark(now, passage.slot, passage.identity, pool);
        }
    }

    /// Packets that the discipline has dropped since the last call.
    pub fn take_dropped(&mut self) -> Vec<Passage> {
        self.waiting.as_mut().map_or(Vec::new(), |w| std::mem::take(&mut w.dropped))
    }

    /// Starts to send the packet that is next in turn, if any waits.
    fn start_sending(&mut self, now: Time, pool: &mut PacketPool) {
        if matches!(self.queue, Queue::CoDel(_)) {
            self.thin_out(now, pool);
        }
        let w = self.waiting.as_mut().expect("a two-event port has queues");
        let Some(queue) = (0..2).find(|&q| !w.queues[q].is_empty()) else {
            w.sent_at = Time::NEVER;
            return;
        };
        let mut passage = w.queues[queue].pop_front().expect("found not empty");
        w.bytes[queue] -= u64::from(passage.ip_len);
        let sent_at = now + self.send_time(u32::from(passage.ip_len));
        passage.arrive = self.arrival_after(sent_at, self.on_wire.len());
        self.held_bytes += u64::from(passage.ip_len);
        self.on_wire.push(passage);
        self.waiting.as_mut().expect("a two-event port has queues").sent_at = sent_at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Limit;
    use eastwest_engine::random::Stream;
    use eastwest_types::{HostId, Rate, ecn};

    fn spec(limit: Limit, mode: Mode) -> LinkSpec {
        LinkSpec {
            from: 0,
            to: 1,
            cable: CableConfig { rate: Rate::gbit(1), delay: Span::from_us(5) },
            queue: QueueConfig::DropTail(limit),
            framing: 38,
            min_frame: 84,
            mtu: 1500,
            jitter: Span::ZERO,
            jitter_seed: 7,
            mode,
            strict_priority: false,
        }
    }

    fn packet(ip_len: u16, priority: u8) -> Packet {
        Packet { ip_len, tos: priority << 2, ..Packet::blank(HostId(1)) }
    }

    /// What a link did: (time of arrival, number of the packet), and the numbers of those lost and of
    /// those marked.
    #[derive(Debug, PartialEq, Default)]
    struct Log {
        arrived: Vec<(Time, u32)>,
        lost: Vec<u32>,
        marked: Vec<u32>,
        queues: Vec<(u32, u64)>,
    }

    /// Offers packets in order of time to one link and runs it empty. As in a run, what happens at
    /// the link at the time of an offer or before goes first if it is a departure.
    fn play(link: &mut Link, offers: &[(Time, Packet)]) -> Log {
        let mut log = Log::default();
        let mut next = Key::NEVER;
        let mut pool = PacketPool::default();
        for (at, packet) in offers {
            let number = pool.insert(packet);
            while next < Key::new(*at, Class::Arrival) {
                next = step(link, next, &mut log, &mut pool);
            }
            log.queues.push(link.queue(*at));
            let passage = Passage::new(number, packet);
            match link.offer(*at, passage, &mut pool) {
                Offer::Dropped => {
                    link.count_loss(*at, &passage, packet.kind(), Cause::QueueFull);
                    log.lost.push(number);
                }
                Offer::Queued => {}
                Offer::Sooner(key) => next = key,
            }
        }
        while next != Key::NEVER {
            next = step(link, next, &mut log, &mut pool);
        }
        assert_eq!(link.held(), 0);
        let is_marked = |slot: &u32| pool.remove(*slot).tos & ecn::MASK == ecn::CE;
        log.marked = (0..offers.len() as u32).filter(is_marked).collect();
        log
    }

    fn step(link: &mut Link, key: Key, log: &mut Log, pool: &mut PacketPool) -> Key {
        if key.is_departure() {
            return link.depart(key, pool).1;
        }
        let (passage, next) = link.arrive(key);
        log.arrived.push((key.time(), passage.slot));
        next
    }

    /// Bursts and pauses around the capacity of the link, on a grid that makes ties frequent; four
    /// packets of five understand marks.
    fn traffic(seed: u64, mtu: u32) -> Vec<(Time, Packet)> {
        let mut random = Stream::new(seed, "traffic");
        let mut now = Time::ZERO;
        // an ACK of 80 B is the one packet that a very small MTU does not keep out
        let sizes: &[u16] = if mtu < 80 { &[40, 52, 68, 68, 80] } else { &[40, 52, 80, 576, 1500] };
        (0..400)
            .map(|_| {
                if random.below(3) == 0 {
                    now += Span::from_ns(672 * random.below(if mtu < 80 { 4 } else { 40 }));
                }
                let mut packet = packet(sizes[random.below(5) as usize], random.below(8) as u8);
                packet.tos |= [0, 1, 2, 2, 2][random.below(5) as usize];
                (now, packet)
            })
            .collect()
    }

    const QUEUES: [QueueConfig; 9] = [
        QueueConfig::DropTail(Limit::Packets(0)),
        QueueConfig::DropTail(Limit::Packets(1)),
        QueueConfig::DropTail(Limit::Packets(9)),
        QueueConfig::DropTail(Limit::Bytes(79)),
        QueueConfig::DropTail(Limit::Bytes(1_500)),
        QueueConfig::DropTail(Limit::Bytes(9_001)),
        marking(Limit::Packets(0), Limit::Packets(9)),
        marking(Limit::Packets(4), Limit::Bytes(9_001)),
        marking(Limit::Bytes(300), Limit::Packets(9)),
    ];

    const fn marking(threshold: Limit, limit: Limit) -> QueueConfig {
        QueueConfig::StepMarking { threshold, limit }
    }

    #[test]
    fn both_modes_do_the_same_to_every_packet() {
        for queue in QUEUES {
            for (jitter, mtu) in [(0, 1500), (0, 68), (3_000, 1500), (40_000, 1500)] {
                let (mut lost, mut marked) = (0, 0);
                for seed in 0..20 {
                    let offers = traffic(seed, mtu);
                    let both = [Mode::Eager, Mode::TwoEvent].map(|mode| {
                        let jitter = Span::from_ns(jitter);
                        let spec = LinkSpec { jitter, mtu, queue, ..spec(Limit::Packets(0), mode) };
                        let mut link = Link::new(&spec);
                        let log = play(&mut link, &offers);
                        (log, (link.drops(), link.marks()), link.counters)
                    });
                    let [(eager, counts, counters), (reference, other_counts, others)] = &both;
                    assert!(eager == reference, "{queue:?}, {jitter} ns, {mtu} B, seed {seed}");
                    assert_eq!(counts, other_counts);
                    assert_eq!(counters.trail, others.trail);
                    assert_eq!(
                        (counters.packets, counters.bytes, counters.max_backlog),
                        (others.packets, others.bytes, others.max_backlog)
                    );
                    assert_eq!(eager.arrived.len() + eager.lost.len(), offers.len());
                    assert_eq!(eager.marked.len() as u64, counts.1.iter().sum::<u64>());
                    lost += eager.lost.len();
                    marked += eager.marked.len();
                }
                assert!(lost > 100, "{queue:?}: a test with {lost} losses shows little");
                let marks = matches!(queue, QueueConfig::StepMarking { .. });
                assert_eq!(marked > 100, marks, "{queue:?}: {marked} marks");
            }
        }
    }

    #[test]
    fn a_packet_takes_its_bytes_framing_and_the_way() {
        let mut link = Link::new(&spec(Limit::Packets(10), Mode::Eager));
        let offers = [(Time(7), packet(1500, 0)), (Time(7), packet(40, 0))];
        let log = play(&mut link, &offers);
        let first = Time(7) + Span::from_ns(12_304) + Span::from_us(5);
        // 40 B are padded to 84 B
        assert_eq!(log.arrived, [(first, 0), (first + Span::from_ns(672), 1)]);
        assert_eq!((link.counters.packets, link.counters.bytes), (2, 1538 + 84));
        assert_eq!(link.counters.max_backlog, Span::from_ns(12_304));
    }

    #[test]
    fn the_limit_counts_what_waits_and_not_what_is_being_sent() {
        for mode in [Mode::Eager, Mode::TwoEvent] {
            for (limit, fit) in
                [(Limit::Packets(3), 4), (Limit::Bytes(4_500), 4), (Limit::Bytes(4_499), 3)]
            {
                let offers = vec![(Time::ZERO, packet(1500, 0)); 6];
                let log = play(&mut Link::new(&spec(limit, mode)), &offers);
                assert_eq!(log.arrived.len(), fit, "{limit:?} {mode:?}");
                assert_eq!(log.lost.first(), Some(&(fit as u32)));
            }
        }
    }

    #[test]
    fn bytes_count_where_packets_are_larger_than_a_very_small_mtu() {
        for mode in [Mode::Eager, Mode::TwoEvent] {
            let spec = LinkSpec { mtu: 68, ..spec(Limit::Bytes(4_000), mode) };
            let log = play(&mut Link::new(&spec), &[(Time::ZERO, packet(80, 0)); 60]);
            assert_eq!(log.arrived.len(), 51, "{mode:?}");
        }
    }

    #[test]
    fn a_place_is_free_at_the_picosecond_the_next_packet_starts() {
        let sent = 12_304_000;
        for mode in [Mode::Eager, Mode::TwoEvent] {
            for (at, lost) in [(sent - 1, vec![2]), (sent, vec![])] {
                let offers = [
                    (Time(0), packet(1500, 0)),
                    (Time(0), packet(1500, 0)),
                    (Time(at), packet(40, 0)),
                ];
                let log = play(&mut Link::new(&spec(Limit::Packets(1), mode)), &offers);
                assert_eq!(log.lost, lost, "{mode:?} at {at}");
            }
        }
    }

    #[test]
    fn jitter_delays_each_packet_by_less_than_its_width_and_keeps_the_order() {
        let width = Span::from_us(30);
        let plain = play(&mut Link::new(&spec(Limit::Packets(99), Mode::Eager)), &traffic(3, 1500));
        let spec = LinkSpec { jitter: width, ..spec(Limit::Packets(99), Mode::Eager) };
        let shaken = play(&mut Link::new(&spec), &traffic(3, 1500));
        assert_eq!(plain.lost, shaken.lost);
        let mut moved = 0;
        for (a, b) in plain.arrived.iter().zip(&shaken.arrived) {
            assert_eq!(a.1, b.1);
            assert!(b.0 >= a.0 && b.0 < a.0 + width);
            moved += usize::from(b.0 > a.0 + Span::from_us(10));
        }
        assert!(moved > 50 && shaken.arrived.windows(2).all(|w| w[0].0 <= w[1].0));
    }

    #[test]
    fn urgent_packets_overtake_what_waits_but_not_what_is_being_sent() {
        let spec = LinkSpec { strict_priority: true, ..spec(Limit::Packets(2), Mode::TwoEvent) };
        let at = |us| Time::ZERO + Span::from_us(us);
        let offers = [
            (at(0), packet(1500, 0)),
            (at(1), packet(1500, 3)),
            (at(2), packet(1500, 4)),
            (at(3), packet(1500, 7)),
            (at(4), packet(1500, 5)), // the urgent queue is full
            (at(5), packet(1500, 0)),
            (at(6), packet(1500, 0)), // and so is the other
            (at(20), packet(1500, 4)),
        ];
        let mut link = Link::new(&spec);
        let log = play(&mut link, &offers);
        assert_eq!(log.lost, [4, 6]);
        let order: Vec<u32> = log.arrived.iter().map(|a| a.1).collect();
        assert_eq!(order, [0, 2, 3, 7, 1, 5]);
        // never idle while something waits
        let sent = Span::from_ns(12_304);
        assert!(log.arrived.windows(2).all(|w| w[1].0 == w[0].0 + sent));
    }

    #[test]
    #[should_panic(expected = "priorities need two events")]
    fn priorities_need_two_events() {
        Link::new(&LinkSpec { strict_priority: true, ..spec(Limit::Packets(2), Mode::Eager) });
    }
}
