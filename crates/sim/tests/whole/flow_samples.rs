//! Tests of throughput over time of TCP connections: every byte of every message is in the interval
//! of its arrival, the rate of a link equals the closed form, and sampling does not change the run.

use crate::harness::{Outcome, attempt, outcome, scenario};
use std::collections::BTreeMap;

const ALL: (&str, &str) = ("measure.flow_samples", "*");

/// Returns, for each (connection, sender), its intervals as (end in µs, bytes).
fn curves(done: &Outcome) -> BTreeMap<(u64, u64), Vec<(u64, u64)>> {
    let mut curves: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let numbers = done.i64s("flow_samples", "connection");
    let (from, bytes) = (done.u64s("flow_samples", "src"), done.u64s("flow_samples", "bytes"));
    for (i, time_s) in done.f64s("flow_samples", "time_s").iter().enumerate() {
        let curve = curves.entry((numbers[i] as u64, from[i])).or_default();
        curve.push(((time_s * 1e6).round() as u64, bytes[i]));
    }
    curves
}

/// A message: (connection, sender), begin and end in their stream, and times of write and arrival.
type Sent = ((u64, u64), u64, u64, f64, f64);

/// Returns all messages of a run, from the table of flows.
fn messages(done: &Outcome) -> Vec<Sent> {
    let columns = ["connection", "src", "stream_start", "bytes"].map(|c| done.u64s("flows", c));
    let times = ["start_s", "finish_s"].map(|column| done.f64s("flows", column));
    let row = |i: usize| {
        let [number, src, start, bytes] = [0, 1, 2, 3].map(|c: usize| columns[c][i]);
        ((number, src), start, start + bytes, times[0][i] * 1e6, times[1][i] * 1e6)
    };
    (0..columns[0].len()).map(row).collect()
}

/// Returns the bytes of a stream that had arrived by `us` µs, counting only complete intervals.
fn by(curve: &[(u64, u64)], us: f64) -> u64 {
    curve.iter().filter(|(end, _)| *end as f64 <= us).map(|(_, bytes)| bytes).sum()
}

/// Checks that the bytes of each message are in the right intervals, and that there are no other
/// bytes.
fn assert_complete(name: &str, done: &Outcome, interval_us: f64) {
    let curves = curves(done);
    let mut ends: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for (stream, start, end, began_us, finished_us) in messages(done) {
        let curve = &curves[&stream];
        assert!(by(curve, began_us) <= start, "{name}: {stream:?} before it begins");
        let late = by(curve, finished_us + interval_us + 1e-6);
        assert!(late >= end, "{name}: {stream:?} has {late} of {end}");
        let early = by(curve, finished_us - 1e-6);
        assert!(early < end, "{name}: {stream:?} has {early} of {end} too early");
        let last = ends.entry(stream).or_default();
        *last = end.max(*last);
    }
    for (stream, end) in ends {
        let sum: u64 = curves[&stream].iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(sum, end, "{name}: {stream:?}");
    }
    for curve in curves.values() {
        assert!(curve.windows(2).all(|two| two[0].0 < two[1].0), "{name}: {curve:?}");
        assert!(curve.iter().all(|(_, bytes)| *bytes > 0), "{name}: {curve:?}");
    }
    assert_eq!(done.count("flow_samples.left_out"), 0);
}

const LOSSY: &str = "schema = 1\n[fabric]\nkind = 'leaf-spine'\nleaves = 2\nhosts_per_leaf = 4\nspines = 2\n\
    host_rate = '1 Gbit/s'\nuplink_rate = '2 Gbit/s'\nqueue = { limit = '12 packets' }\n[tcp]\n\
    min_rto = '10 ms'\n[[workload]]\nname = 'some'\n";

#[test]
fn every_message_is_in_the_intervals_in_which_its_bytes_came() {
    for (name, workload) in [
        ("new connections", "kind = 'poisson'\nload = 0.7\nsizes = '60 KB'\nflows = 600\n"),
        ("persistent", "kind = 'incast'\nreceiver = 'h0'\nrounds = 9\nblock_bytes = '70 KB'\n"),
        ("both ways", "kind = 'all-to-all'\nbytes = '150 KB'\n"),
    ] {
        let text = format!("{LOSSY}{workload}");
        let plain = outcome(&text, &[]);
        assert!(plain.value("flow_samples").is_null());
        assert_eq!(plain.u64s("flow_samples", "bytes").len(), 0);
        for (interval, us) in [("7 us", 7.0), ("1 ms", 1e3), ("1 s", 1e6)] {
            let sets = [ALL, ("measure.flow_samples_interval", interval)];
            let done = outcome(&text, &sets);
            assert_eq!(done.digest(), plain.digest(), "{name}");
            assert_eq!(done.number("flow_samples.interval_s"), us / 1e6);
            assert_complete(name, &done, us);
            let reference = attempt(&scenario(&text, &sets), true).expect("it finishes");
            assert!(
                done.table_text("flow_samples") == reference.table_text("flow_samples"),
                "{name}"
            );
        }
    }
}

/// Returns reads of `bytes` from these senders over links of 1 Gbit/s, without jitter and with
/// windows that never limit them.
fn read(senders: &str, bytes: &str) -> String {
    format!(
        "schema = 1\n[fabric]\nkind = 'star'\nhosts = 4\nhost_rate = '1 Gbit/s'\n\
         processing_jitter = '0 s'\nhost_queue = {{ limit = '100 MB' }}\n\
         queue = {{ limit = '100 MB' }}\n[tcp]\ninitial_window = 200\nmax_window = '300 KB'\n\
         [[workload]]\nname = 'read'\nkind = 'incast'\nreceiver = 'h3'\nsenders = {senders}\n\
         block_bytes = '{bytes}'\nstart_jitter = '0 s'\n"
    )
}

#[test]
fn a_flow_alone_has_the_rate_of_its_link_in_every_interval() {
    let done = outcome(&read("'h0'", "20 MB"), &[ALL]);
    let curves = curves(&done);
    let read = curves.iter().find(|(stream, _)| stream.1 == 0).expect("it has sent").1;
    // one segment of 1448 B in every 1538 B on the link: 81.27 segments per millisecond
    for (end, bytes) in &read[1..read.len() - 1] {
        assert!([81 * 1448, 82 * 1448].contains(bytes), "{bytes} B until {end} us");
    }
    let expect = 20e6 / (1448.0 / 12.304e-6) * 1e3;
    assert!((read.len() as f64 - expect).abs() <= 2.0, "{} for {expect}", read.len());
}

#[test]
fn two_flows_on_one_link_have_near_half_of_it_each() {
    let done = outcome(&read("['h0', 'h1']", "10 MB"), &[ALL]);
    let curves = curves(&done);
    let of = |host| curves.iter().find(|(stream, _)| stream.1 == host).expect("it has sent").1;
    let half = 0.5 * 1448.0 * 1e3 / 12.304;
    for (a, b) in of(0).iter().zip(of(1)).skip(5).take(140) {
        assert_eq!(a.0, b.0);
        assert!((a.1 as f64 + b.1 as f64 - 2.0 * half).abs() <= 1448.0, "{a:?} {b:?}");
        assert!((a.1 as f64 / half - 1.0).abs() < 0.1, "{a:?} {b:?} of {half}");
    }
}

#[test]
fn only_chosen_senders_are_sampled_and_a_full_table_counts_the_rest() {
    let text = read("['h0', 'h1', 'h2']", "3 MB");
    let (all, one) =
        (outcome(&text, &[ALL]), outcome(&text, &[("measure.flow_samples", "h1->h3")]));
    let key = curves(&one).into_keys().collect::<Vec<_>>();
    assert!(key.len() == 1 && key[0].1 == 1, "{key:?}");
    assert_eq!(curves(&one)[&key[0]], curves(&all)[&key[0]]);
    let few = outcome(&text, &[ALL, ("measure.flow_samples_rows", "20")]);
    let rows = all.count("flow_samples.rows");
    assert_eq!(
        (few.count("flow_samples.rows"), few.count("flow_samples.left_out")),
        (20, rows - 20)
    );
    assert_eq!(few.u64s("flow_samples", "bytes").len(), 20);
}

#[test]
fn what_waits_behind_a_gap_counts_when_it_comes() {
    // one or two packets of h0 are lost, and the rest of the window arrives
    let fault = "[[fault]]\non = 'h0->switch0'\nkind = 'loss'\nshare = 1.0\nfrom = '53.1 ms'\n\
        until = '53.12 ms'\n";
    let done = outcome(&format!("{}{fault}", read("'h0'", "20 MB")), &[ALL]);
    let lost = done.count("packets.dropped");
    assert!((1..=2).contains(&lost), "{lost}");
    let curves = curves(&done);
    let read = curves.iter().find(|(stream, _)| stream.1 == 0).expect("it has sent").1;
    // the link carries at most 81.27 segments per millisecond, so the bytes behind the gap must not
    // all count when it is filled
    for (end, bytes) in &read[1..read.len() - 1] {
        assert!(*bytes <= 82 * 1448, "{bytes} B until {end} us");
    }
    let (_, hole) = read.iter().find(|(end, _)| *end == 54_000).expect("something comes");
    assert!((81 - lost) * 1448 <= *hole && *hole < 81 * 1448, "{hole}");
    assert_complete("one gap", &done, 1e3);
}
