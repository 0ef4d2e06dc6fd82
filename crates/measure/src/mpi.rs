//! Tables of MPI programs: ranks, their states over time, and their messages.

use crate::table;
use crate::table::Names;
use eastwest_types::{Activity, MpiCollective, MpiIteration, MpiMessage, MpiRank, MpiState};

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

table! {
    /// Collective calls of MPI programs that all their ranks have left, ordered by the time at which
    /// the last rank left; the first `measure.mpi_rows` rows.
    pub MpiCollectives = "mpi_collectives" since 12
    of (workload, call) in &'a (u16, MpiCollective), names: &'a Names;

    /// name of the workload
    workload: label(&names.workloads) = *workload;

    /// number of the group of ranks in the program; 0: all ranks
    group: u32 = call.group;

    /// number of the call among the calls of its group, from 1
    number: u32 = call.number;

    /// name of the call (`allreduce`, `bcast` …)
    call: few = call.call;

    /// number of ranks of the group
    ranks: u32 = call.ranks;

    /// bytes for the bus bandwidth as nccl-tests defines it: the size of the call multiplied by its
    /// factor, 2 (n − 1) / n for an allreduce of n ranks; 0 if there is no factor for the call
    bus_bytes: u64 = call.bus_bytes.unwrap_or(0);

    /// time at which the first rank entered the call
    entered_s: seconds = call.entered;

    /// time at which the last rank entered the call
    complete_s: seconds = call.complete;

    /// rank that entered the call last
    last_rank: u32 = call.last;

    /// time at which the last rank left the call
    ended_s: seconds = call.ended;

    /// bus bandwidth: `bus_bytes` · 8 / (`ended_s` − `complete_s`); 0 if one of both is 0
    bus_bandwidth_bps: f64 = bus_bandwidth_bps(call);
}

/// Returns the bus bandwidth of a collective call from the time at which its last rank entered it,
/// as if all ranks had entered it then; 0 if the call took no time.
fn bus_bandwidth_bps(call: &MpiCollective) -> f64 {
    let seconds = call.ended.since(call.complete).as_secs_f64();
    match call.bus_bytes {
        Some(bytes) if seconds > 0.0 => bytes as f64 * 8.0 / seconds,
        _ => 0.0,
    }
}

table! {
    /// Iterations of the ranks of MPI programs that are graphs: the nodes between two `waitall`,
    /// ordered by their ends; the first `measure.mpi_rows` rows.
    pub MpiIterations = "mpi_iterations" since 12
    of (workload, row) in &'a (u16, MpiIteration), names: &'a Names;

    /// name of the workload
    workload: label(&names.workloads) = *workload;

    /// number of the rank in its program
    rank: u32 = row.rank;

    /// number of the iteration, from 0
    iteration: u32 = row.number;

    /// time at which the iteration began: the end of the one before
    began_s: seconds = row.began;

    /// time at which its last node had ended
    ended_s: seconds = row.ended;

    /// time in which the rank computed
    compute_s: seconds = row.computed;

    /// exposed communication: time in which the rank was in collective calls and did not compute;
    /// the rest of the iteration is waiting for messages or nodes of other ranks
    exposed_s: seconds = row.exposed;
}
