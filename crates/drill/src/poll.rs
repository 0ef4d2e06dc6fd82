//! The system calls `poll`, `epoll_create`, `epoll_ctl` and `epoll_wait`.

use crate::epoll::{self, Epoll, Watch};
use crate::problem::Problem;
use crate::script::{Call, Value};
use crate::sockets::{Outcome, Wish};
use crate::system::{Answer, Does, System, error, value};
use eastwest_types::{Span, Time};

/// Returns the latest time at which a call that waits `milliseconds` from now for events returns;
/// [`Time::NEVER`] if the number is negative or missing.
fn until(system: &System, milliseconds: Option<i64>) -> Time {
    match milliseconds.map(u64::try_from) {
        Some(Ok(n)) => system.now + Span::from_ms(n.min(86_400_000)),
        _ => Time::NEVER,
    }
}

fn wait_for(system: &System, watch: Watch) -> Does {
    match system.sockets.events(watch, system.host.as_ref()) {
        0 if watch.until <= system.now => Does::Returns(Outcome::Value(0)),
        0 => Does::Waits(Wish::Events(watch)),
        events => Does::Returns(Outcome::Events(events, watch.expected)),
    }
}

/// Returns the bit mask of the events that the script names in the member `member` of the structure
/// `value`; `None` if there is no such member.
fn events_in(call: &Call, value: Option<&Value>, member: &str) -> Result<Option<u32>, Problem> {
    let events = value.and_then(|v| v.member(member));
    events.map(|e| epoll::read(e, call.place)).transpose()
}

/// Executes poll() for a single socket.
pub fn poll(system: &mut System, call: &Call) -> Answer {
    let one = match call.argument(0) {
        Some(Value::List(all)) if all.len() == 1 => &all[0],
        _ => return call.fail("poll() is simulated only for a list of exactly one socket"),
    };
    let Some((number, asked)) = one.member("fd").and_then(Value::number).zip(one.member("events"))
    else {
        return call.fail(
            "the first argument of poll() must be a list with a structure {fd=…, events=…, \
             revents=…}",
        );
    };
    let asked = epoll::read(asked, call.place)?;
    let expected = events_in(call, Some(one), "revents")?;
    let until = until(system, call.number(2));
    Ok(wait_for(system, Watch { number, set: false, asked, expected, until }))
}

/// Executes epoll_create(): creates an epoll set and returns its file descriptor.
pub fn epoll_create(system: &mut System, call: &Call) -> Answer {
    let number = system.new_number(call);
    system.sockets.epolls.insert(number, Epoll::default());
    value(number)
}

/// Executes epoll_ctl(): adds, changes or removes a socket of an epoll set.
pub fn epoll_ctl(system: &mut System, call: &Call) -> Answer {
    let set = call.number(0).unwrap_or(-1);
    let Some((what, socket)) = call.constant(1).zip(call.number(2)) else {
        return call
            .fail("epoll_ctl() needs a descriptor of epoll_create(), an operation and a socket");
    };
    if !system.sockets.all.contains_key(&socket) {
        return call.fail(format!("no open socket of the script has the number {socket}"));
    }
    let asked = events_in(call, call.argument(3), "events")?;
    let seen = system.host.as_ref().map(|h| system.sockets.seen(h)).unwrap_or_default();
    let Some(epoll) = system.sockets.epolls.get_mut(&set) else {
        return call.fail(format!("no epoll_create() of the script has returned the number {set}"));
    };
    match (what, epoll.contains(socket), asked) {
        ("EPOLL_CTL_ADD", true, _) => return error("EEXIST"),
        ("EPOLL_CTL_MOD" | "EPOLL_CTL_DEL", false, _) => return error("ENOENT"),
        ("EPOLL_CTL_ADD" | "EPOLL_CTL_MOD", _, Some(asked)) => epoll.watch(socket, asked, seen),
        ("EPOLL_CTL_DEL", true, _) => epoll.forget(socket),
        _ => {
            return call.fail(
                "the operation of epoll_ctl() must be EPOLL_CTL_ADD or EPOLL_CTL_MOD, with \
                 events, or EPOLL_CTL_DEL",
            );
        }
    }
    value(0)
}

/// Executes epoll_wait(): waits for events of the sockets of an epoll set.
pub fn epoll_wait(system: &mut System, call: &Call) -> Answer {
    let number = call.number(0).unwrap_or(-1);
    let expected = events_in(call, call.argument(1), "events")?;
    if !system.sockets.epolls.contains_key(&number) {
        return call
            .fail(format!("no epoll_create() of the script has returned the number {number}"));
    }
    let until = until(system, call.number(3));
    let does = wait_for(system, Watch { number, set: true, asked: 0, expected, until });
    if matches!(does, Does::Returns(Outcome::Events(..))) {
        system.sockets.note_told(number, system.host.as_ref());
    }
    Ok(does)
}
