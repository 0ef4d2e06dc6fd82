//! Settings of failures: attempts that fail, and the timeouts with which Hadoop detects failures.

use eastwest_types::{Span, TaskKind};
use serde::{Deserialize, Serialize};

/// Failing attempts of tasks, and Hadoop's limits and timeouts. Failures of nodes, links and
/// switches are settings of the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailureConfig {
    /// Probability, from 0 to 1, that an attempt of a task fails at its end.
    pub attempts: f64,
    /// Tasks whose first attempts fail, for tests of recovery.
    pub tasks: Vec<FailingTask>,
    /// Number of failed attempts of a map at which its job fails (`mapreduce.map.maxattempts`: 4).
    pub map_attempts: u32,
    /// Number of failed attempts of a reduce at which its job fails
    /// (`mapreduce.reduce.maxattempts`: 4).
    pub reduce_attempts: u32,
    /// Number of lost application masters of a job at which the job fails
    /// (`yarn.resourcemanager.am.max-attempts`: 2).
    pub master_attempts: u32,
    /// Time without a heartbeat after which the master declares a worker, its tasks and its map
    /// outputs lost (`mapred.tasktracker.expiry.interval`,
    /// `yarn.resourcemanager.nm.liveness-monitor.expiry-interval-ms`: 600 s).
    pub expiry: Span,
    /// Time without received data after which a fetch fails
    /// (`mapreduce.reduce.shuffle.read.timeout` and `connect.timeout`: 180 s).
    pub fetch_timeout: Span,
    /// Time without progress after which reading or writing a block fails
    /// (`dfs.client.socket-timeout`: 60 s).
    pub block_timeout: Span,
    /// Time without an answer after which a call to a master fails (`ipc.ping.interval`: 60 s).
    pub call_timeout: Span,
    /// Number of reports of failed fetches of a map's output after which the map runs again
    /// (`mapreduce.reduce.shuffle.max-fetch-failures-notifications`: 3).
    pub fetch_reports: u32,
    /// Fraction of a job's running reduces. A map runs again when the number of reports of failed
    /// fetches of its output reaches this fraction of the reduces, and also `fetch_reports`
    /// (`mapreduce.reduce.shuffle.max-fetch-failures-fraction`: 0.5).
    pub fetch_fraction: f64,
    /// Number of times that a writer tries a block again with other datanodes after the block's
    /// pipeline could not be set up; then the write fails (`dfs.client.block.write.retries`: 3).
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
    /// Name of the job (untrusted text). If several jobs have this name, the setting applies to all
    /// of them.
    pub job: String,
    /// Kind of the failing task: map or reduce.
    pub kind: TaskKind,
    /// Number of the failing task among the job's tasks of this kind, from 0.
    pub task: u32,
    /// Number of attempts of the task that fail, from its first attempt on.
    pub attempts: u32,
}
