//! `[[workload]]`: what drives the network.
//!
//! Keys bear the names of the settings in `eastwest-workload`, whose own checks are asked last: what
//! they object to is reported at the key they name.

mod account;
mod bulk;
mod calls;
mod ethernet;
mod flow_list;
mod hadoop;
mod hadoop_names;
mod hadoop_rules;
mod hadoop_xml;
mod jobs;
mod kinds;
mod machine;
mod mapreduce;
mod mpi;
mod patterns;
mod scheduling;
mod transactions;

use super::classes::Classes;
use super::fabric::{Fabric, host_rate};
use super::files::{Context, Files};
use super::nodes::Nodes;
use crate::plan::Transport;
use eastwest_settings::quantity::Name;
use eastwest_settings::reader::{Section, key};
use eastwest_types::{ClassId, Rate};
use eastwest_workload::all_to_all::{AllToAll, AllToAllConfig};
use eastwest_workload::bulk::{Bulk, BulkConfig};
use eastwest_workload::datagrams::{Datagrams, DatagramsConfig};
use eastwest_workload::ethernet::{Ethernet, EthernetConfig};
use eastwest_workload::flow_list::{FlowList, FlowListConfig};
use eastwest_workload::incast::{Incast, IncastConfig};
use eastwest_workload::mapreduce::{MapReduce, MapReduceConfig};
use eastwest_workload::mpi::{Mpi, MpiConfig};
use eastwest_workload::permutation::{Permutation, PermutationConfig};
use eastwest_workload::poisson::{Poisson, PoissonConfig};
use eastwest_workload::service::{Service, ServiceConfig};
use eastwest_workload::stride::{Stride, StrideConfig};
use eastwest_workload::transactions::{Transactions, TransactionsConfig};
use eastwest_workload::{Cluster, Workload};
use std::cell::Cell;
use std::collections::BTreeSet;
use toml::Value;

/// A workload of the scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadSpec {
    /// Its name, unlike all others.
    pub name: String,
    /// The class of its traffic.
    pub class: ClassId,
    /// Whether the simulation ends without waiting for it.
    pub background: bool,
    /// What carries its connections.
    pub transport: Transport,
    /// What it does.
    pub kind: WorkloadKind,
}

/// What a workload does, with its settings.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkloadKind {
    /// Host `i` to hosts `i + stride`, `i + 2 · stride` …
    Stride(StrideConfig),
    /// Every host to one other.
    Permutation(PermutationConfig),
    /// Every host to all others.
    AllToAll(AllToAllConfig),
    /// Synchronized reads.
    Incast(IncastConfig),
    /// Connections that send for a time.
    Bulk(BulkConfig),
    /// Open-loop flows at a load.
    Poisson(PoissonConfig),
    /// Requests and responses.
    Service(ServiceConfig),
    /// Flows of a list.
    FlowList(FlowListConfig),
    /// Packets without connection.
    Datagrams(DatagramsConfig),
    /// Frames without transport.
    Ethernet(EthernetConfig),
    /// Recorded transactions.
    Transactions(Box<TransactionsConfig>),
    /// A Hadoop cluster with its jobs.
    MapReduce(Box<MapReduceConfig>),
    /// Ranks of an MPI program.
    Mpi(Box<MpiConfig>),
}

impl WorkloadKind {
    /// The state machine of this workload, or what speaks against it on this cluster; each reason
    /// starts with the setting it is about. A scenario that has been read has no such reasons.
    pub fn build(&self, cluster: &Cluster) -> Result<Workload, Vec<String>> {
        Ok(match self {
            WorkloadKind::Stride(c) => Workload::Stride(Stride::new(c.clone(), cluster)?),
            WorkloadKind::Permutation(c) => {
                Workload::Permutation(Permutation::new(c.clone(), cluster)?)
            }
            WorkloadKind::AllToAll(c) => Workload::AllToAll(AllToAll::new(c.clone(), cluster)?),
            WorkloadKind::Incast(c) => Workload::Incast(Incast::new(c.clone(), cluster)?),
            WorkloadKind::Bulk(c) => Workload::Bulk(Bulk::new(c.clone(), cluster)?),
            WorkloadKind::Poisson(c) => Workload::Poisson(Poisson::new(c.clone(), cluster)?),
            WorkloadKind::Service(c) => Workload::Service(Service::new(c.clone(), cluster)?),
            WorkloadKind::FlowList(c) => Workload::FlowList(FlowList::new(c.clone(), cluster)?),
            WorkloadKind::Datagrams(c) => Workload::Datagrams(Datagrams::new(c.clone(), cluster)?),
            WorkloadKind::Ethernet(c) => {
                Workload::Ethernet(Box::new(Ethernet::new(c.clone(), cluster)?))
            }
            WorkloadKind::Transactions(c) => {
                Workload::Transactions(Box::new(Transactions::new((**c).clone(), cluster)?))
            }
            WorkloadKind::MapReduce(c) => {
                Workload::MapReduce(Box::new(MapReduce::new((**c).clone(), cluster)?))
            }
            WorkloadKind::Mpi(c) => Workload::Mpi(Box::new(Mpi::new((**c).clone(), cluster)?)),
        })
    }
}

/// What workloads may rely on: the fabric below them.
pub struct Ground<'a> {
    /// Its nodes, where the topology could be read.
    pub nodes: Option<&'a Nodes>,
    /// Its hosts and racks, likewise.
    pub cluster: Option<Cluster>,
    /// Rate of the (slowest) host cable.
    pub host_rate: Rate,
    /// Largest packet, where known.
    pub mtu: Option<u32>,
    /// Where files are.
    pub context: &'a Context,
    /// How many more jobs the scenario may have.
    jobs_left: Cell<usize>,
}

/// Most jobs of a scenario.
const MOST_JOBS: usize = 200_000;

impl<'a> Ground<'a> {
    /// The ground a fabric gives.
    pub fn new(fabric: &'a Fabric, seed: u64, context: &'a Context) -> Ground<'a> {
        let nodes = fabric.nodes.as_ref();
        let cluster = nodes.map(|n| Cluster { rack_of: n.racks(), seed });
        let host_rate = host_rate(nodes.map(|_| &fabric.config.topology));
        let jobs_left = Cell::new(MOST_JOBS);
        Ground { nodes, cluster, host_rate, mtu: fabric.mtu, context, jobs_left }
    }

    /// Makes room for so many jobs, or says why there is none.
    fn admit_jobs(&self, jobs: usize) -> Result<(), String> {
        match self.jobs_left.get().checked_sub(jobs) {
            Some(left) => {
                self.jobs_left.set(left);
                Ok(())
            }
            None => Err(format!("makes too many jobs: a scenario has at most {MOST_JOBS}")),
        }
    }
}

/// Most workloads.
const MOST: usize = 256;

#[derive(Clone, Copy)]
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
}

/// Reads all of `[[workload]]`; gives those that run.
pub fn read(
    s: &mut Section,
    ground: &Ground,
    classes: &mut Classes,
    files: &mut Files,
    notes: &mut Vec<String>,
) -> Vec<WorkloadSpec> {
    let mut names: Vec<String> = Vec::new();
    let mut off = 0;
    let read = s.tables("workload", "Something that drives the network.", MOST, |w, _| {
        let noted = notes.len();
        let spec = read_one(w, ground, classes, files, notes, &names);
        names.extend(spec.iter().map(|(spec, _)| spec.name.clone()));
        let spec = spec.filter(|(_, off)| !off);
        if spec.is_none() {
            // what is left out of the run needs no notes
            notes.truncate(noted);
            off += 1;
        }
        spec
    });
    if s.good(&["workload"]) && read.is_empty() {
        s.wrong("workload", "is required: without a [[workload]] nothing is sent");
    }
    if s.all_good() && !s.describing() && !read.is_empty() && off == read.len() {
        s.wrong("workload", "all of them are off: nothing is sent");
    }
    read.into_iter().flatten().map(|(spec, _)| spec).collect()
}

/// The names of all workloads of the file, those that are off among them; `s` is the top of it.
pub fn names(s: &Section) -> BTreeSet<String> {
    let items = s.own("workload").and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|w| w.get("name")?.as_str()).map(str::to_owned).collect()
}

fn read_kind(w: &mut Section) -> Option<Kind> {
    w.kind(
        "What it does.",
        None,
        &[
            ("mapreduce", Kind::MapReduce, "Hadoop: jobs on a cluster of a master and workers"),
            ("stride", Kind::Stride, "host i sends to hosts i + stride, i + 2·stride … (S1)"),
            (
                "permutation",
                Kind::Permutation,
                "every host sends to one other and receives from one",
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
                "connections between given hosts that send for a time (as iperf3)",
            ),
            (
                "poisson",
                Kind::Poisson,
                "flows between random hosts at a load, sizes from a distribution",
            ),
            ("service", Kind::Service, "requests and responses that are sensitive to latency"),
            (
                "flow-list",
                Kind::FlowList,
                "flows from a file: who sends how much to whom, and when",
            ),
            ("datagrams", Kind::Datagrams, "packets without connection, at Poisson or equal gaps"),
            (
                "ethernet",
                Kind::Ethernet,
                "frames without transport at a rate: to all others, or between given pairs",
            ),
            (
                "transactions",
                Kind::Transactions,
                "recorded requests with all the calls they cause, from spans (Gusat et al. 2009)",
            ),
            ("mpi", Kind::Mpi, "an MPI program, replayed from the trace of its ranks"),
            ("mpi-cg", Kind::MpiCg, "the messages of NAS CG, for any power of two of ranks"),
        ],
    )
}

/// What carries its connections, if it has any.
fn read_transport(w: &mut Section, kind: Kind) -> Transport {
    if matches!(kind, Kind::Datagrams | Kind::Ethernet) {
        return Transport::default();
    }
    let choices = [
        ("tcp", Transport::Tcp, "TCP connections, see [tcp]"),
        (
            "rocev2",
            Transport::RoceV2,
            "a reliable queue pair in the place of each connection, see [rocev2]",
        ),
        (
            "ethernet",
            Transport::Ethernet,
            "nothing: messages of MPI are raw frames, of a priority of fabric.pfc",
        ),
    ];
    let few = if matches!(kind, Kind::Mpi | Kind::MpiCg) { 3 } else { 2 };
    w.choice("transport", "What carries its flows.", Some("tcp"), &choices[..few])
}

/// Reads one workload, and whether it is off.
fn read_one(
    w: &mut Section,
    ground: &Ground,
    classes: &mut Classes,
    files: &mut Files,
    notes: &mut Vec<String>,
    names: &[String],
) -> Option<(WorkloadSpec, bool)> {
    let kind = read_kind(w);
    let name: Name = w.get(key("name", "Its name, unlike all others."));
    w.demand(!names.contains(&name.0), &["name"], || "is the name of another workload".to_owned());
    let class: Name = w.get(
        key("class", "Traffic class its packets are measured in.")
            .computed("its name", name.clone()),
    );
    let background = w.get(
        key("background", "Whether the simulation ends without waiting for it.").default("false"),
    );
    let doc =
        "Whether it is left out of the run: for runs with and without it, such as in a sweep.";
    let off = w.get(key("off", doc).default("false"));
    let kind = kind?;
    let transport = read_transport(w, kind);
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
        Kind::MpiCg => WorkloadKind::Mpi(Box::new(mpi::cg(w, ground, files, (class, transport))?)),
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

/// Puts an objection to a job, `jobs[3].maps: …`, at the place in the file the job comes from.
fn place(objection: String, origins: &[jobs::Origin]) -> String {
    let about = objection.strip_prefix("jobs[").and_then(|rest| rest.split_once(']'));
    let Some((number, rest)) = about else { return objection };
    match number.parse::<usize>().ok().and_then(|i| origins.get(i)) {
        Some(jobs::Origin::Table(table)) => format!("job.{table}{rest}"),
        Some(jobs::Origin::Trace) => format!("trace: job {number}{rest}"),
        None => objection,
    }
}
