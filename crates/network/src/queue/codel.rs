//! CoDel (RFC 8289; Nichols and Jacobson, ACM Queue 2012): what leaves the queue is dropped while
//! packets have had to wait for longer than a target for a whole interval, at times that come closer
//! and closer together, so that TCP slows down and the queue empties.
//!
//! A packet is above the target if it waited for at least `target` and more than one full packet is
//! left behind it. Once that has been so for `interval`, one is dropped, the next after `interval`, then
//! after `interval/√2`, `interval/√3` … each counted from the last, until a packet is below (RFC 8289,
//! 5). If dropping begins again within 16 intervals it goes on near the pace where it ended. With `ecn`
//! packets of transports that understand marks are marked instead (Linux, `sch_codel`). A packet that is
//! [spared](super::protection) leaves and changes nothing: the next one is looked at in its place.

use super::protection::Signal;
use super::{Head, Plan, Verdict};
use eastwest_types::{Limit, Span, Time};
use serde::{Deserialize, Serialize};

/// Settings of one port.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoDelConfig {
    /// How long a packet may wait.
    pub target: Span,
    /// How long all may have to wait for longer.
    pub interval: Span,
    /// Whether to mark or to drop.
    pub signal: Signal,
    /// What does not fit is lost.
    pub limit: Limit,
}

/// Settings and state of one queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CoDel {
    config: CoDelConfig,
    /// A queue with less than this left is never too long.
    mtu: u64,
    /// When dropping may begin if packets stay above the target; never while they do not.
    above_at: Time,
    dropping: bool,
    drop_next: Time,
    count: u64,
    last_count: u64,
}

impl CoDel {
    /// A queue without packets.
    pub fn new(config: CoDelConfig, mtu: u32) -> CoDel {
        CoDel {
            config,
            mtu: u64::from(mtu),
            above_at: Time::NEVER,
            dropping: false,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
        }
    }

    /// What does not fit is lost.
    pub fn limit(&self) -> Limit {
        self.config.limit
    }

    fn fate(&self, head: Option<Head>) -> Verdict {
        head.map_or(Verdict::Enqueue, |h| self.config.signal.verdict(h.packet))
    }

    /// The time after `from` of the drop with this number (RFC 8289, 5.4).
    fn next_drop(&self, from: Time, count: u64) -> Time {
        let interval = u128::from(self.config.interval.0);
        from + Span((interval * interval / u128::from(count.max(1))).isqrt() as u64)
    }

    /// Whether this packet may be dropped: all have been above the target for an interval.
    fn is_late(&mut self, now: Time, head: Option<Head>) -> bool {
        let target = self.config.target;
        let above = head.is_some_and(|h| now.since(h.since) >= target && h.left.bytes > self.mtu);
        if !above {
            self.above_at = Time::NEVER;
        } else if self.above_at == Time::NEVER {
            self.above_at = now + self.config.interval;
        } else {
            return now >= self.above_at;
        }
        false
    }

    /// Whether the next packet leaves without further ado, having waited since then; if so that is
    /// noted.
    #[inline]
    pub fn surely_lets_out(&mut self, now: Time, since: Time) -> bool {
        let calm = !self.dropping && now.since(since) < self.config.target;
        if calm {
            self.above_at = Time::NEVER;
        }
        calm
    }

    /// The port takes the next packet of the queue, whose packets `heads` gives in turn.
    pub fn at_dequeue<'p>(&mut self, now: Time, mut heads: impl Iterator<Item = Head<'p>>) -> Plan {
        let head = heads.next();
        let late = self.is_late(now, head);
        if self.dropping {
            return self.go_on(now, head, late, heads);
        }
        let mut plan = Plan::default();
        match self.fate(head.filter(|_| late)) {
            Verdict::Enqueue => return plan,
            Verdict::Mark => plan.mark = true,
            Verdict::Drop | Verdict::DropEarly => {
                plan.drop = 1;
                let head = heads.next();
                self.is_late(now, head);
            }
        }
        let before = self.count - self.last_count;
        let recent = now.since(self.drop_next) < self.config.interval * 16;
        self.dropping = true;
        self.count = if before > 1 && recent { before } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.next_drop(now, self.count);
        plan
    }

    /// While it is dropping.
    fn go_on<'p>(
        &mut self,
        now: Time,
        mut head: Option<Head<'p>>,
        mut late: bool,
        mut heads: impl Iterator<Item = Head<'p>>,
    ) -> Plan {
        let mut plan = Plan::default();
        self.dropping = late;
        while self.dropping && now >= self.drop_next {
            let fate = self.fate(head);
            if fate == Verdict::Enqueue {
                break;
            }
            self.count += 1;
            plan.mark = fate == Verdict::Mark;
            if !plan.mark {
                plan.drop += 1;
                head = heads.next();
                late = self.is_late(now, head);
                self.dropping = late;
            }
            if late {
                self.drop_next = self.next_drop(self.drop_next, self.count);
            }
            if plan.mark {
                break;
            }
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Backlog, Protection};
    use super::*;
    use crate::pool::Stored;
    use eastwest_types::{HostId, Packet, ecn};

    fn codel(ecn: bool) -> CoDel {
        let signal = Signal { ecn, protection: Protection::Bypass };
        let (target, interval) = (Span::from_ms(5), Span::from_ms(100));
        CoDel::new(CoDelConfig { target, interval, signal, limit: Limit::Packets(1000) }, 1500)
    }

    fn stored(tos: u8) -> Stored {
        Stored::new(&Packet { tos, payload: 1448, ..Packet::blank(HostId(1)) })
    }

    /// A packet that has waited for so long with so many bytes behind it.
    fn head(now: Time, waited_ms: u64, left: u64, packet: &Stored) -> Head<'_> {
        let since = Time(now.0 - Span::from_ms(waited_ms).0);
        Head { since, left: Backlog { packets: 1, bytes: left }, packet }
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    /// When packets are dropped, in units of 100 µs, if from 1 s on each has waited for 10 ms with so
    /// much left behind; one leaves each 100 µs.
    fn drops(c: &mut CoDel, left: u64, until_ms: u64) -> Vec<u64> {
        let (ect, mut times) = (stored(ecn::ECT0), Vec::new());
        for step in 0..until_ms * 10 {
            let now = at(1_000_000 + step * 100);
            let plan = c.at_dequeue(now, std::iter::repeat(head(now, 10, left, &ect)));
            times.extend(std::iter::repeat_n(step, plan.drop));
        }
        times
    }

    #[test]
    fn drops_come_at_the_times_of_check_12() {
        let times = drops(&mut codel(false), 100_000, 480);
        // the first 100 ms after crossing, the others counted from it
        assert_eq!(times[0], 1_000);
        let after: Vec<u64> = times[1..].iter().map(|t| t - 1_000).collect();
        let expected = [1_000, 1_707, 2_284, 2_784, 3_232, 3_640];
        assert!(after.len() == expected.len(), "{after:?}");
        for (time, expected) in after.iter().zip(expected) {
            assert!(time.abs_diff(expected) <= 1, "{after:?}");
        }
    }

    #[test]
    fn a_queue_of_less_than_a_full_packet_is_left_alone() {
        assert!(drops(&mut codel(false), 1_500, 1_000).is_empty());
    }

    #[test]
    fn one_packet_below_the_target_ends_it_and_soon_after_it_goes_on_faster() {
        let mut c = codel(false);
        assert!(drops(&mut c, 100_000, 400).len() >= 4);
        let ect = stored(ecn::ECT0);
        let short = head(at(1_400_100), 0, 100_000, &ect);
        let plan = c.at_dequeue(at(1_400_100), std::iter::repeat(short));
        assert_eq!(plan, Plan::default());
        // above again: after an interval the pace is the one where it ended, not the first
        let count = c.count;
        let mut times = Vec::new();
        for step in 0..1_600 {
            let now = at(1_400_200 + step * 100);
            let plan = c.at_dequeue(now, std::iter::repeat(head(now, 10, 9_000, &ect)));
            times.extend(std::iter::repeat_n(step, plan.drop));
        }
        assert_eq!(times[0], 1_000);
        assert!(count > 3 && times[1] - times[0] < 600, "{times:?} after {count}");
    }

    #[test]
    fn with_ecn_packets_are_marked_instead() {
        let mut c = codel(true);
        let (ect, mut marks) = (stored(ecn::ECT0), 0);
        for step in 0..4_800 {
            let now = at(1_000_000 + step * 100);
            let plan = c.at_dequeue(now, std::iter::repeat(head(now, 10, 100_000, &ect)));
            assert_eq!(plan.drop, 0);
            marks += usize::from(plan.mark);
        }
        assert_eq!(marks, 7);
    }

    #[test]
    fn a_spared_packet_leaves_the_next_one_in_its_place() {
        // without ECN and with the bypass, what is not ECT is spared
        let mut c = codel(false);
        let (ect, other, mut drops) = (stored(ecn::ECT0), stored(ecn::NOT_ECT), Vec::new());
        for step in 0..2_000 {
            let now = at(1_000_000 + step * 100);
            // from 90 to 110 ms after the crossing, when the first drop is due
            let packet = if (900..1_100).contains(&step) { &other } else { &ect };
            if c.at_dequeue(now, std::iter::repeat(head(now, 10, 9_000, packet))).drop > 0 {
                drops.push(step);
            }
        }
        assert_eq!(drops[0], 1_100);
    }
}
