//! Whole scenarios through the reader, the run and its results: properties every run must have,
//! closed forms, published effects, and the determinism of digests. One file for each theme.

mod conservation;
mod digest;
mod flow_times;
mod harness;
mod ordering;
mod priority;
