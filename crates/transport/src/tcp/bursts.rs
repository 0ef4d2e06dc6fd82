//! Where an endpoint meets [segmentation offload](super::offload): how large the next burst is, and whether
//! it waits.

use super::config::TcpConfig;
use super::endpoint::Endpoint;
use super::offload::LARGEST;
use super::phases::Phase;
use eastwest_types::{Span, Time};

/// The smallest round trip in units of 2⁹ µs shifts the share that does not depend on the rate (Linux,
/// `tcp_tso_rtt_log`).
const RTT_LOG: u32 = 9;
/// Bursts are what passes in 2⁻¹⁰ s (Linux, `sk_pacing_shift`).
const PACING_SHIFT: u32 = 10;
const MS: Span = Span::from_ms(1);

/// What the windows leave for the next burst.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Bytes the congestion window leaves.
    pub(super) window: u64,
    /// Position up to which the other end takes data.
    pub(super) right_edge: u64,
}

/// Whether a burst leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Burst {
    /// A burst of at most this many segments leaves.
    Leaves(u16),
    /// It waits for the next ACK; the congestion window is what holds it, or not.
    Waits { for_window: bool },
}

impl Endpoint {
    /// Segments of a burst at this rate, bytes per second (0: not known).
    fn burst_segments(&self, rate: u64, config: &TcpConfig) -> u64 {
        let known = self.recovery.board.as_ref().map(|b| b.rack.min_rtt());
        let min_rtt = known.filter(|r| *r < Span::MAX).or(self.timers.rtt.srtt());
        let shift = min_rtt.map_or(u64::MAX, |r| (r.0 / 1_000_000) >> RTT_LOG);
        let near = if shift < 32 { LARGEST >> shift } else { 0 };
        let bytes = match rate {
            0 => LARGEST,
            rate => ((rate >> PACING_SHIFT) + near).min(LARGEST),
        };
        (bytes / u64::from(config.segment)).max(u64::from(config.offload.min_segments))
    }

    /// Whether the next burst of new data leaves now.
    #[inline(never)]
    pub(super) fn next_burst(&self, now: Time, room: Room, config: &TcpConfig) -> Burst {
        let Some(pacing) = self.control.as_deref().map(|c| c.pacing) else {
            return Burst::Leaves(1);
        };
        let segment = u64::from(config.segment);
        let segments = self.burst_segments(pacing.rate, config);
        let leaves = Burst::Leaves(segments.min(u64::from(u16::MAX)) as u16);
        let unsent = self.stream.end.saturating_sub(self.stream.next);
        let written = now.since(self.last_sent.max(pacing.next)) <= MS;
        if self.recovery.phase != Phase::Open || unsent <= segment || !written {
            return leaves;
        }
        let sendable = room.right_edge.saturating_sub(self.stream.next);
        let window = room.window / segment * segment;
        let limit = sendable.min(window);
        let piece = unsent.min(LARGEST / segment * segment);
        let share = self.window.cwnd.min(u64::from(self.peer_window));
        if limit >= segments * segment
            || (unsent > piece && limit >= piece)
            || limit >= share / u64::from(config.offload.window_divisor)
            || !self.ack_is_near(now)
        {
            return leaves;
        }
        if window < sendable {
            if window <= piece {
                return Burst::Waits { for_window: true };
            }
        } else if sendable <= piece {
            return Burst::Waits { for_window: false };
        }
        // nothing will be added to the end of the stream
        if self.closing && piece == unsent {
            return leaves;
        }
        Burst::Waits { for_window: false }
    }

    /// Whether the ACK of the oldest segment is due within a millisecond and half a round trip.
    fn ack_is_near(&self, now: Time) -> bool {
        let oldest = self.recovery.board.as_ref().and_then(|b| b.first_sent());
        let (Some(sent), Some(srtt)) = (oldest, self.timers.rtt.srtt()) else { return false };
        (sent + srtt).since(now) <= Span(srtt.0 / 2).min(MS)
    }
}
