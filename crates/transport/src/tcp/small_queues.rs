//! TCP small queues at an endpoint ([rule](crate::congestion::small_queue)): whether the host's NIC
//! has room for the next burst, and when the segments handed to the NIC will have left it.
//!
//! The time at which a segment leaves the NIC is known when it is handed over, so a throttled
//! sender arms one timer for the time at which there is room. Linux checks whenever a packet of the
//! connection has left, which is equivalent. At expiry the sender does what `tcp_tsq_write` does:
//! it retransmits lost segments, then sends new data. Segments of a burst wait together. Each
//! retransmission is checked separately, with the whole hole as its size: Linux checks with the
//! lost packet before it is split.

use super::config::TcpConfig;
use super::endpoint::Endpoint;
use super::offload::MAX_BURST_BYTES;
use super::pacing::SendGate;
use super::states::RecoveryPhase;
use super::tso_bursts::SendRoom;
use eastwest_types::Time;

impl Endpoint {
    /// Decides whether the NIC has room for the next burst, of at most `segments` segments.
    /// `may_retransmit`: whether lost segments may be sent; `room`: what the windows allow. Returns
    /// the decision and the maximum number of segments of the burst.
    #[inline(always)]
    pub(super) fn small_queue_gate(
        &mut self,
        now: Time,
        may_retransmit: bool,
        segments: u16,
        room: SendRoom,
        config: &TcpConfig,
    ) -> (SendGate, u16) {
        let (una, next) = (self.stream.una, self.stream.next);
        let Some(control) = self.control.as_deref_mut() else { return (SendGate::Open, segments) };
        let queue = control.small_queue.get_or_insert_default();
        queue.free_at = Time::NEVER;
        queue.take_left(now);
        // The limit does not apply if nothing of the connection waits in the NIC, or if no more
        // than a burst is outstanding.
        if queue.waiting() == 0 || una >= queue.burst_from {
            queue.burst_from = next;
            return (SendGate::Open, segments);
        }
        let segment = u64::from(config.segment);
        let lost = if may_retransmit { self.lost_hole_bytes(config) } else { None };
        let burst = if segments == 1 { 1 } else { self.sendable(segments, room, segment) };
        let Some(control) = self.control.as_deref_mut() else { return (SendGate::Open, segments) };
        let rate = control.pacing.rate;
        let queue = control.small_queue.get_or_insert_default();
        let rules = &config.small_queues;
        let mut blocked = false;
        if let Some(hole) = lost {
            if queue.has_room(rules.limit(hole, rate, true), segment) {
                return (SendGate::Open, 1);
            }
            blocked = true;
        }
        if !queue.has_room(rules.limit(burst * segment, rate, false), segment) {
            return (SendGate::Closed, 1);
        }
        queue.burst_from = next;
        (if blocked { SendGate::NewDataOnly } else { SendGate::Open }, segments)
    }

    /// Returns the number of segments of `segment` payload bytes that the next burst can have: at
    /// least 1, and at most `segments`, the unsent data and the room in the windows.
    #[inline(never)]
    fn sendable(&self, segments: u16, room: SendRoom, segment: u64) -> u64 {
        let unsent = self.send_end().saturating_sub(self.stream.next);
        let allowed = room.window.min(room.right_edge.saturating_sub(self.stream.next)) / segment;
        unsent.div_ceil(segment).min(allowed).clamp(1, u64::from(segments))
    }

    /// Returns the bytes from the next lost segment to the next SACKed data, at most one burst;
    /// `None` if no segment is lost.
    #[inline]
    fn lost_hole_bytes(&mut self, config: &TcpConfig) -> Option<u64> {
        if self.recovery.phase == RecoveryPhase::Open {
            return None;
        }
        let (start, stop) = self.recovery.next_lost(&self.stream, config)?;
        let hole = self.recovery.sacked.gap_from(start).1.min(self.stream.next) - start;
        let most = if config.offload.on { MAX_BURST_BYTES } else { u64::from(config.segment) };
        Some(hole.min(most).max(stop - start))
    }

    /// Records a segment handed to the NIC at `now`; the NIC will have sent it at time `leaves`.
    #[inline(always)]
    pub(super) fn record_nic_departure(&mut self, now: Time, leaves: Time) {
        if let Some(control) = self.control.as_deref_mut() {
            control.small_queue.get_or_insert_default().push(now, leaves);
        }
    }

    /// Releases the state of TCP small queues if nothing is outstanding.
    pub(super) fn drop_idle_small_queue(&mut self) {
        if self.stream.una == self.stream.next
            && let Some(control) = self.control.as_deref_mut()
        {
            control.small_queue = None;
        }
    }
}
