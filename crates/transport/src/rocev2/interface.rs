//! Interface of queue pairs to the simulator: parameters, actions, events for applications.

use eastwest_types::{EndpointId, HostId, Packet, Rate, Time};

/// Receiver of a timer event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimerTarget {
    /// An end of a queue pair.
    QueuePair(EndpointId),
    /// The queue of a NIC, by its number.
    Nic(u32),
}

impl TimerTarget {
    const NIC: u64 = 1 << 32;

    /// Returns the target as a number, from which [`TimerTarget::of_number`] restores it.
    pub fn number(self) -> u64 {
        match self {
            TimerTarget::QueuePair(id) => u64::from(id.0),
            TimerTarget::Nic(nic) => TimerTarget::NIC | u64::from(nic),
        }
    }

    /// Returns the target that [`TimerTarget::number`] has encoded as `number`.
    pub fn of_number(number: u64) -> TimerTarget {
        match number & TimerTarget::NIC {
            0 => TimerTarget::QueuePair(EndpointId(number as u32)),
            _ => TimerTarget::Nic(number as u32),
        }
    }
}

/// Event of a queue pair, of which the application is notified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// The bytes given to [`super::Stack::expect`] have arrived in order.
    Delivered,
    /// The queue pair has failed after too many consecutive timeouts.
    Failed,
    /// The queue pair is gone and its slot free for another.
    Closed,
}

/// Receives the actions of queue pairs: packets, timers, events for applications.
pub trait Sink {
    /// States the payload bytes that the requester of the next packet has left: those that are posted and not
    /// acknowledged, the ones in the packet included.
    fn remaining(&mut self, _bytes: u64) {}
    /// Sends a packet through the port of `from`.
    fn send(&mut self, from: HostId, packet: Packet);
    /// Returns the time at which the port of host `from` takes the next packet with this codepoint,
    /// so that few packets wait there. `sent`: a packet of `ip_len` IP bytes has just been handed
    /// to the port; otherwise `ip_len` IP bytes may wait there.
    fn takes_more_at(&self, from: HostId, dscp: u8, ip_len: u32, sent: bool) -> Time;
    /// Arms a timer: [`super::Stack::on_timer`] is to be called at time `at`.
    fn arm(&mut self, at: Time, target: TimerTarget);
    /// Notifies the application at an end of a queue pair.
    fn notify(&mut self, endpoint: EndpointId, notice: Notice);
}

/// Parameters of a new queue pair.
#[derive(Clone, Copy, Debug)]
pub struct Connect {
    /// Host that opens the queue pair.
    pub client: HostId,
    /// Host of the other end.
    pub server: HostId,
    /// Values of [`Packet::hash`], by which ECMP chooses paths: client to server, server to client.
    pub hashes: (u16, u16),
    /// Rates of the links of client and server.
    pub rates: (Rate, Rate),
    /// Differentiated services codepoint of the queue pair's packets, 0–63.
    pub dscp: u8,
    /// Traffic class, for measuring.
    pub class: u8,
}
