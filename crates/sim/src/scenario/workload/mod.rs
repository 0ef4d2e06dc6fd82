//! `[[workload]]`: workloads, which generate the traffic.
//!
//! Keys have the names of the settings in the crate `eastwest-workload`. After a workload has been
//! read, `eastwest-workload` checks the settings again. Each of its error messages names a key, at
//! which the error is reported.

mod account;
mod application;
mod bulk;
mod calls;
mod ethernet;
mod flow_list;
pub mod ground;
mod hadoop;
mod hadoop_layers;
mod hadoop_names;
mod hadoop_rules;
mod hadoop_xml;
mod job_cluster;
mod jobs;
mod kinds;
mod machine;
mod mapreduce;
mod mpi;
mod patterns;
mod scheduling;
pub mod spec;
mod training;
mod transactions;

use super::classes::Classes;
use super::files::Files;
use crate::stream_transports::Transport;
use eastwest_settings::quantity::Name;
use eastwest_settings::reader::{Section, key};
use eastwest_workload::application::ApplicationEntry;
use ground::Ground;
use spec::{WorkloadKind, WorkloadSpec};
use std::collections::BTreeSet;
use toml::Value;

/// Maximum number of workloads of a scenario.
const MOST: usize = 256;

#[derive(Clone)]
enum Kind {
    Stride,
    Permutation,
    AllToAll,
    Incast,
    Bulk,
    Poisson,
    Service,
    FlowList,
    Datagrams,
    Ethernet,
    Transactions,
    MapReduce,
    Mpi,
    MpiCg,
    Training,
    Application(application::Choice),
}

/// Workloads of a scenario that are not switched off.
pub struct Workloads {
    /// Workloads that could be read.
    pub specs: Vec<WorkloadSpec>,
    /// Whether a workload that does not run in the background could not be read, because of a
    /// problem that is reported.
    pub foreground_unread: bool,
}

/// Reads all tables `[[workload]]`. Returns the workloads that are not switched off (`off = true`).
pub fn read(
    s: &mut Section,
    ground: &Ground,
    classes: &mut Classes,
    files: &mut Files,
    notes: &mut Vec<String>,
) -> Workloads {
    let mut names: Vec<String> = Vec::new();
    let (mut all_off, mut foreground_unread) = (true, false);
    let read = s.tables(
        "workload",
        "A workload: an application or pattern that generates traffic.",
        MOST,
        |w, _| {
            let noted = notes.len();
            let spec = read_one(w, ground, classes, files, notes, &names);
            names.extend(spec.iter().map(|(spec, _)| spec.name.clone()));
            all_off &= spec.as_ref().is_some_and(|(_, off)| *off);
            let set = |key| w.own(key) == Some(&Value::Boolean(true));
            foreground_unread |= spec.is_none() && !set("background") && !set("off");
            let spec = spec.filter(|(_, off)| !off);
            if spec.is_none() {
                // notes about a workload that is switched off are dropped
                notes.truncate(noted);
            }
            spec
        },
    );
    if s.good(&["workload"]) && read.is_empty() {
        s.wrong("workload", "is required: without a [[workload]] there is no traffic");
    }
    if s.all_good() && !s.describing() && !read.is_empty() && all_off {
        s.wrong(
            "workload",
            "all workloads have off = true, so that there is no traffic: remove `off` from one \
             of them",
        );
    }
    let specs = read.into_iter().flatten().map(|(spec, _)| spec).collect();
    Workloads { specs, foreground_unread }
}

/// Returns the names of all workloads of the scenario, including the workloads that are switched
/// off; `s` is the top level of the file.
pub fn names(s: &Section) -> BTreeSet<String> {
    let items = s.own("workload").and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|w| w.get("name")?.as_str()).map(str::to_owned).collect()
}

fn read_kind(w: &mut Section, others: &[ApplicationEntry]) -> Option<Kind> {
    let mut choices = vec![
        ("mapreduce", Kind::MapReduce, "Hadoop: jobs on a cluster of a master and workers"),
        ("stride", Kind::Stride, "host i sends to hosts i + stride, i + 2·stride … (S1)"),
        (
            "permutation",
            Kind::Permutation,
            "every host sends to one other host and receives from one",
        ),
        ("all-to-all", Kind::AllToAll, "every host sends to every other"),
        (
            "incast",
            Kind::Incast,
            "synchronized reads: one receiver, many senders, rounds (Chen et al. 2012)",
        ),
        (
            "bulk",
            Kind::Bulk,
            "connections between given hosts that send for a given time (as iperf3 does)",
        ),
        (
            "poisson",
            Kind::Poisson,
            "flows between random hosts at a given load, with sizes from a distribution",
        ),
        ("service", Kind::Service, "requests and responses that are sensitive to latency"),
        (
            "flow-list",
            Kind::FlowList,
            "flows from a file with sender, receiver, bytes and start time",
        ),
        ("datagrams", Kind::Datagrams, "packets without a connection, at random or equal gaps"),
        (
            "ethernet",
            Kind::Ethernet,
            "Ethernet frames without a transport, at a given rate, to all other hosts or \
                 between given pairs",
        ),
        (
            "transactions",
            Kind::Transactions,
            "recorded requests with all the calls they cause, from spans (Gusat et al. 2009)",
        ),
        ("mpi", Kind::Mpi, "an MPI program, replayed from the trace of its ranks"),
        (
            "mpi-cg",
            Kind::MpiCg,
            "the messages of the NAS benchmark CG; the number of ranks is \
                                     a power of two",
        ),
        (
            "training",
            Kind::Training,
            "training steps of a transformer on accelerators, with data, tensor and pipeline \
             parallelism",
        ),
    ];
    let applications = application::choices(others);
    choices.extend(applications.into_iter().map(|a| (a.name, Kind::Application(a.clone()), a.doc)));
    w.open_kind("Type of the workload.", None, &choices)
}

/// Reads the transport of a workload's connections. Workloads without connections, such as
/// datagrams, do not have the key `transport`, and the result is the default.
fn read_transport(w: &mut Section, kind: &Kind) -> Transport {
    if matches!(kind, Kind::Datagrams | Kind::Ethernet) {
        return Transport::default();
    }
    let mut choices = Transport::STREAMS.to_vec();
    if matches!(kind, Kind::Mpi | Kind::MpiCg | Kind::Training) {
        choices.push((
            "ethernet",
            Transport::Ethernet,
            "no transport: messages of MPI are sent as raw frames of a lossless priority \
             (fabric.pfc)",
        ));
    }
    w.choice("transport", "Transport protocol of the workload's flows.", Some("tcp"), &choices)
}

/// Reads one table `[[workload]]`. Returns the workload, and whether it is switched off (`off =
/// true`); `None` if there is a problem, which is reported. `names` are the names of earlier
/// workloads.
fn read_one(
    w: &mut Section,
    ground: &Ground,
    classes: &mut Classes,
    files: &mut Files,
    notes: &mut Vec<String>,
    names: &[String],
) -> Option<(WorkloadSpec, bool)> {
    let kind = read_kind(w, &ground.context.mechanisms.applications);
    let name: Name = w.get(key("name", "Unique name of the workload."));
    w.demand(!names.contains(&name.0), &["name"], || {
        "is already the name of another workload".to_owned()
    });
    let class: Name = w.get(
        key("class", "Traffic class of the workload's packets.")
            .computed("the name of the workload", name.clone()),
    );
    let background = w.get(
        key("background", "Whether the simulation may end before this workload has finished.")
            .default("false"),
    );
    let doc = "Whether the workload is left out of the run. A sweep can use this key to compare \
               runs with and without the workload.";
    let off = w.get(key("off", doc).default("false"));
    let kind = kind?;
    let transport = read_transport(w, &kind);
    let class_name = class;
    let class = classes.id(&class_name.0);
    let mut origins = Vec::new();
    let kind = match kind {
        Kind::Stride => WorkloadKind::Stride(patterns::stride(w, class)),
        Kind::Permutation => WorkloadKind::Permutation(patterns::permutation(w, class)),
        Kind::AllToAll => WorkloadKind::AllToAll(patterns::all_to_all(w, class)),
        Kind::Incast => WorkloadKind::Incast(patterns::incast(w, ground, class)?),
        Kind::Bulk => WorkloadKind::Bulk(bulk::read(w, ground, class)?),
        Kind::Poisson => WorkloadKind::Poisson(patterns::poisson(w, ground, class, background)?),
        Kind::Service => WorkloadKind::Service(patterns::service(w, ground, class, background)?),
        Kind::FlowList => WorkloadKind::FlowList(flow_list::read(w, ground, files, class)?),
        Kind::Datagrams => {
            WorkloadKind::Datagrams(patterns::datagrams(w, ground, class, background)?)
        }
        Kind::Ethernet => WorkloadKind::Ethernet(ethernet::read(w, ground, class, background)?),
        Kind::Transactions => {
            let config = transactions::read(w, ground, files, class)?;
            WorkloadKind::Transactions(Box::new(config))
        }
        Kind::Mpi => {
            WorkloadKind::Mpi(Box::new(mpi::replay(w, ground, files, notes, (class, transport))?))
        }
        Kind::MpiCg => {
            notes.extend(mpi::note_class(w, &class_name.0));
            WorkloadKind::Mpi(Box::new(mpi::cg(w, ground, files, (class, transport))?))
        }
        Kind::Training => {
            WorkloadKind::Mpi(Box::new(training::read(w, ground, files, (class, transport))?))
        }
        Kind::Application(choice) => {
            let named = (&*name.0, class);
            WorkloadKind::Application(Box::new(application::read(w, &choice, ground, named)))
        }
        Kind::MapReduce => {
            let class = (&class_name, class);
            let (config, from) = mapreduce::read(w, ground, class, classes, files, notes)?;
            origins = from;
            WorkloadKind::MapReduce(Box::new(config))
        }
    };
    if let (true, Some(cluster)) = (w.all_good(), &ground.cluster) {
        let placed = kind.build(cluster).err().into_iter().flatten().map(|o| place(o, &origins));
        for objection in placed.collect::<BTreeSet<String>>() {
            w.object(&objection);
        }
    }
    Some((WorkloadSpec { name: name.0, class, background, transport, kind }, off))
}

/// Replaces the beginning of an error message about a job, `jobs[3].maps: …`, by the place of this
/// job in the scenario: its table `job` or the trace. `origins` are the places of all jobs.
fn place(objection: String, origins: &[jobs::Origin]) -> String {
    let about = objection.strip_prefix("jobs[").and_then(|rest| rest.split_once(']'));
    let Some((number, rest)) = about else { return objection };
    match number.parse::<usize>().ok().and_then(|i| origins.get(i)) {
        Some(jobs::Origin::Table(table)) => format!("job.{table}{rest}"),
        Some(jobs::Origin::Trace) => format!("trace: job {number}{rest}"),
        None => objection,
    }
}
