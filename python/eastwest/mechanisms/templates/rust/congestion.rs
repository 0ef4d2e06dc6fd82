//! `@NAME@`: a congestion control with an additive increase and a multiplicative decrease of its own
//! (AIMD; Chiu and Jain 1989).
//!
//! Parts to change: `Settings` has the keys of the scenario, in `[tcp.parameters]`; `on_ack`
//! increases the window, `after_loss` reduces it. TCP itself detects and repairs losses and has all
//! timers, by the settings of the scenario. With `increase = 1` and `keep = 0.5` this control is
//! Reno.

use eastwest::Mechanisms;
use eastwest::congestion::{
    Ack, CongestionControl, CongestionModel, CongestionRules, SenderPlace, Window, growth,
};
use eastwest::parameters::{Fraction, Ratio, Section, key};

/// Settings of the scenario, in `[tcp.parameters]`.
#[derive(Clone, Debug)]
struct Settings {
    increase: f64,
    keep: f64,
}

impl Settings {
    fn read(s: &mut Section) -> Settings {
        let increase: Ratio = s.get(
            key("increase", "Segments by which the window grows in each round trip.")
                .default("2")
                .range("0.01", "100"),
        );
        let keep: Fraction =
            s.get(key("keep", "Window share after a loss.").default("0.7").range("0.1", "0.99"));
        Settings { increase: increase.0, keep: keep.0 }
    }
}

impl CongestionModel for Settings {
    /// Returns the congestion control of one sender; each sender has its own.
    fn start(&self, place: &SenderPlace) -> Box<dyn CongestionControl> {
        Box::new(Aimd { settings: self.clone(), rules: place.rules })
    }
}

/// Congestion control of one sender.
#[derive(Debug)]
struct Aimd {
    settings: Settings,
    rules: CongestionRules,
}

impl CongestionControl for Aimd {
    fn on_ack(&mut self, w: &mut Window, ack: &Ack) {
        let (mut acked, counting) = (ack.acked, self.rules.counting);
        if w.in_slow_start() {
            acked = growth::slow_start(w, acked, ack.segment, ack.after_timeout, counting);
            if acked == 0 {
                return;
            }
        }
        // The window grows by one segment each time this number of bytes is acknowledged.
        let every = (w.cwnd as f64 / self.settings.increase) as u64;
        growth::additive(w, acked, every.max(1), ack.segment, counting);
    }

    fn after_loss(&mut self, _: &Window, flight: u64, segment: u64) -> u64 {
        ((flight as f64 * self.settings.keep) as u64).max(2 * segment)
    }
}

/// Registers the mechanism under its name in scenarios; register further mechanisms here.
pub fn add(all: &mut Mechanisms) {
    all.congestion("@NAME@", "AIMD with constants of its own", Settings::read);
}

#[cfg(not(test))]
eastwest::mechanisms!(add);

#[cfg(test)]
mod tests {
    use super::*;
    use eastwest::{Span, Time};

    #[test]
    fn a_window_acknowledged_adds_so_many_segments_and_a_loss_leaves_its_share() {
        let settings = Settings { increase: 2.0, keep: 0.7 };
        let mut control = Aimd { settings, rules: CongestionRules::default() };
        let mut w = Window { cwnd: 50_000, ssthresh: 10_000, credit: 0 };
        for _ in 0..50 {
            let (now, srtt) = (Time::ZERO, Span::from_ms(1));
            let ack = Ack { now, acked: 1_000, segment: 1_000, after_timeout: false, srtt };
            control.on_ack(&mut w, &ack);
        }
        assert!((51_900..=52_000).contains(&w.cwnd), "{}", w.cwnd);
        assert_eq!(control.after_loss(&w, 50_000, 1_000), 35_000);
    }
}
