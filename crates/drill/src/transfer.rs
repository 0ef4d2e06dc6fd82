//! System calls that read and write, and their flags.
//!
//! The simulated endpoint receives without limit: its window does not close when a script has not
//! read, and `read` only counts bytes. Writes are accepted completely unless the script limits the
//! send [buffer](crate::buffer).

use crate::problem::Problem;
use crate::script::{Call, Value};
use crate::sockets::{Outcome, Role, Wish};
use crate::system::{Answer, Does, System, error, value, waits};

/// Maximum number of bytes that a script may write in total. It is half of 2³¹, the range in which
/// 32-bit sequence numbers can be compared.
const MOST_WRITTEN: u64 = 1 << 30;

/// Executes write(), send() or sendto(): writes one buffer to a socket.
pub fn write(system: &mut System, call: &Call) -> Answer {
    let Some(bytes) = call.number(2) else {
        return call
            .fail(format!("the third argument of {}() must be a number of bytes", call.name));
    };
    if is_null(call) && bytes > 0 {
        system.socket_of(call)?;
        return error("EFAULT");
    }
    send(system, call, bytes, call.argument(3))
}

/// Writes `bytes` bytes to the socket of a system call, with its `flags` (`MSG_MORE`,
/// `MSG_ZEROCOPY`, `MSG_DONTWAIT`).
pub fn send(system: &mut System, call: &Call, bytes: i64, flags: Option<&Value>) -> Answer {
    let socket = *system.socket_of(call)?;
    let flags = known_flags(call, flags, &["MSG_MORE", "MSG_ZEROCOPY"])?;
    if let Some(failure) = system.failure() {
        return error(failure);
    }
    let host = system.host.as_mut().filter(|_| socket.role == Role::Connected && !socket.shut);
    let Some(host) = host.filter(|h| h.error().is_none()) else { return error("EPIPE") };
    let written = host.written();
    let bytes = u64::try_from(bytes).ok().filter(|b| written.saturating_add(*b) <= MOST_WRITTEN);
    let Some(bytes) = bytes else {
        return call.fail(
            "the number of bytes must not be negative, and a script can write at most 1 GiB in \
             total",
        );
    };
    let returns = socket.nonblocking || flags.contains(&"MSG_DONTWAIT");
    if host.info().connection.is_opening() {
        if returns {
            return error("EAGAIN");
        }
        return call.fail("a blocking write before the connection is open is not simulated");
    }
    let more = flags.contains(&"MSG_MORE");
    let taken = system.sockets.buffer.take(host, system.now, bytes, more);
    if flags.contains(&"MSG_ZEROCOPY") && system.sockets.notifications.on && taken > 0 {
        system.sockets.notifications.sent(written + taken);
    }
    system.note(system.now, '#', &format!("write {taken}"));
    match bytes - taken {
        0 => value(bytes as i64),
        _ if returns && taken == 0 => error("EAGAIN"),
        _ if returns => value(taken as i64),
        left => waits(Wish::Room { total: bytes, left, more }),
    }
}

/// Executes read(), readv(), recv() or recvfrom(): reads from a socket into one buffer.
pub fn read(system: &mut System, call: &Call) -> Answer {
    let Some(most) = call.number(2) else {
        return call
            .fail(format!("the third argument of {}() must be the size of the buffer", call.name));
    };
    receive(system, call, u64::try_from(most).unwrap_or(0), call.argument(3))
}

/// Reads at most `most` bytes from the socket of a system call, with its `flags` (`MSG_DONTWAIT`).
pub fn receive(system: &mut System, call: &Call, most: u64, flags: Option<&Value>) -> Answer {
    let socket = *system.socket_of(call)?;
    let flags = known_flags(call, flags, &[])?;
    if let Some(failure) = system.failure() {
        return error(failure);
    }
    let Some(host) = system.host.as_ref().filter(|_| socket.role == Role::Connected) else {
        return error("ENOTCONN");
    };
    match system.sockets.outcome(Wish::Data(most), host, system.now) {
        Some(Outcome::Value(1..)) if is_null(call) => error("EFAULT"),
        Some(Outcome::Value(n)) => {
            system.sockets.read += n.unsigned_abs();
            value(n)
        }
        Some(other) => Ok(Does::Returns(other)),
        None if socket.shut_for_reading => value(0),
        None if socket.nonblocking || flags.contains(&"MSG_DONTWAIT") => error("EAGAIN"),
        None => waits(Wish::Data(most)),
    }
}

/// Returns the names of the flags of a send or receive call. Flags other than `MSG_DONTWAIT`,
/// `MSG_NOSIGNAL` and those in `others` are an error.
pub fn known_flags<'a>(
    call: &Call,
    flags: Option<&'a Value>,
    others: &[&str],
) -> Result<Vec<&'a str>, Problem> {
    let all = flags.map_or_else(Vec::new, Value::names);
    let plain = ["MSG_DONTWAIT", "MSG_NOSIGNAL"];
    match all.iter().find(|n| !plain.contains(n) && !others.contains(n)) {
        Some(other) => {
            call.fail(format!("the send or receive flag {other} is not simulated for this call"))
        }
        None => Ok(all),
    }
}

/// Whether the second argument of a call, its buffer, is NULL.
fn is_null(call: &Call) -> bool {
    call.constant(1) == Some("NULL")
}
