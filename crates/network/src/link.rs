//! One direction of a cable with the output port that feeds it.
//!
//! A link keeps the packets that have left its port (or whose departure is decided) in one FIFO
//! list, in order of arrival at the far end. What happens before depends on the port's mode:
//!
//! * [`Mode::Eager`]: departure is decided when a packet is enqueued, from the time until which the
//!   port is busy. One event per hop. Serves one FIFO with decisions at enqueue.
//! * [`Mode::TwoEvent`]: packets wait in queues and an event ends every transmission. Serves
//!   anything: priorities, decisions at dequeue, pause, sleep. It is also the reference that the
//!   eager mode must agree with, packet for packet.
//!
//! A port never decides anything from counters that the modes keep differently: both count a packet
//! as waiting from its arrival until its first bit is sent, and [`Class::Departure`] goes before
//! [`Class::Arrival`], so a packet that arrives when another one starts finds its place free.

use crate::config::{CableConfig, Limit};
use crate::pool::PacketPool;
use eastwest_engine::order::{Class, Key};
use eastwest_engine::random::mix;
use eastwest_types::{NO_SLOT, Packet, PacketKind, Span, Time};

/// How a port works off its queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Departure decided at enqueue.
    Eager,
    /// An event at the end of every transmission.
    TwoEvent,
}

/// A list of packets chained through [`Packet::next`].
#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

impl List {
    const EMPTY: List = List { head: NO_SLOT, tail: NO_SLOT };

    #[inline]
    fn push(&mut self, slot: u32, pool: &mut PacketPool) {
        if self.head == NO_SLOT {
            self.head = slot;
        } else {
            pool.get_mut(self.tail).next = slot;
        }
        self.tail = slot;
    }

    #[inline]
    fn pop(&mut self, pool: &PacketPool) -> u32 {
        let slot = self.head;
        self.head = pool.get(slot).next;
        slot
    }
}

/// What waits at a two-event port.
#[derive(Debug)]
struct Waiting {
    /// Queue 0 is the urgent one; a port with one FIFO uses it alone.
    queues: [List; 2],
    packets: [u32; 2],
    bytes: [u64; 2],
    /// When the packet being sent has left, or never.
    sent_at: Time,
    /// Priorities of this value and above go to queue 0.
    urgent_from: u8,
}

/// Counters of one link. All but drops are taken when a packet arrives at the far end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Packets carried.
    pub packets: u64,
    /// Bytes carried, framing included.
    pub bytes: u64,
    /// Packets lost at the port because its queue was full, by [`PacketKind`].
    pub drops: [u64; PacketKind::COUNT],
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
    /// It is in, and the link had no event before: this is the first one.
    First(Key),
    /// It is in, and the link's next event may be sooner than it was.
    Changed(Key),
}

/// What an event of a link turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fired {
    /// The packet in this slot has reached the far end.
    Arrived(u32),
    /// The port finished sending; nothing has arrived yet.
    Sent,
}

/// A directed link and its port.
pub struct Link {
    on_wire: List,
    held: u32,
    /// While no more packets than this are held, none can find the queue full.
    surely_fits: u32,
    busy_until: Time,
    /// Picoseconds per byte, times 2¹⁶.
    ps_per_byte_q16: u64,
    delay: Span,
    /// Width of the random delay at the far end, and what seeds it.
    jitter: Span,
    jitter_seed: u64,
    /// Node at the far end.
    pub to: u32,
    framing: u32,
    min_frame: u32,
    limit: Limit,
    /// IP bytes of the packets held.
    held_bytes: u64,
    /// Counters, see [`Counters`].
    pub counters: Counters,
    waiting: Option<Box<Waiting>>,
    /// Node that sends.
    pub from: u32,
    /// Rate and delay as configured.
    pub cable: CableConfig,
}

/// What a new link is made of.
pub struct LinkSpec {
    /// Sending node.
    pub from: u32,
    /// Receiving node.
    pub to: u32,
    /// Rate and delay.
    pub cable: CableConfig,
    /// Room for waiting packets.
    pub limit: Limit,
    /// Bytes per packet beyond its IP length.
    pub framing: u32,
    /// Smallest packet on the wire, framing included.
    pub min_frame: u32,
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
        Link {
            on_wire: List::EMPTY,
            held: 0,
            surely_fits: match spec.limit {
                Limit::Packets(n) => n,
                Limit::Bytes(b) => u32::try_from(b / u64::from(spec.mtu)).unwrap_or(u32::MAX),
            },
            busy_until: Time::ZERO,
            ps_per_byte_q16: ((8_000_000_000_000u128 << 16) / u128::from(spec.cable.rate.0)) as u64,
            delay: spec.cable.delay,
            jitter: spec.jitter,
            jitter_seed: spec.jitter_seed,
            to: spec.to,
            framing: spec.framing,
            min_frame: spec.min_frame,
            limit: spec.limit,
            held_bytes: 0,
            counters: Counters::default(),
            waiting: two_event.then(|| {
                Box::new(Waiting {
                    queues: [List::EMPTY; 2],
                    packets: [0; 2],
                    bytes: [0; 2],
                    sent_at: Time::NEVER,
                    urgent_from: if spec.strict_priority { 4 } else { 0 },
                })
            }),
            from: spec.from,
            cable: spec.cable,
        }
    }

    /// Bytes a packet occupies on this link.
    #[inline]
    pub fn wire_bytes(&self, packet: &Packet) -> u32 {
        (u32::from(packet.ip_len) + self.framing).max(self.min_frame)
    }

    /// The time a packet takes to be sent, rounded down to a picosecond.
    #[inline]
    fn send_time(&self, packet: &Packet) -> Span {
        Span((u64::from(self.wire_bytes(packet)) * self.ps_per_byte_q16) >> 16)
    }

    /// Offers the packet in `slot` to the port.
    #[inline]
    pub fn offer(&mut self, now: Time, slot: u32, pool: &mut PacketPool) -> Offer {
        if self.waiting.is_some() {
            return self.offer_two_event(now, slot, pool);
        }
        if self.held >= self.surely_fits && !self.fits(now, pool.get(slot), pool) {
            self.count_drop(now, pool.get(slot));
            return Offer::Dropped;
        }
        let send_time = self.send_time(pool.get(slot));
        let depart = self.extend_backlog(now, send_time);
        let packet = pool.get_mut(slot);
        packet.arrive = depart + self.delay;
        packet.next = NO_SLOT;
        let arrive = packet.arrive;
        self.held_bytes += u64::from(packet.ip_len);
        self.held += 1;
        let first = self.on_wire.head == NO_SLOT;
        self.on_wire.push(slot, pool);
        if first { Offer::First(self.arrival_key(now, arrive)) } else { Offer::Queued }
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

    /// Whether a packet finds room in an eager port: counts those that have started to be sent.
    fn fits(&self, now: Time, packet: &Packet, pool: &PacketPool) -> bool {
        let (mut waiting, mut bytes) = (self.held, self.held_bytes);
        let mut slot = self.on_wire.head;
        while slot != NO_SLOT {
            let p = pool.get(slot);
            if p.arrive.0 - self.delay.0 - self.send_time(p).0 > now.0 {
                break;
            }
            waiting -= 1;
            bytes -= u64::from(p.ip_len);
            slot = p.next;
        }
        has_room(self.limit, waiting, bytes, packet)
    }

    fn count_drop(&mut self, now: Time, packet: &Packet) {
        self.counters.drops[packet.kind() as usize] += 1;
        self.fold(!now.0, packet);
    }

    /// Extends the running hash: a different fate of any packet gives a different value.
    #[inline]
    fn fold(&mut self, when: u64, packet: &Packet) {
        let what = packet.seq.rotate_left(32) ^ packet.ack ^ u64::from(packet.dst_endpoint.0);
        self.counters.trail =
            (self.counters.trail ^ when ^ what.wrapping_mul(0x9e37_79b9_7f4a_7c15))
                .wrapping_mul(0xd6e8_feb8_6659_fd93)
                .rotate_left(29);
    }

    /// Carries out the link's next event; also returns the key of the one after it.
    #[inline]
    pub fn fire(&mut self, key: Key, pool: &mut PacketPool) -> (Fired, Key) {
        if key.is_departure() {
            self.finish_sending(key.time(), pool);
            return (Fired::Sent, self.next_key(key.time(), pool));
        }
        let slot = self.on_wire.pop(pool);
        let packet = pool.get(slot);
        self.held -= 1;
        self.held_bytes -= u64::from(packet.ip_len);
        let bytes = self.wire_bytes(packet);
        self.counters.packets += 1;
        self.counters.bytes += u64::from(bytes);
        self.fold(key.0, packet);
        (Fired::Arrived(slot), self.next_key(key.time(), pool))
    }

    #[inline]
    fn next_key(&self, now: Time, pool: &PacketPool) -> Key {
        let arrival = match self.on_wire.head {
            NO_SLOT => Key::NEVER,
            slot => self.arrival_key(now, pool.get(slot).arrive),
        };
        match &self.waiting {
            None => arrival,
            Some(w) if w.sent_at == Time::NEVER => arrival,
            Some(w) => arrival.min(Key::new(w.sent_at, Class::Departure)),
        }
    }

    /// Packets and IP bytes that wait at the port now, the one being sent not counted.
    pub fn queue(&self, now: Time, pool: &PacketPool) -> (u32, u64) {
        if let Some(w) = &self.waiting {
            return (w.packets[0] + w.packets[1], w.bytes[0] + w.bytes[1]);
        }
        let (mut waiting, mut bytes) = (self.held, self.held_bytes);
        let mut slot = self.on_wire.head;
        while slot != NO_SLOT {
            let p = pool.get(slot);
            if p.arrive.0 - self.delay.0 - self.send_time(p).0 > now.0 {
                break;
            }
            waiting -= 1;
            bytes -= u64::from(p.ip_len);
            slot = p.next;
        }
        (waiting, bytes)
    }

    /// Packets this link holds, waiting, being sent or on the wire.
    pub fn held(&self) -> u32 {
        self.held
    }

    fn offer_two_event(&mut self, now: Time, slot: u32, pool: &mut PacketPool) -> Offer {
        let packet = *pool.get(slot);
        let send_time = self.send_time(&packet);
        let w = self.waiting.as_mut().expect("a two-event port has queues");
        let queue = usize::from(packet.priority() < w.urgent_from);
        let sending = w.sent_at != Time::NEVER;
        if sending && !has_room(self.limit, w.packets[queue], w.bytes[queue], &packet) {
            self.count_drop(now, &packet);
            return Offer::Dropped;
        }
        self.held += 1;
        self.held_bytes += u64::from(packet.ip_len);
        pool.get_mut(slot).next = NO_SLOT;
        w.queues[queue].push(slot, pool);
        w.packets[queue] += 1;
        w.bytes[queue] += u64::from(packet.ip_len);
        self.extend_backlog(now, send_time);
        if sending {
            return Offer::Queued;
        }
        let nothing_on_wire = self.on_wire.head == NO_SLOT;
        self.start_sending(now, pool);
        let key = self.next_key(now, pool);
        if nothing_on_wire { Offer::First(key) } else { Offer::Changed(key) }
    }

    /// Starts to send the packet that is next in turn, if any waits.
    fn start_sending(&mut self, now: Time, pool: &mut PacketPool) {
        let w = self.waiting.as_mut().expect("a two-event port has queues");
        let Some(queue) = (0..2).find(|&q| w.packets[q] > 0) else {
            w.sent_at = Time::NEVER;
            return;
        };
        let slot = w.queues[queue].pop(pool);
        w.packets[queue] -= 1;
        let packet = *pool.get(slot);
        w.bytes[queue] -= u64::from(packet.ip_len);
        let sent_at = now + self.send_time(&packet);
        let packet = pool.get_mut(slot);
        packet.arrive = sent_at + self.delay;
        packet.next = NO_SLOT;
        self.on_wire.push(slot, pool);
        self.waiting.as_mut().expect("a two-event port has queues").sent_at = sent_at;
    }

    fn finish_sending(&mut self, now: Time, pool: &mut PacketPool) {
        debug_assert_eq!(self.waiting.as_ref().map(|w| w.sent_at), Some(now));
        self.start_sending(now, pool);
    }
}

/// Whether a packet fits beside `waiting` packets of `bytes` IP bytes.
fn has_room(limit: Limit, waiting: u32, bytes: u64, packet: &Packet) -> bool {
    match limit {
        Limit::Packets(n) => waiting < n,
        Limit::Bytes(b) => bytes + u64::from(packet.ip_len) <= b,
    }
}
