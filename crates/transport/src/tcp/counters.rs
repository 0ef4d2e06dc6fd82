//! What endpoints count as senders, and timeouts in a row, which later ACKs may count under another cause.

use super::cause::Cause;
use serde::{Deserialize, Serialize};

/// Counters of one endpoint as a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Segments sent again.
    pub retransmits: u32,
    /// Retransmission timeouts, those of SYN and FIN included.
    pub timeouts: u32,
    /// Entries into fast recovery.
    pub fast_recoveries: u32,
    /// Timeouts after which an ACK still answered the first transmission (Eifel detection, RFC
    /// 3522): nothing had been lost. Counted only with timestamps.
    pub spurious_timeouts: u32,
    /// Times the window was cut because of marks.
    pub ecn_reductions: u32,
    /// Fast recoveries that timestamps or DSACKs showed to be needless, and that were undone.
    pub spurious_recoveries: u32,
    /// Retransmissions that RACK found lost themselves.
    pub lost_retransmits: u32,
    /// Tail loss probes sent.
    pub probes: u32,
    /// Tail losses that a probe repaired.
    pub probe_recoveries: u32,
    /// Reports of segments that arrived twice (DSACK, RFC 2883).
    pub dsacks: u32,
    /// Timeouts of which the first thing known is that nothing arrived of all that was outstanding.
    pub lost_windows: u32,
    /// Timeouts where data had arrived and every ACK of it was lost.
    pub lost_ack_windows: u32,
    /// Timeouts by [`Cause`]; their sum is `timeouts`.
    pub causes: [u32; Cause::COUNT],
}

impl Counters {
    /// Adds another endpoint's counters.
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

/// What was lost of a window, all of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum LostWindow {
    /// Everything that was outstanding.
    Data,
    /// Every ACK of what had arrived.
    Acks,
}

/// Timeouts since an ACK last moved on: what becomes of them is not known yet.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Row {
    counts: [u16; Cause::COUNT],
    /// What the first of them found lost.
    window: Option<LostWindow>,
    last: u8,
    /// When the last of them struck, microseconds.
    last_us: u32,
}

impl Row {
    /// Counts a timeout that strikes at `now_us` under its cause; the `first` of a row may have lost a
    /// `window`.
    pub(super) fn count(
        &mut self,
        counters: &mut Counters,
        cause: Cause,
        (first, window): (bool, Option<LostWindow>),
        now_us: u32,
    ) {
        if first {
            *self = Row { window, ..Row::default() };
            counters.lost_windows += u32::from(window == Some(LostWindow::Data));
            counters.lost_ack_windows += u32::from(window == Some(LostWindow::Acks));
        }
        counters.causes[cause as usize] += 1;
        self.counts[cause as usize] = self.counts[cause as usize].saturating_add(1);
        (self.last, self.last_us) = (cause as u8, now_us);
    }

    /// All timeouts since an ACK last moved on were needless: no data was lost. `late` says that an
    /// ACK of the original has come after all, so that not all of these were lost either.
    pub(super) fn recount_as_spurious(&mut self, counters: &mut Counters, late: bool) {
        let row = std::mem::take(self);
        match row.window {
            Some(LostWindow::Data) => counters.lost_windows -= 1,
            Some(LostWindow::Acks) if late => counters.lost_ack_windows -= 1,
            _ => {}
        }
        let mut all = 0;
        for (sum, n) in counters.causes.iter_mut().zip(row.counts) {
            *sum -= u32::from(n);
            all += u32::from(n);
        }
        counters.causes[Cause::Spurious as usize] += all;
    }

    /// The first ACK that moves on after a row of timeouts, with this echo, answers neither the original
    /// nor, perhaps, the copy that the last of them sent: then that one was needless.
    pub(super) fn judge_last(&mut self, counters: &mut Counters, echo_us: u32) {
        let more_than_one = self.counts.iter().map(|n| u32::from(*n)).sum::<u32>() > 1;
        if more_than_one && (echo_us.wrapping_sub(self.last_us) as i32) < 0 {
            let last = usize::from(self.last);
            self.counts[last] -= 1;
            counters.causes[last] -= 1;
            counters.causes[Cause::Spurious as usize] += 1;
        }
    }
}
