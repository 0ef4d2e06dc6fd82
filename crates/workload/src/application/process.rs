//! What a process of an application knows and can do while it handles an event.

use super::role::Role;
use super::tally::Tally;
use eastwest_engine::random::Stream;
use eastwest_types::{HostId, Span, Time};
use serde::{Deserialize, Serialize};

/// Place of a process, before its start.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Number of the process, from 0: the processes of the first role in the order of its list of
    /// hosts, then those of the next role.
    pub number: u32,
    /// Role of the process: its index in the list of roles.
    pub role: usize,
    /// Host of the process.
    pub host: HostId,
    /// Roles of the application.
    pub roles: &'a [Role],
    /// Processes of each role.
    pub members: &'a [Vec<u32>],
    /// Host of each process.
    pub hosts: &'a [HostId],
    pub(super) workload: &'a str,
    pub(super) seed: u64,
}

impl Place<'_> {
    /// Returns the random stream of the process: it depends on the seed of the run, the name of the
    /// workload and the number of the process. `purpose` separates streams of one process.
    pub fn random(&self, purpose: &str) -> Stream {
        Stream::new(self.seed, &format!("{}/{}/{purpose}", self.workload, self.number))
    }
}

/// Content of a message: its size in the network, and words that the receiver reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// Bytes of the message, at least 1.
    pub bytes: u64,
    /// Words for the receiver. They do not add bytes.
    pub words: [u64; 3],
    /// Number of the connection between both processes, from 0. Messages on one connection arrive
    /// in order and wait for each other; those of different connections do not.
    pub connection: u16,
}

impl From<u64> for Content {
    /// Returns a message of this many bytes.
    fn from(bytes: u64) -> Content {
        Content { bytes, ..Content::default() }
    }
}

/// Relation of a message to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A message without an answer.
    Plain,
    /// A request with this number; the receiver may reply once.
    Request(u64),
    /// The reply to the request with this number.
    Reply(u64),
}

/// A message that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Number of the sending process.
    pub from: u32,
    /// Bytes and words.
    pub content: Content,
    /// Relation to a request.
    pub kind: Kind,
    /// Time at which it was sent.
    pub sent: Time,
}

impl Message {
    /// Returns the number of the request that this message answers; `None` for other messages.
    pub fn answers(&self) -> Option<u64> {
        match self.kind {
            Kind::Reply(request) => Some(request),
            Kind::Plain | Kind::Request(_) => None,
        }
    }

    /// Whether the sender waits for a reply.
    pub fn is_request(&self) -> bool {
        matches!(self.kind, Kind::Request(_))
    }
}

/// An action that a process has requested.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Send { to: u32, content: Content, kind: Kind, tag: u64 },
    Timer { id: u64, delay: Span, value: u64 },
    Cancel(u64),
    Close { peer: u32, connection: u16 },
    Stop,
    Fail(String),
}

/// A process while it handles an event: what it knows, and the actions that it requests.
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
    /// Returns the simulated time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the number of this process.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the role of this process: its index in the list of roles.
    pub fn role(&self) -> usize {
        self.role
    }

    /// Returns the host of a process.
    pub fn host(&self, process: u32) -> Option<HostId> {
        self.hosts.get(process as usize).copied()
    }

    /// Returns the processes with a role, in the order of its list of hosts; none if there is no
    /// such role.
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

    /// Sends a message to a process. The connection opens with the first message. Processes of one
    /// host reach each other without the network, at the same time.
    pub fn send(&mut self, to: u32, content: impl Into<Content>) {
        let tag = self.number_of_next();
        self.acts.push(Act::Send { to, content: content.into(), kind: Kind::Plain, tag });
    }

    /// Sends a request to a process. Returns its number, which the reply will
    /// [name](Message::answers).
    pub fn request(&mut self, to: u32, content: impl Into<Content>) -> u64 {
        let tag = self.number_of_next();
        let kind = Kind::Request(tag);
        self.acts.push(Act::Send { to, content: content.into(), kind, tag });
        tag
    }

    /// Replies to a request, on its connection. A second reply and a reply on a closed connection
    /// have no effect. A reply to a message that is not a request ends the run with an error.
    pub fn reply(&mut self, request: &Message, content: impl Into<Content>) {
        let Kind::Request(tag) = request.kind else {
            return self.fail("replied to a message that is not a request".to_owned());
        };
        self.reply_to(tag, content);
    }

    /// Replies to the request with this number, like [`Process::reply`].
    pub fn reply_to(&mut self, request: u64, content: impl Into<Content>) {
        let (content, kind) = (content.into(), Kind::Reply(request));
        self.acts.push(Act::Send { to: 0, content, kind, tag: request });
    }

    /// Returns the number that the next message or timer of this process will have.
    pub fn next_number(&self) -> u64 {
        *self.next
    }

    /// Starts a timer that ends after `delay` and brings back `value`. Returns its number.
    pub fn timer(&mut self, delay: Span, value: u64) -> u64 {
        let id = self.number_of_next();
        self.acts.push(Act::Timer { id, delay, value });
        id
    }

    /// Cancels a timer of this process; without effect if it has ended.
    pub fn cancel(&mut self, timer: u64) {
        self.acts.push(Act::Cancel(timer));
    }

    /// Closes the connection over which this process sends to `peer`, after all messages on it have
    /// arrived. The next message opens a new connection.
    pub fn close(&mut self, peer: u32, connection: u16) {
        self.acts.push(Act::Close { peer, connection });
    }

    /// Ends the whole application now. Without it, the application ends when no message is on the
    /// way and no timer is pending.
    pub fn stop(&mut self) {
        self.acts.push(Act::Stop);
    }

    /// Ends the run without result, with a reason.
    pub fn fail(&mut self, why: String) {
        self.acts.push(Act::Fail(why));
    }

    /// Adds to a counter of the application: `applications.W.counters.NAME` of the summary, with the
    /// name W of the workload.
    pub fn count(&mut self, counter: &str, by: u64) {
        self.tally.count(counter, by);
    }

    /// Adds a duration to a measure of the application: `applications.W.NAME_us` of the summary has
    /// count, mean and percentiles.
    pub fn measure(&mut self, name: &str, took: Span) {
        self.tally.measure(name, took);
    }

    /// Adds units of work to those that the application will do, for progress bars.
    pub fn plan(&mut self, units: u64) {
        self.tally.planned = self.tally.planned.saturating_add(units);
    }

    /// Notes that units of the planned work are done.
    pub fn complete(&mut self, units: u64) {
        self.tally.completed = self.tally.completed.saturating_add(units);
    }
}
