//! Files of HDFS as their owners know them.

use eastwest_types::HostId;
use serde::{Deserialize, Serialize};

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Owner {
    /// A task's.
    Task(u32),
    /// A stand-alone client's.
    Client(u32),
}

/// Where a client of the file system runs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Place {
    /// Its host.
    pub host: HostId,
    /// The worker on that host, if there is one.
    pub worker: Option<u32>,
}

/// A block that was written.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Written {
    /// Its size.
    pub bytes: u64,
    /// Replicas it should have.
    pub wanted: u32,
    /// Workers that have one.
    pub replicas: Vec<u32>,
}
