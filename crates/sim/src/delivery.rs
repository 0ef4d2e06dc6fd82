//! Messages over TCP that have arrived: their rows, and what workloads are told.

use crate::messages::{Delivered, Suffered};
use crate::world::World;
use eastwest_measure::flows::FlowRow;
use eastwest_transport::tcp::Notice;
use eastwest_types::{ConnId, EndpointId};
use eastwest_workload::Event;

impl World {
    /// Bytes have arrived that a message ends with.
    pub(crate) fn deliver_messages(&mut self, receiver: EndpointId) {
        let received = self.stack.endpoint(receiver).received();
        while let Some(d) = self.messages.pop(receiver, received) {
            if self.share.is_some() {
                self.delivered_in_part(receiver, &d);
            } else if d.message.record {
                self.record_flow(receiver, &d);
            }
            if let Some(name) = d.name {
                let conn = ConnId(name);
                let tag = d.message.tag;
                self.tell(d.workload, Event::Delivered { conn, from: d.from, tag });
            }
            if self.share.is_some() {
                self.set_other(None);
            }
        }
        self.watch(receiver);
    }

    /// The row of a message that has arrived.
    pub(crate) fn flow_row(&self, receiver: EndpointId, d: &Delivered) -> FlowRow {
        let sender = self.stack.endpoint(receiver.peer());
        let config = self.stack.config_of(receiver.peer());
        let ideal = self.fabric.ideal_time(
            sender.local(),
            sender.remote(),
            d.message.payload,
            config.segment,
            config.header(),
        );
        let connection = self.connections.of(receiver).number;
        let (ends, now) = ((sender.local(), sender.remote()), Suffered::by(sender));
        d.row(self.now, ends, now, connection, ideal)
    }

    fn record_flow(&mut self, receiver: EndpointId, d: &Delivered) {
        let row = self.flow_row(receiver, d);
        if self.paths.is_on() {
            self.path_ends(receiver, &row, &d.message);
        }
        self.records.flow(row);
    }

    /// Asks the receiver's endpoint to tell when its next message is complete.
    pub(crate) fn watch(&mut self, receiver: EndpointId) {
        if let Some(end) = self.messages.next_end(receiver)
            && self.stack.expect(receiver, end)
        {
            self.notices.push((receiver, Notice::Delivered));
        }
    }
}
