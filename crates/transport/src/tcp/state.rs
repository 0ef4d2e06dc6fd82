//! What a sender may be asked about its window, for traces.

use super::Stack;
use super::phases::Phase;
use eastwest_types::{EndpointId, Span};
use serde::{Deserialize, Serialize};

/// Why the window moves as it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub enum Growth {
    /// Below the threshold.
    SlowStart = 0,
    /// Above it.
    CongestionAvoidance = 1,
    /// Fast recovery.
    Recovery = 2,
    /// After a retransmission timeout, until all that was outstanding is acknowledged.
    Loss = 3,
}

impl Growth {
    /// Names in tables, in the order of the numbers.
    pub const NAMES: [&str; 4] = ["slow-start", "congestion-avoidance", "recovery", "loss"];
}

/// A sender's window and timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SenderState {
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow start threshold in bytes; `None` before the first loss.
    pub ssthresh: Option<u64>,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Span>,
    /// The timeout it would arm now.
    pub rto: Span,
    /// Bytes it takes to be in the network (RFC 6675, `pipe`).
    pub in_flight: u64,
    /// What the window does.
    pub growth: Growth,
}

impl Stack {
    /// The state of an endpoint as a sender.
    pub fn sender_state(&self, id: EndpointId) -> SenderState {
        let e = self.endpoint(id);
        SenderState {
            cwnd: e.window.cwnd,
            ssthresh: (e.window.ssthresh < u64::MAX).then_some(e.window.ssthresh),
            srtt: e.timers.rtt.srtt(),
            rto: e.rto(self.config_of(id)),
            in_flight: e.pipe(self.config_of(id)),
            growth: match e.recovery.phase {
                Phase::Recovery => Growth::Recovery,
                Phase::Loss => Growth::Loss,
                Phase::Open if e.window.in_slow_start() => Growth::SlowStart,
                Phase::Open => Growth::CongestionAvoidance,
            },
        }
    }
}
