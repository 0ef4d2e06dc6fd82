//! Round-trip time and retransmission timeout, computed by RFC 6298 or as in
//! [Linux](super::rtt_linux).
//!
//! RFC 6298 uses equations (2.2) and (2.3) with α = 1/8 and β = 1/4: RTO = SRTT + max(G, 4·RTTVAR),
//! at least the minimum. In both cases the RTO is at most the maximum, doubles for each consecutive
//! timeout, and is rounded up to the timer's granularity G.

use super::config::TcpConfig;
use super::rtt_linux::LinuxRtt;
use super::rules::RtoRule;
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};

/// Returns a time in µs, the unit of TCP timestamps in this model (RFC 7323, 5.4 leaves the unit
/// free).
#[inline]
pub(super) fn timestamp_us(t: Time) -> u32 {
    (t.0 / 1_000_000) as u32
}

/// Estimator of the smoothed round-trip time and its variation.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub enum RttEstimator {
    /// No RTT sample has been added yet.
    #[default]
    Fresh,
    /// Estimator of the rule [`RtoRule::Rfc6298`].
    Rfc6298 {
        /// Smoothed round-trip time.
        srtt: Span,
        /// Variation of the round-trip time (RTTVAR).
        rttvar: Span,
    },
    /// Estimator of the rule [`RtoRule::Linux`].
    Linux(LinuxRtt),
}

impl RttEstimator {
    /// Adds an RTT sample from a segment that was sent once, or from a timestamp (RFC 7323), while
    /// positions `una..next` are outstanding.
    #[inline(always)]
    pub fn sample(&mut self, rtt: Span, una: u64, next: u64, config: &TcpConfig) {
        match self {
            RttEstimator::Rfc6298 { srtt, rttvar } => {
                let error = srtt.0.abs_diff(rtt.0);
                *rttvar = Span(rttvar.0 - rttvar.0 / 4 + error / 4);
                *srtt = Span(srtt.0 - srtt.0 / 8 + rtt.0 / 8);
            }
            RttEstimator::Linux(linux) => linux.sample(rtt, una, next, config.min_rto),
            RttEstimator::Fresh => *self = RttEstimator::first(rtt, next, config),
        }
    }

    /// Returns the estimator after the first RTT sample `rtt`; `next`: next stream position to send.
    #[cold]
    fn first(rtt: Span, next: u64, config: &TcpConfig) -> RttEstimator {
        match config.timers.rto {
            RtoRule::Rfc6298 => RttEstimator::Rfc6298 { srtt: rtt, rttvar: Span(rtt.0 / 2) },
            RtoRule::Linux => RttEstimator::Linux(LinuxRtt::new(rtt, next, config.min_rto)),
        }
    }

    /// Returns the smoothed round-trip time; `None` before the first sample.
    #[inline]
    pub fn srtt(&self) -> Option<Span> {
        match self {
            RttEstimator::Fresh => None,
            RttEstimator::Rfc6298 { srtt, .. } => Some(*srtt),
            RttEstimator::Linux(linux) => Some(linux.srtt()),
        }
    }

    /// Returns the retransmission timeout after `backoff` doublings (RFC 6298, 5.5).
    #[inline(always)]
    pub fn rto(&self, backoff: u8, config: &TcpConfig) -> Span {
        let bounded = match self {
            RttEstimator::Rfc6298 { srtt, rttvar } => {
                (*srtt + Span(rttvar.0 * 4).max(config.granularity)).max(config.min_rto)
            }
            RttEstimator::Fresh => config.initial_rto.max(config.min_rto),
            RttEstimator::Linux(linux) => {
                let rounded = linux.rto(config.granularity);
                if backoff == 0 && rounded <= config.max_rto {
                    return rounded; // already a multiple of the granularity
                }
                rounded
            }
        };
        let backed_off = Span(bounded.0.saturating_mul(1 << backoff.min(20)));
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
        assert_eq!(r.rto(0, &config), config.initial_rto);
        r.sample(Span::from_ms(100), 1, 2, &config);
        assert_eq!(r.rto(0, &config), Span::from_ms(300)); // R + 4·R/2 (RFC 6298, 2.2)
        r.sample(Span::from_ms(100), 1, 2, &config);
        // Expected: RTTVAR = 3/4·50 ms.
        assert_eq!(r.rto(0, &config), Span::from_ms(100) + Span::from_us(150_000));
        r.sample(Span::from_ms(180), 1, 2, &config);
        // Expected: RTTVAR = 3/4·37.5 + 80/4 ms, SRTT = 7/8·100 + 180/8 ms.
        assert_eq!(r.srtt(), Some(Span::from_ms(110)));
        assert_eq!(r.rto(0, &config), Span::from_ms(110) + Span::from_us(4 * 48_125));
    }

    #[test]
    fn the_timeout_doubles_up_to_its_maximum() {
        let config = test_config();
        let mut r = RttEstimator::default();
        r.sample(Span::from_us(100), 1, 2, &config);
        assert_eq!(r.rto(0, &config), config.min_rto);
        assert_eq!(r.rto(3, &config), config.min_rto * 8);
        assert_eq!(r.rto(40, &config), config.max_rto);
    }

    #[test]
    fn the_timeout_is_a_multiple_of_the_granularity() {
        let config =
            TcpConfig { min_rto: Span::from_ms(1), granularity: Span::from_ms(4), ..test_config() };
        let mut r = RttEstimator::default();
        r.sample(Span::from_us(5_300), 1, 2, &config);
        assert_eq!(r.rto(0, &config).0 % Span::from_ms(4).0, 0);
    }
}
