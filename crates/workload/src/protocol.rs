//! Interface between workloads and the simulation: events to the workload, actions from it.

use eastwest_types::{
    ClassId, ConnId, HostId, JobRecord, MpiMessage, MpiRank, MpiState, Purpose, Side, TaskRecord,
    Time, TransactionRecord,
};

/// Properties of the fabric that a workload knows.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Rack (edge switch) of every host; the length is the number of hosts.
    pub rack_of: Vec<u32>,
    /// Seed of the run; named random streams are derived from it.
    pub seed: u64,
}

/// An event for a workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// Start of the simulation: the first event of every workload, at time zero.
    Begin,
    /// Wake-up requested by [`Action::Wake`].
    Wake {
        /// Token of the wake-up, from [`Action::Wake`].
        token: u64,
    },
    /// The last byte of a message has reached the receiving application in order.
    Delivered {
        /// Connection of the message.
        conn: ConnId,
        /// Side of the connection that sent the message.
        from: Side,
        /// Tag of the message, from [`Action::Send`].
        tag: u64,
    },
    /// Arrival of all frames of a [`Parcel`], after all earlier parcels of its line.
    Arrived {
        /// Tag of the parcel, from [`Parcel::tag`].
        tag: u64,
    },
    /// TCP has aborted a connection after too many timeouts; its name is free. Sent only to
    /// workloads that [handle it](crate::Workload::bears_failures).
    Failed {
        /// Name of the connection.
        conn: ConnId,
    },
    /// Answer to [`Action::Ask`], at the same time.
    Received {
        /// Name of the connection.
        conn: ConnId,
        /// Bytes that have arrived in order at the client and at the server, application framing included.
        bytes: [u64; 2],
    },
}

/// A message sent as raw Ethernet frames, without connection. Parcels between two hosts with equal
/// `line` arrive in the order in which they were sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parcel {
    /// Sender.
    pub from: HostId,
    /// Receiver; never equal to the sender.
    pub to: HostId,
    /// Number of the parcel's line: parcels of different lines do not wait for each other.
    pub line: u8,
    /// Bytes of the message, application framing included.
    pub bytes: u64,
    /// Bytes of a full frame without link framing, at most the MTU.
    pub frame: u16,
    /// Traffic class of its frames.
    pub class: ClassId,
    /// Tag that [`Event::Arrived`] returns.
    pub tag: u64,
}

/// An action requested by a workload.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// Wake the workload.
    Wake {
        /// Time of the wake-up, not before now.
        at: Time,
        /// Token that [`Event::Wake`] returns.
        token: u64,
    },
    /// Open a TCP connection: the client sends its SYN now.
    Open {
        /// Name of the connection, chosen by the workload, not equal to that of another open connection of it.
        conn: ConnId,
        /// Connecting host.
        client: HostId,
        /// Listening host; never equal to the client.
        server: HostId,
        /// Traffic class of its packets.
        class: ClassId,
    },
    /// Write a message to a connection. Allowed from its opening on, from both sides: bytes wait
    /// for the handshake. Messages of one side arrive in order.
    Send {
        /// Name of the connection.
        conn: ConnId,
        /// Writing side.
        from: Side,
        /// Application bytes that count as payload of this message.
        payload: u64,
        /// Bytes of application framing before the payload (HTTP header and the like).
        header: u32,
        /// Tag that [`Event::Delivered`] returns.
        tag: u64,
        /// Purpose of the message.
        purpose: Purpose,
        /// Number of the job of the message, for the flow table; `None` for a message of no job.
        job: Option<u32>,
        /// Whether the message gets a row in the flow table.
        record: bool,
    },
    /// Close one direction (`shutdown` of sockets): the FIN follows the last byte. The connection
    /// keeps its name until it is closed.
    Shutdown {
        /// Name of the connection.
        conn: ConnId,
        /// Side that stops writing.
        from: Side,
    },
    /// Stop sending from one side. The transport drops the bytes that are written and not yet sent;
    /// the last message of the side ends at the last byte sent.
    Truncate {
        /// Name of the connection.
        conn: ConnId,
        /// Side that stops sending.
        from: Side,
    },
    /// Close a connection from both sides after all written data is delivered. Its name is free at once.
    Close {
        /// Name of the connection.
        conn: ConnId,
    },
    /// Abort a connection: undelivered data is lost. Its name is free at once.
    Abort {
        /// Name of the connection.
        conn: ConnId,
    },
    /// Request how much has arrived on a connection, for timeouts of applications. There is no
    /// answer if the connection was closed in the meantime, for example by the workload's reaction
    /// to an earlier answer.
    Ask {
        /// Name of the connection.
        conn: ConnId,
    },
    /// Send one packet without connection.
    Datagram {
        /// Sender.
        from: HostId,
        /// Receiver; never equal to the sender.
        to: HostId,
        /// IP bytes, at most the MTU.
        bytes: u16,
        /// Traffic class of the packet.
        class: ClassId,
    },
    /// Send one frame of a stream, without connection.
    Frame {
        /// Sender.
        from: HostId,
        /// Receiver; never equal to the sender.
        to: HostId,
        /// Bytes without link framing, at most the MTU.
        bytes: u16,
        /// Traffic class of the frame.
        class: ClassId,
        /// Number of the stream within the workload.
        stream: u32,
    },
    /// Send a message as frames, without connection.
    Parcel(Parcel),
    /// A job has finished.
    Job(Box<JobRecord>),
    /// A task has finished.
    Task(Box<TaskRecord>),
    /// A transaction has finished.
    Transaction(Box<TransactionRecord>),
    /// A round of a synchronized read has finished.
    Round {
        /// Number of the round from 0.
        round: u32,
        /// Start time of the round.
        started: Time,
        /// Payload bytes of all senders in this round.
        bytes: u64,
    },
    /// A rank of an MPI program has finished.
    MpiRank(Box<MpiRank>),
    /// An activity of a rank has ended.
    MpiState(MpiState),
    /// A message between ranks has been received.
    MpiMessage(Box<MpiMessage>),
    /// The workload cannot continue, with the reason: the run ends without result.
    Fail(String),
    /// This workload has nothing more to do. A workload that never finishes must be declared
    /// background; the simulation ends when every other workload has finished.
    Finished,
}
