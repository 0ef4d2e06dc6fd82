//! The way of every packet of selected senders, link by link: the table `packet_hops`.

use crate::origin::Place;
use crate::scenario::{PacketHopsConfig, Senders};
use eastwest_measure::packet_hops::{PacketHop, PacketHopLog};
use eastwest_network::journeys::Hop;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Recorder of the hops of all packets of selected senders.
#[derive(Debug, Serialize, Deserialize)]
pub struct HopRecorder {
    senders: Senders,
    /// Rows of the table `packet_hops`.
    pub rows: PacketHopLog,
}

impl HopRecorder {
    /// Returns a recorder of the hops of the packets of the senders that `asked` selects.
    pub fn new(asked: PacketHopsConfig) -> HopRecorder {
        HopRecorder { senders: asked.senders, rows: PacketHopLog::new(asked.rows) }
    }

    /// Whether the packets of at least one sender are recorded.
    pub fn is_on(&self) -> bool {
        !self.senders.is_empty()
    }

    /// Records that a packet has crossed a link, if its sender is selected. `place` is the place of
    /// the packet in the stream of its sender.
    pub fn take(&mut self, hop: &Hop, place: &Place) {
        let packet = &hop.packet;
        if !self.senders.contains(place.src, packet.dst) {
            return;
        }
        self.rows.push(PacketHop {
            packet: hop.number,
            hop: hop.count,
            connection: place.connection,
            src: place.src,
            dst: packet.dst,
            kind: packet.kind(),
            stream_start: place.position,
            bytes: u32::from(packet.payload),
            link: hop.link,
            arrived: hop.arrived,
            waited: hop.waited,
            transmission: hop.transmission,
            propagation: hop.propagation,
        });
    }

    /// Returns the section `packet_hop_rows` of the summary; `None` if no sender is selected.
    pub fn summary(&self) -> Option<Value> {
        let (rows, left_out) = self.rows.counts();
        self.is_on().then(|| json!({ "rows": rows, "left_out": left_out }))
    }
}
