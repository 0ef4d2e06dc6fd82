//! Source of the records (actions) of a rank: a trace file that is read while the rank continues,
//! or a generator.
//!
//! Only one block of a file is in memory. A checkpoint contains the position of the next line, and
//! no part of the trace. The file is opened for each block, since there may be more ranks than a
//! process may have open files. A trace is untrusted: length and number of lines are limited.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

use super::cg::Cg;
use super::groups::Groups;
use super::record::{Fault, Known, Node, Record, defines, parse, rank_of, shown};
use super::training::{Training, TrainingConfig};
use eastwest_engine::interrupt;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Bytes of a trace file that are read at one time.
const BLOCK: usize = 16 << 10;
/// Longest line of a trace in bytes: long enough for a call with sizes for 16,384 ranks.
const LONGEST_LINE: usize = 1 << 20;
/// Largest number of lines of a trace file.
const MOST_LINES: u64 = 1_000_000_000;

/// A trace file of an MPI program.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TraceFile {
    /// Name of the file in error messages, as the user gave it.
    pub name: String,
    /// Path of the trace file on disk.
    pub path: PathBuf,
}

/// MPI program: source of the records (actions) of all ranks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Program {
    /// One trace file for each rank, in the order of the ranks.
    Files(Vec<TraceFile>),
    /// One trace file with the lines of all ranks, and the number of ranks.
    Merged(TraceFile, u32),
    /// Generated records of the benchmark NAS CG.
    Cg(super::cg::CgConfig),
    /// Generated nodes of a training job.
    Training(TrainingConfig),
}

impl Program {
    /// Returns the number of ranks of the program.
    pub fn ranks(&self) -> u32 {
        match self {
            Program::Files(files) => u32::try_from(files.len()).unwrap_or(u32::MAX),
            Program::Merged(_, ranks) => *ranks,
            Program::Cg(config) => config.ranks,
            Program::Training(config) => config.ranks(),
        }
    }

    /// Returns the nodes of a rank; the iteration ends at the first error.
    pub fn nodes(&self, rank: u32, groups: &Groups) -> impl Iterator<Item = Result<Node, Trouble>> {
        let mut source = Some(self.source(rank));
        std::iter::from_fn(move || {
            let next = source.as_mut()?.next(groups).transpose();
            if !matches!(next, Some(Ok(_))) {
                source = None;
            }
            next
        })
    }

    /// Returns whether the records of a rank are nodes with explicit dependencies; if not, they are
    /// a sequence.
    pub fn is_graph(&self, rank: u32, groups: &Groups) -> Result<bool, Trouble> {
        let mut source = self.source(rank);
        source.next(groups)?;
        Ok(source.is_graph())
    }

    /// Returns the definitions of groups in the trace of a rank; other records are not parsed. The
    /// iteration ends at the first error.
    pub(super) fn definitions(&self, rank: u32) -> impl Iterator<Item = Result<Node, Trouble>> {
        let mut source = Some(self.source(rank));
        std::iter::from_fn(move || {
            let next = match source.as_mut()? {
                Source::File(lines) => lines.next_where(&Groups::default(), true).transpose(),
                Source::Cg(_) | Source::Training(_) => None,
            };
            if !matches!(next, Some(Ok(_))) {
                source = None;
            }
            next
        })
    }

    /// Returns whether a trace file of the program defines groups.
    pub(super) fn has_groups(&self) -> Result<bool, Trouble> {
        let ranks = self.ranks();
        let defines_any = |file: &TraceFile| Lines::new(file, 0, ranks).any(defines);
        match self {
            Program::Files(files) => {
                for file in files {
                    if defines_any(file)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Program::Merged(file, _) => defines_any(file),
            Program::Cg(_) | Program::Training(_) => Ok(false),
        }
    }

    /// Returns the source of the records of a rank, at its first record.
    pub(super) fn source(&self, rank: u32) -> Source {
        let ranks = self.ranks();
        match self {
            Program::Files(files) => Source::File(Lines::new(&files[rank as usize], rank, ranks)),
            Program::Merged(file, _) => {
                Source::File(Lines { merged: true, ..Lines::new(file, rank, ranks) })
            }
            Program::Cg(config) => Source::Cg(Cg::new(*config, rank)),
            Program::Training(config) => Source::Training(Training::new(config.clone(), rank)),
        }
    }
}

/// An error in a trace file, with its line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trouble {
    /// Name of the trace file with the error, as the user gave it.
    pub file: String,
    /// Line of the error from 1; 0 for the file as a whole.
    pub line: u64,
    /// Description of the error in the trace.
    pub what: String,
}

impl std::fmt::Display for Trouble {
    /// Writes the error in the form `cg/rank-003.txt:17: found "0 sned 1", expected …`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.what),
            line => write!(f, "{}:{line}: {}", self.file, self.what),
        }
    }
}

/// Source of the records of one rank: lines of a trace file, or a generator.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Source {
    File(Lines),
    Cg(Cg),
    Training(Training),
}

impl Source {
    /// Returns the next node of the rank; `None` after the last one.
    pub fn next(&mut self, groups: &Groups) -> Result<Option<Node>, Trouble> {
        match self {
            Source::File(lines) => lines.next_where(groups, false),
            Source::Cg(cg) => Ok(cg.next().map(Node::in_sequence)),
            Source::Training(training) => Ok(training.next()),
        }
    }

    /// Returns whether the nodes of the rank have explicit dependencies; if not, they are a
    /// sequence. Known after the first node.
    pub fn is_graph(&self) -> bool {
        matches!(self, Source::File(Lines { node: Some(_), .. }) | Source::Training(_))
    }
}

/// Reader of the lines of one rank in a trace file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Lines {
    file: TraceFile,
    rank: u32,
    ranks: u32,
    /// Whether the file also has lines of other ranks.
    merged: bool,
    /// Bytes of an element in records without a data type.
    element: u64,
    /// Number of the next node if the records of the rank are a graph; `None` in a sequence.
    node: Option<u32>,
    /// Whether a record of the rank was read.
    started: bool,
    /// Numbers of the groups that the lines read so far define.
    defined: BTreeSet<u32>,
    /// Position of the next line in the file, in bytes.
    offset: u64,
    /// Number of the next line in the file, from 0.
    line: u64,
    /// Bytes of the file that were read and are in memory.
    #[serde(skip)]
    block: Vec<u8>,
    /// Number of bytes at the beginning of `block` that belong to lines already returned.
    #[serde(skip)]
    used: usize,
    /// Whether `block` ends at the end of the file.
    #[serde(skip)]
    at_end: bool,
}

impl Lines {
    fn new(file: &TraceFile, rank: u32, ranks: u32) -> Lines {
        Lines {
            file: file.clone(),
            rank,
            ranks,
            merged: false,
            element: 1,
            node: None,
            started: false,
            defined: BTreeSet::new(),
            offset: 0,
            line: 0,
            block: Vec::new(),
            used: 0,
            at_end: false,
        }
    }

    fn trouble(&self, what: String) -> Trouble {
        Trouble { file: self.file.name.clone(), line: self.line, what }
    }

    /// Returns the next node of the rank, if `definitions` the next definition of a group; `None`
    /// after the last one.
    fn next_where(&mut self, groups: &Groups, definitions: bool) -> Result<Option<Node>, Trouble> {
        while let Some(length) = self.whole_line()? {
            interrupt::steps(8);
            let line = &self.block[self.used..self.used + length];
            let left_out = definitions && !defines(line)
                || self.merged && rank_of(line).is_some_and(|r| r != self.rank);
            let parsed = if left_out { Ok(None) } else { self.parse(line, groups, definitions) };
            self.line += 1;
            self.used += length;
            self.offset += length as u64;
            if self.line > MOST_LINES {
                return Err(self.trouble(format!(
                    "the file has more than {MOST_LINES} lines, which is the maximum"
                )));
            }
            match parsed {
                Ok(None) => {}
                Ok(Some(node)) => {
                    self.started = true;
                    match &node.record {
                        Record::Graph => {
                            self.node = Some(0);
                            continue;
                        }
                        Record::Init { element } => self.element = *element,
                        Record::Group(definition) => {
                            self.defined.insert(definition.number);
                        }
                        _ => {}
                    }
                    self.node = self.node.map(|number| number + 1);
                    return Ok(Some(node));
                }
                Err(Fault { found, expected, left_out }) => {
                    let way_out = match left_out {
                        Some(_) => "; eastwest trace import --lossy leaves such calls out",
                        None => "",
                    };
                    let what = format!("found {found}, expected {expected}{way_out}");
                    return Err(self.trouble(what));
                }
            }
        }
        Ok(None)
    }

    fn parse(
        &self,
        line: &[u8],
        groups: &Groups,
        definitions: bool,
    ) -> Result<Option<Node>, Fault> {
        // The sizes of groups and the form of the trace do not matter for definitions, and are not
        // known while they are read.
        let size = |number| match definitions {
            true => Some(self.ranks),
            false if self.defined.contains(&number) => groups.size(self.rank, number),
            false => None,
        };
        let node = if definitions { Some(u32::MAX - 1) } else { self.node };
        let known = Known { ranks: self.ranks, element: self.element, group: &size, node };
        match parse(line, known)? {
            Some((rank, _)) if rank != self.rank => Err(Fault::new(
                format!("the line {} of rank {rank}", shown(line)),
                format!("lines of rank {} only", self.rank),
            )),
            Some((_, Node { record: Record::Graph, .. })) if self.started => {
                Err(Fault::new("the call graph", "graph as the first record of a rank only"))
            }
            found => Ok(found.map(|(_, node)| node)),
        }
    }

    /// Returns whether a predicate is true for any of the remaining lines.
    fn any(mut self, predicate: impl Fn(&[u8]) -> bool) -> Result<bool, Trouble> {
        while let Some(length) = self.whole_line()? {
            interrupt::steps(8);
            if predicate(&self.block[self.used..self.used + length]) {
                return Ok(true);
            }
            self.used += length;
            self.offset += length as u64;
            self.line += 1;
        }
        Ok(false)
    }

    /// Reads until the whole next line is in the block. Returns the length of the line with its
    /// line feed; `None` at the end of the file.
    fn whole_line(&mut self) -> Result<Option<usize>, Trouble> {
        let mut looked = 0;
        loop {
            let rest = &self.block[self.used..];
            if let Some(at) = rest[looked..].iter().position(|&byte| byte == b'\n') {
                return Ok(Some(looked + at + 1));
            }
            if self.at_end {
                return Ok((!rest.is_empty()).then_some(rest.len()));
            }
            looked = rest.len();
            if looked > LONGEST_LINE {
                self.line += 1;
                return Err(self.trouble(format!(
                    "the line has more than {LONGEST_LINE} bytes, which is the maximum"
                )));
            }
            self.fill().map_err(|error| {
                self.trouble(format!(
                    "the file cannot be read from line {} on: {error}",
                    self.line + 1
                ))
            })?;
        }
    }

    fn fill(&mut self) -> std::io::Result<()> {
        self.block.drain(..self.used);
        self.used = 0;
        let mut file = open(&self.file.path)?;
        let held = self.block.len();
        file.seek(SeekFrom::Start(self.offset + held as u64))?;
        let want = BLOCK.max(held) as u64;
        let read = file.take(want).read_to_end(&mut self.block)?;
        self.at_end = (read as u64) < want;
        Ok(())
    }
}

/// Returns the largest rank at the beginning of a line of a trace file; `None` if no line has a
/// rank.
pub(super) fn largest_rank(file: &TraceFile) -> Result<Option<u32>, Trouble> {
    let mut lines = Lines::new(file, 0, u32::MAX);
    let mut largest = None;
    while let Some(length) = lines.whole_line()? {
        interrupt::steps(8);
        largest = largest.max(rank_of(&lines.block[lines.used..lines.used + length]));
        lines.used += length;
        lines.offset += length as u64;
        lines.line += 1;
    }
    Ok(largest)
}

/// Opens a file; refuses files that are not regular, because reading from a named pipe could block
/// for ever.
fn open(path: &Path) -> std::io::Result<File> {
    if !path.metadata()?.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    File::open(path)
}
