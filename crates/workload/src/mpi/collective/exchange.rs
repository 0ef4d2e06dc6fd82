//! Exchanges between pairs: recursive doubling and halving, dissemination, pairwise.
//!
//! If recursive doubling needs a power of two of ranks and there is none, the first ranks meet in
//! pairs before and after: the rank with the odd number of each pair takes part for both (MPICH).

use super::call::{Step, View};
use super::ring;

/// Returns the number of ranks that take part in recursive doubling, and the number above that power of two.
fn folded(ranks: u32) -> (u32, u32) {
    let power = 1 << ranks.ilog2();
    (power, ranks - power)
}

/// Returns round `k` of dissemination: send to the rank 2^k after, receive from the rank 2^k before.
pub(super) fn dissemination(v: View, k: u32) -> Option<Step> {
    let distance = 1u32.checked_shl(k).filter(|&d| d < v.ranks)?;
    Some(Step::exchange(v.before(distance), v.after(distance), 0))
}

/// Returns a rank's step before, after, and during the rounds of a power of two. `during` returns
/// its exchange in a round, given its number among the ranks that take part; partners are such
/// numbers too.
fn fold(
    v: View,
    bytes: u64,
    rounds: u32,
    k: u32,
    during: impl FnOnce(u32, u32) -> (u32, u64),
) -> Option<Step> {
    let (_, rest) = folded(v.ranks);
    let paired = v.rank < 2 * rest;
    if paired && v.rank % 2 == 0 {
        return match k {
            0 => Some(Step::send(v.rank + 1, bytes)),
            1 => Some(Step::receive(v.rank + 1)),
            _ => None,
        };
    }
    if paired && k == 0 {
        return Some(Step::receive(v.rank - 1));
    }
    let round = k - u32::from(paired);
    if round == rounds && paired {
        return Some(Step::send(v.rank - 1, bytes));
    }
    if round >= rounds {
        return None;
    }
    let number = if paired { v.rank / 2 } else { v.rank - rest };
    let (partner, bytes) = during(number, round);
    let partner = if partner < rest { 2 * partner + 1 } else { partner + rest };
    Some(Step::exchange(partner, partner, bytes))
}

/// Returns a round of recursive doubling: partners at distances 1, 2, 4, … exchange everything.
pub(super) fn recursive_doubling(v: View, bytes: u64, k: u32) -> Option<Step> {
    let (power, _) = folded(v.ranks);
    fold(v, bytes, power.ilog2(), k, |number, round| (number ^ (1 << round), bytes))
}

/// Returns a round of Rabenseifner's algorithm: partners at distances …, 4, 2, 1 exchange halves of
/// the vector, then gather in reverse order.
pub(super) fn rabenseifner(v: View, k: u32) -> Option<Step> {
    let (power, _) = folded(v.ranks);
    let rounds = power.ilog2();
    let parts = |from: u32, count: u32| {
        (from..from + count).map(|p| ring::part(v.call.size, power, p)).sum()
    };
    fold(v, v.call.size, 2 * rounds, k, |number, round| match round < rounds {
        true => {
            let distance = power >> (round + 1);
            let partner = number ^ distance;
            // the half of the rest that the partner keeps
            (partner, parts(partner & !(distance - 1), distance))
        }
        false => {
            let distance = 1 << (round - rounds);
            (number ^ distance, parts(number & !(distance - 1), distance))
        }
    })
}

/// Returns a round of recursive doubling of parts, for a power of two of ranks.
pub(super) fn allgather(v: View, k: u32) -> Option<Step> {
    let distance = 1u32.checked_shl(k).filter(|&d| d < v.ranks)?;
    let first = v.rank & !(distance - 1);
    let bytes = (first..first + distance).map(|r| v.call.part(r)).sum();
    let partner = v.rank ^ distance;
    Some(Step::exchange(partner, partner, bytes))
}

/// Returns a round of recursive halving of parts, for a power of two of ranks.
pub(super) fn recursive_halving(v: View, k: u32) -> Option<Step> {
    let distance = v.ranks.checked_shr(k + 1).filter(|&d| d > 0)?;
    let partner = v.rank ^ distance;
    let first = partner & !(distance - 1);
    let bytes = (first..first + distance).map(|r| v.call.part(r)).sum();
    Some(Step::exchange(partner, partner, bytes))
}

/// Returns round r = k + 1 of a pairwise exchange: the partner is rank XOR r for a power of two of
/// ranks, otherwise a rank sends to the rank r after and receives from the rank r before.
pub(super) fn pairwise(v: View, k: u32) -> Option<Step> {
    let round = k + 1;
    if round >= v.ranks {
        return None;
    }
    let (from, to) = match v.ranks.is_power_of_two() {
        true => (v.rank ^ round, v.rank ^ round),
        false => (v.before(round), v.after(round)),
    };
    Some(Step::exchange(from, to, v.call.part(to)))
}

/// Returns a round in which each rank sends the part of one other rank to it.
pub(super) fn shifted(v: View, k: u32) -> Option<Step> {
    let round = k + 1;
    let to = v.after(round);
    (round < v.ranks).then(|| Step::exchange(v.before(round), to, v.call.part(to)))
}

/// Returns a single step with all sends and receives, beginning with the neighbours.
pub(super) fn all_at_once(v: View, k: u32) -> Option<Step> {
    (k == 0).then(|| Step {
        receives: (1..v.ranks).map(|d| v.before(d)).collect(),
        sends: (1..v.ranks).map(|d| v.after(d)).map(|to| (to, v.call.part(to))).collect(),
    })
}

/// Returns a single step in which a rank sends its part to all others.
pub(super) fn part_to_all(v: View, k: u32) -> Option<Step> {
    let own = v.call.part(v.rank);
    (k == 0).then(|| Step {
        receives: (1..v.ranks).map(|d| v.before(d)).collect(),
        sends: (1..v.ranks).map(|d| (v.after(d), own)).collect(),
    })
}

/// Returns round `k` of Bruck's algorithm: all parts whose distance has bit `k` set move by 2^k
/// (Bruck et al. 1997).
pub(super) fn bruck(v: View, k: u32) -> Option<Step> {
    let distance = 1u32.checked_shl(k).filter(|&d| d < v.ranks)?;
    let parts = (1..v.ranks).filter(|d| d & distance != 0).count() as u64;
    Some(Step::exchange(v.before(distance), v.after(distance), parts * v.call.size))
}

/// Returns round `k` of a scan: receive from the rank 2^k before, send to the rank 2^k after, if they exist.
pub(super) fn scan(v: View, k: u32) -> Option<Step> {
    let distance = 1u32.checked_shl(k).filter(|&d| d < v.ranks)?;
    let mut step = Step::default();
    if v.rank >= distance {
        step.receives.push(v.rank - distance);
    }
    if v.rank + distance < v.ranks {
        step.sends.push((v.rank + distance, v.call.size));
    }
    Some(step)
}
