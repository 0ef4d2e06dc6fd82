//! Pauses that wait for each other in a circle, and never end.
//!
//! A pause is in force when it was asked for and is obeyed, and no frame is under way that ends it. A queue
//! behind one moves again when the input that has asked for it is down to XON. That input empties as
//! queues of its switch send. So: every queue that nobody has paused moves; a paused one moves
//! if the bytes of the asking input in queues that do *not* move are no more than XON; repeat until nothing
//! changes. What is left never moves, whatever else happens: more packets only make it worse, and packets
//! elsewhere were all taken to leave. The check is exact, then: it finds a deadlock if and only if there
//! is one, and from any queue in it, following the queue that holds most of what it waits for, comes to a
//! cycle.

use super::queued_packet::LOCAL_ORIGIN;
use crate::link::Link;
use crate::topology::reverse;
use eastwest_types::Time;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A deadlock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadlock {
    /// When it was found.
    pub at: Time,
    /// The priority that is stuck.
    pub priority: u8,
    /// The links whose ports wait for each other: each for the next, the last for the first.
    pub cycle: Vec<u32>,
    /// Bytes that wait at these ports in this priority.
    pub bytes: u64,
    /// Ports that are stuck, those that wait for the cycle among them.
    pub stuck: usize,
}

/// A queue: link and priority.
type Place = (u32, u8);

/// The deadlock in these links, if there is one.
pub(crate) fn find(now: Time, links: &[Link]) -> Option<Deadlock> {
    let mut waits: BTreeMap<Place, BTreeMap<u32, u64>> = BTreeMap::new();
    for (number, link) in (0..).zip(links) {
        if link.feeds_from_host() {
            // all of it is the host's own
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
    // Queues behind a pause that is in force: asked for, obeyed, and not taken back by a frame under way.
    // Before a pause is obeyed its sender still sends, and what it sends may be what lets it end.
    let in_force = |&(link, priority): &Place| {
        let port = &links[link as usize];
        port.input().is_some_and(|input| input.xoff_sent >> priority & 1 == 1)
            && port.is_pause_in_force(&links[reverse(link) as usize], priority)
    };
    let mut stuck: BTreeSet<Place> = waits.keys().copied().filter(in_force).collect();
    // bytes of an input in queues that do not move
    let mut blocked: BTreeMap<Place, u64> = BTreeMap::new();
    for place in &stuck {
        for (&ingress, bytes) in
            waits[place].iter().filter(|(ingress, _)| **ingress != LOCAL_ORIGIN)
        {
            *blocked.entry((ingress, place.1)).or_default() += bytes;
        }
    }
    loop {
        let moves: Vec<Place> = stuck
            .iter()
            .copied()
            .filter(|place| {
                let xon = links[place.0 as usize].input().map_or(0, |input| input.xon());
                blocked.get(place).copied().unwrap_or(0) <= xon
            })
            .collect();
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

/// Follows queues from one that is stuck until one comes again.
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
