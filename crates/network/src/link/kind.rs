//! Properties that many links have in common, in one object for all of them, so that the fields of a
//! link that every packet accesses fit into one cache line.

use eastwest_types::Span;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Properties of a link that many links share. A link whose properties change gets an object of its
/// own.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct LinkKind {
    /// Transmission time per byte in ps, times 2¹⁶.
    pub(crate) ps_per_byte_q16: u64,
    /// Current propagation delay, with the effect of faults.
    pub(crate) delay: Span,
    /// Width in time of the uniform random delay at the far end.
    pub(crate) jitter: Span,
    /// Number of packets in `on_wire` (in flight or queued) below which the discipline admits every
    /// packet and need not be called. In mode `Lazy`, the discipline at rest also decides nothing
    /// at dequeue below this number.
    pub(crate) admits_below: u32,
    /// Framing in bytes: bytes of a packet on the link in addition to its IP length.
    pub(crate) framing: u32,
    /// Smallest length of a packet on the link in bytes, framing included.
    pub(crate) min_frame: u32,
}

impl LinkKind {
    /// Returns the bytes on the link of a packet of `ip_len` IP bytes, framing and padding
    /// included.
    #[inline]
    pub(crate) fn wire_bytes(&self, ip_len: u32) -> u32 {
        (ip_len + self.framing).max(self.min_frame)
    }

    /// Returns the transmission time of a packet of `ip_len` IP bytes, framing and padding included,
    /// rounded down to a picosecond.
    #[inline]
    pub(crate) fn send_time(&self, ip_len: u32) -> Span {
        Span((u64::from(self.wire_bytes(ip_len)) * self.ps_per_byte_q16) >> 16)
    }
}

/// Largest number of kinds that are compared with the kind of a link.
const MOST_KINDS: usize = 64;

/// Kinds of the links of a fabric, each once.
#[derive(Default)]
pub(crate) struct Kinds(Vec<Arc<LinkKind>>);

impl Kinds {
    /// Replaces the object of a link with the one of earlier links that have equal properties.
    pub(crate) fn share(&mut self, of_link: &mut Arc<LinkKind>) {
        match self.0.iter().find(|kind| *kind == of_link) {
            Some(kind) => *of_link = Arc::clone(kind),
            None if self.0.len() < MOST_KINDS => self.0.push(Arc::clone(of_link)),
            None => {}
        }
    }
}
