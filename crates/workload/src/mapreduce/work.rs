//! Work of cores and disks: what it is for, and what of it runs at the same time.

use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// What a piece of work is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// A part of what a task is doing: the step ends with its last part.
    Step(u32),
    /// A part that reads a local file.
    Read(u32),
    /// A part of a map's running spill.
    Spill(u32),
    /// A part of a reduce's merge from memory to the disk.
    MemoryMerge(u32),
    /// A part of a reduce's merge of files.
    DiskMerge(u32),
    /// Disk work on the way of outputs from a worker to a reduce.
    Fetch {
        /// The reduce.
        task: u32,
        /// The worker with the outputs.
        from: u32,
        /// How often the reduce had failed to fetch from it.
        round: u32,
    },
    /// A datanode has read the split of a remote map.
    Split {
        /// The map.
        task: u32,
        /// The datanode.
        holder: u32,
        /// How often the map had found no replica.
        round: u32,
    },
    /// A datanode has read a block for a stand-alone client.
    ClientRead {
        /// The client.
        client: u32,
        /// How often it had turned to another replica.
        round: u32,
    },
    /// Bytes of a file are on the writer's own disk.
    Local {
        /// The writer.
        writer: u32,
        /// How many.
        bytes: u64,
    },
    /// A chunk is on the disk of a replica.
    Replica {
        /// The writer.
        writer: u32,
        /// The number of its pipeline.
        pipe: u32,
        /// The hop it came over.
        hop: u32,
        /// Its bytes.
        bytes: u64,
    },
    /// A part of what a datanode that joins a pipeline is sent.
    Transfer {
        /// The writer.
        writer: u32,
        /// The number of its pipeline.
        pipe: u32,
    },
    /// A part of a copy of a block.
    Copy(u32),
    /// The application master of a job has started.
    Master(u32),
    /// The flusher of a machine has written so many bytes.
    Flush(u64),
}

/// Parts of a step that run at the same time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Step {
    /// Core time.
    pub cpu: Span,
    /// Bytes read from local disks.
    pub read: u64,
    /// Bytes written to local disks.
    pub write: u64,
}

/// Parts of a step that have begun.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    /// How many parts must be waited for, at least one.
    pub parts: u32,
    /// How long its reading takes, where that is known and nobody tells of its end.
    pub read: Option<Span>,
}
