//! Timeouts of applications: connections on which nothing arrives although something is awaited.
//!
//! Every ten seconds all connections on which somebody waits are asked how much has arrived. One on
//! which nothing did for the timeout of its use is given up, as one that TCP gives up is; a timeout
//! is so seen up to ten seconds late. What then happens is the business of who used it.

use super::connections::Use;
use super::context::Context;
use super::timer::Timer;
use crate::protocol::Action;
use eastwest_types::{ConnId, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Time between two looks.
const INTERVAL: Span = Span::from_secs(10);

/// What had arrived on a connection, and since when nothing more.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Seen {
    purpose: Use,
    bytes: [u64; 2],
    since: Time,
}

/// Connections on which somebody waits.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Watch {
    seen: BTreeMap<u32, Seen>,
}

impl Watch {
    /// Asks for a wake-up for the next look.
    pub fn look_later(&self, cx: &mut Context) {
        cx.wake_in(INTERVAL, Timer::Watch);
    }

    /// Asks of all connections on which somebody waits how much has arrived.
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

    /// Notes the bytes that have arrived on a connection. Returns its use if it is to be given up.
    pub fn received(&mut self, cx: &Context, conn: ConnId, bytes: [u64; 2]) -> Option<Use> {
        let seen = self.seen.get_mut(&conn.0)?;
        if cx.conns.find(conn) != Some(seen.purpose) {
            return None;
        }
        if seen.bytes != bytes {
            (seen.bytes, seen.since) = (bytes, cx.now);
            return None;
        }
        (cx.now.since(seen.since) >= patience(cx, seen.purpose)).then_some(seen.purpose)
    }
}

/// How long nothing may arrive.
fn patience(cx: &Context, purpose: Use) -> Span {
    let failures = &cx.config.failures;
    match purpose {
        Use::Fetch { .. } => failures.fetch_timeout,
        Use::Split { .. } | Use::Read { .. } | Use::Pipeline { .. } => failures.block_timeout,
        Use::Transfer { .. } | Use::Copy { .. } => failures.block_timeout,
        _ => failures.call_timeout,
    }
}
