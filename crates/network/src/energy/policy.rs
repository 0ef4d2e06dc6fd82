//! Trait of the policies of links: how a link sleeps, and how scenarios name the policy.

use super::eee::{Policy, StateTimes};
use eastwest_settings::Section;
use eastwest_types::{Rate, Span};

/// What a link does while it has nothing to send.
pub trait LinkSettings {
    /// Its name in scenarios: `kind = "coalescing"`.
    const NAME: &'static str;
    /// One line of explanation.
    const DOC: &'static str;
    /// Whether its links fall asleep and wake, which takes them time.
    const SLEEPS: bool = false;

    /// Reads the settings from the table of the links.
    fn read(s: &mut Section) -> Self;

    /// How a link sleeps, if it does, at a port of this rate whose queue aims at this delay.
    fn sleep(&self, _rate: Rate, _target: Option<Span>) -> Option<Policy> {
        None
    }

    /// The longest time for which a packet is held, where the queue of the port aims at no delay.
    fn hold(&self) -> Span {
        Span::ZERO
    }

    /// States of a link that does not fall asleep, in a run in which it was sending for `busy`.
    fn states(&self, run: Span, _busy: Span) -> StateTimes {
        StateTimes { awake: run, ..StateTimes::default() }
    }
}
