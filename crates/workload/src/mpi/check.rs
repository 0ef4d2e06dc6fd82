//! Check of a whole MPI program before it runs: every record is read once, and sends are compared
//! with receives.

use super::config::MpiConfig;
use super::groups::Groups;
use super::record::{Need, Record};
use super::resolve::groups_of;
use super::trace::{Program, TraceFile, Trouble};
use std::collections::BTreeMap;

/// Largest number of errors of a program that the check reports.
const MOST_TROUBLES: usize = 10;
/// Largest number of streams of messages (source, destination, tag) whose sends and receives are
/// compared; a program with more streams is not checked for this.
const MOST_STREAMS: usize = 1_000_000;

/// Numbers of records, messages, bytes and collective calls of a whole MPI program.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Summary {
    /// Number of records of all ranks.
    pub records: u64,
    /// Number of point-to-point send calls of all ranks.
    pub messages: u64,
    /// Payload bytes of all point-to-point sends.
    pub bytes: u64,
    /// Number of collective calls of all ranks.
    pub collectives: u64,
    /// Groups that the program defines.
    pub groups: Groups,
}

/// Reads all records of a program. Returns their counts, or errors: invalid records (the first one
/// of each rank), contradicting groups, dependencies on nodes that do not exist, or streams of
/// messages with different numbers of sends and receives. At most `MOST_TROUBLES` errors are
/// returned.
pub fn check(program: &Program) -> Result<Summary, Vec<String>> {
    let groups = groups_of(program).map_err(|message| vec![message])?;
    let mut all = Summary { groups, ..Summary::default() };
    let mut troubles: Vec<String> = Vec::new();
    let mut weighed = Some(BTreeMap::new());
    let mut needed = Needed { nodes: Vec::new(), largest: BTreeMap::new() };
    for rank in 0..program.ranks() {
        if let Err(trouble) = read(program, rank, &mut all, &mut weighed, &mut needed) {
            troubles.push(trouble.to_string());
            if troubles.len() == MOST_TROUBLES {
                break;
            }
        }
    }
    if troubles.is_empty() {
        troubles.extend(needed.missing().take(MOST_TROUBLES));
    }
    if troubles.is_empty() {
        troubles.extend(weighed.iter().flat_map(unbalanced).take(MOST_TROUBLES));
    }
    if troubles.is_empty() { Ok(all) } else { Err(troubles) }
}

/// Number of sends minus number of receives of each stream (group, source, destination, tag).
type Weighed = BTreeMap<(u32, u32, u32, i64), i64>;

/// Nodes of other ranks for which nodes wait.
struct Needed {
    /// Number of nodes of each rank.
    nodes: Vec<u32>,
    /// Largest number of a node of each rank for which a node of another rank waits, and this rank.
    largest: BTreeMap<u32, (u32, u32)>,
}

impl Needed {
    fn add(&mut self, rank: u32, needs: &[Need]) {
        for need in needs.iter().filter(|need| need.rank != rank) {
            let largest = self.largest.entry(need.rank).or_insert((need.node, rank));
            *largest = (*largest).max((need.node, rank));
        }
    }

    fn missing(&self) -> impl Iterator<Item = String> {
        let is_missing =
            |rank: u32, node: u32| self.nodes.get(rank as usize).is_none_or(|&nodes| node >= nodes);
        let missing =
            self.largest.iter().filter(move |&(&rank, &(node, _))| is_missing(rank, node));
        missing.map(|(rank, (node, by))| {
            format!(
                "a node of rank {by} waits for node {node} of rank {rank}, which does not exist"
            )
        })
    }
}

fn read(
    program: &Program,
    rank: u32,
    all: &mut Summary,
    weighed: &mut Option<Weighed>,
    needed: &mut Needed,
) -> Result<(), Trouble> {
    let mut source = program.source(rank);
    let mut nodes = 0;
    while let Some(node) = source.next(&all.groups)? {
        all.records += 1;
        nodes += 1;
        needed.add(rank, &node.needs);
        let group = all.groups.find(rank, node.group).map_or(0, |member| member.group);
        let in_world = |other: u32| match all.groups.members(group) {
            Some(members) => members[other as usize],
            None => other,
        };
        let stream = match node.record {
            Record::Send { to, tag, bytes, .. } => {
                all.messages += 1;
                all.bytes = all.bytes.saturating_add(bytes);
                Some(((group, rank, in_world(to), tag), 1))
            }
            Record::Recv { from: Some(from), tag: Some(tag), .. } => {
                Some(((group, in_world(from), rank, tag), -1))
            }
            Record::Recv { .. } => {
                *weighed = None; // a receive from any rank or with any tag has no single stream
                None
            }
            Record::Collective { .. } => {
                all.collectives += 1;
                None
            }
            _ => None,
        };
        if let (Some((stream, sign)), Some(streams)) = (stream, weighed.as_mut()) {
            *streams.entry(stream).or_insert(0) += sign;
            if streams.len() > MOST_STREAMS {
                *weighed = None;
            }
        }
    }
    needed.nodes.push(nodes);
    Ok(())
}

fn unbalanced(streams: &Weighed) -> impl Iterator<Item = String> {
    streams.iter().filter(|(_, count)| **count != 0).map(|((_, from, to, tag), count)| {
        let (more, fewer, who) = match *count > 0 {
            true => ("sends", "receives", "messages are never received"),
            false => ("receives", "sends", "receives never complete"),
        };
        let n = count.unsigned_abs();
        format!(
            "messages from rank {from} to rank {to} with tag {tag}: there are {n} more {more} \
             than {fewer}, so {n} {who}"
        )
    })
}

/// Returns the number of ranks of a program whose records are all in one trace file: one more than
/// the largest rank number in the file.
pub fn ranks_of(file: &TraceFile) -> Result<u32, Trouble> {
    super::trace::largest_rank(file).and_then(|largest| match largest {
        Some(largest) if largest < MpiConfig::MOST_RANKS => Ok(largest + 1),
        Some(largest) => Err(Trouble {
            file: file.name.clone(),
            line: 0,
            what: format!(
                "names rank {largest}, but a program can have at most {} ranks, numbered from 0",
                MpiConfig::MOST_RANKS
            ),
        }),
        None => Err(Trouble {
            file: file.name.clone(),
            line: 0,
            what: "has no line that begins with the number of a rank, as \"0 compute \
                   1e9\" does"
                .to_owned(),
        }),
    })
}
