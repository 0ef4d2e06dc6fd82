//! pFabric (Alizadeh et al., SIGCOMM 2013): packets go by the bytes that their flow has left.
//!
//! The file is `src/lib.rs` of a crate (`eastwest new pfabric`); pfabric.py is its twin in Python. The queue of
//! every port, also those of hosts, is `pfabric`. The congestion control `line-rate` is what the paper leaves of
//! one: a constant window, `tcp.initial_window`, which only a timeout lowers.

use eastwest::Mechanisms;
use eastwest::congestion::{Ack, CongestionControl, CongestionModel, SenderPlace, Window};
use eastwest::queue::{Arrival, CustomQueue, Place, QueueModel, Verdict};

/// The flow with the fewest bytes left goes first.
#[derive(Clone, Copy, Debug)]
struct PFabric;

impl QueueModel for PFabric {
    fn start(&self, _: &Place) -> Box<dyn CustomQueue> {
        Box::new(PFabric)
    }

    fn ranks(&self) -> bool {
        true
    }

    /// Earlier packets of a flow have larger ranks and must not starve (section 4.2).
    fn keeps_flow_order(&self) -> bool {
        true
    }
}

impl CustomQueue for PFabric {
    /// A full queue drops the packet with the largest rank by itself.
    fn at_enqueue(&mut self, _: &Arrival) -> Verdict {
        Verdict::Enqueue
    }

    /// Returns the bytes that the flow of the packet has left; ACKs go before all data.
    fn rank(&mut self, arrival: &Arrival) -> u64 {
        arrival.remaining().unwrap_or(0)
    }
}

/// A window of constant size, but for timeouts.
#[derive(Clone, Copy, Debug)]
struct LineRate {
    window: u64,
}

impl CongestionModel for LineRate {
    fn start(&self, place: &SenderPlace) -> Box<dyn CongestionControl> {
        let window = u64::from(place.initial_window) * u64::from(place.segment);
        Box::new(LineRate { window })
    }
}

impl CongestionControl for LineRate {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        window.cwnd = (window.cwnd + ack.acked).min(self.window);
    }

    fn after_loss(&mut self, window: &Window, _flight: u64, _segment: u64) -> u64 {
        window.cwnd
    }
}

/// Adds both to what scenarios can name.
pub fn add(all: &mut Mechanisms) {
    all.queue("pfabric", "the flow with the fewest bytes left goes first", |_, _| PFabric);
    all.congestion("line-rate", "a constant window", |_| LineRate { window: 0 });
}

#[cfg(not(test))]
eastwest::mechanisms!(add);
