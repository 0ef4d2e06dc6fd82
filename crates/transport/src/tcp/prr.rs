//! Proportional rate reduction: in fast recovery the window is reduced to the threshold in
//! proportion to the data delivered, so that ACKs clock out segments evenly over the whole round
//! trip (RFC 6937).
//!
//! While the bytes in flight (pipe) exceed the threshold, an ACK that reports `DeliveredData`
//! permits `sndcnt = ceil(prr_delivered·ssthresh / RecoverFS) − prr_out`. Below the threshold, RFC
//! 6937's slow-start reduction bound permits `min(ssthresh − pipe, max(prr_delivered − prr_out,
//! DeliveredData) + MSS)`.
//!
//! Linux (`tcp_cwnd_reduction`) differs in five points. It adds the MSS only if the ACK advances
//! SND.UNA and reports no further loss, the conservative choice of RFC 9937's `SafeACK`. RecoverFS
//! is the window before the reduction. Linux counts in segments and rounds up, sends at least one
//! segment at the begin, and leaves recovery with cwnd = ssthresh.

use super::rules::PrrRule;
use serde::{Deserialize, Serialize};

/// State of proportional rate reduction in one recovery; all numbers are bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Prr {
    /// Bytes delivered since the reduction began (`prr_delivered`).
    delivered: u64,
    /// Bytes sent since the reduction began (`prr_out`).
    out: u64,
    /// RecoverFS: bytes outstanding at the begin of the reduction (in Linux, the congestion window
    /// at that time).
    recover_fs: u64,
}

/// Data that an ACK in a recovery reports as delivered.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeliveryReport {
    /// Bytes that the ACK newly acknowledges or SACKs.
    pub(super) delivered: u64,
    /// Whether the ACK advanced SND.UNA.
    pub(super) advanced: bool,
    /// Whether the ACK revealed a new loss.
    pub(super) new_loss: bool,
}

impl Prr {
    /// Returns the state at the begin of a reduction; `recover_fs`: bytes outstanding then.
    pub(super) fn new(recover_fs: u64) -> Prr {
        Prr { delivered: 0, out: 0, recover_fs: recover_fs.max(1) }
    }

    /// Counts `bytes` as sent since the reduction began.
    pub(super) fn sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// Returns how many bytes may be sent after an ACK (`sndcnt` of RFC 6937). `pipe`: bytes in
    /// flight; `ssthresh`: slow-start threshold in bytes; `segment`: payload bytes of a full
    /// segment.
    pub(super) fn send_count(
        &mut self,
        rule: PrrRule,
        report: DeliveryReport,
        pipe: u64,
        ssthresh: u64,
        segment: u64,
    ) -> u64 {
        self.delivered += report.delivered;
        let ssthresh = match rule {
            PrrRule::Linux => (ssthresh / segment * segment).max(segment),
            PrrRule::Off | PrrRule::Rfc6937 => ssthresh,
        };
        let count = if pipe > ssthresh {
            let share = u128::from(self.delivered) * u128::from(ssthresh);
            (share.div_ceil(u128::from(self.recover_fs)) as u64).saturating_sub(self.out)
        } else {
            let banked = self.delivered.saturating_sub(self.out).max(report.delivered);
            let extra = match rule {
                PrrRule::Linux => report.advanced && !report.new_loss,
                PrrRule::Off | PrrRule::Rfc6937 => true,
            };
            (banked + if extra { segment } else { 0 }).min(ssthresh - pipe)
        };
        match rule {
            PrrRule::Linux => {
                let whole = count.div_ceil(segment) * segment;
                if self.out == 0 { whole.max(segment) } else { whole }
            }
            PrrRule::Off | PrrRule::Rfc6937 => count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: u64 = 1000;

    fn ack(delivered: u64) -> DeliveryReport {
        DeliveryReport { delivered, advanced: false, new_loss: false }
    }

    #[test]
    fn above_the_threshold_the_share_is_that_of_check_6() {
        // With 20 segments outstanding and threshold 10, every second delivery permits one segment.
        let mut prr = Prr::new(20 * S);
        let mut sent = Vec::new();
        for n in 1..=10 {
            let pipe = (20 - n) * S + sent.iter().sum::<u64>();
            let count = prr.send_count(PrrRule::Linux, ack(S), pipe.max(11 * S), 10 * S, S);
            prr.sent(count);
            sent.push(count);
        }
        assert_eq!(sent, [S, 0, S, 0, S, 0, S, 0, S, 0]);
        // RFC 6937 counts in bytes: each delivery permits half a segment, and halves add up.
        let mut prr = Prr::new(20 * S);
        assert_eq!(prr.send_count(PrrRule::Rfc6937, ack(S), 19 * S, 10 * S, S), S / 2);
        assert_eq!(prr.send_count(PrrRule::Rfc6937, ack(S), 18 * S, 10 * S, S), S);
    }

    #[test]
    fn below_the_threshold_slow_start_is_bounded_by_what_arrives() {
        // Heavy loss: three segments are in flight, and the threshold is 10.
        let new = || Prr { delivered: 5 * S, out: 5 * S, recover_fs: 20 * S };
        assert_eq!(new().send_count(PrrRule::Rfc6937, ack(S), 3 * S, 10 * S, S), 2 * S);
        assert_eq!(new().send_count(PrrRule::Linux, ack(S), 3 * S, 10 * S, S), S);
        let safe = DeliveryReport { delivered: S, advanced: true, new_loss: false };
        assert_eq!(new().send_count(PrrRule::Linux, safe, 3 * S, 10 * S, S), 2 * S);
        let worse = DeliveryReport { new_loss: true, ..safe };
        assert_eq!(new().send_count(PrrRule::Linux, worse, 3 * S, 10 * S, S), S);
        // The window never exceeds the threshold.
        assert_eq!(new().send_count(PrrRule::Linux, safe, 9 * S, 10 * S, S), S);
    }

    #[test]
    fn the_first_segment_goes_at_once_under_linux() {
        let mut prr = Prr::new(20 * S);
        assert_eq!(prr.send_count(PrrRule::Linux, ack(1), 20 * S, 10 * S, S), S);
    }

    proptest! {
        /// Checks that the bytes sent exceed their share of the bytes delivered by at most a
        /// segment, and that bytes in flight stay below the threshold once they are below it.
        #[test]
        fn sending_stays_in_proportion(
            flight in 4..200u64,
            divisor in 2..4u64,
            acks in prop::collection::vec(1..4u64, 1..100),
        ) {
            let (fs, ssthresh) = (flight * S, (flight / divisor).max(2) * S);
            for rule in [PrrRule::Linux, PrrRule::Rfc6937] {
                let mut prr = Prr::new(fs);
                let (mut pipe, mut delivered, mut out) = (fs, 0, 0);
                for &n in &acks {
                    let report = (n * S).min(pipe);
                    if report == 0 {
                        break;
                    }
                    pipe -= report;
                    delivered += report;
                    let before = pipe;
                    let count = prr.send_count(rule, ack(report), pipe, ssthresh, S) / S * S;
                    prr.sent(count);
                    pipe += count;
                    out += count;
                    if before > ssthresh {
                        prop_assert!(out <= (delivered * ssthresh).div_ceil(fs) + S);
                    } else {
                        prop_assert!(pipe <= ssthresh.max(before + S));
                    }
                }
            }
        }
    }
}
