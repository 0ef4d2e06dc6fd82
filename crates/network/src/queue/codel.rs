//! CoDel (RFC 8289; Nichols and Jacobson, ACM Queue 2012): what leaves the queue is dropped while
//! packets have had to wait for longer than a target for a whole interval, at times that come closer
//! and closer together, so that TCP slows down and the queue empties.
//!
//! A packet is above the target if it waited for at least `target` and more than one full packet is
//! left behind it. Once that has been so for `interval`, one is dropped, the next after `interval`, then
//! after `interval/√2`, `interval/√3` … each counted from the last, until a packet is below (RFC 8289,
//! 5). If dropping begins again within 16 intervals it goes on near the pace where it ended. With `ecn`
//! packets of transports that understand marks are marked instead (Linux, `sch_codel`).

use crate::config::Limit;
use eastwest_types::{Span, Time};

/// Settings and state of one port.
#[derive(Clone, Debug)]
pub struct CoDel {
    /// What does not fit is lost.
    pub limit: Limit,
    target: Span,
    interval: Span,
    ecn: bool,
    /// A queue with less than this left is never too long.
    mtu: u64,
    /// One for each queue of the port.
    state: [State; 2],
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// When dropping may begin if packets stay above the target; never while they do not.
    above_at: Time,
    dropping: bool,
    drop_next: Time,
    count: u64,
    last_count: u64,
}

/// A packet at the head of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// When it came.
    pub since: Time,
    /// IP bytes behind it.
    pub left: u64,
    /// Whether its transport understands marks.
    pub ecn: bool,
}

/// What to do with the head of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// So many packets are dropped.
    pub drop: usize,
    /// The one after them is marked.
    pub mark: bool,
}

impl CoDel {
    /// A queue without packets.
    pub fn new(limit: Limit, target: Span, interval: Span, ecn: bool, mtu: u32) -> CoDel {
        let state = State {
            above_at: Time::NEVER,
            dropping: false,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
        };
        CoDel { limit, target, interval, ecn, mtu: u64::from(mtu), state: [state; 2] }
    }

    /// The time after `from` of the drop with this number (RFC 8289, 5.4).
    fn next_drop(&self, from: Time, count: u64) -> Time {
        let interval = u128::from(self.interval.0);
        from + Span((interval * interval / u128::from(count.max(1))).isqrt() as u64)
    }

    /// Whether this packet may be dropped: all have been above the target for an interval.
    fn is_late(&mut self, queue: usize, now: Time, head: Option<Head>) -> bool {
        let interval = self.interval;
        let s = &mut self.state[queue];
        let above = head.is_some_and(|h| now.since(h.since) >= self.target && h.left > self.mtu);
        if !above {
            s.above_at = Time::NEVER;
        } else if s.above_at == Time::NEVER {
            s.above_at = now + interval;
        } else {
            return now >= s.above_at;
        }
        false
    }

    /// The port takes the next packet of a queue, whose packets `heads` gives in turn.
    pub fn at_dequeue(
        &mut self,
        queue: usize,
        now: Time,
        mut heads: impl Iterator<Item = Head>,
    ) -> Plan {
        let mut plan = Plan::default();
        let mut head = heads.next();
        let mut late = self.is_late(queue, now, head);
        if self.state[queue].dropping {
            self.state[queue].dropping = late;
            while self.state[queue].dropping && now >= self.state[queue].drop_next {
                self.state[queue].count += 1;
                let mark = self.ecn && head.is_some_and(|h| h.ecn);
                if !mark {
                    plan.drop += 1;
                    head = heads.next();
                    late = self.is_late(queue, now, head);
                    self.state[queue].dropping = late;
                }
                if late {
                    let s = self.state[queue];
                    self.state[queue].drop_next = self.next_drop(s.drop_next, s.count);
                }
                if mark {
                    plan.mark = true;
                    break;
                }
            }
        } else if late {
            if self.ecn && head.is_some_and(|h| h.ecn) {
                plan.mark = true;
            } else {
                plan.drop = 1;
                head = heads.next();
                self.is_late(queue, now, head);
            }
            let s = &mut self.state[queue];
            let before = s.count - s.last_count;
            let recent = now.since(s.drop_next) < self.interval * 16;
            s.dropping = true;
            s.count = if before > 1 && recent { before } else { 1 };
            s.last_count = s.count;
            self.state[queue].drop_next = self.next_drop(now, self.state[queue].count);
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codel(ecn: bool) -> CoDel {
        CoDel::new(Limit::Packets(1000), Span::from_ms(5), Span::from_ms(100), ecn, 1500)
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    /// When packets are dropped, in units of 100 µs, if from 1 s on each has waited for 10 ms with so
    /// much left behind; one leaves each 100 µs.
    fn drops(c: &mut CoDel, left: u64, until_ms: u64) -> Vec<u64> {
        let mut times = Vec::new();
        for step in 0..until_ms * 10 {
            let now = at(1_000_000 + step * 100);
            let since = Time(now.0 - Span::from_ms(10).0);
            let heads = std::iter::repeat(Head { since, left, ecn: false });
            let plan = c.at_dequeue(0, now, heads);
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
        let short = Head { since: at(1_400_000), left: 100_000, ecn: false };
        let plan = c.at_dequeue(0, at(1_400_100), std::iter::repeat(short));
        assert_eq!(plan, Plan::default());
        // above again: after an interval the pace is the one where it ended, not the first
        let count = c.state[0].count;
        let mut times = Vec::new();
        for step in 0..1_600 {
            let now = at(1_400_200 + step * 100);
            let head = Head { since: Time(now.0 - Span::from_ms(10).0), left: 9_000, ecn: false };
            let plan = c.at_dequeue(0, now, std::iter::repeat(head));
            times.extend(std::iter::repeat_n(step, plan.drop));
        }
        assert_eq!(times[0], 1_000);
        assert!(count > 3 && times[1] - times[0] < 600, "{times:?} after {count}");
    }

    #[test]
    fn with_ecn_packets_are_marked_instead() {
        let mut c = codel(true);
        let mut marks = 0;
        for step in 0..4_800 {
            let now = at(1_000_000 + step * 100);
            let since = Time(now.0 - Span::from_ms(10).0);
            let heads = std::iter::repeat(Head { since, left: 100_000, ecn: true });
            let plan = c.at_dequeue(0, now, heads);
            assert_eq!(plan.drop, 0);
            marks += usize::from(plan.mark);
        }
        assert_eq!(marks, 7);
    }
}
