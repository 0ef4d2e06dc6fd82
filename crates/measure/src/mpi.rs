//! Tables of MPI programs: ranks, their states over time, and their messages.

use crate::table;
use crate::table::Names;
use eastwest_types::{Activity, MpiMessage, MpiRank, MpiState};

table! {
    /// One row per rank of an MPI program that is through, in the order of their ends.
    pub MpiRanks = "mpi_ranks" since 6
    of (workload, rank) in &'a (u16, MpiRank), names: &'a Names;

    /// name of the workload
    workload: label(&names.workloads) = *workload;

    /// the rank
    rank: u32 = rank.rank;

    /// number of its host
    host: u32 = rank.host.0;

    /// when it was through
    finished_s: seconds = rank.finished;

    /// time it computed
    compute_s: seconds = rank.spent[Activity::Compute as usize];

    /// time it slept
    sleep_s: seconds = rank.spent[Activity::Sleep as usize];

    /// time it waited in blocking sends
    send_s: seconds = rank.spent[Activity::Send as usize];

    /// time it waited in blocking receives
    receive_s: seconds = rank.spent[Activity::Receive as usize];

    /// time it waited for requests (`wait`, `waitall`)
    wait_s: seconds = rank.spent[Activity::Wait as usize];

    /// time it was in collectives, their computing included
    collective_s: seconds = rank.spent[Activity::Collective as usize];

    /// messages it sent with sends of its own
    messages: u64 = rank.sent.0;

    /// their bytes, without envelopes
    bytes: u64 = rank.sent.1;

    /// messages it sent within collectives
    collective_messages: u64 = rank.sent_in_collectives.0;

    /// their bytes
    collective_bytes: u64 = rank.sent_in_collectives.1;

    /// collectives it called
    collectives: u64 = rank.collectives;
}

table! {
    /// What ranks of MPI programs did when: the first `measure.mpi_rows` stretches of time that
    /// took any, in the order of their ends. What a rank does in no time has no row.
    pub MpiStates = "mpi_states" since 6
    of (workload, state) in &'a (u16, MpiState), names: &'a Names;

    /// name of the workload
    workload: label(&names.workloads) = *workload;

    /// the rank
    rank: u32 = state.rank;

    /// `compute`, `sleep`, `send`, `receive`, `wait` or `collective`
    state: few = state.activity.name();

    /// the MPI call it was in (`send`, `recv`, `wait`, `waitall`, `bcast` …); `compute` or `sleep`
    call: few = state.call;

    /// when it began
    began_s: seconds = state.began;

    /// when it ended, later than `began_s`
    ended_s: seconds = state.ended;
}

table! {
    /// Messages between ranks of MPI programs, in the order in which their receives were complete;
    /// the first `measure.mpi_rows`.
    pub MpiMessages = "mpi_messages" since 6
    of (workload, message) in &'a (u16, MpiMessage), names: &'a Names;

    /// name of the workload
    workload: label(&names.workloads) = *workload;

    /// rank that sent it
    from: u32 = message.from;

    /// rank that received it; may be the same
    to: u32 = message.to;

    /// its tag; 0 within collectives
    tag: i64 = message.tag;

    /// the call that sent it: `send`, `isend`, or the name of a collective
    call: few = message.call;

    /// its size, without envelope
    bytes: u64 = message.bytes;

    /// `eager`, or `rendezvous` if it asked first
    protocol: few = if message.rendezvous { "rendezvous" } else { "eager" };

    /// `network`, or `memory` between ranks of one host
    over: few = if message.network { "network" } else { "memory" };

    /// when the send was called
    sent_s: seconds = message.sent;

    /// when it, or the question for it, met its receive
    matched_s: seconds = message.matched;

    /// when its last byte had arrived
    arrived_s: seconds = message.arrived;

    /// when the receive was complete
    received_s: seconds = message.received;
}
