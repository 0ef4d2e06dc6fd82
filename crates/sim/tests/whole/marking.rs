//! Tests of step marking and DCTCP in whole scenarios, against the steady state of Alizadeh et al.
//! (SIGCOMM 2010, section 3.3): W* = (C·RTT + K)/N, Qmax = K + N, amplitude A = ½·√(2N·(C·RTT +
//! K)).

use crate::harness::{Outcome, attempt, outcome, scenario};

/// Returns a scenario with one long flow from each of `senders` hosts to one receiver over one
/// switch: 10 Gbit/s, an RTT over four links of 25 µs.
fn bulk(senders: u32, congestion: &str, queue: &str) -> String {
    format!(
        "schema = 1\nduration = '10 s'\n[fabric]\nkind = 'star'\nhosts = {}\n\
         host_rate = '10 Gbit/s'\nhost_delay = '25 us'\nframing = '0 B'\nqueue = {queue}\n\
         [tcp]\ncongestion = '{congestion}'\nmin_rto = '10 ms'\nack_every = 1\n\
         [measure]\nsample_interval = '10 us'\n[[workload]]\nname = 'bulk'\nkind = 'incast'\n\
         receiver = 'h{senders}'\nblock_bytes = '{} MB'\nwarm_up = '1 ms'\n",
        senders + 1,
        100 / senders
    )
}

/// Returns the number of packets queued at the switch's port to the receiver, every 10 µs from 15
/// ms to 75 ms.
fn queue(done: &Outcome, senders: u32) -> Vec<f64> {
    let names = done.texts("links", "name");
    let port = names.iter().position(|n| n.ends_with(&format!("->h{senders}"))).expect("a port");
    let mut samples = vec![0.0; 6_000];
    let rows = done.f64s("queues", "time_s").iter().zip(done.u64s("queues", "link"));
    for ((time, link), packets) in rows.zip(done.u64s("queues", "packets")) {
        let place = ((time - 0.015) / 1e-5).round();
        if link == port as u64 && (0.0..6_000.0).contains(&place) {
            samples[place as usize] = packets as f64;
        }
    }
    samples
}

#[test]
fn dctcp_holds_the_queue_around_its_threshold() {
    for senders in [2u32, 4] {
        let k = 65.0;
        let marking = "{ kind = 'step-marking', threshold = '65 packets', limit = '1000 packets' }";
        let done = outcome(&bulk(senders, "dctcp", marking), &[]);
        done.assert_conserved();
        assert_eq!(done.count("packets.dropped"), 0);
        let samples = queue(&done, senders);
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        let max = samples.iter().fold(0.0f64, |a, &b| a.max(b));
        let min = samples.iter().fold(f64::MAX, |a, &b| a.min(b));
        let n = f64::from(senders);
        let window = 10e9 * 100e-6 / 8.0 / 1500.0 + k;
        let amplitude = 0.5 * (2.0 * n * window).sqrt();
        println!("{senders}: mean {mean:.1} max {max} min {min}, A {amplitude:.1}");
        assert!(max > k && max <= k + 2.0 * n + 2.0, "Qmax {max}, K + N = {}", k + n);
        assert!(min > k - 2.5 * amplitude, "Qmin {min}, K + N − A = {}", k + n - amplitude);
        assert!((mean - (k + n - amplitude / 2.0)).abs() < amplitude, "mean {mean}");
        let marks: u64 = done.u64s("links", "marks").iter().sum();
        assert!(marks > 100 && marks == done.count("marks.data"), "{marks} marks");
    }
}

#[test]
fn reno_with_marks_loses_nothing_and_leaves_the_queue_emptier_than_without() {
    let marking = "{ kind = 'step-marking', threshold = '65 packets', limit = '1000 packets' }";
    let sets = [("tcp.ecn", "on")];
    let marked = outcome(&bulk(2, "new-reno", marking), &sets);
    assert_eq!(marked.count("packets.dropped"), 0);
    assert!(marked.count("tcp.ecn_reductions") > 5);
    // without ECN the queue behaves as drop-tail
    let deaf = outcome(&bulk(2, "new-reno", marking), &[]);
    assert_eq!(deaf.count("marks.data"), 0);
    let mean = |done: &Outcome| queue(done, 2).iter().sum::<f64>() / 6_000.0;
    assert!(mean(&marked) < 65.0 && mean(&deaf) > 100.0, "{} and {}", mean(&marked), mean(&deaf));
}

#[test]
fn both_port_modes_mark_the_same_packets() {
    let marking = "{ kind = 'step-marking', threshold = '20 packets', limit = '60 packets' }";
    for congestion in ["dctcp", "new-reno"] {
        let text = bulk(4, congestion, marking);
        let sets = [("workload.bulk.block_bytes", "1 MB"), ("tcp.ecn", "on")];
        let scenario = scenario(&text, &sets);
        let [eager, two_event] = [false, true].map(|r| attempt(&scenario, r).expect("an end"));
        assert!(eager.count("marks.data") > 10);
        assert_eq!(eager.digest(), two_event.digest());
        eager.assert_conserved();
    }
}

/// Sends 40 packets from each of two senders at the same time through one port, so that two packets
/// find each queue length. Returns the number of marks, and the digest.
fn marks_of_two_bursts(threshold: &str) -> (u64, String) {
    let queue = format!("{{ kind = 'step-marking', limit = '1000 packets', {threshold} }}");
    let sets = [
        ("tcp.ecn", "on"),
        ("tcp.initial_window", "40"),
        ("fabric.processing_jitter", "0 s"),
        ("workload.bulk.block_bytes", "57920 B"),
    ];
    let done = outcome(&bulk(2, "new-reno", &queue), &sets);
    done.assert_conserved();
    (done.count("marks.data"), done.digest().to_owned())
}

#[test]
fn marks_begin_above_the_threshold_or_at_it() {
    let above = marks_of_two_bursts("threshold = '20 packets', mark = 'above'");
    let from = marks_of_two_bursts("threshold = '20 packets', mark = 'from'");
    assert_eq!(above, marks_of_two_bursts("threshold = '20 packets'"), "above is the default");
    // of the 80 packets 36 find 21 or more packets queued, and two find exactly 20
    assert_eq!((above.0, from.0), (36, 38));
    assert_eq!(from, marks_of_two_bursts("threshold = '19 packets'"), "lengths are whole numbers");
    // thresholds in bytes: each packet has 1500 IP bytes
    assert_eq!(above, marks_of_two_bursts("threshold = '30000 B'"));
    assert_eq!(from, marks_of_two_bursts("threshold = '30000 B', mark = 'from'"));
    assert_eq!(above, marks_of_two_bursts("threshold = '30001 B', mark = 'from'"));
}
