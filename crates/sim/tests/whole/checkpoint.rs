//! Tests of checkpoints: a run that is saved in the middle and loaded again ends with the digest,
//! tables and summary of an uninterrupted run. Files that are not checkpoints of the run are
//! refused.

use crate::harness::{context, scenario, scenario_in, shipped};
use crate::mechanisms::try_read;
use eastwest_measure::table::{Column, Table};
use eastwest_sim::checkpoint::{Identity, Keep, Refused, load, obstacle, plan, save};
use eastwest_sim::plan::Plan;
use eastwest_sim::results::{Results, hand_out};
use eastwest_sim::scenario::{Context, Scenario};
use eastwest_sim::world::{RunError, World};

fn identity(scenario: &Scenario) -> Identity {
    Identity { build: "this build".into(), plan: plan(scenario, false) }
}

fn world(scenario: &Scenario) -> World {
    World::new(Plan::new(scenario).expect("a plan")).expect("a world")
}

/// Returns the checkpoint of a run that was stopped after `events` events.
fn kept(scenario: &Scenario, events: u64) -> Vec<u8> {
    let mut world = world(scenario);
    let stopped = world.run_to(events, &mut |_| true);
    assert_eq!(stopped, Err(RunError::Interrupted), "{} is over before", scenario.name);
    let mut bytes = Vec::new();
    save(&Keep::One(&world), &identity(scenario), &mut bytes).expect("a vector takes everything");
    bytes
}

fn read_back(bytes: &[u8], scenario: &Scenario) -> World {
    let run = load(bytes, &identity(scenario)).expect("it reads back");
    run.into_world().expect("it is on one thread")
}

fn finish(mut world: World) -> Results {
    world.run(&mut |_| true).expect("the run finishes");
    Results::new(world)
}

fn assert_same(a: &Results, b: &Results) {
    assert_eq!(a.summary, b.summary);
    assert_eq!(a.files, b.files);
    for (a, b) in a.tables.iter().zip(&b.tables) {
        assert!(a == b, "the tables {} differ", a.name);
    }
}

/// Checks a run that is saved after a third and after two thirds of its events, and continued each
/// time, against an uninterrupted run; `sets` are overrides.
fn goes_on(text: &str, sets: &[(&str, &str)]) {
    goes_on_in(&context(), text, sets);
}

/// Does the checks of `goes_on` for a scenario that reads files.
pub fn goes_on_in(context: &Context, text: &str, sets: &[(&str, &str)]) {
    let scenario = scenario_in(context, text, sets);
    let whole = finish(world(&scenario));
    let events = whole.summary["events"].as_u64().expect("a number of events");
    let first = kept(&scenario, events / 3);
    let mut resumed = read_back(&first, &scenario);
    let stopped = resumed.run_to(events * 2 / 3, &mut |_| true);
    assert_eq!(stopped, Err(RunError::Interrupted));
    let mut second = Vec::new();
    save(&Keep::One(&resumed), &identity(&scenario), &mut second)
        .expect("a vector takes everything");
    drop(resumed);
    let resumed = read_back(&second, &scenario);
    assert_same(&finish(resumed), &whole);
}

#[test]
fn shipped_scenarios_go_on() {
    goes_on(&shipped("first"), &[]);
    goes_on(&shipped("demo"), &[("workload.hadoop.trace_to", "3 min")]);
    goes_on(&shipped("s2"), &[("workload.incast.rounds", "2")]);
    goes_on(&shipped("service"), &[("duration", "3 s"), ("fabric.queue.limit", "20 packets")]);
}

/// Returns an all-to-all workload on two racks with two paths between them; `fabric`, `tcp` and
/// `more` are further lines.
fn shuffle(fabric: &str, tcp: &str, more: &str) -> String {
    format!(
        "schema = 1\n[fabric]\nleaves = 2\nhosts_per_leaf = 3\nspines = 2\n\
         host_rate = '1 Gbit/s'\nuplink_rate = '2 Gbit/s'\n{fabric}\n[tcp]\n\
         min_rto = '10 ms'\ninitial_rto = '20 ms'\n{tcp}\n[[workload]]\nname = 'all'\n\
         kind = 'all-to-all'\nbytes = '200 KB'\n{more}"
    )
}

#[test]
fn every_queue_discipline_goes_on() {
    for queue in [
        "kind = 'drop-tail', limit = '9 KB'",
        "kind = 'red', min = '4 packets', max = '12 packets', weight = 0.05",
        "kind = 'adaptive-red', target = '40 us'",
        "kind = 'pie', target = '50 us', update = '50 us', alpha = 50, beta = 500, burst = '100 us'",
        "kind = 'step-marking', threshold = '9 packets', at = 'dequeue'",
        "kind = 'codel', target = '50 us', interval = '400 us'",
        "kind = 'fq-codel', target = '50 us', interval = '400 us'",
    ] {
        for more in ["", "routing = 'round-robin'\nscheduler = 'strict-priority'\n"] {
            goes_on(&shuffle(&format!("{more}queue = {{ {queue} }}"), "ecn = 'on'", ""), &[]);
        }
    }
}

#[test]
fn every_routing_goes_on() {
    for routing in ["spray", "flowlet", "modulo", "adaptive"] {
        goes_on(&shuffle(&format!("routing = '{routing}'"), "", ""), &[]);
    }
}

#[test]
fn hosts_with_several_cards_go_on() {
    let fault = "[[fault]]\non = 'h1:eth1'\nkind = 'down'\nfrom = '1 ms'\nuntil = '4 ms'\nreroute = '1 ms'\n";
    for (cards, more) in [
        ("bond_mode = 'balance-rr'", fault),
        ("homing = 'multi-homed'", fault),
        ("homing = 'multi-homed'\nbond_mode = 'off'", ""),
    ] {
        goes_on(&shuffle(&format!("cards = 2\n{cards}"), "profile = 'linux'", more), &[]);
    }
}

#[test]
fn classes_and_shared_buffers_go_on() {
    let classes = "scheduler = 'classes'\nshared_buffer = { size = '40 KB', alpha = 1 }\n\
        [[fabric.class]]\npriorities = [0, 1, 2, 3]\nweight = 1\n\
        [[fabric.class]]\npriorities = [4, 5, 6]\nweight = 3\n\
        queue = { kind = 'red', min = '5 packets', max = '15 packets' }\n\
        [[fabric.class]]\npriorities = [7]\n[[class]]\nname = 'heavy'\npriority = 5\n";
    let heavy = "[[workload]]\nname = 'heavy'\nkind = 'poisson'\nload = 0.3\nsizes = '30 KB'\n\
        flows = 300\n";
    goes_on(&shuffle(classes, "", heavy), &[]);
}

#[test]
fn links_that_sleep_go_on() {
    for energy in [
        "kind = 'standard'",
        "kind = 'stall-timer', stall = '3 us'",
        "kind = 'coalescing', hold = '12 us', trigger = '10 packets'",
        "kind = 'adaptive'",
        "kind = 'ideal'",
    ] {
        let fabric = format!("energy = {{ {energy} }}");
        let text = shuffle(&fabric, "", "[measure]\nlpi = ['*']\n");
        goes_on(&text, &[("fabric.uplink_rate", "10 Gbit/s")]);
    }
}

#[test]
fn every_congestion_control_goes_on() {
    for congestion in ["new-reno", "dctcp", "cubic", "bbr", "bbr3"] {
        for profile in ["classic", "linux"] {
            let tcp = format!("profile = '{profile}'\ncongestion = '{congestion}'\necn = 'on'\n");
            goes_on(&shuffle("queue = { limit = '15 packets' }", &tcp, ""), &[]);
        }
    }
}

#[test]
fn what_looks_inside_goes_on() {
    let inside = "[measure]\nports = ['*']\nevents = 100000\ntcp_trace = ['h0', 'h1 -> h2']\nflow_parts = ['*']\n\
        flow_samples = ['h1', 'h0->h2']\nflow_samples_interval = '50 us'\n\
        capture = ['h0->leaf0', 'leaf0->h0']\nsample_interval = '100 us'\n";
    goes_on(&shuffle("queue = { limit = '10 packets' }", "sack = true", inside), &[]);
}

#[test]
fn faults_go_on() {
    let faults = "[[fault]]\non = 'leaf0--spine1'\nkind = 'bursty-loss'\nshare = 0.01\n\
        mean_burst = 3\n[[fault]]\non = ['h2', 'h3']\nkind = 'degrade'\nshare = '40 %'\n\
        from = '2 ms'\nuntil = '8 ms'\n[[fault]]\non = 'leaf0->spine0'\nkind = 'down'\n\
        period = '3 ms'\nup_share = 0.8\n[[fault]]\non = 'h0'\nkind = 'delay'\n\
        extra = '20 us'\njitter = '50 us'\nuntil = '1 s'\n";
    goes_on(&shuffle("", "", faults), &[]);
}

#[test]
fn other_workloads_go_on() {
    for workload in [
        "kind = 'stride'\nstride = 2\ncount = 2\nbytes = '300 KB'\n",
        "kind = 'permutation'\nrepeat = 3\nbytes = '100 KB'\n",
        "kind = 'datagrams'\nsources = ['h0', 'h1']\ndestination = 'h2'\nbytes = 1500\n\
         mean_gap = '14 us'\npackets = 3000\n",
        "kind = 'poisson'\nload = 0.6\nsizes = 'points'\nflows = 500\n\
         size_points = [['1 KB', 0], ['20 KB', 0.5], ['1 MB', 1]]\n",
    ] {
        let more = format!("[[workload]]\nname = 'other'\n{workload}");
        goes_on(&shuffle("", "", &more), &[]);
    }
}

/// Returns Hadoop jobs during which task attempts, fetches, a worker and a cable fail.
fn unlucky(framework: &str, scheduler: &str) -> String {
    format!(
        "schema = 1\n[fabric]\nleaves = 2\nhosts_per_leaf = 4\nspines = 1\n\
         host_rate = '1 Gbit/s'\nuplink_rate = '2 Gbit/s'\n\
         [[workload]]\nname = 'hadoop'\nkind = 'mapreduce'\nframework = '{framework}'\n\
         scheduler = '{scheduler}'\n[workload.control]\nslowstart = 0.5\n\
         [workload.hdfs]\nrecheck = '10 s'\n\
         [workload.speculation]\nmaps = true\nreduces = true\n\
         [workload.failures]\nattempts = 0.05\nexpiry = '30 s'\nfetch_timeout = '20 s'\n\
         block_timeout = '20 s'\ncall_timeout = '20 s'\n\
         [[workload.job]]\nkind = 'terasort'\ninput = '128 MB'\nmaps = 8\nreduces = 2\ncount = 3\n\
         output_replication = 2\n[[workload.job]]\nkind = 'hdfs-read'\ninput = '64 MB'\n\
         submit = '60 s'\n[[fault]]\non = 'h2'\nkind = 'down'\nfrom = '7 s'\n[[fault]]\n\
         on = 'h1--leaf0'\nkind = 'down'\nfrom = '8 s'\nuntil = '10 s'\n"
    )
}

#[test]
fn hadoop_that_fails_goes_on() {
    for (framework, scheduler) in [("mr1", "fair"), ("mr1", "quincy"), ("yarn", "capacity")] {
        goes_on(&unlucky(framework, scheduler), &[]);
    }
}

#[test]
fn rows_that_are_handed_out_on_the_way_are_the_same_rows() {
    let scenario = scenario(&unlucky("mr1", "fair"), &[]);
    let whole = finish(world(&scenario));
    let mut parts = Vec::new();
    let mut parted = world(&scenario);
    for events in (1..).map(|n| n * 20_000) {
        let ended = parted.run_to(events, &mut |_| true);
        parts.extend(std::iter::from_fn(|| hand_out(parted.site_mut(), 10)));
        if ended.is_ok() {
            break;
        }
        let mut bytes = Vec::new();
        save(&Keep::One(&parted), &identity(&scenario), &mut bytes)
            .expect("a vector takes everything");
        parted = read_back(&bytes, &scenario);
    }
    let rest = Results::new(parted);
    assert_eq!(rest.summary, whole.summary);
    for table in &whole.tables {
        let of = |tables: &[Table]| {
            let mine = tables.iter().filter(|t| t.name == table.name);
            mine.map(|t| t.rows()).collect::<Vec<_>>()
        };
        let rows = [of(&parts), of(&rest.tables)].concat();
        assert_eq!(rows.iter().sum::<usize>(), table.rows(), "{}", table.name);
        let streamed = ["flows", "tasks"].contains(&table.name);
        assert_eq!(rows.len() > 2, streamed, "{}: {rows:?}", table.name);
    }
    let numbers = |tables: &[Table]| -> Vec<u64> {
        let columns = tables.iter().filter_map(|t| t.column("flow"));
        columns.flat_map(|c| if let Column::U64(v) = c { v.clone() } else { vec![] }).collect()
    };
    assert_eq!([numbers(&parts), numbers(&rest.tables)].concat(), numbers(&whole.tables));
}

#[test]
fn runs_with_own_mechanisms_are_not_kept() {
    for (fabric, tcp, is_kept) in [
        ("", "", true),
        ("queue = { kind = 'ramp' }", "", false),
        ("host_queue = { kind = 'behind' }", "", false),
        ("routing = 'turns'", "", false),
        ("", "congestion = 'wrapped'", false),
    ] {
        let scenario = try_read(fabric, tcp).unwrap_or_else(|p| panic!("{p:?}"));
        let said = obstacle(&scenario);
        assert_eq!(said.is_none(), is_kept, "{fabric} {tcp}: {said:?}");
        assert!(said.is_none_or(|said| said.contains("a mechanism of your own")), "{said:?}");
    }
}

#[test]
fn what_is_not_a_checkpoint_of_this_run_is_refused() {
    let scenario = scenario(&shipped("first"), &[]);
    let (bytes, own) = (kept(&scenario, 1_000), identity(&scenario));
    let refused = |bytes: &[u8], of: &Identity| load(bytes, of).err().expect("a refusal");
    assert!(load(&bytes, &own).is_ok());
    assert_eq!(refused(b"", &own), Refused::Foreign);
    assert_eq!(refused(b"PAR1, or whatever else there is in files", &own), Refused::Foreign);
    for cut in [20, 23, 24, 40, 55, bytes.len() / 2, bytes.len() - 1] {
        assert_eq!(refused(&bytes[..cut], &own), Refused::Damaged, "cut off at {cut}");
    }
    let longer = [&bytes[..], b"more"].concat();
    assert_eq!(refused(&longer, &own), Refused::Damaged);
    for place in (24..bytes.len()).step_by(bytes.len() / 50) {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x10;
        assert_eq!(refused(&damaged, &own), Refused::Damaged, "damaged at {place}");
    }
    let mut newer = bytes.clone();
    newer[20] += 1;
    assert_eq!(refused(&newer, &own), Refused::Format(4));
    let build = Identity { build: "another".into(), ..own.clone() };
    assert_eq!(refused(&bytes, &build), Refused::Build("this build".into()));
    let plan = Identity { plan: "another".into(), ..own.clone() };
    assert_eq!(refused(&bytes, &plan), Refused::Plan(own.plan));
}
