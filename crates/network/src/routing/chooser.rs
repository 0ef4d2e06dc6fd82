//! What every choice among equal paths provides: settings with their names and how they are read, and the
//! choice that they make.

use super::asked::{Asked, View};
use eastwest_settings::Section;
use eastwest_types::HostId;
use std::fmt;

/// Settings of a choice among equal paths.
pub trait RoutingSettings: Clone + fmt::Debug + PartialEq {
    /// The choice of all switches.
    type Chooser: Chooser;

    /// The choice before any packet.
    fn start(&self, switches: u32, seed: u64) -> Self::Chooser;

    /// Whether all packets of a flow take one path, which is known before the first.
    fn is_per_flow(&self) -> bool {
        false
    }

    /// Whether ports can have weights.
    fn weighs(&self) -> bool {
        true
    }

    /// Whether it looks at queues, so that ports must know theirs at every moment.
    fn looks_at_queues(&self) -> bool {
        false
    }
}

/// How scenarios name a choice and give its settings.
pub trait BuiltIn: RoutingSettings {
    /// Its name: `routing = "flowlet"`.
    const NAME: &'static str;
    /// One line of explanation.
    const DOC: &'static str;
    /// Keys of `[fabric]` that mean something with this choice only.
    const KEYS: &'static [&'static str] = &[];

    /// Reads the settings from the table `[fabric]`, also where another choice is named.
    fn read(s: &mut Section) -> Self;
}

/// The choice of all switches: settings and state.
pub trait Chooser {
    /// Whether the hash of the flow alone decides: then nothing else is asked.
    fn goes_by_hash(&self) -> bool {
        false
    }

    /// Whether packets of one flow may be spread over ports.
    fn deals(&self) -> bool {
        false
    }

    /// The number of the port that a packet takes; `turn` is that of the one before at this set of ports.
    fn choose<'f>(
        &mut self,
        asked: &Asked,
        turn: &mut u32,
        view: impl FnOnce() -> View<'f>,
    ) -> usize;

    /// The ports that packets to a host may take.
    fn possible<'m>(&self, _dst: HostId, members: &'m [u32]) -> &'m [u32] {
        members
    }
}
