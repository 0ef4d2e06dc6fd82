//! Sleep policy of links that never sleep.

use super::policy::LinkSettings;
use eastwest_settings::Section;
use serde::{Deserialize, Serialize};

/// Policy of a link that is always awake.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AlwaysOn;

impl LinkSettings for AlwaysOn {
    const NAME: &'static str = "always-on";
    const DOC: &'static str = "the link is always awake (legacy Ethernet)";

    fn read(_: &mut Section) -> AlwaysOn {
        AlwaysOn
    }
}
