//! `sendmsg` and `recvmsg`: several buffers in one call, how much is left to read (`TCP_INQ`), and the
//! notifications of `MSG_ZEROCOPY` from the error queue. Other ancillary data fails the script.

use crate::calls::{Does, known_flags, names};
use crate::problem::{Place, Problem};
use crate::run::Player;
use crate::script::{Call, Value};
use crate::sockets::{Outcome, is_over};

type Members = [(Option<String>, Value)];

/// The message of a call: its bytes in all buffers, and its ancillary data.
struct Message<'a> {
    bytes: i64,
    control: &'a [Value],
}

fn member<'a>(members: &'a Members, name: &str) -> Option<&'a Value> {
    members.iter().find(|m| m.0.as_deref() == Some(name)).map(|m| &m.1)
}

/// The message header that is the second argument of a call.
fn message(call: &Call, place: Place) -> Result<Message<'_>, Problem> {
    let problem = || Problem::new(place, format!("{}() needs {{msg_iov(…)=[…], …}}", call.name));
    let Some(Value::Group(members)) = call.arguments.get(1) else { return Err(problem()) };
    let Some(Value::List(buffers)) = member(members, "msg_iov") else { return Err(problem()) };
    let mut bytes = 0_i64;
    for buffer in buffers {
        match buffer {
            Value::Group(parts) => match parts[..] {
                [_, (None, Value::Number(n))] if n >= 0 => bytes = bytes.saturating_add(n),
                _ => return Err(problem()),
            },
            _ => return Err(problem()),
        }
    }
    let control = match member(members, "msg_control") {
        Some(Value::List(all)) => &all[..],
        None => &[],
        _ => return Err(problem()),
    };
    Ok(Message { bytes, control })
}

/// Compares a member of the ancillary data with what it is.
fn compare(members: &Members, name: &str, actual: &Value, place: Place) -> Result<(), Problem> {
    match member(members, name) {
        Some(expected) if expected == actual || *expected == Value::Any => Ok(()),
        found => {
            let write = |v: &Value| match v {
                Value::Number(n) => n.to_string(),
                Value::Name(name) => name.clone(),
                _ => "something else".into(),
            };
            let expected = found.map_or_else(|| "left out".into(), write);
            let message = format!("{name} is {}, not {expected}", write(actual));
            Err(Problem::new(place, message))
        }
    }
}

/// Compares the ancillary data of a message with the one that there is: its level, its type and its data.
fn compare_control<'a>(
    control: &'a [Value],
    (level, kind): (&str, &str),
    place: Place,
) -> Result<&'a Value, Problem> {
    let [Value::Group(members)] = control else {
        let message = format!("msg_control holds one {kind}, not {} messages", control.len());
        return Err(Problem::new(place, message));
    };
    compare(members, "cmsg_level", &Value::Name(level.into()), place)?;
    compare(members, "cmsg_type", &Value::Name(kind.into()), place)?;
    member(members, "cmsg_data").ok_or_else(|| Problem::new(place, "cmsg_data is missing"))
}

impl Player<'_> {
    pub(crate) fn sendmsg(&mut self, call: &Call, place: Place) -> Result<Does, Problem> {
        let message = message(call, place)?;
        if !message.control.is_empty() {
            return Err(Problem::new(place, "ancillary data of sendmsg() is not simulated"));
        }
        self.send(call, place, message.bytes, call.arguments.get(2))
    }

    pub(crate) fn recvmsg(&mut self, call: &Call, place: Place) -> Result<Does, Problem> {
        let message = message(call, place)?;
        let flags = call.arguments.get(2);
        if flags.is_some_and(|f| names(f).contains(&"MSG_ERRQUEUE")) {
            known_flags(flags, &["MSG_ERRQUEUE"], place)?;
            return self.notification(call, message.control, place);
        }
        let most = u64::try_from(message.bytes).unwrap_or(0);
        let does = self.receive(call, place, most, flags)?;
        match does {
            Does::Returns(Outcome::Value(_)) if self.sockets.tells_rest => {
                let told = compare_control(message.control, ("SOL_TCP", "TCP_CM_INQ"), place)?;
                let rest = Value::Number(self.rest());
                compare(&[(Some("cmsg_data".into()), told.clone())], "cmsg_data", &rest, place)?;
            }
            _ if !message.control.is_empty() => {
                return Err(Problem::new(place, "this recvmsg() gets no ancillary data"));
            }
            _ => {}
        }
        Ok(does)
    }

    /// Bytes that are left to read; 1 where only the end is (Linux, `tcp_inq_hint`).
    fn rest(&self) -> i64 {
        let Some(host) = &self.host else { return 0 };
        let info = host.info();
        let rest = (info.received - self.sockets.read) as i64;
        if rest == 0 { i64::from(is_over(info.connection)) } else { rest }
    }

    /// Reads the error queue.
    fn notification(
        &mut self,
        call: &Call,
        control: &[Value],
        place: Place,
    ) -> Result<Does, Problem> {
        self.socket_of(call, place)?;
        let Some((first, last)) = self.sockets.notifications.take() else {
            return Ok(Does::Returns(Outcome::Error("EAGAIN")));
        };
        let data = compare_control(control, ("CMSG_LEVEL_IP", "CMSG_TYPE_RECVERR"), place)?;
        let Value::Group(members) = data else {
            return Err(Problem::new(place, "cmsg_data needs {ee_errno=…, ee_origin=…, …}"));
        };
        let name = |n: &str| Value::Name(n.into());
        for (member, actual) in [
            ("ee_errno", Value::Number(0)),
            ("ee_origin", name("SO_EE_ORIGIN_ZEROCOPY")),
            ("ee_type", Value::Number(0)),
            ("ee_code", name("SO_EE_CODE_ZEROCOPY_COPIED")),
            ("ee_info", Value::Number(i64::from(first))),
            ("ee_data", Value::Number(i64::from(last))),
        ] {
            compare(members, member, &actual, place)?;
        }
        Ok(Does::Returns(Outcome::Value(0)))
    }
}
