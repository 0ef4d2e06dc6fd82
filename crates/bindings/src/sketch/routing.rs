//! Choice among equal-cost paths, written in Python.

use super::object::{Object, Origin};
use eastwest_network::routing::{self, CustomRouting, RoutingModel, SwitchPlace};
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
        Box::new(SketchRouting(self.origin.object(|what| place.random(what), set)))
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
            ingress: choice.ingress,
        };
        self.0.call("choose", (seen,), |answer| answer.extract()).unwrap_or(0)
    }
}

/// A packet that has several equal-cost paths at a switch, as the Python method receives it.
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
    ingress: u32,
}
