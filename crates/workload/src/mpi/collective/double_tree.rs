//! Allreduce on two binary trees, each of which combines half of the data (Sanders, Speck and
//! Träff, *Two-tree algorithms for full bandwidth broadcast, reduction and scan*, Parallel Computing
//! 35, 2009; the trees are those of NCCL 2.4 and later).
//!
//! The ranks of the first tree are numbered in order: the lowest set bit of a number gives its
//! height, so odd ranks are leaves. The second tree is a mirror image of the first for an even
//! number of ranks, and the first tree shifted by one rank for an odd number. A rank that has
//! children in one tree is a leaf of the other, except for one rank if the number of ranks is odd.

use super::call::{Step, View};

/// Returns the lowest set bit of a number; a power of two above all numbers for the root 0.
fn lowest_bit(number: u32, ranks: u32) -> u32 {
    match number {
        0 => ranks.next_power_of_two(),
        number => number & number.wrapping_neg(),
    }
}

/// Returns the parent of a number in the first tree of `ranks` ranks; `None` for the root 0.
fn parent(number: u32, ranks: u32) -> Option<u32> {
    let bit = lowest_bit(number, ranks);
    let before = number.checked_sub(bit)?;
    // one level higher, on the right if this number exists, otherwise on the left
    Some(if before | bit << 1 < ranks { before | bit << 1 } else { before })
}

/// Returns the children of a number in the first tree of `ranks` ranks: at most two.
fn children(number: u32, ranks: u32) -> impl Iterator<Item = u32> {
    let bit = lowest_bit(number, ranks);
    let left = (number > 0 && bit > 1).then(|| number - bit / 2);
    let right = (0..bit.trailing_zeros()).rev().map(move |shift| number + (1 << shift));
    left.into_iter().chain(right.into_iter().find(move |&child| child < ranks))
}

/// Returns step `k` of an allreduce up and down a tree: the first tree in lanes with even numbers,
/// the second tree in lanes with odd numbers.
pub(super) fn allreduce(v: View, k: u32) -> Option<Step> {
    let ranks = v.ranks;
    // numbers of the second tree are n - 1 - rank, or rank - 1 modulo n
    let (second, mirror) = (v.lane % 2 == 1, ranks % 2 == 0);
    let other = |from: u32, shift: u32| match (second, mirror) {
        (false, _) => from,
        (true, true) => ranks - 1 - from,
        (true, false) => (from + shift) % ranks,
    };
    let number = other(v.rank, ranks - 1);
    let below: Vec<u32> = children(number, ranks).map(|child| other(child, 1)).collect();
    let above = parent(number, ranks).map(|above| other(above, 1));
    let bytes = v.size();
    let up = (!below.is_empty()).then(|| Step { receives: below.clone(), sends: Vec::new() });
    let exchange = above.map(|above| Step::exchange(above, above, bytes));
    let down = (!below.is_empty()).then(|| Step {
        receives: Vec::new(),
        sends: below.iter().map(|&child| (child, bytes)).collect(),
    });
    [up, exchange, down].into_iter().flatten().nth(k as usize)
}
