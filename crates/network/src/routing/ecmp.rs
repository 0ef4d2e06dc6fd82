//! Equal-cost multipath (RFC 2992): the hash of a flow chooses, mixed with a seed of each switch.

use super::asked::{Asked, View};
use super::chooser::{BuiltIn, Chooser, RoutingSettings};
use eastwest_settings::Section;
use serde::{Deserialize, Serialize};

/// Settings of ECMP, which has none, and the choice, which the table of routes makes itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ecmp;

impl BuiltIn for Ecmp {
    const NAME: &'static str = "ecmp";
    const DOC: &'static str = "per flow, by a seeded hash of the five-tuple (RFC 2992)";

    fn read(_: &mut Section) -> Ecmp {
        Ecmp
    }
}

impl RoutingSettings for Ecmp {
    type Chooser = Ecmp;

    fn start(&self, _switches: u32, _seed: u64) -> Ecmp {
        Ecmp
    }

    fn is_per_flow(&self) -> bool {
        true
    }
}

impl Chooser for Ecmp {
    fn goes_by_hash(&self) -> bool {
        true
    }

    fn choose<'f>(&mut self, _: &Asked, _: &mut u32, _: impl FnOnce() -> View<'f>) -> usize {
        unreachable!("the table itself knows the hash")
    }
}
