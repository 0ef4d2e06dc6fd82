//! Pool of the packets in flight. Each packet is stored in a slot; slots are reused, and links move
//! the number of the slot instead of the packet. A slot is half a cache line, since with thousands
//! of hosts packets are most of the data that a run accesses. Properties in the
//! [handle](crate::link::PacketHandle) of a packet are not stored again, and stream positions have
//! only their low 32 bits, as in a real header. SACK blocks, which few packets have, are in a
//! separate table.

use crate::packet_handle::PacketHandle;
use crate::telemetry::{PacketTelemetry, Telemetry};
use eastwest_engine::memory;
use eastwest_engine::random::mix;
use eastwest_types::{
    EndpointId, HopTelemetry, HostId, NO_SACK, Packet, PacketKind, SackBlocks, Time, ecn, rocev2,
};
use serde::{Deserialize, Serialize};

/// A packet as the pool stores it, in 32 bytes. Stream positions have their low 32 bits, and
/// properties in the packet handle are left out.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[repr(C, align(32))]
pub struct Stored {
    born: Time,
    /// Low 32 bits of the stream positions [`Packet::seq`] and [`Packet::ack`]; the receiving
    /// endpoint knows the high 32 bits.
    seq: u32,
    ack: u32,
    /// Receiving endpoint, see [`Packet::dst_endpoint`].
    pub dst_endpoint: EndpointId,
    window: u32,
    /// Timestamp echo or, if the flag [`Stored::WITH_SACK`] is set, the index of the entry with the
    /// SACK blocks and the echo.
    echo_or_sack: u32,
    /// Payload length in bytes (bits 0–13), and [`Packet::notes`] (bits 14–15).
    payload_and_notes: u16,
    /// TCP flags. The URG bit, which no transport sets, is used for [`Stored::WITH_SACK`].
    flags: u8,
    tos: u8,
}

const _: () = assert!(std::mem::size_of::<Stored>() == 32);

impl Stored {
    /// Bit of `flags` that is set if `echo_or_sack` is the index of an entry with SACK blocks.
    const WITH_SACK: u8 = 1 << 5;
    /// Number of bits of the payload length: packets have at most 9216 B.
    const PAYLOAD_BITS: u32 = 14;

    /// Returns the stored form of a packet without its SACK blocks.
    #[inline]
    pub(crate) fn new(packet: &Packet) -> Stored {
        Stored {
            born: packet.born,
            seq: packet.seq as u32,
            ack: packet.ack as u32,
            dst_endpoint: packet.dst_endpoint,
            window: packet.window,
            echo_or_sack: packet.ts_echo_us,
            payload_and_notes: packet.payload | u16::from(packet.notes) << Stored::PAYLOAD_BITS,
            flags: packet.flags,
            tos: packet.tos,
        }
    }

    /// Returns the time at which the sending host created the packet.
    pub(crate) fn born(&self) -> Time {
        self.born
    }

    /// Returns the differentiated services codepoint (DSCP), 0 to 63.
    pub fn dscp(&self) -> u8 {
        self.tos >> 2
    }

    /// Returns [`Packet::notes`], and the fields that hold the content of a congestion notification
    /// message (CNM): low 32 bits of `seq` and `ack`, window, and timestamp echo.
    pub(crate) fn raw(&self) -> (u8, [u32; 4]) {
        (self.notes(), [self.seq, self.ack, self.window, self.echo_or_sack])
    }

    fn payload(&self) -> u16 {
        self.payload_and_notes & ((1 << Stored::PAYLOAD_BITS) - 1)
    }

    fn notes(&self) -> u8 {
        (self.payload_and_notes >> Stored::PAYLOAD_BITS) as u8
    }

    /// Returns the kind of the packet, see [`Packet::kind`].
    pub fn kind(&self) -> PacketKind {
        PacketKind::of(self.payload(), self.flags, self.notes())
    }

    /// Whether a switch may remove the payload of the packet; its receiver then requests the
    /// payload again at once. True for data packets of RoCEv2.
    pub fn is_trimmable(&self) -> bool {
        self.payload() > 0 && self.notes() == Packet::DATAGRAM && self.flags & rocev2::DATA != 0
    }

    /// Whether a switch has removed the payload of this data packet of RoCEv2 (packet trimming), so
    /// that it consists of headers only.
    pub fn is_trimmed(&self) -> bool {
        self.payload() == 0 && self.notes() == Packet::DATAGRAM && self.flags & rocev2::DATA != 0
    }

    /// Whether the packet has payload bytes.
    pub fn has_payload(&self) -> bool {
        self.payload() > 0
    }

    /// Returns the IP bytes of the packet without its payload. `ip_len` are its IP bytes with
    /// payload.
    pub(crate) fn header_bytes(&self, ip_len: u16) -> u16 {
        ip_len.saturating_sub(self.payload())
    }

    /// Returns the TCP flags, see [`eastwest_types::flag`].
    pub fn flags(&self) -> u8 {
        self.flags
    }

    /// Returns the stream position of the first payload byte, modulo 2³²: the number of bytes that
    /// the connection has sent before in this direction.
    pub fn position(&self) -> u32 {
        self.seq
    }

    /// Returns a number that is equal for all packets that a connection sends in this direction: a
    /// hash of receiving host, receiving endpoint and five-tuple. Connections that exist at the
    /// same time have different numbers. For datagrams, class and sending host replace the
    /// endpoint. `handle` is the handle of this packet.
    pub(crate) fn flow(&self, handle: &PacketHandle) -> u64 {
        let to = u64::from(handle.dst().0) << 32 | u64::from(self.dst_endpoint.0);
        let from = if self.kind() == PacketKind::Datagram { self.window } else { 0 };
        mix(mix(to) ^ u64::from(from) << 16 ^ u64::from(handle.hash()))
    }

    /// Whether the packet is ECT: its transport supports ECN (RFC 3168).
    pub fn understands_marks(&self) -> bool {
        self.tos & ecn::MASK != ecn::NOT_ECT
    }

    fn sack(&self) -> u32 {
        if self.flags & Stored::WITH_SACK == 0 { NO_SACK } else { self.echo_or_sack }
    }
}

/// SACK blocks and timestamp echo of a packet. In [`Stored`], the index of this entry replaces the
/// timestamp echo.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Side {
    blocks: SackBlocks,
    ts_echo_us: u32,
}

impl Stored {
    /// Returns the stream positions of the payload (low 32 bits): position of the first byte, and
    /// position after the last byte. The positions of a datagram, which has no stream, are equal.
    pub(crate) fn positions(&self) -> (u32, u32) {
        let is_datagram = self.notes() & Packet::DATAGRAM != 0 && self.flags == 0;
        let bytes = if is_datagram { 0 } else { u32::from(self.payload()) };
        (self.seq, self.seq.wrapping_add(bytes))
    }
}

/// Link on which a packet has entered its current node, and its priority, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IngressTag(u32);

impl IngressTag {
    /// Returns the tag of a packet with priority `priority` that entered its node on link
    /// `ingress`, or that the node [has created](crate::dcb::queued_packet).
    #[inline]
    pub fn new(ingress: u32, priority: u8) -> IngressTag {
        IngressTag(ingress << 3 | u32::from(priority & 7))
    }

    /// Returns the link on which the packet entered its node. For a packet created by the node, the
    /// returned number belongs to no link.
    #[inline]
    pub fn link(self) -> u32 {
        self.0 >> 3
    }

    /// Returns the priority of the packet, 0 to 7.
    #[inline]
    pub fn priority(self) -> u8 {
        (self.0 & 7) as u8
    }
}

impl std::fmt::Debug for PacketPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PacketPool").field("in_use", &self.in_use()).finish_non_exhaustive()
    }
}

/// All packets in flight in the fabric.
#[derive(Default, Serialize, Deserialize)]
pub struct PacketPool {
    slots: Vec<Stored>,
    /// Numbers of free slots. The slot freed last is reused first, while it is still in the cache.
    free: Vec<u32>,
    /// Number of slots whose packets only other parts of a partitioned run have in flight.
    left_out: usize,
    /// Number of the sending host of each packet, by slot; only with QCN.
    sources: Vec<u32>,
    /// Ingress link and priority of each packet at its current node, by slot; only with data-centre
    /// bridging (DCB).
    ingress_tags: Vec<IngressTag>,
    /// By slot, the remaining bytes of a packet with payload, see [`PacketPool::remaining`].
    remaining: Vec<u64>,
    /// Whether transports set the remaining bytes of packets, because a discipline reads them.
    keeps_remaining: bool,
    /// By slot, the tag of the packet, a number that switches write; used only with routing that
    /// [sees every packet](crate::routing::RoutingModel::sees_all).
    tags: Vec<u64>,
    /// Telemetry records of packets; `None` if no congestion control reads them.
    telemetry: Option<Box<Telemetry>>,
    sacks: Vec<Side>,
    free_sacks: Vec<u32>,
}

impl PacketPool {
    /// Stores a packet and returns its slot. Its SACK blocks must have been
    /// [stored](PacketPool::put_sack) before.
    // The function is inlined, so that the fields of the packet pass through registers.
    #[inline(always)]
    pub fn insert(&mut self, packet: &Packet) -> u32 {
        match packet.sack {
            NO_SACK => self.store(Stored::new(packet)),
            _ => self.insert_with_sack(packet),
        }
    }

    #[inline(never)]
    fn insert_with_sack(&mut self, packet: &Packet) -> u32 {
        let mut stored = Stored::new(packet);
        self.sacks[packet.sack as usize].ts_echo_us = packet.ts_echo_us;
        stored.echo_or_sack = packet.sack;
        stored.flags |= Stored::WITH_SACK;
        self.store(stored)
    }

    #[inline]
    fn store(&mut self, stored: Stored) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| self.new_slot());
        self.slots[slot as usize] = stored;
        slot
    }

    /// Adds a slot and returns its number.
    #[cold]
    #[inline(never)]
    fn new_slot(&mut self) -> u32 {
        if self.slots.len() == self.slots.capacity() {
            memory::grow(&mut self.slots);
        }
        self.slots.push(Stored::new(&Packet::blank(HostId(0))));
        (self.slots.len() - 1) as u32
    }

    /// Returns the slot of the next packet that will be inserted.
    pub fn next_slot(&self) -> u32 {
        self.free.last().copied().unwrap_or(self.slots.len() as u32)
    }

    /// Frees a slot and returns its packet. Only the low 32 bits of `seq` and `ack` are set, and
    /// fields that only switches read are missing. The SACK blocks are removed separately, by
    /// [`PacketPool::take_sack`].
    #[inline]
    pub fn remove(&mut self, slot: u32) -> Packet {
        self.free.push(slot);
        self.packet(slot)
    }

    /// Removes and returns a packet, so that another pool can store it. Its SACK blocks, if any,
    /// are appended to `sides`.
    #[inline(always)]
    pub(crate) fn detach(&mut self, slot: u32, sides: &mut Vec<Side>) -> Stored {
        let stored = self.slots[slot as usize];
        self.free.push(slot);
        let side = stored.sack();
        if side != NO_SACK {
            self.free_sacks.push(side);
            sides.push(self.sacks[side as usize]);
        }
        stored
    }

    /// Returns a copy of a packet, so that another pool can store it, too. Its SACK blocks, if any,
    /// are appended to `sides`.
    pub(crate) fn copy_out(&self, slot: u32, sides: &mut Vec<Side>) -> Stored {
        let stored = self.slots[slot as usize];
        if stored.sack() != NO_SACK {
            sides.push(self.sacks[stored.sack() as usize]);
        }
        stored
    }

    /// Removes a packet together with its SACK blocks.
    pub(crate) fn discard(&mut self, slot: u32) {
        let packet = self.remove(slot);
        self.take_sack(packet.sack);
    }

    /// Adds the packets of another pool at the end of a run: afterwards only the numbers of packets
    /// and SACK blocks are read, so that handles of the other pool are not changed.
    pub(crate) fn add_counts_of(&mut self, other: &PacketPool) {
        self.slots.extend_from_slice(&other.slots[..other.in_use()]);
        self.sacks.extend_from_slice(&other.sacks[..other.sacks_in_use()]);
    }

    /// Stores a packet that was detached from another pool, and returns its slot. The SACK blocks
    /// are the next item of `sides`, if the packet has any.
    #[inline(always)]
    pub(crate) fn attach(
        &mut self,
        detached: &Stored,
        sides: &mut impl Iterator<Item = Side>,
    ) -> u32 {
        let slot = self.store(*detached);
        if detached.sack() != NO_SACK {
            let side = sides.next().expect("the SACK blocks of a packet move with it");
            self.attach_sack(slot, side);
        }
        slot
    }

    #[inline(never)]
    fn attach_sack(&mut self, slot: u32, side: Side) {
        let index = self.put_sack(side.blocks);
        self.sacks[index as usize].ts_echo_us = side.ts_echo_us;
        self.slots[slot as usize].echo_or_sack = index;
    }

    /// Returns a copy of a packet in the form of [`PacketPool::remove`], with its SACK blocks
    /// (`None` if the packet has none). The packet stays in the pool.
    pub fn peek(&self, slot: u32) -> (Packet, Option<SackBlocks>) {
        let packet = self.packet(slot);
        (packet, self.sacks.get(packet.sack as usize).map(|side| side.blocks))
    }

    #[inline]
    fn packet(&self, slot: u32) -> Packet {
        let s = self.slots[slot as usize];
        let (sack, ts_echo_us) = match s.flags & Stored::WITH_SACK {
            0 => (NO_SACK, s.echo_or_sack),
            _ => (s.echo_or_sack, self.sacks[s.echo_or_sack as usize].ts_echo_us),
        };
        Packet {
            born: s.born,
            seq: u64::from(s.seq),
            ack: u64::from(s.ack),
            dst_endpoint: s.dst_endpoint,
            window: s.window,
            ts_echo_us,
            sack,
            payload: s.payload(),
            flags: s.flags & !Stored::WITH_SACK,
            tos: s.tos,
            notes: s.notes(),
            ..Packet::blank(HostId(0))
        }
    }

    /// Returns the packet in a slot.
    #[inline]
    pub fn get(&self, slot: u32) -> &Stored {
        &self.slots[slot as usize]
    }

    /// Sets the CE mark ("congestion experienced") on the packet in a slot, if its transport
    /// supports ECN (RFC 3168, section 5). Returns false if the packet was already marked or its
    /// transport does not support ECN.
    pub fn mark(&mut self, slot: u32) -> bool {
        let tos = &mut self.slots[slot as usize].tos;
        let marked = *tos & ecn::MASK != ecn::NOT_ECT && *tos & ecn::MASK != ecn::CE;
        if marked {
            *tos |= ecn::CE;
        }
        marked
    }

    /// Removes the payload of the packet in a slot. The stream position of the packet does not
    /// change.
    pub(crate) fn trim(&mut self, slot: u32) {
        self.slots[slot as usize].payload_and_notes &= !((1 << Stored::PAYLOAD_BITS) - 1);
    }

    /// Sets the sending host of the packet in a slot.
    pub(crate) fn set_source(&mut self, slot: u32, host: u32) {
        let slot = slot as usize;
        if slot >= self.sources.len() {
            self.sources.resize(slot + 1, 0);
        }
        self.sources[slot] = host;
    }

    /// Returns the sending host of the packet in a slot; host 0 if no source was set.
    pub(crate) fn source(&self, slot: u32) -> HostId {
        HostId(self.sources.get(slot as usize).copied().unwrap_or(0))
    }

    /// Sets the ingress link and priority of the packet in a slot, at its current node.
    #[inline]
    pub(crate) fn set_ingress_tag(&mut self, slot: u32, ingress_tag: IngressTag) {
        let slot = slot as usize;
        if slot >= self.ingress_tags.len() {
            self.ingress_tags.resize(self.slots.len().max(slot + 1), IngressTag(0));
        }
        self.ingress_tags[slot] = ingress_tag;
    }

    /// Returns the ingress link and priority of the packet in a slot, at its current node.
    /// [`PacketPool::set_ingress_tag`] must have set both.
    #[inline]
    pub(crate) fn ingress_tag(&self, slot: u32) -> IngressTag {
        self.ingress_tags[slot as usize]
    }

    /// Sets the tag of the packet in a slot. A routing policy of the user computes the tag.
    pub(crate) fn set_tag(&mut self, slot: u32, tag: u64) {
        let slot = slot as usize;
        if slot >= self.tags.len() {
            self.tags.resize(self.slots.len().max(slot + 1), 0);
        }
        self.tags[slot] = tag;
    }

    /// Returns the tag that a switch has set for the packet in a slot; 0 if no tag was set.
    pub(crate) fn tag(&self, slot: u32) -> u64 {
        self.tags.get(slot as usize).copied().unwrap_or(0)
    }

    /// Starts to store [remaining bytes](PacketPool::remaining), for disciplines that read them.
    pub(crate) fn keep_remaining(&mut self) {
        self.keeps_remaining = true;
    }

    /// Whether transports have to call [`PacketPool::set_remaining`] before each packet with
    /// payload.
    #[inline]
    pub fn keeps_remaining(&self) -> bool {
        self.keeps_remaining
    }

    /// Sets the remaining bytes of the packet that will be inserted next: payload bytes of its
    /// connection that are written and not acknowledged, including the payload of this packet.
    pub fn set_remaining(&mut self, bytes: u64) {
        let slot = self.next_slot() as usize;
        if slot >= self.remaining.len() {
            self.remaining.resize(slot + 1, 0);
        }
        self.remaining[slot] = bytes;
    }

    /// Returns the remaining bytes of a packet: payload bytes that its sender had left when it sent
    /// the packet, including the payload of this packet. 0 for a packet without payload; the
    /// payload of the packet for a datagram outside a stream. `None` if no discipline of the fabric
    /// reads remaining bytes.
    pub(crate) fn remaining(&self, slot: u32) -> Option<u64> {
        let packet = self.get(slot);
        self.keeps_remaining.then(|| match packet.kind() {
            PacketKind::Data | PacketKind::Retransmission if packet.has_payload() => {
                self.remaining.get(slot as usize).copied().unwrap_or(0)
            }
            _ => packet.payload().into(),
        })
    }

    /// Starts to record telemetry in packets, in a fabric with `hosts` hosts.
    pub(crate) fn keep_telemetry(&mut self, hosts: u32) {
        self.telemetry = Some(Box::new(Telemetry::new(hosts)));
    }

    /// Whether packets record telemetry. TCP then has to call [`PacketPool::begin_telemetry`]
    /// before each packet.
    #[inline]
    pub fn keeps_telemetry(&self) -> bool {
        self.telemetry.is_some()
    }

    /// Sets the telemetry records that the next packet that will be inserted returns to its
    /// receiver. The packet has no records of its own yet.
    pub fn begin_telemetry(&mut self, echo: Vec<HopTelemetry>) {
        let slot = self.next_slot();
        if let Some(telemetry) = &mut self.telemetry {
            telemetry.begin(slot, echo);
        }
    }

    /// Adds a telemetry record to the packet in a slot, which a port of the node `node` begins to
    /// send. Does nothing if packets record no telemetry, or if the packet is not of TCP.
    pub(crate) fn record_hop(&mut self, node: u32, slot: u32, hop: HopTelemetry) {
        if self.get(slot).notes() & Packet::DATAGRAM == 0
            && let Some(telemetry) = &mut self.telemetry
        {
            telemetry.record(node, slot, hop);
        }
    }

    /// Removes and returns the telemetry records of the packet that was removed last. No packet
    /// may have been inserted since.
    pub fn take_telemetry(&mut self) -> PacketTelemetry {
        let slot = self.next_slot();
        self.telemetry.as_mut().map(|telemetry| telemetry.take(slot)).unwrap_or_default()
    }

    /// Prefetches the packet in a slot.
    #[inline]
    pub fn prefetch(&self, slot: u32) {
        if let Some(place) = self.slots.get(slot as usize) {
            memory::prefetch(place);
        }
    }

    /// Returns the number of packets in flight.
    pub fn in_use(&self) -> usize {
        self.slots.len() - self.free.len() - self.left_out
    }

    /// Leaves all packets but `kept` to other parts of a partitioned run, which have copies of them. The
    /// slots of the others are never used again.
    pub(crate) fn leave_out(&mut self, kept: usize) {
        self.left_out = self.in_use() - kept;
    }

    /// Stores the SACK blocks of a packet and returns their index for [`Packet::sack`].
    pub fn put_sack(&mut self, blocks: SackBlocks) -> u32 {
        match self.free_sacks.pop() {
            Some(i) => {
                self.sacks[i as usize].blocks = blocks;
                i
            }
            None => {
                self.sacks.push(Side { blocks, ts_echo_us: 0 });
                (self.sacks.len() - 1) as u32
            }
        }
    }

    /// Removes and returns the SACK blocks at the index `index`, a value of [`Packet::sack`];
    /// `None` for [`NO_SACK`].
    pub fn take_sack(&mut self, index: u32) -> Option<SackBlocks> {
        if index == NO_SACK {
            return None;
        }
        self.free_sacks.push(index);
        Some(self.sacks[index as usize].blocks)
    }

    /// Returns the number of packets whose SACK blocks are stored; used to check that no entry is
    /// leaked. 0 if packets were [left out](PacketPool::leave_out), with their SACK blocks.
    pub fn sacks_in_use(&self) -> usize {
        match self.left_out {
            0 => self.sacks.len() - self.free_sacks.len(),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eastwest_types::HostId;

    #[test]
    fn a_packet_is_the_same_in_another_pool() {
        let (mut here, mut there) = (PacketPool::default(), PacketPool::default());
        // Slot 0 of the second pool is occupied, so that slots of the two pools differ.
        there.insert(&Packet::blank(HostId(9)));
        let blocks = [(70_000, 71_448), (1, 2), (0, 0), (0, 0)];
        for sack in [false, true] {
            let packet = Packet {
                seq: 70_000,
                payload: 1_448,
                ts_echo_us: 77,
                sack: if sack { here.put_sack(blocks) } else { NO_SACK },
                ..Packet::blank(HostId(3))
            };
            let slot = here.insert(&packet);
            let before = here.peek(slot);
            assert_eq!(here.get(slot).positions(), (70_000, 71_448));
            let mut sides = Vec::new();
            let detached = here.detach(slot, &mut sides);
            assert_eq!((here.in_use(), sides.len()), (0, usize::from(sack)));
            let slot = there.attach(&detached, &mut sides.into_iter());
            let after = there.peek(slot);
            assert_eq!(format!("{:?}", after.1), format!("{:?}", before.1));
            let same = |p: Packet| Packet { sack: 0, ..p };
            assert_eq!(format!("{:?}", same(after.0)), format!("{:?}", same(before.0)));
            let taken = there.remove(slot);
            assert_eq!(there.take_sack(taken.sack).is_some(), sack);
        }
        assert_eq!(there.in_use(), 1);
    }
}
