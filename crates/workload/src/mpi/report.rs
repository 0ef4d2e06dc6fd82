//! Error reports about a program that cannot continue.

use super::matching::{Of, Request, WORLD};
use super::rank::Doing;
use super::replay::Mpi;

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
            match wanted.communicator {
                WORLD => format!("a message from {from} with {}{met}", any("tag", wanted.tag)),
                _ => format!("a message from {from}{met}"),
            }
        }
        Of::Send { to, tag, bytes } => {
            format!("rank {to} to receive the message of {bytes} B with tag {tag}")
        }
    }
}

impl Mpi {
    /// Returns the error message for a deadlock: the requests for which each rank waits.
    pub(super) fn describe_deadlock(&self) -> String {
        let (count, ranks) = self.waiting_ranks();
        format!("deadlock: {count}, and no message is in flight: {ranks}")
    }

    /// Returns a text with the requests for which each rank waits.
    pub fn describe_waiting(&self) -> String {
        let (count, ranks) = self.waiting_ranks();
        format!("{count}: {ranks}")
    }

    /// Returns the number of waiting ranks as text, and for some of them the requests for which
    /// they wait.
    fn waiting_ranks(&self) -> (String, String) {
        let waiting = || {
            let ranks = self.ranks.iter().enumerate();
            ranks.filter(|(_, r)| matches!(r.doing, Doing::Waiting(_) | Doing::Collective { .. }))
        };
        let count = waiting().count();
        let mut lines: Vec<String> = waiting()
            .take(MOST_NAMED)
            .map(|(rank, r)| {
                let awaited =
                    || self.requests.iter().filter(|q| q.awaited && q.rank as usize == rank);
                let mut what: Vec<String> = awaited().take(MOST_REQUESTS).map(describe).collect();
                match awaited().count().saturating_sub(MOST_REQUESTS) {
                    0 => {}
                    more => what.push(format!("{more} more")),
                }
                format!("rank {rank} waits in {} for {}", r.call, what.join(", "))
            })
            .collect();
        if count > MOST_NAMED {
            lines.push(format!("{} more ranks", count - MOST_NAMED));
        }
        (format!("{count} of {} ranks wait", self.ranks.len()), lines.join("; "))
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
