//! Flow control between a network card (NIC) and its port: decides when the NIC passes the next
//! packet to the port. The NIC can slow down a flow or reorder packets while they are still in the
//! NIC, but no longer when they are in the queue of the port.

use super::Link;
use crate::pool::PacketPool;
use eastwest_types::Time;

impl Link {
    /// Returns the time at which the port accepts the next packet with DSCP `dscp` from the NIC. A
    /// port with a single queue accepts the packet when it has sent all earlier packets. Any other
    /// port accepts it when no packet of the same class (with DCB: priority) is queued. If the
    /// returned time is in the future, the NIC asks again at this time: by then a packet has left,
    /// or a packet of `ip_len` bytes could have left.
    ///
    /// `sent` means that the NIC has just passed a packet of `ip_len` IP bytes to the port. The
    /// next packet follows not earlier than after the transmission time of this packet, even if it
    /// was dropped.
    ///
    /// A port with data-centre bridging may need no event at the end of a transmission. Therefore
    /// the departures that are due by `now` are executed first.
    pub fn takes_more_at(
        &mut self,
        now: Time,
        dscp: u8,
        (ip_len, sent): (u32, bool),
        pool: &mut PacketPool,
    ) -> Time {
        self.catch_up(now.next(), pool);
        let after_one = |port: &Link| now + port.send_time(ip_len);
        let of_one_fifo =
            |port: &Link| if sent { port.busy_until.max(after_one(port)) } else { now };
        let Some(q) = self.queues.as_deref_mut() else { return of_one_fifo(self) };
        let waits = if let Some((queues, ..)) = q.single_class() {
            queues.bytes(dscp >> 3) > 0
        } else if q.is_one_fifo() {
            return of_one_fifo(self);
        } else if q.dcb.is_some() {
            q.priority_queues().any(|queues| queues.bytes(dscp >> 3) > 0)
        } else {
            q.backlog_of(q.class_of(dscp)).packets > 0
        };
        match (waits, q.sent_at) {
            // The queued packet belongs to a paused priority, or the last packet was lost.
            (true, Time::NEVER) => after_one(self),
            (true, sent_at) => sent_at.max(now.next()),
            (false, Time::NEVER) if sent => after_one(self),
            (false, _) => now,
        }
    }
}
