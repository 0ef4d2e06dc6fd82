//! Queue disciplines written in Python.

use super::object::{Object, Origin};
use eastwest_network::pool::Stored;
use eastwest_network::queue::{self, CustomQueue, Place, Plan, QueueModel, Signal, Verdict};
use eastwest_types::{Limit, Span, Time, flag};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// A queue discipline written in Python: the user's class and its settings.
#[derive(Debug)]
pub struct Model {
    /// The Python class and its settings.
    pub origin: Origin,
    /// How the queue signals congestion (drop or ECN mark), and which packets it protects: the
    /// settings `ecn` and `protection`.
    pub signal: Signal,
    /// Limit of the queue, in packets or IP bytes.
    pub limit: Limit,
}

/// Minimum period of a timer of a queue discipline, in ps (100 ns).
const SHORTEST_PERIOD: u64 = 100_000;

impl QueueModel for Model {
    fn start(&self, place: &Place) -> Box<dyn CustomQueue> {
        let object = self.origin.object(
            |what| place.random(what),
            |object| {
                object.setattr("rate_bps", place.rate.0)?;
                object.setattr("mtu", place.mtu)?;
                let (packets, bytes) = match self.limit {
                    Limit::Packets(n) => (Some(n), None),
                    Limit::Bytes(n) => (None, Some(n)),
                };
                object.setattr("limit_packets", packets)?;
                object.setattr("limit_bytes", bytes)
            },
        );
        let has = |method| self.origin.sketch.has(method);
        let period = match has("at_timer") {
            true => object.number("update_period_ps", SHORTEST_PERIOD, true).map(Span),
            false => None,
        };
        Box::new(SketchQueue {
            at_enqueue: has("at_enqueue"),
            at_dequeue: has("at_dequeue"),
            at_push_out: has("at_push_out"),
            object,
            period,
            signal: self.signal,
            limit: self.limit,
            ranks: has("rank"),
            trims: has("trims"),
        })
    }

    fn decides_at_dequeue(&self) -> bool {
        self.origin.sketch.has("at_dequeue")
    }

    fn sees_all(&self) -> bool {
        self.origin.sketch.has("at_enqueue")
    }

    fn ranks(&self) -> bool {
        self.origin.sketch.has("rank")
    }

    fn keeps_flow_order(&self) -> bool {
        self.origin.sketch.has("keeps_flow_order")
    }

    fn trims(&self) -> bool {
        self.origin.sketch.has("trims")
    }

    fn reads_remaining(&self) -> bool {
        self.origin.sketch.has("at_enqueue") || self.ranks()
    }
}

#[derive(Debug)]
struct SketchQueue {
    object: Object,
    at_enqueue: bool,
    at_dequeue: bool,
    at_push_out: bool,
    ranks: bool,
    trims: bool,
    period: Option<Span>,
    signal: Signal,
    limit: Limit,
}

impl SketchQueue {
    fn arrival(&self, arrival: &queue::Arrival, fits: bool) -> Arrival {
        Arrival {
            now_ps: arrival.now.0,
            queued_packets: arrival.backlog.packets,
            queued_bytes: arrival.backlog.bytes,
            idle: arrival.idle(),
            fits,
            remaining: arrival.remaining().unwrap_or(0),
            packet: Packet {
                ip_bytes: arrival.ip_len,
                flow: arrival.flow(),
                receiver: arrival.dst().0,
                stored: *arrival.packet,
                signal: self.signal,
            },
        }
    }

    fn head(&self, now: Time, head: &queue::Head) -> Head {
        Head {
            now_ps: now.0,
            waited_ps: now.since(head.since).0,
            left_packets: head.left.packets,
            left_bytes: head.left.bytes,
            rank: head.rank,
            packet: Packet {
                ip_bytes: head.ip_len(),
                flow: head.flow(),
                receiver: head.dst().0,
                stored: *head.packet,
                signal: self.signal,
            },
        }
    }
}

impl CustomQueue for SketchQueue {
    fn at_enqueue(&mut self, arrival: &queue::Arrival) -> Verdict {
        let fits = arrival.fits(self.limit) == Verdict::Enqueue;
        if !self.at_enqueue {
            return if fits || self.ranks { Verdict::Enqueue } else { Verdict::Drop };
        }
        let seen = self.arrival(arrival, fits);
        let trims = self.trims;
        let answer = self.object.call("at_enqueue", (seen,), |answer| verdict(answer, trims));
        answer.unwrap_or(Verdict::Enqueue)
    }

    fn at_dequeue(&mut self, now: Time, heads: &mut dyn Iterator<Item = queue::Head<'_>>) -> Plan {
        let mut plan = Plan::default();
        if !self.at_dequeue {
            return plan;
        }
        for head in heads {
            let seen = self.head(now, &head);
            match self.object.call("at_dequeue", (seen,), |answer| verdict(answer, false)) {
                Some(Verdict::Drop | Verdict::DropEarly) => plan.drop += 1,
                other => {
                    plan.mark = other == Some(Verdict::Mark);
                    break;
                }
            }
        }
        plan
    }

    fn rank(&mut self, arrival: &queue::Arrival) -> u64 {
        let fits = arrival.fits(self.limit) == Verdict::Enqueue;
        let seen = self.arrival(arrival, fits);
        self.object.call("rank", (seen,), |answer| answer.extract()).unwrap_or(0)
    }

    fn at_push_out(&mut self, now: Time, packet: &queue::Head) {
        if self.at_push_out {
            self.object.call("at_push_out", (self.head(now, packet),), |_| Ok(()));
        }
    }

    fn update_period(&self) -> Option<Span> {
        self.period
    }

    fn at_timer(&mut self, timer: &queue::Timer) -> bool {
        let seen = Timer { now_ps: timer.now.0, delay_ps: timer.delay.0 };
        let rests =
            self.object.call("at_timer", (seen,), |answer| answer.extract::<Option<bool>>());
        // After an exception the timer reports rest (true), so that it is not scheduled again: the
        // run ends.
        rests.is_none_or(|rests| rests.unwrap_or(false))
    }
}

/// Returns the number that stands for a verdict (enqueue, drop, mark …) in Python, see `Verdict` in
/// python/eastwest/mechanisms/sketch.py.
fn number(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Enqueue => 0,
        Verdict::Mark => 1,
        Verdict::Drop => 2,
        Verdict::DropEarly => 3,
        Verdict::Trim => 4,
    }
}

/// Class `Verdict` of python/eastwest/mechanisms/sketch.py.
static VERDICT: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// Returns the verdict (enqueue, drop, mark …) that Python returned, see `Verdict` in
/// python/eastwest/mechanisms/sketch.py. Fails for other values, also for numbers and bools, which
/// would be read as verdicts by mistake, and for `TRIM` unless `trims`.
fn verdict(answer: &Bound<'_, PyAny>, trims: bool) -> PyResult<Verdict> {
    let class = VERDICT.import(answer.py(), "eastwest.mechanisms.sketch", "Verdict")?;
    if !answer.get_type().is(class) {
        return Err(PyValueError::new_err("no verdict"));
    }
    match answer.extract::<u8>()? {
        0 => Ok(Verdict::Enqueue),
        1 => Ok(Verdict::Mark),
        2 => Ok(Verdict::Drop),
        3 => Ok(Verdict::DropEarly),
        4 if trims => Ok(Verdict::Trim),
        _ => Err(PyValueError::new_err("no verdict")),
    }
}

/// Properties of a packet that queue disciplines in Python can read.
#[derive(Clone, Copy)]
struct Packet {
    ip_bytes: u32,
    flow: u64,
    receiver: u32,
    stored: Stored,
    signal: Signal,
}

/// Defines a Python class for an argument of a queue discipline's methods: the given fields, and
/// the properties of a packet.
macro_rules! with_packet {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[pyclass(module = "eastwest", frozen)]
        struct $name {
            $(#[pyo3(get)] $field: $type,)*
            packet: Packet,
        }

        #[pymethods]
        impl $name {
            #[getter]
            fn ip_bytes(&self) -> u32 {
                self.packet.ip_bytes
            }
            #[getter]
            fn flow(&self) -> u64 {
                self.packet.flow
            }
            #[getter]
            fn receiver(&self) -> u32 {
                self.packet.receiver
            }
            #[getter]
            fn position(&self) -> u32 {
                self.packet.stored.position()
            }
            #[getter]
            fn kind(&self) -> &'static str {
                self.packet.stored.kind().name()
            }
            #[getter]
            fn understands_marks(&self) -> bool {
                self.packet.stored.understands_marks()
            }
            #[getter]
            fn trimmable(&self) -> bool {
                self.packet.stored.is_trimmable()
            }
            #[getter]
            fn has_payload(&self) -> bool {
                self.packet.stored.has_payload()
            }
            #[getter]
            fn has_ece(&self) -> bool {
                self.packet.stored.flags() & flag::ECE != 0
            }
            #[getter]
            fn dscp(&self) -> u8 {
                self.packet.stored.dscp()
            }
            /// Returns the number of the verdict with which the queue signals congestion for this
            /// packet (mark or drop), for `Queue.signal` in Python.
            #[getter]
            fn signal_verdict(&self) -> u8 {
                number(self.packet.signal.verdict(&self.packet.stored))
            }
        }
    };
}

with_packet! {
    /// A packet that arrives at a port, with the state of its queue, as the Python methods
    /// `at_enqueue` and `rank` receive it.
    Arrival {
        now_ps: u64,
        queued_packets: usize,
        queued_bytes: u64,
        idle: bool,
        fits: bool,
        remaining: u64,
    }
}

with_packet! {
    /// A packet at the head of a queue, as the Python method `at_dequeue` receives it; for the
    /// method `at_push_out`, the packet that is pushed out.
    Head {
        now_ps: u64,
        waited_ps: u64,
        left_packets: usize,
        left_bytes: u64,
        rank: u64,
    }
}

/// Expiry of a periodic timer of a queue, as the Python method `at_timer` receives it.
#[pyclass(module = "eastwest", frozen, get_all)]
struct Timer {
    now_ps: u64,
    delay_ps: u64,
}
