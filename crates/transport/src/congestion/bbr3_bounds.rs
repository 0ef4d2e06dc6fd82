//! Bounds of [BBR version 3](super::bbr3) that follow from losses: short-term bounds, which end
//! with the next probe for bandwidth, and a long-term bound, which stays from one probe to the
//! next.
//!
//! Short term: each round trip with losses, except in Startup and while probing, multiplies the
//! bounds of the rate and of the data in flight by 0.7, but not below the rate and the bytes
//! delivered in this round trip. Long term: if more than 2 % of the data in flight was lost while
//! probing, the bound is that amount in flight, or 0.7 of a bandwidth-delay product if this is
//! more. The long-term bound rises to an amount in flight of which at most 2 % was lost, and in the
//! phase Up by 1, 2, 4, … segments per round trip. The phase Cruise leaves 15 % of the long-term
//! bound to other flows.

use super::control::PathAck;
use super::delivery_rate::RateSample;
use serde::{Deserialize, Serialize};

/// Value that stands for 1 in gains and shares, which are in thousandths.
pub(super) const UNIT: u64 = 1000;
/// Minimum congestion window of BBR version 3, in segments.
pub(super) const LEAST_SEGMENTS: u64 = 4;
/// Share of the bytes in flight that may be lost in a probe, in thousandths.
const LOSS_THRESHOLD: u64 = 20;
/// Factor of the short-term bounds after a round trip with losses, in thousandths.
const BETA: u64 = 700;
/// Factor of the long-term bound in Cruise and ProbeRTT, in thousandths: 15 % is headroom for other
/// flows.
const WITHOUT_HEADROOM: u64 = 850;
/// Maximum number of doublings of the growth of the long-term bound while probing.
const MOST_DOUBLINGS: u32 = 30;

/// Returns `amount` times `gain`, which is in thousandths.
pub(super) fn scaled(amount: u64, gain: u64) -> u64 {
    (u128::from(amount) * u128::from(gain) / u128::from(UNIT)) as u64
}

/// Whether more than 2 % of the bytes in flight were lost since the segment of sample `s` was sent.
/// `lost`: bytes lost since the connection began.
pub(super) fn loses_too_much(s: &RateSample, lost: u64) -> bool {
    lost - s.prior_lost > scaled(s.in_flight, LOSS_THRESHOLD)
}

/// Phase of ProbeBW in which the data was sent that the arriving ACKs acknowledge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Acks {
    /// The arriving ACKs acknowledge data that was not sent for a probe for bandwidth.
    #[default]
    Plain,
    /// The arriving ACKs acknowledge data sent before or during the phase Refill.
    Refilling,
    /// The arriving ACKs acknowledge data sent before the phase Up, although this phase has begun.
    Starting,
    /// The arriving ACKs acknowledge data sent in the phase Up, so that they show the result of the
    /// probe for bandwidth.
    Feedback,
    /// The arriving ACKs acknowledge data sent before probing ended.
    Stopping,
}

/// Bounds of a BBR version 3 sender that follow from losses; `u64::MAX` means no bound.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Bounds {
    /// Bound of the sending rate until the next probe for bandwidth, in bytes per second.
    pub(super) short_rate: u64,
    /// Bound of the data in flight until the next probe for bandwidth, in bytes.
    pub(super) short: u64,
    /// Bound of the data in flight that stays from one probe for bandwidth to the next, in bytes.
    pub(super) long: u64,
    /// Whether the current ACK begins a round trip in which losses are counted.
    pub(super) round_start: bool,
    round_delivered: u64,
    lost_in_round: bool,
    latest_rate: u64,
    latest_inflight: u64,
    acks: Acks,
    /// Whether rate samples may still belong to a probe, so that losses above 2 % lower the
    /// long-term bound.
    judging: bool,
    doublings: u32,
    /// Number of bytes that must be acknowledged for each segment by which the long-term bound
    /// rises.
    every: u64,
    /// Bytes acknowledged since the long-term bound last rose by a segment; compared with `every`.
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
    /// Records a loss; `delivered`: bytes delivered since the connection began.
    pub(super) fn note_loss(&mut self, delivered: u64) {
        if !self.lost_in_round {
            self.round_delivered = delivered;
            self.lost_in_round = true;
        }
    }

    /// Returns the largest number of bytes that were delivered between the transmission and the ACK
    /// of one segment in this round trip.
    pub(super) fn latest_inflight(&self) -> u64 {
        self.latest_inflight
    }

    /// Ends the processing of an ACK with rate sample `s`. If the ACK has begun a round trip, the
    /// maxima of this round trip start with the sample.
    pub(super) fn forget_latest(&mut self, s: &RateSample) {
        if self.round_start {
            (self.latest_rate, self.latest_inflight) = (s.rate(), s.delivered);
        }
    }

    /// Removes the short-term bounds of the rate and of the data in flight.
    pub(super) fn forget_short(&mut self) {
        (self.short_rate, self.short) = (u64::MAX, u64::MAX);
    }

    /// Returns the long-term bound in bytes less headroom for other flows (15 %, at least one
    /// segment), but at least four segments; `u64::MAX` without a bound.
    pub(super) fn with_headroom(&self, segment: u64) -> u64 {
        if self.long == u64::MAX {
            return u64::MAX;
        }
        let left = scaled(self.long, WITHOUT_HEADROOM).min(self.long.saturating_sub(segment));
        left.max(LEAST_SEGMENTS * segment)
    }

    /// Ends probing for bandwidth, and forgets losses and maxima of the current round trip.
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

    /// Adds the rate sample of an ACK. Returns whether the ACK ends a round trip in which data was
    /// lost. `delivered`: bytes delivered since the connection began.
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

    /// Lowers the short-term bounds after a round trip with losses. A bound that does not exist yet
    /// starts from `rate` (bytes per second) or `cwnd` (bytes).
    pub(super) fn lower_short(&mut self, rate: u64, cwnd: u64) {
        let from = |bound, first| if bound == u64::MAX { first } else { bound };
        let (rate, bytes) = (from(self.short_rate, rate), from(self.short, cwnd));
        self.short_rate = self.latest_rate.max(scaled(rate, BETA));
        self.short = self.latest_inflight.max(scaled(bytes, BETA));
    }

    /// Begins a round trip. Returns whether it is the first one whose ACKs no longer belong to a
    /// probe.
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

    /// Handles a sample `s` with losses above 2 %. If the sample may belong to a probe, and the
    /// application did not limit the sender, the long-term bound becomes the bytes in flight of the
    /// sample, at least 0.7 times `target` (bytes). Returns whether the sample may belong to a
    /// probe, which then has to end.
    pub(super) fn lower_long(&mut self, s: &RateSample, target: u64) -> bool {
        let judging = std::mem::take(&mut self.judging);
        if judging && !s.app_limited {
            self.long = s.in_flight.max(scaled(target, BETA));
        }
        judging
    }

    /// Raises the long-term bound, if there is one, to the bytes in flight of the rate sample `s`.
    /// While `probing`, the bound also rises with the acknowledged bytes, as long as the congestion
    /// window limits the sender.
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
