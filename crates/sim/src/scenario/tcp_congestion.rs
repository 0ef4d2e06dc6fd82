//! `[tcp]`, continued: congestion control and explicit congestion notification, one key for each
//! mechanism.

use crate::mechanisms::Mechanisms;
use eastwest_settings::narrow::{at_most, whole_part};
use eastwest_settings::quantity::Fraction;
use eastwest_settings::reader::{Choice, Section, key};
use eastwest_transport::congestion::custom::CustomCongestionConfig;
use eastwest_transport::congestion::dctcp;
use eastwest_transport::congestion::rules::{
    CongestionRules, Counting, CubicRules, DctcpRules, EcnRule, EcnRules, HyStartRule, ReducedFrom,
    Variant,
};
use eastwest_transport::tcp::config::CongestionKind;

/// The built-in algorithms.
pub const KINDS: &[Choice<CongestionKind>] = &[
    (
        "new-reno",
        CongestionKind::NewReno,
        "slow start and congestion avoidance of RFC 5681, with recovery by RFC 6675 or 6582",
    ),
    ("dctcp", CongestionKind::Dctcp, "the window falls with the share of marked bytes (RFC 8257)"),
    (
        "cubic",
        CongestionKind::Cubic,
        "the window is a cubic function of the time since a loss (RFC 9438)",
    ),
    (
        "bbr",
        CongestionKind::Bbr,
        "version 1: rate and window follow a model of the path (Linux, tcp_bbr.c)",
    ),
    ("bbr3", CongestionKind::Bbr3, "version 3: the same, bounded by losses (draft-ietf-ccwg-bbr)"),
];

/// Reads which algorithm is used, and the settings of one from outside.
pub fn read_kind(
    s: &mut Section,
    mechanisms: &Mechanisms,
) -> (CongestionKind, Option<CustomCongestionConfig>) {
    let built_in = KINDS.iter().map(|&(name, kind, doc)| (name, Ok(kind), doc));
    let others = mechanisms.congestion.iter().map(|entry| (entry.name, Err(entry), entry.doc));
    let choices: Vec<_> = built_in.chain(others).collect();
    let kind = s.open_choice("congestion", "Congestion control.", Some("new-reno"), &choices);
    let entry = match kind {
        Ok(kind) => return (kind, None),
        Err(entry) => entry,
    };
    let model = s.table("parameters", entry.doc, |p| (entry.read)(p));
    let kind = CongestionKind::Custom { echoes_each_mark: model.echoes_each_mark() };
    (kind, Some(CustomCongestionConfig { model, seed: 0 }))
}

/// Reads how it works in detail.
pub fn read_rules(s: &mut Section, kind: CongestionKind) -> CongestionRules {
    let counting = read_counting(s);
    let reduced_from = s.choice(
        "reduced_from",
        "What a loss halves.",
        Some("flight"),
        &[
            ("flight", ReducedFrom::Flight, "what is outstanding (RFC 5681, equation 4)"),
            ("window", ReducedFrom::Window, "the congestion window (Linux, tcp_reno_ssthresh)"),
        ],
    );
    CongestionRules {
        counting,
        reduced_from,
        idle_decay: s.get(
            key(
                "idle_decay",
                "An idle time halves the window for each timeout it lasts, down to the initial \
                 one, instead of setting it back at once (RFC 2861; Linux, tcp_cwnd_restart).",
            )
            .default("false"),
        ),
        hystart: s.choice(
            "hystart",
            "What ends slow start before a loss; the profile `linux` sets it to linux with cubic only, as \
             in Linux.",
            Some("off"),
            &[
                ("off", HyStartRule::Off, "nothing"),
                (
                    "linux",
                    HyStartRule::Linux,
                    "trains of ACKs and growing delays, as in Linux's CUBIC (Ha and Rhee 2011); \
                     needs timestamps",
                ),
                (
                    "plus-plus",
                    HyStartRule::PlusPlus,
                    "HyStart++: growing delays, after a while of slower growth (RFC 9406); \
                     needs timestamps",
                ),
            ],
        ),
        pacing: s.get(
            key(
                "pacing",
                "Segments leave spaced by a rate: 200 % of cwnd/SRTT in slow start and 120 % later \
                 (Linux, tcp_update_pacing_rate), or what bbr says.",
            )
            .computed("true with bbr and bbr3, else false", kind.is_modelled()),
        ),
        ecn: read_ecn(s, kind),
        dctcp: read_dctcp(s),
        cubic: read_cubic(s),
    }
}

fn read_counting(s: &mut Section) -> Counting {
    let counting = s.choice(
        "counting",
        "What an ACK counts for when the window grows.",
        Some("bytes"),
        &[
            (
                "bytes",
                Counting::Bytes { limit: 2 },
                "the bytes it acknowledges, in slow start at most byte_limit segments (RFC 3465)",
            ),
            ("acks", Counting::Acks, "one segment (RFC 5681, 3.1)"),
            (
                "segments",
                Counting::Segments,
                "the segments it acknowledges, without limit (Linux, tcp_slow_start)",
            ),
        ],
    );
    let limit = s.get(
        key(
            "byte_limit",
            "With counting = \"bytes\": an ACK counts in slow start for so many segments at most, \
             L of RFC 3465 (2.2); for one after a timeout.",
        )
        .default("2")
        .range("1", "10000"),
    );
    match counting {
        Counting::Bytes { .. } => Counting::Bytes { limit },
        other => other,
    }
}

fn read_ecn(s: &mut Section, kind: CongestionKind) -> EcnRules {
    let dctcp = kind == CongestionKind::Dctcp;
    let rule = s.choice(
        "ecn",
        "Explicit congestion notification (RFC 3168); on with dctcp.",
        Some(if dctcp { "on" } else { "off" }),
        &[
            ("off", EcnRule::Off, "not used"),
            (
                "accept",
                EcnRule::Accept,
                "used where the other end asks for it, as with dctcp it does (Linux, tcp_ecn = 2)",
            ),
            ("on", EcnRule::On, "asked for with every connection (tcp_ecn = 1)"),
        ],
    );
    s.demand(!dctcp || rule != EcnRule::Off, &["ecn", "congestion"], || {
        "must not be off: dctcp reacts to marks".to_owned()
    });
    EcnRules {
        rule: if dctcp { EcnRule::On } else { rule },
        fallback: s.get(
            key(
                "ecn_fallback",
                "A SYN that has to be sent again does not ask for ECN any more (RFC 3168, \
                 6.1.1.1; on in Linux).",
            )
            .default("true"),
        ),
        all_packets: s.get(
            key(
                "ecn_all_packets",
                "SYNs, ACKs and segments sent again are sent as ECN-capable too (RFC 8257, 3.5).",
            )
            .computed("true with dctcp, else false", dctcp),
        ),
    }
}

fn read_cubic(s: &mut Section) -> CubicRules {
    let variant = s.choice(
        "cubic_variant",
        "With cubic: whose details.",
        Some("linux"),
        &[
            ("linux", Variant::Linux, "those of tcp_cubic.c"),
            ("rfc9438", Variant::Rfc9438, "those of RFC 9438"),
        ],
    );
    let beta: Fraction = s.get(
        key("cubic_beta", "With cubic: what a loss leaves of the window (RFC 9438, 4.6).")
            .default("0.7")
            .range("0.5", "0.95"),
    );
    CubicRules {
        variant,
        beta: at_most(whole_part(beta.0 * 1024.0 + 0.5)),
        fast_convergence: s.get(
            key(
                "cubic_fast_convergence",
                "With cubic: a window that falls remembers less of itself (RFC 9438, 4.7).",
            )
            .default("true"),
        ),
        friendly: s.get(
            key("cubic_friendly", "With cubic: never slower than Reno (RFC 9438, 4.3).")
                .default("true"),
        ),
    }
}

fn read_dctcp(s: &mut Section) -> DctcpRules {
    let alpha: Fraction = s.get(
        key("dctcp_alpha", "With dctcp: α of a new connection (RFC 8257, 4.2).")
            .default("1.0")
            .range("0.0", "1.0"),
    );
    DctcpRules {
        gain_shift: s.get(
            key(
                "dctcp_gain_shift",
                "With dctcp: the gain g of α's moving average is 2 to the minus this (RFC 8257, \
                 4.2: g = 1/16).",
            )
            .default("4")
            .range("0", "10"),
        ),
        initial_alpha: at_most(whole_part(alpha.0 * f64::from(dctcp::ONE))),
    }
}
