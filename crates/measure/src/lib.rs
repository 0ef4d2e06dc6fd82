//! Results of a run: tables of flows, events and samples over time, histograms, and capture files.
//! Tables are plain columns, which any file format for tables can store.

pub mod application_times;
pub mod events;
pub mod fairness;
pub mod flow_parts;
pub mod flow_samples;
pub mod flows;
pub mod frames;
pub mod jobs;
pub mod latency;
pub mod mpi;
pub mod packet_hops;
pub mod pcapng;
pub mod power;
pub mod resequence;
pub mod rounds;
pub mod samples;
pub mod streams;
pub mod table;
pub mod tcp_trace;
