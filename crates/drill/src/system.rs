//! Host under test of a script: its settings, its sockets and the TCP endpoint.

use crate::host::Host;
use crate::problem::Problem;
use crate::script::{Call, Packet, Value};
use crate::setup::Setup;
use crate::sockets::{Outcome, Socket, Sockets, Wish};
use crate::wire::Wire;
use eastwest_types::Time;

/// Start time of a script. It is not 0, because an echoed timestamp of 0 stands for no timestamp.
pub const START: Time = Time(1_000_000_000_000);

/// Returns the time since the start of the script in seconds, as text with six decimals.
pub fn seconds(t: Time) -> String {
    let us = t.since(START).0 / 1_000_000;
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}

/// Result of a system call: an outcome at once, or a condition for which the call waits.
pub enum Does {
    /// The call returns at once with this result.
    Returns(Outcome),
    /// The call blocks until this condition is true.
    Waits(Wish),
}

/// Result of a system call, or the error with which the script fails.
pub type Answer = Result<Does, Problem>;

/// Returns the answer of a system call that returns the number `n` at once.
pub fn value(n: i64) -> Answer {
    Ok(Does::Returns(Outcome::Value(n)))
}

/// Returns the answer of a system call that fails at once with the error `name` (`EINVAL` …).
pub fn error(name: &'static str) -> Answer {
    Ok(Does::Returns(Outcome::Error(name)))
}

/// Returns the answer of a system call that waits for the condition `wish`.
pub fn waits(wish: Wish) -> Answer {
    Ok(Does::Waits(wish))
}

/// Host under test of a script: its settings, its sockets and the TCP endpoint.
pub struct System {
    /// Current simulated time.
    pub now: Time,
    /// Settings of the host, which apply when the connection opens.
    pub setup: Setup,
    /// Endpoint under test; `None` before the connection opens.
    pub host: Option<Host>,
    /// Conversion between the sequence numbers and timestamps of the script and those of the
    /// simulation.
    pub wire: Wire,
    /// Sockets of the script, with the blocked system call.
    pub sockets: Sockets,
    /// Log of the script, with one line for each event so far.
    pub log: Vec<String>,
    /// During a system call: the next SYN-ACK in the script, with which connect() negotiates
    /// features; `None` if there is none.
    pub syn_ack: Option<Packet>,
}

impl System {
    /// Returns a host with the settings `setup` and without sockets.
    pub fn new(setup: Setup) -> System {
        System {
            now: START,
            setup,
            host: None,
            wire: Wire::default(),
            sockets: Sockets::default(),
            log: Vec::new(),
            syn_ack: None,
        }
    }

    /// Opens the connection. `theirs`: SYN or SYN-ACK of the other end, with which features are
    /// negotiated; `active`: whether the endpoint sends the SYN. Returns false if the connection
    /// cannot be opened.
    pub fn open(&mut self, theirs: Option<&Packet>, active: bool) -> bool {
        self.wire = Wire::agree(&mut self.setup, theirs, active);
        self.wire.remote_base = theirs.map_or(0, |p| p.start);
        self.host = Host::open(self.now, self.setup.config.clone(), active);
        self.sockets.buffer.host_lowat = self.setup.notsent_lowat;
        if let Some(host) = &mut self.host {
            host.set_user_timeout(self.setup.user_timeout);
            host.set_cork(self.now, self.setup.cork);
        }
        self.host.is_some()
    }

    /// Updates the sockets after an event. The blocked system call may return now.
    pub fn look(&mut self) {
        self.sockets.look(self.host.as_mut(), self.now);
    }

    /// Adds a line to the log: time, sign for the kind of the event (`<`, `>`, `#` or `%`), and
    /// text.
    pub fn note(&mut self, at: Time, what: char, line: &str) {
        self.log.push(format!("{} {what} {line}", seconds(at)));
    }

    /// Returns the file descriptor for a new socket, epoll set or file: the result that the script
    /// expects, or the lowest unused one.
    pub fn new_number(&self, call: &Call) -> i64 {
        match call.result {
            Value::Number(n) if n >= 0 => n,
            _ => self.sockets.free_number(),
        }
    }

    /// Returns the file descriptor in the first argument of a system call. It is an error if this
    /// is not a socket.
    pub fn number_of(&self, call: &Call) -> Result<i64, Problem> {
        let Some(number) = call.number(0) else {
            return call.fail(format!(
                "the first argument of {}() must be the number of a socket",
                call.name
            ));
        };
        match self.sockets.all.contains_key(&number) {
            true => Ok(number),
            false => call.fail(format!("no open socket of the script has the number {number}")),
        }
    }

    /// Returns the socket whose file descriptor is the first argument of a system call. It is an
    /// error if there is none.
    pub fn socket_of(&mut self, call: &Call) -> Result<&mut Socket, Problem> {
        let number = self.number_of(call)?;
        let missing = || {
            Problem::new(
                call.place,
                format!("no open socket of the script has the number {number}"),
            )
        };
        self.sockets.all.get_mut(&number).ok_or_else(missing)
    }

    /// Returns the name of the error with which the connection failed. Only the first call after
    /// the failure returns it, as `SO_ERROR` does; otherwise the result is `None`.
    pub fn failure(&mut self) -> Option<&'static str> {
        let error = self.host.as_ref().and_then(|h| h.error());
        let tell = error.filter(|_| !self.sockets.told_failure);
        self.sockets.told_failure |= tell.is_some();
        tell
    }
}
