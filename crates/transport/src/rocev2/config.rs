//! Settings of all queue pairs.

use super::control::ControlSettings;
use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// Settings of all queue pairs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoceV2Config {
    /// Payload of a full packet (path MTU of InfiniBand).
    pub mtu: u32,
    /// An acknowledgement is asked for with every so many packets, and with the last of a message.
    pub ack_every: u32,
    /// How long an acknowledgement that was asked for is awaited (local ACK timeout).
    pub timeout: Span,
    /// Timeouts in a row after which a queue pair fails (retry count).
    pub retries: u32,
    /// What limits the rate of a queue pair.
    pub control: ControlSettings,
    /// Differentiated services codepoint of congestion notification packets.
    pub cnp_dscp: u8,
    /// Bytes of a packet on a link beyond its IP length: rates count them.
    pub framing: u32,
}

impl RoceV2Config {
    /// IP bytes of a packet beyond its payload: IPv4 20, UDP 8, BTH 12 (InfiniBand specification 9.2), ICRC 4
    /// (annex A17).
    pub const HEADERS: u32 = 44;
    /// IP bytes of an acknowledgement, which has an AETH of 4 B besides (9.3).
    pub const ACK: u16 = 48;
    /// IP bytes of a congestion notification packet: 16 reserved bytes after the BTH (annex A17.9.3).
    pub const CNP: u16 = 60;
}
