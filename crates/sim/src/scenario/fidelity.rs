//! `fidelity`: simulation of packets, or of flows.

use eastwest_settings::reader::Section;

/// Level of detail of the simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fidelity {
    /// Every packet on every hop.
    Packet,
    /// Flows with max–min fair rates: approximate.
    Flow,
}

/// Reads `fidelity`.
pub fn read(s: &mut Section) -> Fidelity {
    s.choice(
        "fidelity",
        "How closely the network is looked at.",
        Some("packet"),
        &[
            ("packet", Fidelity::Packet, "every packet on every hop"),
            (
                "flow",
                Fidelity::Flow,
                "flows with max–min fair rates in place of packets: approximate, for fabrics and \
                 traces too large for packets",
            ),
        ],
    )
}
