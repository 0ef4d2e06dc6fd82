//! The two profiles of a TCP endpoint that scripts are run against.

use eastwest_transport::congestion::rules::{
    CongestionRules, Counting, EcnRule, EcnRules, HyStartRule, ReducedFrom,
};
use eastwest_transport::tcp::config::{CongestionKind, TcpConfig};
use eastwest_transport::tcp::offload::OffloadRules;
use eastwest_transport::tcp::rules::{
    AckRule, GiveUp, PrrRule, RackRule, ReceiverRules, RecoveryRules, RtoRule, TimerRules,
};
use eastwest_types::Span;

/// A named set of switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Profile {
    /// What Linux 6.x does by default.
    Linux,
    /// NewReno by the RFCs, without what came later.
    Classic,
}

impl Profile {
    /// Names in scripts and on the command line.
    pub const NAMES: [(&'static str, Profile); 2] =
        [("linux", Profile::Linux), ("classic", Profile::Classic)];

    /// By name.
    pub fn named(name: &str) -> Option<Profile> {
        Profile::NAMES.iter().find(|p| p.0 == name).map(|p| p.1)
    }

    /// Its settings. Segment size, SACK and timestamps are agreed with the other end later.
    pub fn config(self) -> TcpConfig {
        match self {
            Profile::Linux => linux(),
            Profile::Classic => classic(),
        }
    }
}

/// `[tcp] profile = "classic"` of scenarios; tests/profiles.rs compares.
fn classic() -> TcpConfig {
    TcpConfig {
        segment: 1460,
        initial_window: 2,
        max_window: 1_000_000,
        min_rto: Span::from_ms(200),
        max_rto: Span::from_secs(120),
        initial_rto: Span::from_secs(1),
        granularity: Span::from_ms(1),
        sack: false,
        timestamps: true,
        ack_every: 2,
        delayed_ack_timeout: Span::from_ms(40),
        limited_transmit: true,
        idle_restart: true,
        congestion: CongestionKind::NewReno,
        rules: CongestionRules { counting: Counting::Acks, ..CongestionRules::default() },
        max_retries: 15,
        time_wait: Span::from_secs(1),
        timers: TimerRules::default(),
        recovery: RecoveryRules::default(),
        receiver: ReceiverRules::default(),
        offload: OffloadRules::default(),
        nagle: false,
    }
}

/// `[tcp] profile = "linux"` of scenarios; tests/profiles.rs compares.
fn linux() -> TcpConfig {
    TcpConfig {
        initial_window: 10,
        sack: true,
        congestion: CongestionKind::Cubic,
        rules: CongestionRules {
            counting: Counting::Segments,
            reduced_from: ReducedFrom::Window,
            idle_decay: true,
            hystart: HyStartRule::Linux,
            ecn: EcnRules { rule: EcnRule::Accept, ..EcnRules::default() },
            ..CongestionRules::default()
        },
        timers: TimerRules {
            rto: RtoRule::Linux,
            ticks: true,
            give_up: GiveUp::Time,
            syn_retries: Some(6),
            linear_syns: 4,
        },
        recovery: RecoveryRules {
            prr: PrrRule::Linux,
            rack: RackRule::Linux,
            probes: true,
            dsack: true,
            frto: true,
            undo: true,
            timestamp_clock: Span::from_ms(1),
            one_cut: true,
            reordering: 3,
            adapt_reordering: true,
            late_sacks: true,
        },
        receiver: ReceiverRules {
            acks: AckRule::Linux,
            window_from: Some(65_535),
            ..ReceiverRules::default()
        },
        ..classic()
    }
}
