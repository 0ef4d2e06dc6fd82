//! What a measured port notes of every packet, for each of its classes.
//!
//! A packet that comes notes what waits in its class before it, whether or not it is let in: the queue
//! as packets find it, which is not the queue averaged over time. A packet that is about to be sent
//! notes how long it has waited; one that is dropped notes nothing.

use crate::queue::Backlog;
use eastwest_engine::histogram::Histogram;
use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// Histograms of one class.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ClassMeter {
    /// Packets that waited.
    pub packets: Histogram,
    /// IP bytes that waited.
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

    /// A packet comes and finds this.
    pub(crate) fn comes(&mut self, class: u8, waits: Backlog) {
        let class = self.class(class);
        class.packets.add(waits.packets as u64);
        class.bytes.add(waits.bytes);
    }

    /// A packet is sent that has waited for so long.
    pub(crate) fn goes(&mut self, class: u8, waited: Span) {
        self.class(class).sojourn.record(waited);
    }

    /// All classes that have been of use, by number.
    pub fn classes(&self) -> impl Iterator<Item = (u32, &ClassMeter)> {
        (0..).zip(&self.classes)
    }
}
