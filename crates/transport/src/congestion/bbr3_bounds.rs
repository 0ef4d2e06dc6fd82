//! How losses bound [BBR version 3](super::bbr3): for the time until the next probing (short term), and
//! from one probing to the next (long term).
//!
//! Short term: each round with losses, outside of probing, leaves 0.7 of the rate and of what may be in
//! flight, though no less than the round has delivered. Long term: where more than 2 % was lost of what
//! was in flight while probing, that much, or 0.7 of a bandwidth-delay product where this is more, is
//! what may be in flight; it rises by what has got through, and while probing Up by 1, 2, 4, …
//! segments a round. A cruise leaves 15 % of it to others.

use super::bbr3::{Bbr3, LEAST_SEGMENTS, Mode, scaled};
use super::control::PathAck;
use super::rate::RateSample;
use serde::{Deserialize, Serialize};

/// Share of what is in flight that may be lost, in thousandths.
const LOSS_THRESHOLD: u64 = 20;
/// What a round with losses leaves, in thousandths.
const BETA: u64 = 700;
/// What a cruise leaves of the long-term bound, in thousandths.
const WITHOUT_HEADROOM: u64 = 850;
/// The growth while probing doubles so often at most.
const MOST_DOUBLINGS: u32 = 30;

/// What the ACKs of now tell about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Acks {
    /// Nothing of a probing.
    #[default]
    Plain,
    /// What was sent before Refill or during it.
    Refilling,
    /// What was sent before Up.
    Starting,
    /// The probing itself.
    Feedback,
    /// The end of it.
    Stopping,
}

/// The bounds, `u64::MAX` where there is none.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Bounds {
    /// Bytes per second.
    pub(super) short_rate: u64,
    /// Bytes in flight.
    pub(super) short: u64,
    /// Bytes in flight, from one probing to the next.
    pub(super) long: u64,
    /// Whether the present ACK begins a round in which losses are counted.
    pub(super) round_start: bool,
    round_delivered: u64,
    lost_in_round: bool,
    latest_rate: u64,
    latest_inflight: u64,
    acks: Acks,
    /// Whether samples may be of a probing that has lost too much.
    judging: bool,
    doublings: u32,
    /// Bytes to be acknowledged for each segment that the bound rises by, and acknowledged so far.
    every: u64,
    acked: u64,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            short_rate: u64::MAX,
            short: u64::MAX,
            long: u64::MAX,
            round_start: false,
            round_delivered: 0,
            lost_in_round: false,
            latest_rate: 0,
            latest_inflight: 0,
            acks: Acks::Plain,
            judging: false,
            doublings: 0,
            every: u64::MAX,
            acked: 0,
        }
    }
}

impl Bounds {
    /// Something is lost; `delivered` in all by now.
    pub(super) fn note_loss(&mut self, delivered: u64) {
        if !self.lost_in_round {
            self.round_delivered = delivered;
            self.lost_in_round = true;
        }
    }

    /// Most delivered within the flight of a segment in this round.
    pub(super) fn latest_inflight(&self) -> u64 {
        self.latest_inflight
    }

    /// The end of what an ACK brings: a new round begins with it alone.
    pub(super) fn forget_latest(&mut self, s: &RateSample) {
        if self.round_start {
            (self.latest_rate, self.latest_inflight) = (s.rate(), s.delivered);
        }
    }

    /// Nothing bounds for the short term.
    pub(super) fn forget_short(&mut self) {
        (self.short_rate, self.short) = (u64::MAX, u64::MAX);
    }

    /// The long-term bound less headroom for others.
    pub(super) fn with_headroom(&self, segment: u64) -> u64 {
        if self.long == u64::MAX {
            return u64::MAX;
        }
        let left = scaled(self.long, WITHOUT_HEADROOM).min(self.long.saturating_sub(segment));
        left.max(LEAST_SEGMENTS * segment)
    }

    /// Probing is over, or something else begins.
    pub(super) fn stop_probing(&mut self) {
        self.lost_in_round = false;
        (self.latest_rate, self.latest_inflight) = (0, 0);
        self.every = u64::MAX;
        self.acks = Acks::Stopping;
    }

    pub(super) fn refill(&mut self) {
        self.forget_short();
        (self.doublings, self.acked) = (0, 0);
        self.acks = Acks::Refilling;
    }

    pub(super) fn start_probing(&mut self, cwnd: u64, segment: u64) {
        self.acks = Acks::Starting;
        self.judging = true;
        self.raise_slope(cwnd, segment);
    }

    fn raise_slope(&mut self, cwnd: u64, segment: u64) {
        self.every = (cwnd >> self.doublings).max(segment);
        self.doublings = (self.doublings + 1).min(MOST_DOUBLINGS);
    }
}

impl Bbr3 {
    /// Whether more was lost of what was in flight than may be.
    pub(super) fn loses_too_much(&self, s: &RateSample) -> bool {
        let lost = self.sampler.lost - s.prior_lost;
        lost > scaled(s.in_flight, LOSS_THRESHOLD)
    }

    /// Losses of a round, outside of probing, lower the short-term bounds.
    pub(super) fn adapt_lower_bounds(&mut self, s: &RateSample, ack: &PathAck) {
        let b = &mut self.bounds;
        b.latest_rate = b.latest_rate.max(s.rate());
        b.latest_inflight = b.latest_inflight.max(s.delivered);
        b.round_start = s.prior_delivered >= b.round_delivered;
        if !b.round_start {
            return;
        }
        b.round_delivered = ack.delivered;
        let lost = std::mem::take(&mut b.lost_in_round);
        if !lost || matches!(self.mode, Mode::Startup | Mode::Refill | Mode::Up) {
            return;
        }
        if b.short_rate == u64::MAX {
            b.short_rate = self.max_rate.get();
        }
        if b.short == u64::MAX {
            b.short = self.cwnd;
        }
        b.short_rate = b.latest_rate.max(scaled(b.short_rate, BETA));
        b.short = b.latest_inflight.max(scaled(b.short, BETA));
    }

    /// What probing tells lowers or raises the long-term bound.
    pub(super) fn adapt_upper_bound(&mut self, s: &RateSample, ack: &PathAck) {
        if self.round_start && self.bounds.acks == Acks::Starting {
            self.bounds.acks = Acks::Feedback;
        }
        if self.round_start && self.bounds.acks == Acks::Stopping {
            self.bounds.acks = Acks::Plain;
            self.bounds.judging = false;
            if self.mode.probes_bandwidth() && !s.app_limited {
                self.cycle += 1;
            }
        }
        if self.loses_too_much(s) {
            if self.bounds.judging {
                self.bound(s, ack);
            }
            return;
        }
        if self.bounds.long == u64::MAX {
            return;
        }
        self.bounds.long = self.bounds.long.max(s.in_flight);
        if self.mode == Mode::Up {
            self.probe_upward(ack);
        }
    }

    fn bound(&mut self, s: &RateSample, ack: &PathAck) {
        self.bounds.judging = false;
        if !s.app_limited {
            self.bounds.long = s.in_flight.max(scaled(self.target(ack.segment), BETA));
        }
        if self.mode == Mode::Up {
            self.go_down(ack);
        }
    }

    /// The bound rises with what is acknowledged while it is the limit.
    fn probe_upward(&mut self, ack: &PathAck) {
        let limited = ack.in_flight_before + ack.segment >= self.cwnd;
        if limited && self.cwnd >= self.bounds.long {
            let b = &mut self.bounds;
            b.acked += ack.acked;
            b.long += b.acked / b.every * ack.segment;
            b.acked %= b.every;
        }
        if self.round_start {
            self.bounds.raise_slope(self.cwnd, ack.segment);
        }
    }
}
