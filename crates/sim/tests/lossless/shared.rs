//! A program over lossless Ethernet beside TCP connections that fill every card and every port: what
//! shares of ETS promise each of them.

use crate::harness::{Outcome, outcome};

/// Eight ranks of CG that only communicate, and connections between all hosts that never end.
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
        // whoever always waits gets its share at cards and at ports of the switch, no less and no more;
        // small messages wait for a frame that is being sent besides
        let least = 100.0 / f64::from(share);
        let found = factor(&shares(share));
        assert!((0.95 * least..1.08 * least).contains(&found), "{found} with {share} %");
    }
    let first = factor(&classes("", ""));
    assert!((1.0..1.08).contains(&first), "{first} before all others");
    // in one queue every frame waits for what connections keep at the card
    let queue = factor("");
    assert!(queue > 5.0, "{queue} in one queue");
}
