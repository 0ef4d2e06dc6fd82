//! System calls: those that drive a connection do so, those that only matter to a real host return what
//! they would there, all others fail the script.
//!
//! The simulated application reads at once, so a window does not close because a script has not read;
//! `read` only counts. Writes are taken whole, whatever the send buffer.

use crate::problem::{Place, Problem, hint};
use crate::run::Player;
use crate::script::{Action, Call, Packet, Value};
use crate::setup::congestion;
use crate::sockets::{Outcome, Role, Socket, Wish, is_opening};
use crate::wire::Wire;
use eastwest_types::{Span, Time, flag};

/// The calls that are understood.
pub const KNOWN: [&str; 18] = [
    "accept",
    "bind",
    "close",
    "connect",
    "fcntl",
    "getsockopt",
    "ioctl",
    "listen",
    "read",
    "readv",
    "recv",
    "recvfrom",
    "send",
    "sendto",
    "setsockopt",
    "shutdown",
    "socket",
    "write",
];

/// Most bytes a script may write in all: half of what 32-bit positions can tell apart.
const MOST_WRITTEN: u64 = 1 << 30;
/// Linux's number of `ETIMEDOUT`.
const ETIMEDOUT: i64 = 110;
/// Socket options that make no difference to a simulated endpoint.
const NO_MATTER: [&str; 9] = [
    "SO_REUSEADDR",
    "SO_REUSEPORT",
    "SO_SNDBUF",
    "SO_RCVTIMEO",
    "SO_SNDTIMEO",
    "IP_TOS",
    "IP_MTU_DISCOVER",
    "SO_PRIORITY",
    "TCP_NOTSENT_LOWAT",
];
const MATTER: [&str; 4] = ["TCP_CONGESTION", "TCP_MAXSEG", "TCP_NODELAY", "TCP_SYNCNT"];
const LEVELS: [&str; 5] = ["SOL_SOCKET", "SOL_TCP", "IPPROTO_TCP", "SOL_IP", "IPPROTO_IP"];

/// What a call does.
enum Does {
    /// Returns at once.
    Returns(Outcome),
    /// Waits.
    Waits(Wish),
}

impl Player<'_> {
    /// Carries a call out and compares what it returns.
    pub(crate) fn call(
        &mut self,
        index: usize,
        call: &Call,
        place: Place,
        returns: Option<Time>,
        tolerance: Span,
    ) -> Result<(), Problem> {
        if self.sockets.is_blocked() {
            let message = "a call begins while another has not returned";
            return Err(Problem::new(place, message));
        }
        let does = match call.name.as_str() {
            "socket" => self.socket(call),
            "bind" => self.ok(call, place),
            "listen" => {
                self.socket_of(call, place)?.role = Role::Listening;
                Ok(Does::Returns(Outcome::Value(0)))
            }
            "accept" => self.accept(call, place),
            "connect" => self.connect(index, call, place),
            "write" | "send" | "sendto" => self.write(call, place),
            "read" | "recv" | "recvfrom" | "readv" => self.read(call, place),
            "close" => self.close(call, place),
            "shutdown" => self.shutdown(call, place),
            "fcntl" => self.fcntl(call, place),
            "ioctl" => self.ioctl(call, place),
            "setsockopt" => self.setsockopt(call, place),
            "getsockopt" => self.getsockopt(call, place),
            other => Err(Problem::new(place, format!("unknown system call '{other}'"))),
        }?;
        let (name, errno) = (&call.name, call.errno.as_deref());
        match (does, returns) {
            (Does::Returns(outcome), _) => outcome.check(name, &call.result, errno, place),
            (Does::Waits(wish), Some(due)) => {
                let expected = (call.result.clone(), call.errno.clone());
                self.sockets.block(place, name, wish, due, tolerance, expected);
                Ok(())
            }
            (Does::Waits(wish), None) => {
                let now = self.host.as_ref().and_then(|h| self.sockets.outcome(wish, h));
                let Some(outcome) = now else {
                    let message = format!("{name}() does not return at once");
                    return Err(Problem::new(place, message));
                };
                outcome.check(name, &call.result, errno, place)
            }
        }
    }

    fn ok(&mut self, call: &Call, place: Place) -> Result<Does, Problem> {
        self.socket_of(call, place)?;
        Ok(Does::Returns(Outcome::Value(0)))
    }

    fn socket(&mut self, call: &Call) -> Result<Does, Problem> {
        let new = Socket { role: Role::Fresh, nonblocking: false, shut: false };
        Ok(Does::Returns(Outcome::Value(self.new_socket(call, new))))
    }

    /// Numbers of sockets are names: the script chooses them.
    fn new_socket(&mut self, call: &Call, socket: Socket) -> i64 {
        let free = (3..).find(|n| !self.sockets.all.contains_key(n)).unwrap_or(3);
        let number = match call.result {
            Value::Number(n) if n >= 0 => n,
            _ => free,
        };
        self.sockets.all.insert(number, socket);
        number
    }

    fn number_of(&self, call: &Call, place: Place) -> Result<i64, Problem> {
        let number = match call.arguments.first() {
            Some(Value::Number(n)) => *n,
            _ => return Err(Problem::new(place, format!("{}() needs a socket", call.name))),
        };
        match self.sockets.all.contains_key(&number) {
            true => Ok(number),
            false => Err(Problem::new(place, format!("there is no socket {number}"))),
        }
    }

    fn socket_of(&mut self, call: &Call, place: Place) -> Result<&mut Socket, Problem> {
        let number = self.number_of(call, place)?;
        let missing = || Problem::new(place, format!("there is no socket {number}"));
        self.sockets.all.get_mut(&number).ok_or_else(missing)
    }

    fn accept(&mut self, call: &Call, place: Place) -> Result<Does, Problem> {
        let listening = *self.socket_of(call, place)?;
        let there = self.host.as_ref().is_some_and(|h| {
            !is_opening(h.stack().info(h.id()).connection) && !self.sockets.accepted
        });
        if listening.role != Role::Listening {
            return Ok(Does::Returns(Outcome::Error("EINVAL")));
        }
        if !there {
            if listening.nonblocking {
                return Ok(Does::Returns(Outcome::Error("EAGAIN")));
            }
            return Err(Problem::new(place, "no connection is ready to be accepted"));
        }
        self.sockets.accepted = true;
        let new = Socket { role: Role::Connected, nonblocking: false, shut: false };
        Ok(Does::Returns(Outcome::Value(self.new_socket(call, new))))
    }

    fn connect(&mut self, index: usize, call: &Call, place: Place) -> Result<Does, Problem> {
        if self.host.is_some() {
            return Err(Problem::new(place, "a script has one connection"));
        }
        let socket = self.socket_of(call, place)?;
        socket.role = Role::Connected;
        let nonblocking = socket.nonblocking;
        self.sockets.accepted = true;
        let answer = self.script.events[index..].iter().find_map(|e| match &e.action {
            Action::Inject(p) if is_syn_ack(p) => Some(p),
            _ => None,
        });
        self.wire = Wire::agree(&mut self.setup, answer, true);
        self.wire.remote_base = answer.map_or(0, |p| p.start);
        self.open(true, place)?;
        Ok(match nonblocking {
            true => Does::Returns(Outcome::Error("EINPROGRESS")),
            false => Does::Waits(Wish::Connection),
        })
    }

    /// The error of a connection that has failed, told once.
    fn failure(&mut self) -> Option<Outcome> {
        let failed = self.host.as_ref().is_some_and(|h| h.has_failed());
        let tell = failed && !self.sockets.told_failure;
        self.sockets.told_failure |= tell;
        tell.then_some(Outcome::Error("ETIMEDOUT"))
    }

    fn write(&mut self, call: &Call, place: Place) -> Result<Does, Problem> {
        let socket = *self.socket_of(call, place)?;
        let Some(&Value::Number(bytes)) = call.arguments.get(2) else {
            return Err(Problem::new(place, format!("{}() needs a number of bytes", call.name)));
        };
        flags_are_plain(call, place)?;
        if let Some(failure) = self.failure() {
            return Ok(Does::Returns(failure));
        }
        let Some(host) = self.host.as_mut().filter(|_| socket.role == Role::Connected) else {
            return Ok(Does::Returns(Outcome::Error("ENOTCONN")));
        };
        if socket.shut || host.has_failed() {
            return Ok(Does::Returns(Outcome::Error("EPIPE")));
        }
        let written = host.stack().endpoint(host.id()).written();
        let bytes =
            u64::try_from(bytes).ok().filter(|b| written.saturating_add(*b) <= MOST_WRITTEN);
        let Some(bytes) = bytes else {
            return Err(Problem::new(place, "a script may write from 0 to 1 GiB in all"));
        };
        if is_opening(host.stack().info(host.id()).connection) {
            if socket.nonblocking {
                return Ok(Does::Returns(Outcome::Error("EAGAIN")));
            }
            return Err(Problem::new(place, "the connection is not open yet"));
        }
        host.write(self.now, bytes);
        let line = format!("write {bytes}");
        self.note(self.now, '#', &line);
        Ok(Does::Returns(Outcome::Value(bytes as i64)))
    }

    fn read(&mut self, call: &Call, place: Place) -> Result<Does, Problem> {
        let socket = *self.socket_of(call, place)?;
        flags_are_plain(call, place)?;
        let most = match call.arguments.get(2) {
            Some(Value::Number(n)) => u64::try_from(*n).unwrap_or(0),
            _ => return Err(Problem::new(place, format!("{}() needs a size", call.name))),
        };
        if let Some(failure) = self.failure() {
            return Ok(Does::Returns(failure));
        }
        let Some(host) = self.host.as_ref().filter(|_| socket.role == Role::Connected) else {
            return Ok(Does::Returns(Outcome::Error("ENOTCONN")));
        };
        match self.sockets.outcome(Wish::Data(most), host) {
            Some(Outcome::Value(n)) => {
                self.sockets.read += n.unsigned_abs();
                Ok(Does::Returns(Outcome::Value(n)))
            }
            Some(error) => Ok(Does::Returns(error)),
            None if socket.nonblocking => Ok(Does::Returns(Outcome::Error("EAGAIN"))),
            None => Ok(Does::Waits(Wish::Data(most))),
        }
    }

    fn close(&mut self, call: &Call, place: Place) -> Result<Does, Problem> {
        let number = self.number_of(call, place)?;
        let socket = self.sockets.all.remove(&number);
        if socket.is_some_and(|s| s.role == Role::Connected && !s.shut)
            && let Some(host) = &mut self.host
        {
            host.close(self.now);
            self.note(self.now, '#', "close");
        }
        Ok(Does::Returns(Outcome::Value(0)))
    }

    fn shutdown(&mut self, call: &Call, place: Place) -> Result<Does, Problem> {
        let socket = self.socket_of(call, place)?;
        let writing = match call.arguments.get(1) {
            Some(Value::Name(how)) if how == "SHUT_WR" || how == "SHUT_RDWR" => true,
            Some(Value::Name(how)) if how == "SHUT_RD" => false,
            _ => return Err(Problem::new(place, "shutdown() needs SHUT_RD, SHUT_WR or SHUT_RDWR")),
        };
        if socket.role != Role::Connected {
            return Ok(Does::Returns(Outcome::Error("ENOTCONN")));
        }
        if writing && !std::mem::replace(&mut socket.shut, true) {
            if let Some(host) = &mut self.host {
                host.close(self.now);
            }
            self.note(self.now, '#', "shutdown");
        }
        Ok(Does::Returns(Outcome::Value(0)))
    }

    fn fcntl(&mut self, call: &Call, place: Place) -> Result<Does, Problem> {
        let socket = self.socket_of(call, place)?;
        match (call.arguments.get(1), call.arguments.get(2)) {
            (Some(Value::Name(what)), None) if what == "F_GETFL" => {
                // O_RDWR, and O_NONBLOCK of Linux
                let flags = 0x2 | if socket.nonblocking { 0x800 } else { 0 };
                Ok(Does::Returns(Outcome::Value(flags)))
            }
            (Some(Value::Name(what)), Some(flags)) if what == "F_SETFL" => {
                socket.nonblocking = names(flags).contains(&"O_NONBLOCK");
                Ok(Does::Returns(Outcome::Value(0)))
            }
            _ => Err(Problem::new(place, "of fcntl() only F_GETFL and F_SETFL are understood")),
        }
    }

    fn ioctl(&mut self, call: &Call, place: Place) -> Result<Does, Problem> {
        self.socket_of(call, place)?;
        let Some(host) = &self.host else {
            return Ok(Does::Returns(Outcome::Error("ENOTCONN")));
        };
        let info = host.stack().info(host.id());
        let written = host.stack().endpoint(host.id()).written();
        let actual = match call.arguments.get(1) {
            Some(Value::Name(what)) if what == "SIOCINQ" => info.received - self.sockets.read,
            Some(Value::Name(what)) if what == "SIOCOUTQ" => written - info.acknowledged,
            Some(Value::Name(what)) if what == "SIOCOUTQNSD" => info.unsent,
            _ => {
                let message = "of ioctl() only SIOCINQ, SIOCOUTQ and SIOCOUTQNSD are understood";
                return Err(Problem::new(place, message));
            }
        };
        told(call.arguments.get(2), actual as i64, place)?;
        Ok(Does::Returns(Outcome::Value(0)))
    }

    fn setsockopt(&mut self, call: &Call, place: Place) -> Result<Does, Problem> {
        self.socket_of(call, place)?;
        let name = option_name(call, place)?;
        if NO_MATTER.contains(&name) {
            return Ok(Does::Returns(Outcome::Value(0)));
        }
        let problem = |message: String| Problem::new(place, message);
        if !MATTER.contains(&name) {
            let near = hint(name, NO_MATTER.into_iter().chain(MATTER));
            return Err(problem(format!("the socket option {name} is not simulated{near}")));
        }
        let value = match call.arguments.get(3) {
            Some(Value::List(all)) => all.first(),
            other => other,
        };
        if let ("TCP_NODELAY", Some(Value::Number(n))) = (name, value) {
            match &mut self.host {
                Some(host) => host.set_nagle(self.now, *n == 0),
                None => self.setup.config.nagle = *n == 0,
            }
            return Ok(Does::Returns(Outcome::Value(0)));
        }
        if self.host.is_some() {
            let message = format!("{name} must be set before the connection opens");
            return Err(problem(message));
        }
        match (name, value) {
            ("TCP_CONGESTION", Some(Value::Text(kind))) => {
                self.setup.config.congestion = congestion(kind).map_err(problem)?;
            }
            ("TCP_MAXSEG", Some(Value::Number(n @ 88..=32_767))) => self.setup.mss = *n as u16,
            ("TCP_SYNCNT", Some(Value::Number(n @ 1..=127))) => {
                self.setup.syn_retries.0 = *n as u32;
            }
            _ => return Ok(Does::Returns(Outcome::Error("EINVAL"))),
        }
        Ok(Does::Returns(Outcome::Value(0)))
    }

    fn getsockopt(&mut self, call: &Call, place: Place) -> Result<Does, Problem> {
        self.socket_of(call, place)?;
        let name = option_name(call, place)?;
        let actual = match name {
            "SO_ERROR" => self.failure().map_or(0, |_| ETIMEDOUT),
            "TCP_MAXSEG" => match &self.host {
                Some(host) => i64::from(host.stack().config().segment),
                None => i64::from(self.setup.mss),
            },
            other => {
                let near = hint(other, ["SO_ERROR", "TCP_MAXSEG"]);
                let message = format!("the socket option {other} cannot be asked{near}");
                return Err(Problem::new(place, message));
            }
        };
        told(call.arguments.get(3), actual, place)?;
        Ok(Does::Returns(Outcome::Value(0)))
    }
}

/// What a call has put into `[n]`.
fn told(argument: Option<&Value>, actual: i64, place: Place) -> Result<(), Problem> {
    match argument {
        Some(Value::List(all)) => match all[..] {
            [Value::Number(n)] if n == actual => Ok(()),
            [Value::Number(n)] => Err(Problem::new(place, format!("it tells {actual}, not {n}"))),
            _ => Err(Problem::new(place, "one number is needed between the brackets")),
        },
        Some(Value::Any) => Ok(()),
        _ => Err(Problem::new(place, "a number between brackets is needed")),
    }
}

fn option_name(call: &Call, place: Place) -> Result<&str, Problem> {
    match (call.arguments.get(1), call.arguments.get(2)) {
        (Some(Value::Name(level)), Some(Value::Name(name))) if LEVELS.contains(&level.as_str()) => {
            Ok(name)
        }
        _ => Err(Problem::new(place, format!("{}() needs a level and an option", call.name))),
    }
}

/// The names in `A | B`.
fn names(value: &Value) -> Vec<&str> {
    match value {
        Value::Name(n) => vec![n],
        Value::Either(all) => all.iter().flat_map(names).collect(),
        _ => Vec::new(),
    }
}

/// Flags of send and receive that change nothing in the dialogue.
fn flags_are_plain(call: &Call, place: Place) -> Result<(), Problem> {
    let Some(flags) = call.arguments.get(3) else { return Ok(()) };
    let plain = ["MSG_DONTWAIT", "MSG_NOSIGNAL"];
    match names(flags).iter().find(|n| !plain.contains(n)) {
        Some(other) => Err(Problem::new(place, format!("the flag {other} is not simulated"))),
        None => Ok(()),
    }
}

fn is_syn_ack(p: &Packet) -> bool {
    p.flags & (flag::SYN | flag::ACK) == flag::SYN | flag::ACK
}
