//! Marking at a threshold: a packet that finds more than K packets or bytes queued is marked with
//! CE (RFC 3168), if its transport supports ECN. This is the marking of DCTCP (Alizadeh et al.
//! 2010, section 3.1; RFC 8257, section 3.1), which uses the current queue length without
//! averaging. Packets of other transports are dropped above the threshold unless they are
//! [protected](super::signal::Protection); by default all these packets are protected, so that they
//! are queued unmarked. Packets that exceed the limit are dropped.
//!
//! With `at_dequeue`, a departing packet is marked if more than K packets or bytes are queued
//! behind it. The mark then reaches the sender earlier, by the queueing delay (ECN*, Wu et al.
//! 2012).

use super::decision::{Arrival, Head, Level, Place, Plan, Ports, Verdict, least_packets};
use super::discipline::{BuiltIn, Discipline, QueueSettings};
use super::inert::Inert;
use super::signal::{Protection, Signal, read_protection};
use crate::pool::Stored;
use eastwest_settings::{Section, key};
use eastwest_types::{Limit, Rate, Span, Time};
use serde::{Deserialize, Serialize};

/// Settings of marking at a threshold (DCTCP) at one port.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepMarkingConfig {
    /// Backlog from which an arriving packet is marked; zero marks every packet. The published rule
    /// "more than K" corresponds to [`Limit::plus_one`] of K.
    pub mark_from: Limit,
    /// Whether packets are marked at dequeue instead of at enqueue.
    pub at_dequeue: bool,
    /// Packets that are not dropped above the threshold although they cannot be marked (protected
    /// packets).
    pub protection: Protection,
    /// Limit of the queue; packets that do not fit are dropped.
    pub limit: Limit,
}

impl BuiltIn for StepMarkingConfig {
    const NAME: &'static str = "step-marking";
    const DOC: &'static str = "drop-tail that marks packets of ECN transports while the queue is \
                               longer than a threshold (RFC 8257, 3.1)";

    fn read(s: &mut Section, limit: Limit, _: &Ports) -> StepMarkingConfig {
        let threshold: Limit = s.get(key(
            "threshold",
            "Queue length, in packets or IP bytes, above which arriving packets are marked \
             (Alizadeh et al. 2010: 20 packets at 1 Gbit/s, 65 at 10 Gbit/s). With mark = \
             \"from\" a packet that finds exactly this length is marked too.",
        ));
        let from = s.choice(
            "mark",
            "Whether marking begins at `threshold` or above it. The queue length counts neither \
             the packet itself nor the packet on the link.",
            Some("above"),
            &[
                (
                    "above",
                    false,
                    "a packet is marked if the queue length is above `threshold` \
                                  (DCTCP, RFC 8257, 3.1)",
                ),
                ("from", true, "a packet is marked if the queue length is `threshold` or more"),
            ],
        );
        let at_dequeue = s.choice(
            "at",
            "Moment at which the queue length is compared with the threshold.",
            Some("enqueue"),
            &[
                ("enqueue", false, "at the arrival of a packet (DCTCP)"),
                (
                    "dequeue",
                    true,
                    "at the departure of a packet, without the packet itself \
                                   (ECN*); ports are lazy",
                ),
            ],
        );
        let protection = read_protection(s, "bypass");
        let (k, room) = (Level::from(threshold), Level::from(limit));
        let reaches = threshold.counts_same_as(limit) && k.value() >= room.value();
        s.demand(!reaches, &["threshold", "limit"], || {
            "never marks a packet: `threshold` must be below the limit of the queue (`limit`)"
                .to_owned()
        });
        let mark_from = if from { threshold } else { threshold.plus_one() };
        StepMarkingConfig { mark_from, at_dequeue, protection, limit }
    }
}

impl QueueSettings for StepMarkingConfig {
    type Queue = Box<StepMarking>;

    fn limit(&self) -> Limit {
        self.limit
    }

    fn start(&self, _: &Place) -> Box<StepMarking> {
        Box::new(StepMarking::new(*self))
    }

    fn decides_at_dequeue(&self) -> bool {
        self.at_dequeue
    }

    fn only_marks(&self) -> bool {
        true
    }

    /// Returns the transmission time of the largest backlog that causes no mark.
    fn target(&self, rate: Rate, full: u32) -> Option<Span> {
        let bytes = match self.mark_from {
            Limit::Packets(n) => f64::from(n.saturating_sub(1)) * f64::from(full),
            Limit::Bytes(n) => n.saturating_sub(1) as f64,
        };
        Some(rate.time_for(bytes as u64))
    }

    fn never_acts(&self, inert: &Inert) -> Vec<String> {
        inert.marking(Self::NAME, self.mark_from, self.limit).into_iter().collect()
    }
}

/// Queue of one port with marking at a threshold: its settings. The discipline has no state.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct StepMarking {
    config: StepMarkingConfig,
}

impl StepMarking {
    /// Returns an empty queue with these settings.
    pub fn new(config: StepMarkingConfig) -> StepMarking {
        StepMarking { config }
    }

    fn signal(&self) -> Signal {
        Signal { ecn: true, protection: self.config.protection }
    }
}

impl Discipline for StepMarking {
    fn admits_below(&self, mtu: u32) -> u32 {
        let StepMarkingConfig { mark_from, limit, .. } = self.config;
        least_packets(mark_from, mtu).min(least_packets(limit, mtu))
    }

    fn packet_thresholds(&self) -> Option<[u32; 2]> {
        match (self.config.mark_from, self.config.limit) {
            (Limit::Packets(from), Limit::Packets(limit)) => Some([from.min(limit), limit]),
            _ => None,
        }
    }

    #[inline]
    fn between_thresholds(&self, packet: &Stored) -> Verdict {
        match self.config.at_dequeue {
            true => Verdict::Enqueue,
            false => self.signal().verdict(packet),
        }
    }

    #[inline]
    fn at_enqueue(&mut self, arrival: &Arrival) -> Verdict {
        match arrival.fits(self.config.limit) {
            Verdict::Enqueue if arrival.backlog.reaches(self.config.mark_from) => {
                self.between_thresholds(arrival.packet)
            }
            verdict => verdict,
        }
    }

    /// While the backlog behind the packet at the head has reached the threshold, drops packets
    /// that can be neither marked nor enqueued unmarked (protected). The first other packet is
    /// marked, if its transport supports ECN.
    fn at_dequeue<'p, I: Iterator<Item = Head<'p>>>(
        &mut self,
        _: Time,
        heads: impl FnOnce() -> I,
    ) -> Plan {
        if !self.config.at_dequeue {
            return Plan::default();
        }
        let mut plan = Plan::default();
        for head in heads() {
            if !head.left.reaches(self.config.mark_from) {
                break;
            }
            match self.signal().verdict(head.packet) {
                Verdict::Drop | Verdict::DropEarly | Verdict::Trim => plan.drop += 1,
                verdict => {
                    plan.mark = verdict == Verdict::Mark;
                    break;
                }
            }
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::super::decision::tests::{Port, arrive};
    use super::*;

    fn verdict(mark_from: Limit, packets: usize, bytes: u64) -> Verdict {
        let config = StepMarkingConfig {
            mark_from,
            at_dequeue: false,
            protection: Protection::Default,
            limit: Limit::Packets(100),
        };
        let port = Port { bytes, ..Port::waiting(packets) };
        arrive(&port, |a| StepMarking::new(config).at_enqueue(a))
    }

    // The test packet is not ECT and nothing is protected, so it is dropped where an ECT packet
    // would be marked.
    #[test]
    fn signals_behind_more_than_the_threshold_and_drops_behind_the_limit() {
        let at = |packets| verdict(Limit::Packets(20).plus_one(), packets, packets as u64 * 1500);
        assert_eq!(at(20), Verdict::Enqueue);
        assert_eq!(at(21), Verdict::DropEarly);
        assert_eq!(at(99), Verdict::DropEarly);
        assert_eq!(at(100), Verdict::Drop);
    }

    #[test]
    fn the_threshold_may_count_bytes() {
        let at = |bytes| verdict(Limit::Bytes(30_000).plus_one(), 1, bytes);
        assert_eq!(at(30_000), Verdict::Enqueue);
        assert_eq!(at(30_001), Verdict::DropEarly);
    }

    #[test]
    fn from_zero_on_every_packet_is_signalled() {
        assert_eq!(verdict(Limit::Packets(0), 0, 0), Verdict::DropEarly);
        assert_eq!(verdict(Limit::Bytes(0), 0, 0), Verdict::DropEarly);
        assert_eq!(verdict(Limit::Packets(0).plus_one(), 0, 0), Verdict::Enqueue);
    }
}
