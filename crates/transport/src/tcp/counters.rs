//! Counters of endpoints as senders, and consecutive timeouts, whose cause a later ACK may correct.

use super::timeout_cause::TimeoutCause;
use serde::{Deserialize, Serialize};

/// Counters of one TCP endpoint as a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Number of retransmitted segments.
    pub retransmits: u32,
    /// Number of expiries of the retransmission timer, including those of SYN and FIN.
    pub timeouts: u32,
    /// Number of entries into fast recovery.
    pub fast_recoveries: u32,
    /// Number of spurious timeouts: a later ACK showed that nothing had been lost (by its echoed
    /// timestamp, Eifel detection, RFC 3522; or by DSACK or F-RTO).
    pub spurious_timeouts: u32,
    /// Number of reductions of the window because of ECE.
    pub ecn_reductions: u32,
    /// Number of fast recoveries that were undone, since timestamps or DSACKs showed that they were
    /// spurious.
    pub spurious_recoveries: u32,
    /// Number of times that RACK found retransmissions lost.
    pub lost_retransmits: u32,
    /// Number of tail loss probes sent.
    pub probes: u32,
    /// Number of losses at the end of a flight that a tail loss probe repaired.
    pub probe_recoveries: u32,
    /// Number of DSACKs received (RFC 2883).
    pub dsacks: u32,
    /// Number of retransmission timeouts at which none of the outstanding data had arrived. Only
    /// the first of consecutive timeouts counts.
    pub lost_windows: u32,
    /// Number of retransmission timeouts at which data had arrived, but every ACK of this data was
    /// lost. Only the first of consecutive timeouts counts.
    pub lost_ack_windows: u32,
    /// Number of retransmission timeouts by cause; the index is the number of the [`TimeoutCause`].
    /// The sum of all elements is `timeouts`.
    pub causes: [u32; TimeoutCause::COUNT],
}

impl Counters {
    /// Adds the counters of another endpoint to these counters.
    pub fn add(&mut self, other: &Counters) {
        self.retransmits += other.retransmits;
        self.timeouts += other.timeouts;
        self.fast_recoveries += other.fast_recoveries;
        self.spurious_timeouts += other.spurious_timeouts;
        self.ecn_reductions += other.ecn_reductions;
        self.spurious_recoveries += other.spurious_recoveries;
        self.lost_retransmits += other.lost_retransmits;
        self.probes += other.probes;
        self.probe_recoveries += other.probe_recoveries;
        self.dsacks += other.dsacks;
        self.lost_windows += other.lost_windows;
        self.lost_ack_windows += other.lost_ack_windows;
        self.causes.iter_mut().zip(other.causes).for_each(|(sum, n)| *sum += n);
    }
}

/// Kind of packets in a window of which all packets were lost before a retransmission timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum LostWindow {
    /// All outstanding data packets were lost.
    Data,
    /// Data had arrived, but all its ACKs were lost.
    Acks,
}

/// Run of consecutive retransmission timeouts: all since SND.UNA last advanced. Later ACKs may show
/// them to be spurious.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct TimeoutRun {
    /// Number of timeouts in the run by cause; the index is the number of the [`TimeoutCause`].
    counts: [u16; TimeoutCause::COUNT],
    /// Kind of the whole window of packets that the first timeout of the run found lost, or `None`.
    lost_window: Option<LostWindow>,
    /// Cause of the last timeout of the run (number of the [`TimeoutCause`]).
    last: u8,
    /// Time of the last timeout of the run in µs.
    last_us: u32,
}

impl TimeoutRun {
    /// Counts a retransmission timeout at time `now_us` under its cause. `first`: whether it is the
    /// first of the run; `lost_window`: kind of the packets of which a whole window was lost, if
    /// any.
    pub(super) fn count(
        &mut self,
        counters: &mut Counters,
        cause: TimeoutCause,
        (first, lost_window): (bool, Option<LostWindow>),
        now_us: u32,
    ) {
        if first {
            *self = TimeoutRun { lost_window, ..TimeoutRun::default() };
            counters.lost_windows += u32::from(lost_window == Some(LostWindow::Data));
            counters.lost_ack_windows += u32::from(lost_window == Some(LostWindow::Acks));
        }
        counters.causes[cause as usize] += 1;
        self.counts[cause as usize] = self.counts[cause as usize].saturating_add(1);
        (self.last, self.last_us) = (cause as u8, now_us);
    }

    /// Moves all timeouts of the run to [`TimeoutCause::Spurious`], since no data was lost. `late`:
    /// an ACK of the original transmission has arrived, so that not all ACKs were lost either.
    pub(super) fn recount_as_spurious(&mut self, counters: &mut Counters, late: bool) {
        let run = std::mem::take(self);
        match run.lost_window {
            Some(LostWindow::Data) => counters.lost_windows -= 1,
            Some(LostWindow::Acks) if late => counters.lost_ack_windows -= 1,
            _ => {}
        }
        let mut all = 0;
        for (sum, n) in counters.causes.iter_mut().zip(run.counts) {
            *sum -= u32::from(n);
            all += u32::from(n);
        }
        counters.causes[TimeoutCause::Spurious as usize] += all;
    }

    /// Moves the last timeout of the run to [`TimeoutCause::Spurious`] if `echo_us`, the timestamp
    /// echoed by the first ACK of new data after the run, is earlier than this timeout: an earlier
    /// retransmission has arrived.
    pub(super) fn recount_last(&mut self, counters: &mut Counters, echo_us: u32) {
        let more_than_one = self.counts.iter().map(|n| u32::from(*n)).sum::<u32>() > 1;
        if more_than_one && (echo_us.wrapping_sub(self.last_us) as i32) < 0 {
            let last = usize::from(self.last);
            self.counts[last] -= 1;
            counters.causes[last] -= 1;
            counters.causes[TimeoutCause::Spurious as usize] += 1;
        }
    }
}
