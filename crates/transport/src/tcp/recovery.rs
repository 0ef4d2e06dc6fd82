//! Loss detection and recovery.
//!
//! With SACK: RFC 6675. A hole is lost once more than `(DupThresh − 1)` segments' worth of bytes
//! above it are SACKed; what is under way is counted by `pipe`. Without SACK: NewReno (RFC 6582) in
//! the same terms, where each duplicate ACK stands for one segment that has left the network, and
//! the first segment is the lost one; every partial ACK restarts the timer ("slow but steady", as
//! Linux does). After a timeout (RFC 5681, 3.1; RFC 6675, 5.1) everything that is not SACKed is lost
//! and sent again in slow start.

use super::config::TcpConfig;
use super::ecn::HELD;
use super::endpoint::{Endpoint, Phase, Probe};
use super::prr::Prr;
use super::rules::PrrRule;
use super::{Notice, Repair, Sink};
use eastwest_types::Time;

impl Endpoint {
    /// Tells those who look on.
    #[cold]
    pub(super) fn tell(&self, step: Repair, from: u64, to: u64, sink: &mut impl Sink) {
        sink.notify(self.id, Notice::Repair { step, from, to });
    }

    /// Bytes in the network: sent, less SACKed, less lost, plus sent again (RFC 6675, `SetPipe`).
    pub(super) fn pipe(&self, config: &TcpConfig) -> u64 {
        let outstanding = self.snd_max - self.snd_una;
        if self.phase == Phase::Open && self.sacked.is_empty() {
            return outstanding;
        }
        if let Some(board) = &self.board {
            return board.pipe_of(outstanding - self.sacked.total());
        }
        let not_sacked_below = |position: u64| {
            let position = position.clamp(self.snd_una, self.snd_max);
            (position - self.snd_una) - self.sacked.below(position)
        };
        let lost = not_sacked_below(self.lost_to());
        let resent = not_sacked_below(self.resent_to());
        let arrived =
            if !config.sack && self.phase != Phase::Recovery { 0 } else { self.arrived(config) };
        (outstanding - lost + resent).saturating_sub(arrived)
    }

    /// Bytes known to have arrived above the acknowledged ones.
    #[inline]
    pub(super) fn arrived(&self, config: &TcpConfig) -> u64 {
        if config.sack {
            self.sacked.total()
        } else {
            // NewReno: duplicate ACKs stand for segments that have arrived
            u64::from(self.dup_acks) * u64::from(config.segment)
        }
    }

    /// The next lost bytes to send again, at most a segment.
    pub(super) fn next_lost(&mut self, config: &TcpConfig) -> Option<(u64, u64)> {
        if let Some(board) = &mut self.board {
            return board.next_lost();
        }
        let segment = u64::from(config.segment);
        if self.resent_to() >= self.lost_to() {
            return None;
        }
        let (start, gap_end) = self.sacked.gap_from(self.resent_to().max(self.snd_una));
        if start >= self.lost_to() {
            return None;
        }
        Some((start, gap_end.min(start + segment).min(self.lost_to())))
    }

    /// Bytes that may be sent again without being known to be lost, where nothing better can be sent
    /// (RFC 6675, `NextSeg` rules 3 and 4): holes below what is SACKed, then once in a recovery the
    /// end of what is outstanding.
    pub(super) fn next_doubtful(&mut self, segment: u64) -> Option<(u64, u64)> {
        let (start, gap_end) = self.sacked.gap_from(self.resent_to().max(self.snd_una));
        if start < self.sacked.end() {
            let stop = gap_end.min(start + segment);
            self.set_resent_to(stop);
            return Some((start, stop));
        }
        if self.snd_una <= self.rare().rescue_above {
            return None;
        }
        self.rare().rescue_above = self.recover;
        let start = self.sacked.end().max(self.snd_una).max(self.snd_max.saturating_sub(segment));
        (start < self.snd_max).then_some((start, self.snd_max))
    }

    /// Moves `lost_to` up to the highest hole with enough SACKed above it.
    pub(super) fn update_lost(&mut self, config: &TcpConfig) {
        let degree = self.degree_of_reordering(config);
        let enough = u64::from(degree - 1) * u64::from(config.segment);
        let mut above = 0;
        let found = self.sacked.iter().rev().enumerate().find(|&(i, (start, end))| {
            above += end - start;
            above > enough || i + 1 >= degree as usize
        });
        if let Some((_, (start, _))) = found {
            self.set_lost_to(self.lost_to().max(start));
        }
    }

    /// Enters or continues fast recovery where segments have arrived out of order. Returns whether it
    /// has entered: then the first lost segment that has not been sent again goes out at once,
    /// whatever the window says (RFC 5681, 3.2 step 3; RFC 6675, 5 step 4.3).
    pub(super) fn detect_loss(&mut self, config: &TcpConfig, sink: &mut impl Sink) -> bool {
        if config.sack {
            self.update_lost(config);
        }
        if self.phase == Phase::Recovery {
            return false;
        }
        let lost =
            self.lost_to() > self.snd_una || self.dup_acks >= self.degree_of_reordering(config);
        // RFC 6582, 3.2 step 2: without SACK, duplicate ACKs just above the last recovery or timeout
        // may answer what was sent again needlessly
        let guarded = !config.sack && self.snd_una <= self.recover;
        if !lost || (guarded && !self.may_recover_again(config)) {
            return false;
        }
        self.begin_recovery(config, sink)
    }

    /// Fast recovery begins; returns whether the first lost segment goes out at once.
    pub(super) fn begin_recovery(&mut self, config: &TcpConfig, sink: &mut impl Sink) -> bool {
        let segment = u64::from(config.segment);
        let flight = self.flight_without_limited_transmit(segment);
        self.phase = Phase::Recovery;
        if self.probe == Probe::Tail {
            self.probe = Probe::None;
        }
        self.rare().probe_end = 0;
        self.rare().frto = false;
        self.note_for_undo(false, config);
        self.count().fast_recoveries += 1;
        self.tell(Repair::Recovery, self.snd_una, self.snd_max, sink);
        self.recover = self.snd_max;
        self.set_resent_to(self.resent_to().max(self.snd_una));
        self.set_lost_to(self.lost_to().max((self.snd_una + segment).min(self.snd_max)));
        self.rare().rescue_above = self.snd_una + segment;
        if self.is_reno(config) && self.recover_after_mark(config) {
            self.window.credit = 0;
            return true;
        }
        self.window.ssthresh = self.threshold_after_loss(flight, config);
        match config.recovery.prr {
            PrrRule::Off => self.window.cwnd = self.window.ssthresh,
            PrrRule::Rfc6937 => self.rare().prr = Prr::new(flight),
            PrrRule::Linux => self.rare().prr = Prr::new(self.window.cwnd),
        }
        self.window.credit = 0;
        config.recovery.prr != PrrRule::Linux
    }

    /// Bytes outstanding for the threshold. What limited transmit has sent beyond the window does
    /// not count (RFC 5681, 3.2 step 2).
    fn flight_without_limited_transmit(&self, segment: u64) -> u64 {
        let flight = self.snd_max - self.snd_una;
        if self.phase == Phase::Open && flight > self.window.cwnd {
            return self.window.cwnd / segment * segment;
        }
        flight
    }

    /// Whether a recovery without SACK waits for something above all that was outstanding when it began
    /// to be acknowledged: until then duplicates may answer what was sent again needlessly, and do not
    /// count (RFC 6582, 4.1; Linux, `tcp_is_non_sack_preventing_reopen`).
    pub(super) fn is_held_in_recovery(&self, config: &TcpConfig) -> bool {
        self.phase == Phase::Recovery
            && !config.sack
            && config.recovery.prr == PrrRule::Linux
            && self.snd_una == self.recover
    }

    /// An ACK moved on during recovery or after a timeout. Returns whether the first segment has to
    /// be sent again at once.
    pub(super) fn on_recovery_progress(
        &mut self,
        now: Time,
        acked: u64,
        config: &TcpConfig,
        sink: &mut impl Sink,
    ) -> bool {
        let segment = u64::from(config.segment);
        let over = self.snd_una >= self.recover;
        let mut partial = false;
        if config.timers.ack_ends_backoff && self.backoff > 0 {
            self.backoff = 0;
            if self.rto_at != Time::NEVER {
                self.rto_at = self.deadline(now, self.rto(config), config);
            }
        }
        if self.is_held_in_recovery(config) {
            self.dup_acks = 0;
            self.set_lost_to(self.snd_una);
            self.set_resent_to(self.snd_una);
            return false;
        }
        if self.phase == Phase::Recovery && self.is_reno(config) {
            // RFC 2581, 3.2 step 6: any new ACK
            self.leave_recovery(acked, config, sink);
            self.grow(now, acked, false, config);
            return false;
        }
        if self.phase == Phase::Loss {
            let held = self.is_reno(config) && self.ecn & HELD != 0 && self.is_held(config);
            if !held {
                self.grow(now, acked, true, config);
            }
        } else if !config.sack && !over {
            // RFC 6582, 3.2 step 3: a partial ACK, the next hole is lost too
            partial = true;
            let segments = acked.div_ceil(segment) as u32;
            self.dup_acks = self.dup_acks.saturating_sub(segments.saturating_sub(1));
            self.limit_duplicates(u64::from(segments), config);
            self.set_resent_to(self.snd_una);
            self.set_lost_to((self.snd_una + segment).min(self.snd_max));
        }
        if over {
            self.leave_recovery(acked, config, sink);
        }
        partial
    }

    /// Recovery, or what a timeout began, is over: `acked` bytes have just been acknowledged.
    fn leave_recovery(&mut self, acked: u64, config: &TcpConfig, sink: &mut impl Sink) {
        if self.phase == Phase::Recovery && config.recovery.prr != PrrRule::Off {
            self.window.cwnd = self.window.ssthresh;
        }
        if let Some(board) = &mut self.board {
            board.rack.recovery_ended();
        }
        self.phase = Phase::Open;
        self.tell(Repair::Recovered, self.snd_una - acked, self.snd_una, sink);
        self.dup_acks = 0;
        self.set_lost_to(self.snd_una);
        self.set_resent_to(self.resent_to().max(self.snd_una));
    }

    /// The retransmission timer has expired: start over from the first byte not acknowledged.
    pub(super) fn enter_loss(&mut self, now: Time, config: &TcpConfig, sink: &mut impl Sink) {
        let segment = u64::from(config.segment);
        if self.snd_una == self.snd_max {
            return;
        }
        // RFC 5681, equation (4); not again for a segment that timed out before. What was sent in
        // fast recovery must not raise the threshold.
        let before = self.phase;
        let recovering = before == Phase::Recovery && self.snd_una < self.recover;
        let flight = self.flight_without_limited_transmit(segment);
        if self.is_reno(config) {
            self.lower_threshold_of_reno(flight, config);
        } else if self.retries == 1 && !(recovering && config.recovery.one_cut) {
            self.note_for_undo(true, config);
            let threshold = self.threshold_after_loss(flight, config);
            self.window.ssthresh = match self.phase {
                Phase::Recovery => threshold.min(self.window.ssthresh),
                Phase::Open | Phase::Loss => threshold,
            };
        }
        if self.retries == 1 {
            self.rare().timeout_counted = false;
            if config.timestamps {
                self.rare().timed_out_at_us = super::output::timestamp_us(now).max(1);
            }
        }
        if before == Phase::Open && config.recovery.adapt_reordering {
            self.doubt_degree(config);
        }
        self.begin_frto(before, config);
        self.rack_on_timeout(now);
        self.window.credit = 0;
        self.forget_path(config);
        self.phase = Phase::Loss;
        // with RACK what was sent last may still arrive: one segment beside it (RFC 8985, 6.3)
        let spared = self.board.as_ref().map_or(0, |_| self.pipe(config));
        self.window.cwnd = spared + segment;
        self.probe = Probe::None;
        self.rare().probe_end = 0;
        self.recover = self.snd_max;
        self.set_lost_to(self.snd_max);
        self.set_resent_to(self.snd_una);
        self.dup_acks = 0;
        self.timed_end = 0;
        self.transmit(now, config, sink);
        if self.rto_at == Time::NEVER {
            // pacing holds the first segment back: the timer runs all the same (RFC 6298, 5.6)
            self.rto_at = self.deadline(now, self.rto(config), config);
        }
    }
}
