//! How long flows wait for their shares of the rates of links, and what that means at one link.
//!
//! A long flow is limited at one link at a time. Its other links pass it at the rate that this link,
//! its bottleneck, gives to it, and have no queue of it. The simulation of each link therefore
//! limits the flow before and behind the link to the rate that the other links leave to it.

use eastwest_fluid::delay::{PortSpec, is_over};
use eastwest_fluid::transfer::Rules;
use eastwest_types::{Rate, Span};

/// Time that a flow waits for its shares of rates, in the fluid, beyond its time alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// Whether the flow is long, see [`is_long`].
    pub long: bool,
    /// Wait at each link of the path if this link alone is shared.
    pub each: Box<[Span]>,
    /// Wait if all links are shared.
    pub whole: Span,
}

impl Sharing {
    /// Returns the link of the path that limits the flow most, as its position in the path; `None`
    /// if no link limits the flow.
    pub fn bottleneck(&self) -> Option<usize> {
        let most = self.each.iter().max().filter(|&&wait| wait > Span::ZERO)?;
        self.each.iter().position(|wait| wait == most)
    }

    /// Returns the waits that the links before and behind the link at position `at` impose on the
    /// flow: the wait in the whole fabric on the side of the bottleneck, and the largest wait of a
    /// link on the other side.
    pub fn elsewhere(&self, at: usize) -> [Span; 2] {
        let bottleneck = self.bottleneck();
        let of = |range: std::ops::Range<usize>| {
            let limits = bottleneck.is_some_and(|b| range.contains(&b));
            let most = self.each[range].iter().copied().max().unwrap_or(Span::ZERO);
            if limits { most.max(self.whole) } else { most }
        };
        [of(0..at), of(at + 1..self.each.len())]
    }
}

/// Returns the mean rate of a flow of `bits` bits that needs `wait` longer than at the rate `line`.
pub fn slowed(line: Rate, bits: f64, wait: Span) -> Rate {
    let seconds = bits / line.0 as f64 + wait.as_secs_f64();
    Rate((bits / seconds) as u64)
}

/// Returns whether a flow is long: its window is limited by the largest window, or by a mark or a
/// loss at a link of its path if it meets no other flow. A shorter flow is a burst that leaves its
/// host before a link limits its rate. `ports` are those of the path; `base`: round-trip time
/// without queues.
pub fn is_long(
    ports: impl IntoIterator<Item = PortSpec>,
    rules: &Rules,
    bytes: u64,
    base: Span,
) -> bool {
    let bits = rules.train(bytes).wire as f64 * 8.0;
    bytes > rules.max_window || ports.into_iter().any(|port| is_over(&port, bits, base))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use eastwest_fluid::delay::Queue;

    pub fn rules() -> Rules {
        Rules {
            segment: 1448,
            header: 52,
            ack: 52,
            ack_every: 2,
            framing: 38,
            min_frame: 84,
            initial_window: 14_480,
            max_window: 1 << 20,
            idle_restart: None,
        }
    }

    fn sharing(each_us: &[u64], whole_us: u64) -> Sharing {
        let each = each_us.iter().map(|&us| Span::from_us(us)).collect();
        Sharing { long: true, each, whole: Span::from_us(whole_us) }
    }

    #[test]
    fn links_pass_a_flow_at_the_rate_of_its_bottleneck() {
        let flow = sharing(&[1, 30, 30, 20], 50);
        assert_eq!(flow.bottleneck(), Some(1), "the first of the links with the largest wait");
        let of = |at| flow.elsewhere(at).map(|wait| wait.0 / 1_000_000);
        assert_eq!([of(0), of(1), of(2), of(3)], [[0, 50], [1, 30], [50, 20], [50, 0]]);
        let free = sharing(&[0, 0], 0);
        assert_eq!((free.bottleneck(), free.elsewhere(0)), (None, [Span::ZERO; 2]));
    }

    #[test]
    fn a_flow_that_waits_as_long_as_it_sends_has_half_the_rate() {
        let rate = slowed(Rate::gbit(10), 1e6, Span::from_us(100));
        assert_eq!(rate, Rate::gbit(5));
        assert_eq!(slowed(Rate::gbit(10), 1e6, Span::ZERO), Rate::gbit(10));
    }

    #[test]
    fn a_flow_is_long_if_its_window_is_limited() {
        let rate = Rate::gbit(10);
        let marks = Queue::Aims(Span::from_us(80), 1_500_000); // 100 KB, and 25 KB on the path
        let port = |queue| PortSpec { rate, delay: Span::ZERO, queue };
        let long = |queue, bytes| is_long([port(queue)], &rules(), bytes, Span::from_us(20));
        assert!(!long(marks, 115_000) && long(marks, 125_000));
        let drops = Queue::DropTail(1_500_000);
        assert!(!long(drops, 1 << 20) && long(drops, (1 << 20) + 1), "the largest window");
    }
}
