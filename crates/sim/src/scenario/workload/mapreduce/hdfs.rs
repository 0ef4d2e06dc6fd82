//! `hdfs`: replication, blocks, packets, the namenode.

use super::{ANY_BYTES, small};
use crate::scenario::quantity::{Bytes, Octets};
use crate::scenario::reader::{Section, key};
use eastwest_workload::mapreduce::HdfsConfig;

/// Reads the table.
pub fn read(s: &mut Section, usual: &HdfsConfig) -> HdfsConfig {
    let (low, high) = ANY_BYTES;
    HdfsConfig {
        replication: s.get(
            key("replication", "Copies of every input split (dfs.replication: 3).")
                .value(usual.replication)
                .range("1", "1000"),
        ),
        output_replication: s.get(
            key(
                "output_replication",
                "Copies of job output, the local one included (dfs.replication: 3). TeraSort \
                 jobs write one unless they say otherwise.",
            )
            .value(usual.output_replication)
            .range("1", "1000"),
        ),
        block_bytes: s
            .get(
                key("block_bytes", "Largest block of job output (dfs.blocksize: 128 MiB on YARN).")
                    .value(Bytes(usual.block_bytes))
                    .range(low, high),
            )
            .0,
        write_chunk_bytes: s
            .get(
                key(
                    "write_chunk_bytes",
                    "Bytes a replica must have received before it passes them on (Hadoop: 64 KiB; \
                     larger ones mean fewer events).",
                )
                .value(Bytes(usual.write_chunk_bytes))
                .range("1 KB", high),
            )
            .0,
        write_window: s.get(
            key(
                "write_window",
                "Chunks a writer may have unacknowledged (Hadoop: 80 packets of 64 KiB).",
            )
            .value(usual.write_window)
            .range("1", "100000"),
        ),
        ack_bytes: small(
            s,
            "ack_bytes",
            "Application bytes of an acknowledgement in a pipeline (estimate).",
            usual.ack_bytes,
        ),
        read_request_bytes: small(
            s,
            "read_request_bytes",
            "Application bytes of a request for a remote split (estimate).",
            usual.read_request_bytes,
        ),
        ..read_wire(s, usual)
    }
}

/// What packets, pipelines and the namenode add.
fn read_wire(s: &mut Section, usual: &HdfsConfig) -> HdfsConfig {
    let packet_bytes = s.get(
        key(
            "packet_bytes",
            "A packet with its header and checksums (dfs.client-write-packet-size).",
        )
        .value(Octets(usual.packet_bytes))
        .range("1000 B", "16 MB"),
    );
    let bytes_per_checksum = s.get(
        key(
            "bytes_per_checksum",
            "File bytes a checksum of 4 B covers (dfs.bytes-per-checksum); 0: neither checksums \
             nor headers of packets are sent.",
        )
        .value(usual.bytes_per_checksum)
        .range("0", "1000000"),
    );
    let setup_bytes = s.get(
        key(
            "setup_bytes",
            "Request that sets up a block's pipeline hop by hop (estimate); 0: data goes at once.",
        )
        .value(usual.setup_bytes)
        .range("0", "1000000"),
    );
    let asks = s.get(
        key("namenode", "Whether the namenode is asked for files and blocks.")
            .value(usual.namenode_time.is_some()),
    );
    let time = usual.namenode_time.or(HdfsConfig::hadoop3().namenode_time).unwrap_or_default();
    let namenode_time = s.get(
        key("namenode_time", "Time the namenode takes for a request (estimate).")
            .value(time)
            .range("0 s", "1 h"),
    );
    HdfsConfig {
        packet_bytes: packet_bytes.0,
        bytes_per_checksum,
        setup_bytes,
        namenode_time: asks.then_some(namenode_time),
        namenode_request_bytes: small(
            s,
            "namenode_request_bytes",
            "Application bytes of a request to the namenode (estimate).",
            usual.namenode_request_bytes,
        ),
        namenode_answer_bytes: small(
            s,
            "namenode_answer_bytes",
            "Application bytes of the namenode's answer (estimate).",
            usual.namenode_answer_bytes,
        ),
        ..usual.clone()
    }
}
