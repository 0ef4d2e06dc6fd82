//! Tests of RoCEv2 queue pairs in whole runs: the rate of a link exact to the byte, go-back-N under
//! random loss, no loss with PFC, shares and queues with DCQCN.

use crate::dcb::goes_on;
use crate::harness::{attempt, context, finish, outcome, scenario};
use eastwest_sim::scenario::read;

/// Returns a star of `hosts` hosts at 10 Gbit/s; `fabric` and `rest` are further lines.
fn star(hosts: u32, fabric: &str, rest: &str) -> String {
    format!(
        "schema = 1\n{rest}\n[fabric]\nkind = 'star'\nhosts = {hosts}\nhost_rate = '10 Gbit/s'\n\
         host_delay = '2 us'\nprocessing_jitter = '0 s'\n{fabric}\n[[class]]\nname = 'rdma'\n\
         priority = 3\n"
    )
}

/// Returns a scenario in which `senders` hosts send `bytes` to the last host at the same time.
fn incast(senders: u32, bytes: &str) -> String {
    format!(
        "[[workload]]\nname = 'rdma'\nkind = 'incast'\ntransport = 'rocev2'\nreceiver = \
         'h{senders}'\nblock_bytes = '{bytes}'\nrequest_bytes = '0 B'\npersistent = false\nwarm_up = '0 s'\n\
         start_jitter = '0 s'\n"
    )
}

/// RED settings of the congestion point of Zhu et al. (2015), figure 14, with a quarter of the
/// thresholds because the links have 10 Gbit/s.
const CP: &str = "queue = { kind = 'red', min = '5 KB', max = '200 KB', max_probability = 0.01, \
    weight = 1, even = false, gentle = false, limit = '1 MB' }\n";

#[test]
fn one_flow_has_the_rate_of_its_link_to_the_byte() {
    let text = format!("{}{}", star(2, "", ""), incast(1, "10240000 B"));
    let done = outcome(&text, &[]);
    done.assert_conserved();
    // 10,000 packets of 1024 B take 1106 B each on the link; one more packet time for store and
    // forward, and two cables
    let us = (10_000.0 + 1.0) * 1106.0 * 8.0 / 10e3 + 4.0;
    assert!(
        (done.f64s("flows", "fct_us")[0] - us).abs() < 1e-3,
        "{:?}",
        done.f64s("flows", "fct_us")
    );
    assert!((done.f64s("flows", "slowdown")[0] - 1.0).abs() < 1e-9);
    assert_eq!(done.count("rocev2.packets"), 10_000);
    // 157 ACKs: one for every 64 packets, and the last one at the end of the message
    assert_eq!(done.count("rocev2.acks"), 157);
    assert_eq!(done.count("rocev2.retransmits") + done.count("rocev2.timeouts"), 0);
}

#[test]
fn a_lost_packet_costs_a_round_trip_at_full_rate() {
    let fault = "[[fault]]\non = 'h0->switch0'\nkind = 'loss'\nshare = 0.0002\n";
    let far = star(2, "host_delay = '50 us'", "").replacen("host_delay = '2 us'\n", "", 1);
    let packets = 500_000.0;
    let text = format!("{far}{}{fault}", incast(1, "512000000 B"));
    let done = outcome(&text, &[("rocev2.congestion", "\"none\"")]);
    done.assert_conserved();
    // packets sent in vain after a loss, until the NAK arrives: the next packet passes two links,
    // the NAK two links, and both together four cables
    let (full, nak): (f64, f64) = (1106.0 * 0.8, 86.0 * 0.8);
    let window = 1.0 + ((2.0 * full + 2.0 * nak + 4.0 * 50_000.0) / full).floor();
    let (naks, timeouts) = (done.number("rocev2.naks"), done.number("rocev2.timeouts"));
    let again = done.number("rocev2.retransmits");
    // A packet that is lost twice would wait for the timer, and all data sent meanwhile would be
    // retransmitted. With this seed it does not happen.
    assert_eq!(timeouts, 0.0);
    assert!((again / naks - window).abs() <= 1.0, "{again} for {naks} of {window}");
    // of n packets, the share p is lost; packets that follow a lost packet and are discarded by
    // go-back-N do not count
    let expected = packets * 0.0002;
    assert!((naks - expected).abs() < 3.0 * f64::sqrt(expected), "{naks} of {expected}");
    let goodput = packets * full / 1e3 / done.f64s("flows", "fct_us")[0];
    let closed_form = 1.0 / (1.0 + naks / packets * window);
    assert!((goodput - closed_form).abs() < 5e-4, "{goodput} for {closed_form}");
}

#[test]
fn without_pfc_an_incast_is_sent_twice_and_with_it_nothing_is_lost() {
    let text = |fabric: &str| {
        let queue = "queue = { limit = '100 packets' }\n";
        format!("{}{}", star(9, &format!("{queue}{fabric}"), ""), incast(8, "2 MB"))
    };
    let none = [
        ("rocev2.congestion", "\"none\""),
        ("rocev2.timeout", "\"1 ms\""),
        ("rocev2.retries", "1000"),
    ];
    let lossy = outcome(&text(""), &none);
    lossy.assert_conserved();
    assert!(lossy.count("rocev2.naks") > 100, "{}", lossy.value("rocev2"));
    assert!(lossy.count("rocev2.retransmits") > lossy.count("rocev2.packets") / 3);
    let done = outcome(&text("[fabric.pfc]\n"), &none);
    done.assert_conserved();
    assert_eq!(done.count("packets.dropped"), 0);
    assert_eq!(done.count("rocev2.retransmits") + done.count("rocev2.timeouts"), 0);
    assert!(done.count("dcb.pauses") > 100);
    // the link is never idle: 8 flows of 1954 packets each, where the last packet has only 128 B
    let packets = 8.0 * (1953.0 * 1106.0 + 210.0) * 0.8e-3;
    let last = done.f64s("flows", "fct_us").iter().copied().fold(0.0, f64::max);
    assert!(last > packets && last < packets + 10.0, "{last} for {packets}");
    assert!(lossy.f64s("flows", "fct_us").iter().copied().fold(0.0, f64::max) > 1.1 * last);
    // a NIC does not enqueue packets of a paused queue pair: at most two packets of each host wait
    // at its port
    let most = done.u64s("pfc", "output_most_bytes");
    let link = done.u64s("pfc", "link");
    // links from hosts to the switch have even numbers
    let hosts = link.iter().zip(&most).filter(|(l, _)| *l % 2 == 0).map(|(_, most)| *most);
    assert!(hosts.max() <= Some(2 * 1068 + 48), "{link:?} {most:?}");
}

#[test]
fn two_flows_under_dcqcn_share_a_link_in_halves_and_keep_its_queue_short() {
    let text = format!("{}{}", star(3, &format!("{CP}[fabric.pfc]\n"), ""), incast(2, "50 MB"));
    let free = outcome(&text, &[("rocev2.congestion", "\"none\"")]);
    let done = outcome(&text, &[]);
    done.assert_conserved();
    assert_eq!(done.count("packets.dropped"), 0);
    let times = done.f64s("flows", "fct_us");
    // each flow has half of the link until one has finished; the other one then has the link alone
    // for a short time
    assert!((times[0] / times[1] - 1.0).abs() < 0.1, "{times:?}");
    let ideal = 100e6 / 1024.0 * 1106.0 * 8.0 / 10e3;
    let last = times[0].max(times[1]);
    assert!(last > ideal && last < 1.2 * ideal, "{last} for {ideal}");
    assert!(done.count("rocev2.cnps") > 50 && done.count("rocev2.rate_cuts") > 50);
    assert_eq!(free.count("rocev2.cnps") + free.count("rocev2.marked"), 0);
    // with DCQCN, pauses occur only at the start
    let (few, many) = (done.number("dcb.paused_s"), free.number("dcb.paused_s"));
    assert!(few < 0.05 * many, "{few} of {many}");
}

#[test]
fn the_queue_of_two_flows_rests_near_the_fixed_point_of_the_fluid_model() {
    // 40 Gbit/s as in the paper; the model in python/eastwest/models/dcqcn.py gives a queue of
    // 21,756 B for two flows, and of 45,705 B for four
    for (flows, expected) in [(2u32, 21_756.0), (4, 45_705.0)] {
        let fabric = star(flows + 1, &CP.replace("1 MB", "4 MB"), "duration = '100 ms'")
            .replace("10 Gbit/s", "40 Gbit/s");
        let text = format!(
            "{fabric}{}[measure]\nsample_interval = '10 us'\n",
            incast(flows, &format!("{} MB", 1_000 / flows))
        );
        let done = outcome(&text, &[]);
        let (times, bytes) = (done.f64s("queues", "time_s"), done.u64s("queues", "bytes"));
        // samples with an empty queue have no row; samples before 30 ms show the start at full rate
        // and are left out
        let sum: u64 =
            times.iter().zip(&bytes).filter(|(t, _)| **t >= 0.03).map(|(_, bytes)| *bytes).sum();
        let mean = sum as f64 / 7_000.0;
        // the documentation of the model explains why the simulated mean is larger, and by how much
        assert!((1.1..1.45).contains(&(mean / expected)), "{flows} flows: {mean} for {expected}");
    }
}

#[test]
fn runs_have_one_digest_in_every_port_mode_and_go_on_from_checkpoints() {
    for fabric in ["", "[fabric.pfc]\n", "scheduler = 'strict-priority'\n"] {
        let text = format!("{}{}", star(5, &format!("{CP}{fabric}"), ""), incast(4, "500 KB"));
        let scenario = scenario(&text, &[]);
        let [a, b] = [false, true].map(|reference| attempt(&scenario, reference).unwrap());
        assert_eq!(a.digest(), b.digest(), "{fabric}");
        goes_on(&scenario, &a);
    }
}

#[test]
fn workloads_of_all_kinds_have_queue_pairs() {
    for (flows, workload) in [
        (12, "kind = 'stride'\nstride = 1\ncount = 3\nbytes = '100 KB'"),
        (8, "kind = 'permutation'\nrepeat = 2\nbytes = '100 KB'"),
        (24, "kind = 'all-to-all'\nbytes = '20 KB'\nrequest_bytes = '100 B'"),
        (
            6,
            "kind = 'incast'\nreceiver = 'h0'\nrounds = 2\nblock_bytes = '100 KB'\nwarm_up = '0 s'",
        ),
        (40, "kind = 'poisson'\nload = 0.5\nsizes = 'web-search'\nflows = 40"),
        (
            200,
            "kind = 'service'\nclients = 'h0'\nservers = 'h1'\nmean_gap = '9 us'\nrequests = 100",
        ),
        (0, "kind = 'mpi-cg'\nranks = 4\nproblem = 'S'\nouter = 1"),
    ] {
        let text =
            format!("{}[[workload]]\nname = 'rdma'\ntransport = 'rocev2'\n", star(4, "", ""));
        let text = format!("{text}{workload}\n");
        let done = outcome(&text, &[]);
        done.assert_conserved();
        assert!(done.count("rocev2.packets") > 0, "{workload}");
        assert_eq!(done.count("tcp.retransmits"), 0);
        if flows > 0 {
            assert_eq!(done.count("flows.completed"), flows, "{workload}");
        }
    }
}

#[test]
fn flows_of_both_transports_share_a_fabric() {
    let text = format!(
        "{}{}[[workload]]\nname = 'tcp'\nkind = 'permutation'\nbytes = '1 MB'\n[measure]\n",
        star(4, "queue = { limit = '30 packets' }\n", ""),
        incast(3, "1 MB")
    );
    let done = outcome(&text, &[]);
    done.assert_conserved();
    assert_eq!(done.count("flows.completed"), 7);
    let connections = done.u64s("flows", "connection");
    let mut numbers = connections.clone();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 7, "{connections:?}");
    // events of lost RoCEv2 packets name their queue pair
    let kinds = done.texts("events", "kind");
    assert!(kinds.contains(&"data") && done.count("rocev2.naks") > 0);
}

#[test]
fn a_link_that_stays_down_is_told_after_eight_timeouts() {
    let down = "[[fault]]\non = 'h1'\nkind = 'down'\nfrom = '100 us'\n";
    for (side, fabric) in [("'h1'", ""), ("'h0'", ""), ("'h0'", "[fabric.pfc]\n")] {
        let fault = down.replace("'h1'", side);
        let text = format!("{}{}{fault}", star(2, fabric, ""), incast(1, "10 MB"));
        let scenario = scenario(&text, &[("rocev2.timeout", "\"1 ms\"")]);
        let error = attempt(&scenario, false).err().expect("it cannot finish").to_string();
        assert!(error.contains("queue pair from h0 to h1"), "{error}");
        assert!(error.contains("given up after 8 timeouts in a row"), "{error}");
    }
}

#[test]
fn settings_that_cannot_be_are_refused_and_those_without_effect_told() {
    let listed = |text: &str| {
        let problems = read(text, &context(), &[]).err().unwrap_or_default();
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let with = |more: &str| format!("{}{}{more}", star(3, "", ""), incast(2, "1 MB"));
    for (more, expected) in [
        ("[rocev2]\nmtu = 1000\n", "must be one of 256, 512, 1024, 2048 and 4096"),
        (
            "[rocev2]\nmtu = 2048\n",
            "2048 B is too large: after 44 B of headers, fabric.mtu leaves 1456 B",
        ),
        ("[rocev2]\ncongestion = 'dctcp'\n", "rocev2.congestion"),
        ("[rocev2]\ntimout = '1 ms'\n", "(did you mean timeout?)"),
        (
            "[rocev2]\ncongestion = 'none'\n[rocev2.dcqcn]\ngain = 0.5\n",
            "has no effect because `congestion` is \"none\"",
        ),
        ("[rocev2.dcqcn]\ngain = 2\n", "rocev2.dcqcn.gain"),
    ] {
        let found = listed(&with(more));
        assert!(found.contains(expected), "{more}: {found}");
    }
    let found = listed(&with("").replace("'rocev2'", "'roce'"));
    assert!(found.contains("transport") && found.contains("rocev2"), "{found}");
    let found = listed(&with("").replace("schema = 1", "schema = 1\nfidelity = 'flow'"));
    assert!(found.contains("uses a transport other than TCP"), "{found}");
    let unused =
        scenario(&format!("{}[rocev2]\nmtu = 512\n", with("").replace("'rocev2'", "'tcp'")), &[]);
    assert!(unused.notes.iter().any(|n| n.contains("[rocev2] has no effect")));
    assert!(!finish(&unused).value("rocev2").is_object());
}

#[test]
fn captures_hold_packets_of_all_kinds_as_long_as_they_were() {
    let text = format!(
        "{}{}[measure]\ncapture = ['switch0->h2', 'h2->switch0']\n",
        star(3, CP, ""),
        incast(2, "1 MB")
    );
    let done = outcome(&text, &[]);
    let file = done.file("capture.pcapng").expect("a capture");
    assert_eq!(done.count("capture.left_out"), 0);
    let c = |name: &str| done.count(&format!("rocev2.{name}"));
    // the capture has all packets that arrived at the receiver and that it sent; the last answers
    // may still be in flight
    let all = c("packets") + c("acks") + c("naks") + c("cnps");
    assert!(done.count("capture.packets") > all - 20, "{all}");
    assert!(c("cnps") > 0 && file.len() as u64 > 60 * (all - 20));
}
