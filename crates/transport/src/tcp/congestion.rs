//! Interface of an endpoint to its congestion control: reports of ACKs, growth of the window,
//! thresholds after losses and ECE.

use super::config::TcpConfig;
use super::endpoint::Endpoint;
use super::rtt::timestamp_us;
use super::scoreboard::SendTimes;
use super::states::RecoveryPhase;
use crate::congestion::cwnd_usage::CwndUsage;
use crate::congestion::hystart::{HyStart, Sample};
use crate::congestion::pacing::Pacing;
use crate::congestion::rules::HyStartRule;
use crate::congestion::{
    Ack, Algorithm, CongestionControl, Control, LARGEST_WINDOW, Seen, SenderPlace, new_reno,
};
use eastwest_types::{Packet, SackBlocks, Span, Time, flag};

/// Bytes whose transmission time Linux adds to the permitted length of an ACK train
/// (`hystart_ack_delay`): two offload packets of 64 KiB, one on its way to the receiver and one in
/// the sender's queue, doubled because the pacing rate in slow start is twice the window per RTT.
const AGGREGATE: u64 = 4 * 65_536;

impl Endpoint {
    /// Creates the state of the congestion control before the first data is sent.
    #[cold]
    pub(super) fn start_control(&mut self, config: &TcpConfig) {
        let place = SenderPlace {
            segment: config.segment,
            initial_window: config.initial_window,
            endpoint: self.address.id.0,
            rules: config.rules,
            seed: 0,
        };
        let algorithm =
            Algorithm::start(config.congestion, &config.algorithms, config.custom.as_ref(), &place);
        let hystart = HyStart::new(config.rules.hystart);
        self.control = Some(Box::new(Control {
            algorithm,
            hystart,
            pacing: Pacing::default(),
            cwnd_usage: CwndUsage::default(),
            small_queue: None,
        }));
    }

    /// Reports to the algorithm an ACK that advances SND.UNA by `acked` bytes and delivers
    /// `delivered` bytes.
    #[inline(always)]
    pub(super) fn report_ack(
        &mut self,
        now: Time,
        packet: &Packet,
        sack: Option<&SackBlocks>,
        (acked, delivered): (u64, u64),
        send_times: Option<SendTimes>,
        config: &TcpConfig,
    ) {
        let (una, next) = (self.stream.una, self.stream.next);
        let rtt = match acked > 0 && config.timestamps && packet.ts_echo_us != 0 {
            true => Some(timestamp_us(now).wrapping_sub(packet.ts_echo_us).max(1)),
            false => send_times
                .filter(|_| !config.timestamps)
                .map(|a| (now.since(a.last).0 / 1_000_000).max(1) as u32),
        };
        let Some(control) = self.control.as_deref_mut() else { return };
        if config.congestion.may_sample_rate()
            && let Some((sampler, min_rtt)) = control.algorithm.sampler()
        {
            let blocks = sack.map_or(&[][..], |s| &s[..]);
            sampler.sample = sampler.on_ack(now, una, blocks, delivered, min_rtt);
        }
        let rtt = rtt.map(|us| Span::from_us(u64::from(us)));
        let marked = packet.flags & flag::ECE != 0;
        let seen = Seen { now, delivered, marked, una, next, rtt };
        let cwnd = control.algorithm.act(&self.window, &seen);
        if let Some(cwnd) = cwnd {
            self.set_cwnd(cwnd, config);
        }
        let Some(rtt) = rtt else { return };
        if config.rules.hystart != HyStartRule::Off && self.window.in_slow_start() {
            self.sample_hystart(now, rtt, config);
        }
    }

    /// Sets the congestion window to `cwnd`, which the algorithm returned for an ACK. Has no effect
    /// during a recovery or reduction, in which TCP itself sets the window.
    #[cold]
    fn set_cwnd(&mut self, cwnd: u64, config: &TcpConfig) {
        if self.recovery.phase == RecoveryPhase::Open && !self.is_reducing_cwnd() {
            self.window.cwnd = cwnd.clamp(u64::from(config.segment), LARGEST_WINDOW);
        }
    }

    /// Records how much of the congestion window is used after a transmission. `before`: SND.NXT
    /// before the transmission; `filled`: whether the whole window is used.
    #[inline(never)]
    pub(super) fn note_cwnd_usage(&mut self, before: u64, filled: bool) {
        if (self.stream.next > before || filled)
            && let Some(control) = self.control.as_deref_mut()
        {
            control.cwnd_usage.sent(self.stream.una, self.stream.next, filled);
        }
    }

    /// Whether the congestion window limited the sender, so that the window may grow (RFC 7661;
    /// Linux, `tcp_is_cwnd_limited`). `flight`: bytes outstanding before the ACK.
    #[inline]
    pub(super) fn is_cwnd_limited(&self, flight: u64, config: &TcpConfig) -> bool {
        if let Some(control) = self.control.as_deref() {
            return control.cwnd_usage.allows_growth(&self.window);
        }
        // In slow start it is enough that half of the window was used (Linux,
        // `tcp_is_cwnd_limited`).
        let used = if self.window.in_slow_start() { 2 * flight } else { flight };
        used + u64::from(config.segment) > self.window.cwnd
    }

    /// Passes an RTT sample to HyStart, and ends slow start if HyStart detects congestion.
    #[inline(never)]
    fn sample_hystart(&mut self, now: Time, rtt: Span, config: &TcpConfig) {
        let cwnd = self.window.cwnd.max(1);
        let srtt = self.timers.rtt.srtt().unwrap_or(rtt);
        // The pacing rate of Linux in slow start is twice the window per RTT.
        // A product of 64 bits is enough for round-trip times below a minute.
        let aggregation = match srtt.0.checked_mul(AGGREGATE) {
            Some(scaled) if cwnd <= u64::MAX / 2 => scaled / (2 * cwnd),
            _ => (u128::from(srtt.0) * u128::from(AGGREGATE) / (2 * u128::from(cwnd))) as u64,
        };
        let sample = Sample {
            now,
            rtt,
            una: self.stream.una,
            next: self.stream.next,
            window: cwnd / u64::from(config.segment),
            stretch: Span(aggregation).min(Span::from_ms(1)),
            paced: config.paces(),
            first: self.window.ssthresh == u64::MAX,
        };
        if let Some(control) = self.control.as_deref_mut()
            && control.hystart.sample(&sample)
        {
            self.window.ssthresh = self.window.cwnd.max(2 * u64::from(config.segment));
        }
    }

    /// Grows the congestion window after an ACK of `acked` bytes. `after_timeout`: whether some
    /// data that was outstanding at the last timeout is not yet acknowledged.
    #[inline(always)]
    pub(super) fn grow_cwnd(
        &mut self,
        now: Time,
        acked: u64,
        after_timeout: bool,
        config: &TcpConfig,
    ) {
        let segment = u64::from(config.segment);
        if !self.has_control_state() {
            new_reno::on_ack(&mut self.window, acked, segment, after_timeout, &config.rules);
        } else {
            let srtt = self.timers.rtt.srtt().unwrap_or(Span::ZERO);
            self.grow_controlled(Ack { now, acked, segment, after_timeout, srtt }, config);
        }
    }

    #[inline(never)]
    fn grow_controlled(&mut self, mut ack: Ack, config: &TcpConfig) {
        let Some(control) = self.control.as_deref_mut() else { return };
        let w = &mut self.window;
        if w.in_slow_start() {
            ack.acked = control.hystart.counted(ack.acked, ack.segment, config.paces());
        }
        control.algorithm.on_ack(w, &ack);
    }

    /// Returns the slow-start threshold in bytes after a loss with `flight` bytes outstanding. If
    /// ECE has already reduced the window for the same data, the threshold stays, unless the
    /// algorithm also reduces it for losses after marks.
    pub(super) fn ssthresh_after_loss(&mut self, flight: u64, config: &TcpConfig) -> u64 {
        let held = self.leave_cwr();
        if held && !config.congestion.cuts_after_marks() {
            return self.window.ssthresh;
        }
        let segment = u64::from(config.segment);
        match self.control.as_deref_mut() {
            Some(c) => c.algorithm.after_loss(&self.window, flight, segment).max(2 * segment),
            None => new_reno::threshold(&self.window, flight, segment, &config.rules),
        }
    }

    /// Returns the slow-start threshold in bytes after an ACK with ECE; `flight`: bytes
    /// outstanding.
    pub(super) fn ssthresh_after_ecn(&mut self, flight: u64, config: &TcpConfig) -> u64 {
        let segment = u64::from(config.segment);
        match self.control.as_deref_mut() {
            Some(c) => c.algorithm.after_marks(&self.window, flight, segment).max(2 * segment),
            None => new_reno::threshold(&self.window, flight, segment, &config.rules),
        }
    }

    /// Resets HyStart and notifies the congestion control of a timeout. To be called after the
    /// threshold is set.
    pub(super) fn reset_control_after_timeout(&mut self, config: &TcpConfig) {
        if let Some(control) = self.control.as_deref_mut() {
            control.hystart.forget();
            control.algorithm.after_timeout(u64::from(config.segment));
        }
    }

    /// Notifies the congestion control that transmission begins again after an idle time, in which
    /// nothing was in flight.
    #[inline]
    pub(super) fn on_restart_after_idle(&mut self, now: Time) {
        let idle = now.since(self.last_sent);
        if let Some(control) = self.control.as_deref_mut() {
            control.algorithm.after_idle(now, idle);
        }
    }
}
