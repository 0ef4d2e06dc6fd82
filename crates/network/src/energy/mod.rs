//! Energy of links: power in each state, and sleep policies.
//!
//! Each policy is one file, and one line in the list of [`BUILT_IN`] policies.

mod adaptive;
mod always_on;
mod coalescing;
pub mod eee;
mod ideal;
pub mod phy;
mod policy;
mod stall_timer;
mod standard;

pub use adaptive::Adaptive;
pub use always_on::AlwaysOn;
pub use coalescing::Coalescing;
pub use ideal::Ideal;
pub use stall_timer::StallTimer;
pub use standard::Standard;

use eastwest_settings::{Choice, Section, key};
use eastwest_types::{Rate, Span};
use eee::{Policy, SleepBuffer, StateTimes};
use phy::{OwnPhy, Phy};
use policy::LinkSettings;
use serde::{Deserialize, Serialize};

type ReadPolicy = fn(&mut Section) -> LinkPolicy;

/// Defines the enum of policies and the list of built-in policies, and forwards each call to the
/// selected policy.
macro_rules! family {
    ($($name:ident),* $(,)?) => {
        /// Sleep policy of a link, which decides when an idle link sleeps and when it wakes.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
        pub enum LinkPolicy {
            $(#[doc = concat!("See [`", stringify!($name), "`].")] $name($name),)*
        }

        /// Built-in sleep policies of links: (name in scenarios, function that reads the settings,
        /// explanation).
        pub const BUILT_IN: &[Choice<ReadPolicy>] =
            &[$((<$name>::NAME, |s| LinkPolicy::$name(<$name>::read(s)), <$name>::DOC)),*];

        impl LinkPolicy {
            /// Whether links with this policy sleep, with transitions that need time; false for the
            /// policies always-on and ideal.
            pub fn falls_asleep(&self) -> bool {
                match self {
                    $(LinkPolicy::$name(_) => <$name>::SLEEPS,)*
                }
            }

            fn sleep(&self, rate: Rate, target: Option<Span>) -> Option<Policy> {
                match self {
                    $(LinkPolicy::$name(policy) => policy.sleep(rate, target),)*
                }
            }

            /// Returns the longest time for which a sleeping link holds a packet, at a port whose
            /// queue has no target delay.
            pub fn hold(&self) -> Span {
                match self {
                    $(LinkPolicy::$name(policy) => policy.hold(),)*
                }
            }

            /// Returns the time in each state for a link without transition times (always on or
            /// ideal), in a run of length `run` in which the link was sending for the time `busy`.
            pub fn states(&self, run: Span, busy: Span) -> StateTimes {
                match self {
                    $(LinkPolicy::$name(policy) => policy.states(run, busy),)*
                }
            }
        }
    };
}

family! {
    AlwaysOn,
    Ideal,
    Standard,
    StallTimer,
    Coalescing,
    Adaptive,
}

impl LinkPolicy {
    /// Whether links with this policy save power, which is true for all policies except always-on.
    pub fn saves_power(&self) -> bool {
        *self != LinkPolicy::AlwaysOn(AlwaysOn)
    }
}

/// Energy settings of one kind of cables: cables of hosts, or cables between switches.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ClassEnergy {
    /// Sleep policy of a link while it has no packet to send.
    pub policy: LinkPolicy,
    /// Times and powers of the transceiver; `None`: the known transceiver for the rate of each
    /// link.
    pub phy: Option<Phy>,
    /// Values in the scenario that replace values of the transceiver.
    pub own: OwnPhy,
    /// Whether power is saved only while both directions of a cable are asleep.
    pub both: bool,
    /// Buffer that holds packets while the link is not awake.
    pub buffer: SleepBuffer,
}

impl ClassEnergy {
    fn read(s: &mut Section, rates: &[Rate]) -> ClassEnergy {
        let doc = "How a link saves energy while it has nothing to send.";
        let kind = s.kind(doc, Some(AlwaysOn::NAME), BUILT_IN);
        let policy = kind.map_or(LinkPolicy::AlwaysOn(AlwaysOn), |read| read(s));
        let sleeps = policy.falls_asleep();
        let (phy, own) = phy::read(s, rates, sleeps);
        let both = sleeps
            && s.get(
                key(
                    "both_directions",
                    "Whether power is saved only while both directions of a cable sleep, as in \
                     1000BASE-T.",
                )
                .default("false"),
            );
        let buffer = if sleeps { SleepBuffer::read(s) } else { SleepBuffer::Port };
        ClassEnergy { policy, phy, own, both, buffer }
    }

    /// Returns times and powers of the transceiver of a link with the rate `rate`.
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

    /// Returns policy and transceiver of a link that sleeps; `None` if the link does not sleep.
    /// `rate` is the rate of the port, and `target` the target delay of its queue.
    pub fn sleeping(&self, rate: Rate, target: Option<Span>) -> Option<(Policy, Phy)> {
        let policy = self.policy.sleep(rate, target)?;
        Some((Policy { buffer: self.buffer, ..policy }, self.phy(rate)))
    }
}

/// Energy settings of all links.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct EnergyConfig {
    /// Settings of the cables of hosts, in both directions.
    pub host: ClassEnergy,
    /// Settings of the cables between switches.
    pub fabric: ClassEnergy,
}

/// Rates of links to which `[fabric.host_energy]` and `[fabric.energy]` apply.
pub struct LinkRates {
    /// Rates of the links between hosts and switches.
    pub host: Vec<Rate>,
    /// Rates of links between switches.
    pub fabric: Vec<Rate>,
}

impl EnergyConfig {
    /// Returns the energy settings of the cables of hosts if `of_host` is true, otherwise the
    /// settings of the cables between switches.
    pub fn of_link(&self, of_host: bool) -> &ClassEnergy {
        if of_host { &self.host } else { &self.fabric }
    }

    /// Reads the tables `[fabric.energy]` and `[fabric.host_energy]`.
    pub fn read(s: &mut Section, rates: &LinkRates) -> EnergyConfig {
        let apart = s.has("host_energy");
        let all: Vec<Rate> = match apart {
            true => rates.fabric.clone(),
            false => rates.fabric.iter().chain(&rates.host).copied().collect(),
        };
        let doc = "Power of links, and Energy-Efficient Ethernet (IEEE 802.3az).";
        let fabric = s.table("energy", doc, |e| ClassEnergy::read(e, &all));
        if !apart && !s.describing() {
            return EnergyConfig { host: fabric, fabric };
        }
        let doc = "Power and Energy-Efficient Ethernet of the cables of hosts; without this table \
                   [fabric.energy] applies to them too.";
        let host = s.table("host_energy", doc, |e| ClassEnergy::read(e, &rates.host));
        EnergyConfig { host, fabric }
    }
}

impl Default for EnergyConfig {
    fn default() -> EnergyConfig {
        let class = ClassEnergy {
            policy: LinkPolicy::AlwaysOn(AlwaysOn),
            phy: None,
            own: OwnPhy::default(),
            both: false,
            buffer: SleepBuffer::Port,
        };
        EnergyConfig { host: class, fabric: class }
    }
}

/// Energy of one direction of a cable in a run, in joules.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Joules {
    /// Energy that the link used, in joules.
    pub used: f64,
    /// Energy in joules that the link would use if it were always awake.
    pub always_on: f64,
    /// Energy in joules that the link would use if it slept whenever it has no packet to send, with
    /// transitions that need no time.
    pub ideal: f64,
}

impl Joules {
    /// Returns the energy in joules of a link that was in each state for the times `times`, and was
    /// sending for `busy` of this time.
    pub fn of(phy: &Phy, times: &StateTimes, busy: Span) -> Joules {
        let run = times.total();
        let idle = Span(run.0.saturating_sub(busy.0));
        let ideal = StateTimes { awake: busy, asleep: idle, ..StateTimes::default() };
        let always_on = phy.active_w * run.as_secs_f64();
        Joules { used: times.joules(phy), always_on, ideal: ideal.joules(phy) }
    }
}
