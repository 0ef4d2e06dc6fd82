//! The list of next events: a winner tree over event sources.
//!
//! Every link is a FIFO, so only its next event can be the next event of the world; timers and
//! wake-ups keep heaps of their own and stand here with their first entry. The tree holds one key
//! per source and the winner at its root. Changing a source's key replays its matches up to the
//! root, about log₂(sources) comparisons without unpredictable branches. See
//! docs/decisions/0003-event-list.md for what it was measured against.

use crate::order::{Key, tie_rank};

#[derive(Clone, Copy)]
struct Match {
    key: u64,
    source: u32,
}

/// A winner tree with a fixed number of sources.
pub struct Tournament {
    /// Node 1 is the root, node `i` has children `2i` and `2i + 1`, leaves start at `leaves`.
    nodes: Vec<Match>,
    leaves: usize,
    seed: u64,
}

impl Tournament {
    /// A tree for sources `0..sources`, all without event.
    pub fn new(sources: usize, seed: u64) -> Tournament {
        let leaves = sources.next_power_of_two().max(2);
        let nodes = (0..2 * leaves)
            .map(|i| Match { key: u64::MAX, source: i.saturating_sub(leaves) as u32 })
            .collect();
        Tournament { nodes, leaves, seed }
    }

    /// The next event: its key ([`Key::NEVER`] where there is none) and its source.
    #[inline]
    pub fn winner(&self) -> (Key, u32) {
        let root = self.nodes[1];
        (Key(root.key), root.source)
    }

    /// The key a source stands with.
    pub fn key_of(&self, source: u32) -> Key {
        Key(self.nodes[self.leaves + source as usize].key)
    }

    /// Sets the next event of `source`.
    #[inline]
    pub fn set(&mut self, source: u32, key: Key) {
        let mut node = self.leaves + source as usize;
        let mut current = Match { key: key.0, source };
        self.nodes[node] = current;
        while node > 1 {
            let sibling = self.nodes[node ^ 1];
            node >>= 1;
            let mut sibling_wins = sibling.key < current.key;
            if sibling.key == current.key && current.key != u64::MAX {
                sibling_wins = self.sibling_wins_tie(sibling, current);
            }
            current.key = if sibling_wins { sibling.key } else { current.key };
            current.source = if sibling_wins { sibling.source } else { current.source };
            self.nodes[node] = current;
        }
    }

    /// As [`Tournament::set`], for a source that had no event: stops where the winner stays.
    #[inline]
    pub fn set_from_never(&mut self, source: u32, key: Key) {
        let mut node = self.leaves + source as usize;
        debug_assert_eq!(self.nodes[node].key, u64::MAX);
        let current = Match { key: key.0, source };
        self.nodes[node] = current;
        while node > 1 {
            node >>= 1;
            let holder = self.nodes[node];
            let holder_stays = holder.key < current.key
                || (holder.key == current.key && self.sibling_wins_tie(holder, current));
            if holder_stays {
                return;
            }
            self.nodes[node] = current;
        }
    }

    #[cold]
    #[inline(never)]
    fn sibling_wins_tie(&self, a: Match, b: Match) -> bool {
        tie_rank(Key(a.key), a.source, self.seed) < tie_rank(Key(b.key), b.source, self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Class;
    use crate::random::Stream;
    use eastwest_types::Time;

    /// The winner by looking at every source.
    fn brute(keys: &[Key], seed: u64) -> (Key, u32) {
        let first = (0..keys.len() as u32)
            .min_by_key(|&s| (keys[s as usize], tie_rank(keys[s as usize], s, seed)))
            .unwrap();
        (keys[first as usize], first)
    }

    #[test]
    fn agrees_with_looking_at_every_source() {
        let mut random = Stream::new(3, "tournament");
        for sources in [1usize, 2, 3, 17, 64] {
            let mut tree = Tournament::new(sources, 9);
            let mut keys = vec![Key::NEVER; sources];
            for _ in 0..2_000 {
                let s = random.below(sources as u64) as usize;
                // few distinct times, so that ties are common
                let key = match random.below(8) {
                    0 => Key::NEVER,
                    t => Key::new(Time(t), Class::Arrival),
                };
                if keys[s] == Key::NEVER && key != Key::NEVER {
                    tree.set_from_never(s as u32, key);
                } else {
                    tree.set(s as u32, key);
                }
                keys[s] = key;
                let expected = brute(&keys, 9);
                assert_eq!(tree.winner().0, expected.0);
                if expected.0 != Key::NEVER {
                    assert_eq!(tree.winner(), expected);
                }
            }
        }
    }
}
