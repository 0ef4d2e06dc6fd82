//! Deadlocks: pauses that wait for each other in a cycle and never end.
//!
//! A pause is in force if XOFF was sent for it, the neighbour has stopped, and no PAUSE frame in flight ends
//! it. A queue behind such a pause moves again when the ingress buffer that has sent XOFF is down to XON, and
//! that buffer empties as queues of its switch send. So: every queue that is not paused moves; a paused one
//! moves if the bytes of the pausing buffer in queues that do *not* move are no more than XON; repeat until
//! nothing changes. What is left never moves, whatever else happens: more packets only make it worse, and all
//! packets elsewhere were assumed to leave. The check is therefore exact: it finds a deadlock if and only if
//! there is one. From any queue in it, the search goes on to the queue that holds most of the packets it waits
//! for, until it has found a cycle.

use super::queued_packet::LOCAL_ORIGIN;
use crate::link::Link;
use crate::topology::reverse;
use eastwest_types::Time;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A deadlock: paused queues of one priority that wait for each other in a cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadlock {
    /// Time at which the deadlock was found.
    pub at: Time,
    /// Priority that does not move.
    pub priority: u8,
    /// Numbers of the links whose ports wait for each other: each for the next, the last for the
    /// first.
    pub cycle: Vec<u32>,
    /// Queued IP bytes of the priority at the ports of the cycle.
    pub bytes: u64,
    /// Number of queues that do not move, those that wait for the cycle included.
    pub stuck: usize,
}

/// A queue: link and priority.
type Place = (u32, u8);

/// Returns the deadlock of paused queues in a fabric with these links, or `None`.
pub(crate) fn find(now: Time, links: &[Link]) -> Option<Deadlock> {
    let mut waits: BTreeMap<Place, BTreeMap<u32, u64>> = BTreeMap::new();
    for (number, link) in (0..).zip(links) {
        if link.feeds_from_host() {
            // all packets are the host's own
            for (priority, bytes) in (0..).zip(link.bytes_waiting()).filter(|(_, bytes)| *bytes > 0)
            {
                waits.insert((number, priority), [(LOCAL_ORIGIN, bytes)].into());
            }
            continue;
        }
        for (priority, queued) in link.waiting_packets() {
            let of = waits.entry((number, priority)).or_default();
            *of.entry(queued.ingress).or_default() += u64::from(queued.handle.ip_len());
        }
    }
    // Queues behind a pause that is in force. Before the neighbour has stopped it still sends, and what it sends
    // may lead to XON.
    let in_force = |&(link, priority): &Place| {
        let port = &links[link as usize];
        port.input().is_some_and(|input| input.xoff_sent >> priority & 1 == 1)
            && port.is_pause_in_force(&links[reverse(link) as usize], priority)
    };
    let mut stuck: BTreeSet<Place> = waits.keys().copied().filter(in_force).collect();
    // bytes of an ingress buffer in queues that do not move
    let mut blocked: BTreeMap<Place, u64> = BTreeMap::new();
    for place in &stuck {
        for (&ingress, bytes) in
            waits[place].iter().filter(|(ingress, _)| **ingress != LOCAL_ORIGIN)
        {
            *blocked.entry((ingress, place.1)).or_default() += bytes;
        }
    }
    loop {
        let blocked_at = |place: &Place| blocked.get(place).copied().unwrap_or(0);
        let can_move = |place: &Place| {
            let Some(input) = links[place.0 as usize].input() else { return true };
            let own = blocked_at(place);
            let Some(pool) = input.pool() else { return own <= input.xon() };
            // All other packets have left: only what is blocked uses the memory of the switch.
            let node = links[place.0 as usize].to;
            let here = blocked.iter().filter(|(other, _)| links[other.0 as usize].to == node);
            let used = here.map(|(_, bytes)| bytes.saturating_sub(pool.reserve)).sum::<u64>();
            own == 0 || pool.resumes(own, pool.size.saturating_sub(used))
        };
        let moves: Vec<Place> = stuck.iter().copied().filter(can_move).collect();
        if moves.is_empty() {
            break;
        }
        for place in moves {
            stuck.remove(&place);
            for (&ingress, bytes) in
                waits[&place].iter().filter(|(ingress, _)| **ingress != LOCAL_ORIGIN)
            {
                *blocked.get_mut(&(ingress, place.1)).expect("it was counted") -= bytes;
            }
        }
    }
    let first = *stuck.first()?;
    let cycle = cycle_from(first, &stuck, &waits);
    let bytes = cycle.iter().flat_map(|link| waits[&(*link, first.1)].values()).sum();
    Some(Deadlock { at: now, priority: first.1, cycle, bytes, stuck: stuck.len() })
}

/// Follows queues from one that does not move until a link occurs again; returns the cycle.
fn cycle_from(
    first: Place,
    stuck: &BTreeSet<Place>,
    waits: &BTreeMap<Place, BTreeMap<u32, u64>>,
) -> Vec<u32> {
    let mut way = vec![first.0];
    loop {
        let last = way[way.len() - 1];
        let holds = |place: &&Place| waits[*place].get(&last).copied().unwrap_or(0);
        let next = stuck.iter().filter(|place| place.1 == first.1).max_by_key(holds);
        let next = next.expect("what is stuck waits for something that is stuck").0;
        if let Some(place) = way.iter().position(|link| *link == next) {
            return way.split_off(place);
        }
        way.push(next);
    }
}
