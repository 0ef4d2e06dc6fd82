//! Congestion control from outside of this crate: what a mechanism crate (`eastwest new`) implements.
//!
//! A [`CongestionModel`] is what a scenario sets: from it every sender gets a [`CongestionControl`] of
//! its own. [`growth`](super::growth) and [`new_reno`](super::new_reno) have the parts that most share.

use super::control::{CongestionControl, SenderPlace};
use eastwest_settings::Section;
use std::fmt;
use std::sync::Arc;

/// Reads the settings of a congestion control from outside.
pub type ReadCongestion = dyn Fn(&mut Section) -> Arc<dyn CongestionModel> + Send + Sync;

/// The settings of a congestion control, from which that of each sender is made.
pub trait CongestionModel: fmt::Debug + Send + Sync {
    /// A sender that has sent nothing.
    fn start(&self, place: &SenderPlace) -> Box<dyn CongestionControl>;

    /// Whether receivers answer each mark, as with DCTCP (RFC 8257), and not only the first until
    /// the sender has reacted.
    fn echoes_each_mark(&self) -> bool {
        false
    }

    /// Whether window and rate follow a model of the path: see [`CongestionControl::follow`].
    fn follows_path(&self) -> bool {
        false
    }
}

/// A congestion control from outside as the scenario sets it.
#[derive(Clone, Debug)]
pub struct CustomCongestionConfig {
    /// Its settings.
    pub model: Arc<dyn CongestionModel>,
    /// Seed of the run.
    pub seed: u64,
}

impl PartialEq for CustomCongestionConfig {
    fn eq(&self, other: &CustomCongestionConfig) -> bool {
        self.seed == other.seed && format!("{:?}", self.model) == format!("{:?}", other.model)
    }
}
