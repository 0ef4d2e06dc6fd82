//! Compares generated scenarios on one thread and on 2, 3, 4 and 8 threads, for each combination of a
//! kind of workload and a kind of ports that runs can be partitioned with. Counts the runs that were
//! really partitioned to their end: a run that falls back to one thread proves nothing. Each
//! combination must have at least one.
//! `EASTWEST_CASES=20` sets the number of cases of each combination, `EASTWEST_FIRST=100` the first
//! one, and `EASTWEST_ONLY=pfc` leaves only the combinations with this workload or these ports.

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
const WORKLOADS: [(&str, &[(&str, &str)]); 35] = [
    ("stride", &[("workload.*.kind", "stride")]),
    ("permutation", &[("workload.*.kind", "permutation")]),
    ("all-to-all", &[("workload.*.kind", "all-to-all")]),
    ("flow list", &[("workload.*.kind", "flow-list")]),
    ("poisson", &[("workload.*.kind", "poisson")]),
    ("poisson, slots used again", &[("workload.*.kind", "poisson"), SHORT_TIME_WAIT]),
    ("flow list, slots used again", &[("workload.*.kind", "flow-list"), SHORT_TIME_WAIT]),
    ("poisson for a time", &[("workload.*.kind", "poisson"), ("workload.*.duration", GIVEN)]),
    ("requests", &[("workload.*.kind", "all-to-all"), REQUESTS]),
    ("service", &[("workload.*.kind", "service")]),
    ("transactions", &[TRANSACTIONS]),
    ("background poisson", &[("workload.*.kind", "poisson"), BACKGROUND, STRIDE]),
    ("transactions beside others", &[("workload.*.kind", "poisson"), BACKGROUND, TRANSACTIONS]),
    ("background service", &[("workload.*.kind", "service"), BACKGROUND, STRIDE]),
    ("jobs", &[("workload.*.kind", "mapreduce")]),
    ("incast", &[("workload.*.kind", "incast")]),
    ("applications", &[("workload.*.kind", "key-value")]),
    ("waiting flows", &[("workload.*.kind", "permutation"), ("workload.*.repeat", GIVEN)]),
    ("bulk", &[("workload.*.kind", "bulk"), STOPS]),
    ("datagrams", &[("workload.*.kind", "datagrams"), STRIDE]),
    ("raw frames", &[FRAMES, ("workload.*.frames", GIVEN)]),
    ("raw frames for a time", &[FRAMES, ("workload.*.duration", "300 us")]),
    ("raw frames beside others", &[FRAMES, ("workload.*.frames", GIVEN), STRIDE]),
    ("jobs beside others", &[("workload.*.kind", "mapreduce"), ("workload.*.kind", "service")]),
    ("RoCEv2, stride", &[("workload.*.kind", "stride"), ROCE, TOGETHER]),
    ("RoCEv2, permutation", &[("workload.*.kind", "permutation"), ROCE, TOGETHER]),
    ("RoCEv2, all-to-all", &[("workload.*.kind", "all-to-all"), ROCE, TOGETHER]),
    ("RoCEv2, requests", &[ROCE, ("workload.*.kind", "all-to-all"), REQUESTS, TOGETHER]),
    ("RoCEv2, service", &[("workload.*.kind", "service"), ROCE]),
    ("RoCEv2, poisson", &[("workload.*.kind", "poisson"), ROCE, SHORT_WAIT]),
    ("RoCEv2, jobs", &[("workload.*.kind", "mapreduce"), ROCE, SHORT_WAIT]),
    ("RoCEv2, incast", &[("workload.*.kind", "incast"), ROCE, SHORT_WAIT]),
    ("RoCEv2, bulk", &[("workload.*.kind", "bulk"), STOPS, ROCE, SHORT_WAIT]),
    ("RoCEv2, raw frames", &[FRAMES, ("workload.*.frames", GIVEN), STRIDE, ROCE, TOGETHER]),
    ("RoCEv2, waiting flows", &[WAITING, ("workload.*.repeat", GIVEN), ROCE, SHORT_WAIT]),
];

const ROCE: (&str, &str) = ("workload.*.transport", "rocev2");
/// Slots of connections and queue pairs are used again during the run.
const SHORT_TIME_WAIT: (&str, &str) = ("tcp.time_wait", "200 us");
const SHORT_WAIT: (&str, &str) = ("rocev2.time_wait", "100 us");
/// Bulk transfers stop during the run.
const STOPS: (&str, &str) = ("workload.*.duration", "1 ms");
const WAITING: (&str, &str) = ("workload.*.kind", "permutation");
/// All flows start at once: a slot that may be used again before another queue pair is opened
/// prevents parts.
const TOGETHER: (&str, &str) = ("workload.*.start_window", "0 s");
const REQUESTS: (&str, &str) = ("workload.*.request_bytes", GIVEN);

const TRANSACTIONS: (&str, &str) = ("workload.*.kind", "transactions");
const BACKGROUND: (&str, &str) = ("workload.*.background", "true");
const FRAMES: (&str, &str) = ("workload.*.kind", "ethernet");
const STRIDE: (&str, &str) = ("workload.*.kind", "stride");

/// Ports with which a run is partitioned, each as the setting values that all its cases have.
const PORTS: [(&str, &[(&str, &str)]); 14] = [
    ("drop-tail", &[("fabric.queue.kind", "drop-tail")]),
    ("red", &[("fabric.queue.kind", "red")]),
    ("adaptive-red", &[("fabric.queue.kind", "adaptive-red")]),
    ("pie", &[("fabric.queue.kind", "pie")]),
    ("step-marking", &[("fabric.queue.kind", "step-marking")]),
    ("step-marking at departure", &[MARKS, ("fabric.queue.mark", "departure")]),
    ("codel", &[("fabric.queue.kind", "codel")]),
    ("fq-codel", &[("fabric.queue.kind", "fq-codel")]),
    ("strict-priority", &[("fabric.scheduler", "strict-priority")]),
    ("classes", &[("fabric.scheduler", "classes")]),
    ("shared buffer", &[("fabric.shared_buffer", GIVEN)]),
    ("pfc", &[("fabric.pfc.priorities", "[0]"), ("fabric.pfc.xoff", "3 KB")]),
    ("qcn", &[("fabric.qcn.priorities", "[0]"), ("fabric.qcn.q_eq", "3 KB"), SAMPLE]),
    ("pfc and qcn", &[("fabric.pfc", GIVEN), ("fabric.qcn", GIVEN)]),
];

/// Frequent samples of QCN.
const SAMPLE: (&str, &str) = ("fabric.qcn.sample", "4 KB");

const MARKS: (&str, &str) = ("fabric.queue.kind", "step-marking");

/// Fabrics of the cases. The last one can be divided into eight parts.
const FABRICS: [&[(&str, &str)]; 3] = [
    &[("fabric.kind", "leaf-spine")],
    &[("fabric.kind", "fat-tree")],
    &[("fabric.kind", "leaf-spine"), ("fabric.leaves", "8"), ("fabric.hosts_per_leaf", "2")],
];

/// Largest number of further cases of a combination: until enough cases are compared, because some
/// are refused or too large, and until one is partitioned to its end.
const MOST_FURTHER: u64 = 20;

/// Numbers of threads that are compared with one thread.
const THREADS: [usize; 4] = [2, 3, 4, 8];

/// Returns the number in an environment variable, or `otherwise` if it is not set.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |n| n.parse().expect("a number"))
}

/// Numbers of runs on several threads: partitioned to their end, and all. A combination is a kind of
/// workload and a kind of ports.
#[derive(Default)]
struct Counts {
    by_workload: BTreeMap<&'static str, [u64; 2]>,
    by_ports: BTreeMap<&'static str, [u64; 2]>,
    by_combination: BTreeMap<(&'static str, &'static str), [u64; 2]>,
    by_parts: BTreeMap<usize, u64>,
    /// Numbers of PFC pauses and of congestion notification messages (CNM) of QCN, in runs that were
    /// partitioned to their end.
    pauses_and_messages: [u64; 2],
    /// Numbers of runs on one thread, by reason and workload.
    reasons: BTreeMap<(&'static str, &'static str), u64>,
    failures: Vec<String>,
}

impl Counts {
    fn add(&mut self, of: (&'static str, &'static str), run: InParts) {
        let by_workload = self.by_workload.entry(of.0).or_default();
        let by_ports = self.by_ports.entry(of.1).or_default();
        for counts in [by_workload, by_ports, self.by_combination.entry(of).or_default()] {
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
    let (first, cases) = (number("EASTWEST_FIRST", 0), number("EASTWEST_CASES", 2));
    let folder = std::env::temp_dir().join(format!("eastwest-threads-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    sources::write(&folder).expect("files");
    let context = Context { base_dir: folder.clone(), ..Context::default() };
    let only = std::env::var("EASTWEST_ONLY").ok();
    let is_chosen = |name: &str| only.as_deref().is_none_or(|only| only == name);
    let combinations: Vec<_> = WORKLOADS
        .iter()
        .flat_map(|workload| PORTS.map(|ports| (*workload, ports)))
        .enumerate()
        .filter(|(_, (workload, ports))| is_chosen(workload.0) || is_chosen(ports.0))
        .collect();
    let (counts, next) = (Mutex::new(Counts::default()), AtomicUsize::new(0));
    let work = || {
        loop {
            let next = next.fetch_add(1, Ordering::Relaxed);
            let Some(&(place, ((workload, values), (ports, port_values)))) = combinations.get(next)
            else {
                return;
            };
            let (mut compared, mut in_parts) = (0, 0);
            for number in first..first + cases + MOST_FURTHER {
                if compared >= cases && in_parts > 0 {
                    break;
                }
                // Each case of a combination has another fabric than the case before.
                let fabric = FABRICS[(place + place / PORTS.len() + number as usize) % 3];
                let places = [("fidelity", "packet")];
                let wishes = values.iter().chain(fabric).chain(port_values).chain(&places);
                let wishes = wishes.map(|(path, level)| Wish::firm(path, level)).collect();
                let campaign = Campaign::new(context.clone(), 7, None, 0).with(wishes);
                let Ok(case) = campaign.draw_partitionable(number) else { continue };
                let context = campaign.context(&case);
                let result = compare_threads(&case, &context, &THREADS, number);
                let mut counts = counts.lock().expect("no thread panics");
                match result {
                    Ok(None) => {}
                    Ok(Some(each)) => {
                        compared += 1;
                        let partitioned = each.runs.iter().filter(|run| run.is_ok()).count() as u64;
                        in_parts += partitioned;
                        counts.pauses_and_messages[0] += partitioned * each.pauses;
                        counts.pauses_and_messages[1] += partitioned * each.messages;
                        each.runs.into_iter().for_each(|run| counts.add((workload, ports), run));
                    }
                    Err(failure) => counts.failures.push(format!(
                        "{workload}, {ports}, {}, case {number}: {}: {}\n{}",
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
    println!("{:?}\n{:?}\n{:?}", counts.by_workload, counts.by_ports, counts.by_parts);
    println!("PFC pauses and QCN messages: {:?}", counts.pauses_and_messages);
    println!("reasons for one thread: {:#?}", counts.reasons);
    for failure in &counts.failures {
        println!("{failure}");
    }
    assert!(counts.failures.is_empty(), "{} cases differ", counts.failures.len());
    if only.is_some() {
        return;
    }
    for (name, of) in counts.by_workload.iter().chain(&counts.by_ports) {
        assert!(of[0] * 4 >= of[1], "too few runs with {name} were partitioned: {of:?}");
    }
    let per_case = THREADS.len() as u64;
    for (names, of) in &counts.by_combination {
        assert!(of[1] >= cases * per_case, "too few runs with {names:?} were compared: {of:?}");
        assert!(of[0] > 0, "no run with {names:?} was partitioned: {of:?}");
    }
    assert_eq!(counts.by_combination.len(), WORKLOADS.len() * PORTS.len());
    assert!(counts.pauses_and_messages.iter().all(|&number| number > 0));
    for parts in THREADS {
        let runs = counts.by_parts.get(&parts).copied().unwrap_or_default();
        assert!(runs >= 4 * cases, "{runs} runs were partitioned into {parts} parts");
    }
}
