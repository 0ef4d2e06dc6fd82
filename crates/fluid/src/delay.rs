//! How long a message is under way beside the time that its bytes take at their rate.
//!
//! Propagation of every link, store and forward (its last packet is sent by one link after the other;
//! at the slowest this time is part of the transfer), and the queue at every full port on its way.
//!
//! **The queue of a full port.** Where the discipline aims at a delay (CoDel, PIE, adaptive RED; for
//! RED and marking at a threshold the time that it takes to send) that is the queue. At a drop-tail port
//! it is what windows hold beyond the path: with B the room of the queue, C·R what the path holds
//! without queue and n flows, windows grow until W = B + C·R and half of one flow's share is given back
//! at each loss. One flow alone swings between W/2 and W, which is 3/4 W in the mean; those of n flows
//! that are not in step average out as 1/√n (G. Appenzeller, I. Keslassy and N. McKeown, *Sizing router
//! buffers*, SIGCOMM 2004):
//!
//! ```text
//! queue = min((B + C·R) (1 − 1/(4 √n)), Σ windows) − C·R,
//! ```
//!
//! where a flow's window is no larger than what it has to send.

use eastwest_types::{Rate, Span};

/// Bits per second times picoseconds, in bits.
pub(crate) fn bits(rate_bps: u64, span: Span) -> f64 {
    rate_bps as f64 * span.0 as f64 / 1e12
}

/// What the queue of a port does once it is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Holds so many bytes; what does not fit is lost.
    DropTail(u64),
    /// Aims at a delay, with room for so many bytes.
    Aims(Span, u64),
}

impl Queue {
    /// The most it holds in bytes.
    pub fn room(self) -> u64 {
        match self {
            Queue::DropTail(room) | Queue::Aims(_, room) => room,
        }
    }
}

/// One direction of a link.
#[derive(Clone, Copy, Debug)]
pub struct PortSpec {
    /// Its rate.
    pub rate: Rate,
    /// Propagation, and the mean of what the receiving host adds.
    pub delay: Span,
    /// Its queue.
    pub queue: Queue,
}

/// How long a packet waits at a full port whose `flows` have windows of `windows_bits` in all, on paths
/// of `base` there and back.
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

/// Whether windows are more than the path and the queue of a port hold: then it drops or marks.
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
        let base = Span::from_us(100); // 100 kbit
        assert_eq!(standing(&port, 1, 50e3, base), Span::ZERO);
        assert_eq!(standing(&port, 1, 300e3, base), Span::from_us(200));
        // 1.1 Mbit in all, three quarters of it, less the path
        assert_eq!(standing(&port, 1, 9e6, base), Span::from_us(725));
        assert_eq!(standing(&port, 4, 9e6, base), Span::from_ns(862_500));
        let aims = PortSpec { queue: Queue::Aims(Span::from_us(500), 125_000), ..port };
        assert_eq!(standing(&aims, 1, 50e3, base), Span::ZERO);
        assert_eq!(standing(&aims, 1, 9e6, base), Span::from_us(500));
        assert!(is_over(&port, 1.2e6, base) && !is_over(&port, 1e6, base));
        assert!(is_over(&aims, 0.7e6, base) && !is_over(&aims, 0.5e6, base));
    }
}
