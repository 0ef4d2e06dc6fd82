//! A resource that work shares evenly: the cores of a machine, or its disks.
//!
//! Egalitarian processor sharing on `servers` equal servers (Kleinrock 1967): each of n pieces of
//! work gets min(1, servers / n) of a server. With more pieces than servers only the fraction
//! `kept` of the servers' speed is left, which models the seeks of a disk. Time is kept as virtual
//! time, the work that a piece present since the start would have received: a piece that starts at
//! virtual time v with work w ends at v + w, independent of later arrivals and departures, so
//! starting and finishing cost O(log n) (as Demers, Keshav and Shenker 1989 for queues). All values
//! are whole picoseconds of work at full speed; virtual time is rounded down, so that no piece ends
//! early.

use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A resource, with equal servers, that is shared evenly by pieces of work; `W` is the purpose of a
/// piece.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Shared<W> {
    servers: u64,
    /// Fraction (numerator, denominator) of the servers' speed that is left if there are more
    /// pieces of work than servers.
    kept: (u64, u64),
    /// Virtual time in picoseconds: the work that a piece present since the start would have
    /// received.
    virtual_time: u64,
    /// Simulated time at which `virtual_time` was computed.
    at: Time,
    /// Unfinished pieces of work. Key: virtual time of the end, number of the arrival. Value:
    /// length at full speed, purpose.
    work: BTreeMap<(u64, u64), (Span, W)>,
    arrivals: u64,
    /// Time of the earliest scheduled wake-up that is still to come; `None` if none is scheduled.
    armed: Option<Time>,
}

impl<W> Shared<W> {
    /// Returns a resource of `servers` idle servers (`None`: one server for every piece of work).
    /// With more pieces of work than servers, only the fraction `run / (run + switch)` of the speed
    /// is left.
    pub fn new(servers: Option<u32>, run: Span, switch: Span) -> Shared<W> {
        let run = run.0.max(1);
        Shared {
            servers: servers.map_or(u64::MAX, u64::from),
            kept: (run, run.saturating_add(switch.0)),
            virtual_time: 0,
            at: Time::ZERO,
            work: BTreeMap::new(),
            arrivals: 0,
            armed: None,
        }
    }

    /// Returns the present speed of one piece of work as a fraction (numerator, denominator) of a
    /// server's speed.
    fn speed(&self) -> (u128, u128) {
        let n = self.work.len() as u64;
        if n <= self.servers {
            return (1, 1);
        }
        let (kept, of) = (u128::from(self.kept.0), u128::from(self.kept.1));
        (u128::from(self.servers) * kept, u128::from(n) * of)
    }

    fn advance(&mut self, now: Time) {
        self.virtual_time = self.virtual_time_at(now);
        self.at = now;
    }

    fn virtual_time_at(&self, now: Time) -> u64 {
        let passed = now.since(self.at).0;
        let (num, den) = self.speed();
        self.virtual_time + (u128::from(passed) * num / den) as u64
    }

    /// Returns the smallest finished fraction, from 0 to 1, of the pieces of work for which `is`
    /// returns true; `None` if there are none.
    pub fn done(&self, now: Time, is: impl Fn(&W) -> bool) -> Option<f64> {
        let at = self.virtual_time_at(now);
        let meant = self.work.iter().filter(|(_, (_, what))| is(what));
        let left = meant.map(|(&(end, _), &(length, _))| {
            end.saturating_sub(at) as f64 / length.0.max(1) as f64
        });
        left.reduce(f64::max).map(|left| 1.0 - left)
    }

    /// Starts a piece of work, which takes the time `work` if it has a server alone; `what` is its
    /// purpose.
    pub fn start(&mut self, now: Time, work: Span, what: W) {
        self.advance(now);
        let end = self.virtual_time.saturating_add(work.0);
        self.work.insert((end, self.arrivals), (work, what));
        self.arrivals += 1;
    }

    /// Removes and returns the finished piece of work that ended first; `None` if no finished piece
    /// is left.
    pub fn finish(&mut self, now: Time) -> Option<W> {
        self.advance(now);
        let entry = self.work.first_entry()?;
        (entry.key().0 <= self.virtual_time).then(|| entry.remove().1)
    }

    /// Handles a wake-up. Returns whether it is the wake-up that was scheduled last; all wake-ups
    /// that were scheduled before it are obsolete.
    pub fn woken(&mut self, now: Time) -> bool {
        let counts = self.armed == Some(now);
        if counts {
            self.armed = None;
        }
        counts
    }

    /// Returns the time of a wake-up that must be scheduled, if a piece of work ends before the
    /// pending wake-up; otherwise `None`.
    pub fn arm(&mut self) -> Option<Time> {
        let &(end, _) = self.work.first_key_value()?.0;
        let (num, den) = self.speed();
        let left = u128::from(end.saturating_sub(self.virtual_time)) * den;
        let wait = u64::try_from(left.div_ceil(num)).unwrap_or(u64::MAX);
        let due = self.at + Span(wait);
        if self.armed.is_some_and(|armed| armed <= due) {
            return None;
        }
        self.armed = Some(due);
        Some(due)
    }

    /// Returns the number of unfinished pieces of work on the resource.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.work.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Executes pieces of work (start time, length) with wake-ups only; returns the end time of
    /// each piece.
    fn run(shared: &mut Shared<usize>, starts: &[(u64, u64)]) -> Vec<u64> {
        let mut events: BTreeMap<(u64, u32), Option<usize>> = BTreeMap::new();
        let mut next = 0;
        for (i, &(at, _)) in starts.iter().enumerate() {
            events.insert((at, next), Some(i));
            next += 1;
        }
        let mut ends = vec![0; starts.len()];
        while let Some(((at, _), what)) = events.pop_first() {
            let now = Time(at);
            match what {
                Some(i) => {
                    shared.start(now, Span(starts[i].1), i);
                }
                None if !shared.woken(now) => continue,
                None => {
                    while let Some(i) = shared.finish(now) {
                        ends[i] = at;
                    }
                }
            }
            if let Some(due) = shared.arm() {
                assert!(due >= now);
                events.insert((due.0, next), None);
                next += 1;
            }
        }
        assert_eq!(shared.len(), 0);
        ends
    }

    fn cores(n: u32) -> Shared<usize> {
        Shared::new(Some(n), Span(1), Span::ZERO)
    }

    /// Executes pieces of work like `run`, with times in thousands of picoseconds, rounded to the
    /// nearest.
    fn run_long(mut shared: Shared<usize>, starts: &[(u64, u64)]) -> Vec<u64> {
        let starts: Vec<_> = starts.iter().map(|&(at, work)| (at * 1000, work * 1000)).collect();
        run(&mut shared, &starts).into_iter().map(|end| (end + 500) / 1000).collect()
    }

    #[test]
    fn work_shares_evenly() {
        // Two pieces of 100 on one core, the second starting at 50: the first has the core alone
        // until 50, then each piece has half the speed.
        assert_eq!(run_long(cores(1), &[(0, 100), (50, 100)]), [150, 200]);
        assert_eq!(run_long(cores(2), &[(0, 100), (50, 100)]), [100, 150]);
        // Three pieces of work on two cores get two thirds of a core each.
        assert_eq!(run_long(cores(2), &[(0, 100), (0, 100), (0, 200)]), [150, 150, 250]);
        let own = Shared::new(None, Span(1), Span(9));
        assert_eq!(run_long(own, &[(0, 7), (3, 7), (3, 1)]), [7, 10, 4]);
    }

    #[test]
    fn seeks_cost_only_where_streams_share() {
        let disk = || Shared::new(Some(1), Span(30), Span(10));
        assert_eq!(run_long(disk(), &[(0, 300)]), [300]);
        assert_eq!(run_long(disk(), &[(0, 300), (0, 300)]), [800, 800]);
    }

    proptest! {
        /// Checks that no piece of work is faster than alone, and that the servers are busy while
        /// work waits. The tolerance is the rounding: one picosecond for each start or end of a
        /// piece.
        #[test]
        fn no_work_is_lost_or_made(
            starts in proptest::collection::vec((0u64..1000, 1u64..5000), 1..40),
            servers in 1u32..5,
        ) {
            let ends = run(&mut cores(servers), &starts);
            for (&(at, work), &end) in starts.iter().zip(&ends) {
                prop_assert!(end >= at + work);
            }
            let total: u64 = starts.iter().map(|s| s.1).sum();
            let last = *ends.iter().max().unwrap();
            prop_assert!(last * u64::from(servers) >= total);
            // Upper bound of the end: the last start plus all work on one server, plus the
            // rounding.
            prop_assert!(last <= 1000 + total + 4 * starts.len() as u64);
        }
    }
}
