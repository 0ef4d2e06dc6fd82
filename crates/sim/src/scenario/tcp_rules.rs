//! `[tcp]`, continued: rules of timers and loss recovery, one key for each mechanism.

use eastwest_settings::quantity::Bytes;
use eastwest_settings::reader::{Section, key};
use eastwest_transport::congestion::small_queue::SmallQueueRules;
use eastwest_transport::tcp::offload::OffloadRules;
use eastwest_transport::tcp::rules::{
    AckRule, GiveUp, PrrRule, RackRule, ReceiverRules, RecoveryRules, RtoRule, TimerRules,
};

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
    let ack_ends_backoff = s.choice(
        "backoff_ends",
        "What ends the doubling of timeouts.",
        Some("sample"),
        &[
            ("sample", false, "a round-trip sample (RFC 6298, 5.7; Linux)"),
            ("ack", true, "any ACK of something new (ns-2, FullTcpAgent::newack)"),
        ],
    );
    TimerRules {
        rto,
        give_up,
        ack_ends_backoff,
        ticks: s.get(
            key(
                "timer_ticks",
                "Timers strike on ticks of the granularity, rounded up as in Linux's timer wheel: \
                 to the next tick, from 63 ticks on to eight of them, and so on. Each host has booted \
                 at a seeded moment of its own.",
            )
            .default("false"),
        ),
        uptime_seed: None,
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
pub fn read_recovery(s: &mut Section, sack: bool) -> RecoveryRules {
    let (rack, probes) = read_rack(s, sack);
    let dsack = read_of_sack(
        s,
        sack,
        "dsack",
        "Segments that arrive twice are reported, and reports heeded (RFC 2883; on in Linux); \
         needs sack.",
    );
    let late_sacks = read_of_sack(
        s,
        sack,
        "late_sacks",
        "SACK blocks of ACKs that a later ACK has overtaken are heeded (on in Linux); needs sack.",
    );
    let mut rules = RecoveryRules {
        rack,
        probes,
        dsack,
        late_sacks,
        reordering: s.get(
            key(
                "reordering",
                "Duplicate ACKs, or segments SACKed above a hole, that mean a loss (RFC 5681, 3.2; \
                 Linux, tcp_reordering).",
            )
            .default("3")
            .range("1", "300"),
        ),
        adapt_reordering: s.get(
            key(
                "adapt_reordering",
                "That number grows with the reordering seen, up to 300 (on in Linux).",
            )
            .default("false"),
        ),
        frto: s.get(
            key(
                "frto",
                "Needless timeouts are found from the order of ACKs, and undone (RFC 5682; on in \
                 Linux).",
            )
            .default("false"),
        ),
        undo: s.get(
            key(
                "undo",
                "Cuts that timestamps (RFC 4015) or DSACKs (RFC 3708) show to be needless are undone \
                 (on in Linux).",
            )
            .default("false"),
        ),
        timestamp_clock: s.get(
            key("timestamp_clock", "Unit in which timestamps are compared for that (Linux: 1 ms).")
                .default("1 us")
                .range("1 us", "1 s"),
        ),
        one_cut: s.get(
            key(
                "one_cut",
                "A timeout in the midst of a recovery leaves the threshold as it is (on in Linux; \
                 RFC 5681 cuts again).",
            )
            .default("false"),
        ),
        prr: read_prr(s),
        partial_acks: true,
    };
    rules.partial_acks = read_partial_acks(s, rules.prr);
    rules
}

/// Whether recovery without SACK is NewReno's.
fn read_partial_acks(s: &mut Section, prr: PrrRule) -> bool {
    let on = s.get(
        key(
            "partial_acks",
            "Without SACK an ACK of a part of what was under way at the loss shows the next \
             loss, and recovery goes on (NewReno, RFC 6582); false: it ends recovery (Reno as in \
             ns-2's FullTcp; RFC 2581, 3.2), for prr = \"off\" only.",
        )
        .default("true"),
    );
    s.demand(on || prr == PrrRule::Off, &["partial_acks", "prr"], || {
        "false needs prr = \"off\"".to_owned()
    });
    on
}

/// A switch that does nothing without SACK.
fn read_of_sack(s: &mut Section, sack: bool, name: &'static str, doc: &'static str) -> bool {
    let on: bool = s.get(key(name, doc).default("false"));
    s.demand(sack || !on, &[name, "sack"], || "needs selective acknowledgements".to_owned());
    on
}

fn read_prr(s: &mut Section) -> PrrRule {
    s.choice(
        "prr",
        "How the window falls in fast recovery.",
        Some("off"),
        &[
            ("off", PrrRule::Off, "to the threshold at once (RFC 5681, RFC 6675)"),
            ("rfc6937", PrrRule::Rfc6937, "in proportion to what arrives (RFC 6937)"),
            ("linux", PrrRule::Linux, "the same as Linux does it (after RFC 9937)"),
        ],
    )
}

/// Losses found by time, and whether the last segments of a flight are probed for.
fn read_rack(s: &mut Section, sack: bool) -> (RackRule, bool) {
    let rack = s.choice(
        "rack",
        "Losses found by time of sending in place of three duplicates; needs sack.",
        Some("off"),
        &[
            ("off", RackRule::Off, "three duplicates, or as much SACKed (RFC 5681, RFC 6675)"),
            ("rfc8985", RackRule::Rfc8985, "RACK, which asks echoed timestamps too (RFC 8985)"),
            ("linux", RackRule::Linux, "RACK as in Linux, whose timer strikes 2 ms later"),
        ],
    );
    s.demand(sack || rack == RackRule::Off, &["rack", "sack"], || {
        "needs selective acknowledgements".to_owned()
    });
    let probes: bool = s.get(
        key(
            "tail_loss_probe",
            "A segment is sent after about two round trips without an ACK (TLP, RFC 8985; on in \
             Linux); needs rack.",
        )
        .default("false"),
    );
    s.demand(!probes || rack != RackRule::Off, &["tail_loss_probe", "rack"], || {
        "needs rack".to_owned()
    });
    (rack, probes)
}

/// Rules of the receiver; `segment` is the payload of a full segment.
pub fn read_receiver(s: &mut Section, sack: bool, segment: u32, max_window: u64) -> ReceiverRules {
    let acks = s.choice(
        "acks",
        "When a receiver acknowledges.",
        Some("count"),
        &[
            ("count", AckRule::Count, "after ack_every segments, or delayed_ack_timeout"),
            (
                "linux",
                AckRule::Linux,
                "each of the first 16 segments, then more than a full one, what ends a write, or \
                 after 40 ms to 200 ms (ack_every and delayed_ack_timeout do not count)",
            ),
        ],
    );
    let compress: bool = s.get(
        key(
            "compress_sacks",
            "From the fourth in a row on, ACKs of segments out of order are put together for a \
             twentieth of the round trip, at most 1 ms (on in Linux); needs acks = 'linux' and sack.",
        )
        .default("false"),
    );
    s.demand(
        !compress || (sack && acks == AckRule::Linux),
        &["compress_sacks", "acks", "sack"],
        || "needs acks = 'linux' and sack".to_owned(),
    );
    let window_from: Option<Bytes> = s.find(
        key(
            "initial_receive_window",
            "The receive window begins with this and grows with what arrives in a round trip, up to \
             max_window (Linux: 64 KB).",
        )
        .optional("the window is max_window from the start")
        .range("1 B", "1 GiB"),
    );
    if let Some(window) = window_from {
        s.demand(
            (u64::from(segment)..=max_window).contains(&window.0),
            &["initial_receive_window", "segment", "max_window"],
            || format!("must be from a segment ({segment} B) to max_window ({max_window} B)"),
        );
    }
    ReceiverRules { acks, compress, window_from: window_from.map(|w| w.0) }
}

/// Segmentation offload.
pub fn read_offload(s: &mut Section) -> OffloadRules {
    OffloadRules {
        on: s.get(
            key(
                "segmentation_offload",
                "Bursts leave the host back to back, of what passes in about 1 ms at the pacing rate, \
                 at most 64 KB; small ones wait for room (Linux, TSO and GSO: tcp_tso_autosize, \
                 tcp_tso_should_defer).",
            )
            .default("false"),
        ),
        min_segments: s.get(
            key(
                "min_tso_segs",
                "With segmentation_offload: segments of a burst at least (Linux, tcp_min_tso_segs).",
            )
            .default("2")
            .range("1", "65535"),
        ),
        window_divisor: s.get(
            key(
                "tso_win_divisor",
                "With segmentation_offload: a burst does not wait where the window has room for one \
                 part in so many (Linux, tcp_tso_win_divisor).",
            )
            .default("3")
            .range("1", "65535"),
        ),
    }
}

/// How much of a connection may wait in its host's card.
pub fn read_small_queues(s: &mut Section) -> SmallQueueRules {
    let on = s.get(
        key(
            "small_queues",
            "Of a connection no more waits in its own host's network card than two bursts, or what \
             passes in 1 ms at the pacing rate (Linux, TCP small queues: tcp_small_queue_check).",
        )
        .default("false"),
    );
    let most: Bytes = s.get(
        key(
            "limit_output_bytes",
            "With small_queues: and never more than this (Linux, tcp_limit_output_bytes: 4 MiB, 1 MiB \
             before 6.16).",
        )
        .default("4 MiB")
        .range("1 B", "1 GiB"),
    );
    SmallQueueRules { on, most: most.0 }
}

/// Nagle's algorithm.
pub fn read_nagle(s: &mut Section) -> bool {
    s.get(
        key(
            "nagle",
            "A segment that is not full waits while another such is not acknowledged (RFC 896, in \
             Minshall's form as in Linux; Hadoop and most services switch it off).",
        )
        .default("false"),
    )
}
