//! HyStart: ends slow start before the queue at the bottleneck overflows.
//!
//! [`HyStartRule::Linux`]: HyStart (Ha and Rhee 2011) as in `tcp_cubic.c`. From a window of 16
//! segments on, slow start ends in one of two cases. First case: ACKs at distances of at most 2 ms
//! (a train) have been arriving since the begin of the round for longer than half the smallest RTT
//! (the whole RTT if segments are paced), so that the train fills the path. Second case: a round
//! has more than eight RTT samples, and the smallest of them exceeds the smallest RTT so far by
//! more than an eighth (at least 4 ms and at most 16 ms).
//!
//! [`HyStartRule::PlusPlus`]: HyStart++ (RFC 9406). When the smallest RTT of a round, from its
//! eighth sample on, exceeds the smallest RTT of the round before by an eighth (4 to 16 ms),
//! conservative slow start (CSS) begins: the window grows a quarter as fast. If the RTT decreases
//! again, slow start resumes; after five rounds of CSS, slow start ends. HyStart++ acts only in the
//! first slow start of a connection.

use super::rules::HyStartRule;
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};

/// Window in segments from which HyStart is active (Linux, `hystart_low_window`).
const LOW_WINDOW: u64 = 16;
/// Longest time between two ACKs of a train of closely spaced ACKs (Linux, `hystart_ack_delta_us`).
const ACK_DELTA: Span = Span::from_ms(2);
/// Number of RTT samples that a round needs before its smallest RTT is compared (Linux,
/// `HYSTART_MIN_SAMPLES`; RFC 9406, `N_RTT_SAMPLE`).
const SAMPLES: u32 = 8;
/// Divisor of the growth of the window in conservative slow start (RFC 9406, `CSS_GROWTH_DIVISOR`).
const CSS_DIVISOR: u64 = 4;
/// Number of rounds of conservative slow start after which slow start ends (RFC 9406,
/// `CSS_ROUNDS`).
const CSS_ROUNDS: u32 = 5;

/// Returns the increase of the smallest RTT `delay` that ends slow start (Linux,
/// `HYSTART_DELAY_THRESH`; RFC 9406, `RttThresh`).
fn allowance(delay: Span) -> Span {
    Span(delay.0 / 8).max(Span::from_ms(4)).min(Span::from_ms(16))
}

/// State of HyStart or HyStart++, which end slow start before a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HyStart {
    rule: HyStartRule,
    /// Stream position whose acknowledgement ends the current round.
    round_end: u64,
    round_start: Time,
    last_ack: Time,
    /// Number of RTT samples in the current round.
    samples: u32,
    /// Smallest RTT sample of the current round.
    smallest: Span,
    /// Smallest RTT sample of the round before the current one.
    smallest_before: Span,
    /// Smallest RTT since the connection began or had its last timeout.
    delay_min: Span,
    /// HyStart++: number of rounds of conservative slow start so far; 0 outside of it.
    slow_rounds: u32,
    /// HyStart++: smallest RTT of the round in which conservative slow start began.
    baseline: Span,
    /// Bytes of growth in conservative slow start that do not yet make up a whole segment.
    bank: u64,
    /// Whether HyStart has ended slow start.
    found: bool,
}

/// RTT sample of an ACK in slow start.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Arrival time of the ACK.
    pub now: Time,
    /// Round-trip time that the ACK has measured.
    pub rtt: Span,
    /// First stream position not acknowledged (SND.UNA).
    pub una: u64,
    /// Next stream position to send (SND.NXT).
    pub next: u64,
    /// Congestion window in segments.
    pub window: u64,
    /// Time by which aggregation of segments may lengthen a train of ACKs (Linux,
    /// `hystart_ack_delay`).
    pub stretch: Span,
    /// Whether segments are paced; if so, a train of ACKs ends slow start only if it lasts a whole
    /// RTT.
    pub paced: bool,
    /// Whether this is the first slow start of the connection.
    pub first: bool,
}

impl HyStart {
    /// Returns the state of HyStart before the first RTT sample.
    pub fn new(rule: HyStartRule) -> HyStart {
        HyStart {
            rule,
            round_end: 0,
            round_start: Time::ZERO,
            last_ack: Time::ZERO,
            samples: 0,
            smallest: Span::MAX,
            smallest_before: Span::MAX,
            delay_min: Span::MAX,
            slow_rounds: 0,
            baseline: Span::MAX,
            bank: 0,
            found: false,
        }
    }

    /// Resets the state of HyStart after a retransmission timeout.
    pub fn forget(&mut self) {
        *self = HyStart::new(self.rule);
    }

    /// Returns how many of the `acked` bytes count for the growth of the window: with HyStart++ at
    /// most eight segments unless the sender is `paced`, and a quarter in conservative slow start
    /// (RFC 9406).
    pub fn counted(&mut self, acked: u64, segment: u64, paced: bool) -> u64 {
        if self.rule != HyStartRule::PlusPlus {
            return acked;
        }
        let acked = if paced { acked } else { acked.min(8 * segment) };
        if self.slow_rounds == 0 {
            return acked;
        }
        self.bank += acked / CSS_DIVISOR;
        let whole = self.bank / segment * segment;
        self.bank -= whole;
        whole
    }

    /// Adds an RTT sample in slow start. Returns whether slow start must end now.
    pub fn sample(&mut self, s: &Sample) -> bool {
        self.delay_min = self.delay_min.min(s.rtt);
        match self.rule {
            HyStartRule::Off => false,
            HyStartRule::Linux if self.found => false,
            HyStartRule::Linux => {
                self.found = self.watch(s);
                self.found
            }
            HyStartRule::PlusPlus => s.first && self.watch_rounds(s),
        }
    }

    fn new_round(&mut self, s: &Sample) {
        self.round_end = s.next;
        (self.round_start, self.last_ack) = (s.now, s.now);
        self.smallest_before = self.smallest;
        (self.smallest, self.samples) = (Span::MAX, 0);
    }

    fn watch(&mut self, s: &Sample) -> bool {
        if s.una > self.round_end {
            self.new_round(s);
        }
        if s.window < LOW_WINDOW {
            return false;
        }
        if s.now.since(self.last_ack) <= ACK_DELTA {
            self.last_ack = s.now;
            let whole = self.delay_min + s.stretch;
            let enough = if s.paced { whole } else { Span(whole.0 / 2) };
            if s.now.since(self.round_start) > enough {
                return true;
            }
        }
        self.smallest = self.smallest.min(s.rtt);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        self.smallest > self.delay_min + allowance(self.delay_min)
    }

    fn watch_rounds(&mut self, s: &Sample) -> bool {
        if s.una >= self.round_end {
            if self.slow_rounds > 0 {
                self.slow_rounds += 1;
            }
            self.new_round(s);
            if self.slow_rounds > CSS_ROUNDS {
                return true;
            }
        }
        self.smallest = self.smallest.min(s.rtt);
        self.samples += 1;
        if self.samples < SAMPLES {
            return false;
        }
        if self.slow_rounds > 0 {
            if self.smallest < self.baseline {
                (self.slow_rounds, self.baseline) = (0, Span::MAX);
            }
        } else if self.smallest_before != Span::MAX
            && self.smallest >= self.smallest_before + allowance(self.smallest_before)
        {
            (self.slow_rounds, self.baseline) = (1, self.smallest);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates one round for each element of `rtts_ms`, with ACKs `gap` apart and that RTT.
    /// Returns the round in which slow start ended.
    fn play(rule: HyStartRule, gap: Span, rtts_ms: &[u64]) -> Option<usize> {
        let mut h = HyStart::new(rule);
        for (round, &rtt) in rtts_ms.iter().enumerate() {
            let start = Time::ZERO + Span::from_ms(1_000) * round as u64;
            for i in 0..20 {
                let una = round as u64 * 20 + i + 1;
                let sample = Sample {
                    now: start + gap * i,
                    rtt: Span::from_ms(rtt),
                    una,
                    next: (round as u64 + 1) * 20 + 1,
                    window: 20,
                    stretch: Span::ZERO,
                    paced: false,
                    first: true,
                };
                if h.sample(&sample) {
                    return Some(round);
                }
            }
        }
        None
    }

    #[test]
    fn a_growing_delay_ends_slow_start() {
        let apart = Span::from_ms(3);
        assert_eq!(play(HyStartRule::Linux, apart, &[40, 40, 44, 46, 60]), Some(3));
        assert_eq!(play(HyStartRule::Linux, apart, &[40, 40, 45, 45, 45]), None);
        assert_eq!(play(HyStartRule::Off, apart, &[40, 80, 160, 320]), None);
    }

    #[test]
    fn a_train_of_acks_that_fills_half_the_delay_ends_slow_start() {
        // Twenty ACKs 1 ms apart arrive within 19 ms.
        assert_eq!(play(HyStartRule::Linux, Span::from_ms(1), &[30; 3]), Some(0));
        assert_eq!(play(HyStartRule::Linux, Span::from_ms(1), &[40; 3]), None);
    }

    #[test]
    fn hystart_plus_plus_slows_down_first_and_takes_it_back() {
        let apart = Span::from_ms(3);
        let slow = [40, 40, 50, 60, 60, 60, 60, 60, 60];
        assert_eq!(play(HyStartRule::PlusPlus, apart, &slow), Some(7));
        let alarm = [40, 40, 50, 41, 41, 41, 41, 41, 41];
        assert_eq!(play(HyStartRule::PlusPlus, apart, &alarm), None);
    }
}
