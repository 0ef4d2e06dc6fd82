//! Congestion control: how the window grows and how far it falls. One file for each algorithm, and
//! one for what they share.

pub mod bbr;
pub mod bbr3;
mod bbr3_bounds;
pub mod cubic;
pub mod custom;
pub mod dcqcn;
pub mod dctcp;
pub mod growth;
pub mod hystart;
pub mod new_reno;
pub mod pacing;
pub mod rate;
pub mod root;
pub mod rules;
pub mod small_queue;
pub mod usage;
pub mod windowed_max;

use bbr::Bbr;
use bbr3::Bbr3;
use cubic::Cubic;
use custom::CustomCongestion;
use dctcp::Dctcp;
use eastwest_types::{Span, Time};
use hystart::HyStart;
use pacing::Pacing;
use rate::RateSampler;
use serde::{Deserialize, Serialize};
use small_queue::SmallQueue;
use usage::Usage;

/// The congestion window of one sender, in bytes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
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
#[derive(Debug, Serialize, Deserialize)]
pub struct Control {
    /// State of the algorithm.
    pub algorithm: Algorithm,
    /// Watches for the end of slow start.
    pub hystart: HyStart,
    /// When the next segment may leave, where segments are paced.
    pub pacing: Pacing,
    /// Whether the window is used.
    pub usage: Usage,
    /// What waits in the host's card, where that is limited and something may wait.
    pub small_queue: Option<Box<SmallQueue>>,
}

/// State of an algorithm.
#[derive(Debug, Serialize, Deserialize)]
pub enum Algorithm {
    /// See [`new_reno`].
    NewReno,
    /// See [`dctcp`].
    Dctcp(Dctcp),
    /// See [`cubic`].
    Cubic(Cubic),
    /// See [`bbr`].
    Bbr(Box<Bbr>),
    /// See [`bbr3`].
    Bbr3(Box<Bbr3>),
    /// See [`custom`].
    #[serde(skip)]
    Custom(Box<dyn CustomCongestion>),
}

/// What the algorithms share that follow a model of the path.
impl Algorithm {
    /// What it remembers of segments under way.
    pub fn sampler(&mut self) -> Option<&mut RateSampler> {
        match self {
            Algorithm::Bbr(b) => Some(&mut b.sampler),
            Algorithm::Bbr3(b) => Some(&mut b.sampler),
            _ => None,
        }
    }

    /// The smallest round-trip time of the model, [`Span::MAX`] before the first.
    pub fn min_rtt(&self) -> Span {
        match self {
            Algorithm::Bbr(b) => b.min_rtt,
            Algorithm::Bbr3(b) => b.min_rtt,
            _ => Span::MAX,
        }
    }

    /// The rate that the model gives.
    pub fn pacing_rate(&self) -> Option<u64> {
        match self {
            Algorithm::Bbr(b) => Some(b.pacing_rate),
            Algorithm::Bbr3(b) => Some(b.pacing_rate),
            _ => None,
        }
    }

    /// The model takes an ACK in; returns the window that follows.
    pub fn follow(&mut self, ack: &bbr::Ack) -> Option<u64> {
        match self {
            Algorithm::Bbr(b) => {
                b.on_ack(ack);
                Some(b.cwnd)
            }
            Algorithm::Bbr3(b) => {
                b.on_ack(ack);
                Some(b.cwnd)
            }
            _ => None,
        }
    }

    /// Something is sent after nothing was under way.
    pub fn resume(&mut self, now: Time, idle: Span) {
        match self {
            Algorithm::Cubic(c) => c.shift(now, idle),
            Algorithm::Custom(c) => c.after_idle(now, idle),
            Algorithm::Bbr(b) if b.sampler.is_app_limited() => b.on_restart(now),
            Algorithm::Bbr3(b) if b.sampler.is_app_limited() => b.on_restart(now),
            _ => {}
        }
    }
}
