//! Queue disciplines: rules for packets that find other packets queued at a port. A discipline
//! enqueues, marks or drops each packet.
//!
//! Each discipline is one file, with settings (names, defaults, sources), state and algorithm, and
//! one line in the list of [`BUILT_IN`] disciplines. Most disciplines decide at enqueue
//! ([`Discipline::at_enqueue`]) from the queue at this time. Every port can serve these
//! disciplines, also a port in [`Mode::Eager`](crate::link::Mode::Eager), which fixes departures at
//! enqueue. CoDel decides at dequeue ([`Discipline::at_dequeue`]), which needs
//! [`Mode::Lazy`](crate::link::Mode::Lazy) or [`Mode::TwoEvent`](crate::link::Mode::TwoEvent). The
//! module [`signal`] decides whether a congestion signal is an ECN mark or an early drop. A
//! discipline only decides ([`Verdict`]): the link sets the codepoint CE of the packet
//! (`Link::mark`, `PacketPool::mark`).
//!
//! Defaults are from the RFC or the paper that defines a discipline. If a default was meant for the
//! Internet, the explanation of the key states this, since a data centre needs other values. ECN
//! marks are on by default (RFC 7567, section 4.2.1), but apply only to transports that support
//! ECN.

mod adaptive_red;
mod average;
mod codel;
mod custom;
mod decision;
mod discipline;
mod drop_tail;
mod fq_codel;
mod inert;
mod pie;
mod ranked;
mod red;
mod signal;
mod step_marking;
mod trimming;

pub use adaptive_red::{AdaptiveRed, AdaptiveRedConfig};
pub use codel::{CoDel, CoDelConfig};
pub use custom::{Custom, CustomQueue, CustomQueueConfig, QueueModel, ReadQueue, Timer};
pub(crate) use decision::LARGEST_BARE_PACKET;
pub use decision::{Arrival, Backlog, Head, Level, Place, Plan, Ports, Verdict};
pub use discipline::{BuiltIn, Discipline, QueueSettings};
pub use drop_tail::DropTail;
pub use fq_codel::{FqCoDel, FqCoDelConfig};
pub use inert::Inert;
pub use pie::{Pie, PieConfig};
pub use ranked::Ranked;
pub use red::{Red, RedConfig, Spread};
pub use signal::{Protection, Signal, read_signal};
pub use step_marking::{StepMarking, StepMarkingConfig};
pub use trimming::{Admitted, Trimming};

use crate::pool::Stored;
use crate::shared_buffer::SharedBufferConfig;
use eastwest_settings::{Choice, Entry, Section, key};
use eastwest_types::{Limit, Rate, Span, Time};
use serde::{Deserialize, Serialize};

type ReadBuiltIn = fn(&mut Section, Limit, &Ports) -> QueueConfig;

/// Defines the enums of settings and queues and the list of built-in disciplines, and forwards each
/// call to the discipline. `$d` stands for the dollar sign in the macros that this macro defines.
macro_rules! family {
    ($d:tt $($name:ident($settings:ty)),* $(,)?) => {
        /// Settings of the queue discipline of a port.
        #[derive(Clone, Debug, PartialEq)]
        pub enum QueueConfig {
            $(#[doc = concat!("See [`", stringify!($settings), "`].")] $name($settings),)*
            /// A discipline from another crate, with its settings.
            Custom(CustomQueueConfig),
        }

        /// Queue of one port, or of one class of a port: settings and state of its discipline. The
        /// value is small for a discipline without state.
        #[derive(Debug, Serialize, Deserialize)]
        pub enum Queue {
            $(
                #[doc = concat!("See [`", stringify!($settings), "`].")]
                $name(<$settings as QueueSettings>::Queue),
            )*
            /// A discipline from another crate, with its state; this state cannot be stored in a
            /// checkpoint.
            #[serde(skip)]
            Custom(Box<Custom>),
        }

        /// Built-in disciplines: (name in scenarios, function that reads the settings,
        /// explanation).
        pub const BUILT_IN: &[Choice<ReadBuiltIn>] = &[$((
            <$settings>::NAME,
            |s, limit, ports| QueueConfig::$name(<$settings>::read(s, limit, ports)),
            <$settings>::DOC,
        )),*];

        impl QueueConfig {
            /// Returns an empty queue with these settings.
            pub fn start(&self, place: &Place) -> Queue {
                match self {
                    $(QueueConfig::$name(settings) => Queue::$name(settings.start(place)),)*
                    QueueConfig::Custom(settings) => Queue::Custom(settings.start(place)),
                }
            }
        }

        /// Forwards a call to the settings of the selected discipline.
        macro_rules! settings {
            ($d this:ident, $d member:ident => $d call:expr) => {
                match $d this {
                    $(QueueConfig::$name($d member) => $d call,)*
                    QueueConfig::Custom($d member) => $d call,
                }
            };
        }

        /// Forwards a call to the queue of the selected discipline.
        macro_rules! queue {
            ($d this:ident, $d member:ident => $d call:expr) => {
                match $d this {
                    $(Queue::$name($d member) => $d call,)*
                    Queue::Custom($d member) => $d call,
                }
            };
        }
    };
}

family! {
    $
    DropTail(DropTail),
    StepMarking(StepMarkingConfig),
    CoDel(CoDelConfig),
    Red(RedConfig),
    AdaptiveRed(AdaptiveRedConfig),
    Pie(PieConfig),
    FqCoDel(FqCoDelConfig),
}

impl QueueConfig {
    /// Returns the limit of the queue; packets that do not fit are dropped.
    pub fn limit(&self) -> Limit {
        settings!(self, c => c.limit())
    }

    /// Whether the discipline decides about packets at dequeue. Ports in
    /// [`Mode::Eager`](crate::link::Mode::Eager) cannot serve such a discipline, since they fix
    /// departures at enqueue.
    pub fn decides_at_dequeue(&self) -> bool {
        settings!(self, c => c.decides_at_dequeue())
    }

    /// Whether packets always leave in the order in which they were enqueued (one FIFO queue).
    pub fn is_one_fifo(&self) -> bool {
        settings!(self, c => c.is_one_fifo())
    }

    /// Whether the discipline is meant only to mark packets, and therefore needs ECN-capable
    /// transports.
    pub fn only_marks(&self) -> bool {
        settings!(self, c => c.only_marks())
    }

    /// Returns the queueing delay at which the discipline begins to signal congestion, at a port
    /// with the rate `rate`; `None` if the discipline never signals congestion. For thresholds in
    /// packets, every packet is assumed to have `full` bytes.
    pub fn target(&self, rate: Rate, full: u32) -> Option<Span> {
        settings!(self, c => c.target(rate, full))
    }

    /// Returns the bytes of memory that a queue uses in addition to the `Queue` value in its port.
    pub fn memory(&self) -> u64 {
        settings!(self, c => c.memory())
    }

    /// Whether the discipline reads [`Arrival::remaining`].
    pub(crate) fn reads_remaining(&self) -> bool {
        matches!(self, QueueConfig::Custom(c) if c.model.reads_remaining())
    }

    fn never_acts(&self, inert: &Inert) -> Vec<String> {
        settings!(self, c => c.never_acts(inert))
    }
}

impl Discipline for Queue {
    #[inline(always)]
    fn at_enqueue(&mut self, arrival: &Arrival) -> Verdict {
        queue!(self, q => q.at_enqueue(arrival))
    }

    fn at_dequeue<'p, I: Iterator<Item = Head<'p>>>(
        &mut self,
        now: Time,
        heads: impl FnOnce() -> I,
    ) -> Plan {
        queue!(self, q => q.at_dequeue(now, heads))
    }

    fn sees_all(&self) -> bool {
        queue!(self, q => q.sees_all())
    }

    fn admits_below(&self, mtu: u32) -> u32 {
        queue!(self, q => q.admits_below(mtu))
    }

    fn packet_thresholds(&self) -> Option<[u32; 2]> {
        queue!(self, q => q.packet_thresholds())
    }

    #[inline]
    fn between_thresholds(&self, packet: &Stored) -> Verdict {
        queue!(self, q => q.between_thresholds(packet))
    }

    #[inline]
    fn passes_below(&self) -> Span {
        queue!(self, q => q.passes_below())
    }

    #[inline]
    fn passes_without_decision(&mut self, now: Time, since: Time) -> bool {
        queue!(self, q => q.passes_without_decision(now, since))
    }
}

/// Default limit of the queues whose settings state no limit.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Default limit, written as in a scenario file.
    pub limit: &'static str,
    /// Explanation of the key `limit` in the reference of settings.
    pub doc: &'static str,
    /// Buffer shared by the ports, whose size replaces the default limit; `None` if the ports share
    /// no buffer.
    pub shared: Option<SharedBufferConfig>,
    /// Whether the queue is the only queue of its port, so that it can use the full rate of the
    /// link.
    pub alone: bool,
}

impl Room {
    fn read(self, s: &mut Section) -> Limit {
        let key = key("limit", self.doc);
        s.get(match self.shared {
            None => key.default(self.limit),
            Some(c) => {
                key.computed("the size of the memory that queues share", Limit::Bytes(c.size))
            }
        })
    }
}

/// Reads the settings of a queue from its table. `others` are disciplines from other crates. Adds
/// warnings to `notes` if the discipline can never drop early or mark with these settings.
pub fn read(
    s: &mut Section,
    ports: &Ports,
    room: Room,
    others: &[Entry<ReadQueue>],
    notes: &mut Vec<String>,
) -> QueueConfig {
    let built_in = BUILT_IN.iter().map(|&(name, read, doc)| (name, Ok(read), doc));
    let others = others.iter().map(|entry| (entry.name, Err(entry), entry.doc));
    let choices: Vec<_> = built_in.chain(others).collect();
    let kind = s.open_kind("Queue discipline.", Some(DropTail::NAME), &choices);
    let limit = room.read(s);
    if let (Limit::Bytes(bytes), Some(mtu)) = (limit, ports.mtu) {
        s.demand(bytes >= u64::from(mtu), &["limit"], || {
            format!("is too small: there is no room for a single packet of {mtu} B (fabric.mtu)")
        });
    }
    let queue = match kind {
        None => return QueueConfig::DropTail(DropTail(limit)),
        Some(Ok(read)) => read(s, limit, ports),
        Some(Err(entry)) => {
            s.belongs_to(entry.name);
            let model = (entry.read)(s, limit);
            QueueConfig::Custom(CustomQueueConfig { model, limit })
        }
    };
    if let Some(mtu) = ports.mtu.filter(|_| s.all_good()) {
        let inert = Inert { ports, mtu, shared: room.shared, alone: room.alone };
        notes.extend(queue.never_acts(&inert));
    }
    queue
}
