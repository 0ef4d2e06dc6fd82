//! Sleep policy of links that stay awake for some time after the last packet.

use super::eee::Policy;
use super::policy::LinkSettings;
use eastwest_settings::{Section, key};
use eastwest_types::{Rate, Span};
use serde::{Deserialize, Serialize};

/// Policy of a link that goes to sleep after it has been idle for some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StallTimer {
    /// Stall timer: time for which the link stays awake without packets to send.
    pub stall: Span,
}

impl LinkSettings for StallTimer {
    const NAME: &'static str = "stall-timer";
    const DOC: &'static str = "the link sleeps after an idle time";
    const SLEEPS: bool = true;

    fn read(s: &mut Section) -> StallTimer {
        let stall = key("stall", "Idle time after which the link falls asleep (E-EON: 50 µs).");
        StallTimer { stall: s.get(stall.default("50 us").range("1 ns", "1 s")) }
    }

    fn sleep(&self, _: Rate, _: Option<Span>) -> Option<Policy> {
        Some(Policy { stall: self.stall, ..Policy::STANDARD })
    }
}
