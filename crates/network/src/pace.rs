//! Shortest time of a message over an idle path with store and forward: each link sends packets one
//! after the other, and each packet only after its complete arrival at the node. All packets except
//! the last are full.

use crate::link::Link;
use eastwest_types::Span;

/// A message as a sequence of packets.
#[derive(Clone, Copy, Debug)]
pub struct Train {
    packets: u64,
    /// IP bytes of every packet except the last.
    full: u32,
    /// IP bytes of the last packet.
    last: u32,
}

impl Train {
    /// Returns the packets of a message of `bytes` bytes, in segments of at most `segment` bytes,
    /// each with `headers` bytes of headers.
    pub fn new(bytes: u64, segment: u32, headers: u32) -> Train {
        let packets = bytes.div_ceil(u64::from(segment)).max(1);
        let rest = bytes - (packets - 1) * u64::from(segment);
        Train { packets, full: segment + headers, last: rest as u32 + headers }
    }
}

/// Times at which the packets of a message arrive at a node, if the message is sent at time zero
/// over idle links.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// Arrival time of the first full packet.
    first: Span,
    /// Time between the arrivals of two full packets.
    slowest: Span,
    /// Arrival time of the last packet.
    last: Span,
    /// Whether packets are spread over several paths. Packets may then arrive out of order, and the
    /// rates of the paths add up.
    dealt: bool,
}

impl Pace {
    /// Returns the arrival times at the far end of `link`, if `self` has the arrival times at the
    /// node that sends on it.
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

    /// Returns the arrival times at the far end of one of `links` equal links over which packets
    /// are spread, so that the rates of these links add up.
    pub fn over_each(self, link: &Link, train: &Train, links: u64) -> Pace {
        let pace = self.over(link, train, false);
        let slowest = pace.slowest.max(Span(link.own_send_time(train.full).0 / links.max(1)));
        let before_last = match train.packets {
            1 => Span::ZERO,
            n => self.first + link.own_send_time(train.full) + slowest * (n - 2),
        };
        Pace { slowest, last: pace.last.max(before_last + link.cable.delay), ..pace }
    }

    /// Whether packets are spread over several links.
    pub fn is_dealt(self) -> bool {
        self.dealt
    }

    /// Returns the arrival times for the case that packets are spread over several links from this
    /// node on.
    pub fn dealt(self) -> Pace {
        Pace { dealt: true, ..self }
    }

    /// Returns a lower bound of the arrival times over two paths: the smaller value of each time.
    pub fn or(self, other: Pace) -> Pace {
        Pace {
            first: self.first.min(other.first),
            slowest: self.slowest.min(other.slowest),
            last: self.last.min(other.last),
            dealt: self.dealt || other.dealt,
        }
    }

    /// Returns the time from sending the message until it has arrived completely.
    pub fn arrival(self) -> Span {
        self.last
    }
}
