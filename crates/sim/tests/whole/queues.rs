//! Tests of queue disciplines in whole scenarios: the kinds of packets dropped with each
//! protection, delays, and equal behaviour of both port modes.

use crate::harness::{Outcome, attempt, finish, outcome, scenario};

/// Returns an all-to-all workload among eight hosts, whose ports carry data and the ACKs of other
/// data.
fn shuffle(queue: &str, ecn: &str) -> String {
    format!(
        "schema = 1\n[fabric]\nkind = 'leaf-spine'\nleaves = 2\nhosts_per_leaf = 4\nspines = 1\n\
         host_rate = '1 Gbit/s'\nuplink_rate = '2 Gbit/s'\nqueue = {queue}\n[tcp]\n\
         ecn = '{ecn}'\nmin_rto = '10 ms'\ninitial_rto = '20 ms'\n[[workload]]\nname = 'all'\n\
         kind = 'all-to-all'\nbytes = '1 MB'\n"
    )
}

const RED: &str = "kind = 'red', min = '5 packets', max = '15 packets', weight = 1, \
                   max_probability = 1, limit = '200 packets'";

fn early(done: &Outcome) -> u64 {
    done.u64s("links", "drops_early").iter().sum()
}

fn dropped(done: &Outcome, kind: &str) -> u64 {
    done.u64s("links", &format!("drops_{kind}")).iter().sum()
}

#[test]
fn each_protection_spares_what_it_names() {
    let run = |protection: &str| {
        let queue = format!("{{ {RED}, protection = '{protection}' }}");
        // with this override, a connection whose SYN was dropped requests ECN again
        let done = outcome(&shuffle(&queue, "on"), &[("tcp.ecn_fallback", "false")]);
        done.assert_conserved();
        assert!(done.count("marks.data") > 100, "{protection}");
        done
    };
    let default = run("default");
    // data is marked and never dropped early; ACKs are dropped instead (E-EON, claim C6.1)
    assert_eq!(dropped(&default, "data"), 0);
    assert!(dropped(&default, "ack") > 100 && early(&default) >= dropped(&default, "ack"));
    let ece_bit = run("ece-bit");
    assert!(dropped(&default, "syn") > 0 && dropped(&ece_bit, "ack") > 0);
    assert!(dropped(&default, "ece_ack") > 0);
    for kind in ["ece_ack", "syn", "syn_ack"] {
        assert_eq!(dropped(&ece_bit, kind), 0, "{kind}");
    }
    let ack_syn = run("ack+syn");
    for kind in ["ack", "ece_ack", "syn", "syn_ack", "fin", "data"] {
        assert_eq!(dropped(&ack_syn, kind), 0, "{kind}");
    }
    assert_eq!(early(&run("bypass")), 0);
}

#[test]
fn red_drops_ecn_packets_where_marks_end() {
    let run = |queue: &str| {
        let done = outcome(&shuffle(queue, "on"), &[]);
        done.assert_conserved();
        // packets dropped early are of unprotected kinds, and data with ECT is never dropped early
        let (ect, kind) = (done.texts("drops", "ect"), done.texts("drops", "kind"));
        let lost = done.u64s("drops", "drops_early");
        let of_ect = (0..lost.len()).filter(|&i| ect[i] == "ect" && kind[i] == "data");
        let marks: u64 = done.u64s("drops", "marks").iter().sum();
        (marks, of_ect.map(|i| lost[i]).sum::<u64>())
    };
    for (kind, probability) in [("red", 0.5), ("adaptive-red", 0.5)] {
        let levels = match kind {
            "red" => "min = '5 packets', max = '15 packets'",
            _ => "target = '60 us', adapt = false",
        };
        let queue = |below: &str| {
            format!(
                "{{ kind = '{kind}', {levels}, weight = 1, max_probability = {probability}{below} }}"
            )
        };
        let (marks, lost) = run(&queue(""));
        assert!(marks > 100 && lost == 0, "{kind}: {marks} marks, {lost} lost");
        let (marks, lost) = run(&queue(", mark_below = 0.2"));
        assert!(marks > 20 && lost > 20, "{kind}: {marks} marks, {lost} lost");
        let (marks, lost) = run(&queue(", mark_below = 0"));
        assert!(marks == 0 && lost > 20, "{kind}: {marks} marks, {lost} lost");
    }
}

#[test]
fn measured_ports_count_who_comes_and_change_nothing() {
    let text = shuffle(&format!("{{ {RED} }}"), "on");
    let plain = outcome(&text, &[]);
    let done = outcome(&text, &[("measure.ports", "['*']")]);
    done.assert_conserved();
    assert_eq!(done.digest(), plain.digest());
    assert_eq!(plain.u64s("drops", "arrivals").iter().sum::<u64>(), 0);
    let of = |column: &str| done.u64s("drops", column);
    let link = of("link");
    // each packet that arrived at a port was lost there, has reached the far end of the link, or is
    // in flight
    let mut on_the_way = 0;
    for (number, carried) in done.u64s("links", "packets").iter().enumerate() {
        let sum = |counts: Vec<u64>| -> u64 {
            link.iter().zip(counts).filter(|(l, _)| **l == number as u64).map(|(_, n)| n).sum()
        };
        let lost = sum(of("drops"));
        assert_eq!(lost, done.u64s("links", "drops")[number]);
        on_the_way += sum(of("arrivals")) - carried - lost;
    }
    assert_eq!(on_the_way, done.count("packets.in_flight"));
    // Each arrival adds a queue length in packets and one in bytes. Each admitted packet adds a
    // waiting time, unless it is still queued.
    let came: u64 = of("arrivals").iter().sum();
    assert_eq!(done.u64s("depths", "count").iter().sum::<u64>(), 2 * came);
    let waited: u64 = done.u64s("sojourn", "count").iter().sum();
    assert!(waited <= came - done.count("packets.dropped"));
    assert!(waited >= came - done.count("packets.dropped") - on_the_way);
    // ACKs are a minority of the arrivals, but a majority of the early drops
    let switch = |what: &str| {
        let kinds = ["data", "retransmission", "ack", "ece_ack", "syn", "syn_ack", "fin"];
        let of = |kind: &&str| done.count(&format!("ports.switch.{what}.{kind}"));
        let all: u64 = kinds.iter().map(of).sum();
        (of(&"ack") + of(&"ece_ack")) as f64 / all as f64
    };
    let (came, dropped) = (switch("arrivals"), switch("drops.early"));
    assert!(came < 0.4 && dropped > 0.7, "{came} of arrivals, {dropped} of early drops");
    assert_eq!(done.count("ports.host.measured"), 8);
}

#[test]
fn without_ecn_data_is_dropped_early() {
    let done = outcome(&shuffle(&format!("{{ {RED} }}"), "off"), &[]);
    done.assert_conserved();
    assert!(dropped(&done, "data") > 100 && early(&done) > 100);
    assert_eq!(done.count("marks.data"), 0);
}

#[test]
fn both_kinds_of_ports_do_the_same() {
    for queue in [
        format!("{{ {RED} }}"),
        "{ kind = 'red', min = '4 KB', max = '12 KB', weight = 0.05, limit = '40 KB' }".to_owned(),
        "{ kind = 'adaptive-red', target = '40 us', adapt = false, weight = 1 }".to_owned(),
        "{ kind = 'adaptive-red', target = '40 us' }".to_owned(),
        format!("{{ {RED}, mark_below = 0.5 }}"),
        "{ kind = 'pie', target = '50 us', update = '50 us', alpha = 50, beta = 500, \
         burst = '100 us' }"
            .to_owned(),
        "{ kind = 'step-marking', threshold = '9 packets', protection = 'default' }".to_owned(),
        "{ kind = 'step-marking', threshold = '9 packets', at = 'dequeue', \
         protection = 'default' }"
            .to_owned(),
        "{ kind = 'codel', target = '50 us', interval = '400 us' }".to_owned(),
    ] {
        for ecn in ["on", "off"] {
            let scenario = scenario(&shuffle(&queue, ecn), &[("workload.all.bytes", "200 KB")]);
            let eager = finish(&scenario);
            let reference = attempt(&scenario, true).expect("it runs");
            assert_eq!(eager.digest(), reference.digest(), "{queue}, ecn {ecn}");
            for table in ["events", "links", "queues"] {
                assert!(eager.table_text(table) == reference.table_text(table), "{queue}: {table}");
            }
            let late = |link| eager.u64s("links", link).iter().sum::<u64>();
            let signals = early(&eager) + late("drops_sojourn") + late("marks");
            assert!(signals > 20, "{queue}, ecn {ecn}: {signals} signals show little");
        }
    }
}

/// Runs eight long flows through one port of 1 Gbit/s with an RTT of 2 ms. Returns the mean latency
/// of data packets in µs.
fn latency_us(queue: &str) -> f64 {
    let text = format!(
        "schema = 1\nduration = '4 s'\n[fabric]\nkind = 'star'\nhosts = 9\n\
         host_rate = '1 Gbit/s'\nhost_delay = '500 us'\nqueue = {queue}\n[[workload]]\n\
         name = 'bulk'\nkind = 'incast'\nreceiver = 'h8'\nblock_bytes = '60 MB'\n"
    );
    let done = outcome(&text, &[]);
    done.assert_conserved();
    let busy = done.f64s("links", "utilisation").iter().copied().fold(0.0, f64::max);
    assert!(busy > 0.8, "{queue}: {busy}");
    done.number("latency_us.classes.bulk.mean")
}

#[test]
fn controllers_of_delay_hold_their_target() {
    let deep = "limit = '2000 packets'";
    let tail = latency_us(&format!("{{ {deep} }}"));
    // latency of an idle path in µs: two transmissions of 12.3 µs and 1 ms of delay
    let way = 1_025.0;
    let pie = latency_us(&format!(
        "{{ kind = 'pie', target = '2 ms', update = '2 ms', burst = '10 ms', {deep} }}"
    ));
    let codel =
        latency_us(&format!("{{ kind = 'codel', target = '2 ms', interval = '20 ms', {deep} }}"));
    let fq = latency_us(&format!(
        "{{ kind = 'fq-codel', target = '2 ms', interval = '20 ms', {deep} }}"
    ));
    println!("tail {tail} pie {pie} codel {codel} fq-codel {fq}");
    assert!(tail > way + 8_000.0, "drop-tail fills its queue: {tail}");
    for (name, value) in [("pie", pie), ("codel", codel), ("fq-codel", fq)] {
        assert!(value > way + 200.0 && value < way + 4_000.0, "{name}: {value}");
    }
}

#[test]
fn fq_codel_lets_a_sparse_flow_pass_bulk() {
    let urgent = |queue: &str| {
        let text = format!(
            "schema = 1\n[fabric]\nkind = 'star'\nhosts = 5\nhost_rate = '1 Gbit/s'\n\
             queue = {queue}\n[[workload]]\nname = 'service'\nkind = 'service'\n\
             clients = ['h3', 'h4']\nservers = 'h0'\nmean_gap = '500 us'\nrequests = 400\n\
             warm_up = '20 ms'\n[[workload]]\nname = 'bulk'\nkind = 'incast'\nbackground = true\n\
             receiver = 'h0'\nsenders = 'h1..h3'\nblock_bytes = '200 MB'\nrequest_bytes = '0 B'\n"
        );
        let done = outcome(&text, &[]);
        done.assert_conserved();
        done.number("latency_us.classes.service.mean")
    };
    let (tail, fq) = (urgent("{ }"), urgent("{ kind = 'fq-codel', limit = '200 packets' }"));
    assert!(fq < tail / 4.0, "fq-codel {fq} us, drop-tail {tail} us");
}

#[test]
fn classes_share_a_link_by_weight() {
    let text = "schema = 1\nduration = '100 ms'\n[fabric]\nkind = 'star'\nhosts = 3\n\
        host_rate = '1 Gbit/s'\nscheduler = 'classes'\n\
        [[fabric.class]]\npriorities = [0, 1, 2, 3]\nweight = 1\n\
        [[fabric.class]]\npriorities = [4, 5, 6]\nweight = 3\n\
        queue = { kind = 'red', min = '20 packets', max = '60 packets' }\n\
        [[fabric.class]]\npriorities = [7]\n\
        [[class]]\nname = 'heavy'\npriority = 5\n\
        [[workload]]\nname = 'light'\nkind = 'datagrams'\nsources = 'h0'\ndestination = 'h2'\n\
        bytes = 1500\narrivals = 'periodic'\nmean_gap = '13 us'\npackets = 7000\n\
        [[workload]]\nname = 'heavy'\nkind = 'datagrams'\nsources = 'h1'\ndestination = 'h2'\n\
        bytes = 1500\narrivals = 'periodic'\nmean_gap = '13 us'\npackets = 7000\n";
    let done = outcome(text, &[]);
    done.assert_conserved();
    let delivered = |class: &str| {
        let names = done.texts("latency", "class");
        let kinds = names.iter().zip(done.u64s("latency", "count"));
        kinds.filter(|(name, _)| **name == class).map(|(_, n)| n).sum::<u64>() as f64
    };
    let ratio = delivered("heavy") / delivered("light");
    assert!((ratio - 3.0).abs() < 0.15, "{ratio}");
}

#[test]
fn codepoints_choose_the_class_and_are_counted_and_captured_there() {
    // The codepoints AF21 and AF22 have the same priority, but may have different classes. EF goes
    // to the class that names it, AF41 to the class of its default codepoints.
    let classes = [("gold", "'AF21'"), ("silver", "'AF22'"), ("voice", "46"), ("other", "'AF41'")];
    let mut text = "schema = 1\n[fabric]\nkind = 'star'\nhosts = 6\nhost_rate = '1 Gbit/s'\n\
        scheduler = 'classes'\n[[fabric.class]]\ndscp = ['AF22', 46]\nweight = 1\n\
        [[fabric.class]]\npriorities = [2, 5]\nweight = 3\n[[fabric.class]]\n\
        priorities = [0, 1, 3]\n[measure]\nports = 'switch0'\ncapture = 'h0->switch0'\n"
        .to_owned();
    for (i, (name, dscp)) in classes.into_iter().enumerate() {
        text.push_str(&format!(
            "[[class]]\nname = '{name}'\ndscp = {dscp}\n[[workload]]\nname = '{name}'\n\
             kind = 'datagrams'\nsources = 'h{i}'\ndestination = 'h5'\nbytes = 1500\n\
             arrivals = 'periodic'\nmean_gap = '20 us'\npackets = {}\n",
            1000 + 100 * i
        ));
    }
    let done = outcome(&text, &[]);
    done.assert_conserved();
    let of = |column: &str| done.u64s("drops", column);
    let mut arrivals = [0; 3];
    let to_sink = done.texts("links", "name").iter().position(|n| *n == "switch0->h5").unwrap();
    for (row, link) in of("link").into_iter().enumerate() {
        if link == to_sink as u64 {
            arrivals[of("class")[row] as usize] += of("arrivals")[row];
        }
    }
    // up to two packets may be missing: the run ends when the last packet has left its host
    let near =
        arrivals.iter().zip([1100 + 1200, 1000, 1300]).all(|(n, all)| (all - 2..=all).contains(n));
    assert!(near, "{arrivals:?}");
    let capture = done.file("capture.pcapng").expect("a capture");
    // end of the Ethernet header, then the IPv4 header with AF21 in its second byte
    assert!(capture.windows(4).any(|bytes| bytes == [0x08, 0x00, 0x45, 18 << 2]));
}

#[test]
fn ports_that_share_a_buffer_take_what_others_leave() {
    // two senders for each receiver overload its port by 100 %, so each port takes all memory that
    // it can get
    let run = |receivers: u32, alpha: &str| {
        let flows: String = (0..receivers)
            .map(|r| {
                let senders = [2 * r, 2 * r + 1].map(|s| format!("'h{}'", 4 + s)).join(", ");
                format!(
                    "[[workload]]\nname = 'f{r}'\nkind = 'datagrams'\nsources = [{senders}]\n\
                     destination = 'h{r}'\nbytes = 1500\narrivals = 'periodic'\n\
                     mean_gap = '12.4 us'\npackets = 1500\n"
                )
            })
            .collect();
        let text = format!(
            "schema = 1\n[fabric]\nkind = 'star'\nhosts = 12\nhost_rate = '1 Gbit/s'\n\
             shared_buffer = {{ size = '600 KB', alpha = {alpha} }}\n{flows}"
        );
        let done = outcome(&text, &[]);
        done.assert_conserved();
        done.u64s("links", "queue_max_bytes").into_iter().max().expect("links") as f64
    };
    for (receivers, alpha) in [(1, 1.0), (4, 1.0), (2, 0.5)] {
        let longest = run(receivers, &alpha.to_string());
        let expected = alpha * 600e3 / (1.0 + alpha * f64::from(receivers)) * 1538.0 / 1500.0;
        assert!((longest / expected - 1.0).abs() < 0.05, "{longest} B, expected {expected}");
    }
}
