//! Traits of a discipline: settings with their names and how they are read, and the queue that they create.

use super::average::Average;
use super::decision::{Arrival, Head, Place, Plan, Ports, Verdict};
use super::inert::Inert;
use eastwest_settings::Section;
use eastwest_types::{Limit, Rate, Span, Time};
use std::fmt;

/// Bytes of memory of a queue besides its place in the port, where the discipline does not state more.
const MEMORY: u64 = 128;

/// Settings of a queue discipline.
pub trait QueueSettings: Clone + fmt::Debug + PartialEq {
    /// Queue of one port or of one class of it: a [`Discipline`], or a box of one.
    type Queue;

    /// Returns the limit of the queue: packets beyond it are dropped.
    fn limit(&self) -> Limit;

    /// Returns a queue without packets, at a port with these properties.
    fn start(&self, place: &Place) -> Self::Queue;

    /// Whether the discipline decides about packets at dequeue, which eager ports cannot do.
    fn decides_at_dequeue(&self) -> bool {
        false
    }

    /// Whether packets leave in the order in which they were enqueued.
    fn is_one_fifo(&self) -> bool {
        true
    }

    /// Whether the discipline can do nothing but mark packets.
    fn only_marks(&self) -> bool {
        false
    }

    /// Returns the queueing delay at which the discipline begins to signal congestion, at a port of
    /// this rate; thresholds in packets count full packets of `full` bytes. `None` if it never
    /// signals congestion.
    fn target(&self, _rate: Rate, _full: u32) -> Option<Span> {
        None
    }

    /// Returns warnings, with the arithmetic, about ports at which the discipline can never act.
    fn never_acts(&self, _inert: &Inert) -> Vec<String> {
        Vec::new()
    }

    /// Returns the bytes of memory of a queue besides its place in the port.
    fn memory(&self) -> u64 {
        MEMORY
    }
}

/// Name of a discipline in scenarios, and how its settings are read.
pub trait BuiltIn: QueueSettings {
    /// Name of the discipline in scenarios: `kind = "pie"`.
    const NAME: &'static str;
    /// One line of explanation of the discipline, for the reference of settings.
    const DOC: &'static str;

    /// Reads the settings from the table of the queue, where the limit has been read already.
    fn read(s: &mut Section, limit: Limit, ports: &Ports) -> Self;
}

/// Queue discipline of one port, or of one class of a port: settings and state.
pub trait Discipline {
    /// Returns the verdict for an arriving packet: enqueue, mark or drop.
    fn at_enqueue(&mut self, arrival: &Arrival) -> Verdict;

    /// Decides at dequeue which packets at the head of the queue are dropped, and whether the next
    /// one is marked; `heads`, which yields them, is called if the discipline looks at packets.
    #[inline]
    fn at_dequeue<'p, I: Iterator<Item = Head<'p>>>(
        &mut self,
        _now: Time,
        _heads: impl FnOnce() -> I,
    ) -> Plan {
        Plan::default()
    }

    /// Whether the discipline has to see every packet, even one that arrives at an idle port.
    #[inline]
    fn sees_all(&self) -> bool {
        false
    }

    /// Returns the number of queued packets below which [`Discipline::at_enqueue`] admits every
    /// packet and changes nothing.
    #[inline]
    fn admits_below(&self, _mtu: u32) -> u32 {
        0
    }

    /// Whether [`Discipline::at_dequeue`] would do nothing to a packet that has been queued since `since`. May
    /// return `false` also where it would do nothing.
    #[inline]
    fn passes_without_decision(&mut self, _now: Time, _since: Time) -> bool {
        false
    }

    /// Returns the average queue length if it is all that changes while the queue is short, and
    /// settings are fixed: the condition for the fast path of RED. `None` for other disciplines.
    #[inline]
    fn steady_average(&mut self) -> Option<&mut Average> {
        None
    }
}
