//! Trait of the sleep policies of links: their settings, their names in scenarios, and how a link sleeps.

use super::eee::{Policy, StateTimes};
use eastwest_settings::Section;
use eastwest_types::{Rate, Span};

/// Policy of a link while it has nothing to send.
pub trait LinkSettings {
    /// Name in scenarios: `kind = "coalescing"`.
    const NAME: &'static str;
    /// One line of explanation.
    const DOC: &'static str;
    /// Whether links have transitions to sleep and back, which take time.
    const SLEEPS: bool = false;

    /// Reads the settings from the table of the links.
    fn read(s: &mut Section) -> Self;

    /// Returns the times and triggers of a link that sleeps, at a port of this rate and target delay; `None` if
    /// it does not sleep.
    fn sleep(&self, _rate: Rate, _target: Option<Span>) -> Option<Policy> {
        None
    }

    /// Returns the longest time for which a packet is held, at a port whose queue has no target delay.
    fn hold(&self) -> Span {
        Span::ZERO
    }

    /// Returns the state times of a link without transitions in a run in which it was sending for `busy`.
    fn states(&self, run: Span, _busy: Span) -> StateTimes {
        StateTimes { awake: run, ..StateTimes::default() }
    }
}
