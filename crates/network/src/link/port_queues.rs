//! Queues of a two-event port (a port with an event at the end of each transmission), or of a lazy
//! port with several queues: one queue for each traffic class, and the scheduler that chooses among
//! them.
//!
//! Strict classes are served first, in the order of their numbers. The other classes share the
//! remaining bandwidth by weight with deficit round robin (Shreedhar and Varghese 1995) in the form
//! of RFC 8290, 4.2: a class may exceed its quantum by one packet, which is deducted in its next
//! rounds. A packet in transmission is never interrupted.

use crate::dcb::pfc::Wire;
use crate::dcb::port_state::DcbPort;
use crate::dcb::priority_queues::{DcbAdmission, PriorityQueues};
use crate::dcb::queued_packet::QueuedPacket;
use crate::losses::Cause;
use crate::packet_handle::PacketHandle;
use crate::pool::PacketPool;
use crate::queue::{
    Admitted, Arrival, Backlog, Discipline, FqCoDel, Head, Place, Queue, QueueConfig, Ranked,
    Trimming, Verdict,
};
use crate::scheduler::PortClass;
use crate::shared_buffer::SharedBuffer;
use eastwest_types::Time;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;

/// Queue of one traffic class, ordered as its discipline requires.
#[derive(Debug, Serialize, Deserialize)]
enum ClassQueue {
    Fifo {
        queue: Queue,
        packets: VecDeque<PacketHandle>,
        bytes: u64,
    },
    Flows(Box<FqCoDel>),
    /// Queues by priority at a port with data-centre bridging (DCB); [`PortQueues::push_dcb`] and
    /// [`PortQueues::pop_by_priority`] serve them.
    Priorities(Box<PriorityQueues>),
    /// Queue ordered by the ranks that a discipline from another crate computes. Skipped variants
    /// must be last: serde counts a skipped variant when it writes the number of a variant, but not
    /// when it reads a number.
    #[serde(skip)]
    Ranked(Box<Ranked>),
    /// Queues of whole packets and of trimmed packets (headers), of a discipline from another
    /// crate.
    #[serde(skip)]
    Trimming(Box<Trimming>),
}

#[derive(Debug, Serialize, Deserialize)]
struct Class {
    queue: ClassQueue,
    /// Bytes that the class may send per round of deficit round robin; `None` for a strict class.
    quantum: Option<i64>,
    deficit: i64,
}

/// All queues of a two-event port (a port with an event at the end of each transmission), or of a
/// lazy port with several queues. The first fields are accessed for every packet.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C, align(64))]
pub(crate) struct PortQueues {
    /// State of data-centre bridging (DCB, IEEE 802.1Q); `None` if the port has no DCB.
    pub dcb: Option<Box<DcbPort>>,
    /// Time at which the current transmission ends, or at which the sleeping link will be awake for
    /// the first packet; [`Time::NEVER`] while the port has nothing to send.
    pub sent_at: Time,
    /// Traffic classes of the port. Most ports have one class, which is stored without additional
    /// memory.
    classes: SmallVec<[Class; 1]>,
    /// Index of the weighted class that is served in the current round.
    turn: usize,
    /// Shared buffer of the switch; `None` if its ports share none.
    shared: Option<Arc<SharedBuffer>>,
    /// Index of the traffic class for each codepoint (DSCP).
    #[serde(with = "codepoints")]
    class_of: [u8; 64],
    /// Packets that disciplines have dropped from queues since the last call of
    /// [`super::Link::take_dropped`].
    pub dropped: Vec<(PacketHandle, Cause)>,
    /// Packets in the buffer of a link layer that is or was asleep. Packets in this buffer leave
    /// before all queued packets.
    link_buffer: VecDeque<PacketHandle>,
    link_buffer_bytes: u64,
}

/// Result of the admission of a packet to the queue of its class.
pub(crate) enum Admission {
    /// The packet is queued; `mark` is whether the packet must be marked with CE.
    Admitted { mark: bool },
    /// Only the header of the packet is queued, with the given number of IP bytes; the caller must
    /// remove the payload.
    Trimmed(u16),
    /// The packet is dropped, for the given cause.
    Dropped(Cause),
}

impl From<Result<Admitted, Cause>> for Admission {
    fn from(admitted: Result<Admitted, Cause>) -> Admission {
        match admitted {
            Ok(Admitted::Unchanged { mark }) => Admission::Admitted { mark },
            Ok(Admitted::Header(ip_len)) => Admission::Trimmed(ip_len),
            Err(cause) => Admission::Dropped(cause),
        }
    }
}

impl PortQueues {
    /// Returns the empty queues of a port. `classes` is empty if all packets share one queue with
    /// the settings `queue`.
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
                queue: match &dcb {
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
            link_buffer: VecDeque::new(),
            link_buffer_bytes: 0,
        }
    }

    /// Appends a packet to the buffer of the link layer.
    pub fn push_to_link_buffer(&mut self, handle: PacketHandle) {
        self.link_buffer_bytes += u64::from(handle.ip_len());
        self.link_buffer.push_back(handle);
    }

    /// Removes and returns the first packet of the buffer of the link layer; `None` if the buffer
    /// is empty.
    #[inline]
    pub fn pop_from_link_buffer(&mut self) -> Option<PacketHandle> {
        let handle = self.link_buffer.pop_front()?;
        self.link_buffer_bytes -= u64::from(handle.ip_len());
        Some(handle)
    }

    /// Returns the numbers of packets and IP bytes in the buffer of the link layer.
    pub fn link_buffer(&self) -> Backlog {
        Backlog { packets: self.link_buffer.len(), bytes: self.link_buffer_bytes }
    }

    /// Returns the index of the traffic class of packets with DSCP `dscp`.
    pub fn class_of(&self, dscp: u8) -> u8 {
        self.class_of[usize::from(dscp & 63)]
    }

    /// Whether packets always leave in the order in which they were enqueued, and are never paused.
    pub fn is_one_fifo(&self) -> bool {
        matches!(self.classes.as_slice(), [Class { queue: ClassQueue::Fifo { .. }, .. }])
    }

    /// Whether packets may leave in another order than the order of their arrivals.
    pub fn may_reorder(&self) -> bool {
        self.classes.len() > 1 || self.paused() != 0
    }

    /// Returns the mask of paused priorities: bit p for priority p.
    fn paused(&self) -> u8 {
        self.dcb.as_ref().map_or(0, |dcb| dcb.paused_mask())
    }

    /// Returns the number of bytes that the link will send until all queued packets of the class of
    /// DSCP `dscp` have left, if no more packets arrive. These are the bytes of the class, of
    /// strict classes before it, and the share of other weighted classes in the same time. Paused
    /// priorities do not count, except the priority of `dscp`.
    pub fn bytes_until(&self, dscp: u8, framing: u64) -> u64 {
        let number = usize::from(self.class_of(dscp));
        let paused = self.paused();
        let on_link = |backlog: Backlog| backlog.bytes + backlog.packets as u64 * framing;
        let own = &self.classes[number];
        let below = on_link(self.link_buffer());
        if own.queue.backlog().packets == 0 {
            return below; // the last packet is in transmission or in the link layer
        }
        let mine = on_link(own.queue.unpaused_backlog(paused & !(1 << (dscp >> 3))));
        let others = self.classes.iter().enumerate().filter(|(other, _)| *other != number);
        let before = others.map(|(other, class)| {
            let theirs = || on_link(class.queue.unpaused_backlog(paused));
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

    /// Returns number and IP bytes of the queued packets of one class.
    pub fn backlog_of(&self, class: u8) -> Backlog {
        self.classes[usize::from(class)].queue.backlog()
    }

    /// Whether the port has the queues of FQ-CoDel, one traffic class and no shared buffer.
    pub fn has_flow_queues(&self) -> bool {
        let classes = self.classes.as_slice();
        matches!(classes, [Class { queue: ClassQueue::Flows(_), .. }]) && self.shared.is_none()
    }

    /// Returns the queues of FQ-CoDel at a port that [has them](PortQueues::has_flow_queues), and the
    /// list of dropped packets.
    #[inline(always)]
    pub fn flow_queues(&mut self) -> (&mut FqCoDel, &mut Vec<(PacketHandle, Cause)>) {
        match self.classes.first_mut() {
            Some(Class { queue: ClassQueue::Flows(flows), .. }) => (flows, &mut self.dropped),
            _ => unreachable!("the port has the queues of FQ-CoDel"),
        }
    }

    /// Whether a packet is queued, outside the buffer of the link layer.
    pub fn waits(&self) -> bool {
        self.classes.iter().any(|class| class.queue.backlog().packets > 0)
    }

    /// Returns number and IP bytes of the queued packets of all classes, without the buffer of the
    /// link layer.
    pub fn backlog(&self) -> Backlog {
        let mut all = Backlog { packets: 0, bytes: 0 };
        for class in &self.classes {
            let backlog = class.queue.backlog();
            all.packets += backlog.packets;
            all.bytes += backlog.bytes;
        }
        all
    }

    /// Returns the IP bytes of each packet in the queues and in the buffer of the link layer.
    pub fn lengths(&self) -> Vec<u32> {
        let of = |p: &PacketHandle| u32::from(p.ip_len());
        let mut lengths: Vec<u32> = self.link_buffer.iter().map(of).collect();
        for class in &self.classes {
            match &class.queue {
                ClassQueue::Fifo { packets, .. } => lengths.extend(packets.iter().map(of)),
                ClassQueue::Flows(flows) => lengths.extend(flows.iter().map(of)),
                ClassQueue::Ranked(ranked) => lengths.extend(ranked.iter().map(of)),
                ClassQueue::Trimming(trimming) => lengths.extend(trimming.iter().map(of)),
                ClassQueue::Priorities(queues) => {
                    lengths.extend(queues.iter().map(|(_, queued)| of(&queued.handle)))
                }
            }
        }
        lengths
    }

    /// Admits a packet to the queue of its class, or drops it. The backlog in `arrival` is ignored;
    /// the backlog of the class is used.
    pub fn push(
        &mut self,
        handle: PacketHandle,
        mut arrival: Arrival,
        pool: &PacketPool,
    ) -> Admission {
        let queue = match self.classes.as_mut_slice() {
            [class] => &mut class.queue,
            classes => {
                let number = self.class_of[usize::from(arrival.packet.dscp() & 63)];
                &mut classes[usize::from(number)].queue
            }
        };
        let Some(shared) = &self.shared else {
            return queue.push(handle, &mut arrival, pool, &mut self.dropped);
        };
        let before = queue.backlog().bytes;
        let admission = if !arrival.idle() && !shared.admits(before, arrival.ip_len) {
            let ClassQueue::Trimming(trimming) = queue else {
                return Admission::Dropped(Cause::SharedBuffer);
            };
            let admits = |queued, bytes| shared.admits(queued, bytes);
            let handle = handle.arriving(arrival.now);
            trimming.push_without_memory(handle, &arrival, admits).into()
        } else {
            queue.push(handle, &mut arrival, pool, &mut self.dropped)
        };
        shared.changed(before, queue.backlog().bytes);
        admission
    }

    /// Removes and returns the next packet to be sent, and whether it must be marked with CE;
    /// `None` if no packet is queued.
    pub fn pop(&mut self, now: Time, pool: &PacketPool) -> Option<(PacketHandle, bool)> {
        if self.shared.is_none()
            && let [class] = self.classes.as_mut_slice()
        {
            // A discipline may drop all packets.
            while class.queue.backlog().packets > 0 {
                let next = class.queue.pop(now, pool, &mut self.dropped);
                if next.is_some() {
                    return next;
                }
            }
            return None;
        }
        while let Some(number) = self.next_class(|class| class.queue.backlog().packets > 0) {
            let class = &mut self.classes[number];
            let before = class.queue.backlog().bytes;
            let next = class.queue.pop(now, pool, &mut self.dropped);
            if let Some(shared) = &self.shared {
                shared.changed(before, class.queue.backlog().bytes);
            }
            let Some((handle, mark)) = next else {
                continue; // the discipline of this class has dropped all packets
            };
            class.deficit -= i64::from(handle.ip_len());
            return Some((handle, mark));
        }
        None
    }

    /// Returns the priority queues of a port with data-centre bridging (DCB), one item for each
    /// class; none at other ports.
    pub fn priority_queues(&self) -> impl Iterator<Item = &PriorityQueues> {
        self.classes.iter().filter_map(|class| match &class.queue {
            ClassQueue::Priorities(queues) => Some(&**queues),
            _ => None,
        })
    }

    /// Returns the time of the next event of the port that is not an arrival at the far end; `None`
    /// if a priority of the port is paused (DCB).
    #[inline]
    pub fn due_unless_paused(&self) -> Option<Time> {
        match &self.dcb {
            None => Some(self.sent_at),
            Some(dcb) => dcb.due_unless_paused(self.sent_at),
        }
    }

    /// Returns, at a DCB port with a single traffic class, its priority queues, its DCB state, and
    /// the end of the current transmission ([`Time::NEVER`] while the port is idle). `None` at
    /// other ports.
    #[inline]
    pub fn single_class(&mut self) -> Option<(&mut PriorityQueues, &mut DcbPort, &mut Time)> {
        let [Class { queue: ClassQueue::Priorities(queues), .. }] = self.classes.as_mut_slice()
        else {
            return None;
        };
        Some((queues, self.dcb.as_deref_mut()?, &mut self.sent_at))
    }

    /// Returns the priority queues of a port with data-centre bridging (DCB) for modification, one
    /// item for each class; none at other ports.
    pub fn priority_queues_mut(&mut self) -> impl Iterator<Item = &mut PriorityQueues> {
        self.classes.iter_mut().filter_map(|class| match &mut class.queue {
            ClassQueue::Priorities(queues) => Some(&mut **queues),
            _ => None,
        })
    }

    /// Admits a packet to the queue of its class and priority at a port with data-centre bridging
    /// (DCB), or drops it.
    pub fn push_dcb(
        &mut self,
        handle: PacketHandle,
        (ingress, priority): (u32, u8),
        arrival: &Arrival,
    ) -> DcbAdmission {
        let class = self.class_of(arrival.packet.dscp());
        let ClassQueue::Priorities(queues) = &mut self.classes[usize::from(class)].queue else {
            unreachable!("the port has DCB")
        };
        let Some(shared) = &self.shared else {
            return queues.push(handle, ingress, priority, arrival);
        };
        let counted = self.dcb.as_ref().map_or(0, |dcb| dcb.shared_priorities());
        let lossy = counted & !queues.lossless() & 1 << priority != 0;
        if lossy && !arrival.idle() && !shared.admits(queues.bytes(priority), arrival.ip_len) {
            return DcbAdmission::Dropped(Cause::SharedBuffer);
        }
        let before = queues.bytes_of(counted);
        let admission = queues.push(handle, ingress, priority, arrival);
        shared.changed(before, queues.bytes_of(counted));
        admission
    }

    /// Returns the queued IP bytes that use the shared buffer of the switch at a port with
    /// data-centre bridging (DCB); 0 without shared buffer or without DCB.
    pub fn shared_bytes(&self) -> u64 {
        let dcb = self.dcb.as_ref().filter(|_| self.shared.is_some());
        let counted = dcb.map_or(0, |dcb| dcb.shared_priorities());
        self.priority_queues().map(|queues| queues.bytes_of(counted)).sum()
    }

    /// Returns the shared buffer of the switch; `None` if its ports share none.
    pub fn shared_memory(&self) -> Option<&SharedBuffer> {
        self.shared.as_deref()
    }

    /// Updates the shared buffer after packets have left the queues of a port with data-centre
    /// bridging (DCB). `before` is the previous value of [`PortQueues::shared_bytes`].
    pub fn update_shared(&self, before: u64) {
        if let Some(shared) = &self.shared {
            shared.changed(before, self.shared_bytes());
        }
    }

    /// Removes and returns the next packet of a port with data-centre bridging (DCB), with its
    /// priority, and whether it must be marked with CE. Priorities in the mask `paused` are
    /// skipped; `None` if no packet may be sent. Packets that disciplines drop are added to
    /// `dropped`.
    pub fn pop_by_priority(
        &mut self,
        now: Time,
        (paused, wire): (u8, Wire),
        pool: &PacketPool,
        dropped: &mut Vec<(QueuedPacket, u8)>,
    ) -> Option<(QueuedPacket, u8, bool)> {
        if let [class] = self.classes.as_mut_slice() {
            let ClassQueue::Priorities(queues) = &mut class.queue else { return None };
            while queues.occupied() & !paused != 0 {
                let before = dropped.len();
                let next = queues.pop(now, paused, pool, dropped);
                if next.is_some() || dropped.len() == before {
                    return next;
                }
            }
            return None;
        }
        let ready = |class: &Class| match &class.queue {
            ClassQueue::Priorities(queues) => queues.has_ready(now, paused),
            _ => false,
        };
        while let Some(number) = self.next_class(ready) {
            let class = &mut self.classes[number];
            let ClassQueue::Priorities(queues) = &mut class.queue else { break };
            let Some(next) = queues.pop(now, paused, pool, dropped) else {
                continue; // the discipline of this class has dropped all packets
            };
            // Shares are fractions of the bandwidth of the link, so that framing counts (802.1Qaz).
            class.deficit -= i64::from(wire.bytes(u32::from(next.0.handle.ip_len())));
            return Some(next);
        }
        None
    }

    /// Connects the port to the shared buffer of its switch. After a checkpoint is read, each port
    /// has its own copy of the buffer; the first port provides the common one.
    pub fn share(&mut self, memory: &mut Option<Arc<SharedBuffer>>) {
        if let Some(own) = &mut self.shared {
            own.clone_from(memory.get_or_insert_with(|| own.clone()));
        }
    }

    /// Returns the index of the class that is served next; `None` if no packet is queued. `waits`
    /// returns whether a class has packets that may be sent.
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

    /// Whether a packet is queued; always true, without a check, at a port with several classes or
    /// without data-centre bridging (DCB).
    #[inline]
    pub fn has_packets(&mut self) -> bool {
        self.single_class().is_none_or(|(queues, ..)| queues.backlog().packets > 0)
    }
}

impl ClassQueue {
    fn new(config: &QueueConfig, place: &Place) -> ClassQueue {
        match config.start(place) {
            Queue::FqCoDel(flows) => ClassQueue::Flows(flows),
            Queue::Custom(queue) if queue.ranks() => {
                ClassQueue::Ranked(Box::new(Ranked::new(queue)))
            }
            Queue::Custom(queue) if queue.trims() => {
                ClassQueue::Trimming(Box::new(Trimming::new(queue, place)))
            }
            queue => ClassQueue::Fifo { queue, packets: VecDeque::new(), bytes: 0 },
        }
    }

    fn backlog(&self) -> Backlog {
        match self {
            ClassQueue::Fifo { packets, bytes, .. } => {
                Backlog { packets: packets.len(), bytes: *bytes }
            }
            ClassQueue::Flows(flows) => flows.backlog(),
            ClassQueue::Ranked(ranked) => ranked.backlog(),
            ClassQueue::Trimming(trimming) => trimming.backlog(),
            ClassQueue::Priorities(queues) => queues.backlog(),
        }
    }

    /// Returns the backlog without the priorities in the mask `paused`.
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
        pool: &PacketPool,
        dropped: &mut Vec<(PacketHandle, Cause)>,
    ) -> Admission {
        match self {
            ClassQueue::Fifo { queue, packets, bytes } => {
                arrival.backlog = Backlog { packets: packets.len(), bytes: *bytes };
                let verdict = queue.at_enqueue(arrival);
                if let Some(cause) = verdict.loss() {
                    return Admission::Dropped(cause);
                }
                packets.push_back(handle.arriving(arrival.now));
                *bytes += u64::from(handle.ip_len());
                Admission::Admitted { mark: verdict == Verdict::Mark }
            }
            ClassQueue::Flows(flows) => {
                flows.push(handle.arriving(arrival.now), arrival.idle(), dropped);
                Admission::Admitted { mark: false }
            }
            ClassQueue::Ranked(ranked) => {
                match ranked.push(handle.arriving(arrival.now), arrival, pool, dropped) {
                    Ok(mark) => Admission::Admitted { mark },
                    Err(cause) => Admission::Dropped(cause),
                }
            }
            ClassQueue::Trimming(trimming) => {
                trimming.push(handle.arriving(arrival.now), arrival).into()
            }
            ClassQueue::Priorities(_) => unreachable!("DCB ports enqueue with push_dcb"),
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
            ClassQueue::Ranked(ranked) => return ranked.pop(now, pool, dropped),
            ClassQueue::Trimming(trimming) => return trimming.pop(now, pool, dropped),
            ClassQueue::Priorities(_) => unreachable!("DCB ports dequeue with pop_by_priority"),
        };
        let plan = queue.at_dequeue(now, || {
            let mut left = Backlog { packets: packets.len(), bytes: *bytes };
            packets.iter().map(move |p| {
                left.packets -= 1;
                left.bytes -= u64::from(p.ip_len());
                Head::new(p, left, pool.get(p.slot()))
            })
        });
        for _ in 0..plan.drop {
            let handle = packets.pop_front().expect("only queued packets are dropped");
            *bytes -= u64::from(handle.ip_len());
            dropped.push((handle, Cause::Sojourn));
        }
        let handle = packets.pop_front()?;
        *bytes -= u64::from(handle.ip_len());
        Some((handle, plan.mark))
    }
}

/// Serialization in checkpoints of the array with the class of every codepoint.
mod codepoints {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(classes: &[u8; 64], to: S) -> Result<S::Ok, S::Error> {
        classes.as_slice().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[u8; 64], D::Error> {
        let classes = Vec::deserialize(from)?;
        classes
            .try_into()
            .map_err(|_| serde::de::Error::custom("the table of codepoints needs 64 classes"))
    }
}
