//! Enumerations of an endpoint's state: connection, loss recovery, timers.

use serde::{Deserialize, Serialize};

/// State of a connection (RFC 9293, 3.3.2) without its closing states. Two flags of
/// [`Endpoint`](super::endpoint::Endpoint) stand for the closing states: both ends of a simulated
/// connection close independently.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum State {
    /// A server that has not received the SYN.
    Listen,
    /// A client that has sent its SYN.
    SynSent,
    /// A server that has sent its SYN-ACK.
    SynReceived,
    /// The handshake is complete.
    Established,
    /// The connection has failed after too many timeouts, or has been reset.
    Failed,
}

/// Phase of a sender's loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum RecoveryPhase {
    /// No loss is known, so that no recovery is in progress.
    Open,
    /// Fast recovery (RFC 6675, RFC 6582).
    Recovery,
    /// Loss phase: after a retransmission timeout.
    Loss,
}

/// Purpose for which the RACK-TLP timer (RFC 8985), the sender's second timer, is armed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum RackTimer {
    /// The RACK-TLP timer is not armed.
    Off,
    /// The timer sends a [tail loss probe](super::rack_tlp).
    TailLossProbe,
    /// The timer checks again whether segments within the [reordering window](super::rack) are
    /// lost.
    Reordering,
}

/// State of TIME-WAIT of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum TimeWait {
    /// A FIN must still be sent, received or acknowledged.
    NotYet,
    /// The endpoint answers retransmitted FINs until TIME-WAIT ends. The retransmission timer,
    /// which is otherwise idle in this state, measures the time.
    Running,
    /// TIME-WAIT has ended; the endpoint has finished.
    Over,
}

/// Cause of the last reduction of the congestion window (ns-2, `last_cwnd_action_`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum CwndReduction {
    #[default]
    /// The window has not been reduced.
    None,
    /// Duplicate ACKs have reduced the window.
    Duplicates,
    /// A retransmission timeout has reduced the window.
    Timeout,
    /// An ACK with ECE has reduced the window.
    Mark,
}
