//! Origin of a packet: its transport and connection.

use crate::connections::Opened;
use crate::stream_transports::number::TransportNumber;
use eastwest_types::EndpointId;

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
