//! Interface of queue pairs to the simulator: parameters, actions, events for applications.

use eastwest_types::{EndpointId, HostId, Packet, Rate, Time};

/// Destination of a timer event: an end of a queue pair, or a NIC queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimerTarget {
    /// Timer of one end of a queue pair.
    QueuePair(EndpointId),
    /// Timer of a NIC queue, which has this number.
    Nic(u32),
}

impl TimerTarget {
    const NIC: u64 = 1 << 32;

    /// Returns the timer's destination as a number, from which [`TimerTarget::of_number`] restores
    /// it.
    pub fn number(self) -> u64 {
        match self {
            TimerTarget::QueuePair(id) => u64::from(id.0),
            TimerTarget::Nic(nic) => TimerTarget::NIC | u64::from(nic),
        }
    }

    /// Returns the timer's destination that [`TimerTarget::number`] has encoded as `number`.
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
    /// The number of bytes given to [`super::Stack::expect`] has arrived in order.
    Delivered,
    /// The queue pair has failed after too many consecutive timeouts.
    Failed,
}

/// Packets of a queue pair in one direction, which one network card of the sender sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// Sending host.
    pub from: HostId,
    /// Receiving host.
    pub to: HostId,
    /// Value of [`Packet::hash`], by which hosts and switches choose among equal paths.
    pub hash: u16,
}

/// Receives the actions of queue pairs: packets, timers, events for applications.
pub trait Sink {
    /// Passes the number of payload bytes that the sender of the next packet has posted and that
    /// are not acknowledged, including the bytes in this packet. Called before [`Sink::send`].
    fn remaining(&mut self, _bytes: u64) {}
    /// Sends a packet through the NIC port of host `from`.
    fn send(&mut self, from: HostId, packet: Packet);
    /// Returns the time at which the port of `flow` accepts the next packet with the codepoint
    /// `dscp`, so that few packets wait in the port; at a time in the future, the caller asks
    /// again. `sent`: whether a packet of `ip_len` IP bytes has just been passed to the port; if
    /// not, `ip_len` is the length of a full packet.
    fn takes_more_at(&mut self, flow: Flow, dscp: u8, ip_len: u32, sent: bool) -> Time;
    /// Arms a timer: [`super::Stack::on_timer`] is to be called at time `at`. A NIC queue has one
    /// timer, so that arming it again replaces the earlier time.
    fn arm(&mut self, at: Time, target: TimerTarget);
    /// Informs of the end `endpoint` of a queue pair, which has finished, and of the time `until` at
    /// which its TIME-WAIT ends.
    fn waits(&mut self, _endpoint: EndpointId, _until: Time) {}
    /// Notifies the application at one end of a queue pair of an event.
    fn notify(&mut self, endpoint: EndpointId, notice: Notice);
}

/// Parameters of a new queue pair.
#[derive(Clone, Copy, Debug)]
pub struct Connect {
    /// Host that opens the queue pair.
    pub client: HostId,
    /// Host at the other end of the queue pair.
    pub server: HostId,
    /// Values of [`Packet::hash`], by which ECMP chooses paths: from client to server, and from
    /// server to client.
    pub hashes: (u16, u16),
    /// Numbers of the NIC queues of client and server that send the packets of the queue pair. Each
    /// card and codepoint has a NIC queue.
    pub nics: (u32, u32),
    /// Rates of the links of the client and of the server.
    pub rates: (Rate, Rate),
    /// Differentiated services codepoint of the queue pair's packets, 0–63.
    pub dscp: u8,
    /// Number of the traffic class under which the queue pair is measured.
    pub class: u8,
}
