//! Workloads as a scenario describes them.

use crate::stream_transports::Transport;
use eastwest_types::ClassId;
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

/// A workload of the scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadSpec {
    /// Name, which is unique.
    pub name: String,
    /// Class of its traffic.
    pub class: ClassId,
    /// Whether the simulation ends without waiting for it.
    pub background: bool,
    /// Transport of its connections.
    pub transport: Transport,
    /// Kind of the workload, with its settings.
    pub kind: WorkloadKind,
}

/// Kinds of workloads, with their settings.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkloadKind {
    /// Host `i` to hosts `i + stride`, `i + 2 · stride` …
    Stride(StrideConfig),
    /// Every host to one other host.
    Permutation(PermutationConfig),
    /// Every host sends to all other hosts.
    AllToAll(AllToAllConfig),
    /// Synchronized reads.
    Incast(IncastConfig),
    /// Connections that send for a certain time.
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
    /// Returns the state machine of this workload, or the objections to it on this cluster; each objection
    /// starts with the setting concerned. A scenario that has been read has no objections.
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
