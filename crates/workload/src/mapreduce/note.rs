//! What a part of the cluster tells those above it. Notes are dealt with in the order in which they
//! were written, each with all that follows from it, before the next event.

use super::file::{Owner, Written};
use super::report::FailureCause;
use eastwest_types::Time;

/// An event in one part of the cluster that other parts react to.
#[derive(Clone, Debug)]
pub enum Note {
    /// The namenode has told a map where its split is.
    SplitLocated {
        /// The map.
        task: u32,
    },
    /// The namenode has told a stand-alone client where its blocks are.
    ReaderLocated {
        /// The client.
        client: u32,
    },
    /// The replicas of a split have changed.
    SplitMoved {
        /// Its job.
        job: u32,
        /// The map that reads it.
        map: u32,
        /// Workers that have a replica now.
        replicas: Vec<u32>,
    },
    /// A file is complete.
    FileWritten {
        /// Owner of the file.
        owner: Owner,
        /// Its blocks.
        blocks: Vec<Written>,
    },
    /// A file cannot be written.
    FileFailed {
        /// Owner of the file.
        owner: Owner,
    },
    /// A stand-alone client is through.
    ClientThrough {
        /// Its job.
        job: u32,
        /// When it was started.
        assigned: Time,
        /// Bytes it has read.
        read: u64,
        /// Bytes it has written.
        written: u64,
    },
    /// A stand-alone client has failed.
    ClientFailed {
        /// Its job.
        job: u32,
        /// Reason for the job's failure.
        reason: &'static str,
    },
    /// A reduce begins to fetch and asks its application master for finished maps.
    AskForMaps {
        /// The reduce.
        task: u32,
    },
    /// A reduce could not fetch the output of a map.
    FetchFailed {
        /// Where the reduce runs.
        worker: u32,
        /// Job, map and worker of the output.
        output: (u32, u32, u32),
    },
    /// An attempt is through.
    AttemptThrough {
        /// The task.
        task: u32,
    },
    /// An attempt has failed.
    AttemptFailed {
        /// The task.
        task: u32,
        /// Cause of the failure.
        cause: FailureCause,
    },
}
