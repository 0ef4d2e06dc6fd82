//! Response of a server whose data is being read from disk.

use super::content::ReadRequest;
use eastwest_types::ConnId;
use serde::{Deserialize, Serialize};

/// A response whose data a server reads from disk, in runs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Response {
    /// Connection over which the response is sent.
    pub conn: ConnId,
    /// Number of the connection among all that were opened.
    pub serial: u64,
    /// Number of the worker that serves.
    pub worker: u32,
    /// Request that the response answers.
    pub request: ReadRequest,
    /// Bytes of the response that were read and sent.
    pub sent: u64,
    /// Bytes of the run that is being read.
    pub run: u64,
}
