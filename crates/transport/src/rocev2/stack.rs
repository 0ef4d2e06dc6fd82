//! All queue pairs of a simulation, and the NIC queues that serve them in turn.

use super::config::RoceV2Config;
use super::counters::Counters;
use super::interface::{Connect, Notice, Sink, TimerTarget};
use super::queue_pair::QueuePair;
use eastwest_types::{EndpointId, HostId, Packet, Rate, Time, rocev2};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Queue of a network card (NIC): the queue pairs of one card and codepoint that have packets to
/// send, served round-robin.
#[derive(Debug, Serialize, Deserialize)]
struct NicQueue {
    dscp: u8,
    /// Ends of queue pairs that may send, in the order of service.
    ready: VecDeque<EndpointId>,
    /// Time at which the port accepts the next packet of this queue.
    free_at: Time,
    armed_at: Time,
}

/// All queue pairs of a simulation, and the NIC queues that serve them.
#[derive(Serialize, Deserialize)]
pub struct Stack {
    config: RoceV2Config,
    ends: Vec<QueuePair>,
    /// Client ends of queue pairs that have ended: the time from which a new queue pair may use their
    /// slots, and the endpoint. The order does not depend on the order of events at one time. Endpoints
    /// of queue pairs that were aborted later are not removed.
    free: BinaryHeap<Reverse<(Time, u32)>>,
    /// NIC queues by number; queues without queue pairs are never served.
    nics: Vec<NicQueue>,
    /// Counters of all ends whose slot has been used again, or whose queue pair was aborted.
    closed_totals: Counters,
    /// Number of queue pairs in other parts of a partitioned run that were opened after the last
    /// slot of this stack.
    elsewhere: u32,
    /// First time at which the TIME-WAIT of an end is over or a queue pair was aborted; [`Time::NEVER`]
    /// if there is none.
    first_wait_ends: Time,
}

/// Host of a queue pair that other parts of a partitioned run simulate.
const NOBODY: HostId = HostId(u32::MAX);

impl Stack {
    /// Returns a stack without queue pairs.
    pub fn new(config: RoceV2Config) -> Stack {
        Stack {
            config,
            ends: Vec::new(),
            free: BinaryHeap::new(),
            nics: Vec::new(),
            closed_totals: Counters::default(),
            elsewhere: 0,
            first_wait_ends: Time::NEVER,
        }
    }

    /// Returns the settings of all queue pairs.
    pub fn config(&self) -> &RoceV2Config {
        &self.config
    }

    /// Opens a queue pair at time `now`. Returns the client's end, or `None` if all slots are in use.
    pub fn open(&mut self, now: Time, c: &Connect) -> Option<EndpointId> {
        let (slot, generation) = match self.next_free(now) {
            Some(slot) => {
                let old = self.ends[slot].id();
                (slot, old.generation().wrapping_add(1))
            }
            None => {
                let slot = self.ends.len() + 2 * self.elsewhere as usize;
                if slot + 2 > EndpointId::MAX_SLOTS {
                    return None;
                }
                self.elsewhere = 0;
                self.extend_to(slot);
                (slot, 0)
            }
        };
        let id = EndpointId::new(slot, generation);
        let pair = [(id, c.nics.0), (id.peer(), c.nics.1)].map(|(id, nic)| {
            self.create_nic(nic, c.dscp);
            QueuePair::new(id, c, nic, &self.config.control)
        });
        if slot == self.ends.len() {
            self.ends.extend(pair);
        } else {
            for (old, new) in self.ends[slot..].iter_mut().zip(pair) {
                self.closed_totals.add(old.counters());
                *old = new;
            }
        }
        Some(id)
    }

    /// Removes and returns a slot that a new queue pair may use at time `now`.
    fn next_free(&mut self, now: Time) -> Option<usize> {
        while let Some(&Reverse((from, client))) = self.free.peek()
            && from <= now
        {
            self.free.pop();
            let client = EndpointId(client);
            if self.is_live(client) {
                return Some(client.slot());
            }
        }
        None
    }

    /// Counts a queue pair whose ends other parts of a partitioned run simulate, so that later queue
    /// pairs have the slots of an undivided run. Returns false if all slots are in use.
    pub fn skip(&mut self) -> bool {
        self.elsewhere += 1;
        self.ends.len() + 2 * self.elsewhere as usize <= EndpointId::MAX_SLOTS
    }

    /// Reserves memory for this number of further queue pairs.
    pub fn reserve(&mut self, queue_pairs: usize) {
        self.ends.reserve(2 * queue_pairs);
    }

    /// Appends unused ends, so that there are `slots` ends.
    fn extend_to(&mut self, slots: usize) {
        let (client, server, rate) = (NOBODY, NOBODY, Rate(1));
        let (hashes, nics, rates) = ((0, 0), (0, 0), (rate, rate));
        let c = Connect { client, server, hashes, nics, rates, dscp: 0, class: 0 };
        let control = &self.config.control;
        let blank = |_| QueuePair::new(EndpointId(0), &c, 0, control);
        self.ends.extend((self.ends.len()..slots).map(blank));
    }

    /// Whether the slot of a queue pair may have become free before or at the time `now`.
    pub fn has_free_slots(&self, now: Time) -> bool {
        self.first_wait_ends <= now
    }

    /// Takes over the ends on the hosts for which `theirs` is true from the stack of another part of
    /// a partitioned run. Adds the other stack's counters of ended queue pairs.
    pub fn adopt_ends(&mut self, other: &mut Stack, theirs: impl Fn(HostId) -> bool) {
        self.extend_to(other.ends.len());
        for (mine, other) in self.ends.iter_mut().zip(&mut other.ends) {
            if theirs(other.local()) {
                std::mem::swap(mine, other);
            }
        }
        self.closed_totals.add(&other.closed_totals);
    }

    /// Leaves the counters of the ends on the hosts for which `owns` is false to other parts of a
    /// partitioned run. `is_first`: this part also keeps the counters of ended queue pairs.
    pub fn keep_own_counters(&mut self, is_first: bool, owns: &dyn Fn(HostId) -> bool) {
        let others = self.ends.iter_mut().filter(|end| !owns(end.local()));
        others.for_each(QueuePair::forget_counters);
        if !is_first {
            self.closed_totals = Counters::default();
        }
    }

    /// Counts a message of `bytes` payload bytes at end `id` of a queue pair, which another part of
    /// a partitioned run simulates.
    pub fn count_written(&mut self, id: EndpointId, bytes: u64) {
        self.ends[id.slot()].requester.written += bytes;
    }

    /// Creates the NIC queue `number` for packets with the codepoint `dscp`, unless it exists.
    fn create_nic(&mut self, number: u32, dscp: u8) {
        while self.nics.len() <= number as usize {
            self.nics.push(NicQueue {
                dscp,
                ready: VecDeque::new(),
                free_at: Time::ZERO,
                armed_at: Time::NEVER,
            });
        }
        self.nics[number as usize].dscp = dscp;
    }

    /// Posts a message of `bytes` payload bytes at end `id` of a queue pair, for its application.
    pub fn write(&mut self, now: Time, id: EndpointId, bytes: u64, sink: &mut impl Sink) {
        let end = &mut self.ends[id.slot()];
        debug_assert_eq!(end.id(), id);
        end.requester.write(bytes);
        self.service_end(now, id, true, sink);
    }

    /// Drops the bytes that were posted at end `id` and not sent, except for one packet, which ends
    /// the last message. Returns the length of the remaining stream in bytes.
    pub fn truncate(&mut self, id: EndpointId) -> u64 {
        let end = &mut self.ends[id.slot()];
        debug_assert_eq!(end.id(), id);
        end.requester.truncate(self.config.mtu)
    }

    /// Requests [`Notice::Delivered`] at end `id` once `bytes` payload bytes in total have arrived
    /// there. Returns whether they have arrived already; in this case there is no notice.
    pub fn expect(&mut self, id: EndpointId, bytes: u64) -> bool {
        let end = &mut self.ends[id.slot()];
        let arrived = end.received() >= bytes;
        end.responder.notify_at = if arrived { u64::MAX } else { bytes };
        arrived
    }

    /// Closes one end of a queue pair, for its application. The end finishes when all data that it has
    /// posted is acknowledged, or it has failed. It then answers late packets; TIME-WAIT after both
    /// ends have finished, another queue pair may use their slots.
    pub fn close(&mut self, now: Time, id: EndpointId, sink: &mut impl Sink) {
        if self.is_live(id) {
            self.ends[id.slot()].closing = true;
            self.wait_if_done(now, id, sink);
        }
    }

    /// Begins the TIME-WAIT of an end that is closing, once it has finished. Returns whether it has.
    #[cold]
    fn wait_if_done(&mut self, now: Time, id: EndpointId, sink: &mut impl Sink) -> bool {
        let end = &self.ends[id.slot()];
        if end.is_done() && !end.waits() {
            let until = now + self.config.time_wait;
            self.wait(id, until);
            sink.waits(id, until);
        }
        self.ends[id.slot()].waits()
    }

    /// Records that the TIME-WAIT of an end, which another part of a partitioned run may simulate,
    /// ends at the time `until`.
    pub fn wait(&mut self, id: EndpointId, until: Time) {
        if !self.is_live(id) {
            return; // aborted
        }
        self.first_wait_ends = self.first_wait_ends.min(until);
        self.ends[id.slot()].begin_wait(until);
        let peer = &self.ends[id.peer().slot()];
        if peer.waits() {
            let from = until.max(peer.wait_ends());
            self.free.push(Reverse((from, id.0.min(id.peer().0))));
        }
    }

    /// Ends a queue pair at once, without a [`Notice`]. Packets in flight will be ignored. The slot may
    /// be used again from the time `now` on.
    pub fn abort(&mut self, now: Time, id: EndpointId) {
        if !self.is_live(id) {
            return;
        }
        let client = id.slot() & !1;
        let generation = id.generation().wrapping_add(1);
        for (i, end) in self.ends[client..client + 2].iter_mut().enumerate() {
            // The slots get a new generation, so that late packets and timer events are ignored.
            self.closed_totals.add(end.counters());
            end.vacate(EndpointId::new(client + i, generation));
        }
        self.free.push(Reverse((now, EndpointId::new(client, generation).0)));
        self.first_wait_ends = self.first_wait_ends.min(now);
    }

    /// Sets the number of payload bytes that have arrived at end `id`, which another part of a
    /// partitioned run simulates, and the position up to which it has sent.
    pub fn set_progress(&mut self, id: EndpointId, received: u64, sent: u64) {
        let end = &mut self.ends[id.slot()];
        end.responder.expected = received;
        end.requester.highest = sent;
    }

    /// Whether `id` is an end of a queue pair whose slot was not used again, and that was not aborted.
    pub fn is_live(&self, id: EndpointId) -> bool {
        self.ends.get(id.slot()).is_some_and(|end| end.id() == id)
    }

    /// Handles a packet that has arrived at the host of its queue pair.
    pub fn on_packet(&mut self, now: Time, packet: &Packet, sink: &mut impl Sink) {
        let id = packet.dst_endpoint;
        if self.is_live(id) {
            self.ends[id.slot()].on_packet(now, packet, &self.config, sink);
            // Data does not change the deadlines of the end that receives it.
            let may_change_timer = packet.flags & rocev2::DATA == 0;
            self.service_end(now, id, may_change_timer, sink);
        }
    }

    /// Handles a timer event that was requested through [`Sink::arm`].
    pub fn on_timer(&mut self, now: Time, target: TimerTarget, sink: &mut impl Sink) {
        match target {
            TimerTarget::QueuePair(id) => {
                let end = &mut self.ends[id.slot()];
                if end.id() != id || end.armed_at != now {
                    return; // an earlier timer event has replaced this one
                }
                end.armed_at = Time::NEVER;
                if end.on_timers(now, &self.config) {
                    sink.notify(id, Notice::Failed);
                }
                self.service_end(now, id, true, sink);
            }
            TimerTarget::Nic(number) => {
                let nic = &mut self.nics[number as usize];
                if nic.armed_at == now {
                    nic.armed_at = Time::NEVER;
                    self.serve_nic(now, number, sink);
                }
            }
        }
    }

    /// Sends the packets of one end of a queue pair after an event, and arms its timer if the event may
    /// have changed its deadlines and it has not finished.
    fn service_end(
        &mut self,
        now: Time,
        id: EndpointId,
        may_change_timer: bool,
        sink: &mut impl Sink,
    ) {
        let end = &mut self.ends[id.slot()];
        if !end.queued && end.may_send(now) {
            end.queued = true;
            let nic = end.nic;
            self.nics[nic as usize].ready.push_back(id);
            self.serve_nic(now, nic, sink);
        }
        if self.ends[id.slot()].closing && self.wait_if_done(now, id, sink) {
            return;
        }
        if may_change_timer {
            self.ends[id.slot()].rearm(sink);
        }
    }

    /// Sends packets of the queue pairs in a NIC queue in turn, while the port accepts packets.
    fn serve_nic(&mut self, now: Time, number: u32, sink: &mut impl Sink) {
        let full = self.config.mtu + RoceV2Config::HEADERS;
        let nic = &mut self.nics[number as usize];
        while let Some(&id) = nic.ready.front() {
            let end = &mut self.ends[id.slot()];
            if nic.free_at <= now {
                nic.free_at = sink.takes_more_at(end.flow(), nic.dscp, full, false);
            }
            if nic.free_at > now {
                if nic.armed_at != nic.free_at {
                    nic.armed_at = nic.free_at;
                    sink.arm(nic.free_at, TimerTarget::Nic(number));
                }
                return;
            }
            if end.id() != id {
                nic.ready.pop_front(); // the queue pair has ended
                continue;
            }
            if end.may_send(now) {
                let ip_len = end.send_next(now, &self.config, sink);
                nic.free_at = sink.takes_more_at(end.flow(), nic.dscp, ip_len, true);
            }
            end.queued = end.may_send(now);
            if !end.queued {
                nic.ready.pop_front();
            } else if nic.ready.len() > 1 {
                nic.ready.rotate_left(1);
            }
            end.rearm(sink);
        }
    }

    /// Returns one end of a queue pair, to read its counters and state.
    pub fn end(&self, id: EndpointId) -> &QueuePair {
        &self.ends[id.slot()]
    }

    /// Returns the sums of the counters of all ends, including those of ended queue pairs.
    pub fn totals(&self) -> Counters {
        let mut sum = self.closed_totals;
        for end in &self.ends {
            sum.add(end.counters());
        }
        sum
    }
}
