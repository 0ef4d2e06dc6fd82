//! Frames: the state of a run at a simulated time, for a caller that shows the run while it
//! continues. A frame is only an observation: digest and tables are equal with and without frames.

use crate::network::Network;
use crate::progress::Progress;
use crate::records::{Records, link_totals, queues};
use crate::transports::Transports;
use eastwest_types::Time;

/// Frames of a run that its caller requests.
pub struct Frames {
    /// Simulated time of the next frame; [`Time::NEVER`] if only the last frame is requested.
    pub next: Time,
    /// Frame that the caller has not taken yet; `None` if none is due.
    pub due: Option<Frame>,
}

/// State of a run after all events up to and including a simulated time.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Progress of the run; its current simulated time is the time of the frame.
    pub progress: Progress,
    /// For each link, the packets in the queue of its port, without the packet in transmission.
    pub queue_packets: Vec<u32>,
    /// For each link, the IP bytes in the queue of its port, without the packet in transmission.
    pub queue_bytes: Vec<u64>,
    /// For each link, the bytes carried since the start of the run, framing included.
    pub carried: Vec<u64>,
    /// For each link, the packets lost since the start of the run.
    pub drops: Vec<u64>,
    /// For each link, the packets that its port has marked with CE since the start of the run.
    pub marks: Vec<u64>,
    /// For each link, 1 if PFC pauses a priority of its port, otherwise 0.
    pub paused: Vec<u8>,
    /// Energy in joules that the links of each tier have used since the start of the run; empty if
    /// no link can save power.
    pub energy: Vec<(&'static str, f64)>,
    /// Number of messages that have arrived: rows of the table of flows.
    pub flows_done: u64,
    /// Number of messages on connections that were sent and have not arrived completely.
    pub open_messages: u64,
    /// Number of retransmissions and of timeouts since the start of the run, over all connections.
    pub losses: (u64, u64),
}

impl Frame {
    /// Returns the frame of a run at its current simulated time. All departures that are due by now
    /// must have been executed ([`Fabric::settle`](eastwest_network::fabric::Fabric::settle)).
    pub fn of(
        progress: Progress,
        network: &Network,
        transports: &Transports,
        records: &Records,
    ) -> Frame {
        let (fabric, now) = (&network.fabric, network.now);
        let links = fabric.links.len();
        let mut frame = Frame {
            progress,
            queue_packets: vec![0; links],
            queue_bytes: vec![0; links],
            carried: Vec::with_capacity(links),
            drops: Vec::with_capacity(links),
            marks: Vec::with_capacity(links),
            paused: fabric.links.iter().map(|l| u8::from(l.is_paused(now))).collect(),
            energy: Vec::new(),
            flows_done: records.flows.len(),
            open_messages: transports.open_messages(),
            losses: transports.losses(),
        };
        for (link, packets, bytes) in queues(fabric, now) {
            frame.queue_packets[link as usize] = packets;
            frame.queue_bytes[link as usize] = bytes;
        }
        for totals in link_totals(fabric) {
            frame.carried.push(totals.bytes);
            frame.drops.push(totals.drops);
            frame.marks.push(totals.marks);
        }
        let used = records.energy(fabric, now);
        frame.energy = records.tiers.iter().copied().zip(used.iter().map(|u| u.joules)).collect();
        frame
    }
}
