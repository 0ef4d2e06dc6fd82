//! Histograms of queue lengths and waiting times at a measured port, for each traffic class.
//!
//! Each arriving packet records the current queue of its class, even if the packet is dropped. The
//! histogram therefore shows the queue as seen by packets, not the average over time. A packet
//! records its waiting time when its transmission starts; a dropped packet records none.

use crate::queue::Backlog;
use eastwest_engine::histogram::Histogram;
use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// Histograms of the queue of one traffic class at a port.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ClassMeter {
    /// Histogram of the queue length in packets, as found by arrivals.
    pub packets: Histogram,
    /// Histogram of the queue length in IP bytes, as found by arrivals.
    pub bytes: Histogram,
    /// Histogram of the waiting time in ns, from arrival until the first bit is sent.
    pub sojourn: Histogram,
}

/// Histograms of queue lengths and waiting times at a port, by traffic class.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Meter {
    classes: Vec<ClassMeter>,
}

impl Meter {
    fn class(&mut self, class: u8) -> &mut ClassMeter {
        let class = usize::from(class);
        if class >= self.classes.len() {
            self.classes.resize_with(class + 1, ClassMeter::default);
        }
        &mut self.classes[class]
    }

    /// Records the queue `waits` of class `class` that an arriving packet finds.
    pub(crate) fn comes(&mut self, class: u8, waits: Backlog) {
        let class = self.class(class);
        class.packets.add(waits.packets as u64);
        class.bytes.add(waits.bytes);
    }

    /// Records the waiting time of a packet of class `class` when its transmission starts.
    pub(crate) fn goes(&mut self, class: u8, waited: Span) {
        self.class(class).sojourn.record(waited);
    }

    /// Returns the number and the histograms of each traffic class of the port.
    pub fn classes(&self) -> impl Iterator<Item = (u32, &ClassMeter)> {
        (0..).zip(&self.classes)
    }
}
