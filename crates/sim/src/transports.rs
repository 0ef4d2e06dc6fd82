//! Transports of the data of workloads: TCP, queue pairs of RoCEv2, and streams of raw Ethernet frames.

use crate::ethernet_messages::EthernetMessages;
use crate::messages::Message;
use crate::origin::Origin;
use crate::plan::Plan;
use crate::rocev2::RoceV2;
use crate::streams::Streams;
use crate::tcp::Tcp;
use eastwest_measure::events::{EventRow, What};
use eastwest_network::losses::Lost;
use eastwest_types::{EndpointId, HostId, Packet, Side};
use serde::{Deserialize, Serialize};

/// All transports of a run.
#[derive(Serialize, Deserialize)]
pub struct Transports {
    /// TCP.
    pub tcp: Tcp,
    /// Queue pairs, if a workload uses them.
    pub rocev2: Option<Box<RoceV2>>,
    /// Streams of frames.
    pub streams: Streams,
    /// Messages that travel as frames.
    pub ethernet_messages: EthernetMessages,
}

impl Transports {
    /// Returns the transports of a plan, without connections.
    pub fn new(plan: &Plan) -> Transports {
        let workloads = plan.workloads.len();
        let streams = Streams::new(plan.workloads.iter().map(|w| &w.workload));
        Transports {
            tcp: Tcp::new(plan),
            rocev2: plan.rocev2.map(|config| Box::new(RoceV2::new(config, workloads))),
            ethernet_messages: EthernetMessages::new(streams.rows.len() as u32),
            streams,
        }
    }

    /// Returns the queue pairs, which exist if a workload uses them.
    pub fn queue_pairs(&mut self) -> &mut RoceV2 {
        self.rocev2.as_mut().expect("a workload has queue pairs")
    }

    /// Returns the origin of a packet.
    pub fn origin_of(&self, packet: &Packet) -> Origin {
        if packet.notes & Packet::DATAGRAM == 0 {
            let sender = packet.dst_endpoint.peer();
            return Origin::Tcp { opened: self.tcp.connections.of(sender), sender };
        }
        match self.rocev2.as_deref().filter(|_| packet.flags != 0) {
            Some(all) => all.origin_of(packet),
            None => Origin::None,
        }
    }

    /// Returns the event of a lost packet.
    pub fn event_of(&self, lost: &Lost) -> EventRow {
        let packet = &lost.packet;
        let row = EventRow {
            at: lost.at,
            what: What::Drop,
            connection: None,
            src: HostId(packet.window),
            dst: lost.dst,
            stream_start: 0,
            bytes: u32::from(packet.payload),
            drop: Some((packet.kind(), lost.link, lost.cause as u8)),
            timeout: None,
        };
        match self.origin_of(packet) {
            Origin::None => row,
            Origin::QueuePair { opened, position, .. } => {
                EventRow { connection: Some(opened.number), stream_start: position, ..row }
            }
            Origin::Tcp { opened, sender } => {
                let acknowledged = self.tcp.stack.endpoint(sender).acknowledged();
                EventRow {
                    connection: Some(opened.number),
                    src: opened.stream_of(sender).0,
                    stream_start: Packet::widen(packet.seq, acknowledged).saturating_sub(1),
                    ..row
                }
            }
        }
    }

    /// Returns the messages in flight over TCP and queue pairs: sender, receiver, message.
    pub fn outstanding(&self) -> impl Iterator<Item = (HostId, HostId, &Message)> {
        let over_tcp = self.tcp.messages.outstanding().map(|(slot, side, message)| {
            let end = self.tcp.stack.endpoint(EndpointId::new(slot + side as usize, 0));
            (end.local(), end.remote(), message)
        });
        over_tcp.chain(self.rocev2.iter().flat_map(|all| all.outstanding()))
    }

    /// Returns how many messages whose rows are kept have arrived in part, and how many not at all.
    pub fn unfinished(&self) -> [u64; 2] {
        let receiver = |slot: usize, side: Side| {
            let client = EndpointId::new(slot, 0);
            if side == Side::Client { client.peer() } else { client }
        };
        let over_tcp = self.tcp.messages.outstanding().map(|(slot, side, m)| {
            (m, self.tcp.stack.endpoint(receiver(slot, side)).received() <= m.start)
        });
        let on_queue_pairs = self.rocev2.iter().flat_map(|all| {
            let received = move |slot, side| all.stack.end(receiver(slot, side)).received();
            all.messages
                .outstanding()
                .map(move |(slot, side, m)| (m, received(slot, side) <= m.start))
        });
        let mut counts = [0; 2];
        for (_, nothing) in over_tcp.chain(on_queue_pairs).filter(|(m, _)| m.record) {
            counts[usize::from(nothing)] += 1;
        }
        counts
    }
}
