//! The table `[workload.failures]`: task attempts that fail without a fault of the network, and
//! Hadoop's timeouts for lost data. The tables `[[fault]]` configure failures of nodes, links and
//! switches.

use super::fields::{Range, count, share, span};
use eastwest_settings::quantity::Name;
use eastwest_settings::reader::{Section, key};
use eastwest_types::{Span, TaskKind};
use eastwest_workload::mapreduce::{FailingTask, FailureConfig};

/// Maximum number of tasks in the list of tasks that fail.
const MOST: usize = 10_000;
const TIMES: Range = ("1", "1000");
const PATIENCE: Range = ("1 s", "100 h");

/// Reads the table `failures`: failing task attempts, and Hadoop's timeouts.
pub fn read(s: &mut Section) -> FailureConfig {
    let usual = FailureConfig::default();
    s.former::<Span>("dead"); // replaced by `hdfs.recheck`, see recovery::take_former
    let doc = "Share of all task attempts that fail; they fail at their end.";
    let attempts = share(s, "attempts", doc, usual.attempts);
    let doc = "Number of failed attempts of a map after which its job fails \
               (mapreduce.map.maxattempts).";
    let map_attempts = count(s, "map_attempts", doc, usual.map_attempts, TIMES);
    let doc = "Number of failed attempts of a reduce after which its job fails \
               (mapreduce.reduce.maxattempts).";
    let reduce_attempts = count(s, "reduce_attempts", doc, usual.reduce_attempts, TIMES);
    let doc = "Number of failed attempts of an application master after which its job fails \
               (yarn.resourcemanager.am.max-attempts).";
    let master_attempts = count(s, "master_attempts", doc, usual.master_attempts, TIMES);
    let doc = "Number of reports of failed fetches of a map's output after which the map runs \
               again (mapreduce.reduce.shuffle.max-fetch-failures-notifications).";
    let fetch_reports = count(s, "fetch_reports", doc, usual.fetch_reports, TIMES);
    let doc = "Share of the job's running reduces that must have reported failed fetches before a \
               map runs again (mapreduce.reduce.shuffle.max-fetch-failures-fraction).";
    let fetch_fraction = share(s, "fetch_fraction", doc, usual.fetch_fraction);
    FailureConfig {
        attempts,
        map_attempts,
        reduce_attempts,
        master_attempts,
        fetch_reports,
        fetch_fraction,
        ..read_patience(s, &usual)
    }
}

/// Reads the timeouts after which Hadoop detects failures, and the list of tasks that fail.
fn read_patience(s: &mut Section, usual: &FailureConfig) -> FailureConfig {
    let doc = "Time without a heartbeat after which a worker counts as lost, with its tasks and \
               map outputs (mapred.tasktracker.expiry.interval; \
               yarn.nm.liveness-monitor.expiry-interval-ms).";
    let expiry = span(s, "expiry", doc, usual.expiry, PATIENCE);
    let doc = "Time without arriving bytes after which a fetch fails \
               (mapreduce.reduce.shuffle.read.timeout).";
    let fetch_timeout = span(s, "fetch_timeout", doc, usual.fetch_timeout, PATIENCE);
    let doc = "Time without arriving bytes after which reading or writing a block fails \
               (dfs.client.socket-timeout).";
    let block_timeout = span(s, "block_timeout", doc, usual.block_timeout, PATIENCE);
    let doc = "Time without an answer after which a call to a daemon fails (ipc.ping.interval).";
    let call_timeout = span(s, "call_timeout", doc, usual.call_timeout, PATIENCE);
    let doc = "Number of times that a writer starts a block again because its pipeline cannot be \
               set up; then the writer fails (dfs.client.block.write.retries).";
    let block_retries = count(s, "block_retries", doc, usual.block_retries, ("0", "1000"));
    let tasks = s.tables("task", "Tasks whose first attempts fail.", MOST, |t, _| read_task(t));
    FailureConfig {
        tasks,
        expiry,
        fetch_timeout,
        block_timeout,
        call_timeout,
        block_retries,
        ..usual.clone()
    }
}

fn read_task(s: &mut Section) -> FailingTask {
    let job = s.get(key::<Name>(
        "job",
        "Name of the job; if several jobs have this name, the \
                                        entry applies to all of them.",
    ));
    let kind = s.choice(
        "task",
        "Kind of the task: map or reduce.",
        Some("map"),
        &[("map", TaskKind::Map, "a map"), ("reduce", TaskKind::Reduce, "a reduce")],
    );
    let doc = "Number of the task among the tasks of its kind in the job, from 0.";
    let task = count(s, "number", doc, 0, ("0", "999999"));
    let attempts = count(s, "attempts", "Number of first attempts that fail.", 1, TIMES);
    FailingTask { job: job.0, kind, task, attempts }
}
