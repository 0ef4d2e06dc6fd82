//! BBR version 3 (draft-ietf-ccwg-bbr; Cardwell et al.): rate and window follow a model of the path
//! as in [version 1](super::bbr), but losses bound rate and window. If probing for bandwidth loses
//! more than 2 % of the data in flight, the amount in flight becomes an upper bound of the window.
//! BBR version 3 therefore works with short queues, and shares a link with loss-based flows.
//!
//! Startup paces with gain 4·ln 2. It ends when the delivery rate grows by less than a quarter in
//! three rounds, or when six ACKs in one round of a recovery report losses and more than 2 % is
//! lost. Drain paces at half the bandwidth. ProbeBW has four phases: Down (gain 0.9) until there is
//! headroom and no queue; Cruise (1.0) until 2 to 3 s have passed since Down began, or one round
//! for each segment of a bandwidth-delay product (at most 63), in which Reno would grow as much;
//! Refill (1.0) for one round; Up (1.25) until the rate stops growing or more than 2 % is lost.
//! ProbeRTT begins 5 s after the smallest recent RTT was measured, and limits the window to half a
//! bandwidth-delay product for at least 200 ms. The bounds are in [`super::bbr3_bounds`]. As in
//! Linux, a loss counts when an ACK reveals it, and is compared with the data in flight when the
//! newest delivered segment was sent; the draft uses each lost segment instead. The reaction to
//! spurious losses, and ECN, are not modelled.
//!
//! Rates are in bytes per second, gains in thousandths.

use super::bbr3_bounds::{Bounds, LEAST_SEGMENTS, UNIT, loses_too_much, scaled};
use super::control::{Ack, BuiltIn, CongestionControl, PathAck, SenderPlace};
use super::delivery_rate::{RateSample, RateSampler, bytes_in_time};
use super::window::Window;
use super::windowed_max::WindowedMax;
use eastwest_engine::random::mix;
use eastwest_settings::Section;
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};

const STARTUP_GAIN: u64 = 2_773;
const DRAIN_GAIN: u64 = 500;
const CWND_GAIN: u64 = 2_000;
const UP_CWND_GAIN: u64 = 2_250;
const PROBE_RTT_CWND_GAIN: u64 = 500;
/// Share of the estimated bandwidth that pacing leaves unused, in percent.
const MARGIN_PERCENT: u64 = 1;
/// Length of the window over which the maximum delivery rate is taken, in ProbeBW cycles.
const RATE_CYCLES: u64 = 2;
/// Length of the window over which the maximum ACK aggregation is taken, in round trips.
const AGGREGATION_ROUNDS: u64 = 10;
/// Time after which the smallest RTT is replaced by a newer measurement, even if that is larger.
const RTT_WINDOW: Span = Span::from_secs(10);
/// Time without a new smallest RTT after which the state ProbeRTT begins.
const PROBE_RTT_EVERY: Span = Span::from_secs(5);
/// Minimum duration of the state ProbeRTT.
const PROBE_RTT: Span = Span::from_ms(200);
/// Startup ends after this number of round trips in which the delivery rate has grown by less than
/// a quarter.
const FULL_ROUNDS: u32 = 3;
/// Number of ACKs with losses in one round trip after which Startup may end.
const FULL_LOSSES: u32 = 6;
/// Largest number of round trips from one probe for bandwidth to the next.
const MOST_RENO_ROUNDS: u64 = 63;

/// State of BBR's state machine (version 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// Searches for the bandwidth of the path with a high pacing gain.
    Startup,
    /// Drains the queue at the bottleneck that Startup has built.
    Drain,
    /// Phase Down of ProbeBW: reduces the amount in flight after probing.
    Down,
    /// Phase Cruise of ProbeBW: leaves headroom for other flows.
    Cruise,
    /// Phase Refill of ProbeBW: fills the path without building a queue.
    Refill,
    /// Phase Up of ProbeBW: probes for more bandwidth.
    Up,
    /// Measures the smallest RTT of the path with a small window.
    ProbeRtt,
}

impl Mode {
    /// Whether the state is one of the four phases of ProbeBW.
    fn probes_bandwidth(self) -> bool {
        matches!(self, Mode::Down | Mode::Cruise | Mode::Refill | Mode::Up)
    }
}

/// State of a BBR version 3 sender: model of the path, window and pacing rate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bbr3 {
    /// State of BBR's state machine (version 3).
    pub mode: Mode,
    /// Sampler of the delivery rate of this sender.
    pub sampler: RateSampler,
    /// Congestion window of the model in bytes.
    pub cwnd: u64,
    /// Pacing rate of the model in bytes per second.
    pub pacing_rate: u64,
    /// Smallest RTT of the path; [`Span::MAX`] before the first sample.
    pub min_rtt: Span,
    min_rtt_at: Time,
    /// Smallest RTT of the last five seconds.
    recent_rtt: Span,
    /// Time at which the smallest RTT of the last five seconds was measured.
    recent_rtt_at: Time,
    max_rate: WindowedMax,
    cycle: u64,
    round: u64,
    round_start: bool,
    next_round_delivered: u64,
    full_rate: u64,
    full_rounds: u32,
    /// Whether the delivery rate has stopped growing in the current probe for bandwidth.
    full_now: bool,
    /// Whether the delivery rate has stopped growing at least once since the connection began.
    full: bool,
    bounds: Bounds,
    losses_in_round: u32,
    rounds_since_probe: u64,
    probe_wait: Span,
    phase_at: Time,
    probe_rtt_done: Option<Time>,
    probe_rtt_round_done: bool,
    prior_cwnd: u64,
    recovering: bool,
    idle_restart: bool,
    seen_rtt: bool,
    epoch_acked: u64,
    epoch_at: Time,
    extra: WindowedMax,
}

impl BuiltIn for Bbr3 {
    const NAME: &'static str = "bbr3";
    const DOC: &'static str = "version 3: rate and window follow a model of the path and are \
                               reduced by losses (draft-ietf-ccwg-bbr)";
    const IN_LINUX: &'static str = "bbr3";
    const FOLLOWS_PATH: bool = true;
    const SAMPLES_PIPE: bool = true;
    type Settings = ();

    fn read(_: &mut Section) {}

    fn start((): &(), place: &SenderPlace) -> Bbr3 {
        Bbr3::new(u64::from(place.initial_window) * u64::from(place.segment))
    }
}

impl CongestionControl for Bbr3 {
    /// Does nothing: BBR's window follows from its model, see [`CongestionControl::follow`].
    fn on_ack(&mut self, _: &mut Window, _: &Ack) {}

    fn after_loss(&mut self, window: &Window, _: u64, _: u64) -> u64 {
        window.cwnd
    }

    fn after_timeout(&mut self, segment: u64) {
        self.on_timeout(segment);
    }

    fn after_idle(&mut self, now: Time, _: Span) {
        if self.sampler.is_app_limited() {
            self.on_restart(now);
        }
    }

    fn follow(&mut self, ack: &PathAck) -> Option<u64> {
        self.take_in(ack);
        Some(self.cwnd)
    }

    #[inline]
    fn sampler(&mut self) -> Option<(&mut RateSampler, Span)> {
        Some((&mut self.sampler, self.min_rtt))
    }

    #[inline]
    fn pacing_rate(&self) -> Option<u64> {
        Some(self.pacing_rate)
    }
}

impl Bbr3 {
    /// Returns the state of a new connection with an initial window of `initial` bytes.
    pub fn new(initial: u64) -> Bbr3 {
        Bbr3 {
            mode: Mode::Startup,
            sampler: RateSampler::default(),
            cwnd: initial,
            // The initial rate assumes an RTT of 1 ms.
            pacing_rate: scaled(initial * 1000, STARTUP_GAIN),
            min_rtt: Span::MAX,
            min_rtt_at: Time::ZERO,
            recent_rtt: Span::MAX,
            recent_rtt_at: Time::ZERO,
            max_rate: WindowedMax::default(),
            cycle: 0,
            round: 0,
            round_start: false,
            next_round_delivered: 0,
            full_rate: 0,
            full_rounds: 0,
            full_now: false,
            full: false,
            bounds: Bounds::default(),
            losses_in_round: 0,
            rounds_since_probe: 0,
            probe_wait: Span::ZERO,
            phase_at: Time::ZERO,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            prior_cwnd: 0,
            recovering: false,
            idle_restart: false,
            seen_rtt: false,
            epoch_acked: 0,
            epoch_at: Time::ZERO,
            extra: WindowedMax::default(),
        }
    }

    /// Returns the gains of pacing rate and window, in thousandths.
    fn gains(&self) -> (u64, u64) {
        match self.mode {
            Mode::Startup => (STARTUP_GAIN, CWND_GAIN),
            Mode::Drain => (DRAIN_GAIN, CWND_GAIN),
            Mode::Down => (900, CWND_GAIN),
            Mode::Cruise | Mode::Refill => (UNIT, CWND_GAIN),
            Mode::Up => (1_250, UP_CWND_GAIN),
            Mode::ProbeRtt => (UNIT, PROBE_RTT_CWND_GAIN),
        }
    }

    /// Updates the model of the path after an ACK, whose rate sample is in the sampler.
    fn take_in(&mut self, ack: &PathAck) {
        self.sampler.lost += ack.lost;
        let sample = self.sampler.sample.take();
        let sample = sample.as_ref();
        if ack.lost > 0 {
            self.bounds.note_loss(ack.delivered);
        }
        if let Some(s) = sample {
            self.note_round(s, ack);
            self.adapt_short_bounds(s, ack);
            self.note_aggregation(s, ack);
            self.judge_full_pipe(s);
            self.judge_startup(s, ack);
        }
        if self.mode == Mode::Drain && ack.in_flight <= self.inflight(UNIT, ack.segment) {
            self.go_down(ack);
        }
        if let Some(s) = sample {
            self.advance_cycle(s, ack);
        }
        self.note_rtt(sample, ack);
        if let Some(s) = sample {
            self.bounds.forget_latest(s);
        }
        self.set_pacing_rate(ack);
        self.set_cwnd(ack);
        if self.mode == Mode::ProbeRtt {
            self.sampler.limited_by_application(ack.in_flight);
        }
    }

    fn note_round(&mut self, s: &RateSample, ack: &PathAck) {
        self.round_start = s.prior_delivered >= self.next_round_delivered;
        if self.round_start {
            self.start_round(ack);
            self.round += 1;
            self.rounds_since_probe += 1;
        }
        let rate = s.rate();
        if rate > 0 && (!s.app_limited || rate >= self.max_rate.get()) {
            self.max_rate.update(RATE_CYCLES - 1, self.cycle, rate);
        }
    }

    fn start_round(&mut self, ack: &PathAck) {
        self.next_round_delivered = ack.delivered;
    }

    /// Lowers the short-term bounds after a round trip with losses, except in Startup and while
    /// probing for bandwidth (Refill and Up).
    fn adapt_short_bounds(&mut self, s: &RateSample, ack: &PathAck) {
        let lossy = self.bounds.end_lossy_round(s, ack.delivered);
        if lossy && !matches!(self.mode, Mode::Startup | Mode::Refill | Mode::Up) {
            self.bounds.lower_short(self.max_rate.get(), self.cwnd);
        }
    }

    /// Lowers the long-term bound of the data in flight if too much was lost, and raises it
    /// otherwise.
    fn adapt_long_bound(&mut self, s: &RateSample, ack: &PathAck) {
        let probed = self.round_start && self.bounds.begin_round();
        if probed && self.mode.probes_bandwidth() && !s.app_limited {
            self.cycle += 1;
        }
        if loses_too_much(s, self.sampler.lost) {
            if self.bounds.lower_long(s, self.target(ack.segment)) && self.mode == Mode::Up {
                self.go_down(ack);
            }
            return;
        }
        let probing = self.mode == Mode::Up;
        self.bounds.raise_long(s, ack, self.cwnd, probing, self.round_start);
    }

    /// Returns the bandwidth estimate in bytes per second: the largest delivery rate, limited by
    /// the short-term bound.
    fn rate(&self) -> u64 {
        self.max_rate.get().min(self.bounds.short_rate)
    }

    /// Measures ACK aggregation: the bytes acknowledged in excess of the estimated bandwidth.
    fn note_aggregation(&mut self, s: &RateSample, ack: &PathAck) {
        if s.interval == Span::ZERO || ack.acked == 0 {
            return;
        }
        let mut expected = bytes_in_time(self.rate(), ack.now.since(self.epoch_at));
        if self.epoch_acked <= expected {
            (self.epoch_acked, self.epoch_at, expected) = (0, ack.now, 0);
        }
        self.epoch_acked += ack.acked;
        let extra = (self.epoch_acked - expected).min(self.cwnd);
        self.extra.update(if self.full { AGGREGATION_ROUNDS } else { 1 }, self.round, extra);
    }

    fn reset_full_pipe(&mut self, rate: u64) {
        (self.full_rate, self.full_rounds, self.full_now) = (rate, 0, false);
    }

    fn judge_full_pipe(&mut self, s: &RateSample) {
        if self.full_now || !self.round_start || s.app_limited {
            return;
        }
        if s.rate() >= scaled(self.full_rate, 1_250) {
            self.reset_full_pipe(s.rate());
            return;
        }
        self.full_rounds += 1;
        self.full_now = self.full_rounds >= FULL_ROUNDS;
        self.full |= self.full_now;
    }

    fn judge_startup(&mut self, s: &RateSample, ack: &PathAck) {
        if !self.full {
            self.losses_in_round += u32::from(ack.lost > 0);
            let many = self.losses_in_round >= FULL_LOSSES && ack.recovering;
            if self.bounds.round_start && many && loses_too_much(s, self.sampler.lost) {
                self.full = true;
                self.bounds.long = self.product(UNIT).max(self.bounds.latest_inflight());
            }
            if self.bounds.round_start {
                self.losses_in_round = 0;
            }
        }
        if self.mode == Mode::Startup && self.full {
            self.mode = Mode::Drain;
        }
    }

    fn advance_cycle(&mut self, s: &RateSample, ack: &PathAck) {
        if !self.full {
            return;
        }
        self.adapt_long_bound(s, ack);
        match self.mode {
            Mode::Down | Mode::Cruise if self.is_time_to_probe(ack) => self.refill(ack),
            Mode::Down => {
                let empty = ack.in_flight <= self.inflight(UNIT, ack.segment);
                if empty && ack.in_flight <= self.bounds.with_headroom(ack.segment) {
                    self.mode = Mode::Cruise;
                }
            }
            Mode::Refill if self.round_start => self.go_up(s, ack),
            Mode::Up => {
                let limited = ack.in_flight_before + ack.segment >= self.cwnd;
                if limited && self.cwnd >= self.bounds.long {
                    self.reset_full_pipe(s.rate());
                } else if self.full_now {
                    self.go_down(ack);
                }
            }
            _ => {}
        }
    }

    /// Whether to probe for bandwidth again: two to three seconds after the last probe, or earlier,
    /// after one round trip for each segment of the target window (at most 63), since a Reno window
    /// grows by one segment per round trip.
    fn is_time_to_probe(&self, ack: &PathAck) -> bool {
        let reno = self.target(ack.segment) / ack.segment;
        ack.now.since(self.phase_at) > self.probe_wait
            || self.rounds_since_probe >= reno.min(MOST_RENO_ROUNDS)
    }

    /// Returns one bandwidth-delay product in bytes, at least a segment of `segment` payload bytes,
    /// or the congestion window if that is less.
    fn target(&self, segment: u64) -> u64 {
        self.product(UNIT).max(segment).min(self.cwnd)
    }

    fn go_down(&mut self, ack: &PathAck) {
        let draw = mix(ack.seed ^ mix(ack.now.0));
        self.rounds_since_probe = draw & 1;
        self.probe_wait = Span::from_secs(2) + Span::from_us((draw >> 1) % 1_000_000);
        self.phase_at = ack.now;
        self.bounds.stop_probing();
        self.start_round(ack);
        self.mode = Mode::Down;
    }

    fn refill(&mut self, ack: &PathAck) {
        self.bounds.refill();
        self.start_round(ack);
        self.mode = Mode::Refill;
    }

    fn go_up(&mut self, s: &RateSample, ack: &PathAck) {
        self.bounds.start_probing(self.cwnd, ack.segment);
        self.start_round(ack);
        self.reset_full_pipe(s.rate());
        self.phase_at = ack.now;
        self.mode = Mode::Up;
    }

    fn note_rtt(&mut self, sample: Option<&RateSample>, ack: &PathAck) {
        if self.min_rtt == Span::MAX {
            (self.min_rtt_at, self.recent_rtt_at) = (ack.now, ack.now);
        }
        let due = ack.now.since(self.recent_rtt_at) > PROBE_RTT_EVERY;
        if let Some(rtt) = sample.and_then(|s| s.rtt)
            && (rtt < self.recent_rtt || due)
        {
            (self.recent_rtt, self.recent_rtt_at) = (rtt, ack.now);
        }
        if self.recent_rtt < self.min_rtt || ack.now.since(self.min_rtt_at) > RTT_WINDOW {
            (self.min_rtt, self.min_rtt_at) = (self.recent_rtt, self.recent_rtt_at);
        }
        if due && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.save_cwnd();
            self.mode = Mode::ProbeRtt;
            self.probe_rtt_done = None;
            self.bounds.stop_probing();
            self.start_round(ack);
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(ack);
        }
        if sample.is_some_and(|s| s.delivered > 0) {
            self.idle_restart = false;
        }
    }

    fn probe_rtt(&mut self, ack: &PathAck) {
        match self.probe_rtt_done {
            None if ack.in_flight <= self.probe_rtt_cwnd(ack.segment) => {
                self.probe_rtt_done = Some(ack.now + PROBE_RTT);
                self.probe_rtt_round_done = false;
                self.start_round(ack);
            }
            None => {}
            Some(done) => {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done && ack.now > done {
                    self.leave_probe_rtt(ack);
                }
            }
        }
    }

    fn leave_probe_rtt(&mut self, ack: &PathAck) {
        self.recent_rtt_at = ack.now;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        self.bounds.forget_short();
        if self.full {
            self.go_down(ack);
            self.mode = Mode::Cruise;
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn probe_rtt_cwnd(&self, segment: u64) -> u64 {
        self.product(PROBE_RTT_CWND_GAIN).max(LEAST_SEGMENTS * segment)
    }

    fn set_pacing_rate(&mut self, ack: &PathAck) {
        if !self.seen_rtt
            && let Some(srtt) = ack.srtt
        {
            self.seen_rtt = true;
            let rate = u128::from(self.cwnd) * 1_000_000_000_000 / u128::from(srtt.0.max(1));
            self.pacing_rate = scaled(rate as u64, STARTUP_GAIN);
        }
        let rate = scaled(self.rate(), self.gains().0) / 100 * (100 - MARGIN_PERCENT);
        if rate > 0 && (self.full || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// Returns `gain` (in thousandths) bandwidth-delay products in bytes, or the congestion window
    /// while no RTT is known.
    fn product(&self, gain: u64) -> u64 {
        if self.min_rtt == Span::MAX {
            return self.cwnd;
        }
        scaled(bytes_in_time(self.rate(), self.min_rtt), gain)
    }

    /// Raises a window of `bytes` bytes to at least three bursts and four segments, and adds two
    /// segments in the phase Up. A burst has the bytes of 1 ms at the pacing rate, limited to the
    /// range from two segments to 64 KiB.
    fn with_room(&self, bytes: u64, segment: u64) -> u64 {
        let burst = (self.pacing_rate / 1000).clamp(2 * segment, 65_536.max(2 * segment));
        let room = bytes.max(3 * burst).max(LEAST_SEGMENTS * segment);
        room + if self.mode == Mode::Up { 2 * segment } else { 0 }
    }

    fn inflight(&self, gain: u64, segment: u64) -> u64 {
        self.with_room(self.product(gain), segment)
    }

    fn set_cwnd(&mut self, ack: &PathAck) {
        let segment = ack.segment;
        if ack.acked > 0 {
            self.recover_or_restore(ack);
            let most = self.with_room(self.product(self.gains().1) + self.extra.get(), segment);
            if self.full {
                self.cwnd = (self.cwnd + ack.acked).min(most);
            } else if self.cwnd < most || ack.delivered < 10 * segment {
                self.cwnd += ack.acked;
            }
            self.cwnd = self.cwnd.max(LEAST_SEGMENTS * segment);
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd(segment));
        }
        let cap = match self.mode {
            Mode::Cruise | Mode::ProbeRtt => self.bounds.with_headroom(segment),
            Mode::Down | Mode::Refill | Mode::Up => self.bounds.long,
            Mode::Startup | Mode::Drain => u64::MAX,
        };
        self.cwnd = self.cwnd.min(cap.min(self.bounds.short).max(LEAST_SEGMENTS * segment));
    }

    /// Sets the congestion window to the amount in flight when a recovery begins, and restores the
    /// earlier window when the recovery ends.
    fn recover_or_restore(&mut self, ack: &PathAck) {
        match (self.recovering, ack.recovering) {
            (false, true) => {
                self.save_cwnd();
                self.cwnd = ack.in_flight.max(ack.segment);
            }
            (true, false) => self.cwnd = self.cwnd.max(self.prior_cwnd),
            _ => {}
        }
        self.recovering = ack.recovering;
    }

    fn save_cwnd(&mut self) {
        self.prior_cwnd = if self.recovering || self.mode == Mode::ProbeRtt {
            self.prior_cwnd.max(self.cwnd)
        } else {
            self.cwnd
        };
    }

    /// Handles a timeout: the congestion window restarts from one segment.
    fn on_timeout(&mut self, segment: u64) {
        self.save_cwnd();
        self.recovering = true;
        self.cwnd = segment;
        self.bounds.note_loss(self.sampler.delivered);
    }

    /// Handles the first new data after an idle time, in which the application had nothing to send.
    fn on_restart(&mut self, now: Time) {
        self.idle_restart = true;
        (self.epoch_at, self.epoch_acked) = (now, 0);
        if self.mode.probes_bandwidth() {
            self.pacing_rate = self.rate() / 100 * (100 - MARGIN_PERCENT);
        }
    }
}
