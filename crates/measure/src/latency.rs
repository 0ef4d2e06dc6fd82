//! Latency of packets, as histograms.

use crate::table;
use crate::table::Names;

table! {
    /// Histograms of the latency of packets: the time from the creation of a packet at its host
    /// until it reaches the transport of the other host. It consists of queueing, transmission,
    /// propagation and the receiver's processing jitter. The latency of a retransmission counts
    /// from its own sending. One row for each bucket that is not empty; a bucket is at most 0.8 %
    /// wide.
    pub Latency = "latency"
    of (class, kind, (upper_us, count)) in (u32, &'static str, (f64, u64)), names: &'a Names;

    /// traffic class of the packets
    class: label(&names.classes) = class;

    /// `data` for packets with payload and datagrams, `ack` for all others (including SYN and FIN)
    kind: few = kind;

    /// upper bound of the bucket in µs, not included in the bucket
    upper_us: f64 = upper_us;

    /// number of packets in the bucket
    count: u64 = count;
}
