//! Everything that looks at a run and remembers what it sees.

use crate::capture::Capture;
use crate::critical_path::CriticalPaths;
use crate::flow_samples::Sampler;
use crate::network::Network;
use crate::plan::Plan;
use crate::records::Records;
use crate::tracer::Tracer;
use crate::{lpi, pauses};
use serde::{Deserialize, Serialize};

/// All that measures.
#[derive(Serialize, Deserialize)]
pub struct Probes {
    /// Rows, histograms and samples.
    pub records: Records,
    /// Windows of chosen senders.
    pub tracer: Tracer,
    /// Critical paths of the messages of chosen senders.
    pub paths: CriticalPaths,
    /// What chosen senders' receivers got over time.
    pub flow_samples: Sampler,
    /// Packets of chosen ports.
    pub capture: Option<Capture>,
}

impl Probes {
    /// Returns the probes that a plan asks for, and prepares the network for them.
    pub fn new(plan: &Plan, network: &mut Network) -> Probes {
        let (measure, fabric) = (&plan.measure, &mut network.fabric);
        lpi::start(fabric, measure);
        pauses::start(fabric, &measure.pauses);
        let records = Records::new(fabric, plan);
        let paths = CriticalPaths::new(measure.flow_parts.clone(), measure.flow_parts_rows);
        if paths.is_on() {
            fabric.journeys.keep();
        }
        Probes {
            records,
            tracer: Tracer::new(measure.tcp_trace.clone(), measure.tcp_trace_rows),
            paths,
            flow_samples: Sampler::new(measure.flow_samples.clone()),
            capture: Capture::new(&measure.capture, plan.fabric.processing_jitter, fabric),
        }
    }

    /// Returns whether anything looks at single packets on their way or at single segments.
    pub fn look_inside(&self, network: &Network) -> bool {
        self.tracer.is_on()
            || network.fabric.taps.any()
            || self.paths.is_on()
            || self.flow_samples.is_on()
    }
}
