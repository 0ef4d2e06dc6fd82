//! Choice among equal-cost paths, written in Python.

use super::object::{Object, Origin};
use eastwest_network::routing::{self, CustomRouting, RoutingModel, SwitchPlace};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A choice among equal-cost paths written in Python: the user's class and its settings.
#[derive(Debug)]
pub struct Model {
    /// The Python class and its settings.
    pub origin: Origin,
}

impl RoutingModel for Model {
    fn start(&self, place: &SwitchPlace) -> Box<dyn CustomRouting> {
        let set = |object: &Bound<'_, PyAny>| object.setattr("switch", place.switch);
        let object = self.origin.object(|what| place.random(what), set);
        Box::new(SketchRouting(object))
    }

    fn sees_all(&self) -> bool {
        self.origin.sketch.has("forward")
    }
}

#[derive(Debug)]
struct SketchRouting(Object);

impl CustomRouting for SketchRouting {
    fn choose(&mut self, choice: &routing::Choice) -> usize {
        let queues = (0..choice.paths()).map(|path| choice.waiting(path));
        let (queued_packets, queued_bytes) = queues.map(|q| (q.packets, q.bytes)).unzip();
        let seen = Choice {
            now_ps: choice.now.0,
            paths: choice.paths(),
            flow_hash: choice.flow_hash,
            receiver: choice.dst.0,
            kind: choice.packet.kind().name(),
            queued_packets,
            queued_bytes,
            ports: (0..choice.paths()).map(|path| choice.port(path)).collect(),
            rates_bps: (0..choice.paths()).map(|path| choice.rate(path).0).collect(),
            delivered_bytes: (0..choice.paths()).map(|path| choice.delivered(path)).collect(),
            ingress: choice.ingress,
            edge: choice.edge,
            tag: choice.tag,
        };
        let paths = choice.paths();
        self.0.call("choose", (seen,), |answer| path_number(answer, paths)).unwrap_or(0)
    }

    fn forward(&mut self, transit: &mut routing::Transit) {
        let waiting = transit.waiting();
        let seen = Transit {
            now_ps: transit.now.0,
            flow_hash: transit.flow_hash,
            receiver: transit.dst.0,
            kind: transit.packet.kind().name(),
            wire_bytes: transit.wire_bytes,
            queued_packets: waiting.packets,
            queued_bytes: waiting.bytes,
            port: transit.port,
            rate_bps: transit.rate().0,
            ingress: transit.ingress,
            edge: transit.edge,
            from_host: transit.from_host,
            to_host: transit.to_host,
            tag: transit.tag,
        };
        let tag = self.0.call("forward", (seen,), |answer| answer.extract::<Option<u64>>());
        transit.tag = tag.flatten().unwrap_or(transit.tag);
    }
}

/// Returns the number of a path that Python returned. Fails unless it is a whole number below
/// `paths`: a larger number means that the method has not read the number of paths.
fn path_number(answer: &Bound<'_, PyAny>, paths: usize) -> PyResult<usize> {
    match answer.extract()? {
        path if path < paths => Ok(path),
        _ => Err(PyValueError::new_err("no path")),
    }
}

/// A packet that a switch is about to enqueue at a port, as the Python method `forward` receives
/// it.
#[pyclass(module = "eastwest", frozen, get_all)]
struct Transit {
    now_ps: u64,
    flow_hash: u16,
    receiver: u32,
    kind: &'static str,
    wire_bytes: u32,
    queued_packets: usize,
    queued_bytes: u64,
    port: u32,
    rate_bps: u64,
    ingress: u32,
    edge: u32,
    from_host: bool,
    to_host: bool,
    tag: u64,
}

/// A packet that has several equal-cost paths at a switch, as the Python method `choose` receives
/// it.
#[pyclass(module = "eastwest", frozen, get_all)]
struct Choice {
    now_ps: u64,
    paths: usize,
    flow_hash: u16,
    receiver: u32,
    kind: &'static str,
    queued_packets: Vec<usize>,
    queued_bytes: Vec<u64>,
    ports: Vec<u32>,
    rates_bps: Vec<u64>,
    delivered_bytes: Vec<u64>,
    ingress: u32,
    edge: u32,
    tag: u64,
}
