//! Queue with packet trimming: the payload of a packet that does not fit is removed, and its header
//! is queued (Cheng et al., *Catch the Whole Lot in an Action*, NSDI 2014; Handley et al., NDP,
//! SIGCOMM 2017; Ultra Ethernet 1.0). A [discipline from another crate](super::custom) decides
//! which packets are trimmed. The receiver detects the loss when the header arrives. A packet that
//! an earlier switch has trimmed is queued as a header without a call of the discipline.
//!
//! Headers are queued among the data packets, in the order of arrival. Headers may use as many
//! bytes as the limit allows for data packets (a limit in packets counts as full packets); further
//! headers are dropped. In a [shared memory](crate::shared_buffer), the threshold applies to the
//! headers of a port as to a queue of their own; a packet that does not fit into the memory is
//! trimmed without a call of the discipline.
//!
//! Only packets that are [trimmable](super::Arrival::trimmable) can be trimmed: the receiver must
//! be able to handle a header without payload.
//!
//! Differences to NDP: NDP sends headers first. Here headers stay in order, because their
//! receivers, queue pairs of RoCEv2, go back to the first missing packet: a header that overtakes
//! data packets would indicate a loss of these packets. At a full queue, NDP trims at random the
//! arriving packet or the last queued packet; here always the arriving packet is trimmed.

use super::custom::Custom;
use super::decision::{Arrival, Backlog, Head, Place, Verdict};
use super::discipline::Discipline;
use crate::losses::Cause;
use crate::packet_handle::PacketHandle;
use crate::pool::PacketPool;
use eastwest_types::{Limit, Time};
use std::collections::VecDeque;

/// Queued data packets and headers, and the discipline that decides about arriving packets.
#[derive(Debug)]
pub struct Trimming {
    queue: Box<Custom>,
    /// Packets in the order of arrival, each with whether it is a header.
    packets: VecDeque<(PacketHandle, bool)>,
    data: Backlog,
    headers: Backlog,
    /// Largest number of IP bytes of queued headers.
    room: u64,
}

/// Form in which a queue with trimming has admitted a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admitted {
    /// The packet is queued in the form in which it arrived: with its payload, or as a header that an
    /// earlier switch has trimmed.
    Unchanged {
        /// Whether the packet must be marked with CE.
        mark: bool,
    },
    /// The queue has removed the payload; the header, with this number of IP bytes, is queued.
    Header(u16),
}

impl Trimming {
    /// Returns an empty queue with the discipline `queue`; `place` describes the port.
    pub fn new(queue: Box<Custom>, place: &Place) -> Trimming {
        let room = match queue.limit() {
            Limit::Packets(n) => u64::from(n) * u64::from(place.mtu),
            Limit::Bytes(bytes) => bytes,
        };
        let (data, headers) = (Backlog::default(), Backlog::default());
        Trimming { queue, packets: VecDeque::new(), data, headers, room }
    }

    /// Returns the number of queued packets and headers, and their IP bytes.
    pub fn backlog(&self) -> Backlog {
        self.data.and(self.headers)
    }

    /// Returns the queued packets and headers.
    pub fn iter(&self) -> impl Iterator<Item = &PacketHandle> {
        self.packets.iter().map(|(handle, _)| handle)
    }

    /// Admits a packet and queues it, whole or trimmed, or drops it and returns the cause.
    pub fn push(&mut self, handle: PacketHandle, arrival: &mut Arrival) -> Result<Admitted, Cause> {
        if arrival.packet.is_trimmed() {
            return self.push_header(handle, arrival);
        }
        arrival.backlog = self.data;
        let verdict = self.queue.at_enqueue(arrival);
        if let Some(cause) = verdict.loss() {
            return Err(cause);
        }
        if verdict != Verdict::Trim {
            self.append(handle, false);
            return Ok(Admitted::Unchanged { mark: verdict == Verdict::Mark });
        }
        self.push_header(handle, arrival)
    }

    /// Admits the header of a packet that does not fit into the shared memory of the switch, or drops
    /// the packet and returns the cause. `admits(queued, bytes)` is whether the memory has room for
    /// `bytes` more IP bytes in a queue of `queued` IP bytes.
    pub(crate) fn push_without_memory(
        &mut self,
        handle: PacketHandle,
        arrival: &Arrival,
        admits: impl FnOnce(u64, u32) -> bool,
    ) -> Result<Admitted, Cause> {
        let header = arrival.packet.header_bytes(handle.ip_len());
        let may_be_header = arrival.packet.is_trimmed() || arrival.trimmable();
        if !may_be_header || !admits(self.headers.bytes, header.into()) {
            return Err(Cause::SharedBuffer);
        }
        self.push_header(handle, arrival)
    }

    /// Queues the header of a packet, which an earlier switch may have trimmed. Drops it if the
    /// queued headers use all bytes for headers.
    fn push_header(&mut self, handle: PacketHandle, arrival: &Arrival) -> Result<Admitted, Cause> {
        let header = arrival.packet.header_bytes(handle.ip_len());
        if !arrival.idle() && self.headers.bytes + u64::from(header) > self.room {
            return Err(Cause::QueueFull);
        }
        self.append(handle.with_ip_len(header), true);
        match arrival.packet.is_trimmed() {
            true => Ok(Admitted::Unchanged { mark: false }),
            false => Ok(Admitted::Header(header)),
        }
    }

    fn append(&mut self, handle: PacketHandle, is_header: bool) {
        let kind = if is_header { &mut self.headers } else { &mut self.data };
        *kind = kind.and(one(&handle));
        self.packets.push_back((handle, is_header));
    }

    fn take_first(&mut self) -> Option<(PacketHandle, bool)> {
        let (handle, is_header) = self.packets.pop_front()?;
        let kind = if is_header { &mut self.headers } else { &mut self.data };
        *kind = kind.without(one(&handle));
        Some((handle, is_header))
    }

    /// Removes and returns the next packet or header, and whether it must be marked with CE; `None`
    /// if the queue is empty. Packets that the discipline drops are added to `dropped`. The
    /// discipline is not called for a header at the head of the queue, and sees only the data
    /// packets before the next header.
    pub fn pop(
        &mut self,
        now: Time,
        pool: &PacketPool,
        dropped: &mut Vec<(PacketHandle, Cause)>,
    ) -> Option<(PacketHandle, bool)> {
        if self.packets.front().is_none_or(|&(_, is_header)| is_header) {
            return self.take_first().map(|(header, _)| (header, false));
        }
        let mut left = self.data;
        let packets = &self.packets;
        let plan = self.queue.at_dequeue(now, || {
            packets.iter().take_while(|(_, is_header)| !is_header).map(move |(handle, _)| {
                left = left.without(one(handle));
                Head::new(handle, left, pool.get(handle.slot()))
            })
        });
        for _ in 0..plan.drop {
            let (handle, _) = self.take_first().expect("only queued packets are dropped");
            dropped.push((handle, Cause::Sojourn));
        }
        let (handle, is_header) = self.take_first()?;
        Some((handle, plan.mark && !is_header))
    }
}

/// Returns the backlog of one packet.
fn one(handle: &PacketHandle) -> Backlog {
    Backlog { packets: 1, bytes: u64::from(handle.ip_len()) }
}
