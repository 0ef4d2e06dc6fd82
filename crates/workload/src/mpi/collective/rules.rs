//! Rules by which MPI and accelerator libraries choose an algorithm for a call.
//!
//! The rule of MPICH is that of Thakur, Rabenseifner and Gropp (IJHPCA 2005); the limits are the
//! defaults of `src/mpi/coll/cvars.txt` in MPICH 5.0.1. The rule of NCCL is the model of
//! `src/graph/tuning.cc` in NCCL 2.30.7.

use super::names::{AllgatherBy, AllreduceBy, AlltoallBy, BcastBy, ReduceBy, ReduceScatterBy};
use eastwest_types::Rate;

/// Returns the algorithm of a broadcast of `bytes` bytes. MPICH: binomial below 12 KiB or 8 ranks;
/// otherwise scatter and allgather, by recursive doubling below 512 KiB if the number of ranks is a
/// power of two, otherwise round a ring.
pub(super) fn bcast(by: BcastBy, bytes: u64, ranks: u32) -> BcastBy {
    match by {
        BcastBy::Mpich if bytes < 12_288 || ranks < 8 => BcastBy::Binomial,
        BcastBy::Mpich if bytes < 524_288 && ranks.is_power_of_two() => BcastBy::ScatterDoubling,
        BcastBy::Mpich => BcastBy::ScatterRing,
        by => by,
    }
}

/// Returns the algorithm of a reduction of `bytes` bytes to a root. MPICH: binomial up to 2 KiB,
/// Rabenseifner's above.
pub(super) fn reduce(by: ReduceBy, bytes: u64) -> ReduceBy {
    match by {
        ReduceBy::Mpich if bytes <= 2048 => ReduceBy::Binomial,
        ReduceBy::Mpich => ReduceBy::Rabenseifner,
        by => by,
    }
}

/// Returns the algorithm of an allreduce of `bytes` bytes. MPICH: recursive doubling up to 2 KiB,
/// Rabenseifner's above. NCCL, with cards of `rate`: see [`nccl_prefers_tree`].
pub(super) fn allreduce(by: AllreduceBy, bytes: u64, ranks: u32, rate: Rate) -> AllreduceBy {
    match by {
        AllreduceBy::Mpich if bytes <= 2048 => AllreduceBy::RecursiveDoubling,
        AllreduceBy::Mpich => AllreduceBy::Rabenseifner,
        AllreduceBy::Nccl if nccl_prefers_tree(bytes, ranks, rate) => AllreduceBy::DoubleTree,
        AllreduceBy::Nccl => AllreduceBy::Ring,
        by => by,
    }
}

/// Returns the algorithm of an alltoall with `bytes` bytes for each rank. MPICH: Bruck's up to 256 B
/// from 8 ranks on, all messages at once up to 32 KiB, pairwise above.
pub(super) fn alltoall(by: AlltoallBy, bytes: u64, ranks: u32) -> AlltoallBy {
    match by {
        AlltoallBy::Mpich if bytes <= 256 && ranks >= 8 => AlltoallBy::Bruck,
        AlltoallBy::Mpich if bytes <= 32_768 => AlltoallBy::Linear,
        AlltoallBy::Mpich => AlltoallBy::Pairwise,
        by => by,
    }
}

/// Returns the algorithm of an allgather of `bytes` bytes of all ranks together. MPICH: recursive
/// doubling below 512 KiB if the number of ranks is a power of two; otherwise Bruck's below 80 KiB,
/// a ring above.
pub(super) fn allgather(by: AllgatherBy, bytes: u64, ranks: u32) -> AllgatherBy {
    match by {
        AllgatherBy::Mpich if bytes < 524_288 && ranks.is_power_of_two() => {
            AllgatherBy::RecursiveDoubling
        }
        AllgatherBy::Mpich if bytes < 81_920 => AllgatherBy::Bruck,
        AllgatherBy::Mpich => AllgatherBy::Ring,
        by => by,
    }
}

/// Returns the algorithm of a reduce-scatter of `bytes` bytes of all ranks together. MPICH:
/// recursive halving below 512 KiB, pairwise above.
pub(super) fn reduce_scatter(by: ReduceScatterBy, bytes: u64) -> ReduceScatterBy {
    match by {
        ReduceScatterBy::Mpich if bytes < 524_288 => ReduceScatterBy::RecursiveHalving,
        ReduceScatterBy::Mpich => ReduceScatterBy::Pairwise,
        by => by,
    }
}

/// Whether NCCL's model expects less time from its trees than from its ring, for an allreduce of
/// `bytes` bytes with one rank on each host.
///
/// NCCL adds a latency and the bytes divided by a bandwidth, for each algorithm and protocol, and
/// takes the smallest time (`ncclTopoTuneModel`, `ncclTopoGetAlgoTime`). Included are its protocols
/// `LL` and `Simple` with the latencies of a network, and the longer latency of a ring with `Simple`
/// and 64 B or more for each rank. Left out are the protocol `LL128`, measured correction factors of
/// the tree's bandwidth, and limits of accelerators other than that of `LL`.
fn nccl_prefers_tree(bytes: u64, ranks: u32, rate: Rate) -> bool {
    let bytes_per_us = rate.0 as f64 / 8e6;
    let ranks_f = f64::from(ranks);
    let (rounds, levels) = (2.0 * (ranks_f - 1.0), f64::from(ranks.ilog2()));
    // largest rate of the protocol LL between hosts, in bytes for each microsecond
    let most_ll = if ranks <= 2 { 39_000.0 } else { 20_400.0 };
    let time = |latency: f64, rate: f64| latency + bytes as f64 / rate;
    let slow = if bytes / u64::from(ranks) >= 64 { 1.4 } else { 1.0 };
    let ring_ll = time(6.6 + rounds * 5.0, (0.5 * bytes_per_us).min(most_ll) * ranks_f / rounds);
    let ring = time((8.4 + rounds * 14.0) * slow, bytes_per_us * ranks_f / rounds);
    let tree_rate = 0.92 * bytes_per_us;
    let tree_ll = time(6.8 + 2.0 * levels * 5.0, (tree_rate / 3.8).min(most_ll) * 0.5);
    let tree = time(8.4 + 2.0 * levels * 14.0, tree_rate * 0.5);
    tree.min(tree_ll) < ring.min(ring_ll)
}
