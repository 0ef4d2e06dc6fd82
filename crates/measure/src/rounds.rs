//! Rounds of synchronized reads.

use crate::table;
use crate::table::Names;
use eastwest_types::Time;
use serde::{Deserialize, Serialize};

/// Row of the table `rounds`: a complete round of a synchronized read.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Round {
    /// Index of the workload, from 0.
    pub workload: u16,
    /// Number of the round, from 0.
    pub round: u32,
    /// Time at which the requests of the round left, or at which its senders could start.
    pub started: Time,
    /// Time at which the last byte of all senders had arrived.
    pub finished: Time,
    /// Payload bytes of all senders.
    pub bytes: u64,
}

table! {
    /// One row per finished round of synchronized reads.
    pub Rounds = "rounds"
    of round in &'a Round, names: &'a Names;

    /// name of the workload
    workload: label(&names.workloads) = round.workload;

    /// number of the round, from 0
    round: u32 = round.round;

    /// time at which the requests of the round left, or at which its senders could start
    started_s: seconds = round.started;

    /// time at which the last byte of all senders had arrived
    finished_s: seconds = round.finished;

    /// payload of all senders
    bytes: u64 = round.bytes;
}
