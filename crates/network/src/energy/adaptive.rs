//! Sleep policy of links that hold packets like [coalescing](super::Coalescing) links, with an
//! adaptive holding timer.

use super::eee::{Policy, Trigger};
use super::policy::LinkSettings;
use eastwest_settings::narrow::{at_most, whole_part};
use eastwest_settings::{Fraction, Section, key};
use eastwest_types::{Rate, Span};
use serde::{Deserialize, Serialize};

/// Settings of packet coalescing with an adaptive holding timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Adaptive {
    /// Longest time for which a frame may be held, and longest transmission time of all held frames
    /// together. `None`: half of the target delay of the port's queue, or [`Adaptive::DELAY`] if
    /// the queue has no target delay.
    pub delay: Option<Span>,
    /// Fraction of time spent in transitions, in millionths, above which frames are held longer,
    /// see [`Policy::waste_ppm`].
    pub waste_ppm: u32,
}

impl Adaptive {
    /// Longest holding time at a port whose queue has no target delay, if the scenario sets no
    /// `delay`.
    pub const DELAY: Span = Span::from_us(100);
}

impl LinkSettings for Adaptive {
    const NAME: &'static str = "adaptive";
    const DOC: &'static str = "as coalescing, with a timer that adapts to the load and stays \
                               within the delay target of the queue";
    const SLEEPS: bool = true;

    fn read(s: &mut Section) -> Adaptive {
        let delay = s.find(
            key(
                "delay",
                "Longest time for which the first packet is held, and longest time that \
                          sending the held packets may take.",
            )
            .optional("half of the delay target of the port's queue, or 100 us")
            .range("1 ns", "1 s"),
        );
        let waste: Fraction = s.get(
            key(
                "waste",
                "Share of time that a link may spend on falling asleep and waking; above it, \
                 packets are held longer.",
            )
            .default("0.05")
            .range("0.001", "1"),
        );
        Adaptive { delay, waste_ppm: at_most(whole_part(waste.0 * 1e6)) }
    }

    // If the queue of the port has a target delay, frames are held for at most half of this delay,
    // and their transmission after waking lasts at most as long. With longer times, the queue would
    // signal congestion that does not exist.
    fn sleep(&self, rate: Rate, target: Option<Span>) -> Option<Policy> {
        let delay = self.delay.or(target.map(|t| Span(t.0 / 2))).unwrap_or(Adaptive::DELAY);
        let bytes = u128::from(delay.0) * u128::from(rate.0) / 8_000_000_000_000;
        Some(Policy {
            hold: delay,
            trigger: Trigger::Bytes(u64::try_from(bytes).unwrap_or(u64::MAX).max(1)),
            waste_ppm: Some(self.waste_ppm),
            ..Policy::STANDARD
        })
    }

    fn hold(&self) -> Span {
        self.delay.unwrap_or(Adaptive::DELAY)
    }
}
