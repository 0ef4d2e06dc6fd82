//! Parser: from tokens to events. It follows packetdrill's public syntax document. Features without
//! meaning for a simulated TCP endpoint (other protocols, tunnels, urgent data) are errors that
//! name their place.

use crate::calls::CALLS;
use crate::lexer::{Lexeme, Token, tokens};
use crate::problem::{Place, Problem, hint};
use crate::profile::Profile;
use crate::script::{Action, Call, Event, Options, Script, Value, When};
use crate::{shell, snippet};

/// Maximum length of a script, in bytes.
const LONGEST: usize = 4 << 20;
/// Maximum nesting of lists and structures in arguments.
const DEEPEST: u32 = 16;

/// Options of packetdrill that concern the transmission of packets and have no effect here.
const NO_MATTER: [&str; 12] = [
    "local_ip",
    "remote_ip",
    "gateway_ip",
    "netmask_ip",
    "ip_version",
    "local_linux_sport",
    "bind_port",
    "connect_port",
    "speed",
    "verbose",
    "non_fatal",
    "send_omit_free",
];
const OPTIONS: [&str; 6] = [
    "tolerance_usecs",
    "tolerance_percent",
    "tcp_ts_tick_usecs",
    "strict_segments",
    "mss",
    "profile",
];

/// Parses a script. The error names the first place that does not follow the syntax.
pub fn parse(text: &str) -> Result<Script, Problem> {
    if text.len() > LONGEST {
        return Err(Problem::new(
            Place { line: 1, column: 1 },
            "the script is longer than 4 MiB, which is the maximum",
        ));
    }
    let all = tokens(text)?;
    let mut parser = Parser { all: &all, at: 0, end: end_of(text) };
    let options = parser.options()?;
    let mut events = Vec::new();
    while parser.at < all.len() {
        events.push(parser.event()?);
    }
    if events.is_empty() {
        return Err(parser.problem("a script needs at least one event"));
    }
    Ok(Script { options, events })
}

fn end_of(text: &str) -> Place {
    let line = text.matches('\n').count() as u32 + 1;
    let last = text.rsplit('\n').next().unwrap_or("");
    Place { line, column: last.chars().count() as u32 + 1 }
}

/// Parser of a script, with its current position in the tokens.
pub(crate) struct Parser<'a> {
    all: &'a [Lexeme],
    at: usize,
    end: Place,
}

impl Parser<'_> {
    pub(crate) fn place(&self) -> Place {
        self.all.get(self.at).map_or(self.end, |l| l.place)
    }

    pub(crate) fn peek(&self) -> Option<&Token> {
        self.all.get(self.at).map(|l| &l.token)
    }

    fn peek_after(&self, n: usize) -> Option<&Token> {
        self.all.get(self.at + n).map(|l| &l.token)
    }

    /// Returns the next token if it follows the previous token directly, without a blank; otherwise
    /// `None`.
    pub(crate) fn peek_glued(&self) -> Option<&Token> {
        self.all.get(self.at).filter(|l| l.glued).map(|l| &l.token)
    }

    pub(crate) fn advance(&mut self) {
        self.at += 1;
    }

    pub(crate) fn problem(&self, message: impl Into<String>) -> Problem {
        Problem::new(self.place(), message)
    }

    pub(crate) fn expected(&self, what: &str) -> Problem {
        let found = self.peek().map_or_else(|| "the end of the script".into(), Token::describe);
        self.problem(format!("expected {what}, found {found}"))
    }

    pub(crate) fn sees(&self, sign: char) -> bool {
        self.peek() == Some(&Token::Sign(sign))
    }

    /// Skips the next token if it is the character `sign`. Returns whether the token was skipped.
    pub(crate) fn takes(&mut self, sign: char) -> bool {
        let there = self.sees(sign);
        self.at += usize::from(there);
        there
    }

    pub(crate) fn want(&mut self, sign: char) -> Result<(), Problem> {
        if self.takes(sign) { Ok(()) } else { Err(self.expected(&format!("'{sign}'"))) }
    }

    /// Skips the next token if it is the word `word`. Returns whether the token was skipped.
    pub(crate) fn takes_word(&mut self, word: &str) -> bool {
        let there = matches!(self.peek(), Some(Token::Word(w)) if w == word);
        self.at += usize::from(there);
        there
    }

    /// Skips and returns the next token, which must be a whole number in the range of the type `T`.
    /// Otherwise returns an error message in which `what` is the name of the number.
    pub(crate) fn whole<T: TryFrom<u64>>(&mut self, what: &str) -> Result<T, Problem> {
        let Some(&Token::Number(n)) = self.peek() else { return Err(self.expected(what)) };
        let fits = T::try_from(n).map_err(|_| {
            let most = u64::MAX >> (64 - 8 * size_of::<T>());
            self.problem(format!("{what} is {n}, but at most {most} is allowed"))
        })?;
        self.advance();
        Ok(fits)
    }

    fn options(&mut self) -> Result<Options, Problem> {
        let mut options = Options::default();
        while let Some(Token::Option(name, value)) = self.peek() {
            let number = |most: f64| {
                let parsed = value.as_deref().and_then(|v| v.parse::<f64>().ok());
                parsed.filter(|n| (0.0..=most).contains(n)).ok_or_else(|| {
                    self.problem(format!("--{name} needs a number from 0 to {most}"))
                })
            };
            match name.as_str() {
                "tolerance_usecs" => options.tolerance_us = number(1e9)? as u64,
                "tolerance_percent" => options.tolerance_permille = (number(100.0)? * 10.0) as u64,
                "tcp_ts_tick_usecs" => options.timestamp_tick_us = number(1e6)? as u64,
                "strict_segments" => options.strict_segments = true,
                "mss" => options.mss = number(65_000.0)? as u16,
                "profile" => {
                    let known = value.as_deref().and_then(Profile::named);
                    let message = "--profile must be linux or classic";
                    options.profile = Some(known.ok_or_else(|| self.problem(message))?);
                }
                other if NO_MATTER.contains(&other) => {}
                other => {
                    let near = hint(other, OPTIONS.into_iter().chain(NO_MATTER));
                    return Err(self.problem(format!("unknown option --{other}{near}")));
                }
            }
            self.advance();
        }
        Ok(options)
    }

    fn event(&mut self) -> Result<Event, Problem> {
        let place = self.place();
        let shell = matches!(self.peek(), Some(Token::Shell(_)));
        let when = if shell { When::Any } else { self.when()? };
        let action = match self.peek() {
            Some(Token::Sign('<')) => {
                self.advance();
                Action::Inject(self.packet()?)
            }
            Some(Token::Sign('>')) => {
                self.advance();
                Action::Expect(self.packet()?)
            }
            Some(Token::Shell(text)) => {
                let settings = shell::settings(text, self.place())?;
                self.advance();
                Action::Set(settings)
            }
            Some(Token::Code(text)) => {
                let snippet = snippet::parse(text, self.place())?;
                self.advance();
                Action::Check(snippet)
            }
            Some(Token::Dots | Token::Word(_)) => Action::Call(self.call(place)?),
            _ => return Err(self.expected("a packet, a system call, a command or a snippet")),
        };
        Ok(Event { place, when, action })
    }

    fn when(&mut self) -> Result<When, Problem> {
        if self.takes('*') {
            return Ok(When::Any);
        }
        let relative = self.takes('+');
        let from = self.time()?;
        let mut to = from;
        if self.takes('~') {
            if relative {
                self.want('+')?;
            }
            let place = self.place();
            to = self.time()?;
            if to < from {
                return place.fail("the end of the time range is before its start");
            }
        }
        Ok(if relative { When::After(from, to) } else { When::At(from, to) })
    }

    /// Skips a time in seconds, and returns it in µs.
    fn time(&mut self) -> Result<u64, Problem> {
        // A day: longer than any script, and sums of times stay far from an overflow.
        const MOST: u64 = 86_400_000_000;
        let us = match self.peek() {
            Some(&Token::Number(s)) => s.saturating_mul(1_000_000),
            Some(&Token::Fraction(us)) => us,
            _ => return Err(self.expected("a time")),
        };
        if us > MOST {
            let message = "the time is more than 86400 s (one day), which is the maximum";
            return Err(self.problem(message));
        }
        self.advance();
        Ok(us)
    }

    /// Parses the system call of an event that begins at `place`.
    fn call(&mut self, place: Place) -> Result<Call, Problem> {
        let returns = match self.peek() {
            Some(Token::Dots) => {
                self.advance();
                Some(self.time()?)
            }
            _ => None,
        };
        let name = match (self.peek(), self.peek_after(1)) {
            (Some(Token::Word(name)), Some(Token::Sign('('))) => name.clone(),
            _ => return Err(self.expected("the name of a system call and '('")),
        };
        if !CALLS.iter().any(|known| known.0 == name) {
            let near = hint(&name, CALLS.map(|known| known.0));
            return Err(self.problem(format!("unknown system call '{name}'{near}")));
        }
        self.advance();
        let arguments = self.values('(', ')', 0)?;
        self.want('=')?;
        let result = self.value(0)?;
        let mut errno = None;
        // The next event never begins with a word, but with a time, a shell command or '*'.
        if let Some(Token::Word(name)) = self.peek() {
            errno = Some(name.clone());
            self.advance();
        }
        if self.sees('(') {
            while !self.takes(')') {
                if self.peek().is_none() {
                    return Err(self.expected("')'"));
                }
                self.advance();
            }
        }
        Ok(Call { place, returns, name, arguments, result, errno })
    }

    fn values(&mut self, open: char, close: char, depth: u32) -> Result<Vec<Value>, Problem> {
        self.want(open)?;
        let mut all = Vec::new();
        if self.takes(close) {
            return Ok(all);
        }
        loop {
            all.push(self.value(depth + 1)?);
            if self.takes(close) {
                return Ok(all);
            }
            self.want(',')?;
        }
    }

    fn value(&mut self, depth: u32) -> Result<Value, Problem> {
        if depth > DEEPEST {
            return Err(self.problem("lists and structures are nested more than 16 levels deep"));
        }
        let first = self.single(depth)?;
        if !self.sees('|') {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.takes('|') {
            all.push(self.single(depth)?);
        }
        Ok(Value::Either(all))
    }

    fn single(&mut self, depth: u32) -> Result<Value, Problem> {
        let value = match self.peek() {
            Some(Token::Dots) => Value::Any,
            Some(&Token::Number(n)) => Value::Number(n as i64),
            Some(Token::Text(t)) => Value::Text(t.clone()),
            Some(Token::Word(name)) => {
                let name = name.clone();
                self.advance();
                if self.sees('(') {
                    return Ok(Value::Function(name, self.values('(', ')', depth)?));
                }
                return Ok(Value::Name(name));
            }
            Some(Token::Sign('-')) => {
                self.advance();
                let n: u32 = self.whole("a number")?;
                return Ok(Value::Number(-i64::from(n)));
            }
            Some(Token::Sign('[')) => return Ok(Value::List(self.values('[', ']', depth)?)),
            Some(Token::Sign('{')) => return self.group(depth),
            _ => return Err(self.expected("a value")),
        };
        self.advance();
        if self.peek() == Some(&Token::Dots) && matches!(value, Value::Text(_)) {
            self.advance(); // a text may end with `...`
        }
        Ok(value)
    }

    fn group(&mut self, depth: u32) -> Result<Value, Problem> {
        self.want('{')?;
        let mut members = Vec::new();
        while !self.takes('}') {
            if !members.is_empty() {
                self.want(',')?;
            }
            let name = match (self.peek(), self.peek_after(1)) {
                (Some(Token::Word(name)), Some(Token::Sign('='))) => Some(name.clone()),
                _ => None,
            };
            if name.is_some() {
                self.advance();
                self.advance();
            }
            let value = self.value(depth + 1)?;
            // In `msg_iov(2)=[…]` the number of elements follows the name.
            if let Value::Function(function, _) = &value
                && name.is_none()
                && self.takes('=')
            {
                members.push((Some(function.clone()), self.value(depth + 1)?));
            } else {
                members.push((name, value));
            }
        }
        Ok(Value::Group(members))
    }
}
