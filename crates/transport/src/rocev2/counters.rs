//! Counters of queue pairs.

use serde::{Deserialize, Serialize};

/// Counters of one end of a queue pair, or sums over all ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Number of packets with payload sent, including retransmissions.
    pub packets: u64,
    /// Number of packets retransmitted.
    pub retransmits: u64,
    /// Number of payload bytes retransmitted.
    pub retransmitted_bytes: u64,
    /// Number of expiries of the retransmission timer.
    pub timeouts: u64,
    /// Number of acknowledgements sent.
    pub acks: u64,
    /// Number of negative acknowledgements (NAKs) sent.
    pub naks: u64,
    /// Number of packets received out of sequence, which were dropped.
    pub out_of_sequence: u64,
    /// Number of packets received without payload, because a queue has cut it off.
    pub trimmed: u64,
    /// Number of packets received whose payload had arrived before.
    pub duplicates: u64,
    /// Number of packets received with a CE mark.
    pub marked: u64,
    /// Number of congestion notification packets sent.
    pub cnps: u64,
    /// Number of reductions of the sending rate because of received congestion notification
    /// packets.
    pub cuts: u64,
}

impl Counters {
    /// Adds the counters of another end to these counters.
    pub fn add(&mut self, other: &Counters) {
        self.packets += other.packets;
        self.retransmits += other.retransmits;
        self.retransmitted_bytes += other.retransmitted_bytes;
        self.timeouts += other.timeouts;
        self.acks += other.acks;
        self.naks += other.naks;
        self.out_of_sequence += other.out_of_sequence;
        self.trimmed += other.trimmed;
        self.duplicates += other.duplicates;
        self.marked += other.marked;
        self.cnps += other.cnps;
        self.cuts += other.cuts;
    }
}
