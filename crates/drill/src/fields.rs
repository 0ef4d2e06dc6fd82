//! Values of the fields `tcpi_…` of `tcp_info`, and of constants, for the simulated endpoint.
//!
//! Linux counts segments, the simulated endpoint bytes. A number of segments is the number of bytes
//! divided by the segment size. It is rounded down for the congestion window and the slow-start
//! threshold, and up for other fields.

use crate::host::Host;
use crate::problem::hint;
use eastwest_transport::tcp::Counters;
use eastwest_transport::tcp::info::Info;
use eastwest_transport::tcp::sender_state::SenderState;
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

/// Slow-start threshold that Linux reports before the first loss, in segments.
const NO_THRESHOLD: u64 = 0x7fff_ffff;

/// State of the endpoint under test, from which fields of `tcp_info` are computed.
struct View<'a> {
    host: &'a Host,
    now: Time,
    mss: u16,
    info: Info,
    sender: SenderState,
    counters: Counters,
}

impl View<'_> {
    fn segments(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.host.segment())
    }
}

/// Function that computes a field of `tcp_info` from the endpoint's state.
type Take = fn(&View) -> u64;

/// Fields of `tcp_info` that the simulated endpoint has, each with the function that computes it.
const FIELDS: [(&str, Take); 23] = [
    ("tcpi_state", |v| v.info.connection as u64),
    ("tcpi_ca_state", |v| v.info.congestion as u64),
    ("tcpi_retransmits", |v| v.info.retries.into()),
    ("tcpi_probes", |v| v.info.probes.into()),
    ("tcpi_backoff", |v| v.info.backoff.into()),
    ("tcpi_rto", |v| v.sender.rto.0 / 1_000_000),
    ("tcpi_snd_mss", |v| v.host.segment()),
    ("tcpi_unacked", |v| v.segments(v.info.outstanding)),
    ("tcpi_sacked", |v| v.segments(v.info.sacked)),
    ("tcpi_lost", |v| v.segments(v.info.lost)),
    ("tcpi_retrans", |v| v.segments(v.info.resent)),
    ("tcpi_rtt", |v| v.sender.srtt.map_or(0, |s| s.0 / 1_000_000)),
    ("tcpi_snd_ssthresh", |v| v.sender.ssthresh.map_or(NO_THRESHOLD, |b| b / v.host.segment())),
    ("tcpi_snd_cwnd", |v| v.sender.cwnd / v.host.segment()),
    ("tcpi_total_retrans", |v| v.counters.retransmits.into()),
    ("tcpi_notsent_bytes", |v| v.host.unsent()),
    ("tcpi_bytes_received", |v| v.info.received),
    ("tcpi_dsack_dups", |v| v.counters.dsacks.into()),
    ("tcpi_reordering", |v| v.info.reordering.into()),
    ("tcpi_advmss", |v| v.mss.into()),
    ("tcpi_last_data_recv", |v| v.now.since(v.host.last_data()).0 / 1_000_000_000),
    ("tcpi_busy_time", |v| v.host.limits(v.now).0.0 / 1_000_000),
    ("tcpi_rwnd_limited", |v| v.host.limits(v.now).1.0 / 1_000_000),
];

/// Returns the value of a field of `tcp_info`, or of a constant such as a state of the connection,
/// by its name; an error message if the name is unknown. `mss`: MSS in bytes that the endpoint has
/// announced.
pub fn look_up(name: &str, host: Option<&Host>, now: Time, mss: u16) -> Result<i64, String> {
    if let Some(constant) = CONSTANTS.iter().find(|c| c.0 == name) {
        return Ok(constant.1);
    }
    let Some((_, field)) = FIELDS.iter().find(|f| f.0 == name) else {
        if name.starts_with("tcpi_") {
            let near = hint(name, FIELDS.map(|f| f.0));
            return Err(format!("the field '{name}' of tcp_info is not simulated{near}"));
        }
        return Err(format!(
            "unknown name '{name}': it is no variable of this script, no field of tcp_info and \
             no constant"
        ));
    };
    let host = host.ok_or_else(|| {
        format!(
            "the field '{name}' of tcp_info has no value yet: there is no connection at this \
             time of the script"
        )
    })?;
    let (stack, id) = (host.stack(), host.id());
    let (info, sender) = (stack.info(id), stack.sender_state(id));
    let counters = stack.endpoint(id).counters();
    let number = field(&View { host, now, mss, info, sender, counters });
    Ok(i64::try_from(number).unwrap_or(i64::MAX))
}
