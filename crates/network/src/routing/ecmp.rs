//! Equal-cost multipath (ECMP; RFC 2992): a seeded hash of the flow chooses among equal ports.
//!
//! The choice itself is in [`Routing::next_link`](super::Routing::next_link), which mixes the hash
//! of the packet with a seed of the switch. ECMP needs neither state nor information about the
//! network, so that no [`Chooser`] is called.

use super::chooser::{BuiltIn, Chooser, RoutingSettings};
use super::query::{Query, View};
use eastwest_settings::Section;
use serde::{Deserialize, Serialize};

/// ECMP policy, which has no settings. Its `choose` is never called, since
/// [`Routing::next_link`](super::Routing::next_link) chooses by the hash of the flow.
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

    fn choose<'f>(&mut self, _: &Query, _: &mut u32, _: impl FnOnce() -> View<'f>) -> usize {
        unreachable!("Routing::next_link chooses by the hash")
    }
}
