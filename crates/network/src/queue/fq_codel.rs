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

use super::codel::{CoDelConfig, CoDelRules, CoDelState};
use super::decision::{Arrival, Backlog, Head, Place, Ports, Verdict};
use super::discipline::{BuiltIn, Discipline, QueueSettings};
use super::inert::Inert;
use crate::losses::Cause;
use crate::packet_handle::PacketHandle;
use crate::pool::PacketPool;
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

/// Number of no queue and of no cell: the end of a list.
const NONE: u32 = u32::MAX;

/// Cell for one packet in the list of its queue, or a free cell.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Cell {
    handle: PacketHandle,
    /// Number of the cell of the next packet of the queue, or of the next free cell; [`NONE`] at the
    /// end of a list.
    next: u32,
}

/// Cells of all packets of the port. A cell is used again by the next packet after its own packet
/// has left, so that few cells are accessed.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Cells {
    cells: Vec<Cell>,
    /// Number of the first free cell.
    free: u32,
}

/// Queue of the flows with one hash. It occupies one cache line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[repr(align(64))]
struct Flow {
    /// Number of the cell of the first packet; [`NONE`] without packets.
    first: u32,
    /// Number of the cell of the last packet; not meaningful without packets.
    last: u32,
    bytes: u64,
    /// Bytes that the queue may still send in this round.
    deficit: i32,
    /// Number of the next queue in the order of service, of a listed queue.
    next: u32,
    /// Whether the queue is in the list of new or of old flows.
    listed: bool,
    codel: CoDelState,
}

const _: () = assert!(size_of::<Flow>() == 64);

/// FQ-CoDel queues of one port, or of one class of a port.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FqCoDel {
    quantum: i32,
    rules: CoDelRules,
    seed: u64,
    /// By hash of the flow, the number of its queue in `flows`; [`NONE`] until the first packet is
    /// enqueued in this queue.
    numbers: Vec<u32>,
    flows: Vec<Flow>,
    /// The listed queues in the order of service are a circle, linked by [`Flow::next`]: first the
    /// new flows, then the old flows. This is the number of the first queue, which follows the last
    /// one; [`NONE`] if no queue is listed.
    first: u32,
    /// Number of the last listed queue; [`NONE`] if no queue is listed.
    last: u32,
    /// Number of the last queue of new flows; [`NONE`] without new flows.
    last_new: u32,
    cells: Cells,
    held: Backlog,
}

impl FqCoDel {
    /// Returns empty queues at a port whose MTU is `mtu` bytes. `seed` makes the hash of flows
    /// differ between ports.
    pub fn new(config: FqCoDelConfig, mtu: u32, seed: u64) -> FqCoDel {
        FqCoDel {
            quantum: i32::try_from(config.quantum).unwrap_or(i32::MAX / 2),
            rules: CoDelRules::new(config.codel, mtu),
            seed,
            numbers: vec![NONE; config.flows.max(1) as usize],
            flows: Vec::new(),
            first: NONE,
            last: NONE,
            last_new: NONE,
            cells: Cells { cells: Vec::new(), free: NONE },
            held: Backlog { packets: 0, bytes: 0 },
        }
    }

    /// Returns the number of packets and IP bytes in all queues together.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.held
    }

    /// Returns all queued packets, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &PacketHandle> {
        self.flows.iter().flat_map(|flow| self.cells.from(flow.first))
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
        if !self.insert(handle) && !idle {
            self.make_room(dropped);
        }
    }

    #[inline]
    fn fits(&self) -> bool {
        match self.rules.config().limit {
            Limit::Packets(n) => self.held.packets <= n as usize,
            Limit::Bytes(n) => self.held.bytes <= n,
        }
    }

    /// Enqueues a packet. Returns whether all packets fit; otherwise [`FqCoDel::make_room`] must be
    /// called.
    #[inline(always)]
    pub(crate) fn insert(&mut self, handle: PacketHandle) -> bool {
        let number = self.list_flow_of(&handle);
        let cell = self.cells.fill(handle);
        let flow = &mut self.flows[number as usize];
        flow.bytes += handle.ip_bytes();
        if flow.first == NONE {
            flow.first = cell;
        } else {
            self.cells.cells[flow.last as usize].next = cell;
        }
        flow.last = cell;
        self.held.packets += 1;
        self.held.bytes += handle.ip_bytes();
        self.fits()
    }

    /// Returns the number of the queue of a packet, which is now in a list.
    #[inline(always)]
    fn list_flow_of(&mut self, handle: &PacketHandle) -> u32 {
        let random = mix(self.seed ^ u64::from(handle.hash()));
        let place = ((u128::from(random) * self.numbers.len() as u128) >> 64) as usize;
        let mut number = self.numbers[place];
        if number as usize >= self.flows.len() {
            number = self.add_flow(place);
        }
        if !self.flows[number as usize].listed {
            self.list(number);
        }
        number
    }

    /// Adds a queue for the flows with the hash `place`. Returns its number.
    #[cold]
    #[inline(never)]
    fn add_flow(&mut self, place: usize) -> u32 {
        let number = self.flows.len() as u32;
        self.numbers[place] = number;
        self.flows.push(Flow {
            first: NONE,
            last: NONE,
            bytes: 0,
            deficit: 0,
            next: NONE,
            listed: false,
            codel: CoDelState::new(),
        });
        number
    }

    /// Adds a queue that is not listed to the end of the list of new flows.
    #[inline(always)]
    fn list(&mut self, number: u32) {
        let before = if self.last_new != NONE { self.last_new } else { self.last };
        let next = match self.flows.get_mut(before as usize) {
            Some(before) => std::mem::replace(&mut before.next, number),
            None => number,
        };
        let flow = &mut self.flows[number as usize];
        (flow.listed, flow.deficit, flow.next) = (true, self.quantum, next);
        if self.last_new == NONE {
            self.first = number;
        }
        if self.last == self.last_new {
            self.last = number;
        }
        self.last_new = number;
    }

    /// Updates the state as [`FqCoDel::push`] and then [`FqCoDel::pop`] would, for a packet that
    /// arrives at an idle port and is sent at once. No packet may be queued.
    #[inline(always)]
    pub(crate) fn pass(&mut self, handle: &PacketHandle) {
        debug_assert_eq!(self.held.packets, 0);
        let own = self.list_flow_of(handle);
        while let Some(flow) = self.flows.get_mut(self.first as usize) {
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                self.rotate();
                continue;
            }
            // A packet that has not waited is below the target, with the same effect on CoDel as an
            // empty queue.
            flow.codel.becomes_empty();
            if self.first == own {
                flow.deficit -= handle.ip_bytes() as i32;
                return;
            }
            self.remove_empty();
        }
    }

    /// Drops packets from the longest queue until the limit is met.
    #[cold]
    #[inline(never)]
    pub(crate) fn make_room(&mut self, dropped: &mut Vec<(PacketHandle, Cause)>) {
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
        let mut number = self.first;
        while let Some(flow) = self.flows.get(number as usize) {
            if flow.bytes >= most {
                (longest, most) = (number, flow.bytes);
            }
            number = flow.next;
            if number == self.first {
                break;
            }
        }
        let flow = self.flows.get_mut(longest as usize)?;
        let dropped = self.cells.take_first(flow)?;
        self.release(&dropped);
        Some(dropped)
    }

    #[inline]
    fn release(&mut self, handle: &PacketHandle) {
        self.held.packets -= 1;
        self.held.bytes -= handle.ip_bytes();
    }

    /// Removes and returns the next packet, and whether it is to be marked with CE; `None` if no
    /// packet is left. Packets that CoDel drops from the queue are added to `dropped`.
    pub fn pop(
        &mut self,
        now: Time,
        pool: &PacketPool,
        dropped: &mut Vec<(PacketHandle, Cause)>,
    ) -> Option<(PacketHandle, bool)> {
        loop {
            if let Some(handle) = self.pop_undecided(now) {
                return Some((handle, false));
            }
            let flow = self.flows.get_mut(self.first as usize)?;
            let held = &mut self.held;
            match flow.take(&self.rules, now, (&mut self.cells, held, pool), dropped) {
                Some((handle, mark)) => {
                    flow.deficit -= handle.ip_bytes() as i32;
                    self.release(&handle);
                    return Some((handle, mark));
                }
                None => self.remove_empty(),
            }
        }
    }

    /// Removes and returns the next packet if it is sent without a decision of CoDel. `None` if no
    /// packet is left, or if CoDel must decide about the first packet of the first queue.
    #[inline(always)]
    pub(crate) fn pop_undecided(&mut self, now: Time) -> Option<PacketHandle> {
        loop {
            let flow = self.flows.get_mut(self.first as usize)?;
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                self.rotate();
                continue;
            }
            let Some(head) = self.cells.cells.get(flow.first as usize) else {
                flow.codel.becomes_empty();
                self.remove_empty();
                continue;
            };
            if !flow.codel.passes_without_decision(&self.rules, now, head.handle.arrived()) {
                return None;
            }
            let handle = self.cells.take_first(flow)?;
            flow.deficit -= handle.ip_bytes() as i32;
            self.release(&handle);
            return Some(handle);
        }
    }

    /// Removes the first queue in the order of service, which is empty. The queue of a new flow moves
    /// to the list of old flows once before it is removed from the lists.
    #[inline(always)]
    fn remove_empty(&mut self) {
        let first = self.first;
        if self.last_new != NONE && self.last != self.last_new {
            return self.rotate();
        }
        let flow = &mut self.flows[first as usize];
        flow.listed = false;
        self.first = flow.next;
        self.flows[self.last as usize].next = self.first;
        if self.last_new == first {
            self.last_new = NONE;
        }
        if self.last == first {
            (self.first, self.last) = (NONE, NONE);
        }
    }

    /// Moves the first queue in the order of service to the end of the list of old flows.
    #[inline(always)]
    fn rotate(&mut self) {
        let first = self.first;
        self.first = self.flows[first as usize].next;
        self.last = first;
        if self.last_new == first {
            self.last_new = NONE;
        }
    }
}

impl Cells {
    /// Fills a free cell with a packet that ends a list. Returns the number of the cell.
    #[inline(always)]
    fn fill(&mut self, handle: PacketHandle) -> u32 {
        let number = self.free;
        match self.cells.get_mut(number as usize) {
            Some(cell) => {
                self.free = cell.next;
                *cell = Cell { handle, next: NONE };
                number
            }
            None => self.add(handle),
        }
    }

    /// Adds a cell like [`Cells::fill`], if no cell is free.
    #[cold]
    #[inline(never)]
    fn add(&mut self, handle: PacketHandle) -> u32 {
        self.cells.push(Cell { handle, next: NONE });
        self.cells.len() as u32 - 1
    }

    /// Removes and returns the first packet of a queue; `None` if the queue is empty.
    #[inline(always)]
    fn take_first(&mut self, flow: &mut Flow) -> Option<PacketHandle> {
        let cell = self.cells.get_mut(flow.first as usize)?;
        let number = std::mem::replace(&mut flow.first, cell.next);
        cell.next = std::mem::replace(&mut self.free, number);
        flow.bytes -= cell.handle.ip_bytes();
        Some(cell.handle)
    }

    /// Returns the packets of a queue in order, whose first packet is in the cell `number`.
    fn from(&self, mut number: u32) -> impl Iterator<Item = &PacketHandle> {
        std::iter::from_fn(move || {
            let cell = self.cells.get(number as usize)?;
            number = cell.next;
            Some(&cell.handle)
        })
    }
}

impl Flow {
    /// Removes and returns the next packet as CoDel decides. `held` is the backlog of all queues of
    /// the port, from which the packets in `dropped` are subtracted, but not the returned packet.
    #[inline(never)]
    fn take(
        &mut self,
        rules: &CoDelRules,
        now: Time,
        (cells, held, pool): (&mut Cells, &mut Backlog, &PacketPool),
        dropped: &mut Vec<(PacketHandle, Cause)>,
    ) -> Option<(PacketHandle, bool)> {
        let mut left = *held;
        let heads = cells.from(self.first).map(|p| {
            left.packets -= 1;
            left.bytes -= p.ip_bytes();
            Head::new(p, left, pool.get(p.slot()))
        });
        let plan = self.codel.next(rules, now, heads);
        for _ in 0..plan.drop {
            let handle = cells.take_first(self).expect("only queued packets are dropped");
            held.packets -= 1;
            held.bytes -= handle.ip_bytes();
            dropped.push((handle, Cause::Sojourn));
        }
        Some((cells.take_first(self)?, plan.mark))
    }
}

/// Implements the part of [`Discipline`] that concerns the limit. Ports without data-centre bridging
/// use [`FqCoDel::push`] and [`FqCoDel::pop`] instead; only a port that treats the queue as one FIFO
/// calls these functions.
impl Discipline for FqCoDel {
    fn at_enqueue(&mut self, arrival: &Arrival) -> Verdict {
        arrival.fits(self.rules.config().limit)
    }
}
