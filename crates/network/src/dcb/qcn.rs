//! Quantised congestion notification (IEEE 802.1Q, clauses 30 to 33, once 802.1Qau), the side of switches:
//! congestion points.
//!
//! The queue of a congestion-controlled priority at an output port is looked at about every `sample` bytes
//! that come to it. With `q` bytes waiting, `Qoff = q − Q_eq` and `Qdelta` what the queue has grown by
//! since the last sample,
//!
//! ```text
//! Fb = −(Qoff + w·Qdelta)
//! ```
//!
//! If Fb is negative, its size, quantised to 6 bits (63 for `(2w + 1)·Q_eq` and more), goes back to the
//! source of the packet that was looked at, as a [message](super::Cnm). The next sample is
//! `sample / (1 + ⌊|Fb|/8⌋)` bytes later, as the standard's table has it (150, 75, 50 … 18.75 kB), with a
//! seeded jitter that keeps congestion points from marching in step.
//!
//! The other side is in [`reaction`](super::reaction).

use super::pfc::PRIORITIES;
use eastwest_engine::random::Stream;
use eastwest_types::{Rate, Span};
use serde::{Deserialize, Serialize};

/// Settings of QCN, on all switches and hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QcnConfig {
    /// Bit p is set where priority p is congestion-controlled.
    pub priorities: u8,
    /// Bytes at which a queue is to rest.
    pub q_eq: u64,
    /// Weight of growth against size, w.
    pub weight: f64,
    /// Mean bytes between samples while there is no congestion.
    pub sample: u64,
    /// Half width of the jitter of distances between samples and of limits of reaction points, as a share.
    pub jitter: f64,
    /// Priority of messages.
    pub cnm_priority: u8,
    /// Bytes of a message without framing.
    pub cnm_bytes: u16,
    /// G_d: the part of the rate that each step of feedback takes.
    pub gain: f64,
    /// The most that one message takes, as what is left of the rate at least.
    pub min_decrease: f64,
    /// No limiter goes below this rate.
    pub min_rate: Rate,
    /// Bytes of a cycle of the byte counter.
    pub byte_limit: u64,
    /// Length of a cycle of the timer.
    pub timer: Span,
    /// Cycles of fast recovery.
    pub threshold: u32,
    /// Added to the target in each cycle of active increase.
    pub active_increase: Rate,
    /// Added to the target in each cycle of hyperactive increase, times the number of the cycle.
    pub hyper_increase: Rate,
    /// Messages before the first cycle of recovery is over leave the target alone.
    pub extra_fast_recovery: bool,
}

/// The largest feedback.
pub const FB_MAX: u64 = 63;

impl QcnConfig {
    /// −Fb of a queue that was `old` bytes long at the last sample, quantised; 0 where there is nothing to
    /// tell.
    pub fn feedback(&self, queue: u64, old: u64) -> u8 {
        let q_eq = self.q_eq as f64;
        let congestion = (queue as f64 - q_eq) + self.weight * (queue as f64 - old as f64);
        let most = q_eq * (2.0 * self.weight + 1.0);
        ((congestion * FB_MAX as f64 / most).clamp(0.0, FB_MAX as f64)) as u8
    }

    /// Whether a priority is congestion-controlled.
    pub(super) fn controls(&self, priority: u8) -> bool {
        self.priorities >> priority & 1 == 1
    }

    /// A number of bytes with jitter.
    pub(super) fn around(&self, bytes: u64, random: &mut Stream) -> i64 {
        let factor = 1.0 + self.jitter * (2.0 * random.unit() - 1.0);
        ((bytes as f64 * factor) as i64).max(1)
    }
}

/// By priority, bytes until its congestion point takes the next sample: beside each other, as every packet
/// is counted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Countdown([i64; PRIORITIES]);

impl Countdown {
    /// Returns the countdown of a port; that of a priority without QCN never ends.
    pub fn new(config: Option<&QcnConfig>, random: &mut Stream) -> Countdown {
        let first = |p| match config.filter(|c| c.controls(p as u8)) {
            Some(c) => c.around(c.sample, random),
            None => i64::MAX,
        };
        Countdown(std::array::from_fn(first))
    }

    /// A packet has come. Tells whether its queue is to be [looked](CongestionPoint::look) at.
    #[inline]
    pub fn is_due(&mut self, priority: u8, bytes: u32) -> bool {
        let left = &mut self.0[usize::from(priority)];
        *left -= i64::from(bytes);
        *left <= 0
    }

    /// Has the next sample come after so many bytes.
    pub fn set(&mut self, priority: u8, bytes: i64) {
        self.0[usize::from(priority)] = bytes;
    }
}

/// The congestion point of one queue.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CongestionPoint {
    old: u64,
    /// Samples taken.
    pub samples: u64,
    /// Messages sent.
    pub messages: u64,
}

impl CongestionPoint {
    /// Looks at the queue, which has `queue` bytes with the packet that has just come. Tells the feedback
    /// for its source, if there is any, and how many bytes later to look again.
    pub fn look(
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The settings of the study.
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
        // below the set point, and growing: −13 + 2·20 of 165 kB
        assert_eq!(c.feedback(20_000, 0), 10);
        assert_eq!(c.feedback(20_000, 20_000), 0);
        // 33 kB above, no growth: 33 of 165 kB
        assert_eq!(c.feedback(66_000, 66_000), (63.0 * 33.0 / 165.0) as u8);
        // the same, having grown from nothing: 33 + 2·66 of 165
        assert_eq!(c.feedback(66_000, 0), 63);
        assert_eq!(c.feedback(1_000_000, 0), 63);
        // shrinking fast
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
                    let (fb, next) = point.look(queue, &c, &mut random);
                    left.set(0, next);
                    return (n, fb);
                }
                n += 1;
            }
        };
        assert_eq!(comes(0), (100, None));
        assert_eq!(comes(0), (100, None));
        assert_eq!(comes(200_000), (100, Some(63)));
        // 150 kB / 8, and then the queue rests at 167 kB too much
        assert_eq!(comes(200_000), (13, Some(63)));
        assert_eq!(comes(33_000 + 33_000), (13, None));
        assert_eq!((point.samples, point.messages), (5, 2));
    }
}
