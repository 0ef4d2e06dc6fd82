//! Packet spraying: every packet uses a random port among the equal ports (Dixit et al., *On the
//! Impact of Packet Spraying in Data Center Networks*, INFOCOM 2013).

use super::chooser::{BuiltIn, Chooser, RoutingSettings};
use super::query::{Query, SwitchPlace, View};
use eastwest_engine::random::Stream;
use eastwest_settings::Section;
use serde::{Deserialize, Serialize};

/// Packet spraying, which has no settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SprayConfig;

/// Chooser of packet spraying: the stream of random numbers of every switch.
#[derive(Serialize, Deserialize)]
pub struct Spray(Vec<Stream>);

impl BuiltIn for SprayConfig {
    const NAME: &'static str = "spray";
    const DOC: &'static str = "per packet, at random";

    fn read(_: &mut Section) -> SprayConfig {
        SprayConfig
    }
}

impl RoutingSettings for SprayConfig {
    type Chooser = Spray;

    fn start(&self, switches: u32, seed: u64) -> Spray {
        Spray((0..switches).map(|switch| SwitchPlace { switch, seed }.random("spray")).collect())
    }
}

impl Chooser for Spray {
    fn deals(&self) -> bool {
        true
    }

    fn choose<'f>(&mut self, query: &Query, _: &mut u32, _: impl FnOnce() -> View<'f>) -> usize {
        self.0[query.switch as usize].below(query.members.len() as u64) as usize
    }
}
