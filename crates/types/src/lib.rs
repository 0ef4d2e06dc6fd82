//! Types shared by all layers of Eastwest: time, rates, identifiers, the packet, and records of a
//! run. The crate has data types with arithmetic, conversion and serialization, but no model of the
//! network.

mod counters;
mod ids;
mod limit;
mod mpi;
pub mod name;
mod packet;
mod rate;
mod record;
mod telemetry;
mod time;
mod transaction;
mod waits;

pub use counters::{Counter, JobCounters};
pub use ids::{ClassId, ConnId, EndpointId, HostId, LinkId, NodeId, Side};
pub use limit::Limit;
pub use mpi::{Activity, MpiCollective, MpiEntry, MpiIteration, MpiMessage, MpiRank, MpiState};
pub use packet::{NO_SACK, Packet, PacketKind, SackBlocks, ecn, flag, rocev2};
pub use rate::Rate;
pub use record::{JobRecord, Locality, Purpose, TaskKind, TaskRecord};
pub use telemetry::HopTelemetry;
pub use time::{Span, Time};
pub use transaction::{CallRecord, TransactionRecord};
pub use waits::{MOST_WAITS, Waits};
