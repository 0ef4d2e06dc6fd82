//! Purposes of work on cores and disks, and parallel parts of a step.

use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// Purpose of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// Part of a task's step, which ends with its last part.
    Step(u32),
    /// Part that reads a local file.
    Read(u32),
    /// Part of a map's running spill.
    Spill(u32),
    /// Part of a reduce's merge from memory to disk.
    MemoryMerge(u32),
    /// Part of a reduce's merge of files.
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
    /// Part of a copy of a block.
    Copy(u32),
    /// Start of a job's application master.
    Master(u32),
    /// Write of these bytes by the flusher of a machine.
    Flush(u64),
}

/// Parallel parts of a step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Step {
    /// CPU time.
    pub cpu: Span,
    /// Bytes read from local disks.
    pub read: u64,
    /// Bytes written to local disks.
    pub write: u64,
}

/// Started parts of a step.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    /// Number of parts to wait for, at least 1.
    pub parts: u32,
    /// Duration of the reading, if it is known and its end is not reported.
    pub read: Option<Span>,
}
