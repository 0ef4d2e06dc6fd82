//! Tests of mechanisms of other crates in whole scenarios: copies of built-in mechanisms give equal
//! digests, and their settings are read with equal messages.

use crate::harness::{context, finish};
use eastwest_engine::random::Stream;
use eastwest_mechanism::Mechanisms;
use eastwest_mechanism::parameters::{Section, key, read_signal};
use eastwest_network::queue::{
    Arrival, CustomQueue, Head, Place, Plan, QueueModel, Signal, Verdict,
};
use eastwest_network::routing::{Choice, CustomRouting, RoutingModel, SwitchPlace};
use eastwest_settings::problem::Problem;
use eastwest_sim::scenario::{Context, Scenario, read};
use eastwest_transport::congestion::cubic::{Cubic, CubicRules};
use eastwest_transport::congestion::custom::CongestionModel;
use eastwest_transport::congestion::{BuiltIn, CongestionControl, SenderPlace};
use eastwest_types::{Limit, Span, Time};

/// Queue discipline: RED on the current queue length, with independent marking decisions.
#[derive(Clone, Debug)]
struct Ramp {
    min: u32,
    max: u32,
    signal: Signal,
    limit: Limit,
    random: Option<Stream>,
}

impl Ramp {
    fn read(s: &mut Section, limit: Limit) -> Ramp {
        let min = s.get(key("min", "Packets.").default("5").range("0", "1000"));
        let max = s.get(key("max", "Packets.").default("15").range("1", "1000"));
        s.demand(min < max, &["min", "max"], || "must be below `max`".to_owned());
        Ramp { min, max, signal: read_signal(s), limit, random: None }
    }
}

impl QueueModel for Ramp {
    fn start(&self, place: &Place) -> Box<dyn CustomQueue> {
        Box::new(Ramp { random: Some(place.random("red")), ..self.clone() })
    }
}

impl CustomQueue for Ramp {
    fn at_enqueue(&mut self, arrival: &Arrival) -> Verdict {
        if arrival.fits(self.limit) == Verdict::Drop {
            return Verdict::Drop;
        }
        let (queue, min, max) = (arrival.backlog.packets as f64, self.min as f64, self.max as f64);
        let p = (queue - min) / (max - min);
        let random = self.random.as_mut().expect("it was started");
        if p > 0.0 && (p >= 1.0 || random.unit() < p) {
            return self.signal.verdict(arrival.packet);
        }
        Verdict::Enqueue
    }
}

/// Queue discipline: marks a packet at dequeue if more than this number of packets remain behind
/// it.
#[derive(Clone, Debug)]
struct Behind(u32, Signal);

impl QueueModel for Behind {
    fn start(&self, _: &Place) -> Box<dyn CustomQueue> {
        Box::new(self.clone())
    }
    fn decides_at_dequeue(&self) -> bool {
        true
    }
    fn sees_all(&self) -> bool {
        false
    }
}

impl CustomQueue for Behind {
    fn at_enqueue(&mut self, _: &Arrival) -> Verdict {
        Verdict::Enqueue
    }
    fn at_dequeue(&mut self, _: Time, heads: &mut dyn Iterator<Item = Head<'_>>) -> Plan {
        let long = |head: &Head| head.left.packets > self.0 as usize;
        let mark = heads
            .next()
            .is_some_and(|head| long(&head) && self.1.verdict(head.packet) == Verdict::Mark);
        Plan { drop: 0, mark }
    }
}

/// Queue discipline: drops packets at dequeue that have waited longer than this time.
#[derive(Clone, Debug)]
struct Impatient(Span);

impl QueueModel for Impatient {
    fn start(&self, _: &Place) -> Box<dyn CustomQueue> {
        Box::new(self.clone())
    }
    fn decides_at_dequeue(&self) -> bool {
        true
    }
}

impl CustomQueue for Impatient {
    fn at_enqueue(&mut self, _: &Arrival) -> Verdict {
        Verdict::Enqueue
    }
    fn at_dequeue(&mut self, now: Time, heads: &mut dyn Iterator<Item = Head<'_>>) -> Plan {
        let drop = heads.take_while(|head| now.since(head.since) > self.0).count();
        Plan { drop, mark: false }
    }
}

/// Queue discipline: gives every packet the same rank, or its position in its stream as rank.
#[derive(Clone, Debug)]
struct Ranks {
    by_position: bool,
}

impl QueueModel for Ranks {
    fn start(&self, _: &Place) -> Box<dyn CustomQueue> {
        Box::new(self.clone())
    }
    fn ranks(&self) -> bool {
        true
    }
}

impl CustomQueue for Ranks {
    fn at_enqueue(&mut self, _: &Arrival) -> Verdict {
        Verdict::Enqueue
    }
    fn rank(&mut self, arrival: &Arrival) -> u64 {
        if self.by_position { arrival.packet.position().into() } else { 0 }
    }
}

/// Congestion control: CUBIC without changes, wrapped as a mechanism of another crate.
#[derive(Clone, Debug)]
struct Wrapped;

impl CongestionModel for Wrapped {
    fn start(&self, place: &SenderPlace) -> Box<dyn CongestionControl> {
        Box::new(Cubic::start(&CubicRules::default(), place))
    }
}

/// Choice among equal-cost paths: takes the paths of a switch in turn.
#[derive(Debug)]
struct Turns(usize);

impl RoutingModel for Turns {
    fn start(&self, _: &SwitchPlace) -> Box<dyn CustomRouting> {
        Box::new(Turns(0))
    }
}

impl CustomRouting for Turns {
    fn choose(&mut self, choice: &Choice) -> usize {
        assert!((0..choice.paths()).all(|path| choice.waiting(path).packets < 1_000));
        self.0 += 1;
        self.0
    }
}

fn mechanisms() -> Mechanisms {
    let mut all = Mechanisms::default();
    all.queue("ramp", "early drop on a ramp", Ramp::read);
    all.queue("behind", "marks at dequeue", |s, _| {
        Behind(s.get(key("threshold", "Packets.").default("9")), read_signal(s))
    });
    all.queue("impatient", "drops at dequeue", |s, _| {
        Impatient(s.get(key("most", "Longest wait.").default("100 us")))
    });
    all.queue("ranks", "in order of ranks", |s, _| Ranks {
        by_position: s.get(key("by_position", "Or all equal.").default("false")),
    });
    all.congestion("wrapped", "CUBIC", |s| {
        let _: bool = s.get(key("nothing", "Does nothing.").default("true"));
        Wrapped
    });
    all.routing("turns", "in turn", |_| Turns(0));
    all
}

pub fn try_read(fabric: &str, tcp: &str) -> Result<Scenario, Vec<Problem>> {
    let text = format!(
        "schema = 1\n[fabric]\nkind = 'leaf-spine'\nleaves = 2\nhosts_per_leaf = 4\nspines = 2\n\
         host_rate = '1 Gbit/s'\nuplink_rate = '1 Gbit/s'\n{fabric}\n[tcp]\necn = 'on'\n\
         min_rto = '10 ms'\ninitial_rto = '20 ms'\n{tcp}\n[[workload]]\nname = 'all'\n\
         kind = 'all-to-all'\nbytes = '400 KB'\n"
    );
    read(&text, &Context { mechanisms: mechanisms(), ..context() }, &[])
}

fn digest(fabric: &str, tcp: &str) -> String {
    let scenario = try_read(fabric, tcp).unwrap_or_else(|p| panic!("{p:?}"));
    finish(&scenario).digest().to_owned()
}

#[test]
fn what_does_the_same_gives_the_same_digest() {
    let red = "queue = { kind = 'red', min = '5 packets', max = '15 packets', weight = 1, even = \
               false, max_probability = 1, gentle = false }";
    let plain = digest("", "");
    assert_ne!(digest(red, ""), plain);
    assert_eq!(digest(red, ""), digest("queue = { kind = 'ramp' }", ""));
    for protection in ["ece-bit", "ack+syn"] {
        let with = |queue: &str| queue.replace(" }", &format!(", protection = '{protection}' }}"));
        assert_eq!(digest(&with(red), ""), digest(&with("queue = { kind = 'ramp' }"), ""));
    }
    let step = "queue = { kind = 'step-marking', threshold = '9 packets', at = 'dequeue' }";
    let behind = "queue = { kind = 'behind', protection = 'bypass' }";
    assert_eq!(digest(step, ""), digest(behind, ""));
    let cubic = digest("", "congestion = 'cubic'");
    assert_ne!(cubic, plain);
    assert_eq!(cubic, digest("", "congestion = 'wrapped'"));
    let turns = digest("routing = 'round-robin'", "");
    assert_ne!(turns, plain);
    assert_eq!(turns, digest("routing = 'turns'", ""));
}

#[test]
fn drops_at_dequeue_are_carried_out_at_lazy_and_two_event_ports() {
    let lazy = digest("queue = { kind = 'impatient' }", "");
    assert_ne!(lazy, digest("", ""));
    assert_eq!(lazy, digest("reference_ports = true\nqueue = { kind = 'impatient' }", ""));
}

#[test]
fn equal_ranks_are_a_drop_tail_queue_and_others_are_not() {
    let plain = digest("queue = { limit = '20 packets' }", "");
    let ranked = |more: &str| {
        digest(&format!("queue = {{ kind = 'ranks', limit = '20 packets'{more} }}"), "")
    };
    assert_eq!(ranked(""), plain);
    assert_ne!(ranked(", by_position = true"), plain);
}

#[test]
fn a_result_can_be_run_again_where_its_mechanisms_are() {
    let scenario = try_read(
        "routing = 'turns'\nhost_queue = { kind = 'behind' }\nqueue = { kind = 'ramp', max = 40 }",
        "congestion = 'wrapped'",
    );
    let scenario = scenario.unwrap_or_else(|p| panic!("{p:?}"));
    let context = Context { mechanisms: mechanisms(), ..context() };
    let again = read(scenario.resolved(), &context, &[]).unwrap_or_else(|p| panic!("{p:?}"));
    assert_eq!(again, scenario);
    assert_eq!(again.resolved(), scenario.resolved());
    assert!(scenario.resolved().contains("max = 40"));
}

#[test]
fn settings_are_judged_as_those_of_built_in_mechanisms() {
    let problems = |fabric: &str, tcp: &str| -> Vec<String> {
        let found = try_read(fabric, tcp).expect_err("it is refused");
        found.iter().map(|p| format!("{}|{}|{:?}", p.path, p.message, p.hint)).collect()
    };
    let found = problems("queue = { kind = 'ramp', mni = 3, max = 5000, ecn = 'no' }", "");
    let all = found.join("\n");
    assert!(all.contains("fabric.queue.mni|is not a key of ramp, which has limit, min, max, ecn, protection|Some(\"min\")"), "{all}");
    assert!(all.contains("fabric.queue.max|must be 1 to 1000|None"), "{all}");
    assert!(all.contains("fabric.queue.ecn|") && found.len() == 3, "{all}");
    let found = problems("queue = { kind = 'ramp', min = 20 }", "");
    assert_eq!(found, ["fabric.queue.min|must be below `max`|None"]);
    let found = problems("queue = { kind = 'rmap' }", "");
    assert!(found[0].contains("Some(\"ramp\")"), "{found:?}");
    let found = problems("routing_parameters = {}", "parameters = { x = 1 }");
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn an_unknown_name_says_how_mechanisms_of_ones_own_are_named() {
    let text = "schema = 1\n[fabric]\nkind = 'star'\nhosts = 2\nhost_rate = '1 Gbit/s'\n\
                routing = 'mine'\nqueue = { kind = 'my-queue' }\n[tcp]\ncongestion = 'my-control'\n\
                [[workload]]\nname = 'all'\nkind = 'all-to-all'\nbytes = '1 KB'\n";
    let problems = read(text, &context(), &[]).expect_err("nobody added any");
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(problems.iter().all(|p| p.message.contains("--with")), "{problems:?}");
}
