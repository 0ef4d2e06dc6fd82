//! `[tcp]`, continued: rules of timers and loss recovery, one key for each mechanism.

use super::reader::{Section, key};
use eastwest_transport::tcp::rules::{GiveUp, PrrRule, RecoveryRules, RtoRule, TimerRules};

/// Rules of the timers.
pub fn read_timers(s: &mut Section, max_retries: u32) -> TimerRules {
    let rto = s.choice(
        "rto",
        "How the retransmission timeout follows from round-trip times.",
        Some("rfc6298"),
        &[
            ("rfc6298", RtoRule::Rfc6298, "SRTT + max(G, 4·RTTVAR), and this at least min_rto"),
            (
                "linux",
                RtoRule::Linux,
                "SRTT + max(4·deviation, min_rto), with the deviation of tcp_rtt_estimator",
            ),
        ],
    );
    let give_up = s.choice(
        "give_up",
        "When a connection without progress fails.",
        Some("count"),
        &[
            ("count", GiveUp::Count, "after max_retries timeouts in a row"),
            (
                "time",
                GiveUp::Time,
                "at the first timeout after the time that max_retries doublings of min_rto take, \
                 as Linux reads tcp_retries2",
            ),
        ],
    );
    TimerRules {
        rto,
        give_up,
        ticks: s.get(
            key(
                "timer_ticks",
                "Timers strike on ticks of the granularity, rounded up as in Linux's timer wheel: \
                 to the next tick, from 63 ticks on to eight of them, and so on.",
            )
            .default("false"),
        ),
        syn_retries: Some(
            s.get(
                key(
                    "syn_retries",
                    "A SYN or SYN-ACK that has timed out this often in a row fails \
                 (Linux, tcp_syn_retries: 6).",
                )
                .computed("max_retries", max_retries)
                .range("1", "1000"),
            ),
        ),
        linear_syns: s.get(
            key(
                "linear_syns",
                "So many timeouts of a SYN do not double the next \
                 (Linux 6.5 and later, tcp_syn_linear_timeouts: 4).",
            )
            .default("0")
            .range("0", "255"),
        ),
    }
}

/// Rules of loss recovery.
pub fn read_recovery(s: &mut Section) -> RecoveryRules {
    RecoveryRules {
        prr: s.choice(
            "prr",
            "How the window falls in fast recovery.",
            Some("off"),
            &[
                ("off", PrrRule::Off, "to the threshold at once (RFC 5681, RFC 6675)"),
                ("rfc6937", PrrRule::Rfc6937, "in proportion to what arrives (RFC 6937)"),
                ("linux", PrrRule::Linux, "the same as Linux does it (after RFC 9937)"),
            ],
        ),
    }
}
