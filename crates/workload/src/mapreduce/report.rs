//! Report of an ended task attempt to the master, and causes of failure.

use eastwest_types::{Span, TaskKind};
use serde::{Deserialize, Serialize};

/// Report of an ended task attempt to the master.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Number of the worker that ran the attempt.
    pub worker: u32,
    /// Number of the attempt's job.
    pub job: u32,
    /// Number of the task among the job's tasks of this kind, from 0.
    pub index: u32,
    /// Kind of the task: map or reduce.
    pub kind: TaskKind,
    /// Bytes that the worker's machine had written to files before the output of the attempt.
    pub written_offset: u64,
    /// Cause of the attempt's failure; `None` if the attempt succeeded.
    pub failed: Option<FailureCause>,
    /// Run time of the attempt, from its assignment to its end.
    pub took: Span,
}

/// Cause of the failure of a task attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum FailureCause {
    /// The settings of failures make the attempt fail: by probability, or because its task is
    /// listed.
    Itself,
    /// No datanode had a replica of the map's split (BlockMissingException).
    Missing,
    /// No datanode was left to which the attempt could write (DataStreamer: all datanodes are bad;
    /// failed to replace a bad datanode).
    Unwritten,
    /// The reduce failed to fetch too many map outputs (ShuffleError: MAX_FAILED_UNIQUE_FETCHES).
    Unfetched,
    /// Reduces could not fetch the output of the finished map (TOO_MANY_FETCH_FAILURES).
    Unserved,
}

impl FailureCause {
    /// Returns the failure reason of a job in which a task has failed too often; `self` is the
    /// cause of the task's last failure.
    pub fn reason(self, kind: TaskKind) -> &'static str {
        match (kind, self) {
            (TaskKind::Map, FailureCause::Missing) => {
                "a map failed too often: no datanode had a block of its split"
            }
            (TaskKind::Map, FailureCause::Unwritten) => {
                "a map failed too often: no datanode was left to write to"
            }
            (TaskKind::Map, FailureCause::Unserved) => {
                "a map failed too often: its output could not be fetched"
            }
            (TaskKind::Map, _) => "a map failed too often",
            (TaskKind::Reduce, FailureCause::Unwritten) => {
                "a reduce failed too often: no datanode was left to write to"
            }
            (TaskKind::Reduce, FailureCause::Unfetched) => {
                "a reduce failed too often: too many fetches failed"
            }
            (TaskKind::Reduce, _) => "a reduce failed too often",
        }
    }
}
