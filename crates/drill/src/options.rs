//! Socket options. Options that concern the connection or its buffer are set. Options without
//! meaning for the simulation are accepted without effect. All others fail the script.

use crate::problem::{Problem, hint};
use crate::script::{Call, Value};
use crate::system::{Answer, System, error, value};
use eastwest_types::Span;

/// Socket options that are accepted and have no effect on a simulated endpoint.
const NO_MATTER: [&str; 8] = [
    "SO_REUSEADDR",
    "SO_REUSEPORT",
    "SO_RCVTIMEO",
    "SO_SNDTIMEO",
    "IP_TOS",
    "IP_MTU_DISCOVER",
    "SO_MARK",
    "SO_PRIORITY",
];
/// Socket options that may be set before and after the connection opens.
const ANY_TIME: [&str; 7] = [
    "SO_SNDBUF",
    "SO_ZEROCOPY",
    "TCP_CORK",
    "TCP_INQ",
    "TCP_NODELAY",
    "TCP_NOTSENT_LOWAT",
    "TCP_USER_TIMEOUT",
];
/// Socket options that must be set before the connection opens.
const BEFORE: [&str; 3] = ["TCP_CONGESTION", "TCP_MAXSEG", "TCP_SYNCNT"];
/// Socket options that getsockopt() supports.
const ASKED: [&str; 4] = ["SO_ERROR", "SO_SNDBUF", "TCP_MAXSEG", "TCP_NOTSENT_LOWAT"];
/// Protocol levels that setsockopt() and getsockopt() accept as second argument.
const LEVELS: [&str; 5] = ["SOL_SOCKET", "SOL_TCP", "IPPROTO_TCP", "SOL_IP", "IPPROTO_IP"];
/// Smallest and largest send buffer that an application can set, in bytes (Linux, `SOCK_MIN_SNDBUF`
/// and the default of `net.core.wmem_max`); the kernel doubles it.
const SEND_BUFFER: (i64, i64) = (2_304, 212_992);
/// Errors of a connection with their numbers in Linux.
const ERRORS: [(&str, i64); 4] =
    [("EPIPE", 32), ("ECONNRESET", 104), ("ETIMEDOUT", 110), ("ECONNREFUSED", 111)];

/// Executes setsockopt(): sets an option of a socket.
pub fn setsockopt(system: &mut System, call: &Call) -> Answer {
    system.socket_of(call)?;
    let name = option_name(call)?;
    if NO_MATTER.contains(&name) {
        return value(0);
    }
    let given = call.first_of(3);
    if ANY_TIME.contains(&name) {
        let set = given.and_then(Value::number).is_some_and(|n| set_any_time(system, name, n));
        return if set { value(0) } else { error("EINVAL") };
    }
    if !BEFORE.contains(&name) {
        let near = hint(name, NO_MATTER.into_iter().chain(ANY_TIME).chain(BEFORE));
        return call.fail(format!("the socket option {name} is not simulated{near}"));
    }
    if system.host.is_some() {
        return call.fail(format!("{name} must be set before the connection opens"));
    }
    let setup = &mut system.setup;
    match (name, given) {
        ("TCP_CONGESTION", Some(Value::Text(kind))) => {
            setup.set_congestion(kind).map_err(|message| Problem::new(call.place, message))?;
        }
        ("TCP_MAXSEG", Some(Value::Number(n @ 88..=32_767))) => setup.mss = *n as u16,
        ("TCP_SYNCNT", Some(Value::Number(n @ 1..=127))) => setup.syn_retries.0 = *n as u32,
        _ => return error("EINVAL"),
    }
    value(0)
}

/// Sets a socket option that may be set before and after the connection opens. Returns whether the
/// value `n` is valid.
fn set_any_time(system: &mut System, name: &str, n: i64) -> bool {
    let (now, on) = (system.now, n != 0);
    match name {
        "SO_SNDBUF" => {
            let size = 2 * n.clamp(SEND_BUFFER.0, SEND_BUFFER.1);
            system.sockets.buffer.size = Some(size.unsigned_abs());
        }
        "SO_ZEROCOPY" => system.sockets.notifications.on = on,
        "TCP_INQ" => system.sockets.tells_rest = on,
        "TCP_NOTSENT_LOWAT" => system.sockets.buffer.socket_lowat = n as u32,
        "TCP_USER_TIMEOUT" => {
            let Ok(ms) = u64::try_from(n) else { return false };
            system.setup.user_timeout = (ms > 0).then(|| Span::from_ms(ms.min(86_400_000)));
            if let Some(host) = &mut system.host {
                host.set_user_timeout(system.setup.user_timeout);
            }
        }
        "TCP_CORK" => match &mut system.host {
            Some(host) => host.set_cork(now, on),
            None => system.setup.cork = on,
        },
        "TCP_NODELAY" => match &mut system.host {
            Some(host) => host.set_nagle(now, !on),
            None => system.setup.config.nagle = !on,
        },
        _ => return false,
    }
    true
}

/// Executes getsockopt(): compares the value of a socket option with the expected one.
pub fn getsockopt(system: &mut System, call: &Call) -> Answer {
    system.socket_of(call)?;
    let actual = match option_name(call)? {
        "SO_ERROR" => {
            let error = system.failure();
            ERRORS.iter().find(|e| Some(e.0) == error).map_or(0, |e| e.1)
        }
        "SO_SNDBUF" => match system.sockets.buffer.size {
            Some(size) => size as i64,
            None => {
                return call.fail(
                    "SO_SNDBUF can be read only after it was set: the send buffer of the \
                     simulation has no limit by default",
                );
            }
        },
        "TCP_MAXSEG" => match &system.host {
            Some(host) => i64::from(host.stack().config().segment),
            None => i64::from(system.setup.mss),
        },
        "TCP_NOTSENT_LOWAT" => i64::from(system.sockets.buffer.socket_lowat),
        other => {
            let near = hint(other, ASKED);
            return call
                .fail(format!("the socket option {other} cannot be read in the simulation{near}"));
        }
    };
    call.compare_filled(3, actual)?;
    value(0)
}

fn option_name(call: &Call) -> Result<&str, Problem> {
    match (call.constant(1), call.constant(2)) {
        (Some(level), Some(name)) if LEVELS.contains(&level) => Ok(name),
        _ => call.fail(format!(
            "{}() needs a socket, a level such as SOL_TCP and an option such as TCP_NODELAY",
            call.name
        )),
    }
}
