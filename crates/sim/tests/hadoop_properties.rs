//! Tests of clusters described by Hadoop's own properties: their meaning, refused properties, and
//! damaged files.
//!
//! `data/terasort_job_conf.xml.gz` is the configuration of a TeraSort job on Hadoop 3.4.2, taken
//! from its job history. It has 1,500 properties.

use eastwest_engine::random::Stream;
use eastwest_settings::problem::Problem;
use eastwest_sim::scenario::{Context, Scenario, WorkloadKind, read};
use eastwest_types::{Rate, Span};
use eastwest_workload::mapreduce::{Framework, MapReduceConfig, ReplaceDatanode, SchedulerKind};

const JOB: &[u8] = include_bytes!("data/terasort_job_conf.xml.gz");

fn context(files: &[(&str, &[u8])]) -> Context {
    let files = files.iter().map(|(name, bytes)| ((*name).to_owned(), (*bytes).into()));
    Context { files: files.collect(), ..Context::default() }
}

/// Reads a scenario with a cluster of four workers; `lines` are further lines of its workload,
/// `files` are (name, content).
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

/// Returns the problems of the scenario with these lines and files, one per line; empty if it is
/// accepted.
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
    // a node has memory for two map tasks, or for one reduce task beside an application master
    assert_eq!((config.yarn.node_memory, config.yarn.min_allocation), (2560 << 20, 256 << 20));
    assert_eq!((config.yarn.map_memory, config.yarn.reduce_memory), (1 << 30, 2 << 30));
    assert_eq!((config.control.slowstart, config.shuffle.parallel_copies), (1.0, 5));
    assert!(
        notes.iter().any(|n| n.ends_with("concern parts of Hadoop that are not modelled")),
        "{notes:?}"
    );
}

#[test]
fn slots_that_ignore_the_memory_of_containers_are_noted() {
    let files: [(&str, &[u8]); 1] = [("job_conf.xml.gz", JOB)];
    let said = |lines: &str| config(lines, &files).1.join("\n");
    let memory = site(
        "<property name='yarn.nodemanager.resource.memory-mb' value='2560'/>
         <property name='mapreduce.map.memory.mb' value='1024'/>",
    );
    let files_of_slots: [(&str, &[u8]); 1] = [("a.xml", memory.as_bytes())];
    let slots = config("framework = 'mr1'\nhadoop_files = ['a.xml']", &files_of_slots).1.join("\n");
    assert!(
        slots.contains("yarn.nodemanager.resource.memory-mb in a.xml, line ")
            && slots.contains("(and 1 more) is ignored: with framework = \"mr1\""),
        "{slots}"
    );
    let one = said("hadoop = { 'mapreduce.reduce.memory.mb' = 1024 }");
    assert!(one.contains("mapreduce.reduce.memory.mb"), "{one}");
    assert!(one.contains("is ignored: with framework = \"mr1\""), "{one}");
    let containers = said("hadoop_files = ['job_conf.xml.gz']");
    assert!(!containers.contains("is ignored: "), "{containers}");
    let both = said("hadoop_files = ['job_conf.xml.gz']\nreduce_slots = 1");
    assert!(both.contains("reduce_slots is ignored: with framework = \"yarn\""), "{both}");
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
    assert!(
        notes.iter().any(|n| n
            == "b.xml: 1 properties are not changed, because an earlier file declares them final"),
        "{notes:?}"
    );
    assert!(notes.iter().any(|n| n.contains("not properties of Hadoop")), "{notes:?}");
    let said = refused("hadoop_files = ['a.xml']\nhadoop = { 'dfs.replication' = 2 }", &files);
    assert!(said.contains("is final: dfs.replication in a.xml, line 3"), "{said}");
}

#[test]
fn files_with_one_base_name_are_different_files() {
    let first = site("<property name='dfs.replication' value='1'/>");
    let second = site("<property name='dfs.replication' value='2'/>");
    let files: [(&str, &[u8]); 2] = [("a/x.xml", first.as_bytes()), ("b/x.xml", second.as_bytes())];
    let (config, _) = config("hadoop_files = ['a/x.xml', 'b/x.xml']", &files);
    assert_eq!(config.hdfs.replication, 2);
    let wrong = site("<property name='dfs.replication' value='two'/>");
    let files = [("a/x.xml", first.as_bytes()), ("b/x.xml", wrong.as_bytes())];
    let said = refused("hadoop_files = ['a/x.xml', 'b/x.xml']", &files);
    assert!(said.contains("dfs.replication in b/x.xml, line 3 = two"), "{said}");
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
        "mapreduce.task.io.sort.mb in m.xml, line 6: has another value under its other name io.sort.mb in m.xml, line 5",
        "refers to ${env.REDUCES}, but no file sets this property",
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
            "is larger than the largest container",
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
fn shipped_sets_are_those_of_the_literature() {
    let data_dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/eastwest/data").into();
    let with = |set: &str, lines: &str| {
        let text = format!(
            "schema = 1\n[fabric]\nkind = 'star'\nhosts = 21\nhost_rate = '1 Gbit/s'\n\
             [[workload]]\nname = 'h'\nkind = 'mapreduce'\nhadoop_files = ['{set}']\n{lines}\
             [[workload.job]]\nkind = 'sort'\ninput = '20 GB'\n"
        );
        let context =
            Context { data_dir: std::path::PathBuf::clone(&data_dir), ..Context::default() };
        let scenario = read(&text, &context, &[]).unwrap_or_else(|p| panic!("{p:#?}"));
        let WorkloadKind::MapReduce(config) = &scenario.workloads[0].kind else { panic!() };
        let of = |c: &MapReduceConfig| {
            let (hdfs, sort) = (&c.hdfs, &c.sort);
            let files = (hdfs.replication, hdfs.block_bytes, c.jobs[0].maps);
            let heap = c.shuffle.heap_bytes >> 20;
            (files, (sort.buffer_bytes >> 20, sort.factor, c.shuffle.parallel_copies, heap))
        };
        of(config)
    };
    assert_eq!(with("default-0.20", ""), ((3, 64 << 20, 299), (100, 10, 5, 200)));
    assert_eq!(with("tuned-0.20", ""), ((1, 512 << 20, 38), (200, 100, 20, 512)));
    let own = with("tuned-0.20", "hadoop = { 'io.sort.mb' = 150 }\n");
    assert_eq!(own.1.0, 150, "what stands in the scenario comes last");
}

#[test]
fn lost_datanodes_and_failed_attempts_have_hadoop_s_names() {
    let (config, notes) = config(
        "hadoop = { 'heartbeat.recheck.interval' = 15000, 'dfs.heartbeat.interval' = 1, \
         'dfs.max-repl-streams' = 7, 'dfs.replication.interval' = '5s', \
         'dfs.client.block.write.replace-datanode-on-failure.policy' = 'NEVER', \
         'mapred.map.max.attempts' = 9, 'mapreduce.reduce.shuffle.notify.readerror' = false, \
         'mapred.tasktracker.expiry.interval' = 60000 }",
        &[],
    );
    let recovery = &config.hdfs.recovery;
    assert_eq!(recovery.dead_after(), Span::from_secs(40));
    assert_eq!((recovery.streams, recovery.interval), (7, Span::from_secs(5)));
    assert_eq!(recovery.replace, ReplaceDatanode::Never);
    assert_eq!((config.failures.map_attempts, config.failures.reduce_attempts), (9, 4));
    assert_eq!(config.failures.expiry, Span::from_secs(60));
    assert!(!config.shuffle.notify_read_error && notes.is_empty(), "{notes:?}");
}

#[test]
fn a_combiner_leaves_a_part() {
    let job = |lines: &str| {
        let text = format!(
            "schema = 1\n[fabric]\nkind = 'star'\nhosts = 5\nhost_rate = '1 Gbit/s'\n\
             [[workload]]\nname = 'h'\nkind = 'mapreduce'\n[[workload.job]]\nkind = 'custom'\n\
             input = '1 GB'\nshuffle_ratio = 0.2\noutput_ratio = 0.1\n{lines}"
        );
        read(&text, &Context::default(), &[]).map(|scenario| {
            let WorkloadKind::MapReduce(config) = &scenario.workloads[0].kind else { panic!() };
            config.jobs[0].uncombined
        })
    };
    assert_eq!(job("").unwrap(), None);
    assert_eq!(job("combine_ratio = 0.25\n").unwrap(), Some(800_000_000));
    for wrong in ["combine_ratio = 0.0\n", "combine_ratio = 1.5\n"] {
        assert!(job(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn more_replicas_than_workers_are_refused() {
    for (lines, expected) in [
        ("hdfs = { replication = 5 }", "5 replicas need 5 workers, but there are 4"),
        ("hdfs = { output_replication = 9 }", "9 replicas need 9 workers, but there are 4"),
        ("hadoop = { 'dfs.replication' = 5 }", "5 replicas need 5 workers, but there are 4"),
    ] {
        let said = refused(lines, &[]);
        assert!(said.contains(expected), "{expected}\nis not in\n{said}");
    }
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
        "has the key top outside of its tables",
        "costs.map_rat: is not a known key (from m.toml) (did you mean map_rate?)",
        "costs.reduce_rate: ",
        "cots: is not a known key (from m.toml) (did you mean costs?)",
    ] {
        assert!(said.contains(expected), "{expected}\nis not in\n{said}");
    }
}

/// Number of damaged files to test; the environment variable `EASTWEST_FUZZ_INPUTS` sets another
/// number.
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
