//! Exchanges between pairs: recursive doubling and halving, dissemination, pairwise.
//!
//! Where recursive doubling needs a power of two and ranks are none, the first ranks meet in pairs
//! before and after: of each pair the one with the odd number takes part for both (MPICH).

use super::call::{Step, View};
use super::ring;

/// Ranks that take part in recursive doubling, and those too many for a power of two.
fn folded(ranks: u32) -> (u32, u32) {
    let power = 1 << ranks.ilog2();
    (power, ranks - power)
}

/// In round `k`: tell the rank 2^k after, hear of the one 2^k before.
pub(super) fn dissemination(v: View, k: u32) -> Option<Step> {
    let distance = 1u32.checked_shl(k).filter(|&d| d < v.ranks)?;
    Some(Step::exchange(v.before(distance), v.after(distance), 0))
}

/// What a rank does before, after, and during rounds of a power of two. `during` gives its exchange in
/// a round, for its number among those that take part; partners are numbers likewise.
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

/// Partners at distances 1, 2, 4 … exchange everything.
pub(super) fn recursive_doubling(v: View, bytes: u64, k: u32) -> Option<Step> {
    let (power, _) = folded(v.ranks);
    fold(v, bytes, power.ilog2(), k, |number, round| (number ^ (1 << round), bytes))
}

/// Partners at distances …, 4, 2, 1 exchange halves of the vector, then gather the same way back.
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
            // the half of what is left that the partner keeps
            (partner, parts(partner & !(distance - 1), distance))
        }
        false => {
            let distance = 1 << (round - rounds);
            (number ^ distance, parts(number & !(distance - 1), distance))
        }
    })
}

/// Recursive doubling of parts, for a power of two of ranks.
pub(super) fn allgather(v: View, k: u32) -> Option<Step> {
    let distance = 1u32.checked_shl(k).filter(|&d| d < v.ranks)?;
    let first = v.rank & !(distance - 1);
    let bytes = (first..first + distance).map(|r| v.call.part(r)).sum();
    let partner = v.rank ^ distance;
    Some(Step::exchange(partner, partner, bytes))
}

/// Recursive halving of parts, for a power of two of ranks.
pub(super) fn recursive_halving(v: View, k: u32) -> Option<Step> {
    let distance = v.ranks.checked_shr(k + 1).filter(|&d| d > 0)?;
    let partner = v.rank ^ distance;
    let first = partner & !(distance - 1);
    let bytes = (first..first + distance).map(|r| v.call.part(r)).sum();
    Some(Step::exchange(partner, partner, bytes))
}

/// With one partner per round: by exclusive or for a power of two of ranks, else the rank so far
/// after and the one so far before.
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

/// In each round the part of one rank goes to it.
pub(super) fn shifted(v: View, k: u32) -> Option<Step> {
    let round = k + 1;
    let to = v.after(round);
    (round < v.ranks).then(|| Step::exchange(v.before(round), to, v.call.part(to)))
}

/// All sends and receives at once, beginning with the neighbours.
pub(super) fn all_at_once(v: View, k: u32) -> Option<Step> {
    (k == 0).then(|| Step {
        receives: (1..v.ranks).map(|d| v.before(d)).collect(),
        sends: (1..v.ranks).map(|d| v.after(d)).map(|to| (to, v.call.part(to))).collect(),
    })
}

/// One part to all at once.
pub(super) fn part_to_all(v: View, k: u32) -> Option<Step> {
    let own = v.call.part(v.rank);
    (k == 0).then(|| Step {
        receives: (1..v.ranks).map(|d| v.before(d)).collect(),
        sends: (1..v.ranks).map(|d| (v.after(d), own)).collect(),
    })
}

/// In round `k` all parts whose distance has bit `k` set go 2^k further (Bruck et al. 1997).
pub(super) fn bruck(v: View, k: u32) -> Option<Step> {
    let distance = 1u32.checked_shl(k).filter(|&d| d < v.ranks)?;
    let parts = (1..v.ranks).filter(|d| d & distance != 0).count() as u64;
    Some(Step::exchange(v.before(distance), v.after(distance), parts * v.call.size))
}

/// In round `k` from the rank 2^k before, to the rank 2^k after, where there are such.
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
