//! Warnings about disciplines that can never drop early or mark, each with the calculation.
//!
//! A threshold that the queue never reaches, or a target above the delay of a full queue, silently
//! turns a discipline into drop-tail. Examples are most published thresholds for 10 Gbit/s at a
//! queue of 200 packets, and most targets for the Internet at the rates of a data centre.

use super::decision::{Level, Ports};
use crate::shared_buffer::SharedBufferConfig;
use eastwest_settings::narrow::whole_part;
use eastwest_types::{Limit, Span};

/// Properties of the ports of a queue, from which the largest queue length follows.
#[derive(Debug)]
pub struct Inert<'a> {
    /// Ports to which the settings of the queue apply.
    pub ports: &'a Ports,
    /// Largest packet in IP bytes.
    pub mtu: u32,
    /// Shared memory that ports may use in addition to the limit of their queues; `None` without
    /// shared memory.
    pub shared: Option<SharedBufferConfig>,
    /// Whether the queue is the only queue of its port, so that it can use the full rate of the
    /// link.
    pub alone: bool,
}

/// Largest amount of data that a queue ever holds, in full packets and in bytes.
struct Most {
    packets: u64,
    bytes: u64,
    /// Explanation of this maximum for messages.
    why: String,
}

impl Most {
    fn new(limit: Limit, inert: &Inert) -> Most {
        let mtu = u64::from(inert.mtu);
        let (packets, bytes) = match limit {
            Limit::Packets(n) => (u64::from(n), u64::from(n) * mtu),
            Limit::Bytes(n) => (n / mtu, n),
        };
        // A queue can use at most α·B/(1 + α) of the shared memory B, if all other queues are
        // empty.
        let shared = inert.shared.map_or(u64::MAX, |c| {
            let alone = c.alpha / (1.0 + c.alpha) * c.size as f64;
            whole_part(alone).max(c.reserve)
        });
        if shared < bytes {
            let packets = shared / mtu;
            let why = format!(
                "the shared buffer limits the queue to {shared} B, which are {packets} packets of \
                 {mtu} B"
            );
            return Most { packets, bytes: shared, why };
        }
        let why = match limit {
            Limit::Packets(_) => {
                format!(
                    "the limit of the queue is {packets} packets, which are {bytes} B at \
                         {mtu} B each"
                )
            }
            Limit::Bytes(_) => format!(
                "the limit of the queue is {bytes} B, which are {packets} \
                                        packets of {mtu} B"
            ),
        };
        Most { packets, bytes, why }
    }

    /// Whether the queue length always stays below the level `level`.
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

impl Inert<'_> {
    /// Returns a warning if the queue never reaches the lower or the upper threshold of RED,
    /// otherwise `None`. `name` is the name of the discipline in the message.
    pub fn thresholds(&self, name: &str, min: Level, max: Level, limit: Limit) -> Option<String> {
        let most = Most::new(limit, self);
        if most.stays_below(min) {
            return Some(format!(
                "{name} never drops or marks early: its lower threshold is {}, but {}",
                show(min),
                most.why
            ));
        }
        let (low, high, room) = (min.value(), max.value(), most.in_unit_of(max));
        (high > room).then(|| {
            format!(
                "{name} never reaches its upper threshold of {}, because {}: when the queue is \
                 full, the probability has reached only {:.0} % of its highest value",
                show(max),
                most.why,
                100.0 * (room - low) / (high - low).max(1.0)
            )
        })
    }

    /// Returns a warning if the queue never reaches the marking threshold `mark_from`, otherwise
    /// `None`. `name` is the name of the discipline in the message.
    pub fn marking(&self, name: &str, mark_from: Limit, limit: Limit) -> Option<String> {
        let (most, from) = (Most::new(limit, self), Level::from(mark_from));
        most.stays_below(from).then(|| {
            format!(
                "{name} never marks: marking begins at a backlog of {}, but {}",
                show(from),
                most.why
            )
        })
    }

    /// Returns a warning for each port rate at which even a full queue does not exceed the delay
    /// target. `name` is the name of the discipline in messages.
    pub fn target(&self, name: &str, target: Span, limit: Limit) -> Vec<String> {
        // If other queues share the rate, packets may wait longer than the transmission time of
        // their own queue, so that no warning is possible.
        if !self.alone {
            return Vec::new();
        }
        let most = Most::new(limit, self);
        let mut notes = Vec::new();
        for &rate in &self.ports.rates {
            let full = rate.time_for(most.bytes + most.packets * u64::from(self.ports.framing));
            if full <= target {
                notes.push(format!(
                    "{name} never drops or marks early at {rate}: {}, a full queue is sent in \
                     {full}, and the target is {target}",
                    most.why
                ));
            }
        }
        notes
    }
}
