//! One line of a time-independent trace: the next action of a rank.
//!
//! The format is that of SimGrid ("time-independent traces", Casanova, Desprez, Markomanolis and
//! Suter, *Simulation of MPI applications with time-independent traces*, CCPE 2015): a rank, the
//! name of a call, and its numbers, for example `0 send 1 7 3500 0`. A size is a number of elements
//! of a data type. The record gives the number of the data type; otherwise elements are bytes, or
//! doubles after `init 1`. Upper and lower case of names are equal, since older traces have
//! `allReduce`. A receive without size, or with size 0, takes a message of any size. Negative
//! sources and tags stand for `MPI_ANY_SOURCE` and `MPI_ANY_TAG`.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

use super::collective::{Call, Kind};
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

/// Action of a rank, one line of a trace.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Record {
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
    /// `MPI_Test` of the rank's first open request that fits source, destination and tag. A request
    /// is open until a wait or a successful test.
    Test(Which),
    /// `MPI_Waitall` for all open requests of the rank.
    WaitAll,
    /// A collective call of all ranks.
    Collective(Box<Call>),
    /// A call that sends no messages (`comm_size`, `location`).
    Nothing,
}

/// Source, destination and tag by which a wait or test finds its request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Which {
    /// Sending rank of the request; `None`: any rank.
    pub src: Option<u32>,
    /// Receiving rank of the request; `None`: any rank.
    pub dst: Option<u32>,
    /// Tag of the request; `None`: any tag.
    pub tag: Option<i64>,
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
                ..Fault::new(found, "calls of all ranks: groups of ranks cannot be replayed")
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
const CALLS: [&str; 28] = [
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
];
/// Beginnings of the names of calls that create or use communicators with some of the ranks.
/// Records name no communicator, so later calls in these communicators look like calls of all
/// ranks.
const GROUP_CALLS: [&str; 5] = ["comm_", "group_", "cart_", "graph_", "intercomm_"];

/// Parses the rank and the action of a line. `ranks` is the number of ranks; elements without a
/// data type have `element` bytes. Returns `None` for a line without an action.
pub fn parse(line: &[u8], ranks: u32, element: u64) -> Result<Option<(u32, Record)>, Fault> {
    let Ok(text) = std::str::from_utf8(line) else {
        return Err(Fault::new(shown(line), "text in UTF-8"));
    };
    let mut words = text.split_ascii_whitespace();
    let Some(first) = words.next() else { return Ok(None) };
    if first.starts_with('#') {
        return Ok(None);
    }
    let rank = first.parse::<u32>().ok().filter(|&r| r < ranks).ok_or_else(|| {
        let most = ranks.saturating_sub(1);
        Fault::new(
            shown(first.as_bytes()),
            format!("a rank from 0 to {most} at the beginning of the line"),
        )
    })?;
    let name = words.next().ok_or_else(|| {
        Fault::new("a rank without a call", format!("a call: {}", CALLS.join(", ")))
    })?;
    let call = name.to_ascii_lowercase();
    let fields = Fields { line, words: words.collect(), ranks, element, call: &call };
    Ok(Some((rank, fields.record()?)))
}

/// Returns the rank number at the beginning of a line, without a check of the rest of the line;
/// `None` if there is no number.
pub fn rank_of(line: &[u8]) -> Option<u32> {
    let first = line.split(u8::is_ascii_whitespace).find(|word| !word.is_empty())?;
    std::str::from_utf8(first).ok()?.parse().ok()
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
            _ => Record::Collective(Box::new(self.collective()?)),
        })
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
        Ok(Which {
            src: self.any_rank(0, "a source")?,
            dst: self.any_rank(1, "a destination")?,
            tag: self.any_tag(2)?,
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

    fn collective(&self) -> Result<Call, Fault> {
        let n = self.ranks as usize;
        let call = Call::new;
        Ok(match self.call {
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

    fn one(line: &str) -> Record {
        let (_, record) = parse(line.as_bytes(), 4, 1).expect("a record").expect("not empty");
        record
    }

    #[test]
    fn sizes_are_elements_of_a_type() {
        let bytes = |line: &str, element| match parse(line.as_bytes(), 4, element) {
            Ok(Some((_, Record::Send { bytes, .. }))) => bytes,
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
            Record::Collective(call) => call.sizes,
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
        let fault = |line: &str| parse(line.as_bytes(), 4, 1).expect_err(line);
        for call in ["comm_split", "Comm_dup", "comm_create", "cart_create", "group_incl"] {
            let found = fault(&format!("0 {call} 1 2"));
            assert!(found.expected.contains("groups of ranks cannot be replayed"), "{found:?}");
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
            // a zero is valid for every argument of every call
            let line = format!("0 {call}{}", " 0".repeat(12));
            assert!(parse(line.as_bytes(), 4, 1).is_ok(), "{line}");
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
            ("0 send 1 0", "\"0 send 1 0\"", "a size as field 3 of the call send"),
            ("0 send 1 0 nan", "\"nan\"", "a size of the call send"),
            ("0 send 1 0 1 99", "\"99\"", "data type from 0 to 54"),
            ("0 send 1 0 1e15 0", "0 send", "at most"),
            ("0 compute -3", "\"-3\"", "operations of the call compute"),
            ("0 alltoallv 1 2", "alltoallv", "a size as field 3"),
            ("0 bcast 1 7", "7", "a root of the call bcast"),
        ];
        for (line, found, expected) in cases {
            let fault = parse(line.as_bytes(), 4, 1).expect_err(line);
            assert!(fault.found.contains(found), "{line}: {fault:?}");
            assert!(fault.expected.contains(expected), "{line}: {fault:?}");
        }
        let hostile = parse(b"0 \x1b[31m 1", 4, 1).expect_err("no call");
        assert!(!hostile.found.contains('\x1b'));
    }
}
