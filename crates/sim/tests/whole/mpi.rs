//! Tests of MPI programs in packet mode: messages, durations, and the errors of wrong programs.

use crate::harness::{attempt, finish, outcome, scenario_in};
use eastwest_sim::checkpoint::{Identity, Keep, load, plan, save};
use eastwest_sim::plan::Plan;
use eastwest_sim::results::Results;
use eastwest_sim::scenario::{Context, Scenario, read};
use eastwest_sim::world::{RunError, World};
use std::path::PathBuf;

/// Returns a star with `hosts` hosts at 1 Gbit/s and an MPI workload of the kind `kind`; `more` are
/// further lines of the workload.
fn star(hosts: u32, kind: &str, more: &str) -> String {
    format!(
        "schema = 1\n[fabric]\nkind = 'star'\nhosts = {hosts}\nhost_rate = '1 Gbit/s'\n\
         host_delay = '5 us'\nprocessing_jitter = '0 s'\nqueue = {{ kind = 'drop-tail', limit = '1 MB' }}\n[[workload]]\n\
         name = 'app'\nkind = '{kind}'\n{more}"
    )
}

/// A temporary folder for the traces of one test, which is deleted when this value is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder =
            std::env::temp_dir().join(format!("eastwest-whole-mpi-{name}-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("t")).expect("a folder");
        Folder(folder)
    }

    /// Writes the trace `t` into the folder; `ranks` has the calls of each rank.
    fn trace(self, ranks: &[&str]) -> Folder {
        for (rank, calls) in ranks.iter().enumerate() {
            let lines = calls.split(';').map(|call| format!("{rank} {}\n", call.trim()));
            let path = self.0.join(format!("t/rank-{rank:02}.txt"));
            std::fs::write(path, lines.collect::<String>()).expect("written");
        }
        self
    }

    fn context(&self) -> Context {
        Context { base_dir: self.0.clone(), ..Context::default() }
    }

    fn scenario(&self, hosts: u32, more: &str) -> Scenario {
        scenario_in(&self.context(), &star(hosts, "mpi", &format!("trace = 't'\n{more}")), &[])
    }

    /// Returns all problems of a scenario that replays the trace `t`, in one text.
    fn wrong(&self, hosts: u32, more: &str) -> String {
        let text = star(hosts, "mpi", &format!("trace = 't'\n{more}"));
        let problems = read(&text, &self.context(), &[]).expect_err("it is wrong");
        problems.iter().map(|p| format!("{p}\n")).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn cg_sends_what_it_should_and_its_time_is_that_of_its_phases() {
    let text = star(8, "mpi-cg", "ranks = 8\nproblem = 'S'\nouter = 1\ninner = 4\n");
    let run = outcome(&text, &[]);
    // messages per outer iteration and rank: 2·(3 + 2·4) numbers and 5·3 vectors; in addition 7 of
    // the broadcast, 24 of the barrier, 7 of the reduction
    let own = 8 * 2 * (2 * 11 + 15);
    assert_eq!(run.count("mpi.messages.count"), own + 7 + 24 + 7);
    assert_eq!(run.u64s("mpi_ranks", "messages").iter().sum::<u64>(), own);
    // 4 of 8 ranks are their own partner in the transposes, whose messages then stay in memory
    assert_eq!(run.count("mpi.messages.over_network"), own + 38 - 4 * 2 * 5);
    let spent: f64 = ["compute", "sleep", "send", "receive", "wait", "collective"]
        .iter()
        .map(|state| run.number(&format!("mpi.{state}_s")))
        .sum();
    let finished = run.f64s("mpi_ranks", "finished_s");
    let mean = finished.iter().sum::<f64>() / finished.len() as f64;
    assert!((spent - mean).abs() < 1e-9, "{spent} is not {mean}: ranks do one thing at a time");
    // each message passes two links of 5 µs, so a phase takes at least 10 µs; there are 2·(11·2 +
    // 15) phases
    let runtime = run.number("mpi.runtime_s");
    assert!((740e-6..4e-3).contains(&runtime), "{runtime}");
    assert_eq!(run.digest(), outcome(&text, &[]).digest());
    assert_ne!(run.digest(), outcome(&text, &[("workload.app.eager_limit", "0 B")]).digest());
}

#[test]
fn a_message_takes_the_time_of_its_packets_and_three_ways_if_it_asks() {
    // the first message opens the connection
    let calls = ["send 1 0 1; compute 1e6; send 1 0 1447", "recv 0 0 1; recv 0 0 1447"];
    let folder = Folder::new("times").trace(&calls);
    let time = |more: &str| {
        let run = finish(&folder.scenario(2, more));
        let rows =
            run.f64s("mpi_messages", "sent_s").iter().zip(run.f64s("mpi_messages", "received_s"));
        let times: Vec<f64> = rows.map(|(sent, received)| (received - sent) * 1e6).collect();
        times[1]
    };
    // 1447 + 1 B and headers over two links of 1 Gbit/s and 5 µs, with store and forward
    let eager = time("envelope = 1\n");
    let expected = 2.0 * (5.0 + (1448.0 + 40.0 + 38.0) * 8.0 / 1000.0);
    assert!((expected - 0.1..expected + 0.5).contains(&eager), "{eager} for {expected}");
    let asked = time("envelope = 1\neager_limit = '1000 B'\n");
    assert!((22.0..24.0).contains(&(asked - eager)), "two small packets more: {}", asked - eager);
}

#[test]
fn a_result_can_be_run_again_from_the_files_it_keeps() {
    let folder = Folder::new("again").trace(&["send 1 0 5; barrier", "recv 0 0 5; barrier"]);
    std::fs::write(folder.0.join("hosts.txt"), "h3\n1\n").expect("written");
    let scenario = folder.scenario(4, "placement = 'file'\nhosts_file = 'hosts.txt'\n");
    assert!(scenario.resolved().contains("trace = \"inputs/t\""), "{}", scenario.resolved());
    let kept = Folder::new("kept");
    for file in &scenario.attached {
        let to = kept.0.join(&file.name);
        std::fs::create_dir_all(to.parent().expect("a folder")).expect("made");
        match &file.path {
            Some(path) => drop(std::fs::copy(path, to).expect("copied")),
            None => std::fs::write(to, &file.bytes).expect("written"),
        }
    }
    let again = scenario_in(&kept.context(), scenario.resolved(), &[]);
    let (first, second) = (finish(&scenario), finish(&again));
    assert_eq!(first.digest(), second.digest());
    let mut hosts = first.u64s("mpi_ranks", "host");
    hosts.sort_unstable();
    assert_eq!(hosts, [1, 3]);
}

#[test]
fn what_is_wrong_with_a_trace_is_said_with_file_line_and_record() {
    let wrong = Folder::new("record").trace(&["init; sned 1 0 1", "init; send 7 0 1"]).wrong(2, "");
    assert!(wrong.contains("rank-00.txt:2: found the call \"sned\""), "{wrong}");
    assert!(
        wrong.contains("rank-01.txt:2: found 7, expected a destination of the call send"),
        "{wrong}"
    );
    let wrong = Folder::new("few").trace(&["init"; 5]).wrong(4, "");
    assert!(
        wrong.contains("placement") && wrong.contains("5 ranks do not fit on 4 hosts"),
        "{wrong}"
    );
    let wrong = Folder::new("lost").trace(&["send 1 3 1", "init"]).wrong(2, "");
    assert!(
        wrong.contains("rank 0 to rank 1 with tag 3: there are 1 more sends than receives"),
        "{wrong}"
    );
    let gap = Folder::new("gap").trace(&["init"; 3]);
    std::fs::remove_file(gap.0.join("t/rank-01.txt")).expect("removed");
    let wrong = gap.wrong(4, "");
    assert!(wrong.contains("has files for ranks up to 2, but none for 1"), "{wrong}");
    let wrong = Folder::new("none").wrong(2, "");
    assert!(wrong.contains("contains no file with a number in its name"), "{wrong}");
    let wrong = Folder::new("file").trace(&["init"]).wrong(2, "placement = 'file'\n");
    assert!(wrong.contains("hosts_file") && wrong.contains("is required"), "{wrong}");
    let wrong = read(&star(4, "mpi-cg", "ranks = 6\n"), &Context::default(), &[]);
    assert!(wrong.expect_err("no power")[0].to_string().contains("power of two"));
}

#[test]
fn a_deadlock_ends_the_run_and_names_ranks_and_calls() {
    let calls = ["recv 1 1 5; send 1 2 5", "recv 0 2 5; send 0 1 5"];
    let folder = Folder::new("deadlock").trace(&calls);
    let error = attempt(&folder.scenario(2, ""), false).err().expect("nobody goes on");
    assert!(matches!(&error, RunError::Stuck(_)));
    let said = error.to_string();
    assert!(said.contains("app: deadlock: 2 of 2 ranks wait"), "{said}");
    assert!(said.contains("rank 1 waits in recv for a message from rank 0 with tag 2"), "{said}");
}

#[test]
fn a_replay_goes_on_from_a_checkpoint() {
    let rank = |other: u32| {
        format!(
            "isend {other} 0 90000; irecv {other} 0 90000; waitall; compute 2e4; allreduce 64 1e3; "
        )
        .repeat(40)
    };
    let calls = [rank(1), rank(0)];
    let folder =
        Folder::new("checkpoint").trace(&calls.each_ref().map(|c| c.trim_end_matches("; ")));
    let scenario = folder.scenario(2, "");
    let identity = Identity { build: "this build".into(), plan: plan(&scenario, false) };
    let world = || World::new(Plan::new(&scenario).expect("a plan")).expect("a world");
    let finish = |mut world: World| {
        world.run(&mut |_| true).expect("it finishes");
        Results::new(world)
    };
    let whole = finish(world());
    let events = whole.summary["events"].as_u64().expect("a number");
    let mut half = world();
    assert_eq!(half.run_to(events / 2, &mut |_| true), Err(RunError::Interrupted));
    let mut bytes = Vec::new();
    save(&Keep::One(&half), &identity, &mut bytes).expect("a vector takes everything");
    let run = load(&bytes, &identity).expect("it reads back");
    let rest = finish(run.into_world().expect("it is on one thread"));
    assert_eq!(rest.summary, whole.summary);
    assert!(rest.tables.iter().zip(&whole.tables).all(|(a, b)| a == b));
    // another trace gives another hash of the plan
    std::fs::write(folder.0.join("t/rank-00.txt"), "0 init\n").expect("written");
    assert_ne!(plan(&scenario, false), identity.plan);
}

#[test]
fn placement_and_flow_level_change_where_and_how_but_not_what() {
    let cg = "ranks = 16\nproblem = 'S'\nouter = 0\ninner = 2\nranks_per_host = 4\n";
    let run = |more: &str, sets: &[(&str, &str)]| {
        outcome(&star(16, "mpi-cg", &format!("{cg}{more}")), sets)
    };
    let block = run("", &[]);
    let random = run("placement = 'random'\n", &[]);
    let spread = run("placement = 'round-robin'\n", &[]);
    let flows = run("", &[("fidelity", "flow")]);
    let messages = |run: &crate::harness::Outcome| run.count("mpi.messages.bytes");
    assert_eq!(messages(&block), messages(&random));
    assert_eq!(messages(&block), messages(&flows));
    let over = |run: &crate::harness::Outcome| run.count("mpi.messages.over_network");
    assert!(over(&block) < over(&random) && over(&random) <= over(&spread));
    assert_eq!(spread.u64s("mpi_ranks", "host").into_iter().max(), Some(15));
    assert_eq!(block.u64s("mpi_ranks", "host").into_iter().max(), Some(3));
    assert!(flows.number("mpi.runtime_s") > 0.0);
}
