//! Interface between workloads and the simulation: events for the workload, and actions that it
//! requests.

use eastwest_types::{
    ClassId, ConnId, HostId, JobRecord, MpiCollective, MpiEntry, MpiIteration, MpiMessage, MpiRank,
    MpiState, Purpose, Side, TaskRecord, Time, TransactionRecord,
};
use serde::{Deserialize, Serialize};

/// Properties of the fabric that a workload knows.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Rack (edge switch) of each host, by host number; the length is the number of hosts.
    pub rack_of: Vec<u32>,
    /// Seed of the run; named random streams are derived from it.
    pub seed: u64,
}

/// An event that the simulation passes to a workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// Start of the simulation: the first event of every workload, at time zero.
    Begin,
    /// A wake-up that the workload requested by [`Action::Wake`].
    Wake {
        /// Token of the wake-up, as given in [`Action::Wake`].
        token: u64,
    },
    /// The last byte of a message has reached the receiving application in order.
    Delivered {
        /// Identifier of the connection over which the message came.
        conn: ConnId,
        /// Side of the connection that sent the message.
        from: Side,
        /// Tag of the message, as given in [`Action::Send`].
        tag: u64,
    },
    /// All frames of a [`Parcel`] have arrived; parcels of one line are reported in the order of
    /// sending.
    Arrived {
        /// Tag of the parcel, as given in [`Parcel::tag`].
        tag: u64,
    },
    /// The transport has aborted a connection after too many timeouts; its identifier may be used
    /// again. Sent only to workloads that [handle failures](crate::Workload::bears_failures).
    Failed {
        /// Identifier of the failed connection.
        conn: ConnId,
    },
    /// Answer to [`Action::Ask`], at the same simulated time.
    Received {
        /// Identifier of the connection.
        conn: ConnId,
        /// Bytes that have arrived in order at the client and at the server, since the connection
        /// was opened, application framing included.
        bytes: [u64; 2],
    },
}

/// A message sent as raw Ethernet frames, without a connection. Parcels between two hosts with
/// equal `line` arrive in the order in which they were sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Parcel {
    /// Host that sends the parcel.
    pub from: HostId,
    /// Host that receives the parcel; never equal to the sender.
    pub to: HostId,
    /// Number of the parcel's line. Parcels of one line keep their order; parcels of different
    /// lines do not wait for each other.
    pub line: u8,
    /// Bytes of the message, application framing included.
    pub bytes: u64,
    /// Bytes of a full frame without link framing, at most the MTU; the parcel is divided into full
    /// frames and a remainder.
    pub frame: u16,
    /// Traffic class of the parcel's frames.
    pub class: ClassId,
    /// Tag by which [`Event::Arrived`] identifies the parcel.
    pub tag: u64,
}

/// An action requested by a workload.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Action {
    /// Wake the workload at a given time.
    Wake {
        /// Time of the wake-up; must not be in the past.
        at: Time,
        /// Token by which [`Event::Wake`] identifies the wake-up.
        token: u64,
    },
    /// Open a connection of the workload's transport; with TCP, the client sends its SYN now.
    Open {
        /// Identifier of the connection, chosen by the workload; must differ from the identifiers
        /// of its other open connections.
        conn: ConnId,
        /// Host that opens the connection.
        client: HostId,
        /// Host that accepts the connection; never equal to the client.
        server: HostId,
        /// Traffic class of the connection's packets.
        class: ClassId,
        /// Numbers of the network cards that the connection uses at the client and at the server. A
        /// number is taken modulo the number of cards of its host, and has an effect only if each
        /// card has its own address. `None`: any card.
        cards: Option<(u32, u32)>,
    },
    /// Give a connection its number, on which its paths depend, without opening it. A workload that
    /// opens connections when data arrive declares them at times that do not: their numbers then do not
    /// depend on the order of events at different hosts.
    Declare {
        /// Identifier of the connection, as in [`Action::Open`], like the next four fields.
        conn: ConnId,
        /// Host that will open the connection.
        client: HostId,
        /// Host that will accept the connection; never equal to the client.
        server: HostId,
        /// Traffic class of the connection's packets.
        class: ClassId,
        /// Numbers of the network cards that the connection uses at the client and at the server.
        cards: Option<(u32, u32)>,
    },
    /// Open a declared connection; with TCP, the client sends its SYN now.
    Connect {
        /// Identifier of the connection.
        conn: ConnId,
    },
    /// Write a message to a connection. Both sides may write as soon as the connection is opened;
    /// the bytes wait for the handshake. Messages of one side arrive in order.
    Send {
        /// Identifier of the connection.
        conn: ConnId,
        /// Side of the connection that writes the message.
        from: Side,
        /// Application bytes that count as payload of this message.
        payload: u64,
        /// Bytes of application framing before the payload, for example an HTTP header.
        header: u32,
        /// Tag by which [`Event::Delivered`] identifies the message.
        tag: u64,
        /// Purpose of the message, for the flow table.
        purpose: Purpose,
        /// Number of the job to which the message belongs, for the flow table; `None` if it belongs
        /// to no job.
        job: Option<u32>,
        /// Whether the message gets a row in the flow table.
        record: bool,
    },
    /// Close one direction of a connection (`shutdown` of sockets): the FIN follows the last
    /// written byte. The connection keeps its identifier until it is closed.
    Shutdown {
        /// Identifier of the connection.
        conn: ConnId,
        /// Side of the connection that stops writing.
        from: Side,
    },
    /// Stop sending from one side of a connection. Written bytes that the transport has not sent
    /// yet are dropped; the last message of the side ends at the last byte sent.
    Truncate {
        /// Identifier of the connection.
        conn: ConnId,
        /// Side of the connection that stops sending.
        from: Side,
    },
    /// Close a connection from both sides after all written data is delivered. Its identifier may
    /// be used again at once.
    Close {
        /// Identifier of the connection.
        conn: ConnId,
    },
    /// Abort a connection: undelivered data is lost. Its identifier may be used again at once.
    Abort {
        /// Identifier of the connection.
        conn: ConnId,
    },
    /// Request the number of bytes that have arrived on a connection, for timeouts of applications.
    /// There is no answer if the connection was closed at the same time, for example by the
    /// workload's reaction to an earlier answer.
    Ask {
        /// Identifier of the connection.
        conn: ConnId,
    },
    /// Send one IP packet without a connection.
    Datagram {
        /// Host that sends the packet.
        from: HostId,
        /// Host that receives the packet; never equal to the sender.
        to: HostId,
        /// IP bytes of the packet, at most the MTU.
        bytes: u16,
        /// Traffic class of the packet.
        class: ClassId,
    },
    /// Send one Ethernet frame of a stream, without a connection.
    Frame {
        /// Host that sends the frame.
        from: HostId,
        /// Host that receives the frame; never equal to the sender.
        to: HostId,
        /// Bytes of the frame without link framing, at most the MTU.
        bytes: u16,
        /// Traffic class of the frame.
        class: ClassId,
        /// Number of the frame's stream within the workload.
        stream: u32,
    },
    /// Send a message as raw Ethernet frames, without a connection.
    Parcel(Parcel),
    /// Report a finished MapReduce job; the record goes into the table of jobs.
    Job(Box<JobRecord>),
    /// Report a finished MapReduce task; the record goes into the table of tasks.
    Task(Box<TaskRecord>),
    /// Report a finished transaction with all its calls.
    Transaction(Box<TransactionRecord>),
    /// Report of one part of a partitioned run: its hosts have no more calls of the transaction to
    /// make or to answer.
    TransactionPart {
        /// Number of the transaction.
        number: u32,
    },
    /// Report of one part of a partitioned run: responses have arrived at its hosts.
    CallsDone {
        /// Number of the calls that are done.
        calls: u32,
    },
    /// Report a finished round of a synchronized read.
    Round {
        /// Number of the finished round, from 0.
        round: u32,
        /// Simulated time at which the round started.
        started: Time,
        /// Payload bytes of all senders in this round.
        bytes: u64,
    },
    /// Report that a rank of an MPI program has finished.
    MpiRank(Box<MpiRank>),
    /// Report that an activity of an MPI rank has ended.
    MpiState(MpiState),
    /// Report that a message between MPI ranks has been received.
    MpiMessage(Box<MpiMessage>),
    /// Report that all ranks have left a collective call.
    MpiCollective(Box<MpiCollective>),
    /// Report that a rank with a graph has ended an iteration.
    MpiIteration(Box<MpiIteration>),
    /// Report of one part of a partitioned run (one run on several threads): a rank has entered a
    /// collective call.
    MpiEntry(Box<MpiEntry>),
    /// Report of one part of a partitioned run: a rank has left a collective call.
    MpiLeft {
        /// Group and number of the collective call.
        communicator: u64,
    },
    /// Report of one part of a partitioned run: a rank has sent the message with this tag.
    MpiSent {
        /// Tag of the message in [`Action::Send`].
        tag: u64,
    },
    /// Report of one part of a partitioned run: the receive of the message with this tag is complete.
    MpiReceived {
        /// Tag of the message in [`Action::Send`].
        tag: u64,
    },
    /// Report of one part of a partitioned run: the next reports of this event are of ranks that
    /// continue because of ranks that have continued before.
    MpiNextRound,
    /// Report that the workload cannot continue, with the reason; the run ends without a result.
    Fail(String),
    /// Report that the workload has nothing more to do. A workload that never finishes must be
    /// declared background; the simulation ends when every other workload has finished.
    Finished,
}
