//! The table `node` of a MapReduce workload: CPU cores, disks and page cache of a worker.

use eastwest_settings::quantity::{ByteRate, Bytes};
use eastwest_settings::reader::{Section, key};
use eastwest_types::Rate;
use eastwest_workload::mapreduce::NodeConfig;

/// Hardware of a worker, before the key `costs.disk_rate` has been read. The disk rates depend on
/// this key.
pub struct Found {
    /// Hardware of a worker, with the disk rates of the chosen preset.
    pub node: NodeConfig,
    read_rate: Option<Rate>,
    write_rate: Option<Rate>,
}

impl Found {
    /// Returns the hardware of a worker with its disk rates. A rate that the table `node` does not
    /// contain is `disk_rate`, the value of `costs.disk_rate`. Exception: if `disk_rate` equals the
    /// read rate of the preset, a missing write rate is the write rate of the preset.
    pub fn with_rate(self, disk_rate: Rate) -> NodeConfig {
        let preset = self.node.read_rate == disk_rate;
        let write_rate = if preset { self.node.write_rate } else { disk_rate };
        NodeConfig {
            read_rate: self.read_rate.unwrap_or(disk_rate),
            write_rate: self.write_rate.unwrap_or(write_rate),
            ..self.node
        }
    }
}

/// Reads the number of units of a resource (cores or disks); `None`: each task or stream has a unit
/// of its own, and `without` describes this for the reference page.
fn servers(
    s: &mut Section,
    name: &'static str,
    doc: &'static str,
    (without, usual): (&'static str, Option<u32>),
) -> Option<u32> {
    let declared = key::<u32>(name, doc).range("1", "100000");
    match usual {
        Some(n) => Some(s.get(declared.value(n))),
        None => s.find(declared.optional(without)),
    }
}

fn rate(
    s: &mut Section,
    name: &'static str,
    doc: &'static str,
    from: &'static str,
) -> Option<Rate> {
    let declared = key::<ByteRate>(name, doc).range("1 KB/s", "1000 GB/s");
    s.find(declared.optional(from)).map(|rate| rate.0)
}

/// Reads the table `node`: CPU cores, disks and page cache of a worker. `usual` are the defaults.
pub fn read(s: &mut Section, usual: &NodeConfig) -> Found {
    let shared = if usual.disks.is_some() { "hdd" } else { "own" };
    let preset = s.choice(
        "disk",
        "Preset for the keys of this table.",
        Some(shared),
        &[
            (
                "own",
                NodeConfig::default(),
                "nothing is shared: every task has its own core and \
                                            disk",
            ),
            ("hdd", NodeConfig::hdd(), "8 cores, four 7200 rpm disks of 130 MB/s, 16 GB"),
            ("ssd", NodeConfig::ssd(), "8 cores, a flash disk of 550 and 500 MB/s, 16 GB"),
        ],
    );
    let cores = servers(
        s,
        "cores",
        "Number of processor cores, which tasks share evenly.",
        ("a core for every task", preset.cores),
    );
    let disks = servers(
        s,
        "disks",
        "Number of disks, each shared evenly by its streams.",
        ("a disk for every stream", preset.disks),
    );
    let read_rate =
        rate(s, "read_rate", "Rate of sequential reading of a disk.", "costs.disk_rate");
    let write_rate = rate(
        s,
        "write_rate",
        "Rate of sequential writing of a disk.",
        "costs.disk_rate, or the value of \
             the preset",
    );
    let node = read_sharing(s, preset);
    let workers_per_machine = s.get(
        key("workers_per_machine", "Number of consecutive workers that share one machine.")
            .value(node.workers_per_machine)
            .range("1", "100000"),
    );
    let node = NodeConfig { cores, disks, workers_per_machine, ..node };
    Found { node, read_rate, write_rate }
}

/// Reads the settings of disk seeks and of the page cache.
fn read_sharing(s: &mut Section, preset: NodeConfig) -> NodeConfig {
    let seek = s.get(
        key(
            "seek",
            "Time to change from one stream to another on a shared disk: seek and half a \
                     rotation.",
        )
        .value(preset.seek)
        .range("0 s", "10 s"),
    );
    let run_bytes = s.get(
        key(
            "run_bytes",
            "Bytes that a disk transfers for one stream between two seeks \
             (dfs.datanode.readahead.bytes).",
        )
        .value(Bytes(preset.run_bytes))
        .range("1 B", "1 TB"),
    );
    let cached = key::<Bytes>(
        "cache_bytes",
        "Size of the page cache: the most recently written bytes are read without the disk.",
    )
    .range("0 B", "1000 TB");
    let cache_bytes = match preset.cache_bytes {
        Some(bytes) => Some(s.get(cached.value(Bytes(bytes))).0),
        None => s.find(cached.optional("all written bytes")).map(|bytes| bytes.0),
    };
    let dirty_bytes = s.get(
        key(
            "dirty_bytes",
            "Maximum number of written bytes that wait in memory for a disk (vm.dirty_ratio); \
             with 0 writers wait for the disk.",
        )
        .value(Bytes(preset.dirty_bytes))
        .range("0 B", "1000 TB"),
    );
    NodeConfig { seek, run_bytes: run_bytes.0, cache_bytes, dirty_bytes: dirty_bytes.0, ..preset }
}
