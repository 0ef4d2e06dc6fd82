//! Queue pairs of workloads with `transport = "rocev2"`: the [stack](eastwest_transport::rocev2), their
//! numbers, and the messages on them.

use crate::connections::{Connections, Opened};
use crate::messages::{Delivered, LossCounts, Message, Messages, end_of};
use crate::network::Network;
use crate::origin::Origin;
use eastwest_measure::flows::FlowRow;
use eastwest_transport::rocev2::{
    Connect, Notice, QueuePair, RoceV2Config, Sink, Stack, TimerTarget,
};
use eastwest_types::{ClassId, EndpointId, HostId, Packet, Side, Time};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Bit of the timer identifiers of queue pairs, which distinguishes them from those of TCP.
pub const ROCEV2_TIMER: u64 = 1 << 40;

/// All queue pairs of a run, and the messages on them.
#[derive(Serialize, Deserialize)]
pub struct RoceV2 {
    /// Queue pairs.
    pub stack: Stack,
    /// Messages in flight.
    pub messages: Messages,
    connections: Connections,
    /// Notices for applications; empty between two events.
    #[serde(skip)]
    notices: Vec<(EndpointId, Notice)>,
}

impl RoceV2 {
    /// Returns the state without queue pairs.
    pub fn new(config: RoceV2Config, workloads: usize) -> RoceV2 {
        RoceV2 {
            stack: Stack::new(config),
            messages: Messages::new(workloads),
            connections: Connections::default(),
            notices: Vec::new(),
        }
    }

    /// Returns the origin of a packet of a queue pair.
    pub fn origin_of(&self, packet: &Packet) -> Origin {
        let sender = packet.dst_endpoint.peer();
        let near = self.stack.end(sender).acknowledged();
        let position = Packet::widen(packet.seq, near);
        Origin::QueuePair { opened: self.connections.of(sender), sender, position }
    }

    /// Returns the messages in flight: sender, receiver, message.
    pub fn outstanding(&self) -> impl Iterator<Item = (HostId, HostId, &Message)> {
        self.messages.outstanding().map(|(slot, side, message)| {
            let end = self.stack.end(EndpointId::new(slot + side as usize, 0));
            (end.local(), end.remote(), message)
        })
    }

    /// Returns the counters for the summary.
    pub fn summary(&self) -> Value {
        let c = self.stack.totals();
        json!({
            "packets": c.packets, "retransmits": c.retransmits,
            "retransmitted_bytes": c.retransmitted_bytes, "timeouts": c.timeouts,
            "acks": c.acks, "naks": c.naks, "out_of_sequence": c.out_of_sequence,
            "duplicates": c.duplicates, "marked": c.marked, "cnps": c.cnps, "rate_cuts": c.cuts,
        })
    }
}

/// Sink of the actions of queue pairs into the network.
struct NetworkSink<'a> {
    network: &'a mut Network,
    notices: &'a mut Vec<(EndpointId, Notice)>,
}

impl Sink for NetworkSink<'_> {
    fn send(&mut self, from: HostId, packet: Packet) {
        self.network.send(from, packet, None);
    }

    fn takes_more_at(&self, from: HostId, dscp: u8, ip_len: u32, sent: bool) -> Time {
        self.network.fabric.takes_more_at(self.network.now, from, dscp, ip_len, sent)
    }

    fn arm(&mut self, at: Time, target: TimerTarget) {
        self.network.arm(at, ROCEV2_TIMER | target.number());
    }

    fn notify(&mut self, endpoint: EndpointId, notice: Notice) {
        self.notices.push((endpoint, notice));
    }
}

fn loss_counts(sender: &QueuePair) -> LossCounts {
    let c = sender.counters();
    LossCounts::of(c.retransmits as u32, c.timeouts as u32)
}

impl RoceV2 {
    /// Calls the stack; its notices for applications are queued in `notices`.
    fn work<R>(
        &mut self,
        network: &mut Network,
        f: impl FnOnce(&mut Stack, Time, &mut NetworkSink) -> R,
    ) -> R {
        let now = network.now;
        f(&mut self.stack, now, &mut NetworkSink { network, notices: &mut self.notices })
    }

    /// Opens a queue pair with this number for a workload. Returns `None` if there are too many.
    pub fn open(
        &mut self,
        network: &mut Network,
        number: u64,
        (workload, name, class): (u16, u32, ClassId),
        (client, server): (HostId, HostId),
    ) -> Option<(EndpointId, Opened)> {
        let connect = Connect {
            client,
            server,
            hashes: network.hashes_of_new(client, server),
            rates: (network.fabric.host_rate(client), network.fabric.host_rate(server)),
            dscp: network.dscp(class),
            class: class.0,
        };
        let end = self.stack.open(&connect)?;
        self.connections.open(number, end, client, server, (0, 0));
        self.messages.open(workload, name, end, class);
        Some((end, self.connections.of(end)))
    }

    /// Returns the bytes that a side has written so far, and the counts of losses of its sender.
    pub fn written(&self, client: EndpointId, from: Side) -> (u64, LossCounts) {
        let sender = self.stack.end(end_of(client, from));
        (sender.written(), loss_counts(sender))
    }

    /// Writes a message.
    pub fn send(
        &mut self,
        network: &mut Network,
        client: EndpointId,
        from: Side,
        message: Message,
    ) {
        let (sender, bytes) = (end_of(client, from), message.end - message.start);
        let first = self.messages.push(client, from, message);
        self.work(network, |stack, now, out| stack.write(now, sender, bytes, out));
        if first {
            self.watch(sender.peer());
        }
    }

    /// Drops the bytes that a side has written and not sent.
    pub fn truncate(&mut self, client: EndpointId, from: Side) {
        let sender = end_of(client, from);
        let end = self.stack.truncate(sender);
        self.messages.truncate(client, from, end);
        self.watch(sender.peer());
    }

    /// Closes a queue pair when all is delivered.
    pub fn close(&mut self, network: &mut Network, client: EndpointId) {
        self.work(network, |stack, _, out| stack.close(client, out));
    }

    /// Returns the bytes that client and server have received.
    pub fn received(&self, client: EndpointId) -> [u64; 2] {
        [client, client.peer()].map(|end| self.stack.end(end).received())
    }

    /// Processes a packet that has reached its host.
    pub fn on_packet(&mut self, network: &mut Network, packet: &Packet) {
        self.work(network, |stack, now, out| stack.on_packet(now, packet, out));
    }

    /// Processes an expired timer of a queue pair or a NIC, by the number with which it was armed.
    #[cold]
    pub fn on_timer(&mut self, network: &mut Network, number: u64) {
        let target = TimerTarget::of_number(number & !ROCEV2_TIMER);
        self.work(network, |stack, now, out| stack.on_timer(now, target, out));
    }

    /// Takes the next notice of an end that still exists; forgets ends that have closed.
    pub fn next_notice(&mut self) -> Option<(EndpointId, Notice)> {
        while !self.notices.is_empty() {
            match self.notices.remove(0) {
                (end, Notice::Closed) => self.messages.gone(end),
                (end, notice) if self.stack.is_live(end) => return Some((end, notice)),
                _ => {} // it has been aborted meanwhile
            }
        }
        None
    }

    /// Returns the row of a message that has arrived.
    pub fn flow_row(&self, network: &Network, receiver: EndpointId, d: &Delivered) -> FlowRow {
        let sender = self.stack.end(receiver.peer());
        let ends = (sender.local(), sender.remote());
        let (bytes, mtu) = (d.message.payload, self.stack.config().mtu);
        let ideal = network.fabric.ideal_time(ends.0, ends.1, bytes, mtu, RoceV2Config::HEADERS);
        let number = self.connections.of(receiver).number;
        d.row(network.now, ends, loss_counts(sender), number, ideal)
    }

    /// Requests a notice when the next message to this receiver is complete.
    pub fn watch(&mut self, receiver: EndpointId) {
        if let Some(end) = self.messages.next_end(receiver)
            && self.stack.expect(receiver, end)
        {
            self.notices.push((receiver, Notice::Delivered));
        }
    }
}
