//! Tests of strict priority: bulk traffic hardly delays urgent packets, and packets of low priority
//! wait but are always counted.

use crate::harness::{Outcome, finish, outcome, scenario};

/// Runs three hosts that send bulk data to a fourth host (if `bulk` is true); one of them also
/// sends requests to it.
fn beside_bulk(scheduler: &str, bulk: bool) -> Outcome {
    let mut text = format!(
        "schema = 1\n[fabric]\nkind = 'star'\nhosts = 5\nhost_rate = '1 Gbit/s'\n\
         scheduler = '{scheduler}'\n[[class]]\nname = 'urgent'\npriority = 6\n[[workload]]\n\
         name = 'urgent'\nkind = 'service'\nclients = ['h3', 'h4']\nservers = 'h0'\n\
         mean_gap = '500 us'\nrequests = 400\nwarm_up = '20 ms'\n"
    );
    if bulk {
        text.push_str(
            "[[workload]]\nname = 'bulk'\nkind = 'incast'\nbackground = true\nreceiver = 'h0'\n\
             senders = 'h1..h3'\nblock_bytes = '200 MB'\nrequest_bytes = '0 B'\n",
        );
    }
    let done = outcome(&text, &[]);
    done.assert_conserved();
    assert_eq!(done.count("flows.by_purpose.response.count"), 400);
    done
}

fn urgent_us(done: &Outcome, what: &str) -> f64 {
    done.number(&format!("latency_us.classes.urgent.{what}"))
}

#[test]
fn urgent_packets_hardly_wait_for_bulk() {
    let idle = beside_bulk("strict-priority", false);
    let strict = beside_bulk("strict-priority", true);
    let fifo = beside_bulk("fifo", true);
    let busy = strict.f64s("links", "utilisation").iter().copied().fold(0.0, f64::max);
    assert!(busy > 0.8, "the bulk must fill a link: {busy}");
    // at each of two ports an urgent packet waits for at most one full packet (12.3 µs), on average
    // for half of one
    let (alone, beside, behind) =
        (urgent_us(&idle, "mean"), urgent_us(&strict, "mean"), urgent_us(&fifo, "mean"));
    assert!(beside < alone + 2.0 * 12.31, "{alone} us alone, {beside} us beside bulk");
    assert!(urgent_us(&strict, "max") < urgent_us(&idle, "max") + 60.0);
    assert!(behind > alone + 500.0, "FIFO: {behind} us, alone {alone} us");
    assert_eq!(idle.count("packets.dropped"), 0);
}

/// Checks two urgent sources that load a port with 120 %, and a third source without urgency, whose
/// packets wait until the end.
#[test]
fn what_is_not_urgent_starves_and_comes_through_at_the_end() {
    let text = "schema = 1\n[fabric]\nkind = 'star'\nhosts = 4\nhost_rate = '1 Gbit/s'\n\
        framing = 0\nprocessing_jitter = '0 s'\nscheduler = 'strict-priority'\n\
        queue = { limit = '50 packets' }\nhost_queue = { limit = '100 packets' }\n\
        [[class]]\nname = 'urgent'\npriority = 4\n[[class]]\nname = 'patient'\npriority = 3\n\
        [[workload]]\nname = 'urgent'\nkind = 'datagrams'\nsources = ['h0', 'h1']\n\
        destination = 'h3'\nbytes = 1500\narrivals = 'periodic'\nmean_gap = '20 us'\n\
        packets = 4000\n\
        [[workload]]\nname = 'patient'\nkind = 'datagrams'\nsources = 'h2'\ndestination = 'h3'\n\
        bytes = 1500\narrivals = 'periodic'\nmean_gap = '100 us'\nstart = '2 ms'\npackets = 70\n\
        [[workload]]\nname = 'later'\nkind = 'datagrams'\nclass = 'later'\nsources = 'h0'\n\
        destination = 'h1'\nbytes = 100\nmean_gap = '1 ms'\nstart = '60 ms'\npackets = 1\n";
    let done = outcome(text, &[]);
    done.assert_conserved();
    assert_eq!(done.count("packets.sent"), 4_071);
    // 70 patient packets arrive while 4000 urgent ones fill the port for 40 ms: the queue has space
    // for 50 of them
    let patient = done.count("latency_us.classes.patient.count");
    assert!((50..=52).contains(&patient), "{patient} patient packets arrived");
    let max = done.number("latency_us.classes.patient.max");
    assert!(max > 30_000.0 && max < 48_000.0, "the longest wait was {max} us");
    // a sixth of the urgent packets is lost: 120 % of the rate arrives, 100 % leaves
    let urgent = done.count("latency_us.classes.urgent.count") as f64;
    assert!((urgent / 4_000.0 - 1.0 / 1.2).abs() < 0.03, "{urgent} of 4000 urgent packets");
    let longest = done.number("latency_us.classes.urgent.max");
    // largest latency: 50 packets queued, one packet being sent, two transmissions of the packet
    // itself, two cables
    assert!(longest <= 12.0 * 53.0 + 10.0 + 0.01, "{longest} us for an urgent packet");
    // the same traffic in FIFO order: patient packets wait no longer than urgent ones
    let fifo = outcome(text, &[("fabric.scheduler", "fifo")]);
    assert!(fifo.number("latency_us.classes.patient.max") < 12.0 * 53.0 + 10.1);
}

#[test]
fn classes_without_a_queue_have_that_of_their_port_in_the_resolved_form_too() {
    // the NICs of hosts have larger queues than the ports of switches
    let text = "schema = 1\n[fabric]\nkind = 'star'\nhosts = 3\nhost_rate = '1 Gbit/s'\n\
        queue = { limit = '20 packets' }\nhost_queue = { limit = '500 packets' }\n\
        scheduler = 'classes'\n[[fabric.class]]\npriorities = [0, 1, 2, 3]\n[[fabric.class]]\n\
        priorities = [4, 5, 6, 7]\nqueue = { limit = '30 packets' }\n[tcp]\ninitial_window = 300\n\
        [[workload]]\nname = 'bulk'\nkind = 'incast'\nreceiver = 'h0'\nblock_bytes = '300 KB'\n";
    let first = scenario(text, &[]);
    let again = scenario(first.resolved(), &[]);
    assert_eq!(again.fabric, first.fabric);
    let (run, rerun) = (finish(&first), finish(&again));
    assert_eq!(run.digest(), rerun.digest());
    let most = run.u64s("links", "queue_max_bytes");
    assert!(most.iter().any(|bytes| *bytes > 30 * 1500), "a card must hold more: {most:?}");
}
