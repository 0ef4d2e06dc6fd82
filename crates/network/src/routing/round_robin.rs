//! Round robin: each switch distributes packets with the same set of equal ports over these ports
//! in cyclic order.

use super::chooser::{BuiltIn, Chooser, RoutingSettings};
use super::query::{Query, View};
use eastwest_settings::Section;
use serde::{Deserialize, Serialize};

/// Round robin over equal paths. The type has no settings, and also makes the choice at each
/// switch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundRobin;

impl BuiltIn for RoundRobin {
    const NAME: &'static str = "round-robin";
    const DOC: &'static str = "per packet, in turn";

    fn read(_: &mut Section) -> RoundRobin {
        RoundRobin
    }
}

impl RoutingSettings for RoundRobin {
    type Chooser = RoundRobin;

    fn start(&self, _switches: u32, _seed: u64) -> RoundRobin {
        RoundRobin
    }
}

impl Chooser for RoundRobin {
    fn deals(&self) -> bool {
        true
    }

    fn choose<'f>(&mut self, query: &Query, turn: &mut u32, _: impl FnOnce() -> View<'f>) -> usize {
        *turn = if *turn as usize + 1 == query.members.len() { 0 } else { *turn + 1 };
        *turn as usize
    }
}
