//! Every kind of workload behind one interface.

use crate::all_to_all;
use crate::bulk;
use crate::datagrams;
use crate::ethernet;
use crate::flow_list;
use crate::incast;
use crate::mapreduce;
use crate::mpi;
use crate::permutation;
use crate::poisson;
use crate::protocol::{Action, Event};
use crate::service;
use crate::stride;
use crate::transactions;
use eastwest_types::Time;
use serde::{Deserialize, Serialize};

/// Makes the enum, and hands each call on to the workload. `$d` stands for the dollar sign of the macro
/// that it makes.
macro_rules! family {
    ($d:tt $($(#[$doc:meta])* $name:ident($state:ty),)*) => {
        /// Any workload.
        #[derive(Debug, Serialize, Deserialize)]
        pub enum Workload {
            $($(#[$doc])* $name($state),)*
        }

        /// Evaluates an expression for the workload that there is.
        macro_rules! each {
            ($d workload:expr, $d w:ident => $d do:expr) => {
                match $d workload {
                    $(Workload::$name($d w) => $d do,)*
                }
            };
        }
    };
}

family! {
    $
    /// Synchronized reads.
    Incast(incast::Incast),
    /// Host i to hosts i + stride, i + 2 · stride …
    Stride(stride::Stride),
    /// Every host to one other.
    Permutation(permutation::Permutation),
    /// Every host to all others.
    AllToAll(all_to_all::AllToAll),
    /// Connections that send for a time.
    Bulk(bulk::Bulk),
    /// Open-loop flows at a load.
    Poisson(poisson::Poisson),
    /// Requests and responses.
    Service(service::Service),
    /// Flows of a list.
    FlowList(flow_list::FlowList),
    /// Packets without connection.
    Datagrams(datagrams::Datagrams),
    /// Frames without transport.
    Ethernet(Box<ethernet::Ethernet>),
    /// Recorded transactions.
    Transactions(Box<transactions::Transactions>),
    /// Hadoop jobs.
    MapReduce(Box<mapreduce::MapReduce>),
    /// Ranks of an MPI program.
    Mpi(Box<mpi::Mpi>),
}

impl Workload {
    /// Tells the workload what happened at `now`; adds to `out` what should follow.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Action>) {
        each!(self, w => w.handle(now, event, out));
    }

    /// Whether it goes on when TCP gives a connection up. Others cannot finish then.
    pub fn bears_failures(&self) -> bool {
        matches!(self, Workload::MapReduce(_))
    }

    /// How many flows it sends, where it opens them at times that nothing which arrives can change.
    pub fn listed_flows(&self) -> Option<u64> {
        match self {
            Workload::Stride(w) => w.listed_flows(),
            Workload::Permutation(w) => w.listed_flows(),
            Workload::AllToAll(w) => w.listed_flows(),
            Workload::FlowList(w) => Some(w.progress().1),
            Workload::Poisson(w) => w.listed_flows(),
            _ => None,
        }
    }

    /// Whether it sends [parcels](crate::Parcel).
    pub fn sends_parcels(&self) -> bool {
        matches!(self, Workload::Mpi(w) if w.sends_parcels())
    }

    /// Who waits for what, of workloads that can tell.
    pub fn waiting(&self) -> Option<String> {
        match self {
            Workload::Mpi(w) => Some(w.describe_waiting()),
            _ => None,
        }
    }

    /// How much is done and how much there is in all (rounds, flows, requests, packets, jobs, records), for
    /// progress bars. The total is 0 where the workload has no end.
    pub fn progress(&self) -> (u64, u64) {
        each!(self, w => w.progress())
    }
}
