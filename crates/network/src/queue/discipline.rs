//! Traits of a discipline: settings with their names and how they are read, and the queue that they create.

use super::average::Average;
use super::decision::{Arrival, Head, Place, Plan, Ports, Verdict};
use super::inert::Inert;
use eastwest_settings::Section;
use eastwest_types::{Limit, Rate, Span, Time};
use std::fmt;

/// Bytes of memory of a queue besides its place in the port, where the discipline does not state more.
const MEMORY: u64 = 128;

/// Settings of a discipline.
pub trait QueueSettings: Clone + fmt::Debug + PartialEq {
    /// Queue of one port or of one class of it: a [`Discipline`], or a box of one.
    type Queue;

    /// Returns the limit of the queue: packets beyond it are dropped.
    fn limit(&self) -> Limit;

    /// Returns a queue without packets.
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

    /// Returns the queueing delay at which it begins to signal congestion, if it does, at a port of this rate;
    /// thresholds in packets count full packets of `full` bytes.
    fn target(&self, _rate: Rate, _full: u32) -> Option<Span> {
        None
    }

    /// Returns warnings, with the arithmetic, where the discipline can never act.
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
    /// Name: `kind = "pie"`.
    const NAME: &'static str;
    /// One line of explanation.
    const DOC: &'static str;

    /// Reads the settings from the table of the queue, where the limit has been read already.
    fn read(s: &mut Section, limit: Limit, ports: &Ports) -> Self;
}

/// Discipline of one port or of one class of it: settings and state.
pub trait Discipline {
    /// Returns the verdict for an arriving packet: enqueue, mark or drop.
    fn at_enqueue(&mut self, arrival: &Arrival) -> Verdict;

    /// Decides what is done with the packet at the head, and with those behind it that are dropped or sent with
    /// it; `heads` is called if the discipline looks at packets.
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

    /// Returns a number of packets: while a queue has fewer, [`Discipline::at_enqueue`] admits every packet and
    /// changes nothing.
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

    /// Returns the average that is all that changes while the queue is short, where settings are fixed: the
    /// condition for the fast path of RED.
    #[inline]
    fn steady_average(&mut self) -> Option<&mut Average> {
        None
    }
}
