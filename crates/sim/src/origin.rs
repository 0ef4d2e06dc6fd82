//! Origin of a packet: its transport and connection.

use crate::connections::Opened;
use crate::stream_transports::number::TransportNumber;
use eastwest_types::EndpointId;

/// Transport and connection to which a packet belongs.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    /// No connection: a datagram, or a frame of a stream.
    None,
    /// A connection of TCP.
    Tcp {
        /// The connection.
        opened: Opened,
        /// The end that sent the packet.
        sender: EndpointId,
    },
    /// A connection of a transport other than TCP, such as a queue pair.
    Further {
        /// The transport.
        transport: TransportNumber,
        /// The connection.
        opened: Opened,
        /// The end that sent the packet.
        sender: EndpointId,
        /// Position of its payload in the sender's stream.
        position: u64,
    },
}
