//! All transports of a run: TCP, the transports beside TCP, and streams of raw Ethernet frames.

use crate::capture::Headers;
use crate::connections::Opened;
use crate::ethernet_messages::EthernetMessages;
use crate::messages::Message;
use crate::origin::{Origin, Place};
use crate::plan::Plan;
use crate::stream_transports::FurtherSettings;
use crate::stream_transports::interface::{FurtherTransport, StreamTransport};
use crate::stream_transports::number::TransportNumber;
use crate::streams::Streams;
use crate::tcp::Tcp;
use eastwest_measure::events::{EventRow, What};
use eastwest_measure::frames::{self, Direction};
use eastwest_network::losses::Lost;
use eastwest_types::{EndpointId, HostId, Packet, SackBlocks, Side};
use serde::{Deserialize, Serialize};

macro_rules! states {
    ($($module:ident: $Settings:ident => $Adapter:ident,)*) => {
        /// State of the transports other than TCP; `None` for a transport that no workload uses.
        #[derive(Serialize, Deserialize)]
        pub struct Further {
            $($module: Option<Box<crate::stream_transports::$module::$Adapter>>,)*
        }

        impl Further {
            fn new(settings: &FurtherSettings, workloads: usize) -> Further {
                use crate::stream_transports::{Transport, $($module),*};
                Further {
                    $($module: settings.$module.as_ref().map(|config| {
                        let number = Transport::$Adapter.number();
                        Box::new($module::$Adapter::new(number, config, workloads))
                    }),)*
                }
            }

            /// Takes over the endpoints on the hosts for which `theirs` is true, from the same
            /// transports in another part of a partitioned run.
            fn take_over(&mut self, other: &mut Further, theirs: &dyn Fn(HostId) -> bool) {
                $(if let (Some(mine), Some(other)) = (&mut self.$module, &mut other.$module) {
                    mine.take_over(other, theirs);
                })*
            }

            /// Yields the transports other than TCP that workloads use, each with its name.
            pub fn all(&self) -> impl Iterator<Item = (&'static str, &dyn FurtherTransport)> {
                [$((
                    stringify!($module),
                    self.$module.as_deref().map(|t| t as &dyn FurtherTransport),
                )),*]
                .into_iter()
                .filter_map(|(name, transport)| Some((name, transport?)))
            }

            /// Returns the numbers of the transports other than TCP that workloads use.
            pub fn numbers(&self) -> impl Iterator<Item = TransportNumber> + use<> {
                use crate::stream_transports::Transport;
                [$((self.$module.is_some(), Transport::$Adapter.number())),*]
                    .into_iter()
                    .filter_map(|(used, number)| used.then_some(number))
            }

            /// Returns the transport (other than TCP) with this number; `None` if no workload uses
            /// it.
            fn get(&self, number: TransportNumber) -> Option<&dyn FurtherTransport> {
                use crate::stream_transports::Transport;
                $(if number == Transport::$Adapter.number() {
                    return self.$module.as_deref().map(|t| t as &dyn FurtherTransport);
                })*
                None
            }

            /// Returns mutable access to the transport (other than TCP) with this number; `None` if
            /// no workload uses it.
            fn get_mut(&mut self, number: TransportNumber) -> Option<&mut dyn FurtherTransport> {
                use crate::stream_transports::Transport;
                $(if number == Transport::$Adapter.number() {
                    return self.$module.as_deref_mut().map(|t| t as &mut dyn FurtherTransport);
                })*
                None
            }
        }
    };
}
crate::stream_transports::further_transports!(states);

/// All transports of a run.
#[derive(Serialize, Deserialize)]
pub struct Transports {
    /// TCP: endpoints, connections and messages.
    pub tcp: Tcp,
    /// Transports other than TCP that carry byte streams, such as RoCEv2.
    pub further: Further,
    /// Streams of raw Ethernet frames, with their counters.
    pub streams: Streams,
    /// Messages over raw Ethernet, and the NICs that send their frames.
    pub ethernet_messages: EthernetMessages,
}

impl Transports {
    /// Returns the transports of a plan, without connections.
    pub fn new(plan: &Plan) -> Transports {
        let streams = Streams::new(plan.workloads.iter().map(|w| &w.workload));
        Transports {
            tcp: Tcp::new(plan),
            further: Further::new(&plan.further, plan.workloads.len()),
            ethernet_messages: EthernetMessages::new(streams.rows.len() as u32),
            streams,
        }
    }

    /// Returns the transport with this number, which is not TCP. Panics if no workload uses it.
    pub fn further_of(&self, number: TransportNumber) -> &dyn FurtherTransport {
        self.further.get(number).expect("a workload uses the transport")
    }

    /// Returns mutable access to the transport with this number, which is not TCP. Panics if no
    /// workload uses it.
    pub fn further_mut(&mut self, number: TransportNumber) -> &mut dyn FurtherTransport {
        self.further.get_mut(number).expect("a workload uses the transport")
    }

    /// Returns mutable access to the transport with this number, which may be TCP. Panics if no
    /// workload uses it.
    pub fn of_mut(&mut self, number: TransportNumber) -> &mut dyn StreamTransport {
        match number {
            TransportNumber::TCP => &mut self.tcp,
            number => self.further_mut(number),
        }
    }

    /// Returns the transport with this number, which may be TCP. Panics if no workload uses it.
    pub fn of(&self, number: TransportNumber) -> &dyn StreamTransport {
        match number {
            TransportNumber::TCP => &self.tcp,
            number => self.further_of(number),
        }
    }

    /// Takes over the endpoints on the hosts for which `theirs` is true, and the streams of raw Ethernet
    /// frames to and from them, from the transports of another part of a partitioned run.
    pub fn take_over(&mut self, other: &mut Transports, theirs: &dyn Fn(HostId) -> bool) {
        self.tcp.take_over(&mut other.tcp, theirs);
        self.further.take_over(&mut other.further, theirs);
        self.streams.take_over(&other.streams, theirs);
    }

    /// Yields TCP, then the other transports in use.
    fn all(&self) -> impl Iterator<Item = &dyn StreamTransport> {
        let further = self.further.all().map(|(_, transport)| transport as &dyn StreamTransport);
        std::iter::once(&self.tcp as &dyn StreamTransport).chain(further)
    }

    /// Returns the transport and the connection to which a packet belongs.
    pub fn origin_of(&self, packet: &Packet) -> Origin {
        let sender = packet.dst_endpoint.peer();
        match packet.stream_transport() {
            None => Origin::None,
            Some(0) => Origin::Tcp { opened: self.tcp.connections.of(sender), sender },
            Some(number) => {
                let transport = TransportNumber(number);
                let (opened, position) = self.further_of(transport).origin_of(packet);
                Origin::Further { transport, opened, sender, position }
            }
        }
    }

    /// Returns the headers of a packet, its hosts and the length of its trailer for a packet
    /// capture.
    pub fn headers(&self, packet: &Packet, sack: Option<&SackBlocks>) -> Headers {
        let direction = |opened: &Opened, sender: EndpointId| {
            let (src, dst) = opened.stream_of(sender);
            let from_client = sender.side() == Side::Client;
            Direction { connection: opened.number, src, dst, from_client }
        };
        let mut ends = [HostId(packet.window), packet.dst];
        let (bytes, trailer) = match self.origin_of(packet) {
            Origin::None => (frames::udp(packet, ends[0], ends[1], packet.dst_endpoint.0), 0),
            Origin::Further { transport, opened, sender, .. } => {
                self.further_of(transport).headers(packet, &direction(&opened, sender))
            }
            Origin::Tcp { opened, sender } => {
                let direction = direction(&opened, sender);
                ends = [direction.src, direction.dst];
                (self.tcp.headers(packet, sack, opened.settings, &direction), 0)
            }
        };
        Headers { bytes, ends, trailer }
    }

    /// Returns the row of a lost packet in the table of events.
    pub fn event_of(&self, lost: &Lost) -> EventRow {
        let packet = &lost.packet;
        let place = self.place_of(packet);
        EventRow {
            at: lost.at,
            what: What::Drop,
            connection: place.connection,
            src: place.src,
            dst: lost.dst,
            stream_start: place.position,
            bytes: u32::from(packet.payload),
            drop: Some((packet.kind(), lost.link, lost.cause as u8)),
            timeout: None,
        }
    }

    /// Returns the place of a packet in the stream of its sender. The packet may have only the low
    /// 32 bits of its stream positions.
    pub fn place_of(&self, packet: &Packet) -> Place {
        let src = HostId(packet.window);
        match self.origin_of(packet) {
            Origin::None => Place { connection: None, src, position: 0 },
            Origin::Further { opened, position, .. } => {
                Place { connection: Some(opened.number), src, position }
            }
            Origin::Tcp { opened, sender } => {
                let acknowledged = self.tcp.stack.endpoint(sender).acknowledged();
                Place {
                    connection: Some(opened.number),
                    src: opened.stream_of(sender).0,
                    position: Packet::widen(packet.seq, acknowledged).saturating_sub(1),
                }
            }
        }
    }

    /// Returns sender, receiver and content of every undelivered message on TCP and other
    /// byte-stream transports.
    pub fn outstanding(&self) -> impl Iterator<Item = (HostId, HostId, &Message)> {
        self.all().flat_map(|transport| {
            transport.messages().outstanding().map(move |(slot, side, message)| {
                let (local, remote) = transport.hosts(EndpointId::new(slot + side as usize, 0));
                (local, remote, message)
            })
        })
    }

    /// Yields the number of the workload, and each undelivered message, on TCP and other byte-stream
    /// transports.
    pub fn outstanding_of_workloads(&self) -> impl Iterator<Item = (u16, &Message)> {
        self.all().flat_map(|transport| {
            let messages = transport.messages();
            messages.outstanding().filter_map(|(slot, _, message)| {
                Some((messages.owner(EndpointId::new(slot, 0))?.0, message))
            })
        })
    }

    /// Returns the number of undelivered messages on TCP and other byte-stream transports.
    pub fn open_messages(&self) -> u64 {
        self.all().map(|transport| transport.messages().outstanding().count() as u64).sum()
    }

    /// Returns the number of retransmitted packets and of timeouts since the start of the run, on
    /// TCP and other byte-stream transports.
    pub fn losses(&self) -> (u64, u64) {
        self.all().map(StreamTransport::losses).fold((0, 0), |sum, n| (sum.0 + n.0, sum.1 + n.1))
    }

    /// Returns two numbers of undelivered messages: messages of which a part has arrived, and
    /// messages of which nothing has arrived. Only messages that get a row in the table of flows
    /// count.
    pub fn unfinished(&self) -> [u64; 2] {
        let mut counts = [0; 2];
        for transport in self.all() {
            for (slot, side, message) in transport.messages().outstanding() {
                let client = EndpointId::new(slot, 0);
                let receiver = if side == Side::Client { client.peer() } else { client };
                let nothing = transport.received(receiver) <= message.start;
                counts[usize::from(nothing)] += u64::from(message.record);
            }
        }
        counts
    }
}
