//! `[rocev2]`: settings of all queue pairs.
//!
//! Defaults are those of perftest (timeout, retries) and of Linux's software RoCE
//! (acknowledgements); each key names its source. The settings of a rate control are in the file of
//! the rate control.

use super::control::ControlSettings;
use crate::settings::{Below, TransportSettings};
use eastwest_settings::dscp::Dscp;
use eastwest_settings::quantity::Octets;
use eastwest_settings::reader::{Section, key};
use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// Settings of all RoCEv2 queue pairs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoceV2Config {
    /// Payload of a full packet in bytes (path MTU of InfiniBand).
    pub mtu: u32,
    /// Number of packets after which the sender requests an acknowledgement. The sender also
    /// requests one with the last packet of a message.
    pub ack_every: u32,
    /// Time for which the sender waits for a requested acknowledgement (local ACK timeout).
    pub timeout: Span,
    /// Number of consecutive timeouts that a queue pair survives; it fails at the next one (retry
    /// count).
    pub retries: u32,
    /// Time from the end of a queue pair, at both of its ends, until its slot may be used again.
    pub time_wait: Span,
    /// Rate control of all queue pairs, with its settings.
    pub control: ControlSettings,
    /// Differentiated services codepoint (0–63) of congestion notification packets.
    pub cnp_dscp: u8,
    /// Bytes of a packet on a link in addition to its IP length (framing); sending rates include
    /// these bytes.
    pub framing: u32,
}

impl RoceV2Config {
    /// IP bytes of a packet without its payload: IPv4 20, UDP 8, BTH 12 (InfiniBand specification
    /// 9.2), ICRC 4 (annex A17).
    pub const HEADERS: u32 = 44;
    /// IP bytes of an acknowledgement: 44 of headers, and 4 of the AETH (InfiniBand specification
    /// 9.3).
    pub const ACK: u16 = 48;
    /// IP bytes of a congestion notification packet: 44 of headers, and 16 reserved bytes after the
    /// BTH (annex A17.9.3).
    pub const CNP: u16 = 60;
}

/// Payload sizes in bytes that InfiniBand permits (path MTU).
const MTUS: [u32; 5] = [256, 512, 1024, 2048, 4096];

impl TransportSettings for RoceV2Config {
    const NAME: &'static str = "rocev2";
    const CHOICE: &'static str =
        "a reliable queue pair of RoCEv2 instead of each connection, see [rocev2]";
    const TABLE: &'static str =
        "Settings of all queue pairs, for workloads with transport = \"rocev2\".";

    fn read(s: &mut Section, below: &Below) -> RoceV2Config {
        read_queue_pairs(s, below)
    }

    fn asks_for_marks(&self) -> bool {
        self.control != ControlSettings::None
    }
}

fn read_queue_pairs(s: &mut Section, below: &Below) -> RoceV2Config {
    let room = below.mtu.unwrap_or(1500).saturating_sub(RoceV2Config::HEADERS);
    let largest = MTUS.into_iter().rev().find(|mtu| *mtu <= room).unwrap_or(MTUS[0]);
    let mtu: Octets = s.get(
        key(
            "mtu",
            "Payload of a full packet: 256, 512, 1024, 2048 or 4096 B (path MTU of InfiniBand).",
        )
        .computed("the largest that fabric.mtu leaves room for", Octets(largest))
        .range("256", "4096"),
    );
    s.demand(MTUS.contains(&mtu.0), &["mtu"], || {
        format!("must be one of 256, 512, 1024, 2048 and 4096, not {}", mtu.0)
    });
    s.demand(below.mtu.is_none() || mtu.0 <= room, &["mtu"], || {
        format!(
            "{} B is too large: after {} B of headers, fabric.mtu leaves {room} B",
            mtu.0,
            RoceV2Config::HEADERS
        )
    });
    let ack_every = s.get(
        key(
            "ack_every",
            "Number of packets after which the sender requests an acknowledgement; it also \
             requests one with the last packet of a message (Linux, RXE_MAX_PKT_PER_ACK: 64).",
        )
        .default("64")
        .range("1", "65536"),
    );
    let timeout = s.get(
        key(
            "timeout",
            "Time for which the sender waits for a requested acknowledgement (local ACK timeout, \
             4.096 us · 2^n; perftest: n = 14).",
        )
        .default("67108864 ns")
        .range("1 us", "1 h"),
    );
    let retries = s.get(
        key(
            "retries",
            "Number of consecutive timeouts that a queue pair survives; it fails at the next one \
             (retry count; perftest: 7, the largest value of a field of three bits).",
        )
        .default("7")
        .range("0", "1000"),
    );
    let time_wait = s.get(
        key(
            "time_wait",
            "Time from the end of a queue pair until its number may be used again; both ends answer \
             late packets until then (Linux's connection manager, cma.c and cm.c: twice the lifetime \
             of a packet, 4.096 us · 2^16, in ms rounded down to a power of two).",
        )
        .default("512 ms")
        .range("0 s", "1 h"),
    );
    let cnp_dscp: Dscp = s.get(
        key("cnp_dscp", "Codepoint of congestion notification packets (Mellanox, cnp_dscp: 48).")
            .value(Dscp(48)),
    );
    let control = ControlSettings::read(s);
    RoceV2Config {
        mtu: mtu.0,
        ack_every,
        timeout,
        retries,
        time_wait,
        control,
        cnp_dscp: cnp_dscp.0,
        framing: below.framing,
    }
}
