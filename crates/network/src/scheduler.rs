//! How a port serves packets of different priority, as the scenario describes it.

use crate::queue::QueueConfig;

/// How a port serves its priorities.
#[derive(Clone, Debug, PartialEq)]
pub enum SchedulerConfig {
    /// One queue for all.
    Fifo,
    /// Two queues, each with the port's limit: codepoints 32–63 (priorities 4–7) before 0–31, without
    /// preemption.
    StrictPriority,
    /// A queue for each of these, which together have every codepoint once.
    Classes(Vec<PortClass>),
}

impl SchedulerConfig {
    /// The classes of a port; none where it has one queue for all.
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

/// A queue of a port for some of the packets.
#[derive(Clone, Debug, PartialEq)]
pub struct PortClass {
    /// Bit d is set for the differentiated services codepoint d.
    pub dscps: u64,
    /// Its share of what strict classes leave, in proportion to the others'; none if it is strict
    /// itself: served before all weighted ones, and before strict ones that come later.
    pub weight: Option<u32>,
    /// Its discipline, if not the port's.
    pub queue: Option<QueueConfig>,
}
