//! Tests of MapReduce end to end: the bytes that TCP delivers equal, to the byte, the volumes of
//! the jobs.

use crate::harness::{Outcome, context, context_with, finish, outcome, root, scenario_in, shipped};
use std::collections::BTreeMap;

/// Returns the bytes of the flows with a purpose, such as `shuffle`, by job.
fn delivered(done: &Outcome, purpose: &str) -> BTreeMap<u64, u64> {
    let mut bytes = BTreeMap::new();
    let rows = done.texts("flows", "purpose").into_iter().zip(done.i64s("flows", "job"));
    for ((what, &job), n) in rows.zip(done.u64s("flows", "bytes")) {
        if what == purpose {
            *bytes.entry(job as u64).or_insert(0) += n;
        }
    }
    bytes
}

/// A row of the table of jobs.
#[derive(Debug)]
struct Job {
    number: u64,
    name: String,
    input: u64,
    shuffle: u64,
    local: u64,
    output: u64,
    reduces: u64,
}

/// Returns the rows of the table of jobs, ordered by job number.
fn jobs(done: &Outcome) -> Vec<Job> {
    let column = |name: &str| done.u64s("jobs", name);
    let (input, shuffle) = (column("input_bytes"), column("shuffle_bytes"));
    let (local, output) = (column("shuffle_local_bytes"), column("output_bytes"));
    let (number, reduces) = (column("job"), column("reduces"));
    let names = done.texts("jobs", "name");
    let mut jobs: Vec<Job> = (0..number.len())
        .map(|i| Job {
            number: number[i],
            name: names[i].to_owned(),
            input: input[i],
            shuffle: shuffle[i],
            local: local[i],
            output: output[i],
            reduces: reduces[i],
        })
        .collect();
    jobs.sort_by_key(|j| j.number);
    jobs
}

/// Checks shuffle, remote splits and replicas of every job against the tables of flows and tasks.
/// `copies` returns the number of output replicas of a job.
fn assert_exact(done: &Outcome, copies: impl Fn(&Job) -> u64) {
    done.assert_conserved();
    assert_eq!(done.count("flows.count"), done.count("flows.completed"));
    let (shuffled, split) = (delivered(done, "shuffle"), delivered(done, "map-input"));
    let replicas = delivered(done, "replica");
    let of = |map: &BTreeMap<u64, u64>, job: u64| map.get(&job).copied().unwrap_or(0);
    let (kinds, places) = (done.texts("tasks", "kind"), done.texts("tasks", "locality"));
    let (numbers, read) = (done.u64s("tasks", "job"), done.u64s("tasks", "bytes_in"));
    let written = done.u64s("tasks", "bytes_out");
    for job in jobs(done) {
        assert_eq!(of(&shuffled, job.number), job.shuffle - job.local, "shuffle of {job:?}");
        assert_eq!(
            of(&replicas, job.number),
            job.output * (copies(&job) - 1),
            "replicas of {job:?}"
        );
        let sum = |values: &[u64], kind: &str, wanted: &dyn Fn(&str) -> bool| {
            let rows = (0..numbers.len()).filter(|&i| numbers[i] == job.number);
            rows.filter(|&i| kinds[i] == kind && wanted(places[i])).map(|i| values[i]).sum::<u64>()
        };
        assert_eq!(sum(&read, "map", &|_| true), job.input, "input of {job:?}");
        let remote = sum(&read, "map", &|place| place == "rack" || place == "remote");
        assert_eq!(of(&split, job.number), remote, "remote splits of {job:?}");
        if job.reduces > 0 {
            assert_eq!(sum(&written, "map", &|_| true), job.shuffle, "spills of {job:?}");
            assert_eq!(sum(&read, "reduce", &|_| true), job.shuffle, "fetched by {job:?}");
            assert_eq!(sum(&written, "reduce", &|_| true), job.output, "output of {job:?}");
        } else {
            assert_eq!((job.shuffle, sum(&written, "map", &|_| true)), (0, job.output), "{job:?}");
        }
    }
}

/// Returns the first rows of the trace that ships with Eastwest: its text, and (name, [input,
/// shuffle, output] in bytes) of each job.
fn trace_rows(rows: usize) -> (String, Vec<(String, [u64; 3])>) {
    let path = "python/eastwest/data/swim/FB-2009_samples_24_times_1hr_0.tsv";
    let text = std::fs::read_to_string(root().join(path)).expect("the trace ships");
    let head: String = text.lines().take(rows).flat_map(|line| [line, "\n"]).collect();
    let parsed = head.lines().map(|line| {
        let cells: Vec<&str> = line.split('\t').collect();
        let size = |i: usize| cells[i].parse().expect("a size");
        (cells[0].to_owned(), [size(3), size(4), size(5)])
    });
    let parsed = parsed.collect();
    (head, parsed)
}

/// Returns `bytes · 20 / 600`, rounded to the nearest integer, halves upwards: the volume of a
/// trace of 600 nodes on 20 nodes.
fn scaled(bytes: u64) -> u64 {
    (bytes * 2 * 20 + 600) / (2 * 600)
}

#[test]
fn the_first_jobs_of_the_facebook_trace_move_their_scaled_bytes() {
    let (text, rows) = trace_rows(20);
    let context = context_with("first20.tsv", &text);
    let sets = [
        ("workload.hadoop.trace", "first20.tsv"),
        ("workload.hadoop.trace_to", "24 h"),
        ("workload.hadoop.original_nodes", "600"),
    ];
    let done = finish(&scenario_in(&context, &shipped("demo"), &sets));
    assert_exact(&done, |_| 3);
    let jobs = jobs(&done);
    assert_eq!(jobs.len(), rows.len());
    for (job, (name, bytes)) in jobs.iter().zip(&rows) {
        assert_eq!(&job.name, name);
        assert_eq!([job.input, job.shuffle, job.output], bytes.map(scaled), "{name}");
    }
    let all: u64 = jobs.iter().map(|j| j.shuffle).sum();
    assert!(all > 1_000_000, "hardly any shuffle: {all} B");
}

#[test]
fn every_job_of_the_first_ninety_minutes_finishes() {
    let sets = [("workload.hadoop.trace_to", "90 min")];
    let done = finish(&scenario_in(&context(), &shipped("demo"), &sets));
    assert_exact(&done, |_| 3);
    let (_, rows) = trace_rows(5_894);
    let submitted = done.f64s("jobs", "submitted_s");
    assert!(submitted.iter().all(|&s| s < 5_400.0));
    let finished = done.f64s("jobs", "finished_s");
    assert!(submitted.iter().zip(finished).all(|(s, f)| f > s));
    let jobs = jobs(&done);
    assert_eq!(jobs.len() as u64, done.count("jobs.count"));
    assert!(jobs.len() > 100, "{} jobs", jobs.len());
    let numbers: Vec<u64> = jobs.iter().map(|j| j.number).collect();
    assert_eq!(numbers, (0..jobs.len() as u64).collect::<Vec<_>>());
    for (job, (name, bytes)) in jobs.iter().zip(&rows) {
        assert_eq!(&job.name, name);
        assert_eq!([job.input, job.shuffle, job.output], bytes.map(scaled), "{name}");
    }
}

/// Returns a cluster of 7 workers in two racks, with queues that lose packets; `job` and `hdfs` are
/// further lines.
fn odd(job: &str, hdfs: &str) -> String {
    format!(
        "schema = 1\n[fabric]\nkind = 'leaf-spine'\nleaves = 2\nhosts_per_leaf = 4\nspines = 2\n\
         host_rate = '1 Gbit/s'\nuplink_rate = '1 Gbit/s'\nqueue = {{ limit = '10 packets' }}\n\
         [[workload]]\nname = 'hadoop'\nkind = 'mapreduce'\nmaster = 'h7'\nsplit_bytes = '1 MB'\n\
         bytes_per_reducer = '2 MB'\n[workload.hdfs]\n{hdfs}\n[[workload.job]]\n{job}\n"
    )
}

#[test]
fn odd_sizes_are_exact_to_the_byte() {
    let custom = |input: u64, shuffle: f64, output: f64, more: &str| {
        format!(
            "kind = 'custom'\ninput = '{input} B'\nshuffle_ratio = {shuffle}\n\
             output_ratio = {output}\n{more}"
        )
    };
    let cases = [
        (custom(1, 1.0, 1.0, "maps = 3\nreduces = 5"), "", 3),
        (custom(0, 0.0, 0.0, ""), "", 3),
        (custom(10_000_019, 0.37, 0.11, "maps = 13\nreduces = 7"), "output_replication = 2", 2),
        (custom(7_654_321, 0.0, 0.5, ""), "output_replication = 3\nblock_bytes = '100001 B'", 3),
        (custom(3_000_001, 1.0, 3.0, "output_replication = 1"), "", 1),
        (custom(1_000_003, 2.5, 1.0, "maps = 1\nreduces = 14"), "output_replication = 7", 7),
        (custom(999_999, 1.0, 1.0, ""), "replication = 1\nwrite_chunk_bytes = '1 KB'", 3),
    ];
    for (job, hdfs, copies) in cases {
        let done = outcome(&odd(&job, hdfs), &[]);
        assert_eq!(done.count("jobs.count"), 1, "{job}");
        assert_exact(&done, |_| copies);
    }
}

#[test]
fn jobs_share_the_cluster_and_each_keeps_its_bytes() {
    let job = "kind = 'terasort'\ninput = '3000007 B'\ncount = 4\ninterarrival = '1 s'\n\
               [[workload.job]]\nkind = 'index'\ninput = '5 MB'\n\
               [[workload.job]]\nkind = 'search'\ninput = '2000001 B'\nsubmit = '2 s'";
    for scheduler in ["fifo", "fair"] {
        let text = odd(job, "output_replication = 2");
        let done = outcome(&text, &[("workload.hadoop.scheduler", scheduler)]);
        assert_eq!(done.count("jobs.count"), 6);
        assert_exact(&done, |job| if job.name.starts_with("terasort") { 1 } else { 2 });
    }
}

/// Checks the job of chapter 5 of E-EON on a tenth of its nodes, with flows of equal size (400 KB):
/// deep buffers lose almost no packets, packets wait longer, and reduces fetch faster.
#[test]
fn deep_buffers_lose_less_than_shallow_ones_and_wait_longer() {
    let small = |limit| {
        let sets = [
            ("fabric.hosts_per_leaf", "4"),
            ("fabric.uplink_rate", "1 Gbit/s"),
            ("workload.terasort.master", "h15"),
            ("workload.terasort.job.0.input", "120 MB"),
            ("workload.terasort.job.0.maps", "20"),
            ("workload.terasort.job.0.reduces", "15"),
            ("fabric.queue.limit", limit),
        ];
        let done = finish(&scenario_in(&context(), &shipped("s3"), &sets));
        assert_exact(&done, |_| 1);
        done
    };
    let (shallow, deep) = (small("20 packets"), small("2000 packets"));
    let lost = |done: &Outcome| done.count("packets.dropped");
    println!("lost {} and {}", lost(&shallow), lost(&deep));
    assert!(lost(&shallow) > 200 && lost(&deep) * 20 < lost(&shallow));
    let latency = |done: &Outcome| done.number("latency_us.classes.terasort.mean");
    println!("latency {} and {} us", latency(&shallow), latency(&deep));
    assert!(latency(&deep) > 1.5 * latency(&shallow));
    let fetch = |done: &Outcome| done.number("flows.by_purpose.shuffle.fct_us.mean");
    println!("fetches take {} and {} us", fetch(&shallow), fetch(&deep));
    assert!(fetch(&deep) < fetch(&shallow));
    let runtime = |done: &Outcome| done.number("jobs.runtime_s.mean");
    println!("runtime {} and {} s", runtime(&shallow), runtime(&deep));
    assert!(runtime(&deep) < runtime(&shallow) + 0.1);
}
