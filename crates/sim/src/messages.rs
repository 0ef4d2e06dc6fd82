//! Messages of applications on byte streams: the stream positions at which messages begin and end,
//! and the numbers by which workloads identify their connections.

use eastwest_measure::flows::FlowRow;
use eastwest_transport::tcp::Endpoint;
use eastwest_types::{ClassId, EndpointId, HostId, Purpose, Side, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Returns the endpoint on `side` of the connection whose client has the endpoint `client`.
pub fn end_of(client: EndpointId, side: Side) -> EndpointId {
    match side {
        Side::Client => client,
        Side::Server => client.peer(),
    }
}

/// Numbers of retransmissions, timeouts and lost windows of a sender since its connection opened.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct LossCounts {
    retransmits: u32,
    timeouts: u32,
    lost_windows: u32,
    lost_ack_windows: u32,
}

impl LossCounts {
    /// Returns the counts of a sender that does not count lost windows.
    pub fn of(retransmits: u32, timeouts: u32) -> LossCounts {
        LossCounts { retransmits, timeouts, ..LossCounts::default() }
    }

    /// Returns the retransmissions, timeouts and lost windows of a TCP sender since its connection
    /// opened.
    pub fn by(sender: &Endpoint) -> LossCounts {
        let c = sender.counters();
        let (retransmits, timeouts) = (c.retransmits, c.timeouts);
        let (lost_windows, lost_ack_windows) = (c.lost_windows, c.lost_ack_windows);
        LossCounts { retransmits, timeouts, lost_windows, lost_ack_windows }
    }
}

/// A message that was written to a byte stream and is not yet delivered.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Message {
    /// Position of the first byte of the message in the stream: the number of bytes written before
    /// this byte.
    pub start: u64,
    /// Position after the last byte of the message in the stream.
    pub end: u64,
    /// Number that identifies the message to the workload, which receives it with the notification
    /// of the delivery.
    pub tag: u64,
    /// Payload bytes of the message, without the header of the application.
    pub payload: u64,
    /// Purpose of the message, such as shuffle, for tables of results.
    pub purpose: Purpose,
    /// Number of the job to which the message belongs, if any.
    pub job: Option<u32>,
    /// Whether the message gets a row in the table of flows.
    pub record: bool,
    /// Time at which the message was written.
    pub sent: Time,
    /// Loss counts of the sender at the time when the message was written. The row of the message
    /// contains only later losses.
    pub before: LossCounts,
}

/// A connection from the view of the workload that opened it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Connection {
    workload: u16,
    /// Name of the connection, chosen by its workload; `None` after the workload has closed the
    /// connection.
    name: Option<u32>,
    class: ClassId,
    /// Undelivered messages: sent by the client, and sent by the server, each in order of sending.
    in_flight: [VecDeque<Message>; 2],
}

/// Undelivered messages of all connections of a transport.
#[derive(Default, Serialize, Deserialize)]
pub struct Messages {
    connections: Vec<Option<Connection>>,
    /// Endpoint of the client, indexed by number of the workload and by the workload's number for
    /// the connection; `None` if there is no open connection with this number.
    names: Vec<Vec<Option<EndpointId>>>,
}

impl Messages {
    /// Returns the state without connections, for a run with this number of workloads.
    pub fn new(workloads: usize) -> Messages {
        Messages { connections: Vec::new(), names: vec![Vec::new(); workloads] }
    }

    /// Reserves memory for this number of further connections.
    pub fn reserve(&mut self, connections: usize) {
        self.connections.reserve(connections);
    }

    /// Registers a connection that a workload has opened. `name` is the workload's number for the
    /// connection, `client` the endpoint at the client.
    pub fn open(&mut self, workload: u16, name: u32, client: EndpointId, class: ClassId) {
        let index = client.slot() / 2;
        if self.connections.len() <= index {
            self.connections.resize(index + 1, None);
        }
        let in_flight = Default::default();
        self.connections[index] = Some(Connection { workload, name: Some(name), class, in_flight });
        let names = &mut self.names[usize::from(workload)];
        if names.len() <= name as usize {
            names.resize(name as usize + 1, None);
        }
        assert!(
            names[name as usize].is_none(),
            "workload {workload} opens connection {name} twice"
        );
        names[name as usize] = Some(client);
    }

    /// Returns the client's endpoint of the connection with the workload's number `name`; `None` if
    /// no open connection has this number.
    pub fn find(&self, workload: u16, name: u32) -> Option<EndpointId> {
        self.names[usize::from(workload)].get(name as usize).copied().flatten()
    }

    /// Returns the client's endpoint of the connection with the workload's number `name`. Panics if
    /// no open connection has this number.
    pub fn endpoint(&self, workload: u16, name: u32) -> EndpointId {
        self.find(workload, name).unwrap_or_else(|| {
            panic!("workload {workload} uses connection {name}, which is not open")
        })
    }

    /// Closes the connection with the workload's number `name`, so that the workload may use this
    /// number again. Returns the client's endpoint.
    pub fn close(&mut self, workload: u16, name: u32) -> EndpointId {
        let client = self.endpoint(workload, name);
        self.names[usize::from(workload)][name as usize] = None;
        if let Some(c) = &mut self.connections[client.slot() / 2] {
            c.name = None;
        }
        client
    }

    /// Returns the workload that opened the connection of an endpoint, and the workload's number
    /// for the connection, which is `None` after the workload has closed it. `None` if there is no
    /// connection.
    pub fn owner(&self, end: EndpointId) -> Option<(u16, Option<u32>)> {
        let c = self.connections.get(end.slot() / 2)?.as_ref()?;
        Some((c.workload, c.name))
    }

    /// Whether the connection of this endpoint is still needed: its workload has not closed it, or
    /// messages on the connection are in flight.
    pub fn is_needed(&self, end: EndpointId) -> bool {
        let c = self.connections[end.slot() / 2].as_ref();
        c.is_some_and(|c| c.name.is_some() || c.in_flight.iter().any(|queue| !queue.is_empty()))
    }

    /// Removes the connection of the endpoint `client`. Must be called when the transport has freed
    /// the slot of the connection.
    pub fn gone(&mut self, client: EndpointId) {
        self.connections[client.slot() / 2] = None;
    }

    /// Adds a message that the side `from` of a connection has written. Returns whether no other
    /// message of this side is in flight.
    pub fn push(&mut self, client: EndpointId, from: Side, message: Message) -> bool {
        let c = self.connections[client.slot() / 2].as_mut().expect("the connection is open");
        let queue = &mut c.in_flight[from as usize];
        queue.push_back(message);
        queue.len() == 1
    }

    /// Shortens undelivered messages of side `from` of a connection: their bytes from stream
    /// position `end` on were discarded before they were sent. `client` is the endpoint of the
    /// client of the connection.
    pub fn truncate(&mut self, client: EndpointId, from: Side, end: u64) {
        let c = self.connections[client.slot() / 2].as_mut().expect("the connection is open");
        for message in &mut c.in_flight[from as usize] {
            let header = message.end - message.start - message.payload;
            message.start = message.start.min(end);
            message.end = message.end.min(end);
            message.payload = (message.end - message.start).saturating_sub(header);
        }
    }

    /// Removes and returns the next message to `receiver` if all its bytes have arrived: it ends at
    /// or before the stream position `received`. Otherwise returns `None`.
    pub fn pop(&mut self, receiver: EndpointId, received: u64) -> Option<Delivered> {
        let c = self.connections[receiver.slot() / 2].as_mut()?;
        let from = receiver.side().other();
        let queue = &mut c.in_flight[from as usize];
        if queue.front()?.end > received {
            return None;
        }
        let message = queue.pop_front()?;
        Some(Delivered { message, from, workload: c.workload, name: c.name, class: c.class })
    }

    /// Returns the stream position after the last byte of the next message to `receiver`; `None` if
    /// no message is in flight.
    pub fn next_end(&self, receiver: EndpointId) -> Option<u64> {
        let c = self.connections[receiver.slot() / 2].as_ref()?;
        c.in_flight[receiver.side().other() as usize].front().map(|m| m.end)
    }

    /// Yields the stream positions after the last byte of all messages to `receiver` that are in
    /// flight, in order.
    pub fn ends(&self, receiver: EndpointId) -> impl Iterator<Item = u64> {
        let c = self.connections[receiver.slot() / 2].as_ref();
        let queue = c.map(|c| &c.in_flight[receiver.side().other() as usize]);
        queue.into_iter().flatten().map(|message| message.end)
    }

    /// Returns the message in flight that contains the byte at this position of the stream of
    /// `sender`; `None` if there is none.
    pub fn at(&self, sender: EndpointId, byte: u64) -> Option<&Message> {
        let c = self.connections.get(sender.slot() / 2)?.as_ref()?;
        let queue = &c.in_flight[sender.side() as usize];
        queue.get(queue.partition_point(|m| m.end <= byte))
    }

    /// Removes the connections for whose clients `is_kept` returns false.
    pub fn retain(&mut self, is_kept: impl Fn(EndpointId) -> bool) {
        for name in self.names.iter_mut().flatten() {
            if let Some(client) = name.take_if(|client| !is_kept(*client)) {
                self.connections[client.slot() / 2] = None;
            }
        }
    }

    /// Yields the clients' endpoints of all connections that workloads have not closed.
    pub fn clients(&self) -> impl Iterator<Item = EndpointId> + '_ {
        self.names.iter().flatten().copied().flatten()
    }

    /// Returns the receivers of undelivered messages.
    pub fn receivers(&self) -> Vec<EndpointId> {
        let ends = self.clients().flat_map(|client| [client, client.peer()]);
        ends.filter(|&end| self.next_end(end).is_some()).collect()
    }

    /// Moves messages from `other`, another part of a partitioned run (one run on several threads),
    /// into this part. Only messages of senders for which `theirs` returns true are moved.
    pub fn take_over(&mut self, other: &mut Messages, theirs: impl Fn(EndpointId) -> bool) {
        if self.connections.len() < other.connections.len() {
            self.connections.resize(other.connections.len(), None);
        }
        for (i, (mine, other)) in
            self.connections.iter_mut().zip(&mut other.connections).enumerate()
        {
            let Some(other) = other else { continue };
            for side in [Side::Client, Side::Server] {
                if theirs(end_of(EndpointId::new(2 * i, 0), side)) {
                    let mine = mine.get_or_insert_with(|| Connection {
                        in_flight: Default::default(),
                        ..*other
                    });
                    mine.in_flight[side as usize] =
                        std::mem::take(&mut other.in_flight[side as usize]);
                }
            }
        }
    }

    /// Returns all undelivered messages, each as (slot of the client's endpoint, side of the
    /// sender, message).
    pub fn outstanding(&self) -> impl Iterator<Item = (usize, Side, &Message)> {
        self.connections.iter().enumerate().filter_map(|(i, c)| Some((i, c.as_ref()?))).flat_map(
            |(i, c)| {
                [Side::Client, Side::Server]
                    .into_iter()
                    .flat_map(move |s| c.in_flight[s as usize].iter().map(move |m| (2 * i, s, m)))
            },
        )
    }
}

/// A message that has arrived completely, and its connection.
pub struct Delivered {
    /// The message that has arrived.
    pub message: Message,
    /// Side of the connection that sent the message.
    pub from: Side,
    /// Number of the workload that opened the connection.
    pub workload: u16,
    /// The workload's number for the connection; `None` after the workload has closed it.
    pub name: Option<u32>,
    /// Traffic class of the connection.
    pub class: ClassId,
}

impl Delivered {
    /// Returns the row of this message in the table of flows. `finish` is the time of its arrival,
    /// `now` the current loss counts of its sender, `ideal` its duration on an idle path.
    pub fn row(
        &self,
        finish: Time,
        (src, dst): (HostId, HostId),
        now: LossCounts,
        connection: u64,
        ideal: eastwest_types::Span,
    ) -> FlowRow {
        let m = &self.message;
        let before = &m.before;
        FlowRow {
            workload: self.workload,
            purpose: m.purpose,
            class: self.class,
            src,
            dst,
            bytes: m.payload,
            start: m.sent,
            finish,
            ideal,
            retransmits: now.retransmits - before.retransmits,
            timeouts: now.timeouts - before.timeouts,
            // A window counted as lost before the message was written may be counted as arrived
            // later, so the counts may decrease.
            lost_windows: now.lost_windows.saturating_sub(before.lost_windows),
            lost_ack_windows: now.lost_ack_windows.saturating_sub(before.lost_ack_windows),
            job: m.job,
            connection,
            stream_start: m.start,
            tag: m.tag,
        }
    }
}
