//! Latency of packets, as histograms.

use crate::table;
use crate::table::Names;

table! {
    /// Histograms of the latency of packets: the time from the creation of a packet at its host until it
    /// is handed to the other host's transport, which is queues, sending, propagation and the receiver's
    /// processing jitter. Retransmissions count from their own sending. One row per bucket that is not
    /// empty; a bucket is at most 0.8 % wide.
    pub Latency = "latency"
    of (class, kind, (upper_us, count)) in (u32, &'static str, (f64, u64)), names: &'a Names;

    /// traffic class
    class: label(&names.classes) = class;

    /// `data` for packets with payload and datagrams, `ack` for all others (SYN and FIN too)
    kind: few = kind;

    /// upper bound of the bucket, not included
    upper_us: f64 = upper_us;

    /// packets in the bucket
    count: u64 = count;
}
