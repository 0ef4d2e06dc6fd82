//! What workloads and the simulation tell each other: events one way, actions the other.

use eastwest_types::{
    ClassId, ConnId, HostId, JobRecord, MpiMessage, MpiRank, MpiState, Purpose, Side, TaskRecord,
    Time, TransactionRecord,
};

/// What a workload knows of the fabric it runs on.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The rack (edge switch) of every host; its length is the number of hosts.
    pub rack_of: Vec<u32>,
    /// Seed of the run; named random streams are derived from it.
    pub seed: u64,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The simulation starts: the first event every workload gets, at time zero.
    Begin,
    /// A wake-up asked for by [`Action::Wake`].
    Wake {
        /// The token it was asked with.
        token: u64,
    },
    /// The last byte of a message has reached the receiving application in order.
    Delivered {
        /// The connection it came over.
        conn: ConnId,
        /// The side that had sent it.
        from: Side,
        /// The tag it was sent with.
        tag: u64,
    },
    /// All frames of a [`Parcel`] have arrived, and all before them on its line.
    Arrived {
        /// The tag it was sent with.
        tag: u64,
    },
    /// TCP has given a connection up after too many timeouts: it is gone, its name free. Only told
    /// to workloads that [bear it](crate::Workload::bears_failures).
    Failed {
        /// The connection.
        conn: ConnId,
    },
    /// The answer to [`Action::Ask`], at once.
    Received {
        /// The connection.
        conn: ConnId,
        /// Bytes that have arrived in order at each side, application framing included: at the
        /// client, at the server.
        bytes: [u64; 2],
    },
}

/// A message that travels as frames of raw Ethernet, without connection. Parcels of one host for another arrive
/// in the order in which they were sent, where they have the same `line`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parcel {
    /// Sender.
    pub from: HostId,
    /// Receiver; never the same host.
    pub to: HostId,
    /// Which of several lines between the two it takes; none waits behind another.
    pub line: u8,
    /// Bytes, application framing included.
    pub bytes: u64,
    /// Bytes of a full frame without link framing, at most the MTU.
    pub frame: u16,
    /// Class its frames are measured in.
    pub class: ClassId,
    /// Handed back in [`Event::Arrived`].
    pub tag: u64,
}

/// What should happen next.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// Call me again.
    Wake {
        /// When; not before now.
        at: Time,
        /// Handed back in [`Event::Wake`].
        token: u64,
    },
    /// Open a TCP connection: the client sends its SYN now.
    Open {
        /// Name of the connection, chosen by the workload, not in use by an open one of its own.
        conn: ConnId,
        /// Who connects.
        client: HostId,
        /// Who listens; never the same host.
        server: HostId,
        /// Class its packets are measured in.
        class: ClassId,
    },
    /// Write a message to a connection. Allowed from the moment it was opened, from both sides:
    /// bytes wait for the handshake. Messages of one side arrive in order.
    Send {
        /// The connection.
        conn: ConnId,
        /// Who writes.
        from: Side,
        /// Application bytes that count as payload of this message.
        payload: u64,
        /// Bytes of application framing before it (HTTP header and the like).
        header: u32,
        /// Handed back in [`Event::Delivered`].
        tag: u64,
        /// What the message is for.
        purpose: Purpose,
        /// The job it belongs to, for the flow table.
        job: Option<u32>,
        /// Whether it gets a row in the flow table.
        record: bool,
    },
    /// One side writes no more (`shutdown` of sockets): its FIN goes with its last byte. The connection
    /// keeps its name until it is closed.
    Shutdown {
        /// The connection.
        conn: ConnId,
        /// Which side.
        from: Side,
    },
    /// One side stops sending. The transport drops the bytes that the side has written and that are not
    /// sent yet; the side's last message ends at the last byte sent.
    Truncate {
        /// The connection.
        conn: ConnId,
        /// Which side.
        from: Side,
    },
    /// Close a connection from both sides once all that was written is delivered. Its name is free at once.
    Close {
        /// The connection.
        conn: ConnId,
    },
    /// End a connection at once: what was not delivered never is. Its name is free at once.
    Abort {
        /// The connection.
        conn: ConnId,
    },
    /// Ask how much has arrived on a connection, for timeouts of applications. There is no answer
    /// where the connection was closed meanwhile, as after the answer about another one.
    Ask {
        /// The connection.
        conn: ConnId,
    },
    /// Send one packet without connection.
    Datagram {
        /// Sender.
        from: HostId,
        /// Receiver; never the same host.
        to: HostId,
        /// IP bytes, at most the MTU.
        bytes: u16,
        /// Class it is measured in.
        class: ClassId,
    },
    /// Send one frame of a stream, without connection.
    Frame {
        /// Sender.
        from: HostId,
        /// Receiver; never the same host.
        to: HostId,
        /// Bytes without link framing, at most the MTU.
        bytes: u16,
        /// Class it is measured in.
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
        /// When its requests left.
        started: Time,
        /// Payload bytes of all senders in this round.
        bytes: u64,
    },
    /// A rank of an MPI program is through.
    MpiRank(Box<MpiRank>),
    /// A rank has done one thing for a while.
    MpiState(MpiState),
    /// A message between ranks has been received.
    MpiMessage(Box<MpiMessage>),
    /// The workload cannot go on, and says why: the run ends without result.
    Fail(String),
    /// This workload has nothing more to do. A workload that never ends never says so and must be
    /// declared background; the simulation ends when every other workload has finished.
    Finished,
}
