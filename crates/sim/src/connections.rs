//! Numbers of connections, in order of opening, and the hosts at their ends.
//!
//! The slot of an endpoint is reused by later connections. The generation of the endpoint, which
//! increases by two at each reuse, distinguishes the current connection from the previous
//! connection, whose last packets may still be in flight.

use eastwest_types::{EndpointId, HostId, Side};
use serde::{Deserialize, Serialize};

/// A connection: its number, its hosts, and the TCP settings of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// Number of the connection in the run, from 0 in order of opening.
    pub number: u64,
    /// Host that opened the connection.
    pub client: HostId,
    /// Host that accepted the connection.
    pub server: HostId,
    /// Index of the TCP settings of the client, and of the server, in the list of the TCP stack.
    pub settings: (u8, u8),
}

impl Opened {
    /// Returns sender and receiver of the byte stream that the endpoint `end` of this connection
    /// sends.
    pub fn stream_of(&self, end: EndpointId) -> (HostId, HostId) {
        match end.side() {
            Side::Client => (self.client, self.server),
            Side::Server => (self.server, self.client),
        }
    }
}

/// Place of a connection whose ends other parts of a partitioned run simulate.
const ELSEWHERE: Opened = Opened {
    number: u64::MAX,
    client: HostId(u32::MAX),
    server: HostId(u32::MAX),
    settings: (0, 0),
};

/// All connections that may have packets in flight.
#[derive(Default, Serialize, Deserialize)]
pub struct Connections {
    opened: u64,
    /// Two connections for each slot of an endpoint pair: the current and the previous one, at the
    /// index that is the second-lowest bit of the generation.
    slots: Vec<[Opened; 2]>,
}

fn place(end: EndpointId) -> (usize, usize) {
    (end.slot() / 2, usize::from(end.generation() >> 1 & 1))
}

impl Connections {
    /// Returns the number of the next connection, from 0, and counts this connection.
    pub fn number(&mut self) -> u64 {
        self.opened += 1;
        self.opened - 1
    }

    /// Reserves memory for this number of further connections.
    pub fn reserve(&mut self, connections: usize) {
        self.slots.reserve(connections);
    }

    /// Registers a new connection. `number` is its number in the run, `end` one of its endpoints,
    /// `settings` the index of the TCP settings of client and server.
    pub fn open(
        &mut self,
        number: u64,
        end: EndpointId,
        client: HostId,
        server: HostId,
        settings: (u8, u8),
    ) {
        let new = Opened { number, client, server, settings };
        let (slot, generation) = place(end);
        if slot >= self.slots.len() {
            // Other parts of a partitioned run simulate the ends of connections in between.
            self.slots.resize(slot, [ELSEWHERE; 2]);
            self.slots.push([new; 2]);
        }
        self.slots[slot][generation] = new;
    }

    /// Adds the connections that only the parts `other` and later ones of a partitioned run know.
    pub fn take_over(&mut self, other: &Connections) {
        if self.slots.len() < other.slots.len() {
            self.slots.resize(other.slots.len(), [ELSEWHERE; 2]);
        }
        for (mine, other) in self.slots.iter_mut().zip(&other.slots) {
            if mine[0] == ELSEWHERE {
                *mine = *other;
            }
        }
    }

    /// Returns the connection to which an endpoint belongs. A closed connection is found until its
    /// slot has been reused twice.
    pub fn of(&self, end: EndpointId) -> Opened {
        let (slot, generation) = place(end);
        self.slots[slot][generation]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_knows_its_connection_and_the_one_before() {
        let mut all = Connections::default();
        for number in 0..300u32 {
            let generation = (2 * number) as u8;
            let next = all.number();
            let end = EndpointId::new(6, generation);
            all.open(next, end, HostId(number), HostId(1), (0, 0));
            let now = all.of(EndpointId::new(7, generation));
            assert_eq!((now.number, now.client), (u64::from(number), HostId(number)));
            let server = EndpointId::new(7, generation);
            assert_eq!(now.stream_of(server), (HostId(1), HostId(number)));
            if number > 0 {
                let before = all.of(EndpointId::new(6, generation.wrapping_sub(2)));
                assert_eq!(before.number, u64::from(number) - 1);
            }
        }
    }
}
