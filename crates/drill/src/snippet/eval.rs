//! Evaluation of snippets, the assertions between `%{` and `}%` in a script.

use super::tree::{Expression, Kind, Snippet, Statement};
use crate::problem::{Place, Problem};
use std::collections::BTreeMap;
use std::fmt;

/// A value of an expression in a snippet.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Datum {
    /// A whole number; 1 for true, 0 for false.
    Number(i64),
    /// A text (string).
    Text(String),
    /// A tuple of values.
    Tuple(Vec<Datum>),
}

/// Longest text that a snippet can produce, in bytes.
const LONGEST: usize = 4_096;
/// Maximum number of variables in a script.
const MOST: usize = 1_000;

impl fmt::Display for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Datum::Number(n) => write!(f, "{n}"),
            Datum::Text(t) => write!(f, "{t}"),
            Datum::Tuple(all) => {
                let all: Vec<String> = all.iter().map(Datum::to_string).collect();
                write!(f, "({})", all.join(", "))
            }
        }
    }
}

impl Datum {
    fn is_true(&self) -> bool {
        match self {
            Datum::Number(n) => *n != 0,
            Datum::Text(t) => !t.is_empty(),
            Datum::Tuple(all) => !all.is_empty(),
        }
    }
}

/// Variables of a script by name; their values persist from snippet to snippet.
pub type Variables = BTreeMap<String, Datum>;

/// Runs a snippet and returns the lines that it prints. `look_up` returns the value of a field of
/// `tcp_info` or of a constant, or an error message.
pub fn run(
    snippet: &Snippet,
    variables: &mut Variables,
    look_up: &dyn Fn(&str) -> Result<i64, String>,
) -> Result<Vec<String>, Problem> {
    let mut printed = Vec::new();
    for (place, statement) in &snippet.statements {
        let scope = Scope { variables, look_up };
        match statement {
            Statement::Assert(condition, message, text) => {
                if !scope.value(condition)?.is_true() {
                    let message = match message {
                        Some(m) => format!(": {}", scope.value(m)?),
                        None => String::new(),
                    };
                    let values = scope.names_in(condition);
                    let failed = format!("assertion failed: {text}{message}{values}");
                    return place.fail(failed);
                }
            }
            Statement::Print(all) => {
                let all: Result<Vec<String>, Problem> =
                    all.iter().map(|e| scope.value(e).map(|v| v.to_string())).collect();
                printed.push(all?.join(" "));
            }
            Statement::Assign(name, operator, e) => {
                let mut value = scope.value(e)?;
                if let Some(operator) = operator {
                    let old = scope.name(name, *place)?;
                    value = apply(operator, old, value, *place)?;
                }
                if variables.len() >= MOST && !variables.contains_key(name) {
                    return place.fail("the script has more than 1,000 variables");
                }
                variables.insert(name.clone(), value);
            }
        }
    }
    Ok(printed)
}

struct Scope<'a> {
    variables: &'a Variables,
    look_up: &'a dyn Fn(&str) -> Result<i64, String>,
}

impl Scope<'_> {
    fn name(&self, name: &str, place: Place) -> Result<Datum, Problem> {
        match (name, self.variables.get(name)) {
            (_, Some(value)) => Ok(value.clone()),
            ("True", _) => Ok(Datum::Number(1)),
            ("False", _) => Ok(Datum::Number(0)),
            _ => (self.look_up)(name).map(Datum::Number).map_err(|m| Problem::new(place, m)),
        }
    }

    /// Returns the names in an expression with their values, for the message of a failed assertion.
    fn names_in(&self, e: &Expression) -> String {
        let mut names = Vec::new();
        collect(e, &mut names);
        names.dedup();
        let of = |n: &&str| self.name(n, e.place).ok().map(|v| format!("{n} is {v}"));
        let known: Vec<String> = names.iter().filter_map(of).collect();
        if known.is_empty() { String::new() } else { format!(" ({})", known.join(", ")) }
    }

    fn value(&self, e: &Expression) -> Result<Datum, Problem> {
        match &e.kind {
            Kind::Number(n) => Ok(Datum::Number(*n)),
            Kind::Text(t) => Ok(Datum::Text(t.clone())),
            Kind::Name(name) => self.name(name, e.place),
            Kind::Unary(sign, inner) => {
                let inner = self.value(inner)?;
                match (*sign, inner) {
                    ("not", d) => Ok(Datum::Number(i64::from(!d.is_true()))),
                    ("~", Datum::Number(n)) => Ok(Datum::Number(!n)),
                    ("-", Datum::Number(n)) => {
                        n.checked_neg().map(Datum::Number).ok_or_else(|| too_large(e.place))
                    }
                    _ => e.place.fail(format!("the operator '{sign}' needs a number")),
                }
            }
            Kind::Binary("and", a, b) => {
                let a = self.value(a)?;
                if a.is_true() { self.value(b) } else { Ok(a) }
            }
            Kind::Binary("or", a, b) => {
                let a = self.value(a)?;
                if a.is_true() { Ok(a) } else { self.value(b) }
            }
            Kind::Binary(sign, a, b) => apply(sign, self.value(a)?, self.value(b)?, e.place),
            Kind::Compare(first, others) => {
                let mut left = self.value(first)?;
                for (sign, right) in others {
                    let right = self.value(right)?;
                    if !compare(sign, &left, &right, e.place)? {
                        return Ok(Datum::Number(0));
                    }
                    left = right;
                }
                Ok(Datum::Number(1))
            }
            Kind::Call(name, arguments) => {
                let values: Result<Vec<Datum>, Problem> =
                    arguments.iter().map(|a| self.value(a)).collect();
                call(name, values?, e.place)
            }
            Kind::Tuple(all) => {
                let all: Result<Vec<Datum>, Problem> = all.iter().map(|a| self.value(a)).collect();
                Ok(Datum::Tuple(all?))
            }
        }
    }
}

fn collect<'a>(e: &'a Expression, names: &mut Vec<&'a str>) {
    match &e.kind {
        Kind::Number(_) | Kind::Text(_) => {}
        Kind::Name(n) => names.push(n),
        Kind::Unary(_, a) => collect(a, names),
        Kind::Binary(_, a, b) => {
            collect(a, names);
            collect(b, names);
        }
        Kind::Compare(first, others) => {
            collect(first, names);
            others.iter().for_each(|o| collect(&o.1, names));
        }
        Kind::Call(_, all) | Kind::Tuple(all) => all.iter().for_each(|a| collect(a, names)),
    }
}

fn too_large(place: Place) -> Problem {
    Problem::new(place, "the result has more than 64 bits")
}

fn compare(sign: &str, a: &Datum, b: &Datum, place: Place) -> Result<bool, Problem> {
    let order = match (a, b) {
        (Datum::Number(a), Datum::Number(b)) => a.cmp(b),
        (Datum::Text(a), Datum::Text(b)) => a.cmp(b),
        _ if sign == "==" => return Ok(a == b),
        _ if sign == "!=" => return Ok(a != b),
        _ => {
            return place
                .fail(format!("the operator '{sign}' cannot compare values of these types"));
        }
    };
    Ok(match sign {
        "==" => order.is_eq(),
        "!=" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        _ => order.is_ge(),
    })
}

fn apply(sign: &str, a: Datum, b: Datum, place: Place) -> Result<Datum, Problem> {
    let (a, b) = match (a, b) {
        (Datum::Number(a), Datum::Number(b)) => (a, b),
        (Datum::Text(a), b) if sign == "%" => return format_text(&a, b, place),
        (Datum::Text(a), Datum::Text(b)) if sign == "+" && a.len() + b.len() <= LONGEST => {
            return Ok(Datum::Text(a + &b));
        }
        _ => {
            return place
                .fail(format!("the operator '{sign}' cannot be used with values of these types"));
        }
    };
    let shift = || u32::try_from(b).ok().filter(|b| *b < 64).ok_or_else(|| too_large(place));
    let result = match sign {
        "+" => a.checked_add(b),
        "-" => a.checked_sub(b),
        "*" => a.checked_mul(b),
        "|" => Some(a | b),
        "&" => Some(a & b),
        "^" => Some(a ^ b),
        "<<" => 1i64.checked_shl(shift()?).filter(|s| *s > 0).and_then(|s| a.checked_mul(s)),
        ">>" => Some(a >> shift()?),
        "//" | "%" if b == 0 => return place.fail("division by zero"),
        // As in Python, the quotient is rounded down, so that the remainder has the sign of the
        // divisor.
        "//" => a.checked_div(b).map(|q| q - i64::from(a % b != 0 && (a < 0) != (b < 0))),
        "%" => a.checked_rem(b).map(|r| if r != 0 && (r < 0) != (b < 0) { r + b } else { r }),
        _ => return place.fail(format!("the operator '{sign}' is not supported in a snippet")),
    };
    result.map(Datum::Number).ok_or_else(|| too_large(place))
}

/// Returns the result of formatting in Python, such as `'%d of %s' % (a, b)`; flags and widths are
/// ignored.
fn format_text(text: &str, values: Datum, place: Place) -> Result<Datum, Problem> {
    let mut values = match values {
        Datum::Tuple(all) => all.into_iter(),
        one => vec![one].into_iter(),
    };
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let kind = rest.find(|c| !c.is_ascii_digit() && !"-+ .#l".contains(*c));
        match kind {
            Some('%') => out.push('%'),
            Some('d' | 'u' | 'i' | 's' | 'r') => match values.next() {
                Some(value) => out.push_str(&value.to_string()),
                None => {
                    return place
                        .fail("the text before '%' has more placeholders than there are values");
                }
            },
            Some('x') => match values.next() {
                Some(Datum::Number(n)) => out.push_str(&format!("{n:x}")),
                _ => return place.fail("the placeholder %x needs a number"),
            },
            _ => {
                return place.fail(
                    "unknown placeholder in a text: only %d, %s and %x are supported, and %% for \
                     a percent sign",
                );
            }
        }
        if out.len() > LONGEST {
            return place.fail("the resulting text is longer than 4,096 bytes");
        }
    }
    match values.next() {
        None => Ok(Datum::Text(out)),
        Some(_) => place.fail("the text before '%' has fewer placeholders than there are values"),
    }
}

fn call(name: &str, mut values: Vec<Datum>, place: Place) -> Result<Datum, Problem> {
    let wrong = || {
        Problem::new(
            place,
            format!(
                "{name}() cannot be called with values of these types, or with this number of \
                 values"
            ),
        )
    };
    if let [Datum::Tuple(_)] = values[..]
        && ["min", "max"].contains(&name)
        && let Some(Datum::Tuple(inner)) = values.pop()
    {
        values = inner;
    }
    let numbers = || -> Result<Vec<i64>, Problem> {
        let of = |v: &Datum| if let Datum::Number(n) = v { Ok(*n) } else { Err(wrong()) };
        values.iter().map(of).collect()
    };
    match (name, &values[..]) {
        ("abs", [Datum::Number(n)]) => n.checked_abs().map(Datum::Number).ok_or_else(wrong),
        ("min", [_, ..]) => Ok(Datum::Number(numbers()?.into_iter().min().unwrap_or(0))),
        ("max", [_, ..]) => Ok(Datum::Number(numbers()?.into_iter().max().unwrap_or(0))),
        ("len", [Datum::Text(t)]) => Ok(Datum::Number(t.chars().count() as i64)),
        ("len", [Datum::Tuple(t)]) => Ok(Datum::Number(t.len() as i64)),
        ("str", [value]) => Ok(Datum::Text(value.to_string())),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn tell(text: &str) -> Result<Vec<String>, String> {
        let place = Place { line: 1, column: 1 };
        let field = |name: &str| match name {
            "tcpi_snd_cwnd" => Ok(10),
            "TCP_CA_Open" => Ok(0),
            other => Err(format!("unknown name '{other}'")),
        };
        let snippet = parse(text, place).map_err(|p| p.to_string())?;
        run(&snippet, &mut Variables::new(), &field).map_err(|p| p.to_string())
    }

    #[test]
    fn what_scripts_assert() {
        let passes = [
            "assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd",
            "x = 0x10\nx += 4; assert x == 20",
            "assert 5 <= tcpi_snd_cwnd <= 10 and not tcpi_snd_cwnd == 7",
            "assert (tcpi_snd_cwnd & 2) != 0, 'no'  # a comment",
            "assert max(3, 2 * 4 - 1) == 7 or False",
            "assert 'cwnd=%d' % tcpi_snd_cwnd == 'cwnd=10'",
            "assert -7 // 2 == -4; assert -7 % 3 == 2",
            "assert (1 +\n 2) == 3",
            "",
        ];
        for text in passes {
            assert_eq!(tell(text), Ok(vec![]), "{text}");
        }
        assert_eq!(tell("print('w', tcpi_snd_cwnd)"), Ok(vec!["w 10".to_string()]));
    }

    #[test]
    fn failures_tell_values_and_places() {
        let failed =
            tell("assert TCP_CA_Open == 0\nassert tcpi_snd_cwnd == 11, 'cwnd=%d' % tcpi_snd_cwnd");
        assert_eq!(
            failed.unwrap_err(),
            "2:1: assertion failed: tcpi_snd_cwnd == 11: cwnd=10 (tcpi_snd_cwnd is 10)"
        );
        for (text, message) in [
            ("assert bananas", "1:10: unknown name 'bananas'"),
            ("import os", "1:3: 'import': only assert"),
            ("assert open('/etc/passwd')", "1:10: unknown function 'open'"),
            ("x = 1 if 2 else 3", "1:9: the statement should end"),
            ("assert 1 // 0", "1:10: division by zero"),
            ("x = 9223372036854775807 + 1", "more than 64 bits"),
            ("x = 1 << 70", "more than 64 bits"),
            ("assert tcpi_snd_cwnd ==", "an expression is missing"),
            ("assert '%d %d' % 1", "more placeholders than there are values"),
            ("x = $", "the character '$' is not allowed"),
        ] {
            let found = tell(text).unwrap_err();
            assert!(found.contains(message), "{text}: {found}");
        }
    }
}
