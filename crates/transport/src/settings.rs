//! Interface of the settings of a transport that scenarios choose with `transport = "…"` beside TCP.

use eastwest_settings::reader::Section;

/// Properties of the layers below a transport.
pub struct Below {
    /// Largest IP packet in bytes; `None` if it is not known.
    pub mtu: Option<u32>,
    /// Bytes on a link for each packet in addition to its IP length: headers and framing of the
    /// link.
    pub framing: u32,
}

/// Settings of a transport: a table of the scenario.
pub trait TransportSettings: Sized {
    /// Name of the transport in scenarios, and of the table of its settings.
    const NAME: &'static str;
    /// Explanation of the name in the reference of settings, where a workload chooses its
    /// transport.
    const CHOICE: &'static str;
    /// Explanation of the table of settings in the reference of settings.
    const TABLE: &'static str;

    /// Reads the settings from their table.
    fn read(s: &mut Section, below: &Below) -> Self;

    /// Whether packets are ECN-capable because the transport reacts to marks.
    fn asks_for_marks(&self) -> bool;

    /// Reads the table of settings if a workload uses the transport (`used`) or the file has the
    /// table. Returns `None` unless the transport is used; adds a note if the file has the table
    /// without use.
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
