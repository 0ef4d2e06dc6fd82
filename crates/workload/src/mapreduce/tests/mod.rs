//! Tests of the MapReduce model on an ideal network: its actions, times and invariants.

mod behaviour;
mod clients;
mod coarse;
mod conservation;
mod failures;
mod network;
mod replication;
mod speculation;
mod tasks;
mod yarn;
