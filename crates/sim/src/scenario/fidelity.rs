//! `fidelity`: whether the whole fabric is simulated in packets, single links, or flows.

use eastwest_settings::reader::Section;

/// Level of detail of the simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fidelity {
    /// Packet mode: every packet is simulated on every link.
    Packet,
    /// Flow mode: flows share links with max–min fair rates; approximate.
    Flow,
    /// Link mode: links are simulated in packets one by one; approximate.
    Links,
}

/// Reads the key `fidelity`: the level of detail of the simulation.
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
            (
                "links",
                Fidelity::Links,
                "simulates links in packets one by one and joins the times of each flow at its links: \
                 approximate, for flows that start independently of each other on fabrics that are too \
                 large for packets",
            ),
        ],
    )
}
