//! Queue disciplines in Python.

use super::object::{Object, Origin};
use eastwest_network::pool::Stored;
use eastwest_network::queue::{self, CustomQueue, Place, Plan, QueueModel, Verdict};
use eastwest_types::{Limit, PacketKind, Time, flag};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A queue discipline written in Python: a class and its settings.
#[derive(Debug)]
pub struct Model {
    /// The class and its settings.
    pub origin: Origin,
    /// Limit of the queue, in packets or IP bytes.
    pub limit: Limit,
}

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
        let at_enqueue = self.origin.sketch.has("at_enqueue");
        Box::new(SketchQueue { object, at_enqueue, limit: self.limit })
    }

    fn decides_at_dequeue(&self) -> bool {
        self.origin.sketch.has("at_dequeue")
    }

    fn sees_all(&self) -> bool {
        self.origin.sketch.has("at_enqueue")
    }
}

#[derive(Debug)]
struct SketchQueue {
    object: Object,
    at_enqueue: bool,
    limit: Limit,
}

impl CustomQueue for SketchQueue {
    fn at_enqueue(&mut self, arrival: &queue::Arrival) -> Verdict {
        let fits = arrival.fits(self.limit) == Verdict::Enqueue;
        if !self.at_enqueue {
            return if fits { Verdict::Enqueue } else { Verdict::Drop };
        }
        let seen = Arrival {
            now_ps: arrival.now.0,
            queued_packets: arrival.backlog.packets,
            queued_bytes: arrival.backlog.bytes,
            idle: arrival.idle(),
            fits,
            packet: Packet::new(arrival.packet, Some(arrival.ip_len)),
        };
        self.object.call("at_enqueue", (seen,), verdict).unwrap_or(Verdict::Enqueue)
    }

    fn at_dequeue(&mut self, now: Time, heads: &mut dyn Iterator<Item = queue::Head<'_>>) -> Plan {
        let mut plan = Plan::default();
        for head in heads {
            let seen = Head {
                now_ps: now.0,
                waited_ps: now.since(head.since).0,
                left_packets: head.left.packets,
                left_bytes: head.left.bytes,
                packet: Packet::new(head.packet, None),
            };
            match self.object.call("at_dequeue", (seen,), verdict) {
                Some(Verdict::Drop | Verdict::DropEarly) => plan.drop += 1,
                other => {
                    plan.mark = other == Some(Verdict::Mark);
                    break;
                }
            }
        }
        plan
    }
}

/// Returns the verdict of a number of `Verdict` in python/eastwest/mechanisms/sketch.py.
fn verdict(answer: &Bound<'_, PyAny>) -> PyResult<Verdict> {
    match answer.extract::<u8>()? {
        0 => Ok(Verdict::Enqueue),
        1 => Ok(Verdict::Mark),
        2 => Ok(Verdict::Drop),
        3 => Ok(Verdict::DropEarly),
        _ => Err(PyValueError::new_err("no verdict")),
    }
}

/// A packet as disciplines see it.
#[derive(Clone, Copy)]
struct Packet {
    ip_bytes: Option<u32>,
    kind: PacketKind,
    understands_marks: bool,
    flags: u8,
    dscp: u8,
}

impl Packet {
    fn new(stored: &Stored, ip_bytes: Option<u32>) -> Packet {
        Packet {
            ip_bytes,
            kind: stored.kind(),
            understands_marks: stored.understands_marks(),
            flags: stored.flags(),
            dscp: stored.dscp(),
        }
    }

    fn has_payload(&self) -> bool {
        use PacketKind::{Data, Datagram, Retransmission};
        matches!(self.kind, Data | Retransmission | Datagram)
    }

    fn has_ece(&self) -> bool {
        self.flags & flag::ECE != 0
    }
}

/// A packet that arrives at a port.
#[pyclass(module = "eastwest", frozen)]
struct Arrival {
    #[pyo3(get)]
    now_ps: u64,
    #[pyo3(get)]
    queued_packets: usize,
    #[pyo3(get)]
    queued_bytes: u64,
    #[pyo3(get)]
    idle: bool,
    #[pyo3(get)]
    fits: bool,
    packet: Packet,
}

#[pymethods]
impl Arrival {
    #[getter]
    fn ip_bytes(&self) -> Option<u32> {
        self.packet.ip_bytes
    }
    #[getter]
    fn kind(&self) -> &'static str {
        self.packet.kind.name()
    }
    #[getter]
    fn understands_marks(&self) -> bool {
        self.packet.understands_marks
    }
    #[getter]
    fn has_payload(&self) -> bool {
        self.packet.has_payload()
    }
    #[getter]
    fn has_ece(&self) -> bool {
        self.packet.has_ece()
    }
    #[getter]
    fn dscp(&self) -> u8 {
        self.packet.dscp
    }
}

/// A packet at the head of a queue.
#[pyclass(module = "eastwest", frozen)]
struct Head {
    #[pyo3(get)]
    now_ps: u64,
    #[pyo3(get)]
    waited_ps: u64,
    #[pyo3(get)]
    left_packets: usize,
    #[pyo3(get)]
    left_bytes: u64,
    packet: Packet,
}

#[pymethods]
impl Head {
    #[getter]
    fn kind(&self) -> &'static str {
        self.packet.kind.name()
    }
    #[getter]
    fn understands_marks(&self) -> bool {
        self.packet.understands_marks
    }
    #[getter]
    fn has_payload(&self) -> bool {
        self.packet.has_payload()
    }
    #[getter]
    fn has_ece(&self) -> bool {
        self.packet.has_ece()
    }
    #[getter]
    fn dscp(&self) -> u8 {
        self.packet.dscp
    }
}
