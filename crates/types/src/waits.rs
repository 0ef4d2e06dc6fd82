//! Waiting times of a packet, or of a chain of packets, by the link before which it waited.

use crate::time::Span;
use serde::{Deserialize, Serialize};

/// Maximum number of links of which the waiting times are kept separately: those of a fat tree in both
/// directions, and some more.
pub const MOST_WAITS: usize = 12;

/// Waiting times by link. Links beyond [`MOST_WAITS`] are added together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// Number of the link and the waiting time before it; only the first `kept` are valid.
    links: [(u32, Span); MOST_WAITS],
    kept: u8,
    /// Waiting time before further links.
    elsewhere: Span,
}

impl Waits {
    /// Adds a waiting time before a link; `None` is a link that is not named.
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

    /// Adds all waiting times of `other`.
    pub fn and(&mut self, other: &Waits) {
        for (link, wait) in other.iter() {
            self.add(link, wait);
        }
    }

    /// Returns the links with their waiting times; the link is `None` for further links together.
    pub fn iter(&self) -> impl Iterator<Item = (Option<u32>, Span)> {
        let named = self.links[..usize::from(self.kept)].iter().map(|(l, wait)| (Some(*l), *wait));
        named.chain((self.elsewhere > Span::ZERO).then_some((None, self.elsewhere)))
    }

    /// Returns the sum of the waiting times.
    pub fn sum(&self) -> Span {
        self.iter().fold(Span::ZERO, |sum, (_, wait)| sum + wait)
    }

    /// Returns the waiting times without the first `span` of them.
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
