//! Counts of a port by group of packets: arrivals, marks and drops.
//!
//! Marks and drops are rare and are counted at every port. Arrivals are counted only at ports in
//! `measure.ports`, since this count costs time for every packet.

use crate::losses::Cause;
use eastwest_types::PacketKind;
use serde::{Deserialize, Serialize};

/// Group of packets that a port counts together, by traffic class, kind and ECN support.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group {
    /// Traffic class at the port; 0 if the port has a single queue.
    pub class: u8,
    /// Kind of the packets.
    pub kind: PacketKind,
    /// Whether the transport of the packets supports ECN (ECT).
    pub ect: bool,
}

/// Counts (arrivals, marks and losses) of one group of packets at a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Number of arrivals; 0 if `measure.ports` does not name the port.
    pub arrivals: u64,
    /// Number of packets that the port marked with CE ("congestion experienced").
    pub marks: u64,
    /// Number of lost packets by cause, indexed by the number of the [`Cause`].
    pub lost: [u64; Cause::ALL.len()],
}

impl Counts {
    /// Returns the number of lost packets, summed over all causes.
    pub fn drops(&self) -> u64 {
        self.lost.iter().sum()
    }

    /// Adds the counts of another group of packets.
    pub fn add(&mut self, other: &Counts) {
        self.arrivals += other.arrivals;
        self.marks += other.marks;
        self.lost.iter_mut().zip(other.lost).for_each(|(sum, n)| *sum += n);
    }
}

/// Counts of a port that has neither marked nor dropped a packet.
pub static NOTHING: Account = Account { classes: Vec::new() };

/// Counts of one port (arrivals, marks and drops) by group of packets.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Account {
    /// Counts by traffic class, kind of packet, and whether packets are ECT (0 or 1).
    classes: Vec<[[Counts; 2]; PacketKind::COUNT]>,
}

impl Account {
    /// Returns the counts of a group of packets for modification.
    pub fn of(&mut self, group: Group) -> &mut Counts {
        let class = usize::from(group.class);
        if class >= self.classes.len() {
            self.classes.resize(class + 1, Default::default());
        }
        &mut self.classes[class][group.kind as usize][usize::from(group.ect)]
    }

    /// Returns the counts of each group of packets that has at least one count above 0.
    pub fn rows(&self) -> impl Iterator<Item = (Group, &Counts)> {
        let classes = self.classes.iter().zip(0u8..);
        let all = classes.flat_map(|(kinds, class)| {
            PacketKind::ALL.into_iter().zip(kinds).flat_map(move |(kind, both)| {
                let group = move |ect| Group { class, kind, ect };
                [(group(false), &both[0]), (group(true), &both[1])]
            })
        });
        all.filter(|(_, counts)| **counts != Counts::default())
    }

    /// Returns sums by kind of packet; `of` selects the count that is summed.
    pub fn by_kind(&self, of: impl Fn(&Counts) -> u64) -> [u64; PacketKind::COUNT] {
        let mut sums = [0; PacketKind::COUNT];
        self.rows().for_each(|(group, counts)| sums[group.kind as usize] += of(counts));
        sums
    }

    /// Returns the number of packets lost at the port, by kind of packet.
    pub fn drops(&self) -> [u64; PacketKind::COUNT] {
        self.by_kind(Counts::drops)
    }

    /// Returns the number of packets marked with CE at the port, by kind of packet.
    pub fn marks(&self) -> [u64; PacketKind::COUNT] {
        self.by_kind(|counts| counts.marks)
    }

    /// Returns the number of packets marked with CE at the port.
    pub fn marked(&self) -> u64 {
        self.classes.as_flattened().as_flattened().iter().map(|counts| counts.marks).sum()
    }

    /// Returns the number of packets lost at the port for the cause `cause`.
    pub fn lost_to(&self, cause: Cause) -> u64 {
        self.by_kind(|counts| counts.lost[cause as usize]).iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_keep_apart_what_sums_put_together() {
        let mut account = Account::default();
        let group = |class, kind, ect| Group { class, kind, ect };
        account.of(group(2, PacketKind::Data, true)).marks = 5;
        account.of(group(0, PacketKind::Data, false)).lost[Cause::Early as usize] = 3;
        account.of(group(0, PacketKind::EceAck, false)).lost[Cause::QueueFull as usize] = 2;
        let rows: Vec<Group> = account.rows().map(|(group, _)| group).collect();
        let expected = [
            group(0, PacketKind::Data, false),
            group(0, PacketKind::EceAck, false),
            group(2, PacketKind::Data, true),
        ];
        assert_eq!(rows, expected);
        assert_eq!(account.drops(), [3, 0, 0, 2, 0, 0, 0, 0]);
        assert_eq!(account.marks(), [5, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!((account.lost_to(Cause::Early), account.lost_to(Cause::Loss)), (3, 0));
    }
}
