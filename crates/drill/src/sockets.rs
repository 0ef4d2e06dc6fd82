//! Sockets of a script: numbers, what they stand for, and a call that blocks.

use crate::host::Host;
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
}

/// What a call waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    /// That the connection is there, or has failed.
    Connection,
    /// That there is something to read, at most so much.
    Data(u64),
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
        let actual = match self {
            Outcome::Value(n) => n.to_string(),
            Outcome::Error(e) => format!("-1 {e}"),
        };
        let (expected, same) = match (result, errno) {
            (Value::Any, _) => return Ok(()),
            (Value::Number(n), None) => (n.to_string(), self == Outcome::Value(*n)),
            (Value::Number(-1), Some(e)) => {
                (format!("-1 {e}"), matches!(self, Outcome::Error(x) if x == e))
            }
            _ => {
                return Err(Problem::new(place, format!("the result of {name}() is not a number")));
            }
        };
        if same {
            return Ok(());
        }
        let message = format!("{name}() returns {actual}, not {expected}");
        Err(Problem::new(place, message))
    }
}

impl Sockets {
    /// Whether a socket waits for connections.
    pub fn listens(&self) -> bool {
        self.all.values().any(|s| s.role == Role::Listening)
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

    /// Whether what the call under way waits for is there.
    pub fn look(&mut self, host: Option<&Host>, now: Time) {
        let (Some(blocked), Some(host)) = (&self.blocked, host) else { return };
        if blocked.returned.is_none()
            && let Some(outcome) = self.outcome(blocked.wish, host)
        {
            if let Outcome::Value(n) = outcome
                && matches!(blocked.wish, Wish::Data(_))
            {
                self.read += n.unsigned_abs();
            }
            if let Some(blocked) = &mut self.blocked {
                blocked.returned = Some((now, outcome));
            }
        }
    }

    /// What a call with this wish returns now; `None` while it has to wait.
    pub fn outcome(&self, wish: Wish, host: &Host) -> Option<Outcome> {
        let info = host.stack().info(host.id());
        match wish {
            _ if host.has_failed() && !self.told_failure => Some(Outcome::Error("ETIMEDOUT")),
            Wish::Connection => (!is_opening(info.connection)).then_some(Outcome::Value(0)),
            Wish::Data(most) => {
                let available = (info.received - self.read).min(most);
                let over = is_over(info.connection);
                (available > 0 || over).then_some(Outcome::Value(available as i64))
            }
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
fn is_over(state: ConnectionState) -> bool {
    use ConnectionState::{CloseWait, Failed, LastAck, TimeWait};
    matches!(state, CloseWait | Failed | LastAck | TimeWait)
}
