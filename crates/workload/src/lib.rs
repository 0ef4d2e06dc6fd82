//! Workloads: Hadoop jobs, incast, open-loop flows, services, MPI programs and others.
//!
//! A workload is a state machine. It receives events ([`Event`]) and answers with actions
//! ([`Action`]); it never sees packets, links or TCP. The crate `eastwest-sim` executes the
//! actions.

pub mod all_to_all;
pub mod application;
pub mod arrivals;
pub mod bulk;
pub mod datagrams;
mod demand;
pub mod ethernet;
pub mod flow_list;
mod flow_set;
#[cfg(test)]
mod ideal;
pub mod incast;
pub mod mapreduce;
pub mod mpi;
mod names;
pub mod permutation;
pub mod poisson;
mod protocol;
pub mod replay;
pub mod service;
pub mod sizes;
pub mod stride;
pub mod transactions;
mod workload;

pub use protocol::{Action, Cluster, Event, Parcel};
pub use workload::Workload;
