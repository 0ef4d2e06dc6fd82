//! What links draw while they send, wait and sleep.

pub mod eee;
pub mod phy;

use eastwest_types::{Rate, Span};
use eee::{Policy, StateTimes};
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

/// What a scenario says of transceivers itself; the rest is that of the known ones.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct OwnPhy {
    /// Time to wake.
    pub wake: Option<Span>,
    /// Time to fall asleep.
    pub sleep: Option<Span>,
    /// Watts awake.
    pub active_w: Option<f64>,
    /// Power asleep as a share of that.
    pub asleep_share: Option<f64>,
}

/// Links of one class.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ClassEnergy {
    /// What they do with nothing to send.
    pub policy: LinkPolicy,
    /// Their transceivers, where they are not those of each link's rate.
    pub phy: Option<Phy>,
    /// What of these is otherwise.
    pub own: OwnPhy,
}

impl ClassEnergy {
    /// The transceivers of a link of this rate.
    pub fn phy(&self, rate: Rate) -> Phy {
        let base = self.phy.unwrap_or(Phy::of_rate(rate).0);
        let active_w = self.own.active_w.unwrap_or(base.active_w);
        let share = self.own.asleep_share.unwrap_or(base.asleep_w / base.active_w);
        Phy {
            wake: self.own.wake.unwrap_or(base.wake),
            sleep: self.own.sleep.unwrap_or(base.sleep),
            active_w,
            asleep_w: active_w * share,
        }
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
        let class = ClassEnergy { policy: LinkPolicy::AlwaysOn, phy: None, own: OwnPhy::default() };
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
    /// Of a run with these states in which it was sending for `busy`.
    pub fn of(phy: &Phy, times: &StateTimes, busy: Span) -> Joules {
        let run = times.total();
        let idle = Span(run.0.saturating_sub(busy.0));
        let ideal = StateTimes { awake: busy, asleep: idle, ..StateTimes::default() };
        let always_on = phy.active_w * run.as_secs_f64();
        Joules { used: times.joules(phy), always_on, ideal: ideal.joules(phy) }
    }
}
