//! Settings of data-centre bridging of a fabric.

use super::pfc::PfcConfig;
use super::qcn::QcnConfig;
use serde::{Deserialize, Serialize};

/// Settings of data-centre bridging (DCB) of a fabric; a part that is off is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DcbConfig {
    /// Priority-based flow control.
    pub pfc: Option<PfcConfig>,
    /// Quantised congestion notification.
    pub qcn: Option<QcnConfig>,
}

impl DcbConfig {
    /// Whether ports are DCB ports: PFC or QCN is on.
    pub fn is_on(&self) -> bool {
        self.pfc.is_some() || self.qcn.is_some()
    }

    /// Returns the mask of lossless priorities: bit p for priority p.
    pub(crate) fn lossless(&self) -> u8 {
        self.pfc.as_ref().map_or(0, |c| c.priorities)
    }
}
