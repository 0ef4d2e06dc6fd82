//! Latency of a message in addition to the transfer time that follows from its rate.
//!
//! The latency is the sum of three parts: the propagation delay of all links; store and forward
//! (each link in turn transmits the last packet; the time at the slowest link is not added, since
//! it is part of the transfer); and the queueing delay at every full port of the path.
//!
//! **The queue of a full port.** A discipline with a delay target (CoDel, PIE, adaptive RED; for
//! RED and marking at a threshold, the transmission time of the threshold) holds its queue at that
//! target. At a drop-tail port the queue is the part of the windows that exceeds the capacity of
//! the path. Let B be the capacity of the queue, C·R the capacity of the path without queue, and n
//! the number of flows. Windows grow until W = B + C·R, and each loss reduces them by half of one
//! flow's share. The window of a single flow varies between W/2 and W, with mean 3/4 W. The
//! variation of n unsynchronized flows averages out as 1/√n (G. Appenzeller, I. Keslassy and N.
//! McKeown, *Sizing router buffers*, SIGCOMM 2004):
//!
//! ```text
//! queue = min((B + C·R) (1 − 1/(4 √n)), Σ windows) − C·R,
//! ```
//!
//! The window of a flow is at most the data that it has to send.

use eastwest_types::{Rate, Span};

/// Returns the number of bits sent at `rate_bps` bit/s during the time `span`.
pub(crate) fn bits(rate_bps: u64, span: Span) -> f64 {
    rate_bps as f64 * span.0 as f64 / 1e12
}

/// Behaviour of the queue of a full port: drop-tail, or with a delay target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Drop-tail queue with this capacity in bytes.
    DropTail(u64),
    /// Queue of a discipline with a delay target (CoDel, PIE, RED, marking): the target, and the
    /// capacity in bytes.
    Aims(Span, u64),
}

impl Queue {
    /// Returns the capacity of the queue in bytes.
    pub fn room(self) -> u64 {
        match self {
            Queue::DropTail(room) | Queue::Aims(_, room) => room,
        }
    }
}

/// Rate, delay and queue of one direction of a link (an egress port).
#[derive(Clone, Copy, Debug)]
pub struct PortSpec {
    /// Rate of the link in bit/s.
    pub rate: Rate,
    /// Propagation delay of the link, plus the mean delay in the host if the link ends at a host.
    pub delay: Span,
    /// Behaviour of the queue at the egress port when it is full.
    pub queue: Queue,
}

/// Returns the queueing delay of a full port for `flows` flows whose windows sum to `windows_bits`
/// bits; `base`: round-trip time of their paths without queues.
pub fn standing(port: &PortSpec, flows: usize, windows_bits: f64, base: Span) -> Span {
    let path = bits(port.rate.0, base);
    let (room, swings) = match port.queue {
        Queue::Aims(target, _) => (bits(port.rate.0, target), 0.0),
        Queue::DropTail(room) => (room as f64 * 8.0, 0.25 / (flows.max(1) as f64).sqrt()),
    };
    let most = (room + path) * (1.0 - swings);
    let queue = (most.min(windows_bits) - path).clamp(0.0, room);
    Span((queue / port.rate.0 as f64 * 1e12) as u64)
}

/// Whether the windows of the flows at a port (`windows_bits` bits in total) exceed the capacity of
/// their path (rate times round-trip time `base`) and of the port's queue, so that the port drops
/// or marks packets.
pub fn is_over(port: &PortSpec, windows_bits: f64, base: Span) -> bool {
    let room = match port.queue {
        Queue::Aims(target, _) => bits(port.rate.0, target),
        Queue::DropTail(room) => room as f64 * 8.0,
    };
    windows_bits > room + bits(port.rate.0, base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_what_windows_hold_beyond_the_path() {
        let port = PortSpec {
            rate: Rate::gbit(1),
            delay: Span::from_us(5),
            queue: Queue::DropTail(125_000),
        };
        let base = Span::from_us(100); // the path holds 100 kbit
        assert_eq!(standing(&port, 1, 50e3, base), Span::ZERO);
        assert_eq!(standing(&port, 1, 300e3, base), Span::from_us(200));
        // The queue and the path hold 1.1 Mbit: three quarters of it, minus the path.
        assert_eq!(standing(&port, 1, 9e6, base), Span::from_us(725));
        assert_eq!(standing(&port, 4, 9e6, base), Span::from_ns(862_500));
        let aims = PortSpec { queue: Queue::Aims(Span::from_us(500), 125_000), ..port };
        assert_eq!(standing(&aims, 1, 50e3, base), Span::ZERO);
        assert_eq!(standing(&aims, 1, 9e6, base), Span::from_us(500));
        assert!(is_over(&port, 1.2e6, base) && !is_over(&port, 1e6, base));
        assert!(is_over(&aims, 0.7e6, base) && !is_over(&aims, 0.5e6, base));
    }
}
