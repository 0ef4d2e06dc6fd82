//! What links draw while they send, wait and sleep.

pub mod eee;
pub mod phy;

use eastwest_types::{Rate, Span};
use eee::{Policy, SleepBuffer, StateTimes, Trigger};
use phy::Phy;
use serde::{Deserialize, Serialize};

/// What a link does while it has nothing to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LinkPolicy {
    /// It stays awake.
    AlwaysOn,
    /// It sleeps and wakes in no time and for nothing: the lower bound for the same traffic.
    Ideal,
    /// It falls asleep and wakes.
    Sleeping(Policy),
    /// It falls asleep and wakes, with a holding timer that adapts.
    Adaptive(Adaptive),
}

/// How a holding timer adapts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Adaptive {
    /// How long a frame may be held, and what is held may take to be sent; otherwise half of the
    /// delay that the queue of the port aims at, or [`Adaptive::DELAY`].
    pub delay: Option<Span>,
    /// See [`Policy::waste_ppm`].
    pub waste_ppm: u32,
}

impl Adaptive {
    /// Where the queue aims at nothing.
    pub const DELAY: Span = Span::from_us(100);

    /// At a port whose queue aims at this delay: what is held for longer, or takes longer to be sent
    /// once the link is awake, would make the queue signal congestion that is not there.
    fn policy(&self, rate: Rate, target: Option<Span>) -> Policy {
        let delay = self.delay.or(target.map(|t| Span(t.0 / 2))).unwrap_or(Adaptive::DELAY);
        let bytes = u128::from(delay.0) * u128::from(rate.0) / 8_000_000_000_000;
        Policy {
            hold: delay,
            trigger: Trigger::Bytes(u64::try_from(bytes).unwrap_or(u64::MAX).max(1)),
            waste_ppm: Some(self.waste_ppm),
            ..Policy::STANDARD
        }
    }
}

/// What a scenario says of transceivers itself; the rest is that of the known ones.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
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
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ClassEnergy {
    /// What they do with nothing to send.
    pub policy: LinkPolicy,
    /// Their transceivers, where they are not those of each link's rate.
    pub phy: Option<Phy>,
    /// What of these is otherwise.
    pub own: OwnPhy,
    /// Power is saved only while both directions of a cable sleep.
    pub both: bool,
    /// Where packets wait that come to a link that is not awake.
    pub buffer: SleepBuffer,
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

    /// How its links sleep, if they do, at a port whose queue aims at this delay.
    pub fn sleeping(&self, rate: Rate, target: Option<Span>) -> Option<(Policy, Phy)> {
        let policy = match self.policy {
            LinkPolicy::Sleeping(policy) => policy,
            LinkPolicy::Adaptive(adaptive) => adaptive.policy(rate, target),
            LinkPolicy::AlwaysOn | LinkPolicy::Ideal => return None,
        };
        Some((Policy { buffer: self.buffer, ..policy }, self.phy(rate)))
    }
}

/// Power of all links.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct EnergyConfig {
    /// Cables of hosts, both directions.
    pub host: ClassEnergy,
    /// Cables between switches.
    pub fabric: ClassEnergy,
}

impl Default for EnergyConfig {
    fn default() -> EnergyConfig {
        let class = ClassEnergy {
            policy: LinkPolicy::AlwaysOn,
            phy: None,
            own: OwnPhy::default(),
            both: false,
            buffer: SleepBuffer::Port,
        };
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
    /// Returns the energy of a link that was in these states, and was sending for `busy` of that time.
    pub fn of(phy: &Phy, times: &StateTimes, busy: Span) -> Joules {
        let run = times.total();
        let idle = Span(run.0.saturating_sub(busy.0));
        let ideal = StateTimes { awake: busy, asleep: idle, ..StateTimes::default() };
        let always_on = phy.active_w * run.as_secs_f64();
        Joules { used: times.joules(phy), always_on, ideal: ideal.joules(phy) }
    }
}
