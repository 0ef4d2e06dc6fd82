//! Messages of a write pipeline, and the bytes that HDFS adds to the bytes of files.

use crate::mapreduce::config::HdfsConfig;
use crate::mapreduce::context::Context;
use crate::protocol::Action;
use eastwest_types::{ConnId, Purpose, Side};

/// Message tag of the request that sets up a pipeline, and of the answer to it.
pub const SETUP: u64 = 0;
/// Message tag of the empty packet that ends a block, and of its acknowledgement.
pub const CLOSE: u64 = u64::MAX;
/// Length of the header of an HDFS data packet in bytes: two lengths and a PacketHeaderProto
/// (offset, sequence, last, length).
pub const PACKET_HEADER: u64 = 31;
/// Bytes that Hadoop reserves for the largest header of an HDFS data packet (`PKT_MAX_HEADER_LEN`).
const MOST_HEADER: u64 = 33;
/// Length of a checksum in bytes (CRC32C).
const CHECKSUM: u64 = 4;
/// File bytes in one HDFS data packet of a read (`BlockSender`: 64 KiB).
const READ_PACKET: u64 = 65_536;

impl HdfsConfig {
    /// Returns the number of bytes that HDFS adds to `bytes` file bytes: checksums, and headers of
    /// HDFS's own data packets (not of network packets). Each data packet has `packet` file bytes.
    fn overhead(&self, bytes: u64, packet: u64) -> u32 {
        let per = u64::from(self.bytes_per_checksum);
        if per == 0 {
            return 0;
        }
        let sums = CHECKSUM * bytes.div_ceil(per);
        u32::try_from(sums + PACKET_HEADER * bytes.div_ceil(packet)).unwrap_or(u32::MAX)
    }

    /// Returns the number of bytes that HDFS adds to a written chunk of `bytes` file bytes:
    /// checksums, and the headers of its own data packets.
    pub fn write_framing(&self, bytes: u64) -> u32 {
        let per = u64::from(self.bytes_per_checksum);
        let room = u64::from(self.packet_bytes).saturating_sub(MOST_HEADER);
        self.overhead(bytes, (room / (per + CHECKSUM)).max(1) * per.max(1))
    }

    /// Returns the number of bytes that HDFS adds to a read of `bytes` file bytes: checksums, and
    /// the headers of its own data packets.
    pub fn read_framing(&self, bytes: u64) -> u32 {
        self.overhead(bytes, READ_PACKET)
    }
}

/// Sends an acknowledgement of `bytes` bytes over a hop of a pipeline, towards the writer.
pub fn acknowledge(cx: &mut Context, conn: ConnId, bytes: u64, job: u32) {
    let ack = cx.config.hdfs.ack_bytes;
    cx.tell(conn, Side::Server, ack, bytes, Some(job));
}

/// Returns the action that sends a chunk of `bytes` file bytes over a hop of a pipeline; `header`:
/// bytes of checksums and packet headers that HDFS adds.
pub fn replica_chunk(conn: ConnId, bytes: u64, header: u32, job: u32) -> Action {
    Action::Send {
        conn,
        from: Side::Client,
        payload: bytes,
        header,
        tag: bytes,
        purpose: Purpose::Replica,
        job: Some(job),
        record: true,
    }
}
