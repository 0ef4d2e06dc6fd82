//! Settings of data-centre bridging of a fabric.

use super::pfc::PfcConfig;
use super::qcn::QcnConfig;
use serde::{Deserialize, Serialize};

/// Settings of data-centre bridging (DCB) of a fabric: PFC and QCN.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DcbConfig {
    /// Settings of priority-based flow control (PFC); `None` if PFC is off.
    pub pfc: Option<PfcConfig>,
    /// Settings of quantised congestion notification (QCN); `None` if QCN is off.
    pub qcn: Option<QcnConfig>,
}

impl DcbConfig {
    /// Whether ports use data-centre bridging (DCB), because PFC or QCN is on.
    pub fn is_on(&self) -> bool {
        self.pfc.is_some() || self.qcn.is_some()
    }

    /// Whether the lossless inputs of a switch share memory.
    pub(crate) fn has_pool(&self) -> bool {
        self.pfc.as_ref().is_some_and(|c| c.shared.is_some())
    }

    /// Returns the mask of lossless priorities: bit p for priority p.
    pub(crate) fn lossless(&self) -> u8 {
        self.pfc.as_ref().map_or(0, |c| c.priorities)
    }
}
