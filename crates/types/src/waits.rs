//! Waiting times of a packet, or of a chain of packets, by the link on which the packet then left.

use crate::time::Span;
use serde::{Deserialize, Serialize};

/// Largest number of links for which waiting times are stored separately. A path through a fat tree
/// with three tiers of switches has six links in each direction.
pub const MOST_WAITS: usize = 12;

/// Waiting times of packets by link. Waiting times at links beyond the first [`MOST_WAITS`] are
/// added together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// Numbers of links, each with the waiting time before it; only the first `kept` entries are
    /// valid.
    links: [(u32, Span); MOST_WAITS],
    kept: u8,
    /// Sum of the waiting times at links that have no entry in `links`.
    elsewhere: Span,
}

impl Waits {
    /// Adds the waiting time `wait` in the queue before link `link`. If `link` is `None` or beyond
    /// the first [`MOST_WAITS`] links, adds `wait` to the common sum of links without an entry of
    /// their own.
    pub fn add(&mut self, link: Option<u32>, wait: Span) {
        if wait == Span::ZERO {
            return;
        }
        let kept = usize::from(self.kept);
        let known = link.and_then(|link| self.links[..kept].iter().position(|(l, _)| *l == link));
        match (known, link) {
            (Some(at), _) => self.links[at].1 += wait,
            (None, Some(link)) if kept < MOST_WAITS => {
                self.links[kept] = (link, wait);
                self.kept += 1;
            }
            (None, _) => self.elsewhere += wait,
        }
    }

    /// Adds all waiting times in `other` to this value.
    pub fn and(&mut self, other: &Waits) {
        for (link, wait) in other.iter() {
            self.add(link, wait);
        }
    }

    /// Yields each link with the waiting time before it. Links without an entry of their own come
    /// last, as `None` with the sum of their waiting times.
    pub fn iter(&self) -> impl Iterator<Item = (Option<u32>, Span)> {
        let named = self.links[..usize::from(self.kept)].iter().map(|(l, wait)| (Some(*l), *wait));
        named.chain((self.elsewhere > Span::ZERO).then_some((None, self.elsewhere)))
    }

    /// Returns the sum of the waiting times at all links.
    pub fn sum(&self) -> Span {
        self.iter().fold(Span::ZERO, |sum, (_, wait)| sum + wait)
    }

    /// Returns the waiting times without the first `span` of waiting. `span` is subtracted link by
    /// link, in the order in which the links were added.
    #[must_use]
    pub fn without_first(&self, span: Span) -> Waits {
        let mut rest = span;
        let mut left = Waits::default();
        for (link, wait) in self.iter() {
            let cut = wait.min(rest);
            rest = rest - cut;
            left.add(link, wait - cut);
        }
        left
    }
}
