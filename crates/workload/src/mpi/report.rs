//! Error reports about a program that cannot continue.

use super::matching::{Of, Request, is_own};
use super::rank::{Doing, Follower, Task};
use super::replay::Mpi;
use std::collections::BTreeMap;

/// Largest number of waiting ranks that an error report lists.
const MOST_NAMED: usize = 8;
/// Largest number of requests of a rank that an error report lists.
const MOST_REQUESTS: usize = 3;

fn describe(request: &Request) -> String {
    let any = |what: &str, number: Option<i64>| {
        number.map_or(format!("any {what}"), |n| format!("{what} {n}"))
    };
    match request.of {
        Of::Receive(wanted, met) => {
            let from = any("rank", wanted.from.map(i64::from));
            let met = if met.is_some() { ", whose data is in flight" } else { "" };
            match is_own(wanted.communicator) {
                true => format!("a message from {from} with {}{met}", any("tag", wanted.tag)),
                false => format!("a message from {from}{met}"),
            }
        }
        Of::Send { to, tag, bytes, .. } => {
            format!("rank {to} to receive the message of {bytes} B with tag {tag}")
        }
        Of::Collective { kind, .. } => format!("its non-blocking call {}", kind.name()),
    }
}

/// Returns the rank for which a request waits; `None` if several ranks can complete it.
fn other(request: &Request) -> Option<u32> {
    match request.of {
        Of::Receive(wanted, met) => wanted.from.or(met.map(|m| m.0)),
        Of::Send { to, .. } => Some(to),
        Of::Collective { .. } => None,
    }
}

impl Mpi {
    /// Returns the error message for a deadlock: the requests for which each rank waits, and a
    /// cycle of ranks that wait for each other.
    pub(super) fn describe_deadlock(&self) -> String {
        let (count, ranks) = self.waiting_ranks();
        let cycle = self.cycle().map_or(String::new(), |cycle| {
            let mut ranks: Vec<String> = cycle.iter().map(|rank| format!("rank {rank}")).collect();
            if ranks.len() > MOST_NAMED {
                let left_out = ranks.len() - MOST_NAMED;
                ranks.splice(MOST_NAMED - 1..ranks.len() - 1, [format!("{left_out} more ranks")]);
            }
            ranks.push(ranks[0].clone());
            format!("; the cycle of waiting ranks is {}", ranks.join(" → "))
        });
        format!("deadlock: {count}, and no message is in flight: {ranks}{cycle}")
    }

    /// Returns a text with the requests for which each rank waits.
    pub fn describe_waiting(&self) -> String {
        let (count, ranks) = self.waiting_ranks();
        format!("{count}: {ranks}")
    }

    /// Returns the ranks for which each rank waits: those of its requests, and those of the nodes
    /// for which its nodes wait.
    fn awaited_ranks(&self) -> BTreeMap<u32, Vec<u32>> {
        let mut awaited: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for request in self.requests.iter().filter(|request| request.awaited.is_some()) {
            awaited.entry(request.rank).or_default().extend(other(request));
        }
        for (rank, task) in self.tasks() {
            for follower in &task.followers {
                awaited.entry(follower.rank).or_default().push(rank);
            }
        }
        for (&(rank, _), followers) in &self.early {
            for follower in followers {
                awaited.entry(follower.rank).or_default().push(rank);
            }
        }
        for (rank, others) in &mut awaited {
            others.sort_unstable();
            others.dedup();
            // a rank that waits for its own later nodes, or in a send to itself, is no cycle of ranks
            others.retain(|other| other != rank);
        }
        awaited
    }

    /// Returns ranks that wait for each other in a cycle; `None` if there is no such cycle.
    fn cycle(&self) -> Option<Vec<u32>> {
        let awaited = self.awaited_ranks();
        // ranks that lead to no cycle
        let mut left = std::collections::BTreeSet::new();
        for &first in awaited.keys() {
            let mut path = vec![first];
            let mut next = vec![0];
            while let (Some(&rank), Some(at)) = (path.last(), next.last_mut()) {
                let other = awaited.get(&rank).and_then(|others| others.get(*at));
                *at += 1;
                match other {
                    None => {
                        left.insert(rank);
                        path.pop();
                        next.pop();
                    }
                    Some(other) => {
                        if let Some(start) = path.iter().position(|on_path| on_path == other) {
                            return Some(path.split_off(start));
                        }
                        if !left.contains(other) {
                            path.push(*other);
                            next.push(0);
                        }
                    }
                }
            }
        }
        None
    }

    /// Returns all nodes that have been read and have not ended, with their ranks.
    fn tasks(&self) -> impl Iterator<Item = (u32, &Task)> {
        let ranks = self.ranks.iter().enumerate();
        ranks.flat_map(|(rank, r)| r.tasks.values().map(move |task| (rank as u32, &**task)))
    }

    /// Returns the number of waiting ranks as text, and for some of them the requests for which
    /// they wait.
    fn waiting_ranks(&self) -> (String, String) {
        let waiting = || {
            let ranks = self.ranks.iter().enumerate();
            ranks.filter(|(_, r)| {
                let waits = |task: &Task| !matches!(task.doing, Doing::Busy);
                r.tasks.values().any(|task| waits(task))
            })
        };
        let count = waiting().count();
        let mut lines: Vec<String> =
            waiting().take(MOST_NAMED).map(|(rank, _)| self.waiting_of(rank as u32)).collect();
        if count > MOST_NAMED {
            lines.push(format!("{} more ranks", count - MOST_NAMED));
        }
        (format!("{count} of {} ranks wait", self.ranks.len()), lines.join("; "))
    }

    /// Returns a text with the requests for which a waiting rank waits; if it has none, with the
    /// node for which one of its nodes waits.
    fn waiting_of(&self, rank: u32) -> String {
        let r = &self.ranks[rank as usize];
        let mut by_node: BTreeMap<u32, Vec<&Request>> = BTreeMap::new();
        for request in self.requests.iter().filter(|request| request.rank == rank) {
            if let Some(node) = request.awaited {
                by_node.entry(node).or_default().push(request);
            }
        }
        let calls = by_node.iter().take(MOST_REQUESTS).map(|(node, awaited)| {
            let mut what: Vec<String> =
                awaited.iter().take(MOST_REQUESTS).map(|request| describe(request)).collect();
            if awaited.len() > MOST_REQUESTS {
                what.push(format!("{} more", awaited.len() - MOST_REQUESTS));
            }
            format!("in {} for {}", r.tasks[node].call, what.join(", "))
        });
        let calls: Vec<String> = calls.collect();
        if !calls.is_empty() {
            return format!("rank {rank} waits {}", calls.join(" and "));
        }
        let unread = |followers: &[Follower]| followers.iter().any(|f| f.rank == rank);
        let early = self.early.iter().find(|(_, followers)| unread(followers));
        match early {
            Some(((other, node), _)) => {
                format!(
                    "rank {rank} waits for node {node} of rank {other}, which has not been read"
                )
            }
            None => format!("rank {rank} waits for nodes of other ranks"),
        }
    }

    /// Returns the error message that lists messages which were sent and never received.
    pub(super) fn describe_unreceived(&self) -> String {
        let count = self.messages.in_use();
        let some: Vec<String> = self
            .messages
            .iter()
            .take(MOST_NAMED)
            .map(|m| {
                format!(
                    "{} of {} B from rank {} to rank {} with tag {}",
                    m.call, m.bytes, m.from, m.to, m.tag
                )
            })
            .collect();
        let more = if count > MOST_NAMED { ", …" } else { "" };
        format!(
            "all ranks have finished, but {count} messages were never received: {}{more}",
            some.join(", ")
        )
    }
}
