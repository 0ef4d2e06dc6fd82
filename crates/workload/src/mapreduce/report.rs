//! What is told of an attempt that has ended, and why one fails.

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
    /// What its worker's machine had written before its output.
    pub mark: u64,
    /// Why it has failed, if it has.
    pub failed: Option<Cause>,
    /// How long it ran.
    pub took: Span,
}

/// Why an attempt has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Cause {
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

impl Cause {
    /// What is said of a job whose task has failed too often, the last time for this cause.
    pub fn reason(self, kind: TaskKind) -> &'static str {
        match (kind, self) {
            (TaskKind::Map, Cause::Missing) => {
                "a map failed too often: no datanode had a block of its split"
            }
            (TaskKind::Map, Cause::Unwritten) => {
                "a map failed too often: no datanode was left to write to"
            }
            (TaskKind::Map, Cause::Unserved) => {
                "a map failed too often: its output could not be fetched"
            }
            (TaskKind::Map, _) => "a map failed too often",
            (TaskKind::Reduce, Cause::Unwritten) => {
                "a reduce failed too often: no datanode was left to write to"
            }
            (TaskKind::Reduce, Cause::Unfetched) => {
                "a reduce failed too often: too many fetches failed"
            }
            (TaskKind::Reduce, _) => "a reduce failed too often",
        }
    }
}
