//! Ring and chain algorithms of collectives: every rank receives from the rank before it and sends
//! to the rank after it.

use super::call::{Step, View, share};
use super::tree;

/// Returns step `k` of a broadcast of `bytes` bytes along a chain of ranks, beginning at the root.
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

/// Returns step `k` of a reduction of vectors of `bytes` bytes along a chain of ranks, from the far
/// end to the root.
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

/// Returns step `k` of a ring allgather: a rank forwards the part of the rank `k` before it.
pub(super) fn allgather(v: View, k: u32) -> Option<Step> {
    (k + 1 < v.ranks).then(|| Step::exchange(v.before(1), v.after(1), v.part(v.before(k))))
}

/// Returns step `k` of a ring reduce-scatter: a rank forwards the partial sum for the rank `k + 1`
/// before it.
pub(super) fn reduce_scatter(v: View, k: u32) -> Option<Step> {
    (k + 1 < v.ranks).then(|| Step::exchange(v.before(1), v.after(1), v.part(v.before(k + 1))))
}

/// Returns step `k` of a ring allreduce: first the parts of the vector are summed around the ring,
/// then the sums are distributed around the ring.
pub(super) fn allreduce(v: View, k: u32) -> Option<Step> {
    let rounds = v.ranks - 1;
    let number = if k < rounds { v.before(k) } else { v.after(1 + 2 * v.ranks - (k - rounds)) };
    let bytes = share(v.size(), v.ranks, number);
    (k < 2 * rounds).then(|| Step::exchange(v.before(1), v.after(1), bytes))
}

/// Returns step `k` of a broadcast that scatters parts along a binomial tree and then sends them
/// around a ring.
pub(super) fn scatter_then_ring(v: View, k: u32) -> Option<Step> {
    let of = |number| share(v.size(), v.ranks, number);
    let steps = tree::steps_down(v);
    let Some(round) = k.checked_sub(steps) else {
        return tree::down(v, |child, below| (child..child + below).map(of).sum(), k);
    };
    let number = (v.relative() + v.ranks - round % v.ranks) % v.ranks;
    (round + 1 < v.ranks).then(|| Step::exchange(v.before(1), v.after(1), of(number)))
}

/// Returns step `k` of a linear scan: receive from the rank before this one, then send to the rank
/// after it.
pub(super) fn scan(v: View, k: u32) -> Option<Step> {
    let (receives, sends) = (v.rank > 0, v.rank + 1 < v.ranks);
    match k {
        0 if receives => Some(Step::receive(v.rank - 1)),
        0 if sends => Some(Step::send(v.rank + 1, v.size())),
        1 if receives && sends => Some(Step::send(v.rank + 1, v.size())),
        _ => None,
    }
}
