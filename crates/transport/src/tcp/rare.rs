//! State of a sender that only losses touch, in a box of its own that is there from the first of them
//! on: most endpoints never need it, and the lines of [`Endpoint`](super::endpoint::Endpoint) stay with what every packet needs.

use super::counters::{Counters, Row};
use super::phases::Cut;
use super::prr::Prr;
use super::undo::Undo;
use eastwest_types::Time;
use serde::{Deserialize, Serialize};

/// See the [module](self).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Rare {
    pub(super) counters: Counters,
    /// Where [`Phase`](super::phases::Phase) returns to open.
    pub(super) recover: u64,
    /// Without a board: position in the stream below which everything that is not SACKed is lost.
    pub(super) lost_to: u64,
    /// Without a board: position in the stream below which everything lost has been sent again.
    pub(super) resent_to: u64,
    /// The last segment may be sent again on suspicion once ACKs are above this (RFC 6675,
    /// `RescueRxt`).
    pub(super) rescue_above: u64,
    /// When the first of the timeouts in a row struck, until an ACK tells whether it was spurious; 0
    /// is never.
    pub(super) timed_out_at_us: u32,
    /// When the first of the timeouts in a row struck.
    pub(super) first_retry: Time,
    /// Timeouts of which it is not known yet whether they were needed.
    pub(super) row: Row,
    /// Whether the last timeout is already counted as needless.
    pub(super) timeout_counted: bool,
    /// With Nagle's algorithm: end of the last segment that was not full.
    pub(super) small_end: u64,
    /// The [degree of reordering](super::reordering) where it has grown, or 0.
    pub(super) reordering: u32,
    /// Whether F-RTO judges the last timeout.
    pub(super) frto: bool,
    /// The last cut of the window, while it can be taken back.
    pub(super) undo: Option<Undo>,
    pub(super) prr: Prr,
    /// After marks have cut the window it is held until this is acknowledged.
    pub(super) held_to: u64,
    /// Everything that was outstanding after the probe that is out, or 0.
    pub(super) probe_end: u64,
    /// Whether that probe was the last segment again, not a new one.
    pub(super) probe_again: bool,
    pub(super) last_cut: Cut,
}
