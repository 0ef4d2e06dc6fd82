//! Sockets of a script, and a call that blocks.

use crate::buffer::SendBuffer;
use crate::host::Host;
use crate::notifications::Notifications;
use crate::poll::{self, Epolls};
use crate::problem::{Place, Problem};
use crate::script::Value;
use eastwest_transport::tcp::info::ConnectionState;
use eastwest_types::{Span, Time};
use std::collections::BTreeMap;

/// What a socket stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Nothing yet.
    Fresh,
    /// Waits for connections.
    Listening,
    /// The end of the connection.
    Connected,
}

/// A socket.
#[derive(Clone, Copy, Debug)]
pub struct Socket {
    /// What it stands for.
    pub role: Role,
    /// Whether calls return at once.
    pub nonblocking: bool,
    /// Whether nothing more may be written.
    pub shut: bool,
    /// Whether the application has said that it reads no more.
    pub shut_for_reading: bool,
}

impl Socket {
    /// A new one.
    pub fn new(role: Role) -> Socket {
        Socket { role, nonblocking: false, shut: false, shut_for_reading: false }
    }
}

/// What a call waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    /// That the connection is there, or has failed.
    Connection,
    /// That a connection can be accepted; the new socket gets this number.
    Accept(i64),
    /// That there is something to read, at most so much.
    Data(u64),
    /// That all is written.
    Room {
        /// Bytes of the call.
        total: u64,
        /// Bytes that have not fitted yet.
        left: u64,
        /// Whether more is to come.
        more: bool,
    },
    /// That a socket is ready.
    Events(poll::Watch),
}

/// A call that has not returned, or has and is not yet compared.
#[derive(Clone, Debug)]
struct Blocked {
    place: Place,
    name: String,
    wish: Wish,
    due: Time,
    tolerance: Span,
    expected: (Value, Option<String>),
    returned: Option<(Time, Outcome)>,
}

/// What a call returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// A number.
    Value(i64),
    /// −1, and this error.
    Error(&'static str),
    /// The number 1, and events of a socket beside those that the script expects.
    Events(u32, Option<u32>),
}

/// All sockets.
#[derive(Clone, Debug, Default)]
pub struct Sockets {
    /// By number.
    pub all: BTreeMap<i64, Socket>,
    /// Whether the connection has been accepted.
    pub accepted: bool,
    /// Bytes the application has read.
    pub read: u64,
    /// Whether the application has been told that the connection has failed.
    pub told_failure: bool,
    /// The send buffer of the connection.
    pub buffer: SendBuffer,
    /// Whether `recvmsg` tells how much is left to read (`TCP_INQ`).
    pub tells_rest: bool,
    /// Notifications in the error queue of the connection (MSG_ERRQUEUE).
    pub notifications: Notifications,
    /// Sets of sockets that are watched together.
    pub epolls: Epolls,
    /// Open files with their sizes, bytes.
    pub files: BTreeMap<i64, u64>,
    blocked: Option<Blocked>,
}

impl Outcome {
    /// Compares with what the script says.
    pub fn check(
        self,
        name: &str,
        result: &Value,
        errno: Option<&str>,
        place: Place,
    ) -> Result<(), Problem> {
        let number = match self {
            Outcome::Value(n) => Some(n),
            Outcome::Events(..) => Some(1),
            Outcome::Error(_) => None,
        };
        let actual = match self {
            Outcome::Error(e) => format!("-1 {e}"),
            _ => number.unwrap_or_default().to_string(),
        };
        let (expected, same) = match (result, errno) {
            (Value::Any, _) => return Ok(()),
            (Value::Number(n), None) => (n.to_string(), number == Some(*n)),
            (Value::Number(-1), Some(e)) => {
                (format!("-1 {e}"), matches!(self, Outcome::Error(x) if x == e))
            }
            _ => {
                return Err(Problem::new(place, format!("the result of {name}() is not a number")));
            }
        };
        if !same {
            let message = format!("{name}() returns {actual}, not {expected}");
            return Err(Problem::new(place, message));
        }
        if let Outcome::Events(events, Some(wanted)) = self
            && events != wanted
        {
            let (events, wanted) = (poll::write(events), poll::write(wanted));
            let message = format!("{name}() tells {events}, not {wanted}");
            return Err(Problem::new(place, message));
        }
        Ok(())
    }
}

impl Sockets {
    /// Whether a socket waits for connections.
    pub fn listens(&self) -> bool {
        self.all.values().any(|s| s.role == Role::Listening)
    }

    /// Whether a connection can be accepted.
    pub fn can_accept(&self, host: Option<&Host>) -> bool {
        host.is_some_and(|h| !is_opening(h.info().connection) && !self.accepted)
    }

    /// A call begins that returns at `due`.
    #[allow(clippy::too_many_arguments)]
    pub fn block(
        &mut self,
        place: Place,
        name: &str,
        wish: Wish,
        due: Time,
        tolerance: Span,
        expected: (Value, Option<String>),
    ) {
        let name = name.to_string();
        self.blocked =
            Some(Blocked { place, name, wish, due, tolerance, expected, returned: None });
    }

    /// Whether a call is under way.
    pub fn is_blocked(&self) -> bool {
        self.blocked.is_some()
    }

    /// The latest time at which the call under way may return.
    pub fn blocked_until(&self) -> Option<Time> {
        self.blocked.as_ref().map(|b| b.due + b.tolerance)
    }

    /// Something has happened: whether what the call under way waits for is there.
    pub fn look(&mut self, host: Option<&mut Host>, now: Time) {
        let Some(host) = host else {
            self.end_waiting(now);
            return;
        };
        self.notifications.note(host.acknowledged());
        let Some(mut blocked) = self.blocked.take() else {
            poll::note(self, host);
            return;
        };
        if blocked.returned.is_none() {
            if let Wish::Room { left, more, .. } = &mut blocked.wish
                && self.buffer.is_writable(host)
            {
                *left -= self.buffer.take(host, now, *left, *more);
            }
            let at = match blocked.wish {
                Wish::Events(watch) => watch.until().min(now),
                _ => now,
            };
            let outcome = self.outcome(blocked.wish, host, now);
            blocked.returned = outcome.map(|o| match o {
                Outcome::Value(0) => (at, o),
                _ => (now, o),
            });
            match (blocked.returned, blocked.wish) {
                (Some((_, Outcome::Value(n))), Wish::Data(_)) => self.read += n.unsigned_abs(),
                (Some((_, Outcome::Events(..))), Wish::Events(watch)) => {
                    watch.has_returned(self, host);
                }
                (Some(_), Wish::Accept(number)) => {
                    self.accepted = true;
                    self.all.insert(number, Socket::new(Role::Connected));
                }
                _ => {}
            }
        }
        self.blocked = Some(blocked);
        poll::note(self, host);
    }

    /// There is no connection yet: a call that asks for events returns none when its time is over.
    fn end_waiting(&mut self, now: Time) {
        if let Some(blocked) = &mut self.blocked
            && let Wish::Events(watch) = blocked.wish
            && blocked.returned.is_none()
            && watch.until() <= now
        {
            blocked.returned = Some((watch.until(), Outcome::Value(0)));
        }
    }

    /// What a call with this wish returns now; `None` while it has to wait.
    pub fn outcome(&self, wish: Wish, host: &Host, now: Time) -> Option<Outcome> {
        let info = host.info();
        match wish {
            Wish::Events(watch) => watch.outcome(self, host, now),
            Wish::Accept(number) => self.can_accept(Some(host)).then_some(Outcome::Value(number)),
            _ if !self.told_failure && host.error().is_some() => host.error().map(Outcome::Error),
            Wish::Connection => (!is_opening(info.connection)).then_some(Outcome::Value(0)),
            Wish::Data(most) => {
                let available = (info.received - self.read).min(most);
                let over = is_over(info.connection);
                (available > 0 || over).then_some(Outcome::Value(available as i64))
            }
            Wish::Room { total, left, .. } => (left == 0).then_some(Outcome::Value(total as i64)),
        }
    }

    /// Compares a call that has returned, or should have.
    pub fn check_blocked(&mut self, now: Time, start: Time) -> Result<(), Problem> {
        let Some(b) = &self.blocked else { return Ok(()) };
        let seconds = |t: Time| t.since(start).as_secs_f64();
        let Some((at, outcome)) = b.returned else {
            if now <= b.due + b.tolerance {
                return Ok(());
            }
            let message = format!("{}() has not returned by {:.6}", b.name, seconds(b.due));
            return Err(Problem::new(b.place, message));
        };
        if at + b.tolerance < b.due || at > b.due + b.tolerance {
            let (at, due) = (seconds(at), seconds(b.due));
            let message = format!("{}() returns at {at:.6}, not at {due:.6}", b.name);
            return Err(Problem::new(b.place, message));
        }
        let (result, errno) = &b.expected;
        outcome.check(&b.name, result, errno.as_deref(), b.place)?;
        self.blocked = None;
        Ok(())
    }
}

/// Whether the handshake is under way.
pub fn is_opening(state: ConnectionState) -> bool {
    use ConnectionState::{Listen, SynReceived, SynSent};
    matches!(state, Listen | SynSent | SynReceived)
}

/// Whether nothing more will come.
pub fn is_over(state: ConnectionState) -> bool {
    use ConnectionState::{CloseWait, Failed, LastAck, TimeWait};
    matches!(state, CloseWait | Failed | LastAck | TimeWait)
}
