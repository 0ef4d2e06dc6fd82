//! Queue disciplines: what is done with a packet that finds others queued at a port.
//!
//! One file each, and one line in the list of the family below. A file has the settings with their names,
//! defaults and sources, the state, and the algorithm. Most disciplines decide at enqueue
//! ([`Discipline::at_enqueue`]), by what is queued then; [eager ports](crate::link::Mode) know that as well as
//! two-event ones. CoDel decides at dequeue ([`Discipline::at_dequeue`]), which needs lazy ports. How a
//! discipline signals congestion, by an ECN mark or an early drop, is in [`signal`]. A discipline only decides
//! ([`Verdict`]): the link sets the codepoint CE of the packet (`Link::mark`, `PacketPool::mark`).
//!
//! Defaults are those of the RFC or the paper that defines a discipline; where these were meant for the
//! Internet the explanation states it, since a data centre needs others. Marks are on by default (RFC 7567,
//! section 4.2.1): they concern only transports that ask for them.

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
pub use average::Average;
pub use codel::{CoDel, CoDelConfig};
pub use custom::{Custom, CustomQueue, CustomQueueConfig, QueueModel, ReadQueue, Timer};
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

use crate::shared_buffer::SharedBufferConfig;
use eastwest_settings::{Choice, Entry, Section, key};
use eastwest_types::{Limit, Rate, Span, Time};
use serde::{Deserialize, Serialize};

type ReadBuiltIn = fn(&mut Section, Limit, &Ports) -> QueueConfig;

/// Defines the settings, the queues and the list of names of the family, and forwards each call to the
/// discipline. `$d` stands for the dollar sign of the macros that it defines.
macro_rules! family {
    ($d:tt $($name:ident($settings:ty)),* $(,)?) => {
        /// Queue discipline of a port: its settings.
        #[derive(Clone, Debug, PartialEq)]
        pub enum QueueConfig {
            $(#[doc = concat!("See [`", stringify!($settings), "`].")] $name($settings),)*
            /// A discipline from another crate.
            Custom(CustomQueueConfig),
        }

        /// Queue discipline of one port, or of one class of a port: settings and state; small if
        /// there is only a limit.
        #[derive(Debug, Serialize, Deserialize)]
        pub enum Queue {
            $(
                #[doc = concat!("See [`", stringify!($settings), "`].")]
                $name(<$settings as QueueSettings>::Queue),
            )*
            /// A discipline from another crate.
            #[serde(skip)]
            Custom(Box<Custom>),
        }

        /// The built-in disciplines: name, function that reads the settings, explanation.
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

        /// Forwards a call to the settings.
        macro_rules! settings {
            ($d this:ident, $d member:ident => $d call:expr) => {
                match $d this {
                    $(QueueConfig::$name($d member) => $d call,)*
                    QueueConfig::Custom($d member) => $d call,
                }
            };
        }

        /// Forwards a call to the queue.
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
    /// Returns the limit of the queue: packets beyond it are dropped.
    pub fn limit(&self) -> Limit {
        settings!(self, c => c.limit())
    }

    /// Whether the discipline decides about packets at dequeue, which eager ports cannot do.
    pub fn decides_at_dequeue(&self) -> bool {
        settings!(self, c => c.decides_at_dequeue())
    }

    /// Whether packets leave in the order in which they were enqueued.
    pub fn is_one_fifo(&self) -> bool {
        settings!(self, c => c.is_one_fifo())
    }

    /// Whether the discipline can do nothing but mark packets.
    pub fn only_marks(&self) -> bool {
        settings!(self, c => c.only_marks())
    }

    /// Returns the queueing delay at which the discipline begins to signal congestion, at a port of
    /// this rate; thresholds in packets count full packets of `full` bytes. `None` if it never
    /// signals congestion.
    pub fn target(&self, rate: Rate, full: u32) -> Option<Span> {
        settings!(self, c => c.target(rate, full))
    }

    /// Returns the bytes of memory of a queue besides its place in the port.
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

    #[inline]
    fn passes_without_decision(&mut self, now: Time, since: Time) -> bool {
        queue!(self, q => q.passes_without_decision(now, since))
    }

    #[inline]
    fn steady_average(&mut self) -> Option<&mut Average> {
        queue!(self, q => q.steady_average())
    }
}

/// Limit of queues whose settings state none.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Default limit, written as in a file.
    pub limit: &'static str,
    /// Explanation of the limit in the reference.
    pub doc: &'static str,
    /// Shared buffer of the ports, whose size replaces the default limit; `None` without it.
    pub shared: Option<SharedBufferConfig>,
    /// Whether no other queue shares the rate of the link.
    pub alone: bool,
}

impl Room {
    fn read(self, s: &mut Section) -> Limit {
        let key = key("limit", self.doc);
        s.get(match self.shared {
            None => key.default(self.limit),
            Some(c) => key.computed("fabric.shared_buffer.size", Limit::Bytes(c.size)),
        })
    }
}

/// Reads the table of a queue; `others` are disciplines from other crates. Adds warnings about
/// settings that never act to `notes`.
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
