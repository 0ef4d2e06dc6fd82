//! Settings of HDFS for lost datanodes: detection by the namenode, replication of blocks, and
//! replacement of datanodes in pipelines.

use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// Policy for replacing a lost datanode in a writer's pipeline
/// (`dfs.client.block.write.replace-datanode-on-failure.policy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplaceDatanode {
    /// Replace a lost datanode if the file has three or more wanted replicas and at most half of
    /// them remain.
    Default,
    /// Always replace a lost datanode.
    Always,
    /// Never replace a lost datanode (also `…replace-datanode-on-failure.enable` = false).
    Never,
}

impl ReplaceDatanode {
    /// Whether a lost datanode is replaced in the pipeline of a file with `replicas` wanted
    /// replicas, when `left` replicas remain. Hadoop's default policy also replaces for flushed or
    /// appended files, which this model does not have.
    pub fn is_due(self, replicas: u32, left: usize) -> bool {
        let (replicas, left) = (replicas as usize, left);
        match self {
            ReplaceDatanode::Default => replicas >= 3 && replicas / 2 >= left,
            ReplaceDatanode::Always => left < replicas,
            ReplaceDatanode::Never => false,
        }
    }
}

/// Settings of HDFS for the detection of lost datanodes and for the recovery of their blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecoveryConfig {
    /// Time between two heartbeats of a datanode (`dfs.heartbeat.interval`: 3 s). These heartbeats
    /// are not sent as messages; a command for a datanode waits for its next heartbeat.
    pub heartbeat: Span,
    /// Time between two checks in which the namenode looks for dead datanodes
    /// (`dfs.namenode.heartbeat.recheck-interval`: 300 s).
    pub recheck: Span,
    /// Time between two rounds in which the namenode starts copies of blocks with missing replicas
    /// (`dfs.namenode.redundancy.interval.seconds`, formerly `dfs.namenode.replication.interval`: 3
    /// s).
    pub interval: Span,
    /// Number of copies of blocks that the namenode starts in a round, for each live datanode
    /// (`dfs.namenode.replication.work.multiplier.per.iteration`: 2).
    pub work: u32,
    /// Largest number of copies of blocks that a datanode sends at one time
    /// (`dfs.namenode.replication.max-streams`: 2).
    pub streams: u32,
    /// Largest number of copies of blocks that a datanode sends at one time, if it has the last
    /// replica of a block (`dfs.namenode.replication.max-streams-hard-limit`: 4).
    pub streams_hard: u32,
    /// Time after which the namenode starts another copy of a block, if the first copy is not
    /// finished (`dfs.namenode.reconstruction.pending.timeout-sec`: 300 s).
    pub pending: Span,
    /// Policy for replacing a lost datanode in a write pipeline.
    pub replace: ReplaceDatanode,
    /// Whether a pipeline continues with the remaining datanodes if no replacement for a lost
    /// datanode is found (`dfs.client.block.write.replace-datanode-on-failure.best-effort`: false).
    pub best_effort: bool,
    /// Number of times that a reader asks again for replicas of a block when all known replicas
    /// have failed, before the read fails (`dfs.client.max.block.acquire.failures`: 3).
    pub acquire_failures: u32,
    /// Base of the time that a reader waits between two searches for replicas
    /// (`dfs.client.retry.window.base`: 3 s): the n-th wait is (n − 1 + n · u) times the base, with
    /// u uniform in 0 to 1.
    pub retry_window: Span,
}

impl Default for RecoveryConfig {
    fn default() -> Self {
        RecoveryConfig {
            heartbeat: Span::from_secs(3),
            recheck: Span::from_secs(300),
            interval: Span::from_secs(3),
            work: 2,
            streams: 2,
            streams_hard: 4,
            pending: Span::from_secs(300),
            replace: ReplaceDatanode::Default,
            best_effort: false,
            acquire_failures: 3,
            retry_window: Span::from_secs(3),
        }
    }
}

impl RecoveryConfig {
    /// Returns the time without heartbeats after which the namenode declares a datanode dead: 630 s
    /// by default.
    pub fn dead_after(&self) -> Span {
        let twice = self.recheck.0.saturating_mul(2);
        Span(twice.saturating_add(self.heartbeat.0.saturating_mul(10)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_are_hadoop_s() {
        assert_eq!(RecoveryConfig::default().dead_after(), Span::from_secs(630));
        let due = |replicas, left| ReplaceDatanode::Default.is_due(replicas, left);
        assert!(!due(2, 1) && !due(3, 2) && due(3, 1) && due(5, 2) && !due(5, 3));
        assert!(ReplaceDatanode::Always.is_due(2, 1) && !ReplaceDatanode::Never.is_due(9, 1));
    }
}
