//! All TCP endpoints of a simulation, in pairs of client and server.

use super::config::TcpConfig;
use super::counters::Counters;
use super::endpoint::Endpoint;
use super::interface::{Connect, Context, Notice, Sink};
use super::states::TimeWait;
use crate::congestion::CongestionControl;
use eastwest_engine::memory;
use eastwest_types::{EndpointId, HopTelemetry, HostId, Packet, SackBlocks, Span, Time};
use serde::{Deserialize, Serialize};

/// Largest number of different TCP settings in a stack: an endpoint stores the number of its
/// settings in seven bits.
pub const MAX_SETTINGS: usize = 128;

/// TCP settings by number. The first settings are stored separately: in a run with only one set of
/// settings, a lookup is one comparison.
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

/// Host of an endpoint that is not in use.
const NOBODY: HostId = HostId(u32::MAX);

/// All TCP endpoints of a simulation, and their settings.
#[derive(Serialize, Deserialize)]
pub struct Stack {
    pub(super) settings: Settings,
    pub(super) endpoints: Vec<Endpoint>,
    /// Slots of client ends that a new connection may use.
    free: Vec<u32>,
    /// In a partitioned run: number of connections since the last own one whose ends other parts
    /// simulate. Their slots follow those in `endpoints`.
    elsewhere: u32,
    /// Sums of the counters of all endpoints whose connection has ended.
    closed_totals: Counters,
    /// In a partitioned run: whether any endpoint has finished, so that its slot may be used again.
    any_ended: bool,
    /// In a partitioned run: endpoints that had finished when a packet arrived at them.
    late_arrivals: Option<Vec<EndpointId>>,
}

impl Stack {
    /// Returns a stack without connections; `config`: TCP settings with number 0.
    pub fn new(config: TcpConfig) -> Stack {
        Stack {
            settings: Settings { first: config, others: Vec::new() },
            endpoints: Vec::new(),
            free: Vec::new(),
            elsewhere: 0,
            closed_totals: Counters::default(),
            any_ended: false,
            late_arrivals: None,
        }
    }

    /// Returns the TCP settings with number 0.
    pub fn config(&self) -> &TcpConfig {
        &self.settings.first
    }

    /// Adds TCP settings, which connections can choose by number. Returns their number, or `None`
    /// if there are [`MAX_SETTINGS`] already.
    pub fn add_settings(&mut self, config: TcpConfig) -> Option<u8> {
        let number = self.settings.others.len() + 1;
        if number >= MAX_SETTINGS {
            return None;
        }
        self.settings.others.push(config);
        Some(number as u8)
    }

    /// Returns the TCP settings with a number that [`Stack::add_settings`] has returned.
    pub fn settings(&self, number: u8) -> &TcpConfig {
        self.settings.get(number)
    }

    /// Returns the shortest retransmission timeout that any of the stack's settings allow.
    pub fn shortest_timeout(&self) -> Span {
        let of = |c: &TcpConfig| c.min_rto.min(c.initial_rto);
        self.settings.others.iter().map(of).fold(of(&self.settings.first), Span::min)
    }

    /// Returns the shortest TIME-WAIT in any of the stack's settings.
    pub fn shortest_time_wait(&self) -> Span {
        let others = self.settings.others.iter().map(|c| c.time_wait);
        others.fold(self.settings.first.time_wait, Span::min)
    }

    /// Returns the TCP settings of the endpoint in the slot of `id`.
    pub fn config_of(&self, id: EndpointId) -> &TcpConfig {
        self.settings.get(self.endpoints[id.slot()].settings())
    }

    /// Opens a connection: the client sends its SYN. Returns the client's end, or `None` if all
    /// slots are in use.
    pub fn open(&mut self, now: Time, c: &Connect, sink: &mut impl Sink) -> Option<EndpointId> {
        let id = self.allocate(c)?;
        self.connect(now, id, sink);
        Some(id)
    }

    /// Opens an allocated connection, whose client has the endpoint `id`: the client sends its SYN.
    pub fn connect(&mut self, now: Time, id: EndpointId, sink: &mut impl Sink) {
        let e = &mut self.endpoints[id.slot()];
        let config = self.settings.get(e.settings());
        e.connect(&mut Context { now, config, sink });
    }

    /// Returns the time at which the retransmission timer of endpoint `id` expires; the state of
    /// its peer at that time decides the cause of the timeout. [`Time::NEVER`] if no timer is armed
    /// or the endpoint is in TIME-WAIT.
    pub fn peer_inspection_at(&self, id: EndpointId) -> Time {
        match self.endpoints.get(id.slot()) {
            Some(e) if e.address.id == id && e.timers.time_wait == TimeWait::NotYet => {
                e.timers.rto_at
            }
            _ => Time::NEVER,
        }
    }

    /// Copies the state of endpoint `id` from the stack `from`, which simulates this endpoint. This
    /// stack simulates the peer. If the peer has a timeout, the copied state decides the cause.
    pub fn copy_peer_state(&mut self, id: EndpointId, from: &Stack) {
        let (mine, theirs) = (&mut self.endpoints[id.slot()], &from.endpoints[id.slot()]);
        if theirs.address.id == id {
            mine.state = theirs.state;
            mine.receiver.next = theirs.receiver.next;
            mine.receiver.acked = theirs.receiver.acked;
            mine.receiver.out_of_order = theirs.receiver.out_of_order.clone();
        }
    }

    /// Whether any endpoint has finished since the run began: its TIME-WAIT is over, or its
    /// connection has failed.
    pub fn has_ended(&self) -> bool {
        self.any_ended
    }

    /// Takes over the endpoints on the hosts for which `theirs` is true from the stack of another
    /// part of a partitioned run. Adds the other stack's counters of ended connections.
    pub fn adopt_endpoints(&mut self, other: &mut Stack, theirs: impl Fn(HostId) -> bool) {
        if self.endpoints.len() < other.endpoints.len() {
            self.extend_to(other.endpoints.len());
        }
        for (mine, other) in self.endpoints.iter_mut().zip(&mut other.endpoints) {
            if theirs(other.address.local) {
                std::mem::swap(mine, other);
            }
        }
        self.closed_totals.add(&other.closed_totals);
    }

    /// Leaves the counters of ended connections to the first part of a partitioned run.
    pub fn forget_ended(&mut self) {
        self.closed_totals = Counters::default();
    }

    /// Reserves memory for this number of further connections.
    pub fn reserve(&mut self, connections: usize) {
        memory::reserve(&mut self.endpoints, 2 * connections);
    }

    /// Counts a connection whose ends other parts of a partitioned run simulate, so that later
    /// connections have the slots of an undivided run. Returns false if all slots are in use.
    pub fn skip(&mut self) -> bool {
        self.elsewhere += 1;
        self.endpoints.len() + 2 * self.elsewhere as usize <= EndpointId::MAX_SLOTS
    }

    /// Appends unused endpoints, so that there are `slots` endpoints.
    fn extend_to(&mut self, slots: usize) {
        if slots > self.endpoints.capacity() {
            let more = (slots - self.endpoints.len()).max(1024);
            memory::reserve(&mut self.endpoints, more);
        }
        let (client, server) = (NOBODY, NOBODY);
        let c = Connect { client, server, hashes: (0, 0), dscp: 0, class: 0, settings: (0, 0) };
        let config = (0, &self.settings.first);
        let blank = |_| Endpoint::new(EndpointId(0), client, server, 0, &c, config);
        self.endpoints.extend((self.endpoints.len()..slots).map(blank));
    }

    /// Allocates the slots of a connection without sending a SYN. Returns the client's endpoint, or
    /// `None` if all slots are in use.
    pub fn allocate(&mut self, c: &Connect) -> Option<EndpointId> {
        let (slot, generation) = match self.free.pop() {
            Some(slot) => {
                let old = self.endpoints[slot as usize].address.id;
                (slot as usize, old.generation().wrapping_add(1))
            }
            None => {
                let slot = self.endpoints.len() + 2 * self.elsewhere as usize;
                if slot + 2 > EndpointId::MAX_SLOTS {
                    return None;
                }
                self.elsewhere = 0;
                self.extend_to(slot + 2);
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

    /// Counts `bytes` payload bytes that are written to the stream of endpoint `id`, which another
    /// part of a partitioned run simulates.
    pub fn count_written(&mut self, id: EndpointId, bytes: u64) {
        self.endpoints[id.slot()].stream.write(bytes);
    }

    /// Writes `bytes` payload bytes to the stream of endpoint `id`, for its application.
    pub fn write(&mut self, now: Time, id: EndpointId, bytes: u64, sink: &mut impl Sink) {
        let e = &mut self.endpoints[id.slot()];
        let config = self.settings.get(e.settings());
        debug_assert_eq!(e.address.id, id);
        debug_assert!(!e.closing, "written after closing");
        if e.has_control_state() {
            if e.control.is_none() {
                e.start_control(config);
            }
            e.check_app_limited(config);
        }
        e.stream.write(bytes);
        if e.is_established() {
            e.transmit(&mut Context { now, config, sink });
            e.rearm(sink);
        }
    }

    /// Drops the bytes that the application has written at endpoint `id` and TCP has not sent. The
    /// first byte of the stream stays: a connection that stops during its handshake still delivers
    /// a byte, so that its flow ends with an arrival. Returns the length of the remaining stream in
    /// bytes.
    pub fn truncate(&mut self, id: EndpointId) -> u64 {
        let e = &mut self.endpoints[id.slot()];
        debug_assert_eq!(e.address.id, id);
        debug_assert!(!e.closing, "truncated after closing");
        e.stream.truncate();
        e.written()
    }

    /// Makes endpoint `id`, which another part of a partitioned run simulates, end its TIME-WAIT at
    /// the time `until`, as in that part.
    pub fn wait_elsewhere(&mut self, id: EndpointId, until: Time, sink: &mut impl Sink) {
        let e = &mut self.endpoints[id.slot()];
        if e.address.id == id {
            e.timers.start_time_wait(until);
            e.rearm(sink);
        }
    }

    /// Sets the number of payload bytes that have arrived at endpoint `id`, which another part of a
    /// partitioned run simulates, and the sequence number that it sends next.
    pub fn set_progress(&mut self, id: EndpointId, received: u64, sent: u64) {
        let e = &mut self.endpoints[id.slot()];
        e.receiver.next = received + 1; // the SYN is position 0
        e.stream.next = sent;
    }

    /// Requests [`Notice::Delivered`] at endpoint `id` once `bytes` payload bytes in total have
    /// arrived there. Returns whether they have arrived already; in this case there is no notice.
    pub fn expect(&mut self, id: EndpointId, bytes: u64) -> bool {
        let e = &mut self.endpoints[id.slot()];
        let arrived = e.received() >= bytes;
        e.receiver.notify_at = if arrived { u64::MAX } else { bytes.saturating_add(1) };
        arrived
    }

    /// Closes the sending side of endpoint `id` for its application: a FIN follows the written
    /// data.
    pub fn close(&mut self, now: Time, id: EndpointId, sink: &mut impl Sink) {
        let e = &mut self.endpoints[id.slot()];
        let config = self.settings.get(e.settings());
        if e.address.id != id {
            return; // the connection has ended already
        }
        e.close(&mut Context { now, config, sink });
        e.rearm(sink);
        self.release(id, sink);
    }

    /// Aborts the connection of endpoint `id` for its application, and sends a reset to its peer.
    /// The application at `id` gets no [`Notice`].
    pub fn reset(&mut self, now: Time, id: EndpointId, sink: &mut impl Sink) {
        let e = &mut self.endpoints[id.slot()];
        let config = self.settings.get(e.settings());
        if e.address.id != id {
            return; // the connection has ended already
        }
        e.reset(&mut Context { now, config, sink });
        self.release(id, sink);
    }

    /// Ends the connection of endpoint `id` at both ends at once, without a packet and without a
    /// [`Notice`]. Packets in flight will be ignored.
    pub fn abort(&mut self, id: EndpointId) {
        if !self.is_live(id) {
            return;
        }
        let client = id.slot() & !1;
        let g = id.generation().wrapping_add(1);
        for (i, e) in self.endpoints[client..client + 2].iter_mut().enumerate() {
            e.fail();
            self.closed_totals.add(&e.vacate(EndpointId::new(client + i, g)));
        }
        self.free.push(client as u32);
    }

    /// Whether `id` is an end of a connection that has not ended.
    pub fn is_live(&self, id: EndpointId) -> bool {
        self.endpoints.get(id.slot()).is_some_and(|e| e.address.id == id)
    }

    /// Prefetches the state of endpoint `id` into the cache, because a packet is about to arrive at
    /// it.
    #[inline]
    pub fn prefetch(&self, id: EndpointId) {
        if let Some(e) = self.endpoints.get(id.slot()) {
            memory::prefetch(e);
        }
    }

    /// Handles a packet that has arrived at the host of its destination endpoint.
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
            return; // the connection has ended
        }
        let only_receives = e.on_packet(packet, sack, &mut Context { now, config, sink });
        if only_receives && e.receiver.ack_at == Time::NEVER {
            // Its timers, which are in another cache line, have not changed.
            debug_assert!(!e.is_done() && !e.must_rearm());
            return;
        }
        e.rearm(sink);
        if e.is_done() {
            if let Some(late) = &mut self.late_arrivals {
                late.push(id);
            }
            self.release(id, sink);
        }
    }

    /// Handles the arrival of a segment that its host has merged from `frames` segments. All merged
    /// segments count for delayed ACKs.
    pub fn on_merged(
        &mut self,
        now: Time,
        packet: &Packet,
        sack: Option<&SackBlocks>,
        frames: u16,
        sink: &mut impl Sink,
    ) {
        let e = &mut self.endpoints[packet.dst_endpoint.slot()];
        if e.address.id == packet.dst_endpoint {
            e.receiver.unacked = e.receiver.unacked.saturating_add(frames.saturating_sub(1));
        }
        self.on_packet(now, packet, sack, sink);
    }

    /// Starts to record the endpoints that have already finished when a packet arrives at them, for
    /// [`Stack::take_late_arrivals`].
    pub fn record_late_arrivals(&mut self) {
        self.late_arrivals = Some(Vec::new());
    }

    /// Removes and returns the recorded endpoints, which had finished when a packet arrived at
    /// them.
    pub fn take_late_arrivals(&mut self) -> Vec<EndpointId> {
        self.late_arrivals.as_mut().map_or(Vec::new(), std::mem::take)
    }

    /// Handles a timer event that was requested through [`Sink::arm`].
    pub fn on_timer(&mut self, now: Time, id: EndpointId, sink: &mut impl Sink) {
        let (e, peer) = pair(&mut self.endpoints, id);
        let config = self.settings.get(e.settings());
        if e.address.id != id || e.timers.armed_at != now {
            return; // an earlier timer event has replaced this one
        }
        e.timers.armed_at = Time::NEVER;
        e.on_timer_expiry(peer, &mut Context { now, config, sink });
        e.rearm(sink);
        if e.is_done() {
            self.release(id, sink);
        }
    }

    /// Frees the slots of the connection of endpoint `id` once both of its ends have finished.
    fn release(&mut self, id: EndpointId, sink: &mut impl Sink) {
        let client = id.slot() & !1;
        let pair = &mut self.endpoints[client..client + 2];
        self.any_ended |= pair.iter().any(Endpoint::is_done);
        if pair.iter().all(Endpoint::is_done) {
            // The slots get a new generation, so that late packets and timer events are ignored.
            let g = id.generation();
            for (i, e) in pair.iter_mut().enumerate() {
                self.closed_totals.add(&e.vacate(EndpointId::new(client + i, g.wrapping_add(1))));
            }
            self.free.push(client as u32);
            sink.notify(EndpointId::new(client, g), Notice::Closed);
        }
    }

    /// Returns an endpoint, to read its counters and state.
    pub fn endpoint(&self, id: EndpointId) -> &Endpoint {
        &self.endpoints[id.slot()]
    }

    /// Passes the telemetry records that a packet returns to the congestion control of endpoint
    /// `id`. To be called before [`Stack::on_packet`] with this packet.
    pub fn on_telemetry(&mut self, id: EndpointId, hops: &[HopTelemetry]) {
        let e = &mut self.endpoints[id.slot()];
        if e.address.id == id
            && let Some(control) = e.control.as_deref_mut()
        {
            control.algorithm.on_telemetry(hops);
        }
    }

    /// Returns the sums of the counters of all endpoints, including those of ended connections.
    pub fn totals(&self) -> Counters {
        let mut sum = self.closed_totals;
        for e in &self.endpoints {
            sum.add(&e.counters());
        }
        sum
    }
}

/// Returns endpoint `id` of a connection, and its peer.
#[inline]
fn pair(endpoints: &mut [Endpoint], id: EndpointId) -> (&mut Endpoint, &Endpoint) {
    let client = id.slot() & !1;
    let (left, right) = endpoints[client..client + 2].split_at_mut(1);
    if id.slot() == client { (&mut left[0], &right[0]) } else { (&mut right[0], &left[0]) }
}
