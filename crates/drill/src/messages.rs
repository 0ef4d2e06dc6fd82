//! `sendmsg` and `recvmsg`: several buffers in one call, the number of bytes left to read
//! (`TCP_INQ`), and notifications of `MSG_ZEROCOPY` from the error queue. Other ancillary data
//! fails the script.

use crate::problem::Problem;
use crate::script::{Call, Value};
use crate::sockets::Outcome;
use crate::system::{Answer, Does, System, error, value};
use crate::transfer::{known_flags, receive, send};

/// Message of a sendmsg() or recvmsg() call: sum of the bytes of its buffers, and ancillary data.
struct Message<'a> {
    bytes: i64,
    control: &'a [Value],
}

/// Parses the message header, which is the second argument of a sendmsg() or recvmsg() call.
fn message(call: &Call) -> Result<Message<'_>, Problem> {
    let problem = || {
        Problem::new(
            call.place,
            format!(
                "the second argument of {}() must be a message header such as \
                 {{msg_iov(1)=[{{..., 1000}}], msg_flags=0}}",
                call.name
            ),
        )
    };
    let header = call.argument(1).ok_or_else(problem)?;
    let Some(Value::List(buffers)) = header.member("msg_iov") else { return Err(problem()) };
    let mut bytes = 0_i64;
    for buffer in buffers {
        let Value::Group(parts) = buffer else { return Err(problem()) };
        match parts[..] {
            [_, (None, Value::Number(n))] if n >= 0 => bytes = bytes.saturating_add(n),
            _ => return Err(problem()),
        }
    }
    let control = match header.member("msg_control") {
        Some(Value::List(all)) => &all[..],
        None => &[],
        _ => return Err(problem()),
    };
    Ok(Message { bytes, control })
}

/// Compares the value that the script expects in the field `name` of the ancillary data with its
/// actual value. `found` is the expected value, `None` if the script omits the field.
fn compare(call: &Call, name: &str, found: Option<&Value>, actual: &Value) -> Result<(), Problem> {
    if found.is_some_and(|expected| expected == actual || *expected == Value::Any) {
        return Ok(());
    }
    let write = |v: &Value| match v {
        Value::Number(n) => n.to_string(),
        Value::Name(name) => name.clone(),
        _ => "a value of another type".into(),
    };
    let expected = found.map_or_else(|| "absent (the script omits it)".into(), write);
    call.fail(format!("{name} is {}, not {expected}", write(actual)))
}

/// Compares the socket level and the type (such as `SOL_TCP` and `TCP_CM_INQ`) of the ancillary
/// data that the script expects with the actual ones. Returns the expected value `cmsg_data`.
fn compare_control<'a>(
    call: &Call,
    control: &'a [Value],
    (level, kind): (&str, &str),
) -> Result<&'a Value, Problem> {
    let [one @ Value::Group(_)] = control else {
        return call.fail(format!(
            "the call returns one control message ({kind}), but msg_control expects {}",
            control.len()
        ));
    };
    for (name, actual) in [("cmsg_level", level), ("cmsg_type", kind)] {
        compare(call, name, one.member(name), &Value::Name(actual.into()))?;
    }
    one.member("cmsg_data").ok_or_else(|| {
        Problem::new(call.place, "the control message in msg_control needs a value cmsg_data")
    })
}

/// Executes sendmsg(): writes the bytes of all buffers to the connection.
pub fn sendmsg(system: &mut System, call: &Call) -> Answer {
    let message = message(call)?;
    if !message.control.is_empty() {
        return call.fail("ancillary data (msg_control) of sendmsg() is not simulated: remove it");
    }
    send(system, call, message.bytes, call.argument(2))
}

/// Executes recvmsg(): reads into all buffers, or with `MSG_ERRQUEUE` removes a notification of
/// `MSG_ZEROCOPY` from the error queue.
pub fn recvmsg(system: &mut System, call: &Call) -> Answer {
    let message = message(call)?;
    let flags = call.argument(2);
    if flags.is_some_and(|f| f.names().contains(&"MSG_ERRQUEUE")) {
        known_flags(call, flags, &["MSG_ERRQUEUE"])?;
        return notification(system, call, message.control);
    }
    let most = u64::try_from(message.bytes).unwrap_or(0);
    let does = receive(system, call, most, flags)?;
    match does {
        Does::Returns(Outcome::Value(_)) if system.sockets.tells_rest => {
            let told = compare_control(call, message.control, ("SOL_TCP", "TCP_CM_INQ"))?;
            compare(call, "cmsg_data", Some(told), &Value::Number(rest(system)))?;
        }
        _ if !message.control.is_empty() => {
            return call.fail(
                "this recvmsg() returns no ancillary data, but the script expects some in \
                 msg_control",
            );
        }
        _ => {}
    }
    Ok(does)
}

/// Returns the number of bytes that have arrived and that the application has not read; 1 if only
/// the end of the stream is left to read (Linux, `tcp_inq_hint`).
fn rest(system: &System) -> i64 {
    let Some(host) = &system.host else { return 0 };
    let info = host.info();
    let rest = (info.received - system.sockets.read) as i64;
    if rest == 0 { i64::from(info.connection.is_over()) } else { rest }
}

/// Removes the oldest notification of `MSG_ZEROCOPY` from the error queue, and compares it with the
/// one that the script expects in the ancillary data `control`. The call returns `EAGAIN` if the
/// queue is empty.
fn notification(system: &mut System, call: &Call, control: &[Value]) -> Answer {
    system.socket_of(call)?;
    let Some((first, last)) = system.sockets.notifications.take() else { return error("EAGAIN") };
    let data = compare_control(call, control, ("CMSG_LEVEL_IP", "CMSG_TYPE_RECVERR"))?;
    if !matches!(data, Value::Group(_)) {
        return call.fail(
            "cmsg_data must be a structure such as {ee_errno=0, ee_origin=SO_EE_ORIGIN_ZEROCOPY, \
             ee_type=0, …}",
        );
    }
    let name = |n: &str| Value::Name(n.into());
    for (member, actual) in [
        ("ee_errno", Value::Number(0)),
        ("ee_origin", name("SO_EE_ORIGIN_ZEROCOPY")),
        ("ee_type", Value::Number(0)),
        ("ee_code", name("SO_EE_CODE_ZEROCOPY_COPIED")),
        ("ee_info", Value::Number(i64::from(first))),
        ("ee_data", Value::Number(i64::from(last))),
    ] {
        compare(call, member, data.member(member), &actual)?;
    }
    value(0)
}
