//! A script as it is understood: options, then events in order.

use crate::problem::Place;
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
    /// How far a time may be off, microseconds.
    pub tolerance_us: u64,
    /// … or by this share of the time since the event before, in thousandths, if that is more.
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
