//! Notes of a part of the cluster to the parts above it. They are handled in the order in which
//! they were written, each with everything that follows from it, before the next event.

use super::file::{Owner, Written};
use super::report::FailureCause;
use eastwest_types::Time;

/// An event in one part of the cluster that other parts react to.
#[derive(Clone, Debug)]
pub enum Note {
    /// The namenode has returned the places of a map's split.
    SplitLocated {
        /// Number of the map in the table of tasks.
        task: u32,
    },
    /// The namenode has returned the places of a stand-alone client's blocks.
    ReaderLocated {
        /// Number of the client.
        client: u32,
    },
    /// The replicas of a split have changed.
    SplitMoved {
        /// Number of the job.
        job: u32,
        /// Map that reads the split.
        map: u32,
        /// Workers with a replica.
        replicas: Vec<u32>,
    },
    /// A file is complete.
    FileWritten {
        /// Owner of the file.
        owner: Owner,
        /// Blocks of the file.
        blocks: Vec<Written>,
    },
    /// A file cannot be written.
    FileFailed {
        /// Owner of the file.
        owner: Owner,
    },
    /// A stand-alone client has finished.
    ClientThrough {
        /// Number of the job.
        job: u32,
        /// Start time of the client.
        assigned: Time,
        /// Bytes read by the client.
        read: u64,
        /// Bytes written by the client.
        written: u64,
    },
    /// A stand-alone client has failed.
    ClientFailed {
        /// Number of the job.
        job: u32,
        /// Reason for the job's failure.
        reason: &'static str,
    },
    /// A reduce begins to fetch and asks its application master for finished maps.
    AskForMaps {
        /// Number of the reduce in the table of tasks.
        task: u32,
    },
    /// A reduce could not fetch the output of a map.
    FetchFailed {
        /// Worker of the reduce.
        worker: u32,
        /// Numbers of job and map, and the worker with the output.
        output: (u32, u32, u32),
    },
    /// An attempt has finished.
    AttemptThrough {
        /// Number of the attempt.
        task: u32,
    },
    /// An attempt has failed.
    AttemptFailed {
        /// Number of the attempt.
        task: u32,
        /// Cause of the failure.
        cause: FailureCause,
    },
}
