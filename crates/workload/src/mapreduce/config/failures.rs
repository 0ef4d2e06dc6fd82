//! Settings of failures: what fails by itself, and how long Hadoop waits before it believes it.

use eastwest_types::{Span, TaskKind};
use serde::{Deserialize, Serialize};

/// Failures of attempts, and Hadoop's patience. Failures of nodes, links and switches are those of
/// the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailureConfig {
    /// Part of all attempts that fail, at their end.
    pub attempts: f64,
    /// Tasks whose first attempts fail.
    pub tasks: Vec<FailingTask>,
    /// Attempts of a map before its job fails (`mapreduce.map.maxattempts`: 4).
    pub map_attempts: u32,
    /// Attempts of a reduce before its job fails (`mapreduce.reduce.maxattempts`: 4).
    pub reduce_attempts: u32,
    /// Attempts of an application master before its job fails
    /// (`yarn.resourcemanager.am.max-attempts`: 2).
    pub master_attempts: u32,
    /// A worker that was not heard of for longer is lost with its tasks and map outputs
    /// (`mapred.tasktracker.expiry.interval`,
    /// `yarn.resourcemanager.nm.liveness-monitor.expiry-interval-ms`: 600 s).
    pub expiry: Span,
    /// A fetch during which nothing arrives for so long has failed
    /// (`mapreduce.reduce.shuffle.read.timeout` and `connect.timeout`: 180 s).
    pub fetch_timeout: Span,
    /// Time without progress after which reading or writing a block fails
    /// (`dfs.client.socket-timeout`: 60 s).
    pub block_timeout: Span,
    /// Time without an answer after which a call to a master fails (`ipc.ping.interval`: 60 s).
    pub call_timeout: Span,
    /// Reports of failed fetches of an output after which its map runs again
    /// (`mapreduce.reduce.shuffle.max-fetch-failures-notifications`: 3).
    pub fetch_reports: u32,
    /// And part of the job's running reduces that they must make up
    /// (`mapreduce.reduce.shuffle.max-fetch-failures-fraction`: 0.5).
    pub fetch_fraction: f64,
    /// Blocks begun anew because no replica was left, before the writer fails
    /// (`dfs.client.block.write.retries`: 3).
    pub block_retries: u32,
}

impl Default for FailureConfig {
    fn default() -> Self {
        FailureConfig {
            attempts: 0.0,
            tasks: Vec::new(),
            map_attempts: 4,
            reduce_attempts: 4,
            master_attempts: 2,
            expiry: Span::from_secs(600),
            fetch_timeout: Span::from_secs(180),
            block_timeout: Span::from_secs(60),
            call_timeout: Span::from_secs(60),
            fetch_reports: 3,
            fetch_fraction: 0.5,
            block_retries: 3,
        }
    }
}

/// A task whose first attempts fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingTask {
    /// Name of its job: untrusted text. Of several jobs with one name all have it.
    pub job: String,
    /// Map or reduce.
    pub kind: TaskKind,
    /// Number within its job and kind.
    pub task: u32,
    /// How many attempts fail.
    pub attempts: u32,
}
