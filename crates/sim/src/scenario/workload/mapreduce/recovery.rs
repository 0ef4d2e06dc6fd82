//! Keys of the table `hdfs` for the time after the loss of datanodes: detection, re-replication,
//! and the retries of readers and writers.

use super::fields::{Range, count, flag, span};
use eastwest_settings::quantity::Quantity;
use eastwest_settings::reader::Section;
use eastwest_types::Span;
use eastwest_workload::mapreduce::{RecoveryConfig, ReplaceDatanode};
use toml::Value;

const STREAMS: Range = ("0", "10000");
const PERIOD: Range = ("1 s", "100 h");

/// Reads the former key `failures.dead`, the time without a heartbeat after which a datanode counts
/// as dead. This time is now 2 · `recheck` + 10 · `datanode_heartbeat`; unless the scenario sets
/// `hdfs.recheck`, its preset is computed from the former key.
pub fn take_former(s: &mut Section, usual: &RecoveryConfig) {
    let time = |s: &Section, path| s.own(path).and_then(|value| Span::parse(value).ok());
    let Some(dead) = time(s, "failures.dead") else { return };
    if s.own("hdfs.recheck").is_none() {
        let heartbeat = time(s, "hdfs.datanode_heartbeat").unwrap_or(usual.heartbeat);
        let recheck = Span(dead.0.saturating_sub(heartbeat.0.saturating_mul(10)) / 2);
        let text = recheck.show().trim_matches('"').to_owned();
        s.preset_below("hdfs.recheck", Value::String(text), "failures.dead".to_owned());
    }
}

/// Reads the keys of the table `hdfs` about the loss of datanodes. `usual` are the defaults.
pub fn read(s: &mut Section, usual: &RecoveryConfig) -> RecoveryConfig {
    let doc = "Time between two checks of the datanodes by the namenode. A datanode counts as \
               dead after 2 · recheck + 10 · datanode_heartbeat without a heartbeat \
               (dfs.namenode.heartbeat.recheck-interval).";
    let recheck = span(s, "recheck", doc, usual.recheck, PERIOD);
    let doc = "Time between two heartbeats of a datanode (dfs.heartbeat.interval).";
    let heartbeat = span(s, "datanode_heartbeat", doc, usual.heartbeat, ("1 s", "1 h"));
    let doc = "Time between two rounds of re-replication, in which the namenode orders copies of \
               blocks (dfs.namenode.redundancy.interval.seconds).";
    let interval = span(s, "replication_interval", doc, usual.interval, ("1 s", "1 h"));
    let doc = "Maximum number of blocks in a round of re-replication, for each live datanode \
               (dfs.namenode.replication.work.multiplier.per.iteration); with 0 no block is \
               copied.";
    let work = count(s, "replication_work", doc, usual.work, STREAMS);
    let doc = "Maximum number of copies that a datanode sends at once \
               (dfs.namenode.replication.max-streams).";
    let streams = count(s, "replication_streams", doc, usual.streams, STREAMS);
    let doc = "Maximum number of copies that a datanode sends at once when a block has only one \
               replica left (dfs.namenode.replication.max-streams-hard-limit).";
    let streams_hard = count(s, "replication_streams_hard", doc, usual.streams_hard, STREAMS);
    let doc = "Time after which an interrupted copy is started again \
               (dfs.namenode.reconstruction.pending.timeout-sec).";
    let pending = span(s, "replication_timeout", doc, usual.pending, PERIOD);
    RecoveryConfig {
        heartbeat,
        recheck,
        interval,
        work,
        streams,
        streams_hard,
        pending,
        ..read_clients(s, usual)
    }
}

/// Reads the settings of HDFS readers and writers that lose a datanode.
fn read_clients(s: &mut Section, usual: &RecoveryConfig) -> RecoveryConfig {
    let replace = s.choice(
        "replace_datanode",
        "Policy for replacing a failed datanode in a write pipeline \
         (dfs.client.block.write.replace-datanode-on-failure.policy).",
        Some("default"),
        &[
            (
                "default",
                ReplaceDatanode::Default,
                "a datanode is replaced if there were three replicas or more and at most half of \
                 them are left",
            ),
            ("always", ReplaceDatanode::Always, "every failed datanode is replaced"),
            (
                "never",
                ReplaceDatanode::Never,
                "the pipeline continues with the remaining datanodes",
            ),
        ],
    );
    let doc = "Whether a pipeline continues with the remaining datanodes if no replacement exists \
               (dfs.client.block.write.replace-datanode-on-failure.best-effort).";
    let best_effort = flag(s, "best_effort", doc, usual.best_effort);
    let doc = "Number of retries of a reader that finds no replica of a block \
               (dfs.client.max.block.acquire.failures).";
    let acquire = usual.acquire_failures;
    let acquire_failures = count(s, "acquire_failures", doc, acquire, ("0", "1000"));
    let doc = "Base of the growing time between retries of a reader that finds no replica \
               (dfs.client.retry.window.base).";
    let retry_window = span(s, "retry_window", doc, usual.retry_window, ("0 s", "1 h"));
    RecoveryConfig { replace, best_effort, acquire_failures, retry_window, ..usual.clone() }
}
