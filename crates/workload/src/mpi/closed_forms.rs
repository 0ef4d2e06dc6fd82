//! Durations of collective calls on an ideal network, compared with the formulas of the papers.
//!
//! Every host sends one message and receives one message at a time, at a rate B. A message of n
//! bytes takes α + n / B. Each of p hosts has one rank. Formulas: Thakur, Rabenseifner and Gropp
//! (IJHPCA 2005), sections 4.1 to 4.5; Sanders, Speck and Träff (2009).

use super::collective::{
    Algorithms, AllgatherBy, AllreduceBy, AlltoallBy, BarrierBy, BcastBy, GatherBy, ReduceBy,
    ReduceScatterBy, ScanBy,
};
use super::tests::{Folder, config};
use super::{Mpi, MpiConfig, Program};
use crate::ideal::{Ideal, Limit, cluster};
use eastwest_types::{Rate, Time};

const RATE: Rate = Rate::gbit(100);
const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
/// Numbers of ranks and sizes of the tests that are not run with all numbers and sizes.
const SOME: ([u32; 2], [u64; 3]) = ([8, 32], [KIB, 64 * KIB, 4 * MIB]);

/// Returns the duration in seconds of a call that all of `ranks` ranks make at the same time.
fn duration(limit: Limit, ranks: u32, call: &str, algorithms: &Algorithms) -> f64 {
    let folder = Folder::new(&format!("closed-{:?}", std::thread::current().id()));
    let lines: String = (0..ranks).map(|rank| format!("{rank} {call}\n")).collect();
    let program = Program::Merged(folder.file("trace", lines.as_bytes()), ranks);
    let algorithms = algorithms.clone();
    let config = MpiConfig { eager_limit: u64::MAX, envelope: 0, algorithms, ..config(program) };
    let mut mpi = Mpi::new(config, &cluster(ranks as usize)).expect("possible");
    let run = Ideal::run_at(limit, |now, event, out| mpi.handle(now, event, out));
    assert!(run.finished, "{:?}", run.failed);
    run.ended.since(Time::ZERO).as_secs_f64()
}

/// Latency and time of a byte in seconds, ranks, binary logarithm of the ranks, bytes of the call.
struct At {
    a: f64,
    b: f64,
    p: f64,
    l: f64,
    n: f64,
}

impl At {
    fn new(ranks: u32, bytes: u64) -> At {
        let (a, b) = (Ideal::LATENCY.as_secs_f64(), 8.0 / RATE.0 as f64);
        let p = f64::from(ranks);
        At { a, b, p, l: p.log2().ceil(), n: bytes as f64 }
    }

    /// Returns the duration of `rounds` rounds in which every rank sends `bytes` bytes.
    fn rounds(&self, rounds: f64, bytes: f64) -> f64 {
        rounds * (self.a + bytes * self.b)
    }

    /// Returns the duration of a ring of `rounds` rounds with `lanes` lanes, in which messages have
    /// `bytes` bytes: the lanes share the ports, and hide the latency behind each other.
    fn ring(&self, rounds: f64, lanes: f64, bytes: f64) -> f64 {
        let (alone, all) = (self.a + bytes * self.b, lanes * bytes * self.b);
        (rounds - 1.0) * alone.max(all) + all + self.a
    }
}

fn compare(what: &str, measured: f64, formula: f64) {
    let error = (measured - formula).abs() / formula;
    assert!(error < 0.02, "{what}: {measured} s, expected {formula} s ({:.1} %)", error * 100.0);
}

type Case = (&'static str, Algorithms, fn(&At) -> f64);

/// Returns calls with `N` in the place of their size, algorithms and formulas for a power of two of
/// ranks.
fn cases() -> Vec<Case> {
    let by = Algorithms::default;
    let bcast = |bcast| Algorithms { bcast, ..by() };
    let reduce = |reduce| Algorithms { reduce, ..by() };
    let allreduce = |allreduce| Algorithms { allreduce, ..by() };
    let alltoall = |alltoall| Algorithms { alltoall, ..by() };
    let gather = |gather| Algorithms { gather, scatter: gather, ..by() };
    let allgather = |allgather| Algorithms { allgather, ..by() };
    let barrier = |barrier| Algorithms { barrier, ..by() };
    let scan = |scan| Algorithms { scan, ..by() };
    vec![
        ("barrier", barrier(BarrierBy::Dissemination), |x| x.l * x.a),
        ("barrier", barrier(BarrierBy::RecursiveDoubling), |x| x.l * x.a),
        ("barrier", barrier(BarrierBy::Tree), |x| 2.0 * x.l * x.a),
        ("bcast N", bcast(BcastBy::Binomial), |x| x.rounds(x.l, x.n)),
        ("bcast N", bcast(BcastBy::Chain), |x| x.rounds(x.p - 1.0, x.n)),
        ("bcast N", bcast(BcastBy::ScatterDoubling), |x| {
            2.0 * x.l * x.a + 2.0 * (x.p - 1.0) / x.p * x.n * x.b
        }),
        ("bcast N", bcast(BcastBy::ScatterRing), |x| {
            (x.l + x.p - 1.0) * x.a + 2.0 * (x.p - 1.0) / x.p * x.n * x.b
        }),
        ("reduce N 0", reduce(ReduceBy::Binomial), |x| x.rounds(x.l, x.n)),
        ("reduce N 0", reduce(ReduceBy::Chain), |x| x.rounds(x.p - 1.0, x.n)),
        ("reduce N 0", reduce(ReduceBy::Rabenseifner), |x| {
            2.0 * x.l * x.a + 2.0 * (x.p - 1.0) / x.p * x.n * x.b
        }),
        ("allreduce N 0", allreduce(AllreduceBy::RecursiveDoubling), |x| x.rounds(x.l, x.n)),
        ("allreduce N 0", allreduce(AllreduceBy::Rabenseifner), |x| {
            2.0 * x.l * x.a + 2.0 * (x.p - 1.0) / x.p * x.n * x.b
        }),
        ("allreduce N 0", allreduce(AllreduceBy::ReduceBcast), |x| x.rounds(2.0 * x.l, x.n)),
        ("alltoall N N", alltoall(AlltoallBy::Pairwise), |x| x.rounds(x.p - 1.0, x.n)),
        ("alltoall N N", alltoall(AlltoallBy::Linear), |x| x.a + (x.p - 1.0) * x.n * x.b),
        ("alltoall N N", alltoall(AlltoallBy::Bruck), |x| x.rounds(x.l, x.p / 2.0 * x.n)),
        ("gather N N 0", gather(GatherBy::Binomial), |x| x.l * x.a + (x.p - 1.0) * x.n * x.b),
        ("gather N N 0", gather(GatherBy::Linear), |x| x.a + (x.p - 1.0) * x.n * x.b),
        ("scatter N N 0", gather(GatherBy::Binomial), |x| x.l * x.a + (x.p - 1.0) * x.n * x.b),
        ("allgather N N", allgather(AllgatherBy::Ring), |x| x.rounds(x.p - 1.0, x.n)),
        ("allgather N N", allgather(AllgatherBy::RecursiveDoubling), |x| {
            x.l * x.a + (x.p - 1.0) * x.n * x.b
        }),
        ("allgather N N", allgather(AllgatherBy::Bruck), |x| x.l * x.a + (x.p - 1.0) * x.n * x.b),
        ("scan N 0", scan(ScanBy::Linear), |x| x.rounds(x.p - 1.0, x.n)),
    ]
}

/// Compares all algorithms with one message at a time, and rings and trees with channels and
/// chunks, for numbers of ranks that are powers of two.
fn compare_all(ranks: &[u32], sizes: &[u64]) {
    let host = Limit::Host(RATE);
    for &p in ranks {
        for &bytes in sizes {
            let x = At::new(p, bytes);
            for (call, by, formula) in cases() {
                let what = format!("{call} of {p} ranks, {bytes} B, {by:?}");
                let call = call.replace('N', &bytes.to_string());
                compare(&what, duration(host, p, &call, &by), formula(&x));
            }
            let mut call = String::from("reducescatter");
            (0..p).for_each(|_| call.push_str(&format!(" {bytes}")));
            for (reducescatter, rounds) in [
                (ReduceScatterBy::Pairwise, x.p - 1.0),
                (ReduceScatterBy::RecursiveHalving, x.l),
                (ReduceScatterBy::Ring, x.p - 1.0),
            ] {
                let by = Algorithms { reducescatter, ..Algorithms::default() };
                let formula = rounds * x.a + (x.p - 1.0) * x.n * x.b;
                let measured = duration(host, p, &format!("{call} 0"), &by);
                compare(
                    &format!("reducescatter of {p} ranks, {bytes} B, {by:?}"),
                    measured,
                    formula,
                );
            }
            compare_rings(p, bytes);
        }
    }
}

/// Compares rings, chains and double trees with channels and chunks.
fn compare_rings(ranks: u32, bytes: u64) {
    let by = Algorithms { allreduce: AllreduceBy::Ring, ..Algorithms::default() };
    let x = At::new(ranks, bytes);
    let call = format!("allreduce {bytes} 0");
    for (channels, chunk) in [(1, None), (2, None), (2, Some(64 * KIB)), (1, Some(16 * KIB))] {
        let host = Limit::Host(RATE);
        let by = Algorithms { channels, chunk, ..by.clone() };
        let chunks = |largest: f64, trees: f64| {
            let of_channel = largest / f64::from(channels) / trees;
            chunk.map_or(1.0, |chunk| (of_channel / chunk as f64).ceil())
        };
        let what = format!("{bytes} B, {ranks} ranks, {channels} channels, chunks of {chunk:?}");
        let part = x.n / x.p;
        let lanes = chunks(part, 1.0) * f64::from(channels);
        let formula = x.ring(2.0 * (x.p - 1.0), lanes, part / lanes);
        compare(&format!("ring, {what}"), duration(host, ranks, &call, &by), formula);

        let by = Algorithms { bcast: BcastBy::Chain, ..by };
        let lanes = chunks(x.n, 1.0) * f64::from(channels);
        let formula = x.rounds(x.p - 1.0, x.n / lanes) + (lanes - 1.0) * x.n / lanes * x.b;
        compare(
            &format!("chain, {what}"),
            duration(host, ranks, &format!("bcast {bytes}"), &by),
            formula,
        );

        let by = Algorithms { allreduce: AllreduceBy::DoubleTree, ..by };
        let lanes = chunks(x.n, 2.0) * f64::from(channels);
        let chunk = x.n / 2.0 / lanes;
        let formula = x.rounds(2.0 * x.l, chunk) + (lanes - 1.0) * chunk * x.b;
        if channels == 2 {
            // each tree has a channel: no connection carries messages of both
            let link = Limit::Connection(RATE);
            compare(&format!("double tree, {what}"), duration(link, ranks, &call, &by), formula);
        }
        // where a host has one port, it sends and receives all data twice
        let (measured, bound) = (duration(host, ranks, &call, &by), 2.0 * x.n * x.b);
        assert!(measured >= bound * (x.p - 2.0) / x.p, "double tree, {what}: {measured} s");
        if lanes >= 16.0 * x.l {
            let most = 1.3 * bound + 2.0 * x.l * (x.a + chunk * x.b);
            assert!(measured < most, "double tree, {what}: {measured} s, more than {most} s");
        }
    }
}

#[test]
fn calls_take_the_times_of_their_formulas() {
    compare_all(&SOME.0, &SOME.1);
    compare_rings(11, MIB);
}

/// Compares up to 256 ranks and 64 MiB, and rings and trees of 1,024 ranks: some minutes.
#[test]
#[ignore = "some minutes: docs/validation/collectives.md"]
fn calls_of_many_ranks_take_the_times_of_their_formulas() {
    let sizes: Vec<u64> = (0..=16).map(|power| KIB << power).collect();
    for ranks in [8, 16, 32, 64, 128, 256] {
        for bytes in &sizes {
            compare_rings(ranks, *bytes);
        }
        compare_all(&[ranks], &[KIB, MIB, 64 * MIB]);
    }
    compare_rings(1024, MIB);
}
