//! Report of an attempt that has ended, and causes of failure.

use eastwest_types::{Span, TaskKind};
use serde::{Deserialize, Serialize};

/// A task that has finished, as a heartbeat reports it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Where it ran.
    pub worker: u32,
    /// Its job.
    pub job: u32,
    /// Its number within job and kind.
    pub index: u32,
    /// Map or reduce.
    pub kind: TaskKind,
    /// Bytes that its worker's disks had written before its output.
    pub written_offset: u64,
    /// Cause of its failure, if it has failed.
    pub failed: Option<FailureCause>,
    /// How long it ran.
    pub took: Span,
}

/// Cause of the failure of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum FailureCause {
    /// By itself, as the scenario wants it.
    Itself,
    /// No datanode had its split (BlockMissingException).
    Missing,
    /// No datanode was left to write to (DataStreamer: all datanodes are bad; failed to replace a bad
    /// datanode).
    Unwritten,
    /// Too many fetches failed (ShuffleError: MAX_FAILED_UNIQUE_FETCHES).
    Unfetched,
    /// Its output could not be fetched by others (TOO_MANY_FETCH_FAILURES).
    Unserved,
}

impl FailureCause {
    /// Returns the reason of failure of a job whose task has failed too often, the last time by this cause.
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
