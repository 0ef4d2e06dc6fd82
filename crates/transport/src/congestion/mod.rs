//! Congestion control: how the window grows and how far it falls. One file for each algorithm, and
//! one for what they share.

pub mod bbr;
pub mod cubic;
pub mod dctcp;
pub mod growth;
pub mod hystart;
pub mod new_reno;
pub mod pacing;
pub mod rate;
pub mod root;
pub mod rules;
pub mod usage;
pub mod windowed_max;

use bbr::Bbr;
use cubic::Cubic;
use dctcp::Dctcp;
use hystart::HyStart;
use pacing::Pacing;
use usage::Usage;

/// The congestion window of one sender, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Congestion window.
    pub cwnd: u64,
    /// Slow start threshold.
    pub ssthresh: u64,
    /// Bytes acknowledged since the window last grew in congestion avoidance.
    pub credit: u64,
}

impl Window {
    /// The window a connection starts with: no threshold yet (RFC 5681, 3.1).
    pub fn new(initial: u64) -> Window {
        Window { cwnd: initial, ssthresh: u64::MAX, credit: 0 }
    }

    /// Whether the window doubles every round trip.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

/// What a sender keeps beside its window, where its settings ask for more than NewReno.
#[derive(Clone, Debug)]
pub struct Control {
    /// State of the algorithm.
    pub algorithm: Algorithm,
    /// Watches for the end of slow start.
    pub hystart: HyStart,
    /// When the next segment may leave, where segments are paced.
    pub pacing: Pacing,
    /// Whether the window is used.
    pub usage: Usage,
}

/// State of an algorithm.
#[derive(Clone, Debug)]
pub enum Algorithm {
    /// See [`new_reno`].
    NewReno,
    /// See [`dctcp`].
    Dctcp(Dctcp),
    /// See [`cubic`].
    Cubic(Cubic),
    /// See [`bbr`].
    Bbr(Box<Bbr>),
}
