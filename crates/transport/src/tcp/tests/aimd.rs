//! Tests of the law of additive increase and multiplicative decrease: with random loss of probability p the
//! mean window is about √(1.5/p) segments (Mathis, Semke, Mahdavi and Ott 1997), with one ACK per segment. The
//! law ignores timeouts, limited transmit and the duration of recoveries.

use super::super::config::TcpConfig;
use super::net::{Fate, Net, SEGMENT, settings};
use eastwest_engine::random::Stream;
use eastwest_types::Side;

/// Returns the mean congestion window in segments over `seconds` seconds, sampled once per RTT,
/// without the first tenth. `lost` decides whether a data packet is lost.
fn mean_window(config: TcpConfig, mut lost: impl FnMut() -> bool + 'static, seconds: u64) -> f64 {
    let mut net = Net::established(TcpConfig { max_window: 1 << 30, ..config });
    net.wires.fate = Box::new(move |s| match s.from == Side::Client && s.is_data() && lost() {
        true => Fate::Drop,
        false => Fate::Deliver,
    });
    net.write(Side::Client, 1 << 40);
    let (mut sum, mut samples) = (0, 0);
    for round in 0..seconds * 100 {
        net.run_to(30 + 10 * round);
        net.wires.log.clear();
        if round >= seconds * 10 {
            sum += net.end(Side::Client).cwnd();
            samples += 1;
        }
    }
    assert_eq!(net.stack.totals().timeouts, 0);
    sum as f64 / samples as f64 / SEGMENT as f64
}

#[test]
fn the_mean_window_with_periodic_loss() {
    // Every n-th segment is lost: the window varies between W/2 and W, and 3/8·W² = n segments are
    // sent in a cycle.
    for sack in [true, false] {
        let mut count = 0;
        let lost = move || {
            count += 1;
            count % 2000 == 0
        };
        let mean = mean_window(TcpConfig { sack, ..settings() }, lost, 200);
        let law = (1.5f64 * 2000.0).sqrt();
        assert!((mean / law - 1.0).abs() < 0.05, "{mean} against {law}");
    }
}

#[test]
fn the_mean_window_with_random_loss() {
    let mut random = Stream::new(1, "loss");
    let mean = mean_window(settings(), move || random.below(2000) == 0, 600);
    let law = (1.5f64 * 2000.0).sqrt();
    assert!((mean / law - 1.0).abs() < 0.10, "{mean} against {law}");
}
