//! What of data-centre bridging a fabric has.

use super::pfc::PfcConfig;
use super::qcn::QcnConfig;
use serde::{Deserialize, Serialize};

/// What of data-centre bridging a fabric has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DcbConfig {
    /// Priority-based flow control.
    pub pfc: Option<PfcConfig>,
    /// Quantised congestion notification.
    pub qcn: Option<QcnConfig>,
}

impl DcbConfig {
    /// Whether ports are bridged.
    pub fn is_on(&self) -> bool {
        self.pfc.is_some() || self.qcn.is_some()
    }

    /// Lossless priorities, as bits.
    pub(crate) fn lossless(&self) -> u8 {
        self.pfc.as_ref().map_or(0, |c| c.priorities)
    }
}
