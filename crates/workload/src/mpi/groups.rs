//! Groups of ranks (communicators of MPI, process groups of training frameworks).
//!
//! Which ranks a group has follows from the trace alone: a definition names its ranks, or a colour
//! and a key as `MPI_Comm_split` has them (MPI 4.1, section 7.4.2), or copies another group. The
//! definitions of all ranks are therefore resolved before a run. A split or copy is also a
//! collective call of the run ([`Call::of_definition`](super::collective::Call::of_definition)).

use super::record::{Node, Record};
use super::trace::{Program, Trouble};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Largest number of members of all groups of a program together.
const MOST_MEMBERS: usize = 16 << 20;

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

    /// Adds a group that all its ranks name by the same number.
    pub(super) fn add_listed(&mut self, number: u32, members: Vec<u32>) {
        let group = self.members.len() as u32 + 1;
        for (own, &rank) in members.iter().enumerate() {
            let of_rank = self.of_rank.entry(rank).or_default();
            of_rank.insert(number, Member { group, own: own as u32 });
        }
        self.members.push(members);
    }

    /// Resolves the definitions of all ranks of a program. Fails with an error message if they
    /// contradict each other.
    pub fn of(program: &Program) -> Result<Groups, String> {
        let mut resolving = Resolving::default();
        if !program.has_groups().map_err(|trouble| trouble.to_string())? {
            return Ok(Groups::default());
        }
        for rank in 0..program.ranks() {
            for found in program.definitions(rank) {
                let node = found.map_err(|trouble: Trouble| trouble.to_string())?;
                resolving.define(rank, node)?;
            }
        }
        resolving.resolve(program.ranks())
    }
}

/// Splits and copies of one parent by one rank: number of the parent in the trace of the rank →
/// definitions in the order of the trace.
type Pending = BTreeMap<u32, VecDeque<Definition>>;

/// Groups while they are resolved.
#[derive(Default)]
struct Resolving {
    groups: Groups,
    /// Group by its number in traces and its ranks, for groups that are listed by several ranks.
    listed: BTreeMap<(u32, Vec<u32>), u32>,
    pending: BTreeMap<u32, Pending>,
    held: usize,
}

impl Resolving {
    fn define(&mut self, rank: u32, node: Node) -> Result<(), String> {
        let Record::Group(definition) = node.record else { return Ok(()) };
        let Definition { number, how } = *definition;
        let How::Ranks(members) = how else {
            let definition = Definition { number, how };
            self.pending
                .entry(rank)
                .or_default()
                .entry(node.group)
                .or_default()
                .push_back(definition);
            return Ok(());
        };
        let mut sorted = members.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() < members.len() || sorted.binary_search(&rank).is_err() {
            return Err(format!(
                "rank {rank} defines the group {number}, which must have this rank, and each rank once"
            ));
        }
        let group = match self.listed.get(&(number, members.clone())) {
            Some(&group) => group,
            None => {
                let group = self.add(members.clone())?;
                self.listed.insert((number, members), group);
                group
            }
        };
        let own = self.groups.members[group as usize - 1].iter().position(|&member| member == rank);
        self.name(rank, number, Member { group, own: own.expect("checked above") as u32 })
    }

    fn add(&mut self, members: Vec<u32>) -> Result<u32, String> {
        self.held += members.len();
        if self.held > MOST_MEMBERS {
            return Err(format!("the groups have more than {MOST_MEMBERS} members together"));
        }
        self.groups.members.push(members);
        Ok(self.groups.members.len() as u32)
    }

    fn name(&mut self, rank: u32, number: u32, member: Member) -> Result<(), String> {
        match self.groups.of_rank.entry(rank).or_default().insert(number, member) {
            None => Ok(()),
            Some(_) => Err(format!("rank {rank} defines the group {number} twice")),
        }
    }

    /// Resolves splits and copies. A group is resolved when all its ranks have its number.
    fn resolve(mut self, ranks: u32) -> Result<Groups, String> {
        // groups whose splits and copies are not resolved yet, each with the number by which each
        // of its ranks names it
        let mut open: Vec<(u32, BTreeMap<u32, u32>)> = vec![(0, BTreeMap::new())];
        for (&(number, ref members), &group) in &self.listed {
            open.push((group, members.iter().map(|&rank| (rank, number)).collect()));
        }
        while let Some((parent, numbers)) = open.pop() {
            let members: Vec<u32> = match self.groups.members(parent) {
                Some(members) => members.to_vec(),
                None if self.pending.is_empty() => Vec::new(),
                None => (0..ranks).collect(),
            };
            let number = |rank: &u32| numbers.get(rank).copied().unwrap_or(0);
            loop {
                let made: Vec<Option<Definition>> = members
                    .iter()
                    .map(|rank| self.pending.get_mut(rank)?.get_mut(&number(rank))?.pop_front())
                    .collect();
                if made.iter().all(Option::is_none) {
                    break;
                }
                open.extend(self.of_parent(&members, made)?);
            }
        }
        let left = self.pending.iter().find_map(|(rank, parents)| {
            let (parent, of) = parents.iter().find(|(_, of)| !of.is_empty())?;
            Some((*rank, *parent, of.front()?.number))
        });
        match left {
            None => Ok(self.groups),
            Some((rank, parent, number)) => Err(format!(
                "rank {rank} defines the group {number} from the group {parent}, which it does not have"
            )),
        }
    }

    /// Adds the groups of one split or copy of a parent; `made` has the definition of each member.
    /// Returns the new groups, with the number by which each rank names it.
    fn of_parent(
        &mut self,
        members: &[u32],
        made: Vec<Option<Definition>>,
    ) -> Result<Vec<(u32, BTreeMap<u32, u32>)>, String> {
        /// Members of a new group: key, number in the parent, rank, number in the rank's trace.
        type Members = Vec<(i64, usize, u32, u32)>;
        let mut by_color: BTreeMap<i64, Members> = BTreeMap::new();
        let (mut splits, mut dups) = (None, None);
        for (at, (definition, &rank)) in made.into_iter().zip(members).enumerate() {
            let Some(Definition { number, how }) = definition else {
                return Err(format!(
                    "rank {rank} takes part in fewer comm_split and comm_dup of a group than its \
                     other ranks"
                ));
            };
            let (color, key) = match how {
                How::Split { color, key } => {
                    splits = splits.or(Some(rank));
                    (color, key)
                }
                _ => {
                    dups = dups.or(Some(rank));
                    (0, 0)
                }
            };
            if color >= 0 {
                by_color.entry(color).or_default().push((key, at, rank, number));
            }
        }
        if let (Some(a), Some(b)) = (splits, dups) {
            return Err(format!(
                "rank {a} calls comm_split where rank {b} calls comm_dup; all ranks of a group must \
                 make the same calls in the same order"
            ));
        }
        let mut groups = Vec::new();
        for (_, mut of) in by_color {
            of.sort_unstable();
            let group = self.add(of.iter().map(|&(_, _, rank, _)| rank).collect())?;
            for (own, &(_, _, rank, number)) in of.iter().enumerate() {
                self.name(rank, number, Member { group, own: own as u32 })?;
            }
            groups.push((group, of.into_iter().map(|(.., rank, number)| (rank, number)).collect()));
        }
        Ok(groups)
    }
}
