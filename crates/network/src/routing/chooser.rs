//! Traits of policies that choose among equal paths: settings, reading of settings from a scenario,
//! and choice of a port.

use super::query::{Query, View};
use eastwest_settings::Section;
use eastwest_types::HostId;
use std::fmt;

/// Settings of a policy by which switches choose among equal paths.
pub trait RoutingSettings: Clone + fmt::Debug + PartialEq {
    /// Type that chooses paths for all switches, with its state.
    type Chooser: Chooser;

    /// Returns the object that chooses paths for all `switches` switches; `seed` is the seed of the
    /// run.
    fn start(&self, switches: u32, seed: u64) -> Self::Chooser;

    /// Whether all packets of a flow use one path, which can be computed before the first packet.
    fn is_per_flow(&self) -> bool {
        false
    }

    /// Whether the policy supports weights of ports.
    fn weighs(&self) -> bool {
        true
    }

    /// Whether the policy reads queue lengths. Ports must then know their queue length at every
    /// time.
    fn looks_at_queues(&self) -> bool {
        false
    }
}

/// Settings of a built-in policy that chooses among equal paths, with its name in scenarios and a
/// function that reads the settings.
pub trait BuiltIn: RoutingSettings {
    /// Name of the policy in scenarios, such as `flowlet` in `routing = "flowlet"`.
    const NAME: &'static str;
    /// One line of explanation of the policy, for the reference of settings.
    const DOC: &'static str;
    /// Keys of the table `[fabric]` that have an effect only with this policy.
    const KEYS: &'static [&'static str] = &[];

    /// Reads the settings from the table `[fabric]`, even if the scenario selects another policy.
    fn read(s: &mut Section) -> Self;
}

/// Chooses among equal paths at all switches: settings and state.
pub trait Chooser {
    /// Whether [`Routing::next_link`](super::Routing::next_link) chooses by the hash of the flow
    /// and never calls `choose`.
    fn goes_by_hash(&self) -> bool {
        false
    }

    /// Whether packets of one flow may be spread over several ports.
    fn deals(&self) -> bool {
        false
    }

    /// Returns the index in [`Query::members`] of the port on which a packet leaves. `turn` is the
    /// index of the last port used in round robin for this set of ports.
    fn choose<'f>(
        &mut self,
        query: &Query,
        turn: &mut u32,
        view: impl FnOnce() -> View<'f>,
    ) -> usize;

    /// Returns the ports, among the equal ports `members`, that packets to the host `_dst` may use.
    fn possible<'m>(&self, _dst: HostId, members: &'m [u32]) -> &'m [u32] {
        members
    }
}
