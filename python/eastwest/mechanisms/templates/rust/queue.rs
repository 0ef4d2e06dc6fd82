//! `@NAME@`: a queue discipline that drops early on a linear ramp.
//!
//! Parts to change: `Settings` has the keys of the scenario, `probability` is the rule. A packet
//! that arrives while at most `min` packets wait is enqueued. Between `min` and `max` waiting
//! packets, it signals congestion with a probability that grows from 0 to `max_probability`, and
//! from `max` on always. The signal is a mark if the transport understands marks. Otherwise the
//! packet is dropped, or enqueued if the setting `protection` protects it.

use eastwest::{Mechanisms, Stream};
use eastwest::parameters::{Fraction, Section, key, read_signal};
use eastwest::queue::{Arrival, CustomQueue, Limit, Place, QueueModel, Signal, Verdict};

/// Settings of the scenario, in the table of the queue.
#[derive(Clone, Debug)]
struct Settings {
    min: u32,
    max: u32,
    max_probability: f64,
    signal: Signal,
    limit: Limit,
}

impl Settings {
    /// Reads the settings. Each key is declared where it is read, with default, range and meaning,
    /// so that all errors of a scenario are reported at once and result folders have all defaults.
    fn read(s: &mut Section, limit: Limit) -> Settings {
        let min = s.get(key("min", "Queue (packets) up to which none is signalled.").default("5"));
        let max = s.get(key("max", "Queue (packets) at which all are signalled.").default("15"));
        s.demand(min < max, &["min", "max"], || "must be below `max`".to_owned());
        let max_probability: Fraction = s.get(
            key("max_probability", "Probability just below `max`.").default("1").range("0", "1"),
        );
        let signal = read_signal(s); // the keys `ecn` and `protection`
        Settings { min, max, max_probability: max_probability.0, signal, limit }
    }

    /// Returns the probability of a signal while `waiting` packets wait.
    fn probability(&self, waiting: usize) -> f64 {
        let (waiting, min, max) = (waiting as f64, f64::from(self.min), f64::from(self.max));
        if waiting >= max {
            return 1.0;
        }
        (self.max_probability * (waiting - min) / (max - min)).max(0.0)
    }
}

impl QueueModel for Settings {
    /// Returns the queue of one port; each port has its own queue and its own random numbers.
    fn start(&self, place: &Place) -> Box<dyn CustomQueue> {
        Box::new(Ramp { settings: self.clone(), random: place.random("@NAME@") })
    }

    /// Whether the queue is called for packets that do not wait. This rule never signals them; a
    /// rule with an average would need all packets.
    fn sees_all(&self) -> bool {
        false
    }
}

/// Queue of one port.
#[derive(Debug)]
struct Ramp {
    settings: Settings,
    random: Stream,
}

impl CustomQueue for Ramp {
    fn at_enqueue(&mut self, arrival: &Arrival) -> Verdict {
        let fits = arrival.fits(self.settings.limit);
        if fits != Verdict::Enqueue {
            return fits;
        }
        let p = self.settings.probability(arrival.backlog.packets);
        if p > 0.0 && (p >= 1.0 || self.random.unit() < p) {
            return self.settings.signal.verdict(arrival.packet);
        }
        Verdict::Enqueue
    }
}

/// Registers the mechanism under its name in scenarios; register further mechanisms here.
pub fn add(all: &mut Mechanisms) {
    all.queue("@NAME@", "drops early on a linear ramp", Settings::read);
}

#[cfg(not(test))]
eastwest::mechanisms!(add);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probability_grows_from_min_to_max() {
        let settings = Settings {
            min: 5,
            max: 15,
            max_probability: 0.5,
            signal: Signal::default(),
            limit: Limit::Packets(100),
        };
        let p = [0, 5, 10, 14, 15, 99].map(|waiting| settings.probability(waiting));
        assert_eq!(p, [0.0, 0.0, 0.25, 0.45, 1.0, 1.0]);
    }
}
