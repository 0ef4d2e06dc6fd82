//! Events of sockets, and sets of sockets that are watched for them: level-triggered, edge-triggered or for
//! one event.

use crate::problem::{Place, Problem, hint};
use crate::script::Value;
use eastwest_types::Time;
use std::collections::BTreeMap;

/// Something can be read, or the end has come.
pub const IN: u32 = 0x1;
/// Something can be written.
pub const OUT: u32 = 0x4;
/// There is an error, or a notification.
pub const ERR: u32 = 0x8;
/// The connection is over in both directions.
pub const HUP: u32 = 0x10;
/// The other end writes no more.
pub const RDHUP: u32 = 0x2000;
/// Events that are told whether asked for or not.
const ALWAYS: u32 = ERR | HUP;
const EXCLUSIVE: u32 = 1 << 28;
const ONE_SHOT: u32 = 1 << 30;
const EDGE: u32 = 1 << 31;
/// Names after `POLL` and `EPOLL`, with the numbers of Linux.
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

/// Sets of sockets, by the number of the set.
pub type Epolls = BTreeMap<i64, Epoll>;

/// A set of sockets that are watched together.
#[derive(Clone, Debug, Default)]
pub struct Epoll {
    /// By socket.
    watched: BTreeMap<i64, Entry>,
}

/// A socket in a set.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Events that are asked for, and how; 0 after the one event of `EPOLLONESHOT`.
    asked: u32,
    /// Whether something has happened since it was last told (edge-triggered).
    news: bool,
    /// What had happened when that was last looked at.
    seen: Seen,
}

/// What makes news: counts that grow, and whether writing is possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// Bytes received in order.
    pub received: u64,
    /// Whether nothing more will come.
    pub over: bool,
    /// Notifications so far.
    pub notifications: u64,
    /// Whether something can be written.
    pub writable: bool,
}

/// Events that poll() or epoll_wait() waits for, and until when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watch {
    /// The socket, or the set of sockets.
    pub number: i64,
    /// Whether it is a set.
    pub set: bool,
    /// Events that are asked for, without a set.
    pub asked: u32,
    /// Events that the script expects.
    pub expected: Option<u32>,
    /// When the call returns without an event.
    pub until: Time,
}

impl Watch {
    /// Returns the events to tell; `ready` gives those for which a socket is ready.
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
    /// Returns whether a socket is in the set.
    pub fn contains(&self, socket: i64) -> bool {
        self.watched.contains_key(&socket)
    }

    /// Watches a socket for these events, or in another way; `seen` is how things are.
    pub fn watch(&mut self, socket: i64, asked: u32, seen: Seen) {
        self.watched.insert(socket, Entry { asked, news: true, seen });
    }

    /// Watches a socket no more.
    pub fn forget(&mut self, socket: i64) {
        self.watched.remove(&socket);
    }

    /// Notes how things are now for the sockets that `concerned` names.
    pub fn note(&mut self, seen: Seen, concerned: impl Fn(i64) -> bool) {
        for (_, entry) in self.watched.iter_mut().filter(|(number, _)| concerned(**number)) {
            entry.note(seen);
        }
    }

    /// Notes that the first socket that is ready has been told.
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

    /// Compares with what was seen before.
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

/// Returns events as a script has them.
pub fn write(events: u32) -> String {
    let names: Vec<&str> = EVENTS.iter().filter(|e| events & e.1 != 0).map(|e| e.0).collect();
    if names.is_empty() { "no event".into() } else { names.join("|") }
}

/// Reads events by their names.
pub fn read(value: &Value, place: Place) -> Result<u32, Problem> {
    if let Value::Number(n) = value {
        return Ok(*n as u32);
    }
    let mut events = 0;
    for name in value.names() {
        let short = name.strip_prefix('E').unwrap_or(name).strip_prefix("POLL").unwrap_or(name);
        let Some(known) = EVENTS.iter().find(|e| e.0 == short) else {
            let near = hint(short, EVENTS.map(|e| e.0));
            return place.fail(format!("the event {name} is not simulated{near}"));
        };
        events |= known.1;
    }
    Ok(events)
}
