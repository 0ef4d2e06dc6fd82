//! Parsing of TOML: reports all syntax errors with their lines and columns, and records the line of
//! every key.

use crate::problem::Problem;
use std::collections::BTreeMap;
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

/// Largest allowed size of a scenario file in bytes: 1 MiB.
const MOST_BYTES: usize = 1 << 20;
/// Largest number of syntax errors that are reported: one unclosed quote can cause a hundred
/// errors.
const MOST_ERRORS: usize = 20;

/// A parsed TOML file.
pub struct Document {
    /// Content of the file as TOML values.
    pub table: Table,
    /// Line of each key and table, counted from 1, by the path of the key.
    pub lines: BTreeMap<String, usize>,
}

/// Parses the text of a scenario of at most 1 MiB; returns its syntax errors if there are any.
pub fn parse(text: &str) -> Result<Document, Vec<Problem>> {
    parse_within(text, MOST_BYTES)
}

/// Parses the text of a TOML file of at most `most` bytes; returns its syntax errors if there are
/// any.
pub fn parse_within(text: &str, most: usize) -> Result<Document, Vec<Problem>> {
    if text.len() > most {
        return Err(vec![Problem::of_file(format!(
            "the file has {} bytes, but at most {most} are allowed",
            text.len()
        ))]);
    }
    let starts = Lines::of(text);
    let (parsed, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let mut problems = Vec::new();
        for error in errors.iter().take(MOST_ERRORS) {
            let (line, column) = starts.place(error.span().map_or(text.len(), |s| s.start));
            let what = error.message().lines().collect::<Vec<_>>().join(", ");
            let message = format!("this is not TOML, column {column}: {what}");
            problems.push(Problem { line: Some(line), ..Problem::of_file(message) });
        }
        problems.sort_by_key(|problem| problem.line);
        return Err(problems);
    }
    let mut walk = Walk { starts, lines: BTreeMap::new(), problems: Vec::new() };
    let table = walk.table(parsed.into_inner(), "");
    if walk.problems.is_empty() {
        Ok(Document { table, lines: walk.lines })
    } else {
        Err(walk.problems)
    }
}

/// Byte offset at which each line of a text starts.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Lines {
        let breaks = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1);
        Lines(std::iter::once(0).chain(breaks).collect())
    }

    /// Returns line and column of the byte with offset `byte`, both counted from 1.
    fn place(&self, byte: usize) -> (usize, usize) {
        let line = self.0.partition_point(|start| *start <= byte);
        (line, byte - self.0[line - 1] + 1)
    }
}

/// Converts values of the parser, which know their position in the text, into plain values, and
/// records the lines of keys.
struct Walk {
    starts: Lines,
    lines: BTreeMap<String, usize>,
    problems: Vec<Problem>,
}

impl Walk {
    fn table(&mut self, table: DeTable, path: &str) -> Table {
        let mut plain = Table::new();
        for (key, value) in table {
            let line = self.starts.place(key.span().start).0;
            let name = key.into_inner().into_owned();
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            self.lines.insert(path.clone(), line);
            plain.insert(name, self.value(value.into_inner(), &path, line));
        }
        plain
    }

    fn value(&mut self, value: DeValue, path: &str, line: usize) -> Value {
        match value {
            DeValue::String(text) => Value::String(text.into_owned()),
            DeValue::Integer(n) => match i64::from_str_radix(n.as_str(), n.radix()) {
                Ok(n) => Value::Integer(n),
                Err(_) => self.unreadable(
                    path,
                    line,
                    "is too large: a whole number must fit into 64 bits",
                ),
            },
            DeValue::Float(x) => match x.as_str().parse() {
                Ok(x) => Value::Float(x),
                Err(_) => self.unreadable(path, line, "is not a number"),
            },
            DeValue::Boolean(b) => Value::Boolean(b),
            DeValue::Datetime(d) => Value::Datetime(d),
            DeValue::Array(items) => {
                let mut plain = Vec::new();
                for (i, item) in items.into_iter().enumerate() {
                    let line = self.starts.place(item.span().start).0;
                    let path = format!("{path}.{i}");
                    if matches!(item.get_ref(), DeValue::Table(_)) {
                        self.lines.insert(path.clone(), line);
                    }
                    plain.push(self.value(item.into_inner(), &path, line));
                }
                Value::Array(plain)
            }
            DeValue::Table(table) => Value::Table(self.table(table, path)),
        }
    }

    fn unreadable(&mut self, path: &str, line: usize, message: &str) -> Value {
        let problem = Problem::of_file(message);
        self.problems.push(Problem { path: path.to_owned(), line: Some(line), ..problem });
        Value::Integer(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_know_their_lines() {
        let document = parse("a = 1\n\n[b]\nc = 'x'\n[[d]]\ne = 1\n[[d]]\ne = 2\n")
            .unwrap_or_else(|p| panic!("{p:?}"));
        let line = |path: &str| document.lines.get(path).copied();
        assert_eq!(line("a"), Some(1));
        assert_eq!(line("b.c"), Some(4));
        assert_eq!(line("d.1.e"), Some(8));
        assert_eq!(line("d.1"), Some(7));
    }

    #[test]
    fn every_syntax_error_has_its_place() {
        let problems = parse("a = \nb = 2\nc == 3\nb = 4\n").err().unwrap_or_default();
        let lines: Vec<Option<usize>> = problems.iter().map(|p| p.line).collect();
        assert!(lines.contains(&Some(1)) && lines.contains(&Some(3)), "{problems:?}");
        let problems = parse("a = 99999999999999999999").err().unwrap_or_default();
        assert!(problems[0].to_string().contains("line 1: a: is too large"), "{}", problems[0]);
    }

    #[test]
    fn depth_and_length_are_bounded() {
        assert!(parse(&format!("a{} = 1", ".a".repeat(100_000))).is_err());
        assert!(parse(&format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000))).is_err());
        assert!(parse(&" ".repeat(MOST_BYTES + 1)).is_err());
    }
}
