//! BBR version 1 as in Linux 6.x (`tcp_bbr.c`; Cardwell et al., CACM 2017;
//! draft-cardwell-iccrg-bbr-congestion-control-00). The window follows a model of the path, which
//! consists of its bottleneck bandwidth and its smallest RTT. Losses do not reduce the window.
//!
//! Startup sends at 2.885 times the largest delivery rate until this rate grows by less than a
//! quarter in three rounds. Drain sends at the inverse gain until only about one bandwidth-delay
//! product is in flight. ProbeBW cycles through the gains 5/4, 3/4 and six times 1. ProbeRTT
//! reduces the window to four segments for at least 200 ms and one round trip once the smallest RTT
//! is ten seconds old. In ProbeBW the window is twice the bandwidth-delay product, plus room for
//! bursts and for ACK aggregation. As in Linux, the pacing rate is 1 % below the product of gain
//! and bandwidth. Long-term sampling against token-bucket policers is not modelled.
//!
//! Rates are in bytes per second, gains in units of 1/256.

use super::control::{Ack, BuiltIn, CongestionControl, PathAck, SenderPlace};
use super::delivery_rate::{RateSample, RateSampler, bytes_in_time};
use super::window::Window;
use super::windowed_max::WindowedMax;
use eastwest_engine::random::mix;
use eastwest_settings::Section;
use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};

const UNIT: u64 = 256;
/// Gain 2/ln 2 (2.885), in units of 1/256: of the pacing rate in Startup, and of the window in
/// Startup and Drain.
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
/// Gain of the pacing rate in Drain: the inverse of the gain of Startup, in units of 1/256.
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
/// Gain of the window in ProbeBW: two bandwidth-delay products, in units of 1/256.
const CWND_GAIN: u64 = UNIT * 2;
/// Gains of the pacing rate in the eight phases of ProbeBW, in units of 1/256.
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Length of the window over which the maximum delivery rate is taken, in round trips.
const RATE_WINDOW: u64 = 10;
/// Time for which a measured smallest RTT is valid; after it, the state ProbeRTT measures the
/// smallest RTT again.
const RTT_WINDOW: Span = Span::from_secs(10);
/// Minimum duration of the state ProbeRTT.
const PROBE_RTT: Span = Span::from_ms(200);
/// Minimum congestion window in segments, outside loss recovery.
const LEAST_SEGMENTS: u64 = 4;
/// Startup ends after this number of round trips in which the delivery rate has grown by less than
/// a quarter.
const FULL_ROUNDS: u32 = 3;
/// Length of each of the two windows over which the maximum ACK aggregation is taken, in round
/// trips.
const AGGREGATION_ROUNDS: u32 = 5;
/// Limit of the allowance for ACK aggregation: the bytes that the estimated bandwidth delivers in
/// this time.
const AGGREGATION_LIMIT: Span = Span::from_ms(100);

/// State of BBR's state machine (version 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// Searches for the bandwidth of the path with a high pacing gain.
    Startup,
    /// Drains the queue at the bottleneck that Startup has built.
    Drain,
    /// Probes for more bandwidth of the path in a cycle of pacing gains.
    ProbeBw,
    /// Measures the smallest RTT of the path with a small window.
    ProbeRtt,
}

/// State of a BBR (version 1) sender: the model of the path, and the window and pacing rate that
/// follow from it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bbr {
    /// State of BBR's state machine: Startup, Drain, ProbeBW or ProbeRTT.
    pub mode: Mode,
    /// Sampler of the delivery rate of this sender.
    pub sampler: RateSampler,
    /// Congestion window of the model in bytes.
    pub cwnd: u64,
    /// Pacing rate of the model in bytes per second.
    pub pacing_rate: u64,
    max_rate: WindowedMax,
    round: u64,
    round_start: bool,
    next_round_delivered: u64,
    /// Smallest RTT of the path; [`Span::MAX`] before the first sample.
    pub min_rtt: Span,
    min_rtt_at: Time,
    probe_rtt_done: Option<Time>,
    probe_rtt_round_done: bool,
    full_rate: u64,
    full_rounds: u32,
    full: bool,
    cycle: usize,
    cycle_at: Time,
    prior_cwnd: u64,
    recovering: bool,
    packet_conservation: bool,
    idle_restart: bool,
    seen_rtt: bool,
    /// Bytes acknowledged in the current epoch of the measurement of ACK aggregation.
    epoch_acked: u64,
    /// Time at which the current epoch of the measurement of ACK aggregation began.
    epoch_at: Time,
    /// Largest ACK aggregation, in bytes acknowledged in excess of the estimated bandwidth, in each
    /// of two successive windows of round trips.
    extra: [u64; 2],
    extra_rounds: u32,
    extra_index: usize,
}

/// Returns `rate` times `gain`, which is in units of 1/256.
fn scaled(rate: u64, gain: u64) -> u64 {
    (u128::from(rate) * u128::from(gain) / u128::from(UNIT)) as u64
}

impl BuiltIn for Bbr {
    const NAME: &'static str = "bbr";
    const DOC: &'static str =
        "version 1: rate and window follow a model of the path (Linux, tcp_bbr.c)";
    const IN_LINUX: &'static str = "bbr";
    const FOLLOWS_PATH: bool = true;
    type Settings = ();

    fn read(_: &mut Section) {}

    fn start((): &(), place: &SenderPlace) -> Bbr {
        Bbr::new(u64::from(place.initial_window) * u64::from(place.segment))
    }
}

impl CongestionControl for Bbr {
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

impl Bbr {
    /// Returns the state of a new connection with an initial window of `initial` bytes.
    pub fn new(initial: u64) -> Bbr {
        Bbr {
            mode: Mode::Startup,
            sampler: RateSampler::default(),
            cwnd: initial,
            // Until an RTT is known, the rate is one initial window per 1 ms (Linux).
            pacing_rate: scaled(initial * 1000, HIGH_GAIN),
            max_rate: WindowedMax::default(),
            round: 0,
            round_start: false,
            next_round_delivered: 0,
            min_rtt: Span::MAX,
            min_rtt_at: Time::ZERO,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            full_rate: 0,
            full_rounds: 0,
            full: false,
            cycle: 0,
            cycle_at: Time::ZERO,
            prior_cwnd: 0,
            recovering: false,
            packet_conservation: false,
            idle_restart: false,
            seen_rtt: false,
            epoch_acked: 0,
            epoch_at: Time::ZERO,
            extra: [0; 2],
            extra_rounds: 0,
            extra_index: 0,
        }
    }

    fn gains(&self) -> (u64, u64) {
        match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw => (CYCLE[self.cycle], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        }
    }

    /// Updates the model of the path after an ACK, whose rate sample is in the sampler.
    fn take_in(&mut self, ack: &PathAck) {
        let sample = &self.sampler.sample.take();
        let sample = sample.as_ref();
        if let Some(s) = sample {
            self.note_round(s, ack);
            self.note_aggregation(s, ack);
            self.advance_cycle(ack);
            self.judge_startup(s);
        }
        self.judge_drain(ack);
        self.note_rtt(sample, ack);
        self.set_pacing_rate(ack);
        self.set_cwnd(ack);
        if self.mode == Mode::ProbeRtt {
            self.sampler.limited_by_application(ack.in_flight);
        }
    }

    fn note_round(&mut self, s: &RateSample, ack: &PathAck) {
        self.round_start = s.prior_delivered >= self.next_round_delivered;
        if self.round_start {
            self.next_round_delivered = ack.delivered;
            self.round += 1;
            self.packet_conservation = false;
        }
        let rate = s.rate();
        if s.interval > Span::ZERO && (!s.app_limited || rate >= self.max_rate.get()) {
            self.max_rate.update(RATE_WINDOW, self.round, rate);
        }
    }

    /// Measures ACK aggregation: the bytes acknowledged in excess of the estimated bandwidth
    /// (Linux, `bbr_update_ack_aggregation`).
    fn note_aggregation(&mut self, s: &RateSample, ack: &PathAck) {
        if s.interval == Span::ZERO || ack.acked == 0 {
            return;
        }
        if self.round_start {
            self.extra_rounds += 1;
            if self.extra_rounds >= AGGREGATION_ROUNDS {
                self.extra_rounds = 0;
                self.extra_index ^= 1;
                self.extra[self.extra_index] = 0;
            }
        }
        let mut expected = bytes_in_time(self.max_rate.get(), ack.now.since(self.epoch_at));
        if self.epoch_acked <= expected {
            (self.epoch_acked, self.epoch_at, expected) = (0, ack.now, 0);
        }
        self.epoch_acked += ack.acked;
        let extra = (self.epoch_acked - expected).min(self.cwnd);
        let most = &mut self.extra[self.extra_index];
        *most = extra.max(*most);
    }

    fn advance_cycle(&mut self, ack: &PathAck) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let whole = ack.now.since(self.cycle_at) > self.min_rtt;
        let next = match CYCLE[self.cycle] {
            UNIT => whole,
            gain if gain > UNIT => {
                let room = self.burst(ack.segment);
                let full = ack.in_flight_before + room >= self.target(gain, ack.segment);
                whole && (ack.lost > 0 || full)
            }
            _ => whole || ack.in_flight_before <= self.target(UNIT, ack.segment),
        };
        if next {
            self.cycle = (self.cycle + 1) % CYCLE.len();
            self.cycle_at = ack.now;
        }
    }

    fn judge_startup(&mut self, s: &RateSample) {
        if self.full || !self.round_start || s.app_limited {
            return;
        }
        let rate = self.max_rate.get();
        if rate >= scaled(self.full_rate, UNIT * 5 / 4) {
            (self.full_rate, self.full_rounds) = (rate, 0);
            return;
        }
        self.full_rounds += 1;
        self.full = self.full_rounds >= FULL_ROUNDS;
    }

    fn judge_drain(&mut self, ack: &PathAck) {
        if self.mode == Mode::Startup && self.full {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && ack.in_flight <= self.target(UNIT, ack.segment) {
            self.probe_bandwidth(ack);
        }
    }

    /// Enters ProbeBW, in a random phase of the gain cycle other than the phase with gain 3/4.
    fn probe_bandwidth(&mut self, ack: &PathAck) {
        self.mode = Mode::ProbeBw;
        let draw = mix(ack.seed ^ mix(ack.now.0)) % (CYCLE.len() as u64 - 1);
        self.cycle = (CYCLE.len() - draw as usize) % CYCLE.len();
        self.cycle_at = ack.now;
    }

    fn note_rtt(&mut self, sample: Option<&RateSample>, ack: &PathAck) {
        if self.min_rtt == Span::MAX {
            self.min_rtt_at = ack.now;
        }
        let expired = ack.now.since(self.min_rtt_at) > RTT_WINDOW;
        if let Some(rtt) = sample.and_then(|s| s.rtt)
            && (rtt < self.min_rtt || expired)
        {
            (self.min_rtt, self.min_rtt_at) = (rtt, ack.now);
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.save_cwnd();
            self.mode = Mode::ProbeRtt;
            self.probe_rtt_done = None;
        }
        if self.mode == Mode::ProbeRtt {
            match self.probe_rtt_done {
                None if ack.in_flight <= LEAST_SEGMENTS * ack.segment => {
                    self.probe_rtt_done = Some(ack.now + PROBE_RTT);
                    self.probe_rtt_round_done = false;
                    self.next_round_delivered = ack.delivered;
                }
                None => {}
                Some(done) => {
                    self.probe_rtt_round_done |= self.round_start;
                    if self.probe_rtt_round_done && ack.now > done {
                        self.min_rtt_at = ack.now;
                        self.cwnd = self.cwnd.max(self.prior_cwnd);
                        if self.full {
                            self.probe_bandwidth(ack);
                        } else {
                            self.mode = Mode::Startup;
                        }
                    }
                }
            }
        }
        if sample.is_some_and(|s| s.delivered > 0) {
            self.idle_restart = false;
        }
    }

    fn set_pacing_rate(&mut self, ack: &PathAck) {
        if !self.seen_rtt
            && let Some(srtt) = ack.srtt
        {
            self.seen_rtt = true;
            let rate = u128::from(self.cwnd) * 1_000_000_000_000 / u128::from(srtt.0.max(1));
            self.pacing_rate = scaled(rate as u64, HIGH_GAIN);
        }
        let rate = scaled(self.max_rate.get(), self.gains().0) / 100 * 99;
        if rate > 0 && (self.full || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// Returns the bytes of one burst in Linux at the current pacing rate: the bytes sent in 1/1024
    /// s, but at least two segments (one below 1.2 Mbit/s), and at most 65,535 bytes and 127
    /// segments (`bbr_tso_segs_goal`).
    fn burst(&self, segment: u64) -> u64 {
        let least = if self.pacing_rate < 1_200_000 / 8 { 1 } else { 2 };
        ((self.pacing_rate >> 10).min(65_535) / segment).clamp(least, 127) * segment
    }

    /// Returns `gain` bandwidth-delay products plus room for bursts, in bytes (`bbr_inflight`).
    /// While no RTT is known, ten segments replace the products. `gain`: in units of 1/256;
    /// `segment`: payload bytes of a full segment.
    fn target(&self, gain: u64, segment: u64) -> u64 {
        self.with_room(self.product(gain, segment), segment)
    }

    fn product(&self, gain: u64, segment: u64) -> u64 {
        if self.min_rtt == Span::MAX {
            return 10 * segment;
        }
        let product = scaled(bytes_in_time(self.max_rate.get(), self.min_rtt), gain);
        product.div_ceil(segment) * segment
    }

    /// Adds room for bursts to a window of `bytes` bytes: three bursts, rounded up to pairs of
    /// segments, and two segments more while probing for bandwidth (`bbr_quantization_budget`).
    fn with_room(&self, bytes: u64, segment: u64) -> u64 {
        let pairs = (bytes + 3 * self.burst(segment)).div_ceil(2 * segment);
        let probing = self.mode == Mode::ProbeBw && self.cycle == 0;
        (2 * pairs + if probing { 2 } else { 0 }) * segment
    }

    fn set_cwnd(&mut self, ack: &PathAck) {
        if ack.acked > 0 && !self.recover_or_restore(ack) {
            let limit = bytes_in_time(self.max_rate.get(), AGGREGATION_LIMIT);
            let extra = if self.full { self.extra[0].max(self.extra[1]).min(limit) } else { 0 };
            let product = self.product(self.gains().1, ack.segment);
            let target = self.with_room(product + extra, ack.segment);
            if self.full {
                self.cwnd = (self.cwnd + ack.acked).min(target);
            } else if self.cwnd < target || ack.delivered < 10 * ack.segment {
                self.cwnd += ack.acked;
            }
            self.cwnd = self.cwnd.max(LEAST_SEGMENTS * ack.segment);
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(LEAST_SEGMENTS * ack.segment);
        }
    }

    /// Applies packet conservation in the first round of a recovery, and restores the congestion
    /// window at its end. Returns whether packet conservation determines the window for this ACK.
    fn recover_or_restore(&mut self, ack: &PathAck) -> bool {
        if ack.lost > 0 {
            self.cwnd = self.cwnd.saturating_sub(ack.lost).max(ack.segment);
        }
        let conserved = (ack.in_flight + ack.acked).max(ack.segment);
        match (self.recovering, ack.recovering) {
            (false, true) => {
                self.save_cwnd();
                self.packet_conservation = true;
                self.next_round_delivered = ack.delivered;
                self.cwnd = conserved;
            }
            (true, false) => {
                self.cwnd = self.cwnd.max(self.prior_cwnd);
                self.packet_conservation = false;
            }
            _ => {}
        }
        self.recovering = ack.recovering;
        if self.packet_conservation {
            self.cwnd = self.cwnd.max(conserved);
        }
        self.packet_conservation
    }

    fn save_cwnd(&mut self) {
        self.prior_cwnd = if self.recovering || self.mode == Mode::ProbeRtt {
            self.prior_cwnd.max(self.cwnd)
        } else {
            self.cwnd
        };
    }

    /// Handles a timeout: the window restarts from one segment. If Startup has not found the full
    /// bandwidth yet, the search for it begins again.
    fn on_timeout(&mut self, segment: u64) {
        self.save_cwnd();
        self.recovering = true;
        self.packet_conservation = false;
        self.cwnd = segment;
        self.full_rate = 0;
        self.round_start = true;
    }

    /// Handles the first new data after an idle time, in which the application had nothing to send.
    fn on_restart(&mut self, now: Time) {
        self.idle_restart = true;
        (self.epoch_at, self.epoch_acked) = (now, 0);
        if self.mode == Mode::ProbeBw {
            self.pacing_rate = self.max_rate.get() / 100 * 99;
        }
    }
}
