//! RoCEv2 in a run: queue pairs of workloads with `transport = "rocev2"` (the [protocol
//! stack](eastwest_transport::rocev2)), their numbers, and the messages on queue pairs.

use crate::connections::{Connections, Opened};
use crate::messages::{Delivered, LossCounts, Message, Messages, end_of};
use crate::network::Network;
use crate::probes::Probes;
use crate::stream_transports::interface::{
    Arrived, FurtherTransport, Partitionable, Progress, StreamNotice, StreamTransport,
};
use crate::stream_transports::number::TransportNumber;
use eastwest_measure::flows::FlowRow;
use eastwest_measure::frames::{self, Direction};
use eastwest_transport::rocev2::{
    Connect, Flow, Notice, QueuePair, RoceV2Config, Sink, Stack, TimerTarget,
};
use eastwest_types::{ClassId, EndpointId, HostId, Packet, Side, Span, Time};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// All RoCEv2 queue pairs of a run, and the messages on queue pairs.
#[derive(Serialize, Deserialize)]
pub struct RoceV2 {
    number: TransportNumber,
    stack: Stack,
    messages: Messages,
    connections: Connections,
    /// Pending notices of queue pairs for workloads; empty between two events.
    #[serde(skip)]
    notices: Vec<(EndpointId, Notice)>,
}

impl RoceV2 {
    /// Returns RoCEv2 without queue pairs; `number` identifies it among the transports.
    pub fn new(number: TransportNumber, config: &RoceV2Config, workloads: usize) -> RoceV2 {
        RoceV2 {
            number,
            stack: Stack::new(*config),
            messages: Messages::new(workloads),
            connections: Connections::default(),
            notices: Vec::new(),
        }
    }

    /// Calls the protocol stack with the function `f`, and returns the result of `f`. Packets and
    /// timers take effect immediately; notices for workloads are queued in `notices`.
    fn work<R>(
        &mut self,
        network: &mut Network,
        f: impl FnOnce(&mut Stack, Time, &mut NetworkSink) -> R,
    ) -> R {
        let now = network.now;
        let out = &mut NetworkSink { number: self.number, network, notices: &mut self.notices };
        f(&mut self.stack, now, out)
    }
}

/// Receiver of the actions of queue pairs (packets to send, timers to arm), which it passes to the
/// network.
struct NetworkSink<'a> {
    number: TransportNumber,
    network: &'a mut Network,
    notices: &'a mut Vec<(EndpointId, Notice)>,
}

impl Sink for NetworkSink<'_> {
    fn remaining(&mut self, bytes: u64) {
        if self.network.fabric.pool.keeps_remaining() {
            self.network.fabric.pool.set_remaining(bytes);
        }
    }

    fn send(&mut self, from: HostId, mut packet: Packet) {
        packet.set_stream_transport(self.number.0);
        self.network.send(from, packet, None);
    }

    fn takes_more_at(&mut self, flow: Flow, dscp: u8, ip_len: u32, sent: bool) -> Time {
        let (now, flow) = (self.network.now, ((flow.from, flow.to), flow.hash));
        self.network.fabric.card_takes_more_at(now, flow, dscp, (ip_len, sent))
    }

    fn arm(&mut self, at: Time, target: TimerTarget) {
        let id = self.number.timer(target.number());
        match target {
            TimerTarget::QueuePair(_) => self.network.arm(at, id),
            TimerTarget::Nic(number) => self.network.arm_card(number, at, id),
        }
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

fn loss_counts(sender: &QueuePair) -> LossCounts {
    let c = sender.counters();
    LossCounts::of(c.retransmits as u32, c.timeouts as u32)
}

impl Partitionable for RoceV2 {
    fn skip(&mut self) -> bool {
        self.stack.skip()
    }

    fn has_ended(&self, now: Time) -> bool {
        self.stack.has_free_slots(now)
    }

    fn shortest_time_wait(&self) -> Span {
        self.stack.config().time_wait
    }

    fn keep_own_counters(&mut self, is_first: bool, owns: &dyn Fn(HostId) -> bool) {
        self.stack.keep_own_counters(is_first, owns);
    }

    fn host_of_timer(&self, number: u64) -> HostId {
        match TimerTarget::of_number(number) {
            TimerTarget::QueuePair(id) => self.stack.end(id).local(),
            TimerTarget::Nic(number) => HostId(number), // one card for each host
        }
    }

    fn arrived(&self, receiver: EndpointId) -> Arrived {
        Arrived { next: self.stack.end(receiver).received(), above: None, first: 0 }
    }

    fn wait_elsewhere(&mut self, end: EndpointId, until: Time) -> bool {
        self.stack.wait(end, until);
        false
    }

    fn progress(&self, end: EndpointId) -> Progress {
        let end = self.stack.end(end);
        Progress { received: end.received(), sent: end.sent() }
    }

    fn set_progress(&mut self, end: EndpointId, Progress { received, sent }: Progress) {
        self.stack.set_progress(end, received, sent);
    }
}

impl StreamTransport for RoceV2 {
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
        _: &mut Probes,
        number: u64,
        (workload, name, class): (u16, u32, ClassId),
        (client, server): (HostId, HostId),
        cards: Option<(u32, u32)>,
    ) -> Option<(EndpointId, Opened)> {
        let hashes = network.hashes_of_new(client, server, cards);
        let fabric = &network.fabric;
        let there = (client, server);
        let back = (server, client);
        let dscp = network.dscp(class);
        let connect = Connect {
            client,
            server,
            hashes,
            nics: (
                network.card_alarm(there, hashes.0, dscp),
                network.card_alarm(back, hashes.1, dscp),
            ),
            rates: (
                fabric.card(there, hashes.0).cable.rate,
                fabric.card(back, hashes.1).cable.rate,
            ),
            dscp,
            class: class.0,
        };
        let end = self.stack.open(network.now, &connect)?;
        self.connections.open(number, end, client, server, (0, 0));
        self.messages.open(workload, name, end, class);
        Some((end, self.connections.of(end)))
    }

    fn written(&self, client: EndpointId, from: Side) -> (u64, LossCounts) {
        let sender = self.stack.end(end_of(client, from));
        (sender.written(), loss_counts(sender))
    }

    fn send(
        &mut self,
        network: &mut Network,
        _: &mut Probes,
        client: EndpointId,
        from: Side,
        message: Message,
    ) -> bool {
        let (sender, bytes) = (end_of(client, from), message.end - message.start);
        let first = self.messages.push(client, from, message);
        if network.owns(self.stack.end(sender).local()) {
            self.work(network, |stack, now, out| stack.write(now, sender, bytes, out));
        } else {
            self.stack.count_written(sender, bytes);
        }
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

    fn close(&mut self, network: &mut Network, _: &mut Probes, end: EndpointId) {
        if network.owns(self.stack.end(end).local()) {
            self.work(network, |stack, now, out| stack.close(now, end, out));
        }
    }

    fn is_live(&self, end: EndpointId) -> bool {
        self.stack.is_live(end)
    }

    fn abort(&mut self, now: Time, client: EndpointId) {
        self.stack.abort(now, client);
    }

    fn received(&self, end: EndpointId) -> u64 {
        self.stack.end(end).received()
    }

    fn hosts(&self, end: EndpointId) -> (HostId, HostId) {
        let end = self.stack.end(end);
        (end.local(), end.remote())
    }

    fn flow_row(&self, network: &Network, receiver: EndpointId, d: &Delivered) -> FlowRow {
        let sender = self.stack.end(receiver.peer());
        let ends = (sender.local(), sender.remote());
        let (bytes, mtu) = (d.message.payload, self.stack.config().mtu);
        let ideal = network.fabric.ideal_time(ends.0, ends.1, bytes, mtu, RoceV2Config::HEADERS);
        let number = self.connections.of(receiver).number;
        d.row(network.now, ends, loss_counts(sender), number, ideal)
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
        (counts.retransmits, counts.timeouts)
    }

    fn noun(&self) -> &'static str {
        "queue pair"
    }

    fn partitionable(&mut self) -> Option<&mut dyn Partitionable> {
        Some(self)
    }

    fn timeouts_to_failure(&self, _: EndpointId) -> u32 {
        self.stack.config().retries + 1
    }
}

impl FurtherTransport for RoceV2 {
    fn take_over(&mut self, other: &mut RoceV2, theirs: &dyn Fn(HostId) -> bool) {
        self.stack.adopt_ends(&mut other.stack, theirs);
        self.connections.take_over(&other.connections);
        let stack = &self.stack;
        self.messages.take_over(&mut other.messages, |end| theirs(stack.end(end).local()));
    }

    fn on_packet(&mut self, network: &mut Network, packet: &Packet) -> (u8, bool) {
        let class = self.stack.end(packet.dst_endpoint).class();
        self.work(network, |stack, now, out| stack.on_packet(now, packet, out));
        (class, !self.notices.is_empty())
    }

    fn on_timer(&mut self, network: &mut Network, number: u64) -> bool {
        let target = TimerTarget::of_number(number);
        self.work(network, |stack, now, out| stack.on_timer(now, target, out));
        !self.notices.is_empty()
    }

    fn next_notice(&mut self) -> Option<(EndpointId, StreamNotice)> {
        while !self.notices.is_empty() {
            match self.notices.remove(0) {
                (end, _) if !self.stack.is_live(end) => {} // aborted after the notice
                (end, Notice::Delivered) => return Some((end, StreamNotice::Delivered)),
                (end, Notice::Failed) => return Some((end, StreamNotice::Failed)),
            }
        }
        None
    }

    fn origin_of(&self, packet: &Packet) -> (Opened, u64) {
        let sender = packet.dst_endpoint.peer();
        let near = self.stack.end(sender).acknowledged();
        (self.connections.of(sender), Packet::widen(packet.seq, near))
    }

    fn headers(&self, packet: &Packet, direction: &Direction) -> (Vec<u8>, u32) {
        let to = packet.dst_endpoint.slot() as u32;
        (frames::rocev2(packet, direction, to), u32::from(frames::ICRC))
    }

    fn summary(&self) -> Value {
        let c = self.stack.totals();
        let mut summary = json!({
            "packets": c.packets, "retransmits": c.retransmits,
            "retransmitted_bytes": c.retransmitted_bytes, "timeouts": c.timeouts,
            "acks": c.acks, "naks": c.naks, "out_of_sequence": c.out_of_sequence,
            "duplicates": c.duplicates, "marked": c.marked, "cnps": c.cnps, "rate_cuts": c.cuts,
        });
        if c.trimmed > 0 {
            summary["trimmed"] = json!(c.trimmed);
        }
        summary
    }
}
