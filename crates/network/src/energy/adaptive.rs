//! Links that hold packets as [coalescing](super::Coalescing) ones do, with a timer that adapts.

use super::eee::{Policy, Trigger};
use super::policy::LinkSettings;
use eastwest_settings::narrow::{at_most, whole_part};
use eastwest_settings::{Fraction, Section, key};
use eastwest_types::{Rate, Span};
use serde::{Deserialize, Serialize};

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
}

impl LinkSettings for Adaptive {
    const NAME: &'static str = "adaptive";
    const DOC: &'static str =
        "the same with a timer that follows the load, within what the queue aims at";
    const SLEEPS: bool = true;

    fn read(s: &mut Section) -> Adaptive {
        let delay = s.find(
            key("delay", "How long a packet may be held, and what is held may take to be sent.")
                .optional("half of what the port's queue aims at, or 100 us")
                .range("1 ns", "1 s"),
        );
        let waste: Fraction = s.get(
            key(
                "waste",
                "Share of time that may go into falling asleep and waking before packets are held longer.",
            )
            .default("0.05")
            .range("0.001", "1"),
        );
        Adaptive { delay, waste_ppm: at_most(whole_part(waste.0 * 1e6)) }
    }

    // at a port whose queue aims at this delay: what is held for longer, or takes longer to be sent
    // once the link is awake, would make the queue signal congestion that is not there.
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
