//! Delivery rate estimation (draft-cheng-iccrg-delivery-rate-estimation; Linux, `tcp_rate.c`).
//!
//! Each segment records the bytes that had been delivered when it was sent. When the segment is
//! acknowledged, the bytes delivered since its transmission, divided by the longer of the send
//! interval and the ACK interval, are a sample of the delivery rate. While the application limits
//! the sender, a sample is only a lower bound of the rate that the path allows.

use eastwest_types::{Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Returns the number of bytes sent in `time` at `rate` bytes per second.
pub(super) fn bytes_in_time(rate: u64, time: Span) -> u64 {
    (u128::from(rate) * u128::from(time.0) / 1_000_000_000_000) as u64
}

/// Record of a segment in flight, for a sample of the delivery rate.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Record {
    end: u64,
    sent_at: Time,
    /// Bytes delivered from the begin of the connection until the segment was sent.
    delivered: u64,
    /// Time of the last delivery before the segment was sent.
    delivered_at: Time,
    /// Begin of the send interval of the segment's sample: send time of the segment that was
    /// delivered last before this segment was sent.
    first_sent: Time,
    /// Bytes in flight when the segment was sent, including the segment.
    in_flight: u64,
    /// Bytes lost from the begin of the connection until the segment was sent.
    lost: u64,
    app_limited: bool,
    again: bool,
    arrived: bool,
}

/// A sample of the delivery rate, taken from one ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateSample {
    /// Number of bytes delivered during the time `interval`, over which the rate is measured.
    pub delivered: u64,
    /// Time in which `delivered` bytes were delivered; zero if the sample is not valid.
    pub interval: Span,
    /// Bytes delivered since the connection began, when the newest acknowledged segment was sent.
    pub prior_delivered: u64,
    /// Round-trip time of the newest acknowledged segment that was sent once; `None` if there is
    /// none.
    pub rtt: Option<Span>,
    /// Bytes in flight when the newest acknowledged segment was sent, including this segment.
    pub in_flight: u64,
    /// Bytes lost since the connection began, when the newest acknowledged segment was sent.
    pub prior_lost: u64,
    /// Whether the application limited the rate, so that the sample is only a lower bound of the
    /// path's rate.
    pub app_limited: bool,
}

impl RateSample {
    /// Returns the delivery rate in bytes per second; 0 if the sample is not valid.
    pub fn rate(&self) -> u64 {
        match self.interval.0 {
            0 => 0,
            ps => (u128::from(self.delivered) * 1_000_000_000_000 / u128::from(ps)) as u64,
        }
    }
}

/// Sampler of the delivery rate of one sender, which records the segments in flight.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RateSampler {
    /// Bytes delivered since the connection began.
    pub delivered: u64,
    /// Time of the last ACK that has delivered data.
    pub delivered_at: Time,
    /// Bytes lost since the connection began, as last reported to the congestion control.
    pub lost: u64,
    /// Sample of the last ACK; `None` after the congestion control has used it.
    pub sample: Option<RateSample>,
    /// Begin of the current send interval: send time of the segment delivered last.
    first_sent: Time,
    /// Total of delivered bytes up to which samples are application-limited; 0 if samples are not
    /// application-limited.
    app_limited_to: u64,
    records: VecDeque<Record>,
}

impl RateSampler {
    /// Records the transmission of the stream positions `start..end`. `in_flight`: other bytes in
    /// flight; `again`: whether the bytes are retransmitted.
    pub fn sent(&mut self, now: Time, start: u64, end: u64, again: bool, in_flight: u64) {
        if in_flight == 0 {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        let record = Record {
            end,
            sent_at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            in_flight: in_flight + (end - start),
            lost: self.lost,
            app_limited: self.app_limited_to > 0,
            again,
            arrived: false,
        };
        if !again {
            self.records.push_back(record);
            return;
        }
        let mut i = self.records.partition_point(|r| r.end <= start);
        while let Some(r) = self.records.get_mut(i).filter(|r| r.end <= end) {
            *r = Record { end: r.end, ..record };
            i += 1;
        }
    }

    /// Marks the next samples as application-limited, until `in_flight` more bytes have been
    /// delivered.
    pub fn limited_by_application(&mut self, in_flight: u64) {
        self.app_limited_to = (self.delivered + in_flight).max(1);
    }

    /// Whether samples are application-limited, so that they are only lower bounds of the path's
    /// rate.
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_to > 0
    }

    /// Handles an ACK up to stream position `una` with SACK `blocks`, which delivers `bytes` new
    /// bytes. Returns its sample of the delivery rate, which is not valid if its interval is below
    /// the smallest RTT `min_rtt`; `None` if the ACK completes the delivery of no segment.
    pub fn on_ack(
        &mut self,
        now: Time,
        una: u64,
        blocks: &[(u64, u64)],
        bytes: u64,
        min_rtt: Span,
    ) -> Option<RateSample> {
        let (mut newest, mut rtt) = (None, None);
        while let Some(r) = self.records.front().copied().filter(|r| r.end <= una) {
            self.records.pop_front();
            self.arrive(now, &r, &mut newest, &mut rtt);
        }
        for &(start, end) in blocks.iter().filter(|b| b.1 > una) {
            let mut i = self.records.partition_point(|r| r.end <= start);
            while let Some(r) = self.records.get(i).copied().filter(|r| r.end <= end) {
                self.arrive(now, &r, &mut newest, &mut rtt);
                self.records[i].arrived = true;
                i += 1;
            }
        }
        if bytes == 0 {
            return None;
        }
        self.delivered += bytes;
        self.delivered_at = now;
        if self.app_limited_to > 0 && self.delivered > self.app_limited_to {
            self.app_limited_to = 0;
        }
        let r: Record = newest?;
        let send = r.sent_at.since(r.first_sent);
        let interval = send.max(now.since(r.delivered_at));
        Some(RateSample {
            delivered: self.delivered - r.delivered,
            // An interval shorter than an RTT is not valid: the ACKs arrived in a burst.
            interval: if min_rtt < Span::MAX && interval < min_rtt { Span::ZERO } else { interval },
            prior_delivered: r.delivered,
            rtt,
            in_flight: r.in_flight,
            prior_lost: r.lost,
            app_limited: r.app_limited,
        })
    }

    fn arrive(
        &mut self,
        now: Time,
        r: &Record,
        newest: &mut Option<Record>,
        rtt: &mut Option<Span>,
    ) {
        if r.arrived {
            return;
        }
        if newest.is_none_or(|n| (r.delivered, r.sent_at) >= (n.delivered, n.sent_at)) {
            *newest = Some(*r);
            self.first_sent = r.sent_at;
        }
        if !r.again {
            *rtt = Some(now.since(r.sent_at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn a_steady_stream_has_its_rate() {
        // A segment of 1000 B is sent each millisecond and acknowledged 10 ms later: 1 MB/s.
        let mut s = RateSampler::default();
        let mut last = None;
        for ms in 0..40 {
            if ms >= 10 {
                last = s.on_ack(at(ms), (ms - 9) * 1000, &[], 1000, Span::from_ms(10));
            }
            s.sent(at(ms), ms * 1000, (ms + 1) * 1000, false, ms.min(10) * 1000);
        }
        let sample = last.expect("a sample");
        assert_eq!(sample.rate(), 1_000_000);
        assert_eq!((sample.rtt, sample.app_limited), (Some(Span::from_ms(10)), false));
    }

    #[test]
    fn a_burst_of_acks_does_not_look_like_a_fast_path() {
        // Ten segments leave at once, and their ACKs arrive at once, one RTT later.
        let mut s = RateSampler::default();
        for i in 0..10 {
            s.sent(at(0), i * 1000, (i + 1) * 1000, false, i * 1000);
        }
        let sample = s.on_ack(at(10), 10_000, &[], 10_000, Span::from_ms(10)).expect("a sample");
        assert_eq!(sample.rate(), 1_000_000);
    }

    #[test]
    fn what_is_sent_while_the_application_is_the_limit_says_so() {
        let mut s = RateSampler::default();
        s.sent(at(0), 0, 1000, false, 0);
        s.limited_by_application(1000);
        s.sent(at(1), 1000, 2000, false, 1000);
        s.on_ack(at(10), 1000, &[], 1000, Span::MAX);
        assert!(s.is_app_limited());
        let sample = s.on_ack(at(11), 2000, &[], 1000, Span::MAX).expect("a sample");
        assert!(sample.app_limited && !s.is_app_limited());
    }

    #[test]
    fn a_segment_counts_once_and_not_for_the_round_trip_when_sent_twice() {
        let mut s = RateSampler::default();
        s.sent(at(0), 0, 1000, false, 0);
        s.sent(at(0), 1000, 2000, false, 1000);
        assert!(s.on_ack(at(10), 0, &[(1000, 2000)], 1000, Span::MAX).is_some());
        s.sent(at(11), 0, 1000, true, 1000);
        let sample = s.on_ack(at(21), 2000, &[], 1000, Span::MAX).expect("a sample");
        assert_eq!((sample.rtt, sample.delivered), (None, 1000));
    }
}
