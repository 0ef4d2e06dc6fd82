//! Workloads of `kind = "mpi"` and `kind = "mpi-cg"`: ranks of MPI programs.
//!
//! A trace is a folder with a file for each rank, in which the last number in a file name is the
//! rank, or one file with the lines of all ranks. The documentation of the crate
//! `eastwest-workload` contains the defaults and their sources.

use super::account;
use super::ground::Ground;
use crate::scenario::files::{Files, find_below};
use crate::scenario::hosts;
use crate::scenario::nodes::Nodes;
use crate::stream_transports::Transport;
use eastwest_engine::random::Stream;
use eastwest_settings::narrow::at_most;
use eastwest_settings::problem::shorten;
use eastwest_settings::quantity::{ByteRate, Bytes, FileName, Octets, Quantity, Ratio};
use eastwest_settings::reader::{Choice, Section, key};
use eastwest_types::{ClassId, HostId, Rate, Span};
use eastwest_workload::ethernet::EthernetConfig;
use eastwest_workload::mpi::cg::CgConfig;
use eastwest_workload::mpi::check::{check, ranks_of};
use eastwest_workload::mpi::collective::{
    Algorithms, AllgatherBy, AllreduceBy, AlltoallBy, BarrierBy, BcastBy, GatherBy, Own, ReduceBy,
    ReduceScatterBy, ScanBy,
};
use eastwest_workload::mpi::groups::Groups;
use eastwest_workload::mpi::{MpiConfig, Placement, Program, TraceFile, place};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Maximum size in bytes of a file that lists the hosts of ranks.
const MOST_HOSTS_FILE_BYTES: u64 = 16 << 20;

/// Maximum number of bytes that all ranks together read from one trace file. Each rank reads the
/// whole file, so this is the size of the file times the number of ranks.
const MOST_MERGED_BYTES: u64 = 64 << 30;

/// Reads the settings of the replay of an MPI trace, and checks the trace. Returns `None` if there
/// is a problem, which is reported.
pub fn replay(
    s: &mut Section,
    ground: &Ground,
    files: &mut Files,
    notes: &mut Vec<String>,
    (class, transport): (ClassId, Transport),
) -> Option<MpiConfig> {
    const DOC: &str = "Time-independent trace of the program: a folder with one file for each \
                       rank (the last number in a file name is the rank), or one file with the \
                       lines of all ranks.";
    let trace: FileName = s.get(key("trace", DOC));
    let mut settings = settings(s, ground, files, (class, transport), MpiConfig::FLOPS_PER_S);
    if !s.good(&["trace"]) || s.describing() {
        return None;
    }
    let found = find_below(&ground.context.base_dir, &trace.0)
        .map_err(|message| vec![message])
        .and_then(|path| {
            program(&trace.0, &path).and_then(|(program, listed)| {
                let summary = check(&program)?;
                Ok((path, program, summary, listed))
            })
        });
    match found {
        Ok((path, program, summary, mut listed)) => {
            let base = trace.0.trim_end_matches('/').rsplit('/').next().unwrap_or(&trace.0);
            if path.is_dir() {
                let (kept, said) = account::of_folder(base, &path);
                listed.extend(kept.map(|path| (account::FILE.to_owned(), path)));
                notes.extend(said);
            }
            let folder = files.attach_folder(base, &listed);
            let resolved = match &program {
                Program::Merged(..) => format!("{folder}/{base}"),
                _ => folder,
            };
            s.resolve_as("trace", FileName(resolved).show());
            if let Some(settings) = &mut settings {
                settings.records = summary.records;
                settings.groups = summary.groups;
            }
            finish(s, ground, settings?, program)
        }
        Err(messages) => {
            messages.into_iter().for_each(|message| s.wrong("trace", message));
            None
        }
    }
}

/// Reads the settings of an MPI program with the messages of the NAS benchmark CG. Returns `None`
/// if there is a problem, which is reported.
pub fn cg(
    s: &mut Section,
    ground: &Ground,
    files: &mut Files,
    (class, transport): (ClassId, Transport),
) -> Option<MpiConfig> {
    let ranks: u32 = s.get(key("ranks", "Number of ranks, a power of two.").range("1", "65536"));
    s.demand(ranks.is_power_of_two(), &["ranks"], || "must be a power of two".to_owned());
    let choices: Vec<Choice<usize>> =
        (0..CgConfig::CLASSES.len()).map(|i| (CgConfig::CLASSES[i].0, i, PROBLEMS[i])).collect();
    let problem = s.choice(
        "problem",
        "Problem class of the benchmark, which determines its size.",
        Some("A"),
        &choices,
    );
    let (_, rows, nonzeros, outer) = CgConfig::CLASSES[problem];
    let outer = s
        .find(
            key("outer", "Number of timed outer iterations; one untimed iteration precedes them.")
                .optional("the number of the problem class")
                .range("0", "1000000"),
        )
        .unwrap_or(outer);
    let inner = s.get(
        key(
            "inner",
            "Number of inner iterations in each outer one; with 0 only the product for \
                      the residual remains.",
        )
        .value(CgConfig::INNER)
        .range("0", "1000000"),
    );
    let settings = settings(s, ground, files, (class, transport), MpiConfig::FLOPS_PER_S)?;
    if !s.all_good() {
        return None;
    }
    let config = CgConfig { ranks, rows, nonzeros, outer, inner };
    let settings = Settings { records: config.records(), ..settings };
    finish(s, ground, settings, Program::Cg(config))
}

/// Returns a note if a CG workload has no key `problem`, and its traffic class `class` has the name
/// of a problem class of NAS CG, such as `A`: the user may have confused the two.
pub fn note_class(s: &Section, class: &str) -> Option<String> {
    let is_problem = CgConfig::CLASSES.iter().any(|(name, ..)| *name == class);
    (is_problem && !s.has("problem")).then(|| {
        format!(
            "class = \"{class}\" of a workload of kind mpi-cg is the traffic class of its packets; \
             the problem class of NAS CG is the key `problem`, which is \"A\" by default"
        )
    })
}

/// Descriptions of the problem classes of CG (S, W, A …), in the order of `CgConfig::CLASSES`.
const PROBLEMS: [&str; CgConfig::CLASSES.len()] = [
    "1,400 rows, 15 iterations",
    "7,000 rows, 15 iterations",
    "14,000 rows, 15 iterations",
    "75,000 rows, 75 iterations",
    "150,000 rows, 75 iterations",
    "1,500,000 rows, 100 iterations",
    "9,000,000 rows, 100 iterations",
];

/// Settings that replayed traces, the messages of NAS CG and training jobs have in common.
pub(super) struct Settings {
    placement: Placement,
    /// Hosts on which ranks are placed; `None`: all hosts.
    hosts: Option<Vec<HostId>>,
    per_host: u32,
    pub(super) flops_per_s: f64,
    compute_scale: f64,
    eager_limit: u64,
    envelope: u32,
    send_overhead: Span,
    receive_overhead: Span,
    local_latency: Span,
    local_rate: Rate,
    local_switch: bool,
    chunk_overhead: Span,
    frame: Option<u16>,
    algorithms: Algorithms,
    pub(super) records: u64,
    pub(super) groups: Groups,
    class: ClassId,
}

/// Reads the settings that all programs have in common. `flops_per_s` is the default of the setting
/// of this name.
pub(super) fn settings(
    s: &mut Section,
    ground: &Ground,
    files: &mut Files,
    (class, transport): (ClassId, Transport),
    flops_per_s: f64,
) -> Option<Settings> {
    let placement = placement(s, ground, files);
    let doc = "Hosts on which the ranks are placed; not with placement = \"file\".";
    let hosts = hosts::read_list(s, "hosts", doc, Some("all hosts"), ground.nodes);
    let is_listed = matches!(placement, Some(Placement::List(_)));
    s.demand(hosts.is_none() || !is_listed, &["hosts"], || {
        "has no effect with placement = \"file\"".to_owned()
    });
    let mut distinct = hosts.clone().unwrap_or_default();
    distinct.sort_unstable();
    distinct.dedup();
    s.demand(hosts.as_ref().is_none_or(|hosts| hosts.len() == distinct.len()), &["hosts"], || {
        "names a host twice".to_owned()
    });
    let per_host = s.get(
        key("ranks_per_host", "Maximum number of ranks on a host; each rank has its own core.")
            .default("1")
            .range("1", "65536"),
    );
    let doc =
        "Floating-point operations per second of a core, which converts compute records to times.";
    let flops: Ratio = s.get(key("flops_per_s", doc).value(Ratio(flops_per_s)).range("1", "1e18"));
    let scale: Ratio = s.get(
        key(
            "compute_scale",
            "Factor by which computation times are multiplied; with 0 they are \
                              left out.",
        )
        .default("1")
        .range("0", "1e6"),
    );
    let eager: Bytes = s.get(
        key(
            "eager_limit",
            "Largest message that is sent eagerly; a longer message waits until the receiver has \
             called receive (rendezvous).",
        )
        .value(Bytes(MpiConfig::EAGER_LIMIT))
        .range("0 B", "1000 TB"),
    );
    let envelope: Octets = s.get(
        key("envelope", "Header bytes of each message, and size of a rendezvous request.")
            .value(Octets(MpiConfig::ENVELOPE))
            .range("1", "65536"),
    );
    let send_overhead = s.get(
        key(
            "send_overhead",
            "Processor time of the sender for each message of sends, before it leaves.",
        )
        .default("0 s")
        .range("0 s", "1 s"),
    );
    let receive_overhead = s.get(
        key(
            "receive_overhead",
            "Processor time of the receiver for each message of receives, after its arrival.",
        )
        .default("0 s")
        .range("0 s", "1 s"),
    );
    let local_latency = s.get(
        key("local_latency", "Latency of the smallest message between two ranks on one host.")
            .value(MpiConfig::LOCAL_LATENCY)
            .range("0 s", "1 s"),
    );
    let local_rate: ByteRate = s.get(
        key("local_rate", "Rate of messages between ranks on one host, through its memory.")
            .value(ByteRate(MpiConfig::LOCAL_RATE))
            .range("1 MB/s", "10000 GB/s"),
    );
    let local_switch = s.get(
        key(
            "local_switch",
            "Whether the ranks of a host have one port of local_rate each, to a switch inside the \
             host; otherwise each pair of ranks has a path of its own.",
        )
        .default("false"),
    );
    let chunk_overhead = s.get(
        key(
            "chunk_overhead",
            "Time of a rank's proxy for each message of a collective call between hosts, before it \
             leaves and after it has arrived.",
        )
        .default("0 s")
        .range("0 s", "1 s"),
    );
    let frame = frame(s, ground, transport);
    let algorithms =
        s.table("collectives", "Algorithms of collective calls.", |s| algorithms(s, ground, files));
    Some(Settings {
        placement: placement?,
        hosts,
        per_host,
        flops_per_s: flops.0,
        compute_scale: scale.0,
        eager_limit: eager.0,
        envelope: envelope.0,
        send_overhead,
        receive_overhead,
        local_latency,
        local_rate: local_rate.0,
        local_switch,
        chunk_overhead,
        frame,
        algorithms,
        records: 0,
        groups: Groups::default(),
        class,
    })
}

/// Reads the size of a full Ethernet frame in bytes, for messages that are sent as raw frames;
/// `None` with another transport.
fn frame(s: &mut Section, ground: &Ground, transport: Transport) -> Option<u16> {
    let given: Option<Octets> = s.find(
        key(
            "frame",
            "Size of a full frame in bytes, without fabric.framing; only with transport = \
             \"ethernet\".",
        )
        .optional("fabric.mtu")
        .range("46", "9216"),
    );
    let over_ethernet = transport == Transport::Ethernet;
    s.demand(over_ethernet || given.is_none(), &["frame"], || {
        "has an effect only with transport = \"ethernet\"".to_owned()
    });
    if let (Some(mtu), Some(frame)) = (ground.mtu, given) {
        s.demand(frame.0 <= mtu, &["frame"], || {
            format!("must be at most the MTU, which is {mtu} B")
        });
    }
    let full = given.map_or(ground.mtu, |frame| Some(frame.0)).unwrap_or(0);
    over_ethernet.then_some(at_most(full.clamp(EthernetConfig::MIN_BYTES.into(), 9216)))
}

/// Largest chunk of a channel with NCCL's rule: a step of its protocol `Simple` (NCCL 2.30.7:
/// `NCCL_BUFFSIZE` of 4 MiB divided by `NCCL_STEPS`, 8).
const NCCL_CHUNK: Bytes = Bytes(512 << 10);

fn algorithms(s: &mut Section, ground: &Ground, files: &mut Files) -> Algorithms {
    #[derive(Clone, Copy)]
    enum Rule {
        Short,
        Mpich,
        Nccl,
    }
    let rule = s.choice(
        "rule",
        "Library whose rule gives the algorithms that are not named by the keys below.",
        Some("short"),
        &[
            (
                "short",
                Rule::Short,
                "the algorithms of MPICH for short messages, for all sizes: the defaults below",
            ),
            (
                "mpich",
                Rule::Mpich,
                "MPICH: by size and number of ranks; \"mpich\" for the calls that have this choice",
            ),
            (
                "nccl",
                Rule::Nccl,
                "NCCL: allreduce = \"nccl\", bcast and reduce = \"chain\", allgather and \
                 reducescatter = \"ring\", alltoall, gather and scatter = \"linear\"",
            ),
        ],
    );
    let by = |short: &'static str, mpich: &'static str, nccl: &'static str| {
        Some(match rule {
            Rule::Short => short,
            Rule::Mpich => mpich,
            Rule::Nccl => nccl,
        })
    };
    let dissemination = by("dissemination", "dissemination", "dissemination");
    let barrier = s.choice("barrier", "Barriers.", dissemination, BarrierBy::ALL);
    let bcast = s.choice("bcast", "Broadcasts.", by("binomial", "mpich", "chain"), BcastBy::ALL);
    let reduce = s.choice(
        "reduce",
        "Reductions to one root rank.",
        by("binomial", "mpich", "chain"),
        ReduceBy::ALL,
    );
    let allreduce = s.choice(
        "allreduce",
        "Reductions whose result all ranks receive.",
        by("recursive-doubling", "mpich", "nccl"),
        AllreduceBy::ALL,
    );
    let alltoall = s.choice(
        "alltoall",
        "Alltoall and alltoallv.",
        by("pairwise", "mpich", "linear"),
        AlltoallBy::ALL,
    );
    let binomial = by("binomial", "binomial", "linear");
    let gather = s.choice("gather", "Gather; gatherv is linear.", binomial, GatherBy::ALL);
    let scatter = s.choice("scatter", "Scatter; scatterv is linear.", binomial, GatherBy::ALL);
    let allgather = s.choice(
        "allgather",
        "Allgather and allgatherv.",
        by("ring", "mpich", "ring"),
        AllgatherBy::ALL,
    );
    let reducescatter = s.choice(
        "reducescatter",
        "Reduce-scatter.",
        by("pairwise", "mpich", "ring"),
        ReduceScatterBy::ALL,
    );
    let scan = s.choice("scan", "Scan and exscan.", Some("recursive-doubling"), ScanBy::ALL);
    let channels = s.get(
        key(
            "channels",
            "Channels of a call, as in NCCL: each executes the algorithm for an equal share of the \
             data, over connections of its own.",
        )
        .default("1")
        .range("1", "64"),
    );
    let chunk: Option<Bytes> = s.find(
        key(
            "chunk",
            "Largest message that a channel sends in a step: longer messages are divided into \
             chunks that move independently, as in a pipeline.",
        )
        .optional("undivided; 512 KiB with rule = \"nccl\", as in NCCL 2.30")
        .range("1 KiB", "1 TB"),
    );
    let chunk = chunk.or(matches!(rule, Rule::Nccl).then_some(NCCL_CHUNK));
    Algorithms {
        barrier,
        bcast,
        reduce,
        allreduce,
        alltoall,
        gather,
        scatter,
        allgather,
        reducescatter,
        scan,
        channels,
        chunk: chunk.map(|chunk| chunk.0),
        rate: ground.slowest_host_rate(),
        own: own_algorithms(s, ground, files),
    }
}

/// Reads the file of the user's own algorithms; returns none if there is no file, or if the file has
/// an error, which is reported.
fn own_algorithms(s: &mut Section, ground: &Ground, files: &mut Files) -> Vec<Own> {
    let doc = "File with the steps of own algorithms, which replace the named ones for their number \
               of ranks.";
    let Some(file) = s.find::<FileName>(key("file", doc).optional("no file")) else {
        return Vec::new();
    };
    let read = files.load(ground.context, &file.0, Own::MOST_BYTES).and_then(|attached| {
        let text = std::str::from_utf8(&attached.bytes).map_err(|_| "is not UTF-8".to_owned())?;
        let own = Own::read(text).map_err(|message| format!("{}: {message}", shorten(&file.0)))?;
        Ok((own, attached.name))
    });
    match read {
        Ok((own, name)) => {
            s.resolve_as("file", FileName(name).show());
            own
        }
        Err(message) => {
            s.wrong("file", message);
            Vec::new()
        }
    }
}

fn placement(s: &mut Section, ground: &Ground, files: &mut Files) -> Option<Placement> {
    #[derive(Clone, Copy)]
    enum By {
        Block,
        RoundRobin,
        Random,
        File,
    }
    let by = s.choice(
        "placement",
        "Assignment of ranks to hosts.",
        Some("block"),
        &[
            (
                "block",
                By::Block,
                "the first ranks on the first host, the next ranks on the \
                                  second, and so on",
            ),
            (
                "round-robin",
                By::RoundRobin,
                "one rank on each host in turn, then again from the \
                                             first host",
            ),
            ("random", By::Random, "at random, drawn from the seed"),
            ("file", By::File, "as given in hosts_file"),
        ],
    );
    let doc = "File with the host of each rank, one per line; only with placement = \"file\".";
    let file: Option<FileName> = s.find(key("hosts_file", doc).optional("no file"));
    let listed = matches!(by, By::File);
    s.demand(file.is_some() == listed, &["hosts_file"], || match listed {
        true => "is required with placement = \"file\"".to_owned(),
        false => "has an effect only with placement = \"file\"".to_owned(),
    });
    match (by, file) {
        (By::Block, _) => Some(Placement::Block),
        (By::RoundRobin, _) => Some(Placement::RoundRobin),
        (By::Random, _) => Some(Placement::Random),
        (By::File, Some(file)) => match hosts_of(&file.0, ground.nodes?, ground, files) {
            Ok((hosts, name)) => {
                s.resolve_as("hosts_file", FileName(name).show());
                Some(Placement::List(hosts))
            }
            Err(message) => {
                s.wrong("hosts_file", message);
                None
            }
        },
        (By::File, None) => None,
    }
}

/// Returns the hosts in the file `name`, in the order of ranks, and the name under which the file
/// is stored beside the scenario text.
fn hosts_of(
    name: &str,
    nodes: &Nodes,
    ground: &Ground,
    files: &mut Files,
) -> Result<(Vec<HostId>, String), String> {
    let attached = files.load(ground.context, name, MOST_HOSTS_FILE_BYTES)?;
    let text = std::str::from_utf8(&attached.bytes).map_err(|_| "is not UTF-8".to_owned())?;
    let lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty());
    let hosts: Result<Vec<HostId>, String> = lines
        .map(|(number, line)| {
            let host = line.parse::<u32>().ok().or_else(|| nodes.number(line));
            host.filter(|&h| h < nodes.hosts()).map(HostId).ok_or_else(|| {
                let (at, shown) = (number + 1, shorten(line));
                let hosts = nodes.host_names();
                format!("{}:{at}: there is no host \"{shown}\"; hosts are {hosts}", shorten(name))
            })
        })
        .collect();
    Ok((hosts?, attached.name))
}

/// Returns the MPI program of the trace at `path`, and its files as (name beside the scenario text,
/// path).
#[allow(clippy::type_complexity)]
fn program(name: &str, path: &Path) -> Result<(Program, Vec<(String, PathBuf)>), Vec<String>> {
    let wrong = |message: String| vec![message];
    if !path.is_dir() {
        let base = name.rsplit('/').next().unwrap_or(name);
        let file = TraceFile { name: shorten(base), path: path.to_owned() };
        let ranks = ranks_of(&file).map_err(|trouble| wrong(trouble.to_string()))?;
        let bytes = path.metadata().map_or(0, |about| about.len());
        if bytes.saturating_mul(u64::from(ranks)) > MOST_MERGED_BYTES {
            return Err(wrong(format!(
                "has {ranks} ranks in one file of {bytes} B, which every rank has to read \
                 (maximum in total: {MOST_MERGED_BYTES} B): split the file with eastwest trace \
                 import"
            )));
        }
        let listed = vec![(base.to_owned(), path.to_owned())];
        return Ok((Program::Merged(file, ranks), listed));
    }
    let unreadable = |e: std::io::Error| wrong(format!("cannot be read: {e}"));
    let mut by_rank: BTreeMap<u32, (String, PathBuf)> = BTreeMap::new();
    for entry in std::fs::read_dir(path).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let Ok(file) = entry.file_name().into_string() else { continue };
        if !entry.path().is_file() || file.starts_with('.') {
            continue;
        }
        let Some(rank) = last_number(&file) else { continue };
        // Symbolic links are resolved: the files of a trace may be links, but only to files in its
        // folder.
        let place = find_below(path, &file).map_err(wrong)?;
        if let Some((other, _)) = by_rank.insert(rank, (file.clone(), place)) {
            let (a, b) = (shorten(&other), shorten(&file));
            return Err(wrong(format!("{a} and {b} are both files of rank {rank}")));
        }
        if by_rank.len() > MpiConfig::MOST_RANKS as usize {
            return Err(wrong(format!("has more than {} ranks", MpiConfig::MOST_RANKS)));
        }
    }
    if by_rank.is_empty() {
        return Err(wrong(
            "contains no file with a number in its name; the last number in a file's name must \
             be its rank"
                .to_owned(),
        ));
    }
    let missing = (0..).find(|rank| !by_rank.contains_key(rank)).unwrap_or(0);
    if (missing as usize) < by_rank.len() {
        let last = by_rank.keys().next_back().copied().unwrap_or(0);
        return Err(wrong(format!("has files for ranks up to {last}, but none for {missing}")));
    }
    let listed: Vec<(String, PathBuf)> = by_rank.into_values().collect();
    let files = listed
        .iter()
        .map(|(file, path)| TraceFile { name: shorten(file), path: path.clone() })
        .collect();
    Ok((Program::Files(files), listed))
}

/// Returns the last number in a file's name, without its extension.
fn last_number(file: &str) -> Option<u32> {
    // A part after the last dot that contains a digit is not an extension: `cg.S.4_0` is rank 0.
    let stem = match file.rsplit_once('.') {
        Some((stem, ending)) if !ending.contains(|c: char| c.is_ascii_digit()) => stem,
        _ => file,
    };
    let digits = stem.rsplit(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty())?;
    digits.parse().ok()
}

/// Assigns the ranks of the program to hosts, and returns the workload. Reports a problem if the
/// ranks do not fit on the hosts.
pub(super) fn finish(
    s: &mut Section,
    ground: &Ground,
    settings: Settings,
    program: Program,
) -> Option<MpiConfig> {
    let nodes = ground.nodes?;
    let seed = Stream::new(ground.cluster.as_ref()?.seed, "workload/mpi").next_u64();
    let ranks = program.ranks();
    let listed = settings.hosts.filter(|_| !matches!(settings.placement, Placement::List(_)));
    let hosts = listed
        .as_ref()
        .map_or(nodes.hosts(), |hosts| u32::try_from(hosts.len()).unwrap_or(u32::MAX));
    let placed = place(&settings.placement, ranks, hosts, settings.per_host, seed);
    let placed = placed.map(|placed| match listed {
        Some(hosts) => placed.into_iter().map(|host| hosts[host.0 as usize]).collect(),
        None => placed,
    });
    match placed {
        Ok(hosts) => Some(MpiConfig {
            program,
            groups: settings.groups,
            hosts,
            flops_per_s: settings.flops_per_s,
            compute_scale: settings.compute_scale,
            eager_limit: settings.eager_limit,
            envelope: settings.envelope,
            send_overhead: settings.send_overhead,
            receive_overhead: settings.receive_overhead,
            local_latency: settings.local_latency,
            local_rate: settings.local_rate,
            local_switch: settings.local_switch,
            chunk_overhead: settings.chunk_overhead,
            frame: settings.frame,
            algorithms: settings.algorithms,
            records: settings.records,
            class: settings.class,
        }),
        Err(message) => {
            let listed = matches!(settings.placement, Placement::List(_));
            s.wrong(if listed { "hosts_file" } else { "placement" }, message);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_of_a_name_is_the_rank() {
        let names = ["rank-003.txt", "ti_trace12.txt", "cg.S.4_0", "2.ti", "cg.A.16-rank7.txt"];
        assert_eq!(names.map(last_number), [Some(3), Some(12), Some(0), Some(2), Some(7)]);
        assert_eq!(["readme.md", "LICENSE"].map(last_number), [None; 2]);
    }
}
