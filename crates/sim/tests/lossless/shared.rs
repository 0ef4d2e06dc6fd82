//! Tests of an MPI program over lossless Ethernet beside TCP connections that fill every NIC and
//! every port: each gets the share that ETS guarantees.

use crate::harness::{Outcome, outcome};

/// Runs eight ranks of the MPI program CG without computation and, if `bulk` is true, endless TCP
/// connections between all hosts.
fn beside(scheduler: &str, bulk: bool) -> Outcome {
    let text = format!(
        "schema = 1\n[fabric]\nkind = 'star'\nhosts = 8\nhost_rate = '10 Gbit/s'\nhost_delay = '1 us'\n\
         {scheduler}\n[fabric.pfc]\n[tcp]\nprofile = 'linux'\n[[class]]\nname = 'cg'\npriority = 3\n\
         [[workload]]\nname = 'cg'\nkind = 'mpi-cg'\nranks = 8\nproblem = 'B'\nouter = 0\ninner = 25\n\
         compute_scale = 0\ntransport = 'ethernet'\n\
         [[workload]]\nname = 'bulk'\nkind = 'all-to-all'\nbackground = true\nbytes = '1 GB'\noff = {}\n",
        !bulk
    );
    let done = outcome(&text, &[]);
    done.assert_conserved();
    assert_eq!(done.count("streams.frames_lost"), 0);
    done
}

fn classes(cg: &str, rest: &str) -> String {
    format!(
        "scheduler = 'classes'\n[[fabric.class]]\npriorities = [3]\n{cg}\n[[fabric.class]]\n\
         priorities = [0, 1, 2, 4, 5, 6, 7]\n{rest}"
    )
}

fn shares(cg: u32) -> String {
    classes(&format!("share = '{cg} %'"), &format!("share = '{} %'", 100 - cg))
}

#[test]
fn shares_bound_what_a_program_and_connections_cost_each_other() {
    let alone = beside("", false).number("mpi.runtime_s");
    let factor = |scheduler: &str| {
        let done = beside(scheduler, true);
        let busy = done.f64s("links", "utilisation");
        let mean = busy.iter().sum::<f64>() / busy.len() as f64;
        assert!(mean > 0.9, "what the program leaves is taken: {mean}");
        done.number("mpi.runtime_s") / alone
    };
    for share in [25, 50, 75] {
        // Traffic that always has packets queued gets exactly its share, at NICs and at ports of
        // the switch. In addition, the first and the last frame of a message wait for their turn at
        // both.
        let least = 100.0 / f64::from(share);
        let found = factor(&shares(share));
        assert!((0.95 * least..1.12 * least).contains(&found), "{found} with {share} %");
    }
    let first = factor(&classes("", ""));
    assert!((1.0..1.08).contains(&first), "{first} before all others");
    // with a single queue, every frame waits for the backlog of the TCP connections at the NIC
    let queue = factor("");
    assert!(queue > 5.0, "{queue} in one queue");
}

/// Returns the share of a NIC's link that a TCP connection gets beside frames that could use the
/// whole link.
fn part_of_a_connection(profile: &str, classes: &str) -> f64 {
    let text = format!(
        "schema = 1\nduration = '100 ms'\n[fabric]\nkind = 'star'\nhosts = 4\n\
         host_rate = '10 Gbit/s'\nhost_delay = '50 us'\n{classes}\n[fabric.pfc]\n[tcp]\n\
         profile = '{profile}'\n[[class]]\nname = 'frames'\npriority = 3\n[[workload]]\n\
         name = 'frames'\nkind = 'ethernet'\nbackground = true\npattern = 'pairs'\nsources = 'h0'\n\
         destinations = 'h2'\nload = 0.97\n[[workload]]\nname = 'bulk'\nkind = 'incast'\n\
         background = true\nreceiver = 'h1'\nsenders = 'h0'\nblock_bytes = '1 GB'\nwarm_up = '0 s'\n"
    );
    let done = outcome(&text, &[]);
    let names = done.texts("links", "name");
    let at = |name: &str| names.iter().position(|n| *n == name).expect("a link");
    let busy = done.f64s("links", "utilisation");
    assert!(busy[at("h0->switch0")] > 0.99, "{busy:?}");
    busy[at("switch0->h1")]
}

#[test]
fn small_queues_leave_a_connection_its_share_of_the_card() {
    // packets of a TCP connection leave the NIC when it is the turn of their class, not after the
    // whole backlog
    for share in [25, 50, 75] {
        let [plain, linux] = ["plain", "linux"].map(|p| part_of_a_connection(p, &shares(share)));
        let left = f64::from(100 - share) / 100.0;
        assert!((plain - left).abs() < 0.03 && (linux - left).abs() < 0.03, "{plain}, {linux}");
    }
    let first = classes("weight = 1", "");
    let [plain, linux] = ["plain", "linux"].map(|p| part_of_a_connection(p, &first));
    assert!(plain > 0.96 && linux > 0.96, "{plain} and {linux} of the card, before all others");
}
