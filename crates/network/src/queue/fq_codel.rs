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
use eastwest_engine::random::mix;
use eastwest_settings::{Octets, Section, key};
use eastwest_types::{Limit, Rate, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

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
        "a CoDel queue for every flow, served in turn (RFC 8290); ports are two-event ports";

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
        u64::from(self.flows) * size_of::<usize>() as u64
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Flow {
    packets: VecDeque<PacketHandle>,
    bytes: u64,
    deficit: i64,
    codel: CoDel,
    listed: bool,
}

/// FQ-CoDel queues of one port, or of one class of a port.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FqCoDel {
    config: FqCoDelConfig,
    mtu: u32,
    seed: u64,
    /// Queues by hash of the flow; `None` until the first packet is enqueued in a queue.
    flows: Vec<Option<Box<Flow>>>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
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
            flows: vec![None; config.flows.max(1) as usize],
            new: VecDeque::new(),
            old: VecDeque::new(),
            held: Backlog { packets: 0, bytes: 0 },
        }
    }

    /// Returns the number of packets and IP bytes in all queues together.
    pub fn backlog(&self) -> Backlog {
        self.held
    }

    /// Returns all queued packets, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &PacketHandle> {
        self.flows.iter().flatten().flat_map(|flow| flow.packets.iter())
    }

    fn flow(&mut self, number: u32) -> &mut Flow {
        let (config, mtu) = (self.config.codel, self.mtu);
        self.flows[number as usize].get_or_insert_with(|| {
            Box::new(Flow {
                packets: VecDeque::new(),
                bytes: 0,
                deficit: 0,
                codel: CoDel::new(config, mtu),
                listed: false,
            })
        })
    }

    /// Enqueues a packet and returns the packets that are dropped to make room; the new packet may
    /// be among the dropped packets. At an idle port (`idle` is true), the packet is sent at once,
    /// and nothing is dropped.
    pub fn push(&mut self, handle: PacketHandle, idle: bool) -> Vec<PacketHandle> {
        self.insert(handle);
        let mut out = Vec::new();
        while !idle && !self.fits() {
            out.extend(self.drop_from_longest());
        }
        out
    }

    fn fits(&self) -> bool {
        match self.config.codel.limit {
            Limit::Packets(n) => self.held.packets <= n as usize,
            Limit::Bytes(n) => self.held.bytes <= n,
        }
    }

    fn insert(&mut self, handle: PacketHandle) {
        let ip_len = u32::from(handle.ip_len());
        let random = mix(self.seed ^ u64::from(handle.hash()));
        let number = ((u128::from(random) * self.flows.len() as u128) >> 64) as u32;
        let quantum = i64::from(self.config.quantum);
        let flow = self.flow(number);
        flow.packets.push_back(handle);
        flow.bytes += u64::from(ip_len);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = quantum;
            self.new.push_back(number);
        }
        self.held.packets += 1;
        self.held.bytes += u64::from(ip_len);
    }

    fn drop_from_longest(&mut self) -> Option<PacketHandle> {
        let bytes = |n: u32| self.flows[n as usize].as_ref().map_or(0, |flow| flow.bytes);
        let longest = self.new.iter().chain(&self.old).copied().max_by_key(|&n| bytes(n))?;
        let flow = self.flow(longest);
        let dropped = flow.packets.pop_front()?;
        flow.bytes -= u64::from(dropped.ip_len());
        self.release(&dropped);
        Some(dropped)
    }

    fn release(&mut self, handle: &PacketHandle) {
        self.held.packets -= 1;
        self.held.bytes -= u64::from(handle.ip_len());
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
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let number = *list.front()?;
            let quantum = i64::from(self.config.quantum);
            let flow = self.flow(number);
            if flow.deficit <= 0 {
                flow.deficit += quantum;
                self.move_on(is_new, true);
                continue;
            }
            let Some((handle, mark)) = self.take(number, now, pool, dropped) else {
                // The queue of a new flow moves to the list of old flows once before it is removed
                // from the lists.
                let keep = is_new && !self.old.is_empty();
                self.flow(number).listed = keep;
                self.move_on(is_new, keep);
                continue;
            };
            self.flow(number).deficit -= i64::from(handle.ip_len());
            return Some((handle, mark));
        }
    }

    /// Removes the queue at the head of the list of new flows (`is_new`) or of old flows. With
    /// `keep`, the queue is then appended to the list of old flows.
    fn move_on(&mut self, is_new: bool, keep: bool) {
        let list = if is_new { &mut self.new } else { &mut self.old };
        let number = list.pop_front().expect("a flow is listed");
        if keep {
            self.old.push_back(number);
        }
    }

    fn take(
        &mut self,
        number: u32,
        now: Time,
        pool: &PacketPool,
        dropped: &mut Vec<(PacketHandle, Cause)>,
    ) -> Option<(PacketHandle, bool)> {
        let mut left = self.held;
        let flow = self.flows[number as usize].as_mut().expect("a listed flow has a queue");
        let heads = flow.packets.iter().map(|p| {
            left.packets -= 1;
            left.bytes -= u64::from(p.ip_len());
            Head::new(p, left, pool.get(p.slot()))
        });
        let plan = flow.codel.next(now, heads);
        let early: Vec<PacketHandle> = flow.packets.drain(..plan.drop).collect();
        let next = flow.packets.pop_front();
        for handle in early.iter().chain(&next) {
            flow.bytes -= u64::from(handle.ip_len());
        }
        for handle in early.iter().chain(&next) {
            self.release(handle);
        }
        dropped.extend(early.into_iter().map(|handle| (handle, Cause::Sojourn)));
        next.map(|handle| (handle, plan.mark))
    }
}

/// Implements the part of [`Discipline`] that concerns the limit. Two-event ports without
/// data-centre bridging use [`FqCoDel::push`] and [`FqCoDel::pop`] instead; only a port that treats
/// the queue as one FIFO calls these functions.
impl Discipline for FqCoDel {
    fn at_enqueue(&mut self, arrival: &Arrival) -> Verdict {
        arrival.fits(self.config.codel.limit)
    }
}
