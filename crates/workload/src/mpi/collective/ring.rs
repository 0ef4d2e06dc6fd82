//! Rings and chains: every rank receives from the one before it and sends to the one after.

use super::call::{Step, View};
use super::tree;

/// Bytes of one of `ranks` parts of a vector: the first ones are a byte longer where it does not
/// divide.
pub(super) fn part(bytes: u64, ranks: u32, number: u32) -> u64 {
    let ranks = u64::from(ranks);
    bytes / ranks + u64::from(u64::from(number) < bytes % ranks)
}

/// Everything from the root along the chain.
pub(super) fn chain_from_root(v: View, bytes: u64, k: u32) -> Option<Step> {
    let relative = v.relative();
    let receives = relative > 0;
    let sends = relative + 1 < v.ranks;
    match k {
        0 if receives => Some(Step::receive(v.before(1))),
        0 if sends => Some(Step::send(v.after(1), bytes)),
        1 if receives && sends => Some(Step::send(v.after(1), bytes)),
        _ => None,
    }
}

/// Sums from the far end of the chain to the root.
pub(super) fn chain_to_root(v: View, bytes: u64, k: u32) -> Option<Step> {
    let relative = v.relative();
    let receives = relative + 1 < v.ranks;
    let sends = relative > 0;
    match k {
        0 if receives => Some(Step::receive(v.after(1))),
        0 if sends => Some(Step::send(v.before(1), bytes)),
        1 if receives && sends => Some(Step::send(v.before(1), bytes)),
        _ => None,
    }
}

/// In step `k` the part of the rank `k` before goes on.
pub(super) fn allgather(v: View, k: u32) -> Option<Step> {
    (k + 1 < v.ranks).then(|| Step::exchange(v.before(1), v.after(1), v.call.part(v.before(k))))
}

/// In step `k` the partial sum for the rank `k + 1` before goes on, and ends there.
pub(super) fn reduce_scatter(v: View, k: u32) -> Option<Step> {
    (k + 1 < v.ranks).then(|| Step::exchange(v.before(1), v.after(1), v.call.part(v.before(k + 1))))
}

/// A ring that sums parts of the vector, then one that hands them on.
pub(super) fn allreduce(v: View, k: u32) -> Option<Step> {
    let rounds = v.ranks - 1;
    let number = if k < rounds { v.before(k) } else { v.after(1 + 2 * v.ranks - (k - rounds)) };
    let bytes = part(v.call.size, v.ranks, number);
    (k < 2 * rounds).then(|| Step::exchange(v.before(1), v.after(1), bytes))
}

/// Parts down a binomial tree, then round a ring.
pub(super) fn scatter_then_ring(v: View, k: u32) -> Option<Step> {
    let of = |number| part(v.call.size, v.ranks, number);
    let steps = tree::steps_down(v);
    let Some(round) = k.checked_sub(steps) else {
        return tree::down(v, |child, below| (child..child + below).map(of).sum(), k);
    };
    let number = (v.relative() + v.ranks - round % v.ranks) % v.ranks;
    (round + 1 < v.ranks).then(|| Step::exchange(v.before(1), v.after(1), of(number)))
}

/// From the rank before, to the rank after.
pub(super) fn scan(v: View, k: u32) -> Option<Step> {
    let (receives, sends) = (v.rank > 0, v.rank + 1 < v.ranks);
    match k {
        0 if receives => Some(Step::receive(v.rank - 1)),
        0 if sends => Some(Step::send(v.rank + 1, v.call.size)),
        1 if receives && sends => Some(Step::send(v.rank + 1, v.call.size)),
        _ => None,
    }
}
