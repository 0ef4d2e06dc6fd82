//! Traits of queue disciplines: settings, reading of settings from a scenario, and decisions about
//! packets.

use super::decision::{Arrival, Head, Place, Plan, Ports, Verdict};
use super::inert::Inert;
use crate::pool::Stored;
use eastwest_settings::Section;
use eastwest_types::{Limit, Rate, Span, Time};
use std::fmt;

/// Bytes of memory that a queue is assumed to use in addition to the `Queue` value in its port,
/// unless [`QueueSettings::memory`] of the discipline returns another number.
const MEMORY: u64 = 128;

/// Settings of a queue discipline.
pub trait QueueSettings: Clone + fmt::Debug + PartialEq {
    /// Type of the queue of one port or class: a [`Discipline`], or a `Box` of a discipline.
    type Queue;

    /// Returns the limit of the queue; packets that do not fit are dropped.
    fn limit(&self) -> Limit;

    /// Returns an empty queue; `place` describes the port of the queue (rate, MTU, seed).
    fn start(&self, place: &Place) -> Self::Queue;

    /// Whether the discipline decides about packets at dequeue. Ports in
    /// [`Mode::Eager`](crate::link::Mode::Eager) cannot serve such a discipline, since they fix
    /// departures at enqueue.
    fn decides_at_dequeue(&self) -> bool {
        false
    }

    /// Whether packets always leave in the order in which they were enqueued (one FIFO queue).
    fn is_one_fifo(&self) -> bool {
        true
    }

    /// Whether the discipline is meant only to mark packets, and therefore needs ECN-capable
    /// transports.
    fn only_marks(&self) -> bool {
        false
    }

    /// Returns the queueing delay at which the discipline begins to signal congestion, at a port
    /// with the rate `_rate`; `None` if the discipline never signals congestion. For thresholds in
    /// packets, every packet is assumed to have `_full` bytes.
    fn target(&self, _rate: Rate, _full: u32) -> Option<Span> {
        None
    }

    /// Returns warnings about ports at which the discipline can never drop early or mark, with the
    /// calculation in each warning.
    fn never_acts(&self, _inert: &Inert) -> Vec<String> {
        Vec::new()
    }

    /// Returns the bytes of memory that a queue uses in addition to the `Queue` value in its port.
    fn memory(&self) -> u64 {
        MEMORY
    }
}

/// Settings of a built-in queue discipline, with its name in scenarios and a function that reads
/// the settings.
pub trait BuiltIn: QueueSettings {
    /// Name of the discipline in scenarios, such as `pie` in `kind = "pie"`.
    const NAME: &'static str;
    /// One line of explanation of the discipline, for the reference of settings.
    const DOC: &'static str;

    /// Reads the settings of the discipline from the table of the queue. `limit` is the limit of
    /// the queue, and `ports` are the ports to which the settings apply.
    fn read(s: &mut Section, limit: Limit, ports: &Ports) -> Self;
}

/// Queue discipline of one port, or of one class of a port: settings and state.
pub trait Discipline {
    /// Returns the verdict for an arriving packet: enqueue, mark or drop.
    fn at_enqueue(&mut self, arrival: &Arrival) -> Verdict;

    /// Decides at dequeue which packets at the head of the queue are dropped, and whether the next
    /// packet is marked. `heads` returns an iterator over the queued packets; a discipline calls it
    /// only if it needs to see packets.
    #[inline]
    fn at_dequeue<'p, I: Iterator<Item = Head<'p>>>(
        &mut self,
        _now: Time,
        _heads: impl FnOnce() -> I,
    ) -> Plan {
        Plan::default()
    }

    /// Whether the discipline must see every packet, even a packet that arrives at an idle port and
    /// does not wait.
    #[inline]
    fn sees_all(&self) -> bool {
        false
    }

    /// Returns the queue length in packets below which [`Discipline::at_enqueue`] admits every
    /// packet and changes no state on which a later decision depends.
    #[inline]
    fn admits_below(&self, _mtu: u32) -> u32 {
        0
    }

    /// Returns two queue lengths in packets: a packet that finds fewer packets than the first one
    /// is enqueued, and a packet that finds the second one or more is dropped since the queue is
    /// full. Between them, [`Discipline::between_thresholds`] decides. `None` if there are no two
    /// lengths of this kind.
    fn packet_thresholds(&self) -> Option<[u32; 2]> {
        None
    }

    /// Returns the verdict of [`Discipline::at_enqueue`] for a packet that finds a queue between the
    /// two lengths of [`Discipline::packet_thresholds`]: it does not depend on the queue.
    #[inline]
    fn between_thresholds(&self, _packet: &Stored) -> Verdict {
        Verdict::Enqueue
    }

    /// Returns the queueing delay below which every packet is now sent without drop or mark at
    /// dequeue, and without a change of the state; zero if the discipline might decide about any
    /// packet.
    #[inline]
    fn passes_below(&self) -> Span {
        Span::ZERO
    }

    /// Whether a packet queued at `_since` leaves at `_now` without drop or mark and without a call
    /// of [`Discipline::at_dequeue`]. `false` means that `at_dequeue` must be called.
    #[inline]
    fn passes_without_decision(&mut self, _now: Time, _since: Time) -> bool {
        false
    }
}
