//! Settings of what HDFS does about datanodes that are lost: when the namenode believes it, how it
//! has blocks copied, and when a writer asks for another datanode.

use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// When a writer whose pipeline has lost a datanode asks for another one
/// (`dfs.client.block.write.replace-datanode-on-failure.policy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplaceDatanode {
    /// With three replicas or more, when no more than half of them are left.
    Default,
    /// Whenever one is lost.
    Always,
    /// Never (also `…replace-datanode-on-failure.enable` = false).
    Never,
}

impl ReplaceDatanode {
    /// Whether a pipeline of a file with `replicas` replicas, of which `left` are left, gets another.
    /// Hadoop's default rule also replaces where a file was flushed or is appended to, which no file
    /// is here.
    pub fn is_due(self, replicas: u32, left: usize) -> bool {
        let (replicas, left) = (replicas as usize, left);
        match self {
            ReplaceDatanode::Default => replicas >= 3 && replicas / 2 >= left,
            ReplaceDatanode::Always => left < replicas,
            ReplaceDatanode::Never => false,
        }
    }
}

/// Lost datanodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecoveryConfig {
    /// Time between two heartbeats of a datanode (`dfs.heartbeat.interval`: 3 s). They are not sent
    /// as messages; commands to a datanode wait for its next one.
    pub heartbeat: Span,
    /// Time between two looks of the namenode at its datanodes
    /// (`dfs.namenode.heartbeat.recheck-interval`: 300 s).
    pub recheck: Span,
    /// Time between two rounds in which the namenode has blocks copied
    /// (`dfs.namenode.redundancy.interval.seconds`, before `dfs.namenode.replication.interval`: 3 s).
    pub interval: Span,
    /// Copies begun in a round, times the live datanodes
    /// (`dfs.namenode.replication.work.multiplier.per.iteration`: 2).
    pub work: u32,
    /// Copies a datanode sends at once (`dfs.namenode.replication.max-streams`: 2).
    pub streams: u32,
    /// Copies a datanode sends at once when it has a block's last replica
    /// (`dfs.namenode.replication.max-streams-hard-limit`: 4).
    pub streams_hard: u32,
    /// Time after which a copy that has not arrived is begun again
    /// (`dfs.namenode.reconstruction.pending.timeout-sec`: 300 s).
    pub pending: Span,
    /// When a pipeline that has lost a datanode gets another.
    pub replace: ReplaceDatanode,
    /// Go on with those that are left if there is no other
    /// (`dfs.client.block.write.replace-datanode-on-failure.best-effort`: false).
    pub best_effort: bool,
    /// How often a reader that finds no replica looks again before it gives up
    /// (`dfs.client.max.block.acquire.failures`: 3).
    pub acquire_failures: u32,
    /// Base of the time between (`dfs.client.retry.window.base`: 3 s): the n-th time it waits
    /// (n − 1 + n · u) times that, with u drawn from 0 to 1.
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
    /// How long a datanode must be silent before the namenode takes it for dead: 630 s by default.
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
