//! Raw Ethernet frames in one part of a partitioned run (one run on several threads).
//!
//! All parts execute the open-loop sources of frames, and each part sends the frames of its own hosts.
//! The receiver of a stream must know of lost frames, because it waits for frames that are missing. The
//! part in which a frame is lost announces the loss to the part of the receiver at the end of the
//! window. Later frames of the stream are behind the lost one in all queues, so that they leave the
//! place of the loss later, and need at least the delay of a cable from there. If a frame overtakes
//! another one nevertheless, the run is repeated undivided.
//!
//! A workload finishes in the event in which its last frame arrives, or is found to be lost. When it has
//! sent its last frame, and few frames are in flight, one thread executes all parts in step.

use crate::world::World;
use eastwest_engine::order::Key;
use eastwest_network::losses::Lost;
use eastwest_types::{HostId, Packet, Span, Time};
use eastwest_workload::Workload;

/// Report of one part, or of all parts, about a workload of raw Ethernet frames that has sent its last
/// frame and has not finished.
#[derive(Clone, Copy)]
pub struct LastFrames {
    /// Number of frames in flight, see [`Streams::under_way`](crate::streams::Streams::under_way).
    pub under_way: i64,
    /// Whether the workload may have finished in an event of the last window.
    pub is_looked_for: bool,
}

impl LastFrames {
    /// Adds the report of another part.
    pub fn add(&mut self, other: LastFrames) {
        self.under_way += other.under_way;
        self.is_looked_for |= other.is_looked_for;
    }
}

impl World {
    /// Announces the raw Ethernet frames that were lost until the time `until` to the parts of their
    /// receivers.
    pub(crate) fn announce_lost_frames(&mut self, until: Time) {
        if self.site.transports.streams.any() {
            self.record_losses_until(until, Time::NEVER);
        }
    }

    /// Receives the announcements of lost raw Ethernet frames from another part.
    pub(crate) fn receive_lost_frames(&mut self, lost: &mut Vec<Lost>) {
        lost.drain(..).for_each(|lost| self.site.transports.streams.misses(&lost));
    }

    /// Aborts the partitioned run if a raw Ethernet frame that arrives has to wait for an earlier one,
    /// which is not lost. `packet` is the frame.
    pub(crate) fn check_frame_order(&mut self, packet: &Packet) {
        if self.part_state.is_some() && self.site.transports.streams.would_hold(packet) {
            self.abort_partitioned("a raw Ethernet frame overtook an earlier one");
        }
    }

    /// Notes in a part of a partitioned run that the last frame of a workload may have arrived, or may be
    /// found to be lost, in the current event. `polls`: another search for lost frames follows if not.
    pub(crate) fn look_for_last_frame(&mut self, workload: u16, polls: bool) {
        let part_state = self.part_state_mut();
        let in_step = part_state.in_step;
        *part_state.last_frames.entry(workload).or_default() |= polls;
        if polls && !in_step {
            self.poll_lost_frames_later(workload);
        }
    }

    /// Returns reports about the workloads of raw Ethernet frames that have sent their last frame and
    /// have not finished, after a window.
    pub(crate) fn report_last_frames(&mut self) -> Vec<LastFrames> {
        let looked_for = std::mem::take(&mut self.part_state_mut().last_frames);
        let streams = &self.site.transports.streams;
        if !streams.any() {
            return Vec::new();
        }
        let drivers = (0u16..).zip(&self.site.drivers.all);
        let of_frames =
            drivers.filter(|(_, driver)| matches!(driver.workload, Workload::Ethernet(_)));
        let open =
            of_frames.filter(|(number, driver)| streams.has_sent_all(*number) && !driver.finished);
        open.map(|(number, _)| LastFrames {
            under_way: streams.under_way(number),
            is_looked_for: looked_for.contains_key(&number),
        })
        .collect()
    }

    /// Returns the number of raw Ethernet frames that can arrive in two windows of length `window`, at
    /// all hosts; 0 if no workload sends any.
    pub(crate) fn frames_of_two_windows(&self, window: Span) -> i64 {
        let bytes = self.site.drivers.all.iter().filter_map(|driver| match &driver.workload {
            Workload::Ethernet(ethernet) => Some(ethernet.config().bytes),
            _ => None,
        });
        let Some(bytes) = bytes.min() else { return 0 };
        let fabric = &self.site.network.fabric;
        let of_host = |host| {
            let time = fabric.host_rate(HostId(host)).time_for(u64::from(bytes));
            1 + window.0 / time.0.max(1)
        };
        let all: u64 = (0..fabric.graph.hosts).map(of_host).sum();
        i64::try_from(2 * all).unwrap_or(i64::MAX)
    }

    /// Finishes a workload of raw Ethernet frames in the event `last` (key, source).
    pub(crate) fn end_frames(&mut self, workload: u16, last: (Key, u32)) {
        self.site.drivers.finish(workload);
        if self.site.drivers.unfinished == 0 {
            self.part_state_mut().ended.get_or_insert(last);
        }
    }
}
