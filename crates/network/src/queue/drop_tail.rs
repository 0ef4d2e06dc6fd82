//! First in, first out; a packet that does not fit is lost, nothing else is.

use super::{Backlog, Verdict};
use eastwest_types::Limit;

pub(super) fn at_enqueue(limit: Limit, backlog: Backlog, ip_len: u32) -> Verdict {
    let fits = match limit {
        Limit::Packets(n) => backlog.packets < n as usize,
        Limit::Bytes(b) => backlog.bytes + u64::from(ip_len) <= b,
    };
    if fits { Verdict::Enqueue } else { Verdict::Drop }
}
