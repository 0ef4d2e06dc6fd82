//! Exact division of bytes among tasks: the parts always add up to the whole.

/// Returns part `i` of `total` when it is divided evenly into `parts` parts: the first `total mod
/// parts` parts get one byte more.
pub fn share(total: u64, parts: u32, i: u32) -> u64 {
    let parts = u64::from(parts);
    total / parts + u64::from(u64::from(i) < total % parts)
}

/// Returns the bytes that reduce `r` fetches from map `m`. The map's share of the shuffle is
/// divided among the reduces. Which reduces get a byte more rotates with the number of the map, so
/// that small outputs do not all go to reduce 0.
pub fn partition(shuffle: u64, (maps, m): (u32, u32), (reduces, r): (u32, u32)) -> u64 {
    let turned = (u64::from(r) + u64::from(m)) % u64::from(reduces);
    share(share(shuffle, maps, m), reduces, turned as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn partitions_add_up(shuffle in prop_oneof![0u64..500, any::<u64>()],
                             maps in 1u32..40, reduces in 1u32..40) {
            let mut sum = 0u128;
            for m in 0..maps {
                for r in 0..reduces {
                    sum += u128::from(partition(shuffle, (maps, m), (reduces, r)));
                }
            }
            prop_assert_eq!(sum, u128::from(shuffle));
        }
    }

    #[test]
    fn a_byte_per_map_reaches_different_reduces() {
        let of = |r| (0..10).map(|m| partition(10, (10, m), (5, r))).sum::<u64>();
        assert_eq!((0..5).map(of).collect::<Vec<_>>(), [2; 5]);
    }
}
