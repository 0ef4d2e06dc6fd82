//! Workloads as a scenario describes them: name, class, transport and settings.

use crate::stream_transports::Transport;
use eastwest_types::ClassId;
use eastwest_workload::all_to_all::{AllToAll, AllToAllConfig};
use eastwest_workload::application::{ApplicationConfig, Deployment};
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

/// A workload of the scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadSpec {
    /// Name of the workload, unique within the scenario.
    pub name: String,
    /// Traffic class of the workload's packets.
    pub class: ClassId,
    /// Whether the run may end before this workload has finished.
    pub background: bool,
    /// Transport of the workload's connections.
    pub transport: Transport,
    /// Kind of the workload, with its settings.
    pub kind: WorkloadKind,
}

/// Kinds of workloads, with their settings.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkloadKind {
    /// Host `i` sends to hosts `i + stride`, `i + 2 · stride` …
    Stride(StrideConfig),
    /// Every host sends to one other host.
    Permutation(PermutationConfig),
    /// Every host sends to all other hosts.
    AllToAll(AllToAllConfig),
    /// Synchronized reads of one receiver from many senders (incast).
    Incast(IncastConfig),
    /// Connections between given hosts that send for a given time, as iperf3 does.
    Bulk(BulkConfig),
    /// Open-loop flows between random hosts at a given load.
    Poisson(PoissonConfig),
    /// Requests of clients and responses of servers.
    Service(ServiceConfig),
    /// Flows of a list in a file.
    FlowList(FlowListConfig),
    /// Packets without a connection (UDP datagrams).
    Datagrams(DatagramsConfig),
    /// Raw Ethernet frames without a transport.
    Ethernet(EthernetConfig),
    /// Replay of recorded transactions.
    Transactions(Box<TransactionsConfig>),
    /// A Hadoop cluster with its MapReduce jobs.
    MapReduce(Box<MapReduceConfig>),
    /// Ranks of an MPI program, which exchange messages.
    Mpi(Box<MpiConfig>),
    /// An application: processes on hosts that react to messages.
    Application(Box<ApplicationConfig>),
}

impl WorkloadKind {
    /// Returns the state machine of this workload on the hosts of `cluster`. Fails with all errors,
    /// each of which starts with the setting concerned. A scenario that has been read without
    /// problems has no errors.
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
            WorkloadKind::Application(c) => {
                Workload::Application(Box::new(Deployment::new((**c).clone(), cluster)?))
            }
        })
    }
}
