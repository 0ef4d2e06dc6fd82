//! Algorithms of each collective call, and the choice among them.

use super::call::{Call, Kind, Seat, Step, View};
use super::own::Own;
use super::{double_tree, exchange, ring, rules, tree, two_level};
use eastwest_types::Rate;
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
        ScatterDoubling = "scatter-doubling" "parts go down a binomial tree, then ranks at distances 1, 2, 4 … exchange all parts that they have (MPICH for medium messages; scatter-ring if the number of ranks is not a power of two)",
        Chain = "chain" "each rank forwards the whole data to the next rank; with chunks, a pipeline (NCCL)",
        Linear = "linear" "the root sends to all other ranks at once",
        Mpich = "mpich" "MPICH's choice by size and number of ranks: binomial, scatter-doubling or scatter-ring",
    }
);
algorithms!(
    /// Algorithms of `MPI_Reduce`.
    ReduceBy {
        Binomial = "binomial" "partial results go up a binomial tree (MPICH for short vectors)",
        Chain = "chain" "each rank adds its vector and forwards the result towards the root",
        Rabenseifner = "rabenseifner" "recursive halving to scatter the sum, a binomial tree to gather it at the root (MPICH for long vectors)",
        Linear = "linear" "all other ranks send to the root at once",
        Mpich = "mpich" "MPICH's choice by size and number of ranks: binomial or rabenseifner",
    }
);
algorithms!(
    /// Algorithms of `MPI_Allreduce`.
    AllreduceBy {
        RecursiveDoubling = "recursive-doubling" "ranks at distances 1, 2, 4 … exchange whole vectors (MPICH for short vectors)",
        Rabenseifner = "rabenseifner" "recursive halving to scatter the sum, recursive doubling to gather it (MPICH for long vectors)",
        Ring = "ring" "parts go round a ring twice: first they are summed, then the sums are distributed",
        ReduceBcast = "reduce-bcast" "a binomial reduce to rank 0 and a binomial broadcast",
        DoubleTree = "double-tree" "two binary trees, each for half of the vector: sums go up, results go down (Sanders, Speck and Träff; NCCL's tree)",
        TwoLevel = "two-level" "a ring on each host scatters the sum of its ranks, Rabenseifner's algorithm sums the parts across hosts, a ring on each host gathers them (rabenseifner if hosts have one rank or different numbers of ranks)",
        Mpich = "mpich" "MPICH's choice by size and number of ranks: recursive-doubling or rabenseifner",
        Nccl = "nccl" "NCCL's choice by size, number of ranks and rate of the network: ring or double-tree",
    }
);
algorithms!(
    /// Algorithms of `MPI_Alltoall` and `MPI_Alltoallv`.
    AlltoallBy {
        Pairwise = "pairwise" "in each round a rank sends to one rank and receives from one rank (MPICH for long messages)",
        Linear = "linear" "all sends and receives at once",
        Bruck = "bruck" "in each of log2(ranks) rounds a rank sends about half of its data (MPICH for short messages; alltoallv is pairwise then)",
        TwoLevel = "two-level" "pairwise among the ranks of a host, then among ranks with the same number on their hosts (pairwise if hosts have one rank or different numbers of ranks; alltoallv is pairwise)",
        Mpich = "mpich" "MPICH's choice by size and number of ranks: bruck, linear or pairwise; alltoallv is linear",
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
        Bruck = "bruck" "in each of log2(ranks) rounds a rank forwards all parts that it has (MPICH for short messages)",
        Linear = "linear" "each rank sends its part to all other ranks at once",
        Mpich = "mpich" "MPICH's choice by size and number of ranks: recursive-doubling, bruck or ring",
    }
);
algorithms!(
    /// Algorithms of `MPI_Reduce_scatter`.
    ReduceScatterBy {
        Pairwise = "pairwise" "in each round a rank sends to one other rank the part of that rank (MPICH for long vectors)",
        RecursiveHalving = "recursive-halving" "pairs of ranks exchange half of the remaining vector (MPICH; pairwise if the number of ranks is not a power of two)",
        Ring = "ring" "partial sums go round a ring",
        Mpich = "mpich" "MPICH's choice by size: recursive-halving or pairwise",
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
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
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
    /// Channels of a call: each executes the algorithm for an equal share of the data, over
    /// connections of its own.
    pub channels: u32,
    /// Largest message in bytes that a call sends in a step of a ring, a tree or an exchange: the
    /// data of a channel is divided into chunks that move independently. `None`: one chunk.
    pub chunk: Option<u64>,
    /// Rate of the network card of a rank, for NCCL's choice.
    pub rate: Rate,
    /// Algorithms of a file: each replaces the named algorithm of its call for its number of ranks.
    pub own: Vec<Own>,
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
            channels: 1,
            chunk: None,
            rate: Rate::gbit(100),
            own: Vec::new(),
        }
    }
}

impl Algorithms {
    /// Largest number of channels of a call.
    pub const MOST_CHANNELS: u32 = 64;
    /// Largest number of lanes of a call; the chunks of a larger call are longer.
    pub const MOST_LANES: u32 = 4096;

    /// Returns the number of lanes of a collective call of `ranks` ranks: independent sequences of
    /// steps, one for each chunk of each channel. Lane `l` belongs to channel `l` modulo the number
    /// of channels.
    pub fn lanes(&self, call: &Call, ranks: u32) -> u32 {
        if let Some(own) = self.own(call, ranks) {
            return own.lanes();
        }
        let largest = match call.kind {
            Kind::Barrier | Kind::CommSplit | Kind::CommDup => return 1,
            // each rank knows only its own sizes, but all ranks need the same number of lanes
            Kind::Alltoallv | Kind::Gatherv | Kind::Scatterv => return self.channels,
            Kind::Allreduce => match rules::allreduce(self, call.size, ranks) {
                AllreduceBy::Ring => call.size.div_ceil(u64::from(ranks)),
                // half of the data for each tree
                AllreduceBy::DoubleTree => return self.lanes_for(call.size.div_ceil(2), 2),
                _ => call.size,
            },
            _ => call.sizes.iter().copied().max().unwrap_or(call.size),
        };
        self.lanes_for(largest, 1)
    }

    fn own(&self, call: &Call, ranks: u32) -> Option<&Own> {
        self.own.iter().find(|own| own.is_for(call, ranks))
    }

    /// Returns the number of lanes for messages of `largest` bytes before the division among lanes,
    /// as a multiple of `multiple`.
    fn lanes_for(&self, largest: u64, multiple: u32) -> u32 {
        let chunks = self.chunk.map_or(1, |chunk| {
            largest.div_ceil(chunk.saturating_mul(self.channels.into()).max(1)).max(1)
        });
        let most = u64::from(Self::MOST_LANES / (self.channels * multiple).max(1));
        self.channels * multiple * chunks.min(most) as u32
    }

    /// Whether an algorithm depends on the hosts of ranks.
    pub fn uses_hosts(&self) -> bool {
        self.allreduce == AllreduceBy::TwoLevel || self.alltoall == AlltoallBy::TwoLevel
    }

    /// Returns step `k` (from 0) of lane `lane` of a rank in a collective call; `None` after the last step of the lane.
    pub fn step(&self, call: &Call, seat: Seat, lane: u32, k: u32) -> Option<Step> {
        let Seat { rank, ranks, teams } = seat;
        if ranks < 2 {
            return None;
        }
        if let Some(own) = self.own(call, ranks) {
            return own.step(call, rank, lane, k);
        }
        let v = View { call, rank, ranks, lane, lanes: self.lanes(call, ranks), teams };
        let size = v.size();
        match call.kind {
            Kind::Barrier => match self.barrier {
                BarrierBy::Dissemination => exchange::dissemination(v, k),
                BarrierBy::RecursiveDoubling => exchange::recursive_doubling(v, 0, k),
                BarrierBy::Tree => tree::up_and_down(v, 0, k),
                BarrierBy::Linear => tree::all_to_root_and_back(v, k),
            },
            Kind::Bcast => match rules::bcast(self.bcast, call.size, ranks) {
                BcastBy::Binomial | BcastBy::Mpich => tree::bcast(v, size, k),
                BcastBy::ScatterDoubling if ranks.is_power_of_two() => {
                    exchange::scatter_then_double(v, k)
                }
                BcastBy::ScatterRing | BcastBy::ScatterDoubling => ring::scatter_then_ring(v, k),
                BcastBy::Chain => ring::chain_from_root(v, size, k),
                BcastBy::Linear => tree::root_to_all(v, |_| size, k),
            },
            Kind::Reduce => match rules::reduce(self.reduce, call.size) {
                ReduceBy::Binomial | ReduceBy::Mpich => tree::reduce(v, size, k),
                ReduceBy::Chain => ring::chain_to_root(v, size, k),
                ReduceBy::Rabenseifner => exchange::halve_then_gather(v, k),
                ReduceBy::Linear => tree::all_to_root(v, size, k),
            },
            Kind::Allreduce | Kind::CommDup => match rules::allreduce(self, call.size, ranks) {
                AllreduceBy::RecursiveDoubling | AllreduceBy::Mpich | AllreduceBy::Nccl => {
                    exchange::recursive_doubling(v, size, k)
                }
                AllreduceBy::Rabenseifner => exchange::rabenseifner(v, k),
                AllreduceBy::Ring => ring::allreduce(v, k),
                AllreduceBy::ReduceBcast => tree::up_and_down(v, size, k),
                AllreduceBy::DoubleTree => double_tree::allreduce(v, k),
                AllreduceBy::TwoLevel => match v.teams {
                    Some(teams) => two_level::allreduce(v, teams, k),
                    None => exchange::rabenseifner(v, k),
                },
            },
            Kind::Alltoall => match rules::alltoall(self.alltoall, call.size, ranks) {
                AlltoallBy::Pairwise | AlltoallBy::Mpich => exchange::pairwise(v, k),
                AlltoallBy::Linear => exchange::all_at_once(v, k),
                AlltoallBy::Bruck => exchange::bruck(v, k),
                AlltoallBy::TwoLevel => match v.teams {
                    Some(teams) => two_level::alltoall(v, teams, k),
                    None => exchange::pairwise(v, k),
                },
            },
            Kind::Alltoallv => match self.alltoall {
                AlltoallBy::Pairwise | AlltoallBy::Bruck | AlltoallBy::TwoLevel => {
                    exchange::pairwise(v, k)
                }
                AlltoallBy::Linear | AlltoallBy::Mpich => exchange::all_at_once(v, k),
            },
            Kind::Gather => match self.gather {
                GatherBy::Binomial => tree::gather(v, k),
                GatherBy::Linear => tree::all_to_root(v, size, k),
            },
            Kind::Gatherv => tree::all_to_root(v, size, k),
            Kind::Scatter => match self.scatter {
                GatherBy::Binomial => tree::scatter(v, k),
                GatherBy::Linear => tree::root_to_all(v, |_| size, k),
            },
            Kind::Scatterv => tree::root_to_all(v, |to| v.part(to), k),
            Kind::Allgather | Kind::Allgatherv | Kind::CommSplit => {
                match rules::allgather(self.allgather, call.all_parts(ranks), ranks) {
                    AllgatherBy::RecursiveDoubling if ranks.is_power_of_two() => {
                        exchange::allgather(v, k)
                    }
                    AllgatherBy::Ring | AllgatherBy::RecursiveDoubling | AllgatherBy::Mpich => {
                        ring::allgather(v, k)
                    }
                    AllgatherBy::Bruck => exchange::gather_by_bruck(v, k),
                    AllgatherBy::Linear => exchange::part_to_all(v, k),
                }
            }
            Kind::ReduceScatter => {
                match rules::reduce_scatter(self.reducescatter, call.all_parts(ranks)) {
                    ReduceScatterBy::RecursiveHalving if ranks.is_power_of_two() => {
                        exchange::recursive_halving(v, k)
                    }
                    ReduceScatterBy::Pairwise
                    | ReduceScatterBy::RecursiveHalving
                    | ReduceScatterBy::Mpich => exchange::shifted(v, k),
                    ReduceScatterBy::Ring => ring::reduce_scatter(v, k),
                }
            }
            Kind::Scan | Kind::Exscan => match self.scan {
                ScanBy::RecursiveDoubling => exchange::scan(v, k),
                ScanBy::Linear => ring::scan(v, k),
            },
        }
    }
}
