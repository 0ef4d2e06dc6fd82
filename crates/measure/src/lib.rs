//! Results of a run: histograms, flow rows, samples over time, and plain columns that any table format can
//! hold.

pub mod events;
pub mod fairness;
pub mod flow_parts;
pub mod flow_samples;
pub mod flows;
pub mod frames;
pub mod jobs;
pub mod latency;
pub mod mpi;
pub mod pcapng;
pub mod power;
pub mod resequence;
pub mod rounds;
pub mod samples;
pub mod streams;
pub mod table;
pub mod tcp_trace;
