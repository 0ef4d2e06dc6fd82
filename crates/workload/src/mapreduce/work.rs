//! Purposes of work on cores and disks, and parallel parts of a step.

use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// Purpose of a piece of work on cores or disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// Part of a step of the task with this number; the step ends with its last part.
    Step(u32),
    /// Part of a step of the task with this number that reads a local file.
    Read(u32),
    /// Part of the running spill of the map with this task number.
    Spill(u32),
    /// Part of the merge from memory to disk of the reduce with this task number.
    MemoryMerge(u32),
    /// Part of the merge of files of the reduce with this task number.
    DiskMerge(u32),
    /// Disk work for outputs between a worker and a reduce.
    Fetch {
        /// Number of the reduce in the table of tasks.
        task: u32,
        /// Worker with the outputs.
        from: u32,
        /// Number of the reduce's earlier failed fetches from the worker.
        round: u32,
    },
    /// Disk read of a datanode for a remote map.
    Split {
        /// Number of the map in the table of tasks.
        task: u32,
        /// Worker of the datanode.
        holder: u32,
        /// Number of the map's earlier searches without replica.
        round: u32,
    },
    /// Disk read of a datanode for a stand-alone client.
    ClientRead {
        /// Number of the client.
        client: u32,
        /// Number of the client's earlier changes of replica.
        round: u32,
    },
    /// Write of file bytes to the writer's own disk.
    Local {
        /// Number of the writer.
        writer: u32,
        /// Bytes written.
        bytes: u64,
    },
    /// Write of a chunk to the disk of a replica.
    Replica {
        /// Number of the writer.
        writer: u32,
        /// Number of the writer's pipeline.
        pipe: u32,
        /// Number of the hop to the replica.
        hop: u32,
        /// Bytes of the chunk.
        bytes: u64,
    },
    /// Part of the transfer to a datanode that joins a pipeline.
    Transfer {
        /// Number of the writer.
        writer: u32,
        /// Number of the writer's pipeline.
        pipe: u32,
    },
    /// Part of the copy of a block with this number.
    Copy(u32),
    /// Start of the application master of the job with this number.
    Master(u32),
    /// Write of these bytes by the flusher of a machine.
    Flush(u64),
}

/// Work of a step, done in parallel: on cores, and on disks by reading and writing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Step {
    /// CPU time of the step.
    pub cpu: Span,
    /// Bytes that the step reads from local disks.
    pub read: u64,
    /// Bytes that the step writes to local disks.
    pub write: u64,
}

/// Parts of a step that have been started.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    /// Number of parts to wait for, at least 1.
    pub parts: u32,
    /// Duration of the reading, if it is known at the start; `None` if the end of the reading is
    /// reported.
    pub read: Option<Span>,
}
