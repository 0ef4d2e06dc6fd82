//! Tests of raw Ethernet sources: all offered frames arrive or are counted as lost, and waiting at
//! the source counts as latency.

use crate::harness::{Outcome, attempt, outcome, scenario};

/// Returns a star of `hosts` hosts at 10 Gbit/s without framing, where a frame of 1500 B takes 1.2
/// µs per link; `workload` are further lines.
fn star(hosts: u32, workload: &str) -> String {
    format!(
        "schema = 1\n[fabric]\nkind = 'star'\nhosts = {hosts}\nhost_rate = '10 Gbit/s'\n\
         framing = 0\nprocessing_jitter = '0 s'\nhost_delay = '1 us'\n\
         [[workload]]\nname = 'frames'\nkind = 'ethernet'\n{workload}"
    )
}

fn sum(done: &Outcome, column: &str) -> u64 {
    done.u64s("streams", column).iter().sum()
}

#[test]
fn uniform_traffic_arrives_and_every_stream_has_a_row() {
    let done = outcome(&star(6, "load = 0.6\nframes = 6000\n"), &[]);
    done.assert_conserved();
    assert_eq!(done.count("streams.count"), 30);
    assert_eq!(done.count("streams.frames_received"), 6_000);
    assert_eq!((sum(&done, "frames_sent"), sum(&done, "bytes_received")), (6_000, 9_000_000));
    assert_eq!(done.count("streams.frames_lost") + done.count("streams.frames_reordered"), 0);
    assert!(done.number("streams.jain") > 0.95);
    // idle latency: two links, each 1.2 µs of transmission and 1 µs of delay; the rest of the mean
    // is waiting
    let mean = done.number("latency_us.mean");
    assert!(mean > 4.4 && mean < 8.0, "{mean}");
    let rate = done.number("streams.throughput_bps");
    assert!((rate / 36e9 - 1.0).abs() < 0.06, "{rate}");
}

#[test]
fn the_wait_at_the_source_is_part_of_the_latency() {
    let one = "pattern = 'pairs'\nsources = 'h0'\ndestinations = 'h1'\nframes = 10\n\
               rate = '1 Gbit/s'\nburst = 10\narrivals = 'periodic'\n";
    let done = outcome(&star(2, one), &[]);
    // the last of ten frames waits for nine frames at its own NIC, and for no other frame after it
    assert_eq!(done.number("latency_us.max"), 9.0 * 1.2 + 4.4);
    assert_eq!(done.f64s("streams", "latency_us_max"), [9.0 * 1.2 + 4.4]);
    let jitter = done.f64s("streams", "jitter_us")[0];
    assert!((jitter - 1.2).abs() < 1e-9, "{jitter}");
}

const INCAST: &str = "pattern = 'pairs'\nsources = ['h0', 'h1', 'h2']\n\
    destinations = ['h3', 'h4', 'h5']\nload = 0.9\nframes = 9000\n";

#[test]
fn what_is_lost_is_counted_and_the_run_ends_all_the_same() {
    // two of the three sources share a destination, whose link they load with 180 %
    let text = star(6, &INCAST.replace("'h4'", "'h3'").replace("'h5'", "'h4'"));
    let text = text.replace("'h3', 'h3', 'h4'", "'h3', 'h5', 'h5'");
    let done = outcome(&text, &[]);
    done.assert_conserved();
    let lost = done.u64s("streams", "frames_lost");
    assert!(lost[0] == 0 && lost[1] > 500 && lost[2] > 500, "{lost:?}");
    assert_eq!(lost.iter().sum::<u64>(), done.count("packets.dropped"));
    assert_eq!(done.count("packets.in_flight"), 0);
    assert_eq!(sum(&done, "frames_received") + sum(&done, "frames_lost"), 9_000);
}

#[test]
fn no_port_mode_changes_a_frame() {
    for workload in [
        INCAST.replace("'h5'", "'h3'"),
        "load = 0.8\nduration = '300 us'\nburst = 4\nburst_spread = 'geometric'\n".to_owned(),
    ] {
        for queue in ["drop-tail", "codel", "red"] {
            let red = if queue == "red" { "min = '5 packets'\nmax = '15 packets'\n" } else { "" };
            let text = star(6, &workload).replace(
                "[[workload]]",
                &format!(
                    "[fabric.queue]\nkind = '{queue}'\nlimit = '30 packets'\n{red}[[workload]]"
                ),
            );
            let scenario = scenario(&text, &[]);
            let [a, b] = [false, true].map(|reference| attempt(&scenario, reference).unwrap());
            assert_eq!(a.digest(), b.digest(), "{queue}");
            assert_eq!(a.u64s("streams", "frames_lost"), b.u64s("streams", "frames_lost"));
        }
    }
}

#[test]
fn the_time_of_a_stream_is_split_up_to_its_last_frame() {
    let one = "pattern = 'pairs'\nsources = 'h0'\ndestinations = 'h1'\nframes = 10\n\
               rate = '1 Gbit/s'\nburst = 10\narrivals = 'periodic'\n";
    let done = outcome(&star(2, one), &[("measure.flow_parts", "*")]);
    let of = |part: &str| done.f64s("flow_parts", part)[0];
    // the frame waits for nine frames of 1.2 µs at its NIC, then takes two links of 1.2 µs and 1 µs
    let parts = ["injection_us", "queueing_us", "flight_us", "retransmission_us"].map(of);
    assert_eq!(parts, [10.8, 0.0, 4.4, 0.0]);
    assert_eq!(
        (done.i64s("flow_parts", "flow"), done.i64s("flow_parts", "stream")),
        (&[-1][..], &[0][..])
    );
    // two of three sources share a destination, so that frames wait; the parts must still add up
    let text = star(6, &INCAST.replace("'h4', 'h5'", "'h5', 'h5'"));
    let done = outcome(&text, &[("measure.flow_parts", "*")]);
    let columns = ["completion_us", "injection_us", "queueing_us", "flight_us"]
        .map(|part| done.f64s("flow_parts", part));
    let (first, last) = (done.f64s("streams", "first_s"), done.f64s("streams", "last_s"));
    for i in 0..3 {
        let [all, injection, queueing, flight] = columns.map(|c| c[i]);
        assert!((all - (last[i] - first[i]) * 1e6).abs() < 1e-3);
        assert!((all - injection - queueing - flight).abs() < 1e-5);
        assert_eq!((flight, queueing > 1.2), (4.4, i > 0), "stream {i}");
        assert_eq!(
            done.texts("flow_parts", "loss")[i] == "yes",
            done.u64s("streams", "frames_lost")[i] > 0
        );
    }
}
