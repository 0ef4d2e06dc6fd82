//! Deadlocks of priority-based flow control (PFC): pauses that wait for each other in a cycle and
//! never end.
//!
//! A pause is in force if XOFF was sent, the neighbour has stopped, and no PAUSE frame in flight
//! ends the pause. The paused queue can send again when the ingress buffer that sent XOFF has
//! fallen to XON. The occupancy of this buffer falls when queues of its switch send. The check
//! therefore assumes that every queue without pause can move. A paused queue can move if at most
//! XON bytes of the pausing buffer are in queues that *cannot* move. This rule is repeated until
//! nothing changes. The remaining queues can never move: the check has already assumed that all
//! other packets leave, and additional packets only block more. The check is exact: it finds a
//! deadlock if and only if a deadlock exists. From a remaining queue, the search continues with the
//! queue that holds most of the packets for which the remaining queue waits, until a cycle is
//! found.

use super::queued_packet::LOCAL_ORIGIN;
use crate::link::Link;
use crate::topology::reverse;
use eastwest_types::Time;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A PFC deadlock: paused queues of one priority that wait for each other in a cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadlock {
    /// Time at which the deadlock was found.
    pub at: Time,
    /// Priority of the paused queues in the deadlock.
    pub priority: u8,
    /// Numbers of the links whose ports form the cycle: each port waits for the next port, and the
    /// last port for the first.
    pub cycle: Vec<u32>,
    /// IP bytes of this priority in the queues of the cycle.
    pub bytes: u64,
    /// Number of queues that can never move, including queues outside the cycle that wait for it.
    pub stuck: usize,
}

/// A queue at a port, identified by link number and priority.
type Place = (u32, u8);

/// Returns a deadlock of paused queues in a fabric with the links `links`; `None` if there is no
/// deadlock.
pub(crate) fn find(now: Time, links: &[Link]) -> Option<Deadlock> {
    let mut waits: BTreeMap<Place, BTreeMap<u32, u64>> = BTreeMap::new();
    for (number, link) in (0..).zip(links) {
        if link.feeds_from_host() {
            // All packets at the port of a host were created by this host.
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
    // Queues that a pause in force blocks. A queue that has not stopped yet still sends, and its
    // packets may lead to XON.
    let in_force = |&(link, priority): &Place| {
        let port = &links[link as usize];
        port.input().is_some_and(|input| input.xoff_sent >> priority & 1 == 1)
            && port.is_pause_in_force(&links[reverse(link) as usize], priority)
    };
    let mut stuck: BTreeSet<Place> = waits.keys().copied().filter(in_force).collect();
    // Bytes of each ingress buffer, by link and priority, in queues that cannot move.
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
            // The check assumes that all other packets have left, so that only blocked packets use
            // the shared memory of the switch.
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
                *blocked
                    .get_mut(&(ingress, place.1))
                    .expect("the bytes of a stuck queue are counted") -= bytes;
            }
        }
    }
    let first = *stuck.first()?;
    let cycle = cycle_from(first, &stuck, &waits);
    let bytes = cycle.iter().flat_map(|link| waits[&(*link, first.1)].values()).sum();
    Some(Deadlock { at: now, priority: first.1, cycle, bytes, stuck: stuck.len() })
}

/// Follows blocked queues from the queue `first`, always to the queue that holds most of the
/// packets for which the last queue waits. Returns the links of the first cycle.
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
        let next = next.expect("a stuck queue waits for another stuck queue").0;
        if let Some(place) = way.iter().position(|link| *link == next) {
            return way.split_off(place);
        }
        way.push(next);
    }
}
