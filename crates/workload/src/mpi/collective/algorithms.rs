//! Algorithms of each collective call, and the choice among them.

use super::call::{Call, Kind, Step, View};
use super::{exchange, ring, tree};
use serde::{Deserialize, Serialize};

macro_rules! algorithms {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $text:literal $line:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
        pub enum $name {
            $(#[doc = $line] $variant,)+
        }

        impl $name {
            /// All algorithms of this collective: name in scenarios, algorithm, description in one
            /// line.
            pub const ALL: &'static [(&'static str, $name, &'static str)] =
                &[$(($text, $name::$variant, $line),)+];
        }
    };
}

algorithms!(
    /// Algorithms of `MPI_Barrier`.
    BarrierBy {
        Dissemination = "dissemination" "in round k each rank notifies the rank 2^k after it (MPICH)",
        RecursiveDoubling = "recursive-doubling" "ranks at distances 1, 2, 4 … notify each other",
        Tree = "tree" "notifications go up a binomial tree and down again",
        Linear = "linear" "all ranks notify rank 0, which then notifies all ranks",
    }
);
algorithms!(
    /// Algorithms of `MPI_Bcast`.
    BcastBy {
        Binomial = "binomial" "the data goes down a binomial tree (MPICH for short messages)",
        ScatterRing = "scatter-ring" "parts go down a binomial tree, then round a ring (van de Geijn; MPICH for long messages)",
        Chain = "chain" "each rank forwards the whole data to the next rank",
        Linear = "linear" "the root sends to all other ranks at once",
    }
);
algorithms!(
    /// Algorithms of `MPI_Reduce`.
    ReduceBy {
        Binomial = "binomial" "partial results go up a binomial tree (MPICH for short vectors)",
        Chain = "chain" "each rank adds its vector and forwards the result towards the root",
        Linear = "linear" "all other ranks send to the root at once",
    }
);
algorithms!(
    /// Algorithms of `MPI_Allreduce`.
    AllreduceBy {
        RecursiveDoubling = "recursive-doubling" "ranks at distances 1, 2, 4 … exchange whole vectors (MPICH for short vectors)",
        Rabenseifner = "rabenseifner" "recursive halving to scatter the sum, recursive doubling to gather it (MPICH for long vectors)",
        Ring = "ring" "parts go round a ring twice: first they are summed, then the sums are distributed",
        ReduceBcast = "reduce-bcast" "a binomial reduce to rank 0 and a binomial broadcast",
    }
);
algorithms!(
    /// Algorithms of `MPI_Alltoall` and `MPI_Alltoallv`.
    AlltoallBy {
        Pairwise = "pairwise" "in each round a rank sends to one rank and receives from one rank (MPICH for long messages)",
        Linear = "linear" "all sends and receives at once",
        Bruck = "bruck" "in each of log2(ranks) rounds a rank sends about half of its data (MPICH for short messages; alltoallv is pairwise then)",
    }
);
algorithms!(
    /// Algorithms of `MPI_Gather` and `MPI_Scatter`; `MPI_Gatherv` and `MPI_Scatterv` are always
    /// linear.
    GatherBy {
        Binomial = "binomial" "parts go along a binomial tree (MPICH)",
        Linear = "linear" "the root receives from or sends to all other ranks at once",
    }
);
algorithms!(
    /// Algorithms of `MPI_Allgather` and `MPI_Allgatherv`.
    AllgatherBy {
        Ring = "ring" "parts go round a ring (MPICH for long messages)",
        RecursiveDoubling = "recursive-doubling" "ranks at distances 1, 2, 4 … exchange all parts that they have (a ring if the number of ranks is not a power of two)",
        Linear = "linear" "each rank sends its part to all other ranks at once",
    }
);
algorithms!(
    /// Algorithms of `MPI_Reduce_scatter`.
    ReduceScatterBy {
        Pairwise = "pairwise" "in each round a rank sends to one other rank the part of that rank (MPICH for long vectors)",
        RecursiveHalving = "recursive-halving" "pairs of ranks exchange half of the remaining vector (MPICH; pairwise if the number of ranks is not a power of two)",
        Ring = "ring" "partial sums go round a ring",
    }
);
algorithms!(
    /// Algorithms of `MPI_Scan` and `MPI_Exscan`.
    ScanBy {
        RecursiveDoubling = "recursive-doubling" "in round k each rank receives from the rank 2^k before it (Hillis and Steele)",
        Linear = "linear" "each rank waits for the one before it",
    }
);

/// Algorithm chosen for each kind of collective call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Algorithms {
    /// Algorithm of `MPI_Barrier`.
    pub barrier: BarrierBy,
    /// Algorithm of `MPI_Bcast`.
    pub bcast: BcastBy,
    /// Algorithm of reductions to a root rank.
    pub reduce: ReduceBy,
    /// Algorithm of reductions whose result all ranks receive.
    pub allreduce: AllreduceBy,
    /// Algorithm of `MPI_Alltoall` and `MPI_Alltoallv`.
    pub alltoall: AlltoallBy,
    /// Algorithm of `MPI_Gather`.
    pub gather: GatherBy,
    /// Algorithm of `MPI_Scatter`.
    pub scatter: GatherBy,
    /// Algorithm of `MPI_Allgather` and `MPI_Allgatherv`.
    pub allgather: AllgatherBy,
    /// Algorithm of `MPI_Reduce_scatter`.
    pub reducescatter: ReduceScatterBy,
    /// Algorithm of `MPI_Scan` and `MPI_Exscan`.
    pub scan: ScanBy,
}

impl Default for Algorithms {
    /// Returns the algorithms that MPICH uses for short messages, restricted to those that work for
    /// any number of ranks.
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
    /// Sets the algorithm of the collective call `call`; both names are those of scenarios. Fails
    /// with the allowed names if one of them is unknown.
    pub fn set(&mut self, call: &str, name: &str) -> Result<(), String> {
        fn find<T: Copy>(to: &mut T, name: &str, all: &[(&str, T, &str)]) -> Result<(), String> {
            let Some(&(_, found, _)) = all.iter().find(|each| each.0 == name) else {
                let names: Vec<&str> = all.iter().map(|each| each.0).collect();
                return Err(format!("must be one of {}", names.join(", ")));
            };
            *to = found;
            Ok(())
        }
        match call {
            "barrier" => find(&mut self.barrier, name, BarrierBy::ALL),
            "bcast" => find(&mut self.bcast, name, BcastBy::ALL),
            "reduce" => find(&mut self.reduce, name, ReduceBy::ALL),
            "allreduce" => find(&mut self.allreduce, name, AllreduceBy::ALL),
            "alltoall" => find(&mut self.alltoall, name, AlltoallBy::ALL),
            "gather" => find(&mut self.gather, name, GatherBy::ALL),
            "scatter" => find(&mut self.scatter, name, GatherBy::ALL),
            "allgather" => find(&mut self.allgather, name, AllgatherBy::ALL),
            "reducescatter" => find(&mut self.reducescatter, name, ReduceScatterBy::ALL),
            "scan" => find(&mut self.scan, name, ScanBy::ALL),
            _ => Err("must be a collective call: barrier, bcast, reduce, allreduce, alltoall, \
                      gather, scatter, allgather, reducescatter or scan"
                .to_owned()),
        }
    }

    /// Returns step `k` (from 0) of a rank in a collective call of `ranks` ranks; `None` after the
    /// last step.
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
            Kind::Allreduce | Kind::CommDup => match self.allreduce {
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
            Kind::Allgather | Kind::Allgatherv | Kind::CommSplit => match self.allgather {
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
