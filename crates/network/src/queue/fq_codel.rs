//! FQ-CoDel (RFC 8290): flows are hashed to queues, and each queue has its own CoDel. Queues are
//! served by deficit round robin; queues of new flows are served before queues of old flows.
//!
//! When a packet is enqueued in an empty queue that is in no list, the queue joins the list of new
//! flows with a credit of `quantum` bytes. When it has sent these bytes, it moves to the list of
//! old flows. If a queue of the new list becomes empty, it also moves to the old list once before
//! it is removed from the lists, so that a flow cannot stay new by sending slowly (RFC 8290, 4.2).
//! If a packet exceeds the limit, a packet at the head of the queue with most bytes is dropped
//! (4.1.3; Linux drops up to 64 at once). As in Linux, CoDel drops nothing while all queues
//! together hold at most one full packet.

use super::codel::{CoDel, CoDelConfig};
use super::decision::{Arrival, Backlog, Head, Place, Ports, Verdict};
use super::discipline::{BuiltIn, Discipline, QueueSettings};
use super::inert::Inert;
use crate::losses::Cause;
use crate::packet_handle::PacketHandle;
use crate::pool::PacketPool;
use crate::ring::Ring;
use eastwest_engine::random::mix;
use eastwest_settings::{Octets, Section, key};
use eastwest_types::{Limit, Rate, Span, Time};
use serde::{Deserialize, Serialize};

/// Settings of FQ-CoDel at one port.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FqCoDelConfig {
    /// Number of queues to which flows are hashed.
    pub flows: u32,
    /// IP bytes that a queue may send in each round of the round robin.
    pub quantum: u32,
    /// CoDel settings of every queue. The limit applies to all queues together.
    pub codel: CoDelConfig,
}

impl BuiltIn for FqCoDelConfig {
    const NAME: &'static str = "fq-codel";
    const DOC: &'static str =
        "a CoDel queue for every flow, served in turn (RFC 8290); ports are lazy";

    fn read(s: &mut Section, limit: Limit, ports: &Ports) -> FqCoDelConfig {
        let flows: u32 = s.get(
            key("flows", "Number of queues over which flows are hashed (RFC 8290, 5.2.3).")
                .default("1024")
                .range("1", "65536"),
        );
        let quantum = s.get(
            key::<Octets>(
                "quantum",
                "IP bytes that a flow's queue may send in one round (RFC \
                                      8290, 5.2.4).",
            )
            .computed("fabric.mtu", Octets(ports.mtu.unwrap_or(1500)))
            .range("40", "65536"),
        );
        let quantum = quantum.0;
        FqCoDelConfig { flows, quantum, codel: CoDelConfig::read(s, limit, ports) }
    }
}

impl QueueSettings for FqCoDelConfig {
    type Queue = Box<FqCoDel>;

    fn limit(&self) -> Limit {
        self.codel.limit
    }

    fn start(&self, place: &Place) -> Box<FqCoDel> {
        let seed = mix(place.seed ^ mix(0x6671_0000 ^ place.number));
        Box::new(FqCoDel::new(*self, place.mtu, seed))
    }

    fn decides_at_dequeue(&self) -> bool {
        true
    }

    fn is_one_fifo(&self) -> bool {
        false
    }

    fn target(&self, _: Rate, _: u32) -> Option<Span> {
        Some(self.codel.target)
    }

    fn never_acts(&self, inert: &Inert) -> Vec<String> {
        inert.target(Self::NAME, self.codel.target, self.codel.limit)
    }

    fn memory(&self) -> u64 {
        u64::from(self.flows) * size_of::<u32>() as u64
    }
}

/// Number of no queue: the end of a list.
const NONE: u32 = u32::MAX;

/// Queue of the flows with one hash.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Flow {
    packets: Ring<PacketHandle>,
    bytes: u64,
    deficit: i64,
    /// Number of the next queue in the list of this queue; [`NONE`] at the end of the list.
    next: u32,
    /// Whether the queue is in the list of new or of old flows.
    listed: bool,
    codel: CoDel,
}

/// List of queues in the order of service, linked by [`Flow::next`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct List {
    first: u32,
    last: u32,
}

impl List {
    const EMPTY: List = List { first: NONE, last: NONE };

    fn is_empty(self) -> bool {
        self.first == NONE
    }
}

/// FQ-CoDel queues of one port, or of one class of a port.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FqCoDel {
    config: FqCoDelConfig,
    mtu: u32,
    seed: u64,
    /// By hash of the flow, the number of its queue in `flows`; [`NONE`] until the first packet is
    /// enqueued in this queue.
    numbers: Vec<u32>,
    flows: Vec<Flow>,
    new: List,
    old: List,
    held: Backlog,
}

impl FqCoDel {
    /// Returns empty queues at a port whose MTU is `mtu` bytes. `seed` makes the hash of flows
    /// differ between ports.
    pub fn new(config: FqCoDelConfig, mtu: u32, seed: u64) -> FqCoDel {
        FqCoDel {
            config,
            mtu,
            seed,
            numbers: vec![NONE; config.flows.max(1) as usize],
            flows: Vec::new(),
            new: List::EMPTY,
            old: List::EMPTY,
            held: Backlog { packets: 0, bytes: 0 },
        }
    }

    /// Returns the number of packets and IP bytes in all queues together.
    pub fn backlog(&self) -> Backlog {
        self.held
    }

    /// Returns all queued packets, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &PacketHandle> {
        self.flows.iter().flat_map(|flow| flow.packets.iter())
    }

    /// Enqueues a packet. Packets that are dropped to make room are added to `dropped`; the new
    /// packet may be among them. At an idle port (`idle` is true), the packet is sent at once, and
    /// nothing is dropped.
    #[inline]
    pub fn push(
        &mut self,
        handle: PacketHandle,
        idle: bool,
        dropped: &mut Vec<(PacketHandle, Cause)>,
    ) {
        self.insert(handle);
        if !idle && !self.fits() {
            self.make_room(dropped);
        }
    }

    #[inline]
    fn fits(&self) -> bool {
        match self.config.codel.limit {
            Limit::Packets(n) => self.held.packets <= n as usize,
            Limit::Bytes(n) => self.held.bytes <= n,
        }
    }

    #[inline]
    fn insert(&mut self, handle: PacketHandle) {
        let ip_len = u64::from(handle.ip_len());
        let number = self.list_flow_of(&handle);
        let flow = &mut self.flows[number as usize];
        flow.packets.push(handle);
        flow.bytes += ip_len;
        self.held.packets += 1;
        self.held.bytes += ip_len;
    }

    /// Returns the number of the queue of a packet, which is now in a list.
    #[inline(always)]
    fn list_flow_of(&mut self, handle: &PacketHandle) -> u32 {
        let random = mix(self.seed ^ u64::from(handle.hash()));
        let place = ((u128::from(random) * self.numbers.len() as u128) >> 64) as usize;
        let number = match self.numbers[place] {
            NONE => self.add_flow(place),
            number => number,
        };
        let flow = &mut self.flows[number as usize];
        if !flow.listed {
            flow.listed = true;
            flow.deficit = i64::from(self.config.quantum);
            self.append(number, true);
        }
        number
    }

    /// Adds a queue for the flows with the hash `place`. Returns its number.
    #[cold]
    fn add_flow(&mut self, place: usize) -> u32 {
        let number = self.flows.len() as u32;
        self.numbers[place] = number;
        self.flows.push(Flow {
            packets: Ring::default(),
            bytes: 0,
            deficit: 0,
            next: NONE,
            listed: false,
            codel: CoDel::new(self.config.codel, self.mtu),
        });
        number
    }

    /// Updates the state as [`FqCoDel::push`] and then [`FqCoDel::pop`] would, for a packet that
    /// arrives at an idle port and is sent at once. No packet may be queued.
    #[inline]
    pub fn pass(&mut self, handle: &PacketHandle) {
        debug_assert_eq!(self.held.packets, 0);
        let own = self.list_flow_of(handle);
        loop {
            let is_new = !self.new.is_empty();
            let number = if is_new { self.new.first } else { self.old.first };
            let quantum = i64::from(self.config.quantum);
            let flow = &mut self.flows[number as usize];
            if flow.deficit <= 0 {
                flow.deficit += quantum;
                self.move_on(is_new, true);
                continue;
            }
            // A packet that has not waited is below the target, with the same effect on CoDel as an
            // empty queue.
            flow.codel.becomes_empty();
            if number == own {
                flow.deficit -= i64::from(handle.ip_len());
                return;
            }
            self.remove_empty(is_new);
        }
    }

    /// Appends a queue to the list of new flows (`to_new`) or of old flows.
    #[inline]
    fn append(&mut self, number: u32, to_new: bool) {
        let list = if to_new { &mut self.new } else { &mut self.old };
        let last = std::mem::replace(&mut list.last, number);
        if last == NONE {
            list.first = number;
        } else {
            self.flows[last as usize].next = number;
        }
    }

    /// Drops packets from the longest queue until the limit is met.
    #[cold]
    fn make_room(&mut self, dropped: &mut Vec<(PacketHandle, Cause)>) {
        while !self.fits()
            && let Some(handle) = self.drop_from_longest()
        {
            dropped.push((handle, Cause::QueueFull));
        }
    }

    /// Drops the first packet of the queue with most bytes; of several such queues, the one that
    /// is served last.
    fn drop_from_longest(&mut self) -> Option<PacketHandle> {
        let (mut longest, mut most) = (NONE, 0);
        for list in [self.new, self.old] {
            let mut number = list.first;
            while let Some(flow) = self.flows.get(number as usize) {
                if flow.bytes >= most {
                    (longest, most) = (number, flow.bytes);
                }
                number = flow.next;
            }
        }
        let flow = self.flows.get_mut(longest as usize)?;
        let dropped = flow.packets.pop()?;
        flow.bytes -= u64::from(dropped.ip_len());
        self.release(&dropped);
        Some(dropped)
    }

    #[inline]
    fn release(&mut self, handle: &PacketHandle) {
        self.held.packets -= 1;
        self.held.bytes -= u64::from(handle.ip_len());
    }

    /// Removes and returns the next packet, and whether it is to be marked with CE; `None` if no
    /// packet is left. Packets that CoDel drops from the queue are added to `dropped`.
    #[inline(always)]
    pub fn pop(
        &mut self,
        now: Time,
        pool: &PacketPool,
        dropped: &mut Vec<(PacketHandle, Cause)>,
    ) -> Option<(PacketHandle, bool)> {
        let quantum = i64::from(self.config.quantum);
        loop {
            let is_new = !self.new.is_empty();
            let number = if is_new { self.new.first } else { self.old.first };
            if number == NONE {
                return None;
            }
            let flow = &mut self.flows[number as usize];
            if flow.deficit <= 0 {
                flow.deficit += quantum;
                self.move_on(is_new, true);
                continue;
            }
            let next = match flow.packets.first().map(|head| head.arrived()) {
                None => {
                    flow.codel.becomes_empty();
                    None
                }
                Some(since) if flow.codel.passes_without_decision(now, since) => {
                    flow.packets.pop().map(|handle| {
                        flow.bytes -= u64::from(handle.ip_len());
                        (handle, false)
                    })
                }
                Some(_) => flow.take(now, &mut self.held, pool, dropped),
            };
            let Some((handle, mark)) = next else {
                self.remove_empty(is_new);
                continue;
            };
            flow.deficit -= i64::from(handle.ip_len());
            self.release(&handle);
            return Some((handle, mark));
        }
    }

    /// Removes the empty queue at the head of the list of new flows (`is_new`) or of old flows. The
    /// queue of a new flow moves to the list of old flows once before it is removed from the lists.
    #[inline]
    fn remove_empty(&mut self, is_new: bool) {
        let keep = is_new && !self.old.is_empty();
        let number = if is_new { self.new.first } else { self.old.first };
        self.flows[number as usize].listed = keep;
        self.move_on(is_new, keep);
    }

    /// Removes the queue at the head of the list of new flows (`is_new`) or of old flows. With
    /// `keep`, the queue is then appended to the list of old flows.
    #[inline]
    fn move_on(&mut self, is_new: bool, keep: bool) {
        let list = if is_new { &mut self.new } else { &mut self.old };
        let number = list.first;
        list.first = std::mem::replace(&mut self.flows[number as usize].next, NONE);
        if list.first == NONE {
            list.last = NONE;
        }
        if keep {
            self.append(number, false);
        }
    }
}

impl Flow {
    /// Removes and returns the next packet as CoDel decides. `held` is the backlog of all queues of
    /// the port, from which the packets in `dropped` are subtracted, but not the returned packet.
    #[inline(never)]
    fn take(
        &mut self,
        now: Time,
        held: &mut Backlog,
        pool: &PacketPool,
        dropped: &mut Vec<(PacketHandle, Cause)>,
    ) -> Option<(PacketHandle, bool)> {
        let mut left = *held;
        let heads = self.packets.iter().map(|p| {
            left.packets -= 1;
            left.bytes -= u64::from(p.ip_len());
            Head::new(p, left, pool.get(p.slot()))
        });
        let plan = self.codel.next(now, heads);
        for _ in 0..plan.drop {
            let handle = self.packets.pop().expect("only queued packets are dropped");
            self.bytes -= u64::from(handle.ip_len());
            held.packets -= 1;
            held.bytes -= u64::from(handle.ip_len());
            dropped.push((handle, Cause::Sojourn));
        }
        let handle = self.packets.pop()?;
        self.bytes -= u64::from(handle.ip_len());
        Some((handle, plan.mark))
    }
}

/// Implements the part of [`Discipline`] that concerns the limit. Ports without data-centre bridging
/// use [`FqCoDel::push`] and [`FqCoDel::pop`] instead; only a port that treats the queue as one FIFO
/// calls these functions.
impl Discipline for FqCoDel {
    fn at_enqueue(&mut self, arrival: &Arrival) -> Verdict {
        arrival.fits(self.config.codel.limit)
    }
}
