//! TCP in a run: the [protocol stack](eastwest_transport::tcp), the numbers of its connections, and
//! the messages on connections.

use crate::connections::{Connections, Opened};
use crate::critical_path::CriticalPaths;
use crate::endpoint_settings::EndpointSettings;
use crate::messages::{Delivered, LossCounts, Message, Messages, end_of};
use crate::network::Network;
use crate::plan::Plan;
use crate::probes::Probes;
use crate::processing::Segment;
use crate::stream_transports::interface::{Arrived, Partitionable, Progress, StreamTransport};
use eastwest_measure::flows::FlowRow;
use eastwest_measure::frames::{self, Direction, TcpOptions};
use eastwest_transport::tcp::{Connect, Notice, Sink, Stack};
use eastwest_types::{
    ClassId, EndpointId, HopTelemetry, HostId, Packet, SackBlocks, Side, Span, Time,
};
use serde::{Deserialize, Serialize};

/// TCP of a run: endpoints, connections, and the messages on connections.
#[derive(Serialize, Deserialize)]
pub struct Tcp {
    /// The TCP protocol stack with all endpoints.
    pub stack: Stack,
    /// Assignment of TCP settings to endpoints.
    settings: EndpointSettings,
    /// Numbers of connections, and the hosts at their ends.
    pub connections: Connections,
    /// Messages of workloads in flight on TCP connections.
    pub messages: Messages,
    /// Pending notices of endpoints for workloads; empty between two events.
    #[serde(skip)]
    pub notices: Vec<(EndpointId, Notice)>,
    /// Telemetry records that endpoints have received and not yet returned.
    telemetry: PendingTelemetry,
}

/// By the slot of an endpoint: the endpoint, and the telemetry records of the data packet that it has
/// received last. The next packet of the endpoint returns the records.
#[derive(Debug, Default, Serialize, Deserialize)]
struct PendingTelemetry(Vec<(EndpointId, Vec<HopTelemetry>)>);

impl PendingTelemetry {
    /// Sets the records that endpoint `end` returns with its next packet, which must be in use.
    fn set(&mut self, end: EndpointId, hops: Vec<HopTelemetry>) {
        let slot = end.slot();
        if slot >= self.0.len() {
            self.0.resize_with(slot + 1, || (end, Vec::new()));
        }
        self.0[slot] = (end, hops);
    }

    /// Removes and returns the records that endpoint `end` returns with its next packet.
    fn take(&mut self, end: EndpointId) -> Vec<HopTelemetry> {
        match self.0.get_mut(end.slot()) {
            Some((of, hops)) if *of == end => std::mem::take(hops),
            _ => Vec::new(), // the slot belonged to an earlier connection
        }
    }
}

/// Receiver of the actions of TCP (packets to send, timers to arm), which it passes to the network.
/// `INSIDE` (detailed probes) and `DCB` (PFC or QCN) select one of the four variants of the event
/// loop. Each variant has its own copy of this type, so that TCP's functions have a single caller
/// and are inlined.
pub struct NetworkSink<'a, const INSIDE: bool, const DCB: bool> {
    network: &'a mut Network,
    notices: &'a mut Vec<(EndpointId, Notice)>,
    telemetry: &'a mut PendingTelemetry,
    /// Recorder of critical paths and the messages in flight; `None` if critical paths are not
    /// recorded.
    paths: Option<(&'a mut CriticalPaths, &'a Messages)>,
    /// Payload bytes that the sender of the next packet has written and that are not acknowledged,
    /// including the packet; known if `INSIDE`.
    remaining: u64,
}

/// Whether requests to TCP need the variant of [`NetworkSink`] that inspects each packet.
fn looks_inside(network: &Network, paths: &CriticalPaths) -> bool {
    let pool = &network.fabric.pool;
    paths.is_on()
        || network.processing.is_some()
        || pool.keeps_remaining()
        || pool.keeps_telemetry()
}

/// Request to TCP other than the arrival of a packet.
pub enum TcpRequest {
    /// The application at this endpoint, the client of an allocated connection, opens it.
    Connect(EndpointId),
    /// A timer of this endpoint has expired.
    Timer(EndpointId),
    /// This endpoint, which another part of a partitioned run simulates, ends its TIME-WAIT at this
    /// time.
    WaitElsewhere(EndpointId, Time),
    /// The application at this endpoint writes this number of bytes.
    Write(EndpointId, u64),
    /// The application at this endpoint closes its side of the connection.
    Close(EndpointId),
}

impl<const INSIDE: bool, const DCB: bool> Sink for NetworkSink<'_, INSIDE, DCB> {
    const READS_REMAINING: bool = INSIDE;

    #[inline]
    fn remaining(&mut self, bytes: u64) {
        self.remaining = bytes;
    }

    // The function is inlined, so that the fields of the packet pass through registers.
    #[inline(always)]
    fn send(&mut self, from: HostId, packet: Packet, sack: Option<SackBlocks>) {
        match INSIDE {
            true => self.send_observed(from, packet, sack),
            false => self.network.send(from, packet, sack),
        }
    }

    #[inline]
    fn leaves_at(&self, ends: (HostId, HostId), hash: u16, dscp: u8) -> Time {
        self.network.fabric.leaves_at(ends, hash, dscp)
    }

    #[inline]
    fn arm(&mut self, at: Time, endpoint: EndpointId) {
        self.network.arm(at, u64::from(endpoint.0));
    }

    fn waits(&mut self, endpoint: EndpointId, until: Time) {
        if let Some(partition) = &mut self.network.fabric.partition {
            partition.waits(endpoint, until);
        }
    }

    fn notify(&mut self, endpoint: EndpointId, notice: Notice) {
        self.notices.push((endpoint, notice));
    }
}

impl<const INSIDE: bool, const DCB: bool> NetworkSink<'_, INSIDE, DCB> {
    /// Sends a packet with what the probes record of it, through a CPU core of the host if cores are
    /// simulated.
    #[inline(never)]
    fn send_observed(&mut self, from: HostId, packet: Packet, sack: Option<SackBlocks>) {
        let by_core = self.network.processing.is_some();
        let mut path = 0;
        if let Some((paths, messages)) = &mut self.paths {
            let slot = (!by_core).then(|| self.network.fabric.pool.next_slot());
            path = paths.sends(self.network.now, &packet, messages, slot);
        }
        if by_core {
            let remaining = std::mem::take(&mut self.remaining);
            return self.network.send_by_core(from, Segment { packet, sack, path, remaining });
        }
        if self.network.fabric.pool.keeps_remaining() {
            self.network.fabric.pool.set_remaining(self.remaining);
        }
        if self.network.fabric.pool.keeps_telemetry() {
            let echo = self.telemetry.take(packet.dst_endpoint.peer());
            self.network.fabric.pool.begin_telemetry(echo);
        }
        self.network.send(from, packet, sack);
    }
}

impl Tcp {
    /// Returns TCP with the settings of a plan and without connections.
    pub fn new(plan: &Plan) -> Tcp {
        let (settings, all) = EndpointSettings::new(&plan.tcp, &plan.tcp_overrides);
        let mut stack = Stack::new(plan.tcp.clone());
        for config in all.into_iter().skip(1) {
            stack.add_settings(config).expect("the scenario has so few overrides that all fit");
        }
        Tcp {
            stack,
            settings,
            connections: Connections::default(),
            messages: Messages::new(plan.workloads.len()),
            notices: Vec::new(),
            telemetry: PendingTelemetry::default(),
        }
    }

    /// Passes the telemetry that an arriving packet returns to the congestion control of its
    /// receiver, and stores the records of the packet itself, if it has payload, for the next
    /// packet of the receiver. The packet must be the one that was removed from the pool last.
    pub fn take_telemetry(&mut self, network: &mut Network, packet: &Packet) {
        let told = network.fabric.pool.take_telemetry();
        if !told.echo.is_empty() {
            self.stack.on_telemetry(packet.dst_endpoint, &told.echo);
        }
        if packet.payload > 0 && self.stack.is_live(packet.dst_endpoint) {
            self.telemetry.set(packet.dst_endpoint, told.hops);
        }
    }

    /// Calls the protocol stack with the function `f`, and returns the result of `f`. The stack's
    /// packets and timers take effect immediately; its notices for workloads are queued in
    /// `notices`.
    #[inline]
    pub fn work<const INSIDE: bool, const DCB: bool, R>(
        &mut self,
        network: &mut Network,
        paths: &mut CriticalPaths,
        f: impl FnOnce(&mut Stack, Time, &mut NetworkSink<INSIDE, DCB>) -> R,
    ) -> R {
        let now = network.now;
        let mut out = NetworkSink {
            network,
            notices: &mut self.notices,
            telemetry: &mut self.telemetry,
            paths: (INSIDE && paths.is_on()).then_some((paths, &self.messages)),
            remaining: 0,
        };
        f(&mut self.stack, now, &mut out)
    }

    /// Passes a request to the protocol stack. Records critical paths if at least one sender is
    /// selected for them.
    #[inline]
    pub fn request(
        &mut self,
        network: &mut Network,
        paths: &mut CriticalPaths,
        request: &TcpRequest,
    ) {
        match looks_inside(network, paths) {
            true => self.request_in::<true>(network, paths, request),
            false => self.request_in::<false>(network, paths, request),
        }
    }

    #[inline]
    fn request_in<const INSIDE: bool>(
        &mut self,
        network: &mut Network,
        paths: &mut CriticalPaths,
        request: &TcpRequest,
    ) {
        self.work::<INSIDE, false, _>(network, paths, |stack, now, out| match *request {
            TcpRequest::Connect(client) => stack.connect(now, client, out),
            TcpRequest::Timer(end) => stack.on_timer(now, end, out),
            TcpRequest::WaitElsewhere(end, until) => stack.wait_elsewhere(end, until, out),
            TcpRequest::Write(end, bytes) => stack.write(now, end, bytes, out),
            TcpRequest::Close(end) => stack.close(now, end, out),
        });
    }

    /// Returns the headers of a packet for a packet capture, from the Ethernet header on. `client`
    /// and `server` are the numbers of the TCP settings of both ends.
    pub fn headers(
        &self,
        packet: &Packet,
        sack: Option<&SackBlocks>,
        (client, server): (u8, u8),
        direction: &Direction,
    ) -> Vec<u8> {
        let c = self.stack.settings(if direction.from_client { client } else { server });
        let options = TcpOptions::new(c.segment, c.max_window, c.timestamps, c.sack);
        frames::tcp(packet, sack, direction, &options)
    }
}

impl Tcp {
    /// Takes over, from the same transport in another part of a partitioned run, the endpoints on
    /// the hosts for which `theirs` is true.
    pub fn take_over(&mut self, other: &mut Tcp, theirs: &dyn Fn(HostId) -> bool) {
        self.stack.adopt_endpoints(&mut other.stack, theirs);
        self.connections.take_over(&other.connections);
        let stack = &self.stack;
        self.messages.take_over(&mut other.messages, |end| theirs(stack.endpoint(end).local()));
    }
}

impl Partitionable for Tcp {
    fn become_part(&mut self) {
        self.stack.record_late_arrivals();
    }

    fn skip(&mut self) -> bool {
        self.stack.skip()
    }

    fn has_ended(&self, _: Time) -> bool {
        self.stack.has_ended()
    }

    fn shortest_time_wait(&self) -> Span {
        self.stack.shortest_time_wait()
    }

    fn take_late_arrivals(&mut self) -> Vec<EndpointId> {
        self.stack.take_late_arrivals()
    }

    fn keep_own_counters(&mut self, is_first: bool, _: &dyn Fn(HostId) -> bool) {
        // an endpoint of another part never ends in this part, which would add up its counters
        if !is_first {
            self.stack.forget_ended();
        }
    }

    fn host_of_timer(&self, number: u64) -> HostId {
        self.stack.endpoint(EndpointId(number as u32)).local()
    }

    fn arrived(&self, receiver: EndpointId) -> Arrived {
        let (next, above) = self.stack.endpoint(receiver).received_ranges();
        Arrived { next: next.max(1), above: Some(above), first: 1 } // the SYN is position 0
    }

    fn wait_elsewhere(&mut self, _: EndpointId, _: Time) -> bool {
        true
    }

    fn progress(&self, end: EndpointId) -> Progress {
        let end = self.stack.endpoint(end);
        Progress { received: end.received(), sent: end.sent_to() }
    }

    fn set_progress(&mut self, end: EndpointId, Progress { received, sent }: Progress) {
        self.stack.set_progress(end, received, sent);
    }
}

impl StreamTransport for Tcp {
    fn messages(&self) -> &Messages {
        &self.messages
    }

    fn messages_mut(&mut self) -> &mut Messages {
        &mut self.messages
    }

    fn reserve(&mut self, connections: usize) {
        self.stack.reserve(connections);
        self.connections.reserve(connections);
        self.messages.reserve(connections);
    }

    fn allocate(
        &mut self,
        network: &mut Network,
        probes: &mut Probes,
        number: u64,
        (workload, name, class): (u16, u32, ClassId),
        (client, server): (HostId, HostId),
        cards: Option<(u32, u32)>,
    ) -> Option<(EndpointId, Opened)> {
        let connect = Connect {
            client,
            server,
            hashes: network.hashes_of_new(client, server, cards),
            dscp: network.dscp(class),
            class: class.0,
            settings: self.settings.of(workload, client, server),
        };
        let endpoint = self.stack.allocate(&connect)?;
        self.connections.open(number, endpoint, client, server, connect.settings);
        probes.tracer.open(endpoint, client, server);
        self.messages.open(workload, name, endpoint, class);
        Some((endpoint, self.connections.of(endpoint)))
    }

    fn connect(&mut self, network: &mut Network, probes: &mut Probes, client: EndpointId) {
        self.request(network, &mut probes.paths, &TcpRequest::Connect(client));
    }

    fn written(&self, client: EndpointId, from: Side) -> (u64, LossCounts) {
        let sender = self.stack.endpoint(end_of(client, from));
        (sender.written(), LossCounts::by(sender))
    }

    fn send(
        &mut self,
        network: &mut Network,
        probes: &mut Probes,
        client: EndpointId,
        from: Side,
        message: Message,
    ) -> bool {
        let (sender, bytes) = (end_of(client, from), message.end - message.start);
        let first = self.messages.push(client, from, message);
        if network.owns(self.stack.endpoint(sender).local()) {
            self.request(network, &mut probes.paths, &TcpRequest::Write(sender, bytes));
        } else {
            self.stack.count_written(sender, bytes);
        }
        probes.tracer.look(network.now, &self.stack, &self.connections, sender);
        if first {
            self.watch(sender.peer());
        }
        first
    }

    fn truncate(&mut self, client: EndpointId, from: Side) {
        let sender = end_of(client, from);
        let end = self.stack.truncate(sender);
        self.messages.truncate(client, from, end);
        self.watch(sender.peer());
    }

    fn shut_down(&mut self, network: &mut Network, probes: &mut Probes, sender: EndpointId) {
        if !network.owns(self.stack.endpoint(sender).local()) {
            return;
        }
        self.request(network, &mut probes.paths, &TcpRequest::Close(sender));
    }

    fn close(&mut self, network: &mut Network, probes: &mut Probes, end: EndpointId) {
        self.shut_down(network, probes, end);
    }

    fn is_live(&self, end: EndpointId) -> bool {
        self.stack.is_live(end)
    }

    fn abort(&mut self, _: Time, client: EndpointId) {
        self.stack.abort(client);
    }

    fn received(&self, end: EndpointId) -> u64 {
        self.stack.endpoint(end).received()
    }

    fn hosts(&self, end: EndpointId) -> (HostId, HostId) {
        let end = self.stack.endpoint(end);
        (end.local(), end.remote())
    }

    fn flow_row(&self, network: &Network, receiver: EndpointId, d: &Delivered) -> FlowRow {
        let sender = self.stack.endpoint(receiver.peer());
        let config = self.stack.config_of(receiver.peer());
        let ends = (sender.local(), sender.remote());
        let (payload, header) = (d.message.payload, config.header());
        let ideal = network.fabric.ideal_time(ends.0, ends.1, payload, config.segment, header);
        let connection = self.connections.of(receiver).number;
        d.row(network.now, ends, LossCounts::by(sender), connection, ideal)
    }

    fn watch(&mut self, receiver: EndpointId) {
        if let Some(end) = self.messages.next_end(receiver)
            && self.stack.expect(receiver, end)
        {
            self.notices.push((receiver, Notice::Delivered));
        }
    }

    fn losses(&self) -> (u64, u64) {
        let counts = self.stack.totals();
        (counts.retransmits.into(), counts.timeouts.into())
    }

    fn noun(&self) -> &'static str {
        "connection"
    }

    fn partitionable(&mut self) -> Option<&mut dyn Partitionable> {
        Some(self)
    }

    fn timeouts_to_failure(&self, end: EndpointId) -> u32 {
        self.stack.config_of(end).max_retries + 1
    }
}
