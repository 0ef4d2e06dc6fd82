//! Queue that cuts packets: a packet without room loses its payload, and its header goes on (*trimming*; Cheng et
//! al., *Catch the Whole Lot in an Action*, NSDI 2014; Handley et al., NDP, SIGCOMM 2017; Ultra Ethernet 1.0). A
//! [discipline from another crate](super::custom) decides which packets are cut. The receiver learns of the loss
//! when the header arrives. A header that an earlier switch has cut is admitted as a header, and the discipline
//! is not asked.
//!
//! Headers wait among the data packets, in the order of arrival. They have room for as many bytes as data packets
//! have, counting full packets where the limit counts packets; beyond it, headers are lost. In a switch memory that
//! its queues share, the headers of a port count as a queue of their own, and a packet for which the memory has no
//! room is cut, whatever the discipline would decide.
//!
//! Only packets that are [trimmable](super::Arrival::trimmable) can be cut: the receiver must know what a header
//! without payload means.
//!
//! Differences to NDP: NDP sends headers first. Here they stay in order, because the receivers that know them, queue
//! pairs of RoCEv2, go back to the first missing packet: a header that overtakes data packets would look like a
//! loss of these. Of a full queue, NDP cuts the arriving packet or the last one, at random; here it is always the
//! arriving one.

use super::custom::Custom;
use super::decision::{Arrival, Backlog, Head, Place, Verdict};
use super::discipline::Discipline;
use crate::losses::Cause;
use crate::packet_handle::PacketHandle;
use crate::pool::PacketPool;
use eastwest_types::{Limit, Time};
use std::collections::VecDeque;

/// Data packets and headers that wait, and the discipline that decides.
#[derive(Debug)]
pub struct Trimming {
    queue: Box<Custom>,
    /// Packets in the order of arrival; whether each is a header.
    packets: VecDeque<(PacketHandle, bool)>,
    data: Backlog,
    headers: Backlog,
    /// Bytes of headers that may wait.
    room: u64,
}

/// State of a packet after a queue that cuts packets has admitted it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admitted {
    /// The packet waits as it came: with its payload, or as a header that an earlier switch has cut.
    AsItCame {
        /// Whether the packet must be marked with CE.
        mark: bool,
    },
    /// The queue has cut the packet, and its header waits, which has this number of IP bytes.
    Header(u16),
}

impl Trimming {
    /// Returns an empty queue at a port, whose discipline is `queue`.
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

    /// Admits a packet and queues it, whole or cut. Returns the cause of its drop otherwise.
    pub fn push(&mut self, handle: PacketHandle, arrival: &mut Arrival) -> Result<Admitted, Cause> {
        if arrival.packet.is_cut() {
            return self.push_header(handle, arrival);
        }
        arrival.backlog = self.data;
        let verdict = self.queue.at_enqueue(arrival);
        if let Some(cause) = verdict.loss() {
            return Err(cause);
        }
        if verdict != Verdict::Trim {
            self.append(handle, false);
            return Ok(Admitted::AsItCame { mark: verdict == Verdict::Mark });
        }
        self.push_header(handle, arrival)
    }

    /// Admits the header of a packet that the memory of the switch has no room for; `admits` says whether it
    /// admits a number of bytes, the second one, to a queue of the length in the first one.
    pub(crate) fn push_without_memory(
        &mut self,
        handle: PacketHandle,
        arrival: &Arrival,
        admits: impl FnOnce(u64, u32) -> bool,
    ) -> Result<Admitted, Cause> {
        let header = arrival.packet.header_bytes(handle.ip_len());
        let can_be_cut = arrival.packet.is_cut() || arrival.trimmable();
        if !can_be_cut || !admits(self.headers.bytes, header.into()) {
            return Err(Cause::SharedBuffer);
        }
        self.push_header(handle, arrival)
    }

    /// Queues the header of a packet, which may be cut already.
    fn push_header(&mut self, handle: PacketHandle, arrival: &Arrival) -> Result<Admitted, Cause> {
        let header = arrival.packet.header_bytes(handle.ip_len());
        if !arrival.idle() && self.headers.bytes + u64::from(header) > self.room {
            return Err(Cause::QueueFull);
        }
        self.append(handle.with_ip_len(header), true);
        match arrival.packet.is_cut() {
            true => Ok(Admitted::AsItCame { mark: false }),
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

    /// Removes and returns the next packet or header, and whether it is to be marked with CE; `None` if nothing
    /// is left. Packets that the discipline drops before it are added to `dropped`. The discipline is not asked
    /// about headers at the head, and sees the data packets up to the next header.
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
            let (handle, _) = self.take_first().expect("the plan drops what waits");
            dropped.push((handle, Cause::Sojourn));
        }
        let (handle, is_header) = self.take_first()?;
        Some((handle, plan.mark && !is_header))
    }
}

/// Returns a packet as a backlog.
fn one(handle: &PacketHandle) -> Backlog {
    Backlog { packets: 1, bytes: u64::from(handle.ip_len()) }
}
