//! What `tcpi_…` names and constants mean for the simulated endpoint.
//!
//! Linux counts segments where the simulated endpoint counts bytes: numbers of segments here are bytes
//! divided by the segment size, the window rounded down and the others up.

use crate::host::Host;
use crate::problem::hint;
use eastwest_transport::tcp::info::ConnectionState;
use eastwest_types::Time;

const CONSTANTS: [(&str, i64); 22] = [
    ("TCP_CA_Open", 0),
    ("TCP_CA_Disorder", 1),
    ("TCP_CA_CWR", 2),
    ("TCP_CA_Recovery", 3),
    ("TCP_CA_Loss", 4),
    ("TCP_ESTABLISHED", 1),
    ("TCP_SYN_SENT", 2),
    ("TCP_SYN_RECV", 3),
    ("TCP_FIN_WAIT1", 4),
    ("TCP_FIN_WAIT2", 5),
    ("TCP_TIME_WAIT", 6),
    ("TCP_CLOSE", 7),
    ("TCP_CLOSE_WAIT", 8),
    ("TCP_LAST_ACK", 9),
    ("TCP_LISTEN", 10),
    ("TCPI_OPT_TIMESTAMPS", 1),
    ("TCPI_OPT_SACK", 2),
    ("TCPI_OPT_WSCALE", 4),
    ("TCPI_OPT_ECN", 8),
    ("TCP_CLOSING", 11),
    ("TCPI_OPT_ECN_SEEN", 16),
    ("TCPI_OPT_SYN_DATA", 32),
];

const FIELDS: [&str; 23] = [
    "tcpi_state",
    "tcpi_ca_state",
    "tcpi_retransmits",
    "tcpi_probes",
    "tcpi_backoff",
    "tcpi_rto",
    "tcpi_snd_mss",
    "tcpi_unacked",
    "tcpi_sacked",
    "tcpi_lost",
    "tcpi_retrans",
    "tcpi_rtt",
    "tcpi_snd_ssthresh",
    "tcpi_snd_cwnd",
    "tcpi_total_retrans",
    "tcpi_notsent_bytes",
    "tcpi_bytes_received",
    "tcpi_dsack_dups",
    "tcpi_reordering",
    "tcpi_advmss",
    "tcpi_last_data_recv",
    "tcpi_busy_time",
    "tcpi_rwnd_limited",
];

/// Linux's threshold before the first loss.
const NO_THRESHOLD: i64 = 0x7fff_ffff;

/// The value of a name; `mss` is what the endpoint has announced.
pub fn look_up(name: &str, host: Option<&Host>, now: Time, mss: u16) -> Result<i64, String> {
    if let Some(constant) = CONSTANTS.iter().find(|c| c.0 == name) {
        return Ok(constant.1);
    }
    if !FIELDS.contains(&name) {
        if name.starts_with("tcpi_") {
            let near = hint(name, FIELDS);
            return Err(format!("the simulated endpoint does not keep '{name}'{near}"));
        }
        return Err(format!("unknown name '{name}'"));
    }
    let host = host.ok_or_else(|| format!("'{name}' is asked before there is a connection"))?;
    field(name, host, now, mss).ok_or_else(|| format!("unknown name '{name}'"))
}

fn field(name: &str, host: &Host, now: Time, mss: u16) -> Option<i64> {
    let stack = host.stack();
    let (info, sender) = (stack.info(host.id()), stack.sender_state(host.id()));
    let counters = stack.endpoint(host.id()).counters();
    let segment = u64::from(stack.config().segment);
    let segments = |bytes: u64| bytes.div_ceil(segment);
    let number: u64 = match name {
        "tcpi_state" => state(info.connection),
        "tcpi_ca_state" => info.congestion as u64,
        "tcpi_retransmits" => u64::from(info.retries),
        "tcpi_probes" => u64::from(info.probes),
        "tcpi_backoff" => u64::from(info.backoff),
        "tcpi_rto" => sender.rto.0 / 1_000_000,
        "tcpi_snd_mss" => segment,
        "tcpi_unacked" => segments(info.outstanding),
        "tcpi_sacked" => segments(info.sacked),
        "tcpi_lost" => segments(info.lost),
        "tcpi_retrans" => segments(info.resent),
        "tcpi_rtt" => sender.srtt.map_or(0, |s| s.0 / 1_000_000),
        "tcpi_snd_ssthresh" => match sender.ssthresh {
            Some(bytes) => bytes / segment,
            None => return Some(NO_THRESHOLD),
        },
        "tcpi_snd_cwnd" => sender.cwnd / segment,
        "tcpi_total_retrans" => u64::from(counters.retransmits),
        "tcpi_notsent_bytes" => host.unsent(),
        "tcpi_advmss" => u64::from(mss),
        "tcpi_last_data_recv" => now.since(host.last_data()).0 / 1_000_000_000,
        "tcpi_busy_time" => host.limits(now).0.0 / 1_000_000,
        "tcpi_rwnd_limited" => host.limits(now).1.0 / 1_000_000,
        "tcpi_bytes_received" => info.received,
        "tcpi_reordering" => u64::from(info.reordering),
        "tcpi_dsack_dups" => u64::from(counters.dsacks),
        _ => return None,
    };
    Some(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Linux's number.
fn state(state: ConnectionState) -> u64 {
    match state {
        ConnectionState::Established => 1,
        ConnectionState::SynSent => 2,
        ConnectionState::SynReceived => 3,
        ConnectionState::FinWait1 => 4,
        ConnectionState::FinWait2 => 5,
        ConnectionState::TimeWait => 6,
        ConnectionState::Failed => 7,
        ConnectionState::CloseWait => 8,
        ConnectionState::LastAck => 9,
        ConnectionState::Listen => 10,
    }
}
