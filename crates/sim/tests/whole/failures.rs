//! Tests of Hadoop on a network with failures (`[[fault]]`) of nodes, cables and switches: every
//! job ends, with all its bytes or with a reason.

use crate::harness::{Outcome, outcome};
use eastwest_engine::random::Stream;

/// Returns a cluster of six workers and a master in two racks, with a job of eight maps and two
/// reduces; `more` are further lines.
fn text(framework: &str, more: &str) -> String {
    format!(
        "schema = 1\n[fabric]\nleaves = 2\nhosts_per_leaf = 4\nspines = 1\n\
         host_rate = '1 Gbit/s'\nuplink_rate = '2 Gbit/s'\n\
         [[workload]]\nname = 'hadoop'\nkind = 'mapreduce'\nframework = '{framework}'\n\
         [workload.control]\nslowstart = 0.5\n\
         [workload.failures]\nexpiry = '30 s'\nfetch_timeout = '20 s'\nblock_timeout = '20 s'\n\
         call_timeout = '20 s'\n\
         [[workload.job]]\nkind = 'terasort'\ninput = '256 MB'\nmaps = 8\nreduces = 2\n\
         output_replication = 2\n{more}"
    )
}

fn down(on: &str, from: &str, to: &str) -> String {
    let to = if to.is_empty() { String::new() } else { format!("until = '{to}'\n") };
    format!("[[fault]]\non = '{on}'\nkind = 'down'\nfrom = '{from}'\n{to}")
}

fn assert_done(done: &Outcome, what: &str) {
    done.assert_conserved();
    assert_eq!(done.texts("jobs", "failed"), [""], "{what}");
    let fetched: u64 = {
        let kinds = done.texts("tasks", "kind");
        let bytes = done.u64s("tasks", "bytes_in");
        let rows = kinds.iter().zip(bytes);
        rows.filter(|(kind, _)| **kind == "reduce").map(|(_, bytes)| bytes).sum()
    };
    assert!(fetched >= 256_000_000, "{what}: {fetched}");
}

#[test]
fn jobs_outlive_a_node_a_cable_and_a_switch() {
    for framework in ["mr1", "yarn"] {
        let calm = outcome(&text(framework, ""), &[]);
        assert_done(&calm, framework);
        for fault in [
            down("h2", "7 s", ""),
            down("h5", "9 s", ""),
            down("h1--leaf0", "8 s", "10 s"),
            down("spine0", "8 s", "12 s"),
        ] {
            let done = outcome(&text(framework, &fault), &[]);
            assert_done(&done, &fault);
        }
    }
}

#[test]
fn a_dead_datanode_s_blocks_are_copied_over_the_network() {
    // A second job keeps the cluster running until the blocks of the dead datanode have been
    // copied.
    let later = "[[workload.job]]\nkind = 'hdfs-read'\ninput = '64 MB'\nsubmit = '120 s'\n";
    let text = text("mr1", &format!("{}{later}", down("h2", "7 s", "")))
        .replace("[workload.control]", "hdfs = { recheck = '10 s' }\n[workload.control]");
    let done = outcome(&text, &[]);
    done.assert_conserved();
    assert_eq!(done.texts("jobs", "failed"), ["", ""]);
    let (purposes, bytes) = (done.texts("flows", "purpose"), done.u64s("flows", "bytes"));
    let ends = done.u64s("flows", "src").into_iter().zip(done.u64s("flows", "dst"));
    let rows = purposes.iter().zip(bytes).zip(ends);
    let copies: Vec<_> = rows.filter(|((purpose, _), _)| **purpose == "re-replication").collect();
    assert!(copies.len() >= 3, "{}", copies.len());
    for ((_, bytes), (from, to)) in copies {
        assert!(bytes > 10_000_000 && from != 2 && to != 2, "{bytes} from {from} to {to}");
    }
    let killed = done.u64s("counters", "NUM_KILLED_MAPS").iter().sum::<u64>();
    let launched = done.u64s("counters", "TOTAL_LAUNCHED_MAPS");
    assert!(launched[0] >= 8 && killed <= launched.iter().sum());
}

/// Checks that every job ends under random faults, with all its bytes or for one of Hadoop's
/// reasons.
#[test]
fn every_job_ends_under_random_faults() {
    // Failures of the master (h7), its leaf and the spine end again; failures of workers may last.
    let lasting = ["h0", "h1", "h2", "h4", "h3--leaf0", "h5--leaf1"];
    let passing = ["h6", "h7--leaf1", "spine0", "leaf0", "leaf1", "leaf0--spine0"];
    let mut stream = Stream::new(7, "test/hadoop-faults");
    let (mut done, mut failed) = (0, 0);
    for number in 0..12 {
        let mut faults = String::new();
        for _ in 0..=stream.below(3) {
            let from = 3 + stream.below(20);
            let until = from + 2 + stream.below(90);
            let comes_back = stream.below(2) == 0;
            let of = if comes_back { &passing } else { &lasting };
            let on = of[stream.below(6) as usize];
            let until = if comes_back { format!("{until} s") } else { String::new() };
            faults += &down(on, &format!("{from} s"), &until);
        }
        let later = "[[workload.job]]\nkind = 'hdfs-write'\noutput = '100 MB'\nsubmit = '90 s'\n\
                     [[workload.job]]\nkind = 'hdfs-get'\ninput = '100 MB'\nsubmit = '20 s'\n";
        let framework = ["mr1", "yarn"][number % 2];
        let text = text(framework, &format!("{faults}{later}")).replace(
            "[workload.control]",
            "hdfs = { recheck = '10 s', setup_bytes = 300, namenode = true }\n[workload.control]",
        );
        let run = outcome(&text, &[("seed", &number.to_string())]);
        run.assert_conserved();
        let (jobs, reasons) = (run.u64s("jobs", "job"), run.texts("jobs", "failed"));
        assert_eq!(jobs.len(), 3, "{faults}");
        let of_job = run.u64s("tasks", "job");
        let numbers = run.u64s("tasks", "task");
        let kinds = run.texts("tasks", "kind");
        for (row, (&job, reason)) in jobs.iter().zip(&reasons).enumerate() {
            if !reason.is_empty() {
                failed += 1;
                continue;
            }
            done += 1;
            // At least one attempt of every task has finished.
            for (kind, column) in [("map", "maps"), ("reduce", "reduces")] {
                for task in 0..run.u64s("jobs", column)[row] {
                    let is = |i: usize| (of_job[i], numbers[i], kinds[i]) == (job, task, kind);
                    assert!((0..of_job.len()).any(is), "{kind} {task} of job {job}: {faults}");
                }
            }
            let read = run.u64s("counters", "HDFS_BYTES_READ")[row];
            let fetched = run.u64s("counters", "REDUCE_SHUFFLE_BYTES")[row];
            let written = run.u64s("counters", "HDFS_BYTES_WRITTEN")[row];
            assert!(read >= run.u64s("jobs", "input_bytes")[row], "{faults}");
            assert!(fetched >= run.u64s("jobs", "shuffle_bytes")[row], "{faults}");
            assert!(written >= run.u64s("jobs", "output_bytes")[row], "{faults}");
        }
    }
    println!("{done} jobs done, {failed} failed");
    assert!(done > 20, "{done} done, {failed} failed");
}

#[test]
fn a_copy_of_a_slow_map_saves_time_on_the_network_too() {
    for framework in ["mr1", "yarn"] {
        // With YARN a node has memory for two maps or for one application master, so that most
        // nodes execute maps.
        let yarn = if framework == "yarn" { "yarn = { node_memory = '2 GiB' }\n" } else { "" };
        let slow = "[[workload.slow_nodes]]\nhosts = ['h1', 'h4']\nspeed = 0.02\n";
        let run = |copy: bool| {
            let copies = format!("{yarn}speculation = {{ maps = {copy}, lag = '5 s' }}\n");
            let text = text(framework, slow)
                .replace("[workload.control]", &format!("{copies}[workload.control]"));
            outcome(&text, &[])
        };
        let (alone, copied) = (run(false), run(true));
        assert_done(&copied, framework);
        let counted = |run: &Outcome, name| run.u64s("counters", name)[0];
        assert_eq!(counted(&alone, "TOTAL_LAUNCHED_MAPS"), 8);
        assert!(counted(&copied, "TOTAL_LAUNCHED_MAPS") > 8, "{framework}");
        assert!(counted(&copied, "NUM_KILLED_MAPS") > 0, "{framework}");
        let took = |run: &Outcome| run.f64s("jobs", "runtime_s")[0];
        assert!(took(&copied) < took(&alone), "{framework}");
    }
}

#[test]
fn a_job_that_cannot_go_on_says_why() {
    let failing = "[[workload.failures.task]]\njob = 'terasort'\nnumber = 3\nattempts = 4\n";
    let done = outcome(&text("mr1", failing), &[]);
    assert_eq!(done.texts("jobs", "failed"), ["a map failed too often"]);
}
