//! The algorithm of each kind of collective call, and its steps.

use super::call::{Call, Kind, Seat, Step, View};
use super::names::{
    AllgatherBy, AllreduceBy, AlltoallBy, BarrierBy, BcastBy, GatherBy, ReduceBy, ReduceScatterBy,
    ScanBy,
};
use super::own::Own;
use super::{double_tree, exchange, ring, rules, tree, two_level};
use eastwest_types::Rate;
use serde::{Deserialize, Serialize};

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
            Kind::Allreduce => match self.allreduce_of(call, ranks) {
                AllreduceBy::Ring => call.size.div_ceil(u64::from(ranks)),
                // half of the data for each tree
                AllreduceBy::DoubleTree => return self.lanes_for(call.size.div_ceil(2), 2),
                _ => call.size,
            },
            _ => call.sizes.iter().copied().max().unwrap_or(call.size),
        };
        self.lanes_for(largest, 1)
    }

    fn allreduce_of(&self, call: &Call, ranks: u32) -> AllreduceBy {
        rules::allreduce(self.allreduce, call.size, ranks, self.rate)
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
            Kind::Allreduce | Kind::CommDup => match self.allreduce_of(call, ranks) {
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
