//! Fields of a sender that are used only after losses, ECN marks or with Nagle's algorithm.
//!
//! The fields are allocated at their first use, since most endpoints never need them. The four
//! cache lines of [`Endpoint`](super::endpoint::Endpoint) have only the fields that every packet
//! needs.

use super::counters::{Counters, TimeoutRun};
use super::prr::Prr;
use super::states::CwndReduction;
use super::undo::UndoState;
use eastwest_types::Time;
use serde::{Deserialize, Serialize};

/// Fields of a sender that are used only after losses, ECN marks or with Nagle's algorithm.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ColdState {
    /// Counters of the endpoint as a sender: retransmissions, timeouts, recoveries.
    pub(super) counters: Counters,
    /// Stream position whose acknowledgement ends the recovery (`recover` of RFC 6582,
    /// RecoveryPoint of RFC 6675).
    pub(super) recover: u64,
    /// Without RACK's scoreboard: stream position below which all bytes that are not SACKed are
    /// lost.
    pub(super) lost_to: u64,
    /// Without RACK's scoreboard: stream position below which all lost bytes have been
    /// retransmitted.
    pub(super) retransmitted_to: u64,
    /// Stream position that ACKs must exceed before a rescue retransmission is sent (RFC 6675,
    /// `RescueRxt`).
    pub(super) rescue_above: u64,
    /// Time in µs of the first of the consecutive retransmission timeouts, until an ACK shows
    /// whether it was spurious; 0 if there is none.
    pub(super) first_timeout_us: u32,
    /// Time of the first of the consecutive timeouts, from which the time limit of the rule
    /// `GiveUp::Time` counts.
    pub(super) first_retry: Time,
    /// Consecutive retransmission timeouts that a later ACK may show to be spurious.
    pub(super) timeout_run: TimeoutRun,
    /// Whether the last retransmission timeout is already counted as spurious.
    pub(super) spurious_counted: bool,
    /// With Nagle's algorithm: stream position of the end of the last segment that was not full.
    pub(super) small_end: u64,
    /// Current [degree of reordering](super::reordering) in segments, or 0 if it is the configured
    /// one.
    pub(super) reordering: u32,
    /// Whether F-RTO is testing if the last retransmission timeout was spurious (RFC 5682).
    pub(super) frto: bool,
    /// State before the last window reduction, while that reduction can be undone; otherwise
    /// `None`.
    pub(super) undo: Option<UndoState>,
    /// State of proportional rate reduction.
    pub(super) prr: Prr,
    /// Stream position that must be acknowledged before the window may grow after a reduction by
    /// ECE (Linux, `high_seq`).
    pub(super) cwr_end: u64,
    /// Value of SND.NXT after the outstanding tail loss probe (RFC 8985, `TLP.end_seq`); 0 if there
    /// is none.
    pub(super) tlp_end: u64,
    /// Whether the outstanding tail loss probe was a retransmission, not new data (RFC 8985,
    /// `TLP.is_retrans`).
    pub(super) tlp_is_retransmission: bool,
    /// Cause of the last reduction of the congestion window.
    pub(super) last_reduction: CwndReduction,
}
