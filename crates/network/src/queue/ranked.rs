//! Queue ordered by ranks: a push-in first-out queue (PIFO; Sivaraman et al., *Programmable Packet
//! Scheduling at Line Rate*, SIGCOMM 2016). A [discipline from another crate](super::custom)
//! computes the ranks.
//!
//! The rank of a packet is computed at its arrival and does not change. The packet with the
//! smallest rank leaves first; among equal ranks, the packet that arrived first. If the queue is
//! full, the packet with the largest rank is dropped; among equal ranks, the packet that arrived
//! last, which may be the arriving packet. Start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM
//! 1996), pFabric (Alizadeh et al., SIGCOMM 2013) and earliest deadline first are rules that can be
//! written as ranks.
//!
//! The PIFO paper does not specify which packet a full queue drops. This queue drops the packet
//! with the largest rank, as pFabric does.

use super::custom::Custom;
use super::decision::{Arrival, Backlog, Head, Verdict};
use super::discipline::Discipline;
use crate::losses::Cause;
use crate::packet_handle::PacketHandle;
use crate::pool::PacketPool;
use eastwest_types::Time;
use std::collections::{BTreeMap, BTreeSet};

/// Sort key of a queued packet: (rank, number in the order of arrival).
type Key = (u64, u64);

/// Queued packets in the order of their ranks, and the discipline that computes the ranks.
#[derive(Debug)]
pub struct Ranked {
    queue: Box<Custom>,
    packets: BTreeMap<Key, PacketHandle>,
    /// By flow, the packets in the order of arrival; `None` if packets of a flow may overtake each
    /// other.
    flows: Option<Flows>,
    bytes: u64,
    /// Number of packets that have arrived so far, dropped packets included.
    arrived: u64,
}

/// Queued packets by flow; the key is the hash of the flow, the entries are (number in the order of
/// arrival, rank).
#[derive(Debug, Default)]
struct Flows(BTreeMap<u64, BTreeSet<(u64, u64)>>);

impl Flows {
    fn add(&mut self, flow: u64, (rank, number): Key) {
        self.0.entry(flow).or_default().insert((number, rank));
    }

    fn remove(&mut self, flow: u64, (rank, number): Key) {
        if let Some(packets) = self.0.get_mut(&flow) {
            packets.remove(&(number, rank));
            if packets.is_empty() {
                self.0.remove(&flow);
            }
        }
    }

    /// Returns the packet of a flow that arrived first, without the packets in `gone`.
    fn first(&self, flow: u64, gone: &BTreeSet<Key>) -> Option<Key> {
        let mut keys = self.0.get(&flow)?.iter().map(|&(number, rank)| (rank, number));
        keys.find(|key| !gone.contains(key))
    }
}

impl Ranked {
    /// Returns an empty queue in which the discipline `queue` computes the ranks of packets.
    pub fn new(queue: Box<Custom>) -> Ranked {
        let flows = queue.keeps_flow_order().then(Flows::default);
        Ranked { queue, packets: BTreeMap::new(), flows, bytes: 0, arrived: 0 }
    }

    /// Returns the number of queued packets and their IP bytes.
    pub fn backlog(&self) -> Backlog {
        Backlog { packets: self.packets.len(), bytes: self.bytes }
    }

    /// Returns the queued packets in the order of their ranks.
    pub fn iter(&self) -> impl Iterator<Item = &PacketHandle> {
        self.packets.values()
    }

    /// Admits a packet and queues it, or drops it. Returns whether the packet must be marked with
    /// CE, or the cause of its drop. Packets that are dropped to make room are added to `dropped`.
    /// An idle port admits the packet even if the limit is exceeded.
    pub fn push(
        &mut self,
        handle: PacketHandle,
        arrival: &mut Arrival,
        pool: &PacketPool,
        dropped: &mut Vec<(PacketHandle, Cause)>,
    ) -> Result<bool, Cause> {
        arrival.backlog = self.backlog();
        let verdict = self.queue.at_enqueue(arrival);
        if let Some(cause) = verdict.loss() {
            return Err(cause);
        }
        let key = (self.queue.rank(arrival), self.arrived);
        self.arrived += 1;
        let (idle, ip_len, limit) = (arrival.idle(), arrival.ip_len, self.queue.limit());
        while !idle && !self.backlog().has_room_for(ip_len, limit) {
            let largest = self.packets.last_entry().filter(|last| *last.key() > key);
            let Some(last) = largest else {
                self.queue.at_push_out(arrival.now, &head(key, &handle, self.backlog(), pool));
                return if dropped.is_empty() {
                    Err(Cause::QueueFull)
                } else {
                    // The result can contain only one drop, so that several drops are returned in
                    // the list `dropped`.
                    dropped.push((handle, Cause::QueueFull));
                    Ok(false)
                };
            };
            let last = *last.key();
            let out = self.take(last, pool).expect("the packet is queued");
            self.queue.at_push_out(arrival.now, &head(last, &out, Backlog::default(), pool));
            dropped.push((out, Cause::QueueFull));
        }
        self.packets.insert(key, handle);
        if let Some(flows) = &mut self.flows {
            flows.add(arrival.flow(), key);
        }
        self.bytes += u64::from(handle.ip_len());
        Ok(verdict == Verdict::Mark)
    }

    /// Removes and returns the packet with the smallest rank, and whether it must be marked with
    /// CE; `None` if no packet is left. Packets that the discipline drops from the queue are added
    /// to `dropped`.
    pub fn pop(
        &mut self,
        now: Time,
        pool: &PacketPool,
        dropped: &mut Vec<(PacketHandle, Cause)>,
    ) -> Option<(PacketHandle, bool)> {
        let mut left = self.backlog();
        let packets = &self.packets;
        let mut head_of = move |key: Key, handle: &PacketHandle| {
            left.packets -= 1;
            left.bytes -= u64::from(handle.ip_len());
            head(key, handle, left, pool)
        };
        let plan = match &self.flows {
            None => self
                .queue
                .at_dequeue(now, || packets.iter().map(move |(&key, handle)| head_of(key, handle))),
            Some(flows) => self.queue.at_dequeue(now, || {
                let mut gone = BTreeSet::new();
                std::iter::from_fn(move || {
                    let key = next_of_flows(packets, flows, &gone, pool)?;
                    gone.insert(key);
                    Some(head_of(key, &packets[&key]))
                })
            }),
        };
        for _ in 0..plan.drop {
            let handle = self.take_first(pool).expect("only queued packets are dropped");
            dropped.push((handle, Cause::Sojourn));
        }
        self.take_first(pool).map(|handle| (handle, plan.mark))
    }

    fn take_first(&mut self, pool: &PacketPool) -> Option<PacketHandle> {
        let key = match &self.flows {
            None => *self.packets.first_key_value()?.0,
            Some(flows) => next_of_flows(&self.packets, flows, &BTreeSet::new(), pool)?,
        };
        self.take(key, pool)
    }

    /// Removes and returns a packet.
    fn take(&mut self, key: Key, pool: &PacketPool) -> Option<PacketHandle> {
        let handle = self.packets.remove(&key)?;
        self.bytes -= u64::from(handle.ip_len());
        if let Some(flows) = &mut self.flows {
            flows.remove(pool.get(handle.slot()).flow(&handle), key);
        }
        Some(handle)
    }
}

/// Returns the sort key of the packet that leaves next when the packets in `gone` have left: the
/// first packet of the flow to which the packet with the smallest rank belongs.
fn next_of_flows(
    packets: &BTreeMap<Key, PacketHandle>,
    flows: &Flows,
    gone: &BTreeSet<Key>,
    pool: &PacketPool,
) -> Option<Key> {
    let (_, handle) = packets.iter().find(|(key, _)| !gone.contains(key))?;
    flows.first(pool.get(handle.slot()).flow(handle), gone)
}

/// Returns the view of a queued packet for a discipline. `key` is the sort key of the packet, and
/// `left` the backlog behind it.
fn head<'p>(key: Key, handle: &PacketHandle, left: Backlog, pool: &'p PacketPool) -> Head<'p> {
    Head { rank: key.0, ..Head::new(handle, left, pool.get(handle.slot())) }
}
