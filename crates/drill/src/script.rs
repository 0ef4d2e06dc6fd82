//! A script as it is understood: options, then events in order.

use crate::problem::{Place, Problem};
use crate::profile::Profile;
use crate::shell::Setting;
use crate::snippet::Snippet;

/// A whole script.
#[derive(Clone, PartialEq, Debug)]
pub struct Script {
    /// What the `--name=value` lines set.
    pub options: Options,
    /// Everything that happens, in order.
    pub events: Vec<Event>,
}

/// Options of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// How far a time may be off, microseconds, or by `tolerance_permille` if that is more.
    pub tolerance_us: u64,
    /// How far a time may be off, in thousandths of the time since the event before.
    pub tolerance_permille: u64,
    /// The unit of timestamps whose values are checked, microseconds; 0 checks none.
    pub timestamp_tick_us: u64,
    /// A packet expected in one piece must leave in one piece.
    pub strict_segments: bool,
    /// The MSS that follows from the packets' largest size.
    pub mss: u16,
    /// The profile the script is written for.
    pub profile: Option<Profile>,
}

impl Default for Options {
    /// As the public tool has them: 4 ms or an eighth, no check of timestamps.
    fn default() -> Options {
        Options {
            tolerance_us: 4_000,
            tolerance_permille: 125,
            timestamp_tick_us: 0,
            strict_segments: false,
            mss: 1_460,
            profile: None,
        }
    }
}

/// One line of the dialogue.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// Where it stands.
    pub place: Place,
    /// When it happens.
    pub when: When,
    /// What happens.
    pub action: Action,
}

/// When an event happens, in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// At any time: `*`; and shell commands without a time.
    Any,
    /// Between two times since the start, which may be the same.
    At(u64, u64),
    /// Between two times after the event before.
    After(u64, u64),
}

/// What happens.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// A packet comes.
    Inject(Packet),
    /// A packet is expected.
    Expect(Packet),
    /// The application calls the system.
    Call(Call),
    /// Settings change.
    Set(Vec<Setting>),
    /// Assertions about the endpoint.
    Check(Snippet),
}

/// A packet in the terms of a script: positions as written, the window as it stands in the header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// The ECN field of the IP header, where given.
    pub ecn: Option<u8>,
    /// Flags, see `eastwest_types::flag`.
    pub flags: u8,
    /// First position.
    pub start: u32,
    /// Bytes of payload.
    pub length: u32,
    /// Acknowledged position.
    pub ack: Option<u32>,
    /// Window field.
    pub window: Option<u16>,
    /// Options; `None` is `<...>`: any.
    pub options: Option<Vec<TcpOption>>,
}

/// An option of the TCP header. Padding is left out: simulated packets have none to compare with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TcpOption {
    /// Largest segment.
    Mss(u16),
    /// Window scale.
    Wscale(u8),
    /// SACK permitted.
    SackOk,
    /// SACK blocks.
    Sack(Vec<(u32, u32)>),
    /// Timestamp value and echo.
    Timestamp(u32, u32),
}

/// A system call.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// Where it stands.
    pub place: Place,
    /// When it returns, if it blocks, microseconds; counted like its start.
    pub returns: Option<u64>,
    /// Its name.
    pub name: String,
    /// What it is given.
    pub arguments: Vec<Value>,
    /// What it returns.
    pub result: Value,
    /// The error it sets.
    pub errno: Option<String>,
}

/// An argument or a result.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// `...`: of no interest.
    Any,
    /// A number.
    Number(i64),
    /// A constant.
    Name(String),
    /// A text.
    Text(String),
    /// `[a, b]`
    List(Vec<Value>),
    /// `{a, b}`, where members may have names.
    Group(Vec<(Option<String>, Value)>),
    /// `a | b`
    Either(Vec<Value>),
    /// `name(a, b)`
    Function(String, Vec<Value>),
}

impl Call {
    /// Returns the problem of this call as the result of what cannot go on.
    pub fn fail<T>(&self, message: impl Into<String>) -> Result<T, Problem> {
        self.place.fail(message)
    }

    /// Returns an argument, counted from 0.
    pub fn argument(&self, index: usize) -> Option<&Value> {
        self.arguments.get(index)
    }

    /// Returns an argument that is a number.
    pub fn number(&self, index: usize) -> Option<i64> {
        self.argument(index).and_then(Value::number)
    }

    /// Returns an argument that is a constant.
    pub fn constant(&self, index: usize) -> Option<&str> {
        match self.argument(index) {
            Some(Value::Name(name)) => Some(name),
            _ => None,
        }
    }

    /// Returns an argument, or its first element where it is `[a, …]`.
    pub fn first_of(&self, index: usize) -> Option<&Value> {
        match self.argument(index) {
            Some(Value::List(all)) => all.first(),
            other => other,
        }
    }

    /// Compares `[n]`, the argument that a call fills, with the number that it has put there.
    pub fn compare_filled(&self, index: usize, actual: i64) -> Result<(), Problem> {
        match self.argument(index) {
            Some(Value::List(all)) => match all[..] {
                [Value::Number(n)] if n == actual => Ok(()),
                [Value::Number(n)] => self.fail(format!("it tells {actual}, not {n}")),
                _ => self.fail("one number is needed between the brackets"),
            },
            Some(Value::Any) => Ok(()),
            _ => self.fail("a number between brackets is needed"),
        }
    }
}

impl Value {
    /// Returns the number, where it is one.
    pub fn number(&self) -> Option<i64> {
        if let Value::Number(n) = self { Some(*n) } else { None }
    }

    /// Returns the names in `A | B`.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Value::Name(n) => vec![n],
            Value::Either(all) => all.iter().flat_map(Value::names).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the member of this name, where it is a group that has one.
    pub fn member(&self, name: &str) -> Option<&Value> {
        let Value::Group(members) = self else { return None };
        members.iter().find(|m| m.0.as_deref() == Some(name)).map(|m| &m.1)
    }
}
