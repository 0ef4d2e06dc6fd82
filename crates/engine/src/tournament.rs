//! Event list: a winner tree (tournament tree) over event sources.
//!
//! Every link delivers packets in FIFO order, so that only its first event can be the next one of
//! the simulation. Timers and wake-ups have heaps of their own, whose first entries are in the
//! tree. The tree has one word per source. When the word of a source changes, each of the
//! log₈(sources) nodes on the path to the root gets the minimum of the words of its eight children,
//! computed without a branch. The root is not stored: reading it computes the minimum of its two,
//! four or eight children. Measured alternatives: docs/decisions/0003-event-list.md.
//!
//! A word is (time since a base, class, rank, source). The rank is an eight-bit hash of time, class
//! and source: among simultaneous events of one class, every source is first equally often,
//! independent of the order of scheduling. The other bits hold the time: with 339 sources they
//! reach 4 s beyond the base. A later event has the word [`FAR`] until the base has moved forward.

use crate::order::Key;
use serde::{Deserialize, Serialize};

/// Word of a source that has no event, or whose event is too far beyond the base of the tree to fit
/// into a word. It is larger than every other word.
const FAR: f64 = f64::INFINITY;
/// Bit that is set in every word, so that the word is a normal floating-point number. Subnormal
/// numbers would not do: a process may have told its processor to read them as zero.
const NORMAL: u64 = 1 << 62;
/// Number of children of a node, and most children of the root.
const CHILDREN: usize = 8;
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
    nodes: Nodes,
    /// By source, the key (time and class) of its event if the word of the source is [`FAR`];
    /// otherwise the word contains the key, and this number means nothing.
    far_keys: Vec<Key>,
    /// Key from which the times in the words of the tree are counted.
    base: u64,
    /// Number of bits for the source in a word of the tree.
    source_bits: u32,
    /// Number of bits for rank and source in a word of the tree.
    time_shift: u32,
    /// Mask of the source in a word of the tree: its lowest [`source_bits`](Self::source_bits) bits
    /// are set.
    source_mask: u64,
    /// Smallest difference between a key and the base of the tree that does not fit into a word.
    horizon: u64,
    order: Order,
}

/// Words of the nodes of a tree. A word packs time, class, rank and source of an event into the
/// bits of a positive floating-point number. Positive numbers have the order of their bits, and a
/// processor computes their minimum with one instruction, against three for integers.
///
/// Node `i` has the children `8i` to `8i + 7`. The second half of the vector has the leaves, one per
/// source, up to a power of two. The children of the root are the nodes from `top` on, of which two
/// or four may be all that the tree has. Nodes that the tree does not have, about half of all, have
/// the word [`FAR`].
#[derive(Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
struct Nodes {
    /// Words, two for each leaf. They are accessed without bounds checks, so that their number must
    /// never change.
    words: Vec<f64>,
    /// Number of leaves: a power of two of at least 8.
    leaves: usize,
    /// First child of the root, at most 8.
    top: usize,
}

/// Nodes as read from a checkpoint, before their number is checked.
#[derive(Deserialize)]
struct Unchecked {
    words: Vec<f64>,
    leaves: usize,
    top: usize,
}

impl TryFrom<Unchecked> for Nodes {
    type Error = &'static str;

    fn try_from(Unchecked { words, leaves, top }: Unchecked) -> Result<Nodes, &'static str> {
        let is_tree = leaves >= CHILDREN && leaves.is_power_of_two();
        if is_tree && Some(words.len()) == leaves.checked_mul(2) && top == Nodes::top(leaves) {
            Ok(Nodes { words, leaves, top })
        } else {
            Err("the number of nodes of an event list must be a power of two of at least 16")
        }
    }
}

impl Nodes {
    /// Returns the nodes of a tree without events. `leaves` must be a power of two of at least 8.
    fn new(leaves: usize) -> Nodes {
        Nodes { words: vec![FAR; 2 * leaves], leaves, top: Nodes::top(leaves) }
    }

    /// Returns the first child of the root of a tree with this number of leaves.
    fn top(leaves: usize) -> usize {
        let mut top = leaves;
        while top > CHILDREN {
            top /= CHILDREN;
        }
        top
    }

    /// Returns the number of the leaf of an event source.
    #[inline]
    fn leaf(&self, source: u32) -> usize {
        assert!((source as usize) < self.leaves, "the tree has no such source");
        self.leaves + source as usize
    }

    /// Returns the word of the root, the smallest word.
    #[inline]
    fn root(&self) -> f64 {
        self.least(self.top)
    }

    /// Returns the smallest of eight neighbouring words, of which `first` is the first. The minima
    /// are computed one after another: in a tree of minima, the compiler would load pairs of words,
    /// which makes a processor wait if a single one of them has just been written.
    #[inline]
    fn least(&self, first: usize) -> f64 {
        debug_assert!(first + CHILDREN <= self.words.len());
        // SAFETY: `first` is at most 8, or the number of the first child of an inner node; see
        // `get`.
        #[allow(unsafe_code)]
        let [first, others @ ..] =
            unsafe { &*self.words.as_ptr().add(first).cast::<[f64; CHILDREN]>() };
        others.iter().fold(*first, |least, word| min(least, *word))
    }

    /// Returns the word of a node. `node` must be a number that [`Nodes::leaf`] has returned, that
    /// number divided by a power of two, a sibling of these, or less than 16.
    #[inline]
    fn get(&self, node: usize) -> f64 {
        debug_assert!(node < self.words.len());
        // SAFETY: leaves have numbers below the number of words, which is a multiple of eight and
        // at least 16; the numbers of other nodes are smaller. Checking each access would cost a
        // tenth of all instructions for a packet on one link.
        #[allow(unsafe_code)]
        unsafe {
            *self.words.get_unchecked(node)
        }
    }

    /// Sets the word of a node. [`Nodes::get`] says which numbers `node` may have.
    #[inline]
    fn put(&mut self, node: usize, word: f64) {
        debug_assert!(node < self.words.len());
        // SAFETY: as in `get`.
        #[allow(unsafe_code)]
        unsafe {
            *self.words.get_unchecked_mut(node) = word;
        }
    }

    /// Sets the word of a leaf, and the words of all nodes above it.
    #[inline]
    fn set(&mut self, leaf: usize, mut word: f64) {
        let mut node = leaf as u32;
        while node >= 2 * CHILDREN as u32 {
            // The old word of this node must not count, so that the words of all other children
            // can be compared before the new word is known.
            self.put(node as usize, FAR);
            let others = self.least((node & !(CHILDREN as u32 - 1)) as usize);
            self.put(node as usize, word);
            word = min(word, others);
            node /= CHILDREN as u32;
        }
        self.put(node as usize, word);
    }

    /// Sets the word of a leaf, which must not be larger than its current word, and the words of the
    /// nodes above it that are larger.
    #[inline]
    fn lower(&mut self, leaf: usize, word: f64) {
        let mut node = leaf;
        self.put(node, word);
        while node >= 2 * CHILDREN && word < self.get(node / CHILDREN) {
            node /= CHILDREN;
            self.put(node, word);
        }
    }
}

/// Returns the smaller of two words. Unlike [`f64::min`], this is one instruction, since no word is
/// a NaN.
#[inline]
fn min(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

impl Tournament {
    /// Returns the memory in bytes of a tree with `sources` event sources.
    pub fn bytes(sources: usize) -> u64 {
        let leaves = sources.next_power_of_two().max(CHILDREN);
        (leaves * (2 * size_of::<f64>() + size_of::<Key>())) as u64
    }

    /// Returns a tree for the event sources `0..sources`, none of which has an event. `seed`
    /// decides the order of events with equal keys.
    pub fn new(sources: usize, seed: u64) -> Tournament {
        let leaves = sources.next_power_of_two().max(CHILDREN);
        let source_bits = leaves.ilog2();
        Tournament {
            nodes: Nodes::new(leaves),
            far_keys: vec![Key::NEVER; leaves],
            base: 0,
            source_bits,
            time_shift: source_bits + RANK_BITS,
            source_mask: (1 << source_bits) - 1,
            horizon: (FAR.to_bits() - NORMAL) >> (source_bits + RANK_BITS),
            order: Order(seed | 1),
        }
    }

    /// Returns the word of the event `key` of `source`. `since_base` is the difference between the
    /// key and the base of the tree, which must be less than the horizon.
    #[inline]
    fn word(&self, source: u32, key: Key, since_base: u64) -> f64 {
        let rank = self.order.rank(source, key);
        let packed = (since_base << RANK_BITS | rank) << self.source_bits | u64::from(source);
        f64::from_bits(packed | NORMAL)
    }

    /// Returns key and source of a word other than [`FAR`].
    #[inline]
    fn event(&self, word: f64) -> (Key, u32) {
        let packed = word.to_bits() & !NORMAL;
        let key = Key(self.base + (packed >> self.time_shift));
        (key, (packed & self.source_mask) as u32)
    }

    /// Returns the rule by which this tree orders events.
    pub fn order(&self) -> Order {
        self.order
    }

    /// Returns the key of the next event of `source`; [`Key::NEVER`] if it has none.
    pub fn key(&self, source: u32) -> Key {
        match self.nodes.get(self.nodes.leaf(source)) {
            FAR => self.far_keys[source as usize],
            word => self.event(word).0,
        }
    }

    /// Returns key and source of the earliest event of all sources; [`Key::NEVER`] and source 0 if
    /// there is none.
    #[inline]
    pub fn winner(&mut self) -> (Key, u32) {
        let mut word = self.nodes.root();
        if word == FAR {
            self.move_base();
            word = self.nodes.root();
            if word == FAR {
                return (Key::NEVER, 0);
            }
        }
        self.event(word)
    }

    /// Returns the source of the next event, as a hint for prefetching. `None`: there is no event,
    /// or it is too late to fit into a word of the tree.
    #[inline]
    pub fn leader(&self) -> Option<u32> {
        let word = self.nodes.root();
        (word != FAR).then_some((word.to_bits() & self.source_mask) as u32)
    }

    /// Whether an event of source `a` is executed before an event of source `b`, if both events
    /// have the key `key`.
    pub fn goes_before(&self, key: Key, a: u32, b: u32) -> bool {
        self.order.of((key, a)) < self.order.of((key, b))
    }

    /// Sets the key of the next event of `source`; [`Key::NEVER`] if the source has none.
    #[inline]
    pub fn set(&mut self, source: u32, key: Key) {
        let since_base = key.0.wrapping_sub(self.base);
        if since_base >= self.horizon {
            return self.set_far(source, key);
        }
        let word = self.word(source, key, since_base);
        self.nodes.set(self.nodes.leaf(source), word);
    }

    /// Sets the key of the next event of `source`, which does not fit into a word.
    #[inline(never)]
    fn set_far(&mut self, source: u32, key: Key) {
        self.far_keys[source as usize] = key;
        self.nodes.set(self.nodes.leaf(source), FAR);
        if key.0 < self.base {
            self.move_base();
        }
    }

    /// Sets the key of the next event of `source`, which must not be later than its current key. It
    /// is faster than [`Tournament::set`], since it stops at the first node whose word is already
    /// smaller.
    #[inline]
    pub fn set_sooner(&mut self, source: u32, key: Key) {
        debug_assert!(key <= self.key(source));
        let since_base = key.0.wrapping_sub(self.base);
        if since_base >= self.horizon {
            return self.set_far(source, key);
        }
        let word = self.word(source, key, since_base);
        self.nodes.lower(self.nodes.leaf(source), word);
    }

    /// Moves the base of the tree to the earliest event and computes all words again. Needed when
    /// no event fits into a word, or when an event is before the base.
    #[cold]
    #[inline(never)]
    fn move_base(&mut self) {
        for source in 0..self.far_keys.len() {
            self.far_keys[source] = self.key(source as u32);
        }
        let earliest = *self.far_keys.iter().min().expect("there are sources");
        if earliest == Key::NEVER {
            return;
        }
        self.base = earliest.0;
        self.nodes.words.fill(FAR);
        for source in 0..self.far_keys.len() {
            let key = self.far_keys[source];
            if key.0 - self.base < self.horizon && key < Key::NEVER {
                self.set_sooner(source as u32, key);
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
        for (nodes, top, is_tree) in [
            (0, 0, false),
            (8, 4, false),
            (24, 4, false),
            (16, 8, true),
            (64, 4, true),
            (64, 8, false),
        ] {
            let (words, leaves) = (vec![FAR; nodes], nodes / 2);
            let nodes = Nodes::try_from(Unchecked { words, leaves, top });
            assert_eq!(nodes.is_ok(), is_tree);
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
