//! `[fabric.shared_buffer]`, `scheduler` and `[[fabric.class]]`: how the queues of a port share its memory and
//! its link.

use super::dscp::Dscp;
use super::ets;
use crate::mechanisms::Mechanisms;
use eastwest_network::queue::{self, Ports, QueueConfig, Room};
use eastwest_network::scheduler::{PortClass, SchedulerConfig};
use eastwest_network::shared_buffer::SharedBufferConfig;
use eastwest_settings::quantity::{Bytes, Ratio};
use eastwest_settings::reader::{Section, key};

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
    mechanisms: &Mechanisms,
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
        read_class(c, ports, room, mechanisms, notes)
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

fn read_class(
    c: &mut Section,
    ports: &Ports,
    room: Room,
    mechanisms: &Mechanisms,
    notes: &mut Vec<String>,
) -> ReadClass {
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
            queue::read(q, ports, Room { alone: false, ..room }, &mechanisms.queues, notes)
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
