//! Reports of the parts of a partitioned run between two windows.

use crate::world::World;
use eastwest_types::Time;

/// Reason for which parts that handle the events of workloads at their own hosts cannot finish a run.
pub const SLOT_IS_USED_AGAIN: &str = "a connection ended before another one was opened";

/// Report of one part of a partitioned run to the other parts between two windows. The same type
/// holds the sum over all parts.
#[derive(Clone, Copy)]
pub struct PartReport {
    /// Simulated time of the part's next event, or of the first event that the part sends to other
    /// parts if the latter is earlier.
    pub next: Time,
    /// Next simulated time at which the part must be executed in step with the others, on one
    /// thread.
    pub step: Time,
    /// Number of delivered messages (flows) of the part.
    pub done: u64,
    /// Number of events that the part has executed, without events that every part executes.
    pub events: u64,
    /// Number of packet transmissions of the part, updated every 64 windows.
    pub hops: u64,
    pub abort_reason: Option<&'static str>,
    pub last_open: Option<Time>,
    pub first_over: Option<Time>,
    /// Whether one thread executes the next windows of all parts.
    pub alone: bool,
    /// Whether the run has ended, in parts that replicate workloads.
    pub has_ended: bool,
    /// Smallest number of raw Ethernet frames in flight of a workload that has sent its last frame and
    /// has not finished; only in the sum over all parts.
    pub last_frames: i64,
}

impl PartReport {
    /// Report of no part.
    pub const NOTHING: PartReport = PartReport {
        next: Time::NEVER,
        step: Time::NEVER,
        done: 0,
        events: 0,
        hops: 0,
        abort_reason: None,
        last_open: None,
        first_over: None,
        alone: false,
        has_ended: false,
        last_frames: i64::MAX,
    };

    /// Returns the report of a part of a partitioned run, without the times of its next events.
    #[inline(always)]
    pub fn of(world: &World) -> PartReport {
        let part_state = world.part_state();
        PartReport {
            done: part_state.done,
            events: world.site.events - part_state.repeated - part_state.copied,
            hops: part_state.hops,
            abort_reason: part_state.abort_reason,
            last_open: part_state.last_open,
            first_over: part_state.first_over,
            has_ended: part_state.ended.is_some(),
            ..PartReport::NOTHING
        }
    }

    /// Returns the sum of the reports of all parts, without the times of their next events.
    pub fn of_all(worlds: &[&mut World]) -> PartReport {
        worlds.iter().fold(PartReport::NOTHING, |sum, world| sum.and(PartReport::of(world)))
    }

    /// Returns the sum of two reports.
    #[inline(always)]
    pub fn and(self, other: PartReport) -> PartReport {
        PartReport {
            next: self.next.min(other.next),
            step: self.step.min(other.step),
            done: self.done + other.done,
            events: self.events + other.events,
            hops: self.hops + other.hops,
            abort_reason: self.abort_reason.or(other.abort_reason),
            last_open: self.last_open.max(other.last_open),
            first_over: [self.first_over, other.first_over].into_iter().flatten().min(),
            alone: self.alone || other.alone,
            has_ended: self.has_ended || other.has_ended,
            last_frames: self.last_frames.min(other.last_frames),
        }
    }

    /// Returns the reason why the partitioned run must be repeated undivided; `None` if it can
    /// continue.
    pub fn obstacle(&self) -> Option<&'static str> {
        // After a connection has ended, the next one may reuse its slot. Which slot is reused
        // depends on the order of events in different parts, which no part knows.
        let reused = match (self.first_over, self.last_open) {
            (Some(over), Some(open)) => over <= open,
            _ => false,
        };
        self.abort_reason.or(reused.then_some(SLOT_IS_USED_AGAIN))
    }
}
