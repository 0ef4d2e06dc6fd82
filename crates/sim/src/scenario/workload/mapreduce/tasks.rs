//! The tables `shuffle`, `sort` and `costs` of a MapReduce workload: transfers, sorting and
//! computation of tasks.

use super::fields::{count, flag, share, small, span};
use eastwest_settings::quantity::{ByteRate, Bytes, Octets, Ratio};
use eastwest_settings::reader::{Section, key};
use eastwest_types::Rate;
use eastwest_workload::mapreduce::{CostConfig, ShuffleConfig, SortConfig};

/// Reads the table `shuffle`: transfer of map outputs to reduces. `usual` are the defaults.
pub fn read_shuffle(s: &mut Section, usual: &ShuffleConfig) -> ShuffleConfig {
    ShuffleConfig {
        parallel_copies: s.get(
            key(
                "parallel_copies",
                "Number of hosts from which a reducer fetches at once \
                 (mapreduce.reduce.shuffle.parallelcopies).",
            )
            .value(usual.parallel_copies)
            .range("1", "100000"),
        ),
        max_maps_per_fetch: s.get(
            key(
                "max_maps_per_fetch",
                "Maximum number of map outputs in one request to a host (MAX_MAPS_AT_ONCE of \
                 Hadoop).",
            )
            .value(usual.max_maps_per_fetch)
            .range("1", "1000000"),
        ),
        fetch_request_bytes: small(
            s,
            "fetch_request_bytes",
            "Application bytes of a fetch request (estimate).",
            usual.fetch_request_bytes,
        ),
        fetch_header_bytes: small(
            s,
            "fetch_header_bytes",
            "Application bytes of the header of a fetch response, before the map outputs \
             (estimate).",
            usual.fetch_header_bytes,
        ),
        ..read_memory(s, usual)
    }
}

/// Reads the key `keep_alive`, and the settings of the memory of a reduce task.
fn read_memory(s: &mut Section, usual: &ShuffleConfig) -> ShuffleConfig {
    ShuffleConfig {
        keep_alive: s.get(
            key(
                "keep_alive",
                "Whether the connection to a host is kept for further fetch requests \
                 (mapreduce.shuffle.connection-keep-alive.enabled).",
            )
            .value(usual.keep_alive),
        ),
        heap_bytes: s
            .get(
                key(
                    "heap_bytes",
                    "Heap of a reduce (-Xmx of mapreduce.reduce.java.opts, before \
                     mapred.child.java.opts).",
                )
                .value(Bytes(usual.heap_bytes))
                .range("0 B", "1 TB"),
            )
            .0,
        input_buffer_fraction: share(
            s,
            "input_buffer_fraction",
            "Share of the heap for fetched map outputs, the shuffle memory \
             (mapreduce.reduce.shuffle.input.buffer.percent).",
            usual.input_buffer_fraction,
        ),
        memory_limit_fraction: share(
            s,
            "memory_limit_fraction",
            "Share of the shuffle memory that a single map output may use \
             (mapreduce.reduce.shuffle.memory.limit.percent).",
            usual.memory_limit_fraction,
        ),
        merge_fraction: share(
            s,
            "merge_fraction",
            "Share of the shuffle memory that is full when outputs are merged to the disk \
             (mapreduce.reduce.shuffle.merge.percent).",
            usual.merge_fraction,
        ),
        reduce_buffer_fraction: share(
            s,
            "reduce_buffer_fraction",
            "Share of the heap in which map outputs may remain during the reduce function \
             (mapreduce.reduce.input.buffer.percent).",
            usual.reduce_buffer_fraction,
        ),
        ..read_failed_fetches(s, usual)
    }
}

/// Reads the settings of the reaction of a reduce task to a failed fetch of map output.
fn read_failed_fetches(s: &mut Section, usual: &ShuffleConfig) -> ShuffleConfig {
    let wait = ("0 s", "1 h");
    let doc = "Time without fetches from a worker after the first failed fetch (Hadoop 1: 4 s; \
               Hadoop 3: 10 s · 1.3).";
    let penalty = span(s, "penalty", doc, usual.penalty, wait);
    let growth = s.get(
        key(
            "penalty_growth",
            "Factor by which `penalty` grows with each further failed fetch \
                               (Hadoop 1: 2; Hadoop 3: 1.3).",
        )
        .value(Ratio(usual.penalty_growth))
        .range("1", "1000"),
    );
    let doc = "Upper limit of the time without fetches from a worker (Hadoop 1: half of \
               mapred.reduce.copy.backoff; Hadoop 3: \
               mapreduce.reduce.shuffle.retry-delay.max.ms).";
    let penalty_max = span(s, "penalty_max", doc, usual.penalty_max, wait);
    let doc = "Whether a reduce reports each failed fetch at once \
               (mapreduce.reduce.shuffle.notify.readerror).";
    let notify_read_error = flag(s, "notify_read_error", doc, usual.notify_read_error);
    let doc = "Number of failed fetches of a map output after which a reduce reports them, if \
         notify_read_error is false (mapreduce.reduce.shuffle.maxfetchfailures).";
    let failures_reported =
        count(s, "failures_reported", doc, usual.failures_reported, ("1", "1000"));
    ShuffleConfig {
        penalty,
        penalty_growth: growth.0,
        penalty_max,
        notify_read_error,
        failures_reported,
        ..usual.clone()
    }
}

/// Reads the table `sort`: sort buffer and merges. `usual` are the defaults.
pub fn read_sort(s: &mut Section, usual: &SortConfig) -> SortConfig {
    SortConfig {
        buffer_bytes: s
            .get(
                key(
                    "buffer_bytes",
                    "Size of the sort buffer for a map's output \
                                     (mapreduce.task.io.sort.mb).",
                )
                .value(Bytes(usual.buffer_bytes))
                .range("1 MB", "1 TB"),
            )
            .0,
        spill_fraction: share(
            s,
            "spill_fraction",
            "Share of the sort buffer that is full when a spill begins \
             (mapreduce.map.sort.spill.percent).",
            usual.spill_fraction,
        ),
        factor: s.get(
            key("factor", "Number of files merged at once (mapreduce.task.io.sort.factor).")
                .value(usual.factor)
                .range("2", "100000"),
        ),
        record_bytes: s
            .get(
                key("record_bytes", "Size of a record of map output (TeraGen: 100 B).")
                    .value(Octets(usual.record_bytes))
                    .range("1 B", "1 GB"),
            )
            .0,
        record_meta_bytes: s.get(
            key(
                "record_meta_bytes",
                "Bytes of metadata for each record in the sort buffer (METASIZE of Hadoop's \
                 MapTask).",
            )
            .value(usual.record_meta_bytes)
            .range("0", "100000"),
        ),
    }
}

/// Reads the table `costs`: rates and delays of the computation of tasks. Returns these costs, and
/// the rate of a disk. `usual` and `disk_rate` are the defaults.
pub fn read_costs(s: &mut Section, usual: &CostConfig, disk_rate: Rate) -> (CostConfig, Rate) {
    let (low, high) = ("1 KB/s", "1000 GB/s");
    let costs = CostConfig {
        task_start: s.get(
            key(
                "task_start",
                "Time from the arrival of an assignment until the task starts (Java virtual \
                 machine: about 1 s on an idle core).",
            )
            .value(usual.task_start)
            .range("0 s", "1 h"),
        ),
        task_start_jitter: span(
            s,
            "task_start_jitter",
            "Upper end of a uniform random time that is added to task_start for each task, \
             because starts of real virtual machines differ.",
            usual.task_start_jitter,
            ("0 s", "1 h"),
        ),
        map_rate: s
            .get(
                key(
                    "map_rate",
                    "Rate of the map function including the sort (measured: 31 ms of \
                                 CPU per MB).",
                )
                .value(ByteRate(usual.map_rate))
                .range(low, high),
            )
            .0,
        reduce_rate: s
            .get(
                key(
                    "reduce_rate",
                    "Rate of the reduce function (measured: 140 MB in 1.7 to 2.6 \
                                    s).",
                )
                .value(ByteRate(usual.reduce_rate))
                .range(low, high),
            )
            .0,
        sort_rate: own_rate(
            s,
            "sort_rate",
            "Rate of sorting and serializing a spill, in bytes per second of a core.",
            ("included in map_rate", usual.sort_rate),
        ),
        merge_rate: own_rate(
            s,
            "merge_rate",
            "Rate of merging, in bytes of each pass per second of a core.",
            ("included in map_rate and reduce_rate", usual.merge_rate),
        ),
        task_commit: s.get(
            key(
                "task_commit",
                "Time from the last output byte of a task until its commit is \
                                complete.",
            )
            .value(usual.task_commit)
            .range("0 s", "1 h"),
        ),
    };
    let disk_rate = s.get(
        key("disk_rate", "Rate of a local disk (sequential transfer of one 7200 rpm disk).")
            .value(ByteRate(disk_rate))
            .range(low, high),
    );
    (costs, disk_rate.0)
}

/// Reads the rate of one step of a task, the key `name`. Without a default in `usual`, an absent
/// key means that another rate includes the step; `without` describes this for the reference page.
fn own_rate(
    s: &mut Section,
    name: &'static str,
    doc: &'static str,
    (without, usual): (&'static str, Option<Rate>),
) -> Option<Rate> {
    let declared = key::<ByteRate>(name, doc).range("1 KB/s", "1000 GB/s");
    match usual {
        Some(rate) => Some(s.get(declared.value(ByteRate(rate))).0),
        None => s.find(declared.optional(without)).map(|rate| rate.0),
    }
}
