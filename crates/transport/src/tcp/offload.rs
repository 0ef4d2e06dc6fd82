//! Segmentation offload: the sender hands bursts of segments to the NIC in one piece (TSO, or GSO
//! in software), and the segments leave the host back to back.
//!
//! Two rules of Linux are modelled (code: [`tso_bursts`](super::tso_bursts)).
//!
//! The first rule is the size of a burst (`tcp_tso_autosize`): the bytes that the pacing rate sends
//! in 2⁻¹⁰ s, plus 64 KB halved for each 2⁹ µs of the smallest RTT; at least `min_tso_segs`
//! segments and at most 64 KB. A paced sender sends a burst, and then waits for the time that the
//! pacing rate gives to it.
//!
//! The second rule defers a smaller burst until there is more room (`tcp_tso_should_defer`). A
//! burst is not deferred in a recovery, if nothing was sent in the last millisecond, if the window
//! has room for the burst or for a share of the window (`tso_win_divisor`), or if the next ACK is
//! not expected within a millisecond and half an RTT. The send time of the oldest segment is known
//! from RACK's scoreboard; without it no burst is deferred.
//!
//! Merging of segments by the receiver (GRO) is not modelled.

use eastwest_settings::{Section, key};
use serde::{Deserialize, Serialize};

/// Bytes of the largest burst (Linux, `GSO_LEGACY_MAX_SIZE` less headers).
pub(super) const MAX_BURST_BYTES: u64 = 65_536 - 320;
/// Settings of segmentation offload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffloadRules {
    /// Whether segmentation offload is used, so that segments leave the host in bursts.
    pub on: bool,
    /// Minimum number of segments of a burst (Linux, `tcp_min_tso_segs`); above 0.
    pub min_segments: u32,
    /// Divisor n of the window: a burst is deferred while less than 1/n of the window is free
    /// (Linux, `tcp_tso_win_divisor`); above 0.
    pub window_divisor: u32,
}

impl OffloadRules {
    /// Reads the settings of segmentation offload from `[tcp]`.
    pub fn read(s: &mut Section) -> OffloadRules {
        OffloadRules {
            on: s.get(
                key(
                    "segmentation_offload",
                    "Whether segments leave the host in back-to-back bursts. A burst holds what \
                     the pacing rate allows in about 1 ms, at most 64 KB; a smaller burst waits \
                     until the window allows more (Linux, TSO and GSO: tcp_tso_autosize, \
                     tcp_tso_should_defer).",
                )
                .default("false"),
            ),
            min_segments: s.get(
                key(
                    "min_tso_segs",
                    "With segmentation_offload: minimum number of segments in a burst (Linux, \
                     tcp_min_tso_segs).",
                )
                .default("2")
                .range("1", "65535"),
            ),
            window_divisor: s.get(
                key(
                    "tso_win_divisor",
                    "With segmentation_offload: divisor n; a burst is sent without waiting if the \
                     free part of the window is at least 1/n of the window (Linux, \
                     tcp_tso_win_divisor).",
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
