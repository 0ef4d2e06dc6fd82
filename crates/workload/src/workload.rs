//! All kinds of workload behind one interface.

use crate::all_to_all;
use crate::application;
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

/// Defines the enum, and a macro that dispatches a call to the workload. `$d` stands for the dollar
/// sign of that macro.
macro_rules! family {
    ($d:tt $($(#[$doc:meta])* $name:ident($state:ty),)*) => {
        /// A workload of any kind.
        #[derive(Debug, Serialize, Deserialize)]
        pub enum Workload {
            $($(#[$doc])* $name($state),)*
        }

        /// Evaluates an expression for the workload.
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
    /// Host i to hosts i + stride, i + 2 · stride, and so on.
    Stride(stride::Stride),
    /// Every host to one other host.
    Permutation(permutation::Permutation),
    /// Every host to all other hosts.
    AllToAll(all_to_all::AllToAll),
    /// Connections that send for a fixed time.
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
    /// Processes that react to messages.
    Application(Box<application::Deployment>),
}

impl Workload {
    /// Handles an event at `now` and appends the actions that follow to `out`.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Action>) {
        each!(self, w => w.handle(now, event, out));
    }

    /// Whether the workload can continue after TCP has aborted one of its connections; if not, it
    /// cannot finish.
    pub fn bears_failures(&self) -> bool {
        matches!(self, Workload::MapReduce(_) | Workload::Application(_))
    }

    /// Returns the number of flows if their number and starts do not depend on anything that
    /// arrives, otherwise `None`.
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

    /// Whether the workload sends messages as [parcels](crate::Parcel) of Ethernet frames.
    pub fn sends_parcels(&self) -> bool {
        matches!(self, Workload::Mpi(w) if w.sends_parcels())
    }

    /// Returns a text that says what each rank of an MPI program waits for; `None` for other
    /// workloads.
    pub fn waiting(&self) -> Option<String> {
        match self {
            Workload::Mpi(w) => Some(w.describe_waiting()),
            _ => None,
        }
    }

    /// Returns the finished and the total amount of work (rounds, flows, requests, packets, jobs,
    /// records) for progress bars. The total is 0 if the workload has no end.
    pub fn progress(&self) -> (u64, u64) {
        each!(self, w => w.progress())
    }
}
