//! Flows of open-loop workloads, whose starts are known before any of them is simulated.

use crate::messages::{Delivered, LossCounts, Message};
use eastwest_measure::flows::FlowRow;
use eastwest_types::{ClassId, HostId, Purpose, Side, Span, Time};

/// A flow: one message of the client of a connection that carries nothing else.
#[derive(Clone, Debug)]
pub struct OpenFlow {
    /// Number of the workload that starts the flow.
    pub workload: u16,
    /// The workload's number for the connection.
    pub name: u32,
    /// Traffic class of the packets.
    pub class: ClassId,
    /// Sender (the client of the connection) and receiver.
    pub ends: (HostId, HostId),
    /// Time at which the connection is opened and the message is written.
    pub start: Time,
    /// Links of the path of the data, and of the path of the acknowledgements.
    pub paths: [Box<[u32]>; 2],
    /// The message.
    pub message: Message,
}

impl OpenFlow {
    /// Returns a flow whose message is not known yet.
    pub fn opened(
        (workload, name, class): (u16, u32, ClassId),
        ends: (HostId, HostId),
        start: Time,
        paths: [Box<[u32]>; 2],
    ) -> OpenFlow {
        let message = Message {
            start: 0,
            end: 0,
            tag: 0,
            payload: 0,
            purpose: Purpose::Flow,
            job: None,
            record: true,
            sent: start,
            before: LossCounts::default(),
        };
        OpenFlow { workload, name, class, ends, start, paths, message }
    }

    /// Returns the bytes of the message, with the header of the application.
    pub fn bytes(&self) -> u64 {
        self.message.end
    }

    /// Returns the row of the flow in the table of flows; `number` is the number of its connection.
    pub fn row(&self, finish: Time, number: u64, ideal: Span) -> FlowRow {
        let delivered = Delivered {
            message: self.message,
            from: Side::Client,
            workload: self.workload,
            name: Some(self.name),
            class: self.class,
        };
        delivered.row(finish, self.ends, LossCounts::default(), number, ideal)
    }
}
