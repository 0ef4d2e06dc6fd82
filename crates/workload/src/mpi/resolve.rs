//! Which ranks each group of a program has: the definitions of all ranks are read and combined
//! before a run.

use super::groups::{Definition, Groups, How, Member};
use super::record::{Node, Record};
use super::trace::{Program, Trouble};
use std::collections::{BTreeMap, VecDeque};

/// Largest number of members of all groups of a program together.
const MOST_MEMBERS: usize = 16 << 20;

/// Resolves the definitions of groups by all ranks of a program. Fails with an error message if
/// they contradict each other.
pub fn groups_of(program: &Program) -> Result<Groups, String> {
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

/// Splits and copies of one parent by one rank: number of the parent in the trace of the rank →
/// definitions in the order of the trace.
type Pending = BTreeMap<u32, VecDeque<Definition>>;

/// A group whose splits and copies are not resolved yet.
struct Open {
    group: u32,
    /// Number by which each rank of the group names it; without an entry it is 0.
    numbers: BTreeMap<u32, u32>,
}

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
        let own =
            self.groups.members(group).into_iter().flatten().position(|&member| member == rank);
        self.name(rank, number, Member { group, own: own.expect("checked above") as u32 })
    }

    fn add(&mut self, members: Vec<u32>) -> Result<u32, String> {
        self.held += members.len();
        if self.held > MOST_MEMBERS {
            return Err(format!("the groups have more than {MOST_MEMBERS} members together"));
        }
        Ok(self.groups.add(members))
    }

    fn name(&mut self, rank: u32, number: u32, member: Member) -> Result<(), String> {
        match self.groups.name(rank, number, member) {
            true => Ok(()),
            false => Err(format!("rank {rank} defines the group {number} twice")),
        }
    }

    /// Resolves splits and copies. A group is resolved when all its ranks have its number.
    fn resolve(mut self, ranks: u32) -> Result<Groups, String> {
        let mut open = vec![Open { group: 0, numbers: BTreeMap::new() }];
        for (&(number, ref members), &group) in &self.listed {
            open.push(Open {
                group,
                numbers: members.iter().map(|&rank| (rank, number)).collect(),
            });
        }
        while let Some(Open { group: parent, numbers }) = open.pop() {
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
    /// Returns the new groups.
    fn of_parent(
        &mut self,
        members: &[u32],
        made: Vec<Option<Definition>>,
    ) -> Result<Vec<Open>, String> {
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
            let numbers = of.into_iter().map(|(.., rank, number)| (rank, number)).collect();
            groups.push(Open { group, numbers });
        }
        Ok(groups)
    }
}
