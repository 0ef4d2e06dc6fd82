//! Collective calls of MPI, and the steps in which a rank executes them.

use super::teams::Teams;
use crate::mpi::groups::How;
use serde::{Deserialize, Serialize};

/// Kind of collective call of MPI.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Kind {
    /// `MPI_Barrier`: no rank continues before all ranks have called it.
    Barrier,
    /// `MPI_Bcast`: the root sends a vector to all ranks.
    Bcast,
    /// `MPI_Reduce`: vectors of all ranks are combined at the root.
    Reduce,
    /// `MPI_Allreduce`: vectors of all ranks are combined, and all ranks get the result.
    Allreduce,
    /// `MPI_Alltoall`: each rank sends a part of equal size to each rank.
    Alltoall,
    /// `MPI_Alltoallv`: each rank sends a part to each rank; sizes differ.
    Alltoallv,
    /// `MPI_Gather`: each rank sends a part of equal size to the root.
    Gather,
    /// `MPI_Gatherv`: each rank sends a part to the root; sizes differ.
    Gatherv,
    /// `MPI_Allgather`: all ranks get the parts of all ranks, which have equal sizes.
    Allgather,
    /// `MPI_Allgatherv`: all ranks get the parts of all ranks, whose sizes differ.
    Allgatherv,
    /// `MPI_Scatter`: the root sends a part of equal size to each rank.
    Scatter,
    /// `MPI_Scatterv`: the root sends a part to each rank; sizes differ.
    Scatterv,
    /// `MPI_Reduce_scatter`: vectors are combined, and each rank gets a part of the result.
    ReduceScatter,
    /// `MPI_Scan`: each rank gets the combination of the vectors of all ranks up to itself.
    Scan,
    /// `MPI_Exscan`: each rank gets the combination of the vectors of all ranks before itself.
    Exscan,
    /// `MPI_Comm_split`: all ranks get the colours and keys of all ranks, as in `MPI_Allgather`.
    CommSplit,
    /// `MPI_Comm_dup`: the ranks agree on a number for the new group, as in `MPI_Allreduce`.
    CommDup,
}

impl Kind {
    /// Returns the name of the collective call in traces and tables, such as `allreduce`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Barrier => "barrier",
            Kind::Bcast => "bcast",
            Kind::Reduce => "reduce",
            Kind::Allreduce => "allreduce",
            Kind::Alltoall => "alltoall",
            Kind::Alltoallv => "alltoallv",
            Kind::Gather => "gather",
            Kind::Gatherv => "gatherv",
            Kind::Allgather => "allgather",
            Kind::Allgatherv => "allgatherv",
            Kind::Scatter => "scatter",
            Kind::Scatterv => "scatterv",
            Kind::ReduceScatter => "reducescatter",
            Kind::Scan => "scan",
            Kind::Exscan => "exscan",
            Kind::CommSplit => "comm_split",
            Kind::CommDup => "comm_dup",
        }
    }
}

/// A collective call of MPI with the arguments of one rank.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Call {
    /// Kind of the collective call.
    pub kind: Kind,
    /// Root rank of the call; 0 for calls without a root.
    pub root: u32,
    /// Bytes of the whole vector (bcast, reduce, allreduce, scan, exscan), or bytes of one rank's
    /// part (other calls).
    pub size: u64,
    /// Bytes of the part of each rank; empty if all parts have `size` bytes.
    pub sizes: Vec<u64>,
    /// Floating-point operations that a rank computes for a reduction.
    pub flops: f64,
}

impl Call {
    /// Returns a collective call with root 0, no bytes and no operations.
    pub fn new(kind: Kind) -> Call {
        Call { kind, root: 0, size: 0, sizes: Vec::new(), flops: 0.0 }
    }

    /// Returns the collective call of the definition of a group; `None` if no message is sent. The
    /// sizes are those of MPICH: a colour and a key of 4 bytes each, and its mask of 64 words of 4
    /// bytes for context identifiers.
    pub fn of_definition(how: &How) -> Option<Call> {
        match how {
            How::Ranks(_) => None,
            How::Split { .. } => Some(Call::new(Kind::CommSplit).size(8)),
            How::Dup => Some(Call::new(Kind::CommDup).size(256)),
        }
    }

    /// Returns the call with the root rank `root`.
    pub fn root(self, root: u32) -> Call {
        Call { root, ..self }
    }

    /// Returns the call with `size` bytes for the whole vector or for each part.
    pub fn size(self, size: u64) -> Call {
        Call { size, ..self }
    }

    /// Returns the call with different bytes for each rank.
    pub fn sizes(self, sizes: Vec<u64>) -> Call {
        Call { sizes, ..self }
    }

    /// Returns the call with `flops` floating-point operations.
    pub fn flops(self, flops: f64) -> Call {
        Call { flops, ..self }
    }

    /// Returns the bytes that each rank must at least send or receive, as nccl-tests defines them
    /// for the bus bandwidth: the size of the call multiplied by a factor (its
    /// `doc/PERFORMANCE.md`). `None`: the call has no such factor, or a rank does not know the sizes
    /// of all parts.
    pub(crate) fn bus_bytes(&self, ranks: u32) -> Option<u64> {
        let n = u64::from(ranks);
        match self.kind {
            Kind::Allreduce => Some(self.size.saturating_mul(2 * (n - 1)) / n),
            Kind::Bcast | Kind::Reduce => Some(self.size),
            Kind::Allgather | Kind::Allgatherv | Kind::ReduceScatter => {
                Some(self.all_parts(ranks) / n * (n - 1))
            }
            Kind::Alltoall | Kind::Gather | Kind::Scatter => Some(self.size.saturating_mul(n - 1)),
            _ => None,
        }
    }

    /// Returns the bytes of the parts of all ranks together.
    pub(super) fn all_parts(&self, ranks: u32) -> u64 {
        match self.sizes.is_empty() {
            true => self.size.saturating_mul(ranks.into()),
            false => self.sizes.iter().fold(0, |sum, size| sum.saturating_add(*size)),
        }
    }

    /// Returns the bytes of a rank's part in the call: its entry of `sizes`, otherwise `size`.
    pub(super) fn part(&self, rank: u32) -> u64 {
        self.sizes.get(rank as usize).copied().unwrap_or(self.size)
    }
}

/// Returns the bytes of part `number`, if `bytes` bytes are divided into `parts` parts. The first
/// parts have one byte more if there is a remainder.
pub(super) fn share(bytes: u64, parts: u32, number: u32) -> u64 {
    let parts = u64::from(parts);
    bytes / parts + u64::from(u64::from(number) < bytes % parts)
}

/// One step of a rank in a collective call. All messages of a step are in progress at the same
/// time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Step {
    /// Ranks from which a message is received, one from each rank.
    pub receives: Vec<u32>,
    /// Ranks to which a message is sent, each with the number of bytes.
    pub sends: Vec<(u32, u64)>,
}

impl Step {
    pub(super) fn exchange(from: u32, to: u32, bytes: u64) -> Step {
        Step { receives: vec![from], sends: vec![(to, bytes)] }
    }

    pub(super) fn send(to: u32, bytes: u64) -> Step {
        Step { receives: Vec::new(), sends: vec![(to, bytes)] }
    }

    /// Returns the step with other numbers of the other ranks.
    pub(super) fn renumbered(self, number: impl Fn(u32) -> u32) -> Step {
        Step {
            receives: self.receives.into_iter().map(&number).collect(),
            sends: self.sends.into_iter().map(|(to, bytes)| (number(to), bytes)).collect(),
        }
    }

    pub(super) fn receive(from: u32) -> Step {
        Step { receives: vec![from], sends: Vec::new() }
    }
}

/// A rank in a collective call.
#[derive(Clone, Copy)]
pub struct Seat<'a> {
    /// Number of the rank in its group.
    pub rank: u32,
    /// Number of ranks of the group.
    pub ranks: u32,
    /// Ranks of the group by host; `None` if algorithms in two levels are not possible.
    pub teams: Option<&'a Teams>,
}

/// A lane of a collective call at a rank: an independent sequence of steps for an equal share of the
/// data.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) call: &'a Call,
    pub(super) rank: u32,
    pub(super) ranks: u32,
    /// Number of the lane, from 0.
    pub(super) lane: u32,
    /// Number of lanes of the call.
    pub(super) lanes: u32,
    /// Ranks of the call by host; `None` if algorithms in two levels are not possible.
    pub(super) teams: Option<&'a Teams>,
}

impl View<'_> {
    /// Returns the lane's share of the bytes of the whole vector, or of each part.
    pub(super) fn size(&self) -> u64 {
        share(self.call.size, self.lanes, self.lane)
    }

    /// Returns the lane's share of the bytes of a rank's part.
    pub(super) fn part(&self, rank: u32) -> u64 {
        share(self.call.part(rank), self.lanes, self.lane)
    }

    /// Returns the number of this rank counted from the root, which has number 0.
    pub(super) fn relative(&self) -> u32 {
        (self.rank + self.ranks - self.call.root) % self.ranks
    }

    /// Returns the rank whose number counted from the root is `relative`.
    pub(super) fn absolute(&self, relative: u32) -> u32 {
        (relative + self.call.root) % self.ranks
    }

    pub(super) fn after(&self, steps: u32) -> u32 {
        (self.rank + steps % self.ranks) % self.ranks
    }

    pub(super) fn before(&self, steps: u32) -> u32 {
        (self.rank + self.ranks - steps % self.ranks) % self.ranks
    }
}
