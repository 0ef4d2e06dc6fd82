//! The endpoint under test in simulated time: the only place that drives the transport.
//!
//! A stack always has both ends of a connection. The other one here is a phantom: what it would send is
//! dropped, its timers never strike, and the script speaks in its place.

use crate::cork::Cork;
use crate::limits::Limits;
use eastwest_transport::tcp::config::TcpConfig;
use eastwest_transport::tcp::info::{ConnectionState, Info};
use eastwest_transport::tcp::{Connect, Notice, Sink, Stack};
use eastwest_types::{EndpointId, HostId, Packet, SackBlocks, Span, Time, flag};
use std::collections::VecDeque;

/// A packet that has left.
#[derive(Clone, Debug)]
pub struct Sent {
    /// When.
    pub at: Time,
    /// The packet.
    pub packet: Packet,
    /// Its SACK blocks.
    pub sack: SackBlocks,
}

/// Most packets of a script that nobody has looked at.
const MOST: usize = 1 << 20;

/// The endpoint under test.
pub struct Host {
    stack: Stack,
    id: EndpointId,
    wires: Wires,
    cork: Cork,
    limits: Limits,
    /// `TCP_USER_TIMEOUT`, and when it ends the connection.
    user_timeout: Option<Span>,
    expires: Option<Time>,
    /// Why the connection has failed.
    error: Option<&'static str>,
    /// When data last arrived in order, or the connection opened.
    last_data: Time,
    /// No socket of the application holds the connection any more.
    orphan: bool,
    /// The application writes no more.
    finished: bool,
    /// The other end has closed first.
    passive_close: bool,
}

struct Wires {
    me: HostId,
    id: Option<EndpointId>,
    now: Time,
    sent: VecDeque<Sent>,
    wakes: Vec<Time>,
    failed: bool,
    /// The host keeps nothing of the connection any more.
    gone: bool,
}

impl Sink for Wires {
    fn send(&mut self, from: HostId, packet: Packet, sack: Option<SackBlocks>) {
        if from == self.me && !self.gone && self.sent.len() < MOST {
            let sack = sack.unwrap_or_default();
            self.sent.push_back(Sent { at: self.now, packet, sack });
        }
    }

    fn arm(&mut self, at: Time, endpoint: EndpointId) {
        // the first wake-up of a client is armed before its name is known here
        if self.id.is_none_or(|id| id == endpoint) && at < Time::NEVER && !self.gone {
            self.wakes.push(at);
        }
    }

    fn notify(&mut self, endpoint: EndpointId, notice: Notice) {
        if notice == Notice::Failed && self.id == Some(endpoint) {
            self.failed = true;
        }
    }
}

const CLIENT: HostId = HostId(0);
const SERVER: HostId = HostId(1);

impl Host {
    /// A connection; `active` sends its SYN at once, otherwise it waits for one.
    pub fn open(now: Time, config: TcpConfig, active: bool) -> Option<Host> {
        let connect = Connect {
            client: CLIENT,
            server: SERVER,
            hashes: (0, 0),
            dscp: 0,
            class: 0,
            settings: (0, 0),
        };
        let mut stack = Stack::new(config);
        let mut wires = Wires {
            me: if active { CLIENT } else { SERVER },
            id: None,
            now,
            sent: VecDeque::new(),
            wakes: Vec::new(),
            failed: false,
            gone: false,
        };
        let client = stack.open(now, &connect, &mut wires)?;
        let id = if active { client } else { client.peer() };
        wires.id = Some(id);
        if !active {
            wires.wakes.clear(); // the phantom's
        }
        Some(Host {
            stack,
            id,
            wires,
            cork: Cork::default(),
            limits: Limits::default(),
            user_timeout: None,
            expires: None,
            error: None,
            last_data: now,
            orphan: false,
            finished: false,
            passive_close: false,
        })
    }

    /// Its stack, to ask.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Its name in the stack.
    pub fn id(&self) -> EndpointId {
        self.id
    }

    /// State and counters of the endpoint.
    pub fn info(&self) -> Info {
        self.stack.info(self.id)
    }

    /// Why the connection has failed, by the name of its error.
    pub fn error(&self) -> Option<&'static str> {
        self.error
    }

    /// Bytes written, those that wait for more among them.
    pub fn written(&self) -> u64 {
        self.stack.endpoint(self.id).written() + self.cork.held()
    }

    /// Bytes acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.info().acknowledged
    }

    /// Bytes written and not sent.
    pub fn unsent(&self) -> u64 {
        self.info().unsent + self.cork.held()
    }

    /// The window of the other end, bytes.
    pub fn peer_window(&self) -> u64 {
        u64::from(self.info().peer_window)
    }

    /// Payload of a full segment, bytes.
    pub fn segment(&self) -> u64 {
        u64::from(self.stack.config().segment)
    }

    /// How long it has been busy, and how long of that the other end's window kept it waiting.
    pub fn limits(&self, now: Time) -> (Span, Span) {
        self.limits.until(now)
    }

    /// When data last arrived in order, or the connection opened.
    pub fn last_data(&self) -> Time {
        self.last_data
    }

    /// The next packet nobody has looked at.
    pub fn next_sent(&self) -> Option<&Sent> {
        self.wires.sent.front()
    }

    /// Takes that packet.
    pub fn take_sent(&mut self) -> Option<Sent> {
        self.wires.sent.pop_front()
    }

    /// When its next timer may strike.
    pub fn next_wake(&self) -> Option<Time> {
        self.wires.wakes.iter().copied().chain(self.cork.due()).chain(self.expires).min()
    }

    /// Lets the next timer strike.
    pub fn wake(&mut self) {
        let Some(at) = self.next_wake() else { return };
        self.wires.now = at;
        if self.expires == Some(at) {
            self.error = Some("ETIMEDOUT");
            self.vanish(at);
            return;
        }
        if self.cork.due() == Some(at) {
            self.release(at);
            return;
        }
        self.wires.wakes.retain(|w| *w != at);
        self.stack.on_timer(at, self.id, &mut self.wires);
        if self.wires.failed && self.error.is_none() {
            self.error = Some("ETIMEDOUT");
        }
        self.after(at);
    }

    /// A packet arrives.
    pub fn receive(&mut self, now: Time, mut packet: Packet, sack: Option<&SackBlocks>) {
        packet.dst_endpoint = self.id;
        packet.dst = self.wires.me;
        self.wires.now = now;
        let before = self.info();
        let expected = before.received + 1;
        let seq = Packet::widen(packet.seq, expected);
        let late_data =
            self.orphan && packet.payload > 0 && seq + u64::from(packet.payload) > expected;
        if late_data {
            // nobody will read it (RFC 1122, 4.2.2.13)
            self.vanish(now);
        }
        if self.wires.gone || before.connection == ConnectionState::Failed {
            self.refuse(now, &packet);
            return;
        }
        self.stack.on_packet(now, &packet, sack, &mut self.wires);
        if self.wires.failed && self.error.is_none() {
            self.error = Some(match before.connection {
                ConnectionState::SynSent => "ECONNREFUSED",
                ConnectionState::CloseWait => "EPIPE",
                _ => "ECONNRESET",
            });
        }
        let info = self.info();
        let opens = before.connection.is_opening() && !info.connection.is_opening();
        if info.received > before.received || opens {
            self.last_data = now;
        }
        if self.passive_close && info.connection == ConnectionState::TimeWait {
            // LAST-ACK has become CLOSED: the stack has no such state, and lingers
            self.vanish(now);
            return;
        }
        if packet.flags & flag::ACK != 0 && !self.cork.on && self.cork.held() > 0 {
            self.release(now);
        }
        self.after(now);
    }

    /// No socket takes this packet: a reset answers it (RFC 9293, 3.10.7.1).
    fn refuse(&mut self, now: Time, packet: &Packet) {
        if packet.flags & flag::RST != 0 {
            return;
        }
        let mut reset = Packet::blank(packet.dst);
        reset.born = now;
        if packet.flags & flag::ACK != 0 {
            (reset.flags, reset.seq) = (flag::RST, packet.ack);
        } else {
            let control = (packet.flags & (flag::SYN | flag::FIN)).count_ones();
            reset.flags = flag::RST | flag::ACK;
            reset.ack = packet.seq + u64::from(packet.payload) + u64::from(control);
        }
        self.wires.sent.push_back(Sent { at: now, packet: reset, sack: SackBlocks::default() });
    }

    /// The connection ends here, and no packet tells of it.
    fn vanish(&mut self, now: Time) {
        self.wires.gone = true;
        self.wires.wakes.clear();
        self.expires = None;
        self.cork.release();
        self.stack.reset(now, self.id, &mut self.wires);
    }

    /// Keeps account after anything that may have changed the connection.
    fn after(&mut self, now: Time) {
        let info = self.info();
        let sender = self.stack.sender_state(self.id);
        self.cork.arm(now, info.outstanding, sender.rto);
        if !info.connection.is_opening() {
            let others = (self.cork.held(), sender.cwnd, self.segment());
            self.limits.note(now, &info, others);
        }
        self.expires = match (self.user_timeout, info.retries) {
            (Some(limit), 1..) => Some(self.expires.unwrap_or(now + limit)),
            _ => None,
        };
    }

    /// The application writes; `more` is to come, so that a part of a segment waits.
    pub fn write(&mut self, now: Time, bytes: u64, more: bool) {
        self.wires.now = now;
        let leaves = if more || self.cork.on {
            self.cork.add(bytes, self.info().unsent, self.segment())
        } else {
            self.cork.release() + bytes
        };
        if leaves > 0 {
            self.stack.write(now, self.id, leaves, &mut self.wires);
        }
        self.after(now);
    }

    /// What waits for more waits no longer.
    fn release(&mut self, now: Time) {
        let held = self.cork.release();
        self.wires.now = now;
        if held > 0 {
            self.stack.write(now, self.id, held, &mut self.wires);
        }
        self.after(now);
    }

    /// The application wants small segments held back, or not.
    pub fn set_nagle(&mut self, now: Time, nagle: bool) {
        self.stack.config_mut().nagle = nagle;
        self.wires.now = now;
        let held = if nagle { 0 } else { self.cork.release() };
        if !self.finished {
            self.stack.write(now, self.id, held, &mut self.wires); // what was held back may go
        }
        self.after(now);
    }

    /// The application wants parts of segments held back, or not.
    pub fn set_cork(&mut self, now: Time, on: bool) {
        self.cork.on = on;
        if !on {
            self.release(now);
        }
    }

    /// The application sets `TCP_USER_TIMEOUT`: how long data may stay unacknowledged after it was first
    /// sent again.
    pub fn set_user_timeout(&mut self, limit: Option<Span>) {
        self.user_timeout = limit;
    }

    /// The application writes no more.
    pub fn finish(&mut self, now: Time) {
        self.release(now);
        self.finished = true;
        self.passive_close |= self.info().connection == ConnectionState::CloseWait;
        self.stack.close(now, self.id, &mut self.wires);
        self.after(now);
    }

    /// The application closes its socket. Data that it has not read is lost, so that a reset ends the
    /// connection (RFC 2525, 2.17); an attempt to connect ends without a packet.
    pub fn close(&mut self, now: Time, unread: bool) {
        self.orphan = true;
        let state = self.info().connection;
        if state == ConnectionState::SynSent {
            self.vanish(now);
        } else if unread && state != ConnectionState::Failed {
            self.wires.now = now;
            self.stack.reset(now, self.id, &mut self.wires);
            self.vanish(now);
        } else {
            self.finish(now);
        }
    }
}
