//! Random early detection (RED; Floyd and Jacobson 1993): the longer the queue, the more likely an
//! arriving packet is dropped or marked, so that senders slow down before the queue is full.
//!
//! Every arrival updates an [average](super::average) of the queue length. With weight 1 the
//! average is the current queue length, as in E-EON. Below `min`, all packets pass. Between the
//! thresholds the probability of a signal (a drop or a mark) grows to `max_probability`:
//!
//! ```text
//! p_b = max_probability · (avg − min) / (max − min)        p = p_b / (1 − n·p_b)
//! ```
//!
//! where `n` is the number of packets enqueued since the last signal. The second formula spreads
//! signals evenly: gaps are uniform on 1 … 1/p_b (section 7). ns-2 by default (`wait_ true`)
//! enqueues 1/p_b packets without signal first, so that gaps are uniform on 1/p_b … 2/p_b
//! ([`Spread::Wait`]). From `max` on every packet is signalled. With `gentle`, the probability
//! grows linearly from `max_probability` at `max` to one at twice `max` (Floyd 2000). In the paper
//! the queue length counts all packets at the gateway; here, as in ns-2, the packet in transmission
//! does not count.
//!
//! Mark or drop: RFC 3168, section 7, allows a router to drop even ECN-capable packets when its
//! average is above an upper threshold. `mark_below` is the probability from which ECN-capable
//! packets are dropped. As in ns-2's `queue/red.cc` (`REDQueue::drop_early`, `v_prob1`),
//! `mark_below` is compared with the probability *before* spreading.
//! [Protected](super::signal::Protection) packets are not dropped.

use super::average::Average;
use super::decision::{Arrival, LARGEST_BARE_PACKET, Level, Place, Ports, Verdict, least_packets};
use super::discipline::{BuiltIn, Discipline, QueueSettings};
use super::inert::Inert;
use super::signal::{Signal, read_signal};
use eastwest_engine::random::Stream;
use eastwest_settings::{Fraction, Octets, Quantity, Ratio, Section, key};
use eastwest_types::{Limit, Rate, Span};
use serde::{Deserialize, Serialize};

/// Settings of RED at one port.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RedConfig {
    /// Lower threshold: average queue length from which packets are dropped or marked at random.
    pub min: Level,
    /// Upper threshold: average queue length from which all packets are dropped or marked, unless
    /// `gentle` is set.
    pub max: Level,
    /// Weight of the current queue length in the average (1: no averaging).
    pub weight: f64,
    /// Probability of a drop or mark just below the upper threshold `max`.
    pub max_probability: f64,
    /// Whether the probability grows gradually to one at twice the upper threshold `max`, instead
    /// of jumping to one at `max`.
    pub gentle: bool,
    /// How signals (drops or marks) are distributed over arriving packets.
    pub spread: Spread,
    /// Length of a mean packet in IP bytes, from which the number of packets that could have been
    /// sent in an idle time follows.
    pub mean_packet: u32,
    /// Signals of congestion: marks or drops, and protected packets.
    pub signal: Signal,
    /// Probability, before spreading, from which ECN-capable packets are dropped instead of marked;
    /// `None`: ECN-capable packets are marked at every probability.
    pub mark_below: Option<f64>,
    /// Limit of the queue; packets that do not fit are dropped.
    pub limit: Limit,
}

/// How signals (drops or marks) are distributed over arriving packets. `p_b` is the probability
/// that follows from the average queue, and `n` the number of packets enqueued since the last
/// signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Spread {
    /// Every packet is signalled independently, with the probability p_b that follows from the
    /// average queue: gaps between signals are geometric.
    Alone,
    /// The probability is p_b / (1 − n·p_b), where p_b follows from the average queue and n packets
    /// were enqueued since the last signal. Gaps between signals are uniform on 1 … 1/p_b (Floyd
    /// and Jacobson 1993, section 7).
    Even,
    /// The probability is zero while m·p_b is below 1, then p_b / (2 − m·p_b), where p_b follows
    /// from the average queue and m − 1 packets were enqueued since the last signal. Gaps between
    /// signals are uniform on 1/p_b … 2/p_b (ns-2, `queue/red.cc`, `REDQueue::modify_p` with
    /// `wait_`).
    Wait,
}

/// RED at one port: settings and state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Red {
    config: RedConfig,
    average: Average,
    /// Number of packets enqueued since the last drop or mark while the average queue was between
    /// the thresholds.
    unsignalled: u32,
    random: Stream,
}

impl RedConfig {
    /// Reads the settings common to RED and adaptive RED; both thresholds are set to zero.
    pub(super) fn read_rest(s: &mut Section, limit: Limit) -> RedConfig {
        let weight: Ratio = s.get(
            key(
                "weight",
                "Weight of the current queue length in the average; with 1 the average is the \
                 current length (Floyd and Jacobson 1993: 0.002; E-EON: 1).",
            )
            .default("0.002")
            .range("0.000001", "1"),
        );
        let max_probability: Fraction = s.get(
            key(
                "max_probability",
                "Probability of a drop or mark just below the upper threshold (Floyd 1997: 0.1; \
                 E-EON: 1).",
            )
            .default("0.1")
            .range("0.0001", "1"),
        );
        RedConfig {
            min: Level::Packets(0.0),
            max: Level::Packets(0.0),
            weight: weight.0,
            max_probability: max_probability.0,
            gentle: s.get(
                key(
                    "gentle",
                    "Whether the probability grows linearly between the upper threshold and twice \
                     its value, where it is 1 (Floyd 2000). If false, it is 1 from the upper \
                     threshold on.",
                )
                .default("true"),
            ),
            spread: read_spread(s),
            mean_packet: s
                .get(
                    key::<Octets>(
                        "mean_packet",
                        "IP bytes of a typical packet. It determines how fast the average decays \
                     while a port is idle, and how many packets a delay means (E-EON: 1000 B).",
                    )
                    .default("1000")
                    .range("40", "9216"),
                )
                .0,
            signal: read_signal(s),
            mark_below: read_mark_below(s),
            limit,
        }
    }
}

impl BuiltIn for RedConfig {
    const NAME: &'static str = "red";
    const DOC: &'static str =
        "drops at random, more often the longer the queue (Floyd and Jacobson 1993)";

    fn read(s: &mut Section, limit: Limit, _: &Ports) -> RedConfig {
        let min: Limit = s.get(key(
            "min",
            "Lower threshold: average queue length, in packets or IP bytes, from which packets \
             are dropped or marked at random (E-EON, table 5.3: 25, 50 or 70 packets).",
        ));
        let max: Limit = s.get(key(
            "max",
            "Upper threshold: average queue length from which all packets are dropped or marked; \
             `gentle` makes this transition gradual (E-EON, table 5.3: 51 to 150 packets; Floyd \
             advises three times `min`).",
        ));
        s.demand(min.counts_same_as(max), &["max", "min"], || {
            "must have the same unit as `min`: packets or bytes".to_owned()
        });
        let above = min.counts_same_as(max) && Level::from(min).value() > Level::from(max).value();
        s.demand(!above, &["min", "max"], || {
            format!("must be at most `max`, which is {}", max.show())
        });
        let rest = RedConfig::read_rest(s, limit);
        RedConfig { min: min.into(), max: max.into(), ..rest }
    }
}

impl QueueSettings for RedConfig {
    type Queue = Box<Red>;

    fn limit(&self) -> Limit {
        self.limit
    }

    fn start(&self, place: &Place) -> Box<Red> {
        Box::new(Red::new(*self, place.packet_ps(self.mean_packet), place.random("red")))
    }

    fn target(&self, rate: Rate, full: u32) -> Option<Span> {
        let bytes = match self.min {
            Level::Packets(n) => n * f64::from(full),
            Level::Bytes(n) => n,
        };
        Some(rate.time_for(bytes as u64))
    }

    fn never_acts(&self, inert: &Inert) -> Vec<String> {
        inert.thresholds(Self::NAME, self.min, self.max, self.limit).into_iter().collect()
    }
}

fn read_spread(s: &mut Section) -> Spread {
    let even: bool = s.get(
        key(
            "even",
            "Whether drops and marks are spread evenly over the packets (Floyd and \
                     Jacobson 1993, section 7).",
        )
        .default("true"),
    );
    let wait: bool = s.get(
        key(
            "wait",
            "Whether at least 1/probability packets pass between two drops or marks (ns-2's \
             `wait_`, which is on by default); needs even = true.",
        )
        .default("false"),
    );
    s.demand(even || !wait, &["wait", "even"], || "needs even = true".to_owned());
    match (even, wait) {
        (false, _) => Spread::Alone,
        (true, false) => Spread::Even,
        (true, true) => Spread::Wait,
    }
}

fn read_mark_below(s: &mut Section) -> Option<f64> {
    let below: Option<Fraction> = s.find(
        key(
            "mark_below",
            "Probability (before `even` changes it) below which ECN packets are marked; from it \
             on they are dropped (ns-2's `mark_p_`: 0.1). With 1 they are dropped only when the \
             probability is 1, for gentle = false from the upper threshold on (RFC 3168, section \
             7; Linux with `harddrop`).",
        )
        .range("0", "1")
        .optional("ECN packets are marked at every probability"),
    );
    below.map(|below| below.0)
}

impl Red {
    /// Returns an empty queue. `packet_ps` is the transmission time of a packet of mean size in ps.
    pub fn new(config: RedConfig, packet_ps: u64, random: Stream) -> Red {
        let average = Average::new(config.weight, packet_ps);
        Red { config, average, unsignalled: 0, random }
    }

    /// Returns the average queue length for modification.
    pub fn average(&mut self) -> &mut Average {
        &mut self.average
    }

    /// Returns the probability of a drop or mark at the upper threshold for modification by
    /// adaptive RED.
    pub(super) fn max_probability(&mut self) -> &mut f64 {
        &mut self.config.max_probability
    }

    /// Returns the probability of a drop or mark before spreading, which follows from the average
    /// queue.
    fn probability(&self) -> f64 {
        let c = &self.config;
        let (avg, min, max) = (self.average.value(), c.min.value(), c.max.value());
        if avg < min {
            0.0
        } else if avg < max {
            c.max_probability * (avg - min) / (max - min)
        } else if c.gentle && avg < 2.0 * max {
            c.max_probability + (1.0 - c.max_probability) * (avg - max) / max
        } else {
            1.0
        }
    }
}

impl Discipline for Red {
    fn sees_all(&self) -> bool {
        true
    }

    // With weight 1, each decision sets the average anew. The count for spreading does not miss a
    // restart either: after packets without decision, the next packet with a decision finds exactly
    // this number of packets, hence an average of at most `min`, and restarts the count.
    #[inline]
    fn admits_below(&self, mtu: u32) -> u32 {
        if self.config.weight < 1.0 {
            return 0;
        }
        let packets = match self.config.min {
            Level::Packets(min) => min,
            Level::Bytes(min) => min / f64::from(mtu.max(LARGEST_BARE_PACKET)),
        };
        (packets as u32).min(least_packets(self.config.limit, mtu))
    }

    #[inline(always)]
    fn at_enqueue(&mut self, arrival: &Arrival) -> Verdict {
        // Signed numbers are converted faster.
        let queue = match self.config.min {
            Level::Packets(_) => arrival.backlog.packets as i64 as f64,
            Level::Bytes(_) => arrival.backlog.bytes as i64 as f64,
        };
        let idle = arrival.idle().then(|| arrival.now.since(arrival.clear_at));
        self.average.follow(queue, idle);
        let fits = arrival.fits(self.config.limit);
        if fits != Verdict::Enqueue {
            return fits;
        }
        let p = self.probability();
        if p <= 0.0 {
            // The average is at most `min`, so that the packet is enqueued and the count for
            // spreading restarts.
            self.unsignalled = 0;
            return Verdict::Enqueue;
        }
        // p / rest is the probability after spreading; if this value is one or more, the packet is
        // certainly dropped or marked.
        let rest = match self.config.spread {
            Spread::Alone => 1.0,
            Spread::Even => 1.0 - f64::from(self.unsignalled) * p,
            Spread::Wait => 2.0 - (f64::from(self.unsignalled) + 1.0) * p,
        };
        // `rest` is above 1 only with `Spread::Wait`, for the packets that are enqueued before a
        // signal is possible.
        let signalled = rest <= 1.0 && (p >= 1.0 || self.random.unit() * rest < p);
        if !signalled {
            self.unsignalled += 1;
            return Verdict::Enqueue;
        }
        self.unsignalled = 0;
        let Signal { ecn, protection } = self.config.signal;
        let ecn = ecn && self.config.mark_below.is_none_or(|most| p < most);
        Signal { ecn, protection }.verdict(arrival.packet)
    }
}

#[cfg(test)]
mod tests {
    use super::super::decision::tests::{Port, arrive, arrive_as};
    use super::super::signal::Protection;
    use super::*;
    use eastwest_types::{HostId, Packet, Time, ecn, flag};

    fn config(min: f64, max: f64, weight: f64) -> RedConfig {
        RedConfig {
            min: Level::Packets(min),
            max: Level::Packets(max),
            weight,
            max_probability: 1.0,
            gentle: false,
            spread: Spread::Even,
            mean_packet: 1000,
            signal: Signal::default(),
            mark_below: None,
            limit: Limit::Packets(1000),
        }
    }

    fn red(config: RedConfig) -> Red {
        Red::new(config, 12_304_000, Stream::new(7, "red"))
    }

    fn times(base: f64, exponent: u32) -> f64 {
        (0..exponent).fold(1.0, |product, _| product * base)
    }

    #[test]
    fn the_average_is_that_of_check_13() {
        // L arrivals fill a queue from 0 to L. Then avg = L+1 + ((1−w)^(L+1) − 1)/w, which is 5.005
        // for L = 50 and w = 0.0042.
        let mut red = red(config(100.0, 200.0, 0.0042));
        for queue in 0..=50 {
            let busy = Port { clear_at: Time(2), ..Port::waiting(queue) };
            assert_eq!(arrive(&busy, |a| red.at_enqueue(a)), Verdict::Enqueue);
        }
        let (w, l) = (0.0042, 50.0);
        let expected = l + 1.0 + (times(1.0 - w, 51) - 1.0) / w;
        assert!((red.average().value() - expected).abs() < 1e-9 && (expected - 5.005).abs() < 5e-4);
    }

    #[test]
    fn the_average_decays_while_nothing_is_sent() {
        let mut red = red(config(100.0, 200.0, 0.002));
        red.average().set(50.0);
        // The port has been idle for 1000.5 packet times, of which 1000 count.
        let idle = Port { now: Time(12_304_000 * 1_000 + 6_152_000), ..Port::waiting(0) };
        arrive(&idle, |a| red.at_enqueue(a));
        assert!((red.average().value() - 50.0 * times(0.998, 1_000)).abs() < 1e-9);
        let busy = Port { clear_at: Time(2), ..Port::waiting(0) };
        let before = red.average().value();
        arrive(&busy, |a| red.at_enqueue(a));
        assert!((red.average().value() - before * 0.998).abs() < 1e-12);
    }

    #[test]
    fn with_weight_1_short_queues_need_no_decision() {
        let limit = Limit::Packets(40);
        let levels =
            [(10.0, 30.0), (9.5, 30.0), (0.5, 12.0)].map(|(min, max)| config(min, max, 1.0));
        let bytes = Level::Bytes;
        let in_bytes =
            RedConfig { min: bytes(15_000.0), max: bytes(45_000.0), ..config(0.0, 0.0, 1.0) };
        assert_eq!([red(levels[1]), red(in_bytes)].map(|red| red.admits_below(1_500)), [9, 10]);
        assert_eq!(red(config(10.0, 20.0, 0.5)).admits_below(1_500), 0);
        for config in levels.into_iter().chain([in_bytes]) {
            for spread in [Spread::Alone, Spread::Even, Spread::Wait] {
                let config = RedConfig { max_probability: 0.3, spread, limit, ..config };
                let (mut sees_all, mut sees_few) = (red(config), red(config));
                let (mut random, mut queue) = (Stream::new(3, "queue"), 0);
                for _ in 0..20_000 {
                    let expected = arrive(&Port::waiting(queue), |a| sees_all.at_enqueue(a));
                    let verdict = match queue < sees_few.admits_below(1_500) as usize {
                        true => Verdict::Enqueue,
                        false => arrive(&Port::waiting(queue), |a| sees_few.at_enqueue(a)),
                    };
                    assert_eq!(verdict, expected, "{config:?}, queue of {queue} packets");
                    // Each packet makes the queue longer by at most one.
                    queue += usize::from(verdict == Verdict::Enqueue);
                    queue -= queue.min(random.below(3) as usize);
                }
            }
        }
    }

    /// Returns the number of packets from each drop or mark to the next, while the queue length
    /// stays at `queue` packets.
    fn gaps(mut red: Red, queue: usize, packets: usize) -> Vec<usize> {
        let (mut gaps, mut gap) = (Vec::new(), 0);
        for _ in 0..packets {
            gap += 1;
            if arrive(&Port::waiting(queue), |a| red.at_enqueue(a)) == Verdict::DropEarly {
                gaps.push(std::mem::take(&mut gap));
            }
        }
        gaps
    }

    #[test]
    fn gaps_are_those_of_check_14() {
        // The probability p_b from the queue length is 1/20. Gaps between signals are then uniform
        // on 1 … 20 packets, with the mean 10.5.
        let gaps =
            gaps(red(RedConfig { max_probability: 0.1, ..config(10.0, 20.0, 1.0) }), 15, 200_000);
        let mean = gaps.iter().sum::<usize>() as f64 / gaps.len() as f64;
        assert!((mean - 10.5).abs() < 0.1, "{mean}");
        let mut counts = [0usize; 21];
        gaps.iter().for_each(|&g| counts[g] += 1);
        assert_eq!(counts[0], 0);
        let each = gaps.len() as f64 / 20.0;
        for n in &counts[1..] {
            assert!((*n as f64 / each - 1.0).abs() < 0.15, "{counts:?}");
        }
    }

    #[test]
    fn gaps_of_wait_begin_where_those_of_even_end() {
        // The probability p_b from the queue length is 1/20. A signal is first possible at the 20th
        // packet after a signal, with probability 1/20, and certain at the 39th packet.
        let config =
            RedConfig { max_probability: 0.1, spread: Spread::Wait, ..config(10.0, 20.0, 1.0) };
        let gaps = gaps(red(config), 15, 200_000);
        assert_eq!((gaps.iter().min(), gaps.iter().max()), (Some(&20), Some(&39)));
        let mean = gaps.iter().sum::<usize>() as f64 / gaps.len() as f64;
        assert!((mean - 29.5).abs() < 0.3, "{mean}");
    }

    #[test]
    fn without_spreading_gaps_are_geometric() {
        let config =
            RedConfig { max_probability: 0.1, spread: Spread::Alone, ..config(10.0, 20.0, 1.0) };
        let gaps = gaps(red(config), 15, 200_000);
        let mean = gaps.iter().sum::<usize>() as f64 / gaps.len() as f64;
        assert!((mean - 20.0).abs() < 0.6, "{mean}");
        assert!(gaps.iter().max() > Some(&60));
    }

    #[test]
    fn probability_grows_to_the_upper_threshold_and_gently_on() {
        let at = |gentle, average| {
            let config = RedConfig { gentle, max_probability: 0.4, ..config(10.0, 20.0, 1.0) };
            let mut red = red(config);
            red.average().set(average);
            (red.probability() * 1e6).round() / 1e6
        };
        assert_eq!([9.9, 10.0, 15.0, 20.0].map(|a| at(false, a)), [0.0, 0.0, 0.2, 1.0]);
        assert_eq!([15.0, 20.0, 30.0, 40.0].map(|a| at(true, a)), [0.2, 0.4, 0.7, 1.0]);
    }

    #[test]
    fn equal_thresholds_are_a_step_and_the_limit_holds() {
        let mut red = red(RedConfig { limit: Limit::Packets(80), ..config(70.0, 70.0, 1.0) });
        let mut at = |queue| arrive(&Port::waiting(queue), |a| red.at_enqueue(a));
        assert_eq!(at(69), Verdict::Enqueue);
        assert_eq!(at(70), Verdict::DropEarly);
        assert_eq!(at(79), Verdict::DropEarly);
        assert_eq!(at(80), Verdict::Drop);
    }

    #[test]
    fn levels_may_count_bytes() {
        let mut red = red(RedConfig {
            min: Level::Bytes(30_000.0),
            max: Level::Bytes(30_000.0),
            ..config(0.0, 0.0, 1.0)
        });
        let mut at = |bytes| {
            let port = Port { bytes, ..Port::waiting(1) };
            arrive(&port, |a| red.at_enqueue(a))
        };
        assert_eq!((at(29_999), at(30_000)), (Verdict::Enqueue, Verdict::DropEarly));
    }

    fn ect(flags: u8) -> Packet {
        Packet { tos: ecn::ECT0, flags, ..Packet::blank(HostId(1)) }
    }

    fn marking(mark_below: Option<f64>, protection: Protection) -> RedConfig {
        let signal = Signal { ecn: true, protection };
        let gentle = RedConfig { gentle: true, max_probability: 0.5, ..config(10.0, 20.0, 1.0) };
        RedConfig { signal, mark_below, ..gentle }
    }

    /// Returns how many of 1000 ECT packets that find `waiting` packets queued are marked, and how
    /// many are dropped.
    fn signals(config: RedConfig, waiting: usize, flags: u8) -> (usize, usize) {
        let mut red = red(config);
        let verdicts: Vec<Verdict> = (0..1_000)
            .map(|_| arrive_as(&Port::waiting(waiting), &ect(flags), |a| red.at_enqueue(a)))
            .collect();
        let count = |which| verdicts.iter().filter(|&&v| v == which).count();
        (count(Verdict::Mark), count(Verdict::DropEarly))
    }

    #[test]
    fn packets_are_marked_below_a_probability_and_dropped_from_it_on() {
        let outcome = |below, waiting| {
            let (marked, dropped) = signals(marking(below, Protection::Default), waiting, 0);
            (marked > 0, dropped > 0)
        };
        let (none, marks, drops) = ((false, false), (true, false), (false, true));
        // The probability p_b from the queue length q is 0.5 · (q − 10)/10: 0.05, 0.1 and 0.15 with
        // 11, 12 and 13 queued packets. Only p_b is compared with `mark_below`, not the probability
        // after spreading, which is one at the end of every gap.
        let at = [10, 11, 12, 13, 39, 40];
        assert_eq!(at.map(|q| outcome(Some(0.1), q)), [none, marks, drops, drops, drops, drops]);
        // The probability p_b from the queue length q is 0.5 + 0.5 · (q − 20)/20: 0.975 with 39
        // queued packets, and 1 with 40 or more.
        assert_eq!(at.map(|q| outcome(Some(1.0), q)), [none, marks, marks, marks, marks, drops]);
        assert_eq!(at.map(|q| outcome(None, q)), [none, marks, marks, marks, marks, marks]);
        assert_eq!(at.map(|q| outcome(Some(0.0), q)), [none, drops, drops, drops, drops, drops]);
    }

    #[test]
    fn protected_packets_are_not_dropped_where_marks_end() {
        let at = |protection, flags| signals(marking(Some(0.1), protection), 40, flags);
        assert_eq!(at(Protection::Default, flag::ECE), (0, 1_000));
        assert_eq!(at(Protection::EceBit, flag::ECE), (0, 0));
        // Protection does not change what happens to packets that can be marked.
        for protection in [Protection::EceBit, Protection::AckSyn, Protection::Bypass] {
            assert_eq!(at(protection, flag::ACK), (0, 1_000));
        }
    }

    // Expected values are those of Linux `sch_red` with `ecn` and `harddrop`, and of RFC 3168,
    // section 7.
    #[test]
    fn ecn_packets_are_dropped_from_the_upper_threshold_on_where_that_is_asked_for() {
        // RED has thresholds of 10 and 20 packets, and a probability of 0.1 just below the upper
        // one.
        let red = |gentle, mark_below, waiting| {
            let base = RedConfig {
                gentle,
                max_probability: 0.1,
                ..marking(mark_below, Protection::Default)
            };
            signals(base, waiting, 0)
        };
        for (gentle, below) in [(false, 1.0), (true, 0.1)] {
            let (marked, dropped) = red(gentle, Some(below), 19);
            assert!(marked > 50 && dropped == 0, "{gentle}: {marked} marked, {dropped} dropped");
            let (marked, dropped) = red(gentle, Some(below), 20);
            assert!(marked == 0 && dropped > 50, "{gentle}: {marked} marked, {dropped} dropped");
        }
        assert_eq!(red(false, Some(1.0), 20), (0, 1_000), "all are dropped");
        assert_eq!(red(false, None, 20), (1_000, 0), "all are marked");
    }

    /// Returns the fractions of marked and of dropped ECT packets. Packets arrive at 1.05 times the
    /// rate of the port without congestion control. RED has thresholds of 20 and 60 packets and a
    /// probability of 0.2 at the upper one.
    fn at_overload(mark_below: Option<f64>, spread: Spread) -> (f64, f64) {
        let base = RedConfig { spread, ..marking(mark_below, Protection::Default) };
        let (min, max) = (Level::Packets(20.0), Level::Packets(60.0));
        let mut red = red(RedConfig { min, max, weight: 0.002, max_probability: 0.2, ..base });
        let packet = ect(0);
        let (mut waiting, mut credit) = (0usize, 0.0);
        let (mut came, mut marked, mut dropped) = (0.0, 0.0, 0.0);
        for arrival in 0..400_000 {
            credit += 1.0 / 1.05;
            while credit >= 1.0 {
                waiting = waiting.saturating_sub(1);
                credit -= 1.0;
            }
            let verdict = arrive_as(&Port::waiting(waiting), &packet, |a| red.at_enqueue(a));
            waiting += usize::from(verdict.loss().is_none());
            if arrival >= 100_000 {
                came += 1.0;
                marked += f64::from(u8::from(verdict == Verdict::Mark));
                dropped += f64::from(u8::from(verdict.loss().is_some()));
            }
        }
        (marked / came, dropped / came)
    }

    #[test]
    fn shares_at_overload_are_those_of_ns_2() {
        // A fraction of 1 − 1/1.05 of the packets must be dropped. Therefore the probability of a
        // signal stays near `mark_below`, from which packets are dropped. For 0.1, the mean gap
        // between signals is 5.5 packets with `Even`, 10 with `Alone` and 14.5 with `Wait`. For 1,
        // it is one packet, but almost two with `Wait`.
        for (below, spread, signals) in [
            (0.1, Spread::Even, 1.0 / 5.5),
            (0.1, Spread::Alone, 0.1),
            (0.1, Spread::Wait, 1.0 / 14.5),
            (1.0, Spread::Even, 1.0),
            (1.0, Spread::Alone, 1.0),
            (1.0, Spread::Wait, 0.524),
        ] {
            let (marked, dropped) = at_overload(Some(below), spread);
            println!("mark_below {below}, {spread:?}: {marked:.4} marked, {dropped:.4} dropped");
            assert!((dropped - (1.0 - 1.0 / 1.05)).abs() < 0.002, "{dropped}");
            assert!(
                (marked + dropped - signals).abs() < 0.05 * signals,
                "{below} {spread:?}: {marked}"
            );
        }
    }
}
