//! Tests of routing methods and of built-in fabrics in whole runs: all flows arrive, digests are
//! equal in every port mode, and the effect of the routing is visible in the links.

use crate::harness::{Outcome, attempt, context_with, finish, outcome, scenario, scenario_in};

const SHAPES: [&str; 6] = [
    "kind = 'two-groups'",
    "kind = 'k-ary-n-tree'\nk = 2\nlevels = 3",
    "kind = 'xgft'\nchildren = [3, 3]\nparents = [1, 2]",
    "kind = 'torus'\nsizes = [3, 4]",
    "kind = 'dcell'\nn = 2\nlevels = 1",
    "kind = 'dumbbell'\nhosts_left = 3\nhosts_right = 2",
];

const ROUTINGS: [&str; 7] = [
    "routing = 'ecmp'",
    "same_hash = true",
    "routing = 'round-robin'",
    "routing = 'modulo'",
    "routing = 'spray'",
    "routing = 'flowlet'\nflowlet_gap = '50 us'\nflowlet_entries = 512",
    "routing = 'adaptive'",
];

fn text(shape: &str, routing: &str) -> String {
    format!(
        "schema = 1\n[fabric]\n{shape}\n{routing}\nhost_rate = '1 Gbit/s'\n\
         uplink_rate = '1 Gbit/s'\n[tcp]\nmin_rto = '10 ms'\ninitial_rto = '20 ms'\n\
         [[workload]]\nname = 'all'\nkind = 'all-to-all'\nbytes = '20 KB'\n"
    )
}

#[test]
fn every_routing_carries_every_shape_and_ports_of_all_kinds_agree() {
    for (number, shape) in SHAPES.iter().enumerate() {
        for routing in [ROUTINGS[number], ROUTINGS[(number + 2) % ROUTINGS.len()]] {
            let scenario = scenario(&text(shape, routing), &[]);
            let run = finish(&scenario);
            assert_eq!(run.count("flows.completed"), run.count("flows.count"), "{shape} {routing}");
            let reference = attempt(&scenario, true).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(run.digest(), reference.digest(), "{shape} {routing}");
        }
    }
}

/// Returns the number of packets that a link carried, by its name.
fn packets(run: &Outcome, link: &str) -> u64 {
    let at = run.texts("links", "name").iter().position(|name| *name == link);
    run.u64s("links", "packets")[at.unwrap_or_else(|| panic!("no link {link}"))]
}

#[test]
fn static_routing_fills_one_link_between_the_groups_and_spray_all_of_them() {
    let into_right = |routing: &str| {
        let run = outcome(&text(SHAPES[0], routing), &[]);
        [0, 1, 2].map(|i| packets(&run, &format!("far{i}->right")))
    };
    let [all, none, no] = into_right("routing = 'modulo'");
    assert!(all > 150 && none + no == 0, "{all} {none} {no}");
    let sprayed = into_right("routing = 'spray'");
    assert!(sprayed.iter().all(|&n| n > all / 5), "{sprayed:?} of {all}");
    let weighted = into_right(
        "routing = 'round-robin'\nweight = [{ from = 'near0', to = 'far1', weight = 9 }, \
         { from = 'near1', to = 'far1', weight = 9 }, { from = 'near2', to = 'far1', weight = 9 }]",
    );
    assert!(weighted[1] > 3 * (weighted[0] + weighted[2]), "{weighted:?}");
}

#[test]
fn routes_of_a_file_are_followed_and_kept_with_the_result() {
    let routes = "from,to,via\nh0,h3,left near0 far1 right\nh1,h4,left near1 far1 right\n";
    let text = text(SHAPES[0], "routing = 'explicit'\nroutes = 'my/routes.csv'");
    let scenario = scenario_in(&context_with("my/routes.csv", routes), &text, &[]);
    assert_eq!(scenario.attached[0].name, "inputs/routes.csv");
    assert!(scenario.resolved().contains("routes = \"inputs/routes.csv\""));
    let run = finish(&scenario);
    assert!(packets(&run, "far1->right") > 28);
}
