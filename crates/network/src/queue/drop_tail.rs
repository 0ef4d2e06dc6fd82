//! FIFO queue that drops only packets that do not fit.

use super::decision::{Arrival, Place, Ports, Verdict, least_packets};
use super::discipline::{BuiltIn, Discipline, QueueSettings};
use eastwest_settings::Section;
use eastwest_types::Limit;
use serde::{Deserialize, Serialize};

/// Drop-tail queue of one port: its only field is the limit, and it has no state.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DropTail(pub Limit);

impl BuiltIn for DropTail {
    const NAME: &'static str = "drop-tail";
    const DOC: &'static str = "first in, first out; a packet that finds the queue full is dropped";

    fn read(_: &mut Section, limit: Limit, _: &Ports) -> DropTail {
        DropTail(limit)
    }
}

impl QueueSettings for DropTail {
    type Queue = DropTail;

    fn limit(&self) -> Limit {
        self.0
    }

    fn start(&self, _: &Place) -> DropTail {
        *self
    }

    fn memory(&self) -> u64 {
        0
    }
}

impl Discipline for DropTail {
    #[inline]
    fn at_enqueue(&mut self, arrival: &Arrival) -> Verdict {
        arrival.fits(self.0)
    }

    fn admits_below(&self, mtu: u32) -> u32 {
        least_packets(self.0, mtu)
    }

    fn packet_thresholds(&self) -> Option<[u32; 2]> {
        match self.0 {
            Limit::Packets(limit) => Some([limit; 2]),
            Limit::Bytes(_) => None,
        }
    }
}
