//! Settings of TCP timers, loss recovery and receivers: one setting for each mechanism. The
//! defaults are the rules of the RFCs; each mechanism of Linux has its own setting.

use eastwest_engine::random::mix;
use eastwest_settings::{Bytes, Section, key};
use eastwest_types::{HostId, Span};
use serde::{Deserialize, Serialize};

/// Formula of the retransmission timeout from RTT samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RtoRule {
    /// RTO = SRTT + max(G, 4·RTTVAR), at least the minimum (RFC 6298).
    #[default]
    Rfc6298,
    /// RTO = SRTT + max(4·deviation, minimum), with the deviation of Linux's `tcp_rtt_estimator`.
    Linux,
}

/// Condition under which a connection without progress fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum GiveUp {
    /// The connection survives `max_retries` consecutive timeouts, and fails at the next one.
    #[default]
    Count,
    /// The connection fails at the first timeout after a time limit: the sum of `max_retries` + 1
    /// timeouts that begin with the minimum and double up to the maximum. The time counts from the
    /// first retransmission (Linux, `retransmits_timed_out`).
    Time,
}

/// Rules of the retransmission timer and the other TCP timers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimerRules {
    /// Formula of the retransmission timeout.
    pub rto: RtoRule,
    /// Whether timers expire only on ticks of length `granularity`. Expiry times are rounded up as
    /// in Linux's timer wheel.
    pub ticks: bool,
    /// Whether ticks of different hosts have different phases, since hosts boot at different times.
    /// A run then sets `uptime_seed`.
    pub own_ticks: bool,
    /// Seed of the hosts' uptimes, which shift the phases of their timer ticks. `None`: ticks of
    /// all hosts are at multiples of the granularity, as if all had booted at time 0.
    pub uptime_seed: Option<u64>,
    /// Condition under which a connection without progress fails.
    pub give_up: GiveUp,
    /// Number of consecutive timeouts of a SYN or SYN-ACK that the connection survives: it fails at
    /// the next one. `None`: as `max_retries`.
    pub syn_retries: Option<u32>,
    /// Number of first timeouts of a SYN after which the timeout does not double (Linux,
    /// `tcp_syn_linear_timeouts`).
    pub linear_syns: u32,
    /// Whether any ACK of new data ends the backoff of the timeout (ns-2, `FullTcpAgent::newack`).
    /// If false, only an RTT sample ends it.
    pub ack_ends_backoff: bool,
}

/// Range of the uptime of hosts at time 0 of the run, in timer ticks. It exceeds the coarsest unit
/// of the timer wheel that the longest timeouts use (4,096 ticks up to 258,048), and times still
/// fit into 64 bits.
const UPTIME_TICKS: u128 = 1 << 18;

impl TimerRules {
    /// Returns the uptime in ps of `host` at time 0 of the run, for a timer tick of `tick` ps. It
    /// is uniform in [0, 2¹⁸ ticks), so that the phase within a tick is uniform too, and also the
    /// phase within the coarser units of the timer wheel.
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

/// Rule by which the window is reduced in fast recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PrrRule {
    /// The window is set to the threshold at once (RFC 5681, RFC 6675).
    #[default]
    Off,
    /// Proportional rate reduction with the slow-start bound (RFC 6937).
    Rfc6937,
    /// Proportional rate reduction as in Linux (after RFC 9937).
    Linux,
}

/// Rule of loss detection by send times (RACK).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RackRule {
    /// RACK is not used: losses are detected by duplicate ACKs (RFC 6675).
    #[default]
    Off,
    /// RACK of RFC 8985: an ACK whose echoed timestamp is earlier than a retransmission does not
    /// acknowledge that retransmission.
    Rfc8985,
    /// RACK of Linux: an ACK acknowledges a retransmission unless the time from the retransmission
    /// to the ACK is shorter than the smallest RTT. The reordering timer expires 2 ms later than in
    /// the RFC.
    Linux,
}

/// Rule that decides when a receiver sends ACKs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AckRule {
    /// An ACK is sent after `ack_every` segments or `delayed_ack_timeout`.
    #[default]
    Count,
    /// ACKs are sent as in [Linux](super::linux_acks): quick ACKs at first, then for every second
    /// full segment or after an adaptive time.
    Linux,
}

/// Rules of a TCP receiver: ACKs and receive window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReceiverRules {
    /// Rule that decides when the receiver sends ACKs.
    pub acks: AckRule,
    /// Whether ACKs of out-of-order segments are delayed and combined from the fourth in a row on
    /// (Linux, SACK compression); needs [`AckRule::Linux`].
    pub compress: bool,
    /// Initial receive window in bytes, which grows with the data received per RTT up to
    /// `max_window`; `None`: the window is `max_window` from the start.
    pub window_from: Option<u64>,
}

impl ReceiverRules {
    /// Whether the receiver sends ACKs only by the number of segments, and its window is constant.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.acks == AckRule::Count && self.window_from.is_none()
    }
}

/// Rules of loss recovery at a TCP sender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecoveryRules {
    /// Rule by which the window is reduced in fast recovery.
    pub prr: PrrRule,
    /// Rule of loss detection by send times instead of duplicate ACKs; needs SACK.
    pub rack: RackRule,
    /// Whether tail loss probes are sent (RFC 8985); needs SACK.
    pub probes: bool,
    /// Whether receivers report duplicate segments and senders use these reports (DSACK, RFC 2883);
    /// needs SACK.
    pub dsack: bool,
    /// Whether spurious timeouts are detected by the order of ACKs and undone (F-RTO, RFC 5682).
    pub frto: bool,
    /// Whether window reductions that timestamps or DSACKs show to be spurious are undone (RFC
    /// 4015, RFC 3708).
    pub undo: bool,
    /// Unit of the timestamps that are compared to detect spurious window reductions (Linux: 1 ms).
    pub timestamp_clock: Span,
    /// Whether a timeout during a recovery leaves the slow-start threshold unchanged (Linux).
    pub one_cut: bool,
    /// Initial number of duplicate ACKs, or of segments SACKed above a hole, that indicates a loss;
    /// above 0.
    pub reordering: u32,
    /// Whether the degree `reordering` grows with the [reordering](super::reordering) that a
    /// connection observes (Linux).
    pub adapt_reordering: bool,
    /// Whether the sender uses SACK blocks of ACKs that arrive after a later ACK (Linux); needs
    /// SACK.
    pub late_sacks: bool,
    /// Whether, without SACK, recovery continues after a partial ACK, which shows the next loss
    /// (NewReno, RFC 6582). If false, a partial ACK ends the recovery ([Reno](super::reno), RFC
    /// 2581, 3.2); false needs `prr` off.
    pub partial_acks: bool,
}

impl RecoveryRules {
    /// Whether losses are detected by send times (RACK) and not by duplicate ACKs.
    #[inline]
    pub(super) fn uses_rack(&self) -> bool {
        self.rack != RackRule::Off
    }

    /// Whether recovery follows RFC 6675 or RFC 6582 without any of the additional mechanisms.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.prr == PrrRule::Off
            && !self.uses_scoreboard()
            && !self.detects_spurious()
            && !self.dsack
            && !self.adapt_reordering
    }

    /// Whether the sender uses the send times of segments: for RACK or for tail loss probes.
    #[inline]
    pub(super) fn uses_scoreboard(&self) -> bool {
        self.uses_rack() || self.probes
    }

    /// Whether the sender may detect spurious timeouts or window reductions.
    #[inline]
    pub(super) fn detects_spurious(&self) -> bool {
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

impl TimerRules {
    /// Reads the rules of the timers from `[tcp]`; `max_retries`: default of the key `syn_retries`.
    pub fn read(s: &mut Section, max_retries: u32) -> TimerRules {
        let rto = s.choice(
            "rto",
            "Formula of the retransmission timeout.",
            Some("rfc6298"),
            &[
                ("rfc6298", RtoRule::Rfc6298, "max(min_rto, SRTT + max(G, 4·RTTVAR))"),
                (
                    "linux",
                    RtoRule::Linux,
                    "SRTT + max(4·deviation, min_rto), with the deviation of tcp_rtt_estimator",
                ),
            ],
        );
        let give_up = s.choice(
            "give_up",
            "Condition under which a connection without progress fails.",
            Some("count"),
            &[
                ("count", GiveUp::Count, "after max_retries timeouts in a row"),
                (
                    "time",
                    GiveUp::Time,
                    "at the first timeout after a time limit: the sum of max_retries + 1 timeouts \
                     that begin with min_rto and double up to max_rto, as Linux interprets \
                     tcp_retries2",
                ),
            ],
        );
        let ack_ends_backoff = s.choice(
            "backoff_ends",
            "Event after which timeouts are no longer doubled.",
            Some("sample"),
            &[
                ("sample", false, "a round-trip sample (RFC 6298, 5.7; Linux)"),
                ("ack", true, "any ACK of new data (ns-2, FullTcpAgent::newack)"),
            ],
        );
        TimerRules {
            rto,
            give_up,
            ack_ends_backoff,
            ticks: s.get(
                key(
                    "timer_ticks",
                    "Whether timers expire only on ticks of length `granularity`. Times are \
                     rounded up as in Linux's timer wheel: to the next tick, from 63 ticks on to \
                     a multiple of 8 ticks, and so on.",
                )
                .default("false"),
            ),
            own_ticks: s.choice(
                "tick_phase",
                "Phase of the ticks of timer_ticks on different hosts.",
                Some("random"),
                &[
                    (
                        "random",
                        true,
                        "a random phase for each host, drawn from the seed, as on separate \
                         machines",
                    ),
                    (
                        "common",
                        false,
                        "the same phase on all hosts, as in namespaces or containers of one kernel",
                    ),
                ],
            ),
            uptime_seed: None,
            syn_retries: Some(
                s.get(
                    key(
                        "syn_retries",
                        "Number of consecutive timeouts of a SYN or SYN-ACK after which the \
                         connection fails (Linux, tcp_syn_retries: 6).",
                    )
                    .computed("max_retries", max_retries)
                    .range("1", "1000"),
                ),
            ),
            linear_syns: s.get(
                key(
                    "linear_syns",
                    "Number of first timeouts of a SYN that are not doubled (Linux 6.5 and later, \
                     tcp_syn_linear_timeouts: 4).",
                )
                .default("0")
                .range("0", "255"),
            ),
        }
    }
}

impl RecoveryRules {
    /// Reads the rules of loss recovery from `[tcp]`; `sack`: whether SACK is used.
    pub fn read(s: &mut Section, sack: bool) -> RecoveryRules {
        let (rack, probes) = read_rack(s, sack);
        let dsack = read_of_sack(
            s,
            sack,
            "dsack",
            "Whether receivers report duplicate segments (DSACK) and senders use these reports \
             (RFC 2883; on in Linux); needs sack.",
        );
        let late_sacks = read_of_sack(
            s,
            sack,
            "late_sacks",
            "Whether the sender uses SACK blocks of ACKs that arrive after a later ACK (on in \
             Linux); needs sack.",
        );
        let mut rules = RecoveryRules {
            rack,
            probes,
            dsack,
            late_sacks,
            reordering: s.get(
                key(
                    "reordering",
                    "Number of duplicate ACKs, or of segments SACKed above a hole, that indicate \
                     a loss (RFC 5681, 3.2; Linux, tcp_reordering).",
                )
                .default("3")
                .range("1", "300"),
            ),
            adapt_reordering: s.get(
                key(
                    "adapt_reordering",
                    "Whether `reordering` grows with the reordering that a connection observes, \
                     up to 300 (on in Linux).",
                )
                .default("false"),
            ),
            frto: s.get(
                key(
                    "frto",
                    "Whether spurious timeouts are detected from the ACKs after them, and undone \
                     (F-RTO, RFC 5682; on in Linux).",
                )
                .default("false"),
            ),
            undo: s.get(
                key(
                    "undo",
                    "Whether window reductions are undone that timestamps (RFC 4015) or DSACKs \
                     (RFC 3708) show to be unnecessary (on in Linux).",
                )
                .default("false"),
            ),
            timestamp_clock: s.get(
                key(
                    "timestamp_clock",
                    "Clock granularity of the timestamps that `undo` compares \
                                        (Linux: 1 ms).",
                )
                .default("1 us")
                .range("1 us", "1 s"),
            ),
            one_cut: s.get(
                key(
                    "one_cut",
                    "Whether a timeout during fast recovery leaves the slow-start threshold \
                     unchanged (on in Linux; RFC 5681 reduces it again).",
                )
                .default("false"),
            ),
            prr: read_prr(s),
            partial_acks: true,
        };
        rules.partial_acks = read_partial_acks(s, rules.prr);
        rules
    }
}

impl ReceiverRules {
    /// Reads the rules of the receiver from `[tcp]`; `segment` is the payload of a full segment in
    /// bytes, `max_window` the largest window in bytes.
    pub fn read(s: &mut Section, sack: bool, segment: u32, max_window: u64) -> ReceiverRules {
        let acks = s.choice(
            "acks",
            "Rule by which a receiver sends ACKs.",
            Some("count"),
            &[
                ("count", AckRule::Count, "after ack_every segments, or after delayed_ack_timeout"),
                (
                    "linux",
                    AckRule::Linux,
                    "for each of the first 16 segments; then for more than one full segment, at \
                     the end of a write, or after 40 ms to 200 ms (ack_every and \
                     delayed_ack_timeout have no effect)",
                ),
            ],
        );
        let compress: bool = s.get(
            key(
                "compress_sacks",
                "Whether ACKs of out-of-order segments, from the fourth in a row on, are delayed \
                 and combined for 1/20 of the round-trip time, at most 1 ms (on in Linux); needs \
                 acks = 'linux' and sack.",
            )
            .default("false"),
        );
        s.demand(
            !compress || (sack && acks == AckRule::Linux),
            &["compress_sacks", "acks", "sack"],
            || "has an effect only with acks = \"linux\" and sack = true".to_owned(),
        );
        let window_from: Option<Bytes> = s.find(
            key(
                "initial_receive_window",
                "Initial receive window. The window grows with the bytes that arrive in a \
                 round-trip time, up to max_window (Linux: 64 KB).",
            )
            .optional("the window is max_window from the start")
            .range("1 B", "1 GiB"),
        );
        if let Some(window) = window_from {
            s.demand(
                (u64::from(segment)..=max_window).contains(&window.0),
                &["initial_receive_window", "segment", "max_window"],
                || {
                    format!(
                        "must be at least one segment ({segment} B) and at most max_window \
                            ({max_window} B)"
                    )
                },
            );
        }
        ReceiverRules { acks, compress, window_from: window_from.map(|w| w.0) }
    }
}

/// Reads the key `partial_acks`: whether recovery without SACK continues after a partial ACK
/// (NewReno); if false, recovery is as in Reno, which needs `prr` off.
fn read_partial_acks(s: &mut Section, prr: PrrRule) -> bool {
    let on = s.get(
        key(
            "partial_acks",
            "Without SACK: whether fast recovery continues after a partial ACK and retransmits \
             the next segment (NewReno, RFC 6582). If false, a partial ACK ends it (Reno as in \
             ns-2's FullTcp; RFC 2581, 3.2); false needs prr = \"off\".",
        )
        .default("true"),
    );
    s.demand(on || prr == PrrRule::Off, &["partial_acks", "prr"], || {
        "can be false only with prr = \"off\"".to_owned()
    });
    on
}

/// Reads the boolean key `name` with the description `doc`, which may be true only if SACK is used
/// (`sack`).
fn read_of_sack(s: &mut Section, sack: bool, name: &'static str, doc: &'static str) -> bool {
    let on: bool = s.get(key(name, doc).default("false"));
    s.demand(sack || !on, &[name, "sack"], || "needs sack = true".to_owned());
    on
}

fn read_prr(s: &mut Section) -> PrrRule {
    s.choice(
        "prr",
        "Method by which the window is reduced in fast recovery.",
        Some("off"),
        &[
            ("off", PrrRule::Off, "at once to the slow-start threshold (RFC 5681, RFC 6675)"),
            ("rfc6937", PrrRule::Rfc6937, "in proportion to the delivered bytes (RFC 6937)"),
            (
                "linux",
                PrrRule::Linux,
                "in proportion to the delivered bytes, as in Linux (after \
                                       RFC 9937)",
            ),
        ],
    )
}

/// Reads the rule of loss detection by time, and whether tail loss probes are sent.
fn read_rack(s: &mut Section, sack: bool) -> (RackRule, bool) {
    let rack = s.choice(
        "rack",
        "Loss detection by the time of sending instead of by duplicate ACKs (RACK); needs sack.",
        Some("off"),
        &[
            (
                "off",
                RackRule::Off,
                "three duplicate ACKs, or three segments SACKed above a hole \
                                    (RFC 5681, RFC 6675)",
            ),
            ("rfc8985", RackRule::Rfc8985, "RACK, which also uses echoed timestamps (RFC 8985)"),
            ("linux", RackRule::Linux, "RACK as in Linux, whose timer expires 2 ms later"),
        ],
    );
    s.demand(sack || rack == RackRule::Off, &["rack", "sack"], || "needs sack = true".to_owned());
    let probes: bool = s.get(
        key(
            "tail_loss_probe",
            "Whether a probe segment is sent after about two round-trip times without an ACK \
             (TLP, RFC 8985; on in Linux); needs rack.",
        )
        .default("false"),
    );
    s.demand(!probes || rack != RackRule::Off, &["tail_loss_probe", "rack"], || {
        "needs rack = \"rfc8985\" or \"linux\"".to_owned()
    });
    (rack, probes)
}
