//! Test of TCP incast, scenario S2: goodput collapses with a minimum RTO of 200 ms and recovers
//! with 1 ms (Phanishayee et al. 2008; Vasudevan et al. 2009). For this scenario ns-3 gives 120 and
//! 926 Mbit/s, htsim 54 and 902 Mbit/s.

use crate::harness::{outcome, shipped};

fn goodput_mbit(min_rto: &str, seed: &str) -> f64 {
    let done = outcome(&shipped("s2"), &[("tcp.min_rto", min_rto), ("seed", seed)]);
    done.assert_conserved();
    assert_eq!(done.count("rounds.count"), 20);
    let bytes: u64 = done.u64s("rounds", "bytes").iter().sum();
    assert_eq!(bytes, 20 * 32 * 256 * 1024);
    // goodput by its definition, computed from the table of rounds
    let (start, end) = (done.f64s("rounds", "started_s")[0], done.f64s("rounds", "finished_s")[19]);
    let goodput = bytes as f64 * 8.0 / (end - start);
    let told = done.number("rounds.goodput_bps");
    assert!((told / goodput - 1.0).abs() < 1e-9, "{told} and {goodput}");
    goodput / 1e6
}

#[test]
fn goodput_collapses_with_a_long_minimum_rto_and_recovers_with_a_short_one() {
    let (mut collapsed, mut recovered) = (Vec::new(), Vec::new());
    for seed in ["1", "2", "3", "4", "5"] {
        collapsed.push(goodput_mbit("200 ms", seed));
        recovered.push(goodput_mbit("1 ms", seed));
    }
    println!("{collapsed:.1?} Mbit/s with 200 ms, {recovered:.1?} with 1 ms");
    assert!(collapsed.iter().all(|g| (20.0..200.0).contains(g)), "with 200 ms: {collapsed:?}");
    // 1448 of 1500 B are payload, so the link carries at most 965.3 Mbit/s of payload
    assert!(recovered.iter().all(|g| (800.0..965.4).contains(g)), "with 1 ms: {recovered:?}");
    let mean = recovered.iter().sum::<f64>() / recovered.len() as f64;
    assert!(recovered[0] > 850.0 && mean > 850.0, "with 1 ms: {recovered:?}, mean {mean}");
}

#[test]
fn a_buffer_for_all_blocks_does_not_collapse() {
    let deep = outcome(&shipped("s2"), &[("fabric.queue.limit", "40 MB")]);
    assert_eq!((deep.count("packets.dropped"), deep.count("tcp.retransmits")), (0, 0));
    assert!(deep.number("rounds.goodput_bps") > 940e6);
}
