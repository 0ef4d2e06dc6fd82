//! Tree algorithms of collectives: binomial trees, and the flat tree in which the root communicates
//! with all ranks.
//!
//! Ranks are counted from the root, which has number 0. In the binomial tree, the parent of rank
//! `d` is `d` without its lowest set bit; its children are `d + 1, d + 2, d + 4 …`, with steps
//! below this bit.

use super::call::{Step, View};

/// Returns the largest possible number of ranks in the subtree of the rank `relative` (counted from
/// the root): its lowest set bit, or for the root the smallest power of two that is at least the
/// number of ranks.
fn reach(relative: u32, ranks: u32) -> u32 {
    match relative {
        0 => ranks.next_power_of_two(),
        d => 1 << d.trailing_zeros(),
    }
}

/// Returns the number of ranks in the subtree of the rank `relative` (counted from the root), given
/// the largest possible number `reach`.
fn subtree(relative: u32, reach: u32, ranks: u32) -> u32 {
    reach.min(ranks - relative)
}

/// Returns the children of the rank `relative` (counted from the root) in the binomial tree,
/// nearest first, each with the number of ranks in its subtree.
fn children(relative: u32, ranks: u32) -> impl DoubleEndedIterator<Item = (u32, u32)> + Clone {
    let bits = reach(relative, ranks).trailing_zeros();
    (0..bits).map(move |bit| relative + (1 << bit)).filter(move |&child| child < ranks).map(
        move |child| {
            let reach = 1 << (child - relative).trailing_zeros();
            (child, subtree(child, reach, ranks))
        },
    )
}

fn parent(relative: u32) -> u32 {
    relative & (relative - 1)
}

/// Returns step `k` down the binomial tree: receive from the parent, then send to the children, the
/// largest subtree first. `size` returns the bytes for a child, given the child and the number of
/// ranks in its subtree.
pub(super) fn down(v: View, size: impl Fn(u32, u32) -> u64, k: u32) -> Option<Step> {
    let relative = v.relative();
    let k = match (relative, k) {
        (0, k) => k,
        (_, 0) => return Some(Step::receive(v.absolute(parent(relative)))),
        (_, k) => k - 1,
    };
    let (child, below) = children(relative, v.ranks).rev().nth(k as usize)?;
    Some(Step::send(v.absolute(child), size(child, below)))
}

/// Returns the number of steps of a rank in a pass down the binomial tree.
pub(super) fn steps_down(v: View) -> u32 {
    let relative = v.relative();
    u32::from(relative > 0) + children(relative, v.ranks).count() as u32
}

/// Returns step `k` up the binomial tree: receive from the children, the smallest subtree first,
/// then send to the parent. `size` returns the bytes, given the number of ranks in the subtree.
fn up(v: View, size: impl Fn(u32) -> u64, k: u32) -> Option<Step> {
    let relative = v.relative();
    let mut below = children(relative, v.ranks);
    let count = below.clone().count() as u32;
    if let Some((child, _)) = below.nth(k as usize) {
        return Some(Step::receive(v.absolute(child)));
    }
    let mine = subtree(relative, reach(relative, v.ranks), v.ranks);
    (k == count && relative > 0).then(|| Step::send(v.absolute(parent(relative)), size(mine)))
}

pub(super) fn bcast(v: View, bytes: u64, k: u32) -> Option<Step> {
    down(v, |_, _| bytes, k)
}

pub(super) fn reduce(v: View, bytes: u64, k: u32) -> Option<Step> {
    up(v, |_| bytes, k)
}

pub(super) fn gather(v: View, k: u32) -> Option<Step> {
    up(v, |below| u64::from(below) * v.size(), k)
}

pub(super) fn scatter(v: View, k: u32) -> Option<Step> {
    down(v, |_, below| u64::from(below) * v.size(), k)
}

/// Returns step `k` of a reduction of `bytes` bytes up the binomial tree to the root, followed by a
/// broadcast down the tree.
pub(super) fn up_and_down(v: View, bytes: u64, k: u32) -> Option<Step> {
    let ups = steps_down(v);
    if k < ups { up(v, |_| bytes, k) } else { down(v, |_, _| bytes, k - ups) }
}

/// Returns, as step 0, a single step in which the root receives `bytes` bytes from each other rank.
pub(super) fn all_to_root(v: View, bytes: u64, k: u32) -> Option<Step> {
    let root = v.call.root;
    match (k, v.rank == root) {
        (0, true) => {
            let receives = (0..v.ranks).filter(|&r| r != root).collect();
            Some(Step { receives, sends: Vec::new() })
        }
        (0, false) => Some(Step::send(root, bytes)),
        _ => None,
    }
}

/// Returns, as step 0, a single step in which the root sends to all other ranks; `bytes` returns
/// the bytes for a rank.
pub(super) fn root_to_all(v: View, bytes: impl Fn(u32) -> u64, k: u32) -> Option<Step> {
    let root = v.call.root;
    match (k, v.rank == root) {
        (0, true) => {
            let sends = (0..v.ranks).filter(|&r| r != root).map(|r| (r, bytes(r))).collect();
            Some(Step { receives: Vec::new(), sends })
        }
        (0, false) => Some(Step::receive(root)),
        _ => None,
    }
}

pub(super) fn all_to_root_and_back(v: View, k: u32) -> Option<Step> {
    match k {
        0 => all_to_root(v, 0, 0),
        1 => root_to_all(v, |_| 0, 0),
        _ => None,
    }
}
