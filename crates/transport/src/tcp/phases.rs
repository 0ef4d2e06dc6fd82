//! Where a connection stands, and what its sender is about.

use serde::{Deserialize, Serialize};

/// Where a connection stands (RFC 9293, 3.3.2). The states of closing are two flags of
/// [`Endpoint`](super::endpoint::Endpoint): both ends of a simulated connection close independently.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum State {
    /// The server before the SYN.
    Listen,
    /// The client after its SYN.
    SynSent,
    /// The server after its SYN-ACK.
    SynReceived,
    /// Both know of each other.
    Established,
    /// Given up.
    Failed,
}

/// What the sender is doing about losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Phase {
    /// None known.
    Open,
    /// Fast recovery (RFC 6675, RFC 6582).
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// What a sender's second timer is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Probe {
    /// Nothing.
    None,
    /// The [tail loss probe](super::probe).
    Tail,
    /// Judging segments that may only have been [overtaken](super::rack).
    Reorder,
}

/// What a connection does once both FINs are through.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Linger {
    /// They are not.
    NotYet,
    /// Stays to answer a FIN that comes again, until the retransmission timer, now idle, expires.
    Until,
    /// Has stayed long enough.
    Over,
}

/// What has cut the window last (ns-2, `last_cwnd_action_`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Cut {
    #[default]
    /// Nothing.
    None,
    /// Duplicate ACKs.
    Duplicates,
    /// Enters the state after a retransmission timeout.
    Timeout,
    /// Marks.
    Mark,
}
