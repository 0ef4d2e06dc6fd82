//! Requests that a process of an application answers after a service time. Requests do not queue: a
//! server works on any number of requests at the same time.

use super::process::{Content, Message, Process};
use eastwest_settings::{Bytes, Section, key};
use eastwest_types::Span;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Requests in service, by the value of the timer at whose expiry the reply is sent.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Answers {
    in_service: BTreeMap<u64, (Message, u64)>,
    next: u64,
}

impl Answers {
    /// Sends a reply of `bytes` bytes to `request` after the service time `service`. The reply
    /// carries the three numbers of the request (`Content::words`).
    pub(super) fn after(&mut self, p: &mut Process, service: Span, request: &Message, bytes: u64) {
        if service == Span::ZERO {
            return reply(p, request, bytes);
        }
        self.in_service.insert(self.next, (*request, bytes));
        p.timer(service, self.next);
        self.next += 1;
    }

    /// Sends the reply to the request whose service time has ended.
    pub(super) fn on_timer(&mut self, p: &mut Process, value: u64) {
        if let Some((request, bytes)) = self.in_service.remove(&value) {
            reply(p, &request, bytes);
        }
    }
}

fn reply(p: &mut Process, request: &Message, bytes: u64) {
    let words = request.content.words;
    p.reply(request, Content { bytes, words, ..Content::default() });
}

/// Reads the key `server_time` of a workload: the mean service time of requests.
pub(super) fn read_server_time(s: &mut Section) -> Span {
    s.get(
        key(
            "server_time",
            "Mean time from the arrival of a request to its response, exponentially distributed.",
        )
        .default("0 s")
        .range("0 s", "1 h"),
    )
}

/// Reads the key `name` of a workload: the number of bytes of a message, from 1 B to 1 TB. `doc`:
/// description of the key; `default`: bytes if the key is missing.
pub(super) fn read_bytes(
    s: &mut Section,
    name: &'static str,
    doc: &'static str,
    default: u64,
) -> u64 {
    s.get(key::<Bytes>(name, doc).value(Bytes(default)).range("1 B", "1 TB")).0
}
