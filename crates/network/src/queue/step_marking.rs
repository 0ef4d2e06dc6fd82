//! Marking at a threshold: a packet that finds more than K waiting gets the mark "congestion
//! experienced" of RFC 3168 if its transport understands marks. It is the marking of DCTCP (Alizadeh
//! et al. 2010, section 3.1; RFC 8257, section 3.1), by the queue of the moment and without
//! averaging. Packets of other transports wait unmarked; what does not fit is lost.

use super::{Backlog, Verdict, drop_tail};
use crate::config::Limit;

pub(super) fn at_enqueue(threshold: Limit, limit: Limit, backlog: Backlog, ip_len: u32) -> Verdict {
    match drop_tail::at_enqueue(limit, backlog, ip_len) {
        Verdict::Enqueue if backlog.exceeds(threshold) => Verdict::Mark,
        verdict => verdict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_behind_more_than_the_threshold_and_drops_behind_the_limit() {
        let at = |packets| {
            let backlog = Backlog { packets, bytes: packets as u64 * 1500 };
            at_enqueue(Limit::Packets(20), Limit::Packets(100), backlog, 1500)
        };
        assert_eq!(at(20), Verdict::Enqueue);
        assert_eq!(at(21), Verdict::Mark);
        assert_eq!(at(99), Verdict::Mark);
        assert_eq!(at(100), Verdict::Drop);
    }

    #[test]
    fn the_threshold_may_count_bytes() {
        let at = |bytes| {
            let backlog = Backlog { packets: 1, bytes };
            at_enqueue(Limit::Bytes(30_000), Limit::Packets(100), backlog, 1500)
        };
        assert_eq!(at(30_000), Verdict::Enqueue);
        assert_eq!(at(30_001), Verdict::Mark);
    }
}
