//! Origin of a packet: its transport and connection.

use crate::connections::Opened;
use crate::stream_transports::number::TransportNumber;
use eastwest_types::{EndpointId, HostId};

/// Transport and connection to which a packet belongs.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    /// The packet belongs to no connection: it is a datagram, or a raw Ethernet frame.
    None,
    /// The packet belongs to a TCP connection.
    Tcp {
        /// The connection of the packet.
        opened: Opened,
        /// Endpoint that sent the packet.
        sender: EndpointId,
    },
    /// The packet belongs to a connection of a transport other than TCP, such as a RoCEv2 queue
    /// pair.
    Further {
        /// Number of the packet's transport.
        transport: TransportNumber,
        /// The connection (queue pair) of the packet.
        opened: Opened,
        /// Endpoint that sent the packet.
        sender: EndpointId,
        /// Position of the packet's payload in the sender's byte stream.
        position: u64,
    },
}

/// Place of a packet in the stream of its sender.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Number of the connection or queue pair; `None` for datagrams and raw Ethernet frames.
    pub connection: Option<u64>,
    /// Sending host.
    pub src: HostId,
    /// Position of the first payload byte in the sender's stream, from 0.
    pub position: u64,
}
