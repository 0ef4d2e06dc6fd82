//! Jobs of a MapReduce workload: listed in the scenario, or replayed from a trace (SWIM format).

use super::ground::Ground;
use super::job_cluster::Cluster;
use super::{account, kinds};
use crate::scenario::files::{Files, find_below, read_below};
use eastwest_settings::narrow::whole_part;
use eastwest_settings::problem::shorten;
use eastwest_settings::quantity::{Bytes, FileName, Name, Quantity, Ratio};
use eastwest_settings::reader::{Section, key};
use eastwest_types::{Span, Time};
use eastwest_workload::mapreduce::{JobBytes, JobSpec, SizeRule};
use eastwest_workload::replay::{BadRows, TraceJob, TraceNotes, scale, swim, table, window};
use std::sync::Arc;

/// Place in the scenario that defines a MapReduce job; errors about the job are reported at this
/// place.
#[derive(Clone, Copy)]
pub enum Origin {
    /// The table `[[workload.job]]` with this index, counted from 0.
    Table(usize),
    /// The trace that the workload replays.
    Trace,
}

/// Maximum number of tables `[[workload.job]]` of a workload.
const MOST_TABLES: usize = 10_000;
/// Maximum size of a trace file in bytes.
const MOST_TRACE_BYTES: u64 = 32 << 20;

/// Job trace that ships with Eastwest: its name in scenarios, its file, and the number of nodes of
/// the recorded cluster.
struct Shipped {
    name: &'static str,
    file: &'static str,
    nodes: u32,
}

/// Job traces of Facebook from 2009 and 2010, as sampled by SWIM: 24 hours from clusters of 600 and
/// of 3,000 nodes. `fb-2009-first-50` has only the first 50 jobs of `fb-2009`.
const SHIPPED: [Shipped; 3] = [
    Shipped { name: "fb-2009", file: "swim/FB-2009_samples_24_times_1hr_0.tsv", nodes: 600 },
    Shipped {
        name: "fb-2009-first-50",
        file: "swim/FB-2009_samples_24_times_1hr_0_first50jobs.tsv",
        nodes: 600,
    },
    Shipped { name: "fb-2010", file: "swim/FB-2010_samples_24_times_1hr_0.tsv.gz", nodes: 3000 },
];

/// Reads the jobs of a MapReduce workload, from its tables and its trace. Returns each job and the
/// place that defines the job; `None` if there is a problem, which is reported.
pub fn read(
    s: &mut Section,
    ground: &Ground,
    cluster: &Cluster,
    files: &mut Files,
    notes: &mut Vec<String>,
) -> Option<(Vec<JobSpec>, Vec<Origin>)> {
    let rule = read_rule(s);
    let trace = read_trace(s, ground, cluster, files, notes);
    let doc = "Jobs of one kind. If there is a trace too, they are added to its jobs.";
    let tables = s.tables("job", doc, MOST_TABLES, |j, _| read_job(j, ground, cluster, &rule));
    if s.describing() {
        return None;
    }
    let given = s.has("job") || s.has("trace");
    s.demand(given, &["job", "trace"], || {
        "is required unless `trace` is given: a MapReduce workload needs jobs".to_owned()
    });
    let total: usize = tables.iter().flatten().map(|t| t.count).sum::<usize>();
    let total = total + trace.as_ref().map_or(0, Vec::len);
    if let Err(reason) = ground.admit_jobs(total) {
        s.wrong(if s.has("job") { "job" } else { "trace" }, reason);
    }
    if !s.good(&["job", "trace", "trace_from", "trace_to", "original_nodes"]) {
        return None;
    }
    let (mut jobs, mut origins) = (Vec::new(), Vec::new());
    for job in trace.into_iter().flatten() {
        let bytes = JobBytes {
            input: job.input_bytes,
            shuffle: job.shuffle_bytes,
            output: job.output_bytes,
        };
        let submit = Time::ZERO + job.submit;
        let (maps, reduces) = rule.tasks(bytes, cluster.reduce_slots());
        let (maps, reduces) = (job.maps.unwrap_or(maps), job.reduces.unwrap_or(reduces));
        jobs.push(JobSpec::fixed(job.name, "trace", submit, bytes, maps, reduces));
        origins.push(Origin::Trace);
    }
    for (number, table) in tables.into_iter().enumerate() {
        let Some(table) = table else { continue };
        for copy in 0..table.count {
            let mut job = table.job.clone();
            if table.count > 1 {
                job.name = format!("{}-{copy}", job.name);
            }
            job.submit += table.interarrival * copy as u64;
            jobs.push(job);
            origins.push(Origin::Table(number));
        }
    }
    Some((jobs, origins))
}

fn read_rule(s: &mut Section) -> SizeRule {
    let usual = SizeRule::default();
    let split = s.get(
        key(
            "split_bytes",
            "Bytes of an input split; a job has one map task for each split (block size of Hadoop \
             1).",
        )
        .value(Bytes(usual.split_bytes))
        .range("1 KB", "1 TB"),
    );
    let per_reducer = s.get(
        key(
            "bytes_per_reducer",
            "Shuffle bytes for each reduce task, from which the number of reduce tasks follows \
             (hive.exec.reducers.bytes.per.reducer).",
        )
        .value(Bytes(usual.bytes_per_reducer))
        .range("1 KB", "1000 TB"),
    );
    let fill = s.get(
        key(
            "reduce_fill_percent",
            "Share of all reduce slots that one job may use, in percent (Hadoop's tutorial: 95).",
        )
        .value(usual.reduce_fill_percent)
        .range("1", "1000"),
    );
    SizeRule { split_bytes: split.0, bytes_per_reducer: per_reducer.0, reduce_fill_percent: fill }
}

/// Settings of the replay of a job trace.
struct TraceKeys {
    file: Option<FileName>,
    from: Span,
    to: Option<Span>,
    original: Option<u32>,
    bad_rows: BadRows,
}

fn read_trace_keys(s: &mut Section) -> TraceKeys {
    let file: Option<FileName> = s.find(
        key(
            "trace",
            "Trace of jobs: a folder of eastwest trace import, a SWIM file, text with named \
             columns, or fb-2009 or fb-2010 (Facebook days that ship with Eastwest) or fb-2009-first-50.",
        )
        .optional("no trace"),
    );
    let from = s.get(
        key(
            "trace_from",
            "Time in the trace at which the simulation starts; earlier jobs are \
                           left out.",
        )
        .default("0 s")
        .range("0 s", "480 h"),
    );
    let to = s.find(
        key("trace_to", "Time in the trace from which jobs are left out.")
            .optional("the end of the trace")
            .range("1 ns", "480 h"),
    );
    let original: Option<u32> = s.find(
        key(
            "original_nodes",
            "Number of nodes of the recorded cluster. Sizes are multiplied by workers / \
             original_nodes, times are unchanged (SWIM, Chen et al. 2011).",
        )
        .optional("600 for fb-2009, 3000 for fb-2010, otherwise sizes are unchanged")
        .range("1", "1000000"),
    );
    let bad_rows = s.choice(
        "on_bad_row",
        "Action for rows of the trace that cannot be used.",
        Some("stop"),
        &[
            ("stop", BadRows::Stop, "report an error"),
            (
                "skip",
                BadRows::Skip,
                "skip rows that cannot be read, and report how many there were",
            ),
        ],
    );
    TraceKeys { file, from, to, original, bad_rows }
}

/// Reads the jobs of the trace between `trace_from` and `trace_to`, with bytes scaled to the size
/// of the cluster. Returns `None` without a trace, or if there is a problem, which is reported.
fn read_trace(
    s: &mut Section,
    ground: &Ground,
    cluster: &Cluster,
    files: &mut Files,
    notes: &mut Vec<String>,
) -> Option<Vec<TraceJob>> {
    let TraceKeys { file, from, to, original, bad_rows } = read_trace_keys(s);
    let Some(file) = file else {
        let needs = || "has an effect only with a trace (key `trace`)".to_owned();
        s.demand(from == Span::ZERO, &["trace_from"], needs);
        s.demand(to.is_none(), &["trace_to"], needs);
        s.demand(original.is_none(), &["original_nodes"], needs);
        return None;
    };
    if let Some(to) = to {
        s.demand(from < to, &["trace_to", "trace_from"], || {
            format!("must be after trace_from ({from})")
        });
    }
    if !s.good(&["trace", "trace_from", "trace_to", "original_nodes", "on_bad_row"]) {
        return None;
    }
    let shipped = SHIPPED.iter().find(|t| t.name == file.0);
    let original = original.or(shipped.map(|t| t.nodes)).unwrap_or(cluster.workers);
    let jobs = load(s, ground, files, (&file.0, shipped), bad_rows, notes)?;
    s.resolve_as("original_nodes", original.to_string());
    let mut jobs = window(&jobs, from, to.unwrap_or(Span::MAX));
    if jobs.is_empty() {
        s.wrong("trace", "has no job between trace_from and trace_to");
        return None;
    }
    if let Err(reason) = scale(&mut jobs, cluster.workers.max(1), original) {
        s.wrong("original_nodes", reason);
        return None;
    }
    Some(jobs)
}

/// Returns all jobs of a trace file, or of the folder of an imported trace.
fn load(
    s: &mut Section,
    ground: &Ground,
    files: &mut Files,
    (name, shipped): (&str, Option<&Shipped>),
    bad_rows: BadRows,
    notes: &mut Vec<String>,
) -> Option<Vec<TraceJob>> {
    let loaded = match shipped {
        Some(trace) => files
            .load_shipped(ground.context, name, trace.file, MOST_TRACE_BYTES)
            .map(|file| (file.bytes, file.name)),
        None if ground.context.is_folder(name) => load_folder(ground, files, name, notes),
        None => {
            files.load(ground.context, name, MOST_TRACE_BYTES).map(|file| (file.bytes, file.name))
        }
    };
    let (bytes, kept) = match loaded {
        Ok(loaded) => loaded,
        Err(message) => {
            s.wrong("trace", message);
            return None;
        }
    };
    let read = match table::begins_one(&bytes) {
        true => table::read(name, &bytes[..], bad_rows),
        false => swim::read(name, &bytes[..], bad_rows).map(|trace| (trace, 0)),
    };
    match read {
        Ok((trace, unknown)) => {
            let base = kept.rsplit('/').next().unwrap_or(name);
            tell(base, &trace.notes, notes);
            if unknown > 0 {
                let base = shorten(base);
                notes.push(format!(
                    "{base}: {unknown} sizes are missing in the trace and count as 0 bytes"
                ));
            }
            s.resolve_as("trace", FileName(kept).show());
            Some(trace.jobs)
        }
        Err(error) => {
            s.wrong("trace", error.to_string());
            None
        }
    }
}

/// Returns the content of the job table in the folder of an imported trace, and the name under
/// which the table is stored beside the scenario text. The report of the import is stored too, and
/// becomes notes.
fn load_folder(
    ground: &Ground,
    files: &mut Files,
    name: &str,
    notes: &mut Vec<String>,
) -> Result<(Arc<[u8]>, String), String> {
    let folder = find_below(&ground.context.base_dir, name)?;
    let bytes = read_below(&folder, table::FILE, MOST_TRACE_BYTES)?;
    let base = name.trim_end_matches('/').rsplit('/').next().unwrap_or(name);
    let (account, said) = account::of_folder(base, &folder);
    notes.extend(said);
    let mut listed = vec![(table::FILE.to_owned(), folder.join(table::FILE))];
    listed.extend(account.map(|path| (account::FILE.to_owned(), path)));
    Ok((bytes, files.attach_folder(base, &listed)))
}

/// Adds notes about a job trace, for example about rows that were left out.
fn tell(name: &str, noticed: &TraceNotes, notes: &mut Vec<String>) {
    let name = shorten(name);
    if noticed.skipped > 0 {
        let first =
            noticed.first_skipped.first().map(|e| format!("; the first: {e}")).unwrap_or_default();
        notes.push(format!("{name}: {} unusable rows were skipped{first}", noticed.skipped));
    }
    if noticed.out_of_order > 0 {
        notes.push(format!(
            "{name}: {} jobs were not in order of submission and have been sorted",
            noticed.out_of_order
        ));
    }
    if noticed.unterminated {
        notes.push(format!("{name}: the last line has no line end; the file may be incomplete"));
    }
}

/// Settings of a table `[[workload.job]]`, which defines `count` equal jobs.
struct JobTable {
    job: JobSpec,
    count: usize,
    interarrival: Span,
}

fn read_job(
    s: &mut Section,
    ground: &Ground,
    cluster: &Cluster,
    rule: &SizeRule,
) -> Option<JobTable> {
    let kind = kinds::read_kind(s)?;
    let (kind_name, input) = kinds::read_bytes(s, kind, rule);
    let clients = kinds::read_clients(s, kind, ground, cluster);
    let name = s.get(
        key("name", "Name of the job in tables; with `count` a number is added.")
            .computed("the kind of the job", Name(kind_name.to_owned())),
    );
    let (maps, reduces) = match clients {
        Some((_, count)) => (count, 0),
        None => read_tasks(s, input, rule.tasks(input, cluster.reduce_slots())),
    };
    let submit = s.get(
        key("submit", "Time at which the job is submitted.").default("0 s").range("0 s", "480 h"),
    );
    let count: u32 = s
        .get(key("count", "Number of jobs with these settings.").default("1").range("1", "200000"));
    let interarrival = s.get(
        key("interarrival", "Time between the submissions of these jobs.")
            .default("0 s")
            .range("0 s", "480 h"),
    );
    let last = submit + interarrival * (u64::from(count) - 1);
    s.demand(last <= Span::from_secs(20 * 86_400), &["interarrival", "count", "submit"], || {
        "submits the last job later than 20 days, which is the maximum".to_owned()
    });
    let pool: Option<Name> = s.find(
        key(
            "pool",
            "Pool of the Fair scheduler, or queue of the Capacity scheduler (there: default).",
        )
        .optional("each job has its own pool"),
    );
    let user: Option<Name> = s.find(
        key("user", "User of the job, for the limits within a queue of the Capacity scheduler.")
            .optional("one common user for all jobs without this key"),
    );
    let combine: Option<Ratio> = s.find(
        key("combine_ratio", "Output of the combiner as a share of the output of the maps.")
            .optional("no combiner")
            .range("0.000001", "1"),
    );
    s.demand(combine.is_none() || reduces > 0, &["combine_ratio"], || {
        "needs reduce tasks: without them no combiner runs".to_owned()
    });
    let replication = s.find(
        key("output_replication", "Number of replicas of the job's output.")
            .optional("1 for terasort, otherwise hdfs.output_replication")
            .range("1", "1000"),
    );
    let mut job = JobSpec::fixed(name.0, kind_name, Time::ZERO + submit, input, maps, reduces);
    job.clients = clients.map(|(clients, _)| clients);
    job.pool = pool.map(|p| p.0);
    job.user = user.map(|u| u.0);
    job.uncombined = combine.map(|ratio| uncombined(input.shuffle, ratio.0));
    job.output_replication = replication.or(job.output_replication);
    s.all_good().then_some(JobTable { job, count: count as usize, interarrival })
}

/// Returns the bytes of map output from which a combiner with this `ratio` leaves `shuffle` bytes.
/// The computation uses integers, with nine decimals of the ratio, to be exact on every machine.
fn uncombined(shuffle: u64, ratio: f64) -> u64 {
    let billionths = u128::from(whole_part(ratio * 1e9 + 0.5)).max(1);
    u64::try_from(u128::from(shuffle) * 1_000_000_000 / billionths).unwrap_or(u64::MAX)
}

/// Reads the numbers of map tasks and reduce tasks of a job; `maps` and `reduces` are the defaults.
fn read_tasks(s: &mut Section, bytes: JobBytes, (maps, reduces): (u32, u32)) -> (u32, u32) {
    let maps = s.get(
        key("maps", "Number of map tasks.")
            .computed("one for each split_bytes of input", maps)
            .range("1", "1000000"),
    );
    let reduces: u32 = s.get(
        key("reduces", "Number of reduce tasks; 0 is allowed only without shuffle bytes.")
            .computed("one for each bytes_per_reducer of shuffle, limited by the slots", reduces)
            .range("0", "1000000"),
    );
    s.demand(reduces > 0 || bytes.shuffle == 0, &["reduces"], || {
        format!("must be above 0, because {} bytes are shuffled", bytes.shuffle)
    });
    (maps, reduces)
}
