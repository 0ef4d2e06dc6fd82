//! Workloads of kind `mapreduce`: the cluster and its costs. The jobs are read in [`super::jobs`].
//!
//! Defaults and their sources are those of `eastwest-workload`'s MapReduce settings.

use super::{Ground, hadoop, jobs, machine, scheduling};
use crate::scenario::classes::Classes;
use crate::scenario::files::Files;
use crate::scenario::hosts;
use crate::scenario::quantity::{ByteRate, Bytes, Fraction, Name, Octets};
use crate::scenario::reader::{Section, key};
use eastwest_types::{ClassId, HostId};
use eastwest_workload::mapreduce::{
    ControlConfig, CostConfig, Framework, HdfsConfig, MapReduceConfig, NodeConfig, SchedulerKind,
    ShuffleConfig, SortConfig, YarnConfig,
};

const ANY_BYTES: (&str, &str) = ("1 B", "1 TB");

/// Settings of a MapReduce cluster, and where each of its jobs comes from.
pub fn read(
    s: &mut Section,
    ground: &Ground,
    class: (&Name, ClassId),
    classes: &mut Classes,
    files: &mut Files,
    notes: &mut Vec<String>,
) -> Option<(MapReduceConfig, Vec<jobs::Origin>)> {
    machine::read(s, ground, files);
    hadoop::read(s, ground, files, notes);
    let master = hosts::read_one(
        s,
        "master",
        "Namenode and jobtracker; runs no task.",
        Some("the last host"),
        ground.nodes,
    );
    let doc = "Hosts that store data and run tasks.";
    let workers =
        hosts::read_list(s, "workers", doc, Some("all hosts but the master"), ground.nodes);
    let Slots { map_slots, reduce_slots, scheduler } = read_slots(s);
    let scheduling = scheduling::read(s);
    let control_class = s.get(
        key("control_class", "Traffic class of heartbeats and assignments.")
            .computed("the workload's class", class.0.clone()),
    );
    let control_class = classes.id(&control_class.0);
    let hdfs = s.table("hdfs", "The distributed file system.", read_hdfs);
    let control = s.table("control", "Heartbeats and assignment of tasks.", read_control);
    let shuffle = s.table("shuffle", "From map outputs to reducers.", read_shuffle);
    let (costs, node) =
        s.table("costs", "What computing and local disks cost each task.", read_costs);
    let count = ground.nodes.map_or(1, |n| n.hosts().saturating_sub(1));
    let workers_count = workers.as_ref().map_or(count, |w: &Vec<HostId>| w.len() as u32);
    let cluster = jobs::Cluster { workers: workers_count, reduce_slots };
    let (jobs, origins) = jobs::read(s, ground, &cluster, files, notes)?;
    let config = MapReduceConfig {
        master,
        workers,
        framework: Framework::Mr1,
        map_slots,
        reduce_slots,
        scheduler,
        scheduling,
        class: class.1,
        control_class,
        hdfs,
        control,
        shuffle,
        sort: SortConfig::default(),
        costs,
        node,
        yarn: YarnConfig::default(),
        jobs,
    };
    Some((config, origins))
}

struct Slots {
    map_slots: u32,
    reduce_slots: u32,
    scheduler: SchedulerKind,
}

fn read_slots(s: &mut Section) -> Slots {
    let usual = MapReduceConfig::default();
    let map_slots = s.get(
        key("map_slots", "Map tasks a worker runs at once (mapred.tasktracker.map.tasks.maximum).")
            .value(usual.map_slots)
            .range("1", "1000"),
    );
    let reduce_slots = s.get(
        key("reduce_slots", "Reduce tasks a worker runs at once (as for maps; E-EON: 2 and 2).")
            .value(usual.reduce_slots)
            .range("1", "1000"),
    );
    let scheduler = scheduling::read_kind(s);
    Slots { map_slots, reduce_slots, scheduler }
}

fn small(s: &mut Section, name: &'static str, doc: &'static str, usual: u32) -> u32 {
    s.get(key::<Octets>(name, doc).value(Octets(usual)).range("1", "1000000")).0
}

fn read_hdfs(s: &mut Section) -> HdfsConfig {
    let usual = HdfsConfig::default();
    let (low, high) = ANY_BYTES;
    HdfsConfig {
        replication: s.get(
            key("replication", "Copies of every input split (dfs.replication: 3).")
                .value(usual.replication)
                .range("1", "1000"),
        ),
        output_replication: s.get(
            key(
                "output_replication",
                "Copies of job output, the local one included (dfs.replication: 3). TeraSort \
                 jobs write one unless they say otherwise.",
            )
            .value(usual.output_replication)
            .range("1", "1000"),
        ),
        block_bytes: s
            .get(
                key("block_bytes", "Largest block of job output (dfs.block.size of Hadoop 1).")
                    .value(Bytes(usual.block_bytes))
                    .range(low, high),
            )
            .0,
        write_chunk_bytes: s
            .get(
                key(
                    "write_chunk_bytes",
                    "Bytes a replica must have received before it passes them on (Hadoop: 64 KiB; \
                     larger ones mean fewer events).",
                )
                .value(Bytes(usual.write_chunk_bytes))
                .range("1 KB", high),
            )
            .0,
        write_window: s.get(
            key(
                "write_window",
                "Chunks a writer may have unacknowledged (Hadoop: 80 packets of 64 KiB).",
            )
            .value(usual.write_window)
            .range("1", "100000"),
        ),
        ack_bytes: small(
            s,
            "ack_bytes",
            "Application bytes of an acknowledgement in a pipeline (estimate).",
            usual.ack_bytes,
        ),
        read_request_bytes: small(
            s,
            "read_request_bytes",
            "Application bytes of a request for a remote split (estimate).",
            usual.read_request_bytes,
        ),
        ..usual
    }
}

fn read_control(s: &mut Section) -> ControlConfig {
    let usual = ControlConfig::default();
    let heartbeat = s.get(
        key("heartbeat", "Time between two heartbeats of a worker (Hadoop's jobtracker: 3 s).")
            .value(usual.heartbeat)
            .range("1 ms", "1 h"),
    );
    let out_of_band_heartbeat = s.get(
        key(
            "out_of_band_heartbeat",
            "Send a heartbeat at once when a task has finished \
             (mapreduce.tasktracker.outofband.heartbeat).",
        )
        .value(usual.out_of_band_heartbeat),
    );
    let (maps_per_heartbeat, reduces_per_heartbeat) = read_answers(s, &usual);
    let spread = s.get(
        key(
            "spread",
            "Fill only as many slots of a worker as it needs if tasks were spread evenly over \
             the cluster, as Hadoop's schedulers do.",
        )
        .value(usual.spread),
    );
    let slowstart = s.get(
        key(
            "slowstart",
            "Share of a job's maps that must have finished before its reduces are given out \
             (mapreduce.job.reduce.slowstart.completedmaps).",
        )
        .value(Fraction(usual.slowstart))
        .range("0", "1"),
    );
    let job_setup = s.get(
        key(
            "job_setup",
            "From submission until a job's maps can be given out (measured: \
                         4 to 5 s to the first map).",
        )
        .value(usual.job_setup)
        .range("0 s", "1 h"),
    );
    let job_cleanup = s.get(
        key(
            "job_cleanup",
            "From the report of the last task until the job has finished (measured: 40 to 60 ms).",
        )
        .value(usual.job_cleanup)
        .range("0 s", "1 h"),
    );
    ControlConfig {
        heartbeat,
        out_of_band_heartbeat,
        heartbeat_bytes: small(
            s,
            "heartbeat_bytes",
            "Application bytes of a heartbeat (estimate).",
            usual.heartbeat_bytes,
        ),
        answer_bytes: small(
            s,
            "answer_bytes",
            "Application bytes of an answer without task (estimate).",
            usual.answer_bytes,
        ),
        assignment_bytes: small(
            s,
            "assignment_bytes",
            "Application bytes of each task in an answer (estimate).",
            usual.assignment_bytes,
        ),
        map_event_bytes: small(
            s,
            "map_event_bytes",
            "Application bytes by which an answer tells a reducer of one finished map (estimate).",
            usual.map_event_bytes,
        ),
        maps_per_heartbeat,
        reduces_per_heartbeat,
        spread,
        slowstart: slowstart.0,
        job_setup,
        job_cleanup,
    }
}

/// Maps and reduces given out in one answer.
fn read_answers(s: &mut Section, usual: &ControlConfig) -> (u32, u32) {
    let maps_per_heartbeat = s.find(
        key("maps_per_heartbeat", "Maps given out in one answer at most.")
            .optional("as many as there are free slots, as Hadoop's FIFO scheduler does")
            .range("1", "4294967295"),
    );
    let reduces_per_heartbeat = s.get(
        key("reduces_per_heartbeat", "Reduces given out in one answer at most (Hadoop's FIFO: 1).")
            .value(usual.reduces_per_heartbeat)
            .range("1", "4294967295"),
    );
    (maps_per_heartbeat.unwrap_or(usual.maps_per_heartbeat), reduces_per_heartbeat)
}

fn read_shuffle(s: &mut Section) -> ShuffleConfig {
    let usual = ShuffleConfig::default();
    ShuffleConfig {
        parallel_copies: s.get(
            key(
                "parallel_copies",
                "Hosts a reducer fetches from at once (mapreduce.reduce.shuffle.parallelcopies).",
            )
            .value(usual.parallel_copies)
            .range("1", "100000"),
        ),
        max_maps_per_fetch: s.get(
            key(
                "max_maps_per_fetch",
                "Map outputs of one host asked for in one request (MAX_MAPS_AT_ONCE of Hadoop).",
            )
            .value(usual.max_maps_per_fetch)
            .range("1", "1000000"),
        ),
        fetch_request_bytes: small(
            s,
            "fetch_request_bytes",
            "Application bytes of a request (estimate).",
            usual.fetch_request_bytes,
        ),
        fetch_header_bytes: small(
            s,
            "fetch_header_bytes",
            "Application bytes of a response before the map outputs (estimate).",
            usual.fetch_header_bytes,
        ),
        ..usual
    }
}

fn read_costs(s: &mut Section) -> (CostConfig, NodeConfig) {
    let usual = CostConfig::default();
    let (low, high) = ("1 KB/s", "1000 GB/s");
    let costs = CostConfig {
        task_start: s.get(
            key(
                "task_start",
                "From the arrival of an assignment until the task starts (Java virtual machine: \
                 about 1 s on an idle core).",
            )
            .value(usual.task_start)
            .range("0 s", "1 h"),
        ),
        map_rate: s
            .get(
                key("map_rate", "Map function with sort (measured: 31 ms of CPU per MB).")
                    .value(ByteRate(usual.map_rate))
                    .range(low, high),
            )
            .0,
        reduce_rate: s
            .get(
                key("reduce_rate", "Reduce function (measured: 140 MB in 1.7 to 2.6 s).")
                    .value(ByteRate(usual.reduce_rate))
                    .range(low, high),
            )
            .0,
        ..usual
    };
    let node = NodeConfig::default();
    let disk_rate = s
        .get(
            key("disk_rate", "Local disk: sequential transfer of one 7200 rpm disk.")
                .value(ByteRate(node.read_rate))
                .range(low, high),
        )
        .0;
    (costs, NodeConfig { read_rate: disk_rate, write_rate: disk_rate, ..node })
}
