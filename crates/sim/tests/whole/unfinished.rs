//! Tests of work that cannot finish, which is reported with its hosts, and of work that the end of
//! the run cut off, which is counted.

use crate::harness::{attempt, context, outcome, scenario};
use eastwest_sim::scenario::read;
use eastwest_sim::world::RunError;

/// A scenario in which every timeout expires before the first answer can arrive.
const HOPELESS: &str = "schema = 1\n[fabric]\nkind = 'star'\nhosts = 4\nhost_rate = '1 Gbit/s'\n\
    host_delay = '10 ms'\n[tcp]\ninitial_rto = '1 ms'\nmin_rto = '1 ms'\nmax_rto = '1 ms'\n\
    max_retries = 3\n[[workload]]\nname = 'bulk'\nkind = 'incast'\nreceiver = 'h2'\n\
    senders = 'h1'\nblock_bytes = '1 MB'\n";

#[test]
fn a_connection_that_is_given_up_is_reported_with_its_hosts() {
    for reference in [false, true] {
        let error = attempt(&scenario(HOPELESS, &[]), reference).err().expect("it cannot finish");
        let RunError::Stuck(why) = &error else { panic!("{error}") };
        assert!(why.contains("from h1 to h2"), "{why}");
        assert!(why.contains("4 timeouts"), "{why}");
        assert!(error.to_string().starts_with("the simulation can no longer finish"), "{error}");
    }
}

#[test]
fn a_run_cut_off_before_that_only_counts_its_unfinished_flows() {
    let done = outcome(HOPELESS, &[("duration", "3 ms"), ("workload.bulk.warm_up", "0 s")]);
    done.assert_conserved();
    assert_eq!(done.number("simulated_s"), 0.003);
    assert_eq!((done.count("flows.count"), done.count("flows.completed")), (1, 0));
    assert_eq!((done.count("flows.partial"), done.count("flows.not_arrived")), (0, 1));
    let all = "schema = 1\nduration = '2 ms'\n[fabric]\nkind = 'star'\nhosts = 5\n\
        host_rate = '1 Gbit/s'\n[[workload]]\nname = 'all'\nkind = 'all-to-all'\nbytes = '100 KB'\n";
    let done = outcome(all, &[]);
    let (count, completed) = (done.count("flows.count"), done.count("flows.completed"));
    assert_eq!(count, 20);
    assert!(completed < count, "{completed} of {count}");
    let [clean, lossy, partial, none] =
        ["whole_without_loss", "whole_with_loss", "partial", "not_arrived"]
            .map(|kind| done.count(&format!("flows.{kind}")));
    assert_eq!((clean + lossy, partial + none), (completed, count - completed));
    assert!(partial > 0, "all began at once, and share");
    assert_eq!(done.u64s("flows", "bytes").len() as u64, completed);
}

#[test]
fn a_goodbye_that_is_given_up_does_not_stop_the_run() {
    // Half an RTT is 10 ms: h0 connects, its data arrives after 30 ms, and both ends close. From 32
    // ms on, other traffic towards h0 loses three quarters of all packets, so that FINs and ACKs
    // are given up after two timeouts. All data has arrived by then.
    let text = "schema = 1\n[fabric]\nkind = 'star'\nhosts = 6\nhost_rate = '1 Gbit/s'\n\
        host_delay = '5 ms'\nqueue = { limit = '1 packets' }\n[tcp]\nmin_rto = '50 ms'\n\
        initial_rto = '50 ms'\nmax_rto = '50 ms'\nmax_retries = 1\n[[workload]]\n\
        name = 'short'\nkind = 'incast'\nreceiver = 'h1'\nsenders = 'h0'\nwarm_up = '0 s'\n\
        persistent = false\nstart_jitter = '0 s'\nblock_bytes = '1 KB'\n[[workload]]\n\
        name = 'flood'\nkind = 'datagrams'\nsources = 'h2..h5'\ndestination = 'h0'\n\
        bytes = 1500\narrivals = 'periodic'\nstart = '32 ms'\nmean_gap = '12.4 us'\n\
        packets = 80000\n";
    let mut given_up = 0;
    for seed in 0..12 {
        let done = outcome(text, &[("seed", &seed.to_string())]);
        done.assert_conserved();
        assert_eq!((done.count("flows.count"), done.count("flows.completed")), (1, 1));
        given_up += u32::from(done.count("tcp.timeouts") >= 2);
    }
    assert!(given_up > 3, "goodbyes were lost in {given_up} of 12 runs: a weak test");
}

#[test]
fn a_caller_can_stop_a_run() {
    let scenario = scenario(&crate::harness::shipped("s1"), &[("workload.bulk.bytes", "50 KB")]);
    let mut looks = 0;
    let stopped = eastwest_sim::run::run(&scenario, false, &mut |progress| {
        looks += 1;
        assert!(progress.now <= progress.until && progress.events > 0);
        looks < 3
    });
    assert!(matches!(stopped, Err(RunError::Interrupted)));
    assert_eq!(looks, 3);
}

#[test]
fn background_alone_goes_on_until_the_time_is_up() {
    let text = "schema = 1\nduration = '10 ms'\n[fabric]\nkind = 'star'\nhosts = 3\n\
        host_rate = '1 Gbit/s'\n[[workload]]\nname = 'ticks'\nkind = 'datagrams'\n\
        background = true\nsources = 'h1'\ndestination = 'h0'\nbytes = 1000\n\
        arrivals = 'periodic'\nmean_gap = '1 ms'\n";
    let done = outcome(text, &[]);
    done.assert_conserved();
    assert_eq!(done.number("simulated_s"), 0.01);
    assert_eq!(done.count("packets.sent"), 10);
    // the run lasts until `duration`, even if all workloads finish earlier
    let done = outcome(text, &[("workload.ticks.packets", "4")]);
    assert_eq!((done.number("simulated_s"), done.count("packets.delivered")), (0.01, 4));
    let refused = read(&text.replace("duration = '10 ms'\n", ""), &context(), &[]);
    let problems = refused.expect_err("nothing would end it");
    assert!(problems[0].to_string().contains("every workload runs in the background"));
}
