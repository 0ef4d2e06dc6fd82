//! Tests of queues against queueing theory. The mean waiting time of Poisson packets of one size is
//! that of the M/D/1 queue, `W = ρ s / (2 (1 − ρ))` (check 21 of the reference list; Kleinrock
//! 1975, section 5.6), and every single waiting time follows Lindley's recursion.
//!
//! Waiting times of neighbouring packets are correlated, so the error of a mean decreases slowly:
//! at ρ = 0.8 the standard error with a million packets is about 0.8 %. Each test therefore takes
//! several seeds and estimates the standard error from their spread. It fails unless this error is
//! small compared to the tolerance of 1 %.

use crate::harness::{Outcome, context_with, finish, graph, scenario, scenario_in};
use eastwest_engine::random::Stream;
use eastwest_types::{ClassId, HostId, Span, Time};
use eastwest_workload::arrivals::Arrivals;
use eastwest_workload::datagrams::{Datagrams, DatagramsConfig};
use eastwest_workload::{Action, Cluster, Event};

/// Service time of a packet of 1500 B at 1 Gbit/s without framing, in µs.
const SERVICE_US: f64 = 12.0;

/// Returns the mean over seeds and its standard error, both relative to `expected`.
fn relative(means: &[f64], expected: f64) -> (f64, f64) {
    let n = means.len() as f64;
    let mean = means.iter().sum::<f64>() / n;
    let variance = means.iter().map(|m| (m - mean) * (m - mean)).sum::<f64>() / (n - 1.0);
    (mean / expected, (variance / n).sqrt() / expected)
}

fn check_textbook(load: f64, packets: u64, seeds: u64, mean_wait: impl Fn(u64, f64, u64) -> f64) {
    let gap_us = SERVICE_US / load;
    let waits: Vec<f64> = (1..=seeds).map(|seed| mean_wait(seed, gap_us, packets)).collect();
    let expected = load * SERVICE_US / (2.0 * (1.0 - load));
    let (ratio, error) = relative(&waits, expected);
    println!("load {load}: {ratio:.4} of the textbook's wait, standard error {error:.4}");
    assert!(error < 0.004, "load {load}: too few packets, standard error {error}");
    assert!((ratio - 1.0).abs() < 0.01, "load {load}: {ratio} ± {error} of {expected} us");
}

/// Returns a scenario with one source on its own link, so that the queue builds up in its NIC.
fn card(seed: u64, gap_us: f64, packets: u64) -> String {
    format!(
        "schema = 1\nseed = {seed}\n[fabric]\nkind = 'star'\nhosts = 2\nhost_rate = '1 Gbit/s'\n\
         framing = 0\nprocessing_jitter = '0 s'\nhost_queue = {{ limit = '1000000 packets' }}\n\
         [[workload]]\nname = 'poisson'\nkind = 'datagrams'\nsources = 'h0'\n\
         destination = 'h1'\nbytes = 1500\nmean_gap = '{gap_us} us'\npackets = {packets}\n"
    )
}

fn mean_latency_us(done: &Outcome) -> f64 {
    assert_eq!(done.count("packets.dropped"), 0);
    done.number("latency_us.mean")
}

#[test]
fn a_network_card_waits_as_the_textbook_says() {
    let wait = |seed, gap_us, packets| {
        // latency of an idle path in µs: two transmissions of 12 µs and two cables of 5 µs
        mean_latency_us(&finish(&scenario(&card(seed, gap_us, packets), &[]))) - 34.0
    };
    check_textbook(0.5, 300_000, 8, wait);
    check_textbook(0.8, 700_000, 8, wait);
}

#[test]
fn a_switch_port_fed_by_many_sources_waits_as_the_textbook_says() {
    // The sources are a thousand times as fast as the port, so that a sum of Poisson streams
    // arrives there.
    let sources: Vec<String> = (0..10).map(|i| format!("s{i}")).collect();
    let mut hosts: Vec<&str> = sources.iter().map(String::as_str).collect();
    let mut cables: Vec<_> = hosts.iter().map(|s| (*s, "switch", "1 Tbit/s", "0 s")).collect();
    hosts.push("sink");
    cables.push(("sink", "switch", "1 Gbit/s", "0 s"));
    let context = context_with("port.toml", &graph(&hosts, &["switch"], &cables));
    let wait = |seed: u64, gap_us: f64, packets: u64| {
        let gap_us = gap_us * 10.0;
        let text = format!(
            "schema = 1\nseed = {seed}\n[fabric]\nkind = 'graph'\nfile = 'port.toml'\nframing = 0\n\
             processing_jitter = '0 s'\nqueue = {{ limit = '1000000 packets' }}\n[[workload]]\n\
             name = 'poisson'\nkind = 'datagrams'\nsources = ['s0', 's1', 's2', 's3', 's4', 's5', \
             's6', 's7', 's8', 's9']\ndestination = 'sink'\nbytes = 1500\n\
             mean_gap = '{gap_us} us'\npackets = {packets}\n"
        );
        mean_latency_us(&finish(&scenario_in(&context, &text, &[]))) - 12.012
    };
    check_textbook(0.5, 300_000, 8, wait);
    check_textbook(0.8, 700_000, 8, wait);
}

/// Returns the mean of a histogram, given the upper ends and the counts of its buckets.
fn mean(uppers: impl Iterator<Item = f64>, counts: &[u64]) -> f64 {
    let sum: f64 = uppers.zip(counts).map(|(upper, n)| upper * *n as f64).sum();
    sum / counts.iter().sum::<u64>() as f64
}

#[test]
fn a_measured_port_knows_every_wait_and_littles_law_holds() {
    let (packets, gap_us) = (100_000, 15.0);
    let done = finish(&scenario(&card(7, gap_us, packets), &[("measure.ports", "['h0']")]));
    let counts = done.u64s("sojourn", "count");
    // up to three packets may be missing: the run ends when the last packet has arrived
    assert!((packets - 3..=packets).contains(&counts.iter().sum()));
    let wait_us = mean(done.f64s("sojourn", "upper_us").iter().copied(), &counts);
    let expected = mean_latency_us(&done) - 34.0;
    assert!((wait_us / expected - 1.0).abs() < 0.008, "{wait_us} us, {expected} us by latencies");
    let unit = done.texts("depths", "unit");
    let (most, counts) = (done.u64s("depths", "most"), done.u64s("depths", "count"));
    let of_unit = |wanted: &str| {
        let rows: Vec<usize> = (0..unit.len()).filter(|&row| unit[row] == wanted).collect();
        let counts: Vec<u64> = rows.iter().map(|&row| counts[row]).collect();
        assert_eq!(counts.iter().sum::<u64>(), packets, "{wanted}");
        mean(rows.iter().map(|&row| most[row] as f64), &counts)
    };
    // Poisson arrivals find the average queue (Wolff 1982), which is arrival rate times mean
    // waiting time (Little 1961)
    let waiting = of_unit("packets");
    assert!((waiting / (expected / gap_us) - 1.0).abs() < 0.02, "{waiting} packets waiting");
    assert!((of_unit("bytes") / (waiting * 1500.0) - 1.0).abs() < 0.008);
}

#[test]
fn every_wait_is_that_of_lindleys_recursion() {
    let packets = 100_000;
    let text = card(7, 15.0, packets);
    let done = finish(&scenario(&text, &[]));
    // Lindley's recursion, with arrivals from an equal random stream: w' = max(0, w + s − gap)
    let seed = Stream::new(7, "workload/poisson").next_u64();
    let config = DatagramsConfig {
        sources: vec![HostId(0)],
        destination: HostId(1),
        bytes: 1500,
        arrivals: Arrivals::Poisson,
        mean_gap: Span::from_us(15),
        start: Span::ZERO,
        packets: Some(packets),
        class: ClassId(0),
    };
    let cluster = Cluster { rack_of: vec![0; 2], seed };
    let mut source = Datagrams::new(config, &cluster).expect("a possible source");
    let (mut now, mut event, mut free) = (Time::ZERO, Event::Begin, 0);
    let (mut latencies, mut longest) = (Vec::new(), 0);
    loop {
        let mut actions = Vec::new();
        source.handle(now, event, &mut actions);
        if actions.iter().any(|a| matches!(a, Action::Datagram { .. })) {
            let start = now.0.max(free);
            free = start + 12_000_000;
            longest = longest.max(start - now.0);
            latencies.push((start - now.0 + 34_000_000) / 1_000);
        }
        let Some(Action::Wake { at, token }) = actions.last() else { break };
        (now, event) = (*at, Event::Wake { token: *token });
    }
    assert_eq!(latencies.len() as u64, packets);
    // the run ends when the last packet is sent: packets in flight at that time have no latency
    let arrived = done.count("packets.delivered") as usize;
    assert_eq!(arrived + done.count("packets.in_flight") as usize, latencies.len());
    let mean = latencies[..arrived].iter().sum::<u64>() as f64 / arrived as f64 / 1e3;
    assert_eq!(done.number("latency_us.mean"), mean);
    let max = *latencies[..arrived].iter().max().expect("packets have arrived");
    assert_eq!(done.number("latency_us.max"), max as f64 / 1e3);
    assert_eq!(done.f64s("links", "queue_max_us")[0], longest as f64 / 1e6);
}
