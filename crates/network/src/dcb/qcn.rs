//! Quantised congestion notification (QCN; IEEE 802.1Q, clauses 30 to 33, formerly 802.1Qau): the
//! congestion points of switches.
//!
//! A congestion point samples the queue of its priority at an output port, about once for every
//! `sample` bytes that arrive there. With `q` queued bytes, `Qoff = q − Q_eq`, and the growth
//! `Qdelta` of the queue since the last sample,
//!
//! ```text
//! Fb = −(Qoff + w·Qdelta)
//! ```
//!
//! If Fb is negative, a [congestion notification message](super::Cnm) carries its absolute value to
//! the source of the sampled packet. The value is quantised to 6 bits (63 for `(2w + 1)·Q_eq` and
//! more). The next sample follows after `sample / (1 + ⌊|Fb|/8⌋)` bytes, as in the table of the
//! standard (150, 75, 50 … 18.75 kB). A seeded random jitter prevents congestion points from
//! sampling synchronously.
//!
//! The reaction points of hosts are in [`reaction`](super::reaction).

use super::pfc::{PRIORITIES, read_priorities};
use eastwest_engine::random::Stream;
use eastwest_settings::narrow::at_most;
use eastwest_settings::{Bytes, Fraction, Octets, Quantity, Ratio, Section, key};
use eastwest_types::{Rate, Span};
use serde::{Deserialize, Serialize};

/// Settings of QCN, which apply to all switches and hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QcnConfig {
    /// Mask of congestion-controlled priorities: bit p for priority p.
    pub priorities: u8,
    /// Equilibrium length of a queue in bytes (Q_eq).
    pub q_eq: u64,
    /// Weight of the growth of a queue, relative to its offset from the equilibrium length (w).
    pub weight: f64,
    /// Mean number of bytes between two samples while there is no congestion.
    pub sample: u64,
    /// Random variation of the distances between samples, and of the cycles of reaction points, as
    /// a fraction: plus or minus this value.
    pub jitter: f64,
    /// Priority of congestion notification messages (CNM).
    pub cnm_priority: u8,
    /// IP bytes of a congestion notification message (CNM).
    pub cnm_bytes: u16,
    /// Fraction by which each unit of feedback reduces the rate of a flow (G_d).
    pub gain: f64,
    /// Smallest fraction of the rate of a flow that remains after one congestion notification
    /// message (CNM).
    pub min_decrease: f64,
    /// Lowest rate to which a rate limiter reduces a flow.
    pub min_rate: Rate,
    /// Length of a cycle of the byte counter of a reaction point, in bytes.
    pub byte_limit: u64,
    /// Length of a cycle of the rate increase timer of a reaction point.
    pub timer: Span,
    /// Number of cycles of fast recovery before the target rate is increased.
    pub threshold: u32,
    /// Increase of the target rate in each cycle of active increase (R_AI).
    pub active_increase: Rate,
    /// Increase of the target rate in a cycle of hyperactive increase (R_HAI), before
    /// multiplication by the number of the cycle.
    pub hyper_increase: Rate,
    /// Whether the target rate stays unchanged if a congestion notification message (CNM) arrives
    /// before the end of the first cycle of the byte counter.
    pub extra_fast_recovery: bool,
}

/// Largest feedback of a congestion point (−Fb, quantised to 6 bits).
pub const FB_MAX: u64 = 63;

impl QcnConfig {
    /// Reads the table `[fabric.qcn]`. `lossless` is the mask of lossless priorities of the fabric.
    pub(super) fn read(
        s: &mut Section,
        lossless: u8,
        mtu: u32,
        notes: &mut Vec<String>,
    ) -> QcnConfig {
        let doc = "Priorities that QCN controls, 0 to 7.";
        let priorities = read_priorities(s, doc, Some(lossless));
        let config = read_points(s, priorities);
        s.demand(
            priorities >> config.cnm_priority & 1 == 0,
            &["cnm_priority", "priorities"],
            || {
                "is one of the priorities that QCN controls; notification messages need another \
                 priority"
                    .to_owned()
            },
        );
        s.demand(u32::from(config.cnm_bytes) <= mtu, &["cnm_bytes"], || {
            format!(
                "is more than fabric.mtu ({mtu} B), the frame size from which the headroom of \
                     PFC is calculated"
            )
        });
        if config.cnm_bytes > 256 && !s.describing() {
            notes.push(format!(
                "fabric.qcn.cnm_bytes: notifications of {} B are larger than those of the \
                 standard IEEE 802.1Qau",
                config.cnm_bytes
            ));
        }
        config
    }

    /// Returns the quantised feedback −Fb for a queue of `queue` bytes that had `old` bytes at the
    /// last sample; 0 if no message is sent to the source.
    pub fn feedback(&self, queue: u64, old: u64) -> u8 {
        let q_eq = self.q_eq as f64;
        let congestion = (queue as f64 - q_eq) + self.weight * (queue as f64 - old as f64);
        let most = q_eq * (2.0 * self.weight + 1.0);
        ((congestion * FB_MAX as f64 / most).clamp(0.0, FB_MAX as f64)) as u8
    }

    /// Whether QCN controls the priority `priority`.
    pub(super) fn controls(&self, priority: u8) -> bool {
        self.priorities >> priority & 1 == 1
    }

    /// Returns a number (bytes, or ps of a timer) with a random variation of plus or minus the
    /// fraction [`QcnConfig::jitter`]; at least 1.
    pub(super) fn around(&self, bytes: u64, random: &mut Stream) -> i64 {
        let factor = 1.0 + self.jitter * (2.0 * random.unit() - 1.0);
        ((bytes as f64 * factor) as i64).max(1)
    }
}

/// Number of bytes until the next sample of the congestion point, by priority. The eight numbers
/// are stored together, since every packet changes one of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Countdown([i64; PRIORITIES]);

impl Countdown {
    /// Returns the countdown of a port. For a priority without QCN, the countdown never ends.
    pub fn new(config: Option<&QcnConfig>, random: &mut Stream) -> Countdown {
        let first = |p| match config.filter(|c| c.controls(p as u8)) {
            Some(c) => c.around(c.sample, random),
            None => i64::MAX,
        };
        Countdown(std::array::from_fn(first))
    }

    /// Counts an arrived packet of `bytes` bytes. Returns whether the congestion point must
    /// [sample](CongestionPoint::sample) its queue now.
    #[inline]
    pub fn is_due(&mut self, priority: u8, bytes: u32) -> bool {
        let left = &mut self.0[usize::from(priority)];
        *left -= i64::from(bytes);
        *left <= 0
    }

    /// Sets the number of bytes until the next sample of the priority `priority`.
    pub fn set(&mut self, priority: u8, bytes: i64) {
        self.0[usize::from(priority)] = bytes;
    }
}

/// Congestion point of the queue of one priority. The field `old` is the length of the queue at the
/// last sample, in bytes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CongestionPoint {
    old: u64,
    /// Number of samples taken so far.
    pub samples: u64,
    /// Number of samples so far for which a CNM was sent.
    pub messages: u64,
}

impl CongestionPoint {
    /// Samples the queue, which has `queue` bytes including the packet that has just arrived.
    /// Returns the feedback for the source of the packet (`None`: no CNM), and the number of bytes
    /// until the next sample.
    pub fn sample(
        &mut self,
        queue: u64,
        config: &QcnConfig,
        random: &mut Stream,
    ) -> (Option<u8>, i64) {
        let fb = config.feedback(queue, self.old);
        self.old = queue;
        let next = config.around(config.sample / (1 + u64::from(fb) / 8), random);
        self.samples += 1;
        self.messages += u64::from(fb > 0);
        ((fb > 0).then_some(fb), next)
    }
}

/// Reads a key that has a default and a range.
fn setting<T: Quantity>(
    s: &mut Section,
    name: &'static str,
    doc: &'static str,
    default: &'static str,
    [least, most]: [&'static str; 2],
) -> T {
    s.get(key(name, doc).default(default).range(least, most))
}

/// Reads a key whose value is a number of bytes from 1 KB to 1 GB.
fn amount(s: &mut Section, name: &'static str, doc: &'static str, default: &'static str) -> u64 {
    setting::<Bytes>(s, name, doc, default, ["1 KB", "1 GB"]).0
}

fn rate(s: &mut Section, name: &'static str, doc: &'static str, default: &'static str) -> Rate {
    setting(s, name, doc, default, ["1 kbit/s", "1 Tbit/s"])
}

/// Reads the settings of congestion points, and then the settings of reaction points; the reference
/// page lists the settings in this order.
fn read_points(s: &mut Section, priorities: u8) -> QcnConfig {
    let jitter = "Random variation of the sampling distance and of the cycles: plus or minus this \
                  share.";
    let gain = "Share of the rate by which each unit of feedback (1 to 63) reduces it (G_d).";
    let least = "Least share of its rate that a rate limiter keeps after one notification.";
    let active = "Increase of the target rate in each cycle of active increase (R_AI).";
    let hyper = "Increase of the target rate in hyperactive increase, multiplied by the number of \
                 the cycle (R_HAI).";
    let extra = "Whether notifications during the first cycle of the byte counter leave the \
                 target rate unchanged.";
    QcnConfig {
        priorities,
        q_eq: amount(s, "q_eq", "Equilibrium backlog of a queue, in bytes (Q_eq).", "33000 B"),
        weight: {
            let doc = "Weight of the growth of the backlog in the feedback, relative to its \
                       offset from q_eq (w).";
            setting::<Ratio>(s, "weight", doc, "2", ["0", "100"]).0
        },
        sample: {
            let doc = "Mean distance between two samples of a queue without congestion, in bytes.";
            amount(s, "sample", doc, "150 KB")
        },
        jitter: setting::<Fraction>(s, "jitter", jitter, "0.15", ["0", "0.9"]).0,
        cnm_priority: {
            at_most(setting::<u32>(
                s,
                "cnm_priority",
                "Priority of congestion notification \
             messages.",
                "7",
                ["0", "7"],
            ))
        },
        cnm_bytes: {
            let doc = "Size of a congestion notification message in bytes, without fabric.framing.";
            at_most(setting::<Octets>(s, "cnm_bytes", doc, "64", ["46", "1500"]).0)
        },
        gain: setting::<Ratio>(s, "gain", gain, "0.0078125", ["0.0001", "0.015"]).0,
        min_decrease: setting::<Fraction>(s, "min_decrease", least, "0.5", ["0.01", "0.99"]).0,
        min_rate: rate(s, "min_rate", "Lowest rate of a rate limiter.", "100 kbit/s"),
        byte_limit: amount(
            s,
            "byte_limit",
            "Length of a cycle of the byte counter, in bytes.",
            "150 KB",
        ),
        timer: setting(
            s,
            "timer",
            "Length of a cycle of the rate increase timer.",
            "15 ms",
            ["1 us", "100 s"],
        ),
        threshold: setting(
            s,
            "threshold",
            "Number of cycles of fast recovery before the target \
                                            rate is increased.",
            "5",
            ["1", "1000"],
        ),
        active_increase: rate(s, "active_increase", active, "5 Mbit/s"),
        hyper_increase: rate(s, "hyper_increase", hyper, "50 Mbit/s"),
        extra_fast_recovery: s.get(key("extra_fast_recovery", extra).default("true")),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns the QCN settings in the study of Gusat et al. (2009).
    pub fn config() -> QcnConfig {
        QcnConfig {
            priorities: 1,
            q_eq: 33_000,
            weight: 2.0,
            sample: 150_000,
            jitter: 0.0,
            cnm_priority: 7,
            cnm_bytes: 64,
            gain: 1.0 / 128.0,
            min_decrease: 0.5,
            min_rate: Rate(100_000),
            byte_limit: 150_000,
            timer: Span::from_ms(15),
            threshold: 5,
            active_increase: Rate::mbit(5),
            hyper_increase: Rate::mbit(50),
            extra_fast_recovery: true,
        }
    }

    #[test]
    fn feedback_is_minus_the_offset_plus_twice_the_growth_in_six_bits() {
        let c = config();
        assert_eq!(c.feedback(33_000, 33_000), 0);
        // The queue is 13 kB below the equilibrium length and has grown by 20 kB. The feedback is
        // (−13 + 2·20)/165 of the largest value, 63.
        assert_eq!(c.feedback(20_000, 0), 10);
        assert_eq!(c.feedback(20_000, 20_000), 0);
        // The queue is 33 kB above the equilibrium length and has not grown. The feedback is 33/165
        // of the largest value, 63.
        assert_eq!(c.feedback(66_000, 66_000), (63.0 * 33.0 / 165.0) as u8);
        // The queue has the same length but has grown from zero. The feedback is (33 + 2·66)/165 of
        // the largest value, 63.
        assert_eq!(c.feedback(66_000, 0), 63);
        assert_eq!(c.feedback(1_000_000, 0), 63);
        // The queue shrinks fast, so that there is no feedback.
        assert_eq!(c.feedback(66_000, 90_000), 0);
    }

    #[test]
    fn samples_come_every_150_kb_and_more_often_the_worse_it_is() {
        let (c, mut random) = (config(), Stream::new(1, "cp"));
        let mut left = Countdown::new(Some(&c), &mut random);
        let mut point = CongestionPoint::default();
        let mut comes = |queue| {
            let mut n = 1;
            loop {
                if left.is_due(0, 1500) {
                    let (fb, next) = point.sample(queue, &c, &mut random);
                    left.set(0, next);
                    return (n, fb);
                }
                n += 1;
            }
        };
        assert_eq!(comes(0), (100, None));
        assert_eq!(comes(0), (100, None));
        assert_eq!(comes(200_000), (100, Some(63)));
        // The next sample follows after 150 kB / 8. Then the queue stays 167 kB above the
        // equilibrium length.
        assert_eq!(comes(200_000), (13, Some(63)));
        assert_eq!(comes(33_000 + 33_000), (13, None));
        assert_eq!((point.samples, point.messages), (5, 2));
    }
}
