//! `[workload.failures]`: attempts that fail by themselves, and Hadoop's patience with what the
//! network loses. Failures of nodes, links and switches are `[[fault]]`.

use crate::scenario::quantity::{Fraction, Name};
use crate::scenario::reader::{Section, key};
use eastwest_types::{Span, TaskKind};
use eastwest_workload::mapreduce::{FailingTask, FailureConfig};

/// Most tasks named to fail.
const MOST: usize = 10_000;

/// Reads the table.
pub fn read(s: &mut Section) -> FailureConfig {
    let usual = FailureConfig::default();
    let attempts = s.get(
        key("attempts", "Part of all attempts that fail, at their end.")
            .value(Fraction(usual.attempts))
            .range("0", "1"),
    );
    let mut most = |name, doc, usual: u32| s.get(key(name, doc).value(usual).range("1", "1000"));
    let map_attempts = most(
        "map_attempts",
        "Attempts of a map before its job fails (mapreduce.map.maxattempts).",
        usual.map_attempts,
    );
    let reduce_attempts = most(
        "reduce_attempts",
        "Attempts of a reduce before its job fails (mapreduce.reduce.maxattempts).",
        usual.reduce_attempts,
    );
    let master_attempts = most(
        "master_attempts",
        "Attempts of an application master before its job fails \
         (yarn.resourcemanager.am.max-attempts).",
        usual.master_attempts,
    );
    let fetch_reports = most(
        "fetch_reports",
        "Reports of failed fetches of an output after which its map runs again \
         (mapreduce.job.maxfetchfailures).",
        usual.fetch_reports,
    );
    let fetch_fraction = s.get(
        key("fetch_fraction", "And part of the job's running reduces that they must make up.")
            .value(Fraction(usual.fetch_fraction))
            .range("0", "1"),
    );
    let mut wait =
        |name, doc, usual: Span| s.get(key(name, doc).value(usual).range("1 s", "100 h"));
    let expiry = wait(
        "expiry",
        "A worker not heard of for longer is lost with its tasks and map outputs \
         (mapred.tasktracker.expiry.interval; \
         yarn.resourcemanager.nm.liveness-monitor.expiry-interval-ms).",
        usual.expiry,
    );
    let dead = wait(
        "dead",
        "A datanode not heard of for longer gets no blocks (2 · \
         dfs.namenode.heartbeat.recheck-interval + 10 · dfs.heartbeat.interval).",
        usual.dead,
    );
    let fetch_timeout = wait(
        "fetch_timeout",
        "A fetch during which nothing arrives for so long has failed \
         (mapreduce.reduce.shuffle.read.timeout).",
        usual.fetch_timeout,
    );
    let block_timeout = wait(
        "block_timeout",
        "The same for reading and writing blocks (dfs.client.socket-timeout).",
        usual.block_timeout,
    );
    let call_timeout =
        wait("call_timeout", "The same for calls (ipc.ping.interval).", usual.call_timeout);
    let block_retries = s.get(
        key(
            "block_retries",
            "Blocks begun anew because no replica was left, before the writer fails \
             (dfs.client.block.write.retries).",
        )
        .value(usual.block_retries)
        .range("0", "1000"),
    );
    let tasks = s.tables("task", "Tasks whose first attempts fail.", MOST, |t, _| read_task(t));
    FailureConfig {
        attempts: attempts.0,
        tasks,
        map_attempts,
        reduce_attempts,
        master_attempts,
        expiry,
        dead,
        fetch_timeout,
        block_timeout,
        call_timeout,
        fetch_reports,
        fetch_fraction: fetch_fraction.0,
        block_retries,
    }
}

fn read_task(s: &mut Section) -> FailingTask {
    let job = s.get(key::<Name>("job", "Name of its job; several jobs of one name all have it."));
    let kind = s.choice(
        "task",
        "Map or reduce.",
        Some("map"),
        &[("map", TaskKind::Map, "a map"), ("reduce", TaskKind::Reduce, "a reduce")],
    );
    let task = s.get(
        key("number", "Number within its job and kind, from 0.").value(0u32).range("0", "999999"),
    );
    let attempts = s.get(key("attempts", "How many attempts fail.").value(1u32).range("1", "1000"));
    FailingTask { job: job.0, kind, task, attempts }
}
