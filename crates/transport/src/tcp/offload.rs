//! Segmentation offload: the sender hands bursts of segments down in one piece (TSO, or GSO where the
//! card cannot), and they leave the host back to back.
//!
//! Two rules of Linux follow from it. How large a burst is meant to be (`tcp_tso_autosize`): what passes
//! in 2⁻¹⁰ s at the pacing rate, and 64 KB halved for each 2⁹ µs of the smallest round trip besides, at
//! least `min_tso_segs` segments and at most 64 KB. A paced sender sends such a burst and then waits for
//! its whole time. And when a burst that is smaller waits for more room (`tcp_tso_should_defer`): not in
//! a recovery, not when nothing left in the last millisecond, not when the window has room for the
//! burst or for a share of it (`tso_win_divisor`), nor when the next ACK is not due within a millisecond
//! and half a round trip. When the oldest segment left is known from RACK's board; without it no burst
//! waits.
//!
//! Left out: merging by the receiver (GRO).

use super::config::TcpConfig;
use super::endpoint::{Endpoint, Phase};
use eastwest_settings::{Section, key};
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};

/// Bytes of the largest burst (Linux, `GSO_LEGACY_MAX_SIZE` less room for headers).
pub(super) const LARGEST: u64 = 65_536 - 320;
/// The smallest round trip in units of 2⁹ µs shifts the share that does not depend on the rate (Linux,
/// `tcp_tso_rtt_log`).
const RTT_LOG: u32 = 9;
/// Bursts are what passes in 2⁻¹⁰ s (Linux, `sk_pacing_shift`).
const PACING_SHIFT: u32 = 10;
const MS: Span = Span::from_ms(1);

/// Settings of segmentation offload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffloadRules {
    /// Whether it is used.
    pub on: bool,
    /// Segments of a burst at least (Linux, `tcp_min_tso_segs`); above 0.
    pub min_segments: u32,
    /// A burst waits while the window has room for less than one part in so many (Linux,
    /// `tcp_tso_win_divisor`); above 0.
    pub window_divisor: u32,
}

impl OffloadRules {
    /// Segmentation offload.
    pub fn read(s: &mut Section) -> OffloadRules {
        OffloadRules {
            on: s.get(
                key(
                    "segmentation_offload",
                    "Bursts leave the host back to back, of what passes in about 1 ms at the pacing rate, \
                     at most 64 KB; small ones wait for room (Linux, TSO and GSO: tcp_tso_autosize, \
                     tcp_tso_should_defer).",
                )
                .default("false"),
            ),
            min_segments: s.get(
                key(
                    "min_tso_segs",
                    "With segmentation_offload: segments of a burst at least (Linux, tcp_min_tso_segs).",
                )
                .default("2")
                .range("1", "65535"),
            ),
            window_divisor: s.get(
                key(
                    "tso_win_divisor",
                    "With segmentation_offload: a burst does not wait where the window has room for one \
                     part in so many (Linux, tcp_tso_win_divisor).",
                )
                .default("3")
                .range("1", "65535"),
            ),
        }
    }
}

impl Default for OffloadRules {
    fn default() -> OffloadRules {
        OffloadRules { on: false, min_segments: 2, window_divisor: 3 }
    }
}

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
    /// So many segments may.
    Leaves(u16),
    /// It waits for the next ACK; the congestion window is what holds it, or not.
    Waits { for_window: bool },
}

impl Endpoint {
    /// Segments of a burst at this rate, bytes per second (0: not known).
    fn burst_segments(&self, rate: u64, config: &TcpConfig) -> u64 {
        let known = self.board.as_ref().map(|b| b.rack.min_rtt());
        let min_rtt = known.filter(|r| *r < Span::MAX).or(self.rtt.srtt());
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
        let unsent = self.write_end.saturating_sub(self.snd_max);
        let written = now.since(self.last_sent.max(pacing.next)) <= MS;
        if self.phase != Phase::Open || unsent <= segment || !written {
            return leaves;
        }
        let sendable = room.right_edge.saturating_sub(self.snd_max);
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
        let oldest = self.board.as_ref().and_then(|b| b.first_sent());
        let (Some(sent), Some(srtt)) = (oldest, self.rtt.srtt()) else { return false };
        (sent + srtt).since(now) <= Span(srtt.0 / 2).min(MS)
    }
}
