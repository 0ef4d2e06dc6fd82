//! Deviations of completion times from the fluid at single links: their distributions by size of the
//! flow, from which those at similar links are drawn, and their join along a path.
//!
//! As in Parsimon (Zhao et al., NSDI 2023, section 3.3), they are divided by the number of packets of
//! their flow, and a draw takes that of a flow of similar size.

use super::sharing::Sharing;
use eastwest_engine::random::Stream;
use eastwest_types::Span;

/// Number of flows among which a deviation is drawn, if there are so many.
const LEAST_FLOWS: usize = 20;
/// Largest ratio of the sizes of flows among which a deviation is drawn, unless they are few.
const SIMILAR: f64 = 1.5;

/// A flow at a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct At {
    /// Bytes of the flow.
    pub bytes: u64,
    /// Packets of the flow.
    pub packets: u64,
    /// Wait of the flow for its share of the rate, in the fluid.
    pub wait: Span,
}

impl At {
    fn wait_per_packet(&self) -> f64 {
        self.wait.0 as f64 / self.packets as f64
    }
}

/// Deviations of flows at similar links in one direction.
#[derive(Debug, Default)]
pub struct Delays {
    /// Groups of flows of similar sizes, by size: the largest size, and for each flow its wait in
    /// the fluid and its deviation, in picoseconds for each packet, ordered by wait.
    groups: Vec<(u64, Vec<(f64, f64)>)>,
}

impl Delays {
    /// Returns the distribution of these flows and their deviations in picoseconds.
    pub fn new(mut flows: Vec<(At, i64)>) -> Delays {
        flows.sort_unstable_by_key(|(at, deviation)| (at.bytes, at.wait, *deviation));
        let mut groups: Vec<(u64, Vec<(f64, f64)>)> = Vec::new();
        let mut left = flows.as_slice();
        while let Some((first, _)) = left.first() {
            let limit = (first.bytes as f64 * SIMILAR) as u64;
            let similar = left.partition_point(|(at, _)| at.bytes <= limit);
            let mut count = similar.max(LEAST_FLOWS.min(left.len()));
            if left.len() - count < LEAST_FLOWS {
                count = left.len();
            }
            let (group, more) = left.split_at(count);
            left = more;
            let each = |(at, deviation): &(At, i64)| {
                (at.wait_per_packet(), *deviation as f64 / at.packets as f64)
            };
            let mut values: Vec<(f64, f64)> = group.iter().map(each).collect();
            values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
            groups.push((group[count - 1].0.bytes, values));
        }
        Delays { groups }
    }

    /// Draws the deviation of a flow, in picoseconds, among the flows of similar size whose waits are
    /// most similar.
    pub fn draw(&self, flow: At, random: &mut Stream) -> i64 {
        let after = self.groups.partition_point(|(largest, _)| *largest < flow.bytes);
        let Some((_, group)) = self.groups.get(after).or(self.groups.last()) else { return 0 };
        let wait = flow.wait_per_packet();
        // the flows with this wait; if they are few, also those with the nearest waits
        let (from, to) =
            (group.partition_point(|&(w, _)| w < wait), group.partition_point(|&(w, _)| w <= wait));
        let count = (to - from).max(LEAST_FLOWS).min(group.len());
        let first = from.saturating_sub(LEAST_FLOWS.saturating_sub(to - from) / 2);
        let first = first.min(group.len() - count);
        let drawn = first + random.below(count as u64) as usize;
        (group[drawn].1 * flow.packets as f64) as i64
    }
}

/// Returns the deviation of a flow from its time in the fluid of the whole fabric, from its deviations
/// at each link of its path, all in picoseconds.
///
/// A short flow waits in one queue after the other, so that its deviations add up. A long flow loses
/// time at one link while its packets wait at another one, so that only the largest loss counts. It
/// gains time only at the link that limits it.
pub fn join(deviations_ps: &[i64], sharing: &Sharing) -> i64 {
    if !sharing.long {
        return deviations_ps.iter().sum();
    }
    let gain = sharing.bottleneck().map_or(0, |link| deviations_ps[link].min(0));
    deviations_ps.iter().copied().max().unwrap_or(0).max(0) + gain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(bytes: u64, packets: u64, wait: u64) -> At {
        At { bytes, packets, wait: Span(wait) }
    }

    #[test]
    fn deviations_are_drawn_among_flows_of_similar_size() {
        let small = (0..100).map(|i| (at(1000 + i, 1, 0), 7));
        let large = (0..100).map(|i| (at(150_000 + i, 100, 0), 900));
        let delays = Delays::new(small.chain(large).collect());
        let mut random = Stream::new(1, "test");
        for _ in 0..50 {
            assert_eq!(delays.draw(at(1050, 1, 0), &mut random), 7);
            assert_eq!(delays.draw(at(150_070, 140, 0), &mut random), 9 * 140);
            assert_eq!(delays.draw(at(90_000_000, 10, 0), &mut random), 90, "the nearest sizes");
        }
        assert_eq!(Delays::default().draw(at(10, 1, 0), &mut random), 0);
        let few = Delays::new(vec![(at(10, 1, 0), 3), (at(20, 1, 0), 3)]);
        assert_eq!(few.draw(at(1, 1, 0), &mut random), 3);
    }

    #[test]
    fn deviations_are_drawn_among_flows_that_wait_as_long() {
        let without = (0..100).map(|i| (at(1000, 1, 0), i));
        let waiting = (0..100).map(|i| (at(1000, 1, 1000 + i), 1000 + i as i64));
        let delays = Delays::new(without.chain(waiting).collect());
        let mut random = Stream::new(1, "test");
        let mut draws = |wait| -> Vec<i64> {
            (0..300).map(|_| delays.draw(at(1000, 1, wait), &mut random)).collect()
        };
        let free = draws(0);
        assert!(free.iter().all(|&d| d < 100) && free.iter().any(|&d| d > 90), "{free:?}");
        let near = draws(1050);
        assert!(near.iter().all(|d| (1040..=1060).contains(d)), "{near:?}");
        assert!(draws(1_000_000).iter().all(|&d| d >= 1080), "the longest waits");
    }

    #[test]
    fn deviations_of_short_flows_add_up_and_losses_of_long_flows_overlap() {
        let of =
            |long, each: [u64; 3]| Sharing { long, each: each.map(Span).into(), whole: Span(9) };
        assert_eq!(join(&[100, 40, -20], &of(false, [5, 9, 5])), 120);
        assert_eq!(join(&[100, 40, -20], &of(true, [5, 9, 5])), 100);
        assert_eq!(join(&[100, 40, -20], &of(true, [5, 5, 9])), 80);
        assert_eq!(join(&[-100, -40, -20], &of(true, [5, 9, 5])), -40);
        assert_eq!(join(&[-100, -40, -20], &of(true, [0; 3])), 0, "no link limits the flow");
    }
}
