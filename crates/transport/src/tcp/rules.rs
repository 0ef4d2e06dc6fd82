//! Settings of timers and loss recovery: one switch for each mechanism. The defaults are the RFCs' plain
//! rules; what Linux does is switched on one by one.

use eastwest_engine::random::mix;
use eastwest_types::{HostId, Span};
use serde::{Deserialize, Serialize};

/// How the retransmission timeout follows from round-trip times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RtoRule {
    /// SRTT + max(G, 4·RTTVAR), and this at least the minimum (RFC 6298).
    #[default]
    Rfc6298,
    /// SRTT + max(4·deviation, minimum), with the deviation of Linux's `tcp_rtt_estimator`.
    Linux,
}

/// When a connection without progress is given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum GiveUp {
    /// After `max_retries` timeouts in a row.
    #[default]
    Count,
    /// At the first timeout after the time that `max_retries` doublings from the minimum would take,
    /// counted from the first retransmission (Linux, `retransmits_timed_out`).
    Time,
}

/// Rules of the timers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimerRules {
    /// The retransmission timeout.
    pub rto: RtoRule,
    /// Timers strike on ticks of the granularity, rounded up as in Linux's timer wheel.
    pub ticks: bool,
    /// Seed of the hosts' uptimes, which put their ticks out of phase; `None`: the ticks of all hosts fall on
    /// multiples of the granularity, as those of a host that booted at time 0.
    pub uptime_seed: Option<u64>,
    /// When to give up.
    pub give_up: GiveUp,
    /// A SYN or SYN-ACK that has timed out this often in a row is given up; `None` is `max_retries`.
    pub syn_retries: Option<u32>,
    /// So many timeouts of a SYN do not double the next (Linux, `tcp_syn_linear_timeouts`).
    pub linear_syns: u32,
    /// Any new ACK ends the backing off, not a round-trip sample alone (ns-2, `FullTcpAgent::newack`).
    pub ack_ends_backoff: bool,
}

/// Ticks in which a host may have booted before the run: more than the coarsest unit of the timer wheel
/// that the longest timeouts meet (4,096 ticks up to 258,048), and few enough that times fit 64 bits.
const UPTIME_TICKS: u128 = 1 << 18;

impl TimerRules {
    /// How long `host` has been up at time 0 of the run, as far as its ticks tell: uniform in [0, 2¹⁸ ticks).
    /// Hence the phase within a tick is uniform in [0, tick), and so is that of the wheel's coarser units.
    #[inline]
    pub(super) fn uptime(&self, host: HostId, tick: u64) -> u64 {
        match self.uptime_seed {
            None => 0,
            Some(seed) => {
                let drawn = u128::from(mix(seed ^ u64::from(host.0)));
                ((drawn * (u128::from(tick) * UPTIME_TICKS)) >> 64) as u64
            }
        }
    }
}

/// How the window falls in fast recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PrrRule {
    /// To the threshold at once (RFC 5681, RFC 6675).
    #[default]
    Off,
    /// Proportional rate reduction with the slow-start bound (RFC 6937).
    Rfc6937,
    /// Proportional rate reduction as Linux does it (after RFC 9937).
    Linux,
}

/// Loss detection by time of sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RackRule {
    /// None: by duplicate ACKs (RFC 6675).
    #[default]
    Off,
    /// RFC 8985: an ACK whose echoed timestamp is older than a retransmission does not answer it.
    Rfc8985,
    /// Linux: an ACK answers a retransmission unless it comes sooner than the smallest round trip,
    /// and the timer for reordering strikes 2 ms later.
    Linux,
}

/// When a receiver acknowledges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AckRule {
    /// After `ack_every` segments or `delayed_ack_timeout`.
    #[default]
    Count,
    /// As [Linux](super::ack_linux): quick at first, then every second full segment or after a time
    /// that adapts.
    Linux,
}

/// Rules of the receiver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReceiverRules {
    /// When it acknowledges.
    pub acks: AckRule,
    /// ACKs of segments out of order are put together after the third (Linux, SACK compression); needs
    /// [`AckRule::Linux`].
    pub compress: bool,
    /// The window grows from so many bytes with what arrives in a round trip, up to `max_window`;
    /// `None`: it is `max_window` from the start.
    pub window_from: Option<u64>,
}

impl ReceiverRules {
    /// Whether segments are just counted.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.acks == AckRule::Count && self.window_from.is_none()
    }
}

/// Rules of loss recovery.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecoveryRules {
    /// Proportional rate reduction.
    pub prr: PrrRule,
    /// Loss detection by time of sending in place of duplicate ACKs; needs SACK.
    pub rack: RackRule,
    /// Tail loss probes (RFC 8985); need SACK.
    pub probes: bool,
    /// Duplicate segments are reported, and reports heeded (RFC 2883); needs SACK.
    pub dsack: bool,
    /// Needless timeouts are found from the order of ACKs, and undone (RFC 5682).
    pub frto: bool,
    /// Cuts that timestamps or DSACKs show to be needless are undone (RFC 4015, RFC 3708).
    pub undo: bool,
    /// The unit in which timestamps are compared for that (Linux: 1 ms).
    pub timestamp_clock: Span,
    /// A timeout in the midst of a recovery leaves the threshold as it is (Linux).
    pub one_cut: bool,
    /// Duplicate ACKs, or segments SACKed above a hole, that mean a loss at first; above 0.
    pub reordering: u32,
    /// That number grows with the [reordering](super::reordering) seen (Linux).
    pub adapt_reordering: bool,
    /// SACK blocks of ACKs that a later one has overtaken are heeded (Linux); needs SACK.
    pub late_sacks: bool,
    /// Without SACK a partial ACK shows the next loss and recovery goes on (NewReno, RFC 6582); off, it
    /// ends the recovery ([Reno](super::reno), RFC 2581, 3.2), with `prr` off only.
    pub partial_acks: bool,
}

impl RecoveryRules {
    /// Whether losses are found by time of sending.
    #[inline]
    pub(super) fn uses_rack(&self) -> bool {
        self.rack != RackRule::Off
    }

    /// Whether anything may turn out to have been needless.
    #[inline]
    pub(super) fn reconsiders(&self) -> bool {
        self.frto || self.undo
    }
}

impl Default for RecoveryRules {
    fn default() -> RecoveryRules {
        RecoveryRules {
            prr: PrrRule::Off,
            rack: RackRule::Off,
            probes: false,
            dsack: false,
            frto: false,
            undo: false,
            timestamp_clock: Span::from_us(1),
            one_cut: false,
            reordering: 3,
            adapt_reordering: false,
            late_sacks: false,
            partial_acks: true,
        }
    }
}
