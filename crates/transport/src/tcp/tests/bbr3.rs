//! Tests of BBR version 3 at a bottleneck of 10 Mbit/s with 10 ms of delay: a segment has 1052 B, so 12
//! segments fill the path.

use super::super::config::TcpConfig;
use super::net::{Fate, Net, SEGMENT, settings};
use crate::congestion::Algorithm;
use crate::congestion::CongestionKind;
use crate::congestion::bbr3::{Bbr3, Mode};
use eastwest_engine::random::Stream;
use eastwest_types::{Rate, Side, Span};

/// Payload bytes per second that the bottleneck carries.
const PER_SECOND: f64 = 10e6 / 8.0 * 1000.0 / 1052.0;

fn endless() -> Net {
    let mut net = Net::established(TcpConfig { congestion: CongestionKind::Bbr3, ..settings() });
    net.wires.rate = Some(Rate::mbit(10));
    net.write(Side::Client, 1 << 40);
    net
}

fn model(net: &Net) -> &Bbr3 {
    match &net.end(Side::Client).control.as_deref().expect("a control").algorithm {
        Algorithm::Bbr3(b) => b,
        other => panic!("{other:?}"),
    }
}

/// Returns the states of BBR, sampled every millisecond, each with the time in ms at which it
/// began.
fn modes(net: &mut Net, from_ms: u64, to_ms: u64) -> Vec<(u64, Mode)> {
    let mut seen: Vec<(u64, Mode)> = Vec::new();
    for ms in from_ms..to_ms {
        net.run_to(ms);
        net.wires.log.clear();
        let mode = model(net).mode;
        if seen.last().is_none_or(|last| last.1 != mode) {
            seen.push((ms, mode));
        }
    }
    seen
}

#[test]
fn finds_the_path_then_cruises_and_probes_in_turn() {
    let mut net = endless();
    let seen = modes(&mut net, 20, 4_500);
    let order: Vec<Mode> = seen.iter().map(|s| s.1).collect();
    // Drain has emptied the queue, so the first phase Down ends immediately.
    assert_eq!(order[..2], [Mode::Startup, Mode::Drain], "{seen:?}");
    let cycle = [Mode::Cruise, Mode::Refill, Mode::Up, Mode::Down];
    for (i, mode) in order[2..].iter().enumerate() {
        assert_eq!(*mode, cycle[i % 4], "{seen:?}");
    }
    // Probing begins after as many rounds as the window has segments: 12 of 11 ms or more, which is
    // long before two seconds.
    let probes: Vec<u64> = seen.iter().filter(|s| s.1 == Mode::Refill).map(|s| s.0).collect();
    assert!(probes.len() > 10, "{probes:?}");
    for pair in probes.windows(2) {
        assert!((120..500).contains(&(pair[1] - pair[0])), "{probes:?}");
    }
    let received = net.end(Side::Server).received() as f64;
    assert!(received / (4.48 * PER_SECOND) > 0.95, "{}", received / (4.48 * PER_SECOND));
    assert!(model(&net).min_rtt >= Span::from_ms(10) && model(&net).min_rtt < Span::from_ms(12));
}

#[test]
fn looks_for_the_round_trip_time_every_five_seconds_with_half_the_window() {
    let mut net = endless();
    let (mut probes, mut last, mut least) = (Vec::new(), Mode::Startup, u64::MAX);
    for ms in 100..21_000 {
        net.run_to(ms);
        net.wires.log.clear();
        let mode = model(&net).mode;
        if mode == Mode::ProbeRtt {
            if last != mode {
                probes.push(ms);
            }
            least = least.min(net.end(Side::Client).outstanding());
        }
        last = mode;
    }
    assert!((3..=4).contains(&probes.len()), "{probes:?}");
    assert!(probes.windows(2).all(|w| (5_000..5_700).contains(&(w[1] - w[0]))), "{probes:?}");
    // ProbeRTT halves the window of twelve segments.
    assert!((5 * SEGMENT..=7 * SEGMENT).contains(&least), "{least}");
}

/// Returns the share of the bottleneck's rate that is used, if `lost` per thousand segments are
/// lost at random.
fn used(lost: u64) -> f64 {
    let mut net = endless();
    net.run_to(1_000);
    let mut random = Stream::new(lost, "losses");
    net.wires.fate = Box::new(move |s| {
        let lost = s.from == Side::Client && random.below(1000) < lost;
        if lost { Fate::Drop } else { Fate::Deliver }
    });
    let before = net.end(Side::Server).received();
    net.run_to(9_000);
    (net.end(Side::Server).received() - before) as f64 / (8.0 * PER_SECOND)
}

#[test]
fn some_losses_are_borne_and_many_are_heeded() {
    // Reno would have a window of √(1.5/p) segments: 39 with 0.1 % loss (the path holds 12), 12
    // with 1 %.
    let (few, some, many) = (used(1), used(10), used(150));
    assert!(few > 0.9 && some > 0.7, "{few} {some}");
    assert!(many < 0.75 * some, "{many} {some}");
}

#[test]
fn a_timeout_starts_from_one_segment_and_the_window_comes_back() {
    let mut net = endless();
    net.run_to(1_000);
    let before = net.end(Side::Client).cwnd();
    net.wires.fate = Box::new(|_| Fate::Drop);
    net.run_to(1_300);
    assert!(net.stack.totals().timeouts > 0);
    net.wires.fate = Box::new(|_| Fate::Deliver);
    net.run_to(3_000);
    assert!(net.end(Side::Client).cwnd() * 2 > before);
    let received = net.end(Side::Server).received();
    net.run_to(4_000);
    let share = (net.end(Side::Server).received() - received) as f64 / PER_SECOND;
    assert!(share > 0.9, "{share}");
}
