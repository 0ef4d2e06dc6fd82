//! Queues that never act: warnings with the arithmetic.
//!
//! A threshold that the buffer never reaches, or a target above the delay of a full queue, turns a
//! discipline into drop-tail without a word. That is so for most thresholds published for 10 Gbit/s on
//! queues of 200 packets, and for targets meant for the Internet at the speeds of a data centre.

use super::queues::{Ports, Room};
use eastwest_network::config::QueueConfig;
use eastwest_network::queue::Level;
use eastwest_settings::narrow::whole_part;
use eastwest_types::{Limit, Span};

/// The most a queue ever holds, in full packets.
struct Most {
    packets: u64,
    bytes: u64,
    /// How that comes about.
    why: String,
}

impl Most {
    fn new(limit: Limit, room: Room, mtu: u64) -> Most {
        let (packets, bytes) = match limit {
            Limit::Packets(n) => (u64::from(n), u64::from(n) * mtu),
            Limit::Bytes(n) => (n / mtu, n),
        };
        // what the only queue that is not empty may take: α·B/(1 + α)
        let shared = room.shared.map_or(u64::MAX, |c| {
            let alone = c.alpha / (1.0 + c.alpha) * c.size as f64;
            whole_part(alone).max(c.reserve)
        });
        if shared < bytes {
            let packets = shared / mtu;
            let why = format!(
                "the shared buffer leaves a queue at most {shared} B, {packets} packets of {mtu} B"
            );
            return Most { packets, bytes: shared, why };
        }
        let why = match limit {
            Limit::Packets(_) => {
                format!("the limit of {packets} packets is {bytes} B at {mtu} B each")
            }
            Limit::Bytes(_) => format!("the limit of {bytes} B is {packets} packets of {mtu} B"),
        };
        Most { packets, bytes, why }
    }

    /// Whether the queue never gets so far that a discipline acts which waits for so much.
    fn stays_below(&self, level: Level) -> bool {
        match level {
            Level::Packets(n) => n >= self.packets as f64,
            Level::Bytes(n) => n >= self.bytes as f64,
        }
    }

    fn in_unit_of(&self, level: Level) -> f64 {
        match level {
            Level::Packets(_) => self.packets as f64,
            Level::Bytes(_) => self.bytes as f64,
        }
    }
}

fn show(level: Level) -> String {
    match level {
        Level::Packets(n) => format!("{n} packets"),
        Level::Bytes(n) => format!("{n} B"),
    }
}

/// What RED's thresholds never see; `name` says whose they are.
fn of_thresholds(name: &str, min: Level, max: Level, most: &Most) -> Option<String> {
    if most.stays_below(min) {
        return Some(format!(
            "{name} never acts: its lower threshold is {}, and {}",
            show(min),
            most.why
        ));
    }
    let (low, high, room) = (min.value(), max.value(), most.in_unit_of(max));
    (high > room).then(|| {
        format!(
            "{name} never gets to its upper threshold of {}, for {}: the queue is full when the \
             probability has gone {:.0} % of its way",
            show(max),
            most.why,
            100.0 * (room - low) / (high - low).max(1.0)
        )
    })
}

/// A target that even a full queue does not exceed, by rate.
fn of_target(name: &str, target: Span, most: &Most, ports: &Ports, notes: &mut Vec<String>) {
    for &rate in &ports.rates {
        let full = rate.time_for(most.bytes + most.packets * u64::from(ports.framing));
        if full <= target {
            notes.push(format!(
                "{name} never acts at {rate}: {}, which are sent in {full}, and its target is {target}",
                most.why
            ));
        }
    }
}

/// What a queue with these settings never does.
pub fn note(queue: &QueueConfig, ports: &Ports, room: Room, notes: &mut Vec<String>) {
    let Some(mtu) = ports.mtu else { return };
    let most = |limit| Most::new(limit, room, u64::from(mtu));
    // a class that shares the rate with others may wait for longer than its own packets take
    let target = |name, span, limit, notes: &mut Vec<String>| {
        if room.alone {
            of_target(name, span, &most(limit), ports, notes);
        }
    };
    match queue {
        QueueConfig::DropTail(_) | QueueConfig::Custom(_) => {}
        QueueConfig::StepMarking(c) => {
            let mark_from = match c.mark_from {
                Limit::Packets(n) => Level::Packets(f64::from(n)),
                Limit::Bytes(n) => Level::Bytes(n as f64),
            };
            let most = most(c.limit);
            if most.stays_below(mark_from) {
                notes.push(format!(
                    "step-marking never marks: it would mark from {} on, and {}",
                    show(mark_from),
                    most.why
                ));
            }
        }
        QueueConfig::Red(c) => notes.extend(of_thresholds("red", c.min, c.max, &most(c.limit))),
        QueueConfig::AdaptiveRed(c) => {
            for &rate in &ports.rates {
                let (min, max) = c.thresholds(rate);
                let name = format!(
                    "adaptive-red with a target of {} (packets of {} B) at {rate}",
                    c.target, c.red.mean_packet
                );
                let levels = (Level::Packets(min), Level::Packets(max));
                notes.extend(of_thresholds(&name, levels.0, levels.1, &most(c.red.limit)));
            }
        }
        QueueConfig::CoDel(c) => target("codel", c.target, c.limit, notes),
        QueueConfig::FqCoDel(c) => target("fq-codel", c.codel.target, c.codel.limit, notes),
        QueueConfig::Pie(c) => target("pie", c.target, c.limit, notes),
    }
}
