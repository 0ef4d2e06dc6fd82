//! Pacing of an endpoint, and its interface to congestion controls that model the path (BBR): the
//! time at which the next segment may be sent, samples of the delivery rate, and the window and
//! rate that the model computes.

use super::config::TcpConfig;
use super::endpoint::Endpoint;
use super::states::RecoveryPhase;
use super::tso_bursts::{BurstDecision, SendRoom};
use crate::congestion::{CongestionControl, CongestionKind, Control, PathAck};
use eastwest_types::Time;
use serde::{Deserialize, Serialize};

/// Reason for which a segment of a sender waits until a timer expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SendWait {
    /// No segment waits; the timer has another purpose.
    #[default]
    None,
    /// The segment waits for its send time at the pacing rate.
    Pacing,
    /// The segment waits for room in the network card ([small
    /// queues](crate::congestion::small_queue)).
    Card,
}

/// Decision whether a segment may be sent now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SendGate {
    /// The next segment may be sent, whether new data or a retransmission.
    Open,
    /// New data may be sent, but no retransmissions.
    NewDataOnly,
    /// No segment may be sent.
    Closed,
}

/// Changes of delivered, lost and outstanding bytes by one ACK, for a model of the path (BBR).
#[derive(Clone, Copy, Debug)]
pub(super) struct AckChange {
    /// Bytes that the ACK newly acknowledges or SACKs.
    pub(super) delivered: u64,
    /// Bytes newly deemed lost because of the ACK.
    pub(super) lost: u64,
    /// Bytes in flight before the ACK (RFC 6675, `pipe`).
    pub(super) in_flight_before: u64,
}

impl Endpoint {
    /// Decides whether the next segment may be sent now, if it is new data and no loss is known.
    #[inline(always)]
    pub(super) fn new_data_gate(
        &mut self,
        now: Time,
        room: SendRoom,
        config: &TcpConfig,
    ) -> SendGate {
        if config.small_queues.on && !config.offload.on && !config.paces() {
            self.small_queue_gate(now, false, 1, room, config).0
        } else {
            self.send_gate(now, false, room, config)
        }
    }

    /// Decides whether the next segment may be sent now. The segment may have to wait for its
    /// pacing time, for a larger [burst](super::tso_bursts), or for [room in the
    /// NIC](super::small_queues). `may_retransmit`: whether the next segment may be a
    /// retransmission of lost data.
    #[inline(never)]
    pub(super) fn send_gate(
        &mut self,
        now: Time,
        may_retransmit: bool,
        room: SendRoom,
        config: &TcpConfig,
    ) -> SendGate {
        let Some(control) = self.control.as_deref_mut() else { return SendGate::Open };
        let pacing = &mut control.pacing;
        if pacing.burst_left > 0 {
            pacing.burst_left -= 1;
            return SendGate::Open;
        }
        pacing.waits = config.paces() && pacing.next > now;
        if pacing.waits {
            return SendGate::Closed;
        }
        let mut segments = 1;
        if config.offload.on {
            match self.decide_burst(now, room, config) {
                BurstDecision::Send(several) => segments = several,
                BurstDecision::Defer { for_window } => {
                    if let Some(control) = self.control.as_deref_mut() {
                        control.pacing.held_by_window = for_window;
                    }
                    return SendGate::Closed;
                }
            }
        }
        let mut send_gate = SendGate::Open;
        if config.small_queues.on {
            (send_gate, segments) =
                self.small_queue_gate(now, may_retransmit, segments, room, config);
        }
        if let Some(control) = self.control.as_deref_mut() {
            control.pacing.burst_left = segments - 1;
        }
        send_gate
    }

    /// Ends the current burst of segments. Returns whether the next burst is deferred because of
    /// the congestion window.
    pub(super) fn end_burst(&mut self) -> bool {
        let Some(control) = self.control.as_deref_mut() else { return false };
        control.pacing.burst_left = 0;
        std::mem::take(&mut control.pacing.held_by_window)
    }

    /// Updates the pacing rate after an ACK: to the rate of the congestion control if it sets one,
    /// otherwise from the congestion window (Linux, `tcp_update_pacing_rate`).
    #[inline(always)]
    pub(super) fn update_pacing_rate(&mut self, config: &TcpConfig) {
        if (config.paces() || config.offload.on || config.small_queues.on)
            && let Some(srtt) = self.timers.rtt.srtt()
            && let Some(control) = self.control.as_deref_mut()
            && !config.congestion.follows_path()
        {
            let (w, out) = (&self.window, self.stream.outstanding());
            // Of the algorithms without a model of the path, only one of a mechanism crate can set
            // the rate.
            let own = match config.congestion {
                CongestionKind::Custom { paces: true, .. } => control.algorithm.pacing_rate(),
                _ => None,
            };
            match own {
                Some(rate) => control.pacing.rate = rate,
                None => control.pacing.set_rate_from_window(w.cwnd, w.ssthresh, out, srtt),
            }
        }
        if config.small_queues.on {
            self.drop_idle_small_queue();
        }
    }

    /// Ends the wait of a segment for its pacing time or for room in the NIC.
    pub(super) fn clear_send_wait(&mut self) {
        if let Some(control) = self.control.as_deref_mut() {
            control.pacing.waits = false;
            if let Some(queue) = &mut control.small_queue {
                queue.free_at = Time::NEVER;
            }
        }
    }

    /// Returns the time at which the segment that waits for pacing or for the NIC may be sent;
    /// [`Time::NEVER`] if none waits.
    pub(super) fn paced_send_at(&self) -> Time {
        let Some(control) = self.control.as_deref() else { return Time::NEVER };
        let paced = if control.pacing.waits { control.pacing.next } else { Time::NEVER };
        control.small_queue.as_ref().map_or(paced, |queue| paced.min(queue.free_at))
    }

    /// Returns the reason for which a segment has waited until `now`. To be called when a timer of
    /// the endpoint expires.
    pub fn send_wait(&self, now: Time) -> SendWait {
        let Some(control) = self.control.as_deref() else { return SendWait::None };
        if control.pacing.waits && control.pacing.next <= now {
            SendWait::Pacing
        } else if control.small_queue.as_ref().is_some_and(|queue| queue.free_at <= now) {
            SendWait::Card
        } else {
            SendWait::None
        }
    }

    /// Records the transmission of the stream positions `start..stop` for pacing and delivery-rate
    /// samples.
    #[inline(never)]
    pub(super) fn record_sent(
        &mut self,
        now: Time,
        start: u64,
        stop: u64,
        is_retransmission: bool,
        config: &TcpConfig,
    ) {
        let in_flight = match (config.congestion.samples_pipe(), is_retransmission) {
            (true, _) => self.pipe(config).saturating_sub(stop - start),
            (false, true) => 1,
            (false, false) => start - self.stream.una,
        };
        let Some(control) = self.control.as_deref_mut() else { return };
        if let Some((sampler, _)) = control.algorithm.sampler() {
            sampler.sent(now, start, stop, is_retransmission, in_flight);
        }
        if let Some(rate) = control.algorithm.pacing_rate() {
            control.pacing.rate = rate;
        }
        if config.paces() {
            control.pacing.sent(now, stop - start);
        }
    }

    /// Checks whether the application has left the congestion window unused. If so, the next
    /// delivery-rate samples are application-limited (Linux, `tcp_rate_check_app_limited`). To be
    /// called before the application writes.
    pub(super) fn check_app_limited(&mut self, config: &TcpConfig) {
        if !config.congestion.samples_rate() {
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

    /// Updates the model of the path (BBR) after an ACK, and sets the congestion window and the
    /// pacing rate from it.
    #[inline(never)]
    pub(super) fn apply_path_model(&mut self, now: Time, change: AckChange, config: &TcpConfig) {
        let in_flight = self.pipe(config);
        let recovering = self.recovery.phase != RecoveryPhase::Open;
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
