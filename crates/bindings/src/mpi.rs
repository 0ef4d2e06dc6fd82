//! What the import of MPI traces asks the reader of records: it is the one that a run has, so that the
//! import takes exactly what a run does.

use eastwest_workload::mpi::check::check;
use eastwest_workload::mpi::record::{Record, parse};
use eastwest_workload::mpi::{Program, TraceFile};
use pyo3::prelude::*;
use std::path::PathBuf;

/// The rank of a record, and the bytes of an element without type from there on.
type Said = (u32, u64);
/// What there is, what is expected, and what follows if the record is left out.
type Wrong = (String, String, Option<&'static str>);

/// Reads a line of a time-independent trace; see `_core.pyi`.
#[pyfunction]
pub fn mpi_record(line: &[u8], ranks: u32, element: u64) -> (Option<Said>, Option<Wrong>) {
    match parse(line, ranks, element) {
        Ok(None) => (None, None),
        Ok(Some((rank, Record::Init { element }))) => (Some((rank, element)), None),
        Ok(Some((rank, _))) => (Some((rank, element)), None),
        Err(fault) => (None, Some((fault.found, fault.expected, fault.left_out))),
    }
}

/// Checks a trace as a run would: `files` are name and path of the file of each rank, in the order of ranks.
/// Returns the objections, none where the run would accept it.
#[pyfunction]
pub fn mpi_check(py: Python<'_>, files: Vec<(String, PathBuf)>) -> Vec<String> {
    let files = files.into_iter().map(|(name, path)| TraceFile { name, path }).collect();
    py.detach(|| check(&Program::Files(files)).err().unwrap_or_default())
}
