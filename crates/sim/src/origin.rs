//! Origin of a packet: its connection or queue pair.

use crate::connections::Opened;
use eastwest_types::EndpointId;

/// The connection or queue pair of a packet.
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
    /// A queue pair.
    QueuePair {
        /// The queue pair.
        opened: Opened,
        /// The end that sent the packet.
        sender: EndpointId,
        /// Position of its payload in the sender's stream.
        position: u64,
    },
}
