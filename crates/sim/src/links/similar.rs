//! Classes of similar cables, of which only some are simulated.

use std::collections::BTreeMap;

/// Maximum number of simulated cables of a class.
const MOST_OF_A_CLASS: usize = 12;

/// Kind of a cable, and whether its first or its second direction has more than twice the bytes of
/// the other.
type Group<K> = (K, [bool; 2]);

/// Classes of similar cables, and the cables that are simulated.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Similar {
    /// Class of each cable; `None` for cables without bytes.
    pub class_of: Vec<Option<usize>>,
    /// Simulated cables with their classes.
    pub simulated: Vec<(u32, usize)>,
    /// Number of classes.
    pub classes: usize,
}

/// Divides cables into classes. Cables of a class have equal `kinds`, one busier direction (or
/// directions whose bytes differ by less than a factor of 2), and bytes that differ by at most a
/// factor of 2. `bytes` has the bytes in both directions of each cable. At most `MOST_OF_A_CLASS`
/// cables of a class are simulated, evenly spread over the order of their bytes.
pub fn classes<K: Ord + Clone>(kinds: &[K], bytes: &[[u64; 2]]) -> Similar {
    let mut of_kind: BTreeMap<Group<K>, Vec<(u64, u32)>> = BTreeMap::new();
    for ((kind, &[there, back]), cable) in kinds.iter().zip(bytes).zip(0..) {
        let leans = [there > 2 * back, back > 2 * there];
        if there + back > 0 {
            of_kind.entry((kind.clone(), leans)).or_default().push((there + back, cable));
        }
    }
    let mut similar = Similar { class_of: vec![None; kinds.len()], ..Similar::default() };
    for mut cables in of_kind.into_values() {
        cables.sort_unstable();
        let mut left = cables.as_slice();
        while let Some(&(least, _)) = left.first() {
            let (members, more) = left.split_at(left.partition_point(|c| c.0 <= 2 * least));
            left = more;
            let class = similar.classes;
            similar.classes += 1;
            members.iter().for_each(|c| similar.class_of[c.1 as usize] = Some(class));
            let count = members.len().min(MOST_OF_A_CLASS);
            let middle = |i: usize| members[(2 * i + 1) * members.len() / (2 * count)].1;
            similar.simulated.extend((0..count).map(|i| (middle(i), class)));
        }
    }
    similar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cables_of_a_class_have_one_kind_and_similar_bytes() {
        let kinds = ["host", "host", "host", "trunk", "host"];
        let bytes = [[10, 10], [0, 0], [50, 60], [10, 10], [3, 15]];
        let similar = classes(&kinds, &bytes);
        let of = |cable: usize| similar.class_of[cable];
        assert_eq!(of(1), None, "a cable without bytes has no class");
        let differ = [of(0), of(2), of(3), of(4)];
        for (i, a) in differ.iter().enumerate() {
            assert!(a.is_some() && differ[i + 1..].iter().all(|b| b != a), "{similar:?}");
        }
        assert_eq!(similar.simulated.len(), 4);
    }

    #[test]
    fn of_many_similar_cables_some_are_simulated() {
        let bytes: Vec<[u64; 2]> = (0..100).map(|i| [1000 + i, 1000]).collect();
        let similar = classes(&[(); 100], &bytes);
        assert_eq!((similar.classes, similar.simulated.len()), (1, MOST_OF_A_CLASS));
        let cables: Vec<u32> = similar.simulated.iter().map(|s| s.0).collect();
        assert_eq!((cables[0], cables[11]), (4, 95));
        assert!(cables.windows(2).all(|w| w[0] < w[1]), "{cables:?}");
    }
}
