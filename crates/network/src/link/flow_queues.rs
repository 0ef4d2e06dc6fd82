//! Lazy ports with the queues of FQ-CoDel: the usual steps of an enqueue and of the start of a
//! transmission, each in one function. Ports with several traffic classes or a shared buffer, and
//! ports that need an event at the end of each transmission, serve these queues with the functions
//! of [`PortQueues`](super::PortQueues).

use super::{FLOW_QUEUES, Link, Outcome, PacketWords};
use crate::losses::Cause;
use crate::packet_handle::PacketHandle;
use crate::pool::PacketPool;
use crate::queue::FqCoDel;
use eastwest_types::Time;

impl Link {
    /// Whether this module serves the port: a lazy port with the queues of FQ-CoDel, one traffic
    /// class and no shared buffer.
    #[inline]
    pub(crate) fn has_flow_queues(&self) -> bool {
        self.paths & FLOW_QUEUES != 0
    }

    /// Returns the queues of the port, and the list of packets that they have dropped.
    #[inline(always)]
    fn flow_queues(&mut self) -> (&mut FqCoDel, &mut Vec<(PacketHandle, Cause)>) {
        self.queues.as_deref_mut().expect("the port has several queues").flow_queues()
    }

    /// Enqueues a packet. Returns the outcome, and whether departures of the port are open that were
    /// not open before.
    #[inline(always)]
    pub(crate) fn enqueue_in_flow_queue(
        &mut self,
        now: Time,
        packet: PacketWords,
        pool: &mut PacketPool,
    ) -> (Outcome, bool) {
        if self.next_start <= now {
            self.start_from_flow_queues(now, pool);
        }
        let free_at = self.busy_until;
        if free_at <= now {
            if self.deferred_drops.is_some() {
                return (self.enqueue_with_drops(now, packet, pool), true);
            }
            self.flow_queues().0.pass(&packet.arriving(now));
            return (self.schedule_departure(now, packet), false);
        }
        if !self.flow_queues().0.insert(packet.arriving(now)) {
            return (self.end_enqueue_with_drops(now, packet), true);
        }
        self.extend_backlog(now, self.send_time(packet.ip_bytes() as u32));
        let opens = self.next_start == Time::NEVER;
        if opens {
            self.next_start = free_at;
            self.act_before_arrival(true);
        }
        if self.deferred_drops.is_some() {
            return (Outcome::Displaced(self.next_key(now)), opens);
        }
        (Outcome::Queued, opens)
    }

    /// Enqueues a packet at an idle port with unread drops, and starts its transmission.
    #[cold]
    #[inline(never)]
    fn enqueue_with_drops(
        &mut self,
        now: Time,
        packet: PacketWords,
        pool: &mut PacketPool,
    ) -> Outcome {
        self.flow_queues().0.insert(packet.arriving(now));
        self.extend_backlog(now, self.send_time(packet.ip_bytes() as u32));
        self.next_start = now;
        self.act_before_arrival(true);
        self.start_from_flow_queues(now, pool);
        Outcome::Displaced(self.next_key(now))
    }

    /// Drops packets after the enqueue of a packet, as long as the queues exceed their limit.
    #[inline(never)]
    fn end_enqueue_with_drops(&mut self, now: Time, packet: PacketWords) -> Outcome {
        let (flows, dropped) = self.flow_queues();
        flows.make_room(dropped);
        let waits = flows.backlog().packets > 0;
        let free_at = self.busy_until;
        self.extend_backlog(now, self.send_time(packet.ip_bytes() as u32));
        self.shorten_backlog(0);
        if self.next_start == Time::NEVER && waits {
            self.next_start = free_at;
            self.act_before_arrival(true);
        }
        Outcome::Displaced(self.next_key(now))
    }

    /// Starts the transmissions that are due by `now`.
    #[inline(never)]
    pub(super) fn start_from_flow_queues(&mut self, now: Time, pool: &mut PacketPool) {
        while self.next_start <= now {
            let start = self.next_start;
            let queues = self.queues.as_deref_mut().expect("the port has several queues");
            let (flows, _) = queues.flow_queues();
            let Some(handle) = flows.pop_undecided(start) else {
                self.start_next_of_queues(start, pool);
                continue;
            };
            let waits = flows.backlog().packets > 0;
            let ip_len = handle.ip_bytes() as u32;
            let sent_at = start.after(self.kind.send_time(ip_len));
            queues.sent_at = sent_at;
            self.on_wire.hold(ip_len);
            self.on_wire.push(handle.arriving(sent_at.after(self.kind.delay)));
            self.next_start = if waits { sent_at } else { Time::NEVER };
            if !waits && self.deferred_drops.is_none() {
                self.act_before_arrival(false);
            }
        }
    }
}
