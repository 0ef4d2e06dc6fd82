//! `[tcp]`: settings of every TCP endpoint.
//!
//! Defaults follow Linux if it defines a value, otherwise the RFCs. Each key names its source.

use super::config::TcpConfig;
use super::offload::OffloadRules;
use super::profiles;
use super::rules::{ReceiverRules, RecoveryRules, TimerRules};
use crate::congestion::custom::ReadCongestion;
use crate::congestion::rules::CongestionRules;
use crate::congestion::small_queue::SmallQueueRules;
use crate::congestion::{self, Settings};
use eastwest_settings::reader::{State, read_table};
use eastwest_settings::{Bytes, Entry, Octets, Section, key};
use eastwest_types::Span;

/// Bytes of an IPv4 header and a TCP header without options.
const HEADERS: u32 = 40;
/// Bytes of the timestamp option of TCP with padding.
const TIMESTAMPS: u32 = 12;

/// Returns the TCP settings of the profile `name`, without changes by other keys, for senders
/// outside a scenario; `None` if there is no profile with this name.
pub fn profile(name: &str) -> Option<TcpConfig> {
    let table = toml::Table::from_iter([("profile".to_owned(), toml::Value::from(name))]);
    let mut state = State::default();
    let (config, _) =
        read_table(&mut state, "tcp", Some(&table), |s| read(s, None, &[], &mut Vec::new()));
    state.problems.is_empty().then_some(config)
}

/// Reads `[tcp]`. `mtu`: largest IP packet in bytes, or `None` if it is not known; `others`:
/// congestion controls from other crates; `notes`: list to which notes for the user are added.
pub fn read(
    s: &mut Section,
    mtu: Option<u32>,
    others: &[Entry<ReadCongestion>],
    notes: &mut Vec<String>,
) -> TcpConfig {
    profiles::read(s);
    let (congestion, custom) = congestion::read_kind(s, others);
    let sizes = read_sizes(s, mtu);
    let loss = read_loss(s);
    let acks = read_acks(s);
    let timers = read_timers(s, notes);
    let config = TcpConfig {
        segment: sizes.segment,
        initial_window: sizes.initial_window,
        max_window: sizes.max_window,
        min_rto: timers.min_rto,
        max_rto: timers.max_rto,
        initial_rto: timers.initial_rto,
        granularity: timers.granularity,
        sack: loss.sack,
        timestamps: sizes.timestamps,
        ack_every: acks.ack_every,
        delayed_ack_timeout: acks.delayed_ack_timeout,
        limited_transmit: loss.limited_transmit,
        idle_restart: loss.idle_restart,
        congestion,
        custom,
        rules: CongestionRules::read(s, congestion.needs()),
        algorithms: Settings::read(s),
        max_retries: loss.max_retries,
        time_wait: timers.time_wait,
        timers: TimerRules::read(s, loss.max_retries),
        recovery: RecoveryRules::read(s, loss.sack),
        receiver: ReceiverRules::read(s, loss.sack, sizes.segment, sizes.max_window),
        offload: OffloadRules::read(s),
        small_queues: SmallQueueRules::read(s),
        nagle: read_nagle(s),
    };
    if !config.timers.own_ticks && !config.timers.ticks {
        notes.push(format!("{}.tick_phase has no effect because timer_ticks is false", s.path()));
    }
    config
}

struct Sizes {
    timestamps: bool,
    segment: u32,
    initial_window: u32,
    max_window: u64,
}

fn read_sizes(s: &mut Section, mtu: Option<u32>) -> Sizes {
    let timestamps = s.get(
        key(
            "timestamps",
            "Whether TCP timestamps are used (RFC 7323; on in Linux): 12 more bytes in every \
             header, and a round-trip sample from every ACK.",
        )
        .default("true"),
    );
    let headers = HEADERS + if timestamps { TIMESTAMPS } else { 0 };
    let room = mtu.unwrap_or(1500) - headers;
    let segment = s.get(
        key("segment", "Payload bytes of a full segment.")
            .computed(
                "the MTU minus 40 B of headers, and minus 12 B more with timestamps",
                Octets(room),
            )
            .range("1", "9176"),
    );
    s.demand(mtu.is_none() || segment.0 <= room, &["segment", "timestamps"], || {
        format!(
            "{} B is too large: after {headers} B of headers, the MTU leaves {room} B",
            segment.0
        )
    });
    let initial_window = s.get(
        key("initial_window", "Initial window in segments (RFC 6928).")
            .default("10")
            .range("1", "10000"),
    );
    let max_window: Bytes = s.get(
        key(
            "max_window",
            "Largest receive window offered and largest send window used \
             (E-EON, chapter 4, tuned: 1 MB with window scaling).",
        )
        .default("1 MB")
        .range("1 B", "1 GiB"),
    );
    s.demand(max_window.0 >= u64::from(segment.0), &["max_window", "segment"], || {
        format!("must hold at least one segment ({} B)", segment.0)
    });
    Sizes { timestamps, segment: segment.0, initial_window, max_window: max_window.0 }
}

struct Loss {
    sack: bool,
    limited_transmit: bool,
    idle_restart: bool,
    max_retries: u32,
}

fn read_loss(s: &mut Section) -> Loss {
    Loss {
        sack: s.get(
        key("sack", "Whether selective acknowledgements are used (RFC 2018, RFC 6675; on in \
                     Linux).")
            .default("true"),
    ),
        limited_transmit: s.get(
        key(
            "limited_transmit",
            "Whether new data is sent on the first two duplicate ACKs (RFC 3042; on in Linux).",
        )
        .default("true"),
    ),
        idle_restart: s.get(
        key(
            "idle_restart",
            "Whether the window is reduced to the initial window after an idle time of one \
             timeout (RFC 5681, 4.1; on in Linux).",
        )
        .default("true"),
    ),
        max_retries: s.get(
        key(
            "max_retries",
            "Number of consecutive timeouts after which a connection fails (Linux, tcp_retries2: \
             15).",
        )
        .default("15")
        .range("1", "1000"),
    ),
    }
}

struct Acks {
    ack_every: u32,
    delayed_ack_timeout: Span,
}

fn read_acks(s: &mut Section) -> Acks {
    Acks {
        ack_every: s.get(
            key(
                "ack_every",
                "Number of segments, full or not, after which the receiver sends an ACK at the \
                 latest (RFC 5681, 4.2: 2); with 1 every segment is acknowledged.",
            )
            .default("2")
            .range("1", "1000"),
        ),
        delayed_ack_timeout: s.get(
            key(
                "delayed_ack_timeout",
                "Longest time for which an ACK is delayed (Linux, TCP_DELACK_MIN: 40 ms).",
            )
            .default("40 ms")
            .range("0 s", "500 ms"),
        ),
    }
}

struct Timers {
    min_rto: Span,
    max_rto: Span,
    initial_rto: Span,
    granularity: Span,
    time_wait: Span,
}

fn read_timers(s: &mut Section, notes: &mut Vec<String>) -> Timers {
    let min_rto: Span = s.get(
        key(
            "min_rto",
            "Lower bound of the retransmission timeout (Linux, TCP_RTO_MIN: \
                        200 ms; RFC 6298, 2.4: 1 s).",
        )
        .default("200 ms")
        .range("1 us", "1 h"),
    );
    let max_rto = s.get(
        key("max_rto", "Upper bound of the retransmission timeout (Linux, TCP_RTO_MAX: 120 s).")
            .default("120 s")
            .range("1 us", "1 h"),
    );
    let initial_rto = s.get(
        key(
            "initial_rto",
            "Retransmission timeout of the SYN, and until the first round-trip sample (RFC 6298, \
             2.1).",
        )
        .default("1 s")
        .range("1 us", "1 h"),
    );
    let granularity: Span = s.get(
        key(
            "granularity",
            "Timer granularity G of RFC 6298; timeouts are rounded up to a \
                         multiple of it (Linux with HZ = 1000: 1 ms).",
        )
        .default("1 ms")
        .range("1 ns", "10 s"),
    );
    s.demand(min_rto <= max_rto, &["min_rto", "max_rto"], || {
        format!("must be at most max_rto, which is {max_rto}")
    });
    s.demand(initial_rto <= max_rto, &["initial_rto", "max_rto"], || {
        format!("must be at most max_rto, which is {max_rto}")
    });
    if min_rto < granularity && s.good(&["min_rto", "granularity"]) {
        notes.push(format!(
            "{}.min_rto ({min_rto}) is below the timer granularity: timeouts last at \
             least {granularity}",
            s.path()
        ));
    }
    let time_wait = s.get(
        key(
            "time_wait",
            "Time for which a closed endpoint still answers late packets (Linux: 60 s, against \
             old duplicates; in the simulation old duplicates cannot occur).",
        )
        .default("1 s")
        .range("0 s", "1 h"),
    );
    Timers { min_rto, max_rto, initial_rto, granularity, time_wait }
}

/// Reads whether Nagle's algorithm is on.
fn read_nagle(s: &mut Section) -> bool {
    s.get(
        key(
            "nagle",
            "Whether Nagle's algorithm is used: a segment that is not full waits while another \
             one that is not full is unacknowledged (RFC 896, Minshall's variant as in Linux; \
             Hadoop and most services switch it off).",
        )
        .default("false"),
    )
}
