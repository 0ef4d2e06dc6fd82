//! What follows where ACKs show that a [cut was needless](super::undo): it is counted and taken back.

use super::config::TcpConfig;
use super::endpoint::Endpoint;
use super::interface::{Context, Repair, Sink};
use super::phases::Phase;
use super::undo::{Advice, Evidence, Undo};
use eastwest_types::Packet;

impl Endpoint {
    /// The first ACK after a timeout that moves on tells whether the timeout was spurious.
    pub(super) fn judge_timeout(&mut self, packet: &Packet, acked: u64, sink: &mut impl Sink) {
        let struck = std::mem::take(&mut self.recovery.rare().timed_out_at_us);
        if struck != 0 && (packet.ts_echo_us.wrapping_sub(struck) as i32) < 0 {
            self.count_spurious_timeout(acked, true, sink);
        } else if struck != 0 {
            let rare = self.recovery.rare();
            rare.row.judge_last(&mut rare.counters, packet.ts_echo_us);
        }
    }

    /// Counts a timeout once as needless; `late`: an ACK of the original tells so.
    fn count_spurious_timeout(&mut self, acked: u64, late: bool, sink: &mut impl Sink) {
        let rare = self.recovery.rare();
        if !std::mem::replace(&mut rare.timeout_counted, true) {
            rare.counters.spurious_timeouts += 1;
            rare.row.recount_as_spurious(&mut rare.counters, late);
            self.tell(Repair::Spurious, self.stream.una - acked, self.stream.una, sink);
        }
    }

    /// The window is about to be cut: notes what may have to be restored.
    pub(super) fn note_for_undo(&mut self, of_timeout: bool, config: &TcpConfig) {
        if !config.recovery.undo && !config.recovery.frto {
            return;
        }
        let segment = u64::from(config.segment);
        let out = self.recovery.resent_under_way().div_ceil(segment) as u32;
        let undo = Undo::new(of_timeout, &self.stream, &self.window, out);
        self.recovery.rare().undo = Some(undo);
    }

    fn answers_original(&self, packet: &Packet, config: &TcpConfig) -> bool {
        self.recovery.undo().is_some_and(|u| u.answers_original(packet.ts_echo_us, config))
    }

    fn may_undo(&self, packet: &Packet, config: &TcpConfig) -> bool {
        config.recovery.undo
            && (self.recovery.proven_by_dsack() || self.answers_original(packet, config))
    }

    /// Takes the last cut back. What is deemed lost is so no more unless the proof came by DSACK, for
    /// what was sent again then, not for what else may be missing.
    pub(super) fn take_back(&mut self, unmark: bool, acked: u64, sink: &mut impl Sink) {
        let Some(undo) = self.recovery.rare().undo.take() else { return };
        if undo.restore(&mut self.window) {
            self.count_spurious_timeout(acked, false, sink);
        } else {
            self.recovery.count().spurious_recoveries += 1;
        }
        if unmark {
            self.recovery.set_lost_to(self.stream.una);
            if let Some(board) = &mut self.recovery.board {
                board.unmark_lost();
                board.rack.look_again();
            }
        }
    }

    /// Leaves the recovery: all is acknowledged that it was about, or it was needless.
    fn reopen(&mut self, acked: u64, sink: &mut impl Sink) {
        self.recovery.phase = Phase::Open;
        self.recovery.dup_acks = 0;
        self.recovery.set_lost_to(self.stream.una);
        // copies under way no longer count: they were not needed
        self.recovery.set_resent_to(self.stream.una);
        self.tell(Repair::Recovered, self.stream.una - acked, self.stream.una, sink);
    }

    /// An ACK in a recovery or after a timeout, or with a DSACK: was it all needless?
    pub(super) fn reconsider(
        &mut self,
        packet: &Packet,
        evidence: Evidence,
        ctx: &mut Context<'_, impl Sink>,
    ) -> Advice {
        let acked = evidence.acked;
        match self.recovery.phase {
            Phase::Open => {
                if ctx.config.recovery.undo && self.recovery.proven_by_dsack() {
                    self.take_back(false, acked, ctx.sink);
                }
            }
            Phase::Recovery => {
                let over = self.stream.una >= self.recovery.recover();
                if over && acked > 0 && self.may_undo(packet, ctx.config)
                    || ctx.config.recovery.undo && self.recovery.proven_by_dsack()
                {
                    self.take_back(false, acked, ctx.sink);
                    self.reopen(acked, ctx.sink);
                } else if acked > 0
                    && ctx.config.recovery.undo
                    && self.answers_original(packet, ctx.config)
                {
                    // a hole filled by what was only late: while copies are under way send none more
                    if self.recovery.resent_under_way() > 0 {
                        return Advice::NothingAgain;
                    }
                    self.take_back(true, acked, ctx.sink);
                    self.reopen(acked, ctx.sink);
                }
            }
            Phase::Loss => {
                if acked > 0 && self.may_undo(packet, ctx.config) {
                    self.take_back(true, acked, ctx.sink);
                    self.reopen(acked, ctx.sink);
                } else if ctx.config.recovery.frto {
                    return self.judge_by_frto(evidence, ctx);
                }
            }
        }
        Advice::GoOn
    }

    /// A timeout that F-RTO has found needless.
    pub(super) fn undo_timeout(&mut self, acked: u64, sink: &mut impl Sink) {
        self.take_back(true, acked, sink);
        self.reopen(acked, sink);
    }
}
