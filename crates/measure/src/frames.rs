//! Ethernet, IPv4, TCP and UDP headers of simulated packets for capture files, as a real sender
//! would write them.
//!
//! * Host `n` has the IPv4 address 10.0.0.0 + n + 1. Its Ethernet address is 02:00 followed by the
//!   four bytes of the IPv4 address.
//! * Connection `c` goes from port 49152 + c mod 16384 of its client to port 40000 + c / 16384 of
//!   its server: no two of the first 400 million connections have the same pair of ports. Datagrams
//!   of class `k` go from and to port 50000 + k.
//! * Packets of RoCEv2 go to UDP port 4791; the source port is the port that their sender would
//!   have as an end of TCP connection `c`. They carry the number of the receiving queue pair.
//! * Initial sequence numbers are a hash of the connection's number and the side.
//! * The window is scaled by the smallest factor (RFC 7323) with which the largest window fits into
//!   the field. It is rounded up to a multiple of the factor. With the largest factor, 2¹⁴, a
//!   window of 1 GiB is one unit too large for the field, which then has its maximum, 65,535.
//! * DSCP is the class selector of the packet's priority (RFC 2474).
//! * Payload is not stored. Checksums are those of a payload of zeros.

use eastwest_engine::random::mix;
use eastwest_types::{HostId, Packet, SackBlocks, flag, rocev2};
use serde::{Deserialize, Serialize};

/// Length of an Ethernet header, in bytes.
const ETHERNET: usize = 14;
/// Length of an IPv4 header without options, in bytes.
const IPV4: usize = 20;
/// Largest shift count of window scaling (RFC 7323, 2.3).
const MOST_SHIFT: u8 = 14;
/// Protocol number of TCP in the IPv4 header.
const TCP: u8 = 6;
/// Protocol number of UDP in the IPv4 header.
const UDP: u8 = 17;
/// UDP destination port of RoCEv2.
const ROCEV2: u16 = 4791;
/// Bytes of the invariant CRC at the end of a RoCEv2 packet.
pub const ICRC: u16 = 4;

/// Returns the IPv4 address of a host in capture files: 10.0.0.1 plus the number of the host.
pub fn address(host: HostId) -> [u8; 4] {
    (0x0a00_0001 + host.0).to_be_bytes()
}

/// TCP options in the SYN and SYN-ACK of every connection in a capture file; all connections have
/// equal options.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct TcpOptions {
    /// Value of the MSS option in bytes: payload of a full segment, plus 12 for timestamps.
    pub mss: u16,
    /// Whether timestamps are used (RFC 7323).
    pub timestamps: bool,
    /// Whether selective acknowledgements are permitted (RFC 2018).
    pub sack: bool,
    /// Shift count of window scaling (RFC 7323): the window field counts units of 2^shift bytes.
    pub window_shift: u8,
}

impl TcpOptions {
    /// Returns the options of endpoints whose full segment has `segment` bytes of payload and whose
    /// largest receive window is `window` bytes.
    pub fn new(segment: u32, window: u64, timestamps: bool, sack: bool) -> TcpOptions {
        let mss = segment + if timestamps { 12 } else { 0 };
        let fits = |shift: &u8| window.div_ceil(1 << shift) <= 65_535;
        let window_shift = (0..MOST_SHIFT).find(fits).unwrap_or(MOST_SHIFT);
        TcpOptions { mss: mss.min(65_535) as u16, timestamps, sack, window_shift }
    }
}

/// Connection to which a packet belongs, and its direction.
#[derive(Clone, Copy, Debug)]
pub struct Direction {
    /// Number of the connection.
    pub connection: u64,
    /// Sending host.
    pub src: HostId,
    /// Receiving host.
    pub dst: HostId,
    /// Whether the client, which opened the connection, is the sender.
    pub from_client: bool,
}

impl Direction {
    /// Returns the TCP ports of the sender and of the receiver.
    fn ports(&self) -> (u16, u16) {
        let client = 49_152 + (self.connection % 16_384) as u16;
        let server = 40_000 + (self.connection / 16_384 % 25_536) as u16;
        if self.from_client { (client, server) } else { (server, client) }
    }

    /// Returns the TCP sequence number of the byte `position` of a stream. `of_sender`: whether it
    /// is the stream that the sender of the packet sends; otherwise it is the opposite stream, to
    /// which ACK and SACK blocks refer.
    fn sequence(&self, position: u64, of_sender: bool) -> u32 {
        let client = u64::from(of_sender == self.from_client);
        (mix(2 * self.connection + client) as u32).wrapping_add(position as u32)
    }
}

/// Returns the Ethernet, IPv4 and TCP headers of a segment as bytes. `blocks`: its SACK blocks in
/// stream positions.
pub fn tcp(
    packet: &Packet,
    blocks: Option<&SackBlocks>,
    direction: &Direction,
    options: &TcpOptions,
) -> Vec<u8> {
    let syn = packet.flags & flag::SYN != 0;
    let mut listed = if syn { syn_options(options) } else { Vec::new() };
    if options.timestamps {
        if !syn {
            listed.extend([1, 1]);
        } else if options.sack {
            listed.extend([4, 2]); // SACK permitted: two bytes, which align the timestamps
        } else {
            listed.extend([1, 1]);
        }
        listed.extend([8, 10]);
        listed.extend(((packet.born.0 / 1_000_000) as u32).to_be_bytes());
        listed.extend(packet.ts_echo_us.to_be_bytes());
    } else if syn && options.sack {
        listed.extend([1, 1, 4, 2]);
    }
    let blocks = blocks.into_iter().flatten().filter(|b| b.1 > 0);
    let blocks: Vec<u32> = blocks
        .flat_map(|b| [direction.sequence(b.0, false), direction.sequence(b.1, false)])
        .collect();
    if !blocks.is_empty() {
        listed.extend([1, 1, 5, 2 + 4 * blocks.len() as u8]);
        listed.extend(blocks.iter().flat_map(|b| b.to_be_bytes()));
    }
    let length = 20 + listed.len();
    let window = match syn {
        true => packet.window.min(65_535),
        false => packet.window.div_ceil(1 << options.window_shift).min(65_535),
    };
    let has_ack = packet.flags & flag::ACK != 0;
    let (from, to) = direction.ports();
    let mut segment = Vec::with_capacity(length);
    segment.extend(from.to_be_bytes());
    segment.extend(to.to_be_bytes());
    segment.extend(direction.sequence(packet.seq, true).to_be_bytes());
    let ack = if has_ack { direction.sequence(packet.ack, false) } else { 0 };
    segment.extend(ack.to_be_bytes());
    segment.extend([(length as u8 / 4) << 4, packet.flags]);
    segment.extend((window as u16).to_be_bytes());
    segment.extend([0; 4]); // placeholder of the checksum, and urgent pointer 0
    segment.extend(listed);
    let checksum = transport_checksum(direction, TCP, &segment, packet.payload);
    segment[16..18].copy_from_slice(&checksum.to_be_bytes());
    frame(direction, packet.tos, TCP, &segment, packet.payload)
}

/// Returns the TCP options maximum segment size and window scale, as bytes.
fn syn_options(options: &TcpOptions) -> Vec<u8> {
    let [high, low] = options.mss.to_be_bytes();
    vec![2, 4, high, low, 1, 3, 3, options.window_shift]
}

/// Returns the Ethernet, IPv4 and UDP headers of a datagram of traffic class `class` as bytes.
pub fn udp(packet: &Packet, src: HostId, dst: HostId, class: u32) -> Vec<u8> {
    let direction = Direction { connection: 0, src, dst, from_client: true };
    let port = (50_000 + class as u16).to_be_bytes();
    let mut header = [port, port].concat();
    header.extend((8 + packet.payload).to_be_bytes());
    header.extend([0; 2]);
    // A UDP checksum field of zero would mean that there is no checksum (RFC 768).
    let checksum = match transport_checksum(&direction, UDP, &header, packet.payload) {
        0 => u16::MAX,
        sum => sum,
    };
    header[6..8].copy_from_slice(&checksum.to_be_bytes());
    frame(&direction, packet.tos, UDP, &header, packet.payload)
}

/// Returns the headers of a RoCEv2 packet as bytes: Ethernet, IPv4, UDP to port 4791, base
/// transport header (InfiniBand specification 9.2, annex A17) and acknowledgement header (9.3).
/// `queue_pair`: number of the destination queue pair. The packet sequence number is the position
/// of the payload in the stream, in bytes modulo 2²⁴. Payload and invariant CRC (all zeros) are
/// omitted.
pub fn rocev2(packet: &Packet, direction: &Direction, queue_pair: u32) -> Vec<u8> {
    let flags = packet.flags;
    let answers = flags & (rocev2::ACK | rocev2::NAK) != 0;
    // Opcodes of a reliable connection: 0x11 acknowledge, 0x04 send only; 0x81 is a congestion
    // notification packet.
    let opcode = match flags {
        _ if answers => 0x11,
        _ if flags & rocev2::NOTIFICATION != 0 => 0x81,
        _ => 0x04,
    };
    let sequence = if answers { packet.ack } else { packet.seq } as u32;
    let asks = u32::from(flags & rocev2::ASKS != 0) << 31;
    let mut base = vec![opcode, 0, 0xff, 0xff];
    base.extend((queue_pair & 0x00ff_ffff).to_be_bytes());
    base.extend((asks | (sequence & 0x00ff_ffff)).to_be_bytes());
    match flags {
        _ if flags & rocev2::NAK != 0 => base.extend([0x60, 0, 0, 0]), // PSN sequence error
        _ if answers => base.extend([0x1f, 0, 0, 0]),                  // no credits
        _ if flags & rocev2::NOTIFICATION != 0 => base.extend([0; 16]),
        _ => {}
    }
    let rest = packet.payload + ICRC;
    let (client, _) = direction.ports();
    let mut header = [client.to_be_bytes(), ROCEV2.to_be_bytes()].concat();
    header.extend((8 + base.len() as u16 + rest).to_be_bytes());
    // No UDP checksum (annex A17): the invariant CRC covers the packet.
    header.extend([0; 2]);
    header.extend(base);
    frame(direction, packet.tos, UDP, &header, rest)
}

/// Returns the Ethernet header, IPv4 header and transport header of a frame as bytes, without
/// payload. `payload`: number of bytes after the transport header, needed only for the length field
/// of IPv4.
fn frame(direction: &Direction, tos: u8, protocol: u8, transport: &[u8], payload: u16) -> Vec<u8> {
    let (src, dst) = (address(direction.src), address(direction.dst));
    let mut bytes = Vec::with_capacity(ETHERNET + IPV4 + transport.len());
    for host in [dst, src] {
        bytes.extend([2, 0]);
        bytes.extend(host);
    }
    bytes.extend([0x08, 0x00]);
    let length = (IPV4 + transport.len()) as u16 + payload;
    bytes.extend([0x45, tos]);
    bytes.extend(length.to_be_bytes());
    // The identification is 0 (RFC 6864), because packets are not fragmented; the TTL is 64.
    bytes.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
    bytes.extend(src);
    bytes.extend(dst);
    let checksum = !folded(sum(&bytes[ETHERNET..]));
    bytes[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&checksum.to_be_bytes());
    bytes.extend(transport);
    bytes
}

/// Returns the checksum of a transport header followed by `payload` zero bytes, including the
/// pseudo header (RFC 9293, 3.1). The checksum field in `header` must be zero.
fn transport_checksum(direction: &Direction, protocol: u8, header: &[u8], payload: u16) -> u16 {
    let addresses = sum(&address(direction.src)) + sum(&address(direction.dst));
    let length = header.len() as u32 + u32::from(payload);
    !folded(addresses + u32::from(protocol) + length + sum(header))
}

fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum()
}

fn folded(sum: u32) -> u16 {
    let once = (sum >> 16) + (sum & 0xffff);
    ((once >> 16) + (once & 0xffff)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use eastwest_types::Time;

    const DIRECTION: Direction =
        Direction { connection: 20_000, src: HostId(255), dst: HostId(0), from_client: true };

    fn packet(flags: u8) -> Packet {
        Packet { flags, window: 1_000_000, born: Time(7_000_000), ..Packet::blank(HostId(0)) }
    }

    fn options(timestamps: bool, sack: bool) -> TcpOptions {
        TcpOptions::new(1448, 1_000_000, timestamps, sack)
    }

    /// Checks that the 16-bit words of each header, including its checksum, add up to all ones.
    fn assert_checksums(frame: &[u8], payload: u16) {
        assert_eq!(folded(sum(&frame[14..34])), 0xffff);
        let transport = &frame[34..];
        let pseudo = sum(&frame[26..34]) + u32::from(frame[23]) + transport.len() as u32;
        assert_eq!(folded(pseudo + u32::from(payload) + sum(transport)), 0xffff);
    }

    #[test]
    fn headers_are_as_long_as_the_simulated_ones() {
        for (timestamps, sack, bare, syn) in [
            (true, true, 52, 60),
            (true, false, 52, 60),
            (false, true, 40, 52),
            (false, false, 40, 48),
        ] {
            let options = options(timestamps, sack);
            for (flags, ip_len) in
                [(flag::SYN, syn), (flag::SYN | flag::ACK, syn), (flag::ACK, bare)]
            {
                let frame = tcp(&packet(flags), None, &DIRECTION, &options);
                assert_eq!(frame.len(), 14 + ip_len, "{timestamps} {sack} {flags:#x}");
                assert_eq!(usize::from(frame[46] >> 4) * 4, ip_len - 20);
                assert_checksums(&frame, 0);
            }
            let blocks = [(5, 9), (20, 30), (0, 0), (0, 0)];
            let frame = tcp(&packet(flag::ACK), Some(&blocks), &DIRECTION, &options);
            assert_eq!(frame.len(), 14 + bare + 20);
            assert_checksums(&frame, 0);
        }
    }

    #[test]
    fn packets_of_queue_pairs_have_the_headers_of_annex_a17() {
        use rocev2::{ACK, AGAIN, ASKS, DATA, NAK, NOTIFICATION};
        for (flags, payload, opcode, ip_len, check) in [
            (DATA | ASKS | AGAIN, 1024, 0x04, 1068, &[0u8; 0][..]),
            (ACK, 0, 0x11, 48, &[0x1f, 0, 0, 0]),
            (NAK, 0, 0x11, 48, &[0x60, 0, 0, 0]),
            (NOTIFICATION, 0, 0x81, 60, &[0; 16]),
        ] {
            let mut sent = packet(flags);
            (sent.seq, sent.ack, sent.payload) = (0x0501_0203, 0x0604_0506, payload);
            let frame = super::rocev2(&sent, &DIRECTION, 0x0107_0809);
            assert_eq!(frame.len() + usize::from(payload + ICRC), 14 + ip_len);
            assert_eq!(folded(sum(&frame[14..34])), 0xffff);
            let port = |at| u16::from_be_bytes([frame[at], frame[at + 1]]);
            assert_eq!((port(36), usize::from(port(38)), port(40)), (4791, ip_len - 20, 0));
            assert_eq!((frame[42], &frame[46..50]), (opcode, &[0, 7, 8, 9][..]));
            let first = if flags & ASKS != 0 { 0x80 } else { 0 };
            let position = if opcode == 0x11 { [4, 5, 6] } else { [1, 2, 3] };
            assert_eq!((frame[50], &frame[51..54]), (first, &position[..]));
            assert_eq!(&frame[54..], check);
        }
    }

    #[test]
    fn fields_stand_where_they_belong() {
        let mut data = packet(flag::ACK);
        (data.seq, data.ack, data.payload, data.tos) = (1, 4_000_000_001, 1447, 5 << 5 | 2);
        let frame = tcp(&data, None, &DIRECTION, &options(true, true));
        assert_eq!(frame[..14], [2, 0, 10, 0, 0, 1, 2, 0, 10, 0, 1, 0, 8, 0]);
        assert_eq!(frame[15], 5 << 5 | 2);
        assert_eq!(u16::from_be_bytes([frame[16], frame[17]]), 1447 + 52);
        let port = |at| u16::from_be_bytes([frame[at], frame[at + 1]]);
        assert_eq!((port(34), port(36)), (49_152 + 3_616, 40_001));
        let back = Direction { from_client: false, src: HostId(0), dst: HostId(255), ..DIRECTION };
        assert_eq!(back.ports(), (40_001, 49_152 + 3_616));
        let number = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().unwrap());
        assert_eq!(number(38), DIRECTION.sequence(0, true).wrapping_add(1));
        assert_eq!(number(42), back.sequence(4_000_000_001, true));
        assert_ne!(DIRECTION.sequence(0, true), DIRECTION.sequence(0, false));
        assert_eq!(u32::from(port(48)) << 4, 1_000_000);
        assert_eq!((number(58), number(62)), (7, 0)); // timestamp value and echo
        assert_checksums(&frame, 1447);
    }

    #[test]
    fn windows_are_scaled_by_the_smallest_factor() {
        for (window, shift) in [(65_535, 0), (65_536, 1), (1 << 20, 5), (1 << 30, 14)] {
            assert_eq!(TcpOptions::new(1460, window, false, true).window_shift, shift);
        }
    }

    #[test]
    fn datagrams_have_udp_headers() {
        let mut datagram = packet(0);
        datagram.payload = 100;
        let frame = udp(&datagram, HostId(3), HostId(4), 2);
        assert_eq!((frame.len(), frame[23]), (42, UDP));
        assert_eq!(u16::from_be_bytes([frame[38], frame[39]]), 108);
        assert_checksums(&frame, 100);
    }
}
