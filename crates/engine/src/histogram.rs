//! Histograms with a high dynamic range, for packet latencies and queue lengths.
//!
//! Buckets are log-linear: one bucket for each value up to 255, above that 128 buckets for each
//! octave (factor of two), so that the width of a bucket is at most 0.8 % of its values. The last
//! bucket ends at 2⁴⁴, in nanoseconds almost five hours; it also counts all larger values. Every
//! delivered packet adds a value, so adding must take few instructions. The `hdrhistogram` crate
//! has the same buckets, but its checks would cost several times as much. Memory for a bucket is
//! allocated when a value first falls into this bucket or a later one.

use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// Number of bits that give the index of a bucket within its octave.
const BITS: u32 = 7;
/// Number of buckets in each octave (factor of two).
const PER_OCTAVE: usize = 1 << BITS;
/// Number of octaves (factors of two) from 128 to 2⁴⁴.
const OCTAVES: usize = 44 - BITS as usize;
/// Number of all buckets; the last one also counts all larger values.
const BUCKETS: usize = PER_OCTAVE * (OCTAVES + 1);

/// Histogram of whole numbers: one bucket for each value up to 255, then buckets whose width is at
/// most 0.8 % of their values. Durations are counted in whole nanoseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    max: u64,
}

/// Returns the index of the bucket to which a value belongs.
#[inline]
fn bucket(value: u64) -> usize {
    let octave = (63 - (value | (PER_OCTAVE as u64)).leading_zeros()) - BITS;
    let within = (value >> octave) as usize; // in octave 0: 0 to 127; above: 128 to 255
    ((octave as usize) * PER_OCTAVE + within).min(BUCKETS - 1)
}

/// Returns the exclusive upper bound of a bucket: its largest value plus one.
fn upper(bucket: usize) -> u64 {
    if bucket < 2 * PER_OCTAVE {
        return bucket as u64 + 1;
    }
    let octave = bucket / PER_OCTAVE - 1;
    ((bucket - octave * PER_OCTAVE) as u64 + 1) << octave
}

impl Histogram {
    /// Counts one duration, in whole nanoseconds (rounded down).
    #[inline]
    pub fn record(&mut self, span: Span) {
        self.add(span.0 / 1_000);
    }

    /// Counts one value, such as a queue length in packets or bytes.
    #[inline]
    pub fn add(&mut self, value: u64) {
        let bucket = bucket(value);
        if bucket >= self.counts.len() {
            self.grow(bucket);
        }
        self.counts[bucket] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, bucket: usize) {
        self.counts.resize(bucket + 1, 0);
    }

    /// Returns the number of counted values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the mean of the counted durations in µs; 0 if none was counted.
    pub fn mean_us(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 / 1e3 }
    }

    /// Returns the longest counted duration in µs; 0 if none was counted.
    pub fn max_us(&self) -> f64 {
        self.max as f64 / 1e3
    }

    /// Returns the `q` quantile (`q` from 0 to 1) of the counted durations in µs; 0 if none was
    /// counted. The result is exact to the width of a bucket and never above the longest duration.
    pub fn quantile_us(&self, q: f64) -> f64 {
        let rank = ((q * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (i, &n) in self.counts.iter().enumerate() {
            seen += n;
            if seen >= rank && n > 0 {
                return upper(i).min(self.max) as f64 / 1e3;
            }
        }
        0.0
    }

    /// Adds the counts of another histogram to this one.
    pub fn merge(&mut self, other: &Histogram) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (a, b) in self.counts.iter_mut().zip(&other.counts) {
            *a += b;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// Returns (largest value that belongs to the bucket, number of counted values in it) for every
    /// bucket that is not empty, in ascending order.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let used = self.counts.iter().enumerate().filter(|(_, n)| **n > 0);
        used.map(|(i, &n)| (upper(i) - 1, n))
    }

    /// Returns (upper end of the bucket in µs, number of durations in it) for every bucket that is
    /// not empty, in ascending order.
    pub fn rows(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        self.buckets().map(|(largest, n)| ((largest + 1) as f64 / 1e3, n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn buckets_are_ordered_and_narrow() {
        for ns in (0..2_000).chain([10_000, 123_456, 9_999_999, 1 << 40]) {
            let b = bucket(ns);
            assert!(upper(b) > ns, "{ns}");
            assert!(b == 0 || upper(b - 1) <= ns, "{ns}");
            assert!(upper(b) as f64 <= (ns as f64 + 1.0) * 1.008 + 1.0, "{ns}");
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
    fn small_values_have_a_bucket_each_and_merging_takes_the_longer() {
        let (mut short, mut long) = (Histogram::default(), Histogram::default());
        (0..=255).for_each(|value| short.add(value));
        long.add(1_000_000);
        short.merge(&long);
        let buckets: Vec<(u64, u64)> = short.buckets().collect();
        assert!(buckets[..256].iter().zip(0..).all(|(b, value)| *b == (value, 1)));
        assert!(buckets.len() == 257 && buckets[256].0.abs_diff(1_000_000) < 8_000);
    }

    #[test]
    fn no_quantile_is_above_the_longest() {
        let mut h = Histogram::default();
        h.record(Span(0));
        assert_eq!((h.quantile_us(0.5), h.max_us()), (0.0, 0.0));
        h.record(Span::from_ns(1_000_001));
        assert_eq!((h.quantile_us(0.5), h.quantile_us(1.0)), (0.001, h.max_us()));
    }

    #[test]
    fn an_empty_histogram_answers_zero() {
        let h = Histogram::default();
        assert_eq!((h.mean_us(), h.quantile_us(0.99), h.rows().count()), (0.0, 0.0, 0));
    }
}
