//! Fuzz test of the scenario reader with mutated scenarios. For any content of a file, reading must
//! end without a panic. An accepted file must give a text with all defaults that reads back as an
//! equal scenario.
//!
//! Input number `i` is the same in every run. The environment variable `EASTWEST_FUZZ_INPUTS` sets
//! the number of inputs.

use eastwest_engine::random::Stream;
use eastwest_settings::problem::Problem;
use eastwest_sim::scenario::{Context, Scenario, read};
use std::path::Path;

/// Number of mutated scenarios, unless `EASTWEST_FUZZ_INPUTS` sets another number.
const INPUTS: u64 = 100_000;

const TRACE: &str = "job0\t9\t9\t1762\t0\t14347\njob1\t18\t9\t970\t609\t697\n\
    job2\t20\t2\t53088744165\t1510005522\t5759777\njob3\t9000\t0\t0\t0\t0\n";
const MESH: &str = "hosts = ['a', 'b', 'c']\nswitches = ['s', 't']\n\
    [[cable]]\na = 'a'\nb = 's'\nrate = '1 Gbit/s'\n[[cable]]\na = 't'\nb = 'b'\nrate = '1 Gbit/s'\n\
    [[cable]]\na = 'c'\nb = 's'\nrate = '1 Gbit/s'\n[[cable]]\na = 's'\nb = 't'\nrate = '9 Gbit/s'\n";

/// A Hadoop configuration file with four kinds of properties: a setting of the model, one with an
/// assumed value, one that is not modelled, and one with a reference `${n}`.
const SITE: &str = "<configuration><property><name>mapred.reduce.tasks</name><value>${n}</value>\
    </property><property><name>n</name><value>3</value><final>true</final></property>\
    <property name='mapreduce.map.output.compress' value='true'/>\
    <property name='hadoop.tmp.dir' value='/tmp'/></configuration>";

/// A scenario with settings that the shipped scenarios do not use.
const RARE: &str = "schema = 1
[fabric]
kind = 'graph'
file = 'mesh.toml'
routing = 'explicit'
route = [{ from = 'a', to = 'b', via = ['s', 't'] }]
[measure]
events = 10
tcp_trace = ['a', 'a -> b', '*']
capture = ['s->t', 'c -> s']
capture_from = '1 s'
capture_until = '2 s'
flow_samples = ['b', 'c -> a']
flow_samples_interval = '40 us'
flow_samples_rows = 7
pauses = ['s', 'a->s']
pauses_rows = 9
[[class]]
name = 'urgent'
priority = 5
[[fault]]
on = ['a--s', 's->t#0', 'b']
kind = 'bursty-loss'
share = 0.01
mean_burst = 3
[[fault]]
on = 't'
kind = 'down'
from = '1 s'
until = '2 s'
period = '10 ms'
up_share = '90 %'
[[fault]]
on = 's->a'
kind = 'degrade'
share = 0.5
[[fault]]
on = 's--t'
kind = 'delay'
extra = '1 ms'
jitter = '5 us'
[[workload]]
name = 'flows'
kind = 'poisson'
load = '40 %'
sizes = 'points'
size_points = [['1 KB', 0], ['20 KB', 0.5], ['1 MB', 1]]
flows = 100
[[workload]]
name = 'packets'
kind = 'datagrams'
sources = 'a..b'
destination = 'c'
bytes = 1500
mean_gap = '12 us'
background = true
[[workload]]
name = 'exchange'
kind = 'all-to-all'
class = 'urgent'
bytes = '10 KB'
[[workload]]
name = 'jobs'
kind = 'mapreduce'
hdfs = { replication = 1, output_replication = 1 }
hadoop_files = ['mapred-site.xml']
hadoop = { \"mapred.reduce.parallel.copies\" = 7, \"dfs.block.size\" = '32m' }
[[workload.job]]
kind = 'custom'
input = '1 GB'
shuffle_ratio = 0.3
output_ratio = 0.1
count = 5
interarrival = '10 s'
";

/// A scenario with fabrics and routes that the shipped scenarios do not use.
const ROUTED: &str = "schema = 1
[fabric]
kind = 'two-groups'
hosts_per_group = 2
paths = 2
host_rate = '1 Gbit/s'
uplink_rate = '1 Gbit/s'
routing = 'explicit'
routes = 'routes.csv'
same_hash = true
route = [{ from = 'h0', to = 'h2', via = ['left', 'near1', 'far0', 'right'] }]
weight = [{ from = 'left', to = 'near1', weight = 3 }]
[[workload]]
name = 'exchange'
kind = 'all-to-all'
bytes = '10 KB'
";
const SHAPES: [&str; 4] = [
    "schema = 1
[fabric]
kind = 'xgft'
children = [3, 2, 2]
parents = [1, 2, 3]
host_rate = '1 Gbit/s'
uplink_rate = '1 Gbit/s'
routing = 'flowlet'
flowlet_gap = '100 us'
flowlet_entries = 1024
[[workload]]
name = 'exchange'
kind = 'all-to-all'
bytes = '10 KB'
",
    "schema = 1
[fabric]
kind = 'torus'
sizes = [3, 4]
hosts_per_switch = 2
host_rate = '1 Gbit/s'
uplink_rate = '1 Gbit/s'
routing = 'spray'
[[workload]]
name = 'exchange'
kind = 'all-to-all'
bytes = '10 KB'
",
    "schema = 1
[fabric]
kind = 'dcell'
n = 3
levels = 1
host_rate = '1 Gbit/s'
uplink_rate = '1 Gbit/s'
routing = 'modulo'
[[workload]]
name = 'exchange'
kind = 'all-to-all'
bytes = '10 KB'
",
    "schema = 1
[fabric]
kind = 'k-ary-n-tree'
k = 2
levels = 3
host_rate = '1 Gbit/s'
uplink_rate = '1 Gbit/s'
routing = 'adaptive'
adaptive_timer = '9 ms'
[[workload]]
name = 'exchange'
kind = 'all-to-all'
bytes = '10 KB'
",
];
const ROUTES: &str = "from,to,via\nh1,h3,left near0 far1 right\n";

/// Values that are wrong for most keys, or very large.
const ODD: [&str; 24] = [
    "0",
    "-1",
    "1",
    "2",
    "65536",
    "1000000",
    "4294967296",
    "9223372036854775807",
    "1e300",
    "nan",
    "inf",
    "0.1",
    "true",
    "''",
    "[]",
    "{}",
    "'0 s'",
    "'20 d'",
    "'480 h'",
    "'1000 TB'",
    "'64 KB'",
    "'100 %'",
    "['h0', 'h1..h3']",
    "1979-05-27",
];

struct Mutator {
    seeds: Vec<String>,
    stream: Stream,
}

impl Mutator {
    fn below(&mut self, n: usize) -> usize {
        self.stream.below(n.max(1) as u64) as usize
    }

    fn input(&mut self) -> String {
        let seed = self.below(self.seeds.len());
        let mut lines: Vec<String> = self.seeds[seed].lines().map(str::to_owned).collect();
        for _ in 0..1 + self.below(3) {
            match self.below(10) {
                0..3 => self.odd_value(&mut lines),
                3..6 => self.number(&mut lines),
                6 => {
                    let at = self.below(lines.len());
                    lines.remove(at);
                }
                7 => self.splice(&mut lines),
                8 => self.key(&mut lines),
                _ => return self.bytes(&lines.join("\n")),
            }
            if lines.is_empty() {
                break;
            }
        }
        lines.join("\n")
    }

    /// Mutation: replaces the value in a line by an unusual one, or by the value of another line.
    fn odd_value(&mut self, lines: &mut [String]) {
        let (to, from) = (self.below(lines.len()), self.below(lines.len()));
        let value = match lines[from].split_once('=') {
            Some((_, value)) if self.below(3) == 0 => value.to_owned(),
            _ => ODD[self.below(ODD.len())].to_owned(),
        };
        if let Some((key, _)) = lines[to].split_once('=') {
            lines[to] = format!("{key}= {value}");
        }
    }

    /// Mutation: replaces or inserts a digit of a number.
    fn number(&mut self, lines: &mut [String]) {
        let at = self.below(lines.len());
        let digits: Vec<usize> =
            lines[at].char_indices().filter(|(_, c)| c.is_ascii_digit()).map(|(i, _)| i).collect();
        if !digits.is_empty() {
            let digit = digits[self.below(digits.len())];
            let new = char::from(b'0' + self.below(10) as u8);
            let end = digit + self.below(2);
            lines[at].replace_range(digit..end, &new.to_string());
        }
    }

    /// Mutation: inserts lines of another scenario.
    fn splice(&mut self, lines: &mut Vec<String>) {
        let other = self.below(self.seeds.len());
        let donor: Vec<String> = self.seeds[other].lines().map(str::to_owned).collect();
        let (from, count, to) =
            (self.below(donor.len()), 1 + self.below(6), self.below(lines.len()));
        let taken: Vec<String> = donor.into_iter().skip(from).take(count).collect();
        lines.splice(to..to, taken);
    }

    /// Mutation: replaces a letter of a key.
    fn key(&mut self, lines: &mut [String]) {
        let at = self.below(lines.len());
        let letter = self.below(12);
        if lines[at].is_char_boundary(letter) && lines[at].is_char_boundary(letter + 1) {
            lines[at].replace_range(letter..letter + 1, "x");
        }
    }

    /// Mutation: changes bytes at any position.
    fn bytes(&mut self, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..1 + self.below(4) {
            let at = self.below(bytes.len());
            match self.below(4) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, self.stream.next_u64() as u8),
                2 if !bytes.is_empty() => bytes[at] = self.stream.next_u64() as u8,
                _ => {
                    let end = (at + self.below(80)).min(bytes.len());
                    let copy = bytes[at..end].to_vec();
                    bytes.splice(at..at, copy);
                }
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns random overrides of settings; mostly none.
    fn overrides(&mut self) -> Vec<(String, String)> {
        const PATHS: [&str; 9] = [
            "fabric.queue.limit",
            "tcp.min_rto",
            "workload.0.bytes",
            "workload.bulk.count",
            "seed",
            "workload",
            "fabric.hosts_per_leaf",
            "workload.0.job.0.count",
            "workload.jobs.hadoop.dfs.block.size",
        ];
        if self.below(4) > 0 {
            return Vec::new();
        }
        let path = PATHS[self.below(PATHS.len())].to_owned();
        vec![(path, ODD[self.below(ODD.len())].trim_matches('\'').to_owned())]
    }
}

fn check(scenario: &Scenario, text: &str) {
    let files = scenario.attached.iter().map(|a| (a.name.clone(), a.bytes.clone())).collect();
    let context = Context { files, ..Context::default() };
    let resolved = scenario.resolved();
    match read(resolved, &context, &[]) {
        Ok(again) => {
            assert_eq!(again.resolved(), resolved, "{text}");
            assert_eq!(again.notes, scenario.notes, "{text}");
            assert!(again == *scenario, "{text}\n---\n{resolved}");
        }
        Err(problems) => panic!("{text}\n---\n{resolved}\n{problems:#?}"),
    }
}

#[test]
fn mutated_scenarios_are_refused_or_read_back_as_themselves() {
    let inputs = std::env::var("EASTWEST_FUZZ_INPUTS").ok().and_then(|n| n.parse().ok());
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut paths: Vec<_> = std::fs::read_dir(dir)
        .expect("the shipped scenarios")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    paths.sort();
    let mut seeds: Vec<String> =
        paths.iter().map(|p| std::fs::read_to_string(p).expect("a scenario")).collect();
    seeds.extend([RARE, ROUTED].into_iter().chain(SHAPES).map(str::to_owned));
    let held = [
        ("fb-2009", TRACE),
        ("mesh.toml", MESH),
        ("mapred-site.xml", SITE),
        ("routes.csv", ROUTES),
    ];
    let files = held.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().into()));
    let context = Context { files: files.collect(), ..Context::default() };

    let mut mutator = Mutator { seeds, stream: Stream::new(1, "fuzz/scenario") };
    let (mut accepted, mut refused) = (0u64, 0u64);
    for _ in 0..inputs.unwrap_or(INPUTS) {
        let (text, overrides) = (mutator.input(), mutator.overrides());
        match read(&text, &context, &overrides) {
            Ok(scenario) => {
                accepted += 1;
                check(&scenario, &text);
            }
            Err(problems) => {
                refused += 1;
                assert!(!problems.is_empty(), "refused without a reason:\n{text}");
                let shown: usize = problems.iter().map(|p: &Problem| p.to_string().len()).sum();
                assert!(shown < 1000 * problems.len(), "{problems:#?}");
            }
        }
    }
    println!("{accepted} accepted, {refused} refused");
    assert!(accepted > 0 && refused > 0, "{accepted} accepted, {refused} refused");
}
