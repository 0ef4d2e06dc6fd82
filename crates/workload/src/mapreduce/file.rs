//! Files of HDFS: owner, host of the writer, written blocks.

use eastwest_types::HostId;
use serde::{Deserialize, Serialize};

/// Owner of an HDFS file: the task or client that writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Owner {
    /// A task, given by its number in the table of running tasks.
    Task(u32),
    /// A stand-alone HDFS client, given by its number.
    Client(u32),
}

/// Host on which a client of HDFS runs, and the worker on this host.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Place {
    /// Host on which the client of HDFS runs.
    pub host: HostId,
    /// Number of the worker on the host; `None` if the host stores no data.
    pub worker: Option<u32>,
}

/// A completely written block of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Written {
    /// Size of the block in bytes.
    pub bytes: u64,
    /// Number of replicas that the block should have.
    pub wanted: u32,
    /// Numbers of the workers that have a replica of the block.
    pub replicas: Vec<u32>,
}
