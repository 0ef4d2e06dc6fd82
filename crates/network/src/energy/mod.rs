//! What links draw while they send, wait and sleep.

pub mod eee;
pub mod phy;

use eastwest_types::{Rate, Span};
use eee::Policy;
use phy::Phy;

/// What a link does while it has nothing to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkPolicy {
    /// It stays awake.
    AlwaysOn,
    /// It sleeps and wakes in no time and for nothing: the lower bound for the same traffic.
    Ideal,
    /// It falls asleep and wakes.
    Sleeping(Policy),
}

/// Links of one class.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ClassEnergy {
    /// What they do with nothing to send.
    pub policy: LinkPolicy,
    /// Their transceivers, where it is not the one of their rate.
    pub phy: Option<Phy>,
}

impl ClassEnergy {
    /// The transceivers of a link of this rate.
    pub fn phy(&self, rate: Rate) -> Phy {
        self.phy.unwrap_or(Phy::of_rate(rate).0)
    }

    /// How its links sleep, if they do.
    pub fn sleeping(&self, rate: Rate) -> Option<(Policy, Phy)> {
        match self.policy {
            LinkPolicy::Sleeping(policy) => Some((policy, self.phy(rate))),
            LinkPolicy::AlwaysOn | LinkPolicy::Ideal => None,
        }
    }
}

/// Power of all links.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EnergyConfig {
    /// Cables of hosts, both directions.
    pub host: ClassEnergy,
    /// Cables between switches.
    pub fabric: ClassEnergy,
}

impl Default for EnergyConfig {
    fn default() -> EnergyConfig {
        let class = ClassEnergy { policy: LinkPolicy::AlwaysOn, phy: None };
        EnergyConfig { host: class, fabric: class }
    }
}

/// Joules of one direction of a link in a run.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Joules {
    /// What it used.
    pub used: f64,
    /// What it would have used awake all the time.
    pub always_on: f64,
    /// What it would have used asleep whenever it had nothing to send, without transitions.
    pub ideal: f64,
}

impl Joules {
    /// Of a run of this length in which it was sending for `busy` and asleep for `asleep`.
    pub fn of(phy: &Phy, run: Span, busy: Span, asleep: Span) -> Joules {
        let watts = |asleep: Span| {
            let (whole, asleep) = (run.as_secs_f64(), asleep.as_secs_f64());
            phy.active_w * (whole - asleep) + phy.asleep_w * asleep
        };
        let idle = Span(run.0.saturating_sub(busy.0));
        Joules { used: watts(asleep), always_on: watts(Span::ZERO), ideal: watts(idle) }
    }
}
