//! Tests of whole scenarios through the reader, the run and its results: properties of every run, closed forms,
//! published effects, and determinism of digests. One file for each theme.

mod applications;
mod bbr3;
mod checkpoint;
mod coexistence;
mod conservation;
mod digest;
mod energy;
mod failures;
mod fairness;
mod faults;
mod flow_mode;
mod flow_parts;
mod flow_samples;
mod flow_times;
mod harness;
mod hdfs;
mod incast;
mod inside;
mod linux;
mod mapreduce;
mod marking;
mod mechanisms;
mod mpi;
mod off;
mod ordering;
mod priority;
mod queueing;
mod queues;
mod routes;
mod small_queues;
mod snapshot;
mod tables;
mod threads;
mod transactions;
mod unfinished;
