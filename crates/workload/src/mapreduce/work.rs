//! Pieces of work on cores and disks with their purposes, and the parallel parts of a step.

use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// Purpose of a piece of work on cores or disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// Part of a step of the task with this number in the table of running tasks; the step ends
    /// when all its parts have ended.
    Step(u32),
    /// Disk read of a local file, as part of a step of the task with this number in the table of
    /// running tasks.
    Read(u32),
    /// Part of the running spill of the map with this number in the table of running tasks.
    Spill(u32),
    /// Part of the merge from memory to disk of the reduce with this number in the table of running
    /// tasks.
    MemoryMerge(u32),
    /// Part of the merge of files of the reduce with this number in the table of running tasks.
    DiskMerge(u32),
    /// Disk work for a fetch of map outputs: read at the worker that stores them, or write at the
    /// reduce.
    Fetch {
        /// Number of the reduce in the table of running tasks.
        task: u32,
        /// Number of the worker that stores the outputs; in approximate runs number of the part.
        from: u32,
        /// Number of failed fetches of the reduce from this worker when the work began.
        round: u32,
    },
    /// Disk read of a datanode for a map on another worker.
    Split {
        /// Number of the map in the table of running tasks.
        task: u32,
        /// Number of the worker whose datanode reads.
        holder: u32,
        /// Number of unsuccessful searches of the map for a replica when the read began.
        round: u32,
    },
    /// Disk read of a datanode for a stand-alone HDFS client.
    ClientRead {
        /// Number of the stand-alone HDFS client.
        client: u32,
        /// Number of failed reads of the client when this read began.
        round: u32,
    },
    /// Write of file data to the disk of the writer's own replica.
    Local {
        /// Number of the HDFS writer.
        writer: u32,
        /// Bytes of file data that are written.
        bytes: u64,
    },
    /// Write of a chunk to the disk of a remote replica.
    Replica {
        /// Number of the HDFS writer.
        writer: u32,
        /// Number of the writer's pipeline when the write began; work of earlier pipelines is
        /// ignored.
        pipe: u32,
        /// Number of the pipeline's hop that ends at the replica.
        hop: u32,
        /// Bytes of file data in the chunk.
        bytes: u64,
    },
    /// Part of the transfer of a block's data to a datanode that replaces a lost datanode in a
    /// pipeline.
    Transfer {
        /// Number of the HDFS writer.
        writer: u32,
        /// Number of the writer's pipeline when the transfer began; work of earlier pipelines is
        /// ignored.
        pipe: u32,
    },
    /// Part of a copy of a block with missing replicas; the value is the number of the copy.
    Copy(u32),
    /// Start of an application master; the value is the number of its job.
    Master(u32),
    /// Write of dirty data from the page cache to disk; the value is the number of bytes.
    Flush(u64),
}

/// Work of a step of a task, whose parts run in parallel: CPU work, disk read, disk write.
#[derive(Clone, Copy, Debug, Default)]
pub struct Step {
    /// CPU time of the step on a core of usual speed.
    pub cpu: Span,
    /// Bytes that the step reads from local disks.
    pub read: u64,
    /// Bytes that the step writes to local disks.
    pub write: u64,
}

/// Parts of a step that were started.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    /// Number of parts whose end is reported later, at least 1.
    pub parts: u32,
    /// Duration of the disk read, if it is known at the start; `None` if the end of the read is
    /// reported later.
    pub read: Option<Span>,
}
