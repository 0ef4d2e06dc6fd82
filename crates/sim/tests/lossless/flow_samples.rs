//! Tests of throughput over time of raw frames, queue pairs and MPI messages: the sums are the
//! received bytes, and flows on one link have equal shares.

use crate::harness::{Outcome, attempt, outcome, scenario, scenario_in};
use eastwest_sim::scenario::Context;
use std::collections::BTreeMap;

/// Returns a star of `hosts` hosts at 10 Gbit/s with PFC; `rest` are further lines.
fn star(hosts: u32, rest: &str) -> String {
    format!(
        "schema = 1\n[fabric]\nkind = 'star'\nhosts = {hosts}\nhost_rate = '10 Gbit/s'\n\
         host_delay = '1 us'\nprocessing_jitter = '0 s'\n[fabric.pfc]\n[[class]]\nname = 'frames'\n\
         priority = 3\n[measure]\nflow_samples = '*'\n{rest}"
    )
}

/// Returns the total bytes of each stream, by its number in this column of the table
/// `flow_samples`. Rows of other kinds of streams are left out.
fn sums(done: &Outcome, column: &str) -> BTreeMap<i64, u64> {
    let mut sums = BTreeMap::new();
    let numbers = done.i64s("flow_samples", column);
    for (number, bytes) in numbers.iter().zip(done.u64s("flow_samples", "bytes")) {
        *sums.entry(*number).or_default() += bytes;
    }
    sums.remove(&-1);
    sums
}

/// Returns (sender, bytes) for the interval that ends at `ms` milliseconds.
fn at(done: &Outcome, ms: f64) -> Vec<(u64, u64)> {
    let times = done.f64s("flow_samples", "time_s");
    let (from, bytes) = (done.u64s("flow_samples", "src"), done.u64s("flow_samples", "bytes"));
    let rows = (0..times.len()).filter(|i| (times[*i] * 1e3 - ms).abs() < 1e-9);
    rows.map(|i| (from[i], bytes[i])).collect()
}

#[test]
fn streams_that_share_a_link_have_a_share_each_and_one_alone_has_all_of_it() {
    let frames = "[[workload]]\nname = 'frames'\nkind = 'ethernet'\npattern = 'pairs'\n\
        sources = ['h0', 'h1']\ndestinations = ['h2', 'h2']\nload = 0.95\nframes = 12000\n\
        [[workload]]\nname = 'later'\nkind = 'ethernet'\npattern = 'pairs'\nsources = 'h3'\n\
        destinations = 'h4'\nload = 0.5\nstart = '3 ms'\nframes = 1000\n";
    let done = outcome(&star(5, frames), &[]);
    // 1500 of 1538 B on the link are the frame; in a millisecond the link carries 812 frames and a
    // part of another one
    let whole = 1e-3 * 10e9 / 8.0 * 1500.0 / 1538.0;
    for ms in 2..=10 {
        let shares = at(&done, f64::from(ms));
        let of = |host| shares.iter().find(|share| share.0 == host).map_or(0, |share| share.1);
        assert!((of(0) as f64 - of(1) as f64).abs() <= 0.01 * whole, "{ms} ms: {shares:?}");
        assert!((of(0) as f64 + of(1) as f64 - whole).abs() <= 1500.0, "{ms} ms: {shares:?}");
        assert_eq!(of(3) > 0, (4..=5).contains(&ms) || (ms == 6 && of(3) > 0), "{ms} ms");
    }
    // the table `streams` has a row for each stream that has sent a frame, in the order of stream
    // numbers
    let received = done.u64s("streams", "bytes_received");
    assert_eq!(sums(&done, "stream").into_values().collect::<Vec<_>>(), received);
    assert_eq!(sums(&done, "stream").into_keys().collect::<Vec<_>>(), [0, 1, 2]);
    assert!(done.f64s("flow_samples", "time_s").is_sorted());
}

#[test]
fn numbers_of_streams_are_those_of_their_rows() {
    // only few of the 30 possible streams get a frame
    let few = "[[workload]]\nname = 'few'\nkind = 'ethernet'\nload = 0.5\nframes = 7\n";
    let done = outcome(&star(6, few), &[]);
    let received = done.u64s("streams", "bytes_received");
    assert!(received.len() < 8, "{received:?}");
    let (rows, from) = (done.i64s("flow_samples", "stream"), done.u64s("flow_samples", "src"));
    for (row, from) in rows.iter().zip(from) {
        assert_eq!(done.u64s("streams", "src")[*row as usize], from);
    }
    assert_eq!(sums(&done, "stream").into_values().collect::<Vec<_>>(), received);
}

#[test]
fn two_flows_under_dcqcn_have_near_half_of_the_link_each_and_all_of_their_bytes() {
    let text = star(
        3,
        "flow_samples_interval = '10 ms'\n[fabric.queue]\nkind = 'red'\nmin = '5 KB'\n\
         max = '200 KB'\nmax_probability = 0.01\nweight = 1\neven = false\ngentle = false\n\
         limit = '1 MB'\n[[workload]]\nname = 'rdma'\nkind = 'incast'\ntransport = 'rocev2'\n\
         receiver = 'h2'\nblock_bytes = '50 MB'\nrequest_bytes = '0 B'\npersistent = false\n\
         warm_up = '0 s'\nstart_jitter = '0 s'\n",
    );
    let done = outcome(&text, &[]);
    let numbers = done.u64s("flows", "connection").into_iter().map(|n| n as i64);
    let expect: BTreeMap<i64, u64> = numbers.zip(done.u64s("flows", "bytes")).collect();
    assert_eq!(sums(&done, "connection"), expect);
    // 1024 of 1106 B on the link are payload; each flow has half of the link, with small deviations
    // after CNPs
    let half = 0.5 * 10e-3 * 10e9 / 8.0 * 1024.0 / 1106.0;
    for ms in [20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0] {
        let shares = at(&done, ms);
        assert_eq!(shares.len(), 2);
        for (_, bytes) in &shares {
            assert!((*bytes as f64 / half - 1.0).abs() < 0.25, "{ms} ms: {shares:?} of {half}");
        }
    }
    let reference = attempt(&scenario(&text, &[]), true).expect("it finishes");
    assert_eq!(reference.table_text("flow_samples"), done.table_text("flow_samples"));
}

#[test]
fn messages_of_mpi_are_counted_over_frames_and_over_tcp() {
    let folder = std::env::temp_dir().join(format!("eastwest-samples-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("t")).expect("a folder");
    for (rank, calls) in
        ["0 send 1 0 1000000\n0 send 1 0 5000\n", "1 recv 0 0 1000000\n1 recv 0 0 5000\n"]
            .into_iter()
            .enumerate()
    {
        std::fs::write(folder.join(format!("t/rank-{rank}.txt")), calls).expect("written");
    }
    let context = Context { base_dir: folder.clone(), ..Context::default() };
    let run = |transport: &str| {
        let mpi = format!(
            "[[workload]]\nname = 'frames'\nkind = 'mpi'\ntrace = 't'\nenvelope = 16\n\
             eager_limit = '2 MB'\n{transport}"
        );
        attempt(&scenario_in(&context, &star(2, &mpi), &[]), false).expect("it finishes")
    };
    let (frames, tcp) = (run("transport = 'ethernet'\n"), run(""));
    std::fs::remove_dir_all(folder).expect("the folder is there");
    // the stream carries two messages, each with an envelope
    let expect = BTreeMap::from([(0, 1_005_032)]);
    assert_eq!((sums(&frames, "stream"), sums(&frames, "connection").len()), (expect.clone(), 0));
    assert_eq!((sums(&tcp, "connection"), sums(&tcp, "stream").len()), (expect, 0));
}
