//! Compares random MPI programs on one thread and on 2, 3, 4 and 8 threads. A program repeats a list of
//! calls, so that its connections open early; it is executed in parts from then on. Each transport and
//! kind of ports must have runs that were in parts to their end.
//! `EASTWEST_CASES=200` sets the number of programs, `EASTWEST_FIRST=100` the first one.

use eastwest_engine::random::Stream;
use eastwest_fuzz::generate::Case;
use eastwest_fuzz::oracles::compare_threads;
use eastwest_fuzz::sources::Files;
use eastwest_sim::scenario::{Context, read};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Numbers of threads that are compared with one thread.
const THREADS: [usize; 4] = [2, 3, 4, 8];

const TRANSPORTS: [&str; 2] = ["tcp", "rocev2"];

/// Kinds of ports, each as settings of the fabric.
const PORTS: [(&str, &str); 8] = [
    ("drop-tail", "queue = { kind = 'drop-tail', limit = '20 KB' }"),
    (
        "red",
        "queue = { kind = 'red', min = '10 KB', max = '40 KB', max_probability = 0.2, weight = 1, \
         limit = '60 KB' }",
    ),
    ("step-marking", "queue = { kind = 'step-marking', threshold = '12 KB', limit = '60 KB' }"),
    ("codel", "queue = { kind = 'codel', target = '20 us', interval = '200 us', limit = '60 KB' }"),
    ("fq-codel", "queue = { kind = 'fq-codel', target = '20 us', interval = '200 us' }"),
    ("shared buffer", "shared_buffer = { size = '60 KB' }"),
    ("pfc", "pfc = { priorities = [0], xoff = '6 KB' }"),
    (
        "pfc and step-marking",
        "queue = { kind = 'step-marking', threshold = '9 KB', limit = '1 MB' }\n\
         pfc = { priorities = [0], xoff = '20 KB' }",
    ),
];

/// Returns the number in an environment variable, or `otherwise` if it is not set.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |n| n.parse().expect("a number"))
}

/// Returns one of the values.
fn one<'a>(random: &mut Stream, values: &[&'a str]) -> &'a str {
    values[random.below(values.len() as u64) as usize]
}

/// Appends calls of all ranks to their traces. `d` is a distance between ranks.
fn add_calls(traces: &mut [String], kind: u64, (d, bytes): (usize, u64), compute: &[u64]) {
    let n = traces.len();
    for (r, trace) in traces.iter_mut().enumerate() {
        let (next, before) = ((r + d) % n, (r + n - d) % n);
        let computes = format!("{r} compute {}\n", compute[r]);
        let _ = match kind {
            0 => write!(
                trace,
                "{r} irecv {before} 3 {bytes}\n{r} isend {next} 3 {bytes}\n{computes}{r} waitall 2\n"
            ),
            // messages of two ranks, which match in the order of their arrival
            1 => write!(
                trace,
                "{r} irecv -1 4\n{r} irecv -1 4\n{r} isend {next} 4 {bytes}\n\
                 {computes}{r} isend {before} 4 {}\n{r} wait {r} {next} 4\n{r} waitall 3\n",
                bytes / 2
            ),
            // the receives are posted after the messages have arrived
            2 => write!(
                trace,
                "{r} isend {next} 5 {bytes}\n{computes}{r} recv {before} 5 {bytes}\n{r} waitall 1\n"
            ),
            3 => writeln!(trace, "{computes}{r} allreduce {bytes} {}", compute[r]),
            4 => write!(trace, "{r} iallreduce {bytes} 0\n{computes}{r} waitall 1\n"),
            5 => writeln!(trace, "{r} bcast {bytes} {d}"),
            6 => write!(trace, "{r} barrier\n{computes}"),
            7 => writeln!(trace, "{r} allgather {} {bytes}", bytes / 8),
            _ => write!(trace, "{r} allreduce {bytes} 0 in 1\n{computes}"),
        };
    }
}

/// Returns the trace of a random program of `ranks` ranks.
fn program(random: &mut Stream, ranks: usize) -> String {
    let mut traces: Vec<String> = (0..ranks)
        .map(|r| format!("{r} init\n{r} comm_split 1 {} {}\n", r % 2, ranks - r))
        .collect();
    let blocks: Vec<(u64, usize)> = (0..2 + random.below(3))
        .map(|_| (random.below(9), 1 + random.below(ranks as u64 - 1) as usize))
        .collect();
    for _ in 0..4 + random.below(6) {
        for &(kind, distance) in &blocks {
            let bytes = [0, 90, 3_000, 3_000, 30_000][random.below(5) as usize];
            let equal = random.below(3) * 1_000;
            let compute: Vec<u64> = (0..ranks)
                .map(|_| if random.below(2) > 0 { equal } else { random.below(40_000) })
                .collect();
            add_calls(&mut traces, kind, (distance, bytes), &compute);
        }
    }
    traces.iter_mut().enumerate().for_each(|(r, trace)| _ = writeln!(trace, "{r} finalize"));
    traces.concat()
}

/// Returns a random scenario of an MPI program with the trace `program.ti`, or of a training job.
fn scenario(random: &mut Stream, transport: &str, ports: &str, ranks: usize) -> String {
    let fabric = match random.below(3) {
        0 => "kind = 'fat-tree'\nk = 4".to_owned(),
        _ => format!(
            "kind = 'leaf-spine'\nleaves = 8\nhosts_per_leaf = 2\nspines = {}",
            1 + random.below(3)
        ),
    };
    let uplink = one(random, &["2.5 Gbit/s", "10 Gbit/s"]);
    let delay = one(random, &["1 us", "3 us"]);
    let jitter = one(random, &["0 s", "200 ns"]);
    let common = format!("placement = '{}'", one(random, &["block", "random"]));
    let work = match random.below(4) {
        0 => format!(
            "kind = 'training'\ndata = 4\npipeline = {}\nlayers = 4\nhidden = 64\nsequence = 32\n\
             micro_batches = 2\niterations = 4\nflops_per_s = 1e12\nranks_per_host = 1",
            ranks / 4
        ),
        _ => format!(
            // ranks of one host send messages to each other: all parts execute all ranks
            "kind = 'mpi'\ntrace = 'program.ti'\nranks_per_host = {}",
            1 + random.below(4) / 3
        ),
    };
    format!(
        "schema = 1\nname = 'mpi'\nseed = {}\n[fabric]\n{fabric}\nhost_rate = '10 Gbit/s'\n\
         host_delay = '1 us'\nuplink_rate = '{uplink}'\nuplink_delay = '{delay}'\nprocessing_jitter = '{jitter}'\n{ports}\n[measure]\nmpi_rows = {}\n\
         [[workload]]\nname = 'w'\n{work}\ntransport = '{transport}'\n{common}\n\
         eager_limit = '2 KB'\n[workload.collectives]\nallreduce = '{}'\n",
        random.below(1000),
        if random.below(4) > 0 { 1_000_000 } else { 50 },
        one(random, &["ring", "recursive-doubling", "rabenseifner"]),
    )
}

#[test]
fn random_mpi_programs_are_equal_on_any_number_of_threads() {
    let (first, cases) = (number("EASTWEST_FIRST", 0), number("EASTWEST_CASES", 32));
    let folder = std::env::temp_dir().join(format!("eastwest-mpi-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let context = Context { base_dir: folder.clone(), ..Context::default() };
    let mut counts: BTreeMap<(&str, &str), [u64; 2]> = BTreeMap::new();
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut unfinished, mut pauses) = (0, 0);
    for number in first..first + cases {
        let mut random = Stream::new(number, "programs");
        let transport = TRANSPORTS[number as usize % 2];
        let (name, ports) = PORTS[number as usize / 2 % PORTS.len()];
        let ranks = [4, 8, 16][random.below(3) as usize];
        let trace = program(&mut random, ranks);
        std::fs::write(folder.join("program.ti"), &trace).expect("a file");
        let text = scenario(&mut random, transport, ports, ranks);
        let scenario = read(&text, &context, &[]).unwrap_or_else(|e| panic!("{text}{trace}{e:?}"));
        let given = text.parse().expect("a table");
        let case = Case { given, files: Files::new(), scenario };
        let compared =
            compare_threads(&case, &context, &THREADS, number).unwrap_or_else(|failure| {
                panic!("case {number}: {}: {}\n{text}", failure.oracle, failure.message)
            });
        let Some(compared) = compared else {
            unfinished += 1; // too large, or a queue pair was given up
            continue;
        };
        pauses += compared.pauses * compared.runs.iter().filter(|run| run.is_ok()).count() as u64;
        for run in compared.runs {
            let of = counts.entry((transport, name)).or_default();
            of[0] += u64::from(run.is_ok());
            of[1] += 1;
            if let Err(why) = run {
                *reasons.entry(why).or_default() += 1;
            }
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
    println!("partitioned to the end, of all runs on several threads: {counts:?}\n{reasons:#?}");
    println!("{unfinished} programs do not end; {pauses} PFC pauses in parts");
    assert!(unfinished * 4 <= cases, "{unfinished} of {cases} programs do not end");
    assert!(pauses > 0, "no PFC pause in a run in parts");
    assert_eq!(counts.len(), TRANSPORTS.len() * PORTS.len());
    for (of, [in_parts, all]) in counts {
        assert!(in_parts * 2 >= all, "{of:?}: only {in_parts} of {all} runs were in parts");
    }
}
