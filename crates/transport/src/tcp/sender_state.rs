//! State of a sender for traces: window, threshold, RTT, timeout.

use super::Stack;
use super::states::RecoveryPhase;
use eastwest_types::{EndpointId, Span};
use serde::{Deserialize, Serialize};

/// Phase of a sender's congestion control.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub enum WindowPhase {
    /// Slow start: the window is below the slow-start threshold.
    SlowStart = 0,
    /// Congestion avoidance: the window is at or above the slow-start threshold.
    CongestionAvoidance = 1,
    /// Fast recovery, after losses found by ACKs.
    Recovery = 2,
    /// Loss phase: after a retransmission timeout, until all data outstanding at the timeout is
    /// acknowledged.
    Loss = 3,
}

impl WindowPhase {
    /// Names of the phases in the table `tcp_trace`, in the order of their numbers.
    pub const NAMES: [&str; 4] = ["slow-start", "congestion-avoidance", "recovery", "loss"];
}

/// State of a sender's congestion control and retransmission timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SenderState {
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow start threshold in bytes; `None` until slow start ends for the first time.
    pub ssthresh: Option<u64>,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Span>,
    /// Retransmission timeout with the current backoff.
    pub rto: Span,
    /// Bytes in flight (RFC 6675, `pipe`).
    pub in_flight: u64,
    /// Phase of the sender's congestion control.
    pub phase: WindowPhase,
}

/// Window that limits how much data a sender may have outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WindowLimit {
    /// The congestion window limits the sender, which is in slow start.
    SlowStart,
    /// The congestion window limits the sender, which is in congestion avoidance or in a recovery.
    Congestion,
    /// The window that the receiver offers, or the setting `max_window`, limits the sender.
    Receiver,
}

impl Stack {
    /// Returns the window that limits the outstanding data of an endpoint as a sender.
    pub fn window_limit(&self, id: EndpointId) -> WindowLimit {
        let (e, config) = (self.endpoint(id), self.config_of(id));
        if u64::from(e.peer_window).min(config.max_window) <= e.window.cwnd {
            WindowLimit::Receiver
        } else if e.recovery.phase == RecoveryPhase::Open && e.window.in_slow_start() {
            WindowLimit::SlowStart
        } else {
            WindowLimit::Congestion
        }
    }

    /// Returns the state of an endpoint as a sender.
    pub fn sender_state(&self, id: EndpointId) -> SenderState {
        let e = self.endpoint(id);
        SenderState {
            cwnd: e.window.cwnd,
            ssthresh: (e.window.ssthresh < u64::MAX).then_some(e.window.ssthresh),
            srtt: e.timers.rtt.srtt(),
            rto: e.rto(self.config_of(id)),
            in_flight: e.pipe(self.config_of(id)),
            phase: match e.recovery.phase {
                RecoveryPhase::Recovery => WindowPhase::Recovery,
                RecoveryPhase::Loss => WindowPhase::Loss,
                RecoveryPhase::Open if e.window.in_slow_start() => WindowPhase::SlowStart,
                RecoveryPhase::Open => WindowPhase::CongestionAvoidance,
            },
        }
    }
}
