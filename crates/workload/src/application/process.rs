//! Process of an application during an event: the information that it has, and the actions that it
//! can request.

use super::role::Role;
use super::tally::Tally;
use eastwest_engine::random::Stream;
use eastwest_types::{HostId, Span, Time};
use serde::{Deserialize, Serialize};

/// Identity of a process of an application before its start: number, role, host, other processes.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Number of the process, from 0: first the processes of the first role in the order of its
    /// list of hosts, then the processes of the next role.
    pub number: u32,
    /// Role of the process, as index in the list of roles.
    pub role: usize,
    /// Host on which the process runs.
    pub host: HostId,
    /// Roles of the application's processes.
    pub roles: &'a [Role],
    /// Process numbers of each role, in the order of the role's list of hosts.
    pub members: &'a [Vec<u32>],
    /// Host of each process, by process number.
    pub hosts: &'a [HostId],
    pub(super) workload: &'a str,
    pub(super) seed: u64,
}

impl Place<'_> {
    /// Returns a random stream of the process, derived from the seed of the run, the name of the
    /// workload and the number of the process. Different values of `purpose` give independent
    /// streams.
    pub fn random(&self, purpose: &str) -> Stream {
        Stream::new(self.seed, &format!("{}/{}/{purpose}", self.workload, self.number))
    }
}

/// Content of a message between processes: its size in the network, three numbers that the receiver
/// can read, and the number of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// Payload bytes of the message in the network, at least 1.
    pub bytes: u64,
    /// Three numbers for the receiver, which add no bytes in the network.
    pub words: [u64; 3],
    /// Number of the connection between the two processes, from 0. Messages on one connection
    /// arrive in order and wait for each other; messages on different connections do not.
    pub connection: u16,
}

impl From<u64> for Content {
    /// Returns the content of a message of `bytes` bytes, with words 0 and connection 0.
    fn from(bytes: u64) -> Content {
        Content { bytes, ..Content::default() }
    }
}

/// Relation of a message to a request: plain message, request, or reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A message to which the receiver does not reply.
    Plain,
    /// A request, with its number; the receiver may send one reply.
    Request(u64),
    /// The reply to a request, with the number of the request.
    Reply(u64),
}

/// A message that has arrived at a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Number of the process that sent the message.
    pub from: u32,
    /// Size of the message, its words, and the number of its connection.
    pub content: Content,
    /// Kind of the message: plain message, request, or reply.
    pub kind: Kind,
    /// Time at which the message was sent.
    pub sent: Time,
}

impl Message {
    /// Returns the number of the request to which this message is the reply; `None` for other
    /// messages.
    pub fn answers(&self) -> Option<u64> {
        match self.kind {
            Kind::Reply(request) => Some(request),
            Kind::Plain | Kind::Request(_) => None,
        }
    }

    /// Whether the message is a request, so that the sender waits for a reply.
    pub fn is_request(&self) -> bool {
        matches!(self.kind, Kind::Request(_))
    }
}

/// An action that a process of an application has requested.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Send { to: u32, content: Content, kind: Kind, tag: u64 },
    Timer { id: u64, delay: Span, value: u64 },
    Cancel(u64),
    Close { peer: u32, connection: u16 },
    Stop,
    Fail(String),
}

/// A process of an application while it handles an event: the information that it has, and the
/// actions that it requests.
#[derive(Debug)]
pub struct Process<'a> {
    pub(super) now: Time,
    pub(super) number: u32,
    pub(super) role: usize,
    pub(super) members: &'a [Vec<u32>],
    pub(super) hosts: &'a [HostId],
    pub(super) random: &'a mut Stream,
    pub(super) next: &'a mut u64,
    pub(super) tally: &'a mut Tally,
    pub(super) acts: &'a mut Vec<Act>,
}

impl Process<'_> {
    /// Returns the present simulated time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the number of this process.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the role of this process, as index in the list of roles.
    pub fn role(&self) -> usize {
        self.role
    }

    /// Returns the host of the process with the number `process`; `None` if there is no such
    /// process.
    pub fn host(&self, process: u32) -> Option<HostId> {
        self.hosts.get(process as usize).copied()
    }

    /// Returns the numbers of the processes with a role, in the order of its list of hosts; empty
    /// if the role does not exist.
    pub fn members(&self, role: usize) -> &[u32] {
        self.members.get(role).map_or(&[], Vec::as_slice)
    }

    /// Returns the random stream of this process.
    pub fn random(&mut self) -> &mut Stream {
        self.random
    }

    fn number_of_next(&mut self) -> u64 {
        *self.next += 1;
        *self.next - 1
    }

    /// Sends a message to a process. The connection opens with the first message. Between processes
    /// on one host, the message uses no network and arrives at the simulated time at which it was
    /// sent.
    pub fn send(&mut self, to: u32, content: impl Into<Content>) {
        let tag = self.number_of_next();
        self.acts.push(Act::Send { to, content: content.into(), kind: Kind::Plain, tag });
    }

    /// Sends a request to a process. Returns the number of the request; [`Message::answers`]
    /// returns this number for the reply.
    pub fn request(&mut self, to: u32, content: impl Into<Content>) -> u64 {
        let tag = self.number_of_next();
        let kind = Kind::Request(tag);
        self.acts.push(Act::Send { to, content: content.into(), kind, tag });
        tag
    }

    /// Sends the reply to a request over the connection of the request. A reply on a closed or
    /// failed connection has no effect. A second reply, and a reply to a message that is not a
    /// request, end the run with an error.
    pub fn reply(&mut self, request: &Message, content: impl Into<Content>) {
        let Kind::Request(tag) = request.kind else {
            return self.fail("replied to a message that is not a request".to_owned());
        };
        self.reply_to(tag, content);
    }

    /// Sends the reply to the request with the number `request`, like [`Process::reply`].
    pub fn reply_to(&mut self, request: u64, content: impl Into<Content>) {
        let (content, kind) = (content.into(), Kind::Reply(request));
        self.acts.push(Act::Send { to: 0, content, kind, tag: request });
    }

    /// Returns the number that the next message or timer of the application will have. A reply has
    /// the number of its request instead.
    pub fn next_number(&self) -> u64 {
        *self.next
    }

    /// Starts a timer that expires after `delay` and passes `value` to
    /// [`Application::on_timer`](super::Application::on_timer). Returns the number of the timer.
    pub fn timer(&mut self, delay: Span, value: u64) -> u64 {
        let id = self.number_of_next();
        self.acts.push(Act::Timer { id, delay, value });
        id
    }

    /// Cancels a timer of this process, given the number that [`Process::timer`] returned; has no
    /// effect if the timer has expired.
    pub fn cancel(&mut self, timer: u64) {
        self.acts.push(Act::Cancel(timer));
    }

    /// Closes the connection with the number `connection` over which this process sends to `peer`,
    /// after all messages on it have arrived. The next message opens a new connection.
    pub fn close(&mut self, peer: u32, connection: u16) {
        self.acts.push(Act::Close { peer, connection });
    }

    /// Ends the whole application now. Without this call, the application ends when no message is
    /// in flight and no timer is pending.
    pub fn stop(&mut self) {
        self.acts.push(Act::Stop);
    }

    /// Ends the run with an error message instead of a result.
    pub fn fail(&mut self, why: String) {
        self.acts.push(Act::Fail(why));
    }

    /// Adds to a counter of the application: `applications.W.counters.NAME` of the summary, with
    /// the name W of the workload.
    pub fn count(&mut self, counter: &str, by: u64) {
        self.tally.count(counter, by);
    }

    /// Adds a duration to a measure of the application: `applications.W.NAME_us` of the summary has
    /// the count, mean and percentiles of all durations.
    pub fn measure(&mut self, name: &str, took: Span) {
        self.tally.measure(name, took);
    }

    /// Adds units of work to those that the application plans to do; used for progress bars.
    pub fn plan(&mut self, units: u64) {
        self.tally.planned = self.tally.planned.saturating_add(units);
    }

    /// Counts units of work as begun, for example queries; `complete` counts their ends. Both
    /// numbers are in the summary, in `applications.W.operations` for the workload W.
    pub fn begin(&mut self, units: u64) {
        self.tally.begun = self.tally.begun.saturating_add(units);
    }

    /// Counts units of the planned work as completed.
    pub fn complete(&mut self, units: u64) {
        self.tally.completed = self.tally.completed.saturating_add(units);
    }
}
