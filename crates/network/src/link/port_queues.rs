//! What waits at a two-event port: a queue for each of its classes, and whose turn it is.
//!
//! Strict classes go first, in their order. What they leave is shared by weight: deficit round robin
//! (Shreedhar and Varghese 1995) in the form of RFC 8290, 4.2, where a class may overdraw by one
//! packet and pays back before its next turn. A packet that is being sent is never interrupted.

use crate::dcb::pfc::Wire;
use crate::dcb::port_state::DcbPort;
use crate::dcb::priority_queues::{DcbAdmission, PriorityQueues};
use crate::dcb::queued_packet::QueuedPacket;
use crate::losses::Cause;
use crate::packet_handle::PacketHandle;
use crate::pool::PacketPool;
use crate::queue::{
    Arrival, Backlog, Discipline, FqCoDel, Head, Place, Queue, QueueConfig, Verdict,
};
use crate::scheduler::PortClass;
use crate::shared_buffer::SharedBuffer;
use eastwest_types::Time;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;

/// The packets of one class, in the order its discipline serves them.
#[derive(Debug, Serialize, Deserialize)]
enum ClassQueue {
    Fifo {
        queue: Queue,
        packets: VecDeque<PacketHandle>,
        bytes: u64,
    },
    Flows(Box<FqCoDel>),
    /// The lanes of a bridged port, which enqueues and dequeues in its own way.
    Priorities(Box<PriorityQueues>),
}

#[derive(Debug, Serialize, Deserialize)]
struct Class {
    store: ClassQueue,
    /// Bytes it may send in its turn; none if it is strict.
    quantum: Option<i64>,
    deficit: i64,
}

/// What waits at a two-event port. What every packet touches comes first.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C, align(64))]
pub(crate) struct PortQueues {
    /// State of IEEE 802.1Q, at a bridged port.
    pub dcb: Option<Box<DcbPort>>,
    /// When the packet being sent has left or the link is awake to send the first one; never while
    /// nothing waits.
    pub sent_at: Time,
    /// Mostly there is one, which lies here.
    classes: SmallVec<[Class; 1]>,
    /// The class with weight whose turn it is.
    turn: usize,
    /// The memory of the switch, where its ports share one.
    shared: Option<Arc<SharedBuffer>>,
    /// Class of every differentiated services codepoint.
    #[serde(with = "codepoints")]
    class_of: [u8; 64],
    /// Packets that disciplines have dropped, until [`super::Link::take_dropped`].
    pub dropped: Vec<(PacketHandle, Cause)>,
    /// Packets below the queues, in the buffer of a link layer that sleeps or has slept, and their
    /// IP bytes. They leave before anything else.
    stored: VecDeque<PacketHandle>,
    stored_bytes: u64,
}

/// What a class did with a packet that came.
pub(crate) enum Admission {
    /// It waits, marked or not.
    Admitted { mark: bool },
    /// It is lost.
    Dropped(Cause),
}

impl PortQueues {
    /// A port without packets; `classes` is empty where all packets wait in one queue.
    pub fn new(
        classes: &[PortClass],
        queue: &QueueConfig,
        place: &Place,
        shared: Option<Arc<SharedBuffer>>,
        dcb: Option<Box<DcbPort>>,
    ) -> PortQueues {
        let all = [PortClass { dscps: u64::MAX, weight: None, queue: None }];
        let classes = if classes.is_empty() { &all[..] } else { classes };
        let mut class_of = [0; 64];
        for (number, class) in classes.iter().enumerate() {
            for dscp in (0..64).filter(|d| class.dscps >> d & 1 == 1) {
                class_of[dscp] = number as u8;
            }
        }
        let made = classes.iter().zip(0u64..).map(|(class, number)| {
            let place = Place { number: place.number | number << 32, ..*place };
            let queue = class.queue.as_ref().unwrap_or(queue);
            Class {
                store: match &dcb {
                    None => ClassQueue::new(queue, &place),
                    Some(dcb) => ClassQueue::Priorities(Box::new(dcb.new_queues(queue, &place))),
                },
                quantum: class.weight.map(|w| i64::from(w) * i64::from(place.mtu)),
                deficit: 0,
            }
        });
        let classes = made.collect();
        PortQueues {
            classes,
            class_of,
            turn: 0,
            dropped: Vec::new(),
            sent_at: Time::NEVER,
            shared,
            dcb,
            stored: VecDeque::new(),
            stored_bytes: 0,
        }
    }

    /// Puts a packet into the buffer of the link layer.
    pub fn store(&mut self, handle: PacketHandle) {
        self.stored_bytes += u64::from(handle.ip_len);
        self.stored.push_back(handle);
    }

    /// Takes out the first packet of the buffer of the link layer.
    #[inline]
    pub fn pop_stored(&mut self) -> Option<PacketHandle> {
        let handle = self.stored.pop_front()?;
        self.stored_bytes -= u64::from(handle.ip_len);
        Some(handle)
    }

    /// What is in the buffer of the link layer.
    pub fn stored(&self) -> Backlog {
        Backlog { packets: self.stored.len(), bytes: self.stored_bytes }
    }

    /// The class where packets with this codepoint wait.
    pub fn class_of(&self, dscp: u8) -> u8 {
        self.class_of[usize::from(dscp & 63)]
    }

    /// Whether all packets leave in the order in which they came, and nothing holds them up.
    pub fn is_one_fifo(&self) -> bool {
        matches!(self.classes.as_slice(), [Class { store: ClassQueue::Fifo { .. }, .. }])
    }

    /// Whether packets leave in another order than they came in.
    pub fn takes_turns(&self) -> bool {
        self.classes.len() > 1 || self.paused() != 0
    }

    /// Priorities that are paused, as bits.
    fn paused(&self) -> u8 {
        self.dcb.as_ref().map_or(0, |dcb| dcb.paused_mask())
    }

    /// Bytes on the link until all that waits in the class of a codepoint has been sent, if no more comes:
    /// strict classes before it, and of others with a weight as much as their turns take meanwhile. What is
    /// paused beside it does not go before it.
    pub fn bytes_until(&self, dscp: u8, framing: u64) -> u64 {
        let number = usize::from(self.class_of(dscp));
        let paused = self.paused();
        let on_link = |backlog: Backlog| backlog.bytes + backlog.packets as u64 * framing;
        let own = &self.classes[number];
        let below = on_link(self.stored());
        if own.store.backlog().packets == 0 {
            return below; // the last one is being sent, or in the buffer of the link layer
        }
        let mine = on_link(own.store.unpaused_backlog(paused & !(1 << (dscp >> 3))));
        let others = self.classes.iter().enumerate().filter(|(other, _)| *other != number);
        let before = others.map(|(other, class)| {
            let theirs = || on_link(class.store.unpaused_backlog(paused));
            match (class.quantum, own.quantum) {
                (None, None) if other > number => 0,
                (None, _) => theirs(),
                (Some(_), None) => 0,
                (Some(theirs_in_turn), Some(in_turn)) => {
                    let turns = u128::from(mine) * theirs_in_turn as u128 / in_turn.max(1) as u128;
                    theirs().min(turns as u64)
                }
            }
        });
        below + mine + before.sum::<u64>()
    }

    /// Packets and bytes of one class.
    pub fn backlog_of(&self, class: u8) -> Backlog {
        self.classes[usize::from(class)].store.backlog()
    }

    /// Packets and bytes of all classes; what is in the buffer of the link layer does not count.
    pub fn backlog(&self) -> Backlog {
        let mut all = Backlog { packets: 0, bytes: 0 };
        for class in &self.classes {
            let backlog = class.store.backlog();
            all.packets += backlog.packets;
            all.bytes += backlog.bytes;
        }
        all
    }

    /// IP bytes of every packet that waits.
    pub fn lengths(&self) -> Vec<u32> {
        let of = |p: &PacketHandle| u32::from(p.ip_len);
        let mut lengths: Vec<u32> = self.stored.iter().map(of).collect();
        for class in &self.classes {
            match &class.store {
                ClassQueue::Fifo { packets, .. } => lengths.extend(packets.iter().map(of)),
                ClassQueue::Flows(flows) => lengths.extend(flows.iter().map(of)),
                ClassQueue::Priorities(queues) => {
                    lengths.extend(queues.iter().map(|(_, queued)| of(&queued.handle)))
                }
            }
        }
        lengths
    }

    /// Hands a packet to its class. `arrival` says nothing of what waits in it.
    pub fn push(&mut self, handle: PacketHandle, mut arrival: Arrival) -> Admission {
        let class = self.class_of(arrival.packet.dscp());
        let store = &mut self.classes[usize::from(class)].store;
        let before = store.backlog().bytes;
        if let Some(shared) = &self.shared
            && !arrival.idle()
            && !shared.admits(before, arrival.ip_len)
        {
            return Admission::Dropped(Cause::SharedBuffer);
        }
        let admission = store.push(handle, &mut arrival, &mut self.dropped);
        if let Some(shared) = &self.shared {
            shared.changed(before, store.backlog().bytes);
        }
        admission
    }

    /// Takes out the packet that is next in turn; tells whether it is to be marked.
    pub fn pop(&mut self, now: Time, pool: &PacketPool) -> Option<(PacketHandle, bool)> {
        while let Some(number) = self.next_class(|class| class.store.backlog().packets > 0) {
            let class = &mut self.classes[number];
            let before = class.store.backlog().bytes;
            let next = class.store.pop(now, pool, &mut self.dropped);
            if let Some(shared) = &self.shared {
                shared.changed(before, class.store.backlog().bytes);
            }
            let Some((handle, mark)) = next else {
                continue; // its discipline has dropped everything
            };
            class.deficit -= i64::from(handle.ip_len);
            return Some((handle, mark));
        }
        None
    }

    /// The queues of a bridged port, by class.
    pub fn priority_queues(&self) -> impl Iterator<Item = &PriorityQueues> {
        self.classes.iter().filter_map(|class| match &class.store {
            ClassQueue::Priorities(queues) => Some(&**queues),
            _ => None,
        })
    }

    /// When the next event is due that no packet on the wire brings; none where that is not known at once.
    #[inline]
    pub fn due_unless_paused(&self) -> Option<Time> {
        match &self.dcb {
            None => Some(self.sent_at),
            Some(dcb) => dcb.due_unless_paused(self.sent_at),
        }
    }

    /// The only class, of a bridged port with one, the rest of that port, and `sent_at`.
    #[inline]
    pub fn single_class(&mut self) -> Option<(&mut PriorityQueues, &mut DcbPort, &mut Time)> {
        let [Class { store: ClassQueue::Priorities(queues), .. }] = self.classes.as_mut_slice()
        else {
            return None;
        };
        Some((queues, self.dcb.as_deref_mut()?, &mut self.sent_at))
    }

    /// Returns the lanes of all classes, for changes.
    pub fn priority_queues_mut(&mut self) -> impl Iterator<Item = &mut PriorityQueues> {
        self.classes.iter_mut().filter_map(|class| match &mut class.store {
            ClassQueue::Priorities(queues) => Some(&mut **queues),
            _ => None,
        })
    }

    /// Hands a packet to its class at a bridged port; tells with which link and priority it came.
    pub fn push_dcb(
        &mut self,
        handle: PacketHandle,
        (ingress, priority): (u32, u8),
        arrival: &Arrival,
    ) -> DcbAdmission {
        let class = self.class_of(arrival.packet.dscp());
        match &mut self.classes[usize::from(class)].store {
            ClassQueue::Priorities(queues) => queues.push(handle, ingress, priority, arrival),
            _ => unreachable!("it is a DCB port"),
        }
    }

    /// Takes out the packet of a bridged port that is next in turn among those that may go, with its
    /// priority and whether it is to be marked.
    pub fn pop_by_priority(
        &mut self,
        now: Time,
        (paused, wire): (u8, Wire),
        pool: &PacketPool,
        dropped: &mut Vec<(QueuedPacket, u8)>,
    ) -> Option<(QueuedPacket, u8, bool)> {
        if let [class] = self.classes.as_mut_slice() {
            let ClassQueue::Priorities(queues) = &mut class.store else { return None };
            while queues.occupied() & !paused != 0 {
                let before = dropped.len();
                let next = queues.pop(now, paused, pool, dropped);
                if next.is_some() || dropped.len() == before {
                    return next;
                }
            }
            return None;
        }
        let ready = |class: &Class| match &class.store {
            ClassQueue::Priorities(queues) => queues.has_ready(now, paused),
            _ => false,
        };
        while let Some(number) = self.next_class(ready) {
            let class = &mut self.classes[number];
            let ClassQueue::Priorities(queues) = &mut class.store else { break };
            let Some(next) = queues.pop(now, paused, pool, dropped) else {
                continue; // its discipline has dropped everything
            };
            // shares are of the link, so framing counts (802.1Qaz)
            class.deficit -= i64::from(wire.bytes(u32::from(next.0.handle.ip_len)));
            return Some(next);
        }
        None
    }

    /// What has been read from a checkpoint has a memory of its own for each port; this makes it the
    /// one of the switch again.
    pub fn share(&mut self, memory: &mut Option<Arc<SharedBuffer>>) {
        if let Some(own) = &mut self.shared {
            own.clone_from(memory.get_or_insert_with(|| own.clone()));
        }
    }

    /// The class that is served next; none if nothing waits.
    fn next_class(&mut self, waits: impl Fn(&Class) -> bool) -> Option<usize> {
        let strict = self.classes.iter().position(|c| c.quantum.is_none() && waits(c));
        if strict.is_some() || !self.classes.iter().any(&waits) {
            return strict;
        }
        loop {
            let class = &mut self.classes[self.turn];
            match class.quantum {
                Some(_) if waits(class) && class.deficit > 0 => return Some(self.turn),
                Some(quantum) if waits(class) => class.deficit += quantum,
                _ => class.deficit = 0,
            }
            self.turn = (self.turn + 1) % self.classes.len();
        }
    }

    /// Whether a packet waits.
    #[inline]
    pub fn has_packets(&mut self) -> bool {
        self.single_class().is_none_or(|(queues, ..)| queues.backlog().packets > 0)
    }
}

impl ClassQueue {
    fn new(config: &QueueConfig, place: &Place) -> ClassQueue {
        match config.start(place) {
            Queue::FqCoDel(flows) => ClassQueue::Flows(flows),
            queue => ClassQueue::Fifo { queue, packets: VecDeque::new(), bytes: 0 },
        }
    }

    fn backlog(&self) -> Backlog {
        match self {
            ClassQueue::Fifo { packets, bytes, .. } => {
                Backlog { packets: packets.len(), bytes: *bytes }
            }
            ClassQueue::Flows(flows) => flows.backlog(),
            ClassQueue::Priorities(queues) => queues.backlog(),
        }
    }

    /// Returns the backlog without priorities that are paused.
    fn unpaused_backlog(&self, paused: u8) -> Backlog {
        match self {
            ClassQueue::Priorities(queues) => queues.unpaused_backlog(paused),
            _ => self.backlog(),
        }
    }

    fn push(
        &mut self,
        handle: PacketHandle,
        arrival: &mut Arrival,
        dropped: &mut Vec<(PacketHandle, Cause)>,
    ) -> Admission {
        match self {
            ClassQueue::Fifo { queue, packets, bytes } => {
                arrival.backlog = Backlog { packets: packets.len(), bytes: *bytes };
                let verdict = queue.at_enqueue(arrival);
                if let Some(cause) = verdict.loss() {
                    return Admission::Dropped(cause);
                }
                packets.push_back(PacketHandle { arrive: arrival.now, ..handle });
                *bytes += u64::from(handle.ip_len);
                Admission::Admitted { mark: verdict == Verdict::Mark }
            }
            ClassQueue::Flows(flows) => {
                let out =
                    flows.push(PacketHandle { arrive: arrival.now, ..handle }, arrival.idle());
                dropped.extend(out.into_iter().map(|handle| (handle, Cause::QueueFull)));
                Admission::Admitted { mark: false }
            }
            ClassQueue::Priorities(_) => unreachable!("DCB ports enqueue on their own"),
        }
    }

    fn pop(
        &mut self,
        now: Time,
        pool: &PacketPool,
        dropped: &mut Vec<(PacketHandle, Cause)>,
    ) -> Option<(PacketHandle, bool)> {
        let (queue, packets, bytes) = match self {
            ClassQueue::Fifo { queue, packets, bytes } => (queue, packets, bytes),
            ClassQueue::Flows(flows) => return flows.pop(now, pool, dropped),
            ClassQueue::Priorities(_) => unreachable!("DCB ports dequeue on their own"),
        };
        let plan = queue.at_dequeue(now, || {
            let mut left = Backlog { packets: packets.len(), bytes: *bytes };
            packets.iter().map(move |p| {
                left.packets -= 1;
                left.bytes -= u64::from(p.ip_len);
                Head { since: p.arrive, left, packet: pool.get(p.slot) }
            })
        });
        for _ in 0..plan.drop {
            let handle = packets.pop_front().expect("the plan drops what waits");
            *bytes -= u64::from(handle.ip_len);
            dropped.push((handle, Cause::Sojourn));
        }
        let handle = packets.pop_front()?;
        *bytes -= u64::from(handle.ip_len);
        Some((handle, plan.mark))
    }
}

/// How the class of every codepoint is written to a checkpoint.
mod codepoints {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(classes: &[u8; 64], to: S) -> Result<S::Ok, S::Error> {
        classes.as_slice().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[u8; 64], D::Error> {
        let classes = Vec::deserialize(from)?;
        classes.try_into().map_err(|_| serde::de::Error::custom("a class for each codepoint"))
    }
}
