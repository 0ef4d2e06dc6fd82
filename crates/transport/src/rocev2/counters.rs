//! Counters of queue pairs.

use serde::{Deserialize, Serialize};

/// Counters of one end of a queue pair, or sums over all ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Packets with payload sent, including retransmissions.
    pub packets: u64,
    /// Packets retransmitted.
    pub retransmits: u64,
    /// Payload bytes retransmitted.
    pub retransmitted_bytes: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Acknowledgements sent.
    pub acks: u64,
    /// Negative acknowledgements sent.
    pub naks: u64,
    /// Packets received out of sequence, and dropped.
    pub out_of_sequence: u64,
    /// Packets received without their payload, which a queue has cut.
    pub trimmed: u64,
    /// Packets received whose payload had arrived before.
    pub duplicates: u64,
    /// Packets received with a CE mark.
    pub marked: u64,
    /// Congestion notification packets sent.
    pub cnps: u64,
    /// Reductions of the rate by received notifications.
    pub cuts: u64,
}

impl Counters {
    /// Adds the counters of another end.
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
