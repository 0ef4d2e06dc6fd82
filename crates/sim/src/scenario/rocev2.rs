//! `[rocev2]` and `[rocev2.dcqcn]`: queue pairs, for workloads with `transport = "rocev2"`.
//!
//! Defaults of DCQCN are those of figure 14 of the paper (Zhu et al. 2015) and, where it has none, those of
//! IEEE 802.1Q and of Mellanox's cards. Those of queue pairs are of perftest (timeout, retries) and of Linux's
//! software RoCE (acknowledgements); each line names its source.

use super::dscp::Dscp;
use eastwest_settings::quantity::{Bytes, Octets, Ratio};
use eastwest_settings::reader::{Section, key};
use eastwest_transport::congestion::dcqcn::DcqcnConfig;
use eastwest_transport::rocev2::RoceV2Config;
use eastwest_types::{Rate, Span};

/// Payloads that InfiniBand has.
const MTUS: [u32; 5] = [256, 512, 1024, 2048, 4096];

/// What is below queue pairs.
pub struct Below {
    /// Largest IP packet, where known.
    pub mtu: Option<u32>,
    /// Bytes of a packet on a link beyond that.
    pub framing: u32,
}

/// Reads `[rocev2]`, if a workload uses it or it is there.
pub fn read(
    s: &mut Section,
    below: &Below,
    used: bool,
    notes: &mut Vec<String>,
) -> Option<RoceV2Config> {
    let given = s.has("rocev2");
    if !given && !used && !s.describing() {
        return None;
    }
    if given && !used && !s.describing() {
        notes.push("no workload has transport = \"rocev2\": [rocev2] is without effect".to_owned());
    }
    let doc = "Settings of all queue pairs, for workloads with transport = \"rocev2\".";
    let config = s.table("rocev2", doc, |r| read_queue_pairs(r, below));
    used.then_some(config)
}

fn read_queue_pairs(s: &mut Section, below: &Below) -> RoceV2Config {
    let room = below.mtu.unwrap_or(1500).saturating_sub(RoceV2Config::HEADERS);
    let largest = MTUS.into_iter().rev().find(|mtu| *mtu <= room).unwrap_or(MTUS[0]);
    let mtu: Octets = s.get(
        key(
            "mtu",
            "Payload of a full packet: 256, 512, 1024, 2048 or 4096 B (path MTU of InfiniBand).",
        )
        .computed("the largest that fabric.mtu leaves room for", Octets(largest))
        .range("256", "4096"),
    );
    s.demand(MTUS.contains(&mtu.0), &["mtu"], || {
        format!("must be one of 256, 512, 1024, 2048 and 4096, not {}", mtu.0)
    });
    s.demand(below.mtu.is_none() || mtu.0 <= room, &["mtu"], || {
        format!(
            "does not fit: with {} B of headers fabric.mtu leaves {room} B",
            RoceV2Config::HEADERS
        )
    });
    let ack_every = s.get(
        key(
            "ack_every",
            "An acknowledgement is asked for with every so many packets, and with the last one of a \
             message (Linux, RXE_MAX_PKT_PER_ACK: 64).",
        )
        .default("64")
        .range("1", "65536"),
    );
    let timeout = s.get(
        key(
            "timeout",
            "How long an acknowledgement that was asked for is awaited (local ACK timeout, 4.096 us · 2^n; \
             perftest: n = 14).",
        )
        .default("67108864 ns")
        .range("1 us", "1 h"),
    );
    let retries = s.get(
        key(
            "retries",
            "A queue pair fails with one more timeout in a row than this (retry count; perftest: 7, the most \
             that its three bits hold).",
        )
        .default("7")
        .range("0", "1000"),
    );
    let cnp_dscp: Dscp = s.get(
        key("cnp_dscp", "Codepoint of congestion notification packets (Mellanox, cnp_dscp: 48).")
            .value(Dscp(48)),
    );
    let congestion = s.choice(
        "congestion",
        "What limits the rate of a queue pair.",
        Some("dcqcn"),
        &[
            ("dcqcn", true, "DCQCN: marks, notified to the sender (Zhu et al. 2015)"),
            ("none", false, "nothing but its link: packets do not ask for marks"),
        ],
    );
    let dcqcn = (congestion || s.describing())
        .then(|| s.table("dcqcn", "Settings of DCQCN at the hosts (Zhu et al. 2015).", read_dcqcn));
    if !congestion && s.has("dcqcn") {
        s.wrong("dcqcn", "is without effect: `congestion` is \"none\"");
    }
    RoceV2Config {
        mtu: mtu.0,
        ack_every,
        timeout,
        retries,
        dcqcn,
        cnp_dscp: cnp_dscp.0,
        framing: below.framing,
    }
}

fn read_dcqcn(s: &mut Section) -> DcqcnConfig {
    let span = |s: &mut Section, name, doc, default| -> Span {
        s.get(key(name, doc).default(default).range("1 us", "10 s"))
    };
    let rate = |s: &mut Section, name, doc, default| {
        s.get(key::<Rate>(name, doc).default(default).range("1 kbit/s", "1 Tbit/s"))
    };
    let gain: Ratio = s.get(
        key("gain", "Weight of a notification in alpha (g; Zhu et al. 2015: 1/256).")
            .default("0.00390625")
            .range("0.000001", "1"),
    );
    let byte_counter: Bytes = s.get(
        key("byte_counter", "Bytes of a cycle of the byte counter (B; Zhu et al. 2015).")
            .default("10 MB")
            .range("1 KB", "1000 GB"),
    );
    DcqcnConfig {
        cnp_interval: span(
            s,
            "cnp_interval",
            "Least time between two notifications of a flow (N; Zhu et al. 2015).",
            "50 us",
        ),
        gain: gain.0,
        alpha_timer: span(
            s,
            "alpha_timer",
            "After this time without notification alpha decays (K; Zhu et al. 2015).",
            "55 us",
        ),
        increase_timer: span(
            s,
            "increase_timer",
            "Length of a cycle of the timer that raises rates (T; Zhu et al. 2015).",
            "55 us",
        ),
        byte_counter: byte_counter.0,
        fast_recovery: s.get(
            key("fast_recovery", "Cycles of fast recovery (F; Zhu et al. 2015).")
                .default("5")
                .range("1", "1000"),
        ),
        additive_increase: rate(
            s,
            "additive_increase",
            "Added to the target in a cycle of additive increase (R_AI; Zhu et al. 2015).",
            "40 Mbit/s",
        ),
        hyper_increase: rate(
            s,
            "hyper_increase",
            "Added, times the number of the cycle, in hyper increase (R_HAI; IEEE 802.1Q and ns3-rdma).",
            "50 Mbit/s",
        ),
        min_rate: rate(s, "min_rate", "No flow is slower (Mellanox, rpg_min_rate).", "1 Mbit/s"),
    }
}
