//! Tests of fairness: over many seeds, equal senders share a bottleneck equally, and packets that
//! arrive at the same picosecond are lost equally often.

use crate::harness::{context_with, finish, graph, outcome, scenario_in};

#[test]
fn equal_flows_share_a_bottleneck_over_seeds() {
    const SENDERS: usize = 8;
    let text = "schema = 1\nduration = '400 ms'\n[fabric]\nkind = 'star'\nhosts = 9\n\
        host_rate = '1 Gbit/s'\nqueue = { limit = '100 packets' }\n[[workload]]\nname = 'bulk'\n\
        kind = 'incast'\nreceiver = 'h8'\nrounds = 1000\nblock_bytes = '64 KB'\nwarm_up = '1 ms'\n";
    // counts, for each sender, the rounds in which its block was the last one to arrive
    let (mut last, mut rounds, mut retransmits) = ([0u32; SENDERS], 0, [0u64; SENDERS]);
    for seed in 1..=8 {
        let done = outcome(text, &[("seed", &seed.to_string()), ("tcp.min_rto", "5 ms")]);
        let senders = done.u64s("flows", "src");
        for round in senders.chunks_exact(SENDERS) {
            last[round[SENDERS - 1] as usize] += 1;
            rounds += 1;
        }
        for (&src, n) in senders.iter().zip(done.u64s("flows", "retransmits")) {
            retransmits[src as usize] += n;
        }
    }
    // binomial distribution with p = 1/8: mean rounds/8, standard deviation √(rounds · 7/64)
    let mean = f64::from(rounds) / 8.0;
    let deviation = (f64::from(rounds) * 7.0 / 64.0).sqrt();
    assert!(rounds > 400, "{rounds} rounds");
    for n in last {
        assert!((f64::from(n) - mean).abs() < 4.0 * deviation, "last in {last:?} of {rounds}");
    }
    let most = *retransmits.iter().max().expect("eight senders") as f64;
    let least = *retransmits.iter().min().expect("eight senders") as f64;
    assert!(least > 100.0 && most / least < 1.35, "retransmissions {retransmits:?}");
}

#[test]
fn long_flows_get_equal_throughput_over_seeds() {
    let text = "schema = 1\n[fabric]\nkind = 'star'\nhosts = 9\nhost_rate = '1 Gbit/s'\n\
        queue = { limit = '60 packets' }\n[tcp]\nmin_rto = '5 ms'\n[[workload]]\nname = 'bulk'\n\
        kind = 'incast'\nreceiver = 'h8'\nblock_bytes = '4 MB'\nwarm_up = '1 ms'\n";
    let seeds = 12;
    let mut rate = [0.0; 8];
    for seed in 1..=seeds {
        let done = outcome(text, &[("seed", &seed.to_string())]);
        let rates: Vec<f64> = done.f64s("flows", "fct_us").iter().map(|t| 1.0 / t).collect();
        let mean = rates.iter().sum::<f64>() / 8.0;
        for (&src, r) in done.u64s("flows", "src").iter().zip(&rates) {
            rate[src as usize] += r / mean / f64::from(seeds);
        }
    }
    println!("mean share over seeds: {rate:?}");
    assert!(rate.iter().all(|r| (0.75..1.25).contains(r)), "shares of the mean rate: {rate:?}");
}

/// Checks simultaneous arrivals. Both senders send windows of 20 packets from the same picosecond
/// over equal cables without jitter, so that each packet of one sender arrives together with a
/// packet of the other at a port with a short queue. A known simulator once gave all drops to one
/// flow.
#[test]
fn packets_that_meet_at_one_picosecond_share_the_losses() {
    let cables = ["a", "b", "sink"].map(|host| (host, "s", "1 Gbit/s", "5 us"));
    let context = context_with("tie.toml", &graph(&["a", "b", "sink"], &["s"], &cables));
    let text = "schema = 1\n[fabric]\nkind = 'graph'\nfile = 'tie.toml'\nprocessing_jitter = '0 s'\n\
        queue = { limit = '4 packets' }\n[tcp]\nmin_rto = '2 ms'\ninitial_window = 20\n\
        [[workload]]\nname = 'pairs'\nkind = 'incast'\nreceiver = 'sink'\nrounds = 60\n\
        block_bytes = '28960 B'\nstart_jitter = '0 s'\n";
    let (mut lost, mut first) = ([0u64; 2], [0u32; 2]);
    for seed in 1..=30 {
        let done = finish(&scenario_in(&context, text, &[("seed", &seed.to_string())]));
        let src = done.u64s("flows", "src");
        for (&s, n) in src.iter().zip(done.u64s("flows", "retransmits")) {
            lost[s as usize] += n;
        }
        for round in src.chunks_exact(2) {
            first[round[0] as usize] += 1;
        }
    }
    println!("lost {lost:?}, first in a round {first:?}");
    let share = lost[0] as f64 / (lost[0] + lost[1]) as f64;
    assert!(lost[0] > 3_000 && (share - 0.5).abs() < 0.02, "losses {lost:?}");
    let share = f64::from(first[0]) / f64::from(first[0] + first[1]);
    // 1800 rounds: the standard deviation of the share is 1.2 %
    assert!((share - 0.5).abs() < 0.04, "first in a round {first:?}");
}
