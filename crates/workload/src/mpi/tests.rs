//! Tests of MPI programs in trace files, replayed over an ideal network.

use super::check::check;
use super::collective::{Algorithms, AllreduceBy, AlltoallBy, Own};
use super::groups::Groups;
use super::resolve::groups_of;
use super::*;
use crate::ideal::{Ideal, cluster};
use eastwest_engine::random::Stream;
use eastwest_types::{Activity, MpiMessage};
use eastwest_types::{ClassId, HostId, Span, Time};
use std::path::{Path, PathBuf};

/// A temporary folder of one test, deleted at its end.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(name: &str) -> Folder {
        let folder =
            std::env::temp_dir().join(format!("eastwest-mpi-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Folder(folder)
    }

    pub(super) fn file(&self, name: &str, text: &[u8]) -> TraceFile {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("written");
        TraceFile { name: name.to_owned(), path }
    }

    /// Writes one trace file for each rank; `ranks` has the calls of each rank, separated by
    /// semicolons, without the number of the rank.
    fn program(&self, ranks: &[&str]) -> Program {
        let files = ranks.iter().enumerate().map(|(rank, calls)| {
            let lines = calls.split(';').map(|call| format!("{rank} {}\n", call.trim()));
            self.file(&format!("rank-{rank}.txt"), lines.collect::<String>().as_bytes())
        });
        Program::Files(files.collect())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) fn config(program: Program) -> MpiConfig {
    let ranks = program.ranks();
    MpiConfig {
        groups: groups_of(&program).unwrap_or_default(),
        program,
        hosts: (0..ranks).map(HostId).collect(),
        flops_per_s: MpiConfig::FLOPS_PER_S,
        compute_scale: 1.0,
        eager_limit: MpiConfig::EAGER_LIMIT,
        envelope: MpiConfig::ENVELOPE,
        send_overhead: Span::ZERO,
        receive_overhead: Span::ZERO,
        local_latency: MpiConfig::LOCAL_LATENCY,
        local_rate: MpiConfig::LOCAL_RATE,
        local_switch: false,
        chunk_overhead: Span::ZERO,
        frame: None,
        algorithms: Algorithms::default(),
        records: 0,
        class: ClassId(0),
    }
}

fn play(config: MpiConfig) -> Ideal {
    let mut mpi = Mpi::new(config, &cluster(64)).expect("possible");
    Ideal::run(|now, event, out| mpi.handle(now, event, out))
}

fn run(name: &str, ranks: &[&str]) -> Ideal {
    let folder = Folder::new(name);
    let run = play(config(folder.program(ranks)));
    assert_eq!(run.failed, None);
    assert!(run.finished && run.open == 0);
    assert_eq!(run.ranks.len(), ranks.len());
    run
}

fn at(us: f64) -> Time {
    Time::ZERO + Span::from_secs_f64_nearest(us / 1e6)
}

fn finished(run: &Ideal, rank: u32) -> Time {
    run.ranks.iter().find(|r| r.rank == rank).expect("it is through").finished
}

fn only(run: &Ideal) -> &MpiMessage {
    assert_eq!(run.messages.len(), 1);
    &run.messages[0]
}

#[test]
fn an_eager_send_returns_at_once_and_a_long_one_waits_for_its_receive() {
    let eager =
        run("eager", &["init; send 1 0 1000; finalize", "init; compute 2e5; recv 0 0 1000"]);
    assert_eq!(finished(&eager, 0), Time::ZERO);
    assert_eq!(finished(&eager, 1), at(200.0), "it had arrived after 50 µs");
    let m = only(&eager);
    assert_eq!((m.arrived, m.matched, m.received), (at(50.0), at(200.0), at(200.0)));
    assert!(!m.rendezvous && m.network);
    let long = run("long", &["send 1 0 1000000", "compute 2e5; recv 0 0 1000000"]);
    // the receiver's answer is sent at 200 µs, and the data 50 µs later, when the answer has
    // arrived
    let m = only(&long);
    assert_eq!((m.matched, m.arrived, m.received), (at(200.0), at(300.0), at(300.0)));
    assert!(m.rendezvous);
    assert_eq!((finished(&long, 0), finished(&long, 1)), (at(300.0), at(300.0)));
    let spent = long.ranks.iter().find(|r| r.rank == 0).expect("through").spent;
    assert_eq!(spent[Activity::Send as usize], Span::from_us(300));
}

#[test]
fn over_ethernet_messages_are_parcels_with_their_envelopes() {
    let folder = Folder::new("parcels");
    let calls = ["send 1 0 1000; send 1 0 1000000", "recv 0 0 1000; recv 0 0 1000000"];
    let run = play(MpiConfig { frame: Some(1500), ..config(folder.program(&calls)) });
    assert!(run.finished && run.failed.is_none() && run.opened == 0);
    let sent = run.parcels.iter().map(|p| (p.from.0, p.to.0, p.line, p.bytes));
    let envelope = u64::from(MpiConfig::ENVELOPE);
    // parcels of one eager message, then request, answer and data of a rendezvous
    assert_eq!(
        sent.collect::<Vec<_>>(),
        [
            (0, 1, 0, 1000 + envelope),
            (0, 1, 0, envelope),
            (1, 0, 0, envelope),
            (0, 1, 1, 1_000_000 + envelope)
        ]
    );
    assert_eq!(run.messages.len(), 2);
}

#[test]
fn messages_match_in_order_by_source_and_tag() {
    let run = run(
        "order",
        &[
            "send 1 7 10; send 1 8 20; send 1 7 30",
            "recv 0 8 20; recv 0 7 10; recv 0 7 30",
            "isend 3 1 1; isend 3 2 2; waitall",
            "recv -1 -1 0; recv -1 -1 0",
        ],
    );
    let sizes: Vec<u64> = run.messages.iter().filter(|m| m.to == 1).map(|m| m.bytes).collect();
    assert_eq!(sizes, [20, 10, 30]);
    let any: Vec<i64> = run.messages.iter().filter(|m| m.to == 3).map(|m| m.tag).collect();
    assert_eq!(any, [1, 2], "a receive of anything takes what came first");
}

#[test]
fn waits_are_for_the_first_open_request_between_two_ranks() {
    let run = run(
        "wait",
        &[
            "irecv 1 0 8; irecv 1 0 16; wait 1 0 0; compute 1e5; wait 1 0 0; wait 1 0 0",
            "send 0 0 8; compute 1e6; send 0 0 16",
            "irecv 3 5 1; test 3 2 5; compute 1e5; test 3 2 5; wait 3 2 5",
            "send 2 5 1",
        ],
    );
    assert_eq!(finished(&run, 0), at(1050.0), "the third wait has nothing to wait for");
    assert_eq!(finished(&run, 2), at(100.0));
}

#[test]
fn ranks_of_one_host_pass_messages_through_memory_in_their_order() {
    let folder = Folder::new("memory");
    let program = folder.program(&[
        "isend 0 3 5000; irecv 0 3 5000; waitall; send 1 0 50000; send 1 0 1",
        "recv 0 0 50000; recv 0 0 1",
    ]);
    let run = play(MpiConfig { hosts: vec![HostId(4); 2], ..config(program) });
    assert_eq!((run.failed, run.opened), (None, 0));
    let sizes: Vec<u64> = run.messages.iter().map(|m| m.bytes).collect();
    assert_eq!(sizes, [5000, 50000, 1], "the short one does not overtake");
    assert_eq!(run.messages[0].received, at(0.5 + 1.0), "5 kB at 5 GB/s");
}

#[test]
fn collectives_take_the_rounds_of_their_algorithms() {
    let calls = "bcast 8; barrier; allreduce 8 1e6; reduce 8 0; alltoall 8 8; allgather 8 8";
    let run = run("collectives", &[calls; 8]);
    // 3 rounds for each call, but 7 for alltoall and allgather, and a millisecond of computation
    // for allreduce; the leaves of the reduce finish two rounds before its root
    assert_eq!(run.ended, at(f64::from(3 * 4 + 7 * 2 - 2) * 50.0 + 1000.0));
    let rank = run.ranks[0];
    assert_eq!((rank.collectives, rank.sent), (6, (0, 0)));
    let sent: u64 = run.ranks.iter().map(|r| r.sent_in_collectives.0).sum();
    assert_eq!(sent, run.messages.len() as u64);
    assert_eq!(sent, 7 + 24 + 24 + 7 + 56 + 56);
    assert!(run.peak <= 28, "a connection for each pair");
}

#[test]
fn messages_of_collectives_never_meet_receives_of_the_program() {
    run("apart", &["irecv 1 0 4; bcast 4; waitall", "bcast 4; send 0 0 4"]);
    run("any", &["irecv -1 -1 0; reduce 4 0; waitall", "reduce 4 0; send 0 0 4"]);
}

fn fails(name: &str, ranks: &[&str]) -> String {
    let folder = Folder::new(name);
    let run = play(config(folder.program(ranks)));
    assert!(!run.finished);
    run.failed.expect("it cannot go on")
}

#[test]
fn deadlocks_are_told_with_ranks_and_calls() {
    let why = fails("cycle", &["send 1 3 1000000; recv 1 4 1", "send 0 4 1000000; recv 0 3 1"]);
    assert!(why.starts_with("deadlock: 2 of 2 ranks wait"), "{why}");
    assert!(
        why.contains(
            "rank 0 waits in send for rank 1 to receive the message of 1000000 B with tag 3"
        ),
        "{why}"
    );
    let why = fails("tag", &["recv 1 5 1", "send 0 6 1", "compute 1e3"]);
    assert!(why.contains("1 of 3") && why.contains("a message from rank 1 with tag 5"), "{why}");
    let why = fails("barrier", &["barrier", "finalize"]);
    assert!(why.contains("rank 0 waits in barrier for a message from rank 1"), "{why}");
}

#[test]
fn programs_that_contradict_themselves_are_refused() {
    let why = fails("unreceived", &["send 1 0 9; send 1 1 9", "recv 0 0 9"]);
    assert!(why.contains("1 messages were never received: send of 9 B from rank 0 to"), "{why}");
    let why = fails("short", &["send 1 2 9", "recv 0 2 8"]);
    assert!(why.contains("at most 8 B") && why.contains("send has 9 B"), "{why}");
    let why = fails("different", &["barrier; bcast 4 0", "barrier; bcast 4 1"]);
    assert!(why.contains("that of rank 1 is bcast with root 1"), "{why}");
    let why = fails("unknown", &["compute 5; sned 1", "finalize"]);
    assert!(
        why.starts_with("rank-0.txt:2: found the call \"sned\", expected one of init"),
        "{why}"
    );
}

#[test]
fn a_check_names_all_files_with_trouble_and_weighs_sends_and_receives() {
    let folder = Folder::new("check");
    let wrong = check(&folder.program(&["send 1 0 1\n0 x", "init\n0 init", "init"]))
        .expect_err("two files are wrong");
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(wrong[0].starts_with("rank-0.txt:2: found the call \"x\""), "{wrong:?}");
    assert!(wrong[1].contains("rank-1.txt:2") && wrong[1].contains("lines of rank 1"), "{wrong:?}");
    let wrong = check(&folder.program(&["send 1 7 1; send 1 7 1", "recv 0 7 1; recv 0 8 1"]))
        .expect_err("one too many, one too few");
    assert!(
        wrong[0].contains("messages from rank 0 to rank 1 with tag 7: there are 1 more sends"),
        "{wrong:?}"
    );
    assert!(wrong[1].contains("tag 8: there are 1 more receives than sends"), "{wrong:?}");
    let fine = check(&folder.program(&["send 1 7 3; barrier", "recv -1 7 1; barrier"]));
    let expected = check::Summary {
        records: 4,
        messages: 1,
        bytes: 3,
        collectives: 2,
        groups: Groups::default(),
    };
    assert_eq!(fine, Ok(expected));
}

#[test]
fn one_file_may_hold_all_ranks() {
    let folder = Folder::new("merged");
    let file = folder.file("all.txt", b"0 init\n1 init\n\n1 recv 0 0 5\n0 send 1 0 5\n");
    let run = play(config(Program::Merged(file, 2)));
    assert_eq!((run.failed, run.messages.len()), (None, 1));
}

#[test]
fn a_replay_kept_anywhere_goes_on_as_if_nothing_had_been() {
    let folder = Folder::new("kept");
    let long = "compute 1e4; isend 1 0 100000; irecv 1 0 100000; waitall; allreduce 2000 5e3; "
        .repeat(500);
    let other = long.replace("isend 1", "isend 0").replace("irecv 1", "irecv 0");
    let program = folder.program(&[long.trim_end_matches("; "), other.trim_end_matches("; ")]);
    let whole = play(config(program.clone()));
    let mut mpi = Mpi::new(config(program), &cluster(2)).expect("possible");
    let mut events = 0;
    let kept = Ideal::run(|now, event, out| {
        mpi.handle(now, event, out);
        events += 1;
        if events % 300 == 0 {
            let bytes = postcard::to_allocvec(&mpi).expect("written");
            assert!(bytes.len() < 4000, "{} bytes: no part of the trace is kept", bytes.len());
            mpi = postcard::from_bytes(&bytes).expect("read");
        }
    });
    assert!(events > 4_000 && whole.failed.is_none());
    assert_eq!((kept.ended, &kept.messages), (whole.ended, &whole.messages));
    assert_eq!(kept.states, whole.states);
}

#[test]
fn damaged_traces_give_a_replay_or_a_reason() {
    const GOOD: &str = "init;compute 10;irecv 1 1 700 0;send 1 1 700 0;wait 1 0 1;bcast 4 0 1;\
                        alltoallv 9 1 2 9 1 2;allgatherv 2 2 1 0;reducescatter 5 5 1e2;test 1 0 1;\
                        gather 3 3 0 0 0;waitall;barrier;finalize";
    let mut random = Stream::new(1, "fuzz/mpi");
    let folder = Folder::new("fuzz");
    let mut outcomes = [0; 3];
    for _ in 0..1500 {
        let lines = |rank: u32, other: &str| {
            let calls = GOOD.replace("1 1 700", &format!("{other} 1 700"));
            let calls = calls.replace("1 0 1;", &format!("{other} {rank} 1;"));
            calls.split(';').map(|call| format!("{rank} {call}\n")).collect::<String>()
        };
        let mut texts = [lines(0, "1").into_bytes(), lines(1, "0").into_bytes()];
        let text = &mut texts[random.below(2) as usize];
        for _ in 0..random.below(3) {
            let place = random.below(text.len() as u64) as usize;
            match random.below(5) {
                0 => text[place] = random.below(256) as u8,
                1 => text.truncate(place + 1),
                2 => text.insert(place, b" \n\0-9e"[random.below(6) as usize]),
                3 => {
                    let from = random.below(text.len() as u64) as usize;
                    text.copy_within(from..from + 1, place);
                }
                _ => drop(text.remove(place)),
            }
            text.push(b'\n');
        }
        let files = [folder.file("0", &texts[0]), folder.file("1", &texts[1])];
        let program = Program::Files(files.to_vec());
        let checked = check(&program);
        let run = play(config(program));
        match (checked, run.failed) {
            (Ok(_), None) => outcomes[0] += 1,
            (Ok(_), Some(why)) => {
                outcomes[1] += 1;
                assert!(!why.contains("expected"), "a check finds what cannot be read: {why}");
            }
            (Err(_), why) => {
                outcomes[2] += 1;
                assert!(why.is_none_or(|why| !why.contains('\0')), "hostile text is escaped");
            }
        }
    }
    assert!(outcomes.iter().all(|n| *n > 20), "{outcomes:?}");
}

#[test]
fn lines_without_end_are_refused() {
    let folder = Folder::new("endless");
    let mut text = b"0 compute ".to_vec();
    text.resize(3 << 20, b'1');
    let program = Program::Files(vec![folder.file("0", &text)]);
    let wrong = check(&program).expect_err("three million digits");
    assert!(wrong[0].starts_with("0:1: the line has more than 1048576 bytes"), "{wrong:?}");
    let gone = TraceFile { name: "gone".into(), path: Path::new("/nonexistent").into() };
    let wrong = check(&Program::Files(vec![gone])).expect_err("no file");
    assert!(wrong[0].starts_with("gone: the file cannot be read from line 1"), "{wrong:?}");
}

#[test]
fn collectives_of_groups_send_messages_only_among_their_ranks() {
    // rows of two ranks and columns of three, as a grid of 3 × 2 ranks splits them
    let calls: Vec<String> = (0..6)
        .map(|rank| {
            let (row, column) = (rank / 2, rank % 2);
            format!(
                "comm_split 1 {row} {column}; comm_split 2 {column} {row}; allreduce 8 0 in 1; \
                 bcast 4 2 in 2; comm_dup 3 in 2; barrier in 3; send {} 5 9 in 1; recv {} 5 9 in 1",
                1 - column,
                1 - column
            )
        })
        .collect();
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    let run = run("grid", &calls);
    let pairs = |call: &str| {
        let mut pairs: Vec<(u32, u32)> =
            run.messages.iter().filter(|m| m.call == call).map(|m| (m.from, m.to)).collect();
        pairs.sort_unstable();
        pairs
    };
    assert_eq!(pairs("allreduce"), [(0, 1), (1, 0), (2, 3), (3, 2), (4, 5), (5, 4)]);
    assert_eq!(pairs("send"), pairs("allreduce"), "partners are numbered in their group");
    // the root of a column is its third rank: 4 and 5
    let from: Vec<u32> = pairs("bcast").iter().map(|pair| pair.0).collect();
    assert!(from.contains(&4) && from.contains(&5), "{from:?}");
    assert!(pairs("barrier").iter().all(|(from, to)| from % 2 == to % 2));
    assert_eq!(pairs("comm_split").len(), 2 * 6 * 5, "a ring of six ranks, twice");
    assert_eq!(run.ranks[0].collectives, 6);
}

#[test]
fn a_wait_in_a_group_names_ranks_of_the_group() {
    // group 1 has the ranks 2 and 1: rank 1 is number 1 of the group, rank 2 is number 0
    let receives = "irecv 0 5 8 6; irecv 0 5 8 6 in 1";
    let first = |wait: &str| {
        let rank_1 = format!("group 1 2 1; {receives}; {wait}; compute 1e5; waitall");
        let run = run(
            "wait-in",
            &["send 1 5 8 6", &rank_1, "group 1 2 1; compute 5e5; send 1 5 8 6 in 1"],
        );
        let computed = run.states.iter().find(|s| s.rank == 1 && s.call == "compute");
        computed.expect("it computes").began
    };
    assert_eq!(first("wait 0 1 5"), at(50.0), "the message of rank 0");
    assert_eq!(first("wait 0 1 5 in 1"), at(550.0), "the message of rank 2, number 0 of the group");
    assert_eq!(first("wait 2 1 5"), at(550.0), "without a group, ranks are those of the program");
}

#[test]
fn groups_that_contradict_each_other_are_refused() {
    let folder = Folder::new("groups");
    let wrong = |ranks: &[&str]| match check(&folder.program(ranks)) {
        Ok(_) => panic!("accepted: {ranks:?}"),
        Err(wrong) => wrong.join("; "),
    };
    let why = wrong(&["comm_split 1 0 0", "barrier"]);
    assert!(why.contains("rank 1 takes part in fewer comm_split"), "{why}");
    let why = wrong(&["comm_split 1 0 0", "comm_dup 1"]);
    assert!(why.contains("rank 0 calls comm_split where rank 1 calls comm_dup"), "{why}");
    let why = wrong(&["group 1 0 1; comm_dup 1 in 1", "group 1 0 1; comm_dup 2 in 1"]);
    assert!(why.contains("rank 0 defines the group 1 twice"), "{why}");
    let why = wrong(&["group 1 1", "barrier"]);
    assert!(why.contains("rank 0 defines the group 1, which must have this rank"), "{why}");
    let why = wrong(&["barrier in 1; group 1 0", "finalize"]);
    assert!(
        why.contains("rank-0.txt:1: found the group 1, expected the number of a group"),
        "{why}"
    );
    let why = wrong(&["comm_dup 2 in 1", "finalize"]);
    assert!(why.contains("rank 0 defines the group 2 from the group 1"), "{why}");
    // a rank with a negative colour has no group
    let why = wrong(&["comm_split 1 -1 0; barrier in 1", "comm_split 1 0 0"]);
    assert!(why.contains("found the group 1"), "{why}");
    let why = fails("kinds", &["group 1 0 1; barrier in 1", "group 1 0 1; bcast 1 in 1"]);
    assert!(why.contains("in a group of 2 ranks is"), "{why}");
}

#[test]
fn collectives_in_the_background_overlap_with_computation_until_a_waitall() {
    let calls = "iallreduce 8 0; compute 1e5; waitall; compute 1e5";
    let both = run("background", &[calls; 4]);
    // two rounds of 50 µs during 100 µs of computation
    assert_eq!(both.ended, at(200.0));
    // a wait for one of two calls: the longer one, of one round of 100 kB more, goes on
    let calls =
        "iallreduce 8 0; iallgather 1e6 0; compute 1e4; wait iallreduce; compute 1e4; waitall";
    let one = run("wait-for-one", &[calls; 2]);
    let computed: Vec<Time> = one.states.iter().filter(|s| s.rank == 0).map(|s| s.began).collect();
    assert!(computed.contains(&at(50.0)), "{computed:?}");
    assert!(one.ended > at(100.0));
    let why = fails("left", &["ibarrier; waitall", "compute 1"]);
    assert!(why.contains("and in waitall for its non-blocking call barrier"), "{why}");
}

#[test]
fn nodes_of_a_graph_start_when_their_dependencies_have_ended() {
    // 0: 100 µs on stream 0; 1: a send after it, while 2 computes 300 µs on stream 0;
    // 3: 50 µs on stream 1 from the start of node 2; 4: after all
    let graph = "graph; compute 1e5 after; send 1 0 1000 after 0; compute 3e5 after 0; \
                 compute 5e4 after ~2 on 1; compute 1e4 after 1 2 3";
    let run = run("graph", &[graph, "recv 0 0 1000"]);
    assert_eq!(only(&run).sent, at(100.0));
    assert_eq!(finished(&run, 1), at(150.0));
    assert_eq!(finished(&run, 0), at(410.0));
    let computed: Vec<(Time, Time)> = run.states.iter().map(|s| (s.began, s.ended)).collect();
    assert!(computed.contains(&(at(100.0), at(150.0))), "{computed:?}");
}

#[test]
fn a_stream_executes_one_node_at_a_time_by_priority() {
    let graph = "graph; compute 1e5 after; compute 1e5 after; compute 2e5 after priority 3; \
                 compute 1e5 after on 1; send 1 0 1 6 after 2; send 1 1 1 6 after 1; \
                 send 1 3 1 6 after 3";
    let run = run("streams", &[graph, "irecv 0 0 1 6; irecv 0 1 1 6; irecv 0 3 1 6; waitall"]);
    let sent = |tag| run.messages.iter().find(|m| m.tag == tag).expect("sent").sent;
    assert_eq!(sent(0), at(300.0), "the priority decides after the first node");
    assert_eq!(sent(1), at(400.0));
    assert_eq!(sent(3), at(100.0), "another stream");
}

#[test]
fn nodes_wait_for_nodes_of_other_ranks() {
    let run = run(
        "across",
        &[
            "graph; compute 1e5 after 1/1; compute 1e4 after ~1/0",
            "graph; compute 2e5 after; compute 1e5 after 0",
        ],
    );
    assert_eq!(finished(&run, 1), at(300.0));
    assert_eq!(finished(&run, 0), at(400.0));
    let folder = Folder::new("missing");
    let wrong =
        check(&folder.program(&["graph; compute 1 after 1/2", "compute 1"])).expect_err("2");
    assert!(wrong[0].contains("rank 0 waits for node 2 of rank 1, which does not exist"));
}

#[test]
fn a_deadlock_names_its_cycle() {
    let why = fails(
        "ring",
        &["recv 1 0 1; send 2 0 1", "recv 2 0 1; send 0 0 1", "recv 0 0 1; send 1 0 1"],
    );
    assert!(
        why.ends_with("the cycle of waiting ranks is rank 0 → rank 1 → rank 2 → rank 0"),
        "{why}"
    );
    let why = fails("chain", &["recv 1 0 1", "recv 2 0 1", "compute 1"]);
    assert!(!why.contains("cycle"), "{why}");
    let why = fails("nodes", &["graph; compute 1 after 1/0", "graph; compute 1 after 0/0"]);
    assert!(why.contains("rank 0 → rank 1 → rank 0"), "{why}");
}

#[test]
fn messages_take_processor_time_at_both_ends() {
    let folder = Folder::new("overhead");
    let graph = "graph; send 1 0 1000 after; send 1 1 1000 after; compute 1e4 after 1";
    let other = "graph; recv 0 0 1000 after; recv 0 1 1000 after; compute 1e5 after";
    let overheads = |program| MpiConfig {
        send_overhead: Span::from_us(5),
        receive_overhead: Span::from_us(7),
        ..config(program)
    };
    let run = play(overheads(folder.program(&[graph, other])));
    assert_eq!(run.failed, None);
    let sent: Vec<Time> = run.messages.iter().map(|m| m.sent).collect();
    assert_eq!(sent, [at(5.0), at(10.0)], "one after the other");
    assert_eq!(finished(&run, 0), at(20.0));
    assert_eq!(finished(&run, 1), at(114.0), "the processor computes for 100 µs first");
    let sequence = play(overheads(folder.program(&["send 1 0 1000", "recv 0 0 1000"])));
    assert_eq!((finished(&sequence, 0), finished(&sequence, 1)), (at(5.0), at(62.0)));
    let spent = |rank: usize, activity| sequence.ranks[rank].spent[activity as usize];
    assert_eq!(spent(0, Activity::Send), Span::from_us(5));
}

fn play_with(name: &str, ranks: &[&str], change: impl Fn(&mut MpiConfig)) -> Ideal {
    let folder = Folder::new(name);
    let mut config = config(folder.program(ranks));
    change(&mut config);
    play(config)
}

#[test]
fn channels_have_connections_of_their_own_and_chunks_are_lanes() {
    let by = Algorithms {
        allreduce: AllreduceBy::Ring,
        channels: 2,
        chunk: Some(1000),
        ..Algorithms::default()
    };
    let run = |ranks: &[&str], eager_limit| {
        play_with("lanes", ranks, |config| {
            (config.algorithms, config.eager_limit) = (by.clone(), eager_limit);
        })
    };
    for eager_limit in [65_536, 100] {
        let run = run(&["allreduce 16000 0"; 4], eager_limit);
        assert_eq!(run.failed, None);
        // parts of 4,000 B: 2 chunks in each of 2 channels, 6 steps
        assert_eq!(run.messages.len(), 4 * 4 * 6);
        assert!(run.messages.iter().all(|m| m.bytes == 1000 && (0..4).contains(&m.tag)));
        assert_eq!(run.opened, 2 * 4, "one connection for each neighbour and channel");
        let hops = if eager_limit == 100 { 3.0 } else { 1.0 };
        assert_eq!(run.ended, at(6.0 * 50.0 * hops), "lanes do not wait for each other");
    }
    let why = run(&["allreduce 16000 0", "allreduce 1000 0"], 65_536).failed.expect("sizes");
    assert!(why.contains("is allreduce with another size than that of rank 0"), "{why}");
}

#[test]
fn algorithms_in_two_levels_use_the_hosts_of_a_group() {
    let mut run = play_with("levels", &["allreduce 1000 0; alltoall 10 10"; 4], |config| {
        config.hosts = [0, 0, 1, 1].map(HostId).to_vec();
        config.algorithms.allreduce = AllreduceBy::TwoLevel;
        config.algorithms.alltoall = AlltoallBy::TwoLevel;
    });
    assert_eq!(run.failed, None);
    let network: u64 = run.messages.iter().filter(|m| m.network).map(|m| m.bytes).sum();
    // both hosts send 500 B twice for each of two parts, and 2 times 20 B
    assert_eq!(network, 2 * 1000 + 4 * 20);
    run.messages.retain(|m| m.network);
    assert!(run.messages.iter().all(|m| m.from % 2 == m.to % 2), "equal numbers on their hosts");
    // the ranks 1 and 2 have a host each
    let pair = "group 1 1 2; allreduce 1000 0 in 1";
    let run = play_with("pair", &["finalize", pair, pair, "finalize"], |config| {
        config.hosts = [0, 0, 1, 1].map(HostId).to_vec();
        config.algorithms.allreduce = AllreduceBy::TwoLevel;
    });
    assert_eq!(run.failed, None);
    let sums = run.messages.iter().filter(|m| m.call == "allreduce");
    assert_eq!(sums.map(|m| m.bytes).sum::<u64>(), 2 * 1000, "halves, summed and gathered");
}

#[test]
fn own_algorithms_replace_the_named_ones_for_their_number_of_ranks() {
    let file = "allreduce 3\n0 0 from 1 2 to 1 1/2 to 2 1/2\n1 0 from 0 to 0 1\n2 0 from 0 to 0 1";
    let own = Own::read(file).expect("correct");
    let calls = "allreduce 1000 0; bcast 8";
    let run = play_with("own", &[calls; 3], |config| config.algorithms.own = own.clone());
    assert_eq!(run.failed, None);
    let sums: Vec<&MpiMessage> = run.messages.iter().filter(|m| m.call == "allreduce").collect();
    let bytes: u64 = sums.iter().map(|m| m.bytes).sum();
    assert_eq!((sums.len(), bytes), (4, 3000));
    let run = play_with("named", &[calls; 2], |config| config.algorithms.own = own.clone());
    let bytes: u64 = run.messages.iter().map(|m| m.bytes).sum();
    assert_eq!(bytes, 2 * 1000 + 8, "recursive doubling of two ranks");
}

#[test]
fn a_waitall_in_a_graph_separates_the_nodes_before_it_from_those_after_it() {
    let graph = "graph; compute 1e5 after; compute 3e5 after on 1; waitall; compute 1e5 after; \
                 send 1 0 1 6 after ~3";
    let run = run("fence", &[graph, "recv 0 0 1 6"]);
    assert_eq!(only(&run).sent, at(300.0));
    assert_eq!(finished(&run, 0), at(400.0));
}

#[test]
fn an_iteration_has_computation_and_exposed_communication() {
    // the allreduce of 50 µs starts at 100 µs, beside a computation of 20 µs; the second iteration
    // only computes
    let graph = "graph; compute 1e5 after; iallreduce 8 0 after 0 on 1; compute 2e4 after 0; \
                 waitall; compute 1e5 after";
    let run = run("iterations", &[graph; 2]);
    let rows: Vec<_> = run.iterations.iter().filter(|row| row.rank == 1).collect();
    let us = |span: Span| (span.as_secs_f64() * 1e6).round();
    let shown = rows
        .iter()
        .map(|row| (row.number, row.began, row.ended, us(row.computed), us(row.exposed)));
    let expected = [(0, at(0.0), at(150.0), 120.0, 30.0), (1, at(150.0), at(250.0), 100.0, 0.0)];
    assert_eq!(shown.collect::<Vec<_>>(), expected);
    let [call] = run.collectives[..] else { panic!("one call: {:?}", run.collectives) };
    // 8 bytes, multiplied by 2 (n - 1) / n for two ranks
    assert_eq!((call.group, call.number, call.ranks, call.bus_bytes), (0, 1, 2, Some(8)));
    assert_eq!((call.entered, call.complete, call.ended), (at(100.0), at(100.0), at(150.0)));
}

#[test]
fn bus_bandwidth_counts_the_time_after_the_last_rank_has_entered() {
    let run = run("late", &["bcast 1000 0 6", "compute 2e5; bcast 1000 0 6"]);
    let [call] = run.collectives[..] else { panic!("one call: {:?}", run.collectives) };
    assert_eq!((call.entered, call.complete, call.last), (at(0.0), at(200.0), 1));
    assert_eq!(call.bus_bytes, Some(1000));
}

#[test]
fn messages_wait_for_the_ports_of_a_switch_inside_their_host() {
    // four ranks of one host send 10 kB to each other: 1 µs each at 10 GB/s, latency 2 µs
    let calls = "alltoall 1250 1250 0 0";
    let folder = Folder::new("inside");
    let of = |local_switch| {
        let config = config(folder.program(&[calls; 4]));
        let algorithms = Algorithms { alltoall: AlltoallBy::Linear, ..config.algorithms };
        let inside = MpiConfig {
            hosts: vec![HostId(0); 4],
            local_latency: Span::from_us(2),
            local_rate: eastwest_types::Rate::gbit(80),
            local_switch,
            algorithms,
            ..config
        };
        play(inside).ended
    };
    assert_eq!(of(false), at(3.0), "all pairs at once");
    // all others send to rank 3 as the third of their messages, and there the three wait for each
    // other: 2 µs until they begin, 2 µs latency, 3 µs
    assert_eq!(of(true), at(7.0));
}

#[test]
fn a_proxy_takes_time_for_each_message_between_hosts() {
    let folder = Folder::new("proxy");
    let of = |call: &str, overhead| {
        let calls = format!("{call}; finalize");
        let config = config(folder.program(&[&calls, &calls, &calls, &calls]));
        let algorithms = Algorithms { alltoall: AlltoallBy::Linear, ..config.algorithms };
        let chunk_overhead = Span::from_us(overhead);
        play(MpiConfig { chunk_overhead, algorithms, ..config }).ended
    };
    // two rounds of 50 µs; in each, a rank sends one message and receives one
    assert_eq!(of("allreduce 8 0", 0), at(100.0));
    assert_eq!(of("allreduce 8 0", 10), at(140.0));
    // three messages leave at 10, 20, 30 µs, and those of the others are taken in at 70 to 90 µs
    assert_eq!(of("alltoall 8 8", 10), at(90.0));
}

#[test]
fn a_pipeline_without_delay_takes_as_long_as_its_schedule() {
    use super::training::TrainingConfig;
    // On a network without transmission times (50 µs for each message, 200 µs with rendezvous), a
    // pipeline of p stages and m micro-batches takes m + p - 1 forward and backward passes
    // (Narayanan et al. 2021, section 2.2.1).
    let training = |pipeline, micro_batches| TrainingConfig {
        data: 1,
        tensor: 1,
        pipeline,
        layers: 4,
        hidden: 1000,
        sequence: 1000,
        micro_batch: 1,
        micro_batches,
        iterations: 1,
        activation_bytes: 2,
        gradient_bytes: 2,
        bucket: None,
        measured: Vec::new(),
    };
    for (stages, batches) in [(1, 4), (2, 4), (4, 8), (4, 2)] {
        let of = training(stages, batches);
        let pass = 3.0 * of.flops(0).0 * f64::from(of.layers / stages) / 1e9;
        let program = Program::Training(of.clone());
        let run = play(MpiConfig { groups: of.groups(), ..config(program) });
        assert_eq!(run.failed, None);
        let ideal = pass * f64::from(batches + stages - 1);
        let ended = run.ended.as_secs_f64();
        // at most 150 µs for each of the messages of the first and the last micro-batch
        assert!((ideal..ideal + 0.01).contains(&ended), "{stages} × {batches}: {ended} {ideal}");
    }
}
