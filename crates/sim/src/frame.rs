//! Frames: the state of a run at a simulated time, for a caller that shows the run while it
//! continues. A frame is only an observation: digest and tables are equal with and without frames.

use crate::progress::Progress;
use crate::records::{link_totals, queues};
use crate::site::Site;
use eastwest_types::Time;

/// Frames of a run that its caller requests; see [`Site::request_frames`].
pub struct Frames {
    /// Simulated time of the next frame; [`Time::NEVER`] if only the last frame is requested.
    next: Time,
    /// Frame that the caller has not taken yet.
    due: Option<Frame>,
}

impl Site {
    /// Requests frames: the first at time `first`, and one at the end of the run. When a frame is
    /// due, the run calls its caller, who takes the frame and sets the time of the next one. The
    /// last frame is due when the run has returned.
    pub fn request_frames(&mut self, first: Time) {
        self.frames = Some(Box::new(Frames { next: first, due: None }));
    }

    /// Removes and returns the frame that is due; `None` if none is due.
    pub fn take_frame(&mut self) -> Option<Frame> {
        self.frames.as_mut()?.due.take()
    }

    /// Sets the time of the next frame. If the time is not later than the current time, the next
    /// frame shows the state after the next events.
    pub fn set_next_frame(&mut self, at: Time) {
        if let Some(frames) = &mut self.frames {
            frames.next = at;
        }
    }

    /// Whether the caller of the run requests frames.
    pub(crate) fn requests_frames(&self) -> bool {
        self.frames.is_some()
    }

    /// Returns the time of the next frame; [`Time::NEVER`] if none is requested.
    pub(crate) fn next_frame(&self) -> Time {
        self.frames.as_ref().map_or(Time::NEVER, |frames| frames.next)
    }

    /// Advances the current time to that of the next frame, which no event precedes.
    pub(crate) fn advance_to_frame(&mut self) {
        self.network.now = self.network.now.max(self.next_frame());
    }

    /// Makes the frame of the current time available to the caller of the run, if frames are
    /// requested. All departures that are due by now must have been executed
    /// ([`Fabric::settle`](eastwest_network::fabric::Fabric::settle)).
    pub(crate) fn show(&mut self) {
        if self.frames.is_some() {
            let frame = Frame::of(self);
            self.frames.as_mut().expect("frames are requested").due = Some(frame);
        }
    }

    /// Defers the next frame to the time `next` of the next event if the caller of the run has set
    /// no time later than now.
    pub(crate) fn defer_frame(&mut self, next: Time) {
        let now = self.network.now;
        if let Some(frames) = self.frames.as_mut().filter(|frames| frames.next <= now) {
            frames.next = next;
        }
    }
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
    pub(crate) fn of(site: &Site) -> Frame {
        let (fabric, records, now) = (&site.network.fabric, &site.probes.records, site.network.now);
        let links = fabric.links.len();
        let mut frame = Frame {
            progress: site.progress(),
            queue_packets: vec![0; links],
            queue_bytes: vec![0; links],
            carried: Vec::with_capacity(links),
            drops: Vec::with_capacity(links),
            marks: Vec::with_capacity(links),
            paused: fabric.links.iter().map(|l| u8::from(l.is_paused(now))).collect(),
            energy: Vec::new(),
            flows_done: records.flows.len(),
            open_messages: site.transports.open_messages(),
            losses: site.transports.losses(),
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
