//! Where an endpoint meets pacing and the model of BBR: when the next segment may leave, what is noted
//! of those that do, and the window and rate that follow from their arrival.

use super::config::{CongestionKind, TcpConfig};
use super::endpoint::{Endpoint, Phase};
use super::offload::{Burst, Room};
use crate::congestion::bbr::Ack;
use crate::congestion::{Algorithm, Control};
use eastwest_types::Time;

/// What an ACK has changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    /// Bytes newly acknowledged or SACKed.
    pub(super) delivered: u64,
    /// Bytes newly deemed lost.
    pub(super) lost: u64,
    /// Under way before it.
    pub(super) in_flight_before: u64,
}

impl Endpoint {
    /// Whether the next segment has to wait: for its time, when it is sent, or for a
    /// [burst](super::offload) to be worth sending.
    pub(super) fn must_wait(&mut self, now: Time, room: Room, config: &TcpConfig) -> bool {
        let Some(control) = self.control.as_deref_mut() else { return false };
        let pacing = &mut control.pacing;
        if pacing.burst_left > 0 {
            pacing.burst_left -= 1;
            return false;
        }
        pacing.waits = config.paces() && pacing.next > now;
        if pacing.waits || !config.offload.on {
            return pacing.waits;
        }
        let burst = self.next_burst(now, room, config);
        let Some(control) = self.control.as_deref_mut() else { return false };
        match burst {
            Burst::Leaves(segments) => {
                control.pacing.burst_left = segments - 1;
                false
            }
            Burst::Waits { for_window } => {
                control.pacing.held_by_window = for_window;
                true
            }
        }
    }

    /// Nothing more leaves for now. Returns whether a burst waits for the window to have room.
    pub(super) fn end_burst(&mut self) -> bool {
        let Some(control) = self.control.as_deref_mut() else { return false };
        control.pacing.burst_left = 0;
        std::mem::take(&mut control.pacing.held_by_window)
    }

    /// The rate that follows from the window after an ACK (Linux, `tcp_update_pacing_rate`).
    #[inline(never)]
    pub(super) fn follow_window(&mut self, config: &TcpConfig) {
        if (config.rules.pacing || config.offload.on)
            && let Some(srtt) = self.rtt.srtt()
            && let Some(control) = self.control.as_deref_mut()
            && !matches!(control.algorithm, Algorithm::Bbr(_))
        {
            let (w, out) = (&self.window, self.snd_max - self.snd_una);
            control.pacing.follow_window(w.cwnd, w.ssthresh, out, srtt);
        }
    }

    /// The time has come.
    pub(super) fn stop_waiting(&mut self) {
        if let Some(control) = self.control.as_deref_mut() {
            control.pacing.waits = false;
        }
    }

    /// When the segment that waits may leave, if one does.
    pub(super) fn pace_at(&self) -> Time {
        let pacing = self.control.as_deref().map(|c| c.pacing).filter(|p| p.waits);
        pacing.map_or(Time::NEVER, |p| p.next)
    }

    /// The segment `start..stop` leaves.
    #[inline(never)]
    pub(super) fn note_sent(
        &mut self,
        now: Time,
        start: u64,
        stop: u64,
        again: bool,
        config: &TcpConfig,
    ) {
        let in_flight = if again { 1 } else { start - self.snd_una };
        let Some(control) = self.control.as_deref_mut() else { return };
        if let Algorithm::Bbr(b) = &mut control.algorithm {
            b.sampler.sent(now, start, stop, again, in_flight);
            control.pacing.rate = b.pacing_rate;
        }
        if config.paces() {
            control.pacing.sent(now, stop - start);
        }
    }

    /// The application is about to write: notes whether it has left window unused (Linux,
    /// `tcp_rate_check_app_limited`).
    pub(super) fn note_unused_window(&mut self, config: &TcpConfig) {
        if config.congestion != CongestionKind::Bbr {
            return;
        }
        let pipe = self.pipe(config);
        let empty = self.write_end - self.snd_max.min(self.write_end) < u64::from(config.segment);
        if empty
            && pipe < self.window.cwnd
            && let Some(Algorithm::Bbr(b)) = self.control.as_deref_mut().map(|c| &mut c.algorithm)
        {
            b.sampler.limited_by_application(pipe);
        }
    }

    /// BBR: an ACK has been taken in, losses are known; the window and rate follow from the model.
    #[inline(never)]
    pub(super) fn follow_model(&mut self, now: Time, change: Change, config: &TcpConfig) {
        let in_flight = self.pipe(config);
        let recovering = self.phase != Phase::Open;
        let srtt = self.rtt.srtt();
        let seed = u64::from(self.id.0) << 16 | u64::from(self.hash);
        let Some(Control { algorithm: Algorithm::Bbr(b), pacing, .. }) =
            self.control.as_deref_mut()
        else {
            return;
        };
        b.on_ack(&Ack {
            now,
            acked: change.delivered,
            lost: change.lost,
            delivered: b.sampler.delivered,
            in_flight_before: change.in_flight_before,
            in_flight,
            recovering,
            segment: u64::from(config.segment),
            srtt,
            seed,
        });
        pacing.rate = b.pacing_rate;
        self.window.cwnd = b.cwnd;
    }

    /// Bytes deemed lost now, where they are known one by one.
    pub(super) fn deemed_lost(&self) -> u64 {
        self.board.as_ref().map_or(0, |b| b.lost())
    }
}
