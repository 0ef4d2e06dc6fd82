//! System calls of a script. Calls that concern the connection are executed. Calls without meaning
//! for the simulation only return the value that a real host would return. All others fail the
//! script.

use crate::files::{open, sendfile};
use crate::messages::{recvmsg, sendmsg};
use crate::options::{getsockopt, setsockopt};
use crate::poll::{epoll_create, epoll_ctl, epoll_wait, poll};
use crate::problem::Problem;
use crate::script::Call;
use crate::sockets::{Role, Socket, Wish};
use crate::system::{Answer, Does, System, error, value, waits};
use crate::transfer::{read, write};
use eastwest_types::{Span, Time};

/// Function that executes a system call and returns its result.
type CarryOut = fn(&mut System, &Call) -> Answer;

/// Names of the supported system calls, each with the function that executes it.
pub const CALLS: [(&str, CarryOut); 26] = [
    ("accept", accept),
    ("bind", bind),
    ("close", close),
    ("connect", connect),
    ("epoll_create", epoll_create),
    ("epoll_ctl", epoll_ctl),
    ("epoll_wait", epoll_wait),
    ("fcntl", fcntl),
    ("getsockopt", getsockopt),
    ("ioctl", ioctl),
    ("listen", listen),
    ("open", open),
    ("poll", poll),
    ("read", read),
    ("readv", read),
    ("recv", read),
    ("recvfrom", read),
    ("recvmsg", recvmsg),
    ("send", write),
    ("sendfile", sendfile),
    ("sendmsg", sendmsg),
    ("sendto", write),
    ("setsockopt", setsockopt),
    ("shutdown", shutdown),
    ("socket", socket),
    ("write", write),
];

/// Executes a system call of the script and compares its result with the expected one. `returns`:
/// expected time of return (± `tolerance`) of a blocking call; `None` if the call must not block.
pub fn carry_out(
    system: &mut System,
    call: &Call,
    returns: Option<Time>,
    tolerance: Span,
) -> Result<(), Problem> {
    if system.sockets.is_blocked() {
        return call.fail(
            "this system call begins while the previous one still blocks, but a script has only \
             one thread",
        );
    }
    let Some((name, run)) = CALLS.iter().find(|known| known.0 == call.name) else {
        return call.fail(format!("the system call '{}' is not simulated", call.name));
    };
    match (run(system, call)?, returns) {
        (Does::Returns(outcome), _) => outcome.check(call),
        (Does::Waits(wish), Some(due)) => {
            system.sockets.block(call, wish, due, tolerance);
            Ok(())
        }
        (Does::Waits(wish), None) => {
            let host = system.host.as_ref();
            match host.and_then(|h| system.sockets.outcome(wish, h, system.now)) {
                Some(outcome) => outcome.check(call),
                None => call.fail(format!(
                    "the script expects {name}() to return at once, but the call blocks; give \
                     the time of its return after '...'"
                )),
            }
        }
    }
}

fn bind(system: &mut System, call: &Call) -> Answer {
    system.socket_of(call)?;
    value(0)
}

fn listen(system: &mut System, call: &Call) -> Answer {
    system.socket_of(call)?.role = Role::Listening;
    value(0)
}

fn socket(system: &mut System, call: &Call) -> Answer {
    let number = system.new_number(call);
    system.sockets.all.insert(number, Socket::new(Role::Fresh));
    value(number)
}

fn accept(system: &mut System, call: &Call) -> Answer {
    let listening = *system.socket_of(call)?;
    let number = system.new_number(call);
    if listening.role != Role::Listening {
        return error("EINVAL");
    }
    if !system.sockets.can_accept(system.host.as_ref()) {
        return match listening.nonblocking {
            true => error("EAGAIN"),
            false => waits(Wish::Accept(number)),
        };
    }
    system.sockets.accept(number);
    value(number)
}

fn connect(system: &mut System, call: &Call) -> Answer {
    if system.host.is_some() {
        return call
            .fail("this call would open a second connection, but a script can have only one");
    }
    let socket = system.socket_of(call)?;
    socket.role = Role::Connected;
    let nonblocking = socket.nonblocking;
    system.sockets.accepted = true;
    let answer = system.syn_ack.take();
    if !system.open(answer.as_ref(), true) {
        return call.fail(
            "the connection cannot be opened: TCP refuses the SYN or the SYN-ACK of the script",
        );
    }
    match nonblocking {
        true => error("EINPROGRESS"),
        false => waits(Wish::Connection),
    }
}

fn close(system: &mut System, call: &Call) -> Answer {
    let sockets = &mut system.sockets;
    if let Some(n) = call.number(0)
        && (sockets.epolls.remove(&n).is_some() || sockets.files.remove(&n).is_some())
    {
        return value(0);
    }
    let number = system.number_of(call)?;
    let socket = system.sockets.all.remove(&number);
    if socket.is_some_and(|s| s.role == Role::Connected)
        && let Some(host) = &mut system.host
    {
        let unread = host.info().received > system.sockets.read;
        host.close(system.now, unread);
        system.note(system.now, '#', "close");
    }
    value(0)
}

fn shutdown(system: &mut System, call: &Call) -> Answer {
    let socket = system.socket_of(call)?;
    let Some(how @ ("SHUT_RD" | "SHUT_WR" | "SHUT_RDWR")) = call.constant(1) else {
        return call
            .fail("the second argument of shutdown() must be SHUT_RD, SHUT_WR or SHUT_RDWR");
    };
    if socket.role != Role::Connected {
        return error("ENOTCONN");
    }
    socket.shut_for_reading |= how != "SHUT_WR";
    if how != "SHUT_RD" && !std::mem::replace(&mut socket.shut, true) {
        if let Some(host) = &mut system.host {
            host.finish(system.now);
        }
        system.note(system.now, '#', "shutdown");
    }
    value(0)
}

fn fcntl(system: &mut System, call: &Call) -> Answer {
    let socket = system.socket_of(call)?;
    match (call.constant(1), call.argument(2)) {
        // Linux: 0x2 is O_RDWR, and 0x800 is O_NONBLOCK.
        (Some("F_GETFL"), None) => value(0x2 | if socket.nonblocking { 0x800 } else { 0 }),
        (Some("F_SETFL"), Some(flags)) => {
            socket.nonblocking = flags.names().contains(&"O_NONBLOCK");
            value(0)
        }
        _ => call.fail(
            "this fcntl() is not simulated; supported are fcntl(socket, F_GETFL) and \
             fcntl(socket, F_SETFL, flags)",
        ),
    }
}

fn ioctl(system: &mut System, call: &Call) -> Answer {
    system.socket_of(call)?;
    let Some(host) = &system.host else { return error("ENOTCONN") };
    let info = host.info();
    let actual = match call.constant(1) {
        Some("SIOCINQ") => info.received - system.sockets.read,
        Some("SIOCOUTQ") => host.written() - info.acknowledged,
        Some("SIOCOUTQNSD") => host.unsent(),
        _ => {
            return call.fail(
                "this ioctl() is not simulated; supported are the requests SIOCINQ, SIOCOUTQ and \
                 SIOCOUTQNSD",
            );
        }
    };
    call.compare_filled(2, actual as i64)?;
    value(0)
}
