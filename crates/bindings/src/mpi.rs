//! Functions with which the import of MPI traces checks records. They use the parser of a run, so
//! that the import accepts exactly the records that a run accepts.

use eastwest_workload::mpi::check::check;
use eastwest_workload::mpi::collective::{Algorithms, Call, Seat, Step};
use eastwest_workload::mpi::groups::{Groups, Member};
use eastwest_workload::mpi::record::{Need, Node, Record, parse_to_copy};
use eastwest_workload::mpi::{Program, TraceFile};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::collections::BTreeMap;
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
    py.detach(|| check(&program(files)).err().unwrap_or_default())
}

fn program(files: Vec<(String, PathBuf)>) -> Program {
    Program::Files(files.into_iter().map(|(name, path)| TraceFile { name, path }).collect())
}

/// Calls `each` with every record of an MPI program, rank after rank; its arguments are described
/// in python/eastwest/_core.pyi. Fails with the errors of the program if a run would refuse it.
#[pyfunction]
pub fn mpi_nodes(
    py: Python<'_>,
    files: Vec<(String, PathBuf)>,
    collectives: Vec<(String, String)>,
    each: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let mut algorithms = Algorithms::default();
    for (call, name) in collectives {
        let set = algorithms.set(&call, &name);
        set.map_err(|wrong| PyValueError::new_err(format!("{call}={name}: {wrong}")))?;
    }
    if algorithms.uses_hosts() {
        return Err(PyValueError::new_err(
            "two-level: needs the hosts of the ranks, which a schedule does not have",
        ));
    }
    let program = program(files);
    let checked = py.detach(|| check(&program));
    let groups = checked.map_err(|wrong| PyValueError::new_err(wrong.join("; ")))?.groups;
    let broken = |trouble| PyValueError::new_err(format!("{trouble}"));
    for rank in 0..program.ranks() {
        let is_graph = program.is_graph(rank, &groups).map_err(broken)?;
        let mut calls: BTreeMap<u32, u32> = BTreeMap::new();
        for node in program.nodes(rank, &groups) {
            let Node { record, group, needs, stream, priority } = node.map_err(broken)?;
            let member = groups.find(rank, group).expect("the parser has found the group");
            let needs: Vec<_> =
                needs.into_iter().map(|Need { rank, node, start }| (rank, node, start)).collect();
            let within =
                Within { groups: &groups, member, ranks: program.ranks(), by: &algorithms };
            let (call, arguments) = within.passed(py, record, &mut calls)?;
            each.call1((rank, is_graph, needs, stream, priority, member.group, call, arguments))?;
        }
    }
    Ok(())
}

/// A step of a collective call: ranks from which messages are received; ranks to which messages are
/// sent, with their bytes.
type Passed = (Vec<u32>, Vec<(u32, u64)>);

/// A rank in a group of an MPI program, in which it executes an action.
struct Within<'a> {
    groups: &'a Groups,
    member: Member,
    ranks: u32,
    by: &'a Algorithms,
}

impl Within<'_> {
    /// Returns the rank in the program of a rank of the group.
    fn in_world(&self, rank: u32) -> u32 {
        self.groups.members(self.member.group).map_or(rank, |members| members[rank as usize])
    }

    /// Returns a step of a collective call with the numbers of ranks in the program.
    fn passed_step(&self, step: Step) -> Passed {
        (
            step.receives.into_iter().map(|from| self.in_world(from)).collect(),
            step.sends.into_iter().map(|(to, bytes)| (self.in_world(to), bytes)).collect(),
        )
    }

    /// Returns the name and the arguments of an action. `calls` has the number of collective calls
    /// of the rank in each group.
    fn passed<'py>(
        &self,
        py: Python<'py>,
        record: Record,
        calls: &mut BTreeMap<u32, u32>,
    ) -> PyResult<(&'static str, Bound<'py, PyTuple>)> {
        let (call, blocking) = match record {
            Record::Compute { flops } => return Ok(("compute", (flops,).into_pyobject(py)?)),
            Record::Sleep { seconds } => return Ok(("sleep", (seconds,).into_pyobject(py)?)),
            Record::Send { to, tag, bytes, blocking } => {
                return Ok(("send", (self.in_world(to), tag, bytes, blocking).into_pyobject(py)?));
            }
            Record::Recv { from, tag, most, blocking } => {
                let from = from.map(|from| self.in_world(from));
                return Ok(("recv", (from, tag, most, blocking).into_pyobject(py)?));
            }
            Record::Wait(which) => {
                let in_world = |rank: Option<u32>| rank.map(|rank| self.in_world(rank));
                let call = which.collective.map(|kind| kind.name());
                let (source, to) = (in_world(which.src), in_world(which.dst));
                return Ok(("wait", (source, to, which.tag, call).into_pyobject(py)?));
            }
            Record::Test(_) => return Ok(("test", PyTuple::empty(py))),
            Record::WaitAll => return Ok(("waitall", PyTuple::empty(py))),
            Record::Collective { call, blocking } => (*call, blocking),
            Record::Group(definition) => match Call::of_definition(&definition.how) {
                Some(call) => (call, true),
                None => return Ok(("nothing", PyTuple::empty(py))),
            },
            Record::Graph | Record::Init { .. } | Record::Finalize | Record::Nothing => {
                return Ok(("nothing", PyTuple::empty(py)));
            }
        };
        let number = calls.entry(self.member.group).or_default();
        *number += 1;
        let size =
            self.groups.members(self.member.group).map_or(self.ranks, |all| all.len() as u32);
        let seat = Seat { rank: self.member.own, ranks: size, teams: None };
        let lanes: Vec<Vec<Passed>> = (0..self.by.lanes(&call, size))
            .map(|lane| {
                let steps = (0..).map_while(|k| self.by.step(&call, seat, lane, k));
                steps.map(|step| self.passed_step(step)).collect()
            })
            .collect();
        let name = call.kind.name();
        Ok(("collective", (*number, name, lanes, call.flops, blocking).into_pyobject(py)?))
    }
}
