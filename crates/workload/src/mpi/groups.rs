//! Groups of ranks (communicators of MPI, process groups of training frameworks).
//!
//! Which ranks a group has follows from the trace alone: a definition names its ranks, or a colour
//! and a key as `MPI_Comm_split` has them (MPI 4.1, section 7.4.2), or copies another group. The
//! definitions of all ranks are therefore [resolved](super::resolve) before a run. A split or copy
//! is also a collective call of the run
//! ([`Call::of_definition`](super::collective::Call::of_definition)).

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a rank defines a group.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum How {
    /// By the list of its ranks, in the order of their numbers in the group. No message is sent.
    Ranks(Vec<u32>),
    /// As a part of another group: ranks with equal colours form a group, in the order of their
    /// keys and then of their numbers in the other group. A rank with a negative colour is in no
    /// new group.
    Split {
        /// Colour of the rank.
        color: i64,
        /// Key of the rank.
        key: i64,
    },
    /// As a copy of another group, whose messages are matched separately.
    Dup,
}

/// Definition of a group by one of its ranks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Definition {
    /// Number of the new group in later records of the rank, from 1.
    pub number: u32,
    /// How the group is defined.
    pub how: How,
}

/// Membership of a rank in a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Member {
    /// Number of the group in the program; 0 for the group of all ranks.
    pub group: u32,
    /// Number of the rank in the group.
    pub own: u32,
}

/// Groups of a program. Group 0 has all ranks.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Groups {
    /// Ranks of each group but group 0, in the order of their numbers in the group.
    members: Vec<Vec<u32>>,
    /// Groups of each rank: number in its trace → group. Ranks without groups may be absent.
    of_rank: BTreeMap<u32, BTreeMap<u32, Member>>,
}

impl Groups {
    /// Returns the group that a rank names by a number in its trace; `None` if there is none.
    pub fn find(&self, rank: u32, number: u32) -> Option<Member> {
        match number {
            0 => Some(Member { group: 0, own: rank }),
            _ => self.of_rank.get(&rank)?.get(&number).copied(),
        }
    }

    /// Returns the ranks of a group in the order of their numbers in it; `None` for group 0, which
    /// has all ranks.
    pub fn members(&self, group: u32) -> Option<&[u32]> {
        Some(&self.members[group.checked_sub(1)? as usize])
    }

    /// Returns the number of ranks of the group that a rank names by a number in its trace.
    pub fn size(&self, rank: u32, number: u32) -> Option<u32> {
        let members = self.members(self.find(rank, number)?.group)?;
        u32::try_from(members.len()).ok()
    }

    /// Adds a group of ranks, and returns its number in the program.
    pub(super) fn add(&mut self, members: Vec<u32>) -> u32 {
        self.members.push(members);
        self.members.len() as u32
    }

    /// Lets a rank name a group by `number`. Returns false if the rank has this number already.
    pub(super) fn name(&mut self, rank: u32, number: u32, member: Member) -> bool {
        self.of_rank.entry(rank).or_default().insert(number, member).is_none()
    }

    /// Adds a group that all its ranks name by the same number.
    pub(super) fn add_listed(&mut self, number: u32, members: Vec<u32>) {
        let group = self.members.len() as u32 + 1;
        for (own, &rank) in members.iter().enumerate() {
            self.name(rank, number, Member { group, own: own as u32 });
        }
        self.add(members);
    }
}
