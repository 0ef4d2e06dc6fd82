//! Functions with which the import of MPI traces checks records. They use the parser of a run, so
//! that the import accepts exactly the records that a run accepts.

use eastwest_workload::mpi::check::check;
use eastwest_workload::mpi::record::{Record, parse_to_copy};
use eastwest_workload::mpi::{Program, TraceFile};
use pyo3::prelude::*;
use std::path::PathBuf;

/// Rank that a trace record belongs to, and the bytes of an element without a type, valid from this
/// record on.
type Said = (u32, u64);
/// Damage of a trace record: the value found, the values allowed, and the consequence of leaving
/// out the record (`None`: the record cannot be left out).
type Wrong = (String, String, Option<&'static str>);

/// Parses a line of a time-independent MPI trace; arguments and results are described in
/// python/eastwest/_core.pyi.
#[pyfunction]
pub fn mpi_record(line: &[u8], ranks: u32, element: u64) -> (Option<Said>, Option<Wrong>) {
    match parse_to_copy(line, ranks, element) {
        Ok(None) => (None, None),
        Ok(Some((rank, Record::Init { element }))) => (Some((rank, element)), None),
        Ok(Some((rank, _))) => (Some((rank, element)), None),
        Err(fault) => (None, Some((fault.found, fault.expected, fault.left_out))),
    }
}

/// Checks an MPI trace exactly as a run does. `files` has (name, path) of the file of each rank, in
/// the order of ranks. Returns the errors found; none if a run would accept the trace.
#[pyfunction]
pub fn mpi_check(py: Python<'_>, files: Vec<(String, PathBuf)>) -> Vec<String> {
    let files = files.into_iter().map(|(name, path)| TraceFile { name, path }).collect();
    py.detach(|| check(&Program::Files(files)).err().unwrap_or_default())
}
