//! Adaptive RED: RED whose thresholds follow from a permitted queueing delay, and whose drop
//! probability may adapt to the load.
//!
//! **Thresholds.** `min` is the number of packets of mean size that the port sends in the permitted
//! delay, and `max = 3·min`. For packets of 1000 B these are the "auto" thresholds of E-EON, table
//! 5.2 (100 µs at 1 Gbit/s: 12.5 and 37.5 packets). ns-2 and Floyd, Gummadi and Shenker (*Adaptive
//! RED*, 2001, section 4.2) use half of this `min`, and at least 5 packets.
//!
//! **Probability.** If `adapt` is set, the probability at the upper threshold changes every half
//! second (*Adaptive RED*, section 4.1). While the average queue is above the middle fifth of the
//! interval between the thresholds, the probability grows by a quarter of itself, but at most by
//! 0.01. While the average is below the middle fifth, the probability shrinks to 0.9 of itself. The
//! probability stays at about 0.01 to 0.5.

use super::decision::{Arrival, Level, Place, Ports, Verdict};
use super::discipline::{BuiltIn, Discipline, QueueSettings};
use super::inert::Inert;
use super::red::{Red, RedConfig};
use eastwest_engine::random::Stream;
use eastwest_settings::{Section, key};
use eastwest_types::{Limit, Rate, Span, Time};
use serde::{Deserialize, Serialize};

/// Time between two adaptations of the drop probability.
const INTERVAL: Span = Span::from_ms(500);
/// Number of adaptations in one direction after which the drop probability has certainly reached
/// its lower or upper bound. Further adaptations are skipped.
const MOST_STEPS: u64 = 100;

/// Settings of adaptive RED at one port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptiveRedConfig {
    /// Permitted mean queueing delay, from which the thresholds follow.
    pub target: Span,
    /// Whether the probability at the upper threshold adapts to the average queue length.
    pub adapt: bool,
    /// All other settings of RED. The thresholds in this field are ignored.
    pub red: RedConfig,
}

impl AdaptiveRedConfig {
    /// Returns the lower and the upper threshold in packets, for a port with the rate `rate`.
    pub fn thresholds(&self, rate: Rate) -> (f64, f64) {
        let bits = 8.0 * f64::from(self.red.mean_packet);
        let min = self.target.0 as f64 * 1e-12 * rate.0 as f64 / bits;
        (min, 3.0 * min)
    }
}

impl BuiltIn for AdaptiveRedConfig {
    const NAME: &'static str = "adaptive-red";
    const DOC: &'static str =
        "RED with thresholds from a delay (Floyd et al. 2001; E-EON, table 5.2)";

    fn read(s: &mut Section, limit: Limit, _: &Ports) -> AdaptiveRedConfig {
        let target = s.get(
            key::<Span>(
                "target",
                "Target of the queueing delay. The lower threshold is the number of packets of \
                 `mean_packet` bytes that \
                 the port sends in this time, the upper threshold is three times the lower \
                 (E-EON, tables 5.2 and 6.4: 100 us to 4 ms).",
            )
            .range("1 us", "10 s"),
        );
        let adapt = s.get(
            key(
                "adapt",
                "Whether the probability at the upper threshold adapts to the average queue \
                 (Floyd et al. 2001); false in E-EON.",
            )
            .default("true"),
        );
        let red = RedConfig::read_rest(s, limit);
        AdaptiveRedConfig { target, adapt, red }
    }
}

impl QueueSettings for AdaptiveRedConfig {
    type Queue = Box<AdaptiveRed>;

    fn limit(&self) -> Limit {
        self.red.limit
    }

    fn start(&self, place: &Place) -> Box<AdaptiveRed> {
        let packet_ps = place.packet_ps(self.red.mean_packet);
        Box::new(AdaptiveRed::new(*self, place.rate, packet_ps, place.random("red")))
    }

    fn target(&self, _: Rate, _: u32) -> Option<Span> {
        Some(self.target)
    }

    fn never_acts(&self, inert: &Inert) -> Vec<String> {
        let of_rate = |&rate: &Rate| {
            let (min, max) = self.thresholds(rate);
            let name = format!(
                "adaptive-red with a target of {} (packets of {} B) at {rate}",
                self.target, self.red.mean_packet
            );
            let (min, max) = (Level::Packets(min), Level::Packets(max));
            inert.thresholds(&name, min, max, self.red.limit)
        };
        inert.ports.rates.iter().filter_map(of_rate).collect()
    }
}

/// Adaptive RED at one port: settings and state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AdaptiveRed {
    red: Red,
    adapt: bool,
    min: f64,
    max: f64,
    /// Time of the last adaptation of the drop probability.
    adapted: Time,
}

impl AdaptiveRed {
    /// Returns an empty queue at a port with the rate `rate`. `packet_ps` is the transmission time
    /// of a mean packet in ps.
    pub fn new(
        config: AdaptiveRedConfig,
        rate: Rate,
        packet_ps: u64,
        random: Stream,
    ) -> AdaptiveRed {
        let (min, max) = config.thresholds(rate);
        let red = RedConfig { min: Level::Packets(min), max: Level::Packets(max), ..config.red };
        let red = Red::new(red, packet_ps, random);
        AdaptiveRed { red, adapt: config.adapt, min, max, adapted: Time::ZERO }
    }

    /// Executes the adaptations of the drop probability that were due since the last packet. The
    /// average queue length changes only on arrivals, so that all these adaptations use the same
    /// average.
    fn adapt(&mut self, now: Time) {
        let steps = now.since(self.adapted).0 / INTERVAL.0;
        self.adapted += INTERVAL * steps;
        let (average, fifth) = (self.red.average().value(), (self.max - self.min) / 5.0);
        let (low, high) = (self.min + 2.0 * fifth, self.min + 3.0 * fifth);
        let p = self.red.max_probability();
        for _ in 0..steps.min(MOST_STEPS) {
            if average > high && *p <= 0.5 {
                *p += (*p / 4.0).min(0.01);
            } else if average < low && *p >= 0.01 {
                *p *= 0.9;
            }
        }
    }
}

impl Discipline for AdaptiveRed {
    fn sees_all(&self) -> bool {
        true
    }

    fn at_enqueue(&mut self, arrival: &Arrival) -> Verdict {
        if self.adapt {
            self.adapt(arrival.now);
        }
        self.red.at_enqueue(arrival)
    }
}

#[cfg(test)]
mod tests {
    use super::super::decision::tests::{Port, arrive};
    use super::super::red::Spread;
    use super::super::signal::Signal;
    use super::*;
    use eastwest_types::Limit;

    fn config(target: Span, adapt: bool) -> AdaptiveRedConfig {
        let red = RedConfig {
            min: Level::Packets(0.0),
            max: Level::Packets(0.0),
            weight: 1.0,
            max_probability: if adapt { 0.1 } else { 1.0 },
            gentle: adapt,
            spread: Spread::Even,
            mean_packet: 1000,
            signal: Signal::default(),
            mark_below: None,
            limit: Limit::Packets(2000),
        };
        AdaptiveRedConfig { target, adapt, red }
    }

    #[test]
    fn thresholds_are_those_of_table_5_2_and_6_4() {
        let us = Span::from_us;
        for (target, min, max) in [
            (us(100), 12.5, 37.5),
            (us(200), 25.0, 75.0),
            (us(250), 31.25, 93.75),
            (us(300), 37.5, 112.5),
            (us(400), 50.0, 150.0),
            (us(500), 62.5, 187.5),
            (us(1_000), 125.0, 375.0),
            (us(2_000), 250.0, 750.0),
            (us(4_000), 500.0, 1500.0),
        ] {
            let config = config(target, false);
            for (rate, times) in [(Rate::gbit(1), 1.0), (Rate::gbit(10), 10.0)] {
                let (a, b) = config.thresholds(rate);
                assert!((a - min * times).abs() < 1e-9 && (b - max * times).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn thresholds_hold_at_the_port() {
        let config = config(Span::from_us(100), false);
        let mut red = AdaptiveRed::new(config, Rate::gbit(1), 8_000_000, Stream::new(1, "red"));
        let mut at = |queue| arrive(&Port::waiting(queue), |a| red.at_enqueue(a));
        assert!((0..100).all(|_| at(12) == Verdict::Enqueue));
        assert!((0..100).all(|_| at(38) == Verdict::DropEarly));
        let signalled = (0..100).filter(|_| at(25) == Verdict::DropEarly).count();
        assert!((50..80).contains(&signalled), "even gaps of 1 and 2: {signalled}");
    }

    #[test]
    fn the_probability_follows_the_average_within_its_bounds() {
        let config = config(Span::from_ms(1), true);
        let mut red = AdaptiveRed::new(config, Rate::gbit(1), 8_000_000, Stream::new(1, "red"));
        let p = |red: &mut AdaptiveRed| *red.red.max_probability();
        let at = |red: &mut AdaptiveRed, ms, queue| {
            let port = Port { now: Time::ZERO + Span::from_ms(ms), ..Port::waiting(queue) };
            arrive(&port, |a| red.at_enqueue(a));
        };
        at(&mut red, 0, 300);
        at(&mut red, 500, 250);
        assert_eq!(p(&mut red), 0.1 + 0.01);
        at(&mut red, 1_000, 250); // in the middle fifth, the probability stays unchanged
        at(&mut red, 1_500, 130);
        assert_eq!(p(&mut red), 0.11);
        at(&mut red, 2_000, 300);
        assert_eq!(p(&mut red), 0.11 * 0.9);
        at(&mut red, 10_000_000, 0);
        assert!(p(&mut red) > 0.5);
        at(&mut red, 20_000_000, 0);
        assert!(p(&mut red) < 0.01);
    }
}
