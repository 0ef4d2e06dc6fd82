//! Notes of a part of the simulated cluster to the parts above it. They are handled in the order in
//! which they were written, before the next event of the simulator; notes that follow from a note
//! are handled directly after it.

use super::file::{Owner, Written};
use super::report::FailureCause;
use eastwest_types::Time;

/// An event in one part of the cluster to which higher parts react.
#[derive(Clone, Debug)]
pub enum Note {
    /// The namenode has returned the datanodes that have a map's split.
    SplitLocated {
        /// Index of the map in the table of running tasks.
        task: u32,
    },
    /// The namenode has returned the datanodes that have a stand-alone client's blocks.
    ReaderLocated {
        /// Number of the stand-alone HDFS client.
        client: u32,
    },
    /// The set of workers with a replica of an input split has changed.
    SplitMoved {
        /// Number of the job that reads the split.
        job: u32,
        /// Number of the map that reads the split, within its job.
        map: u32,
        /// Numbers of the workers that have a replica of the split now.
        replicas: Vec<u32>,
    },
    /// A file is completely written to HDFS.
    FileWritten {
        /// Task or client that has written the file.
        owner: Owner,
        /// Blocks of the complete file, with their replicas.
        blocks: Vec<Written>,
    },
    /// A file cannot be written to HDFS, because too few datanodes are left.
    FileFailed {
        /// Task or client that writes the file.
        owner: Owner,
    },
    /// A stand-alone HDFS client has finished.
    ClientThrough {
        /// Number of the client's job.
        job: u32,
        /// Time at which the client was started.
        assigned: Time,
        /// Bytes that the client has read from HDFS.
        read: u64,
        /// Bytes that the client has written to HDFS.
        written: u64,
    },
    /// A stand-alone HDFS client has failed.
    ClientFailed {
        /// Number of the client's job.
        job: u32,
        /// Reason for the failure of the client's job, as text.
        reason: &'static str,
    },
    /// A reduce begins to fetch and asks its application master for finished maps.
    AskForMaps {
        /// Index of the reduce in the table of running tasks.
        task: u32,
    },
    /// A reduce could not fetch the output of a map.
    FetchFailed {
        /// Number of the worker that runs the reduce.
        worker: u32,
        /// Number of the job, number of the map, and number of the worker that stores the output.
        output: (u32, u32, u32),
    },
    /// An attempt of a task has finished without failure.
    AttemptThrough {
        /// Index of the attempt in the table of running tasks.
        task: u32,
    },
    /// An attempt of a task has failed.
    AttemptFailed {
        /// Index of the attempt in the table of running tasks.
        task: u32,
        /// Cause of the attempt's failure.
        cause: FailureCause,
    },
}
