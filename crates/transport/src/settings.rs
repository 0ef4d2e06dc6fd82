//! Interface of transports other than TCP, which scenarios choose with `transport = "…"`: their
//! settings.

use eastwest_settings::reader::Section;

/// Properties of the layers below a transport: packet size and framing.
pub struct Below {
    /// Largest IP packet in bytes; `None` if it is not known.
    pub mtu: Option<u32>,
    /// Bytes of a packet on a link in addition to its IP length: headers and framing of the link.
    pub framing: u32,
}

/// Settings of a transport, which are a table of the scenario.
pub trait TransportSettings: Sized {
    /// Name of the transport in scenarios, and of the table with its settings.
    const NAME: &'static str;
    /// Explanation of the transport's name in the reference of settings, among the values of the
    /// key `transport` of a workload.
    const CHOICE: &'static str;
    /// Explanation of the table with the transport's settings, in the reference of settings.
    const TABLE: &'static str;

    /// Reads the settings of the transport from its table; `below`: properties of the layers below
    /// it.
    fn read(s: &mut Section, below: &Below) -> Self;

    /// Whether packets are ECN-capable, because the transport reacts to ECN marks.
    fn asks_for_marks(&self) -> bool;

    /// Reads the transport's table of settings, if a workload uses the transport (`used`) or the
    /// file has the table. Returns `None` unless the transport is used. Adds a note if the file has
    /// the table and no workload uses the transport.
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
