//! PIE (RFC 8033; Pan et al. 2013): an arriving packet is dropped or marked with a probability that
//! a controller adapts, so that the queueing delay stays near a target.
//!
//! At every `update`, with the current queueing delay `d` and the delay `d'` at the previous
//! update,
//!
//! ```text
//! p ← p + scale(p) · (α·(d − target) + β·(d − d'))          (RFC 8033, 4.2)
//! ```
//!
//! where the factor `scale` makes steps small while `p` is small. A step is at most 0.02 once `p`
//! has reached 0.1, and `p` decays by 2 % per update while the queue stays empty.
//!
//! Nothing is dropped or marked in three cases: during the first `burst` of congestion (4.4); while
//! the delay was below half the target and `p` below 0.2; and if at most two packets are queued
//! (5.1). Drops are spread: the probabilities of all packets since the last drop are summed, and a
//! drop is possible from a sum of 0.85 on and certain from 8.5 on (5.4). ECT packets are marked
//! while `p` is at most `mark_up_to`, and dropped above this value (5.1).
//!
//! The delay is exact: the time to send the backlog. The departure rate is therefore not estimated
//! (4.3). Updates are executed at the next arrival, each with the delay at the time of the update.
//! PIE is always active (section 5.3 of the RFC is not used).

use super::decision::{Arrival, Place, Ports, Verdict};
use super::discipline::{BuiltIn, Discipline, QueueSettings};
use super::inert::Inert;
use super::signal::{Signal, read_signal};
use eastwest_engine::random::Stream;
use eastwest_settings::{Fraction, Ratio, Section, key};
use eastwest_types::{Limit, Rate, Span, Time};
use serde::{Deserialize, Serialize};

/// Settings of PIE at one port.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PieConfig {
    /// Target of the queueing delay (RFC 8033: QDELAY_REF, 15 ms).
    pub target: Span,
    /// Time between two updates of the drop probability (RFC 8033: T_UPDATE, 15 ms).
    pub update: Span,
    /// Weight of the difference between delay and target in an update, in 1/s (RFC 8033: 0.125).
    pub alpha: f64,
    /// Weight of the change of the delay since the last update, in 1/s (RFC 8033: 1.25).
    pub beta: f64,
    /// Duration of a burst after an idle time that causes no drops or marks (RFC 8033: MAX_BURST,
    /// 150 ms).
    pub burst: Span,
    /// Drop probability up to which ECT packets are marked; at a higher probability they are
    /// dropped (RFC 8033: MARK_ECNTH, 0.1).
    pub mark_up_to: f64,
    /// How congestion is signalled: by marks or drops.
    pub signal: Signal,
    /// Limit of the queue; packets that do not fit are dropped.
    pub limit: Limit,
}

impl BuiltIn for PieConfig {
    const NAME: &'static str = "pie";
    const DOC: &'static str = "a controller keeps the queueing delay near a target (RFC 8033)";

    fn read(s: &mut Section, limit: Limit, _: &Ports) -> PieConfig {
        let span = |s: &mut Section, name, doc, default| {
            s.get(key::<Span>(name, doc).default(default).range("1 us", "100 s"))
        };
        let gain = |s: &mut Section, name, doc, default| {
            s.get(key::<Ratio>(name, doc).default(default).range("0", "1000000")).0
        };
        let target = span(
            s,
            "target",
            "Target of the queueing delay (RFC 8033, QDELAY_REF: a value for \
                               the Internet).",
            "15 ms",
        );
        let update = span(
            s,
            "update",
            "Time between two updates of the drop probability (RFC \
                                        8033, T_UPDATE).",
            "15 ms",
        );
        let alpha = gain(
            s,
            "alpha",
            "Weight of the difference between delay and target, in 1/s (RFC \
                              8033).",
            "0.125",
        );
        let beta = gain(
            s,
            "beta",
            "Weight of the change of the delay since the last update, in \
                                    1/s (RFC 8033).",
            "1.25",
        );
        let burst = span(
            s,
            "burst",
            "Burst allowance: congestion shorter than this time causes no early \
                              drops or marks (RFC 8033, MAX_BURST).",
            "150 ms",
        );
        let mark_up_to: Fraction = s.get(
            key(
                "mark_up_to",
                "Drop probability up to which ECN packets are marked; above it they are dropped \
                 (RFC 8033, MARK_ECNTH).",
            )
            .default("0.1")
            .range("0", "1"),
        );
        let signal = read_signal(s);
        let mark_up_to = mark_up_to.0;
        PieConfig { target, update, alpha, beta, burst, mark_up_to, signal, limit }
    }
}

impl QueueSettings for PieConfig {
    type Queue = Box<Pie>;

    fn limit(&self) -> Limit {
        self.limit
    }

    fn start(&self, place: &Place) -> Box<Pie> {
        Box::new(Pie::new(*self, place.mtu, place.random("pie")))
    }

    fn target(&self, _: Rate, _: u32) -> Option<Span> {
        Some(self.target)
    }

    fn never_acts(&self, inert: &Inert) -> Vec<String> {
        inert.target(Self::NAME, self.target, self.limit)
    }
}

/// PIE queue of one port: settings and state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pie {
    config: PieConfig,
    /// IP bytes of two full packets; a shorter backlog causes no drop or mark (RFC 8033: twice
    /// MEAN_PKTSIZE).
    two_packets: u64,
    probability: f64,
    /// Sum of the drop probabilities of all packets since the last drop or mark.
    accumulated: f64,
    burst_left: Span,
    /// Queueing delay at the last update of the drop probability.
    delay: Span,
    updated: Time,
    /// Time at which the port will have sent all packets that have arrived so far.
    clear_at: Time,
    random: Stream,
}

impl Pie {
    /// Returns an empty queue at a port whose MTU is `mtu` bytes.
    pub fn new(config: PieConfig, mtu: u32, random: Stream) -> Pie {
        Pie {
            config,
            two_packets: 2 * u64::from(mtu),
            probability: 0.0,
            accumulated: 0.0,
            burst_left: config.burst,
            delay: Span::ZERO,
            updated: Time::ZERO,
            clear_at: Time::ZERO,
            random,
        }
    }

    /// Returns the factor of an update of the drop probability, which is small while the
    /// probability is small (RFC 8033, 4.2).
    fn scale(&self) -> f64 {
        match self.probability {
            p if p < 0.000_001 => 1.0 / 2048.0,
            p if p < 0.000_01 => 1.0 / 512.0,
            p if p < 0.000_1 => 1.0 / 128.0,
            p if p < 0.001 => 1.0 / 32.0,
            p if p < 0.01 => 1.0 / 8.0,
            p if p < 0.1 => 1.0 / 2.0,
            _ => 1.0,
        }
    }

    fn update(&mut self, delay: Span) {
        let seconds = |span: Span| span.0 as f64 * 1e-12;
        let (new, old) = (seconds(delay), seconds(self.delay));
        let c = &self.config;
        let mut step = self.scale() * (c.alpha * (new - seconds(c.target)) + c.beta * (new - old));
        if self.probability >= 0.1 && step > 0.02 {
            step = 0.02;
        }
        if delay > Span::from_ms(250) {
            step = 0.02;
        }
        self.probability += step;
        if delay == Span::ZERO && self.delay == Span::ZERO {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        if self.probability < 1e-12 {
            self.probability = 0.0;
        }
        let half = c.target.0 / 2;
        self.burst_left = Span(self.burst_left.0.saturating_sub(c.update.0));
        if self.probability == 0.0 && delay.0 < half && self.delay.0 < half {
            self.burst_left = c.burst;
        }
        self.delay = delay;
    }

    /// Executes all updates of the drop probability that are due before an arrival.
    fn catch_up(&mut self, arrival: &Arrival) {
        let at_rest = |p: &Pie| {
            p.probability == 0.0 && p.delay == Span::ZERO && p.burst_left == p.config.burst
        };
        while self.updated + self.config.update <= arrival.now {
            let at = self.updated + self.config.update;
            if self.clear_at <= at && at_rest(self) {
                // The queue is empty and all variables have their initial values, so that the
                // remaining updates up to this arrival change nothing.
                let steps = arrival.now.since(self.updated).0 / self.config.update.0;
                self.updated += self.config.update * steps;
                break;
            }
            // No packet has arrived since the time `at`, so that the queueing delay at `at` follows
            // exactly from `clear_at`.
            self.update(Span(self.clear_at.0.saturating_sub(at.0)));
            self.updated = at;
        }
    }

    fn spread(&mut self) -> bool {
        if self.probability == 0.0 {
            self.accumulated = 0.0;
            return false;
        }
        self.accumulated += self.probability;
        if self.accumulated < 0.85 {
            return false;
        }
        let hit = self.accumulated >= 8.5 || self.random.unit() < self.probability;
        if hit {
            self.accumulated = 0.0;
        }
        hit
    }

    fn signals(&mut self, arrival: &Arrival) -> bool {
        let calm = self.delay.0 < self.config.target.0 / 2 && self.probability < 0.2;
        if self.burst_left > Span::ZERO || calm || arrival.backlog.bytes <= self.two_packets {
            return false;
        }
        self.spread()
    }

    /// Decides about an arriving packet: enqueue, mark or drop.
    fn judge(&mut self, arrival: &Arrival) -> Verdict {
        let fits = arrival.fits(self.config.limit);
        if fits != Verdict::Enqueue || !self.signals(arrival) {
            return fits;
        }
        let ecn = self.config.signal.ecn && self.probability <= self.config.mark_up_to;
        Signal { ecn, ..self.config.signal }.verdict(arrival.packet)
    }
}

impl Discipline for Pie {
    fn sees_all(&self) -> bool {
        true
    }

    fn at_enqueue(&mut self, arrival: &Arrival) -> Verdict {
        self.catch_up(arrival);
        let verdict = self.judge(arrival);
        self.clear_at = match verdict {
            Verdict::Enqueue | Verdict::Mark => {
                arrival.clear_at.max(arrival.now) + arrival.send_time
            }
            Verdict::Drop | Verdict::DropEarly | Verdict::Trim => arrival.clear_at,
        };
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::super::decision::tests::{Port, arrive};
    use super::*;

    fn pie() -> Pie {
        let config = PieConfig {
            target: Span::from_ms(15),
            update: Span::from_ms(15),
            alpha: 0.125,
            beta: 1.25,
            burst: Span::from_ms(150),
            mark_up_to: 0.1,
            signal: Signal::default(),
            limit: Limit::Packets(10_000),
        };
        Pie::new(config, 1500, Stream::new(3, "pie"))
    }

    /// Enqueues a packet every millisecond from `from_ms` to `to_ms`, each with a queueing delay of
    /// `delay_ms`. Returns time in ms and verdict of each packet.
    fn offer(pie: &mut Pie, from_ms: u64, to_ms: u64, delay_ms: u64) -> Vec<(u64, Verdict)> {
        (from_ms..to_ms)
            .map(|ms| {
                let now = Time::ZERO + Span::from_ms(ms);
                let clear_at = now + Span::from_ms(delay_ms);
                let waiting = if delay_ms > 0 { 100 } else { 0 };
                let port = Port { now, clear_at, bytes: 150_000, ..Port::waiting(waiting) };
                (ms, arrive(&port, |a| pie.at_enqueue(a)))
            })
            .collect()
    }

    #[test]
    fn one_update_is_that_of_the_rfc() {
        let mut pie = pie();
        pie.probability = 0.05;
        pie.delay = Span::from_ms(20);
        pie.update(Span::from_ms(30));
        let step = 0.5 * (0.125 * 0.015 + 1.25 * 0.010);
        assert!((pie.probability - (0.05 + step)).abs() < 1e-12);
        pie.probability = 0.5;
        pie.update(Span::from_ms(200));
        assert!((pie.probability - 0.52).abs() < 1e-12);
        (pie.delay, pie.probability) = (Span::ZERO, 0.5);
        pie.update(Span::ZERO);
        assert!((pie.probability - (0.5 - 0.125 * 0.015) * 0.98).abs() < 1e-12);
    }

    #[test]
    fn a_burst_shorter_than_allowed_is_not_punished_and_lasting_delay_is() {
        let mut pie = pie();
        let early = |log: &[(u64, Verdict)]| {
            log.iter()
                .filter(|(_, v)| *v == Verdict::DropEarly)
                .map(|(ms, _)| *ms)
                .collect::<Vec<_>>()
        };
        assert!(early(&offer(&mut pie, 0, 140, 60)).is_empty());
        let drops = early(&offer(&mut pie, 140, 4_000, 60));
        assert!(drops.len() > 50, "{}", drops.len());
        // While the delay lasts, drops become more frequent: less than half of them are in the
        // first half of the time.
        let half = drops.partition_point(|&ms| ms < 2_000);
        assert!(half * 2 < drops.len());
        // Drops end after the queue has been empty for some time.
        offer(&mut pie, 4_000, 60_000, 0);
        assert!(early(&offer(&mut pie, 60_000, 60_100, 60)).is_empty());
    }

    #[test]
    fn years_of_rest_cost_nothing() {
        let mut pie = pie();
        offer(&mut pie, 0, 1, 0);
        offer(&mut pie, 1_000_000_000, 1_000_000_001, 0);
        assert_eq!(pie.probability, 0.0);
        assert!(pie.updated.0 > Span::from_secs(999_999).0);
    }

    #[test]
    fn short_queues_are_left_alone() {
        let mut pie = pie();
        pie.probability = 1.0;
        pie.burst_left = Span::ZERO;
        pie.delay = Span::from_ms(30);
        let port = Port { bytes: 3_000, ..Port::waiting(2) };
        assert_eq!(arrive(&port, |a| pie.at_enqueue(a)), Verdict::Enqueue);
        let port = Port { bytes: 3_001, ..Port::waiting(3) };
        assert_eq!(arrive(&port, |a| pie.at_enqueue(a)), Verdict::DropEarly);
    }
}
