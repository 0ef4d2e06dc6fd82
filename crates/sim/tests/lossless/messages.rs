//! Tests of MPI programs over raw Ethernet on a lossless network: the duration of messages, their
//! order, that a message does not block others, and the error when a frame is lost.

use crate::dcb::goes_on;
use crate::harness::{Outcome, attempt, outcome, scenario_in};
use eastwest_sim::scenario::{Context, Scenario, read};
use eastwest_sim::world::RunError;
use std::path::PathBuf;

/// A trace in a temporary folder, which is deleted when this value is dropped.
struct Trace(PathBuf);

impl Trace {
    /// Writes a trace; `ranks` has the calls of each rank, separated by semicolons.
    fn new(name: &str, ranks: &[&str]) -> Trace {
        let folder =
            std::env::temp_dir().join(format!("eastwest-messages-{name}-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("t")).expect("a folder");
        for (rank, calls) in ranks.iter().enumerate() {
            let lines: String =
                calls.split(';').map(|c| format!("{rank} {}\n", c.trim())).collect();
            std::fs::write(folder.join(format!("t/rank-{rank}.txt")), lines).expect("written");
        }
        Trace(folder)
    }

    fn scenario(&self, fabric: &str, more: &str) -> Scenario {
        let context = Context { base_dir: self.0.clone(), ..Context::default() };
        scenario_in(&context, &text(fabric, &format!("kind = 'mpi'\ntrace = 't'\n{more}")), &[])
    }

    fn run(&self, fabric: &str, more: &str) -> Outcome {
        attempt(&self.scenario(fabric, more), false).unwrap_or_else(|e| panic!("{e}"))
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns a scenario in which all links have 10 Gbit/s and a delay of 1 µs, without framing: a
/// frame of 1500 B takes 1.2 µs.
fn text(fabric: &str, workload: &str) -> String {
    format!(
        "schema = 1\n[fabric]\n{fabric}\nhost_rate = '10 Gbit/s'\nhost_delay = '1 us'\nframing = 0\n\
         processing_jitter = '0 s'\n[fabric.pfc]\n[[class]]\nname = 'app'\npriority = 3\n\
         [[workload]]\nname = 'app'\ntransport = 'ethernet'\nenvelope = 1\n{workload}\n"
    )
}

fn star(hosts: u32) -> String {
    format!("kind = 'star'\nhosts = {hosts}")
}

/// Returns the duration of each MPI message in µs, from the call of the send to the arrival of the
/// last byte.
fn times(run: &Outcome) -> Vec<f64> {
    let rows = run.f64s("mpi_messages", "sent_s").iter().zip(run.f64s("mpi_messages", "arrived_s"));
    rows.map(|(sent, arrived)| (arrived - sent) * 1e6).collect()
}

#[test]
fn a_message_takes_the_time_of_its_frames_and_three_ways_if_it_asks() {
    let trace = Trace::new("times", &["send 1 0 10000", "recv 0 0 10000"]);
    let run = trace.run(&star(2), "");
    // 10,001 B back to back on the first link; at the switch the last, short frame waits for the
    // full frame before it
    let expected = 10_001.0 * 0.0008 + 1.2 + 2.0;
    assert!((times(&run)[0] - expected).abs() < 1e-6, "{:?} for {expected}", times(&run));
    assert_eq!(
        (run.count("streams.frames_sent"), run.count("streams.bytes_received")),
        (7, 10_001)
    );
    // rendezvous: request and answer have the minimum size of an Ethernet frame, and each passes
    // two links
    let asks = trace.run(&star(2), "eager_limit = '9999 B'\n");
    let small = 2.0 * (46.0 * 0.0008 + 1.0);
    assert!((times(&asks)[0] - expected - 2.0 * small).abs() < 1e-6, "{:?}", times(&asks));
    // smaller frames wait less at the switch; the last of 21 frames has 1 B of payload and the
    // minimum size of an Ethernet frame
    let frames = trace.run(&star(2), "frame = 500\n");
    let expected = 10_046.0 * 0.0008 + 0.4 + 2.0;
    assert!((times(&frames)[0] - expected).abs() < 1e-6, "{:?} for {expected}", times(&frames));
}

#[test]
fn long_messages_fill_their_link_and_no_card() {
    let calls = ["send 2 0 20e6", "send 2 0 20e6", "irecv 0 0 20e6; irecv 1 0 20e6; waitall"];
    let run = Trace::new("long", &calls).run(&star(3), "");
    assert_eq!(run.count("packets.dropped"), 0);
    assert!(run.count("dcb.pauses") > 100);
    // 40 MB over one link of 10 Gbit/s take 32 ms, plus the start
    let runtime_us = run.number("mpi.runtime_s") * 1e6;
    assert!((32_000.0..32_020.0).contains(&runtime_us), "{runtime_us}");
    // each host's port holds at most the frames that its NIC accepts, and one frame that is being
    // sent
    let hosts: Vec<u64> = run
        .texts("links", "tier")
        .into_iter()
        .zip(run.u64s("links", "link"))
        .filter(|(tier, _)| *tier == "host-up")
        .map(|(_, link)| link)
        .collect();
    let most = run.u64s("pfc", "link").into_iter().zip(run.u64s("pfc", "output_most_bytes"));
    let most = most.filter(|(link, _)| hosts.contains(link)).map(|(_, bytes)| bytes).max();
    assert!((24_000..=49_500).contains(&most.expect("hosts have sent")), "{most:?}");
}

#[test]
fn partners_that_exchange_long_messages_need_no_longer_than_one_of_them() {
    // the answer to the later request must not wait behind the data that the earlier request has
    // released
    let calls = [
        "irecv 1 0 1e6; isend 1 0 1e6; waitall",
        "irecv 0 0 1e6; compute 4e3; isend 0 0 1e6; waitall",
    ];
    let run = Trace::new("exchange", &calls).run(&star(2), "");
    let runtime_us = run.number("mpi.runtime_s") * 1e6;
    // 800 µs for the data; 4 µs of computing; request and answer wait behind the 38 µs of data that
    // a NIC holds; two links
    assert!((800.0..860.0).contains(&runtime_us), "{runtime_us}");
    assert_eq!(run.count("streams.count"), 4);
}

#[test]
fn small_messages_leave_back_to_back() {
    let send = "isend 1 0 45; ".repeat(3_000);
    let recv = "irecv 0 0 45; ".repeat(3_000);
    let calls = [format!("{send}waitall"), format!("{recv}waitall")];
    let run = Trace::new("small", &[&calls[0], &calls[1]]).run(&star(2), "");
    let expected = 3_001.0 * 46.0 * 0.0008 + 2.0;
    let runtime_us = run.number("mpi.runtime_s") * 1e6;
    assert!((runtime_us - expected).abs() < 1e-3, "{runtime_us} for {expected}");
}

/// A fabric of six hosts whose static routes share one link, with QCN and adaptive routing.
const TWO_GROUPS: &str = "kind = 'two-groups'\nuplink_rate = '10 Gbit/s'\nuplink_delay = '1 us'\n\
    routing = 'adaptive'\nqcn = {}";

#[test]
fn messages_keep_their_order_where_frames_do_not() {
    let pair = |to: u32| format!("send {to} 1 2e6; send {to} 2 3e5; send {to} 3 2e6");
    let take = |from: u32| format!("recv {from} 1 2e6; recv {from} 2 3e5; recv {from} 3 2e6");
    let calls = [pair(3), pair(4), pair(5), take(0), take(1), take(2)];
    let trace = Trace::new("order", &calls.each_ref().map(String::as_str));
    let eager = "eager_limit = '1 GB'\n";
    let scenario = trace.scenario(TWO_GROUPS, eager);
    let run = attempt(&scenario, false).expect("it finishes");
    assert_eq!((run.count("packets.dropped"), run.count("mpi.messages.count")), (0, 9));
    assert!(run.count("streams.frames_reordered") > 0 && run.count("streams.resequenced_most") > 0);
    let arrived = run.f64s("mpi_messages", "arrived_s");
    let (from, tags) = (run.u64s("mpi_messages", "from"), run.i64s("mpi_messages", "tag"));
    for rank in 0..3 {
        let own: Vec<usize> = (0..9).filter(|&i| from[i] == rank).collect();
        assert!(own.windows(2).all(|w| tags[w[0]] < tags[w[1]] && arrived[w[0]] < arrived[w[1]]));
    }
    assert_eq!(run.digest(), attempt(&scenario, true).expect("as before").digest());
    goes_on(&scenario, &run);
}

#[test]
fn a_limited_flow_holds_up_no_other_of_its_host() {
    // Three hosts send to host 3 until QCN limits them. Rank 0 then also sends to rank 4, which
    // gets no other traffic.
    let busy = "send 3 0 6e6";
    let calls = [
        "isend 3 0 6e6; compute 2e6; isend 4 0 1e6; waitall",
        busy,
        busy,
        "irecv 0 0 6e6; irecv 1 0 6e6; irecv 2 0 6e6; waitall",
        "recv 0 0 1e6",
    ];
    let trace = Trace::new("limited", &calls);
    let fabric = format!("{}\nqcn = {{}}", star(5));
    let run = trace.run(&fabric, "eager_limit = '1 GB'\n");
    assert!(run.count("dcb.qcn_messages") > 10);
    let at = run.u64s("mpi_messages", "to").iter().position(|to| *to == 4).expect("it came");
    // alone at line rate the message takes 800 µs, beside a flow that QCN limits to a third of the
    // other link 1,200 µs
    let took = times(&run)[at];
    assert!((800.0..1_500.0).contains(&took), "{took}");
    // with PFC only, the NIC serves both messages in turn, so this message is as slow as the paused
    // one: 2,400 µs
    let paused = trace.run(&star(5), "eager_limit = '1 GB'\n");
    let at = paused.u64s("mpi_messages", "to").iter().position(|to| *to == 4).expect("it came");
    assert!((2_200.0..3_000.0).contains(&times(&paused)[at]), "{:?}", times(&paused));
}

#[test]
fn connections_that_fill_the_card_do_not_stop_a_program() {
    let trace = Trace::new("shared", &["send 1 0 300e3", "recv 0 0 300e3"]);
    let more = "[[workload]]\nname = 'bulk'\nkind = 'flow-list'\nclass = 'app'\nbackground = true\n\
        file = 'flows.csv'\n[tcp]\ninitial_window = 1000\n";
    std::fs::write(trace.0.join("flows.csv"), "start_s,src,dst,bytes\n0,h0,h2,50000000\n")
        .expect("written");
    let run = trace.run(&star(3), more);
    assert_eq!(run.count("mpi.messages.count"), 1);
    assert!(run.number("mpi.runtime_s") < 0.02, "{}", run.number("mpi.runtime_s"));
}

#[test]
fn cg_sends_over_ethernet_what_it_sends_over_tcp() {
    let cg =
        "kind = 'mpi-cg'\nranks = 8\nproblem = 'S'\nouter = 1\ninner = 2\nplacement = 'random'\n";
    let [tcp, ethernet] = ["tcp", "ethernet"]
        .map(|transport| outcome(&text(&star(8), cg), &[("workload.app.transport", transport)]));
    for sum in ["count", "bytes", "over_network"] {
        let path = format!("mpi.messages.{sum}");
        assert_eq!(tcp.count(&path), ethernet.count(&path));
    }
    assert_ne!(tcp.digest(), ethernet.digest());
    ethernet.assert_conserved();
    // raw Ethernet is faster than TCP: it has no handshake, no window and no headers
    let [slow, fast] = [&tcp, &ethernet].map(|run| run.number("mpi.runtime_s"));
    assert!(fast < slow, "{fast} against {slow}");
    assert_eq!(ethernet.u64s("streams", "bytes_sent"), ethernet.u64s("streams", "bytes_received"));
}

#[test]
fn a_lost_frame_ends_the_run_and_names_the_rank_that_waits() {
    let trace = Trace::new("lost", &["send 1 7 5e6; recv 1 8 5", "recv 0 7 5e6; send 0 8 5"]);
    let down = "eager_limit = '1 GB'\n[[fault]]\non = 'h1'\nkind = 'down'\nfrom = '1 ms'\nuntil = '2 ms'\n";
    for more in [down.to_owned(), format!("background = false\n{down}")] {
        let error = attempt(&trace.scenario(&star(2), &more), false).err().expect("it is stuck");
        assert!(matches!(&error, RunError::Stuck(_)), "{error}");
        let said = error.to_string();
        assert!(said.contains("app: a frame from h0 to h1 was lost at"), "{said}");
        assert!(said.contains("(link-down), and raw Ethernet does not retransmit it"), "{said}");
        assert!(
            said.contains("rank 1 waits in recv for a message from rank 0 with tag 7"),
            "{said}"
        );
    }
}

#[test]
fn what_would_lose_frames_is_refused() {
    let cg = text(&star(4), "kind = 'mpi-cg'\nranks = 4\n");
    let wrong = |from: &str, to: &str| {
        let text = cg.replace(from, to);
        assert_ne!(text, cg);
        let problems = read(&text, &Context::default(), &[]).expect_err("it is wrong");
        problems.iter().map(|p| format!("{p}\n")).collect::<String>()
    };
    let said = wrong("[fabric.pfc]\n", "");
    assert!(
        said.contains("workload.0.transport") && said.contains("without [fabric.pfc]"),
        "{said}"
    );
    let said = wrong("priority = 3", "priority = 5");
    assert!(
        said.contains("Class app has priority 5") && said.contains("of fabric.pfc are 3"),
        "{said}"
    );
    let said = wrong("schema = 1\n", "schema = 1\nfidelity = 'flow'\n");
    assert!(said.contains("sends packets without a connection"), "{said}");
    let said = wrong("ranks = 4", "ranks = 4\nframe = 2000");
    assert!(
        said.contains("frame") && said.contains("must be at most the MTU, which is 1500 B"),
        "{said}"
    );
    let said = wrong("transport = 'ethernet'", "transport = 'tcp'\nframe = 500");
    assert!(said.contains("only with transport = \"ethernet\""), "{said}");
}
