//! The endpoint under test in simulated time: the only place that drives the transport.
//!
//! A stack always has both ends of a connection. The other one here is a phantom: what it would send is
//! dropped, its timers never strike, and the script speaks in its place.

use eastwest_transport::tcp::config::TcpConfig;
use eastwest_transport::tcp::{Connect, Notice, Sink, Stack};
use eastwest_types::{EndpointId, HostId, Packet, SackBlocks, Time};
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
}

struct Wires {
    me: HostId,
    id: Option<EndpointId>,
    now: Time,
    sent: VecDeque<Sent>,
    wakes: Vec<Time>,
    failed: bool,
}

impl Sink for Wires {
    fn send(&mut self, from: HostId, packet: Packet, sack: Option<SackBlocks>) {
        if from == self.me && self.sent.len() < MOST {
            let sack = sack.unwrap_or_default();
            self.sent.push_back(Sent { at: self.now, packet, sack });
        }
    }

    fn arm(&mut self, at: Time, endpoint: EndpointId) {
        // the first wake-up of a client is armed before its name is known here
        if self.id.is_none_or(|id| id == endpoint) && at < Time::NEVER {
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
        let connect = Connect { client: CLIENT, server: SERVER, hashes: (0, 0), dscp: 0, class: 0 };
        let mut stack = Stack::new(config);
        let mut wires = Wires {
            me: if active { CLIENT } else { SERVER },
            id: None,
            now,
            sent: VecDeque::new(),
            wakes: Vec::new(),
            failed: false,
        };
        let client = stack.open(now, &connect, &mut wires)?;
        let id = if active { client } else { client.peer() };
        wires.id = Some(id);
        if !active {
            wires.wakes.clear(); // the phantom's
        }
        Some(Host { stack, id, wires })
    }

    /// Its stack, to ask.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Its name in the stack.
    pub fn id(&self) -> EndpointId {
        self.id
    }

    /// Whether the connection was given up.
    pub fn has_failed(&self) -> bool {
        self.wires.failed
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
        self.wires.wakes.iter().copied().min()
    }

    /// Lets the next timer strike.
    pub fn wake(&mut self) {
        if let Some(at) = self.next_wake() {
            self.wires.wakes.retain(|w| *w != at);
            self.wires.now = at;
            self.stack.on_wake(at, self.id, &mut self.wires);
        }
    }

    /// A packet arrives.
    pub fn receive(&mut self, now: Time, mut packet: Packet, sack: Option<&SackBlocks>) {
        packet.dst_endpoint = self.id;
        packet.dst = self.wires.me;
        self.wires.now = now;
        self.stack.on_packet(now, &packet, sack, &mut self.wires);
    }

    /// The application writes.
    pub fn write(&mut self, now: Time, bytes: u64) {
        self.wires.now = now;
        self.stack.write(now, self.id, bytes, &mut self.wires);
    }

    /// The application wants small segments held back, or not.
    pub fn set_nagle(&mut self, now: Time, nagle: bool) {
        self.stack.config_mut().nagle = nagle;
        self.write(now, 0); // what was held back may go
    }

    /// The application closes its side.
    pub fn close(&mut self, now: Time) {
        self.wires.now = now;
        self.stack.close(now, self.id, &mut self.wires);
    }
}
