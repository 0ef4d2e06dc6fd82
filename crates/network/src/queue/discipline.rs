//! What every discipline provides: settings with their names and how they are read, and the queue that
//! they make.

use super::average::Average;
use super::decision::{Arrival, Head, Place, Plan, Ports, Verdict};
use super::inert::Inert;
use eastwest_settings::Section;
use eastwest_types::{Limit, Rate, Span, Time};
use std::fmt;

/// Bytes of memory that a queue takes besides its place in the port, where it does not say more.
const MEMORY: u64 = 128;

/// Settings of a discipline.
pub trait QueueSettings: Clone + fmt::Debug + PartialEq {
    /// The queue of one port or of one class of it: a [`Discipline`], or a box of one.
    type Queue;

    /// What does not fit into it is lost.
    fn limit(&self) -> Limit;

    /// A queue without packets.
    fn start(&self, place: &Place) -> Self::Queue;

    /// Whether it decides about packets when they leave, which eager ports cannot.
    fn decides_at_dequeue(&self) -> bool {
        false
    }

    /// Whether packets leave in the order in which they came.
    fn is_one_fifo(&self) -> bool {
        true
    }

    /// Whether it can do nothing but mark packets.
    fn only_marks(&self) -> bool {
        false
    }

    /// The delay at which it begins to signal congestion, if it does, at a port of this rate; thresholds
    /// are taken in full packets of so many bytes.
    fn target(&self, _rate: Rate, _full: u32) -> Option<Span> {
        None
    }

    /// Warnings, with the arithmetic, where it can never act.
    fn never_acts(&self, _inert: &Inert) -> Vec<String> {
        Vec::new()
    }

    /// Bytes of memory that a queue takes besides its place in the port.
    fn memory(&self) -> u64 {
        MEMORY
    }
}

/// How scenarios name a discipline and give its settings.
pub trait BuiltIn: QueueSettings {
    /// Its name: `kind = "pie"`.
    const NAME: &'static str;
    /// One line of explanation.
    const DOC: &'static str;

    /// Reads the settings from the table of the queue, where the limit has been read already.
    fn read(s: &mut Section, limit: Limit, ports: &Ports) -> Self;
}

/// The discipline of one port or of one class of it: settings and state.
pub trait Discipline {
    /// What to do with a packet that comes.
    fn at_enqueue(&mut self, arrival: &Arrival) -> Verdict;

    /// What to do with the packet at the head, and with those behind it that it takes along; `heads` is
    /// called where the discipline looks at them.
    #[inline]
    fn at_dequeue<'p, I: Iterator<Item = Head<'p>>>(
        &mut self,
        _now: Time,
        _heads: impl FnOnce() -> I,
    ) -> Plan {
        Plan::default()
    }

    /// Whether it has to see every packet, even one that comes to an idle port.
    #[inline]
    fn sees_all(&self) -> bool {
        false
    }

    /// While no more packets than this are held, [`Discipline::at_enqueue`] lets every packet in and
    /// changes nothing.
    #[inline]
    fn admits_below(&self, _mtu: u32) -> u32 {
        0
    }

    /// Whether [`Discipline::at_dequeue`] would do nothing to a packet that has waited since then; may say
    /// no where it would.
    #[inline]
    fn passes_without_decision(&mut self, _now: Time, _since: Time) -> bool {
        false
    }

    /// The average that is all that changes while the queue is short, where the settings stay as they are.
    #[inline]
    fn steady_average(&mut self) -> Option<&mut Average> {
        None
    }
}
