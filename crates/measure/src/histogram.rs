//! High-dynamic-range histograms of latencies.
//!
//! Log-linear buckets: 128 per octave of nanoseconds, so that a bucket is at most 0.8 % wide, from
//! 1 ns to 5 hours. Recording is a handful of instructions, because every packet does it; the
//! `hdrhistogram` crate keeps the same buckets with checks that would cost several times as much.

use eastwest_types::Span;

const BITS: u32 = 7;
const PER_OCTAVE: usize = 1 << BITS;
/// Octaves above the linear part; 2⁴⁴ ns are almost five hours.
const OCTAVES: usize = 44 - BITS as usize;
const BUCKETS: usize = PER_OCTAVE * (OCTAVES + 1);

/// Counts of spans by size.
#[derive(Clone)]
pub struct Histogram {
    counts: Box<[u64]>,
    count: u64,
    sum_ns: u128,
    max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; BUCKETS].into(), count: 0, sum_ns: 0, max_ns: 0 }
    }
}

/// The bucket of a number of nanoseconds.
#[inline]
fn bucket(ns: u64) -> usize {
    let octave = (63 - (ns | (PER_OCTAVE as u64)).leading_zeros()) - BITS;
    let within = (ns >> octave) as usize; // 0..128 in the linear part, 128..256 above
    ((octave as usize) * PER_OCTAVE + within).min(BUCKETS - 1)
}

/// One past the largest number of nanoseconds in a bucket.
fn upper_ns(bucket: usize) -> u64 {
    if bucket < 2 * PER_OCTAVE {
        return bucket as u64 + 1;
    }
    let octave = bucket / PER_OCTAVE - 1;
    ((bucket - octave * PER_OCTAVE) as u64 + 1) << octave
}

impl Histogram {
    /// Counts one span.
    #[inline]
    pub fn record(&mut self, span: Span) {
        let ns = span.0 / 1_000;
        self.counts[bucket(ns)] += 1;
        self.count += 1;
        self.sum_ns += u128::from(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// How many spans were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean in microseconds; 0 where nothing was counted.
    pub fn mean_us(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 / 1e3 }
    }

    /// Largest in microseconds.
    pub fn max_us(&self) -> f64 {
        self.max_ns as f64 / 1e3
    }

    /// The span in microseconds that a share `q` of all spans does not exceed, to the width of a
    /// bucket; 0 where nothing was counted.
    pub fn quantile_us(&self, q: f64) -> f64 {
        let rank = ((q * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (i, &n) in self.counts.iter().enumerate() {
            seen += n;
            if seen >= rank && n > 0 {
                return (upper_ns(i).min(self.max_ns.max(1))) as f64 / 1e3;
            }
        }
        0.0
    }

    /// Adds another histogram's counts.
    pub fn merge(&mut self, other: &Histogram) {
        for (a, b) in self.counts.iter_mut().zip(&other.counts) {
            *a += b;
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// (upper bound in microseconds, count) of every bucket in use.
    pub fn rows(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let used = self.counts.iter().enumerate().filter(|(_, n)| **n > 0);
        used.map(|(i, &n)| (upper_ns(i) as f64 / 1e3, n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eastwest_engine::random::Stream;

    #[test]
    fn buckets_are_ordered_and_narrow() {
        for ns in (0..2_000).chain([10_000, 123_456, 9_999_999, 1 << 40]) {
            let b = bucket(ns);
            assert!(upper_ns(b) > ns, "{ns}");
            assert!(b == 0 || upper_ns(b - 1) <= ns, "{ns}");
            assert!(upper_ns(b) as f64 <= (ns as f64 + 1.0) * 1.008 + 1.0, "{ns}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_agree_with_sorting() {
        let mut random = Stream::new(1, "histogram");
        let mut h = Histogram::default();
        let mut all: Vec<u64> = (0..20_000)
            .map(|_| {
                let octave = 10 + random.below(20);
                1_000 + random.below(1 << octave)
            })
            .collect();
        for &ns in &all {
            h.record(Span::from_ns(ns));
        }
        all.sort_unstable();
        for q in [0.01, 0.5, 0.99, 0.999, 1.0] {
            let exact =
                all[((q * all.len() as f64).ceil() as usize - 1).min(all.len() - 1)] as f64 / 1e3;
            assert!((h.quantile_us(q) / exact - 1.0).abs() < 0.009, "{q}");
        }
        let mean = all.iter().sum::<u64>() as f64 / all.len() as f64 / 1e3;
        assert!((h.mean_us() / mean - 1.0).abs() < 1e-9);
    }

    #[test]
    fn an_empty_histogram_answers_zero() {
        let h = Histogram::default();
        assert_eq!((h.mean_us(), h.quantile_us(0.99), h.rows().count()), (0.0, 0.0, 0));
    }
}
