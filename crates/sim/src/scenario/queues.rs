//! `[fabric.queue]`, `[fabric.host_queue]` and `[[fabric.class]]`: what becomes of packets that wait.
//!
//! Defaults are those of the RFC or the paper that defines a discipline; where these were meant for
//! the Internet the explanation says so, since a data centre needs other ones. Marks are on by default
//! (RFC 7567, section 4.2.1): they concern transports that ask for them only.

use super::dscp::Dscp;
use super::ets;
use super::inert;
use crate::mechanisms::Mechanisms;
use eastwest_network::config::{PortClass, QueueConfig, SchedulerConfig};
use eastwest_network::queue::{
    AdaptiveRedConfig, CoDelConfig, CustomQueueConfig, FqCoDelConfig, Level, PieConfig, Protection,
    RedConfig, Signal, Spread, StepMarkingConfig,
};
use eastwest_network::shared_buffer::SharedBufferConfig;
use eastwest_settings::quantity::{Bytes, Fraction, Octets, Ratio};
use eastwest_settings::reader::{Choice, Section, key};
use eastwest_types::{Limit, Rate, Span};
use std::cell::Cell;

/// What queues are read for.
#[derive(Debug)]
pub struct Ports<'c> {
    /// Largest packet, if that is known.
    pub mtu: Option<u32>,
    /// Bytes per packet beyond its IP length.
    pub framing: u32,
    /// Rates of links, each once.
    pub rates: Vec<Rate>,
    /// Whether a queue can do nothing but mark packets: set while queues are read.
    pub asked_to_mark: Cell<bool>,
    /// Disciplines from outside.
    pub mechanisms: &'c Mechanisms,
}

/// The limit of queues that say nothing of it.
#[derive(Clone, Copy)]
pub struct Room {
    /// Their limit.
    pub limit: &'static str,
    /// Explains it.
    pub doc: &'static str,
    /// What their ports share, which takes its place.
    pub shared: Option<SharedBufferConfig>,
    /// Whether no other queue has a part of the link's rate.
    pub alone: bool,
}

impl Room {
    fn read(self, s: &mut Section) -> Limit {
        let key = key("limit", self.doc);
        s.get(match self.shared {
            None => key.default(self.limit),
            Some(c) => key.computed("fabric.shared_buffer.size", Limit::Bytes(c.size)),
        })
    }
}

/// A built-in discipline.
#[derive(Clone, Copy)]
pub enum Discipline {
    DropTail,
    StepMarking,
    CoDel,
    Red,
    AdaptiveRed,
    Pie,
    FqCoDel,
}

/// The built-in disciplines.
pub const DISCIPLINES: &[Choice<Discipline>] = &[
    ("drop-tail", Discipline::DropTail, "first in, first out; what does not fit is lost"),
    (
        "step-marking",
        Discipline::StepMarking,
        "drop-tail that marks packets of ECN transports behind a threshold (RFC 8257, 3.1)",
    ),
    (
        "codel",
        Discipline::CoDel,
        "drops at the head while packets wait too long (RFC 8289); lazy ports",
    ),
    (
        "red",
        Discipline::Red,
        "drops at random, more often the longer the queue (Floyd and Jacobson 1993)",
    ),
    (
        "adaptive-red",
        Discipline::AdaptiveRed,
        "RED with thresholds from a delay (Floyd et al. 2001; E-EON, table 5.2)",
    ),
    ("pie", Discipline::Pie, "a controller holds the delay (RFC 8033)"),
    (
        "fq-codel",
        Discipline::FqCoDel,
        "a CoDel queue for every flow, served in turn (RFC 8290); two-event ports",
    ),
];

/// Reads a queue.
pub fn read_queue(
    s: &mut Section,
    ports: &Ports,
    room: Room,
    notes: &mut Vec<String>,
) -> QueueConfig {
    let built_in = DISCIPLINES.iter().map(|&(name, kind, doc)| (name, Ok(kind), doc));
    let others = ports.mechanisms.queues.iter().map(|entry| (entry.name, Err(entry), entry.doc));
    let choices: Vec<_> = built_in.chain(others).collect();
    let kind = s.open_kind("Queue discipline.", Some("drop-tail"), &choices);
    let limit = room.read(s);
    if let (Limit::Bytes(bytes), Some(mtu)) = (limit, ports.mtu) {
        s.demand(bytes >= u64::from(mtu), &["limit"], || {
            format!("leaves no room for a single packet of {mtu} B (fabric.mtu)")
        });
    }
    let kind = match kind.unwrap_or(Ok(Discipline::DropTail)) {
        Ok(kind) => kind,
        Err(entry) => {
            let model = (entry.read)(s, limit);
            return QueueConfig::Custom(CustomQueueConfig { model, limit });
        }
    };
    let queue = match kind {
        Discipline::DropTail => QueueConfig::DropTail(limit),
        Discipline::StepMarking => read_step_marking(s, limit, ports),
        Discipline::CoDel => QueueConfig::CoDel(read_codel(s, limit)),
        Discipline::Red => read_red(s, limit),
        Discipline::AdaptiveRed => read_adaptive_red(s, limit),
        Discipline::Pie => read_pie(s, limit),
        Discipline::FqCoDel => read_fq_codel(s, limit, ports),
    };
    if s.all_good() && !s.describing() {
        inert::note(&queue, ports, room, notes);
    }
    queue
}

fn read_protection(s: &mut Section, default: &'static str) -> Protection {
    s.choice(
        "protection",
        "Packets that cannot be marked and yet are not dropped before the queue is full (E-EON, \
         chapter 6).",
        Some(default),
        &[
            ("default", Protection::Default, "none"),
            ("ece-bit", Protection::EceBit, "those with the ECE bit in the TCP header"),
            (
                "ack+syn",
                Protection::AckSyn,
                "those and all others of connections without payload: ACK, SYN, SYN-ACK, FIN",
            ),
            ("bypass", Protection::Bypass, "all"),
        ],
    )
}

/// Reads `ecn` and `protection`: what a discipline does with a packet that it signals.
pub fn read_signal(s: &mut Section) -> Signal {
    let ecn = s.get(
        key("ecn", "Packets of ECN transports are marked instead of dropped (RFC 7567, 4.2.1).")
            .default("true"),
    );
    Signal { ecn, protection: read_protection(s, "default") }
}

fn read_codel(s: &mut Section, limit: Limit) -> CoDelConfig {
    CoDelConfig {
        target: s.get(
            key("target", "How long a packet may wait (RFC 8289, 4.4; E-EON takes 300 to 800 us).")
                .default("5 ms")
                .range("1 us", "10 s"),
        ),
        interval: s.get(
            key(
                "interval",
                "A packet is dropped once all have waited for longer during this time (RFC 8289, \
                 4.3: a round trip of the longer kind; E-EON takes 0.75 to 20 ms).",
            )
            .default("100 ms")
            .range("10 us", "100 s"),
        ),
        signal: read_signal(s),
        limit,
    }
}

/// Whether it counts packets, and how many.
fn bytes_or_packets(limit: Limit) -> (bool, u64) {
    match limit {
        Limit::Packets(n) => (true, u64::from(n)),
        Limit::Bytes(n) => (false, n),
    }
}

fn read_step_marking(s: &mut Section, limit: Limit, ports: &Ports) -> QueueConfig {
    let threshold: Limit = s.get(key(
        "threshold",
        "Packets or IP bytes: a packet that finds more than this waiting is marked (Alizadeh et al. \
         2010: 20 packets at 1 Gbit/s, 65 at 10 Gbit/s); `mark` says whether one that finds exactly \
         this is marked too.",
    ));
    let from = s.choice(
        "mark",
        "At which length of the queue marking begins. Neither the packet itself nor the one that is \
         being sent counts.",
        Some("above"),
        &[
            ("above", false, "where more than `threshold` waits (DCTCP, RFC 8257, 3.1)"),
            ("from", true, "where `threshold` or more waits"),
        ],
    );
    let at_dequeue = s.choice(
        "at",
        "When the queue is looked at.",
        Some("enqueue"),
        &[
            ("enqueue", false, "when a packet comes (DCTCP)"),
            ("dequeue", true, "when it leaves, by what it leaves behind (ECN*); lazy ports"),
        ],
    );
    let protection = read_protection(s, "bypass");
    ports.asked_to_mark.set(true);
    let (k, room) = (bytes_or_packets(threshold), bytes_or_packets(limit));
    s.demand(k.0 != room.0 || k.1 < room.1, &["threshold", "limit"], || {
        "never marks: it is not below the limit".to_owned()
    });
    let mark_from = if from { threshold } else { threshold.plus_one() };
    QueueConfig::StepMarking(StepMarkingConfig { mark_from, at_dequeue, protection, limit })
}

fn read_red(s: &mut Section, limit: Limit) -> QueueConfig {
    let min: Limit = s.get(key(
        "min",
        "Average queue, in packets or IP bytes, from which on packets are signalled (E-EON, table \
         5.3: 25, 50 or 70 packets).",
    ));
    let max: Limit = s.get(key(
        "max",
        "Average queue from which on all are, or with `gentle` half of the rest (E-EON, table 5.3: \
         51 to 150 packets; Floyd advises three times `min`).",
    ));
    let (low, high) = (bytes_or_packets(min), bytes_or_packets(max));
    s.demand(low.0 == high.0, &["max", "min"], || {
        "must count what `min` counts, packets or bytes".to_owned()
    });
    s.demand(low.0 != high.0 || low.1 <= high.1, &["min", "max"], || "is above `max`".to_owned());
    let level = |limit: Limit| match limit {
        Limit::Packets(n) => Level::Packets(f64::from(n)),
        Limit::Bytes(n) => Level::Bytes(n as f64),
    };
    let red = read_red_rest(s, limit);
    QueueConfig::Red(RedConfig { min: level(min), max: level(max), ..red })
}

/// What RED and adaptive RED share.
fn read_red_rest(s: &mut Section, limit: Limit) -> RedConfig {
    let weight: Ratio = s.get(
        key(
            "weight",
            "Weight of the queue of the moment in its average; 1 takes the queue of the moment \
             (Floyd and Jacobson 1993: 0.002; E-EON: 1).",
        )
        .default("0.002")
        .range("0.000001", "1"),
    );
    let max_probability: Fraction = s.get(
        key(
            "max_probability",
            "Probability just below the upper threshold (Floyd 1997: 0.1; E-EON: 1).",
        )
        .default("0.1")
        .range("0.0001", "1"),
    );
    RedConfig {
        min: Level::Packets(0.0),
        max: Level::Packets(0.0),
        weight: weight.0,
        max_probability: max_probability.0,
        gentle: s.get(
            key(
                "gentle",
                "Above the upper threshold the probability grows on to one at twice of it (Floyd \
                 2000) instead of jumping to one.",
            )
            .default("true"),
        ),
        spread: read_spread(s),
        mean_packet: s.get(
            key::<Octets>(
                "mean_packet",
                "IP bytes of a typical packet: how fast the average decays while a port is idle, \
                 and what a delay is in packets (E-EON: 1000 B).",
            )
            .default("1000")
            .range("40", "9216"),
        )
        .0,
        signal: read_signal(s),
        mark_below: read_mark_below(s),
        limit,
    }
}

fn read_spread(s: &mut Section) -> Spread {
    let even: bool = s.get(
        key("even", "Signals are spread evenly (Floyd and Jacobson 1993, section 7).")
            .default("true"),
    );
    let wait: bool = s.get(
        key(
            "wait",
            "After a signal one over the probability packets pass before the next can come (ns-2's \
             `wait_`, on there by default); needs even.",
        )
        .default("false"),
    );
    s.demand(even || !wait, &["wait", "even"], || "needs signals that are spread".to_owned());
    match (even, wait) {
        (false, _) => Spread::Alone,
        (true, false) => Spread::Even,
        (true, true) => Spread::Wait,
    }
}

fn read_mark_below(s: &mut Section) -> Option<f64> {
    let below: Option<Fraction> = s.find(
        key(
            "mark_below",
            "ECN packets are marked while the probability, before it is spread, is below this, and \
             dropped from it on (ns-2's `mark_p_`: 0.1); with 1 they are dropped where all are \
             signalled, with gentle = false from the upper threshold on (RFC 3168, section 7; Linux \
             with `harddrop`).",
        )
        .range("0", "1")
        .optional("marked whatever the probability"),
    );
    below.map(|below| below.0)
}

fn read_adaptive_red(s: &mut Section, limit: Limit) -> QueueConfig {
    let target = s.get(
        key::<Span>(
            "target",
            "Delay that packets may find: the lower threshold is what the port sends in this time, \
             the upper one three times that (E-EON, tables 5.2 and 6.4: 100 us to 4 ms).",
        )
        .range("1 us", "10 s"),
    );
    let adapt = s.get(
        key(
            "adapt",
            "The probability at the upper threshold follows the average queue (Floyd et al. 2001); \
             E-EON's does not.",
        )
        .default("true"),
    );
    let red = read_red_rest(s, limit);
    QueueConfig::AdaptiveRed(AdaptiveRedConfig { target, adapt, red })
}

fn read_pie(s: &mut Section, limit: Limit) -> QueueConfig {
    let span = |s: &mut Section, name, doc, default| {
        s.get(key::<Span>(name, doc).default(default).range("1 us", "100 s"))
    };
    let gain = |s: &mut Section, name, doc, default| {
        s.get(key::<Ratio>(name, doc).default(default).range("0", "1000000")).0
    };
    let target =
        span(s, "target", "Delay to hold (RFC 8033, QDELAY_REF: for the Internet).", "15 ms");
    let update = span(s, "update", "Time between updates (RFC 8033, T_UPDATE).", "15 ms");
    let alpha = gain(s, "alpha", "Weight of the distance to the target, 1/s (RFC 8033).", "0.125");
    let beta = gain(s, "beta", "Weight of the change of delay, 1/s (RFC 8033).", "1.25");
    let burst = span(s, "burst", "Shorter congestion is let pass (RFC 8033, MAX_BURST).", "150 ms");
    let mark_up_to: Fraction = s.get(
        key(
            "mark_up_to",
            "Up to this probability ECN packets are marked, above dropped (RFC 8033, MARK_ECNTH).",
        )
        .default("0.1")
        .range("0", "1"),
    );
    let signal = read_signal(s);
    let mark_up_to = mark_up_to.0;
    QueueConfig::Pie(PieConfig { target, update, alpha, beta, burst, mark_up_to, signal, limit })
}

fn read_fq_codel(s: &mut Section, limit: Limit, ports: &Ports) -> QueueConfig {
    let flows: u32 = s.get(
        key("flows", "Queues that flows are hashed to (RFC 8290, 5.2.3).")
            .default("1024")
            .range("1", "65536"),
    );
    let quantum = s.get(
        key::<Octets>("quantum", "IP bytes a queue may send in its turn (RFC 8290, 5.2.4).")
            .computed("fabric.mtu", Octets(ports.mtu.unwrap_or(1500)))
            .range("40", "65536"),
    );
    let quantum = quantum.0;
    QueueConfig::FqCoDel(FqCoDelConfig { flows, quantum, codel: read_codel(s, limit) })
}

/// Reads `[fabric.shared_buffer]`.
pub fn read_shared_buffer(s: &mut Section, ports: &Ports) -> Option<SharedBufferConfig> {
    let given = s.has("shared_buffer");
    let doc = "Memory that all ports of a switch share, beside the limit of each queue (Choudhury \
               and Hahne 1998); two-event ports. Without it each port has its own.";
    if !given && !s.describing() {
        return None;
    }
    let config = s.table("shared_buffer", doc, |b| {
        let size: Bytes =
            b.get(key("size", "IP bytes of all queues of a switch.").range("1 KB", "100 GB"));
        let alpha: Ratio = b.get(
            key(
                "alpha",
                "A queue may hold this many times what is free (Choudhury and Hahne 1998: 1).",
            )
            .default("1")
            .range("0.001", "1000"),
        );
        let reserve: Bytes = b.get(
            key("reserve", "IP bytes that a queue may hold whatever others do.").default("0 B"),
        );
        let mtu = u64::from(ports.mtu.unwrap_or(0));
        b.demand(size.0 >= mtu, &["size"], || {
            format!("leaves no room for a single packet of {mtu} B (fabric.mtu)")
        });
        b.demand(reserve.0 <= size.0, &["reserve", "size"], || "is above `size`".to_owned());
        SharedBufferConfig { size: size.0, alpha: alpha.0, reserve: reserve.0 }
    });
    given.then_some(config)
}

/// Reads `scheduler` and `[[fabric.class]]`.
pub fn read_scheduler(
    s: &mut Section,
    ports: &Ports,
    room: Room,
    notes: &mut Vec<String>,
) -> SchedulerConfig {
    let scheduler = s.choice(
        "scheduler",
        "How ports choose among packets of different priority.",
        Some("fifo"),
        &[
            ("fifo", SchedulerConfig::Fifo, "one queue for all"),
            (
                "strict-priority",
                SchedulerConfig::StrictPriority,
                "two queues, each with the port's limit: priorities 4–7 before 0–3, \
                 without preemption",
            ),
            ("classes", SchedulerConfig::Classes(Vec::new()), "a queue for each [[fabric.class]]"),
        ],
    );
    let classes = s.tables("class", "A queue of every port for some of the packets.", 8, |c, _| {
        read_class(c, ports, room, notes)
    });
    if s.describing() {
        return scheduler;
    }
    match scheduler {
        SchedulerConfig::Classes(_) => {
            let mut mapped = map_codepoints(s, &classes);
            ets::weigh(s, &classes.iter().map(|c| c.share).collect::<Vec<_>>(), &mut mapped);
            SchedulerConfig::Classes(mapped)
        }
        other => {
            if !classes.is_empty() {
                s.wrong("class", "classes are only served with scheduler = \"classes\"");
            }
            other
        }
    }
}

/// A class of a port as the file has it.
struct ReadClass {
    /// Bit p is set for priority p.
    priorities: u8,
    /// Bit d is set for codepoint d, where it is named itself.
    dscps: u64,
    weight: Option<u32>,
    /// Its share in percent, in place of a weight.
    share: Option<u32>,
    queue: Option<QueueConfig>,
}

fn read_class(c: &mut Section, ports: &Ports, room: Room, notes: &mut Vec<String>) -> ReadClass {
    let priorities: Option<Vec<u32>> = c.find(
        key(
            "priorities",
            "Priorities of traffic classes, 0 to 7, whose packets wait here; a packet's priority is \
             the upper three bits of its DSCP.",
        )
        .optional("none"),
    );
    let dscps: Option<Vec<Dscp>> = c.find(
        key(
            "dscp",
            "Codepoints whose packets wait here whatever class has their priority, as names of RFC \
             4594 or numbers: [\"EF\", \"AF41\", 18].",
        )
        .optional("none"),
    );
    let weight: Option<u32> = c.find(
        key("weight", "Its share of what strict classes leave, by bytes.")
            .range("1", "1000")
            .optional("strict: served before all with a weight and before later ones without"),
    );
    let share = ets::read_share(c);
    let own = c.has("queue");
    // one that is not given is that of the port, which hosts and switches have of their own
    let queue =
        c.table_if(own, "queue", "Discipline of this class; that of the port without it.", |q| {
            read_queue(q, ports, Room { alone: false, ..room }, notes)
        });
    let (priorities, dscps) = (priorities.unwrap_or_default(), dscps.unwrap_or_default());
    c.demand(!(priorities.is_empty() && dscps.is_empty()), &["priorities", "dscp"], || {
        "names neither a priority nor a codepoint".to_owned()
    });
    let mut bits = 0u8;
    for &p in &priorities {
        c.demand(p < 8, &["priorities"], || format!("{p} is not one of 0 to 7"));
        bits |= 1u8.checked_shl(p).unwrap_or(0);
    }
    ReadClass {
        priorities: bits,
        dscps: dscps.iter().fold(0, |bits, dscp| bits | 1 << dscp.0),
        weight,
        share,
        queue,
    }
}

/// All codepoints of a priority.
fn of_priorities(priorities: u8) -> u64 {
    (0..8).filter(|p| priorities >> p & 1 == 1).fold(0, |bits, p| bits | 0xff << (8 * p))
}

/// Gives every codepoint one class: the one that names it, else that of its priority. Where codepoints
/// are named, others wait with the default ones (RFC 2474, section 3).
fn map_codepoints(s: &mut Section, classes: &[ReadClass]) -> Vec<PortClass> {
    let named = classes.iter().fold(0, |bits, c| bits | c.dscps);
    let mut mapped: Vec<PortClass> = classes
        .iter()
        .map(|c| PortClass {
            dscps: c.dscps | of_priorities(c.priorities) & !named,
            weight: c.weight,
            queue: c.queue.clone(),
        })
        .collect();
    if !s.good(&["class"]) {
        return mapped;
    }
    let of = |p: u32| classes.iter().filter(|c| c.priorities >> p & 1 == 1).count();
    let list = |wanted: fn(usize) -> bool| {
        let found: Vec<String> = (0..8).filter(|&p| wanted(of(p))).map(|p| p.to_string()).collect();
        found.join(", ")
    };
    let (none, several) = (list(|n| n == 0), list(|n| n > 1));
    if !several.is_empty() {
        s.wrong("class", format!("more than one class has these priorities: {several}"));
    }
    let twice = (0..64).filter(|d| classes.iter().filter(|c| c.dscps >> d & 1 == 1).count() > 1);
    let twice: Vec<String> = twice.map(|d| Dscp(d).name()).collect();
    if !twice.is_empty() {
        s.wrong("class", format!("more than one class has these codepoints: {}", twice.join(", ")));
    }
    let rest = !mapped.iter().fold(0, |bits, c| bits | c.dscps);
    let default = mapped.iter_mut().find(|c| c.dscps & 1 == 1);
    match default {
        _ if named == 0 && !none.is_empty() => {
            s.wrong("class", format!("no class has these priorities: {none}"));
        }
        Some(default) => default.dscps |= rest,
        None => s.wrong(
            "class",
            "no class has the codepoint DF (0) or priority 0, where packets wait whose codepoint no \
             class names",
        ),
    }
    mapped
}
