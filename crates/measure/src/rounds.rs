//! Table `rounds`: rounds of synchronized reads (incast).

use crate::table;
use crate::table::Names;
use eastwest_types::Time;
use serde::{Deserialize, Serialize};

/// Row of the table `rounds`: a complete round of a synchronized read, in which several hosts send
/// at once.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Round {
    /// Index of the workload, from 0.
    pub workload: u16,
    /// Number of the round, from 0.
    pub round: u32,
    /// Time at which the requests of the round were sent, or at which its senders could start
    /// without requests.
    pub started: Time,
    /// Time at which the last byte of all senders had arrived in order.
    pub finished: Time,
    /// Sum of the payload bytes of all senders in the round.
    pub bytes: u64,
}

table! {
    /// One row for each finished round of a synchronized read, in which several hosts send to one
    /// host at once.
    pub Rounds = "rounds"
    of round in &'a Round, names: &'a Names;

    /// name of the workload
    workload: label(&names.workloads) = round.workload;

    /// number of the round, from 0
    round: u32 = round.round;

    /// time at which the requests of the round were sent, or at which its senders could start
    /// without requests
    started_s: seconds = round.started;

    /// time at which the last byte of all senders had arrived
    finished_s: seconds = round.finished;

    /// sum of the payload bytes of all senders in the round
    bytes: u64 = round.bytes;
}
