//! Marking at a threshold: a packet that finds more than K waiting gets the mark "congestion
//! experienced" of RFC 3168 if its transport understands marks. It is the marking of DCTCP (Alizadeh
//! et al. 2010, section 3.1; RFC 8257, section 3.1), by the queue of the moment and without
//! averaging. Packets of other transports wait unmarked; what does not fit is lost.

use super::{Backlog, Verdict, drop_tail};
use crate::config::Limit;

/// A port's threshold and limit.
#[derive(Clone, Copy, Debug)]
pub struct StepMarking {
    /// So much may wait before marking begins.
    pub threshold: Limit,
    /// What does not fit is lost.
    pub limit: Limit,
}

impl StepMarking {
    pub(super) fn at_enqueue(&self, backlog: Backlog, ip_len: u32) -> Verdict {
        match drop_tail::at_enqueue(self.limit, backlog, ip_len) {
            Verdict::Enqueue if backlog.exceeds(self.threshold) => Verdict::Mark,
            verdict => verdict,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(threshold: Limit, packets: usize, bytes: u64) -> Verdict {
        let marking = StepMarking { threshold, limit: Limit::Packets(100) };
        marking.at_enqueue(Backlog { packets, bytes }, 1500)
    }

    #[test]
    fn marks_behind_more_than_the_threshold_and_drops_behind_the_limit() {
        let at = |packets| verdict(Limit::Packets(20), packets, packets as u64 * 1500);
        assert_eq!(at(20), Verdict::Enqueue);
        assert_eq!(at(21), Verdict::Mark);
        assert_eq!(at(99), Verdict::Mark);
        assert_eq!(at(100), Verdict::Drop);
    }

    #[test]
    fn the_threshold_may_count_bytes() {
        let at = |bytes| verdict(Limit::Bytes(30_000), 1, bytes);
        assert_eq!(at(30_000), Verdict::Enqueue);
        assert_eq!(at(30_001), Verdict::Mark);
    }
}
