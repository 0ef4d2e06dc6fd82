//! Numbers of the requests of an application by state: requests that got a reply, and the reasons
//! why others got none.

use serde::{Deserialize, Serialize};

/// Number of requests of an application by their state. Each request has one state, so that
/// `answered` and the five last fields add up to `sent`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    /// Requests that processes have sent.
    pub sent: u64,
    /// Requests whose reply has arrived.
    pub answered: u64,
    /// Requests that are in flight from the client to the server.
    pub request_in_flight: u64,
    /// Requests that have arrived and to which the server has sent no reply.
    pub no_reply_sent: u64,
    /// Requests whose reply is in flight from the server to the client.
    pub reply_in_flight: u64,
    /// Requests that are lost, or whose reply is lost, because the transport has aborted their
    /// connection.
    pub connection_failed: u64,
    /// Requests without reply whose connection the client has closed.
    pub connection_closed: u64,
}

impl Requests {
    /// Names of the numbers in the summary of a run, in the order of [`Requests::numbers`].
    pub const NAMES: [&'static str; 8] = [
        "sent",
        "answered",
        "unanswered",
        "request_in_flight",
        "no_reply_sent",
        "reply_in_flight",
        "connection_failed",
        "connection_closed",
    ];

    /// Returns the number of requests whose reply has not arrived.
    pub fn unanswered(&self) -> u64 {
        self.sent - self.answered
    }

    /// Returns the numbers for the summary of a run, in the order of [`Requests::NAMES`].
    pub fn numbers(&self) -> [u64; 8] {
        [
            self.sent,
            self.answered,
            self.unanswered(),
            self.request_in_flight,
            self.no_reply_sent,
            self.reply_in_flight,
            self.connection_failed,
            self.connection_closed,
        ]
    }
}
