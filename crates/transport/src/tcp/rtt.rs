//! Round-trip time and retransmission timeout of RFC 6298.
//!
//! Equations (2.2) and (2.3) with α = 1/8 and β = 1/4, RTO = SRTT + max(G, 4·RTTVAR), at least the
//! minimum, at most the maximum, rounded up to the timer's granularity G.

use super::config::TcpConfig;
use eastwest_types::Span;

/// Smoothed round-trip time and its variation.
#[derive(Clone, Copy, Debug, Default)]
pub struct RttEstimator {
    srtt: Span,
    rttvar: Span,
    has_sample: bool,
    /// How often the timeout has been doubled since the last good sample (RFC 6298, 5.5).
    pub backoff: u32,
}

impl RttEstimator {
    /// Takes a sample of a segment that was sent once, or of a timestamp (RFC 7323).
    #[inline]
    pub fn sample(&mut self, rtt: Span) {
        self.backoff = 0;
        if !self.has_sample {
            self.has_sample = true;
            self.srtt = rtt;
            self.rttvar = Span(rtt.0 / 2);
            return;
        }
        let error = self.srtt.0.abs_diff(rtt.0);
        self.rttvar = Span(self.rttvar.0 - self.rttvar.0 / 4 + error / 4);
        self.srtt = Span(self.srtt.0 - self.srtt.0 / 8 + rtt.0 / 8);
    }

    /// The smoothed round-trip time, once there is a sample.
    pub fn srtt(&self) -> Option<Span> {
        self.has_sample.then_some(self.srtt)
    }

    /// The timeout to arm now.
    #[inline]
    pub fn rto(&self, config: &TcpConfig) -> Span {
        let base = if self.has_sample {
            self.srtt + Span(self.rttvar.0 * 4).max(config.granularity)
        } else {
            config.initial_rto
        };
        let bounded = base.max(config.min_rto);
        let backed_off = Span(bounded.0.saturating_mul(1 << self.backoff.min(20)));
        let limited = backed_off.min(config.max_rto);
        match config.granularity.0 {
            0 | 1 => limited,
            g => Span(limited.0.div_ceil(g) * g),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::config::test_config;

    #[test]
    fn first_and_later_samples_follow_rfc_6298() {
        let config = TcpConfig { min_rto: Span::ZERO, granularity: Span(1), ..test_config() };
        let mut r = RttEstimator::default();
        assert_eq!(r.rto(&config), config.initial_rto);
        r.sample(Span::from_ms(100));
        assert_eq!(r.rto(&config), Span::from_ms(300)); // R + 4·R/2
        r.sample(Span::from_ms(100));
        // RTTVAR = 3/4·50 ms
        assert_eq!(r.rto(&config), Span::from_ms(100) + Span::from_us(150_000));
        r.sample(Span::from_ms(180));
        // RTTVAR = 3/4·37.5 + 80/4, SRTT = 7/8·100 + 180/8
        assert_eq!(r.srtt(), Some(Span::from_ms(110)));
        assert_eq!(r.rto(&config), Span::from_ms(110) + Span::from_us(4 * 48_125));
    }

    #[test]
    fn the_timeout_doubles_up_to_its_maximum_and_a_sample_resets_it() {
        let config = test_config();
        let mut r = RttEstimator::default();
        r.sample(Span::from_us(100));
        assert_eq!(r.rto(&config), config.min_rto);
        r.backoff = 3;
        assert_eq!(r.rto(&config), config.min_rto * 8);
        r.backoff = 40;
        assert_eq!(r.rto(&config), config.max_rto);
        r.sample(Span::from_us(100));
        assert_eq!(r.rto(&config), config.min_rto);
    }

    #[test]
    fn the_timeout_is_a_multiple_of_the_granularity() {
        let config =
            TcpConfig { min_rto: Span::from_ms(1), granularity: Span::from_ms(4), ..test_config() };
        let mut r = RttEstimator::default();
        r.sample(Span::from_us(5_300));
        assert_eq!(r.rto(&config).0 % Span::from_ms(4).0, 0);
    }
}
