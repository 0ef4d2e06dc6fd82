//! Probes: all objects that observe a run and record data.

use crate::capture::Capture;
use crate::critical_path::CriticalPaths;
use crate::flow_samples::Sampler;
use crate::network::Network;
use crate::packet_hops::HopRecorder;
use crate::plan::Plan;
use crate::records::Records;
use crate::scenario::WindowConfig;
use crate::tracer::Tracer;
use crate::{lpi, pauses};
use serde::{Deserialize, Serialize};

/// All objects that observe a run and record data.
#[derive(Serialize, Deserialize)]
pub struct Probes {
    /// Rows of tables, histograms and samples over time.
    pub records: Records,
    /// Congestion windows over time of selected TCP senders.
    pub tracer: Tracer,
    /// Critical paths of the messages of selected senders.
    pub paths: CriticalPaths,
    /// Throughput over time at the receivers of selected senders.
    pub flow_samples: Sampler,
    /// Hops of the packets of selected senders.
    pub packet_hops: HopRecorder,
    /// Capture of packets at selected ports; `None` if no port is selected.
    pub capture: Option<Capture>,
    /// Simulated time interval in which the measures of workloads count (measurement window).
    pub window: WindowConfig,
}

impl Probes {
    /// Returns the probes (recorders) that a plan requires, and prepares the network for these
    /// probes.
    pub fn new(plan: &Plan, network: &mut Network) -> Probes {
        let (measure, fabric) = (&plan.measure, &mut network.fabric);
        lpi::start(fabric, measure);
        pauses::start(fabric, &measure.pauses);
        let records = Records::new(fabric, plan);
        let paths = CriticalPaths::new(measure.flow_parts.clone(), measure.flow_parts_rows);
        if paths.is_on() {
            fabric.journeys.keep();
        }
        let packet_hops = HopRecorder::new(measure.packet_hops.clone());
        if packet_hops.is_on() {
            fabric.journeys.keep_hops();
        }
        Probes {
            records,
            tracer: Tracer::new(measure.tcp_trace.clone(), measure.tcp_trace_rows),
            paths,
            flow_samples: Sampler::new(measure.flow_samples.clone()),
            packet_hops,
            capture: Capture::new(&measure.capture, plan.fabric.processing_jitter, fabric),
            window: measure.window.clone(),
        }
    }

    /// Whether a probe observes single packets in flight or single TCP segments, or a mechanism
    /// (cores of hosts, queues that read remaining bytes, telemetry) does. Such runs need a slower variant of
    /// the event loop.
    pub fn look_inside(&self, network: &Network) -> bool {
        self.tracer.is_on()
            || network.fabric.taps.any()
            || self.paths.is_on()
            || self.flow_samples.is_on()
            || self.packet_hops.is_on()
            || network.processing.is_some()
            || network.fabric.pool.keeps_remaining()
            || network.fabric.pool.keeps_telemetry()
    }
}
