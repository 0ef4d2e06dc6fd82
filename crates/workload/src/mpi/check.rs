//! Check of a whole program before it runs: every record is read once, and sends are compared with receives.

use super::config::MpiConfig;
use super::record::Record;
use super::trace::{Program, TraceFile, Trouble};
use std::collections::BTreeMap;

/// Most errors that are reported.
const MOST_TROUBLES: usize = 10;
/// Most streams of messages (source, destination, tag) that are compared; programs with more are not.
const MOST_STREAMS: usize = 1_000_000;

/// Numbers of records, messages, bytes and collective calls of an MPI program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Number of records of all ranks.
    pub records: u64,
    /// Number of send calls.
    pub messages: u64,
    /// Payload bytes of all sends.
    pub bytes: u64,
    /// Number of collective calls of all ranks.
    pub collectives: u64,
}

/// Reads all records. Returns their counts, or errors: the first error of each of the first ranks
/// with one, or streams of messages whose sends and receives differ in number.
pub fn check(program: &Program) -> Result<Summary, Vec<String>> {
    let mut all = Summary::default();
    let mut troubles: Vec<String> = Vec::new();
    let mut weighed = Some(BTreeMap::new());
    for rank in 0..program.ranks() {
        if let Err(trouble) = read(program, rank, &mut all, &mut weighed) {
            troubles.push(trouble.to_string());
            if troubles.len() == MOST_TROUBLES {
                break;
            }
        }
    }
    if troubles.is_empty() {
        troubles.extend(weighed.iter().flat_map(unbalanced).take(MOST_TROUBLES));
    }
    if troubles.is_empty() { Ok(all) } else { Err(troubles) }
}

/// Sends minus receives of each source, destination and tag; `None` if they cannot be compared.
type Weighed = BTreeMap<(u32, u32, i64), i64>;

fn read(
    program: &Program,
    rank: u32,
    all: &mut Summary,
    weighed: &mut Option<Weighed>,
) -> Result<(), Trouble> {
    let mut source = program.source(rank);
    while let Some(record) = source.next()? {
        all.records += 1;
        let stream = match record {
            Record::Send { to, tag, bytes, .. } => {
                all.messages += 1;
                all.bytes = all.bytes.saturating_add(bytes);
                Some(((rank, to, tag), 1))
            }
            Record::Recv { from: Some(from), tag: Some(tag), .. } => Some(((from, rank, tag), -1)),
            Record::Recv { .. } => {
                *weighed = None; // a receive of any message may be for one of many
                None
            }
            Record::Collective(_) => {
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
    Ok(())
}

fn unbalanced(streams: &Weighed) -> impl Iterator<Item = String> {
    streams.iter().filter(|(_, count)| **count != 0).map(|((from, to, tag), count)| {
        let (more, fewer, who) = match *count > 0 {
            true => ("sends", "receives", "nobody receives"),
            false => ("receives", "sends", "nobody sends"),
        };
        let n = count.unsigned_abs();
        format!(
            "rank {from} to rank {to} with tag {tag}: {n} more {more} than {fewer}: messages that {who}"
        )
    })
}

/// Returns the number of ranks of a file with the lines of all ranks: one more than the largest number in it.
pub fn ranks_of(file: &TraceFile) -> Result<u32, Trouble> {
    super::trace::largest_rank(file).and_then(|largest| match largest {
        Some(largest) if largest < MpiConfig::MOST_RANKS => Ok(largest + 1),
        Some(largest) => Err(Trouble {
            file: file.name.clone(),
            line: 0,
            what: format!("names rank {largest}: there may be {}", MpiConfig::MOST_RANKS),
        }),
        None => Err(Trouble {
            file: file.name.clone(),
            line: 0,
            what: "has a line without a rank: every line must begin with one, as in \"0 compute \
                   1e9\""
                .to_owned(),
        }),
    })
}
