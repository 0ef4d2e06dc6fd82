//! Tests of frames, the state of a run at simulated times: results do not change, and frames agree
//! with the tables.

use crate::harness::{Outcome, finish, observed, scenario, shipped};
use eastwest_sim::frame::Frame;
use eastwest_sim::scenario::Scenario;
use eastwest_types::{Span, Time};

/// Interval of the samples and frames of most tests.
const EVERY: Span = Span::from_us(500);

/// Scenario of a test: its name, the settings of queues, further lines of the fabric, and fidelity.
type Mode = (&'static str, &'static str, &'static str, &'static str);

const RED: &str = "{ kind = 'red', min = '5 packets', max = '15 packets', weight = 1, \
                   max_probability = 0.5, limit = '20 packets' }";
const CODEL: &str = "{ kind = 'codel', target = '50 us', interval = '1 ms', limit = '30 packets' }";
const DROP_TAIL: &str = "{ limit = '20 packets' }";
const NAPS: &str = "energy = { kind = 'coalescing', hold = '50 us', trigger = '10 packets' }\n\
                    host_energy = { kind = 'standard' }";

/// Scenarios in which queues decide at enqueue, decide at dequeue, and have events of their own, and
/// scenarios in flow mode.
const MODES: [Mode; 7] = [
    ("drop-tail", DROP_TAIL, "", "packet"),
    ("red", RED, "", "packet"),
    ("codel", CODEL, "", "packet"),
    ("priorities", DROP_TAIL, "scheduler = 'strict-priority'", "packet"),
    ("naps", RED, NAPS, "packet"),
    ("flow", DROP_TAIL, "", "flow"),
    ("naps in flow mode", DROP_TAIL, NAPS, "flow"),
];

/// Returns a scenario with losses, marks and retransmissions: a shuffle in two racks.
fn shuffle((_, queue, more, fidelity): Mode, sets: &[(&str, &str)]) -> Scenario {
    let text = format!(
        "schema = 1\nfidelity = '{fidelity}'\n[fabric]\nkind = 'leaf-spine'\nleaves = 2\n\
         hosts_per_leaf = 4\nspines = 2\nhost_rate = '1 Gbit/s'\nuplink_rate = '1 Gbit/s'\n\
         queue = {queue}\n{more}\n[tcp]\necn = 'on'\nmin_rto = '10 ms'\n\
         initial_rto = '20 ms'\n[measure]\nsample_interval = '500 us'\n[[workload]]\n\
         name = 'all'\nkind = 'all-to-all'\nbytes = '200 KB'\n[[workload]]\nname = 'few'\n\
         kind = 'poisson'\nload = 0.02\nsizes = '3 KB'\nflows = 200\n"
    );
    scenario(&text, sets)
}

fn now(frame: &Frame) -> Time {
    frame.progress.now
}

/// Runs a scenario with a frame every `EVERY` from its start on.
fn with_samples(of: &Scenario) -> (Outcome, Vec<Frame>) {
    observed(of, Time::ZERO, &mut |frame| now(frame) + EVERY)
}

fn digest_and_tables(done: &Outcome) -> String {
    format!("{:#}\n{:?}", done.0.summary, done.0.tables)
}

#[test]
fn results_are_equal_with_and_without_frames() {
    for mode in MODES {
        let (name, of) = (mode.0, shuffle(mode, &[]));
        let plain = digest_and_tables(&finish(&of));
        let (often, frames) = observed(&of, Time::ZERO, &mut now);
        assert!(frames.len() > 1_000, "{name}: {} frames", frames.len());
        assert_eq!(digest_and_tables(&often), plain, "{name}: a frame after each event");
        let (odd, _) = observed(&of, Time(1), &mut |frame| now(frame) + Span::from_ps(7_777_777));
        assert_eq!(digest_and_tables(&odd), plain, "{name}: a frame every 7.8 us");
    }
}

#[test]
fn frames_at_the_times_of_samples_equal_the_tables() {
    for mode in MODES {
        let name = mode.0;
        let (done, frames) = with_samples(&shuffle(mode, &[]));
        let at = |row_s: f64| (row_s / EVERY.as_secs_f64()).round() as usize;
        let mut queues = vec![(vec![0; frames[0].queue_bytes.len()], Vec::new()); frames.len()];
        queues.iter_mut().for_each(|(packets, bytes)| bytes.clone_from(packets));
        let column = |name| done.u64s("queues", name);
        let (links, packets, bytes) = (column("link"), column("packets"), column("bytes"));
        for (row, time_s) in done.f64s("queues", "time_s").iter().enumerate() {
            let (of_packets, of_bytes) = &mut queues[at(*time_s)];
            of_packets[links[row] as usize] = packets[row];
            of_bytes[links[row] as usize] = bytes[row];
        }
        let column = |name| done.u64s("link_samples", name);
        let links = column("link");
        let mut totals = [0; 3].map(|_| vec![vec![0; frames[0].carried.len()]; frames.len()]);
        for (totals, name) in totals.iter_mut().zip(["bytes", "drops", "marks"]) {
            let values = column(name);
            for (row, time_s) in done.f64s("link_samples", "time_s").iter().enumerate() {
                for later in &mut totals[at(*time_s)..] {
                    later[links[row] as usize] += values[row];
                }
            }
        }
        // the last frame is at the end of the run, where there is no sample
        let sampled = frames.len() - 1;
        assert!(sampled > 20, "{name}: {sampled} samples");
        for (number, frame) in frames[..sampled].iter().enumerate() {
            assert_eq!(now(frame), Time::ZERO + EVERY * number as u64, "{name}");
            let waiting: Vec<u64> = frame.queue_packets.iter().map(|&n| n.into()).collect();
            assert_eq!((&waiting, &frame.queue_bytes), (&queues[number].0, &queues[number].1));
            let seen = [&frame.carried, &frame.drops, &frame.marks];
            assert_eq!(seen, [0, 1, 2].map(|i| &totals[i][number]), "{name} at {}", now(frame));
        }
        let last = frames.last().expect("a last frame");
        assert_eq!(now(last).as_secs_f64(), done.number("simulated_s"), "{name}");
        for (name, seen) in
            [("bytes", &last.carried), ("drops", &last.drops), ("marks", &last.marks)]
        {
            assert_eq!(seen, &done.u64s("links", name), "{name}");
        }
        assert_eq!(last.flows_done, done.count("flows.completed"), "{name}");
        assert_eq!(last.open_messages, 0, "{name}");
        let losses = (done.count("tcp.retransmits"), done.count("tcp.timeouts"));
        assert_eq!(last.losses, losses, "{name}");
        assert!((losses.0 > 0) == (mode.3 == "packet"), "{name}");
        assert_eq!(last.progress.packet_hops, done.count("packet_hops"), "{name}");
    }
}

#[test]
fn energy_of_frames_is_that_of_the_table_power() {
    for mode in MODES.into_iter().filter(|mode| mode.2 == NAPS) {
        let (done, frames) = with_samples(&shuffle(mode, &[]));
        let (tiers, joules) = (done.texts("power", "tier"), done.f64s("power", "energy_j"));
        let names: Vec<&str> = frames[0].energy.iter().map(|tier| tier.0).collect();
        assert_eq!(names.len(), 4, "{names:?}");
        for (row, time_s) in done.f64s("power", "time_s").iter().enumerate() {
            let number = (time_s / EVERY.as_secs_f64()).round() as usize;
            let tier = names.iter().position(|name| *name == tiers[row]).expect("the tier");
            let used = frames[number].energy[tier].1 - frames[number - 1].energy[tier].1;
            assert!((used - joules[row]).abs() < 1e-12, "{used} J of {}", joules[row]);
        }
        let total: f64 = frames.last().expect("a last frame").energy.iter().map(|e| e.1).sum();
        assert!((total - done.number("energy_j.total")).abs() < 1e-9);
    }
    let (_, frames) = with_samples(&shuffle(MODES[0], &[]));
    assert!(frames.iter().all(|frame| frame.energy.is_empty()), "no link can sleep");
}

#[test]
fn a_frame_is_the_last_frame_of_a_shorter_run() {
    for mode in MODES {
        let step = Span::from_ps(1_234_567_891);
        let (_, frames) = observed(&shuffle(mode, &[]), Time::ZERO, &mut |frame| now(frame) + step);
        for frame in &frames[1..4] {
            let duration = format!("{} ps", now(frame).0);
            let of = shuffle(mode, &[("duration", &duration)]);
            let (_, short) = observed(&of, Time::NEVER, &mut now);
            assert_eq!(short.len(), 1, "{}: only the last frame", mode.0);
            let mut last = short[0].clone();
            last.progress.until = frame.progress.until;
            assert_eq!(&last, frame, "{}", mode.0);
        }
    }
}

#[test]
fn the_next_frame_is_at_the_requested_time() {
    let of = scenario(&shipped("first"), &[]);
    let plain = finish(&of);
    let end = plain.number("simulated_s");
    let times = |first: Time, next: &mut dyn FnMut(&Frame) -> Time| {
        let (done, frames) = observed(&of, first, next);
        assert_eq!(done.digest(), plain.digest());
        let times: Vec<Time> = frames.iter().map(now).collect();
        assert_eq!(times.last().map(|t| t.as_secs_f64()), Some(end));
        assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
        times
    };
    // a frame at time 0, although the first event is later
    assert_eq!(times(Time::ZERO, &mut |_| Time::NEVER).len(), 2);
    assert_eq!(times(Time::NEVER, &mut now).len(), 1);
    assert_eq!(times(Time(u64::MAX), &mut now).len(), 1);
    let one =
        times(Time(5), &mut |frame| if now(frame) == Time(5) { Time(6) } else { Time::NEVER });
    assert_eq!(one[..2], [Time(5), Time(6)]);
    // a time in the past: after the next events, which are later than now
    let each = times(Time::ZERO, &mut |_| Time::ZERO);
    assert!(each.len() as u64 > plain.count("events") / 4, "{} frames", each.len());
    for finish_s in plain.f64s("flows", "finish_s") {
        let finish = Time((finish_s * 1e12).round() as u64);
        assert!(
            each.binary_search(&finish).is_ok(),
            "the last packet of a flow arrives at {finish}"
        );
    }
}

#[test]
fn a_run_that_waits_for_its_end_has_frames_until_then() {
    let text = "schema = 1\nduration = '10 ms'\n[fabric]\nkind = 'star'\nhosts = 2\n\
        host_rate = '1 Gbit/s'\n[[workload]]\nname = 'one'\nkind = 'permutation'\n\
        bytes = '1 KB'\nbackground = true\n";
    for fidelity in ["packet", "flow"] {
        let of = scenario(text, &[("fidelity", fidelity)]);
        let ms = |n| Time::ZERO + Span::from_ms(n);
        let (done, frames) = observed(&of, ms(1), &mut |frame| now(frame) + Span::from_ms(1));
        assert_eq!(done.digest(), finish(&of).digest());
        let times: Vec<Time> = frames.iter().map(now).collect();
        assert_eq!(times, (1..=10).map(ms).collect::<Vec<_>>(), "one frame at the end");
        // all that lies between the first and the last frame is silence
        assert_eq!(frames[0].carried, frames[9].carried);
        assert!(frames[0].carried.iter().sum::<u64>() > 2_000);
    }
}
