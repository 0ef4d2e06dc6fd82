//! The table of events: turns lost packets and what TCP does about them into rows.
//!
//! The fabric keeps lost packets with 32 bits of their positions until this module asks for them:
//! when something else becomes a row, when a connection is opened (whose slot others may have had)
//! and every 65,536 events. In that time a stream cannot move on by 2 GiB, so the upper bits are
//! those of what the sender has had acknowledged. At one picosecond what TCP does goes first, for
//! what it then sends may be lost at once.

use crate::world::World;
use eastwest_engine::order::Key;
use eastwest_measure::events::{EventRow, What};
use eastwest_network::losses::{EventOrder, Lost};
use eastwest_transport::tcp::Repair;
use eastwest_types::{EndpointId, HostId, Packet, Time};

impl World {
    /// Makes rows of what was lost before this time.
    #[cold]
    pub(crate) fn note_losses(&mut self, before: Time) {
        if self.fabric.losses.kept {
            self.fabric.settle_lazy(self.now);
        }
        while let Some(lost) = self.fabric.losses.take_before(before) {
            if let Some(stream) = self.streams.lose(&lost) {
                self.parcel_lost(stream, &lost);
            }
            if self.records.events.is_on() {
                let row = self.row_of(&lost);
                self.keep_event(row, lost.order);
            }
        }
    }

    fn row_of(&self, lost: &Lost) -> EventRow {
        let packet = &lost.packet;
        let row = EventRow {
            at: lost.at,
            what: What::Drop,
            connection: None,
            src: HostId(packet.window),
            dst: lost.dst,
            stream_start: 0,
            bytes: u32::from(packet.payload),
            drop: Some((packet.kind(), lost.link, lost.cause as u8)),
            timeout: None,
        };
        if packet.notes & Packet::DATAGRAM != 0 {
            let all = self.rocev2.as_deref().filter(|_| packet.flags != 0);
            return all.map_or(row, |all| {
                let (connection, _, stream_start) = all.origin_of(packet);
                EventRow { connection: Some(connection.number), stream_start, ..row }
            });
        }
        let sender = packet.dst_endpoint.peer();
        let connection = self.connections.of(sender);
        let acknowledged = self.stack.endpoint(sender).acknowledged();
        EventRow {
            connection: Some(connection.number),
            src: connection.stream_of(sender).0,
            stream_start: Packet::widen(packet.seq, acknowledged).saturating_sub(1),
            ..row
        }
    }

    /// Makes a row of a step of repairing losses, which concerns these positions.
    pub(crate) fn note_repair(&mut self, end: EndpointId, step: Repair, from: u64, to: u64) {
        let (what, cause) = match step {
            Repair::Timeout(cause) => (What::Timeout, Some(cause as u8)),
            Repair::Recovery => (What::Recovery, None),
            Repair::Recovered => (What::Recovered, None),
            Repair::Spurious => (What::Spurious, None),
        };
        self.note(end, what, cause, (from, to));
    }

    /// Makes a row of a connection that is given up.
    pub(crate) fn note_failure(&mut self, end: EndpointId) {
        let e = self.stack.endpoint(end);
        let (from, to) = (e.acknowledged(), e.acknowledged() + e.outstanding());
        self.note(end, What::Failed, None, (from, to));
    }

    /// `timeout` is the number of the cause of a timeout.
    fn note(&mut self, end: EndpointId, what: What, timeout: Option<u8>, (from, to): (u64, u64)) {
        if !self.records.events.is_on() {
            return;
        }
        self.note_losses(self.now);
        let connection = self.connections.of(end);
        let (src, dst) = connection.stream_of(end);
        // neither the SYN nor the FIN is payload
        let first = from.max(1) - 1;
        let after = to.max(1) - 1;
        let bytes = after.min(self.stack.endpoint(end).written()).saturating_sub(first);
        let order = match self.share {
            None => ((Key::NEVER, 0), 0),
            Some(_) => self.order_of_event_at(self.stack.endpoint(end).local()),
        };
        let row = EventRow {
            at: self.now,
            what,
            connection: Some(connection.number),
            src,
            dst,
            stream_start: first,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            drop: None,
            timeout,
        };
        self.keep_event(row, order);
    }

    fn keep_event(&mut self, row: EventRow, order: EventOrder) {
        match &mut self.share {
            None => self.records.events.push(row),
            // those of one part are in order, so that the first of all parts are among them
            Some(share) if share.events.len() < self.records.events.most() => {
                share.events.push((order, row));
            }
            Some(share) => share.events_left_out += 1,
        }
    }
}
