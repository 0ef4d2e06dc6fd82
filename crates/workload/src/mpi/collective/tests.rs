//! Tests of every collective algorithm for every number of ranks: all sent messages are received,
//! no rank waits for ever, and data reaches the right ranks.

use super::*;
use eastwest_types::HostId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Result of a collective call: numbers of messages and bytes, number of rounds until the last rank
/// has finished, and for each rank the set of ranks whose data it has.
struct Moved {
    messages: u64,
    bytes: u64,
    rounds: u32,
    known: Vec<BTreeSet<u32>>,
}

/// A message: the round in which it was sent, and the ranks whose data it contains.
type Sent = (u32, BTreeSet<u32>);

/// Executes a collective call; `calls` has the arguments of each rank. Every message takes one
/// round. A rank has the data of another rank if it has the data in all lanes.
fn play(by: &Algorithms, calls: &[Call]) -> Moved {
    play_on(by, calls, None)
}

/// Executes a collective call of ranks with teams.
fn play_on(by: &Algorithms, calls: &[Call], teams: Option<&Teams>) -> Moved {
    let ranks = calls.len() as u32;
    let lanes = by.lanes(&calls[0], ranks);
    assert!(calls.iter().all(|call| by.lanes(call, ranks) == lanes), "lanes differ");
    let played: Vec<Moved> = (0..lanes).map(|lane| play_lane(by, calls, teams, lane)).collect();
    let both = |a: Moved, b: Moved| Moved {
        messages: a.messages + b.messages,
        bytes: a.bytes + b.bytes,
        rounds: a.rounds.max(b.rounds),
        known: a.known.iter().zip(&b.known).map(|(a, b)| a & b).collect(),
    };
    played.into_iter().reduce(both).expect("a call has a lane")
}

/// Executes one lane of a collective call.
fn play_lane(by: &Algorithms, calls: &[Call], teams: Option<&Teams>, lane: u32) -> Moved {
    let ranks = calls.len() as u32;
    let mut wires: BTreeMap<(u32, u32), VecDeque<Sent>> = BTreeMap::new();
    let mut known: Vec<BTreeSet<u32>> = (0..ranks).map(|r| BTreeSet::from([r])).collect();
    let mut steps = vec![0; calls.len()];
    let mut sent = vec![false; calls.len()];
    let mut through = vec![false; calls.len()];
    let (mut messages, mut bytes, mut round) = (0, 0, 0);
    while through.iter().any(|done| !done) {
        let mut moved = false;
        for rank in 0..ranks {
            let r = rank as usize;
            while !through[r] {
                let Some(step) = by.step(&calls[r], Seat { rank, ranks, teams }, lane, steps[r])
                else {
                    through[r] = true;
                    moved = true;
                    break;
                };
                if !sent[r] {
                    for &(to, size) in &step.sends {
                        assert!(to < ranks && to != rank, "{rank} sends to {to}");
                        wires.entry((rank, to)).or_default().push_back((round, known[r].clone()));
                        messages += 1;
                        bytes += size;
                    }
                    sent[r] = true;
                    moved = true;
                }
                let there = |from: &u32| {
                    let wire = wires.get(&(*from, rank));
                    wire.and_then(VecDeque::front).is_some_and(|(at, _)| *at < round)
                };
                if !step.receives.iter().all(there) {
                    break;
                }
                for from in step.receives {
                    let wire = wires.get_mut(&(from, rank)).expect("looked at above");
                    let (_, data) = wire.pop_front().expect("looked at above");
                    known[r].extend(data);
                }
                steps[r] += 1;
                sent[r] = false;
                moved = true;
            }
        }
        round += 1;
        assert!(moved || round < 3 || wires.values().any(|w| !w.is_empty()), "stuck: {steps:?}");
        assert!(round < 10_000, "for ever: {steps:?}");
    }
    assert!(wires.values().all(VecDeque::is_empty), "messages nobody receives");
    Moved { messages, bytes, rounds: round - 1, known }
}

/// Executes a collective call with equal arguments at all ranks.
fn same(by: &Algorithms, call: Call, ranks: u32) -> Moved {
    play(by, &vec![call; ranks as usize])
}

fn all_know_all(moved: &Moved) -> bool {
    moved.known.iter().all(|k| k.len() == moved.known.len())
}

const RANKS: std::ops::RangeInclusive<u32> = 1..=19;

#[test]
fn barriers_hold_everybody_back_until_the_last_has_come() {
    for ranks in RANKS {
        for &(name, barrier, _) in BarrierBy::ALL {
            let by = Algorithms { barrier, ..Algorithms::default() };
            let moved = same(&by, Call::new(Kind::Barrier), ranks);
            assert!(all_know_all(&moved), "{name} of {ranks}");
            assert_eq!(moved.bytes, 0);
        }
    }
}

#[test]
fn broadcasts_reach_all_from_any_root() {
    for ranks in RANKS {
        for &(name, bcast, _) in BcastBy::ALL {
            let by = Algorithms { bcast, ..Algorithms::default() };
            let root = ranks / 3;
            let moved = same(&by, Call::new(Kind::Bcast).root(root).size(1000), ranks);
            assert!(moved.known.iter().all(|k| k.contains(&root)), "{name} of {ranks}");
            if !matches!(bcast, BcastBy::ScatterRing | BcastBy::ScatterDoubling) {
                let others = u64::from(ranks - 1);
                assert_eq!((moved.messages, moved.bytes), (others, others * 1000), "{name}");
            }
        }
    }
    let by = Algorithms { bcast: BcastBy::ScatterRing, ..Algorithms::default() };
    let moved = same(&by, Call::new(Kind::Bcast).size(8000), 8);
    // 4 + 2·2 + 4·1 parts of 1,000 bytes down the tree, and 7 rounds of 8 parts around the ring
    assert_eq!(moved.bytes, 12_000 + 56_000);
}

#[test]
fn reductions_gather_all_at_the_root_or_everywhere() {
    for ranks in RANKS {
        for &(name, reduce, _) in ReduceBy::ALL {
            let by = Algorithms { reduce, ..Algorithms::default() };
            let root = ranks / 2;
            let moved = same(&by, Call::new(Kind::Reduce).root(root).size(8), ranks);
            assert_eq!(moved.known[root as usize].len() as u32, ranks, "{name} of {ranks}");
            if reduce != ReduceBy::Rabenseifner {
                assert_eq!(moved.messages, u64::from(ranks - 1), "{name} of {ranks}");
            }
        }
        for &(name, allreduce, _) in AllreduceBy::ALL {
            let by = Algorithms { allreduce, ..Algorithms::default() };
            let moved = same(&by, Call::new(Kind::Allreduce).size(1003), ranks);
            assert!(all_know_all(&moved), "{name} of {ranks}");
        }
    }
}

#[test]
fn long_reductions_move_what_their_papers_say() {
    let bytes = |allreduce, ranks| {
        let by = Algorithms { allreduce, ..Algorithms::default() };
        same(&by, Call::new(Kind::Allreduce).size(16_000), ranks)
    };
    let ring = bytes(AllreduceBy::Ring, 16);
    assert_eq!((ring.bytes, ring.rounds), (2 * 15 * 16_000, 30), "2 (p - 1) n in 2 (p - 1) rounds");
    let halving = bytes(AllreduceBy::Rabenseifner, 16);
    assert_eq!((halving.bytes, halving.rounds), (2 * 15 * 16_000, 8), "the same in 2 log p");
    let doubling = bytes(AllreduceBy::RecursiveDoubling, 16);
    assert_eq!((doubling.bytes, doubling.rounds), (4 * 16 * 16_000, 4), "log p rounds of p n");
    let folded = bytes(AllreduceBy::RecursiveDoubling, 11);
    assert_eq!(folded.bytes, (3 * 8 + 2 * 3) * 16_000);
}

#[test]
fn rules_choose_by_size_and_number_of_ranks() {
    let by = Algorithms {
        bcast: BcastBy::Mpich,
        reduce: ReduceBy::Mpich,
        allreduce: AllreduceBy::Mpich,
        alltoall: AlltoallBy::Mpich,
        allgather: AllgatherBy::Mpich,
        reducescatter: ReduceScatterBy::Mpich,
        ..Algorithms::default()
    };
    let rounds = |kind, size, ranks| same(&by, Call::new(kind).size(size), ranks).rounds;
    assert_eq!(rounds(Kind::Allreduce, 2048, 16), 4, "recursive doubling");
    assert_eq!(rounds(Kind::Allreduce, 2049, 16), 8, "Rabenseifner");
    assert_eq!(rounds(Kind::Reduce, 2048, 16), 4, "binomial");
    assert_eq!(rounds(Kind::Reduce, 2049, 16), 8, "Rabenseifner");
    assert_eq!(rounds(Kind::Bcast, 12_287, 16), 4, "binomial");
    assert_eq!(rounds(Kind::Bcast, 12_288, 16), 8, "scatter and recursive doubling");
    assert_eq!(rounds(Kind::Bcast, 524_288, 16), 19, "scatter and ring");
    assert_eq!(rounds(Kind::Alltoall, 256, 16), 4, "Bruck");
    assert_eq!(rounds(Kind::Alltoall, 32_768, 16), 1, "linear");
    assert_eq!(rounds(Kind::Alltoall, 32_769, 16), 15, "pairwise");
    assert_eq!(rounds(Kind::Allgather, 32_767, 16), 4, "recursive doubling");
    assert_eq!(rounds(Kind::Allgather, 32_768, 16), 15, "ring");
    assert_eq!(rounds(Kind::Allgather, 6000, 13), 4, "Bruck");
    assert_eq!(rounds(Kind::Allgather, 6500, 13), 12, "ring");
    assert_eq!(rounds(Kind::ReduceScatter, 32_767, 16), 4, "recursive halving");
    assert_eq!(rounds(Kind::ReduceScatter, 32_768, 16), 15, "pairwise");
    // NCCL: trees where the latency decides, the ring where the bandwidth decides
    let by = Algorithms { allreduce: AllreduceBy::Nccl, ..by };
    let rounds = |size, ranks| same(&by, Call::new(Kind::Allreduce).size(size), ranks).rounds;
    assert_eq!(rounds(1 << 20, 16), 8, "trees: up and down four levels");
    assert_eq!(rounds(64 << 20, 16), 30, "ring");
    assert_eq!(rounds(64 << 20, 128), 14, "trees");
}

#[test]
fn lanes_divide_the_data_of_every_algorithm() {
    for ranks in RANKS {
        let lanes = |by: Algorithms| Algorithms { channels: 2, chunk: Some(100), ..by };
        for &(name, allreduce, _) in AllreduceBy::ALL {
            let one = Algorithms { allreduce, ..Algorithms::default() };
            let call = Call::new(Kind::Allreduce).size(1003);
            let (whole, parts) = (same(&one, call.clone(), ranks), same(&lanes(one), call, ranks));
            assert!(all_know_all(&parts), "{name} of {ranks}");
            assert_eq!(parts.rounds, whole.rounds, "{name} of {ranks}");
            if allreduce != AllreduceBy::DoubleTree && allreduce != AllreduceBy::Nccl {
                assert!(parts.messages >= 2 * whole.messages, "{name} of {ranks}");
            }
            let folds = !ranks.is_power_of_two() || allreduce == AllreduceBy::Rabenseifner;
            if !folds {
                assert_eq!(parts.bytes, whole.bytes, "{name} of {ranks}");
            }
        }
        let parts = lanes(Algorithms::default());
        let sizes: Vec<u64> = (0..u64::from(ranks)).map(|r| 100 + r).collect();
        let moved = same(&parts, Call::new(Kind::Allgatherv).sizes(sizes.clone()), ranks);
        assert!(all_know_all(&moved));
        assert_eq!(moved.bytes, sizes.iter().sum::<u64>() * u64::from(ranks - 1));
        let moved = same(&parts, Call::new(Kind::Alltoallv).sizes(sizes), ranks);
        assert!(all_know_all(&moved));
    }
    let chunked =
        |chunk| Algorithms { bcast: BcastBy::Chain, chunk: Some(chunk), ..Algorithms::default() };
    let call = Call::new(Kind::Bcast).size(1000);
    assert_eq!(chunked(100).lanes(&call, 8), 10);
    assert_eq!(chunked(999).lanes(&call, 8), 2);
    assert_eq!(chunked(1).lanes(&Call::new(Kind::Bcast).size(1 << 40), 8), Algorithms::MOST_LANES);
}

#[test]
fn double_trees_send_all_data_twice_and_share_the_work() {
    for ranks in RANKS.filter(|&ranks| ranks > 1) {
        let by = Algorithms { allreduce: AllreduceBy::DoubleTree, ..Algorithms::default() };
        let call = Call::new(Kind::Allreduce).size(1000);
        let moved = same(&by, call.clone(), ranks);
        assert_eq!(moved.bytes, 2 * 1000 * u64::from(ranks - 1), "each edge, up and down");
        assert_eq!(moved.rounds, 2 * ranks.next_power_of_two().ilog2(), "up and down {ranks}");
        for rank in 0..ranks {
            let sent: u64 = (0..2)
                .flat_map(|lane| (0..3).map(move |k| (lane, k)))
                .filter_map(|(lane, k)| by.step(&call, Seat { rank, ranks, teams: None }, lane, k))
                .flat_map(|step| step.sends)
                .map(|(_, bytes)| bytes)
                .sum();
            assert!(sent <= 2 * 1000, "rank {rank} of {ranks} sends {sent} B");
        }
    }
}

#[test]
fn two_levels_send_less_between_hosts() {
    let by = Algorithms {
        allreduce: AllreduceBy::TwoLevel,
        alltoall: AlltoallBy::TwoLevel,
        ..Algorithms::default()
    };
    for (local, hosts) in [(2, 2), (2, 8), (4, 3), (3, 5), (8, 4)] {
        let ranks = local * hosts;
        // in blocks and round-robin
        for host in [|rank: u32, local: u32, _: u32| rank / local, |rank, _, hosts| rank % hosts] {
            let of_ranks = (0..ranks).map(|rank| HostId(host(rank, local, hosts)));
            let teams = Teams::of(of_ranks).expect("equal");
            let play = |call: Call| play_on(&by, &vec![call; ranks as usize], Some(&teams));
            let moved = play(Call::new(Kind::Allreduce).size(1200));
            assert!(all_know_all(&moved), "{local} on {hosts}");
            if hosts.is_power_of_two() {
                let rounds = 2 * (local - 1) + 2 * hosts.ilog2();
                assert_eq!(moved.rounds, rounds, "{local} on {hosts}");
                // on each host (L - 1) n twice, between hosts 2 (H - 1) n
                let inside = u64::from(2 * (local - 1) * hosts);
                let bytes = (inside + u64::from(2 * (hosts - 1))) * 1200;
                assert_eq!(moved.bytes, bytes, "{local} on {hosts}");
            }
            let moved = play(Call::new(Kind::Alltoall).size(10));
            assert!(all_know_all(&moved), "{local} on {hosts}");
            let bytes = ((local - 1) * hosts + (hosts - 1) * local) * 10 * ranks;
            assert_eq!(moved.bytes, u64::from(bytes));
            assert_eq!(moved.rounds, local + hosts - 2);
        }
    }
    let teams = |hosts: &[u32]| Teams::of(hosts.iter().map(|&host| HostId(host)));
    assert_eq!(teams(&[0, 0, 1]), None, "different numbers of ranks");
    assert_eq!(teams(&[0, 1, 2]), None, "one rank on each host");
    assert_eq!(teams(&[3, 3]), None, "one host");
}

#[test]
fn everyone_gets_everyones_part() {
    for ranks in RANKS {
        let sizes: Vec<u64> = (0..u64::from(ranks)).map(|r| 100 + r).collect();
        let all: u64 = sizes.iter().sum();
        for &(name, alltoall, _) in AlltoallBy::ALL {
            let by = Algorithms { alltoall, ..Algorithms::default() };
            assert!(all_know_all(&same(&by, Call::new(Kind::Alltoall).size(10), ranks)), "{name}");
            let moved = same(&by, Call::new(Kind::Alltoallv).sizes(sizes.clone()), ranks);
            assert!(all_know_all(&moved), "{name} of {ranks}");
            assert_eq!(moved.bytes, all * u64::from(ranks - 1), "{name} of {ranks}");
        }
        for &(name, allgather, _) in AllgatherBy::ALL {
            let by = Algorithms { allgather, ..Algorithms::default() };
            let moved = same(&by, Call::new(Kind::Allgatherv).sizes(sizes.clone()), ranks);
            assert!(all_know_all(&moved), "{name} of {ranks}");
            assert_eq!(moved.bytes, all * u64::from(ranks - 1), "{name} of {ranks}");
        }
        for &(name, reducescatter, _) in ReduceScatterBy::ALL {
            let by = Algorithms { reducescatter, ..Algorithms::default() };
            let moved = same(&by, Call::new(Kind::ReduceScatter).sizes(sizes.clone()), ranks);
            assert!(all_know_all(&moved), "{name} of {ranks}");
            assert_eq!(moved.bytes, all * u64::from(ranks - 1), "{name} of {ranks}");
        }
    }
}

#[test]
fn gathers_and_scatters_move_parts_along_their_tree() {
    for ranks in RANKS {
        let root = ranks - 1;
        for &(name, gather, _) in GatherBy::ALL {
            let by = Algorithms { gather, scatter: gather, ..Algorithms::default() };
            let moved = same(&by, Call::new(Kind::Gather).root(root).size(7), ranks);
            assert_eq!(moved.known[root as usize].len() as u32, ranks, "{name} of {ranks}");
            let moved = same(&by, Call::new(Kind::Scatter).root(root).size(7), ranks);
            assert!(moved.known.iter().all(|k| k.contains(&root)), "{name} of {ranks}");
            assert_eq!(moved.messages, u64::from(ranks - 1), "{name} of {ranks}");
        }
    }
    let moved = same(&Algorithms::default(), Call::new(Kind::Gather).size(10), 8);
    assert_eq!(moved.bytes, 10 * (4 + 2 * 2 + 4), "half of the ranks send one part, …");
}

#[test]
fn vectors_may_differ_between_ranks() {
    let by = Algorithms::default();
    let calls: Vec<Call> = (0..5)
        .map(|r| Call::new(Kind::Alltoallv).sizes((0..5).map(|to| 10 * r + to).collect()))
        .collect();
    assert!(all_know_all(&play(&by, &calls)));
    let gathered: Vec<Call> =
        (0..5).map(|r| Call::new(Kind::Gatherv).root(2).size(r * 3)).collect();
    assert_eq!(play(&by, &gathered).bytes, 3 * (1 + 3 + 4));
    let scattered = Call::new(Kind::Scatterv).root(1).sizes(vec![1, 2, 3, 4, 5]);
    assert_eq!(same(&by, scattered, 5).bytes, 13);
}

#[test]
fn scans_know_all_before_them() {
    for ranks in RANKS {
        for &(name, scan, _) in ScanBy::ALL {
            let by = Algorithms { scan, ..Algorithms::default() };
            for kind in [Kind::Scan, Kind::Exscan] {
                let moved = same(&by, Call::new(kind).size(8), ranks);
                for (r, known) in moved.known.iter().enumerate() {
                    let all: BTreeSet<u32> = (0..=r as u32).collect();
                    assert_eq!(*known, all, "{name} of {ranks}, rank {r}");
                }
            }
        }
    }
}
