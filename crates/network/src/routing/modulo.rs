//! Static routing by the receiver: among n equal ports, a packet uses port d mod n, where d is the
//! number of the receiving host. All senders to d share this port (the routing of Gusat et al.,
//! *Benchmarking the Ethernet-Federated Datacenter*, 2009).

use super::chooser::{BuiltIn, Chooser, RoutingSettings};
use super::query::{Query, View};
use eastwest_settings::Section;
use eastwest_types::HostId;
use serde::{Deserialize, Serialize};
use std::slice::from_ref;

/// Static routing: of n ports with equally short paths, a packet to host number d takes port d mod n.
/// The type is both the settings, of which there are none, and the chooser of the port.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Modulo;

/// Returns the index, among `ports` equal ports, of the port that static routing uses for packets
/// to `dst`.
pub fn modulo(dst: HostId, ports: usize) -> usize {
    dst.0 as usize % ports
}

impl BuiltIn for Modulo {
    const NAME: &'static str = "modulo";
    const DOC: &'static str =
        "static: the port whose number is that of the receiving host modulo the number of ports";

    fn read(_: &mut Section) -> Modulo {
        Modulo
    }
}

impl RoutingSettings for Modulo {
    type Chooser = Modulo;

    fn start(&self, _switches: u32, _seed: u64) -> Modulo {
        Modulo
    }

    fn is_per_flow(&self) -> bool {
        true
    }

    fn weighs(&self) -> bool {
        false
    }
}

impl Chooser for Modulo {
    fn choose<'f>(&mut self, query: &Query, _: &mut u32, _: impl FnOnce() -> View<'f>) -> usize {
        modulo(query.dst, query.members.len())
    }

    fn possible<'m>(&self, dst: HostId, members: &'m [u32]) -> &'m [u32] {
        from_ref(&members[modulo(dst, members.len())])
    }
}
