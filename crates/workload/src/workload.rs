//! Enum of all kinds of workload, with one interface.

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
use eastwest_types::{HostId, Span, Time};
use serde::{Deserialize, Serialize};

/// Defines the enum of all kinds of workload, and a macro that executes an expression for the
/// workload of any kind. `$d` stands for the dollar sign in the inner macro.
macro_rules! family {
    ($d:tt $($(#[$doc:meta])* $name:ident($state:ty),)*) => {
        /// A workload of any kind, with its state.
        #[derive(Debug, Serialize, Deserialize)]
        pub enum Workload {
            $($(#[$doc])* $name($state),)*
        }

        /// Evaluates an expression for a workload of any kind, which is bound to `w`.
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
    /// Synchronized reads (incast): a host reads blocks from many hosts at the same time.
    Incast(incast::Incast),
    /// Stride pattern: host i sends to hosts i + stride, i + 2 · stride, and so on.
    Stride(stride::Stride),
    /// Permutation: every host sends to one other host.
    Permutation(permutation::Permutation),
    /// All-to-all: every host sends to all other hosts.
    AllToAll(all_to_all::AllToAll),
    /// Bulk transfers: connections that send for a fixed time.
    Bulk(bulk::Bulk),
    /// Open-loop flows with Poisson arrivals at a given load.
    Poisson(poisson::Poisson),
    /// Request–response service between clients and servers.
    Service(service::Service),
    /// Flows of a given list: sender, receiver, bytes and start of each.
    FlowList(flow_list::FlowList),
    /// IP packets without a connection, from several hosts to one host.
    Datagrams(datagrams::Datagrams),
    /// Raw Ethernet frames without a transport protocol.
    Ethernet(Box<ethernet::Ethernet>),
    /// Replay of recorded transactions between components.
    Transactions(Box<transactions::Transactions>),
    /// Hadoop MapReduce jobs.
    MapReduce(Box<mapreduce::MapReduce>),
    /// Replay of an MPI program.
    Mpi(Box<mpi::Mpi>),
    /// Application: processes that react to messages.
    Application(Box<application::Deployment>),
}

impl Workload {
    /// Handles an event at the time `now` and appends the actions that follow from it to `out`.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Action>) {
        each!(self, w => w.handle(now, event, out));
    }

    /// Whether the workload can continue after the transport has aborted one of its connections; if
    /// not, it cannot finish.
    pub fn bears_failures(&self) -> bool {
        matches!(self, Workload::MapReduce(_) | Workload::Application(_))
    }

    /// Returns the number of flows, or of answered requests, if two conditions hold: connections
    /// open at times that do not depend on arriving data, and the reaction to a message stays at the
    /// hosts of its connection. 0 if the workload never ends. Otherwise `None`.
    pub fn local_flows(&self) -> Option<u64> {
        match self {
            Workload::Stride(w) => w.local_flows(),
            Workload::Permutation(w) => w.local_flows(),
            Workload::AllToAll(w) => w.local_flows(),
            Workload::FlowList(w) => Some(w.progress().1),
            Workload::Poisson(w) => Some(w.flows()),
            Workload::Service(w) => Some(w.progress().1),
            _ => None,
        }
    }

    /// Returns the number of flows, of answered requests or of calls, by which the parts of a
    /// partitioned run know how far the workload is; 0 if it never ends. `None` if the workload cannot
    /// be divided among parts from its beginning.
    pub fn size_in_parts(&self) -> Option<u64> {
        match self {
            Workload::Transactions(w) => Some(w.calls_of_all()),
            other => other.local_flows(),
        }
    }

    /// Returns an estimate of the time until which the workload opens connections, if this does not depend
    /// on arriving data; otherwise the beginning of the run. [`Time::NEVER`] if it always opens more.
    pub fn opens_until(&self) -> Time {
        match self {
            Workload::FlowList(w) => w.last_start(),
            Workload::Poisson(w) => w.mean_last_arrival(),
            _ => Time::ZERO,
        }
    }

    /// Whether copies of the workload in all parts of a partitioned run can each handle all events:
    /// they then act equally, and each part executes what concerns its own hosts.
    pub fn can_be_replicated(&self) -> bool {
        match self {
            Workload::Mpi(w) => !w.sends_parcels(),
            Workload::Application(w) => !w.is_custom(), // code of a user
            _ => true,
        }
    }

    /// Whether the workload asks for received bytes ([`Action::Ask`]), or truncates messages to what has
    /// been sent ([`Action::Truncate`]), at the wake-up with this token.
    pub fn asks_at(&self, token: u64) -> bool {
        match self {
            Workload::MapReduce(w) => w.asks_at(token),
            Workload::Bulk(_) => token == bulk::STOP,
            _ => false,
        }
    }

    /// Whether the workload truncates all its messages before they are complete.
    pub fn truncates(&self) -> bool {
        self.sends_for().is_some()
    }

    /// Returns the time for which the connections of the workload send, until it truncates their
    /// messages; `None` if it does not.
    pub fn sends_for(&self) -> Option<Span> {
        match self {
            Workload::Bulk(w) => Some(w.duration()),
            _ => None,
        }
    }

    /// Makes this copy of the workload act, in one part of a partitioned run, only at the hosts for
    /// which `owns` is true.
    pub fn become_part(&mut self, owns: &dyn Fn(HostId) -> bool) {
        if let Workload::Transactions(w) = self {
            w.become_part(owns);
        }
    }

    /// Whether each part of a partitioned run executes only what its own hosts do. The part of a
    /// sender then announces its messages to the part of their receiver.
    pub fn acts_only_at_own_hosts(&self) -> bool {
        matches!(self, Workload::Mpi(_) | Workload::Transactions(_))
    }

    /// Whether the wake-up with this token concerns one host, so that in a partitioned run only the
    /// part of this host schedules and executes it.
    pub fn is_woken_at_one_host(&self, token: u64) -> bool {
        match self {
            Workload::Mpi(_) => true,
            Workload::Transactions(w) => w.is_step(token),
            _ => false,
        }
    }

    /// Whether the parts of a partitioned run report how far the workload is; otherwise its delivered
    /// messages are counted.
    pub fn reports_progress_of_parts(&self) -> bool {
        matches!(self, Workload::Transactions(_))
    }

    /// Returns the number of rows that the workload has in the table of flows when it is finished,
    /// if this number is known before the run begins and each message that the workload sends
    /// arrives before its end; otherwise `None`. Must be called before the run begins.
    pub fn recorded_flows(&self) -> Option<u64> {
        let if_any = |flows: u64| (flows > 0).then_some(flows);
        match self {
            Workload::Incast(w) => Some(w.recorded_flows()),
            Workload::Stride(w) => Some(w.recorded_flows()),
            Workload::Permutation(w) => Some(w.recorded_flows()),
            Workload::AllToAll(w) => Some(w.recorded_flows()),
            Workload::FlowList(w) => Some(w.progress().1),
            Workload::Poisson(w) => if_any(w.flows()),
            Workload::Service(w) => if_any(2 * w.progress().1), // requests and responses
            _ => None,
        }
    }

    /// Returns client and server of the connection that the workload opens at the wake-up with this
    /// token, if it does nothing else then except to write to this connection; otherwise `None`.
    pub fn opens(&mut self, token: u64) -> Option<(HostId, HostId)> {
        match self {
            Workload::Stride(w) => Some(w.opens(token)),
            Workload::Permutation(w) => Some(w.opens(token)),
            Workload::AllToAll(w) => Some(w.opens(token)),
            _ => None,
        }
    }

    /// Whether the workload closes connections of many hosts when its last message has arrived.
    pub fn closes_all_at_end(&self) -> bool {
        match self {
            Workload::Service(w) => w.progress().1 > 0,
            Workload::Mpi(_) | Workload::Transactions(_) => true,
            _ => false,
        }
    }

    /// Appends the actions with which a workload that [closes all
    /// connections](Workload::closes_all_at_end) ends. Needed in a run on several threads, in which
    /// no thread receives all messages of the workload.
    pub fn end(&self, out: &mut Vec<Action>) {
        match self {
            Workload::Service(w) => w.finish(out),
            Workload::Mpi(w) => w.finish(out),
            Workload::Transactions(w) => w.finish(out),
            _ => {}
        }
    }

    /// Returns the MPI program; `None` if the workload is another one.
    pub fn mpi(&self) -> Option<&mpi::Mpi> {
        match self {
            Workload::Mpi(mpi) => Some(mpi),
            _ => None,
        }
    }

    /// Returns mutable access to the MPI program; `None` if the workload is another one.
    pub fn mpi_mut(&mut self) -> Option<&mut mpi::Mpi> {
        match self {
            Workload::Mpi(mpi) => Some(mpi),
            _ => None,
        }
    }

    /// Whether the workload sends its messages as [parcels](crate::Parcel) of Ethernet frames.
    pub fn sends_parcels(&self) -> bool {
        matches!(self, Workload::Mpi(w) if w.sends_parcels())
    }

    /// Whether the workload opens connections: it sends more than datagrams and raw Ethernet frames.
    pub fn has_connections(&self) -> bool {
        !(matches!(self, Workload::Datagrams(_) | Workload::Ethernet(_)) || self.sends_parcels())
    }

    /// Returns a text with the requests for which each rank of an MPI program waits; `None` for
    /// other workloads.
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
