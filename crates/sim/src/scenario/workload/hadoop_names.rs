//! Meaning of the properties of Hadoop. There are three kinds: settings of the model, properties
//! for which the model assumes a fixed value, and properties that are not modelled.
//!
//! The names are from Hadoop 3.4 (`core-default.xml`, `hdfs-default.xml`, `yarn-default.xml`,
//! `mapred-default.xml`) and, for slots and the jobtracker, from Hadoop 1. Deprecated names are in
//! `hadoop_renamed.tsv`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// Format of the value of a Hadoop property.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// A whole number.
    Count,
    /// A number of bytes; a suffix `k`, `m`, `g`, `t` is a power of 1024.
    Bytes,
    /// A whole number of MiB.
    Mebibytes,
    /// Size of a packet of HDFS on the wire in bytes, from which the number of file bytes in the
    /// packet is computed.
    PacketPayload,
    /// Options of a Java virtual machine, of which only the heap size (`-Xmx`) is used.
    Heap,
    /// A time in milliseconds, or with a suffix `ns`, `us`, `ms`, `s`, `m`, `h`, `d`.
    Millis,
    /// A time in seconds, or with a suffix as in [`Form::Millis`].
    Seconds,
    /// A fraction, such as 0.05 for 5 %.
    Share,
    /// `true` or `false`.
    Flag,
    /// Name of the Java class of a scheduler.
    Scheduler,
    /// Framework that assigns tasks to nodes: `yarn` or `classic` (a jobtracker).
    Framework,
    /// Policy by which HDFS adds another datanode to a write pipeline that has lost a datanode:
    /// `DEFAULT`, `ALWAYS` or `NEVER`.
    ReplaceDatanode,
    /// A number with decimals, such as a number of standard deviations.
    Ratio,
}

/// A Hadoop property that is a setting of the model.
pub struct Modelled {
    /// Name of the property in Hadoop.
    pub name: &'static str,
    /// Format of the value in Hadoop's files.
    pub form: Form,
    /// Keys of the workload whose preset is the value of the property: keys of the workload itself,
    /// of a table below it, or of every `[[workload.job]]` (`job.reduces`).
    pub keys: &'static [&'static str],
}

const fn setting(name: &'static str, form: Form, keys: &'static [&'static str]) -> Modelled {
    Modelled { name, form, keys }
}

/// All Hadoop properties that are settings of the model, except the properties that apply only to
/// YARN.
pub const MODELLED: &[Modelled] = &[
    setting("mapreduce.framework.name", Form::Framework, &["framework"]),
    // properties of HDFS
    setting("dfs.replication", Form::Count, &["hdfs.replication", "hdfs.output_replication"]),
    setting("dfs.blocksize", Form::Bytes, &["split_bytes", "hdfs.block_bytes"]),
    setting("dfs.client-write-packet-size", Form::Bytes, &["hdfs.packet_bytes"]),
    setting("dfs.client-write-packet-size", Form::PacketPayload, &["hdfs.write_chunk_bytes"]),
    setting("dfs.client.write.max-packets-in-flight", Form::Count, &["hdfs.write_window"]),
    setting("dfs.bytes-per-checksum", Form::Count, &["hdfs.bytes_per_checksum"]),
    setting("mapreduce.terasort.output.replication", Form::Count, &["job.output_replication"]),
    // properties about lost datanodes
    setting("dfs.namenode.heartbeat.recheck-interval", Form::Millis, &["hdfs.recheck"]),
    setting("dfs.heartbeat.interval", Form::Seconds, &["hdfs.datanode_heartbeat"]),
    setting(
        "dfs.namenode.redundancy.interval.seconds",
        Form::Seconds,
        &["hdfs.replication_interval"],
    ),
    setting(
        "dfs.namenode.replication.work.multiplier.per.iteration",
        Form::Count,
        &["hdfs.replication_work"],
    ),
    setting("dfs.namenode.replication.max-streams", Form::Count, &["hdfs.replication_streams"]),
    setting(
        "dfs.namenode.replication.max-streams-hard-limit",
        Form::Count,
        &["hdfs.replication_streams_hard"],
    ),
    setting(
        "dfs.namenode.reconstruction.pending.timeout-sec",
        Form::Seconds,
        &["hdfs.replication_timeout"],
    ),
    setting(
        "dfs.client.block.write.replace-datanode-on-failure.policy",
        Form::ReplaceDatanode,
        &["hdfs.replace_datanode"],
    ),
    setting(
        "dfs.client.block.write.replace-datanode-on-failure.best-effort",
        Form::Flag,
        &["hdfs.best_effort"],
    ),
    setting("dfs.client.block.write.retries", Form::Count, &["failures.block_retries"]),
    setting("dfs.client.max.block.acquire.failures", Form::Count, &["hdfs.acquire_failures"]),
    setting("dfs.client.retry.window.base", Form::Millis, &["hdfs.retry_window"]),
    setting("dfs.client.socket-timeout", Form::Millis, &["failures.block_timeout"]),
    // properties about failing task attempts
    setting("mapreduce.map.maxattempts", Form::Count, &["failures.map_attempts"]),
    setting("mapreduce.reduce.maxattempts", Form::Count, &["failures.reduce_attempts"]),
    setting("mapreduce.jobtracker.expire.trackers.interval", Form::Millis, &["failures.expiry"]),
    setting("ipc.ping.interval", Form::Millis, &["failures.call_timeout"]),
    // properties of map tasks
    setting("mapreduce.task.io.sort.mb", Form::Mebibytes, &["sort.buffer_bytes"]),
    setting("mapreduce.task.io.sort.factor", Form::Count, &["sort.factor"]),
    setting("mapreduce.map.sort.spill.percent", Form::Share, &["sort.spill_fraction"]),
    // properties of speculative execution
    setting("mapreduce.map.speculative", Form::Flag, &["speculation.maps"]),
    setting("mapreduce.reduce.speculative", Form::Flag, &["speculation.reduces"]),
    setting(
        "mapreduce.job.speculative.speculative-cap-running-tasks",
        Form::Share,
        &["speculation.cap_running"],
    ),
    setting(
        "mapreduce.job.speculative.speculative-cap-total-tasks",
        Form::Share,
        &["speculation.cap_total"],
    ),
    setting(
        "mapreduce.job.speculative.minimum-allowed-tasks",
        Form::Count,
        &["speculation.minimum"],
    ),
    setting("mapreduce.job.speculative.slowtaskthreshold", Form::Ratio, &["speculation.threshold"]),
    setting(
        "mapreduce.job.speculative.retry-after-no-speculate",
        Form::Millis,
        &["speculation.interval"],
    ),
    setting(
        "mapreduce.job.speculative.retry-after-speculate",
        Form::Millis,
        &["speculation.pause"],
    ),
    // properties of reduce tasks
    setting("mapreduce.job.reduces", Form::Count, &["job.reduces"]),
    setting("mapreduce.job.reduce.slowstart.completedmaps", Form::Share, &["control.slowstart"]),
    setting("mapreduce.reduce.shuffle.parallelcopies", Form::Count, &["shuffle.parallel_copies"]),
    setting(
        "mapreduce.reduce.shuffle.input.buffer.percent",
        Form::Share,
        &["shuffle.input_buffer_fraction"],
    ),
    setting(
        "mapreduce.reduce.shuffle.memory.limit.percent",
        Form::Share,
        &["shuffle.memory_limit_fraction"],
    ),
    setting("mapreduce.reduce.shuffle.merge.percent", Form::Share, &["shuffle.merge_fraction"]),
    setting(
        "mapreduce.reduce.input.buffer.percent",
        Form::Share,
        &["shuffle.reduce_buffer_fraction"],
    ),
    setting("mapreduce.reduce.shuffle.read.timeout", Form::Millis, &["failures.fetch_timeout"]),
    setting("mapreduce.reduce.shuffle.retry-delay.max.ms", Form::Millis, &["shuffle.penalty_max"]),
    setting(
        "mapreduce.reduce.shuffle.notify.readerror",
        Form::Flag,
        &["shuffle.notify_read_error"],
    ),
    setting(
        "mapreduce.reduce.shuffle.maxfetchfailures",
        Form::Count,
        &["shuffle.failures_reported"],
    ),
    setting(
        "mapreduce.reduce.shuffle.max-fetch-failures-notifications",
        Form::Count,
        &["failures.fetch_reports"],
    ),
    setting(
        "mapreduce.reduce.shuffle.max-fetch-failures-fraction",
        Form::Share,
        &["failures.fetch_fraction"],
    ),
    setting("mapreduce.shuffle.connection-keep-alive.enable", Form::Flag, &["shuffle.keep_alive"]),
    setting("mapred.child.java.opts", Form::Heap, &["shuffle.heap_bytes"]),
    setting("mapreduce.reduce.java.opts", Form::Heap, &["shuffle.heap_bytes"]),
    // properties of Hadoop 1 (slots and jobtracker)
    setting("mapreduce.tasktracker.map.tasks.maximum", Form::Count, &["map_slots"]),
    setting("mapreduce.tasktracker.reduce.tasks.maximum", Form::Count, &["reduce_slots"]),
    setting(
        "mapreduce.tasktracker.outofband.heartbeat",
        Form::Flag,
        &["control.out_of_band_heartbeat"],
    ),
    setting("mapreduce.jobtracker.heartbeat.interval.min", Form::Millis, &["control.heartbeat"]),
    setting("mapreduce.jobtracker.taskscheduler", Form::Scheduler, &["scheduler"]),
    setting("yarn.scheduler.fair.locality-delay-node-ms", Form::Millis, &["delay.node"]),
    setting("yarn.scheduler.fair.locality-delay-rack-ms", Form::Millis, &["delay.rack"]),
];

/// Names of the Hadoop properties that set the memory of nodes and containers. These properties
/// have no effect if tasks are assigned to slots (Hadoop 1).
pub const CONTAINER_MEMORY: [&str; 4] = [
    "yarn.nodemanager.resource.memory-mb",
    "mapreduce.map.memory.mb",
    "mapreduce.reduce.memory.mb",
    "yarn.app.mapreduce.am.resource.mb",
];

/// All Hadoop properties that are settings of the model only if the framework is YARN.
pub const OF_YARN: &[Modelled] = &[
    setting("yarn.resourcemanager.scheduler.class", Form::Scheduler, &["scheduler"]),
    setting(
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms",
        Form::Millis,
        &["control.heartbeat"],
    ),
    setting("yarn.nodemanager.resource.memory-mb", Form::Mebibytes, &["yarn.node_memory"]),
    setting("yarn.nodemanager.resource.cpu-vcores", Form::Count, &["yarn.node_vcores"]),
    setting("yarn.scheduler.minimum-allocation-mb", Form::Mebibytes, &["yarn.min_allocation"]),
    setting("mapreduce.map.memory.mb", Form::Mebibytes, &["yarn.map_memory"]),
    setting("mapreduce.reduce.memory.mb", Form::Mebibytes, &["yarn.reduce_memory"]),
    setting("yarn.app.mapreduce.am.resource.mb", Form::Mebibytes, &["yarn.am_memory"]),
    setting("mapreduce.map.cpu.vcores", Form::Count, &["yarn.map_vcores"]),
    setting("mapreduce.reduce.cpu.vcores", Form::Count, &["yarn.reduce_vcores"]),
    setting("yarn.app.mapreduce.am.resource.cpu-vcores", Form::Count, &["yarn.am_vcores"]),
    setting(
        "yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms",
        Form::Millis,
        &["yarn.am_heartbeat"],
    ),
    setting("yarn.app.mapreduce.am.job.reduce.rampup.limit", Form::Share, &["yarn.rampup_limit"]),
    setting("yarn.scheduler.capacity.maximum-am-resource-percent", Form::Share, &["yarn.am_share"]),
    setting("yarn.resourcemanager.am.max-attempts", Form::Count, &["failures.master_attempts"]),
    setting("yarn.nm.liveness-monitor.expiry-interval-ms", Form::Millis, &["failures.expiry"]),
];

/// A Hadoop property that the model does not use, with the value that the model assumes.
pub struct Granted {
    /// Name of the property in Hadoop.
    pub name: &'static str,
    /// Value that the model assumes.
    pub value: &'static str,
    /// Behaviour of the model for all values of the property, as text for notes.
    pub about: &'static str,
}

const fn granted(name: &'static str, value: &'static str, about: &'static str) -> Granted {
    Granted { name, value, about }
}

/// All Hadoop properties for which the model assumes a fixed value.
pub const GRANTED: &[Granted] = &[
    granted(
        "mapreduce.map.output.compress",
        "false",
        "map outputs are transferred without \
             compression",
    ),
    granted(
        "mapreduce.output.fileoutputformat.compress",
        "false",
        "output is written without \
             compression",
    ),
    granted("mapreduce.job.encrypted-intermediate-data", "false", "nothing is encrypted"),
    granted("mapreduce.job.ubertask.enable", "false", "every task has a container of its own"),
    granted("mapreduce.job.jvm.numtasks", "1", "every task starts a Java virtual machine"),
    granted("mapreduce.shuffle.ssl.enabled", "false", "nothing is encrypted"),
    granted(
        "mapreduce.shuffle.max.connections",
        "0",
        "shuffle servers accept any number of connections",
    ),
    granted("mapreduce.job.running.map.limit", "0", "a job may fill all map slots"),
    granted("mapreduce.job.running.reduce.limit", "0", "a job may fill all reduce slots"),
    granted("mapreduce.input.fileinputformat.split.minsize", "0", "a split is a block"),
    granted("dfs.datanode.data.transfer.bandwidthPerSec", "0", "datanodes are not throttled"),
    granted(
        "dfs.client.block.write.replace-datanode-on-failure.enable",
        "true",
        "failed datanodes are replaced; to prevent this, set the policy to NEVER",
    ),
    granted("dfs.encrypt.data.transfer", "false", "nothing is encrypted"),
];

/// Prefixes of the names of Hadoop properties that are not modelled: paths, addresses, security,
/// logs, limits, other file systems. A prefix that ends with a dot matches all names that begin
/// with it.
const ELSEWHERE: &[&str] = &[
    "adl.",
    "datanode.https.",
    "dimage.",
    "dstorage.",
    "file.",
    "fs.",
    "ftp.",
    "ha.",
    "hadoop.",
    "httpfs.",
    "io.bytes.",
    "io.compression.",
    "io.erasurecode.",
    "io.file.",
    "io.map.",
    "io.mapfile.",
    "io.native.",
    "io.seqfile.",
    "io.serializations",
    "io.skip.",
    "ipc.",
    "kfs.",
    "map.sort.",
    "net.topology.",
    "nfs.",
    "rpc.",
    "s3.",
    "s3native.",
    "security.",
    "seq.",
    "tfile.",
    // prefixes of properties of HDFS
    "dfs.balancer.",
    "dfs.batched.",
    "dfs.block.",
    "dfs.blockreport.",
    "dfs.bytes-per-checksum",
    "dfs.cachereport.",
    "dfs.checksum.",
    "dfs.client.",
    "dfs.content-summary.",
    "dfs.data.",
    "dfs.datanode.",
    "dfs.default.",
    "dfs.disk.",
    "dfs.domain.",
    "dfs.edit.",
    "dfs.encrypt.",
    "dfs.ha.",
    "dfs.heartbeat.",
    "dfs.hosts",
    "dfs.http.",
    "dfs.https.",
    "dfs.image.",
    "dfs.internal.",
    "dfs.journalnode.",
    "dfs.lock.",
    "dfs.ls.",
    "dfs.metrics.",
    "dfs.mover.",
    "dfs.namenode.",
    "dfs.nameservices",
    "dfs.net.",
    "dfs.permissions.",
    "dfs.pipeline.",
    "dfs.protected.",
    "dfs.provided.",
    "dfs.qjm.",
    "dfs.qjournal.",
    "dfs.quota.",
    "dfs.reformat.",
    "dfs.replication.max",
    "dfs.secondary.",
    "dfs.short.",
    "dfs.storage.",
    "dfs.stream-buffer-size",
    "dfs.support.",
    "dfs.use.",
    "dfs.user.",
    "dfs.webhdfs.",
    "dfs.xframe.",
    // prefixes of properties of MapReduce
    "mapred.child.",
    "mapred.mapper.",
    "mapred.queue.",
    "mapred.reducer.",
    "mapreduce.admin.",
    "mapreduce.am.",
    "mapreduce.app-submission.",
    "mapreduce.application.",
    "mapreduce.client.",
    "mapreduce.cluster.",
    "mapreduce.fieldsel.",
    "mapreduce.fileoutputcommitter.",
    "mapreduce.framework.",
    "mapreduce.ifile.",
    "mapreduce.input.",
    "mapreduce.job.acl-modify-job",
    "mapreduce.job.acl-view-job",
    "mapreduce.job.application.",
    "mapreduce.job.cache.",
    "mapreduce.job.classloader",
    "mapreduce.job.classpath.",
    "mapreduce.job.combine.",
    "mapreduce.job.committer.",
    "mapreduce.job.complete.",
    "mapreduce.job.counters.",
    "mapreduce.job.credentials.",
    "mapreduce.job.dfs.",
    "mapreduce.job.dir",
    "mapreduce.job.emit-timeline-data",
    "mapreduce.job.encrypted-intermediate-data",
    "mapreduce.job.end-notification.",
    "mapreduce.job.finish-when-all-reducers-done",
    "mapreduce.job.hdfs-servers",
    "mapreduce.job.heap.",
    "mapreduce.job.id",
    "mapreduce.job.inputformat.",
    "mapreduce.job.jar",
    "mapreduce.job.local-fs.",
    "mapreduce.job.local.",
    "mapreduce.job.log4j-properties-file",
    "mapreduce.job.map.",
    "mapreduce.job.maps",
    "mapreduce.job.max.",
    "mapreduce.job.maxtaskfailures.",
    "mapreduce.job.name",
    "mapreduce.job.node-label-expression",
    "mapreduce.job.output.",
    "mapreduce.job.outputformat.",
    "mapreduce.job.partitioner.",
    "mapreduce.job.priority",
    "mapreduce.job.queuename",
    "mapreduce.job.redacted-properties",
    "mapreduce.job.reduce.class",
    "mapreduce.job.reduce.shuffle.consumer.",
    "mapreduce.job.reducer.",
    "mapreduce.job.running.",
    "mapreduce.job.sharedcache.",
    "mapreduce.job.skip",
    "mapreduce.job.speculative.",
    "mapreduce.job.split.",
    "mapreduce.job.submithostaddress",
    "mapreduce.job.submithostname",
    "mapreduce.job.tags",
    "mapreduce.job.token.",
    "mapreduce.job.ubertask.",
    "mapreduce.job.user.",
    "mapreduce.job.userlog.",
    "mapreduce.job.userhistorylocation",
    "mapreduce.job.working.",
    "mapreduce.jobcontrol.",
    "mapreduce.jobhistory.",
    "mapreduce.jobtracker.",
    "mapreduce.join.",
    "mapreduce.jvm.",
    "mapreduce.local.",
    "mapreduce.map.combine.",
    "mapreduce.map.cpu.",
    "mapreduce.map.debug.",
    "mapreduce.map.env",
    "mapreduce.map.failures.",
    "mapreduce.map.input.",
    "mapreduce.map.java.",
    "mapreduce.map.log.",
    "mapreduce.map.maxattempts",
    "mapreduce.map.memory.",
    "mapreduce.map.output.",
    "mapreduce.map.skip.",
    "mapreduce.map.sort.",
    "mapreduce.mapper.",
    "mapreduce.multipleinputs.",
    "mapreduce.output.",
    "mapreduce.outputcommitter.",
    "mapreduce.partition.",
    "mapreduce.pipes.",
    "mapreduce.reduce.cpu.",
    "mapreduce.reduce.debug.",
    "mapreduce.reduce.env",
    "mapreduce.reduce.failures.",
    "mapreduce.reduce.input.",
    "mapreduce.reduce.java.",
    "mapreduce.reduce.log.",
    "mapreduce.reduce.markreset.",
    "mapreduce.reduce.maxattempts",
    "mapreduce.reduce.memory.",
    "mapreduce.reduce.merge.",
    "mapreduce.reduce.shuffle.connect.",
    "mapreduce.reduce.shuffle.fetch.",
    "mapreduce.reduce.shuffle.input.",
    "mapreduce.reduce.shuffle.maxfetchfailures",
    "mapreduce.reduce.shuffle.memory.",
    "mapreduce.reduce.shuffle.merge.",
    "mapreduce.reduce.shuffle.notify.",
    "mapreduce.reduce.shuffle.read.",
    "mapreduce.reduce.shuffle.retry-delay.",
    "mapreduce.reduce.skip.",
    "mapreduce.shuffle.",
    "mapreduce.task.",
    "mapreduce.tasktracker.",
    "mapreduce.terasort.",
    "mapreduce.workflow.",
    // prefixes of properties of YARN
    "yarn.acl.",
    "yarn.admin.",
    "yarn.am.",
    "yarn.am.liveness-monitor.expiry-interval-ms",
    "yarn.app.",
    "yarn.application.",
    "yarn.apps.",
    "yarn.client.",
    "yarn.cluster.",
    "yarn.dispatcher.",
    "yarn.fail-fast",
    "yarn.federation.",
    "yarn.fs-store.",
    "yarn.http.",
    "yarn.intermediate-data-encryption.",
    "yarn.ipc.",
    "yarn.is.",
    "yarn.log-aggregation",
    "yarn.log.",
    "yarn.minicluster.",
    "yarn.nm.",
    "yarn.node-attribute.",
    "yarn.node-labels.",
    "yarn.nodemanager.",
    "yarn.registry.",
    "yarn.resource-types",
    "yarn.resourcemanager.",
    "yarn.rm.",
    "yarn.router.",
    "yarn.scheduler.",
    "yarn.sharedcache.",
    "yarn.system-metrics-publisher.",
    "yarn.timeline-service.",
    "yarn.webapp.",
    "yarn.workflow-id.",
];

/// Hadoop properties that are not settings of the model; [`super::hadoop_rules`] compares most of
/// them with other properties.
const JUDGED: &[&str] = &[
    "dfs.namenode.replication.min",
    "dfs.replication.max",
    "mapreduce.job.heap.memory-mb.ratio",
    "mapreduce.map.java.opts",
    "yarn.scheduler.maximum-allocation-mb",
    "yarn.scheduler.maximum-allocation-vcores",
];

/// First words (up to a dot) of the names of Hadoop's own properties. A property with another first
/// word belongs to a job.
const OWN: &[&str] = &["dfs", "io", "mapred", "mapreduce", "yarn"];

/// Whether the model deliberately ignores a Hadoop property: paths, addresses, security, logs,
/// limits and the like.
pub fn is_elsewhere(name: &str) -> bool {
    ELSEWHERE.iter().any(|start| {
        name.strip_prefix(start).is_some_and(|rest| {
            start.ends_with('.') || rest.is_empty() || rest.starts_with(['.', '-'])
        })
    })
}

/// Whether exactly this name of a Hadoop property is in the lists of ignored or compared
/// properties. A name in these lists is not reported as a misspelt setting, even if it is similar
/// to a setting.
pub fn is_named(name: &str) -> bool {
    JUDGED.contains(&name) || ELSEWHERE.contains(&name)
}

/// Whether the name of a property begins with a word of Hadoop, such as `dfs`. Properties with
/// other names belong to a job.
pub fn is_own(name: &str) -> bool {
    name.split('.').next().is_some_and(|first| OWN.contains(&first))
}

/// Returns the current name of a Hadoop property, given its current or a deprecated name.
pub fn current(name: &str) -> &str {
    renamed().get(name).copied().unwrap_or(name)
}

/// Returns the names of Hadoop properties that are suggested for an unknown name: settings and
/// properties with an assumed value, with current and deprecated names.
pub fn candidates() -> &'static [&'static str] {
    static NAMES: OnceLock<Vec<&'static str>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let settings = MODELLED.iter().chain(OF_YARN).map(|m| m.name);
        let today: BTreeSet<&str> = settings.chain(GRANTED.iter().map(|g| g.name)).collect();
        let former = renamed().iter().filter(|(_, new)| today.contains(*new)).map(|(old, _)| *old);
        today.iter().copied().chain(former).collect()
    })
}

fn renamed() -> &'static BTreeMap<&'static str, &'static str> {
    static TABLE: OnceLock<BTreeMap<&'static str, &'static str>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let lines = include_str!("hadoop_renamed.tsv").lines().filter(|l| !l.starts_with('#'));
        lines.filter_map(|line| line.split_once('\t')).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_names_are_found() {
        assert_eq!(
            current("mapred.reduce.parallel.copies"),
            "mapreduce.reduce.shuffle.parallelcopies"
        );
        assert_eq!(current("io.sort.mb"), "mapreduce.task.io.sort.mb");
        assert_eq!(current("dfs.block.size"), "dfs.blocksize");
        assert!(candidates().contains(&"mapred.reduce.tasks"));
        assert!(renamed().len() > 200);
        let settings = MODELLED.iter().chain(OF_YARN).map(|m| m.name);
        for name in settings.chain(GRANTED.iter().map(|g| g.name)) {
            assert_eq!(current(name), name, "{name} is not the name of today");
        }
    }

    #[test]
    fn whole_words_begin_families() {
        assert!(is_elsewhere("mapreduce.job.submithostname"));
        assert!(!is_elsewhere("mapreduce.job.dirty"));
        assert!(is_elsewhere("yarn.log-aggregation-enable"));
        assert!(!is_elsewhere("mapreduce.reduce.shuffle.paralelcopies"));
        assert!(is_own("dfs.x") && !is_own("hive.x"));
    }
}
