//! Flow control between a port and the NIC before it: when the NIC hands over the next packet. A NIC that keeps
//! its packets until then can still slow down a flow, or reorder packets that would otherwise wait at the port.

use super::Link;
use crate::fabric::Fabric;
use eastwest_types::{HostId, Rate, Time};

impl Link {
    /// Returns the time at which the port accepts the next packet with DSCP `dscp` from the NIC. A
    /// port with a single queue accepts it when it has sent all its packets. Any other port accepts
    /// it when no packet of the class (with DCB: priority) of `dscp` is queued; if the returned
    /// time is in the future, the NIC asks again at that time, when a packet will have left, or one
    /// of `ip_len` bytes could have left.
    ///
    /// `sent` says that a packet of `ip_len` IP bytes has been handed over just now; the next one
    /// follows after the transmission time of that packet, even if it was dropped.
    pub fn takes_more_at(&self, now: Time, dscp: u8, ip_len: u32, sent: bool) -> Time {
        let after_one = now + self.send_time(ip_len);
        let Some(q) = self.queues.as_ref().filter(|q| !q.is_one_fifo()) else {
            return if sent { self.busy_until.max(after_one) } else { now };
        };
        let waits = match q.dcb {
            Some(_) => self.bytes_waiting()[usize::from(dscp >> 3)] > 0,
            None => q.backlog_of(q.class_of(dscp)).packets > 0,
        };
        match (waits, q.sent_at) {
            // the packet is paused, or was lost
            (true, Time::NEVER) => after_one,
            (true, sent_at) => sent_at.max(now.next()),
            (false, Time::NEVER) if sent => after_one,
            (false, _) => now,
        }
    }
}

impl Fabric {
    /// Returns the rate of the link from a host to its switch.
    pub fn host_rate(&self, host: HostId) -> Rate {
        self.links[self.up[host.0 as usize] as usize].cable.rate
    }

    /// Returns the time at which the port of a host accepts the next packet with DSCP `dscp`, see
    /// [`Link::takes_more_at`].
    pub fn takes_more_at(
        &self,
        now: Time,
        from: HostId,
        dscp: u8,
        ip_len: u32,
        sent: bool,
    ) -> Time {
        let up = self.up[from.0 as usize];
        self.links[up as usize].takes_more_at(now, dscp, ip_len, sent)
    }
}
