//! Round-trip time and retransmission timeout as Linux computes them (`tcp_rtt_estimator`).
//!
//! There are four differences from RFC 6298. Samples are whole microseconds, SRTT is stored in
//! eighths and the mean deviation in quarters. A sample below SRTT that increases the deviation
//! counts with an eighth of the gain, so that a decreasing RTT does not raise the timeout. The
//! variation is four times the largest mean deviation within a window of data, and at least the
//! minimum timeout; at the end of a window with a smaller deviation, the variation decreases by a
//! quarter of the difference. So the minimum applies to the variation, not to the sum:
//! RTO = SRTT + variation.

use eastwest_types::{Packet, Span};
use serde::{Deserialize, Serialize};

/// Linux's estimator of the smoothed RTT and its variation, in microseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct LinuxRtt {
    /// Smoothed RTT in units of 1/8 µs.
    srtt_8: u32,
    /// Mean deviation of the RTT in units of 1/4 µs.
    mdev_4: u32,
    /// Largest `mdev_4` in the current window of data, in units of 1/4 µs.
    mdev_max_4: u32,
    /// RTT variation in µs, four times the deviation, which is added to the smoothed RTT for the
    /// timeout.
    rttvar_4: u32,
    /// Low 32 bits of the stream position whose acknowledgement ends the current window of data.
    window_end: u32,
}

/// Returns a time span in microseconds, at least 1.
fn micros(span: Span) -> u32 {
    u32::try_from(span.0 / 1_000_000).unwrap_or(u32::MAX >> 4).clamp(1, u32::MAX >> 4)
}

impl LinuxRtt {
    /// Returns the estimator after the first sample `rtt`, when stream positions up to `next` have
    /// been sent.
    pub fn new(rtt: Span, next: u64, min_rto: Span) -> LinuxRtt {
        let rtt = micros(rtt);
        let rttvar_4 = (2 * rtt).max(micros(min_rto));
        LinuxRtt {
            srtt_8: rtt << 3,
            mdev_4: rtt << 1,
            mdev_max_4: rttvar_4,
            rttvar_4,
            window_end: next as u32,
        }
    }

    /// Adds an RTT sample while stream positions `una..next` are outstanding.
    #[inline]
    pub fn sample(&mut self, rtt: Span, una: u64, next: u64, min_rto: Span) {
        let error = i64::from(micros(rtt)) - i64::from(self.srtt_8 >> 3);
        self.srtt_8 = (i64::from(self.srtt_8) + error).max(1) as u32;
        let mut step = error.abs() - i64::from(self.mdev_4 >> 2);
        if error < 0 && step > 0 {
            step >>= 3;
        }
        self.mdev_4 = (i64::from(self.mdev_4) + step).max(0) as u32;
        if self.mdev_4 > self.mdev_max_4 {
            self.mdev_max_4 = self.mdev_4;
            self.rttvar_4 = self.rttvar_4.max(self.mdev_max_4);
        }
        if una > Packet::widen(u64::from(self.window_end), una) {
            if self.mdev_max_4 < self.rttvar_4 {
                self.rttvar_4 -= (self.rttvar_4 - self.mdev_max_4) >> 2;
            }
            self.window_end = next as u32;
            self.mdev_max_4 = micros(min_rto);
        }
    }

    /// Returns the smoothed RTT.
    #[inline]
    pub fn srtt(&self) -> Span {
        Span::from_us(u64::from(self.srtt_8 >> 3))
    }

    /// Returns the retransmission timeout without backoff, rounded up to a multiple of `tick`.
    #[inline]
    pub fn rto(&self, tick: Span) -> Span {
        let rto = Span::from_us(u64::from(self.srtt_8 >> 3) + u64::from(self.rttvar_4));
        let tick = tick.0.max(1);
        Span(rto.0.div_ceil(tick) * tick)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: Span = Span::from_ms(200);
    const TICK: Span = Span::from_ms(4);

    fn us(n: u64) -> Span {
        Span::from_us(n)
    }

    #[test]
    fn the_minimum_bounds_the_variation() {
        // Expected: RTT of 10 ms plus 200 ms, rounded up to ticks of 4 ms. RFC 6298 would give 200
        // ms.
        let mut r = LinuxRtt::new(us(10_000), 1, MIN);
        assert_eq!(r.rto(TICK), Span::from_ms(212));
        for una in 2..100 {
            r.sample(us(10_000), una, una + 1, MIN);
        }
        assert_eq!(r.rto(us(1)), Span::from_ms(210));
        // With a minimum of 1 ms, the tick determines the timeout.
        assert_eq!(LinuxRtt::new(us(1), 1, Span::from_ms(1)).rto(TICK), TICK);
    }

    #[test]
    fn a_first_sample_counts_two_times_for_the_variation() {
        assert_eq!(LinuxRtt::new(us(300_000), 1, MIN).rto(us(1)), us(900_000));
    }

    #[test]
    fn a_spike_raises_the_variation_at_once_and_it_falls_by_a_quarter_per_window() {
        let mut r = LinuxRtt::new(us(10_000), 10, Span::from_ms(1));
        assert_eq!(r.rttvar_4, 20_000);
        // After a spike of 90 ms the mean deviation is 3/4·5 + 90/4 ms.
        r.sample(us(100_000), 2, 10, Span::from_ms(1));
        assert_eq!((r.mdev_4, r.rttvar_4), (105_000, 105_000));
        assert_eq!(r.srtt(), us(21_250));
        // The window ends above position 10: its largest deviation counts, and a new window starts.
        r.sample(us(21_250), 11, 20, Span::from_ms(1));
        assert_eq!((r.mdev_4, r.rttvar_4, r.mdev_max_4), (78_750, 105_000, 1_000));
        r.sample(us(21_250), 12, 20, Span::from_ms(1));
        assert_eq!((r.mdev_4, r.rttvar_4, r.mdev_max_4), (59_063, 105_000, 59_063));
        r.sample(us(21_250), 21, 30, Span::from_ms(1));
        assert_eq!(r.rttvar_4, 105_000 - (105_000 - 59_063) / 4);
    }

    #[test]
    fn a_shorter_round_trip_counts_for_an_eighth() {
        let mut up = LinuxRtt::new(us(100_000), 10, Span::from_ms(1));
        let mut down = up;
        up.sample(us(200_000), 2, 10, Span::from_ms(1));
        down.sample(us(20_000), 2, 10, Span::from_ms(1));
        assert_eq!(up.mdev_4, 200_000 + (100_000 - 50_000));
        assert_eq!(down.mdev_4, 200_000 + (80_000 - 50_000) / 8);
    }

    #[test]
    fn windows_end_across_four_gigabytes() {
        let far = (1u64 << 32) - 5;
        let mut r = LinuxRtt::new(us(10_000), far + 10, Span::from_ms(1));
        r.sample(us(10_000), far + 9, far + 20, Span::from_ms(1));
        assert_eq!(r.window_end, (far + 10) as u32);
        r.sample(us(10_000), far + 11, far + 20, Span::from_ms(1));
        assert_eq!(r.window_end, (far + 20) as u32);
    }
}
