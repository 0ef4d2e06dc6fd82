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
use std::collections::BTreeMap;

const RATE: Rate = Rate::gbit(100);
const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

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
        At { a, b, p, l: f64::from(ranks.next_power_of_two().ilog2()), n: bytes as f64 }
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

/// Greatest error of each call.
type Errors = BTreeMap<String, f64>;

/// Compares a duration with its formula.
fn compare(errors: &mut Errors, call: &str, what: &str, measured: f64, formula: f64) {
    let error = (measured - formula).abs() / formula;
    let percent = error * 100.0;
    assert!(error < 0.02, "{call}, {what}: {measured} s, expected {formula} s ({percent:.1} %)");
    let greatest = errors.entry(call.to_owned()).or_insert(0.0);
    *greatest = greatest.max(error);
}

type Case = (&'static str, Algorithms, fn(&At) -> f64);

/// Returns calls with the names of their algorithms, the settings, and formulas for a power of two
/// of ranks.
fn cases() -> Vec<Case> {
    let by = Algorithms::default;
    let bcast = |bcast| Algorithms { bcast, ..by() };
    let reduce = |reduce| Algorithms { reduce, ..by() };
    let allreduce = |allreduce| Algorithms { allreduce, ..by() };
    let alltoall = |alltoall| Algorithms { alltoall, ..by() };
    let gather = |gather| Algorithms { gather, scatter: gather, ..by() };
    let allgather = |allgather| Algorithms { allgather, ..by() };
    let reducescatter = |reducescatter| Algorithms { reducescatter, ..by() };
    let barrier = |barrier| Algorithms { barrier, ..by() };
    let scan = |scan| Algorithms { scan, ..by() };
    vec![
        ("barrier dissemination", barrier(BarrierBy::Dissemination), |x| x.l * x.a),
        ("barrier recursive-doubling", barrier(BarrierBy::RecursiveDoubling), |x| x.l * x.a),
        ("barrier tree", barrier(BarrierBy::Tree), |x| 2.0 * x.l * x.a),
        ("bcast binomial", bcast(BcastBy::Binomial), |x| x.rounds(x.l, x.n)),
        ("bcast chain", bcast(BcastBy::Chain), |x| x.rounds(x.p - 1.0, x.n)),
        ("bcast scatter-doubling", bcast(BcastBy::ScatterDoubling), |x| {
            2.0 * x.l * x.a + 2.0 * (x.p - 1.0) / x.p * x.n * x.b
        }),
        ("bcast scatter-ring", bcast(BcastBy::ScatterRing), |x| {
            (x.l + x.p - 1.0) * x.a + 2.0 * (x.p - 1.0) / x.p * x.n * x.b
        }),
        ("reduce binomial", reduce(ReduceBy::Binomial), |x| x.rounds(x.l, x.n)),
        ("reduce chain", reduce(ReduceBy::Chain), |x| x.rounds(x.p - 1.0, x.n)),
        ("reduce rabenseifner", reduce(ReduceBy::Rabenseifner), |x| {
            2.0 * x.l * x.a + 2.0 * (x.p - 1.0) / x.p * x.n * x.b
        }),
        ("allreduce recursive-doubling", allreduce(AllreduceBy::RecursiveDoubling), |x| {
            x.rounds(x.l, x.n)
        }),
        ("allreduce rabenseifner", allreduce(AllreduceBy::Rabenseifner), |x| {
            2.0 * x.l * x.a + 2.0 * (x.p - 1.0) / x.p * x.n * x.b
        }),
        ("allreduce reduce-bcast", allreduce(AllreduceBy::ReduceBcast), |x| {
            x.rounds(2.0 * x.l, x.n)
        }),
        ("alltoall pairwise", alltoall(AlltoallBy::Pairwise), |x| x.rounds(x.p - 1.0, x.n)),
        ("alltoall linear", alltoall(AlltoallBy::Linear), |x| x.a + (x.p - 1.0) * x.n * x.b),
        ("alltoall bruck", alltoall(AlltoallBy::Bruck), |x| x.rounds(x.l, x.p / 2.0 * x.n)),
        ("gather binomial", gather(GatherBy::Binomial), |x| x.l * x.a + (x.p - 1.0) * x.n * x.b),
        ("gather linear", gather(GatherBy::Linear), |x| x.a + (x.p - 1.0) * x.n * x.b),
        ("scatter binomial", gather(GatherBy::Binomial), |x| x.l * x.a + (x.p - 1.0) * x.n * x.b),
        ("allgather ring", allgather(AllgatherBy::Ring), |x| x.rounds(x.p - 1.0, x.n)),
        ("allgather recursive-doubling", allgather(AllgatherBy::RecursiveDoubling), |x| {
            x.l * x.a + (x.p - 1.0) * x.n * x.b
        }),
        ("allgather bruck", allgather(AllgatherBy::Bruck), |x| x.l * x.a + (x.p - 1.0) * x.n * x.b),
        ("reducescatter pairwise", reducescatter(ReduceScatterBy::Pairwise), |x| {
            x.rounds(x.p - 1.0, x.n)
        }),
        ("reducescatter ring", reducescatter(ReduceScatterBy::Ring), |x| x.rounds(x.p - 1.0, x.n)),
        (
            "reducescatter recursive-halving",
            reducescatter(ReduceScatterBy::RecursiveHalving),
            |x| x.l * x.a + (x.p - 1.0) * x.n * x.b,
        ),
        ("scan linear", scan(ScanBy::Linear), |x| x.rounds(x.p - 1.0, x.n)),
    ]
}

/// Returns the record of a call of `ranks` ranks; `bytes` is the size of the vector or of each part.
fn record(call: &str, ranks: u32, bytes: u64) -> String {
    match call {
        "barrier" => call.to_owned(),
        "bcast" => format!("{call} {bytes}"),
        "alltoall" | "allgather" => format!("{call} {bytes} {bytes}"),
        "gather" | "scatter" => format!("{call} {bytes} {bytes} 0"),
        "reducescatter" => format!("{call}{} 0", format!(" {bytes}").repeat(ranks as usize)),
        _ => format!("{call} {bytes} 0"),
    }
}

/// Compares all algorithms with one message at a time, for a power of two of ranks.
fn compare_calls(errors: &mut Errors, ranks: u32, bytes: u64) {
    for (name, by, formula) in cases() {
        let (call, _) = name.split_once(' ').expect("call and algorithm");
        let measured = duration(Limit::Host(RATE), ranks, &record(call, ranks, bytes), &by);
        let what = format!("{ranks} ranks, {bytes} B");
        compare(errors, name, &what, measured, formula(&At::new(ranks, bytes)));
    }
}

/// Compares rings, chains and double trees with channels and chunks.
fn compare_lanes(errors: &mut Errors, ranks: u32, bytes: u64) {
    let x = At::new(ranks, bytes);
    let host = Limit::Host(RATE);
    let (allreduce, bcast) = (record("allreduce", ranks, bytes), record("bcast", ranks, bytes));
    for (channels, chunk) in [(1, None), (2, None), (2, Some(64 * KIB)), (1, Some(16 * KIB))] {
        let by = Algorithms {
            allreduce: AllreduceBy::Ring,
            bcast: BcastBy::Chain,
            channels,
            chunk,
            ..Algorithms::default()
        };
        let chunks = |largest: f64, trees: f64| {
            let of_channel = largest / f64::from(channels) / trees;
            chunk.map_or(1.0, |chunk| (of_channel / chunk as f64).ceil())
        };
        let what = format!("{bytes} B, {ranks} ranks, {channels} channels, chunks of {chunk:?}");
        let part = x.n / x.p;
        let lanes = chunks(part, 1.0) * f64::from(channels);
        let formula = x.ring(2.0 * (x.p - 1.0), lanes, part / lanes);
        let measured = duration(host, ranks, &allreduce, &by);
        compare(errors, "allreduce ring in lanes", &what, measured, formula);

        let lanes = chunks(x.n, 1.0) * f64::from(channels);
        let formula = x.rounds(x.p - 1.0, x.n / lanes) + (lanes - 1.0) * x.n / lanes * x.b;
        let measured = duration(host, ranks, &bcast, &by);
        compare(errors, "bcast chain in lanes", &what, measured, formula);

        let by = Algorithms { allreduce: AllreduceBy::DoubleTree, ..by };
        let lanes = chunks(x.n, 2.0) * f64::from(channels);
        let chunk = x.n / 2.0 / lanes;
        let formula = x.rounds(2.0 * x.l, chunk) + (lanes - 1.0) * chunk * x.b;
        if channels == 2 {
            // each tree has a channel: no connection carries messages of both
            let measured = duration(Limit::Connection(RATE), ranks, &allreduce, &by);
            compare(errors, "allreduce double-tree in lanes", &what, measured, formula);
        }
        // where a host has one port, it sends and receives all data twice
        let (measured, bound) = (duration(host, ranks, &allreduce, &by), 2.0 * x.n * x.b);
        assert!(measured >= bound * (x.p - 2.0) / x.p, "double tree, {what}: {measured} s");
        if lanes >= 16.0 * x.l {
            let most = 1.3 * bound + 2.0 * x.l * (x.a + chunk * x.b);
            assert!(measured < most, "double tree, {what}: {measured} s, more than {most} s");
        }
    }
}

#[test]
fn calls_take_the_times_of_their_formulas() {
    let errors = &mut Errors::new();
    for ranks in [8, 32] {
        for bytes in [KIB, 64 * KIB, 4 * MIB] {
            compare_calls(errors, ranks, bytes);
            compare_lanes(errors, ranks, bytes);
        }
    }
    compare_lanes(errors, 11, MIB);
}

/// Compares up to 256 ranks and 64 MiB, and 1,024 ranks at 1 MiB; prints the greatest errors.
#[test]
#[ignore = "some minutes: docs/validation/collectives.md"]
fn calls_of_many_ranks_take_the_times_of_their_formulas() {
    let errors = &mut Errors::new();
    for ranks in [8, 16, 32, 64, 128, 256] {
        for power in 0..=16 {
            compare_lanes(errors, ranks, KIB << power);
            if power % 2 == 0 {
                compare_calls(errors, ranks, KIB << power);
            }
        }
    }
    let many = [("ring", AllreduceBy::Ring), ("rabenseifner", AllreduceBy::Rabenseifner)];
    for (name, allreduce) in many {
        let by = Algorithms { allreduce, ..Algorithms::default() };
        let x = At::new(1024, MIB);
        let rounds = if allreduce == AllreduceBy::Ring { x.p - 1.0 } else { x.l };
        let formula = 2.0 * rounds * x.a + 2.0 * (x.p - 1.0) / x.p * x.n * x.b;
        let measured = duration(Limit::Host(RATE), 1024, &record("allreduce", 1024, MIB), &by);
        compare(errors, &format!("allreduce {name}"), "1,024 ranks", measured, formula);
    }
    compare_lanes(errors, 1024, MIB);
    for (call, error) in errors {
        println!("| {call} | {:.3} % |", *error * 100.0);
    }
}
