//! A parsed script: its options, and its events in order.

use crate::problem::{Place, Problem};
use crate::profile::Profile;
use crate::shell::Setting;
use crate::snippet::Snippet;

/// A whole script: options and events.
#[derive(Clone, PartialEq, Debug)]
pub struct Script {
    /// Options from the `--name=value` lines.
    pub options: Options,
    /// Events of the script in order.
    pub events: Vec<Event>,
}

/// Options of a script (`--name=value`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Tolerance of the time of an event in µs; `tolerance_permille` applies instead if it is
    /// larger.
    pub tolerance_us: u64,
    /// Tolerance of the time of an event, in thousandths of the time since the previous event.
    pub tolerance_permille: u64,
    /// Unit of TCP timestamps in µs, with which their values are compared; 0 if they are not
    /// compared.
    pub timestamp_tick_us: u64,
    /// Whether an expected packet must be sent as one packet, not as a run of segments.
    pub strict_segments: bool,
    /// Maximum segment size in bytes that the endpoint announces.
    pub mss: u16,
    /// TCP profile for which the script is written; `None` if the script does not name one.
    pub profile: Option<Profile>,
}

impl Default for Options {
    /// Returns the defaults of packetdrill. The tolerance is 4 ms, or an eighth of the time since
    /// the previous event if this is larger. Timestamps are not compared.
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
    /// Line and column at which the event begins in the script.
    pub place: Place,
    /// Time at which the event happens or is expected.
    pub when: When,
    /// Kind of the event, with its data.
    pub action: Action,
}

/// Time of an event of a script, in µs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// Any time: `*`, and shell commands without a time.
    Any,
    /// Earliest and latest time since the start of the script, in µs; they may be equal.
    At(u64, u64),
    /// Earliest and latest time since the previous event, in µs; they may be equal.
    After(u64, u64),
}

/// Kind of an event of a script, with its data.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// A packet arrives at the endpoint.
    Inject(Packet),
    /// A packet from the endpoint is expected.
    Expect(Packet),
    /// The application makes a system call.
    Call(Call),
    /// A shell command changes settings of the host.
    Set(Vec<Setting>),
    /// Assertions about the state of the endpoint are checked.
    Check(Snippet),
}

/// A packet with the numbers of the script: sequence numbers as written, the window as in the TCP
/// header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// ECN field of the IP header (2 bits); `None` if the script does not give it.
    pub ecn: Option<u8>,
    /// TCP flags, see `eastwest_types::flag`.
    pub flags: u8,
    /// Sequence number of the first byte.
    pub start: u32,
    /// Number of payload bytes.
    pub length: u32,
    /// Acknowledgement number; `None` for a packet without ACK.
    pub ack: Option<u32>,
    /// Window field of the header, not scaled; `None` if the script does not give it.
    pub window: Option<u16>,
    /// TCP options of the packet; `None` for `<...>`, which stands for any options.
    pub options: Option<Vec<TcpOption>>,
}

/// An option of the TCP header. Padding is not represented: simulated packets have none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TcpOption {
    /// Maximum segment size in bytes.
    Mss(u16),
    /// Window scale (shift count, RFC 7323).
    Wscale(u8),
    /// SACK-permitted option.
    SackOk,
    /// SACK blocks: each has its first sequence number, and the number after its last.
    Sack(Vec<(u32, u32)>),
    /// Timestamp value, and echoed timestamp.
    Timestamp(u32, u32),
}

/// A system call with its expected result.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// Line and column of the call in the script.
    pub place: Place,
    /// For a blocking call: expected time of return in µs, counted like the time of its event from
    /// the start of the script or from the previous event. `None` for a call that returns at once.
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
    /// The sign `...`, which stands for any value.
    Any,
    /// A whole number.
    Number(i64),
    /// Name of a constant, such as `SOL_TCP`.
    Name(String),
    /// Text in quotation marks, without the marks.
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
    /// Returns an error with the text `message` at the place of this call.
    pub fn fail<T>(&self, message: impl Into<String>) -> Result<T, Problem> {
        self.place.fail(message)
    }

    /// Returns the argument number `index` (from 0); `None` if there are fewer arguments.
    pub fn argument(&self, index: usize) -> Option<&Value> {
        self.arguments.get(index)
    }

    /// Returns the argument number `index` (from 0) if it is a number, otherwise `None`.
    pub fn number(&self, index: usize) -> Option<i64> {
        self.argument(index).and_then(Value::number)
    }

    /// Returns the argument number `index` (from 0) if it is the name of a constant, otherwise
    /// `None`.
    pub fn constant(&self, index: usize) -> Option<&str> {
        match self.argument(index) {
            Some(Value::Name(name)) => Some(name),
            _ => None,
        }
    }

    /// Returns the argument number `index` (from 0), or its first element if it is a list `[a, …]`.
    pub fn first_of(&self, index: usize) -> Option<&Value> {
        match self.argument(index) {
            Some(Value::List(all)) => all.first(),
            other => other,
        }
    }

    /// Compares the number `[n]` that the script expects in the output argument number `index`
    /// (from 0) with the actual number.
    pub fn compare_filled(&self, index: usize, actual: i64) -> Result<(), Problem> {
        match self.argument(index) {
            Some(Value::List(all)) => match all[..] {
                [Value::Number(n)] if n == actual => Ok(()),
                [Value::Number(n)] => {
                    self.fail(format!("the call returns {actual} in its output argument, not {n}"))
                }
                _ => self.fail("the output argument must be one number in brackets, such as [4]"),
            },
            Some(Value::Any) => Ok(()),
            _ => self.fail("the output argument must be a number in brackets, such as [4]"),
        }
    }
}

impl Value {
    /// Returns the value if it is a number, otherwise `None`.
    pub fn number(&self) -> Option<i64> {
        if let Value::Number(n) = self { Some(*n) } else { None }
    }

    /// Returns the names in a value of the form `A | B`; an empty list if the value has no names.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Value::Name(n) => vec![n],
            Value::Either(all) => all.iter().flat_map(Value::names).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the member `name` of a structure `{…}`; `None` if the value has no such member.
    pub fn member(&self, name: &str) -> Option<&Value> {
        let Value::Group(members) = self else { return None };
        members.iter().find(|m| m.0.as_deref() == Some(name)).map(|m| &m.1)
    }
}
