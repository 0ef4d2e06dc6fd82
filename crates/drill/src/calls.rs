//! System calls: those that drive a connection do so, those that only matter to a real host return what
//! they would there, all others fail the script.
//!
//! The simulated application reads at once, so a window does not close because a script has not read;
//! `read` only counts. Writes are taken whole unless the script limits the [buffer](crate::buffer).

use crate::problem::{Place, Problem};
use crate::run::Player;
use crate::script::{Action, Call, Packet, Value};
use crate::sockets::{Outcome, Role, Socket, Wish, is_opening};
use crate::wire::Wire;
use eastwest_types::{Span, Time, flag};

/// The calls that are understood.
pub const KNOWN: [&str; 26] = [
    "accept",
    "bind",
    "close",
    "connect",
    "epoll_create",
    "epoll_ctl",
    "epoll_wait",
    "fcntl",
    "getsockopt",
    "ioctl",
    "listen",
    "open",
    "poll",
    "read",
    "readv",
    "recv",
    "recvfrom",
    "recvmsg",
    "send",
    "sendfile",
    "sendmsg",
    "sendto",
    "setsockopt",
    "shutdown",
    "socket",
    "write",
];

/// Most bytes a script may write in all: half of what 32-bit positions can tell apart.
const MOST_WRITTEN: u64 = 1 << 30;
/// What a call does.
pub(crate) enum Does {
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
            "open" => self.open_file(call, place),
            "sendfile" => self.sendfile(call, place),
            "poll" => self.poll(call, place),
            "epoll_create" => Ok(self.epoll_create(call)),
            "epoll_ctl" => self.epoll_ctl(call, place),
            "epoll_wait" => self.epoll_wait(call, place),
            "sendmsg" => self.sendmsg(call, place),
            "recvmsg" => self.recvmsg(call, place),
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
                let now = self.host.as_ref();
                let now = now.and_then(|h| self.sockets.outcome(wish, h, self.now));
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
        let number = self.new_number(call);
        self.sockets.all.insert(number, Socket::new(Role::Fresh));
        Ok(Does::Returns(Outcome::Value(number)))
    }

    /// Numbers of sockets are names: the script chooses them.
    pub(crate) fn new_number(&self, call: &Call) -> i64 {
        match call.result {
            Value::Number(n) if n >= 0 => n,
            _ => self.free_number(),
        }
    }

    pub(crate) fn free_number(&self) -> i64 {
        let sockets = &self.sockets;
        let free = |n: &i64| {
            !(sockets.all.contains_key(n)
                || sockets.epolls.contains_key(n)
                || sockets.files.contains_key(n))
        };
        (3..).find(free).unwrap_or(3)
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

    pub(crate) fn socket_of(&mut self, call: &Call, place: Place) -> Result<&mut Socket, Problem> {
        let number = self.number_of(call, place)?;
        let missing = || Problem::new(place, format!("there is no socket {number}"));
        self.sockets.all.get_mut(&number).ok_or_else(missing)
    }

    fn accept(&mut self, call: &Call, place: Place) -> Result<Does, Problem> {
        let listening = *self.socket_of(call, place)?;
        let number = self.new_number(call);
        if listening.role != Role::Listening {
            return Ok(Does::Returns(Outcome::Error("EINVAL")));
        }
        if !self.sockets.can_accept(self.host.as_ref()) {
            return Ok(match listening.nonblocking {
                true => Does::Returns(Outcome::Error("EAGAIN")),
                false => Does::Waits(Wish::Accept(number)),
            });
        }
        self.sockets.accepted = true;
        self.sockets.all.insert(number, Socket::new(Role::Connected));
        Ok(Does::Returns(Outcome::Value(number)))
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
    pub(crate) fn failure(&mut self) -> Option<&'static str> {
        let error = self.host.as_ref().and_then(|h| h.error());
        let tell = error.filter(|_| !self.sockets.told_failure);
        self.sockets.told_failure |= tell.is_some();
        tell
    }

    fn write(&mut self, call: &Call, place: Place) -> Result<Does, Problem> {
        let Some(&Value::Number(bytes)) = call.arguments.get(2) else {
            return Err(Problem::new(place, format!("{}() needs a number of bytes", call.name)));
        };
        if is_null(call) && bytes > 0 {
            self.socket_of(call, place)?;
            return Ok(Does::Returns(Outcome::Error("EFAULT")));
        }
        self.send(call, place, bytes, call.arguments.get(3))
    }

    /// Writes with the flags of a call.
    pub(crate) fn send(
        &mut self,
        call: &Call,
        place: Place,
        bytes: i64,
        flags: Option<&Value>,
    ) -> Result<Does, Problem> {
        let socket = *self.socket_of(call, place)?;
        let flags = known_flags(flags, &["MSG_MORE", "MSG_ZEROCOPY"], place)?;
        if let Some(failure) = self.failure() {
            return Ok(Does::Returns(Outcome::Error(failure)));
        }
        let Some(host) = self.host.as_mut().filter(|_| socket.role == Role::Connected) else {
            return Ok(Does::Returns(Outcome::Error("EPIPE")));
        };
        if socket.shut || host.error().is_some() {
            return Ok(Does::Returns(Outcome::Error("EPIPE")));
        }
        let written = host.written();
        let bytes =
            u64::try_from(bytes).ok().filter(|b| written.saturating_add(*b) <= MOST_WRITTEN);
        let Some(bytes) = bytes else {
            return Err(Problem::new(place, "a script may write from 0 to 1 GiB in all"));
        };
        let waits = socket.nonblocking || flags.contains(&"MSG_DONTWAIT");
        if is_opening(host.info().connection) {
            if waits {
                return Ok(Does::Returns(Outcome::Error("EAGAIN")));
            }
            return Err(Problem::new(place, "the connection is not open yet"));
        }
        let more = flags.contains(&"MSG_MORE");
        let taken = self.sockets.buffer.take(host, self.now, bytes, more);
        if flags.contains(&"MSG_ZEROCOPY") && self.sockets.notifications.on && taken > 0 {
            self.sockets.notifications.sent(written + taken);
        }
        let line = format!("write {taken}");
        self.note(self.now, '#', &line);
        Ok(match bytes - taken {
            0 => Does::Returns(Outcome::Value(bytes as i64)),
            _ if waits && taken == 0 => Does::Returns(Outcome::Error("EAGAIN")),
            _ if waits => Does::Returns(Outcome::Value(taken as i64)),
            left => Does::Waits(Wish::Room { total: bytes, left, more }),
        })
    }

    fn read(&mut self, call: &Call, place: Place) -> Result<Does, Problem> {
        let most = match call.arguments.get(2) {
            Some(Value::Number(n)) => u64::try_from(*n).unwrap_or(0),
            _ => return Err(Problem::new(place, format!("{}() needs a size", call.name))),
        };
        self.receive(call, place, most, call.arguments.get(3))
    }

    /// Reads with the flags of a call.
    pub(crate) fn receive(
        &mut self,
        call: &Call,
        place: Place,
        most: u64,
        flags: Option<&Value>,
    ) -> Result<Does, Problem> {
        let socket = *self.socket_of(call, place)?;
        let flags = known_flags(flags, &[], place)?;
        if let Some(failure) = self.failure() {
            return Ok(Does::Returns(Outcome::Error(failure)));
        }
        let Some(host) = self.host.as_ref().filter(|_| socket.role == Role::Connected) else {
            return Ok(Does::Returns(Outcome::Error("ENOTCONN")));
        };
        Ok(match self.sockets.outcome(Wish::Data(most), host, self.now) {
            Some(Outcome::Value(1..)) if is_null(call) => Does::Returns(Outcome::Error("EFAULT")),
            Some(Outcome::Value(n)) => {
                self.sockets.read += n.unsigned_abs();
                Does::Returns(Outcome::Value(n))
            }
            Some(other) => Does::Returns(other),
            None if socket.shut_for_reading => Does::Returns(Outcome::Value(0)),
            None if socket.nonblocking || flags.contains(&"MSG_DONTWAIT") => {
                Does::Returns(Outcome::Error("EAGAIN"))
            }
            None => Does::Waits(Wish::Data(most)),
        })
    }

    fn close(&mut self, call: &Call, place: Place) -> Result<Does, Problem> {
        if let Some(Value::Number(n)) = call.arguments.first()
            && (self.sockets.epolls.remove(n).is_some() || self.sockets.files.remove(n).is_some())
        {
            return Ok(Does::Returns(Outcome::Value(0)));
        }
        let number = self.number_of(call, place)?;
        let socket = self.sockets.all.remove(&number);
        if socket.is_some_and(|s| s.role == Role::Connected)
            && let Some(host) = &mut self.host
        {
            let unread = host.info().received > self.sockets.read;
            host.close(self.now, unread);
            self.note(self.now, '#', "close");
        }
        Ok(Does::Returns(Outcome::Value(0)))
    }

    fn shutdown(&mut self, call: &Call, place: Place) -> Result<Does, Problem> {
        let socket = self.socket_of(call, place)?;
        let how = match call.arguments.get(1) {
            Some(Value::Name(how)) => how.as_str(),
            _ => "",
        };
        if !["SHUT_RD", "SHUT_WR", "SHUT_RDWR"].contains(&how) {
            return Err(Problem::new(place, "shutdown() needs SHUT_RD, SHUT_WR or SHUT_RDWR"));
        }
        if socket.role != Role::Connected {
            return Ok(Does::Returns(Outcome::Error("ENOTCONN")));
        }
        socket.shut_for_reading |= how != "SHUT_WR";
        if how != "SHUT_RD" && !std::mem::replace(&mut socket.shut, true) {
            if let Some(host) = &mut self.host {
                host.finish(self.now);
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
        let info = host.info();
        let actual = match call.arguments.get(1) {
            Some(Value::Name(what)) if what == "SIOCINQ" => info.received - self.sockets.read,
            Some(Value::Name(what)) if what == "SIOCOUTQ" => host.written() - info.acknowledged,
            Some(Value::Name(what)) if what == "SIOCOUTQNSD" => host.unsent(),
            _ => {
                let message = "of ioctl() only SIOCINQ, SIOCOUTQ and SIOCOUTQNSD are understood";
                return Err(Problem::new(place, message));
            }
        };
        told(call.arguments.get(2), actual as i64, place)?;
        Ok(Does::Returns(Outcome::Value(0)))
    }
}

/// What a call has put into `[n]`.
pub(crate) fn told(argument: Option<&Value>, actual: i64, place: Place) -> Result<(), Problem> {
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

/// The names in `A | B`.
pub(crate) fn names(value: &Value) -> Vec<&str> {
    match value {
        Value::Name(n) => vec![n],
        Value::Either(all) => all.iter().flat_map(names).collect(),
        _ => Vec::new(),
    }
}

/// The flags of a send or receive: those that every call knows, and `others`.
pub(crate) fn known_flags<'a>(
    flags: Option<&'a Value>,
    others: &[&str],
    place: Place,
) -> Result<Vec<&'a str>, Problem> {
    let all = flags.map_or_else(Vec::new, names);
    let plain = ["MSG_DONTWAIT", "MSG_NOSIGNAL"];
    match all.iter().find(|n| !plain.contains(n) && !others.contains(n)) {
        Some(other) => Err(Problem::new(place, format!("the flag {other} is not simulated"))),
        None => Ok(all),
    }
}

/// Whether the buffer of a call lies nowhere.
fn is_null(call: &Call) -> bool {
    matches!(call.arguments.get(1), Some(Value::Name(name)) if name == "NULL")
}

fn is_syn_ack(p: &Packet) -> bool {
    p.flags & (flag::SYN | flag::ACK) == flag::SYN | flag::ACK
}
