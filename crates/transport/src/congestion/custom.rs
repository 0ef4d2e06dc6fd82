//! Congestion control from other crates: interface for mechanism crates, which `eastwest new`
//! creates.
//!
//! A [`CongestionModel`] has the settings of a scenario, and creates a [`CongestionControl`] for
//! every sender. [`growth`](super::growth) and [`new_reno`](super::new_reno) have functions that
//! most algorithms share.

use super::control::{CongestionControl, SenderPlace};
use eastwest_settings::Section;
use std::fmt;
use std::sync::Arc;

/// Function that reads the settings of a congestion control from another crate.
pub type ReadCongestion = dyn Fn(&mut Section) -> Arc<dyn CongestionModel> + Send + Sync;

/// Settings of a congestion control from another crate; creates the state of each sender.
pub trait CongestionModel: fmt::Debug + Send + Sync {
    /// Returns the initial state of a sender, which has sent nothing.
    fn start(&self, place: &SenderPlace) -> Box<dyn CongestionControl>;

    /// Whether receivers echo each ECN mark, as with DCTCP (RFC 8257). If false, receivers set ECE
    /// in all ACKs until the sender has reacted (RFC 3168).
    fn echoes_each_mark(&self) -> bool {
        false
    }

    /// Whether segments are paced, at the rate [`CongestionControl::pacing_rate`]. While this
    /// function returns `None`, the rate follows from the window.
    fn paces(&self) -> bool {
        false
    }

    /// Whether the algorithm has a [sampler](CongestionControl::sampler) of delivery rates. If
    /// true, TCP notifies the sampler when the application limits the sender.
    fn samples_rate(&self) -> bool {
        false
    }

    /// Whether switches write telemetry into packets, and receivers return it, so that the algorithm
    /// gets it by [`CongestionControl::on_telemetry`].
    fn reads_telemetry(&self) -> bool {
        false
    }

    /// Whether the algorithm sets window and pacing rate from a model of the path, as BBR does: see
    /// [`CongestionControl::follow`].
    fn follows_path(&self) -> bool {
        false
    }
}

/// Settings of a congestion control from another crate.
#[derive(Clone, Debug)]
pub struct CustomCongestionConfig {
    /// Settings of the congestion control, which create the state of each sender.
    pub model: Arc<dyn CongestionModel>,
    /// Seed of the run.
    pub seed: u64,
}

impl PartialEq for CustomCongestionConfig {
    fn eq(&self, other: &CustomCongestionConfig) -> bool {
        self.seed == other.seed && format!("{:?}", self.model) == format!("{:?}", other.model)
    }
}
