//! Integer cube root, with the same result on every machine.

/// Returns the integer cube root of `x`: the largest integer whose cube is at most `x`; it is below
/// 2⁴³.
pub fn cube_root(x: u128) -> u64 {
    // Computes the root digit by digit in base two (Warren, Hacker's Delight, 11–2), from the first
    // digit that can be 1.
    let (mut rest, mut root) = (x, 0u128);
    let mut shift = x.checked_ilog2().map_or(0, |highest| highest / 3 * 3);
    loop {
        root *= 2;
        let step = 3 * root * (root + 1) + 1;
        if rest >> shift >= step {
            rest -= step << shift;
            root += 1;
        }
        if shift == 0 {
            return root as u64;
        }
        shift -= 3;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_largest_whole_root() {
        for x in (0..2_000u128).chain([u128::from(u64::MAX), 1 << 100, (1 << 126) - 1, u128::MAX]) {
            let root = u128::from(cube_root(x));
            assert!(root * root * root <= x);
            assert!((root + 1).checked_pow(3).is_none_or(|above| above > x), "{x}");
        }
        assert_eq!(cube_root(1_000_000_000_000_000_000_000_000_000), 1_000_000_000);
    }
}
