//! Tests of reading scenario files: shipped scenarios read back as themselves, wrong scenarios list
//! all their problems, and the reference page is up to date.

use eastwest_settings::problem::Problem;
use eastwest_sim::scenario::{Context, Scenario, WorkloadKind, read, reference_page, schema};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn context() -> Context {
    Context {
        base_dir: root().join("scenarios"),
        data_dir: root().join("python/eastwest/data"),
        ..Context::default()
    }
}

/// A scenario with a star of four hosts, to which tests add workloads.
const STAR: &str = "schema = 1\n[fabric]\nkind = 'star'\nhosts = 4\nhost_rate = '1 Gbit/s'\n";

fn problems_with(text: &str, context: &Context, overrides: &[(&str, &str)]) -> Vec<Problem> {
    let owned: Vec<(String, String)> =
        overrides.iter().map(|(p, v)| ((*p).to_owned(), (*v).to_owned())).collect();
    read(text, context, &owned).err().unwrap_or_default()
}

/// Returns the problems of a scenario text, one per line.
fn listed(text: &str) -> String {
    let problems = problems_with(text, &context(), &[]);
    let lines = problems.iter().map(Problem::to_string);
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the problem of a scenario text; fails unless there is exactly one.
#[track_caller]
fn only(text: &str) -> String {
    let listed = listed(text);
    assert_eq!(listed.lines().count(), 1, "{listed}");
    listed
}

fn with_files(files: &[(&str, &str)]) -> Context {
    let entry = |(name, text): &(&str, &str)| ((*name).to_owned(), text.as_bytes().into());
    Context { files: files.iter().map(entry).collect(), ..context() }
}

fn shipped() -> Vec<(String, String)> {
    let dir = std::fs::read_dir(root().join("scenarios")).expect("the shipped scenarios");
    let mut paths: Vec<PathBuf> = dir.map(|e| e.expect("an entry").path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "toml"));
    paths.sort();
    let text = |p: &PathBuf| std::fs::read_to_string(p).expect("a scenario");
    paths.iter().map(|p| (p.display().to_string(), text(p))).collect()
}

/// Reads the text with all defaults of a scenario, with its input files held in memory.
fn reread(scenario: &Scenario) -> Scenario {
    let files = scenario.attached.iter().map(|a| (a.name.clone(), a.bytes.clone())).collect();
    let context = Context { files, ..Context::default() };
    read(scenario.resolved(), &context, &[])
        .unwrap_or_else(|p| panic!("{}\n{p:#?}", scenario.resolved()))
}

#[test]
fn a_profile_without_sack_asks_for_nothing_that_needs_it() {
    let file = |tcp: &str| {
        format!(
            "{STAR}[tcp]\nprofile = 'linux'\nsack = false\n{tcp}[[workload]]\nname = 'w'\n\
             kind = 'incast'\nreceiver = 'h0'\nblock_bytes = '1 MB'\n"
        )
    };
    let scenario = read(&file(""), &context(), &[]).unwrap_or_else(|p| panic!("{p:#?}"));
    assert!(!scenario.tcp.recovery.probes && !scenario.tcp.recovery.late_sacks);
    // a setting that the scenario itself gives is refused, in contrast to a preset
    assert!(only(&file("dsack = true\n")).contains("tcp.dsack"));
}

#[test]
fn shipped_scenarios_are_right_and_read_back_as_themselves() {
    let shipped = shipped();
    assert!(shipped.len() >= 9, "{}", shipped.len());
    for (path, text) in shipped {
        let scenario = read(&text, &context(), &[]).unwrap_or_else(|p| panic!("{path}: {p:#?}"));
        assert_eq!(reread(&scenario), scenario, "{path}");
    }
}

/// Collects the paths of all values below a TOML table; members of arrays have the name `*`. The
/// table of goals counts as one value, because its keys are names of measures.
fn paths(value: &toml::Value, path: &str, found: &mut Vec<String>) {
    match value {
        toml::Value::Table(table) if path != "goal" => {
            for (key, value) in table {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                paths(value, &path, found);
            }
        }
        toml::Value::Array(items) if items.iter().any(toml::Value::is_table) => {
            items.iter().for_each(|item| paths(item, &format!("{path}.*"), found));
        }
        _ => found.push(path.to_owned()),
    }
}

#[test]
fn every_key_that_is_read_is_in_the_schema_with_its_default() {
    let schema = schema();
    let keys = schema["keys"].as_array().expect("keys");
    for (file, text) in shipped() {
        let scenario = read(&text, &context(), &[]).expect("a shipped scenario");
        let resolved: toml::Table = scenario.resolved().parse().expect("TOML");
        let (mut all, mut given) = (Vec::new(), Vec::new());
        paths(&toml::Value::Table(resolved), "", &mut all);
        paths(&toml::Value::Table(text.parse().expect("TOML")), "", &mut given);
        assert!(all.len() > given.len(), "{file}");
        for path in all {
            let rows: Vec<_> = keys.iter().filter(|k| k["path"] == path.as_str()).collect();
            assert!(!rows.is_empty(), "{path} of {file} is not in the schema");
            let defaults = rows.iter().any(|k| !k["default"].is_null() || !k["absent"].is_null());
            // traffic classes exist as soon as they are named
            let stands = given.contains(&path) || path == "class.*.name";
            assert!(defaults || stands, "{path} of {file} has no default");
        }
    }
}

#[test]
fn every_mistake_of_a_file_is_listed_at_once() {
    let text = include_str!("data/many_mistakes.toml");
    let found = listed(text);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/many_mistakes.txt");
    if std::env::var_os("EASTWEST_WRITE_DOCS").is_some() {
        std::fs::write(&path, format!("{found}\n")).expect("the expected problems");
    }
    let expected = std::fs::read_to_string(&path).expect("the expected problems");
    assert_eq!(found, expected.trim_end());
    assert!(found.lines().count() >= 15);
}

#[test]
fn unknown_names_get_the_nearest_one_or_the_place_they_belong() {
    let problem = only(&format!(
        "{STAR}mtuu = \
                         1500\n[[workload]]\nname='a'\nkind='stride'\nstride=1\ncount=1\nbytes='1 B'"
    ));
    assert!(
        problem.ends_with("fabric.mtuu = 1500: is not a known key (did you mean mtu?)"),
        "{problem}"
    );
    let found = listed(&format!(
        "{STAR}min_rto = '1 ms'\nleaves = \
                         4\n[[workload]]\nname='a'\nkind='strid'"
    ));
    let lines: Vec<&str> = found.lines().collect();
    assert!(found.contains("it exists as tcp.min_rto"), "{found}");
    assert!(found.contains("belongs to kind leaf-spine, but kind is star here"), "{found}");
    assert!(found.contains("(did you mean stride?)"), "{found}");
    assert_eq!(lines.len(), 3, "nothing else of a workload of unknown kind is judged: {found}");
}

#[test]
fn syntax_errors_have_line_and_column() {
    let found = listed("schema = 1\nname = \n[fabric\nhosts = 3\n");
    assert!(found.contains("line 2: this is not TOML, column 8"), "{found}");
    assert!(found.contains("line 3: "), "{found}");
    assert_eq!(found.lines().count(), 2, "{found}");
}

#[test]
fn a_newer_format_is_the_only_problem_of_its_file() {
    let newer = listed("schema = 2\nfabrik = 'mesh'\nseed = 'x'\n");
    assert!(
        newer.starts_with("line 1: schema = 2: is newer than the format that this Eastwest"),
        "{newer}"
    );
    assert_eq!(newer.lines().count(), 1, "{newer}");
    for (written, problem) in [
        ("schema = 0", "must be 1"),
        ("schema = -1", "must not be negative"),
        ("schema = '2'", "is text"),
        ("schema = 9223372036854775807", "is newer than the format"),
        ("", "schema: is required: Version of the scenario format: 1."),
    ] {
        let found = listed(&format!("{written}\nfabrik = 'mesh'\n"));
        assert!(found.contains(problem), "{written}: {found}");
    }
}

#[test]
fn overrides_are_checked_like_anything_else() {
    let text =
        format!("{STAR}[[workload]]\nname='bulk'\nkind='stride'\nstride=1\ncount=1\nbytes='1 B'\n");
    let set = |path: &str, value: &str| {
        let problems = problems_with(&text, &context(), &[(path, value)]);
        problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(set("workload.bulk.bytes", "2 MB"), "");
    assert_eq!(set("fabric.queue.limit", "64 KB"), "");
    assert_eq!(set("tcp.sack", "false"), "");
    assert!(set("tcp.minrto", "1 ms").ends_with("(did you mean min_rto?)"));
    assert!(set("workload.0.bytes", "2 s").contains("has an unknown unit for a size"));
    assert!(set("workload.bluk.bytes", "2 MB").contains("did you mean workload.bulk?"));
    assert!(set("fabrik.mtu", "1500").contains("did you mean fabric?"));
    assert!(set("fabric.mtu", "99999").contains("must be 68 to 9216"));
    let elsewhere = set("workload.bulk.stride", "0");
    assert!(elsewhere.starts_with("workload.0.stride = 0: "), "no line of the file: {elsewhere}");
}

#[test]
fn impossible_demands_are_refused_with_the_reason() {
    let on_star = |workload: &str| only(&format!("{STAR}[[workload]]\nname='w'\n{workload}"));
    let cases = [
        ("kind='stride'\nstride=2\ncount=2\nbytes='1 MB'", "leads back to the sending host"),
        (
            "kind='incast'\nreceiver='h0'\nsenders=['h0','h1']\nblock_bytes='1 KB'",
            "cannot send to itself",
        ),
        ("kind='incast'\nreceiver='h4'\nblock_bytes='1 KB'", "is not a host; hosts are h0 to h3"),
        (
            "kind='incast'\nreceiver='h0'\nsenders='h1..h9'\nblock_bytes='1 KB'",
            "names h9, which is not a host",
        ),
        ("kind='poisson'\nload=1.5\nsizes='web-search'\nflows=9", "must be 0.000001 to 1"),
        ("kind='poisson'\nload=0.5\nsizes='web-search'", "is required, unless"),
        (
            "kind='datagrams'\nsources='h0'\ndestination='h1'\nbytes=1501\nmean_gap='1 \
          us'\npackets=9",
            "must be at most the MTU",
        ),
        (
            "kind='mapreduce'\n[[workload.job]]\nkind='terasort'\ninput='1 \
          GB'\noutput_replication=9",
            "9 replicas need 9 workers, but there are 3",
        ),
        (
            "kind='mapreduce'\nhdfs={replication=4}\n[[workload.job]]\nkind='terasort'\ninput='1 GB'",
            "workload.0.hdfs.replication",
        ),
        (
            "kind='mapreduce'\nmaster='h1'\nworkers=['h1']\n[[workload.job]]\nkind='search'\ninput='1 GB'\noutput_replication=1",
            "is the master",
        ),
        ("kind='mapreduce'", "a MapReduce workload needs jobs"),
        ("kind='mapreduce'\ntrace='../x.tsv'", "'.' or '..'"),
        ("kind='mapreduce'\ntrace='none.tsv'", "does not exist"),
        (
            "kind='stride'\nstride=1\ncount=1\nbytes='1 MB'\nbackground=true",
            "every workload runs in the background",
        ),
    ];
    for (workload, reason) in cases {
        let found = listed(&format!("{STAR}[[workload]]\nname='w'\n{workload}"));
        assert!(found.contains(reason), "{workload}\n{found}");
    }
    assert!(
        on_star("kind='stride'\nstride=4\ncount=1\nbytes='1 MB'").contains("workload.0.stride = 4")
    );
}

#[test]
fn impossible_fabrics_are_refused_with_the_reason() {
    let cases = [
        ("kind='star'\nhosts=4\nhost_rate='0 Gbit/s'", "must be 1 kbit/s to 10 Tbit/s"),
        (
            "kind='star'\nhosts=4\nhost_rate='1 Gbit/s'\nqueue={limit='1499 B'}",
            "no room for a single packet",
        ),
        (
            "kind='star'\nhosts=4\nhost_rate='1 Gbit/s'\nqueue={limit='0 packets'}",
            "no room for a single packet",
        ),
        ("kind='star'\nhosts=1000000000\nhost_rate='1 Gbit/s'", "must be 2 to 1000000"),
        ("kind='fat-tree'\nk=3\nhost_rate='1 Gbit/s'\nuplink_rate='1 Gbit/s'", "must be even"),
        (
            "kind='fat-tree'\nk=256\nhosts_per_edge=100000\nhost_rate='1 \
          Gbit/s'\nuplink_rate='1 Gbit/s'",
            "at most 2000000 are allowed",
        ),
        (
            "leaves=1000000\nhosts_per_leaf=1000000\nspines=1\nhost_rate='1 \
          Gbit/s'\nuplink_rate='1 Gbit/s'",
            "at most 2000000 are allowed",
        ),
        (
            "kind='star'\nhosts=4\nhost_rate='1 \
          Gbit/s'\nrouting='explicit'\nroute=[{from='h0',to='h9',via=['switch0']}]",
            "is not a host",
        ),
        (
            "kind='star'\nhosts=4\nhost_rate='1 \
          Gbit/s'\nroute=[{from='h0',to='h1',via=['switch0']}]",
            "have an effect only with",
        ),
        (
            "leaves=2\nhosts_per_leaf=2\nspines=2\nhost_rate='1 Gbit/s'\nuplink_rate='1 \
          Gbit/s'\nrouting='explicit'\nroute=[{from='h0',to='h3',via=['leaf0','leaf1']}]",
            "no cable between leaf0 and leaf1",
        ),
        (
            "leaves=2\nhosts_per_leaf=2\nspines=2\nhost_rate='1 Gbit/s'\nuplink_rate='1 \
          Gbit/s'\nrouting='explicit'\nroute=[{from='h0',to='h3',\
          via=['leaf0','spine0','leaf1','spine1','leaf0','spine1','leaf1']}]",
            "must not visit a node twice: leaf0 -> spine0 -> leaf1 -> spine1 -> leaf0",
        ),
        (
            "kind='star'\nhosts=4\nhost_rate='1 Gbit/s'\nflowlet_gap='1 ms'",
            "only with routing = \"flowlet\"",
        ),
        (
            "kind='two-groups'\nhost_rate='1 Gbit/s'\nuplink_rate='1 Gbit/s'\n\
          routing='modulo'\nweight=[{from='left',to='near0',weight=2}]",
            "weights have no effect with this fabric.routing",
        ),
        (
            "kind='two-groups'\nhost_rate='1 Gbit/s'\nuplink_rate='1 Gbit/s'\n\
          weight=[{from='left',to='far0',weight=2}]",
            "no cable between left and far0",
        ),
    ];
    refuse(&cases);
}

#[test]
fn impossible_shapes_are_refused_with_the_reason() {
    let cases = [
        (
            "kind='xgft'\nchildren=[4,4]\nparents=[2,2]\nhost_rate='1 Gbit/s'\n\
          uplink_rate='1 Gbit/s'",
            "must begin with 1",
        ),
        (
            "kind='xgft'\nchildren=[4,4]\nparents=[1]\nhost_rate='1 Gbit/s'\n\
          uplink_rate='1 Gbit/s'",
            "has 1 levels, but `children` has 2",
        ),
        (
            "kind='k-ary-n-tree'\nk=1000\nlevels=16\nhost_rate='1 Gbit/s'\n\
          uplink_rate='1 Gbit/s'",
            "at most 200000 are allowed",
        ),
        (
            "kind='torus'\nsizes=[4,1]\nhost_rate='1 Gbit/s'\nuplink_rate='1 Gbit/s'",
            "must contain only numbers from 2 to 100000",
        ),
        (
            "kind='dcell'\nn=1000\nlevels=4\nhost_rate='1 Gbit/s'\nuplink_rate='1 Gbit/s'",
            "at most 200000 are allowed",
        ),
    ];
    refuse(&cases);
}

/// Checks that each scenario with these lines in `[fabric]` is refused with the message given
/// beside it.
fn refuse(cases: &[(&str, &str)]) {
    let work = "[[workload]]\nname='w'\nkind='stride'\nstride=1\ncount=1\nbytes='1 B'\n";
    for (fabric, reason) in cases {
        let found = listed(&format!("schema = 1\n[fabric]\n{fabric}\n{work}"));
        assert!(found.contains(reason), "{fabric}\n{found}");
    }
}

#[test]
fn sleeping_links_need_what_can_sleep() {
    let energy = |text: &str| {
        format!(
            "{}\n[[workload]]\nname='w'\nkind='stride'\nstride=1\ncount=1\nbytes='1 KB'\n",
            STAR.replace("hosts = 4", &format!("hosts = 4\nenergy = {{ {text} }}"))
        )
    };
    for (text, expected) in [
        ("kind = 'coalescing', trigger = '0 packets'", "no room for a single packet"),
        ("kind = 'standard', sleep_power = 1.5", "must be 0 to 1"),
        ("kind = 'sleepy'", "must be one of always-on, ideal, standard, stall-timer, coalescing"),
        ("kind = 'standard', phy = '10GBASE-X'", "did you mean 10GBASE-T?"),
        ("kind = 'standard', hold = '1 ms'", "belongs to kind coalescing"),
    ] {
        let found = listed(&energy(text));
        assert!(found.contains(expected), "{text}: {found}");
    }
    let slow = energy("kind = 'standard'").replace("1 Gbit/s", "50 Mbit/s");
    assert!(
        only(&slow).contains("no energy-efficient transceivers for 50 Mbit/s (auto): set phy"),
        "{}",
        only(&slow)
    );
    let own = "kind = 'standard', wake_time = '1 us', sleep_time = '2 us'";
    read(&energy(own).replace("1 Gbit/s", "50 Mbit/s"), &context(), &[]).expect("times are given");

    let long = energy("kind = 'coalescing', hold = '50 ms', trigger = '1000 packets'");
    let scenario = read(&long, &context(), &[]).expect("a note, no error");
    let said = "may delay a packet and its ACK by 200 ms in total on 2 links in each direction. \
                This is not less than tcp.min_rto (200 ms)";
    assert!(scenario.notes.iter().any(|n| n.contains(said)), "{:?}", scenario.notes);
    assert_eq!(reread(&scenario), scenario);
}

#[test]
fn ports_to_log_are_checked_like_others() {
    let file = |energy: &str, measure: &str| {
        format!(
            "{STAR}{energy}\n[measure]\n{measure}\n[[workload]]\nname='w'\nkind='stride'\nstride=1\n\
             count=1\nbytes='1 KB'\n"
        )
    };
    let standard = "energy = { kind = 'standard' }";
    let found = only(&file(standard, "lpi = ['switch0->h9']"));
    assert!(found.contains("measure.lpi") && found.contains("h9"), "{found}");
    assert!(only(&file(standard, "lpi = ['swich0']")).contains("did you mean switch0?"));
    assert!(only(&file(standard, "lpi_rows = 0")).contains("must be 1 to"));
    assert!(only(&file(standard, "lpi_row = 3")).contains("did you mean lpi_rows?"));
    let window = "lpi_from = '2 ms'\nlpi_until = '1 ms'";
    assert!(only(&file(standard, window)).contains("must be after lpi_from, which is 2 ms"));
    let asked = |energy: &str| {
        let text = file(energy, "lpi = ['h0', 'switch0->h1']\nlpi_rows = 10");
        let scenario = read(&text, &context(), &[]).expect("a scenario");
        assert_eq!(reread(&scenario), scenario);
        scenario.notes.iter().any(|note| note.contains("no link falls asleep"))
    };
    assert!(asked("") && asked("energy = { kind = 'ideal' }") && !asked(standard));
}

#[test]
fn pauses_and_flows_to_note_are_checked_like_others() {
    let file = |fabric: &str, measure: &str| {
        format!(
            "{STAR}{fabric}\n[measure]\n{measure}\n[[workload]]\nname='w'\nkind='stride'\nstride=1\n\
             count=1\nbytes='1 KB'\n"
        )
    };
    for (measure, said) in [
        ("pauses = ['h0->swich0']", "did you mean h0->switch0?"),
        ("pauses = 'h9'", "names h9, which is not a node"),
        ("pauses = ['h0->h1']", "there is no cable between these two"),
        ("pauses_rows = 0", "must be 1 to"),
        ("pauses_row = 1", "did you mean pauses_rows?"),
        ("flow_samples = 'switch0'", "names switch0, which is not a host"),
        ("flow_samples = 3", "write names in quotes"),
        ("flow_samples_interval = '1 ns'", "must be 1 us to 1 h"),
        ("flow_samples_interval = 'often'", "measure.flow_samples_interval"),
        ("flow_samples_rows = 1000000000", "must be 1 to 100000000"),
        ("flow_sample = '*'", "did you mean flow_samples?"),
    ] {
        let found = only(&file("", measure));
        assert!(found.contains(said), "{measure}: {found}");
    }
    let asked = |fabric: &str| {
        let text = file(fabric, "pauses = ['h0', 'switch0->h1']\nflow_samples = ['h0', 'h1->h0']");
        let scenario = read(&text, &context(), &[]).expect("a scenario");
        assert_eq!(reread(&scenario), scenario);
        scenario.notes.iter().any(|note| note.contains("without [fabric.pfc] no port is paused"))
    };
    assert!(asked("") && !asked("[fabric.pfc]"));
}

#[test]
fn watts_of_switches_are_bounded_and_off_by_default() {
    let file = |power: &str| {
        format!(
            "{STAR}{power}\n[[workload]]\nname='w'\nkind='stride'\nstride=1\ncount=1\nbytes='1 KB'\n"
        )
    };
    let power = |text: &str| file(&format!("switch_power = {{ {text} }}"));
    for (text, expected) in [
        ("base_w = -1", "must be 0 to 100000"),
        ("port_w = 1e9", "must be 0 to 100000"),
        ("lane_w = 'much'", "is text"),
        ("lanes_w = 1", "did you mean lane_w?"),
        ("lane_rate = '25 Gbit/s'", "only together with lane_w"),
        ("lane_w = 1, lane_rate = '1 kbit/s'", "must be 1 Mbit/s to 1 Tbit/s"),
    ] {
        let found = only(&power(text));
        assert!(found.contains(expected), "{text}: {found}");
    }
    assert!(only(&file("switch_power = 3")).contains("must be a table"));
    let plain = read(&file(""), &context(), &[]).expect("a scenario");
    assert_eq!((plain.switch_power.base_w, plain.switch_power.lane_w), (0.0, 0.0));
    let given = power("base_w = 150, port_w = 2.5, lane_w = 1, lane_rate = '50 Gbit/s'");
    let scenario = read(&given, &context(), &[]).expect("a scenario");
    assert_eq!(scenario.switch_power.port_w, 2.5);
    assert_eq!(reread(&scenario), scenario);
}

#[test]
fn transport_settings_must_fit_together() {
    let work = "[[workload]]\nname='w'\nkind='stride'\nstride=1\ncount=1\nbytes='1 B'\n";
    let tcp = |lines: &str| only(&format!("{STAR}[tcp]\n{lines}\n{work}"));
    assert!(tcp("min_rto='130 s'").contains("must be at most max_rto"));
    assert!(tcp("segment=1460").contains("leaves 1448 B"));
    assert!(tcp("max_window='1 KB'").contains("must hold at least one segment"));
    assert_eq!(listed(&format!("{STAR}[tcp]\nsegment=1460\ntimestamps=false\n{work}")), "");
}

const MESH: &str = "hosts = ['a', 'b']\nswitches = ['s', 't']\n\
    [[cable]]\na = 'a'\nb = 's'\nrate = '1 Gbit/s'\n\
    [[cable]]\na = 't'\nb = 'b'\nrate = '1 Gbit/s'\n";

#[test]
fn ports_and_hosts_to_look_at_must_be_there() {
    let leaf_spine = "schema = 1\nduration = '1 s'\n[fabric]\nkind = 'leaf-spine'\nleaves = 4\n\
        hosts_per_leaf = 5\nspines = 2\nhost_rate = '1 Gbit/s'\nuplink_rate = '10 Gbit/s'\n";
    let leaf_spine =
        &format!("{leaf_spine}[[workload]]\nname = 'all'\nkind = 'all-to-all'\nbytes = '9 KB'\n");
    let said = |line: &str| only(&format!("{leaf_spine}[measure]\n{line}\n"));
    for (line, expected) in [
        (
            "capture = ['leaf0->h9']",
            "there is no cable between these two nodes (did you mean leaf1->h9?)",
        ),
        (
            "capture = ['h9->leaf0']",
            "there is no cable between these two nodes (did you mean h9->leaf1?)",
        ),
        ("capture = 'leaf0->h99'", "names h99, which is not a node (did you mean leaf0->h19?)"),
        ("capture = ['leef0->h3']", "names leef0, which is not a node (did you mean leaf0->h3?)"),
        ("capture = ['spine0->spine1']", "there is no cable between these two"),
        ("capture = ['leaf0-h3']", "write a port as \"leaf0->h3\""),
        ("capture = [3]", "is a whole number; write names in quotes"),
        ("capture_packets = 0", "must be 1 to"),
        ("capture_from = '2 s'\ncapture_until = '1 s'", "must be after capture_from, which is 2"),
        ("tcp_trace = ['h0->h33']", "not a host; hosts are h0 to h19 (did you mean h0->h19?)"),
        ("tcp_trace = ['leaf0']", "names leaf0, which is not a host; hosts are h0 to h19"),
        ("tcp_trace = 'hh3'", "not a host; hosts are h0 to h19 (did you mean h3?)"),
        ("tcp_traces = ['*']", "is not a known key (did you mean tcp_trace?)"),
    ] {
        let said = said(line);
        assert!(said.contains(expected), "{line}: {said}");
        assert!(said.contains("measure.") && said.starts_with("line "), "{line}: {said}");
    }
    let right = "[measure]\ncapture = ['leaf0->h3', 'h3 -> leaf0', 'spine1->leaf3']\n\
        tcp_trace = ['h0', 'h1->h2']\ncapture_until = '1 s'\n";
    let scenario = read(&format!("{leaf_spine}{right}"), &context(), &[]).expect("it is right");
    assert_eq!(reread(&scenario), scenario);
    assert_eq!(scenario.measure.capture.ports, [(3, 20), (20, 3), (25, 23)].into());
}

#[test]
fn graphs_come_from_a_file_and_are_checked() {
    let text = "schema = 1\n[fabric]\nkind = 'graph'\nfile = 'mesh.toml'\n\
        [[workload]]\nname='w'\nkind='stride'\nstride=1\ncount=1\nbytes='1 B'\n";
    let joined = format!("{MESH}[[cable]]\na = 's'\nb = 't'\nrate = '10 Gbit/s'\n");
    let scenario = read(text, &with_files(&[("mesh.toml", &joined)]), &[]).expect("a fabric");
    assert_eq!(scenario.attached[0].name, "inputs/mesh.toml");
    assert_eq!(reread(&scenario), scenario);
    let cases = [
        (MESH.to_owned(), "not connected: no path leads from a to b, t"),
        (joined.replace("a = 's'\nb = 't'", "a = 's'\nb = 's'"), "two different nodes"),
        (joined.replace("'s', 't'", "'s', 's', 't'"), "two nodes named s"),
        (joined.replace("b = 's'", "b = 'b'"), "a host's cable must lead to a switch"),
        (joined.replace("a = 's'\nb = 't'", "a = 'a'\nb = 't'"), "have different rates"),
        (joined.replace("b = 't'", "b = 'tt'"), "(did you mean t?)"),
        (joined.replace("10 Gbit/s", "0 Gbit/s"), "mesh.toml: cable.2.rate"),
        ("hosts = [".to_owned(), "line 1: mesh.toml: "),
    ];
    for (graph, reason) in cases {
        let problems = problems_with(text, &with_files(&[("mesh.toml", &graph)]), &[]);
        let found = problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n");
        assert!(found.contains(reason), "{reason}\n{found}");
    }
}

#[test]
fn files_with_very_many_mistakes_or_demands_stay_bounded() {
    let text = "schema = 1\n[fabric]\nkind = 'graph'\nfile = 'mesh.toml'\n";
    let cables = "[[cable]]\na = 'x'\nb = 'y'\nrate = '1 Gbit/s'\n".repeat(50_000);
    let names: Vec<String> = (0..50_000).map(|i| format!("'n{i}'")).collect();
    let graph = format!("hosts = [{}]\nswitches = []\n{cables}", names.join(", "));
    assert_eq!(problems_with(text, &with_files(&[("mesh.toml", &graph)]), &[]).len(), 1000);

    let keys: String = (0..50_000).map(|i| format!("key{i} = 1\n")).collect();
    assert_eq!(problems_with(&keys, &context(), &[]).len(), 1000);

    let job = "[[workload.job]]\nkind='search'\ninput='1 GB'\ncount=150000\n";
    let found = listed(&format!("{STAR}[[workload]]\nname='w'\nkind='mapreduce'\n{job}{job}"));
    assert!(found.contains("at most 200000"), "{found}");

    let large = STAR.replace("hosts = 4", "hosts = 900000");
    let incast = "[[workload]]\nname='w'\nkind='incast'\nreceiver='h0'\nblock_bytes='1 KB'\n";
    assert!(only(&format!("{large}{incast}")).contains("more than 100000 hosts"));
}

#[test]
fn traces_are_scaled_cut_and_attached() {
    let text = format!(
        "{STAR}[[workload]]\nname='w'\nkind='mapreduce'\ntrace='t.tsv'\ntrace_from='10 s'\n\
         original_nodes=6\nscheduler='fair'\n"
    );
    let trace = "j0\t5\t5\t10\t10\t10\nj1\t12\t7\t3000\t600\t60\nj2\t13\t1\t0\t0\t0\n";
    let scenario = read(&text, &with_files(&[("t.tsv", trace)]), &[]).expect("two jobs");
    let WorkloadKind::MapReduce(config) = &scenario.workloads[0].kind else {
        panic!("a MapReduce workload")
    };
    assert_eq!(config.jobs.len(), 2);
    assert_eq!((config.jobs[0].bytes.input, config.jobs[0].bytes.shuffle), (1500, 300));
    assert_eq!(config.jobs[0].submit.as_secs_f64(), 2.0);
    assert_eq!(reread(&scenario), scenario);

    // A trace with named columns may give fractions of seconds, and numbers of tasks that differ
    // from the rule.
    let named = "submit_s\tmaps\treduces\tinput_bytes\tshuffle_bytes\toutput_bytes\n\
        5\t\t\t10\t10\t10\n12.25\t9\t4\t3000\t600\t\n";
    let mut notes = read(&text, &with_files(&[("t.tsv", named)]), &[]).expect("one job");
    let WorkloadKind::MapReduce(config) = &notes.workloads[0].kind else {
        panic!("a MapReduce workload")
    };
    let job = &config.jobs[0];
    assert_eq!((job.submit.as_secs_f64(), job.bytes.shuffle), (2.25, 300));
    assert_eq!((job.maps, job.reduces), (5, 2), "half as many for half as many nodes");
    assert_eq!(
        notes.notes.pop().as_deref(),
        Some("t.tsv: 1 sizes are missing in the trace and count as 0 bytes")
    );

    let broken = trace.replace("\t600", "\tsix");
    let found = problems_with(&text, &with_files(&[("t.tsv", &broken)]), &[]);
    assert!(found[0].message.contains("t.tsv:2: column 5"), "{found:?}");
    let skip = [("workload.0.on_bad_row".to_owned(), "skip".to_owned())];
    let scenario = read(&text, &with_files(&[("t.tsv", &broken)]), &skip).expect("one job");
    assert!(scenario.notes.iter().any(|n| n.contains("1 unusable rows")), "{:?}", scenario.notes);
}

#[test]
fn flow_lists_are_attached_and_checked() {
    let text = format!("{STAR}[[workload]]\nname='w'\nkind='flow-list'\nfile='f.csv'\n");
    let list = "src,dst,bytes,start_s\nh0,h1,5000,0.25\nh2,h1,70,0\n";
    let scenario = read(&text, &with_files(&[("f.csv", list)]), &[]).expect("two flows");
    let WorkloadKind::FlowList(config) = &scenario.workloads[0].kind else {
        panic!("a list of flows")
    };
    assert_eq!(config.flows.len(), 2);
    assert_eq!(reread(&scenario), scenario);
    let broken = list.replace("h2,h1", "h2,h2");
    let found = problems_with(&text, &with_files(&[("f.csv", &broken)]), &[]);
    assert!(found[0].message.contains("f.csv:3: goes from h2 to itself"), "{found:?}");
    assert!(problems_with(&text, &with_files(&[]), &[])[0].message.contains("does not exist"));
}

#[test]
fn the_demo_is_the_first_four_hours_of_the_facebook_day() {
    let text = include_str!("../../../scenarios/demo.toml");
    let scenario = read(text, &context(), &[]).expect("the demo");
    let WorkloadKind::MapReduce(config) = &scenario.workloads[0].kind else {
        panic!("a MapReduce workload")
    };
    assert_eq!(config.jobs.len(), 623);
    assert_eq!(config.workers.as_ref().map(Vec::len), Some(20));
    let shuffle: u64 = config.jobs.iter().map(|j| j.bytes.shuffle).sum();
    assert!((48_000_000_000..54_000_000_000).contains(&shuffle), "{shuffle}");
    assert_eq!(scenario.attached.len(), 1);
}

#[test]
fn classes_map_to_priorities_and_priorities_that_do_nothing_are_noted() {
    let text = format!(
        "{STAR}[[class]]\nname='urgent'\npriority=6\n[[class]]\nname='idle'\n\
         [[workload]]\nname='w'\nclass='bulk'\nkind='stride'\nstride=1\ncount=1\nbytes='1 B'\n\
         [[workload]]\nname='v'\nclass='urgent'\nkind='stride'\nstride=1\ncount=1\nbytes='1 B'\n"
    );
    let scenario = read(&text, &context(), &[]).expect("three classes");
    let names: Vec<&str> = scenario.classes.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["urgent", "idle", "bulk"]);
    assert_eq!((scenario.workloads[0].class.0, scenario.workloads[1].class.0), (2, 0));
    assert_eq!(scenario.notes.len(), 2, "{:?}", scenario.notes);
    let found = listed(&text.replace("priority=6", "priority=8"));
    assert!(found.contains("must be 0 to 7"), "{found}");
}

const FLOW: &str =
    "[[workload]]\nname='w'\nclass='a'\nkind='stride'\nstride=1\ncount=1\nbytes='1 B'\n";

#[test]
fn codepoints_have_names_and_one_class_each() {
    let text = format!("{STAR}[[class]]\nname='a'\ndscp='af21'\n{FLOW}");
    let scenario = read(&text, &context(), &[]).expect("a codepoint");
    assert_eq!(scenario.classes[0].dscp, 18);
    assert!(scenario.resolved().contains("dscp = \"AF21\""), "{}", scenario.resolved());
    let again = read(scenario.resolved(), &context(), &[]).expect("what was resolved");
    assert_eq!(again.classes, scenario.classes);
    for (wrong, said) in [
        ("dscp='AF51'", "did you mean AF"),
        ("dscp=64", "a number 0 to 63"),
        ("dscp='EF'\npriority=5", "give one of them"),
    ] {
        let found = listed(&text.replace("dscp='af21'", wrong));
        assert!(found.contains(said), "{wrong}: {found}");
    }
    let classes = |classes: [&str; 2]| {
        let [a, b] = classes;
        text.replace(
            STAR,
            &format!("{STAR}scheduler='classes'\n[[fabric.class]]\n{a}\n[[fabric.class]]\n{b}\n"),
        )
    };
    let every = "priorities=[0,1,2,3,4,5,6,7]";
    assert!(read(&classes([every, "dscp=['EF']"]), &context(), &[]).is_ok());
    for (wrong, said) in [
        (
            [every, "weight=1"],
            "names neither a priority nor a codepoint: set `priorities` or \
                               `dscp`",
        ),
        ([every, "dscp=['XF']"], "entry 0 of the list"),
        (["priorities=[0]\ndscp=['EF']", "dscp=['EF', 'CS1']"], "these codepoints: EF"),
        (["priorities=[1]", "dscp=['EF']"], "the codepoint DF (0)"),
        (["priorities=[0,1]", "priorities=[2,3]"], "these priorities: 4, 5, 6, 7"),
    ] {
        let found = listed(&classes(wrong));
        assert!(found.contains(said), "{wrong:?}: {found}");
    }
}

#[test]
fn queues_that_never_act_are_noted_with_the_arithmetic() {
    let notes = |queue: &str| {
        let host = "host_queue={ limit='50 packets' }";
        let text = format!("{STAR}queue={{ {queue} }}\n{host}\n[tcp]\necn='on'\n{FLOW}");
        read(&text, &context(), &[]).unwrap_or_else(|p| panic!("{queue}: {p:?}")).notes
    };
    for (queue, said) in [
        (
            "kind='red', min='250 packets', max='500 packets'",
            "200 packets, which are 300000 B at 1500 B each",
        ),
        ("kind='red', min='400 KB', max='800 KB'", "early: its lower threshold is 400000 B"),
        ("kind='red', min='150 packets', max='250 packets'", "has reached only 50 % of its"),
        ("kind='adaptive-red', target='10 ms'", "1250 packets"),
        ("kind='step-marking', threshold='300 KB'", "marking begins at a backlog of 300001 B"),
        ("kind='codel', limit='40 packets'", "is sent in 492.16 us, and the target is 5 ms"),
        ("kind='pie', limit='60 KB'", "the target is 15 ms"),
        ("kind='fq-codel'", "the target is 5 ms"),
    ] {
        let found = notes(queue);
        assert!(found.len() == 1 && found[0].contains(said), "{queue}: {found:?}");
    }
    for acts in [
        "kind='red', min='50 packets', max='150 packets'",
        "kind='codel', target='500 us'",
        "kind='step-marking', threshold='65 packets'",
        "kind='adaptive-red', target='500 us'",
    ] {
        assert_eq!(notes(acts), Vec::<String>::new(), "{acts}");
    }
    // a single queue can use at most half of the shared memory (alpha is 1)
    let text = format!(
        "{STAR}shared_buffer={{ size='120 KB' }}\nqueue={{ kind='red', min='50 packets', \
         max='60 packets' }}\n{FLOW}"
    );
    let shared = read(&text, &context(), &[]).expect("a shared buffer").notes;
    assert!(shared[0].contains("to 60000 B, which are 40 packets of 1500 B"), "{shared:?}");
    let found = listed(&format!(
        "{STAR}queue={{ kind='red', min='60 packets', max='50 packets' }}\n{FLOW}"
    ));
    assert!(found.contains("must be at most `max`, which is"), "{found}");
    // the queue marks packets, but no connection uses ECN
    let text = format!("{STAR}queue={{ kind='step-marking', threshold='9 packets' }}\n{FLOW}");
    let notes_with = |tcp: &str| {
        read(&format!("{text}\n[tcp]\n{tcp}"), &context(), &[]).expect("a queue that marks").notes
    };
    let found = notes_with("");
    assert!(found.len() == 1 && found[0].contains("(tcp.ecn = \"off\")"), "{found:?}");
    assert!(found[0].contains("enqueued without a mark until the queue is full"), "{found:?}");
    // The Linux profile accepts ECN, but does not request it.
    let found = notes_with("profile = 'linux'");
    assert!(found.len() == 1 && found[0].contains("tcp.ecn = \"accept\" accepts"), "{found:?}");
    assert_eq!(notes_with("profile = 'linux'\ncongestion = 'dctcp'"), Vec::<String>::new());
    let text = text.replace("'9 packets'", "'9 packets', protection='default'");
    let found = read(&text, &context(), &[]).expect("a queue that marks").notes;
    assert!(found.len() == 1 && found[0].contains("packets are dropped unless"), "{found:?}");
}

#[test]
fn the_schema_describes_every_key_and_the_page_is_current() {
    let schema = schema();
    let keys = schema["keys"].as_array().expect("keys");
    let find = |path: &str| {
        keys.iter().find(|k| k["path"] == path).unwrap_or_else(|| panic!("{path} is missing"))
    };
    assert_eq!(find("tcp.min_rto")["default"], "200 ms");
    assert_eq!(find("fabric.leaves")["kinds"], serde_json::json!(["leaf-spine"]));
    assert_eq!(find("workload.*.control.heartbeat")["default"], "3 s");
    assert_eq!(find("workload.*.job.*.shuffle_ratio")["kinds"], serde_json::json!(["custom"]));
    assert_eq!(find("fabric.mtu")["kinds"], serde_json::Value::Null);
    assert!(keys.iter().all(|k| k["doc"].as_str().is_some_and(|d| d.len() > 5)));

    let path = root().join("docs/reference/scenario.md");
    let page = reference_page();
    if std::env::var_os("EASTWEST_WRITE_DOCS").is_some() {
        std::fs::write(&path, &page).expect("the reference page");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/reference/scenario.md is out of date: EASTWEST_WRITE_DOCS=1");
}

/// Regression test, found with ten million mutated files: the default of a setting, the
/// transmission time of a packet, is out of range at 1 kbit/s. The scenario text with all defaults
/// was then refused.
#[test]
fn a_very_slow_fabric_resolves_to_a_file_that_reads_back() {
    let text = format!("{STAR}[[workload]]\nname = 'w'\nkind = 'permutation'\nbytes = '1 KB'\n");
    let slow = [("fabric.host_rate".to_owned(), "1 kbit/s".to_owned())];
    let scenario = read(&text, &context(), &slow).unwrap_or_else(|p| panic!("{p:#?}"));
    let again = read(scenario.resolved(), &context(), &[]).unwrap_or_else(|p| panic!("{p:#?}"));
    assert_eq!(scenario.fabric, again.fabric);
}

#[test]
fn a_profile_stands_for_the_keys_that_are_not_given() {
    let workload = "[[workload]]\nname='a'\nkind='stride'\nstride=1\ncount=1\nbytes='1 B'\n";
    for (name, text) in [
        ("linux", include_str!("../../transport/src/tcp/profiles/linux.toml")),
        ("classic", include_str!("../../transport/src/tcp/profiles/classic.toml")),
        ("ns2", include_str!("../../transport/src/tcp/profiles/ns2.toml")),
    ] {
        let file = format!("{STAR}[tcp]\nprofile = '{name}'\ninitial_window = 7\n{workload}");
        let scenario = read(&file, &context(), &[]).expect("a scenario");
        let resolved: toml::Table = scenario.resolved().parse().expect("TOML");
        let profile: toml::Table = text.parse().expect("TOML");
        for (key, value) in profile {
            let expected = if key == "initial_window" { toml::Value::Integer(7) } else { value };
            assert_eq!(resolved["tcp"][&key], expected, "{key} of {name}");
        }
        assert_eq!(reread(&scenario), scenario);
    }
}

#[test]
fn common_ticks_without_ticks_are_noted() {
    let workload = "[[workload]]\nname='a'\nkind='stride'\nstride=1\ncount=1\nbytes='1 B'\n";
    let noted = |tcp: &str| {
        let file = format!("{STAR}[tcp]\n{tcp}{workload}");
        let scenario = read(&file, &context(), &[]).unwrap_or_else(|p| panic!("{p:#?}"));
        scenario.notes.iter().any(|n| n.contains("tcp.tick_phase has no effect"))
    };
    assert!(noted("tick_phase = 'common'\n"));
    assert!(!noted("tick_phase = 'common'\ntimer_ticks = true\n"));
    assert!(!noted("tick_phase = 'common'\nprofile = 'linux'\n"));
    assert!(!noted(""));
}

/// Checks that HyStart belongs to CUBIC only, as in Linux (`tcp_cubic.c`).
#[test]
fn the_linux_profile_has_hystart_with_cubic_only() {
    let workload = "[[workload]]\nname='a'\nkind='stride'\nstride=1\ncount=1\nbytes='1 B'\n";
    let hystart = |tcp: &str, sets: &[(&str, &str)]| {
        let file = format!("{STAR}[tcp]\nprofile = 'linux'\n{tcp}{workload}");
        let sets: Vec<_> = sets.iter().map(|s| (s.0.to_owned(), s.1.to_owned())).collect();
        let scenario = read(&file, &context(), &sets).unwrap_or_else(|p| panic!("{p:#?}"));
        assert_eq!(reread(&scenario), scenario);
        let resolved: toml::Table = scenario.resolved().parse().expect("TOML");
        resolved["tcp"]["hystart"].as_str().expect("a text").to_owned()
    };
    for congestion in ["new-reno", "dctcp", "bbr", "bbr3"] {
        assert_eq!(hystart(&format!("congestion = '{congestion}'\n"), &[]), "off", "{congestion}");
        assert_eq!(hystart("", &[("tcp.congestion", congestion)]), "off", "{congestion}");
        let asked = format!("congestion = '{congestion}'\nhystart = 'linux'\n");
        assert_eq!(hystart(&asked, &[]), "linux", "{congestion}");
    }
    assert_eq!(hystart("", &[]), "linux");
    assert_eq!(hystart("congestion = 'cubic'\n", &[]), "linux");
    assert_eq!(hystart("hystart = 'plus-plus'\n", &[]), "plus-plus");
}

/// Returns the problems of a scenario with these faults, on a leaf–spine fabric of two leaves and
/// two spines with two cables between each pair.
fn with_faults(faults: &[&str]) -> String {
    let mut text = "schema = 1\nduration = '1 s'\n[fabric]\nleaves = 2\nhosts_per_leaf = 2\n\
        spines = 2\ncables_per_spine = 2\nhost_rate = '1 Gbit/s'\nuplink_rate = '10 Gbit/s'\n\
        [[workload]]\nname = 'flows'\nkind = 'stride'\nstride = 1\ncount = 1\nbytes = '1 KB'\n"
        .to_owned();
    for fault in faults {
        text.push_str(&format!("[[fault]]\n{fault}\n"));
    }
    text
}

#[test]
fn faults_name_links_that_are_there_and_say_what_is_missing() {
    let cases = [
        ("on = 'spin0'\nkind = 'down'", "names spin0, which is not a node (did you mean spine0?)"),
        ("on = 'leaf0--spine9'\nkind = 'down'", "(did you mean leaf0--spine1?)"),
        (
            "on = 'h0->leaf1'\nkind = 'down'",
            "there is no cable between these two nodes (did you mean",
        ),
        (
            "on = 'leaf0--h3'\nkind = 'down'",
            "contains leaf0--h3, but there is no cable between these two nodes",
        ),
        (
            "on = 'leaf0--spine0#2'\nkind = 'down'",
            "the cables of leaf0--spine0 have the numbers 0 to 1",
        ),
        ("on = 'leaf0--spine0#x'\nkind = 'down'", "not the number of a parallel cable"),
        ("on = []\nkind = 'down'", "must name at least one link"),
        ("on = 'h0'\nkind = 'dwon'", "(did you mean down?)"),
        ("on = 'h0'\nkind = 'loss'", "share: is required"),
        ("on = 'h0'\nkind = 'loss'\nshare = 1.5", "must be 0 to 1"),
        ("on = 'h0'\nkind = 'bursty-loss'\nshare = 0.1", "needs either share and mean_burst"),
        (
            "on = 'h0'\nkind = 'bursty-loss'\nshare = 0.1\nmean_burst = 2\ngood_to_bad = 0.1",
            "needs either share and mean_burst",
        ),
        ("on = 'h0'\nkind = 'bursty-loss'\nshare = 0.9\nmean_burst = 2", "at least 9.0"),
        ("on = 'h0'\nkind = 'degrade'", "needs either rate or share"),
        (
            "on = 'h0'\nkind = 'degrade'\nrate = '2 Gbit/s'",
            "must not be above the rate of h0->leaf0",
        ),
        ("on = 'h0'\nkind = 'delay'", "one of them must be above 0"),
        ("on = 'h0'\nkind = 'down'\nup_share = 0.5", "has an effect only together with `period`"),
        (
            "on = 'h0'\nkind = 'down'\nperiod = '1 s'\nup_share = 1",
            "must be above 0 and below 1: the link",
        ),
        ("on = 'h0'\nkind = 'down'\nfrom = '2 s'\nuntil = '1 s'", "must be after `from`"),
    ];
    for (fault, expected) in cases {
        let found = only(&with_faults(&[fault]));
        assert!(found.contains(expected), "{fault}: {found}");
    }
}

#[test]
fn faults_of_one_kind_must_not_contradict_each_other() {
    let loss = |on, from, until| {
        format!("on = '{on}'\nkind = 'loss'\nshare = 0.1\nfrom = '{from} s'\nuntil = '{until} s'")
    };
    let listed_with = |a: &str, b: &str| listed(&with_faults(&[a, b]));
    let found = listed_with(&loss("leaf0", 1, 3), &loss("leaf0->spine1#1", 2, 4));
    assert!(found.contains("fault.1: overlaps on leaf0->spine1 at 2 s"), "{found}");
    let found = listed_with(&loss("h0->leaf0", 2, 4), &loss("h0", 1, 3));
    assert!(found.contains("fault.0: overlaps on h0->leaf0 at 2 s"), "{found}");
    // all faults that overlap a longer one are reported, even if they do not overlap each other
    let within = [loss("h0", 1, 9), loss("h0", 2, 3), loss("h0->leaf0", 5, 6)];
    let found = listed(&with_faults(&within.each_ref().map(String::as_str)));
    for number in [1, 2] {
        assert!(found.contains(&format!("fault.{number}: overlaps on h0->leaf0")), "{found}");
    }
    assert_eq!(found.matches("with fault 0").count(), 2, "{found}");
    // accepted: consecutive faults, faults of other directions, faults of other kinds, and
    // overlapping failures
    for (a, b) in [
        (loss("h0", 1, 3), loss("h0", 3, 4)),
        (loss("h0->leaf0", 1, 3), loss("leaf0->h0", 2, 4)),
        (loss("leaf0--spine0#0", 1, 3), loss("leaf0--spine0#1", 1, 3)),
        (loss("h0", 1, 3), "on = 'h0'\nkind = 'delay'\njitter = '1 us'".to_owned()),
        ("on = 'h0'\nkind = 'down'".to_owned(), "on = 'leaf0'\nkind = 'down'".to_owned()),
    ] {
        assert_eq!(listed_with(&a, &b), "", "{a}\n{b}");
    }
}

#[test]
fn goals_are_read_and_handed_on() {
    let workload = "[[workload]]\nname = 'bulk'\nkind = 'permutation'\nbytes = '1 KB'\n";
    let with = |goal: &str| format!("{STAR}{workload}{goal}");
    let plain = read(&with(""), &context(), &[]).expect("no goals");
    let goals = "[goal]\n'bulk.fct_us.p99' = '< 1 ms'\njobs.makespan_s = 'minimal'";
    let scenario = read(&with(goals), &context(), &[]).expect("goals");
    let line = "goal = { \"bulk.fct_us.p99\" = \"< 1 ms\", \"jobs.makespan_s\" = \"minimal\" }\n";
    assert!(scenario.resolved().contains(line), "{}", scenario.resolved());
    assert_eq!(reread(&scenario).resolved(), scenario.resolved());
    // without its goals the scenario is the same
    assert_eq!(scenario.resolved().replace(line, ""), plain.resolved());
    let none = [("goal".to_owned(), "{}".to_owned())];
    let without = read(&with(goals), &context(), &none).expect("no goals");
    assert_eq!(without.resolved(), plain.resolved());

    let wrong = listed(&with("[goal]\n'bulk.fct_us.p99' = 'minimum'\n'flows.count' = '= 3'"));
    assert!(
        wrong.contains("line 11: goal.bulk.fct_us.p99") && wrong.contains("minimal"),
        "{wrong}"
    );
    assert!(wrong.contains("line 12: goal.flows.count") && wrong.contains("< 1 ms"), "{wrong}");
    assert!(only(&with("[goal]\na = 3")).contains("a is a whole number; write a limit"));
    assert!(only(&format!("goal = 3\n{}", with(""))).contains("write {"));
    let many: String = (0..17).map(|i| format!("m{i} = '< {i}'\n")).collect();
    assert!(only(&with(&format!("[goal]\n{many}"))).contains("more than 16 goals"));
    assert!(only(&with(&format!("[goal]\n{} = '< 1'", "m".repeat(300)))).contains("200 bytes"));
    assert!(only(&with(&format!("[goal]\nm = '< {}'", "1".repeat(80)))).contains("60 bytes"));
}

/// Returns a topology file with hosts `a`, `b` … and the switches `s` and `t`; `cables` has the two
/// ends and the rate in Gbit/s of each cable.
fn graph_of(hosts: &str, cables: &[(&str, &str, u32)]) -> String {
    let hosts: Vec<String> = hosts.chars().map(|host| format!("'{host}'")).collect();
    let mut text = format!("hosts = [{}]\nswitches = ['s', 't']\n", hosts.join(", "));
    for (a, b, rate) in cables {
        text += &format!("[[cable]]\na = '{a}'\nb = '{b}'\nrate = '{rate} Gbit/s'\n");
    }
    text
}

/// Returns the scenario with the topology file `graph` and these lines after `[fabric]`, or its
/// problems.
fn on_graph(graph: &str, lines: &str) -> Result<Scenario, Vec<Problem>> {
    let text = format!("schema = 1\n[fabric]\nkind = 'graph'\nfile = 'g.toml'\n{lines}");
    read(&text, &with_files(&[("g.toml", graph)]), &[])
}

fn lines_of(problems: Vec<Problem>) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

const STRIDE: &str = "[[workload]]\nname='w'\nkind='stride'\nstride=1\ncount=1\nbytes='1 B'\n";

#[test]
fn the_load_of_unequal_hosts_is_a_share_of_the_sum_of_their_rates() {
    let mean = |graph: &str, more: &str| {
        let poisson = "[[workload]]\nname = 'p'\nkind = 'poisson'\nload = 0.5\nflows = 10\n\
            sizes = '1 KB'\n";
        let scenario = on_graph(graph, &format!("{poisson}{more}")).expect("it is right");
        let WorkloadKind::Poisson(config) = &scenario.workloads[0].kind else { panic!("poisson") };
        config.mean_host_rate
    };
    let fast = [("a", "s", 10), ("b", "s", 10), ("c", "s", 1), ("s", "t", 10)];
    assert_eq!(mean(&graph_of("abc", &fast), ""), 7e9);
    assert_eq!(mean(&graph_of("abc", &fast), "hosts = ['a', 'c']\n"), 5.5e9);
    let cards: Vec<_> = ["a", "a", "a", "b", "b", "c"].map(|host| (host, "s", 10)).into();
    let cards = [cards, vec![("s", "t", 10)]].concat();
    assert_eq!(mean(&graph_of("abc", &cards), ""), 20e9);
    assert_eq!(mean(&graph_of("abc", &cards), "hosts = ['b', 'c']\n"), 15e9);
}

#[test]
fn consequences_of_a_problem_are_not_reported() {
    let background = STRIDE.replace("[[workload]]\n", "[[workload]]\nbackground = true\n");
    for (fabric, key) in [
        ("kind='star'\nhosts=1\nhost_rate='1 Gbit/s'", "fabric.hosts"),
        (
            "leaves=2\nhosts_per_leaf=2\nspines=0\nhost_rate='1 Gbit/s'\nuplink_rate='1 Gbit/s'",
            "fabric.spines",
        ),
    ] {
        for workload in [
            "kind='bulk'\npairs=['h0->h1']",
            "kind='service'\nclients='h0'\n\
            servers='h1'\nmean_gap='1 ms'\nrequests=1",
        ] {
            let text =
                format!("schema = 1\n[fabric]\n{fabric}\n[[workload]]\nname = 'w'\n{workload}\n");
            assert!(only(&text).contains(key), "{text}");
        }
        // an error of its own
        let text = format!("schema = 1\n[fabric]\n{fabric}\n{background}");
        assert!(listed(&text).contains("every workload runs in the background"), "{text}");
    }
    let cables = [("a", "s", 1), ("b", "t", 1), ("s", "t", 1)];
    let right = graph_of("ab", &cables);
    let listed_on = |graph: &str| lines_of(on_graph(graph, STRIDE).expect_err("a wrong graph"));
    for graph in [
        right.replacen("1 Gbit/s", "0 Gbit/s", 1),
        right.replace("['a', 'b']", "['a', 'b', 'c:eth1']"),
        right.replace("'s', 't'", "'s', 't', 7"),
        right.replace("hosts = ['a', 'b']", "hosts = 3"),
    ] {
        assert_eq!(listed_on(&graph).lines().count(), 1, "{}", listed_on(&graph));
    }
    let also =
        listed_on(&right.replace("['a', 'b']", "['a', 'b:c']").replace("b = 't'", "b = 'u'"));
    assert!(also.contains("cable.1.b = \"u\": is not in the list"), "{also}");
    assert!(!also.contains("= \"a\""), "{also}");
    // with a wrong memory, the keys and the buffer of the other kind of memory are not checked
    for pfc in [
        "profile = 'cisco'",
        "profile = 'cisco'\nalpha = 2\nlossy_alpha = 8",
        "shared = '0 B'",
        "shared = '0 B'\nalpha = 2\nlossy = '100 KB'\nlossy_alpha = 8",
        "shared = '1 MB'\nlossy = '0 B'\nlossy_alpha = 8",
    ] {
        let long = "host_delay = '1 ms'\n";
        only(&format!("{STAR}{long}[fabric.pfc]\n{pfc}\n{STRIDE}"));
    }
}

#[test]
fn keys_with_a_condition_say_what_they_need() {
    for (pfc, expected) in [
        ("shared = '1 MB'\nlossy_alpha = 8", "lossy_alpha = 8: has an effect only with `lossy`"),
        ("alpha = 2", "alpha = 2: has an effect only with `shared`"),
        ("lossy = '1 MB'", "lossy = \"1 MB\": has an effect only with `shared`"),
    ] {
        let found = only(&format!("{STAR}[fabric.pfc]\n{pfc}\n{STRIDE}"));
        assert!(found.ends_with(expected), "{found}");
    }
    let datagrams = "[[workload]]\nname = 'd'\nkind = 'datagrams'\nload = 0.5\nflows = 3\n";
    let found = listed(&format!("{STAR}{datagrams}"));
    assert!(found.contains("belongs to the kinds ethernet, poisson, but kind is"), "{found}");
}

/// Lines after `[fabric]`: two leaves with four hosts, each with two cards.
fn with_cards(homing: &str, more: &str) -> String {
    format!(
        "schema = 1\nduration = '1 s'\n[fabric]\nleaves = 2\nhosts_per_leaf = 2\nspines = 1\n\
         cards = 2\nhoming = '{homing}'\nhost_rate = '1 Gbit/s'\nuplink_rate = '1 Gbit/s'\n{more}"
    )
}

#[test]
fn ports_of_cards_have_the_names_that_results_print() {
    let links = |homing: &str, on: &str| {
        let fault = format!("{STRIDE}[[fault]]\non = '{on}'\nkind = 'down'\n");
        let scenario = read(&with_cards(homing, &fault), &context(), &[]);
        scenario.map(|s| s.fabric.faults[0].links.clone()).map_err(lines_of)
    };
    for (homing, on, same) in [
        ("multi-homed", "h0:eth1->leaf1", "h0->leaf1"),
        ("multi-homed", "leaf1->h0:eth1", "leaf1->h0"),
        ("multi-homed", "h0:eth1--leaf1", "h0:eth1"),
        ("single-homed", "h0:eth1--leaf0", "h0:eth1"),
        ("single-homed", "leaf0--h0:eth1", "h0--leaf0#1"),
        ("single-homed", "h0:eth1->leaf0", "h0->leaf0#1"),
    ] {
        let found = links(homing, on).expect("a port");
        assert_eq!(Ok(found), links(homing, same), "{on}");
    }
    for (on, expected) in [
        ("h0:eth1->leaf0", "the cable of h0:eth1 leads to leaf1 (did you mean h0:eth1->leaf1?)"),
        ("h0:eth1--leaf0", "the cable of h0:eth1 leads to leaf1 (did you mean h0:eth1--leaf1?)"),
        ("h0:eth2->leaf1", "the cards of this host are eth0 to eth1"),
    ] {
        let found = links("multi-homed", on).expect_err("no port");
        assert!(found.ends_with(expected), "{found}");
    }
    for key in ["ports", "capture", "pauses", "lpi"] {
        let measure = |homing: &str, port: &str| {
            let text = with_cards(homing, &format!("{STRIDE}[measure]\n{key} = ['{port}']\n"));
            read(&text, &context(), &[]).map(|s| s.measure).map_err(lines_of)
        };
        assert_eq!(measure("multi-homed", "h0:eth1->leaf1"), measure("multi-homed", "h0->leaf1"));
        let found = measure("single-homed", "leaf0->h0:eth1").expect_err("two cards at one leaf");
        assert!(
            found.ends_with("all cards of h0 at leaf0 together can be chosen: write \"leaf0->h0\""),
            "{found}"
        );
    }
}

#[test]
fn settings_that_several_cards_exclude_have_the_right_reason() {
    let one = with_cards("multi-homed", STRIDE).replace("cards = 2", "cards = 1");
    assert!(only(&one).contains("only if `cards` is above 1, but `cards` is 1"));
    let mpi = "bond_mode = 'balance-rr'\n[fabric.pfc]\n[[workload]]\nname = 'cg'\n\
        kind = 'mpi-cg'\nranks = 2\nclass = 'S'\ntransport = 'ethernet'\n";
    let found = listed(&with_cards("single-homed", mpi));
    assert!(found.contains("sends Ethernet frames, which leave a host by one card"), "{found}");
    assert!(!found.contains("RoCEv2"), "{found}");
}

#[test]
fn cards_without_a_path_are_noted() {
    let rails = graph_of(
        "abc",
        &[("a", "s", 1), ("a", "t", 1), ("b", "t", 1), ("c", "s", 1), ("c", "t", 1)],
    );
    let notes = |graph: &str, lines: &str| on_graph(graph, lines).expect("possible").notes;
    let off = format!("bond_mode = 'off'\n{STRIDE}");
    let found = notes(&rails, &off).join("\n");
    assert!(found.contains("no path leads from a:eth0 to b, so that"), "{found}");
    assert_eq!(notes(&rails, STRIDE), Vec::<String>::new(), "a bond has a path");
    // two rails: connections use cards with equal numbers, but ranks of MPI also other cards
    let cables = ["a", "b"].map(|host| [(host, "s", 1), (host, "t", 1)]).concat();
    let two = graph_of("ab", &cables);
    assert_eq!(notes(&two, &off), Vec::<String>::new());
    let mpi = |each: u32, ranks: u32| {
        format!(
            "bond_mode = 'off'\n[[workload]]\nname = 'cg'\nkind = 'mpi-cg'\nranks = {ranks}\n\
             class = 'S'\nranks_per_host = {each}\n"
        )
    };
    assert!(notes(&two, &mpi(2, 4)).join("\n").contains("from a:eth0 to b:eth1"));
    assert!(!notes(&two, &mpi(1, 2)).join("\n").contains("no path"));
}

#[test]
fn problems_of_routes_are_reported_at_the_key_that_lists_them() {
    let fabric = "schema = 1\n[fabric]\nkind = 'star'\nhosts = 4\nhost_rate = '1 Gbit/s'\n\
        routing = 'explicit'\n";
    let route = "{from = 'h0', to = 'h1', via = ['switch0']}";
    let row = "h0,h1,switch0\n";
    for (listed, rows, key) in [
        (2, 0, "fabric.route = […]:"),
        (1, 1, "fabric.routes = \"r.csv\":"),
        (0, 2, "fabric.routes = \"r.csv\":"),
        (2, 1, "fabric.route = […]:"),
    ] {
        let file = format!("from,to,via\n{}", row.repeat(rows));
        let mut text = fabric.to_owned();
        if listed > 0 {
            text += &format!("route = [{}]\n", vec![route; listed].join(", "));
        }
        if rows > 0 {
            text += "routes = 'r.csv'\n";
        }
        let found = problems_with(&(text + STRIDE), &with_files(&[("r.csv", &file)]), &[]);
        let found = lines_of(found);
        let expected = format!("{key} there are two routes from h0 to h1");
        assert!(found.contains(&expected), "{expected}\n{found}");
    }
}

#[test]
fn a_list_of_the_hosts_of_ranks_with_a_wrong_length_is_reported_at_its_key() {
    let mpi = "[[workload]]\nname = 'cg'\nkind = 'mpi-cg'\nranks = 4\nclass = 'S'\n\
        placement = 'file'\nhosts_file = 'hosts.txt'\n";
    let files = with_files(&[("hosts.txt", "h0\nh1\n")]);
    let found = lines_of(problems_with(&format!("{STAR}{mpi}"), &files, &[]));
    assert!(
        found.contains("workload.0.hosts_file = \"hosts.txt\": names the hosts of 2"),
        "{found}"
    );
}
