//! Queue that cuts packets: a packet without room loses its payload, and its header goes on (*trimming*; Cheng et
//! al., *Catch the Whole Lot in an Action*, NSDI 2014; Handley et al., NDP, SIGCOMM 2017; Ultra Ethernet 1.0). A
//! [discipline from another crate](super::custom) decides which packets are cut. The receiver learns of the loss
//! as soon as the header arrives.
//!
//! Headers wait in a queue of their own. As in NDP (section 3.1), headers go first, but after ten of them a data
//! packet goes if one waits. That queue has room for as many bytes as the queue of data packets, counting full
//! packets where the limit counts packets; beyond it, headers are lost.
//!
//! Only packets that are [trimmable](super::Arrival::trimmable) can be cut: the receiver must know what a header
//! without payload means. Difference to NDP: of a full queue, NDP cuts the arriving packet or the last one, at
//! random; here it is always the arriving one.

use super::custom::Custom;
use super::decision::{Arrival, Backlog, Head, Place, Verdict};
use super::discipline::Discipline;
use crate::losses::Cause;
use crate::packet_handle::PacketHandle;
use crate::pool::PacketPool;
use eastwest_types::{Limit, Time};
use std::collections::VecDeque;

/// Headers in a row after which a data packet goes.
const MOST_HEADERS_IN_A_ROW: u32 = 10;

/// Data packets and headers that wait, and the discipline that decides.
#[derive(Debug)]
pub struct Trimming {
    queue: Box<Custom>,
    data: Fifo,
    headers: Fifo,
    /// Bytes of headers that may wait.
    room: u64,
    /// Headers sent since the last data packet.
    in_a_row: u32,
}

/// Packets in the order of arrival.
#[derive(Debug, Default)]
struct Fifo {
    packets: VecDeque<PacketHandle>,
    bytes: u64,
}

impl Fifo {
    fn push(&mut self, handle: PacketHandle) {
        self.bytes += u64::from(handle.ip_len());
        self.packets.push_back(handle);
    }

    fn pop(&mut self) -> Option<PacketHandle> {
        let handle = self.packets.pop_front()?;
        self.bytes -= u64::from(handle.ip_len());
        Some(handle)
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.packets.len(), bytes: self.bytes }
    }
}

/// What a queue that cuts packets has done with an admitted one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admitted {
    /// The packet waits as it came, to be marked or not.
    Whole {
        /// Whether the packet must be marked with CE.
        mark: bool,
    },
    /// The header of the packet waits, which has this number of IP bytes.
    Header(u16),
}

impl Trimming {
    /// Returns an empty queue at a port, whose discipline is `queue`.
    pub fn new(queue: Box<Custom>, place: &Place) -> Trimming {
        let room = match queue.limit() {
            Limit::Packets(n) => u64::from(n) * u64::from(place.mtu),
            Limit::Bytes(bytes) => bytes,
        };
        Trimming { queue, data: Fifo::default(), headers: Fifo::default(), room, in_a_row: 0 }
    }

    /// Returns the number of queued packets and headers, and their IP bytes.
    pub fn backlog(&self) -> Backlog {
        self.data.backlog().and(self.headers.backlog())
    }

    /// Returns the queued packets and headers.
    pub fn iter(&self) -> impl Iterator<Item = &PacketHandle> {
        self.headers.packets.iter().chain(&self.data.packets)
    }

    /// Admits a packet and queues it, whole or cut. Returns the cause of its drop otherwise.
    pub fn push(&mut self, handle: PacketHandle, arrival: &mut Arrival) -> Result<Admitted, Cause> {
        arrival.backlog = self.data.backlog();
        let verdict = self.queue.at_enqueue(arrival);
        if let Some(cause) = verdict.loss() {
            return Err(cause);
        }
        if verdict != Verdict::Trim {
            self.data.push(handle);
            return Ok(Admitted::Whole { mark: verdict == Verdict::Mark });
        }
        let header = arrival.packet.header_bytes(handle.ip_len());
        if !arrival.idle() && self.headers.bytes + u64::from(header) > self.room {
            return Err(Cause::QueueFull);
        }
        self.headers.push(handle.with_ip_len(header));
        Ok(Admitted::Header(header))
    }

    /// Removes and returns the next packet or header, and whether it is to be marked with CE; `None` if nothing
    /// is left. Packets that the discipline drops before it are added to `dropped`.
    pub fn pop(
        &mut self,
        now: Time,
        pool: &PacketPool,
        dropped: &mut Vec<(PacketHandle, Cause)>,
    ) -> Option<(PacketHandle, bool)> {
        if (self.in_a_row < MOST_HEADERS_IN_A_ROW || self.data.packets.is_empty())
            && let Some(header) = self.headers.pop()
        {
            self.in_a_row += 1;
            return Some((header, false));
        }
        self.in_a_row = 0;
        let mut left = self.data.backlog();
        let packets = &self.data.packets;
        let plan = self.queue.at_dequeue(now, || {
            packets.iter().map(move |handle| {
                left.packets -= 1;
                left.bytes -= u64::from(handle.ip_len());
                Head::new(handle, left, pool.get(handle.slot()))
            })
        });
        for _ in 0..plan.drop {
            let handle = self.data.pop().expect("the plan drops what waits");
            dropped.push((handle, Cause::Sojourn));
        }
        match self.data.pop() {
            Some(handle) => Some((handle, plan.mark)),
            None => self.headers.pop().map(|header| (header, false)),
        }
    }
}
