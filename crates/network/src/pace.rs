//! Shortest time of a message over an idle path. Links send packets one after the other, each packet only after
//! it has arrived completely (store and forward); all packets but the last are full.

use crate::link::Link;
use eastwest_types::Span;

/// A message as a sequence of packets.
#[derive(Clone, Copy, Debug)]
pub struct Train {
    packets: u64,
    /// IP bytes of every packet but the last.
    full: u32,
    /// IP bytes of the last packet.
    last: u32,
}

impl Train {
    /// Returns the packets of a message of `bytes` in segments of `segment` bytes with `headers` bytes each.
    pub fn new(bytes: u64, segment: u32, headers: u32) -> Train {
        let packets = bytes.div_ceil(u64::from(segment)).max(1);
        let rest = bytes - (packets - 1) * u64::from(segment);
        Train { packets, full: segment + headers, last: rest as u32 + headers }
    }
}

/// Times at which a message that starts at time zero arrives at a node.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// Arrival of the first full packet.
    first: Span,
    /// Time between two full packets.
    slowest: Span,
    /// Arrival of the last packet.
    last: Span,
    /// Whether packets were spread over several paths: they need not be in order, and the rates of these paths
    /// add up.
    dealt: bool,
}

impl Pace {
    /// Returns the arrival times at the far end of one more link of the path.
    pub fn over(self, link: &Link, train: &Train, to_host: bool) -> Pace {
        let (full, last) = (link.own_send_time(train.full), link.own_send_time(train.last));
        let first = self.first + full;
        let inner = self.dealt && !to_host;
        let slowest = if inner { self.slowest } else { self.slowest.max(full) };
        let before_last = match train.packets {
            1 => Span::ZERO,
            n => first + slowest * (n - 2),
        };
        let sent = match self.dealt {
            false => self.last.max(before_last) + last,
            true => (self.last + last).max(before_last),
        };
        Pace { first: first + link.cable.delay, slowest, last: sent + link.cable.delay, ..self }
    }

    /// Returns the arrival times if packets are spread over several links in turn from here on.
    pub fn dealt(self) -> Pace {
        Pace { dealt: true, ..self }
    }

    /// Returns a lower bound of the times over either of two paths.
    pub fn or(self, other: Pace) -> Pace {
        Pace {
            first: self.first.min(other.first),
            slowest: self.slowest.min(other.slowest),
            last: self.last.min(other.last),
            dealt: self.dealt || other.dealt,
        }
    }

    /// Returns the time from the start of the message until it has arrived completely.
    pub fn arrival(self) -> Span {
        self.last
    }
}
