//! Trait of the sleep policies of links: their settings, their names in scenarios, and how a link sleeps.

use super::eee::{Policy, StateTimes};
use eastwest_settings::Section;
use eastwest_types::{Rate, Span};

/// Policy of a link while it has nothing to send.
pub trait LinkSettings {
    /// Name in scenarios: `kind = "coalescing"`.
    const NAME: &'static str;
    /// One line of explanation of the policy, for the reference of settings.
    const DOC: &'static str;
    /// Whether links have transitions to sleep and back, which take time.
    const SLEEPS: bool = false;

    /// Reads the settings from the table of the links.
    fn read(s: &mut Section) -> Self;

    /// Returns the times and triggers of a link that sleeps, at a port of this rate whose queue has
    /// this target delay; `None` if the link does not sleep.
    fn sleep(&self, _rate: Rate, _target: Option<Span>) -> Option<Policy> {
        None
    }

    /// Returns the longest time for which a sleeping link holds a packet, at a port whose queue has
    /// no target delay.
    fn hold(&self) -> Span {
        Span::ZERO
    }

    /// Returns the time in each state of a link whose transitions take no time, in a run of length
    /// `run` in which the link was sending for `busy`.
    fn states(&self, run: Span, _busy: Span) -> StateTimes {
        StateTimes { awake: run, ..StateTimes::default() }
    }
}
