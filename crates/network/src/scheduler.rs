//! Scheduler of a port: how the queues of its traffic classes share the link (keys `scheduler` and
//! `[[fabric.class]]`).

mod ets;

use crate::queue::{self, Ports, QueueConfig, ReadQueue, Room};
use eastwest_settings::reader::{Section, key};
use eastwest_settings::{Dscp, Entry};

/// Scheduler of the traffic classes of a port.
#[derive(Clone, Debug, PartialEq)]
pub enum SchedulerConfig {
    /// One queue for all packets.
    Fifo,
    /// Two queues, each with the queue limit of the port: codepoints 32–63 (priorities 4–7) are
    /// served before codepoints 0–31, without preemption.
    StrictPriority,
    /// One queue for each class in the list. Every codepoint belongs to one class.
    Classes(Vec<PortClass>),
}

impl SchedulerConfig {
    /// Returns the classes of a port; empty if the port has one queue for all packets.
    pub fn classes(&self) -> Vec<PortClass> {
        match self {
            SchedulerConfig::Fifo => Vec::new(),
            SchedulerConfig::StrictPriority => [u64::MAX << 32, u64::MAX >> 32]
                .map(|dscps| PortClass { dscps, weight: None, queue: None })
                .to_vec(),
            SchedulerConfig::Classes(classes) => classes.clone(),
        }
    }
}

/// Traffic class of a port: the packets with certain codepoints, which have their own queue.
#[derive(Clone, Debug, PartialEq)]
pub struct PortClass {
    /// Mask of the codepoints of the class: bit d for DSCP d.
    pub dscps: u64,
    /// Weight of the class, relative to other weighted classes, for the share of the rate that
    /// strict classes do not use. `None`: a strict class, served before all weighted classes and
    /// before later strict classes.
    pub weight: Option<u32>,
    /// Queue discipline of the class; `None`: the discipline of the port.
    pub queue: Option<QueueConfig>,
}

/// Reads the keys `scheduler` and `[[fabric.class]]`. `others` are queue disciplines from other
/// crates.
pub fn read(
    s: &mut Section,
    ports: &Ports,
    room: Room,
    others: &[Entry<ReadQueue>],
    notes: &mut Vec<String>,
) -> SchedulerConfig {
    let scheduler = s.choice(
        "scheduler",
        "Order in which a port sends packets of different priorities.",
        Some("fifo"),
        &[
            ("fifo", SchedulerConfig::Fifo, "one queue for all packets"),
            (
                "strict-priority",
                SchedulerConfig::StrictPriority,
                "two queues, each with the port's limit: priorities 4–7 before 0–3, \
                 without preemption",
            ),
            ("classes", SchedulerConfig::Classes(Vec::new()), "a queue for each [[fabric.class]]"),
        ],
    );
    let classes = s.tables(
        "class",
        "A queue that every port has for the packets of some \
                                     priorities or codepoints.",
        8,
        |c, _| read_class(c, ports, room, others, notes),
    );
    if s.describing() {
        return scheduler;
    }
    match scheduler {
        SchedulerConfig::Classes(_) => {
            let mut mapped = map_codepoints(s, &classes);
            let shares: Vec<Option<u32>> = classes.iter().map(|c| c.share).collect();
            let has_weights = classes.iter().any(|c| c.weight.is_some());
            for (class, weight) in
                mapped.iter_mut().zip(ets::weights(s, &shares, has_weights).into_iter().flatten())
            {
                class.weight = weight;
            }
            SchedulerConfig::Classes(mapped)
        }
        other => {
            if !classes.is_empty() {
                s.wrong("class", "has an effect only with scheduler = \"classes\"");
            }
            other
        }
    }
}

/// Traffic class of a port as read from the scenario.
struct ReadClass {
    /// Mask of the priorities that the class names: bit p for priority p.
    priorities: u8,
    /// Mask of codepoints that the class names: bit d for DSCP d.
    dscps: u64,
    weight: Option<u32>,
    /// Share of the rate in percent, instead of a weight; `None` if the class has no share.
    share: Option<u32>,
    queue: Option<QueueConfig>,
}

fn read_class(
    c: &mut Section,
    ports: &Ports,
    room: Room,
    others: &[Entry<ReadQueue>],
    notes: &mut Vec<String>,
) -> ReadClass {
    let priorities: Option<Vec<u32>> = c.find(
        key(
            "priorities",
            "Priorities, 0 to 7, of the packets in this queue. The priority of a packet is the \
             upper three bits of its DSCP.",
        )
        .optional("none"),
    );
    let dscps: Option<Vec<Dscp>> = c.find(
        key(
            "dscp",
            "Codepoints of the packets in this queue, as names of RFC 4594 or numbers: [\"EF\", \
             \"AF41\", 18]. A codepoint takes precedence over `priorities` of other classes.",
        )
        .optional("none"),
    );
    let weight: Option<u32> = c.find(
        key(
            "weight",
            "Weight of this class when classes share the rate that strict classes do \
                       not use, by bytes.",
        )
        .range("1", "1000")
        .optional(
            "strict: served before all classes with a weight and before strict classes \
                       that follow in the file",
        ),
    );
    let share = ets::read_share(c);
    let own = c.has("queue");
    // Without this table, the class has the discipline of its port, which differs between hosts and
    // switches.
    let queue = c.table_if(
        own,
        "queue",
        "Queue discipline of this class; without this table the \
                                  discipline of the port.",
        |q| queue::read(q, ports, Room { alone: false, ..room }, others, notes),
    );
    let (priorities, dscps) = (priorities.unwrap_or_default(), dscps.unwrap_or_default());
    c.demand(!(priorities.is_empty() && dscps.is_empty()), &["priorities", "dscp"], || {
        "names neither a priority nor a codepoint: set `priorities` or `dscp`".to_owned()
    });
    let mut bits = 0u8;
    for &p in &priorities {
        c.demand(p < 8, &["priorities"], || {
            format!("{p} is not a priority; priorities are 0 to 7")
        });
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

/// Returns the mask of all codepoints of the priorities in the mask `priorities`.
fn of_priorities(priorities: u8) -> u64 {
    (0..8).filter(|p| priorities >> p & 1 == 1).fold(0, |bits, p| bits | 0xff << (8 * p))
}

/// Assigns every codepoint to a class: the class that names the codepoint, otherwise the class that
/// names its priority. Codepoints without class belong to the class of the default codepoint (RFC
/// 2474, section 3), if at least one class names codepoints; otherwise they are an error.
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
        s.wrong(
            "class",
            format!(
                "a priority can belong to only one class, but more than one class has these \
                 priorities: {several}"
            ),
        );
    }
    let twice = (0..64).filter(|d| classes.iter().filter(|c| c.dscps >> d & 1 == 1).count() > 1);
    let twice: Vec<String> = twice.map(|d| Dscp(d).name()).collect();
    if !twice.is_empty() {
        s.wrong(
            "class",
            format!(
                "a codepoint can belong to only one class, but more than one class has these \
                 codepoints: {}",
                twice.join(", ")
            ),
        );
    }
    let rest = !mapped.iter().fold(0, |bits, c| bits | c.dscps);
    let default = mapped.iter_mut().find(|c| c.dscps & 1 == 1);
    match default {
        _ if named == 0 && !none.is_empty() => {
            s.wrong(
                "class",
                format!(
                    "every priority from 0 to 7 must belong to a class, but no class has these \
                     priorities: {none}"
                ),
            );
        }
        Some(default) => default.dscps |= rest,
        None => s.wrong(
            "class",
            "no class has priority 0 or the codepoint DF (0); a class with DF is needed for \
             packets whose \
             codepoint no class names",
        ),
    }
    mapped
}
