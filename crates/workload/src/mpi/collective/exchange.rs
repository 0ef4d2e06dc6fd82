//! Exchanges between pairs: recursive doubling and halving, dissemination, pairwise.
//!
//! Recursive doubling needs a power of two of ranks. If the number of ranks is not a power of two,
//! the first ranks form pairs: in each pair the even rank sends its data to the odd rank before the
//! rounds and receives the result after them. Only the odd rank takes part in the rounds (MPICH).

use super::call::{Step, View, share};
use super::tree;

/// Returns the number of ranks that take part in recursive doubling, which is the largest power of
/// two up to `ranks`, and the number of the remaining ranks.
fn folded(ranks: u32) -> (u32, u32) {
    let power = 1 << ranks.ilog2();
    (power, ranks - power)
}

/// Returns round `k` of the dissemination algorithm: send to the rank 2^k after this one, receive
/// from the rank 2^k before it.
pub(super) fn dissemination(v: View, k: u32) -> Option<Step> {
    let distance = 1u32.checked_shl(k).filter(|&d| d < v.ranks)?;
    Some(Step::exchange(v.before(distance), v.after(distance), 0))
}

/// Returns step `k` of a rank in an algorithm of `rounds` rounds for a power of two of ranks,
/// including the steps in which the other ranks send their data before the rounds and receive the
/// result after them. `during` returns the partner and the bytes in a round; its rank numbers count
/// only the ranks that take part in the rounds.
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

/// Returns step `k` of recursive doubling: partners at distances 1, 2, 4, … exchange their whole
/// data of `bytes` bytes.
pub(super) fn recursive_doubling(v: View, bytes: u64, k: u32) -> Option<Step> {
    let (power, _) = folded(v.ranks);
    fold(v, bytes, power.ilog2(), k, |number, round| (number ^ (1 << round), bytes))
}

/// Returns step `k` of Rabenseifner's algorithm: partners at distances …, 4, 2, 1 exchange halves
/// of the vector, then gather the results in reverse order.
pub(super) fn rabenseifner(v: View, k: u32) -> Option<Step> {
    let (power, _) = folded(v.ranks);
    let rounds = power.ilog2();
    let parts =
        |from: u32, count: u32| (from..from + count).map(|p| share(v.size(), power, p)).sum();
    fold(v, v.size(), 2 * rounds, k, |number, round| match round < rounds {
        true => {
            let distance = power >> (round + 1);
            let partner = number ^ distance;
            // bytes of the half that the partner keeps
            (partner, parts(partner & !(distance - 1), distance))
        }
        false => {
            let distance = 1 << (round - rounds);
            (number ^ distance, parts(number & !(distance - 1), distance))
        }
    })
}

/// Returns step `k` of a broadcast for a power of two of ranks: parts go down a binomial tree, then
/// partners at distances 1, 2, 4, … exchange all parts that they have.
pub(super) fn scatter_then_double(v: View, k: u32) -> Option<Step> {
    let parts =
        |from: u32, count: u32| (from..from + count).map(|p| share(v.size(), v.ranks, p)).sum();
    let Some(round) = k.checked_sub(tree::steps_down(v)) else {
        return tree::down(v, parts, k);
    };
    let distance = 1u32.checked_shl(round).filter(|&d| d < v.ranks)?;
    let relative = v.relative();
    let partner = v.absolute(relative ^ distance);
    Some(Step::exchange(partner, partner, parts(relative & !(distance - 1), distance)))
}

/// Returns step `k` of Rabenseifner's reduction to a root: recursive halving scatters the sum, and a
/// binomial tree gathers the parts at the root. If the number of ranks is not a power of two, the
/// first ranks counted from the root form pairs, in which the odd rank first sends its vector to
/// the even rank.
pub(super) fn halve_then_gather(v: View, k: u32) -> Option<Step> {
    let (power, rest) = folded(v.ranks);
    let rounds = power.ilog2();
    let relative = v.relative();
    let paired = relative < 2 * rest;
    match (paired, relative % 2, k) {
        (true, 1, 0) => return Some(Step::send(v.absolute(relative - 1), v.size())),
        (true, 1, _) => return None,
        (true, _, 0) => return Some(Step::receive(v.absolute(relative + 1))),
        _ => {}
    }
    let round = k - u32::from(paired);
    let number = if paired { relative / 2 } else { relative - rest };
    let rank = |number: u32| v.absolute(if number < rest { 2 * number } else { number + rest });
    let parts =
        |from: u32, count: u32| (from..from + count).map(|p| share(v.size(), power, p)).sum();
    let Some(gathering) = round.checked_sub(rounds) else {
        let distance = power >> (round + 1);
        let partner = number ^ distance;
        // bytes of the half that the partner keeps
        let bytes = parts(partner & !(distance - 1), distance);
        return Some(Step::exchange(rank(partner), rank(partner), bytes));
    };
    let distance = 1u32.checked_shl(gathering).filter(|&d| d < power)?;
    match (number & (distance - 1), number & distance) {
        (0, 0) => Some(Step::receive(rank(number + distance))),
        (0, _) => Some(Step::send(rank(number - distance), parts(number, distance))),
        _ => None,
    }
}

/// Returns round `k` of Bruck's algorithm for an allgather: a rank receives from the rank 2^k after
/// it, and sends all parts that it has and the other rank does not (Bruck et al. 1997).
pub(super) fn gather_by_bruck(v: View, k: u32) -> Option<Step> {
    let distance = 1u32.checked_shl(k).filter(|&d| d < v.ranks)?;
    let count = distance.min(v.ranks - distance);
    let bytes = (0..count).map(|d| v.part(v.after(d))).sum();
    Some(Step::exchange(v.after(distance), v.before(distance), bytes))
}

/// Returns round `k` of an allgather by recursive doubling, for a power of two of ranks.
pub(super) fn allgather(v: View, k: u32) -> Option<Step> {
    let distance = 1u32.checked_shl(k).filter(|&d| d < v.ranks)?;
    let first = v.rank & !(distance - 1);
    let bytes = (first..first + distance).map(|r| v.part(r)).sum();
    let partner = v.rank ^ distance;
    Some(Step::exchange(partner, partner, bytes))
}

/// Returns round `k` of a reduce-scatter by recursive halving, for a power of two of ranks.
pub(super) fn recursive_halving(v: View, k: u32) -> Option<Step> {
    let distance = v.ranks.checked_shr(k + 1).filter(|&d| d > 0)?;
    let partner = v.rank ^ distance;
    let first = partner & !(distance - 1);
    let bytes = (first..first + distance).map(|r| v.part(r)).sum();
    Some(Step::exchange(partner, partner, bytes))
}

/// Returns round r = k + 1 of a pairwise exchange. For a power of two of ranks, the partner is rank
/// XOR r; otherwise a rank sends to the rank r after it and receives from the rank r before it.
pub(super) fn pairwise(v: View, k: u32) -> Option<Step> {
    let round = k + 1;
    if round >= v.ranks {
        return None;
    }
    let (from, to) = match v.ranks.is_power_of_two() {
        true => (v.rank ^ round, v.rank ^ round),
        false => (v.before(round), v.after(round)),
    };
    Some(Step::exchange(from, to, v.part(to)))
}

/// Returns round r = k + 1 of a pairwise reduce-scatter: a rank sends to the rank r after it the
/// part of this other rank.
pub(super) fn shifted(v: View, k: u32) -> Option<Step> {
    let round = k + 1;
    let to = v.after(round);
    (round < v.ranks).then(|| Step::exchange(v.before(round), to, v.part(to)))
}

/// Returns a single step with all sends and receives of a rank, the nearest ranks first.
pub(super) fn all_at_once(v: View, k: u32) -> Option<Step> {
    (k == 0).then(|| Step {
        receives: (1..v.ranks).map(|d| v.before(d)).collect(),
        sends: (1..v.ranks).map(|d| v.after(d)).map(|to| (to, v.part(to))).collect(),
    })
}

/// Returns a single step in which a rank sends its own part to all other ranks.
pub(super) fn part_to_all(v: View, k: u32) -> Option<Step> {
    let own = v.part(v.rank);
    (k == 0).then(|| Step {
        receives: (1..v.ranks).map(|d| v.before(d)).collect(),
        sends: (1..v.ranks).map(|d| (v.after(d), own)).collect(),
    })
}

/// Returns round `k` of Bruck's algorithm for an alltoall: all parts whose distance has bit `k` set
/// move by 2^k ranks (Bruck et al. 1997).
pub(super) fn bruck(v: View, k: u32) -> Option<Step> {
    let distance = 1u32.checked_shl(k).filter(|&d| d < v.ranks)?;
    let parts = (1..v.ranks).filter(|d| d & distance != 0).count() as u64;
    Some(Step::exchange(v.before(distance), v.after(distance), parts * v.size()))
}

/// Returns round `k` of a scan: receive from the rank 2^k before this one, send to the rank 2^k
/// after it, if these ranks exist.
pub(super) fn scan(v: View, k: u32) -> Option<Step> {
    let distance = 1u32.checked_shl(k).filter(|&d| d < v.ranks)?;
    let mut step = Step::default();
    if v.rank >= distance {
        step.receives.push(v.rank - distance);
    }
    if v.rank + distance < v.ranks {
        step.sends.push((v.rank + distance, v.size()));
    }
    Some(step)
}
