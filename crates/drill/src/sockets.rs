//! Sockets of a script, and the system call that is blocked.

use crate::buffer::SendBuffer;
use crate::epoll::{self, Epolls, Seen, Watch};
use crate::host::Host;
use crate::notifications::Notifications;
use crate::problem::Problem;
use crate::script::{Call, Value};
use eastwest_transport::tcp::info::ConnectionState;
use eastwest_types::{Span, Time};
use std::collections::BTreeMap;

/// Role of a socket in the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A new socket: neither listening nor connected.
    Fresh,
    /// A socket that listens for connections.
    Listening,
    /// A socket that is an end of the connection.
    Connected,
}

/// State of one socket of a script.
#[derive(Clone, Copy, Debug)]
pub struct Socket {
    /// Role of the socket: new, listening or connected.
    pub role: Role,
    /// Whether the socket is non-blocking, so that calls return at once.
    pub nonblocking: bool,
    /// Whether the application has closed the sending direction of the socket.
    pub shut: bool,
    /// Whether the application has closed the receiving direction of the socket.
    pub shut_for_reading: bool,
}

impl Socket {
    /// Returns a blocking socket with this role.
    pub fn new(role: Role) -> Socket {
        Socket { role, nonblocking: false, shut: false, shut_for_reading: false }
    }
}

/// Condition for which a blocked system call waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    /// The connection is established or has failed.
    Connection,
    /// A connection can be accepted; the new socket will have this file descriptor.
    Accept(i64),
    /// Data can be read; the call reads at most this number of bytes.
    Data(u64),
    /// The send buffer has accepted all bytes of a write call.
    Room {
        /// Number of bytes that the call writes.
        total: u64,
        /// Number of bytes that the send buffer has not accepted yet.
        left: u64,
        /// Whether more data will follow (`MSG_MORE`).
        more: bool,
    },
    /// A socket has an event, or the time limit of poll() or epoll_wait() has passed.
    Events(Watch),
}

/// A system call that is blocked, or that has returned and whose result is not yet compared.
#[derive(Clone, Debug)]
struct Blocked {
    call: Call,
    wish: Wish,
    due: Time,
    tolerance: Span,
    returned: Option<(Time, Outcome)>,
}

/// Result of a system call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Number that the call returns.
    Value(i64),
    /// Return value −1 with the error of this name.
    Error(&'static str),
    /// Return value 1 with the bit mask of the events of a socket, and the bit mask of the events
    /// that the script expects (`None`: any).
    Events(u32, Option<u32>),
}

/// All sockets of a script.
#[derive(Clone, Debug, Default)]
pub struct Sockets {
    /// Sockets of the script by file descriptor.
    pub all: BTreeMap<i64, Socket>,
    /// Whether the application has accepted the connection, or has opened it itself.
    pub accepted: bool,
    /// Bytes that the application has read from the connection.
    pub read: u64,
    /// Whether the failure of the connection has already been reported to the application.
    pub told_failure: bool,
    /// Send buffer of the connection.
    pub buffer: SendBuffer,
    /// Whether `recvmsg` reports the number of bytes left to read (`TCP_INQ`).
    pub tells_rest: bool,
    /// Error queue of the connection, with notifications of `MSG_ZEROCOPY`.
    pub notifications: Notifications,
    /// Epoll sets by file descriptor.
    pub epolls: Epolls,
    /// Sizes in bytes of the open files, by file descriptor.
    pub files: BTreeMap<i64, u64>,
    blocked: Option<Blocked>,
}

impl Outcome {
    /// Compares the result of a system call with the result that the script expects.
    pub fn check(self, call: &Call) -> Result<(), Problem> {
        let name = &call.name;
        let number = match self {
            Outcome::Value(n) => Some(n),
            Outcome::Events(..) => Some(1),
            Outcome::Error(_) => None,
        };
        let actual = match self {
            Outcome::Error(e) => format!("-1 {e}"),
            _ => number.unwrap_or_default().to_string(),
        };
        let (expected, same) = match (&call.result, &call.errno) {
            (Value::Any, _) => return Ok(()),
            (Value::Number(n), None) => (n.to_string(), number == Some(*n)),
            (Value::Number(-1), Some(e)) => {
                (format!("-1 {e}"), matches!(self, Outcome::Error(x) if x == e))
            }
            _ => {
                return call.fail(format!(
                    "the result that the script expects of {name}() must be a number, or -1 and \
                     an error"
                ));
            }
        };
        if !same {
            return call.fail(format!("{name}() returns {actual}, not {expected}"));
        }
        if let Outcome::Events(events, Some(wanted)) = self
            && events != wanted
        {
            let (events, wanted) = (epoll::write(events), epoll::write(wanted));
            return call.fail(format!("{name}() reports the events {events}, not {wanted}"));
        }
        Ok(())
    }
}

impl Sockets {
    /// Whether a socket listens for connections.
    pub fn listens(&self) -> bool {
        self.all.values().any(|s| s.role == Role::Listening)
    }

    /// Whether there is a connection that accept() can return.
    pub fn can_accept(&self, host: Option<&Host>) -> bool {
        host.is_some_and(|h| !h.info().connection.is_opening() && !self.accepted)
    }

    /// Accepts the connection. The new socket has the file descriptor `number`.
    pub fn accept(&mut self, number: i64) {
        self.accepted = true;
        self.all.insert(number, Socket::new(Role::Connected));
    }

    /// Returns the lowest unused file descriptor, at least 3.
    pub fn free_number(&self) -> i64 {
        let taken = |n: &i64| {
            self.all.contains_key(n) || self.epolls.contains_key(n) || self.files.contains_key(n)
        };
        (3..).find(|n| !taken(n)).unwrap_or(3)
    }

    /// Returns the bit mask of the events for which the socket `number` is ready (Linux,
    /// `tcp_poll`).
    fn ready(&self, number: i64, host: Option<&Host>) -> u32 {
        let Some(socket) = self.all.get(&number) else { return 0 };
        let host = match (socket.role, host) {
            (Role::Listening, host) => return if self.can_accept(host) { epoll::IN } else { 0 },
            (Role::Connected, Some(host)) => host,
            _ => return epoll::OUT | epoll::HUP,
        };
        let info = host.info();
        let open = !info.connection.is_opening();
        let over = info.connection.is_over() || socket.shut_for_reading;
        let failed = info.connection == ConnectionState::Failed;
        let error = host.error().is_some() && !self.told_failure;
        let found = [
            (over, epoll::IN | epoll::RDHUP),
            (over && socket.shut || failed, epoll::HUP),
            (open && info.received > self.read, epoll::IN),
            (open && (socket.shut || self.buffer.is_writable(host)), epoll::OUT),
            (error || !self.notifications.is_empty(), epoll::ERR),
        ];
        found.iter().filter(|f| f.0).fold(0, |events, f| events | f.1)
    }

    /// Returns the bit mask of the events that a poll() or epoll_wait() call reports now.
    pub fn events(&self, watch: Watch, host: Option<&Host>) -> u32 {
        watch.events(&self.epolls, |number| self.ready(number, host))
    }

    /// Returns the state of the connection whose changes trigger edge-triggered epoll events.
    pub fn seen(&self, host: &Host) -> Seen {
        let info = host.info();
        Seen {
            received: info.received,
            over: info.connection.is_over(),
            notifications: self.notifications.count(),
            writable: !info.connection.is_opening() && self.buffer.is_writable(host),
        }
    }

    /// Records that the first ready socket of the epoll set `set` has been reported to the
    /// application.
    pub fn note_told(&mut self, set: i64, host: Option<&Host>) {
        let Some(mut epoll) = self.epolls.remove(&set) else { return };
        epoll.note_told(|number| self.ready(number, host));
        self.epolls.insert(set, epoll);
    }

    /// Updates the epoll sets after an event of the connection.
    fn note_news(&mut self, host: &Host) {
        let seen = self.seen(host);
        let connected = |n| self.all.get(&n).is_some_and(|s| s.role == Role::Connected);
        self.epolls.values_mut().for_each(|set| set.note(seen, connected));
    }

    /// Records that a system call blocks until the condition `wish` is true. The script expects its
    /// return at time `due` ± `tolerance`.
    pub fn block(&mut self, call: &Call, wish: Wish, due: Time, tolerance: Span) {
        let call = call.clone();
        self.blocked = Some(Blocked { call, wish, due, tolerance, returned: None });
    }

    /// Whether a system call is blocked, or its result is not yet compared.
    pub fn is_blocked(&self) -> bool {
        self.blocked.is_some()
    }

    /// Returns the latest time at which the blocked system call may return; `None` if no call is
    /// blocked.
    pub fn blocked_until(&self) -> Option<Time> {
        self.blocked.as_ref().map(|b| b.due + b.tolerance)
    }

    /// Updates the sockets after an event: the error queue, the epoll sets, and the blocked system
    /// call, which may return now.
    pub fn look(&mut self, host: Option<&mut Host>, now: Time) {
        let Some(host) = host else {
            self.end_waiting(now);
            return;
        };
        self.notifications.note(host.acknowledged());
        let Some(mut blocked) = self.blocked.take() else {
            self.note_news(host);
            return;
        };
        if blocked.returned.is_none() {
            if let Wish::Room { left, more, .. } = &mut blocked.wish
                && self.buffer.is_writable(host)
            {
                *left -= self.buffer.take(host, now, *left, *more);
            }
            let at = match blocked.wish {
                Wish::Events(watch) => watch.until.min(now),
                _ => now,
            };
            let outcome = self.outcome(blocked.wish, host, now);
            blocked.returned = outcome.map(|o| match o {
                Outcome::Value(0) => (at, o),
                _ => (now, o),
            });
            match (blocked.returned, blocked.wish) {
                (Some((_, Outcome::Value(n))), Wish::Data(_)) => self.read += n.unsigned_abs(),
                (Some((_, Outcome::Events(..))), Wish::Events(watch)) if watch.set => {
                    self.note_told(watch.number, Some(host));
                }
                (Some(_), Wish::Accept(number)) => self.accept(number),
                _ => {}
            }
        }
        self.blocked = Some(blocked);
        self.note_news(host);
    }

    /// Ends a call that waits for events before there is a connection, if its time limit has
    /// passed. The call returns 0 events.
    fn end_waiting(&mut self, now: Time) {
        if let Some(blocked) = &mut self.blocked
            && let Wish::Events(watch) = blocked.wish
            && blocked.returned.is_none()
            && watch.until <= now
        {
            blocked.returned = Some((watch.until, Outcome::Value(0)));
        }
    }

    /// Returns the result of a system call that waits for the condition `wish`; `None` while it
    /// must wait.
    pub fn outcome(&self, wish: Wish, host: &Host, now: Time) -> Option<Outcome> {
        let info = host.info();
        match wish {
            Wish::Events(watch) => match self.events(watch, Some(host)) {
                0 => (now >= watch.until).then_some(Outcome::Value(0)),
                events => Some(Outcome::Events(events, watch.expected)),
            },
            Wish::Accept(number) => self.can_accept(Some(host)).then_some(Outcome::Value(number)),
            _ if !self.told_failure && host.error().is_some() => host.error().map(Outcome::Error),
            Wish::Connection => (!info.connection.is_opening()).then_some(Outcome::Value(0)),
            Wish::Data(most) => {
                let available = (info.received - self.read).min(most);
                let over = info.connection.is_over();
                (available > 0 || over).then_some(Outcome::Value(available as i64))
            }
            Wish::Room { total, left, .. } => (left == 0).then_some(Outcome::Value(total as i64)),
        }
    }

    /// Compares the result and the return time of the blocked system call with the expected ones,
    /// if it has returned, or should have returned before `now`. `start`: time at which the script
    /// began.
    pub fn check_blocked(&mut self, now: Time, start: Time) -> Result<(), Problem> {
        let Some(b) = &self.blocked else { return Ok(()) };
        let (name, seconds) = (&b.call.name, |t: Time| t.since(start).as_secs_f64());
        let Some((at, outcome)) = b.returned else {
            if now <= b.due + b.tolerance {
                return Ok(());
            }
            return b.call.fail(format!(
                "the script expects {name}() to return at {:.6} s, but the call still blocks",
                seconds(b.due)
            ));
        };
        if at + b.tolerance < b.due || at > b.due + b.tolerance {
            let (at, due) = (seconds(at), seconds(b.due));
            return b.call.fail(format!(
                "{name}() returns at {at:.6} s, but the script expects it at {due:.6} s"
            ));
        }
        outcome.check(&b.call)?;
        self.blocked = None;
        Ok(())
    }
}
