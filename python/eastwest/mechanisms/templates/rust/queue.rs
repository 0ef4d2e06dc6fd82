//! `@NAME@`: a queue discipline that drops early on a linear ramp.
//!
//! What to change: `Settings` are the keys of the scenario, `probability` is the rule. A packet that
//! comes while `min` packets or fewer wait is let in; between `min` and `max` it is signalled with a
//! probability that grows from 0 to `max_probability`; from `max` on every packet is. To signal is to
//! mark where the transport understands marks, and else to drop, unless `protection` spares it.

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
    /// Declares each key where it is read: default, range, meaning. All that is wrong with a
    /// scenario is reported at once, and its result folder spells the defaults out.
    fn read(s: &mut Section, limit: Limit) -> Settings {
        let min = s.get(key("min", "Packets up to which none is signalled.").default("5"));
        let max = s.get(key("max", "Packets from which on all are.").default("15"));
        s.demand(min < max, &["min", "max"], || "must be below `max`".to_owned());
        let max_probability: Fraction = s.get(
            key("max_probability", "Probability just below `max`.").default("1").range("0", "1"),
        );
        let signal = read_signal(s); // the keys `ecn` and `protection`
        Settings { min, max, max_probability: max_probability.0, signal, limit }
    }

    /// The probability of a signal while so many packets wait.
    fn probability(&self, waiting: usize) -> f64 {
        let (waiting, min, max) = (waiting as f64, f64::from(self.min), f64::from(self.max));
        if waiting >= max {
            return 1.0;
        }
        (self.max_probability * (waiting - min) / (max - min)).max(0.0)
    }
}

impl QueueModel for Settings {
    /// Every port gets a queue of its own, and with it random numbers of its own.
    fn start(&self, place: &Place) -> Box<dyn CustomQueue> {
        Box::new(Ramp { settings: self.clone(), random: place.random("@NAME@") })
    }

    /// Where nothing waits nothing is signalled. A rule with an average would have to see all.
    fn sees_all(&self) -> bool {
        false
    }
}

/// The queue of one port.
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

/// Adds it to what scenarios can name; further mechanisms of this crate are added here.
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
