//! Tables of MPI programs: ranks, their states over time, and their messages.

use crate::table;
use crate::table::Names;
use eastwest_types::{Activity, MpiMessage, MpiRank, MpiState};

table! {
    /// One row per rank of an MPI program that has finished, ordered by the time at which it
    /// finished.
    pub MpiRanks = "mpi_ranks" since 6
    of (workload, rank) in &'a (u16, MpiRank), names: &'a Names;

    /// name of the workload
    workload: label(&names.workloads) = *workload;

    /// number of the rank
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

    /// time in collective calls, including their computation
    collective_s: seconds = rank.spent[Activity::Collective as usize];

    /// number of messages that the rank sent with its own send calls
    messages: u64 = rank.sent.0;

    /// bytes of these messages, without envelopes
    bytes: u64 = rank.sent.1;

    /// number of messages that the rank sent within collective calls
    collective_messages: u64 = rank.sent_in_collectives.0;

    /// bytes of the messages within collective calls
    collective_bytes: u64 = rank.sent_in_collectives.1;

    /// number of collective calls of the rank
    collectives: u64 = rank.collectives;
}

table! {
    /// States of the ranks of MPI programs over time, ordered by their ends; at most
    /// `measure.mpi_rows` rows. A state of no duration has no row.
    pub MpiStates = "mpi_states" since 6
    of (workload, state) in &'a (u16, MpiState), names: &'a Names;

    /// name of the workload
    workload: label(&names.workloads) = *workload;

    /// number of the rank
    rank: u32 = state.rank;

    /// `compute`, `sleep`, `send`, `receive`, `wait` or `collective`
    state: few = state.activity.name();

    /// MPI call that the rank was in (`send`, `recv`, `wait`, `waitall`, `bcast` …), or `compute`
    /// or `sleep`
    call: few = state.call;

    /// time at which the state began
    began_s: seconds = state.began;

    /// time at which the state ended, later than `began_s`
    ended_s: seconds = state.ended;
}

table! {
    /// Messages between ranks of MPI programs, ordered by the time at which their receives
    /// completed; at most `measure.mpi_rows` rows.
    pub MpiMessages = "mpi_messages" since 6
    of (workload, message) in &'a (u16, MpiMessage), names: &'a Names;

    /// name of the workload
    workload: label(&names.workloads) = *workload;

    /// rank that sent the message
    from: u32 = message.from;

    /// rank that received the message, which can be the sender itself
    to: u32 = message.to;

    /// tag of the message; 0 within collective calls
    tag: i64 = message.tag;

    /// call that sent the message: `send`, `isend`, or the name of a collective call
    call: few = message.call;

    /// size of the message, without envelope
    bytes: u64 = message.bytes;

    /// `eager`, or `rendezvous` if a request preceded the message
    protocol: few = if message.rendezvous { "rendezvous" } else { "eager" };

    /// `network`, or `memory` between ranks of one host
    over: few = if message.network { "network" } else { "memory" };

    /// time at which the send was called
    sent_s: seconds = message.sent;

    /// time at which the message or its rendezvous request was matched with a receive
    matched_s: seconds = message.matched;

    /// time at which the last byte had arrived
    arrived_s: seconds = message.arrived;

    /// time at which the receive was complete
    received_s: seconds = message.received;
}
