//! Effects of TCP on a message: its packets, and a window that doubles with every round trip.
//!
//! A connection begins with a handshake of one round trip. In slow start a window is sent and then
//! acknowledged, so the rate is at most window / RTT. The window doubles with each RTT (RFC 5681,
//! 3.1) until it covers the rest of the data, or until the fair share is below window / RTT. From
//! then on the rate is the fair share, at most `Rules::max_window` / RTT. After the idle time
//! `Rules::idle_restart`, if there is one, the window is the initial one again (RFC 5681, 4.1).

use eastwest_types::Span;

/// TCP settings of all connections in flow mode.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Payload bytes of a full segment.
    pub segment: u32,
    /// IP and TCP header bytes of a packet with payload.
    pub header: u32,
    /// IP and TCP header bytes of an acknowledgement.
    pub ack: u32,
    /// Number of full segments per acknowledgement.
    pub ack_every: u32,
    /// Framing bytes of a packet on a link, beyond its IP length.
    pub framing: u32,
    /// Smallest number of bytes of a packet on a link, framing included.
    pub min_frame: u32,
    /// Initial congestion window in payload bytes.
    pub initial_window: u64,
    /// Largest congestion window in payload bytes.
    pub max_window: u64,
    /// Idle time after which the congestion window is reset to the initial window; `None` for no
    /// reset.
    pub idle_restart: Option<Span>,
}

/// Numbers and bytes of the packets of one message on a link, and number of its acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Train {
    /// Number of packets of the message.
    pub packets: u64,
    /// Bytes of all packets on a link, framing included.
    pub wire: u64,
    /// Bytes of the last packet on a link, framing included.
    pub last: u64,
    /// Number of acknowledgements of the message.
    pub acks: u64,
}

impl Rules {
    /// Returns the bytes on a link, framing included, of a packet of `ip` IP bytes.
    pub fn wire(&self, ip: u32) -> u64 {
        u64::from((ip + self.framing).max(self.min_frame))
    }

    /// Returns the packets and acknowledgements of a message of `bytes` payload bytes.
    pub fn train(&self, bytes: u64) -> Train {
        let segment = u64::from(self.segment);
        let packets = bytes.div_ceil(segment).max(1);
        let rest = bytes - (packets - 1) * segment;
        let full = self.wire(self.segment + self.header);
        let last = self.wire(rest as u32 + self.header);
        let acks = packets.div_ceil(u64::from(self.ack_every));
        Train { packets, wire: (packets - 1) * full + last, last, acks }
    }

    /// Returns the bits on a link, including headers and framing, of a window of `window` payload
    /// bytes.
    pub fn window_bits(&self, window: u64) -> f64 {
        let full = self.wire(self.segment + self.header);
        window as f64 * (full as f64 / f64::from(self.segment)) * 8.0
    }

    /// Returns the number of bits of acknowledgements per million bits of data.
    pub fn echo_ppm(&self) -> u32 {
        let full = self.wire(self.segment + self.header) * u64::from(self.ack_every);
        (self.wire(self.ack) * 1_000_000 / full) as u32
    }
}

/// Congestion window of one direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window in payload bytes.
    pub bytes: u64,
    /// Whether the connection is in slow start in this direction.
    pub slow_start: bool,
}

impl Window {
    /// Returns the congestion window of a new connection.
    pub fn initial(rules: &Rules) -> Window {
        Window { bytes: rules.initial_window.min(rules.max_window), slow_start: true }
    }

    /// Doubles the congestion window after a round trip of slow start, up to the largest window.
    pub fn double(&mut self, rules: &Rules) {
        self.bytes = (2 * self.bytes).min(rules.max_window);
        self.slow_start &= self.bytes < rules.max_window;
    }

    /// Ends slow start, because the fair share is below window / RTT. The window becomes at least
    /// share · RTT, limited to the largest window.
    pub fn follow(&mut self, rules: &Rules, rate_bps: u64, rtt: Span) {
        self.slow_start = false;
        let full = rules.wire(rules.segment + rules.header) as f64;
        let held = rate_bps as f64 * rtt.0 as f64 / 8e12 * f64::from(rules.segment) / full;
        self.bytes = self.bytes.max((held as u64).min(rules.max_window));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        Rules {
            segment: 1448,
            header: 52,
            ack: 52,
            ack_every: 2,
            framing: 38,
            min_frame: 84,
            initial_window: 14_480,
            max_window: 1 << 20,
            idle_restart: None,
        }
    }

    #[test]
    fn a_message_is_full_packets_and_a_rest() {
        let r = rules();
        assert_eq!(r.train(0), Train { packets: 1, wire: 90, last: 90, acks: 1 });
        assert_eq!(r.train(1448), Train { packets: 1, wire: 1538, last: 1538, acks: 1 });
        assert_eq!(r.train(1449), Train { packets: 2, wire: 1538 + 91, last: 91, acks: 1 });
        assert_eq!(r.echo_ppm(), 90 * 1_000_000 / 3076);
    }

    #[test]
    fn a_window_doubles_up_to_the_largest() {
        let r = rules();
        let mut w = Window::initial(&r);
        for _ in 0..6 {
            w.double(&r);
        }
        assert_eq!(w, Window { bytes: 64 * 14_480, slow_start: true });
        w.double(&r);
        assert_eq!(w, Window { bytes: 1 << 20, slow_start: false });
    }
}
