//! Read timeouts of applications: they detect connections on which nothing arrives although a
//! process waits for data.
//!
//! Every ten seconds, the received bytes of all connections on which a process waits are compared
//! with the previous check. If nothing has arrived on a connection for the timeout of its purpose,
//! the connection is aborted and handled like a connection that the transport has aborted. A
//! timeout is therefore detected up to ten seconds late.

use super::connections::Use;
use super::context::Context;
use super::timer::Timer;
use crate::protocol::Action;
use eastwest_types::{ConnId, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Time between two checks of read timeouts.
const INTERVAL: Span = Span::from_secs(10);

/// State of the read timeout of a connection: bytes received in each direction, and the time of the
/// last progress.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Seen {
    purpose: Use,
    bytes: [u64; 2],
    since: Time,
}

/// Read timeouts of connections on which a process waits for data, by connection number.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ReadTimeouts {
    seen: BTreeMap<u32, Seen>,
}

impl ReadTimeouts {
    /// Schedules the next check of the read timeouts of connections.
    pub fn look_later(&self, cx: &mut Context) {
        cx.wake_in(INTERVAL, Timer::ReadTimeouts);
    }

    /// Asks the simulator for the received bytes of all connections in `waiting`, on which a
    /// process waits, and schedules the next check.
    pub fn look(&mut self, cx: &mut Context, waiting: Vec<(ConnId, Use)>) {
        let before = std::mem::take(&mut self.seen);
        for (conn, purpose) in waiting {
            let fresh = Seen { purpose, bytes: [u64::MAX; 2], since: cx.now };
            let known = before.get(&conn.0).filter(|seen| seen.purpose == purpose);
            self.seen.insert(conn.0, known.copied().unwrap_or(fresh));
            cx.out.push(Action::Ask { conn });
        }
        self.look_later(cx);
    }

    /// Handles the number of bytes that a connection has received in each direction. Returns whether
    /// its read timeout has expired.
    pub fn received(&mut self, cx: &Context, conn: ConnId, bytes: [u64; 2]) -> bool {
        let open = cx.conns.find(conn);
        let Some(seen) = self.seen.get_mut(&conn.0).filter(|seen| open == Some(seen.purpose))
        else {
            return false;
        };
        if seen.bytes != bytes {
            (seen.bytes, seen.since) = (bytes, cx.now);
            return false;
        }
        cx.now.since(seen.since) >= patience(cx, seen.purpose)
    }
}

/// Returns the read timeout of a connection with this purpose.
fn patience(cx: &Context, purpose: Use) -> Span {
    let failures = &cx.config.failures;
    match purpose {
        Use::Fetch { .. } => failures.fetch_timeout,
        Use::Split { .. } | Use::Read { .. } | Use::Pipeline { .. } => failures.block_timeout,
        Use::Transfer { .. } | Use::Copy { .. } => failures.block_timeout,
        _ => failures.call_timeout,
    }
}
