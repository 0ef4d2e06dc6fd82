//! The endpoints of all hosts.

use super::config::TcpConfig;
use super::counters::Counters;
use super::endpoint::Endpoint;
use super::interface::{Connect, Context, Notice, Sink};
use super::phases::Linger;
use eastwest_engine::memory;
use eastwest_types::{EndpointId, HostId, Packet, SackBlocks, Span, Time};
use serde::{Deserialize, Serialize};

/// Most settings of a stack: their number takes seven bits of an endpoint.
pub const MOST_SETTINGS: usize = 128;

/// Settings by number, the first apart: with one only, finding them is one comparison.
#[derive(Serialize, Deserialize)]
pub(super) struct Settings {
    pub(super) first: TcpConfig,
    others: Vec<TcpConfig>,
}

impl Settings {
    #[inline]
    fn get(&self, number: u8) -> &TcpConfig {
        match number {
            0 => &self.first,
            n => &self.others[usize::from(n) - 1],
        }
    }
}

/// All TCP endpoints.
#[derive(Serialize, Deserialize)]
pub struct Stack {
    pub(super) settings: Settings,
    pub(super) endpoints: Vec<Endpoint>,
    /// Slots of client ends whose connection is gone.
    free: Vec<u32>,
    /// Counters of all endpoints that are gone.
    gone: Counters,
    /// In a run in parts: an end is done, so that its slot may soon be another's.
    ended: bool,
    /// In a run in parts: ends that were done when a packet came, and whose other end was not.
    late: Option<Vec<EndpointId>>,
}

impl Stack {
    /// No connections yet; `config` are the settings of number 0.
    pub fn new(config: TcpConfig) -> Stack {
        Stack {
            settings: Settings { first: config, others: Vec::new() },
            endpoints: Vec::new(),
            free: Vec::new(),
            gone: Counters::default(),
            ended: false,
            late: None,
        }
    }

    /// The settings of number 0.
    pub fn config(&self) -> &TcpConfig {
        &self.settings.first
    }

    /// Adds settings that endpoints may have in place of those of number 0. Returns their number, or
    /// `None` where there are [`MOST_SETTINGS`] already.
    pub fn add_settings(&mut self, config: TcpConfig) -> Option<u8> {
        let number = self.settings.others.len() + 1;
        if number >= MOST_SETTINGS {
            return None;
        }
        self.settings.others.push(config);
        Some(number as u8)
    }

    /// The settings of this number, which [`Stack::add_settings`] gave.
    pub fn settings(&self, number: u8) -> &TcpConfig {
        self.settings.get(number)
    }

    /// The shortest timeout that any settings allow.
    pub fn shortest_timeout(&self) -> Span {
        let of = |c: &TcpConfig| c.min_rto.min(c.initial_rto);
        self.settings.others.iter().map(of).fold(of(&self.settings.first), Span::min)
    }

    /// The settings of the endpoint that has this slot now.
    pub fn config_of(&self, id: EndpointId) -> &TcpConfig {
        self.settings.get(self.endpoints[id.slot()].settings())
    }

    /// Opens a connection: the client sends its SYN. Returns the client's end, or `None` where all
    /// slots are in use.
    pub fn open(&mut self, now: Time, c: &Connect, sink: &mut impl Sink) -> Option<EndpointId> {
        let id = self.enter(c)?;
        let e = &mut self.endpoints[id.slot()];
        let config = self.settings.get(e.settings());
        e.connect(&mut Context { now, config, sink });
        Some(id)
    }

    /// When the retransmission timer of an end strikes, if the other end is looked at then.
    pub fn looks_across(&self, id: EndpointId) -> Time {
        match self.endpoints.get(id.slot()) {
            Some(e) if e.address.id == id && e.timers.linger == Linger::NotYet => e.timers.rto_at,
            _ => Time::NEVER,
        }
    }

    /// Copies what a timeout of the other end looks at from the stack that simulates this end.
    pub fn mirror(&mut self, id: EndpointId, from: &Stack) {
        let (mine, theirs) = (&mut self.endpoints[id.slot()], &from.endpoints[id.slot()]);
        if theirs.address.id == id {
            mine.state = theirs.state;
            mine.receiver.next = theirs.receiver.next;
            mine.receiver.acked = theirs.receiver.acked;
            mine.receiver.out_of_order = theirs.receiver.out_of_order.clone();
        }
    }

    /// Whether an end of any connection has been done since the run began.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Takes over the endpoints of which `theirs` says so from a stack with the same connections.
    pub fn take_over(&mut self, other: &mut Stack, theirs: impl Fn(HostId) -> bool) {
        for (mine, other) in self.endpoints.iter_mut().zip(&mut other.endpoints) {
            if theirs(mine.address.local) {
                std::mem::swap(mine, other);
            }
        }
        self.gone.add(&other.gone);
    }

    /// Makes room for a connection whose client is simulated elsewhere, or will [connect](Stack::open).
    pub fn enter(&mut self, c: &Connect) -> Option<EndpointId> {
        let (slot, generation) = match self.free.pop() {
            Some(slot) => {
                let old = self.endpoints[slot as usize].address.id;
                (slot as usize, old.generation().wrapping_add(1))
            }
            None if self.endpoints.len() + 2 > EndpointId::MAX_SLOTS => return None,
            None => {
                let slot = self.endpoints.len();
                if slot + 2 > self.endpoints.capacity() {
                    memory::grow(&mut self.endpoints);
                }
                let config = (0, &self.settings.first);
                let blank = |_| Endpoint::new(EndpointId(0), c.client, c.server, 0, c, config);
                self.endpoints.extend([0, 1].map(blank));
                (slot, 0)
            }
        };
        let id = EndpointId::new(slot, generation);
        let settings = |number| (number, self.settings.get(number));
        let (of_client, of_server) = (settings(c.settings.0), settings(c.settings.1));
        let client = Endpoint::new(id, c.client, c.server, c.hashes.0, c, of_client);
        let server = Endpoint::new(id.peer(), c.server, c.client, c.hashes.1, c, of_server);
        self.endpoints[slot] = client;
        self.endpoints[slot + 1] = server;
        Some(id)
    }

    /// The application writes `bytes` to its stream.
    pub fn write(&mut self, now: Time, id: EndpointId, bytes: u64, sink: &mut impl Sink) {
        let e = &mut self.endpoints[id.slot()];
        let config = self.settings.get(e.settings());
        debug_assert_eq!(e.address.id, id);
        debug_assert!(!e.closing, "written after closing");
        if e.is_controlled() {
            if e.control.is_none() {
                e.begin_control(config);
            }
            e.note_unused_window(config);
        }
        e.stream.write(bytes);
        if e.is_established() {
            e.transmit(&mut Context { now, config, sink });
            e.rearm(sink);
        }
    }

    /// Drops the bytes that the application has written and TCP has not sent, except the first byte of the
    /// stream: a connection that stops during its handshake still delivers something, so that its flow ends
    /// with an arrival. Returns the length of the remaining stream in bytes.
    pub fn truncate(&mut self, id: EndpointId) -> u64 {
        let e = &mut self.endpoints[id.slot()];
        debug_assert_eq!(e.address.id, id);
        debug_assert!(!e.closing, "truncated after closing");
        e.stream.truncate();
        e.written()
    }

    /// The application wants [`Notice::Delivered`] once `bytes` of the stream have arrived in all.
    /// Returns whether they already have.
    pub fn expect(&mut self, id: EndpointId, bytes: u64) -> bool {
        let e = &mut self.endpoints[id.slot()];
        let arrived = e.received() >= bytes;
        e.receiver.notify_at = if arrived { u64::MAX } else { bytes.saturating_add(1) };
        arrived
    }

    /// The application closes its side: a FIN follows what was written.
    pub fn close(&mut self, now: Time, id: EndpointId, sink: &mut impl Sink) {
        let e = &mut self.endpoints[id.slot()];
        let config = self.settings.get(e.settings());
        if e.address.id != id {
            return; // the connection is gone already
        }
        e.close(&mut Context { now, config, sink });
        e.rearm(sink);
        self.release(id, sink);
    }

    /// The application ends a connection at its side at once and tells the other end by a reset. There is
    /// no [`Notice`] of it at this side.
    pub fn reset(&mut self, now: Time, id: EndpointId, sink: &mut impl Sink) {
        let e = &mut self.endpoints[id.slot()];
        let config = self.settings.get(e.settings());
        if e.address.id != id {
            return; // the connection is gone already
        }
        e.reset(&mut Context { now, config, sink });
        self.release(id, sink);
    }

    /// Ends a connection at both ends at once, as a reset that takes no time and is no packet: what
    /// is under way finds nobody, and there is no [`Notice`] of it.
    pub fn abort(&mut self, id: EndpointId) {
        if !self.knows(id) {
            return;
        }
        let client = id.slot() & !1;
        let g = id.generation().wrapping_add(1);
        for (i, e) in self.endpoints[client..client + 2].iter_mut().enumerate() {
            e.give_up();
            self.gone.add(&e.vacate(EndpointId::new(client + i, g)));
        }
        self.free.push(client as u32);
    }

    /// Whether this is an end of a connection that is not gone.
    pub fn knows(&self, id: EndpointId) -> bool {
        self.endpoints.get(id.slot()).is_some_and(|e| e.address.id == id)
    }

    /// A packet to this endpoint is about to arrive: asks the processor for its state.
    #[inline]
    pub fn prefetch(&self, id: EndpointId) {
        if let Some(e) = self.endpoints.get(id.slot()) {
            memory::prefetch(e);
        }
    }

    /// A packet has reached the host of its destination endpoint.
    #[inline]
    pub fn on_packet(
        &mut self,
        now: Time,
        packet: &Packet,
        sack: Option<&SackBlocks>,
        sink: &mut impl Sink,
    ) {
        let id = packet.dst_endpoint;
        let e = &mut self.endpoints[id.slot()];
        let config = self.settings.get(e.settings());
        if e.address.id != id {
            return; // of a connection that is gone
        }
        e.on_packet(packet, sack, &mut Context { now, config, sink });
        e.rearm(sink);
        if e.is_done() {
            if let Some(late) = &mut self.late {
                late.push(id);
            }
            self.release(id, sink);
        }
    }

    /// From now on keeps what [`Stack::take_late`] tells.
    pub fn keep_late(&mut self) {
        self.late = Some(Vec::new());
    }

    /// Ends that were done already when a packet reached them.
    pub fn take_late(&mut self) -> Vec<EndpointId> {
        self.late.as_mut().map_or(Vec::new(), std::mem::take)
    }

    /// A wake-up asked for through [`Sink::arm`].
    pub fn on_wake(&mut self, now: Time, id: EndpointId, sink: &mut impl Sink) {
        let (e, peer) = pair(&mut self.endpoints, id);
        let config = self.settings.get(e.settings());
        if e.address.id != id || e.timers.armed_at != now {
            return; // an earlier wake-up took its place
        }
        e.timers.armed_at = Time::NEVER;
        e.on_timers(peer, &mut Context { now, config, sink });
        e.rearm(sink);
        if e.is_done() {
            self.release(id, sink);
        }
    }

    /// Frees the slots of a connection once both ends are done.
    fn release(&mut self, id: EndpointId, sink: &mut impl Sink) {
        let client = id.slot() & !1;
        let pair = &mut self.endpoints[client..client + 2];
        self.ended |= pair.iter().any(Endpoint::is_done);
        if pair.iter().all(Endpoint::is_done) {
            // a generation of its own, so that late packets and wake-ups find nobody
            let g = id.generation();
            for (i, e) in pair.iter_mut().enumerate() {
                self.gone.add(&e.vacate(EndpointId::new(client + i, g.wrapping_add(1))));
            }
            self.free.push(client as u32);
            sink.notify(EndpointId::new(client, g), Notice::Closed);
        }
    }

    /// An endpoint, for counters and questions.
    pub fn endpoint(&self, id: EndpointId) -> &Endpoint {
        &self.endpoints[id.slot()]
    }

    /// Counters of all endpoints there have been.
    pub fn totals(&self) -> Counters {
        let mut sum = self.gone;
        for e in &self.endpoints {
            sum.add(&e.counters());
        }
        sum
    }
}

/// An end of a connection and the other one.
#[inline]
fn pair(endpoints: &mut [Endpoint], id: EndpointId) -> (&mut Endpoint, &Endpoint) {
    let client = id.slot() & !1;
    let (left, right) = endpoints[client..client + 2].split_at_mut(1);
    if id.slot() == client { (&mut left[0], &right[0]) } else { (&mut right[0], &left[0]) }
}
