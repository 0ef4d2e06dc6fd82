//! Shortest time of a message over an idle path: every packet is sent by one link after the other, a link sends
//! one packet at a time, and all packets but the last are full.

use crate::link::Link;
use eastwest_types::Span;

/// A message as packets.
#[derive(Clone, Copy, Debug)]
pub struct Train {
    packets: u64,
    /// IP bytes of every packet but the last.
    full: u32,
    /// IP bytes of the last packet.
    last: u32,
}

impl Train {
    /// A message of `bytes` in segments of `segment` with `headers` bytes each.
    pub fn new(bytes: u64, segment: u32, headers: u32) -> Train {
        let packets = bytes.div_ceil(u64::from(segment)).max(1);
        let rest = bytes - (packets - 1) * u64::from(segment);
        Train { packets, full: segment + headers, last: rest as u32 + headers }
    }
}

/// When a message that starts at zero gets to a node.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// The first full packet is there.
    first: Span,
    /// Time between two full packets.
    slowest: Span,
    /// The last packet is there.
    last: Span,
    /// Packets have been dealt to several paths: they need not be in order, and the rates of these
    /// paths add up.
    dealt: bool,
}

impl Pace {
    /// The pace at the far end of one more link.
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

    /// From here on packets go to several links in turn.
    pub fn dealt(self) -> Pace {
        Pace { dealt: true, ..self }
    }

    /// A bound for a message that comes by this way or another.
    pub fn or(self, other: Pace) -> Pace {
        Pace {
            first: self.first.min(other.first),
            slowest: self.slowest.min(other.slowest),
            last: self.last.min(other.last),
            dealt: self.dealt || other.dealt,
        }
    }

    /// When the whole message is there.
    pub fn arrival(self) -> Span {
        self.last
    }
}
