//! Settings of workloads of kind `mapreduce`: the Hadoop cluster, in one file per group of tables.
//! [`super::jobs`] reads the jobs.
//!
//! The documentation of the MapReduce settings in the crate `eastwest-workload` contains the
//! defaults and their sources.

mod coarse;
mod control;
mod failures;
mod fields;
mod hdfs;
mod node;
mod recovery;
mod speculation;
mod tasks;
mod yarn;

use super::ground::Ground;
use super::job_cluster::Cluster;
use super::{hadoop, jobs, machine, scheduling};
use crate::scenario::classes::Classes;
use crate::scenario::files::Files;
use crate::scenario::hosts;
use eastwest_settings::narrow::at_most;
use eastwest_settings::quantity::{Name, Ratio};
use eastwest_settings::reader::{Section, key};
use eastwest_types::{ClassId, HostId};
use eastwest_workload::mapreduce::{Framework, MapReduceConfig, SchedulerKind, SlowNode};

/// Reads the settings of a Hadoop cluster with its jobs. Returns the settings, and the place in the
/// scenario that defines each job; `None` if there is a problem, which is reported. `class` is the
/// name and the number of the workload's traffic class.
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
        "Host of namenode and jobtracker; it runs no tasks.",
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
    let framework = read_framework(s);
    if framework == Framework::Yarn {
        // The scenario text with all defaults contains these keys too, so only a value other than
        // the default shows that a user has set the key.
        let usual = MapReduceConfig::default();
        let slots = [
            ("map_slots", map_slots, usual.map_slots),
            ("reduce_slots", reduce_slots, usual.reduce_slots),
        ];
        for (name, _, _) in slots.into_iter().filter(|(_, given, usual)| given != usual) {
            notes.push(format!(
                "{name} is ignored: with framework = \"yarn\" the memory of nodes and tasks \
                 (table yarn) limits the number of containers"
            ));
        }
    }
    let tables = read_tables(s, ground, framework);
    if tables.coarse.is_on() {
        notes.push(
            "detail = \"coarse\": a part of Hadoop's traffic is left out, as the table \
                   coarse describes"
                .into(),
        );
    }
    let count = ground.nodes.map_or(1, |n| n.hosts().saturating_sub(1));
    let workers_count = workers.as_ref().map_or(count, |w: &Vec<HostId>| at_most(w.len()));
    let reduce_slots_each = match framework {
        Framework::Mr1 => reduce_slots,
        Framework::Yarn => tables.yarn.slots()[1],
    };
    let last = HostId(ground.nodes.map_or(0, |n| n.hosts().saturating_sub(1)));
    let cluster = Cluster {
        master: master.unwrap_or(last),
        workers: workers_count,
        reduce_slots: reduce_slots_each,
    };
    let (jobs, origins) = jobs::read(s, ground, &cluster, files, notes)?;
    let config = MapReduceConfig {
        master,
        workers,
        map_slots,
        reduce_slots,
        scheduler,
        scheduling,
        class: class.1,
        control_class,
        jobs,
        ..tables
    };
    Some((config, origins))
}

/// Reads the tables of the workload (`hdfs`, `shuffle` …). The framework determines their defaults.
fn read_tables(s: &mut Section, ground: &Ground, framework: Framework) -> MapReduceConfig {
    let usual = match framework {
        Framework::Mr1 => MapReduceConfig::default(),
        Framework::Yarn => MapReduceConfig::hadoop3(),
    };
    recovery::take_former(s, &usual.hdfs.recovery);
    let doc = "The distributed file system.";
    let hdfs = s.table("hdfs", doc, |t| hdfs::read(t, &usual.hdfs));
    let doc = "Heartbeats and assignment of tasks.";
    let control = s.table("control", doc, |t| control::read(t, &usual.control));
    let doc = "Shuffle: transfer of map outputs to the reducers.";
    let shuffle = s.table("shuffle", doc, |t| tasks::read_shuffle(t, &usual.shuffle));
    let doc = "Sort buffer, spills and merges.";
    let sort = s.table("sort", doc, |t| tasks::read_sort(t, &usual.sort));
    let doc = "Cores, disks and page cache of a worker.";
    let found = s.table("node", doc, |t| node::read(t, &usual.node));
    let doc = "Times of computation and local disks.";
    let rate = found.node.read_rate;
    let (costs, disk_rate) = s.table("costs", doc, |t| tasks::read_costs(t, &usual.costs, rate));
    let node = found.with_rate(disk_rate);
    let slow_nodes = read_slow_nodes(s, ground);
    // Without YARN the table `yarn` has no effect, but the reference page lists it.
    let yarn = if framework == Framework::Yarn || s.describing() {
        let doc = "Containers and application masters; with framework = yarn.";
        s.table("yarn", doc, |t| yarn::read(t, &usual.yarn))
    } else {
        usual.yarn.clone()
    };
    let doc = "Failures of tasks, and the timeouts by which Hadoop detects failures.";
    let failures = s.table("failures", doc, failures::read);
    let doc = "Second attempts at slow tasks (speculative execution).";
    let speculation = s.table("speculation", doc, speculation::read);
    let coarse = coarse::read(s);
    MapReduceConfig {
        framework,
        hdfs,
        control,
        shuffle,
        sort,
        costs,
        node,
        slow_nodes,
        yarn,
        failures,
        speculation,
        coarse,
        ..usual
    }
}

fn read_framework(s: &mut Section) -> Framework {
    s.choice(
        "framework",
        "Version of Hadoop's scheduling framework (mapreduce.framework.name); it sets the \
         defaults of the tables below.",
        Some("mr1"),
        &[
            ("mr1", Framework::Mr1, "Hadoop 1: a jobtracker with slots, as in the literature"),
            (
                "yarn",
                Framework::Yarn,
                "Hadoop 3: containers and application masters, with the defaults of Hadoop 3 and \
                 shared hardware",
            ),
        ],
    )
}

/// Maximum number of tables `slow_nodes` of a workload.
const MOST_SPEEDS: usize = 10_000;

fn read_slow_nodes(s: &mut Section, ground: &Ground) -> Vec<SlowNode> {
    let doc = "Workers that compute, read and write at another speed: stragglers.";
    let read = |t: &mut Section, _| {
        let hosts = hosts::read_list(t, "hosts", "Workers with another speed.", None, ground.nodes);
        let speed = t.get(
            key(
                "speed",
                "Factor by which the rates of cores and disks of these workers are \
                          multiplied.",
            )
            .value(Ratio(0.5))
            .range("0.001", "1000"),
        );
        let node = |host| SlowNode { host, speed: speed.0 };
        hosts.unwrap_or_default().into_iter().map(node).collect::<Vec<_>>()
    };
    let read = s.tables("slow_nodes", doc, MOST_SPEEDS, read);
    read.into_iter().flatten().collect()
}

struct Slots {
    map_slots: u32,
    reduce_slots: u32,
    scheduler: SchedulerKind,
}

fn read_slots(s: &mut Section) -> Slots {
    let usual = MapReduceConfig::default();
    let map_slots = s.get(
        key(
            "map_slots",
            "Maximum number of map tasks that a worker runs at once; not with framework = yarn \
             (mapred.tasktracker.map.tasks.maximum).",
        )
        .value(usual.map_slots)
        .range("1", "1000"),
    );
    let reduce_slots = s.get(
        key(
            "reduce_slots",
            "Maximum number of reduce tasks that a worker runs at once; not with \
                             framework = yarn (mapred.tasktracker.reduce.tasks.maximum; E-EON: 2 \
                             maps and 2 reduces).",
        )
        .value(usual.reduce_slots)
        .range("1", "1000"),
    );
    let scheduler = scheduling::read_kind(s);
    Slots { map_slots, reduce_slots, scheduler }
}
