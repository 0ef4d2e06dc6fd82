//! Settings of congestion control: one switch for each mechanism. The defaults are the plain rules of
//! RFC 5681 with byte counting; what Linux does is switched on one by one.

use serde::{Deserialize, Serialize};

/// What an ACK counts for when the window grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Counting {
    /// For the bytes it acknowledges, in slow start for at most so many segments, and for one after a
    /// timeout (RFC 3465, 2.1 to 2.3).
    Bytes {
        /// L of RFC 3465.
        limit: u32,
    },
    /// For one segment, however much it acknowledges (RFC 5681, 3.1, equations 2 and 3).
    Acks,
    /// For the segments it acknowledges, without limit; what is left over at the threshold counts for
    /// congestion avoidance (Linux, `tcp_slow_start` and `tcp_cong_avoid_ai`).
    Segments,
}

/// What half of the window is taken of after a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReducedFrom {
    /// What was outstanding (RFC 5681, equation 4).
    #[default]
    Flight,
    /// The congestion window (Linux, `tcp_reno_ssthresh`).
    Window,
}

/// Explicit congestion notification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EcnRule {
    /// Not used.
    #[default]
    Off,
    /// Used where the other end asks for it (Linux, `tcp_ecn` = 2).
    Accept,
    /// Asked for (Linux, `tcp_ecn` = 1).
    On,
}

/// Rules of explicit congestion notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EcnRules {
    /// Whether it is used.
    pub rule: EcnRule,
    /// A SYN that is sent again asks for it no more (RFC 3168, 6.1.1.1; Linux, `tcp_ecn_fallback`).
    pub fallback: bool,
    /// SYNs, ACKs and what is sent again are sent as ECN-capable too (RFC 8257, 3.5; Linux with
    /// DCTCP).
    pub all_packets: bool,
}

impl Default for EcnRules {
    fn default() -> EcnRules {
        EcnRules { rule: EcnRule::Off, fallback: true, all_packets: false }
    }
}

/// Settings of DCTCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DctcpRules {
    /// The gain g of the moving average is 2 to the minus this.
    pub gain_shift: u32,
    /// α of a new connection, in units of 2⁻²⁰.
    pub initial_alpha: u32,
}

impl Default for DctcpRules {
    fn default() -> DctcpRules {
        DctcpRules { gain_shift: 4, initial_alpha: super::dctcp::ONE }
    }
}

/// Where a text and its best known program differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Variant {
    /// As Linux does it.
    #[default]
    Linux,
    /// As RFC 9438 has it.
    Rfc9438,
}

/// Settings of CUBIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CubicRules {
    /// RFC 9438 or Linux where they differ.
    pub variant: Variant,
    /// β, in units of 1/1024 (Linux: 717).
    pub beta: u32,
    /// A smaller window remembers less of itself (RFC 9438, 4.7).
    pub fast_convergence: bool,
    /// Never slower than Reno (RFC 9438, 4.3).
    pub friendly: bool,
}

impl Default for CubicRules {
    fn default() -> CubicRules {
        CubicRules { variant: Variant::Linux, beta: 717, fast_convergence: true, friendly: true }
    }
}

/// What ends slow start before a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HyStartRule {
    /// Nothing.
    #[default]
    Off,
    /// HyStart as in Linux's CUBIC.
    Linux,
    /// HyStart++ (RFC 9406).
    PlusPlus,
}

/// Rules of congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CongestionRules {
    /// How the window grows.
    pub counting: Counting,
    /// What the threshold after a loss is taken of.
    pub reduced_from: ReducedFrom,
    /// An idle time halves the window for each timeout it lasts, instead of setting it back at once
    /// (RFC 2861; Linux, `tcp_cwnd_restart`).
    pub idle_decay: bool,
    /// What ends slow start before a loss.
    pub hystart: HyStartRule,
    /// Segments leave spaced by a rate; with BBR they do in any case.
    pub pacing: bool,
    /// Explicit congestion notification.
    pub ecn: EcnRules,
    /// DCTCP.
    pub dctcp: DctcpRules,
    /// CUBIC.
    pub cubic: CubicRules,
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
            dctcp: DctcpRules::default(),
            cubic: CubicRules::default(),
        }
    }
}
