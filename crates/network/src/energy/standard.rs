//! Sleep policy of IEEE 802.3az: links go to sleep as soon as they have no packet to send, and wake
//! for the first packet.

use super::eee::Policy;
use super::policy::LinkSettings;
use eastwest_settings::Section;
use eastwest_types::{Rate, Span};
use serde::{Deserialize, Serialize};

/// Policy of a link that goes to sleep as soon as it has no packet to send, and wakes for the first
/// packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Standard;

impl LinkSettings for Standard {
    const NAME: &'static str = "standard";
    const DOC: &'static str = "the link sleeps as soon as it is idle, and wakes for the first \
                               packet";
    const SLEEPS: bool = true;

    fn read(_: &mut Section) -> Standard {
        Standard
    }

    fn sleep(&self, _: Rate, _: Option<Span>) -> Option<Policy> {
        Some(Policy::STANDARD)
    }
}
