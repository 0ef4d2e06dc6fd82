//! `poll` and `epoll`: what a socket is ready for, and sets of sockets that are watched, level-triggered,
//! edge-triggered or for one event.

use crate::calls::{Does, names};
use crate::host::Host;
use crate::problem::{Place, Problem, hint};
use crate::run::Player;
use crate::script::{Call, Value};
use crate::sockets::{Outcome, Role, Sockets, Wish, is_opening, is_over};
use eastwest_transport::tcp::info::ConnectionState;
use eastwest_types::{Span, Time};
use std::collections::BTreeMap;

const IN: u32 = 0x1;
const OUT: u32 = 0x4;
const ERR: u32 = 0x8;
const HUP: u32 = 0x10;
const RDHUP: u32 = 0x2000;
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
struct Seen {
    received: u64,
    over: bool,
    notifications: u64,
    writable: bool,
}

/// Events that poll() or epoll_wait() waits for, and until when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watch {
    /// The socket, or the set of sockets.
    number: i64,
    /// Whether it is a set.
    set: bool,
    /// Events that are asked for, without a set.
    asked: u32,
    /// Events that the script expects.
    expected: Option<u32>,
    /// When the call returns without an event.
    until: Time,
}

impl Watch {
    /// What the call returns now; `None` while it has to wait.
    pub fn outcome(self, sockets: &Sockets, host: &Host, now: Time) -> Option<Outcome> {
        let events = self.events(sockets, Some(host));
        if events > 0 {
            return Some(Outcome::Events(events, self.expected));
        }
        (now >= self.until).then_some(Outcome::Value(0))
    }

    /// When the call returns without an event.
    pub fn until(self) -> Time {
        self.until
    }

    /// The call has returned events.
    pub fn has_returned(self, sockets: &mut Sockets, host: &Host) {
        if self.set {
            told(sockets, self.number, Some(host));
        }
    }

    fn events(self, sockets: &Sockets, host: Option<&Host>) -> u32 {
        if !self.set {
            return ready(sockets, self.number, host) & (self.asked | ALWAYS);
        }
        let Some(set) = sockets.epolls.get(&self.number) else { return 0 };
        set.watched.iter().map(|(n, e)| e.events(sockets, *n, host)).find(|e| *e > 0).unwrap_or(0)
    }
}

impl Entry {
    fn events(&self, sockets: &Sockets, number: i64, host: Option<&Host>) -> u32 {
        if self.asked == 0 || (self.asked & EDGE != 0 && !self.news) {
            return 0;
        }
        ready(sockets, number, host) & (self.asked | ALWAYS)
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

fn seen(sockets: &Sockets, host: &Host) -> Seen {
    let info = host.info();
    Seen {
        received: info.received,
        over: is_over(info.connection),
        notifications: sockets.notifications.count(),
        writable: !is_opening(info.connection) && sockets.buffer.is_writable(host),
    }
}

/// Something has happened: sets of sockets take notice.
pub fn note(sockets: &mut Sockets, host: &Host) {
    let seen = seen(sockets, host);
    let connected = &sockets.all;
    for set in sockets.epolls.values_mut() {
        for (number, entry) in &mut set.watched {
            if connected.get(number).is_some_and(|s| s.role == Role::Connected) {
                entry.note(seen);
            }
        }
    }
}

/// The first socket of a set that is ready has been told.
fn told(sockets: &mut Sockets, set: i64, host: Option<&Host>) {
    let Some(mut epoll) = sockets.epolls.remove(&set) else { return };
    let told = epoll.watched.iter_mut().find(|(n, e)| e.events(sockets, **n, host) > 0);
    if let Some((_, entry)) = told {
        entry.news = false;
        if entry.asked & ONE_SHOT != 0 {
            entry.asked = 0;
        }
    }
    sockets.epolls.insert(set, epoll);
}

/// Events for which a socket is ready (Linux, `tcp_poll`).
fn ready(sockets: &Sockets, number: i64, host: Option<&Host>) -> u32 {
    let Some(socket) = sockets.all.get(&number) else { return 0 };
    let host = match (socket.role, host) {
        (Role::Listening, host) => return if sockets.can_accept(host) { IN } else { 0 },
        (Role::Connected, Some(host)) => host,
        _ => return OUT | HUP,
    };
    let info = host.info();
    let mut events = 0;
    let over = is_over(info.connection) || socket.shut_for_reading;
    if over {
        events |= IN | RDHUP;
    }
    if over && socket.shut || info.connection == ConnectionState::Failed {
        events |= HUP;
    }
    if !is_opening(info.connection) {
        if info.received > sockets.read {
            events |= IN;
        }
        if socket.shut || sockets.buffer.is_writable(host) {
            events |= OUT;
        }
    }
    let failed = host.error().is_some() && !sockets.told_failure;
    if failed || !sockets.notifications.is_empty() {
        events |= ERR;
    }
    events
}

/// Events as a script has them.
pub fn write(events: u32) -> String {
    let names: Vec<&str> = EVENTS.iter().filter(|e| events & e.1 != 0).map(|e| e.0).collect();
    if names.is_empty() { "no event".into() } else { names.join("|") }
}

/// Events by their names.
fn read(value: &Value, place: Place) -> Result<u32, Problem> {
    if let Value::Number(n) = value {
        return Ok(*n as u32);
    }
    let mut events = 0;
    for name in names(value) {
        let short = name.strip_prefix('E').unwrap_or(name).strip_prefix("POLL").unwrap_or(name);
        let Some(known) = EVENTS.iter().find(|e| e.0 == short) else {
            let near = hint(short, EVENTS.map(|e| e.0));
            return Err(Problem::new(place, format!("the event {name} is not simulated{near}")));
        };
        events |= known.1;
    }
    Ok(events)
}

fn member<'a>(group: &'a [(Option<String>, Value)], name: &str) -> Option<&'a Value> {
    group.iter().find(|m| m.0.as_deref() == Some(name)).map(|m| &m.1)
}

fn number(value: Option<&Value>) -> Option<i64> {
    if let Some(Value::Number(n)) = value { Some(*n) } else { None }
}

impl Player<'_> {
    /// When a call returns that waits for events so many milliseconds; never where they are negative.
    fn until(&self, milliseconds: Option<i64>) -> Time {
        match milliseconds.map(u64::try_from) {
            Some(Ok(n)) => self.now + Span::from_ms(n.min(86_400_000)),
            _ => Time::NEVER,
        }
    }

    fn watch(&self, watch: Watch) -> Does {
        match watch.events(&self.sockets, self.host.as_ref()) {
            0 if watch.until <= self.now => Does::Returns(Outcome::Value(0)),
            0 => Does::Waits(Wish::Events(watch)),
            events => Does::Returns(Outcome::Events(events, watch.expected)),
        }
    }

    pub(crate) fn poll(&mut self, call: &Call, place: Place) -> Result<Does, Problem> {
        let problem = |message: &str| Problem::new(place, message);
        let group = match call.arguments.first() {
            Some(Value::List(all)) if all.len() == 1 => match &all[0] {
                Value::Group(members) => members,
                _ => return Err(problem("poll() needs {fd=…, events=…, revents=…}")),
            },
            _ => return Err(problem("poll() of one socket is understood, no other")),
        };
        let (Some(socket), Some(asked)) = (number(member(group, "fd")), member(group, "events"))
        else {
            return Err(problem("poll() needs {fd=…, events=…, revents=…}"));
        };
        let asked = read(asked, place)?;
        let expected = member(group, "revents").map(|e| read(e, place)).transpose()?;
        let until = self.until(number(call.arguments.get(2)));
        Ok(self.watch(Watch { number: socket, set: false, asked, expected, until }))
    }

    pub(crate) fn epoll_create(&mut self, call: &Call) -> Does {
        let wanted = number(Some(&call.result)).filter(|n| *n >= 0);
        let number = wanted.unwrap_or_else(|| self.free_number());
        self.sockets.epolls.insert(number, Epoll::default());
        Does::Returns(Outcome::Value(number))
    }

    pub(crate) fn epoll_ctl(&mut self, call: &Call, place: Place) -> Result<Does, Problem> {
        let problem = |message: &str| Problem::new(place, message);
        let set = number(call.arguments.first()).unwrap_or(-1);
        let (Some(Value::Name(what)), Some(socket)) =
            (call.arguments.get(1), number(call.arguments.get(2)))
        else {
            return Err(problem("epoll_ctl() needs a set, an operation and a socket"));
        };
        if !self.sockets.all.contains_key(&socket) {
            return Err(Problem::new(place, format!("there is no socket {socket}")));
        }
        let asked = match call.arguments.get(3) {
            Some(Value::Group(members)) => member(members, "events"),
            _ => None,
        };
        let asked = asked.map(|e| read(e, place)).transpose()?;
        let seen = self.host.as_ref().map(|h| seen(&self.sockets, h)).unwrap_or_default();
        let Some(epoll) = self.sockets.epolls.get_mut(&set) else {
            return Err(Problem::new(place, format!("there is no set {set} of epoll_create()")));
        };
        let there = epoll.watched.contains_key(&socket);
        let outcome = match (what.as_str(), there, asked) {
            ("EPOLL_CTL_ADD", true, _) => Outcome::Error("EEXIST"),
            ("EPOLL_CTL_MOD" | "EPOLL_CTL_DEL", false, _) => Outcome::Error("ENOENT"),
            ("EPOLL_CTL_ADD" | "EPOLL_CTL_MOD", _, Some(asked)) => {
                epoll.watched.insert(socket, Entry { asked, news: true, seen });
                Outcome::Value(0)
            }
            ("EPOLL_CTL_DEL", true, _) => {
                epoll.watched.remove(&socket);
                Outcome::Value(0)
            }
            _ => return Err(problem("epoll_ctl() needs EPOLL_CTL_ADD, _MOD or _DEL and events")),
        };
        Ok(Does::Returns(outcome))
    }

    pub(crate) fn epoll_wait(&mut self, call: &Call, place: Place) -> Result<Does, Problem> {
        let set = number(call.arguments.first()).unwrap_or(-1);
        let expected = match call.arguments.get(1) {
            Some(Value::Group(members)) => member(members, "events"),
            _ => None,
        };
        let expected = expected.map(|e| read(e, place)).transpose()?;
        if !self.sockets.epolls.contains_key(&set) {
            return Err(Problem::new(place, format!("there is no set {set} of epoll_create()")));
        }
        let until = self.until(number(call.arguments.get(3)));
        let does = self.watch(Watch { number: set, set: true, asked: 0, expected, until });
        if matches!(does, Does::Returns(Outcome::Events(..))) {
            told(&mut self.sockets, set, self.host.as_ref());
        }
        Ok(does)
    }
}
