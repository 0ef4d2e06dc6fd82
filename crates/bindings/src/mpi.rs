//! Functions that the import of MPI traces uses to read records: it is the reader of a run, so that the import
//! accepts exactly what a run does.

use eastwest_workload::mpi::check::check;
use eastwest_workload::mpi::record::{Record, parse};
use eastwest_workload::mpi::{Program, TraceFile};
use pyo3::prelude::*;
use std::path::PathBuf;

/// The rank of a record, and the bytes of an element without type from that record on.
type Said = (u32, u64);
/// Damage of a record: the value that was found, the values that are allowed, and the consequence of leaving the
/// record out.
type Wrong = (String, String, Option<&'static str>);

/// Reads a line of a time-independent MPI trace; see `_core.pyi`.
#[pyfunction]
pub fn mpi_record(line: &[u8], ranks: u32, element: u64) -> (Option<Said>, Option<Wrong>) {
    match parse(line, ranks, element) {
        Ok(None) => (None, None),
        Ok(Some((rank, Record::Init { element }))) => (Some((rank, element)), None),
        Ok(Some((rank, _))) => (Some((rank, element)), None),
        Err(fault) => (None, Some((fault.found, fault.expected, fault.left_out))),
    }
}

/// Checks an MPI trace as a run would: `files` are name and path of the file of each rank, in the
/// order of ranks. Returns the objections; none if a run would accept the trace.
#[pyfunction]
pub fn mpi_check(py: Python<'_>, files: Vec<(String, PathBuf)>) -> Vec<String> {
    let files = files.into_iter().map(|(name, path)| TraceFile { name, path }).collect();
    py.detach(|| check(&Program::Files(files)).err().unwrap_or_default())
}
