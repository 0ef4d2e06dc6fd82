//! Bursts of [segmentation offload](super::offload) (TSO): size of the next burst (Linux,
//! `tcp_tso_autosize`), and the decision whether it is deferred (`tcp_tso_should_defer`).

use super::config::TcpConfig;
use super::endpoint::Endpoint;
use super::offload::MAX_BURST_BYTES;
use super::states::RecoveryPhase;
use eastwest_types::{Span, Time};

/// Binary logarithm of 512. The part of a burst's size that does not depend on the pacing rate is
/// halved for each 512 µs of the smallest RTT (Linux, `tcp_tso_rtt_log`).
const RTT_LOG: u32 = 9;
/// Binary logarithm of 1024. A burst holds the bytes that the pacing rate sends in 1/1024 s (Linux,
/// `sk_pacing_shift`).
const PACING_SHIFT: u32 = 10;
const MS: Span = Span::from_ms(1);

/// Room that the congestion window and the receive window leave for the next burst of segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendRoom {
    /// Bytes that the congestion window still allows to send.
    pub(super) window: u64,
    /// Right edge of the peer's receive window: SND.UNA + SND.WND.
    pub(super) right_edge: u64,
}

/// Decision whether the next burst of segments is sent or deferred.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BurstDecision {
    /// Send a burst of at most this number of segments.
    Send(u16),
    /// Defer the burst until the next ACK. `for_window`: whether the congestion window is the
    /// limit.
    Defer { for_window: bool },
}

impl Endpoint {
    /// Returns the number of segments of a burst; `rate`: pacing rate in bytes per second, or 0 if
    /// it is not known.
    fn burst_segments(&self, rate: u64, config: &TcpConfig) -> u64 {
        let known = self.recovery.scoreboard.as_ref().map(|b| b.rack.min_rtt());
        let min_rtt = known.filter(|r| *r < Span::MAX).or(self.timers.rtt.srtt());
        let shift = min_rtt.map_or(u64::MAX, |r| (r.0 / 1_000_000) >> RTT_LOG);
        let near = if shift < 32 { MAX_BURST_BYTES >> shift } else { 0 };
        let bytes = match rate {
            0 => MAX_BURST_BYTES,
            rate => ((rate >> PACING_SHIFT) + near).min(MAX_BURST_BYTES),
        };
        (bytes / u64::from(config.segment)).max(u64::from(config.offload.min_segments))
    }

    /// Decides whether the next burst of new data is sent now, and returns its size.
    #[inline(never)]
    pub(super) fn decide_burst(
        &self,
        now: Time,
        room: SendRoom,
        config: &TcpConfig,
    ) -> BurstDecision {
        let Some(pacing) = self.control.as_deref().map(|c| c.pacing) else {
            return BurstDecision::Send(1);
        };
        let segment = u64::from(config.segment);
        let segments = self.burst_segments(pacing.rate, config);
        let leaves = BurstDecision::Send(segments.min(u64::from(u16::MAX)) as u16);
        let unsent = self.stream.end.saturating_sub(self.stream.next);
        let written = now.since(self.last_sent.max(pacing.next)) <= MS;
        if self.recovery.phase != RecoveryPhase::Open || unsent <= segment || !written {
            return leaves;
        }
        let sendable = room.right_edge.saturating_sub(self.stream.next);
        let window = room.window / segment * segment;
        let limit = sendable.min(window);
        let piece = unsent.min(MAX_BURST_BYTES / segment * segment);
        let share = self.window.cwnd.min(u64::from(self.peer_window));
        if limit >= segments * segment
            || (unsent > piece && limit >= piece)
            || limit >= share / u64::from(config.offload.window_divisor)
            || !self.is_ack_due_soon(now)
        {
            return leaves;
        }
        if window < sendable {
            if window <= piece {
                return BurstDecision::Defer { for_window: true };
            }
        } else if sendable <= piece {
            return BurstDecision::Defer { for_window: false };
        }
        // The application has closed the stream, so the burst cannot grow.
        if self.closing && piece == unsent {
            return leaves;
        }
        BurstDecision::Defer { for_window: false }
    }

    /// Whether the ACK of the oldest segment is expected within a millisecond and within half a
    /// round trip.
    fn is_ack_due_soon(&self, now: Time) -> bool {
        let oldest = self.recovery.scoreboard.as_ref().and_then(|b| b.first_sent_at());
        let (Some(sent), Some(srtt)) = (oldest, self.timers.rtt.srtt()) else { return false };
        (sent + srtt).since(now) <= Span(srtt.0 / 2).min(MS)
    }
}
