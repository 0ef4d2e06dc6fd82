//! Settings of HDFS, the distributed file system: replication, blocks, write pipelines, the
//! namenode.

use super::recovery::RecoveryConfig;
use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// Settings of HDFS, the distributed file system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HdfsConfig {
    /// Number of replicas of every input split (`dfs.replication`: 3).
    pub replication: u32,
    /// Number of replicas of job output, including the writer's own replica (`dfs.replication`: 3).
    /// A job may set another number, as TeraSort does.
    pub output_replication: u32,
    /// Largest block of job output in bytes (`dfs.block.size` of Hadoop 1 and E-EON: 64 MB, here
    /// 64 · 10⁶; `dfs.blocksize` of Hadoop 3: 128 MiB).
    pub block_bytes: u64,
    /// File bytes of a chunk: a datanode forwards a chunk to the next replica when it has received
    /// the whole chunk. Hadoop forwards packets of 64 KiB, which hold 64,512 B of the file. With
    /// chunks of 1 MiB there are sixteen times fewer events, and the last replica is 8 ms later for
    /// each hop at 1 Gbit/s.
    pub write_chunk_bytes: u64,
    /// Largest number of unacknowledged chunks of a writer
    /// (`dfs.client.write.max-packets-in-flight`: 80, with chunks of 1 MiB: 5).
    pub write_window: u32,
    /// Bytes of an HDFS data packet, with its header and checksums (`dfs.client-write-packet-size`:
    /// 65,536). Determines the number of headers in a chunk.
    pub packet_bytes: u32,
    /// File bytes per checksum of 4 B (`dfs.bytes-per-checksum`, formerly `io.bytes.per.checksum`:
    /// 512). 0: neither checksums nor packet headers are sent.
    pub bytes_per_checksum: u32,
    /// Application bytes of a datanode's acknowledgement in a write pipeline (estimate).
    pub ack_bytes: u32,
    /// Application bytes of a map's request for a split on another worker (estimate).
    pub read_request_bytes: u32,
    /// Application bytes of the request that sets up a block's pipeline. The request passes from
    /// datanode to datanode and is answered in the opposite direction before data is sent (estimate
    /// from `DataTransferProtocol`). 0: data is sent at once.
    pub setup_bytes: u32,
    /// Service time of the namenode for a request; `None`: no requests are sent. Writers send
    /// `create`, `addBlock` for each block and `complete`, readers `getBlockLocations`.
    pub namenode_time: Option<Span>,
    /// Application bytes of a request to the namenode (estimate).
    pub namenode_request_bytes: u32,
    /// Application bytes of an answer of the namenode (estimate).
    pub namenode_answer_bytes: u32,
    /// Settings for the recovery of blocks after the loss of a datanode.
    pub recovery: RecoveryConfig,
}

impl Default for HdfsConfig {
    fn default() -> Self {
        HdfsConfig {
            replication: 3,
            output_replication: 3,
            block_bytes: 64_000_000,
            write_chunk_bytes: 1 << 20,
            write_window: 5,
            packet_bytes: 65_536,
            bytes_per_checksum: 512,
            ack_bytes: 32,
            read_request_bytes: 200,
            setup_bytes: 0,
            namenode_time: None,
            namenode_request_bytes: 250,
            namenode_answer_bytes: 300,
            recovery: RecoveryConfig::default(),
        }
    }
}

impl HdfsConfig {
    /// Returns the HDFS settings of Hadoop 3: blocks of 128 MiB, packets sent one by one instead of
    /// chunks of 1 MiB, requests to the namenode.
    pub fn hadoop3() -> HdfsConfig {
        HdfsConfig {
            block_bytes: 128 << 20,
            write_chunk_bytes: 64_512,
            write_window: 80,
            setup_bytes: 300,
            namenode_time: Some(Span::from_ms(1)),
            ..HdfsConfig::default()
        }
    }
}
