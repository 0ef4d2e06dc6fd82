//! Tests of BBR and pacing at a bottleneck of 10 Mbit/s with 10 ms of delay: a segment has 1052 B, so 12
//! segments fill the path.

use super::super::config::TcpConfig;
use super::net::{Fate, Net, SEGMENT, settings};
use crate::congestion::Algorithm;
use crate::congestion::CongestionKind;
use crate::congestion::bbr::{Bbr, Mode};
use crate::congestion::rules::CongestionRules;
use eastwest_types::{Rate, Side, Span};

fn bbr() -> TcpConfig {
    TcpConfig { congestion: CongestionKind::Bbr, ..settings() }
}

fn bottleneck(config: TcpConfig) -> Net {
    let mut net = Net::established(config);
    net.wires.rate = Some(Rate::mbit(10));
    net
}

fn model(net: &Net) -> &Bbr {
    match &net.end(Side::Client).control.as_deref().expect("a control").algorithm {
        Algorithm::Bbr(b) => b,
        other => panic!("{other:?}"),
    }
}

#[test]
fn finds_the_path_and_keeps_twice_its_product_under_way_at_most() {
    let mut net = bottleneck(bbr());
    net.write(Side::Client, 1 << 40);
    net.run_to(1_000);
    assert_eq!(model(&net).mode, Mode::ProbeBw);
    assert!(model(&net).min_rtt >= Span::from_ms(10) && model(&net).min_rtt < Span::from_ms(12));
    let before = net.end(Side::Server).received();
    for ms in 1_000..3_000 {
        net.run_to(ms);
        net.wires.log.clear();
        // The bound is 2·13 segments, three bursts of two, two segments for probing, and two for
        // rounding.
        assert!(net.end(Side::Client).outstanding() <= 36 * SEGMENT);
        assert_ne!(model(&net).mode, Mode::Startup);
    }
    let received = (net.end(Side::Server).received() - before) as f64;
    let most = 2.0 * 10e6 / 8.0 * 1000.0 / 1052.0;
    assert!(received / most > 0.97, "{received} of {most}");
}

#[test]
fn looks_for_the_round_trip_time_every_ten_seconds() {
    let mut net = bottleneck(bbr());
    net.write(Side::Client, 1 << 40);
    let (mut probes, mut last, mut few) = (Vec::new(), Mode::Startup, 0);
    for ms in (100..25_000).step_by(5) {
        net.run_to(ms);
        net.wires.log.clear();
        let mode = model(&net).mode;
        if mode == Mode::ProbeRtt && last != mode {
            probes.push(ms);
        }
        few += u64::from(net.end(Side::Client).outstanding() <= 4 * SEGMENT);
        last = mode;
    }
    assert_eq!(probes.len(), 2, "{probes:?}");
    assert!((10_000..10_300).contains(&(probes[1] - probes[0])), "{probes:?}");
    // ProbeRTT lasts 200 ms and an RTT each time.
    assert!((75..110).contains(&few), "{few} looks of 5 ms");
}

#[test]
fn losses_do_not_shrink_the_window() {
    let mut net = bottleneck(bbr());
    net.write(Side::Client, 1 << 40);
    net.run_to(1_000);
    let mut count = 0;
    net.wires.fate = Box::new(move |s| {
        count += u64::from(s.from == Side::Client);
        if s.from == Side::Client && count % 50 == 0 { Fate::Drop } else { Fate::Deliver }
    });
    let before = net.end(Side::Server).received();
    net.run_to(6_000);
    let received = (net.end(Side::Server).received() - before) as f64;
    let most = 5.0 * 10e6 / 8.0 * 1000.0 / 1052.0;
    // 2 % are lost. Reno would have a window of √(1.5/0.02) = 8.7 segments, two thirds of the path.
    assert!(received / most > 0.85, "{} of the path", received / most);
}

#[test]
fn an_application_that_writes_little_does_not_lower_the_rate() {
    let mut net = bottleneck(bbr());
    net.write(Side::Client, 2_000_000);
    net.run_to(3_000);
    let rate = |net: &Net| model(net).pacing_rate;
    let before = rate(&net);
    for round in 0..200 {
        net.write(Side::Client, 1_000);
        net.run_to(3_000 + 20 * round);
    }
    assert!(rate(&net) as f64 > 0.7 * before as f64, "{} after {before}", rate(&net));
}

#[test]
fn paced_segments_leave_spaced() {
    let rules = CongestionRules { pacing: true, ..CongestionRules::default() };
    let mut net = Net::established(TcpConfig { rules, ..settings() });
    net.write_segments(200);
    net.run_to(100);
    // The first ten segments are sent at once; later ones at twice cwnd/SRTT, and never two at a
    // time.
    let times: Vec<u64> = net
        .wires
        .log
        .iter()
        .filter(|s| s.from == Side::Client && s.is_data())
        .map(|s| s.at.0 / 1_000_000)
        .collect();
    assert_eq!(times[..10], [20_000; 10]);
    assert!(times[11..].windows(2).all(|w| w[1] > w[0]), "{times:?}");
    // 20 segments in the second RTT at 400 % of ten segments per RTT: at most one in 250 µs.
    assert!(times[11..25].windows(2).all(|w| w[1] - w[0] >= 240), "{times:?}");
}
