//! Socket options: those that change the connection or its buffer do so, those that only matter to a real
//! host are accepted, all others fail the script.

use crate::calls::{Does, told};
use crate::problem::{Place, Problem, hint};
use crate::run::Player;
use crate::script::{Call, Value};
use crate::sockets::Outcome;
use eastwest_types::Span;

/// Options that make no difference to a simulated endpoint.
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
/// Options that may be set at any time.
const ANY_TIME: [&str; 7] = [
    "SO_SNDBUF",
    "SO_ZEROCOPY",
    "TCP_CORK",
    "TCP_INQ",
    "TCP_NODELAY",
    "TCP_NOTSENT_LOWAT",
    "TCP_USER_TIMEOUT",
];
/// Options that must be set before the connection opens.
const BEFORE: [&str; 3] = ["TCP_CONGESTION", "TCP_MAXSEG", "TCP_SYNCNT"];
/// Options that can be asked.
const ASKED: [&str; 4] = ["SO_ERROR", "SO_SNDBUF", "TCP_MAXSEG", "TCP_NOTSENT_LOWAT"];
const LEVELS: [&str; 5] = ["SOL_SOCKET", "SOL_TCP", "IPPROTO_TCP", "SOL_IP", "IPPROTO_IP"];
/// Least and largest send buffer that an application can ask for, bytes (Linux, `SOCK_MIN_SNDBUF` and
/// the default of `net.core.wmem_max`); the kernel doubles it.
const SEND_BUFFER: (i64, i64) = (2_304, 212_992);
/// Errors of a connection with the numbers of Linux.
const ERRORS: [(&str, i64); 4] =
    [("EPIPE", 32), ("ECONNRESET", 104), ("ETIMEDOUT", 110), ("ECONNREFUSED", 111)];

impl Player<'_> {
    pub(crate) fn setsockopt(&mut self, call: &Call, place: Place) -> Result<Does, Problem> {
        self.socket_of(call, place)?;
        let name = option_name(call, place)?;
        if NO_MATTER.contains(&name) {
            return Ok(Does::Returns(Outcome::Value(0)));
        }
        let problem = |message: String| Problem::new(place, message);
        let value = match call.arguments.get(3) {
            Some(Value::List(all)) => all.first(),
            other => other,
        };
        if ANY_TIME.contains(&name) {
            let set = match value {
                Some(Value::Number(n)) => self.set_any_time(name, *n),
                _ => false,
            };
            let outcome = if set { Outcome::Value(0) } else { Outcome::Error("EINVAL") };
            return Ok(Does::Returns(outcome));
        }
        if !BEFORE.contains(&name) {
            let near = hint(name, NO_MATTER.into_iter().chain(ANY_TIME).chain(BEFORE));
            return Err(problem(format!("the socket option {name} is not simulated{near}")));
        }
        if self.host.is_some() {
            let message = format!("{name} must be set before the connection opens");
            return Err(problem(message));
        }
        match (name, value) {
            ("TCP_CONGESTION", Some(Value::Text(kind))) => {
                self.setup.set_congestion(kind).map_err(problem)?;
            }
            ("TCP_MAXSEG", Some(Value::Number(n @ 88..=32_767))) => self.setup.mss = *n as u16,
            ("TCP_SYNCNT", Some(Value::Number(n @ 1..=127))) => {
                self.setup.syn_retries.0 = *n as u32;
            }
            _ => return Ok(Does::Returns(Outcome::Error("EINVAL"))),
        }
        Ok(Does::Returns(Outcome::Value(0)))
    }

    /// Returns whether the value is one that the option can have.
    fn set_any_time(&mut self, name: &str, n: i64) -> bool {
        let (now, on) = (self.now, n != 0);
        match name {
            "SO_SNDBUF" => {
                let size = 2 * n.clamp(SEND_BUFFER.0, SEND_BUFFER.1);
                self.sockets.buffer.size = Some(size.unsigned_abs());
            }
            "SO_ZEROCOPY" => self.sockets.notifications.on = on,
            "TCP_INQ" => self.sockets.tells_rest = on,
            "TCP_NOTSENT_LOWAT" => self.sockets.buffer.socket_lowat = n as u32,
            "TCP_USER_TIMEOUT" => {
                let Ok(ms) = u64::try_from(n) else { return false };
                self.setup.user_timeout = (ms > 0).then(|| Span::from_ms(ms.min(86_400_000)));
                if let Some(host) = &mut self.host {
                    host.set_user_timeout(self.setup.user_timeout);
                }
            }
            "TCP_CORK" => match &mut self.host {
                Some(host) => host.set_cork(now, on),
                None => self.setup.cork = on,
            },
            "TCP_NODELAY" => match &mut self.host {
                Some(host) => host.set_nagle(now, !on),
                None => self.setup.config.nagle = !on,
            },
            _ => return false,
        }
        true
    }

    pub(crate) fn getsockopt(&mut self, call: &Call, place: Place) -> Result<Does, Problem> {
        self.socket_of(call, place)?;
        let name = option_name(call, place)?;
        let actual = match name {
            "SO_ERROR" => {
                let error = self.failure();
                ERRORS.iter().find(|e| Some(e.0) == error).map_or(0, |e| e.1)
            }
            "SO_SNDBUF" => match self.sockets.buffer.size {
                Some(size) => size as i64,
                None => {
                    let message = "SO_SNDBUF can be asked only after it is set: without it the \
                                   send buffer has no limit here";
                    return Err(Problem::new(place, message));
                }
            },
            "TCP_MAXSEG" => match &self.host {
                Some(host) => i64::from(host.stack().config().segment),
                None => i64::from(self.setup.mss),
            },
            "TCP_NOTSENT_LOWAT" => i64::from(self.sockets.buffer.socket_lowat),
            other => {
                let near = hint(other, ASKED);
                let message = format!("the socket option {other} cannot be asked{near}");
                return Err(Problem::new(place, message));
            }
        };
        told(call.arguments.get(3), actual, place)?;
        Ok(Does::Returns(Outcome::Value(0)))
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
