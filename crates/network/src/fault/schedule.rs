//! Schedule of faults: when they begin and end, and when switches learn of failures and repairs.
//!
//! Changes at the same time have a fixed order: ends of effects, then starts of effects, and then
//! changes in the knowledge of switches; changes of one kind are in the order of the faults. For a
//! flapping fault, the schedule contains only the next change.

use super::effect::{Effect, Fault};
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Change of the state of a fault. The value is the number of the fault, counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Change {
    /// The effect of the fault ends; the effect of a flapping fault may begin again.
    Ends(u32),
    /// The effect of the fault begins.
    Begins(u32),
    /// Switches learn that the links of the fault are up again.
    KnownUp(u32),
    /// Switches learn that the links of the fault are down.
    KnownDown(u32),
}

/// Future changes of faults, ordered by time.
#[derive(Serialize, Deserialize)]
pub struct Schedule {
    faults: Vec<Fault>,
    pending: BinaryHeap<Reverse<(Time, Change)>>,
}

impl Schedule {
    pub fn new(faults: Vec<Fault>) -> Schedule {
        let first = faults.iter().zip(0..).filter(|(fault, _)| fault.from < fault.until);
        let pending = first.map(|(fault, i)| Reverse((fault.from, Change::Begins(i)))).collect();
        Schedule { faults, pending }
    }

    /// Returns the fault with the number `number`.
    pub fn fault(&self, number: u32) -> &Fault {
        &self.faults[number as usize]
    }

    /// Returns the time at which a fault next begins, ends or becomes known to switches;
    /// [`Time::NEVER`] if there is no further change.
    pub fn next(&self) -> Time {
        self.pending.peek().map_or(Time::NEVER, |Reverse((at, _))| *at)
    }

    /// Removes and returns the next change of a fault that is due by `now`; `None` if no change is
    /// due.
    pub fn pop(&mut self, now: Time) -> Option<Change> {
        let &Reverse((at, change)) = self.pending.peek()?;
        if at > now {
            return None;
        }
        self.pending.pop();
        let (Change::Begins(number) | Change::Ends(number)) = change else {
            return Some(change);
        };
        let fault = &self.faults[number as usize];
        let begins = change == Change::Begins(number);
        let (mut end, mut again) = (fault.until, Time::NEVER);
        if let Effect::Down { reroute, flapping } = &fault.effect {
            if let Some(f) = flapping {
                end = end.min(at + f.down);
                again = at + Span(f.period.0 - f.down.0);
            }
            // A link that is down from the beginning was never part of a route, so that switches
            // know of this failure at once.
            let known = if at == Time::ZERO { at } else { at + *reroute };
            let what = if begins { Change::KnownDown(number) } else { Change::KnownUp(number) };
            self.push(known, what);
        }
        if begins {
            self.push(end, Change::Ends(number));
        } else if again < self.faults[number as usize].until {
            self.push(again, Change::Begins(number));
        }
        Some(change)
    }

    fn push(&mut self, at: Time, change: Change) {
        if at < Time::NEVER {
            self.pending.push(Reverse((at, change)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Flapping, LossModel};
    use super::*;

    fn all(faults: Vec<Fault>, most: usize) -> Vec<(u64, Change)> {
        let mut schedule = Schedule::new(faults);
        let mut seen = Vec::new();
        while schedule.next() < Time::NEVER && seen.len() < most {
            let now = schedule.next();
            seen.push((now.0, schedule.pop(now).expect("something is due")));
        }
        seen
    }

    fn down(from: u64, until: u64, reroute: u64, flapping: Option<(u64, u64)>) -> Fault {
        let flapping =
            flapping.map(|(period, down)| Flapping { period: Span(period), down: Span(down) });
        Fault {
            links: vec![0],
            effect: Effect::Down { reroute: Span(reroute), flapping },
            from: Time(from),
            until: Time(until),
        }
    }

    #[test]
    fn switches_learn_of_a_failure_and_of_its_repair_after_the_rerouting_time() {
        use Change::*;
        assert_eq!(
            all(vec![down(10, 30, 5, None)], 9),
            [(10, Begins(0)), (15, KnownDown(0)), (30, Ends(0)), (35, KnownUp(0))]
        );
        // The link is repaired before switches know of the failure. They learn of both, each after
        // the rerouting time.
        assert_eq!(
            all(vec![down(10, 12, 5, None)], 9),
            [(10, Begins(0)), (12, Ends(0)), (15, KnownDown(0)), (17, KnownUp(0))]
        );
        // The link is down from the beginning of the run, which switches know at once.
        assert_eq!(
            all(vec![down(0, Time::NEVER.0, 5, None)], 9),
            [(0, Begins(0)), (0, KnownDown(0))]
        );
    }

    #[test]
    fn flapping_fails_once_a_period_until_its_end() {
        let count = |until, begin: bool| {
            all(vec![down(100, until, 3, Some((10, 4)))], 1_000)
                .iter()
                .filter(|(_, c)| *c == if begin { Change::Begins(0) } else { Change::Ends(0) })
                .count()
        };
        assert_eq!((count(200, true), count(200, false)), (10, 10));
        assert_eq!((count(201, true), count(201, false)), (11, 11));
        let times: Vec<u64> = all(vec![down(100, 121, 90, Some((10, 4)))], 1_000)
            .iter()
            .filter(|(_, c)| matches!(c, Change::Begins(0) | Change::Ends(0)))
            .map(|(at, _)| *at)
            .collect();
        assert_eq!(times, [100, 104, 110, 114, 120, 121]);
    }

    #[test]
    fn one_fault_ends_before_the_next_begins() {
        let loss = |from, until| Fault {
            links: vec![0],
            effect: Effect::Loss(LossModel::independent(0.1)),
            from: Time(from),
            until: Time(until),
        };
        use Change::*;
        assert_eq!(
            all(vec![loss(20, 30), loss(10, 20), loss(7, 7)], 9),
            [(10, Begins(1)), (20, Ends(1)), (20, Begins(0)), (30, Ends(0))]
        );
    }
}
