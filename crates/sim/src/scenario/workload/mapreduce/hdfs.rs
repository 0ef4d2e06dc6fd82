//! The table `hdfs` of a MapReduce workload: replication, blocks, packets, and the namenode.

use super::fields::{ANY_BYTES, Range, bytes, count, flag, small, span};
use super::recovery;
use eastwest_settings::quantity::Octets;
use eastwest_settings::reader::{Section, key};
use eastwest_workload::mapreduce::HdfsConfig;

const COPIES: Range = ("1", "1000");

/// Reads the table `hdfs`: replication, blocks, packets and the namenode. `usual` are the defaults.
pub fn read(s: &mut Section, usual: &HdfsConfig) -> HdfsConfig {
    let doc = "Number of replicas of every input split (dfs.replication: 3).";
    let replication = count(s, "replication", doc, usual.replication, COPIES);
    let doc = "Number of replicas of job output, including the local one (dfs.replication: 3). \
               TeraSort jobs write one replica unless the job sets output_replication.";
    let output = usual.output_replication;
    let output_replication = count(s, "output_replication", doc, output, COPIES);
    let doc = "Largest block of job output (dfs.blocksize: 128 MiB on YARN).";
    let block_bytes = bytes(s, "block_bytes", doc, usual.block_bytes, ANY_BYTES);
    let doc = "Bytes that a datanode receives before it forwards them to the next replica \
               (Hadoop: 64 KiB; larger values need fewer events).";
    let chunk = ("1 KB", ANY_BYTES.1);
    let write_chunk_bytes = bytes(s, "write_chunk_bytes", doc, usual.write_chunk_bytes, chunk);
    let doc = "Maximum number of unacknowledged chunks of a writer (Hadoop: 80 packets of 64 KiB).";
    let write_window = count(s, "write_window", doc, usual.write_window, ("1", "100000"));
    let doc = "Application bytes of an acknowledgement in a pipeline (estimate).";
    let ack_bytes = small(s, "ack_bytes", doc, usual.ack_bytes);
    let doc = "Application bytes of a request for a remote split (estimate).";
    let read_request_bytes = small(s, "read_request_bytes", doc, usual.read_request_bytes);
    let wire = read_wire(s, usual);
    let recovery = recovery::read(s, &usual.recovery);
    HdfsConfig {
        replication,
        output_replication,
        block_bytes,
        write_chunk_bytes,
        write_window,
        ack_bytes,
        read_request_bytes,
        recovery,
        ..wire
    }
}

/// Reads sizes on the wire and delays: of packets, of write pipelines, and of the namenode.
fn read_wire(s: &mut Section, usual: &HdfsConfig) -> HdfsConfig {
    let packet_bytes = s.get(
        key(
            "packet_bytes",
            "Size of a packet of HDFS with its header and checksums \
             (dfs.client-write-packet-size).",
        )
        .value(Octets(usual.packet_bytes))
        .range("1000 B", "16 MB"),
    );
    let most: Range = ("0", "1000000");
    let doc = "File bytes for each checksum of 4 B (dfs.bytes-per-checksum); with 0 neither \
               checksums nor packet headers are sent.";
    let bytes_per_checksum = count(s, "bytes_per_checksum", doc, usual.bytes_per_checksum, most);
    let doc = "Application bytes of the request that sets up a block's pipeline hop by hop \
               (estimate); with 0 data is sent without a request.";
    let setup_bytes = count(s, "setup_bytes", doc, usual.setup_bytes, most);
    let doc = "Whether requests to the namenode for files and blocks are simulated.";
    let asks = flag(s, "namenode", doc, usual.namenode_time.is_some());
    let time = usual.namenode_time.or(HdfsConfig::hadoop3().namenode_time).unwrap_or_default();
    let doc = "Processing time of a request at the namenode (estimate).";
    let namenode_time = span(s, "namenode_time", doc, time, ("0 s", "1 h"));
    let doc = "Application bytes of a request to the namenode (estimate).";
    let namenode_request_bytes =
        small(s, "namenode_request_bytes", doc, usual.namenode_request_bytes);
    let doc = "Application bytes of the namenode's answer (estimate).";
    let namenode_answer_bytes = small(s, "namenode_answer_bytes", doc, usual.namenode_answer_bytes);
    HdfsConfig {
        packet_bytes: packet_bytes.0,
        bytes_per_checksum,
        setup_bytes,
        namenode_time: asks.then_some(namenode_time),
        namenode_request_bytes,
        namenode_answer_bytes,
        ..usual.clone()
    }
}
