//! Where an endpoint meets [small queues](crate::congestion::small_queue): whether there is room in the
//! host's card for the next burst, and what is noted of those that leave.
//!
//! When a segment will have left the card is known when it is handed over, so that a sender that is
//! held back asks for one wake-up, at the time when there is room. Linux looks again whenever a packet
//! of the connection has left, which comes to the same. The wake-up does what `tcp_tsq_write` does:
//! sends what is lost, then what is new. Segments of a burst wait as one; each one that is sent again
//! asks for itself, and its hole stands for the packet that was lost: Linux asks with the whole packet
//! before it cuts it up.

use super::bursts::Room;
use super::config::TcpConfig;
use super::endpoint::Endpoint;
use super::offload::LARGEST;
use super::pace::Gate;
use super::phases::Phase;
use eastwest_types::Time;

impl Endpoint {
    /// Whether the card has room for the next burst, of `segments` at most; returns of how many it is.
    #[inline(never)]
    pub(super) fn card_gate(
        &mut self,
        now: Time,
        again: bool,
        segments: u16,
        room: Room,
        config: &TcpConfig,
    ) -> (Gate, u16) {
        let segment = u64::from(config.segment);
        let free = self.card_is_free(now);
        let lost = if again && !free { self.lost_hole(config) } else { None };
        let unsent = self.send_end().saturating_sub(self.stream.next);
        let sendable = room.window.min(room.right_edge.saturating_sub(self.stream.next)) / segment;
        let most = unsent.div_ceil(segment).min(sendable).max(1);
        let burst = most.min(u64::from(segments));
        let next = self.stream.next;
        let Some(control) = self.control.as_deref_mut() else { return (Gate::Open, segments) };
        let rate = control.pacing.rate;
        let queue = control.small_queue.get_or_insert_default();
        let rules = &config.small_queues;
        let mut blocked = false;
        if let Some(hole) = lost {
            if queue.has_room(rules.limit(hole, rate, true), segment) {
                return (Gate::Open, 1);
            }
            blocked = true;
        }
        if !free && !queue.has_room(rules.limit(burst * segment, rate, false), segment) {
            return (Gate::Shut, 1);
        }
        queue.burst_from = next;
        (if blocked { Gate::NewOnly } else { Gate::Open }, segments)
    }

    /// Whether nothing of the connection waits in the card, or no more than a burst is outstanding.
    fn card_is_free(&mut self, now: Time) -> bool {
        let una = self.stream.una;
        let Some(control) = self.control.as_deref_mut() else { return true };
        let queue = control.small_queue.get_or_insert_default();
        queue.free_at = Time::NEVER;
        queue.take_left(now);
        queue.waiting() == 0 || una >= queue.burst_from
    }

    /// Bytes from the next lost segment to what has arrived behind it, of one burst at most.
    fn lost_hole(&mut self, config: &TcpConfig) -> Option<u64> {
        if self.recovery.phase == Phase::Open {
            return None;
        }
        let (start, stop) = self.recovery.next_lost(&self.stream, config)?;
        let hole = self.recovery.sacked.gap_from(start).1.min(self.stream.next) - start;
        let most = if config.offload.on { LARGEST } else { u64::from(config.segment) };
        Some(hole.min(most).max(stop - start))
    }

    /// A segment has been handed to the card, which will have sent it at `leaves`.
    pub(super) fn note_in_card(&mut self, now: Time, leaves: Time) {
        if let Some(control) = self.control.as_deref_mut() {
            control.small_queue.get_or_insert_default().push(now, leaves);
        }
    }

    /// All that was sent is acknowledged: nothing waits, and an idle connection keeps nothing.
    pub(super) fn forget_card(&mut self) {
        if self.stream.una == self.stream.next
            && let Some(control) = self.control.as_deref_mut()
        {
            control.small_queue = None;
        }
    }
}
