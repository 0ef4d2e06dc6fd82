//! Where an endpoint meets pacing and the models of BBR: when the next segment may leave, what is noted
//! of those that do, and the window and rate that follow from their arrival.

use super::bursts::{Burst, Room};
use super::config::TcpConfig;
use super::endpoint::Endpoint;
use super::phases::Phase;
use crate::congestion::{CongestionControl, Control, PathAck};
use eastwest_types::Time;

/// What may leave now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Gate {
    /// Whatever is next.
    Open,
    /// New data, but not what is lost.
    NewOnly,
    /// Nothing.
    Shut,
}

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
    /// Whether the next segment, which may be one that is lost if `again`, has to wait: for its time,
    /// when it is paced, for a [burst](super::offload) to be worth sending, or for
    /// [room in the card](super::small_queues).
    pub(super) fn gate(&mut self, now: Time, again: bool, room: Room, config: &TcpConfig) -> Gate {
        let Some(control) = self.control.as_deref_mut() else { return Gate::Open };
        let pacing = &mut control.pacing;
        if pacing.burst_left > 0 {
            pacing.burst_left -= 1;
            return Gate::Open;
        }
        pacing.waits = config.paces() && pacing.next > now;
        if pacing.waits {
            return Gate::Shut;
        }
        let mut segments = 1;
        if config.offload.on {
            match self.next_burst(now, room, config) {
                Burst::Leaves(several) => segments = several,
                Burst::Waits { for_window } => {
                    if let Some(control) = self.control.as_deref_mut() {
                        control.pacing.held_by_window = for_window;
                    }
                    return Gate::Shut;
                }
            }
        }
        let mut gate = Gate::Open;
        if config.small_queues.on {
            (gate, segments) = self.card_gate(now, again, segments, room, config);
        }
        if let Some(control) = self.control.as_deref_mut() {
            control.pacing.burst_left = segments - 1;
        }
        gate
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
        if (config.rules.pacing || config.offload.on || config.small_queues.on)
            && let Some(srtt) = self.timers.rtt.srtt()
            && let Some(control) = self.control.as_deref_mut()
            && !config.congestion.follows_path()
        {
            let (w, out) = (&self.window, self.stream.outstanding());
            control.pacing.follow_window(w.cwnd, w.ssthresh, out, srtt);
        }
        if config.small_queues.on {
            self.forget_card();
        }
    }

    /// The time has come.
    pub(super) fn stop_waiting(&mut self) {
        if let Some(control) = self.control.as_deref_mut() {
            control.pacing.waits = false;
            if let Some(queue) = &mut control.small_queue {
                queue.free_at = Time::NEVER;
            }
        }
    }

    /// When the segment that waits may leave, if one does.
    pub(super) fn pace_at(&self) -> Time {
        let Some(control) = self.control.as_deref() else { return Time::NEVER };
        let paced = if control.pacing.waits { control.pacing.next } else { Time::NEVER };
        control.small_queue.as_ref().map_or(paced, |queue| paced.min(queue.free_at))
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
        let in_flight = match (config.congestion.samples_pipe(), again) {
            (true, _) => self.pipe(config).saturating_sub(stop - start),
            (false, true) => 1,
            (false, false) => start - self.stream.una,
        };
        let Some(control) = self.control.as_deref_mut() else { return };
        if let Some((sampler, _)) = control.algorithm.sampler() {
            sampler.sent(now, start, stop, again, in_flight);
        }
        if let Some(rate) = control.algorithm.pacing_rate() {
            control.pacing.rate = rate;
        }
        if config.paces() {
            control.pacing.sent(now, stop - start);
        }
    }

    /// The application is about to write: notes whether it has left window unused (Linux,
    /// `tcp_rate_check_app_limited`).
    pub(super) fn note_unused_window(&mut self, config: &TcpConfig) {
        if !config.congestion.follows_path() {
            return;
        }
        let pipe = self.pipe(config);
        let empty =
            self.stream.end - self.stream.next.min(self.stream.end) < u64::from(config.segment);
        if empty
            && pipe < self.window.cwnd
            && let Some((sampler, _)) =
                self.control.as_deref_mut().and_then(|c| c.algorithm.sampler())
        {
            sampler.limited_by_application(pipe);
        }
    }

    /// An ACK has been taken in, losses are known; the window and rate follow from the model.
    #[inline(never)]
    pub(super) fn follow_model(&mut self, now: Time, change: Change, config: &TcpConfig) {
        let in_flight = self.pipe(config);
        let recovering = self.recovery.phase != Phase::Open;
        let srtt = self.timers.rtt.srtt();
        let seed = u64::from(self.address.id.0) << 16 | u64::from(self.address.hash);
        let Some(Control { algorithm, pacing, .. }) = self.control.as_deref_mut() else { return };
        let delivered = algorithm.sampler().map_or(0, |(s, _)| s.delivered);
        let cwnd = algorithm.follow(&PathAck {
            now,
            acked: change.delivered,
            lost: change.lost,
            delivered,
            in_flight_before: change.in_flight_before,
            in_flight,
            recovering,
            segment: u64::from(config.segment),
            srtt,
            seed,
        });
        if let (Some(cwnd), Some(rate)) = (cwnd, algorithm.pacing_rate()) {
            self.window.cwnd = cwnd;
            pacing.rate = rate;
        }
    }
}
