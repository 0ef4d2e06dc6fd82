//! Interface of the settings of a transport that scenarios choose with `transport = "…"` beside TCP.

use eastwest_settings::reader::Section;

/// Properties of the layers below a transport.
pub struct Below {
    /// Largest IP packet, if known.
    pub mtu: Option<u32>,
    /// Bytes of a packet on a link in addition to its IP length.
    pub framing: u32,
}

/// Settings of a transport: a table of the scenario.
pub trait TransportSettings: Sized {
    /// Name of the transport, and of the table of its settings.
    const NAME: &'static str;
    /// Explanation of the name where a workload chooses its transport.
    const CHOICE: &'static str;
    /// Explanation of the table.
    const TABLE: &'static str;

    /// Reads the table.
    fn read(s: &mut Section, below: &Below) -> Self;

    /// Whether packets are ECN-capable because the transport reacts to marks.
    fn asks_for_marks(&self) -> bool;

    /// Reads the table if a workload uses the transport or the file has the table.
    fn read_if_used(
        s: &mut Section,
        below: &Below,
        used: bool,
        notes: &mut Vec<String>,
    ) -> Option<Self> {
        let name = Self::NAME;
        let given = s.has(name);
        if !given && !used && !s.describing() {
            return None;
        }
        if given && !used && !s.describing() {
            notes.push(format!(
                "[{name}] has no effect, because no workload has transport = \"{name}\""
            ));
        }
        let config = s.table(name, Self::TABLE, |t| Self::read(t, below));
        used.then_some(config)
    }
}
