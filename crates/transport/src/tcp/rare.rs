//! State of a sender that only losses touch, in a box of its own that is there from the first of them
//! on: most endpoints never need it, and the lines of [`Endpoint`] stay with what every packet needs.

use super::endpoint::{Counters, Endpoint};
use super::prr::Prr;
use super::undo::Undo;
use eastwest_types::Time;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Rare {
    pub(super) counters: Counters,
    /// The last segment may be sent again on suspicion once ACKs are above this (RFC 6675,
    /// `RescueRxt`).
    pub(super) rescue_above: u64,
    /// When the first of the timeouts in a row struck, until an ACK tells whether it was spurious; 0
    /// is never.
    pub(super) timed_out_at_us: u32,
    /// When the first of the timeouts in a row struck.
    pub(super) first_retry: Time,
    /// Whether the last timeout is already counted as needless.
    pub(super) timeout_counted: bool,
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
}

impl Endpoint {
    /// The rarely used state; made where it is not there yet.
    pub(super) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// The counters, to count something.
    pub(super) fn count(&mut self) -> &mut Counters {
        &mut self.rare().counters
    }

    /// What this endpoint has counted as a sender.
    pub fn counters(&self) -> Counters {
        self.rare.as_ref().map_or_else(Counters::default, |r| r.counters)
    }
}
