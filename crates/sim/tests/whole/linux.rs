//! Tests of single flows with the `linux` profile against measurements with Linux 6.18 over an
//! equal path: 100 Mbit/s, 10 ms, a queue of 50 packets, packets of 1500 B without framing, timers
//! of 4 ms. The measured path was exact to about 50 µs. Jitter of this size determines, in both,
//! which packet of a round finds the queue full.

use crate::harness::{CableText, Outcome, context_with, finish, graph, outcome, scenario_in};

fn flow(congestion: &str, queue: &str, more: &[(&str, &str)]) -> Outcome {
    let cables: [CableText; 2] =
        [("s", "x", "1 Gbit/s", "2.5 ms"), ("x", "r", "100 Mbit/s", "2.5 ms")];
    let context = context_with("path.toml", &graph(&["s", "r"], &["x"], &cables));
    let text = format!(
        "schema = 1\nduration = '60 s'\n[fabric]\nkind = 'graph'\nfile = 'path.toml'\n\
         framing = '0 B'\nprocessing_jitter = '50 us'\nqueue = {queue}\n\
         host_queue = {{ limit = '10000 packets' }}\n[tcp]\nprofile = 'linux'\n\
         congestion = '{congestion}'\ngranularity = '4 ms'\nmax_window = '8 MB'\n\
         [measure]\ntcp_trace = ['s']\n[[workload]]\nname = 'bulk'\nkind = 'incast'\n\
         receiver = 'r'\nblock_bytes = '117 MB'\nrequest_bytes = '0 B'\nwarm_up = '0 s'\n"
    );
    finish(&scenario_in(&context, &text, more))
}

/// Returns the peaks of the congestion window in segments, after the first two seconds, and the
/// times between them in seconds.
fn sawtooth(done: &Outcome) -> (Vec<f64>, Vec<f64>) {
    let windows: Vec<f64> =
        done.u64s("tcp_trace", "cwnd_bytes").iter().map(|&w| w as f64 / 1448.0).collect();
    let times = done.f64s("tcp_trace", "time_s");
    let phases = done.texts("tcp_trace", "phase");
    let (mut peaks, mut at) = (Vec::new(), Vec::new());
    for i in 1..times.len() {
        if phases[i] == "recovery" && phases[i - 1] != "recovery" && times[i] > 1.5 {
            peaks.push(windows[i - 1]);
            at.push(times[i]);
        }
    }
    let periods = at.windows(2).map(|w| w[1] - w[0]).collect();
    (peaks, periods)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn goodput_mbit(done: &Outcome) -> f64 {
    117.0 * 8.0 / (done.f64s("flows", "fct_us")[0] / 1e6)
}

#[track_caller]
fn near(what: &str, value: f64, measured: f64, share: f64) {
    println!("{what}: {value:.3}, measured {measured}");
    assert!((value / measured - 1.0).abs() < share, "{what}: {value}, measured {measured}");
}

#[test]
fn reno_at_a_drop_tail_queue() {
    let done = flow("new-reno", "{ limit = '50 packets' }", &[]);
    let (peaks, periods) = sawtooth(&done);
    near("peak", mean(&peaks), 135.7, 0.03);
    near("period", mean(&periods), 0.882, 0.03);
    near("goodput", goodput_mbit(&done), 93.6, 0.03);
    near("drops", done.count("packets.dropped") as f64, 154.0, 0.1);
    assert_eq!(done.count("tcp.timeouts"), 0);
}

#[test]
fn cubic_at_a_drop_tail_queue() {
    let done = flow("cubic", "{ limit = '50 packets' }", &[]);
    let (peaks, periods) = sawtooth(&done);
    near("peak", mean(&peaks), 133.6, 0.03);
    near("period", mean(&periods), 1.08, 0.03);
    near("goodput", goodput_mbit(&done), 96.3, 0.03);
    // HyStart ends slow start before a packet is lost
    let ssthresh = done.i64s("tcp_trace", "ssthresh_bytes");
    let first = *ssthresh.iter().find(|s| **s > 0).expect("a threshold") as f64 / 1448.0;
    near("end of slow start", first, 126.0, 0.03);
}

/// Returns the median latency of packets with payload, in milliseconds.
fn median_latency_ms(done: &Outcome) -> f64 {
    let kinds = done.texts("latency", "kind");
    let rows = kinds.iter().zip(done.f64s("latency", "upper_us"));
    let rows: Vec<(f64, u64)> = rows
        .zip(done.u64s("latency", "count"))
        .filter(|((kind, _), _)| **kind == "data")
        .map(|((_, upper), count)| (*upper, count))
        .collect();
    let half = rows.iter().map(|r| r.1).sum::<u64>() / 2;
    let mut seen = 0;
    let median = rows.iter().find(|r| {
        seen += r.1;
        seen > half
    });
    median.expect("packets").0 / 1e3
}

#[test]
fn reno_and_cubic_at_a_codel_queue() {
    let queue = "{ kind = 'codel', limit = '500 packets' }";
    let done = flow("new-reno", queue, &[]);
    done.assert_conserved();
    let (peaks, periods) = sawtooth(&done);
    near("peak", mean(&peaks), 135.3, 0.03);
    near("period", mean(&periods), 0.871, 0.03);
    near("goodput", goodput_mbit(&done), 93.8, 0.03);
    near("drops", done.count("packets.dropped") as f64, 511.0, 0.1);
    let done = flow("cubic", queue, &[]);
    let (peaks, periods) = sawtooth(&done);
    near("peak", mean(&peaks), 132.8, 0.03);
    near("period", mean(&periods), 1.07, 0.03);
    near("goodput", goodput_mbit(&done), 96.5, 0.03);
    assert!(done.u64s("links", "drops_sojourn").iter().sum::<u64>() > 3);
}

#[test]
fn bbr_at_a_short_and_a_deep_queue() {
    for (limit, largest, drops) in [("50", 275.0, Some(412.0)), ("500", 320.0, None)] {
        let done = flow("bbr", &format!("{{ limit = '{limit} packets' }}"), &[]);
        near("goodput", goodput_mbit(&done), 96.5, 0.05);
        // the median latency is that of the forward path; the return path takes 5 ms
        near("round trip", median_latency_ms(&done) + 5.0, 12.6, 0.05);
        // the congestion window every 5 ms, after the first two seconds
        let windows = done.u64s("tcp_trace", "cwnd_bytes");
        let times = done.f64s("tcp_trace", "time_s");
        let mut at: Vec<u64> = (400..1_900)
            .map(|n| windows[times.partition_point(|t| *t <= f64::from(n) * 0.005) - 1] / 1448)
            .collect();
        at.sort_unstable();
        near("median window", at[at.len() / 2] as f64, 198.0, 0.05);
        let most = windows.iter().max().expect("a window") / 1448;
        near("largest window", most as f64, largest, 0.1);
        match drops {
            Some(drops) => near("drops", done.count("packets.dropped") as f64, drops, 0.1),
            None => assert_eq!(done.count("packets.dropped"), 0),
        }
        assert_eq!(done.count("tcp.timeouts"), 0);
    }
}

/// Returns the times of timeouts in ms of two senders whose receiver is unreachable from 10 ms to 3
/// s; `phase` shifts the phase of Linux timers.
fn timeouts_ms(phase: &str) -> Vec<f64> {
    let text = format!(
        "schema = 1\n[fabric]\nkind = 'star'\nhosts = 3\nhost_rate = '100 Mbit/s'\nhost_delay = '1 ms'\n\
         [tcp]\nprofile = 'linux'\ncongestion = 'new-reno'\ngranularity = '4 ms'\ntick_phase = '{phase}'\n\
         [[fault]]\nkind = 'down'\non = 'switch0->h2'\nfrom = '10 ms'\n\
         until = '3 s'\n[[workload]]\nname = 'bulk'\nkind = 'bulk'\npairs = ['h0->h2', 'h1->h2']\n\
         duration = '20 ms'\n"
    );
    let done = outcome(&text, &[]);
    let events = done.texts("events", "what").into_iter().zip(done.f64s("events", "time_s"));
    events.filter(|(what, _)| *what == "timeout").map(|(_, time_s)| time_s * 1e3).collect()
}

#[test]
fn hosts_of_one_kernel_share_its_ticks() {
    let on_a_tick = |ms: &f64| (ms / 4.0 - (ms / 4.0).round()).abs() < 1e-6;
    let common = timeouts_ms("common");
    assert!(common.len() > 4 && common.iter().all(on_a_tick), "{common:?}");
    let random = timeouts_ms("random");
    assert!(random.len() > 4 && !random.iter().any(on_a_tick), "{random:?}");
}
