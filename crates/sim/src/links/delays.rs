//! Distributions of delays at simulated links by size of the flow, from which delays at similar
//! links are drawn.
//!
//! As in Parsimon (Zhao et al., NSDI 2023, section 3.3), delays are divided by the number of packets
//! of their flow, and a draw takes the delay of a flow of similar size.

use eastwest_engine::random::Stream;

/// Minimum number of flows among which a delay is drawn, if there are so many.
const LEAST_FLOWS: usize = 20;

/// Delays of flows at similar links in one direction, ordered by size.
#[derive(Debug, Default)]
pub struct Delays {
    /// Bytes of each flow.
    bytes: Vec<u64>,
    /// Delay of each flow in picoseconds for each of its packets.
    per_packet_ps: Vec<f64>,
}

impl Delays {
    /// Returns the distribution of these delays: bytes, packets and delay in picoseconds of each
    /// flow.
    pub fn new(mut delays: Vec<(u64, u64, i64)>) -> Delays {
        delays.sort_unstable();
        Delays {
            bytes: delays.iter().map(|d| d.0).collect(),
            per_packet_ps: delays.iter().map(|d| d.2 as f64 / d.1 as f64).collect(),
        }
    }

    /// Draws the delay of a flow with these bytes and packets, in picoseconds. The delay is drawn
    /// among flows whose sizes differ by at most a factor of 1.5; if they are few, among the flows
    /// with the nearest sizes.
    pub fn draw(&self, (bytes, packets): (u64, u64), random: &mut Stream) -> i64 {
        let all = self.bytes.len();
        if all == 0 {
            return 0;
        }
        let below = |limit: u64| self.bytes.partition_point(|&b| b < limit);
        let (mut first, mut end) = (below(2 * bytes / 3), below(3 * bytes / 2 + 1));
        if end - first < LEAST_FLOWS {
            first =
                below(bytes).saturating_sub(LEAST_FLOWS / 2).min(all.saturating_sub(LEAST_FLOWS));
            end = all.min(first + LEAST_FLOWS);
        }
        let drawn = first + random.below((end - first) as u64) as usize;
        (self.per_packet_ps[drawn] * packets as f64) as i64
    }
}

/// Returns the delay of a flow over its idle path, from its delays at each link, all in picoseconds.
///
/// The sum of the delays is too large: at every link the flows arrive as if no other link delayed
/// them, so that one queue of a long flow is counted at several links. The largest delay alone is too
/// small. The mean of the two is used; docs/validation/link-mode.md has the errors of all three.
pub fn join(delays_ps: impl Iterator<Item = i64>) -> u64 {
    let (sum, largest) = delays_ps.fold((0, 0), |(sum, largest), d| (sum + d, d.max(largest)));
    u64::try_from((sum + largest) / 2).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_drawn_among_flows_of_similar_size() {
        let small = (0..100).map(|i| (1000 + i, 1, 7));
        let large = (0..100).map(|i| (150_000 + i, 100, 900));
        let delays = Delays::new(small.chain(large).collect());
        let mut random = Stream::new(1, "test");
        for _ in 0..50 {
            assert_eq!(delays.draw((1100, 1), &mut random), 7);
            assert_eq!(delays.draw((200_000, 140), &mut random), 9 * 140);
            assert_eq!(delays.draw((90_000_000, 10), &mut random), 90, "the nearest sizes");
        }
        assert_eq!(Delays::default().draw((10, 1), &mut random), 0);
        let few = Delays::new(vec![(10, 1, 3), (20, 1, 3)]);
        assert_eq!(few.draw((1, 1), &mut random), 3);
    }

    #[test]
    fn a_flow_is_delayed_between_its_largest_delay_and_the_sum() {
        assert_eq!(join([100, 40, 20].into_iter()), 130);
        assert_eq!(join([100].into_iter()), 100);
        assert_eq!(join([-30, 10].into_iter()), 0);
        assert_eq!(join(std::iter::empty()), 0);
    }
}
