//! How losses bound [BBR version 3](super::bbr3): for the time until the next probing (short term), and
//! from one probing to the next (long term).
//!
//! Short term: each round with losses, outside of probing, leaves 0.7 of the rate and of what may be in
//! flight, though no less than the round has delivered. Long term: where more than 2 % was lost of what
//! was in flight while probing, that much, or 0.7 of a bandwidth-delay product where this is more, is
//! what may be in flight; it rises by what has got through, and while probing Up by 1, 2, 4, …
//! segments a round. A cruise leaves 15 % of it to others.

use super::control::PathAck;
use super::delivery_rate::RateSample;
use serde::{Deserialize, Serialize};

/// One, in the units of gains and shares.
pub(super) const UNIT: u64 = 1000;
/// Segments that stay under way at least.
pub(super) const LEAST_SEGMENTS: u64 = 4;
/// Share of what is in flight that may be lost, in thousandths.
const LOSS_THRESHOLD: u64 = 20;
/// What a round with losses leaves, in thousandths.
const BETA: u64 = 700;
/// What a cruise leaves of the long-term bound, in thousandths.
const WITHOUT_HEADROOM: u64 = 850;
/// The growth while probing doubles so often at most.
const MOST_DOUBLINGS: u32 = 30;

/// `amount` times `gain`.
pub(super) fn scaled(amount: u64, gain: u64) -> u64 {
    (u128::from(amount) * u128::from(gain) / u128::from(UNIT)) as u64
}

/// Returns whether more of what was in flight was lost than may be; `lost` is the loss in all.
pub(super) fn loses_too_much(s: &RateSample, lost: u64) -> bool {
    lost - s.prior_lost > scaled(s.in_flight, LOSS_THRESHOLD)
}

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

    /// Takes in what a round has delivered. Returns whether it has ended with losses.
    pub(super) fn end_lossy_round(&mut self, s: &RateSample, delivered: u64) -> bool {
        self.latest_rate = self.latest_rate.max(s.rate());
        self.latest_inflight = self.latest_inflight.max(s.delivered);
        self.round_start = s.prior_delivered >= self.round_delivered;
        if !self.round_start {
            return false;
        }
        self.round_delivered = delivered;
        std::mem::take(&mut self.lost_in_round)
    }

    /// Lowers the short-term bounds after a round with losses; they begin at this rate and window.
    pub(super) fn lower_short(&mut self, rate: u64, cwnd: u64) {
        let from = |bound, first| if bound == u64::MAX { first } else { bound };
        let (rate, bytes) = (from(self.short_rate, rate), from(self.short, cwnd));
        self.short_rate = self.latest_rate.max(scaled(rate, BETA));
        self.short = self.latest_inflight.max(scaled(bytes, BETA));
    }

    /// A round of the path begins. Returns whether the ACKs of a probing end with it.
    pub(super) fn begin_round(&mut self) -> bool {
        match self.acks {
            Acks::Starting => self.acks = Acks::Feedback,
            Acks::Stopping => {
                self.acks = Acks::Plain;
                self.judging = false;
                return true;
            }
            Acks::Plain | Acks::Refilling | Acks::Feedback => {}
        }
        false
    }

    /// Too much was lost: sets the long-term bound, to a part of `target` at least. Returns whether it was
    /// a probing that has lost it, so that it ends.
    pub(super) fn lower_long(&mut self, s: &RateSample, target: u64) -> bool {
        let judging = std::mem::take(&mut self.judging);
        if judging && !s.app_limited {
            self.long = s.in_flight.max(scaled(target, BETA));
        }
        judging
    }

    /// Raises the long-term bound, where there is one, to what has got through and, while `probing`, with
    /// what is acknowledged as long as the window is the limit.
    pub(super) fn raise_long(
        &mut self,
        s: &RateSample,
        ack: &PathAck,
        cwnd: u64,
        probing: bool,
        round_start: bool,
    ) {
        if self.long == u64::MAX {
            return;
        }
        self.long = self.long.max(s.in_flight);
        if !probing {
            return;
        }
        let limited = ack.in_flight_before + ack.segment >= cwnd;
        if limited && cwnd >= self.long {
            self.acked += ack.acked;
            self.long += self.acked / self.every * ack.segment;
            self.acked %= self.every;
        }
        if round_start {
            self.raise_slope(cwnd, ack.segment);
        }
    }
}
