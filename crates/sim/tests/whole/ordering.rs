//! Tests of routing and order. A flow on one path is never reordered, so with sufficiently long
//! queues TCP never retransmits. With round robin over unequal paths, packets overtake each other.

use crate::harness::{Outcome, context_with, finish, graph, outcome, scenario_in};

fn all_to_all(fabric: &str, routing: &str) -> String {
    format!(
        "schema = 1\n[fabric]\n{fabric}\nrouting = '{routing}'\nqueue = {{ limit = '1 GB' }}\n\
         host_queue = {{ limit = '1 GB' }}\n[tcp]\nmin_rto = '10 s'\ninitial_rto = '10 s'\n\
         [[workload]]\nname = 'all'\nkind = 'all-to-all'\nbytes = '300 KB'\n"
    )
}

fn resent(done: &Outcome) -> (u64, u64, u64) {
    assert_eq!(done.count("packets.dropped"), 0);
    let tcp = |what: &str| done.count(&format!("tcp.{what}"));
    (tcp("retransmits"), tcp("fast_recoveries"), tcp("timeouts"))
}

#[test]
fn flows_on_one_path_keep_their_order() {
    let fabrics = [
        "kind = 'leaf-spine'\nleaves = 3\nhosts_per_leaf = 3\nspines = 4\nhost_rate = '1 Gbit/s'\n\
         uplink_rate = '400 Mbit/s'\ncables_per_spine = 2",
        "kind = 'fat-tree'\nk = 4\nhost_rate = '1 Gbit/s'\nuplink_rate = '1 Gbit/s'",
        "kind = 'star'\nhosts = 8\nhost_rate = '1 Gbit/s'\nprocessing_jitter = '300 us'",
    ];
    for fabric in fabrics {
        for sack in ["true", "false"] {
            let done = outcome(&all_to_all(fabric, "ecmp"), &[("tcp.sack", sack)]);
            assert_eq!(resent(&done), (0, 0, 0), "{fabric}, SACK {sack}");
        }
    }
}

#[test]
fn packets_in_turn_over_unequal_paths_are_reordered() {
    let cables = [
        ("a", "s", "1 Gbit/s", "1 us"),
        ("b", "t", "1 Gbit/s", "1 us"),
        ("s", "near", "1 Gbit/s", "1 us"),
        ("near", "t", "1 Gbit/s", "1 us"),
        ("s", "far", "1 Gbit/s", "1 us"),
        ("far", "t", "1 Gbit/s", "400 us"),
    ];
    let context =
        context_with("two.toml", &graph(&["a", "b"], &["s", "t", "near", "far"], &cables));
    let run = |routing| {
        let text = all_to_all("kind = 'graph'\nfile = 'two.toml'", routing);
        finish(&scenario_in(&context, &text, &[]))
    };
    assert_eq!(resent(&run("ecmp")), (0, 0, 0));
    let in_turn = run("round-robin");
    let (retransmits, recoveries, timeouts) = resent(&in_turn);
    assert!(retransmits > 0 && recoveries > 0, "{retransmits} {recoveries}");
    assert_eq!(timeouts, 0);
    // each of the two paths carries half of the packets
    let (names, packets) = (in_turn.texts("links", "name"), in_turn.u64s("links", "packets"));
    let on = |name: &str| packets[names.iter().position(|n| *n == name).expect("a link")];
    assert!(on("s->near").abs_diff(on("s->far")) <= 1);
}
