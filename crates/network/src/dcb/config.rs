//! Settings of data-centre bridging of a fabric.

use super::ingress_pool::{IngressPool, LossyPool};
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
        self.pool().is_some()
    }

    /// Returns the settings of the memory that the lossless inputs of a switch share; `None` if
    /// inputs share no memory.
    pub(crate) fn pool(&self) -> Option<&IngressPool> {
        self.pfc.as_ref()?.shared.as_ref()
    }

    /// Returns the settings of the memory that lossy queues of a switch share with its inputs;
    /// `None` if lossy queues use no shared memory.
    pub fn lossy_pool(&self) -> Option<LossyPool> {
        self.pool()?.lossy
    }

    /// Returns the mask of lossless priorities: bit p for priority p.
    pub(crate) fn lossless(&self) -> u8 {
        self.pfc.as_ref().map_or(0, |c| c.priorities)
    }
}
