//! The model on an ideal network: what it asks for, how long it takes, what it never does.

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
