//! Tests of CUBIC: mean window under periodic loss, compared with tables 1 and 2 of RFC 8312 (RFC
//! 9438 shows them as figures), and the end of slow start by HyStart at a bottleneck.

use super::super::config::TcpConfig;
use super::net::{Fate, Net, SEGMENT, settings};
use crate::congestion::cubic::{CubicRules, Variant};
use crate::congestion::rules::{CongestionRules, Counting, HyStartRule};
use crate::congestion::{CongestionKind, Settings};
use eastwest_types::{Rate, Side, Span};

fn cubic(variant: Variant) -> TcpConfig {
    let cubic = CubicRules { variant, ..CubicRules::default() };
    let rules = CongestionRules { counting: Counting::Segments, ..Default::default() };
    let algorithms = Settings { cubic, ..Settings::default() };
    let congestion = CongestionKind::Cubic;
    TcpConfig { congestion, rules, algorithms, max_window: 1 << 30, ..settings() }
}

/// Returns the mean congestion window in segments over `seconds` seconds, without the first
/// quarter, if every `every`-th segment is lost.
fn mean_window(config: TcpConfig, rtt: Span, every: u64, start: u64, seconds: u64) -> f64 {
    let mut net = Net::new(config);
    net.wires.delay = Span(rtt.0 / 2);
    net.open();
    net.run_to(300);
    net.stack.endpoints[net.client.slot()].window.ssthresh = start * SEGMENT;
    let mut count = 0;
    net.wires.fate = Box::new(move |s| {
        count += u64::from(s.from == Side::Client && s.is_data());
        let lost = s.from == Side::Client && s.is_data() && count % every == 0;
        if lost { Fate::Drop } else { Fate::Deliver }
    });
    net.write(Side::Client, 1 << 40);
    let (mut sum, mut samples) = (0, 0);
    for step in 0..seconds * 20 {
        net.run_to(300 + 50 * step);
        net.wires.log.clear();
        if step >= seconds * 5 {
            sum += net.end(Side::Client).cwnd();
            samples += 1;
        }
    }
    sum as f64 / samples as f64 / SEGMENT as f64
}

#[test]
fn the_mean_window_is_that_of_the_tables() {
    let (long, short) = (Span::from_ms(100), Span::from_ms(10));
    for (rtt, every, expected, seconds) in
        [(long, 10_000, 187, 200), (long, 100_000, 1_054, 100), (short, 10_000, 120, 60)]
    {
        let mean = mean_window(cubic(Variant::Linux), rtt, every, expected, seconds);
        println!("{rtt} 1/{every}: {mean:.1} against {expected}");
        let ratio = mean / expected as f64;
        assert!((ratio - 1.0).abs() < 0.06, "{rtt}, 1/{every}: {mean}");
    }
    // The plateau of a small window is flatter than one segment. A cycle that ends with 40 to 47
    // segments is therefore followed by one with an equal end: the first cycle determines the mean.
    for start in [20, 30, 40, 50, 60] {
        let mean = mean_window(cubic(Variant::Linux), long, 1_000, start, 200);
        assert!((38.0..44.0).contains(&mean), "{mean} from {start}");
    }
    // RFC 9438 grows like Reno once its estimate is reached again. On the plateau, a window up to a
    // fifth above the value in the table is stable, so the window stays where the first cycle
    // ended.
    for (every, low, high) in [(1_000, 40.0, 46.0), (10_000, 180.0, 225.0)] {
        let mean = mean_window(cubic(Variant::Rfc9438), long, every, 38, 200);
        assert!((low..high).contains(&mean), "1/{every}: {mean}");
    }
}

/// Returns the window in segments at which slow start ended, at a bottleneck of 100 Mbit/s with 40
/// ms and no loss.
fn end_of_slow_start(rule: HyStartRule) -> u64 {
    let mut config = cubic(Variant::Linux);
    config.rules.hystart = rule;
    let mut net = Net::established(config);
    net.wires.rate = Some(Rate::mbit(100));
    net.wires.delay = Span::from_ms(20);
    net.write(Side::Client, 1 << 30);
    for ms in 20..5_000 {
        net.run_to(ms);
        if net.end(Side::Client).ssthresh() < u64::MAX {
            return net.end(Side::Client).ssthresh() / SEGMENT;
        }
    }
    u64::MAX
}

#[test]
fn hystart_leaves_slow_start_near_the_bandwidth_delay_product() {
    // 40 ms at 100 Mbit/s with 1052 B per segment are 475 segments.
    let linux = end_of_slow_start(HyStartRule::Linux);
    assert!((200..=700).contains(&linux), "{linux}");
    let plus_plus = end_of_slow_start(HyStartRule::PlusPlus);
    println!("HyStart {linux}, HyStart++ {plus_plus}");
    assert!((475..=3_500).contains(&plus_plus), "{plus_plus}");
    assert_eq!(end_of_slow_start(HyStartRule::Off), u64::MAX);
}
