//! Events of sockets, and epoll sets: level-triggered, edge-triggered or one-shot.

use crate::problem::{Place, Problem, hint};
use crate::script::Value;
use eastwest_types::Time;
use std::collections::BTreeMap;

/// Event `EPOLLIN`: data can be read, or the end of the stream has been reached.
pub const IN: u32 = 0x1;
/// Event `EPOLLOUT`: data can be written.
pub const OUT: u32 = 0x4;
/// Event `EPOLLERR`: the connection has an error, or its error queue has a notification.
pub const ERR: u32 = 0x8;
/// Event `EPOLLHUP`: the connection is closed in both directions.
pub const HUP: u32 = 0x10;
/// Event `EPOLLRDHUP`: the other end has closed its sending direction.
pub const RDHUP: u32 = 0x2000;
/// Events that poll() and epoll_wait() report even if the script does not request them.
const ALWAYS: u32 = ERR | HUP;
/// Flag `EPOLLEXCLUSIVE` of an entry of an epoll set; it has no effect with one application.
const EXCLUSIVE: u32 = 1 << 28;
/// Flag `EPOLLONESHOT` of an entry of an epoll set: after one event, no more are reported.
const ONE_SHOT: u32 = 1 << 30;
/// Flag `EPOLLET` of an entry of an epoll set: events are edge-triggered.
const EDGE: u32 = 1 << 31;
/// Names of the events without the prefix `POLL` or `EPOLL`, with their bits in Linux.
const EVENTS: [(&str, u32); 8] = [
    ("IN", IN),
    ("OUT", OUT),
    ("ERR", ERR),
    ("HUP", HUP),
    ("RDHUP", RDHUP),
    ("EXCLUSIVE", EXCLUSIVE),
    ("ONESHOT", ONE_SHOT),
    ("ET", EDGE),
];

/// Epoll sets of a script by file descriptor.
pub type Epolls = BTreeMap<i64, Epoll>;

/// An epoll set: sockets whose events one epoll_wait() call reports.
#[derive(Clone, Debug, Default)]
pub struct Epoll {
    /// Watched sockets by file descriptor.
    watched: BTreeMap<i64, Entry>,
}

/// State of one socket in an epoll set.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Bit mask of requested events and flags; 0 after the single event of `EPOLLONESHOT`.
    asked: u32,
    /// Whether the socket's state has changed since its events were last reported to the
    /// application. Edge-triggered events are reported only if it has.
    news: bool,
    /// State of the connection after the previous event of the script, with which the next state is
    /// compared.
    seen: Seen,
}

/// State of a connection whose changes trigger edge-triggered epoll events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// Payload bytes that have arrived in order.
    pub received: u64,
    /// Whether no more data can arrive, because the other end has closed or the connection has
    /// failed.
    pub over: bool,
    /// Number of `MSG_ZEROCOPY` sends that have been completed so far.
    pub notifications: u64,
    /// Whether the send buffer accepts data, so that a write would succeed.
    pub writable: bool,
}

/// Arguments of a poll() or epoll_wait() call: the events that it waits for, and the time limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watch {
    /// File descriptor of the socket of poll(), or of the epoll set of epoll_wait().
    pub number: i64,
    /// Whether `number` is an epoll set, not a socket.
    pub set: bool,
    /// Events that poll() requests, as a bit mask; 0 for epoll_wait().
    pub asked: u32,
    /// Events that the script expects, as a bit mask; `None` if it names none.
    pub expected: Option<u32>,
    /// Time at which the call returns 0 if no event has occurred.
    pub until: Time,
}

impl Watch {
    /// Returns the bit mask of the events that the call reports: those of its socket, or of the
    /// first ready socket of its epoll set; 0 if there are none. `ready` returns the events for
    /// which a socket is ready.
    pub fn events(self, sets: &Epolls, ready: impl Fn(i64) -> u32) -> u32 {
        if !self.set {
            return ready(self.number) & (self.asked | ALWAYS);
        }
        let Some(set) = sets.get(&self.number) else { return 0 };
        let events = set.watched.iter().map(|(number, entry)| entry.events(ready(*number)));
        events.into_iter().find(|e| *e > 0).unwrap_or(0)
    }
}

impl Epoll {
    /// Whether the epoll set contains `socket` (a file descriptor).
    pub fn contains(&self, socket: i64) -> bool {
        self.watched.contains_key(&socket)
    }

    /// Adds a socket to the epoll set, or changes its entry. `asked`: bit mask of requested events
    /// and flags; `seen`: current state of the connection.
    pub fn watch(&mut self, socket: i64, asked: u32, seen: Seen) {
        self.watched.insert(socket, Entry { asked, news: true, seen });
    }

    /// Removes a socket (a file descriptor) from the epoll set.
    pub fn forget(&mut self, socket: i64) {
        self.watched.remove(&socket);
    }

    /// Stores the new state `seen` of the connection for the sockets for whose file descriptor
    /// `concerned` is true. Records whether the change of the state triggers edge-triggered events.
    pub fn note(&mut self, seen: Seen, concerned: impl Fn(i64) -> bool) {
        for (_, entry) in self.watched.iter_mut().filter(|(number, _)| concerned(**number)) {
            entry.note(seen);
        }
    }

    /// Records that the events of the first ready socket of the epoll set have been reported to the
    /// application. `ready` returns the events for which a socket is ready; its argument is a file
    /// descriptor.
    pub fn note_told(&mut self, ready: impl Fn(i64) -> u32) {
        let told = self.watched.iter_mut().find(|(number, e)| e.events(ready(**number)) > 0);
        if let Some((_, entry)) = told {
            entry.news = false;
            if entry.asked & ONE_SHOT != 0 {
                entry.asked = 0;
            }
        }
    }
}

impl Entry {
    fn events(&self, ready: u32) -> u32 {
        if self.asked == 0 || (self.asked & EDGE != 0 && !self.news) {
            return 0;
        }
        ready & (self.asked | ALWAYS)
    }

    /// Replaces the stored state of the connection by `seen`, and records whether the change
    /// triggers an edge-triggered event that the socket requests.
    fn note(&mut self, seen: Seen) {
        let old = std::mem::replace(&mut self.seen, seen);
        let mut events = 0;
        if seen.received > old.received || seen.over && !old.over {
            events |= IN;
        }
        if seen.writable && !old.writable {
            events |= OUT;
        }
        if seen.notifications > old.notifications {
            events |= ERR;
        }
        self.news |= events & (self.asked | ALWAYS) != 0;
    }
}

/// Returns the names of the events in a bit mask, in the syntax of a script: `IN|OUT`.
pub fn write(events: u32) -> String {
    let names: Vec<&str> = EVENTS.iter().filter(|e| events & e.1 != 0).map(|e| e.0).collect();
    if names.is_empty() { "no event".into() } else { names.join("|") }
}

/// Returns the bit mask of the events that a script names (`POLLIN|POLLOUT`, `EPOLLET`). An unknown
/// event is an error at `place`.
pub fn read(value: &Value, place: Place) -> Result<u32, Problem> {
    if let Value::Number(n) = value {
        return Ok(*n as u32);
    }
    let mut events = 0;
    for name in value.names() {
        let short = name.strip_prefix('E').unwrap_or(name).strip_prefix("POLL").unwrap_or(name);
        let Some(known) = EVENTS.iter().find(|e| e.0 == short) else {
            let near = hint(short, EVENTS.map(|e| e.0));
            return place.fail(format!("the poll or epoll event {name} is not simulated{near}"));
        };
        events |= known.1;
    }
    Ok(events)
}
