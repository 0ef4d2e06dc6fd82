//! Compares generated scenarios on one thread and on 2, 3, 4 and 8 threads, for each kind of
//! workload and of queue that runs can be partitioned with. Counts the runs that were really
//! partitioned to their end: a run that falls back to one thread proves nothing.
//! `EASTWEST_CASES=20` sets the number of cases of each combination, `EASTWEST_FIRST=100` the first
//! one.

use eastwest_fuzz::campaign::Campaign;
use eastwest_fuzz::features::GIVEN;
use eastwest_fuzz::generate::{Wish, text};
use eastwest_fuzz::oracles::{InParts, catch_panics, compare_threads};
use eastwest_fuzz::sources;
use eastwest_sim::scenario::Context;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Workloads with which a run is partitioned, each as the setting values that all its cases have.
const WORKLOADS: [(&str, &[(&str, &str)]); 10] = [
    ("stride", &[("workload.*.kind", "stride")]),
    ("permutation", &[("workload.*.kind", "permutation")]),
    ("all-to-all", &[("workload.*.kind", "all-to-all")]),
    ("flow list", &[("workload.*.kind", "flow-list")]),
    ("poisson", &[("workload.*.kind", "poisson")]),
    ("poisson for a time", &[("workload.*.kind", "poisson"), ("workload.*.duration", GIVEN)]),
    ("requests", &[("workload.*.kind", "all-to-all"), ("workload.*.request_bytes", GIVEN)]),
    ("service", &[("workload.*.kind", "service")]),
    ("background poisson", &[("workload.*.kind", "poisson"), BACKGROUND, STRIDE]),
    ("background service", &[("workload.*.kind", "service"), BACKGROUND, STRIDE]),
];

const BACKGROUND: (&str, &str) = ("workload.*.background", "true");
const STRIDE: (&str, &str) = ("workload.*.kind", "stride");

/// Queue disciplines of switches with which a run is partitioned.
const QUEUES: [&str; 5] = ["drop-tail", "red", "adaptive-red", "pie", "step-marking"];

/// Fabrics of the cases. The last one can be divided into eight parts.
const FABRICS: [&[(&str, &str)]; 3] = [
    &[("fabric.kind", "leaf-spine")],
    &[("fabric.kind", "fat-tree")],
    &[("fabric.kind", "leaf-spine"), ("fabric.leaves", "8"), ("fabric.hosts_per_leaf", "2")],
];

/// Numbers of threads that are compared with one thread.
const THREADS: [usize; 4] = [2, 3, 4, 8];

/// Returns the number in an environment variable, or `otherwise` if it is not set.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |n| n.parse().expect("a number"))
}

/// Numbers of runs on several threads: partitioned to their end, and all.
#[derive(Default)]
struct Counts {
    by_workload: BTreeMap<&'static str, [u64; 2]>,
    by_queue: BTreeMap<&'static str, [u64; 2]>,
    by_parts: BTreeMap<usize, u64>,
    /// Numbers of runs on one thread, by reason and workload.
    reasons: BTreeMap<(&'static str, &'static str), u64>,
    failures: Vec<String>,
}

impl Counts {
    fn add(&mut self, of: (&'static str, &'static str), run: InParts) {
        let by_workload = self.by_workload.entry(of.0).or_default();
        for counts in [by_workload, self.by_queue.entry(of.1).or_default()] {
            counts[0] += u64::from(run.is_ok());
            counts[1] += 1;
        }
        match run {
            Ok(parts) => *self.by_parts.entry(parts).or_default() += 1,
            Err(why) => *self.reasons.entry((why, of.0)).or_default() += 1,
        }
    }
}

#[test]
fn generated_scenarios_are_equal_on_any_number_of_threads() {
    let (first, cases) = (number("EASTWEST_FIRST", 0), number("EASTWEST_CASES", 1));
    let folder = std::env::temp_dir().join(format!("eastwest-threads-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    sources::write(&folder).expect("files");
    let context = Context { base_dir: folder.clone(), ..Context::default() };
    let combinations: Vec<_> = WORKLOADS
        .iter()
        .flat_map(|workload| QUEUES.map(|queue| (workload.0, workload.1, queue)))
        .flat_map(|of| FABRICS.map(|fabric| (of, fabric)))
        .collect();
    let (counts, next) = (Mutex::new(Counts::default()), AtomicUsize::new(0));
    let work = || {
        while let Some(&((workload, values, queue), fabric)) =
            combinations.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let places = [("fabric.queue.kind", queue), ("fidelity", "packet")];
            let wishes = values.iter().chain(fabric).chain(&places);
            let wishes = wishes.map(|(path, level)| Wish::firm(path, level)).collect();
            let campaign = Campaign::new(context.clone(), 7, None, 0).with(wishes);
            for number in first..first + cases {
                let Ok(case) = campaign.draw_partitionable(number) else { continue };
                let context = campaign.context(&case);
                let compared = compare_threads(&case, &context, &THREADS, number);
                let mut counts = counts.lock().expect("no thread panics");
                match compared {
                    Ok(None) => {}
                    Ok(Some(each)) => {
                        each.into_iter().for_each(|run| counts.add((workload, queue), run));
                    }
                    Err(failure) => counts.failures.push(format!(
                        "{workload}, {queue}, {}, case {number}: {}: {}\n{}",
                        fabric[0].1,
                        failure.oracle,
                        failure.message,
                        text(&case.given)
                    )),
                }
            }
        }
    };
    {
        let _quiet = catch_panics();
        std::thread::scope(|scope| {
            scope.spawn(work);
            scope.spawn(work);
        });
    }
    let _ = std::fs::remove_dir_all(&folder);
    let counts = counts.into_inner().expect("no thread panics");
    println!("partitioned to the end, of all runs on several threads:");
    println!("{:?}\n{:?}\n{:?}", counts.by_workload, counts.by_queue, counts.by_parts);
    println!("reasons for one thread: {:#?}", counts.reasons);
    for failure in &counts.failures {
        println!("{failure}");
    }
    assert!(counts.failures.is_empty(), "{} cases differ", counts.failures.len());
    let enough = |[in_parts, all]: &[u64; 2]| in_parts * 4 >= *all && *all >= cases * 20;
    for (name, of) in counts.by_workload.iter().chain(&counts.by_queue) {
        assert!(enough(of), "too few runs with {name} were partitioned: {of:?}");
    }
    assert_eq!(counts.by_workload.len(), WORKLOADS.len());
    assert_eq!(counts.by_queue.len(), QUEUES.len());
    for parts in THREADS {
        let runs = counts.by_parts.get(&parts).copied().unwrap_or_default();
        assert!(runs >= 4 * cases, "{runs} runs were partitioned into {parts} parts");
    }
}
