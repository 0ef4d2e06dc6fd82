//! Names of the algorithms of each collective call.

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
