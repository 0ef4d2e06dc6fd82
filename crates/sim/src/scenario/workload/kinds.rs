//! Kinds of MapReduce jobs: the bytes that each kind reads, shuffles and writes. Clients of HDFS
//! that run outside of jobs count as jobs without tasks.

use super::ground::Ground;
use super::job_cluster::Cluster;
use crate::scenario::hosts;
use eastwest_settings::narrow::whole_part;
use eastwest_settings::quantity::{Bytes, Ratio};
use eastwest_settings::reader::{Section, key};
use eastwest_workload::mapreduce::{Clients, JobBytes, SizeRule};

/// Kind of a job: a computation with known data volumes, or HDFS clients without tasks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    TeraSort,
    Sort,
    Search,
    Index,
    WordCount,
    Shuffle,
    HdfsWrite,
    HdfsRead,
    HdfsPut,
    HdfsGet,
    Custom,
}

/// Bytes of the output of a WordCount map after the combiner, for the thousand words of
/// RandomTextWriter: 1,000 records of 20 B, each a word of 12 letters with its count and lengths.
const WORDS: u64 = 20_000;

/// Reads the kind of a job, such as `terasort`. Returns `None` if there is a problem, which is
/// reported.
pub fn read_kind(s: &mut Section) -> Option<Kind> {
    s.kind(
        "Type of the job, which determines its shuffle and output bytes from its input.",
        None,
        &[
            (
                "terasort",
                Kind::TeraSort,
                "input : shuffle : output = 1 : 1 : 1, one replica of output",
            ),
            ("sort", Kind::Sort, "input : shuffle : output = 1 : 1 : 1"),
            (
                "search",
                Kind::Search,
                "input : shuffle : output = 640 : 0.033 : 0.033 (E-EON, table 4.2)",
            ),
            ("index", Kind::Index, "input : shuffle : output = 640 : 114 : 114 (E-EON, table 4.2)"),
            ("wordcount", Kind::WordCount, "20 kB from each map, combined; 20 kB of output"),
            (
                "shuffle",
                Kind::Shuffle,
                "maps generate the shuffled data; nothing is read or \
                                        written",
            ),
            ("hdfs-write", Kind::HdfsWrite, "maps write; nothing is read or shuffled"),
            ("hdfs-read", Kind::HdfsRead, "maps read; nothing is shuffled or written"),
            ("hdfs-put", Kind::HdfsPut, "no tasks: HDFS clients write files (hdfs dfs -put)"),
            ("hdfs-get", Kind::HdfsGet, "no tasks: HDFS clients read files (hdfs dfs -get)"),
            ("custom", Kind::Custom, "shuffle and output by shuffle_ratio and output_ratio"),
        ],
    )
}

/// Reads the number of bytes that a job of this kind reads, shuffles and writes. Returns the name
/// of the kind and these bytes. `rule` determines the number of maps of a WordCount.
pub fn read_bytes(s: &mut Section, kind: Kind, rule: &SizeRule) -> (&'static str, JobBytes) {
    let mut bytes = |name, doc| s.get(key::<Bytes>(name, doc).range("0 B", "1000 TB")).0;
    let none = JobBytes::default();
    let read = "Bytes that the maps of the job read.";
    match kind {
        Kind::TeraSort => ("terasort", JobBytes::terasort(bytes("input", read))),
        Kind::Sort => ("sort", JobBytes::terasort(bytes("input", read))),
        Kind::Search => ("search", JobBytes::search(bytes("input", read))),
        Kind::Index => ("index", JobBytes::index(bytes("input", read))),
        Kind::WordCount => {
            let input = bytes("input", read);
            let maps = u64::from(rule.tasks(JobBytes { input, ..none }, 1).0);
            ("wordcount", JobBytes { input, shuffle: maps.saturating_mul(WORDS), output: WORDS })
        }
        Kind::Shuffle => {
            let shuffle = bytes("shuffle", "Bytes that the maps generate and the reduces fetch.");
            ("shuffle", JobBytes { shuffle, ..none })
        }
        Kind::HdfsWrite | Kind::HdfsPut => {
            let output = bytes("output", "Bytes that are written, not counting further replicas.");
            let name = if kind == Kind::HdfsPut { "hdfs-put" } else { "hdfs-write" };
            (name, JobBytes { output, ..none })
        }
        Kind::HdfsRead => ("hdfs-read", JobBytes { input: bytes("input", read), ..none }),
        Kind::HdfsGet => {
            ("hdfs-get", JobBytes { input: bytes("input", "Bytes that are read."), ..none })
        }
        Kind::Custom => ("custom", read_ratios(s)),
    }
}

fn read_ratios(s: &mut Section) -> JobBytes {
    let input = s
        .get(key::<Bytes>("input", "Bytes that the maps of the job read.").range("0 B", "1000 TB"))
        .0;
    let mut ratio = |name, doc| {
        let ratio = s.get(key::<Ratio>(name, doc).range("0", "1000"));
        // The product is computed in integers, with nine decimals of the ratio, to be exact on
        // every machine.
        let billionths = whole_part(ratio.0 * 1e9 + 0.5);
        let bytes = u128::from(input) * u128::from(billionths) / 1_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    };
    let shuffle = ratio("shuffle_ratio", "Bytes shuffled for each byte of input.");
    let output = ratio("output_ratio", "Bytes written for each byte of input.");
    JobBytes { input, shuffle, output }
}

/// Reads the hosts that act as HDFS clients in a job without tasks. Returns the hosts and the
/// number of clients; `None` for a job with tasks.
pub fn read_clients(
    s: &mut Section,
    kind: Kind,
    ground: &Ground,
    cluster: &Cluster,
) -> Option<(Clients, u32)> {
    if !matches!(kind, Kind::HdfsPut | Kind::HdfsGet) {
        return None;
    }
    let workers = s.choice(
        "clients",
        "Hosts that act as HDFS clients.",
        Some("one"),
        &[
            ("one", false, "one client"),
            ("workers", true, "one client on every worker; they share the bytes equally"),
        ],
    );
    if workers {
        return Some((Clients::Workers, cluster.workers.max(1)));
    }
    let host =
        hosts::read_one(s, "client", "Host of the client.", Some("the master"), ground.nodes);
    Some((Clients::On(host.unwrap_or(cluster.master)), 1))
}
