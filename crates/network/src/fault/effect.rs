//! Faults as a scenario describes them.

use super::loss::LossModel;
use eastwest_types::{Rate, Span, Time};
use serde::{Deserialize, Serialize};

/// An effect on links for a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// Numbers of the links.
    pub links: Vec<u32>,
    /// Effect on these links.
    pub effect: Effect,
    /// From when on; zero means that the links have never been otherwise.
    pub from: Time,
    /// Until when, or [`Time::NEVER`].
    pub until: Time,
}

/// Effect of a fault on a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Effect {
    /// Packets do not arrive, at random.
    Loss(LossModel),
    /// The link sends more slowly.
    Degrade(Degraded),
    /// Packets take longer.
    Delay {
        /// Added to the propagation delay.
        extra: Span,
        /// Width of a further uniform delay of each packet, in order.
        jitter: Span,
    },
    /// Nothing arrives.
    Down {
        /// After this time switches know that a link has failed, or has been repaired.
        reroute: Span,
        /// Fails again and again.
        flapping: Option<Flapping>,
    },
}

/// Rate of a degraded link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Degraded {
    /// A rate, or the link's own where that is lower.
    Rate(Rate),
    /// A share of the link's own.
    Share(f64),
}

impl Degraded {
    /// The rate of a link whose own is `rate`.
    pub fn of(self, rate: Rate) -> Rate {
        match self {
            Degraded::Rate(left) => left.min(rate),
            Degraded::Share(share) => Rate(((rate.0 as f64 * share) as u64).max(1)),
        }
    }
}

/// Fails at the start of every period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flapping {
    /// From one failure to the next.
    pub period: Span,
    /// How long each lasts.
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
