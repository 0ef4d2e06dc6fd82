//! Congestion signals of a discipline: an ECN mark, an early drop, or nothing if the packet is
//! protected.
//!
//! To signal congestion, a discipline marks a packet whose transport supports ECN (RFC 3168), and
//! drops any other packet. Pure ACKs, SYNs and SYN-ACKs do not carry ECT, so that a discipline
//! drops them where it only marks data packets. E-EON, chapter 6, defines modes of protection from
//! these drops. *default* protects no packet. *ece-bit* protects packets with the ECE bit in the
//! TCP header (SYN and SYN-ACK of ECN connections, and ACKs that echo a mark). *ack+syn* also
//! protects every other packet without payload, which makes step marking the "true simple marking"
//! of E-EON. *bypass* protects all packets that cannot be marked, as some switches do. A protected
//! packet is queued, and is dropped only if it does not fit.

use super::decision::Verdict;
use crate::pool::Stored;
use eastwest_settings::{Section, key};
use eastwest_types::{PacketKind, flag};
use serde::{Deserialize, Serialize};

/// Packets that a queue discipline does not drop early, although they cannot be marked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Protection {
    /// No packet is protected.
    #[default]
    Default,
    /// Packets with the ECE bit in the TCP header are protected.
    EceBit,
    /// Packets with the ECE bit are protected, and all packets without payload.
    AckSyn,
    /// All packets that cannot be marked are protected.
    Bypass,
}

impl Protection {
    /// Whether this mode protects the packet from early drop.
    fn spares(self, packet: &Stored) -> bool {
        match self {
            Protection::Default => false,
            Protection::EceBit => packet.flags() & flag::ECE != 0,
            Protection::AckSyn => {
                packet.flags() & flag::ECE != 0 || !carries_payload(packet.kind())
            }
            Protection::Bypass => !packet.understands_marks(),
        }
    }
}

fn carries_payload(kind: PacketKind) -> bool {
    matches!(kind, PacketKind::Data | PacketKind::Retransmission | PacketKind::Datagram)
}

/// How a discipline signals congestion to the sender of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Signal {
    /// Whether packets of ECN-capable transports are marked instead of dropped.
    pub ecn: bool,
    /// Packets that are not dropped early although they cannot be marked.
    pub protection: Protection,
}

impl Signal {
    /// Returns the verdict that signals congestion with this packet: mark, early drop or, for a
    /// protected packet, only enqueue.
    pub fn verdict(self, packet: &Stored) -> Verdict {
        if self.ecn && packet.understands_marks() {
            Verdict::Mark
        } else if self.protection.spares(packet) {
            Verdict::Enqueue
        } else {
            Verdict::DropEarly
        }
    }
}

/// Reads the key `protection`: the packets that are not dropped early although they cannot be
/// marked.
pub(super) fn read_protection(s: &mut Section, default: &'static str) -> Protection {
    s.choice(
        "protection",
        "Packets that cannot be marked but are protected: they are dropped only when the queue is \
         full (E-EON, chapter 6).",
        Some(default),
        &[
            ("default", Protection::Default, "none"),
            ("ece-bit", Protection::EceBit, "packets with the ECE bit in the TCP header"),
            (
                "ack+syn",
                Protection::AckSyn,
                "packets with the ECE bit, and all TCP packets without payload: ACK, SYN, \
                 SYN-ACK, FIN",
            ),
            ("bypass", Protection::Bypass, "all"),
        ],
    )
}

/// Reads the keys `ecn` and `protection`, which decide whether a discipline marks or drops a packet
/// to signal congestion.
pub fn read_signal(s: &mut Section) -> Signal {
    let ecn = s.get(
        key(
            "ecn",
            "Whether packets of ECN transports are marked instead of dropped (RFC 7567, \
                    4.2.1).",
        )
        .default("true"),
    );
    Signal { ecn, protection: read_protection(s, "default") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::PacketPool;
    use eastwest_types::{HostId, Packet, ecn};

    fn verdict(protection: Protection, payload: u16, flags: u8, tos: u8, notes: u8) -> Verdict {
        let mut pool = PacketPool::default();
        let slot = pool.insert(&Packet { payload, flags, tos, notes, ..Packet::blank(HostId(1)) });
        Signal { ecn: true, protection }.verdict(pool.get(slot))
    }

    #[test]
    fn each_mode_spares_what_its_name_says() {
        use Protection::{AckSyn, Bypass, Default, EceBit};
        let all = [Default, EceBit, AckSyn, Bypass];
        let spared = |payload, flags, notes| {
            all.map(|mode| match verdict(mode, payload, flags, 0, notes) {
                Verdict::Enqueue => true,
                Verdict::DropEarly => false,
                other => panic!("{other:?}"),
            })
        };
        let (ack, syn, ece) = (flag::ACK, flag::SYN, flag::ECE);
        assert_eq!(spared(0, ack, 0), [false, false, true, true]);
        assert_eq!(spared(0, ack | ece, 0), [false, true, true, true]);
        assert_eq!(spared(0, syn, 0), [false, false, true, true]);
        assert_eq!(spared(0, syn | ece | flag::CWR, 0), [false, true, true, true]);
        assert_eq!(spared(0, syn | ack | ece, 0), [false, true, true, true]);
        assert_eq!(spared(0, ack | flag::FIN, 0), [false, false, true, true]);
        // The data packet is not ECT, since retransmissions never are (RFC 3168, 6.1.5).
        assert_eq!(spared(1448, ack, Packet::RETRANSMISSION), [false, false, false, true]);
        assert_eq!(spared(1448, ack | ece, 0), [false, true, true, true]);
        assert_eq!(spared(0, 0, Packet::DATAGRAM), [false, false, false, true]);
        for mode in all {
            assert_eq!(verdict(mode, 1448, ack, ecn::ECT0, 0), Verdict::Mark);
            assert_eq!(verdict(mode, 1448, ack, ecn::CE, 0), Verdict::Mark);
        }
    }
}
