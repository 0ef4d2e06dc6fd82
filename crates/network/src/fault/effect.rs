//! Faults of links as a scenario describes them.

use super::loss::LossModel;
use eastwest_types::{Rate, Span, Time};
use serde::{Deserialize, Serialize};

/// A fault: an effect on links during an interval of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// Numbers of the links that have the fault.
    pub links: Vec<u32>,
    /// Effect of the fault on each of its links.
    pub effect: Effect,
    /// Start of the effect; zero means that the effect exists from the beginning of the run.
    pub from: Time,
    /// End of the effect; [`Time::NEVER`] if the effect does not end.
    pub until: Time,
}

/// Effect of a fault on a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Effect {
    /// The link loses packets at random.
    Loss(LossModel),
    /// The link transmits at a lower rate.
    Degrade(Degraded),
    /// The link has a longer propagation delay.
    Delay {
        /// Constant addition to the propagation delay.
        extra: Span,
        /// Largest additional delay of a packet. Each packet gets a uniform random delay from zero
        /// to this value; packets stay in order.
        jitter: Span,
    },
    /// The link is down: packets sent on it are lost.
    Down {
        /// Time from a failure or repair until switches know of it and change routes.
        reroute: Span,
        /// Periodic failures of a flapping link; `None`: one failure for the whole interval.
        flapping: Option<Flapping>,
    },
}

/// Rate of a degraded link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Degraded {
    /// Absolute rate of the link, if it is lower than the normal rate.
    Rate(Rate),
    /// Rate as a fraction of the normal rate of the link.
    Share(f64),
}

impl Degraded {
    /// Returns the degraded rate of a link whose normal rate is `rate`.
    pub fn of(self, rate: Rate) -> Rate {
        match self {
            Degraded::Rate(left) => left.min(rate),
            Degraded::Share(share) => Rate(((rate.0 as f64 * share) as u64).max(1)),
        }
    }
}

/// Periodic failure of a link: the link goes down at the start of every period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flapping {
    /// Time from the start of one failure to the start of the next.
    pub period: Span,
    /// Duration of each failure of the link.
    pub down: Span,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_degraded_rate_is_never_above_the_link_s_own() {
        let own = Rate::gbit(10);
        assert_eq!(Degraded::Rate(Rate::gbit(1)).of(own), Rate::gbit(1));
        assert_eq!(Degraded::Rate(Rate::gbit(40)).of(own), own);
        assert_eq!(Degraded::Share(0.25).of(own), Rate(2_500_000_000));
    }
}
