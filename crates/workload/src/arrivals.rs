//! Random arrival processes of packets, bursts and flows: Poisson and periodic arrivals.

use eastwest_engine::random::Stream;
use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// Distribution of the time between two arrivals of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Arrivals {
    /// Exponentially distributed gaps between arrivals: a Poisson process.
    Poisson,
    /// Equal gaps between arrivals. The first arrival is at a random point of the first gap, so
    /// that sources with equal gaps are not synchronized.
    Periodic,
}

impl Arrivals {
    /// Draws the time from the start of a source to its first arrival; `mean` is the mean time
    /// between arrivals.
    pub(crate) fn first(self, mean: Span, stream: &mut Stream) -> Span {
        match self {
            Arrivals::Poisson => exponential(mean, stream),
            Arrivals::Periodic => stream.within(mean),
        }
    }

    /// Draws the time from one arrival of a source to the next; `mean` is the mean time between
    /// arrivals.
    pub(crate) fn gap(self, mean: Span, stream: &mut Stream) -> Span {
        match self {
            Arrivals::Poisson => exponential(mean, stream),
            Arrivals::Periodic => mean,
        }
    }
}

/// Draws an exponentially distributed duration with the mean `mean`, by inversion, rounded to the
/// nearest picosecond.
pub fn exponential(mean: Span, stream: &mut Stream) -> Span {
    // 1 − u is in (0, 1], so the logarithm is finite; the cast `as` saturates.
    let ps = -libm::log(1.0 - stream.unit()) * mean.0 as f64;
    Span(((ps + 0.5) as u64).min(Span::MAX.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_gaps_have_the_mean_and_the_spread_of_their_law() {
        let mut stream = Stream::new(3, "gaps");
        let mean = Span::from_us(10);
        let draws: Vec<f64> =
            (0..200_000).map(|_| exponential(mean, &mut stream).as_us_f64()).collect();
        let m = draws.iter().sum::<f64>() / draws.len() as f64;
        let v = draws.iter().map(|x| (x - m) * (x - m)).sum::<f64>() / draws.len() as f64;
        assert!((m - 10.0).abs() < 0.1, "mean {m}");
        assert!((v - 100.0).abs() < 3.0, "variance {v}");
        let beyond = draws.iter().filter(|&&x| x > 30.0).count() as f64 / draws.len() as f64;
        assert!((beyond - 0.049_787).abs() < 0.002, "P(X > 3 means) = {beyond}");
    }

    #[test]
    fn periodic_arrivals_differ_in_phase_only() {
        let mut stream = Stream::new(3, "phase");
        let gap = Span::from_us(10);
        let first = Arrivals::Periodic.first(gap, &mut stream);
        let second = Arrivals::Periodic.first(gap, &mut stream);
        assert!(first < gap && second < gap && first != second);
        assert_eq!(Arrivals::Periodic.gap(gap, &mut stream), gap);
    }
}
