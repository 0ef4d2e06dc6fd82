//! Clusters described by Hadoop's own properties: what they mean, which are refused, and files that
//! have been tampered with.
//!
//! `data/terasort_job_conf.xml.gz` is the configuration of a TeraSort on Hadoop 3.4.2 as its job
//! history keeps it: 1,500 properties.

use eastwest_engine::random::Stream;
use eastwest_sim::scenario::{Context, Problem, Scenario, WorkloadKind, read};
use eastwest_types::{Rate, Span};
use eastwest_workload::mapreduce::{Framework, MapReduceConfig, SchedulerKind};

const JOB: &[u8] = include_bytes!("data/terasort_job_conf.xml.gz");

fn context(files: &[(&str, &[u8])]) -> Context {
    let files = files.iter().map(|(name, bytes)| ((*name).to_owned(), (*bytes).into()));
    Context { files: files.collect(), ..Context::default() }
}

/// A cluster of four workers with these lines in its workload.
fn scenario(lines: &str, files: &[(&str, &[u8])]) -> Result<Scenario, Vec<Problem>> {
    let text = format!(
        "schema = 1\n[fabric]\nkind = 'star'\nhosts = 5\nhost_rate = '50 Mbit/s'\n[[workload]]\n\
         name = 'sort'\nkind = 'mapreduce'\n{lines}\n[[workload.job]]\nkind = 'terasort'\n\
         input = '512 MiB'\n"
    );
    read(&text, &context(files), &[])
}

fn config(lines: &str, files: &[(&str, &[u8])]) -> (MapReduceConfig, Vec<String>) {
    let scenario = scenario(lines, files).unwrap_or_else(|p| panic!("{p:#?}"));
    let files: Vec<_> = scenario.attached.iter().map(|a| (a.name.as_str(), &a.bytes[..])).collect();
    let again =
        read(scenario.resolved(), &context(&files), &[]).unwrap_or_else(|p| panic!("{p:#?}"));
    assert!(again == scenario, "the resolved text is another scenario:\n{}", scenario.resolved());
    let WorkloadKind::MapReduce(config) = &scenario.workloads[0].kind else { panic!("a cluster") };
    ((**config).clone(), scenario.notes.clone())
}

/// The problems, one a line.
fn refused(lines: &str, files: &[(&str, &[u8])]) -> String {
    let problems = scenario(lines, files).err().unwrap_or_default();
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

fn site(properties: &str) -> String {
    format!("<?xml version='1.0'?>\n<configuration>\n{properties}\n</configuration>\n")
}

#[test]
fn old_and_new_names_mean_the_same() {
    for name in ["mapred.reduce.parallel.copies", "mapreduce.reduce.shuffle.parallelcopies"] {
        let (config, notes) = config(&format!("hadoop = {{ '{name}' = 20 }}"), &[]);
        assert_eq!(config.shuffle.parallel_copies, 20);
        assert!(notes.is_empty(), "{notes:?}");
    }
    let (config, _) = config(
        "hadoop.dfs.replication = 2\nhadoop.dfs.'block.size' = '32m'\n\
         hadoop.'mapred.tasktracker.map.tasks.maximum' = 4\n\
         hadoop.'mapred.jobtracker.taskScheduler' = 'org.apache.hadoop.mapred.FairScheduler'",
        &[],
    );
    assert_eq!((config.hdfs.replication, config.hdfs.output_replication), (2, 2));
    assert_eq!((config.hdfs.block_bytes, config.jobs[0].maps), (32 << 20, 16));
    assert_eq!((config.map_slots, config.scheduler), (4, SchedulerKind::Fair));
}

#[test]
fn the_configuration_of_a_real_job_is_understood() {
    let (config, notes) = config("hadoop_files = ['job_conf.xml.gz']", &[("job_conf.xml.gz", JOB)]);
    assert_eq!((config.jobs[0].maps, config.jobs[0].reduces), (8, 4));
    assert_eq!((config.hdfs.replication, config.hdfs.block_bytes), (1, 64 << 20));
    assert_eq!((config.hdfs.write_chunk_bytes, config.hdfs.write_window), (64_512, 80));
    assert_eq!((config.sort.buffer_bytes, config.sort.factor), (100 << 20, 10));
    assert_eq!((config.shuffle.heap_bytes, config.shuffle.keep_alive), (700 << 20, false));
    assert_eq!(config.framework, Framework::Yarn);
    assert_eq!(config.scheduler, SchedulerKind::Capacity);
    // two maps fit on a node, or a reduce beside an application master
    assert_eq!((config.yarn.node_memory, config.yarn.min_allocation), (2560 << 20, 256 << 20));
    assert_eq!((config.yarn.map_memory, config.yarn.reduce_memory), (1 << 30, 2 << 30));
    assert_eq!((config.control.slowstart, config.shuffle.parallel_copies), (1.0, 5));
    assert!(notes.iter().any(|n| n.ends_with("are about what is not modelled")), "{notes:?}");
}

#[test]
fn later_files_replace_earlier_ones_but_not_what_is_final() {
    let first = site(
        "<property><name>dfs.replication</name><value>1</value><final>true</final></property>\n\
         <property><name>mapreduce.job.reduces</name><value>${few}</value></property>\n\
         <property><name>few</name><value>3</value></property>",
    );
    let second =
        site("<property name='dfs.replication' value='2'/><property name='few' value='5'/>");
    let files: [(&str, &[u8]); 2] = [("a.xml", first.as_bytes()), ("b.xml", second.as_bytes())];
    let (config, notes) = config("hadoop_files = ['a.xml', 'b.xml']", &files);
    assert_eq!((config.hdfs.replication, config.jobs[0].reduces), (1, 5));
    assert!(notes.iter().any(|n| n == "b.xml: 1 properties stay as final ones say"), "{notes:?}");
    assert!(notes.iter().any(|n| n.contains("not Hadoop's")), "{notes:?}");
    let said = refused("hadoop_files = ['a.xml']\nhadoop = { 'dfs.replication' = 2 }", &files);
    assert!(said.contains("is final: dfs.replication in a.xml, line 3"), "{said}");
}

#[test]
fn everything_wrong_is_listed_with_its_place() {
    let file = site(
        "<property name='mapreduce.reduce.shuffle.paralelcopies' value='7'/>\n\
         <property name='dfs.replication' value='two'/>\n\
         <property name='io.sort.mb' value='100'/>\n\
         <property name='mapreduce.task.io.sort.mb' value='200'/>\n\
         <property name='mapreduce.job.reduces' value='${env.REDUCES}'/>",
    );
    let said = refused("hadoop_files = ['m.xml']", &[("m.xml", file.as_bytes())]);
    for expected in [
        "mapreduce.reduce.shuffle.paralelcopies in m.xml, line 3 = 7: is not a property",
        "did you mean mapreduce.reduce.shuffle.parallelcopies?",
        "dfs.replication in m.xml, line 4 = two: must be a whole number",
        "mapreduce.task.io.sort.mb in m.xml, line 6: has another value as io.sort.mb in m.xml, line 5",
        "refers to ${env.REDUCES}, which is not given",
    ] {
        assert!(said.contains(expected), "{expected}\nis not in\n{said}");
    }
    assert_eq!(said.lines().count(), 4, "{said}");
}

#[test]
fn contradictions_are_refused() {
    for (lines, expected) in [
        (
            "shuffle = { parallel_copies = 6 }\nhadoop = { 'mapred.reduce.parallel.copies' = 7 }",
            "contradicts shuffle.parallel_copies of this workload",
        ),
        (
            "hadoop = { 'io.sort.mb' = 200, 'mapred.child.java.opts' = '-Xmx200m' }",
            "io.sort.mb = 200: does not fit into a heap of 200 MiB",
        ),
        ("hadoop = { 'dfs.replication' = 5 }", "replication"),
        (
            "hadoop = { 'dfs.replication' = 1, 'dfs.namenode.replication.min' = 2 }",
            "is less than dfs.namenode.replication.min",
        ),
        (
            "hadoop = { 'mapreduce.map.memory.mb' = 4096, \
             'yarn.nodemanager.resource.memory-mb' = 2048 }",
            "no container is so large",
        ),
        ("hadoop = { 'io.sort.factor' = 1 }", "must be at least 2"),
        ("hadoop = { 'mapred.reduce.parallel.copies' = 0 }", "must be 1 to 100000 (from"),
        ("hadoop = { 'dfs.replication' = [1] }", "is a list; write text"),
        ("hadoop_files = ['../x.xml']", "must be a path below the directory"),
        ("hadoop_files = ['x.xml']", "x.xml: "),
    ] {
        let said = refused(lines, &[]);
        assert!(said.contains(expected), "{expected}\nis not in\n{said}");
    }
    let agree =
        "shuffle = { parallel_copies = 7 }\nhadoop = { 'mapred.reduce.parallel.copies' = 7 }";
    assert_eq!(config(agree, &[]).0.shuffle.parallel_copies, 7);
}

#[test]
fn what_is_not_modelled_is_said() {
    let (_, notes) = config("hadoop = { 'mapred.compress.map.output' = true, 'my.own' = 1 }", &[]);
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].contains("mapred.compress.map.output = true is not modelled"), "{notes:?}");
}

#[test]
fn a_machine_s_profile_stands_behind_what_is_given() {
    let profile = b"[costs]\ntask_start = '2.5 s'\nmap_rate = '6 MB/s'\n[shuffle]\n\
        parallel_copies = 3\n[calibration]\nof = ['x.jhist']\n";
    let files: [(&str, &[u8]); 1] = [("m.toml", profile)];
    let lines = "machine = 'm.toml'\ncosts = { map_rate = '7 MB/s' }\n\
                 hadoop = { 'mapred.reduce.parallel.copies' = 4 }";
    let (config, _) = config(lines, &files);
    assert_eq!(config.costs.task_start, Span::from_ms(2500));
    assert_eq!(config.costs.map_rate, Rate::megabytes(7));
    assert_eq!(config.shuffle.parallel_copies, 4);
    let wrong = b"top = 1\n[costs]\nmap_rat = '6 MB/s'\nreduce_rate = 'fast'\n[cots]\nx = 1\n";
    let said = refused("machine = 'm.toml'", &[("m.toml", wrong)]);
    for expected in [
        "has top outside of its tables",
        "costs.map_rat: is not a known key (from m.toml) (did you mean map_rate?)",
        "costs.reduce_rate: ",
        "cots: is not a known key (from m.toml) (did you mean costs?)",
    ] {
        assert!(said.contains(expected), "{expected}\nis not in\n{said}");
    }
}

/// Files tried; `EASTWEST_FUZZ_INPUTS` sets another number.
const INPUTS: u64 = 20_000;

#[test]
fn tampered_files_are_refused_or_read() {
    let inputs = std::env::var("EASTWEST_FUZZ_INPUTS").ok().and_then(|n| n.parse().ok());
    let seeds: [Vec<u8>; 3] = [
        site(
            "<!-- c --><property><name>mapred.reduce.tasks</name><value>${n}</value></property>\n\
             <property name='n' value='&#51;'/><property><name>dfs.block.size</name>\
             <value><![CDATA[64m]]></value><final>true</final></property>",
        )
        .into_bytes(),
        b"<!DOCTYPE a [<!ENTITY b \"c\">]><configuration>&b;</configuration>".to_vec(),
        JOB[..2000].to_vec(),
    ];
    let pieces: [&[u8]; 8] =
        [b"<", b">", b"</property>", b"<property>", b"&#0;", b"${n}", b"]]>", b"\xff\x00"];
    let mut stream = Stream::new(1, "fuzz/hadoop");
    let mut below = |n: usize| stream.below(n.max(1) as u64) as usize;
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..inputs.unwrap_or(INPUTS) {
        let mut bytes = seeds[below(seeds.len())].clone();
        for _ in 0..1 + below(4) {
            let at = below(bytes.len());
            match below(4) {
                0 => bytes.truncate(at),
                1 => {
                    let piece = pieces[below(pieces.len())];
                    bytes.splice(at..at, piece.iter().copied());
                }
                2 if !bytes.is_empty() => bytes[at] = below(256) as u8,
                _ => {
                    let end = (at + below(60)).min(bytes.len());
                    bytes.drain(at..end);
                }
            }
        }
        match scenario("hadoop_files = ['x.xml']", &[("x.xml", &bytes)]) {
            Ok(_) => accepted += 1,
            Err(problems) => {
                refused += 1;
                let shown: usize = problems.iter().map(|p| p.to_string().len()).sum();
                assert!(shown > 0 && shown < 1000 * problems.len(), "{problems:#?}");
            }
        }
    }
    println!("{accepted} accepted, {refused} refused");
    assert!(accepted > 0 && refused > 0);
}
