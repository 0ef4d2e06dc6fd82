//! The endpoint under test in simulated time. Only this module passes events to the TCP stack.
//!
//! The TCP stack of the simulator always has both ends of a connection. The other end is a dummy
//! here: its packets are dropped, its timers never expire, and the script sends in its place.

use crate::cork::Cork;
use crate::limits::Limits;
use eastwest_transport::tcp::config::TcpConfig;
use eastwest_transport::tcp::info::{ConnectionState, Info};
use eastwest_transport::tcp::{Connect, Notice, Sink, Stack};
use eastwest_types::{EndpointId, HostId, Packet, SackBlocks, Span, Time, flag};
use std::collections::VecDeque;

/// A packet that the endpoint under test has sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Time at which the packet was sent.
    pub at: Time,
    /// The packet, with stream positions and times of the simulation.
    pub packet: Packet,
    /// SACK blocks of the packet in stream positions; unused blocks are (0, 0).
    pub sack: SackBlocks,
}

/// Maximum number of packets that the endpoint has sent and that have not been compared with the
/// script; further packets are dropped.
const MOST: usize = 1 << 20;

/// The TCP endpoint under test: one end of a connection whose other end is the script.
pub struct Host {
    stack: Stack,
    id: EndpointId,
    wires: Wires,
    cork: Cork,
    limits: Limits,
    /// Value of the socket option `TCP_USER_TIMEOUT`; `None` if it is not set.
    user_timeout: Option<Span>,
    /// Time at which the user timeout ends the connection; `None` while it is not running.
    expires: Option<Time>,
    /// Name of the error with which the connection failed (`ECONNRESET` …); `None` if it has not
    /// failed.
    error: Option<&'static str>,
    /// Time at which data last arrived in order, or, before any data, at which the connection
    /// opened.
    last_data: Time,
    /// Whether the application has closed all sockets of the connection.
    orphan: bool,
    /// Whether the application has closed its sending direction.
    finished: bool,
    /// Whether the other end closed its sending direction before the application closed its own.
    passive_close: bool,
}

struct Wires {
    me: HostId,
    id: Option<EndpointId>,
    now: Time,
    sent: VecDeque<Sent>,
    wakes: Vec<Time>,
    failed: bool,
    /// Whether the host has removed the connection.
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
        // The first timer of a client is armed before its id is known here.
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
    /// Opens the connection. With `active` the endpoint sends a SYN at once; otherwise it waits for
    /// a SYN. Returns `None` if the stack has no free slot.
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
            wires.wakes.clear(); // timers of the dummy at the other end
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

    /// Returns the TCP stack that holds the endpoint under test.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Returns the identifier of the endpoint under test.
    pub fn id(&self) -> EndpointId {
        self.id
    }

    /// Returns the state of the endpoint under test in the terms of Linux's `tcp_info`.
    pub fn info(&self) -> Info {
        self.stack.info(self.id)
    }

    /// Returns the name of the error with which the connection failed (`ECONNRESET`, `ETIMEDOUT`
    /// …); `None` if it has not failed.
    pub fn error(&self) -> Option<&'static str> {
        self.error
    }

    /// Returns the number of bytes that the application has written, including those held back
    /// (`MSG_MORE`, `TCP_CORK`).
    pub fn written(&self) -> u64 {
        self.stack.endpoint(self.id).written() + self.cork.held()
    }

    /// Returns the number of written bytes that the other end has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.info().acknowledged
    }

    /// Returns the number of written bytes that are not sent yet, including those held back
    /// (`MSG_MORE`, `TCP_CORK`).
    pub fn unsent(&self) -> u64 {
        self.info().unsent + self.cork.held()
    }

    /// Returns the receive window that the other end has advertised, in bytes.
    pub fn peer_window(&self) -> u64 {
        u64::from(self.info().peer_window)
    }

    /// Returns the number of payload bytes of a full segment.
    pub fn segment(&self) -> u64 {
        u64::from(self.stack.config().segment)
    }

    /// Returns the time for which the sender has had unsent or unacknowledged data
    /// (`tcpi_busy_time`), and the part of it in which the other end's receive window was the limit
    /// (`tcpi_rwnd_limited`).
    pub fn limits(&self, now: Time) -> (Span, Span) {
        self.limits.until(now)
    }

    /// Returns the time at which data last arrived in order; before any data, the time at which the
    /// connection opened.
    pub fn last_data(&self) -> Time {
        self.last_data
    }

    /// Returns the oldest sent packet that has not been compared with the script; `None` if there
    /// is none.
    pub fn next_sent(&self) -> Option<&Sent> {
        self.wires.sent.front()
    }

    /// Removes and returns the oldest sent packet that has not been compared with the script.
    pub fn take_sent(&mut self) -> Option<Sent> {
        self.wires.sent.pop_front()
    }

    /// Returns the earliest time at which a timer may expire; `None` if no timer is armed.
    pub fn next_wake(&self) -> Option<Time> {
        self.wires.wakes.iter().copied().chain(self.cork.due()).chain(self.expires).min()
    }

    /// Advances the host to the next expiry of a timer, and executes this timer.
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

    /// Handles the arrival of a packet from the other end.
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
            // No socket will read the data (RFC 1122, 4.2.2.13).
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
            // LAST-ACK has become CLOSED. The stack has no such state, and would wait in TIME-WAIT.
            self.vanish(now);
            return;
        }
        if packet.flags & flag::ACK != 0 && !self.cork.on && self.cork.held() > 0 {
            self.release(now);
        }
        self.after(now);
    }

    /// Sends a reset as answer to a packet for which there is no socket (RFC 9293, 3.10.7.1).
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

    /// Ends the connection at once, and sends no packet.
    fn vanish(&mut self, now: Time) {
        self.wires.gone = true;
        self.wires.wakes.clear();
        self.expires = None;
        self.cork.release();
        self.stack.reset(now, self.id, &mut self.wires);
    }

    /// Updates the state that depends on the connection (held-back data, limits, user timeout)
    /// after an event.
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

    /// Handles a write of `bytes` by the application. With `more` (`MSG_MORE`), bytes that do not
    /// fill a segment are held back.
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

    /// Writes the data held back to the connection.
    fn release(&mut self, now: Time) {
        let held = self.cork.release();
        self.wires.now = now;
        if held > 0 {
            self.stack.write(now, self.id, held, &mut self.wires);
        }
        self.after(now);
    }

    /// Switches the Nagle algorithm on or off (`TCP_NODELAY` switches it off).
    pub fn set_nagle(&mut self, now: Time, nagle: bool) {
        self.stack.config_mut().nagle = nagle;
        self.wires.now = now;
        let held = if nagle { 0 } else { self.cork.release() };
        if !self.finished {
            self.stack.write(now, self.id, held, &mut self.wires); // writes the data held back
        }
        self.after(now);
    }

    /// Sets or clears `TCP_CORK`, with which the endpoint holds back incomplete segments.
    pub fn set_cork(&mut self, now: Time, on: bool) {
        self.cork.on = on;
        if !on {
            self.release(now);
        }
    }

    /// Sets `TCP_USER_TIMEOUT`, the time for which data may stay unacknowledged after its first
    /// retransmission; `None` for no limit.
    pub fn set_user_timeout(&mut self, limit: Option<Span>) {
        self.user_timeout = limit;
    }

    /// Closes the sending direction, as shutdown() does: a FIN follows the written data.
    pub fn finish(&mut self, now: Time) {
        self.release(now);
        self.finished = true;
        self.passive_close |= self.info().connection == ConnectionState::CloseWait;
        self.stack.close(now, self.id, &mut self.wires);
        self.after(now);
    }

    /// Closes the application's socket. If there is unread data, the connection ends by a reset
    /// (RFC 2525, 2.17). A connection attempt ends without a packet.
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
