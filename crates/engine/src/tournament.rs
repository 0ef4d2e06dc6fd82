//! Event list: a winner tree (tournament tree) over event sources.
//!
//! Every link delivers packets in FIFO order, so that only its first event can be the next one of
//! the simulation. Timers and wake-ups have heaps of their own, whose first entries are in the
//! tree. The tree has one word per source, and its root holds the smallest word. When the word of a
//! source changes, each of the log₄(sources) nodes on the path to the root gets the minimum of the
//! words of its four children, computed without a branch. The root has only two children if the
//! number of leaves is not a power of four. Measured alternatives:
//! docs/decisions/0003-event-list.md.
//!
//! A word is (time since a base, class, rank, source). The rank is an eight-bit hash of time, class
//! and source: among simultaneous events of one class, every source is first equally often,
//! independent of the order of scheduling. The other bits hold the time: with 339 sources they
//! reach 17 s beyond the base. A later event has the word [`FAR`] until the base has moved forward.

use crate::order::Key;
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};

/// Word (packed time, class, rank and source) of a source that has no event, or whose event is too
/// far beyond the base of the tree to fit into a word.
const FAR: u64 = u64::MAX;
/// Number of bits of the rank in a word, in which time, class, rank and source of an event are
/// packed. Sources with equal rank are ordered by their numbers, which favours small numbers, but
/// only in one of 2⁸ ties.
const RANK_BITS: u32 = 8;

/// Rule for the order of events: by key (time and class), then by a hash of key and source. The
/// field is the seed of the hash.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Order(u64);

impl Order {
    #[inline]
    fn rank(self, source: u32, key: Key) -> u64 {
        let x = (key.0 ^ self.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let y = (x ^ x >> 32 ^ u64::from(source)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (y ^ y >> 32).wrapping_mul(0x94d0_49bb_1331_11eb) >> (64 - RANK_BITS)
    }

    /// Returns the sort key of the event (key, source). The event with the smaller sort key is
    /// executed first.
    pub fn of(self, (key, source): (Key, u32)) -> (Key, u64) {
        (key, self.rank(source, key) << 32 | u64::from(source))
    }
}

/// Event list: a winner tree over a fixed number of event sources, each of which has at most one
/// event in the list.
#[derive(Serialize, Deserialize)]
pub struct Tournament {
    /// Words of all nodes; a word packs time, class, rank and source of an event into one number.
    /// Node 1 is the root; node `i` has the children `4i` to `4i + 3`, except that the root may
    /// have only 2 and 3. The second half of the vector has the leaves, one per source, up to a
    /// power of two. About a third of the entries are unused, since inner nodes have four children.
    /// The root is read without a bounds check, so that the number of nodes must never change.
    #[serde(deserialize_with = "nodes_of_a_tree")]
    nodes: Vec<u64>,
    /// Full key (time and class) of the event of every source, also if the event is too late for a
    /// word of the tree.
    keys: Vec<Key>,
    /// Key from which the times in the words of the tree are counted.
    base: u64,
    /// Number of bits for the source in a word of the tree.
    source_bits: u32,
    /// Mask of the source in a word of the tree: its lowest [`source_bits`](Self::source_bits) bits
    /// are set.
    source_mask: u64,
    /// Smallest difference between a key and the base of the tree that does not fit into a word.
    horizon: u64,
    order: Order,
}

/// Reads the nodes of a tree from a checkpoint. Returns an error unless their number is a power of
/// two of at least 8, which a tree always has.
fn nodes_of_a_tree<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u64>, D::Error> {
    let nodes = Vec::<u64>::deserialize(from)?;
    if nodes.len() >= 8 && nodes.len().is_power_of_two() {
        return Ok(nodes);
    }
    let message = "the number of nodes of an event list must be a power of two of at least 8";
    Err(D::Error::custom(message))
}

impl Tournament {
    /// Returns the memory in bytes of a tree with `sources` event sources.
    pub fn bytes(sources: usize) -> u64 {
        let leaves = sources.next_power_of_two().max(4);
        (leaves * (2 * size_of::<u64>() + size_of::<Key>())) as u64
    }

    /// Returns a tree for the event sources `0..sources`, none of which has an event. `seed`
    /// decides the order of events with equal keys.
    pub fn new(sources: usize, seed: u64) -> Tournament {
        let leaves = sources.next_power_of_two().max(4);
        let source_bits = leaves.ilog2();
        Tournament {
            nodes: vec![FAR; 2 * leaves],
            keys: vec![Key::NEVER; leaves],
            base: 0,
            source_bits,
            source_mask: (1 << source_bits) - 1,
            horizon: FAR >> (source_bits + RANK_BITS),
            order: Order(seed | 1),
        }
    }

    /// Returns the word of the root: packed time, class, rank and source of the earliest event.
    #[inline]
    fn root(&self) -> u64 {
        debug_assert!(self.nodes.len() >= 8);
        // SAFETY: a tree has at least eight nodes, both when it is created and when it is read from
        // a checkpoint.
        #[allow(unsafe_code)]
        unsafe {
            *self.nodes.get_unchecked(1)
        }
    }

    #[inline]
    fn word(&self, source: u32, key: Key) -> u64 {
        let since_base = key.0.wrapping_sub(self.base);
        if since_base >= self.horizon {
            return FAR;
        }
        (since_base << RANK_BITS | self.rank(source, key)) << self.source_bits | u64::from(source)
    }

    #[inline]
    fn rank(&self, source: u32, key: Key) -> u64 {
        self.order.rank(source, key)
    }

    /// Returns the rule by which this tree orders events.
    pub fn order(&self) -> Order {
        self.order
    }

    /// Returns the key of the next event of `source`; [`Key::NEVER`] if it has none.
    pub fn key(&self, source: u32) -> Key {
        self.keys[source as usize]
    }

    /// Returns key and source of the earliest event of all sources; [`Key::NEVER`] and source 0 if
    /// there is none.
    #[inline]
    pub fn winner(&mut self) -> (Key, u32) {
        let mut word = self.root();
        if word == FAR {
            self.move_base();
            word = self.root();
            if word == FAR {
                return (Key::NEVER, 0);
            }
        }
        let key = Key(self.base + (word >> (self.source_bits + RANK_BITS)));
        (key, (word & self.source_mask) as u32)
    }

    /// Returns the source of the next event, as a hint for prefetching. `None`: there is no event,
    /// or it is too late to fit into a word of the tree.
    #[inline]
    pub fn leader(&self) -> Option<u32> {
        let word = self.root();
        (word != FAR).then_some((word & self.source_mask) as u32)
    }

    /// Whether an event of source `a` is executed before an event of source `b`, if both events
    /// have the key `key`.
    pub fn goes_before(&self, key: Key, a: u32, b: u32) -> bool {
        self.word(a, key) < self.word(b, key)
    }

    /// Sets the key of the next event of `source`; [`Key::NEVER`] if the source has none.
    #[inline]
    pub fn set(&mut self, source: u32, key: Key) {
        self.keys[source as usize] = key;
        let mut word = self.word(source, key);
        if word == FAR && key.0 < self.base {
            return self.move_base();
        }
        let mut node = self.nodes.len() / 2 + source as usize;
        self.nodes[node] = word;
        while node > 3 {
            // SAFETY: `node` was checked as an index above and only gets smaller. Its three
            // siblings differ from it in the last two bits, and the number of nodes is a multiple
            // of four. Checking each access would cost a tenth of all instructions for a packet on
            // one link.
            #[allow(unsafe_code)]
            unsafe {
                let a = *self.nodes.get_unchecked(node ^ 1);
                let b = *self.nodes.get_unchecked(node ^ 2);
                let c = *self.nodes.get_unchecked(node ^ 3);
                word = word.min(a.min(b).min(c));
                node >>= 2;
                *self.nodes.get_unchecked_mut(node) = word;
            }
        }
        if node > 1 {
            self.nodes[1] = word.min(self.nodes[node ^ 1]);
        }
    }

    /// Sets the key of the next event of `source`, which must not be later than its current key. It
    /// is faster than [`Tournament::set`], since it stops at the first node whose word is already
    /// smaller.
    #[inline]
    pub fn set_sooner(&mut self, source: u32, key: Key) {
        debug_assert!(key <= self.keys[source as usize]);
        self.keys[source as usize] = key;
        let word = self.word(source, key);
        if word == FAR && key.0 < self.base {
            return self.move_base();
        }
        let mut node = self.nodes.len() / 2 + source as usize;
        self.nodes[node] = word;
        while node > 1 {
            node = (node >> 2).max(1);
            if self.nodes[node] <= word {
                return;
            }
            self.nodes[node] = word;
        }
    }

    /// Moves the base of the tree to the earliest event and computes all words again. Needed when
    /// no event fits into a word, or when an event is before the base.
    #[cold]
    fn move_base(&mut self) {
        let earliest = self.keys.iter().min().expect("there are sources");
        if *earliest == Key::NEVER {
            return;
        }
        self.base = earliest.0;
        let mut level = self.keys.len();
        for source in 0..level {
            self.nodes[level + source] = self.word(source as u32, self.keys[source]);
        }
        while level > 1 {
            let players = level.min(4);
            level /= players;
            for node in level..2 * level {
                let least = self.nodes[players * node..players * (node + 1)].iter().min();
                self.nodes[node] = *least.expect("a match has players");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Class;
    use crate::random::Stream;
    use eastwest_types::Time;

    /// Returns a time from 1 ps to about a day after `now`, so that the base of the tree has to
    /// move.
    fn some_time(random: &mut Stream, now: u64) -> Time {
        let reach = [4, 4, 1 << 20, 1 << 45, 5_000_000_000_000_000];
        let reach = reach[random.below(5) as usize];
        Time(now + random.below(reach))
    }

    #[test]
    fn a_number_of_nodes_that_no_tree_has_is_refused() {
        use serde::de::value::{Error, SeqDeserializer};
        for (nodes, is_tree) in [(0, false), (4, false), (12, false), (8, true), (64, true)] {
            let words = SeqDeserializer::<_, Error>::new(std::iter::repeat_n(FAR, nodes));
            assert_eq!(nodes_of_a_tree(words).is_ok(), is_tree, "{nodes}");
        }
    }

    #[test]
    fn agrees_with_looking_at_every_source() {
        let mut random = Stream::new(3, "tournament");
        for sources in [1usize, 2, 3, 17, 300] {
            let mut tree = Tournament::new(sources, 9);
            let mut keys = vec![Key::NEVER; sources];
            let mut now = 0;
            for _ in 0..3_000 {
                let s = random.below(sources as u64) as usize;
                let key = match random.below(8) {
                    0 => Key::NEVER,
                    // The tree must also accept keys before its base, which moves when the winner
                    // is read.
                    1 => Key::new(Time(random.below(now + 1)), Class::Arrival),
                    _ => Key::new(some_time(&mut random, now), Class::Arrival),
                };
                if key <= keys[s] {
                    tree.set_sooner(s as u32, key);
                } else {
                    tree.set(s as u32, key);
                }
                keys[s] = key;
                let (winner, source) = tree.winner();
                assert_eq!(winner, *keys.iter().min().unwrap());
                if winner != Key::NEVER {
                    assert_eq!(keys[source as usize], winner);
                    now = winner.time().0;
                    if random.below(3) > 0 {
                        tree.set(source, Key::NEVER);
                        keys[source as usize] = Key::NEVER;
                    }
                }
            }
        }
    }

    #[test]
    fn ties_favour_no_source() {
        let mut wins = [0; 5];
        let mut tree = Tournament::new(5, 42);
        for t in 1..50_000 {
            for s in 0..5 {
                tree.set(s, Key::new(Time(t), Class::Arrival));
            }
            wins[tree.winner().1 as usize] += 1;
        }
        // Each of the sources is expected to win 10,000 times, with a standard deviation of 90. In
        // 1 of 256 ties the smaller source number wins.
        assert!(wins.iter().all(|w| (9_600..10_400).contains(w)), "{wins:?}");
    }

    #[test]
    fn who_goes_before_whom_is_known_beforehand() {
        for t in 1..2_000 {
            let (key, mut tree) = (Key::new(Time(t), Class::Departure), Tournament::new(9, 7));
            let (a, b) = ((t % 9) as u32, (t / 9 % 9) as u32);
            if a != b {
                let before = tree.goes_before(key, a, b);
                tree.set(a, key);
                tree.set(b, key);
                assert_eq!(tree.winner(), (key, if before { a } else { b }));
                assert_ne!(before, tree.goes_before(key, b, a));
            }
        }
    }

    #[test]
    fn the_order_of_a_tie_does_not_depend_on_the_order_of_asking_or_the_base() {
        let order = |first: u64, sources: &mut dyn Iterator<Item = u32>| {
            let mut tree = Tournament::new(8, 1);
            tree.set(7, Key::new(Time(first), Class::Arrival));
            let instant = Time(100_000_000_000_000_000);
            for s in sources {
                tree.set(s, Key::new(instant, Class::Arrival));
            }
            tree.set(7, Key::NEVER);
            let mut seen = Vec::new();
            while tree.winner().0 != Key::NEVER {
                let s = tree.winner().1;
                seen.push(s);
                tree.set(s, Key::NEVER);
            }
            seen
        };
        assert_eq!(order(0, &mut (0..6)), order(77_000_000_000_000_000, &mut (0..6).rev()));
    }
}
