//! Capture files in the pcapng format (draft-ietf-opsawg-pcapng), reduced to the needs of a
//! simulator: one section of little-endian blocks, interfaces with names and nanosecond timestamps,
//! names of addresses, and packets whose first bytes are stored. Blocks are written in the order of
//! the calls, so that a file is written while packets are captured.

use serde::{Deserialize, Serialize};

/// Type number of the section header block of pcapng.
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
/// Type number of the interface description block of pcapng.
const INTERFACE: u32 = 1;
/// Type number of the name resolution block of pcapng.
const NAMES: u32 = 4;
/// Type number of the enhanced packet block of pcapng.
const ENHANCED_PACKET: u32 = 6;
/// Magic number from which readers of the file learn its byte order.
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Link type number of Ethernet in pcapng.
const ETHERNET: u16 = 1;
/// Unit of timestamps as a negative power of ten: 10⁻⁹ s.
const NANOSECONDS: u8 = 9;

/// A capture file in the pcapng format, which is built in memory.
#[derive(Serialize, Deserialize)]
pub struct Pcapng {
    bytes: Vec<u8>,
    interfaces: u32,
}

impl Pcapng {
    /// Returns a capture file without packets that names `application` as the program that wrote
    /// it.
    pub fn new(application: &str) -> Pcapng {
        let mut file = Pcapng { bytes: Vec::new(), interfaces: 0 };
        file.block(SECTION_HEADER, |body| {
            body.extend(BYTE_ORDER.to_le_bytes());
            body.extend(1u16.to_le_bytes()); // version 1.0
            body.extend(0u16.to_le_bytes());
            body.extend(u64::MAX.to_le_bytes()); // length of the section: unknown
            option(body, 4, application.as_bytes());
            end_of_options(body);
        });
        file
    }

    /// Adds an interface with a rate of `rate_bps` bits per second. Returns its number in the file,
    /// from 0.
    pub fn interface(&mut self, name: &str, description: &str, rate_bps: u64) -> u32 {
        self.block(INTERFACE, |body| {
            body.extend(ETHERNET.to_le_bytes());
            body.extend(0u16.to_le_bytes());
            body.extend(0u32.to_le_bytes()); // captured length not limited
            option(body, 2, name.as_bytes());
            option(body, 3, description.as_bytes());
            option(body, 8, &rate_bps.to_le_bytes());
            option(body, 9, &[NANOSECONDS]);
            end_of_options(body);
        });
        self.interfaces += 1;
        self.interfaces - 1
    }

    /// Adds the host name of an IPv4 address. Readers of the file show it for the following
    /// packets.
    pub fn name(&mut self, address: [u8; 4], name: &str) {
        self.block(NAMES, |body| {
            body.extend(1u16.to_le_bytes()); // record type: IPv4 address
            body.extend((5 + name.len() as u16).to_le_bytes());
            body.extend(address);
            body.extend(name.as_bytes());
            body.push(0);
            pad(body);
            body.extend([0; 4]); // end of the records
        });
    }

    /// Adds a packet of `original_len` bytes that passed interface number `interface` at time
    /// `time_ns` (nanoseconds); `captured`: its first bytes, which are stored.
    pub fn packet(&mut self, interface: u32, time_ns: u64, captured: &[u8], original_len: u32) {
        debug_assert!(interface < self.interfaces && captured.len() <= original_len as usize);
        self.block(ENHANCED_PACKET, |body| {
            body.extend(interface.to_le_bytes());
            body.extend(((time_ns >> 32) as u32).to_le_bytes());
            body.extend((time_ns as u32).to_le_bytes());
            body.extend((captured.len() as u32).to_le_bytes());
            body.extend(original_len.to_le_bytes());
            body.extend(captured);
            pad(body);
        });
    }

    /// Returns the content of the capture file.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn block(&mut self, kind: u32, fill: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        self.bytes.extend(kind.to_le_bytes());
        self.bytes.extend([0; 4]); // placeholder of the length
        fill(&mut self.bytes);
        let length = (self.bytes.len() - start + 4) as u32;
        debug_assert_eq!(length % 4, 0);
        self.bytes[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
        self.bytes.extend(length.to_le_bytes());
    }
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    pad(body);
}

fn end_of_options(body: &mut Vec<u8>) {
    body.extend([0; 4]);
}

/// Pads the block with zeros to a multiple of four bytes, as the format requires.
fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn u32_at(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    /// Returns the type and the body of every block, and checks the lengths.
    fn blocks(bytes: &[u8]) -> Vec<(u32, &[u8])> {
        let (mut all, mut at) = (Vec::new(), 0);
        while at < bytes.len() {
            let length = u32_at(bytes, at + 4) as usize;
            assert_eq!(u32_at(bytes, at + length - 4) as usize, length, "both lengths agree");
            all.push((u32_at(bytes, at), &bytes[at + 8..at + length - 4]));
            at += length;
        }
        assert_eq!(at, bytes.len());
        all
    }

    /// Returns the code and the value of every option of a block.
    fn options(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
        let mut all = Vec::new();
        loop {
            let code = u16::from_le_bytes([bytes[0], bytes[1]]);
            let length = usize::from(u16::from_le_bytes([bytes[2], bytes[3]]));
            if code == 0 {
                assert_eq!(bytes.len(), 4);
                return all;
            }
            all.push((code, &bytes[4..4 + length]));
            bytes = &bytes[(4 + length).next_multiple_of(4)..];
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let mut file = Pcapng::new("Eastwest 1");
        assert_eq!(file.interface("leaf0->h3", "a cable", 1_000_000_000), 0);
        assert_eq!(file.interface("h3->leaf0", "", 7), 1);
        file.name([10, 0, 0, 1], "h0");
        file.packet(1, (5 << 32) + 6, &[1, 2, 3, 4, 5], 99);
        let bytes = file.into_bytes();
        let blocks = blocks(&bytes);
        let kinds: Vec<u32> = blocks.iter().map(|b| b.0).collect();
        assert_eq!(kinds, [SECTION_HEADER, INTERFACE, INTERFACE, NAMES, ENHANCED_PACKET]);
        assert_eq!(u32_at(blocks[0].1, 0), BYTE_ORDER);
        assert_eq!(options(&blocks[0].1[16..]), [(4, b"Eastwest 1".as_slice())]);
        let rate = 1_000_000_000u64.to_le_bytes();
        assert_eq!(
            options(&blocks[1].1[8..]),
            [(2, b"leaf0->h3".as_slice()), (3, b"a cable"), (8, &rate), (9, &[9])]
        );
        assert_eq!(blocks[3].1, b"\x01\0\x07\0\x0a\0\0\x01h0\0\0\0\0\0\0");
        let packet = blocks[4].1;
        let numbers: Vec<u32> = (0..5).map(|i| u32_at(packet, 4 * i)).collect();
        assert_eq!(numbers, [1, 5, 6, 5, 99]);
        assert_eq!(packet[20..], [1, 2, 3, 4, 5, 0, 0, 0]);
    }
}
