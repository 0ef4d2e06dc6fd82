//! One line of a time-independent trace: the next action of a rank.
//!
//! The format is that of SimGrid ("time-independent traces", Casanova, Desprez, Markomanolis and
//! Suter, *Simulation of MPI applications with time-independent traces*, CCPE 2015): a rank, the
//! name of a call, and its numbers, for example `0 send 1 7 3500 0`. A size is a number of elements
//! of a data type. The record gives the number of the data type; otherwise elements are bytes, or
//! doubles after `init 1`. Upper and lower case of names are equal, since older traces have
//! `allReduce`. A receive without size, or with size 0, takes a message of any size. Negative
//! sources and tags stand for `MPI_ANY_SOURCE` and `MPI_ANY_TAG`.
//!
//! Eastwest extends the format. A collective with an `i` before its name (`iallreduce`) is
//! non-blocking. Groups of ranks are defined by `group NUMBER RANK …`, `comm_split NUMBER COLOR KEY`
//! and `comm_dup NUMBER` (the last two of all ranks, or `in` another group); `in NUMBER` after a
//! call lets it use this group. After the record `graph`, the records of a rank are nodes: they
//! begin when the nodes after the word `after` have ended (`~` before a number: have begun), occupy
//! the stream after the word `on`, and have the priority after the word `priority`. `waitall` waits
//! for all nodes before it, and all nodes after it wait for it. Nodes are numbered from 0, and `2/14`
//! is node 14 of rank 2.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

use super::collective::{Call, Kind};
use super::groups::{Definition, How};
use serde::{Deserialize, Serialize};

/// Largest message in bytes, 1000 TB: far above real messages and far below an overflow.
const MOST_BYTES: f64 = 1e15;
/// Largest number of floating-point operations of one computation.
const MOST_FLOPS: f64 = 1e24;
/// Longest sleep of a rank in seconds.
const MOST_SECONDS: f64 = 1e6;

/// Bytes of each data type, by its number in SimGrid: `MPI_DOUBLE`, `MPI_INT`, `MPI_CHAR`, …,
/// `MPI_LONG_DOUBLE_INT`, the bounds `MPI_LB` and `MPI_UB`, `MPI_PACKED`, and a pointer. Data types
/// of Fortran have the size in their name.
const TYPE_BYTES: [u64; 55] = [
    8, 4, 1, 2, 8, 4, 1, 8, 1, 1, // 0: double, int, char, short, long, float, byte …
    2, 4, 8, 8, 16, 4, 1, 1, 2, 4, // 10: unsigned, long double, wchar, bool, int8 …
    8, 1, 2, 4, 8, 8, 16, 32, 8, 8, // 20: int64, uint8 …, complex, address, offset
    8, 16, 16, 8, 8, 8, 16, 16, 4, 4, // 30: pairs; 38: Fortran's reals
    8, 16, 8, 16, 32, 1, 2, 4, 8, 16, // 40: …, complex, integers
    32, 0, 0, 1, 8, // 50: a pair, bounds, packed, pointer
];

/// A node of the graph of a program: an action of a rank, and the conditions of its start.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Node {
    /// Action of the rank.
    pub record: Record,
    /// Number of the group in which the action sends, receives or meets, as in the trace of the
    /// rank; 0: all ranks. Ranks of the action are numbered in this group.
    pub group: u32,
    /// Nodes for which the node waits. In a sequence a node waits for the one before it, and this
    /// list is empty.
    pub needs: Vec<Need>,
    /// Stream of the rank that the node occupies from its start to its end; `None`: no stream.
    pub stream: Option<u16>,
    /// If several nodes wait for a stream, the largest priority starts first.
    pub priority: i32,
}

/// A node for which another node waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Need {
    /// Rank of the node.
    pub rank: u32,
    /// Number of the node in the trace of its rank, from 0 at the record after `graph`.
    pub node: u32,
    /// Whether the start of the node is sufficient; otherwise its end is needed.
    pub start: bool,
}

/// Action of a rank, one line of a trace.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Record {
    /// First record of a rank whose records are nodes with explicit dependencies. Without it they
    /// are a sequence.
    Graph,
    /// Definition of a group of ranks.
    Group(Box<Definition>),
    /// Start of the rank's program; elements of later records without a data type have `element`
    /// bytes.
    Init {
        /// Bytes of an element in later records that give no data type.
        element: u64,
    },
    /// End of the rank's program (`MPI_Finalize`).
    Finalize,
    /// Computation of a number of floating-point operations.
    Compute {
        /// Number of floating-point operations of the computation.
        flops: f64,
    },
    /// Sleep without computation.
    Sleep {
        /// Duration of the sleep in seconds.
        seconds: f64,
    },
    /// `MPI_Send`, or `MPI_Isend` if `blocking` is false.
    Send {
        /// Rank that receives the message.
        to: u32,
        /// Tag of the message.
        tag: i64,
        /// Size of the message in bytes.
        bytes: u64,
        /// Whether the call returns only when the buffer may be reused.
        blocking: bool,
    },
    /// `MPI_Recv`, or `MPI_Irecv` if `blocking` is false.
    Recv {
        /// Rank that sends the message; `None`: any rank.
        from: Option<u32>,
        /// Tag of the message; `None`: any tag.
        tag: Option<i64>,
        /// Largest size of the message in bytes; `None`: any size.
        most: Option<u64>,
        /// Whether the call returns only when the message has arrived.
        blocking: bool,
    },
    /// `MPI_Wait` for the rank's first open request that fits source, destination and tag. A
    /// request is open until a wait or a successful test.
    Wait(Which),
    /// `MPI_Test` of the rank's first open request that the record names.
    Test(Which),
    /// `MPI_Waitall` for all open requests of the rank. In a graph, a node that waits for all nodes
    /// before it, and for which all nodes after it wait.
    WaitAll,
    /// A collective call of all ranks of a group.
    Collective {
        /// Kind and arguments of the call.
        call: Box<Call>,
        /// Whether the call returns only when the rank has done its part; otherwise a later
        /// [`Record::Wait`] or [`Record::WaitAll`] waits for this.
        blocking: bool,
    },
    /// A call that sends no messages (`comm_size`, `location`).
    Nothing,
}

impl Record {
    /// Returns whether the record is a collective call, or a definition of a group that is one.
    pub(super) fn is_collective(&self) -> bool {
        match self {
            Record::Collective { .. } => true,
            Record::Group(definition) => Call::of_definition(&definition.how).is_some(),
            _ => false,
        }
    }

    /// Returns whether the record is a collective call for whose end later records do not wait.
    pub(super) fn is_collective_in_background(&self) -> bool {
        matches!(self, Record::Collective { blocking: false, .. })
    }
}

/// Request for which a wait or test looks: a message with source, destination and tag, or a
/// collective call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Which {
    /// Sending rank of the request; `None`: any rank. As the receiving rank, it has its number in
    /// the group of the record. Without a group it is a rank of the program, and the messages of all
    /// groups fit.
    pub src: Option<u32>,
    /// Receiving rank of the request; `None`: any rank.
    pub dst: Option<u32>,
    /// Tag of the request; `None`: any tag.
    pub tag: Option<i64>,
    /// Kind of a non-blocking collective call of the group; `None`: the request is a message.
    pub collective: Option<Kind>,
}

/// An error in a record of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Invalid text, escaped so that it is safe to print.
    pub found: String,
    /// Description of a valid text at the place of the error.
    pub expected: String,
    /// Consequence for the replay if the record is skipped; `None` if the record is damaged and
    /// cannot be skipped.
    pub left_out: Option<&'static str>,
}

impl Fault {
    pub(super) fn new(found: impl Into<String>, expected: impl Into<String>) -> Fault {
        Fault { found: found.into(), expected: expected.into(), left_out: None }
    }

    /// Returns the error for a valid call that the replay does not support.
    fn beyond_replay(call: &str) -> Fault {
        let found = format!("the call {}", shown(call.as_bytes()));
        if GROUP_CALLS.iter().any(|begin| call.starts_with(begin)) {
            return Fault {
                left_out: Some(
                    "the call is left out; collective calls and tags of a group of ranks then count \
                     for all ranks",
                ),
                ..Fault::new(
                    found,
                    "a group as comm_split NUMBER COLOR KEY, comm_dup NUMBER or group NUMBER RANK … \
                     defines it: other calls do not name the ranks of a group",
                )
            };
        }
        Fault {
            left_out: Some("the call is left out; its messages and its waiting are not replayed"),
            ..Fault::new(found, format!("one of {}", CALLS.join(", ")))
        }
    }
}

/// Returns untrusted bytes as text, shortened and with control characters of terminals escaped.
pub fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 60;
    let cut = &bytes[..bytes.len().min(MOST)];
    let mut text: String = String::from_utf8_lossy(cut).escape_debug().collect();
    if bytes.len() > MOST {
        text.push('…');
    }
    format!("\"{text}\"")
}

/// Names of the calls that the replay supports. [`parse`] handles these calls; the import of traces
/// uses this list too.
const CALLS: [&str; 32] = [
    "init",
    "finalize",
    "compute",
    "sleep",
    "send",
    "isend",
    "recv",
    "irecv",
    "wait",
    "waitall",
    "test",
    "barrier",
    "bcast",
    "reduce",
    "allreduce",
    "alltoall",
    "alltoallv",
    "gather",
    "gatherv",
    "allgather",
    "allgatherv",
    "scatter",
    "scatterv",
    "reducescatter",
    "scan",
    "exscan",
    "comm_size",
    "location",
    "graph",
    "group",
    "comm_split",
    "comm_dup",
];
/// Kinds of the collective calls among [`CALLS`].
const COLLECTIVES: [Kind; 15] = [
    Kind::Barrier,
    Kind::Bcast,
    Kind::Reduce,
    Kind::Allreduce,
    Kind::Alltoall,
    Kind::Alltoallv,
    Kind::Gather,
    Kind::Gatherv,
    Kind::Allgather,
    Kind::Allgatherv,
    Kind::Scatter,
    Kind::Scatterv,
    Kind::ReduceScatter,
    Kind::Scan,
    Kind::Exscan,
];

/// Returns the kind of a non-blocking collective call, from its name in lower case (`iallreduce`).
fn in_background(call: &str) -> Option<Kind> {
    let name = call.strip_prefix('i')?;
    COLLECTIVES.into_iter().find(|kind| kind.name() == name)
}

/// Beginnings of the names of calls that create or use communicators with some of the ranks.
/// Records name no communicator, so later calls in these communicators look like calls of all
/// ranks.
const GROUP_CALLS: [&str; 5] = ["comm_", "group_", "cart_", "graph_", "intercomm_"];

/// Words after the arguments of a call that begin its group, its dependencies, its stream and its
/// priority.
const PLACE_WORDS: [&str; 4] = ["in", "after", "on", "priority"];
/// Largest number of dependencies of a node.
const MOST_NEEDS: usize = 65_536;

/// Properties of a program and a rank that the parser of a line needs.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// Number of ranks of the program.
    pub ranks: u32,
    /// Bytes of an element without a data type.
    pub element: u64,
    /// Returns the number of ranks of a group, from its number in the trace of the rank; `None` if
    /// there is no such group.
    pub group: &'a dyn Fn(u32) -> Option<u32>,
    /// Number of the node in the line if the records of the rank are a graph; `None` in a sequence.
    pub node: Option<u32>,
}

/// Parses the rank and the action of a line. Returns `None` for a line without an action.
pub fn parse(line: &[u8], known: Known<'_>) -> Result<Option<(u32, Node)>, Fault> {
    let Known { ranks, element, .. } = known;
    let Ok(text) = std::str::from_utf8(line) else {
        return Err(Fault::new(shown(line), "text in UTF-8"));
    };
    let mut words = text.split_ascii_whitespace();
    let Some(first) = words.next() else { return Ok(None) };
    if first.starts_with('#') {
        return Ok(None);
    }
    let rank = first_rank(first, ranks)?;
    let name = words.next().ok_or_else(|| {
        Fault::new("a rank without a call", format!("a call: {}", CALLS.join(", ")))
    })?;
    let call = name.to_ascii_lowercase();
    let mut words: Vec<&str> = words.collect();
    let end = words.iter().position(|word| PLACE_WORDS.contains(word)).unwrap_or(words.len());
    let place = words.split_off(end);
    let mut node = Node::in_sequence(Record::Nothing);
    node.place(rank, &place, known)?;
    let ranks = match node.group {
        0 => ranks,
        group => (known.group)(group).ok_or_else(|| {
            let expected = "the number of a group that an earlier record of this rank defines, and \
                            that has this rank";
            Fault::new(format!("the group {group}"), expected)
        })?,
    };
    node.record = Fields { line, words, ranks, element, call: &call }.record()?;
    if let Some(number) = known.node {
        node.check_in_graph(number, &call)?;
    }
    Ok(Some((rank, node)))
}

/// Parses the rank at the beginning of a line.
fn first_rank(word: &str, ranks: u32) -> Result<u32, Fault> {
    word.parse().ok().filter(|&rank| rank < ranks).ok_or_else(|| {
        let most = ranks.saturating_sub(1);
        Fault::new(
            shown(word.as_bytes()),
            format!("a rank from 0 to {most} at the beginning of the line"),
        )
    })
}

/// Parses a line that an import copies, like [`parse`]. The arguments of calls in groups, and the
/// places of nodes in graphs, are checked later by [`check`](super::check::check), since the groups
/// are not known before all lines have been read.
pub fn parse_to_copy(
    line: &[u8],
    ranks: u32,
    element: u64,
) -> Result<Option<(u32, Record)>, Fault> {
    let text = std::str::from_utf8(line).unwrap_or_default();
    let mut words = text.split_ascii_whitespace();
    let first = words.next().filter(|first| !first.starts_with('#'));
    if let Some(first) = first
        && words.any(|word| PLACE_WORDS.contains(&word))
    {
        return Ok(Some((first_rank(first, ranks)?, Record::Nothing)));
    }
    let known = Known { ranks, element, group: &|_| None, node: None };
    Ok(parse(line, known)?.map(|(rank, node)| (rank, node.record)))
}

impl Node {
    /// Returns the node of a record of a sequence, which belongs to all ranks.
    pub(super) fn in_sequence(record: Record) -> Node {
        Node { record, group: 0, needs: Vec::new(), stream: None, priority: 0 }
    }

    /// Reads the words after the arguments of a call: its group, dependencies, stream and priority.
    fn place(&mut self, rank: u32, words: &[&str], known: Known<'_>) -> Result<(), Fault> {
        let mut words = words.iter().copied().peekable();
        while let Some(keyword) = words.next() {
            if keyword != "in" && known.node.is_none() {
                let expected = "only in a rank whose first record is graph; the records of this \
                                rank are a sequence";
                return Err(Fault::new(
                    format!("the word {}", shown(keyword.as_bytes())),
                    expected,
                ));
            }
            if keyword == "after" {
                while let Some(word) = words.next_if(|word| !PLACE_WORDS.contains(word)) {
                    self.needs.push(need(word, rank, known)?);
                }
                if self.needs.len() > MOST_NEEDS {
                    let found = format!("{} dependencies", self.needs.len());
                    return Err(Fault::new(found, format!("at most {MOST_NEEDS}")));
                }
                continue;
            }
            let word = words.next().unwrap_or("nothing");
            let wrong = |expected: &str| {
                Fault::new(shown(word.as_bytes()), format!("{expected} after the word {keyword}"))
            };
            match keyword {
                "in" => self.group = word.parse().map_err(|_| wrong("the number of a group"))?,
                "on" => {
                    let stream = word.parse().map_err(|_| wrong("a stream from 0 to 65535"))?;
                    self.stream = Some(stream);
                }
                _ => self.priority = word.parse().map_err(|_| wrong("a whole number"))?,
            }
        }
        Ok(())
    }

    /// Checks a node of a graph; its number is `number`. Computations occupy stream 0 unless the
    /// trace names another one.
    fn check_in_graph(&mut self, number: u32, call: &str) -> Result<(), Fault> {
        let waits = matches!(self.record, Record::Wait(_) | Record::Test(_));
        if waits || self.record == Record::Graph {
            let expected = "no such call after graph: the nodes of a graph wait for the nodes after \
                            the word after, and waitall for all nodes before it";
            return Err(Fault::new(format!("the call {call}"), expected));
        }
        if self.record == Record::WaitAll && !self.needs.is_empty() {
            let found = "the word after behind waitall";
            return Err(Fault::new(found, "no such word: waitall waits for all nodes before it"));
        }
        if matches!(self.record, Record::Compute { .. } | Record::Sleep { .. }) {
            self.stream = self.stream.or(Some(0));
        }
        if number == u32::MAX {
            return Err(Fault::new("node 4294967295", "fewer nodes of a rank"));
        }
        Ok(())
    }
}

/// Parses a dependency of a node of the rank `rank`: a number of a node, after a rank and `/` if it
/// is of another rank, after `~` if its start is sufficient.
fn need(word: &str, rank: u32, known: Known<'_>) -> Result<Need, Fault> {
    let (start, rest) = word.strip_prefix('~').map_or((false, word), |rest| (true, rest));
    let (of, node) = rest.split_once('/').map_or((None, rest), |(of, node)| (Some(of), node));
    let of = match of {
        Some(of) => of.parse().ok().filter(|&r| r < known.ranks),
        None => Some(rank),
    };
    let node = node.parse().ok();
    let Some((of, node)) = of.zip(node) else {
        return Err(Fault::new(
            shown(word.as_bytes()),
            "the number of a node, or RANK/NUMBER, with ~ before it if its start is sufficient",
        ));
    };
    if of == rank && known.node.is_some_and(|number| node >= number) {
        return Err(Fault::new(
            shown(word.as_bytes()),
            "a node before this one: a node is after all nodes of its rank for which it waits",
        ));
    }
    Ok(Need { rank: of, node, start })
}

/// Returns the rank number at the beginning of a line, without a check of the rest of the line;
/// `None` if there is no number.
pub fn rank_of(line: &[u8]) -> Option<u32> {
    let first = line.split(u8::is_ascii_whitespace).find(|word| !word.is_empty())?;
    std::str::from_utf8(first).ok()?.parse().ok()
}

/// Returns whether a line may define a group, from the first letters of its call.
pub(super) fn defines(line: &[u8]) -> bool {
    let call = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).nth(1);
    let begins = |begin: &[u8]| {
        call.is_some_and(|call| {
            call.len() >= begin.len() && call[..begin.len()].eq_ignore_ascii_case(begin)
        })
    };
    [&b"group"[..], b"comm_split", b"comm_dup"].into_iter().any(begins)
}

/// Fields of a record after its rank and call.
struct Fields<'a> {
    line: &'a [u8],
    words: Vec<&'a str>,
    ranks: u32,
    element: u64,
    call: &'a str,
}

impl Fields<'_> {
    fn record(&self) -> Result<Record, Fault> {
        Ok(match self.call {
            "graph" => Record::Graph,
            "group" | "comm_split" | "comm_dup" => Record::Group(Box::new(self.definition()?)),
            "init" => Record::Init { element: if self.words.is_empty() { 1 } else { 8 } },
            "finalize" => Record::Finalize,
            "compute" => Record::Compute { flops: self.number(0, "operations", MOST_FLOPS)? },
            "sleep" => Record::Sleep { seconds: self.number(0, "seconds", MOST_SECONDS)? },
            "send" => self.send(true)?,
            "isend" => self.send(false)?,
            "recv" => self.recv(true)?,
            "irecv" => self.recv(false)?,
            "wait" => Record::Wait(self.which()?),
            "test" => Record::Test(self.which()?),
            "waitall" => Record::WaitAll,
            "comm_size" | "location" => Record::Nothing,
            call => {
                let kind = in_background(call);
                let call = self.collective(kind.map_or(call, |kind| kind.name()))?;
                Record::Collective { call: Box::new(call), blocking: kind.is_none() }
            }
        })
    }

    /// Returns the definition of a group: by its ranks, by colours and keys, or as a copy.
    fn definition(&self) -> Result<Definition, Fault> {
        let words = match self.call {
            "comm_split" => 3,
            "group" => 2,
            _ => 1,
        };
        // SimGrid writes these calls without the ranks of the new communicator
        if self.words.len() < words {
            return Err(Fault::beyond_replay(self.call));
        }
        let number = self.integer(0, "the number of the group")?;
        let number = u32::try_from(number).ok().filter(|&n| n > 0).ok_or_else(|| {
            let expected = "the number of a group, from 1 (0 is the group of all ranks)";
            Fault::new(number.to_string(), expected)
        })?;
        let how = match self.call {
            "group" => {
                let members = (1..self.words.len()).map(|at| self.rank(at, "a rank of the group"));
                How::Ranks(members.collect::<Result<_, _>>()?)
            }
            "comm_split" => {
                How::Split { color: self.integer(1, "a color")?, key: self.integer(2, "a key")? }
            }
            _ => How::Dup,
        };
        Ok(Definition { number, how })
    }

    fn word(&self, at: usize, what: &str) -> Result<&str, Fault> {
        self.words.get(at).copied().ok_or_else(|| {
            Fault::new(
                shown(self.line),
                format!("{what} as field {} of the call {}", at + 1, self.call),
            )
        })
    }

    fn number(&self, at: usize, what: &str, most: f64) -> Result<f64, Fault> {
        let word = self.word(at, what)?;
        word.parse::<f64>().ok().filter(|x| (0.0..=most).contains(x)).ok_or_else(|| {
            let expected = format!("{what} of the call {}, a number from 0 to {most:e}", self.call);
            Fault::new(shown(word.as_bytes()), expected)
        })
    }

    /// Returns the size in bytes of the elements whose number is in the field number `at`. Their
    /// data type is in the field number `kind`, if this field exists.
    fn bytes(&self, at: usize, kind: Option<usize>) -> Result<u64, Fault> {
        let element = self.element_at(kind)?;
        let elements = self.number(at, "a size", MOST_BYTES)?;
        let bytes = elements * element as f64;
        if bytes > MOST_BYTES {
            let expected = format!("a message of at most {MOST_BYTES:e} bytes");
            return Err(Fault::new(shown(self.line), expected));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to MOST_BYTES, which 64 bits hold"
        )]
        Ok((bytes + 0.5) as u64)
    }

    fn element_at(&self, kind: Option<usize>) -> Result<u64, Fault> {
        let Some(word) = kind.and_then(|at| self.words.get(at)) else { return Ok(self.element) };
        let number = word.parse::<i64>().ok();
        // -1 means that no data type is given
        if number == Some(-1) {
            return Ok(self.element);
        }
        let found = number.and_then(|n| TYPE_BYTES.get(usize::try_from(n).ok()?));
        found.copied().ok_or_else(|| {
            let most = TYPE_BYTES.len() - 1;
            Fault::new(
                shown(word.as_bytes()),
                format!("the number of a data type from 0 to {most}"),
            )
        })
    }

    fn integer(&self, at: usize, what: &str) -> Result<i64, Fault> {
        let word = self.word(at, what)?;
        word.parse().map_err(|_| {
            Fault::new(
                shown(word.as_bytes()),
                format!("{what} of the call {}, a whole number", self.call),
            )
        })
    }

    fn rank(&self, at: usize, what: &str) -> Result<u32, Fault> {
        let number = self.integer(at, what)?;
        u32::try_from(number).ok().filter(|&r| r < self.ranks).ok_or_else(|| {
            let most = self.ranks.saturating_sub(1);
            Fault::new(
                number.to_string(),
                format!("{what} of the call {}, a rank from 0 to {most}", self.call),
            )
        })
    }

    /// Returns the rank in the field number `at`; `None` for any rank (a negative number). `what`:
    /// name of the field in error messages.
    fn any_rank(&self, at: usize, what: &str) -> Result<Option<u32>, Fault> {
        match self.integer(at, what)? {
            number if number < 0 => Ok(None),
            _ => self.rank(at, what).map(Some),
        }
    }

    fn any_tag(&self, at: usize) -> Result<Option<i64>, Fault> {
        Ok(Some(self.integer(at, "a tag")?).filter(|tag| *tag >= 0))
    }

    fn send(&self, blocking: bool) -> Result<Record, Fault> {
        let to = self.rank(0, "a destination")?;
        let (tag, bytes) = (self.integer(1, "a tag")?, self.bytes(2, Some(3))?);
        if tag < 0 {
            return Err(Fault::new(
                tag.to_string(),
                "a tag of 0 or more: only receives may accept any tag",
            ));
        }
        Ok(Record::Send { to, tag, bytes, blocking })
    }

    fn recv(&self, blocking: bool) -> Result<Record, Fault> {
        let (from, tag) = (self.any_rank(0, "a source")?, self.any_tag(1)?);
        let given = self.words.get(2).is_some_and(|word| !word.starts_with('-'));
        let most = if given { Some(self.bytes(2, Some(3))?).filter(|n| *n > 0) } else { None };
        Ok(Record::Recv { from, tag, most, blocking })
    }

    fn which(&self) -> Result<Which, Fault> {
        let first = self.words.first().map(|word| word.to_ascii_lowercase());
        let collective = first.as_deref().and_then(in_background);
        if collective.is_some() {
            return Ok(Which { src: None, dst: None, tag: None, collective });
        }
        if let Some(word) = first.filter(|word| word.starts_with(|c: char| c.is_alphabetic())) {
            let expected = "a source, or a non-blocking collective call such as iallreduce";
            return Err(Fault::new(shown(word.as_bytes()), expected));
        }
        Ok(Which {
            src: self.any_rank(0, "a source")?,
            dst: self.any_rank(1, "a destination")?,
            tag: self.any_tag(2)?,
            collective: None,
        })
    }

    /// Returns the root rank in the field `at`; rank 0 if the field does not exist.
    fn root(&self, at: usize) -> Result<u32, Fault> {
        if at < self.words.len() { self.rank(at, "a root") } else { Ok(0) }
    }

    /// Returns the size in bytes for each rank, from the numbers of elements in the fields from
    /// number `from` on; the data type is in the field number `kind`.
    fn sizes(&self, from: usize, kind: Option<usize>) -> Result<Vec<u64>, Fault> {
        (from..from + self.ranks as usize).map(|at| self.bytes(at, kind)).collect()
    }

    fn flops(&self, at: usize) -> Result<f64, Fault> {
        // -1 means that the computation was not measured
        match self.words.get(at) {
            Some(word) if word.starts_with('-') => Ok(0.0),
            _ => self.number(at, "operations", MOST_FLOPS),
        }
    }

    fn collective(&self, name: &str) -> Result<Call, Fault> {
        let n = self.ranks as usize;
        let call = Call::new;
        Ok(match name {
            "barrier" => call(Kind::Barrier),
            "bcast" => call(Kind::Bcast).root(self.root(1)?).size(self.bytes(0, Some(2))?),
            "reduce" => call(Kind::Reduce)
                .root(self.root(2)?)
                .size(self.bytes(0, Some(3))?)
                .flops(self.flops(1)?),
            "allreduce" => {
                call(Kind::Allreduce).size(self.bytes(0, Some(2))?).flops(self.flops(1)?)
            }
            "scan" => call(Kind::Scan).size(self.bytes(0, Some(2))?).flops(self.flops(1)?),
            "exscan" => call(Kind::Exscan).size(self.bytes(0, Some(2))?).flops(self.flops(1)?),
            "alltoall" => call(Kind::Alltoall).size(self.bytes(0, Some(2))?),
            "alltoallv" => call(Kind::Alltoallv).sizes(self.sizes(1, Some(2 * n + 2))?),
            "gather" => call(Kind::Gather).root(self.root(2)?).size(self.bytes(0, Some(3))?),
            "gatherv" => {
                call(Kind::Gatherv).root(self.root(n + 1)?).size(self.bytes(0, Some(n + 2))?)
            }
            "allgather" => call(Kind::Allgather).size(self.bytes(0, Some(2))?),
            "allgatherv" => {
                // the counts may be followed by one or two data types, or by displacements
                let after = self.words.len().saturating_sub(n + 1);
                let named = matches!(after, 1 | 2) || after > n;
                let kind = named.then_some(n + 1);
                call(Kind::Allgatherv).sizes(self.sizes(1, kind)?)
            }
            "scatter" => call(Kind::Scatter).root(self.root(2)?).size(self.bytes(0, Some(3))?),
            "scatterv" => {
                call(Kind::Scatterv).root(self.root(n + 1)?).sizes(self.sizes(0, Some(n + 2))?)
            }
            "reducescatter" => {
                call(Kind::ReduceScatter).sizes(self.sizes(0, Some(n + 1))?).flops(self.flops(n)?)
            }
            _ => return Err(Fault::beyond_replay(self.call)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is known of a sequence of four ranks, with group 7 of three ranks.
    fn known(element: u64) -> Known<'static> {
        Known { ranks: 4, element, group: &|number| (number == 7).then_some(3), node: None }
    }

    fn one(line: &str) -> Record {
        node(line, known(1)).record
    }

    fn node(line: &str, known: Known<'_>) -> Node {
        parse(line.as_bytes(), known).expect("a record").expect("not empty").1
    }

    #[test]
    fn sizes_are_elements_of_a_type() {
        let bytes = |line: &str, element| match node(line, known(element)).record {
            Record::Send { bytes, .. } => bytes,
            other => panic!("{other:?}"),
        };
        assert_eq!(bytes("0 send 1 0 700 0", 1), 5600, "doubles");
        assert_eq!(bytes("0 send 1 0 1e6", 1), 1_000_000);
        assert_eq!(bytes("0 send 1 0 1e6", 8), 8_000_000, "the default of init 1");
        assert_eq!(bytes("0 send 1 0 7 6", 8), 7, "bytes by name");
        assert_eq!(one("0 init 1"), Record::Init { element: 8 });
        assert_eq!(one("0 init"), Record::Init { element: 1 });
    }

    #[test]
    fn receives_take_any_source_tag_and_size() {
        let recv = |line: &str| match one(line) {
            Record::Recv { from, tag, most, .. } => (from, tag, most),
            other => panic!("{other:?}"),
        };
        assert_eq!(recv("0 recv 2 5 10"), (Some(2), Some(5), Some(10)));
        assert_eq!(recv("0 recv -555 -444 0"), (None, None, None));
        assert_eq!(recv("0 Irecv 1 -1 -1"), (Some(1), None, None));
    }

    #[test]
    fn vectors_find_their_types_after_the_counts() {
        let sizes = |line: &str| match one(line) {
            Record::Collective { call, .. } => call.sizes,
            other => panic!("{other:?}"),
        };
        assert_eq!(sizes("0 allgatherv 2 2 2 2 1 0 0"), [16, 16, 16, 8]);
        assert_eq!(sizes("0 allgatherv 2 2 2 2 1"), [2, 2, 2, 1]);
        assert_eq!(sizes("0 allgatherv 2 2 2 2 1 0 2 4 6"), [2, 2, 2, 1], "displacements");
        assert_eq!(sizes("1 alltoallv 9 1 2 3 4 9 1 2 3 4 1 1"), [4, 8, 12, 16]);
        assert_eq!(sizes("0 reducescatter 5 5 5 4 1e6 1"), [20, 20, 20, 16]);
    }

    #[test]
    fn calls_of_groups_and_unknown_calls_can_be_left_out_and_damage_cannot() {
        let fault = |line: &str| parse(line.as_bytes(), known(1)).expect_err(line);
        for line in ["comm_split", "Comm_dup", "comm_create 1", "cart_create 2", "group_incl 1 2"] {
            let found = fault(&format!("0 {line}"));
            assert!(found.expected.contains("do not name the ranks of a group"), "{found:?}");
            assert!(found.left_out.is_some_and(|s| s.contains("all ranks")), "{found:?}");
        }
        for call in ["put", "waitany", "sendd"] {
            let found = fault(&format!("0 {call} 1 2"));
            assert!(found.expected.contains("one of init, finalize"), "{found:?}");
            assert!(found.left_out.is_some_and(|s| s.contains("not replayed")), "{found:?}");
        }
        assert_eq!(fault("0 send 1").left_out, None);
    }

    #[test]
    fn every_call_that_is_listed_is_known() {
        for call in CALLS {
            // a one is valid for every argument of every call
            let line = format!("0 {call}{}", " 1".repeat(12));
            assert!(parse(line.as_bytes(), known(1)).is_ok(), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases = [
            ("x send 1 0 1", "\"x\"", "a rank from 0 to 3"),
            ("4 init", "\"4\"", "a rank from 0 to 3"),
            ("0", "a rank without a call", "a call"),
            ("0 sned 1 0 1", "the call \"sned\"", "one of init"),
            ("0 send 9 0 1", "9", "a rank from 0 to 3"),
            ("0 send 1 -1 1", "-1", "only receives may accept any tag"),
            (
                "0 wait iallreduc",
                "\"iallreduc\"",
                "a non-blocking collective call such as iallreduce",
            ),
            ("0 send 1 0", "\"0 send 1 0\"", "a size as field 3 of the call send"),
            ("0 send 1 0 nan", "\"nan\"", "a size of the call send"),
            ("0 send 1 0 1 99", "\"99\"", "data type from 0 to 54"),
            ("0 send 1 0 1e15 0", "0 send", "at most"),
            ("0 compute -3", "\"-3\"", "operations of the call compute"),
            ("0 alltoallv 1 2", "alltoallv", "a size as field 3"),
            ("0 bcast 1 7", "7", "a root of the call bcast"),
        ];
        for (line, found, expected) in cases {
            let fault = parse(line.as_bytes(), known(1)).expect_err(line);
            assert!(fault.found.contains(found), "{line}: {fault:?}");
            assert!(fault.expected.contains(expected), "{line}: {fault:?}");
        }
        let hostile = parse(b"0 \x1b[31m 1", known(1)).expect_err("no call");
        assert!(!hostile.found.contains('\x1b'));
    }

    #[test]
    fn calls_name_groups_and_nodes_name_what_they_wait_for() {
        let call = |line: &str| match one(line) {
            Record::Collective { call, blocking } => (call.kind, call.sizes, blocking),
            other => panic!("{other:?}"),
        };
        assert_eq!(call("0 allgatherv 2 2 2 1 in 7"), (Kind::Allgatherv, vec![2, 2, 1], true));
        assert_eq!(call("0 ibarrier"), (Kind::Barrier, Vec::new(), false));
        let graph = Known { node: Some(9), ..known(1) };
        let compute = node("2 compute 5 after 3 ~8 1/77", graph);
        let need = |rank, node, start| Need { rank, node, start };
        assert_eq!(compute.needs, [need(2, 3, false), need(2, 8, true), need(1, 77, false)]);
        assert_eq!((compute.stream, compute.priority, compute.group), (Some(0), 0, 0));
        let send = node("2 send 1 0 5 6 in 7 on 3 priority -2 after", graph);
        assert_eq!((send.stream, send.priority, send.group), (Some(3), -2, 7));
        let wrong = |line: &str, known| parse(line.as_bytes(), known).expect_err(line).expected;
        assert!(wrong("0 compute 1 after 0", known(1)).contains("first record is graph"));
        assert!(wrong("0 compute 1 after 9", graph).contains("a node before this one"));
        assert!(wrong("0 compute 1 after 5/1", graph).contains("the number of a node"));
        assert!(wrong("0 compute 1 after -1", graph).contains("the number of a node"));
        assert!(wrong("0 wait 0 1 2", graph).contains("no such call after graph"));
        assert!(wrong("0 waitall after 1", graph).contains("all nodes before it"));
        assert!(wrong("0 barrier in 8", graph).contains("an earlier record of this rank"));
        assert!(wrong("0 send 3 0 1 6 in 7", graph).contains("a rank from 0 to 2"));
        assert!(wrong("0 compute 1 on", graph).contains("a stream from 0 to 65535"));
        assert!(wrong("0 group 0 1 2", graph).contains("from 1"));
    }

    #[test]
    fn groups_are_defined_by_their_ranks_or_by_colours() {
        let definition = |line: &str| match one(line) {
            Record::Group(definition) => *definition,
            other => panic!("{other:?}"),
        };
        let how = definition("0 comm_split 3 -1 4");
        assert_eq!(how, Definition { number: 3, how: How::Split { color: -1, key: 4 } });
        assert_eq!(definition("0 group 2 3 0").how, How::Ranks(vec![3, 0]));
        assert_eq!(definition("0 comm_dup 5 in 7"), Definition { number: 5, how: How::Dup });
    }
}
