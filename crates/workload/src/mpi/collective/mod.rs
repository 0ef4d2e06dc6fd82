//! Collective calls as the messages they are made of: one file per family of algorithms.
//!
//! A rank goes through a collective in steps. In each it posts its receives, then its sends, and
//! goes on when all of them are done. [`Algorithms::step`] gives the step with a number, so that
//! nothing is kept of a call but the call itself. Both ends of every message name the same size,
//! and messages between two ranks are matched in their order, as in a communicator of its own.
//!
//! The algorithms and their names are those of MPICH (Thakur, Rabenseifner and Gropp, *Optimization of
//! collective communication operations in MPICH*, IJHPCA 2005) and Open MPI (Pješivac-Grbović et al.,
//! *Performance analysis of MPI collective operations*, 2007). Departure: the operations of a
//! reduction are done once, at the end of the call and as many as the trace says, as SimGrid does.

mod exchange;
mod ring;
mod tree;

use serde::{Deserialize, Serialize};

/// Which collective call it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Kind {
    /// `MPI_Barrier`.
    Barrier,
    /// `MPI_Bcast`.
    Bcast,
    /// `MPI_Reduce`.
    Reduce,
    /// `MPI_Allreduce`.
    Allreduce,
    /// `MPI_Alltoall`.
    Alltoall,
    /// `MPI_Alltoallv`.
    Alltoallv,
    /// `MPI_Gather`.
    Gather,
    /// `MPI_Gatherv`.
    Gatherv,
    /// `MPI_Allgather`.
    Allgather,
    /// `MPI_Allgatherv`.
    Allgatherv,
    /// `MPI_Scatter`.
    Scatter,
    /// `MPI_Scatterv`.
    Scatterv,
    /// `MPI_Reduce_scatter`.
    ReduceScatter,
    /// `MPI_Scan`.
    Scan,
    /// `MPI_Exscan`.
    Exscan,
}

impl Kind {
    /// Its name in traces and tables.
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
        }
    }
}

/// A collective call as one rank makes it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Call {
    /// Which one.
    pub kind: Kind,
    /// Its root, where it has one.
    pub root: u32,
    /// Bytes: of the whole vector (bcast, reduce, allreduce, scan), or of the part of one rank.
    pub size: u64,
    /// Bytes for or from each rank, where the call has them.
    pub sizes: Vec<u64>,
    /// Floating-point operations of a reduction.
    pub flops: f64,
}

impl Call {
    /// A call of nothing.
    pub fn new(kind: Kind) -> Call {
        Call { kind, root: 0, size: 0, sizes: Vec::new(), flops: 0.0 }
    }

    pub(super) fn root(self, root: u32) -> Call {
        Call { root, ..self }
    }

    pub(super) fn size(self, size: u64) -> Call {
        Call { size, ..self }
    }

    pub(super) fn sizes(self, sizes: Vec<u64>) -> Call {
        Call { sizes, ..self }
    }

    pub(super) fn flops(self, flops: f64) -> Call {
        Call { flops, ..self }
    }

    /// Bytes of the part of a rank.
    fn part(&self, rank: u32) -> u64 {
        self.sizes.get(rank as usize).copied().unwrap_or(self.size)
    }
}

/// One step of a rank: all of it is under way at once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Step {
    /// Ranks whose next message is awaited.
    pub receives: Vec<u32>,
    /// Ranks that are sent so many bytes.
    pub sends: Vec<(u32, u64)>,
}

impl Step {
    fn exchange(from: u32, to: u32, bytes: u64) -> Step {
        Step { receives: vec![from], sends: vec![(to, bytes)] }
    }

    fn send(to: u32, bytes: u64) -> Step {
        Step { receives: Vec::new(), sends: vec![(to, bytes)] }
    }

    fn receive(from: u32) -> Step {
        Step { receives: vec![from], sends: Vec::new() }
    }
}

/// Whose view of a call it is.
#[derive(Clone, Copy)]
struct View<'a> {
    call: &'a Call,
    rank: u32,
    ranks: u32,
}

impl View<'_> {
    /// The rank counted from the root.
    fn relative(&self) -> u32 {
        (self.rank + self.ranks - self.call.root) % self.ranks
    }

    /// The rank that is so far from the root.
    fn absolute(&self, relative: u32) -> u32 {
        (relative + self.call.root) % self.ranks
    }

    fn after(&self, steps: u32) -> u32 {
        (self.rank + steps % self.ranks) % self.ranks
    }

    fn before(&self, steps: u32) -> u32 {
        (self.rank + self.ranks - steps % self.ranks) % self.ranks
    }
}

macro_rules! algorithms {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $text:literal $line:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
        pub enum $name {
            $(#[doc = $line] $variant,)+
        }

        impl $name {
            /// All of them: name in scenarios, algorithm, one line.
            pub const ALL: &'static [(&'static str, $name, &'static str)] =
                &[$(($text, $name::$variant, $line),)+];
        }
    };
}

algorithms!(
    /// Algorithms of `MPI_Barrier`.
    BarrierBy {
        Dissemination = "dissemination" "in round k every rank tells the one 2^k further (MPICH)",
        RecursiveDoubling = "recursive-doubling" "pairs at distances 1, 2, 4 … tell each other",
        Tree = "tree" "up a binomial tree and down again",
        Linear = "linear" "all tell rank 0, which tells all",
    }
);
algorithms!(
    /// Algorithms of `MPI_Bcast`.
    BcastBy {
        Binomial = "binomial" "down a binomial tree (MPICH for short messages)",
        ScatterRing = "scatter-ring" "binomial scatter, then a ring of all parts (van de Geijn; MPICH for long messages)",
        Chain = "chain" "each rank hands everything on to the next",
        Linear = "linear" "the root sends to all at once",
    }
);
algorithms!(
    /// Algorithms of `MPI_Reduce`.
    ReduceBy {
        Binomial = "binomial" "up a binomial tree (MPICH for short vectors)",
        Chain = "chain" "each rank adds and hands on towards the root",
        Linear = "linear" "all send to the root at once",
    }
);
algorithms!(
    /// Algorithms of `MPI_Allreduce`.
    AllreduceBy {
        RecursiveDoubling = "recursive-doubling" "pairs at distances 1, 2, 4 … exchange whole vectors (MPICH for short vectors)",
        Rabenseifner = "rabenseifner" "recursive halving to scatter the sum, recursive doubling to gather it (MPICH for long vectors)",
        Ring = "ring" "parts go round a ring twice: summed, then handed on",
        ReduceBcast = "reduce-bcast" "a binomial reduce to rank 0 and a binomial broadcast",
    }
);
algorithms!(
    /// Algorithms of `MPI_Alltoall` and `MPI_Alltoallv`.
    AlltoallBy {
        Pairwise = "pairwise" "in round k with one partner (MPICH for long messages)",
        Linear = "linear" "all sends and receives at once",
        Bruck = "bruck" "log2 rounds of half of all data each (MPICH for short messages; alltoallv is pairwise then)",
    }
);
algorithms!(
    /// Algorithms of `MPI_Gather` and `MPI_Scatter`; those with sizes per rank are always linear.
    GatherBy {
        Binomial = "binomial" "along a binomial tree (MPICH)",
        Linear = "linear" "the root exchanges with all at once",
    }
);
algorithms!(
    /// Algorithms of `MPI_Allgather` and `MPI_Allgatherv`.
    AllgatherBy {
        Ring = "ring" "parts go round a ring (MPICH for long messages)",
        RecursiveDoubling = "recursive-doubling" "pairs at distances 1, 2, 4 … exchange what they have (a ring where ranks are no power of two)",
        Linear = "linear" "everyone sends its part to all at once",
    }
);
algorithms!(
    /// Algorithms of `MPI_Reduce_scatter`.
    ReduceScatterBy {
        Pairwise = "pairwise" "in round k each rank sends one partner its part (MPICH for long vectors)",
        RecursiveHalving = "recursive-halving" "pairs exchange half of what is left (MPICH; pairwise where ranks are no power of two)",
        Ring = "ring" "partial sums go round a ring",
    }
);
algorithms!(
    /// Algorithms of `MPI_Scan` and `MPI_Exscan`.
    ScanBy {
        RecursiveDoubling = "recursive-doubling" "in round k from the rank 2^k before (Hillis and Steele)",
        Linear = "linear" "each rank waits for the one before it",
    }
);

/// How each collective is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Algorithms {
    /// Of barriers.
    pub barrier: BarrierBy,
    /// Of broadcasts.
    pub bcast: BcastBy,
    /// Of reductions to a root.
    pub reduce: ReduceBy,
    /// Of reductions to all.
    pub allreduce: AllreduceBy,
    /// Of alltoall and alltoallv.
    pub alltoall: AlltoallBy,
    /// Of gather.
    pub gather: GatherBy,
    /// Of scatter.
    pub scatter: GatherBy,
    /// Of allgather and allgatherv.
    pub allgather: AllgatherBy,
    /// Of reduce-scatter.
    pub reducescatter: ReduceScatterBy,
    /// Of scan and exscan.
    pub scan: ScanBy,
}

impl Default for Algorithms {
    /// Those that MPICH uses for short messages, where it has one for any number of ranks.
    fn default() -> Algorithms {
        Algorithms {
            barrier: BarrierBy::Dissemination,
            bcast: BcastBy::Binomial,
            reduce: ReduceBy::Binomial,
            allreduce: AllreduceBy::RecursiveDoubling,
            alltoall: AlltoallBy::Pairwise,
            gather: GatherBy::Binomial,
            scatter: GatherBy::Binomial,
            allgather: AllgatherBy::Ring,
            reducescatter: ReduceScatterBy::Pairwise,
            scan: ScanBy::RecursiveDoubling,
        }
    }
}

impl Algorithms {
    /// What a rank of so many does in step `k` of a call; `None` when it is through.
    pub fn step(&self, call: &Call, rank: u32, ranks: u32, k: u32) -> Option<Step> {
        if ranks < 2 {
            return None;
        }
        let v = View { call, rank, ranks };
        match call.kind {
            Kind::Barrier => match self.barrier {
                BarrierBy::Dissemination => exchange::dissemination(v, k),
                BarrierBy::RecursiveDoubling => exchange::recursive_doubling(v, 0, k),
                BarrierBy::Tree => tree::up_and_down(v, 0, k),
                BarrierBy::Linear => tree::all_to_root_and_back(v, k),
            },
            Kind::Bcast => match self.bcast {
                BcastBy::Binomial => tree::bcast(v, call.size, k),
                BcastBy::ScatterRing => ring::scatter_then_ring(v, k),
                BcastBy::Chain => ring::chain_from_root(v, call.size, k),
                BcastBy::Linear => tree::root_to_all(v, |_| call.size, k),
            },
            Kind::Reduce => match self.reduce {
                ReduceBy::Binomial => tree::reduce(v, call.size, k),
                ReduceBy::Chain => ring::chain_to_root(v, call.size, k),
                ReduceBy::Linear => tree::all_to_root(v, call.size, k),
            },
            Kind::Allreduce => match self.allreduce {
                AllreduceBy::RecursiveDoubling => exchange::recursive_doubling(v, call.size, k),
                AllreduceBy::Rabenseifner => exchange::rabenseifner(v, k),
                AllreduceBy::Ring => ring::allreduce(v, k),
                AllreduceBy::ReduceBcast => tree::up_and_down(v, call.size, k),
            },
            Kind::Alltoall => match self.alltoall {
                AlltoallBy::Pairwise => exchange::pairwise(v, k),
                AlltoallBy::Linear => exchange::all_at_once(v, k),
                AlltoallBy::Bruck => exchange::bruck(v, k),
            },
            Kind::Alltoallv => match self.alltoall {
                AlltoallBy::Pairwise | AlltoallBy::Bruck => exchange::pairwise(v, k),
                AlltoallBy::Linear => exchange::all_at_once(v, k),
            },
            Kind::Gather => match self.gather {
                GatherBy::Binomial => tree::gather(v, k),
                GatherBy::Linear => tree::all_to_root(v, call.size, k),
            },
            Kind::Gatherv => tree::all_to_root(v, call.size, k),
            Kind::Scatter => match self.scatter {
                GatherBy::Binomial => tree::scatter(v, k),
                GatherBy::Linear => tree::root_to_all(v, |_| call.size, k),
            },
            Kind::Scatterv => tree::root_to_all(v, |to| call.part(to), k),
            Kind::Allgather | Kind::Allgatherv => match self.allgather {
                AllgatherBy::RecursiveDoubling if ranks.is_power_of_two() => {
                    exchange::allgather(v, k)
                }
                AllgatherBy::Ring | AllgatherBy::RecursiveDoubling => ring::allgather(v, k),
                AllgatherBy::Linear => exchange::part_to_all(v, k),
            },
            Kind::ReduceScatter => match self.reducescatter {
                ReduceScatterBy::RecursiveHalving if ranks.is_power_of_two() => {
                    exchange::recursive_halving(v, k)
                }
                ReduceScatterBy::Pairwise | ReduceScatterBy::RecursiveHalving => {
                    exchange::shifted(v, k)
                }
                ReduceScatterBy::Ring => ring::reduce_scatter(v, k),
            },
            Kind::Scan | Kind::Exscan => match self.scan {
                ScanBy::RecursiveDoubling => exchange::scan(v, k),
                ScanBy::Linear => ring::scan(v, k),
            },
        }
    }
}

#[cfg(test)]
mod tests;
