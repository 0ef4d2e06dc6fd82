//! Settings of congestion control: one setting for each mechanism. The defaults are the rules of
//! RFC 5681 with byte counting; each mechanism of Linux has its own setting.

use eastwest_settings::narrow::at_most;
use eastwest_settings::{Section, key};
use serde::{Deserialize, Serialize};

/// Quantity by which an ACK makes the congestion window grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Counting {
    /// The ACK counts for the bytes that it acknowledges; in slow start for at most `limit`
    /// segments, after a timeout for one segment (RFC 3465, 2.1 to 2.3).
    Bytes {
        /// Limit L of RFC 3465: largest growth for one ACK in slow start, in segments.
        limit: u16,
    },
    /// The ACK counts for one segment, whatever it acknowledges (RFC 5681, 3.1, equations 2 and 3).
    Acks,
    /// The ACK counts for all segments that it acknowledges. Segments above the slow-start
    /// threshold count for congestion avoidance (Linux, `tcp_slow_start` and `tcp_cong_avoid_ai`).
    Segments,
}

/// Quantity that is reduced after a loss to get the slow-start threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReducedFrom {
    /// The slow-start threshold is computed from the bytes outstanding (FlightSize; RFC 5681,
    /// equation 4).
    #[default]
    Flight,
    /// The slow-start threshold is computed from the congestion window (Linux,
    /// `tcp_reno_ssthresh`).
    Window,
}

/// Use of explicit congestion notification (ECN).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EcnRule {
    /// ECN is not used.
    #[default]
    Off,
    /// ECN is used only if the other end requests it (Linux, `tcp_ecn` = 2).
    Accept,
    /// ECN is requested for every connection (Linux, `tcp_ecn` = 1).
    On,
}

/// Rules of explicit congestion notification (ECN).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EcnRules {
    /// Whether ECN is requested, accepted or not used.
    pub rule: EcnRule,
    /// Whether a retransmitted SYN no longer requests ECN (RFC 3168, 6.1.1.1; Linux,
    /// `tcp_ecn_fallback`).
    pub fallback: bool,
    /// Whether SYNs, ACKs and retransmissions are sent as ECN-capable too (RFC 8257, 3.5; Linux
    /// with DCTCP).
    pub all_packets: bool,
}

impl Default for EcnRules {
    fn default() -> EcnRules {
        EcnRules { rule: EcnRule::Off, fallback: true, all_packets: false }
    }
}

/// Mechanism that ends slow start before a loss occurs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HyStartRule {
    /// No mechanism: slow start ends at the threshold or at a loss.
    #[default]
    Off,
    /// Slow start ends by HyStart as in Linux's CUBIC (Ha and Rhee 2011), at the threshold or at a
    /// loss.
    Linux,
    /// Slow start ends by HyStart++ (RFC 9406), at the threshold or at a loss.
    PlusPlus,
}

/// Settings of congestion control that all algorithms use: growth and reduction of the window, idle
/// times, HyStart, pacing, ECN.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CongestionRules {
    /// Quantity by which an ACK makes the congestion window grow.
    pub counting: Counting,
    /// Quantity that is reduced after a loss to get the slow-start threshold.
    pub reduced_from: ReducedFrom,
    /// Whether the window is halved for each RTO of idle time (RFC 2861; Linux,
    /// `tcp_cwnd_restart`). If false, it is set to the initial window after one RTO.
    pub idle_decay: bool,
    /// Mechanism that ends slow start before a loss occurs.
    pub hystart: HyStartRule,
    /// Whether segments are paced; with BBR they always are.
    pub pacing: bool,
    /// Rules of explicit congestion notification (ECN).
    pub ecn: EcnRules,
}

impl Default for CongestionRules {
    fn default() -> CongestionRules {
        CongestionRules {
            counting: Counting::Bytes { limit: 2 },
            reduced_from: ReducedFrom::Flight,
            idle_decay: false,
            hystart: HyStartRule::Off,
            pacing: false,
            ecn: EcnRules::default(),
        }
    }
}

/// Requirements of a congestion control algorithm, which decide defaults and limits of settings in
/// `[tcp]`.
#[derive(Clone, Copy, Debug)]
pub struct AlgorithmNeeds {
    /// Whether the algorithm needs ECN, as DCTCP does.
    pub needs_ecn: bool,
    /// Whether the algorithm sets the pacing rate, as BBR does.
    pub paces: bool,
}

impl CongestionRules {
    /// Reads the rules of congestion control from `[tcp]`; `needs`: requirements of the algorithm
    /// on these rules.
    pub fn read(s: &mut Section, needs: AlgorithmNeeds) -> CongestionRules {
        let counting = read_counting(s);
        let reduced_from = s.choice(
            "reduced_from",
            "Quantity that is halved at a loss to get the slow-start threshold.",
            Some("flight"),
            &[
                ("flight", ReducedFrom::Flight, "the bytes in flight (RFC 5681, equation 4)"),
                ("window", ReducedFrom::Window, "the congestion window (Linux, tcp_reno_ssthresh)"),
            ],
        );
        CongestionRules {
            counting,
            reduced_from,
            idle_decay: s.get(
                key(
                    "idle_decay",
                    "Whether an idle time halves the window once for each timeout that it lasts, \
                     down to the initial window. If false, the window is set to the initial \
                     window at once (RFC 2861; Linux, tcp_cwnd_restart).",
                )
                .default("false"),
            ),
            hystart: s.choice(
                "hystart",
                "Algorithm that ends slow start before a loss. The profile `linux` sets it to \
                 linux only with cubic, as Linux does.",
                Some("off"),
                &[
                    ("off", HyStartRule::Off, "nothing"),
                    (
                        "linux",
                        HyStartRule::Linux,
                        "HyStart: length of ACK trains and increase of delays, as in Linux's \
                         CUBIC (Ha and Rhee 2011); needs timestamps",
                    ),
                    (
                        "plus-plus",
                        HyStartRule::PlusPlus,
                        "HyStart++: increase of delays, with a phase of slower growth before the \
                         end (RFC 9406); needs timestamps",
                    ),
                ],
            ),
            pacing: s.get(
                key(
                    "pacing",
                    "Whether segments are paced: at 200 % of cwnd/SRTT in slow start and 120 % \
                     later (Linux, tcp_update_pacing_rate), or at the rate of bbr.",
                )
                .computed("true with bbr and bbr3, else false", needs.paces),
            ),
            ecn: read_ecn(s, needs.needs_ecn),
        }
    }
}

fn read_counting(s: &mut Section) -> Counting {
    let counting = s.choice(
        "counting",
        "Quantity by which an ACK increases the congestion window.",
        Some("bytes"),
        &[
            (
                "bytes",
                Counting::Bytes { limit: 2 },
                "the acknowledged bytes, in slow start at most byte_limit segments (RFC 3465)",
            ),
            ("acks", Counting::Acks, "one segment for each ACK (RFC 5681, 3.1)"),
            (
                "segments",
                Counting::Segments,
                "the acknowledged segments, without limit (Linux, tcp_slow_start)",
            ),
        ],
    );
    let limit: u32 = s.get(
        key(
            "byte_limit",
            "With counting = \"bytes\": largest increase of the window for one ACK in slow start, \
             in segments (L of RFC 3465, 2.2). After a timeout it is one segment.",
        )
        .default("2")
        .range("1", "10000"),
    );
    match counting {
        Counting::Bytes { .. } => Counting::Bytes { limit: at_most(limit) },
        other => other,
    }
}

fn read_ecn(s: &mut Section, needed: bool) -> EcnRules {
    let rule = s.choice(
        "ecn",
        "Explicit congestion notification (RFC 3168); always used with dctcp.",
        Some(if needed { "on" } else { "off" }),
        &[
            ("off", EcnRule::Off, "not used"),
            (
                "accept",
                EcnRule::Accept,
                "used if the other endpoint requests it; endpoints with dctcp do (Linux, tcp_ecn \
                 = 2)",
            ),
            ("on", EcnRule::On, "requested for every connection (Linux, tcp_ecn = 1)"),
        ],
    );
    s.demand(!needed || rule != EcnRule::Off, &["ecn", "congestion"], || {
        "must not be \"off\" with dctcp, which reacts to marks: write \"accept\" or \"on\""
            .to_owned()
    });
    EcnRules {
        rule: if needed { EcnRule::On } else { rule },
        fallback: s.get(
            key(
                "ecn_fallback",
                "Whether a retransmitted SYN no longer requests ECN (RFC 3168, 6.1.1.1; on in \
                 Linux).",
            )
            .default("true"),
        ),
        all_packets: s.get(
            key(
                "ecn_all_packets",
                "Whether SYNs, ACKs and retransmissions are sent as ECN-capable too (RFC 8257, \
                 3.5).",
            )
            .computed("true with dctcp, else false", needed),
        ),
    }
}
