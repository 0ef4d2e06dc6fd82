//! A parsed script: options, then events in order.

use crate::problem::{Place, Problem};
use crate::profile::Profile;
use crate::shell::Setting;
use crate::snippet::Snippet;

/// A whole script.
#[derive(Clone, PartialEq, Debug)]
pub struct Script {
    /// Options from the `--name=value` lines.
    pub options: Options,
    /// Events in order.
    pub events: Vec<Event>,
}

/// Options of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Tolerance of the time of an event in µs; `tolerance_permille` applies if it gives more.
    pub tolerance_us: u64,
    /// Tolerance of the time of an event, in thousandths of the time since the event before.
    pub tolerance_permille: u64,
    /// Unit of TCP timestamps in µs, by which their values are checked; with 0 they are not
    /// checked.
    pub timestamp_tick_us: u64,
    /// Whether an expected packet must be sent as one packet, not as a run of segments.
    pub strict_segments: bool,
    /// Maximum segment size in bytes that the endpoint announces.
    pub mss: u16,
    /// TCP profile for which the script is written; `None` if the script does not name one.
    pub profile: Option<Profile>,
}

impl Default for Options {
    /// Returns the defaults of the public tool: 4 ms or an eighth, no check of timestamps.
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

/// One event of a script.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// Place in the script.
    pub place: Place,
    /// Time of the event.
    pub when: When,
    /// Action of the event.
    pub action: Action,
}

/// Time of an event in µs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// At any time: `*`, and shell commands without a time.
    Any,
    /// Between two times since the start of the script, in µs; they may be equal.
    At(u64, u64),
    /// Between two times after the event before, in µs; they may be equal.
    After(u64, u64),
}

/// Action of an event.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// A packet arrives at the endpoint.
    Inject(Packet),
    /// A packet from the endpoint is expected.
    Expect(Packet),
    /// The application makes a system call.
    Call(Call),
    /// Settings of the host change.
    Set(Vec<Setting>),
    /// Assertions about the endpoint.
    Check(Snippet),
}

/// A packet with the numbers of the script: sequence numbers as written, the window as in the header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// ECN field of the IP header (2 bits); `None` if the script does not give it.
    pub ecn: Option<u8>,
    /// TCP flags, see `eastwest_types::flag`.
    pub flags: u8,
    /// Sequence number.
    pub start: u32,
    /// Payload in bytes.
    pub length: u32,
    /// Acknowledgement number; `None` without ACK.
    pub ack: Option<u32>,
    /// Window field of the header, not scaled; `None` if the script does not give it.
    pub window: Option<u16>,
    /// TCP options; `None` for `<...>`: any options.
    pub options: Option<Vec<TcpOption>>,
}

/// An option of the TCP header. Padding is left out: simulated packets have none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TcpOption {
    /// Maximum segment size.
    Mss(u16),
    /// Window scale (shift count).
    Wscale(u8),
    /// SACK permitted.
    SackOk,
    /// SACK blocks: first sequence number, and the one after the last.
    Sack(Vec<(u32, u32)>),
    /// Timestamp value and echo.
    Timestamp(u32, u32),
}

/// A system call with its expected result.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// Place in the script.
    pub place: Place,
    /// For a blocking call: expected time of return in µs, counted like the time of its event from
    /// the start of the script or from the event before. `None` for a call that returns at once.
    pub returns: Option<u64>,
    /// Name of the system call.
    pub name: String,
    /// Arguments of the system call.
    pub arguments: Vec<Value>,
    /// Expected return value.
    pub result: Value,
    /// Name of the expected error (`EAGAIN` …); `None` if no error is expected.
    pub errno: Option<String>,
}

/// An argument or a return value of a system call, as the script writes it.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// `...`: any value.
    Any,
    /// A whole number.
    Number(i64),
    /// Name of a constant, such as `SOL_TCP`.
    Name(String),
    /// Text in quotation marks.
    Text(String),
    /// List `[a, b]`.
    List(Vec<Value>),
    /// Structure `{a, b}`, whose members may have names: `{fd=3, events=POLLIN}`.
    Group(Vec<(Option<String>, Value)>),
    /// Flags joined by bars: `a | b`.
    Either(Vec<Value>),
    /// Function call: `name(a, b)`.
    Function(String, Vec<Value>),
}

impl Call {
    /// Returns an error with this message at the place of this call.
    pub fn fail<T>(&self, message: impl Into<String>) -> Result<T, Problem> {
        self.place.fail(message)
    }

    /// Returns the argument with this index from 0; `None` if there are fewer.
    pub fn argument(&self, index: usize) -> Option<&Value> {
        self.arguments.get(index)
    }

    /// Returns the argument with this index from 0, if it is a number.
    pub fn number(&self, index: usize) -> Option<i64> {
        self.argument(index).and_then(Value::number)
    }

    /// Returns the argument with this index from 0, if it is the name of a constant.
    pub fn constant(&self, index: usize) -> Option<&str> {
        match self.argument(index) {
            Some(Value::Name(name)) => Some(name),
            _ => None,
        }
    }

    /// Returns the argument with this index from 0, or its first element if it is a list `[a, …]`.
    pub fn first_of(&self, index: usize) -> Option<&Value> {
        match self.argument(index) {
            Some(Value::List(all)) => all.first(),
            other => other,
        }
    }

    /// Compares the number `[n]` that the script expects in an output argument with the actual
    /// number. `index` is that of the argument, from 0.
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
    /// Returns the value if it is a number.
    pub fn number(&self) -> Option<i64> {
        if let Value::Number(n) = self { Some(*n) } else { None }
    }

    /// Returns the names in a value `A | B`; nothing if the value has no names.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Value::Name(n) => vec![n],
            Value::Either(all) => all.iter().flat_map(Value::names).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the member with this name of a structure `{…}`; `None` if there is none.
    pub fn member(&self, name: &str) -> Option<&Value> {
        let Value::Group(members) = self else { return None };
        members.iter().find(|m| m.0.as_deref() == Some(name)).map(|m| &m.1)
    }
}
