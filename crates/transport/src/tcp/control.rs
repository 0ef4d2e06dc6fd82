//! Where an endpoint meets its congestion control: what an ACK tells it, how it lets the window grow,
//! and how far losses and marks cut.

use super::board::Answered;
use super::config::TcpConfig;
use super::endpoint::Endpoint;
use super::rtt::timestamp_us;
use crate::congestion::hystart::{HyStart, Sample};
use crate::congestion::pacing::Pacing;
use crate::congestion::rules::HyStartRule;
use crate::congestion::usage::Usage;
use crate::congestion::{Ack, Algorithm, CongestionControl, Control, Seen, SenderPlace, new_reno};
use eastwest_types::{Packet, SackBlocks, Span, Time, flag};

/// Linux counts on so many bytes being sent or acknowledged in one go when it measures trains of ACKs:
/// four times the largest offload (`hystart_ack_delay`).
const AGGREGATE: u128 = 4 * 65_536;

impl Endpoint {
    /// Something is to be sent for the first time: the state that the settings ask for.
    #[cold]
    pub(super) fn begin_control(&mut self, config: &TcpConfig) {
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
            usage: Usage::default(),
            small_queue: None,
        }));
    }

    /// Tells the algorithm of an ACK that has moved on by `acked` bytes and reported `delivered`.
    #[inline(never)]
    pub(super) fn inform(
        &mut self,
        now: Time,
        packet: &Packet,
        sack: Option<&SackBlocks>,
        (acked, delivered): (u64, u64),
        answered: Option<Answered>,
        config: &TcpConfig,
    ) {
        let (una, next) = (self.stream.una, self.stream.next);
        let rtt = match acked > 0 && config.timestamps && packet.ts_echo_us != 0 {
            true => Some(timestamp_us(now).wrapping_sub(packet.ts_echo_us).max(1)),
            false => answered
                .filter(|_| !config.timestamps)
                .map(|a| (now.since(a.last).0 / 1_000_000).max(1) as u32),
        };
        let Some(control) = self.control.as_deref_mut() else { return };
        if let Some((sampler, min_rtt)) = control.algorithm.sampler() {
            let blocks = sack.map_or(&[][..], |s| &s[..]);
            sampler.sample = sampler.on_ack(now, una, blocks, delivered, min_rtt);
        }
        let rtt = rtt.map(|us| Span::from_us(u64::from(us)));
        let marked = packet.flags & flag::ECE != 0;
        control.algorithm.observe(&Seen { now, delivered, marked, una, next, rtt });
        let Some(rtt) = rtt else { return };
        if config.rules.hystart != HyStartRule::Off && self.window.in_slow_start() {
            self.watch_slow_start(now, rtt, config);
        }
    }

    /// Segments after `before` have been sent; the window is `filled` or not.
    #[inline(never)]
    pub(super) fn note_usage(&mut self, before: u64, filled: bool) {
        if (self.stream.next > before || filled)
            && let Some(control) = self.control.as_deref_mut()
        {
            control.usage.sent(self.stream.una, self.stream.next, filled);
        }
    }

    /// Whether the window was the limit (RFC 7661), so that it may grow; `flight` was outstanding
    /// before the ACK.
    #[inline]
    pub(super) fn was_limited(&self, flight: u64, config: &TcpConfig) -> bool {
        if let Some(control) = self.control.as_deref() {
            return control.usage.allows_growth(&self.window);
        }
        // slow start may run one round ahead
        let used = if self.window.in_slow_start() { 2 * flight } else { flight };
        used + u64::from(config.segment) > self.window.cwnd
    }

    /// Leaves slow start where delays say so.
    fn watch_slow_start(&mut self, now: Time, rtt: Span, config: &TcpConfig) {
        let cwnd = self.window.cwnd.max(1);
        let srtt = self.timers.rtt.srtt().unwrap_or(rtt);
        // at twice the window each round trip, as Linux paces in slow start
        let stretch = u128::from(srtt.0) * AGGREGATE / (2 * u128::from(cwnd));
        let sample = Sample {
            now,
            rtt,
            una: self.stream.una,
            next: self.stream.next,
            window: cwnd / u64::from(config.segment),
            stretch: Span(stretch as u64).min(Span::from_ms(1)),
            paced: config.paces(),
            first: self.window.ssthresh == u64::MAX,
        };
        if let Some(control) = self.control.as_deref_mut()
            && control.hystart.sample(&sample)
        {
            self.window.ssthresh = self.window.cwnd.max(2 * u64::from(config.segment));
        }
    }

    /// `acked` bytes were acknowledged while the window was the limit. `after_timeout` is true until
    /// all that was outstanding at a timeout is acknowledged.
    #[inline]
    pub(super) fn grow(&mut self, now: Time, acked: u64, after_timeout: bool, config: &TcpConfig) {
        let segment = u64::from(config.segment);
        if !self.is_controlled() {
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

    /// The threshold after a loss with `flight` bytes outstanding. Where marks have cut the window
    /// already it stays, unless the algorithm cuts it all the same.
    pub(super) fn threshold_after_loss(&mut self, flight: u64, config: &TcpConfig) -> u64 {
        let held = self.release_hold();
        if held && !config.congestion.cuts_after_marks() {
            return self.window.ssthresh;
        }
        let segment = u64::from(config.segment);
        match self.control.as_deref_mut() {
            Some(c) => c.algorithm.after_loss(&self.window, flight, segment).max(2 * segment),
            None => new_reno::threshold(&self.window, flight, segment, &config.rules),
        }
    }

    /// The threshold after marks with `flight` bytes outstanding.
    pub(super) fn threshold_after_mark(&mut self, flight: u64, config: &TcpConfig) -> u64 {
        let segment = u64::from(config.segment);
        match self.control.as_deref_mut() {
            Some(c) => c.algorithm.after_marks(&self.window, flight, segment).max(2 * segment),
            None => new_reno::threshold(&self.window, flight, segment, &config.rules),
        }
    }

    /// A timeout has struck and the threshold is set.
    pub(super) fn forget_path(&mut self, config: &TcpConfig) {
        if let Some(control) = self.control.as_deref_mut() {
            control.hystart.forget();
            control.algorithm.after_timeout(u64::from(config.segment));
        }
    }

    /// Something is sent after nothing was under way.
    #[inline]
    pub(super) fn resume(&mut self, now: Time) {
        let idle = now.since(self.last_sent);
        if let Some(control) = self.control.as_deref_mut() {
            control.algorithm.after_idle(now, idle);
        }
    }
}
