//! Named random streams.
//!
//! Each random decision uses a stream named after the decision (`"placement"`, `"start/3"`). An
//! additional draw from one stream never changes the numbers of other streams, so that runs with
//! different settings use common random numbers. The generator is xoshiro256++ (Blackman and Vigna
//! 2021), seeded with SplitMix64 as its authors advise.

use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// Returns the output of one step of SplitMix64 (Steele, Lea and Flood 2014) from the state `x`.
/// The output also serves as a 64-bit hash of `x`.
#[inline]
pub const fn mix(x: u64) -> u64 {
    let z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Stream of random numbers; the numbers are equal on every machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stream {
    s: [u64; 4],
}

impl Stream {
    /// Returns the stream called `name` of a run with the seed `seed`.
    pub fn new(seed: u64, name: &str) -> Stream {
        let mut h = mix(seed);
        for b in name.bytes() {
            h = mix(h ^ u64::from(b));
        }
        let mut s = [0; 4];
        for word in &mut s {
            h = mix(h);
            *word = h;
        }
        Stream { s }
    }

    /// Returns 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.s;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Returns a uniform number in `0..n`; `n` must not be zero. The method is multiply-shift,
    /// whose bias is below n/2⁶⁴.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        debug_assert!(n > 0);
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Returns a uniform number in [0, 1), a multiple of 2⁻⁵³.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a uniform duration in `[0, width)`; zero if `width` is zero.
    pub fn within(&mut self, width: Span) -> Span {
        if width == Span::ZERO { Span::ZERO } else { Span(self.below(width.0)) }
    }

    /// Shuffles `items` so that all orders are equally likely (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ_by_name_and_seed() {
        let draw = |seed, name| Stream::new(seed, name).next_u64();
        assert_eq!(draw(1, "a"), draw(1, "a"));
        assert_ne!(draw(1, "a"), draw(1, "b"));
        assert_ne!(draw(1, "a"), draw(2, "a"));
    }

    #[test]
    fn bounded_draws_stay_in_bounds_and_fill_them() {
        let mut s = Stream::new(7, "t");
        let mut seen = [0u32; 10];
        for _ in 0..10_000 {
            seen[s.below(10) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
        let mean = (0..10_000).map(|_| s.unit()).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut v: Vec<u32> = (0..100).collect();
        Stream::new(1, "s").shuffle(&mut v);
        assert_ne!(v, (0..100).collect::<Vec<_>>());
        v.sort_unstable();
        assert_eq!(v, (0..100).collect::<Vec<_>>());
    }
}
