//! Settings of a TCP endpoint.

use super::offload::OffloadRules;
use super::rules::{RackRule, ReceiverRules, RecoveryRules, TimerRules};
use crate::congestion::custom::CustomCongestionConfig;
use crate::congestion::rules::{CongestionRules, HyStartRule};
use crate::congestion::small_queue::SmallQueueRules;
use crate::congestion::{CongestionKind, Settings};
use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// TCP settings of an endpoint, whose values are already checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpConfig {
    /// Payload bytes of a full segment (the MSS less options).
    pub segment: u32,
    /// Initial congestion window in segments (RFC 6928).
    pub initial_window: u32,
    /// Largest receive window that is offered, and largest send window that is used, in bytes.
    pub max_window: u64,
    /// Minimum retransmission timeout (RFC 6298, 2.4).
    pub min_rto: Span,
    /// Maximum retransmission timeout (RFC 6298, 2.5).
    pub max_rto: Span,
    /// Retransmission timeout of the SYN, and of data before the first RTT sample.
    pub initial_rto: Span,
    /// Timer granularity G of RFC 6298. Timeouts are rounded up to a multiple of G.
    pub granularity: Span,
    /// Whether selective acknowledgements are used (RFC 2018, RFC 6675).
    pub sack: bool,
    /// Whether timestamps are used (RFC 7323): 12 bytes in every header, and an RTT sample from
    /// every ACK.
    pub timestamps: bool,
    /// Number of segments, full or not, after which an ACK is sent at the latest (RFC 5681, 4.2: at
    /// most 2); below 65,536.
    pub ack_every: u32,
    /// Longest delay of an ACK after the arrival of the first segment that it acknowledges.
    pub delayed_ack_timeout: Span,
    /// Whether new data is sent on the first two duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// Whether the congestion window falls back to the initial window after an idle time of one RTO
    /// (RFC 5681, 4.1).
    pub idle_restart: bool,
    /// Congestion control algorithm.
    pub congestion: CongestionKind,
    /// Settings of an algorithm from another crate, if `congestion` is [`CongestionKind::Custom`];
    /// otherwise `None`.
    #[serde(skip)]
    pub custom: Option<CustomCongestionConfig>,
    /// Rules of congestion control that are common to all algorithms.
    pub rules: CongestionRules,
    /// Settings of each built-in congestion control algorithm.
    pub algorithms: Settings,
    /// Number of consecutive retransmission timeouts that a connection survives: it fails at the
    /// next one; below 65,536.
    pub max_retries: u32,
    /// Time for which a closed endpoint answers late packets (TIME-WAIT).
    pub time_wait: Span,
    /// Rules of the retransmission timers.
    pub timers: TimerRules,
    /// Rules of loss recovery.
    pub recovery: RecoveryRules,
    /// Rules of a receiver: ACKs and receive window.
    pub receiver: ReceiverRules,
    /// Rules of segmentation offload, by which a host hands segments to its NIC in bursts.
    pub offload: OffloadRules,
    /// Rules of TCP small queues: limit of the bytes of one connection in the queue of its host's
    /// NIC.
    pub small_queues: SmallQueueRules,
    /// Whether a segment that is not full waits while another one that is not full is
    /// unacknowledged (Nagle's algorithm, RFC 896, in Minshall's form, as in Linux).
    pub nagle: bool,
}

impl TcpConfig {
    /// Returns the bytes of IP and TCP headers of a packet with payload: 40, and 12 for timestamps.
    pub fn header(&self) -> u32 {
        40 + if self.timestamps { 12 } else { 0 }
    }

    /// Returns the settings that this end uses on a connection whose other end has the settings
    /// `peer`. Only options that both ends offer are used: timestamps (RFC 7323, 3.2) and selective
    /// acknowledgements (RFC 2018, 2). Segments are limited by the smaller of the two maximum
    /// segment sizes, which include the bytes of options (RFC 9293, 3.7.1). Without SACK,
    /// mechanisms that need it are off.
    pub fn agreed_with(&self, peer: &TcpConfig) -> TcpConfig {
        let mss = |c: &TcpConfig| c.segment + if c.timestamps { 12 } else { 0 };
        let mut agreed = self.clone();
        agreed.timestamps &= peer.timestamps;
        agreed.segment = mss(self).min(mss(peer)) - if agreed.timestamps { 12 } else { 0 };
        if !peer.sack {
            agreed.sack = false;
            let recovery = &mut agreed.recovery;
            recovery.rack = RackRule::Off;
            recovery.probes = false;
            recovery.dsack = false;
            recovery.late_sacks = false;
            agreed.receiver.compress = false;
        }
        agreed
    }

    /// Whether congestion control needs no state beside the window: NewReno without HyStart,
    /// pacing, segmentation offload and small queues.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.congestion == CongestionKind::NewReno
            && self.rules.hystart == HyStartRule::Off
            && !self.rules.pacing
            && !self.offload.on
            && !self.small_queues.on
    }

    /// Whether the congestion control or the pacing of the sender needs a record of each segment
    /// that is sent.
    #[inline]
    pub(super) fn records_sends(&self) -> bool {
        self.congestion.may_sample_rate() || self.rules.pacing
    }

    /// Whether the sender paces its segments.
    #[inline]
    pub fn paces(&self) -> bool {
        self.rules.pacing || self.congestion.paces()
    }
}

/// Returns TCP settings for unit tests.
#[cfg(test)]
pub(crate) fn test_config() -> TcpConfig {
    TcpConfig {
        segment: 1448,
        initial_window: 10,
        max_window: 1 << 20,
        min_rto: Span::from_ms(200),
        max_rto: Span::from_secs(120),
        initial_rto: Span::from_ms(200),
        granularity: Span::from_us(10),
        sack: true,
        timestamps: true,
        ack_every: 1,
        delayed_ack_timeout: Span::from_ms(40),
        limited_transmit: true,
        idle_restart: true,
        congestion: CongestionKind::NewReno,
        custom: None,
        rules: CongestionRules::default(),
        algorithms: Settings::default(),
        max_retries: 15,
        time_wait: Span::from_secs(1),
        timers: TimerRules::default(),
        recovery: RecoveryRules::default(),
        receiver: ReceiverRules::default(),
        offload: OffloadRules::default(),
        small_queues: SmallQueueRules::default(),
        nagle: false,
    }
}
