//! Tables of MPI programs: ranks, their states over time, and their messages.

use crate::table;
use crate::table::Names;
use eastwest_types::{Activity, MpiMessage, MpiRank, MpiState};

table! {
    /// One row for each rank of an MPI program that has finished, ordered by the time at which it
    /// finished.
    pub MpiRanks = "mpi_ranks" since 6
    of (workload, rank) in &'a (u16, MpiRank), names: &'a Names;

    /// name of the workload
    workload: label(&names.workloads) = *workload;

    /// number of the rank in its program
    rank: u32 = rank.rank;

    /// number of the rank's host
    host: u32 = rank.host.0;

    /// time at which the rank had finished
    finished_s: seconds = rank.finished;

    /// time in which the rank computed
    compute_s: seconds = rank.spent[Activity::Compute as usize];

    /// time in which the rank slept
    sleep_s: seconds = rank.spent[Activity::Sleep as usize];

    /// time in which the rank waited in blocking sends
    send_s: seconds = rank.spent[Activity::Send as usize];

    /// time in which the rank waited in blocking receives
    receive_s: seconds = rank.spent[Activity::Receive as usize];

    /// time in which the rank waited for requests (`wait`, `waitall`)
    wait_s: seconds = rank.spent[Activity::Wait as usize];

    /// time that the rank spent in collective calls, including their computation
    collective_s: seconds = rank.spent[Activity::Collective as usize];

    /// number of messages that the rank sent with its own send calls
    messages: u64 = rank.sent.0;

    /// bytes of the messages counted in `messages`, without envelopes
    bytes: u64 = rank.sent.1;

    /// number of messages that the rank sent within collective calls
    collective_messages: u64 = rank.sent_in_collectives.0;

    /// bytes of the messages counted in `collective_messages`, without envelopes
    collective_bytes: u64 = rank.sent_in_collectives.1;

    /// number of collective calls of the rank
    collectives: u64 = rank.collectives;
}

table! {
    /// States of the ranks of MPI programs over time, ordered by the times at which they ended; the
    /// first `measure.mpi_rows` rows. A state without duration has no row.
    pub MpiStates = "mpi_states" since 6
    of (workload, state) in &'a (u16, MpiState), names: &'a Names;

    /// name of the workload
    workload: label(&names.workloads) = *workload;

    /// number of the rank in its program
    rank: u32 = state.rank;

    /// state of the rank: `compute`, `sleep`, `send`, `receive`, `wait` or `collective`
    state: few = state.activity.name();

    /// MPI call that the rank executed (`send`, `recv`, `wait`, `waitall`, `bcast` …); `compute` or
    /// `sleep` outside of MPI calls
    call: few = state.call;

    /// time at which the state began
    began_s: seconds = state.began;

    /// time at which the state ended, later than `began_s`
    ended_s: seconds = state.ended;
}

table! {
    /// Messages between ranks of MPI programs, ordered by the time at which their receives
    /// completed; the first `measure.mpi_rows` rows.
    pub MpiMessages = "mpi_messages" since 6
    of (workload, message) in &'a (u16, MpiMessage), names: &'a Names;

    /// name of the workload
    workload: label(&names.workloads) = *workload;

    /// number of the rank that sent the message
    from: u32 = message.from;

    /// number of the rank that received the message, which can be the sender itself
    to: u32 = message.to;

    /// tag of the message; 0 for messages of collective calls
    tag: i64 = message.tag;

    /// call that sent the message: `send`, `isend`, or the name of a collective call
    call: few = message.call;

    /// bytes of the message, without envelope
    bytes: u64 = message.bytes;

    /// protocol of the message: `eager`, or `rendezvous` if a request preceded the message
    protocol: few = if message.rendezvous { "rendezvous" } else { "eager" };

    /// medium of the message: `network`, or `memory` between ranks of one host
    over: few = if message.network { "network" } else { "memory" };

    /// time at which the send was called
    sent_s: seconds = message.sent;

    /// time at which a receive was found for the message or its rendezvous request
    matched_s: seconds = message.matched;

    /// time at which the last byte of the message had arrived
    arrived_s: seconds = message.arrived;

    /// time at which the receive of the message was complete
    received_s: seconds = message.received;
}
