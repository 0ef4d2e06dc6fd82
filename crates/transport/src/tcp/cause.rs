//! Why a retransmission timer struck: each timeout is counted under one cause, decided when the timer
//! strikes and at no other time.
//!
//! A real sender can only guess; here both ends are known, so what the receiver holds decides. The
//! classes follow the studies of incast: whole windows lost, and the last segments of a message lost
//! (Zhang, Ren and Lin, *Modeling and Understanding TCP Incast in Data Center Networks*, INFOCOM 2011,
//! call them block head and block tail timeouts), retransmissions lost (Vasudevan et al., SIGCOMM 2009),
//! and timers that struck although nothing was lost, which those studies could only suspect. A timeout
//! that an ACK later shows to have been needless ([`undo`](super::undo)) is moved to [`Cause::Spurious`].
//!
//! A copy that is still in a queue when the timer strikes cannot be told from a lost one then; the
//! timestamp echoed by the ACK that it brings tells. Without timestamps only F-RTO and DSACK can, and
//! [`Cause::Spurious`] is a lower bound.

use super::config::TcpConfig;
use super::endpoint::{Endpoint, Phase, State};
use eastwest_types::Packet;
use serde::{Deserialize, Serialize};

/// Why a timer struck. *Hole*: the first segment that is not acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Cause {
    /// The SYN has not arrived.
    Syn = 0,
    /// The SYN-ACK, or the ACK that answers it, has not.
    SynAck = 1,
    /// The hole is all that is outstanding, and a message of its own: a request, a short answer.
    Request = 2,
    /// Nothing arrived of all that is outstanding: a whole window or a whole message.
    FullWindow = 3,
    /// The hole is near the end of what there is to send: too few segments follow it for enough
    /// duplicate ACKs, or less than a window and all of it lost.
    Tail = 4,
    /// One or two segments above the hole arrived: too few to show it, of a window of which most was
    /// lost, or of what a fast recovery has left.
    FewDuplicates = 5,
    /// The hole had been sent again before, and that copy has not arrived either.
    LostRetransmission = 6,
    /// Enough had arrived for a fast retransmit; the timer was faster than that, or than its turn.
    Recovery = 7,
    /// Only the FIN is outstanding.
    Fin = 8,
    /// Only ACKs: the receiver has the hole and has acknowledged it. Requests meet this whose ACK comes
    /// with an answer of which the first window is lost.
    Ack = 9,
    /// Nothing was lost: the hole has arrived, or its last copy has; the ACK is delayed or late.
    Spurious = 10,
}

impl Cause {
    /// Number of causes.
    pub const COUNT: usize = 11;

    /// Names in results, in the order of the numbers.
    pub const NAMES: [&str; Cause::COUNT] = [
        "syn",
        "syn_ack",
        "request",
        "full_window",
        "tail",
        "few_duplicates",
        "lost_retransmission",
        "recovery",
        "fin",
        "ack",
        "spurious",
    ];
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

impl Endpoint {
    /// The cause of a timeout that is about to be handled; `peer` is the other end.
    pub(super) fn cause_of_timeout(&self, peer: &Endpoint, config: &TcpConfig) -> Cause {
        match self.state {
            State::SynSent if peer.state == State::Listen => return Cause::Syn,
            State::SynSent | State::SynReceived => return Cause::SynAck,
            State::Established | State::Listen | State::Failed => {}
        }
        let hole = self.snd_una;
        if peer.rcv_nxt > hole {
            return if peer.last_ack_sent > hole { Cause::Ack } else { Cause::Spurious };
        }
        if hole >= self.write_end {
            return Cause::Fin;
        }
        let resent = match &self.board {
            Some(board) => board.first_was_resent(),
            None => self.phase != Phase::Open && hole < self.resent_to(),
        };
        if resent || self.retries > 0 {
            return Cause::LostRetransmission;
        }
        let segment = u64::from(config.segment);
        let enough = u64::from(self.degree_of_reordering(config));
        let arrived = peer.out_of_order.total().div_ceil(segment);
        if arrived >= enough {
            return Cause::Recovery;
        }
        self.cause_of_first_loss(arrived, enough * segment, segment)
    }

    /// … of a hole that was sent once, with `arrived` segments above it: fewer than `enough` bytes would
    /// hold, which would tell.
    fn cause_of_first_loss(&self, arrived: u64, enough: u64, segment: u64) -> Cause {
        let outstanding = self.snd_max - self.snd_una;
        let begins = self.snd_una == self.written_from;
        if begins && self.write_end - self.written_from <= segment {
            return Cause::Request;
        }
        let ends = self.snd_max >= self.write_end;
        let near_the_end = ends && outstanding <= enough;
        let fills_window = outstanding + segment > self.window.cwnd;
        if arrived > 0 {
            return if near_the_end { Cause::Tail } else { Cause::FewDuplicates };
        }
        if begins || !ends || (fills_window && !near_the_end) {
            return Cause::FullWindow;
        }
        Cause::Tail
    }

    /// Whether a timeout that is about to be handled, the first since an ACK moved on, finds a whole
    /// window lost: nothing of the data that is outstanding has arrived, or some has and every ACK
    /// of it was lost, for any of them would have moved on.
    pub(super) fn lost_window(&self, peer: &Endpoint, cause: Cause) -> Option<LostWindow> {
        if self.retries > 0 || self.state != State::Established {
            return None;
        }
        let data = self.snd_una < self.write_end;
        let none_arrived = peer.rcv_nxt <= self.snd_una && peer.out_of_order.total() == 0;
        match cause {
            Cause::Ack => Some(LostWindow::Acks),
            _ if data && none_arrived => Some(LostWindow::Data),
            _ => None,
        }
    }

    /// Counts a timeout that strikes at `now_us` under its cause.
    pub(super) fn count_cause(&mut self, cause: Cause, window: Option<LostWindow>, now_us: u32) {
        let first = self.retries == 0;
        let rare = self.rare();
        if first {
            rare.row = Row { window, ..Row::default() };
            rare.counters.lost_windows += u32::from(window == Some(LostWindow::Data));
            rare.counters.lost_ack_windows += u32::from(window == Some(LostWindow::Acks));
        }
        rare.counters.causes[cause as usize] += 1;
        rare.row.counts[cause as usize] = rare.row.counts[cause as usize].saturating_add(1);
        (rare.row.last, rare.row.last_us) = (cause as u8, now_us);
    }

    /// All timeouts since an ACK last moved on were needless: no data was lost. `late` says that an
    /// ACK of the original has come after all, so that not all of these were lost either.
    pub(super) fn recount_row_as_spurious(&mut self, late: bool) {
        let rare = self.rare();
        let row = std::mem::take(&mut rare.row);
        match row.window {
            Some(LostWindow::Data) => rare.counters.lost_windows -= 1,
            Some(LostWindow::Acks) if late => rare.counters.lost_ack_windows -= 1,
            _ => {}
        }
        let mut all = 0;
        for (sum, n) in rare.counters.causes.iter_mut().zip(row.counts) {
            *sum -= u32::from(n);
            all += u32::from(n);
        }
        rare.counters.causes[Cause::Spurious as usize] += all;
    }

    /// The first ACK that moves on after a row of timeouts answers neither the original nor, perhaps,
    /// the copy that the last of them sent: then that one was needless.
    pub(super) fn judge_last_of_row(&mut self, packet: &Packet) {
        let rare = self.rare();
        let row = &mut rare.row;
        let more_than_one = row.counts.iter().map(|n| u32::from(*n)).sum::<u32>() > 1;
        if more_than_one && (packet.ts_echo_us.wrapping_sub(row.last_us) as i32) < 0 {
            let last = usize::from(row.last);
            row.counts[last] -= 1;
            rare.counters.causes[last] -= 1;
            rare.counters.causes[Cause::Spurious as usize] += 1;
        }
    }
}
