//! Settings of packet coalescing (Christensen et al., IEEE Comm. Mag. 48(11), 2010): a sleeping
//! link holds packets until a given number of packets or bytes have arrived, or until the first
//! packet has been held for a given time. The rule is implemented in `LpiState::plan_wake` in
//! `eee.rs`.

use super::eee::{Policy, Trigger};
use super::policy::LinkSettings;
use eastwest_settings::{Section, key};
use eastwest_types::{Limit, Rate, Span};
use serde::{Deserialize, Serialize};

/// Policy of a link that goes to sleep as soon as it has no packet to send, and wakes for several
/// packets together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Coalescing {
    /// Longest time for which the first packet that finds the link asleep is held.
    pub hold: Span,
    /// Number of held packets or bytes at which the link wakes before `hold` is over.
    pub trigger: Trigger,
}

impl LinkSettings for Coalescing {
    const NAME: &'static str = "coalescing";
    const DOC: &'static str = "the link sleeps as soon as it is idle, and wakes when a timer of \
                               the first packet expires or enough packets wait";
    const SLEEPS: bool = true;

    fn read(s: &mut Section) -> Coalescing {
        let hold = s.get(
            key(
                "hold",
                "Longest time for which the first packet of a sleeping link is held (E-EON: 12 µs \
                 to 10 ms).",
            )
            .default("120 us")
            .range("0 s", "1 s"),
        );
        let trigger: Limit = s.get(
            key(
                "trigger",
                "Backlog, in packets or IP bytes, at which the link wakes at once (E-EON: 10 to \
                 1000 packets).",
            )
            .default("100 packets"),
        );
        let trigger = match trigger {
            Limit::Packets(n) => Trigger::Packets(n),
            Limit::Bytes(n) => Trigger::Bytes(n),
        };
        Coalescing { hold, trigger }
    }

    fn sleep(&self, _: Rate, _: Option<Span>) -> Option<Policy> {
        Some(Policy { hold: self.hold, trigger: self.trigger, ..Policy::STANDARD })
    }

    fn hold(&self) -> Span {
        self.hold
    }
}
