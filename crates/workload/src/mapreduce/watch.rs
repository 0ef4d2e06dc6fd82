//! Timeouts of applications: connections on which nothing arrives although something is awaited.
//!
//! Every ten seconds all connections on which somebody waits are asked how much has arrived. One on
//! which nothing did for the timeout of its use is given up, as one that TCP gives up is; a timeout
//! is so seen up to ten seconds late. What then happens is the business of who used it.

use super::connections::Use;
use super::{MapReduce, Timer};
use crate::Action;
use eastwest_types::{ConnId, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Time between two looks.
pub const INTERVAL: Span = Span::from_secs(10);

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

impl MapReduce {
    /// Looks at all connections.
    pub(super) fn watch(&mut self, now: Time, out: &mut Vec<Action>) {
        let waiting: Vec<(ConnId, Use)> =
            self.conns.open_ones().filter(|&(_, purpose)| self.is_awaited(purpose)).collect();
        let before = std::mem::take(&mut self.watch.seen);
        for (conn, purpose) in waiting {
            let fresh = Seen { purpose, bytes: [u64::MAX; 2], since: now };
            let known = before.get(&conn.0).filter(|seen| seen.purpose == purpose);
            self.watch.seen.insert(conn.0, known.copied().unwrap_or(fresh));
            out.push(Action::Ask { conn });
        }
        out.push(Timer::Watch.at(now + INTERVAL));
    }

    /// How much has arrived on a connection.
    pub(super) fn received(
        &mut self,
        now: Time,
        conn: ConnId,
        bytes: [u64; 2],
        out: &mut Vec<Action>,
    ) {
        let Some(seen) = self.watch.seen.get_mut(&conn.0) else { return };
        if self.conns.find(conn) != Some(seen.purpose) {
            return;
        }
        if seen.bytes != bytes {
            (seen.bytes, seen.since) = (bytes, now);
            return;
        }
        let Seen { purpose, since, .. } = *seen;
        if now.since(since) >= self.patience(purpose) {
            self.conns.abort(conn, out);
            self.connection_lost(now, purpose, out);
        }
    }

    /// TCP has given a connection up.
    pub(super) fn connection_failed(&mut self, now: Time, conn: ConnId, out: &mut Vec<Action>) {
        let purpose = self.conns.purpose(conn);
        self.conns.gone(conn);
        self.connection_lost(now, purpose, out);
    }

    fn patience(&self, purpose: Use) -> Span {
        let failures = &self.config.failures;
        match purpose {
            Use::Fetch { .. } => failures.fetch_timeout,
            Use::Split { .. } | Use::Read { .. } | Use::Pipeline { .. } => failures.block_timeout,
            Use::Transfer { .. } | Use::Copy { .. } => failures.block_timeout,
            _ => failures.call_timeout,
        }
    }

    fn is_awaited(&self, purpose: Use) -> bool {
        match purpose {
            Use::Heartbeat { worker } => self.workers[worker as usize].waiting,
            Use::Fetch { task, from } => self
                .tasks
                .find(task)
                .and_then(|t| t.fetching.as_ref())
                .is_some_and(|f| f.awaits(from)),
            Use::Pipeline { writer, .. } => self.writer_waits(writer),
            Use::Namenode { session } => self.session_waits(session),
            Use::Application { job } => self.master_waits(job),
            Use::Split { .. } | Use::Read { .. } | Use::Master { .. } => true,
            Use::Launch { .. } | Use::Report { .. } | Use::Events { .. } => true,
            Use::Transfer { .. } | Use::Copy { .. } => true,
        }
    }

    fn connection_lost(&mut self, now: Time, purpose: Use, out: &mut Vec<Action>) {
        match purpose {
            Use::Heartbeat { worker } => self.heartbeat_lost(now, worker, out),
            Use::Split { task, holder } => self.split_lost(now, (task, holder), out),
            Use::Read { client, holder } => self.read_lost(now, (client, holder), out),
            Use::Fetch { task, from } => self.fetch_lost(now, (task, from), out),
            Use::Pipeline { writer, hop } => self.hop_lost(now, (writer, hop), out),
            Use::Transfer { writer } => self.transfer_lost(now, writer, out),
            Use::Copy { copy } => self.copy_lost(now, copy, out),
            Use::Namenode { session } => self.session_lost(now, session, out),
            Use::Master { job } => self.master_lost(job, out),
            Use::Application { job } => self.application_lost(job, out),
            Use::Launch { task } => self.launch_lost(task, out),
            Use::Report { report } => self.report_lost(now, report, out),
            Use::Events { task } => self.events_lost(now, task, out),
        }
    }
}
