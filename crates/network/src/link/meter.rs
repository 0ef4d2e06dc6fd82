//! Histograms of a measured port, for each of its classes.
//!
//! Each packet that arrives records the queue of its class before it, whether or not it is admitted: the queue
//! as packets find it, which is not the average over time. A packet that starts to be sent records how long it
//! has waited; a dropped packet records nothing.

use crate::queue::Backlog;
use eastwest_engine::histogram::Histogram;
use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// Histograms of one class.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ClassMeter {
    /// Queue in packets, as found by arrivals.
    pub packets: Histogram,
    /// Queue in IP bytes, as found by arrivals.
    pub bytes: Histogram,
    /// Time from arrival until the first bit is sent.
    pub sojourn: Histogram,
}

/// Histograms of a port, by class.
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

    /// Records the queue that a packet finds.
    pub(crate) fn comes(&mut self, class: u8, waits: Backlog) {
        let class = self.class(class);
        class.packets.add(waits.packets as u64);
        class.bytes.add(waits.bytes);
    }

    /// Records how long a packet has waited that starts to be sent.
    pub(crate) fn goes(&mut self, class: u8, waited: Span) {
        self.class(class).sojourn.record(waited);
    }

    /// Returns the classes that have histograms, by number.
    pub fn classes(&self) -> impl Iterator<Item = (u32, &ClassMeter)> {
        (0..).zip(&self.classes)
    }
}
