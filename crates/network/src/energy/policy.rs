//! Trait of the sleep policies of links: settings, name in scenarios, and rules for sleeping and
//! waking.

use super::eee::{Policy, StateTimes};
use eastwest_settings::Section;
use eastwest_types::{Rate, Span};

/// Sleep policy of a link, which decides when an idle link sleeps and when it wakes.
pub trait LinkSettings {
    /// Name of the policy in scenarios, such as `coalescing` in `kind = "coalescing"`.
    const NAME: &'static str;
    /// One line of explanation of the policy, for the reference of settings.
    const DOC: &'static str;
    /// Whether links with this policy sleep, with transitions that need time.
    const SLEEPS: bool = false;

    /// Reads the settings of the policy from the table of the links.
    fn read(s: &mut Section) -> Self;

    /// Returns the rules for a link that goes to sleep; `None` if the link never sleeps. `_rate` is
    /// the rate of the port, and `_target` the target delay of its queue.
    fn sleep(&self, _rate: Rate, _target: Option<Span>) -> Option<Policy> {
        None
    }

    /// Returns the longest time for which a sleeping link holds a packet, at a port whose queue has
    /// no target delay.
    fn hold(&self) -> Span {
        Span::ZERO
    }

    /// Returns the time in each state for a link without transition times (always on or ideal), in
    /// a run of length `run` in which the link was sending for the time `_busy`.
    fn states(&self, run: Span, _busy: Span) -> StateTimes {
        StateTimes { awake: run, ..StateTimes::default() }
    }
}
