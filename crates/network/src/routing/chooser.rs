//! Traits of a choice among equal paths: settings with their names and how they are read, and the chooser that
//! they create.

use super::query::{Query, View};
use eastwest_settings::Section;
use eastwest_types::HostId;
use std::fmt;

/// Settings of a policy by which switches choose among equal paths.
pub trait RoutingSettings: Clone + fmt::Debug + PartialEq {
    /// Chooser of all switches.
    type Chooser: Chooser;

    /// Returns the chooser for this number of switches, before any packet.
    fn start(&self, switches: u32, seed: u64) -> Self::Chooser;

    /// Whether all packets of a flow take one path, which is known before the first packet.
    fn is_per_flow(&self) -> bool {
        false
    }

    /// Whether ports can have weights with this policy.
    fn weighs(&self) -> bool {
        true
    }

    /// Whether the policy reads queue lengths, so that ports must know theirs at every moment.
    fn looks_at_queues(&self) -> bool {
        false
    }
}

/// Name, in scenarios, of a policy that chooses among equal paths, and how its settings are read.
pub trait BuiltIn: RoutingSettings {
    /// Name of the policy in scenarios: `routing = "flowlet"`.
    const NAME: &'static str;
    /// One line of explanation of the policy, for the reference of settings.
    const DOC: &'static str;
    /// Keys of `[fabric]` that have an effect with this policy only.
    const KEYS: &'static [&'static str] = &[];

    /// Reads the settings from the table `[fabric]`, also where the scenario names another policy.
    fn read(s: &mut Section) -> Self;
}

/// Chooser among equal paths, for all switches: settings and state.
pub trait Chooser {
    /// Whether [`Routing::next_link`](super::Routing::next_link) chooses by the hash of the flow, without a
    /// call of `choose`.
    fn goes_by_hash(&self) -> bool {
        false
    }

    /// Whether packets of one flow may be spread over ports.
    fn deals(&self) -> bool {
        false
    }

    /// Returns the index, among [`Query::members`], of the port that a packet takes; `turn` is the
    /// index of the port that the last packet with this set of ports took in turn.
    fn choose<'f>(
        &mut self,
        query: &Query,
        turn: &mut u32,
        view: impl FnOnce() -> View<'f>,
    ) -> usize;

    /// Returns the ports, of the equal ones in `members`, that packets to a host may take.
    fn possible<'m>(&self, _dst: HostId, members: &'m [u32]) -> &'m [u32] {
        members
    }
}
