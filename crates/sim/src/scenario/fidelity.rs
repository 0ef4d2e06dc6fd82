//! `fidelity`: whether packets or flows are simulated.

use eastwest_settings::reader::Section;

/// Level of detail of the simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fidelity {
    /// Packet mode: every packet is simulated on every link.
    Packet,
    /// Flow mode: flows share links with max–min fair rates; approximate.
    Flow,
}

/// Reads the key `fidelity`: whether packets or flows are simulated.
pub fn read(s: &mut Section) -> Fidelity {
    s.choice(
        "fidelity",
        "Level of detail of the network model.",
        Some("packet"),
        &[
            ("packet", Fidelity::Packet, "simulates every packet on every hop"),
            (
                "flow",
                Fidelity::Flow,
                "simulates flows with max–min fair rates instead of packets: approximate, for \
                 fabrics and traces that are too large for packets",
            ),
        ],
    )
}
