//! The table of calls from which transactions are replayed. The table is tab-separated text whose
//! first line names the columns, with one call per line. Calls of a transaction are in consecutive
//! lines, and a caller precedes the calls that it makes. `eastwest observe workload` writes this
//! table; docs/mechanisms/transactions.md describes it.
//!
//! | column | content |
//! |---|---|
//! | `transaction` | name of the transaction; a change of the name begins a new transaction |
//! | `call` | number of the call in its transaction, from 0 |
//! | `parent` | number of the call that makes this call; empty for call 0 |
//! | `start_s` | call 0: arrival, in s from the start of the recording; other calls: empty |
//! | `component` | component that answers the call |
//! | `service`, `operation` | names for the tables of results; optional columns |
//! | `request_bytes`, `response_bytes` | application bytes, at least 1 |
//! | `after` | calls of the same parent that must be done before: numbers with commas; optional |
//! | `gap_s` | computing time of the caller before the request, in s |
//! | `rest_s` | computing time of the component before the response, in s |
//! | `waited` | `yes`, or `no` if the caller does not wait for the answer; optional column |
//!
//! The text is untrusted. It is read line by line, quotes have no meaning, and the length of the
//! text and the constants of this module limit the memory. In names, an apostrophe before a
//! character that begins a formula in spreadsheets is not part of the name ([`plain`]).

use crate::scenario::rows;
use eastwest_engine::interrupt;
use eastwest_settings::narrow::at_most;
use eastwest_settings::problem::shorten;
use eastwest_types::Span;
use eastwest_workload::transactions::{Book, Call, Recorded};
use std::collections::BTreeMap;
use std::io::Read;

/// Maximum number of calls in a table of calls.
const MOST_CALLS: usize = 5_000_000;
/// Maximum number of predecessors of a call (column `after`).
const MOST_AFTER: usize = 1_000;
/// Maximum number of predecessors of all calls together.
const MOST_AFTER_IN_ALL: usize = 20_000_000;
/// Maximum size of a request or a response in bytes: 1 TB.
const MOST_BYTES: u64 = 1_000_000_000_000;
/// Latest arrival of a transaction, and longest time of computation, in seconds: 480 h.
const LATEST_S: f64 = 480.0 * 3600.0;
/// Maximum length of a name in bytes.
const MOST_NAME: usize = 4096;

/// Index of the column `transaction` in [`COLUMNS`]; the next constants are the indices of the
/// other columns.
const TRANSACTION: usize = 0;
const CALL: usize = 1;
const PARENT: usize = 2;
const START: usize = 3;
const COMPONENT: usize = 4;
const REQUEST: usize = 5;
const RESPONSE: usize = 6;
const GAP: usize = 7;
const REST: usize = 8;
const AFTER: usize = 9;
const WAITED: usize = 10;
const SERVICE: usize = 11;
const OPERATION: usize = 12;
/// Names of all columns; the first nine ([`NEEDED`]) are required.
const COLUMNS: [&str; 13] = [
    "transaction",
    "call",
    "parent",
    "start_s",
    "component",
    "request_bytes",
    "response_bytes",
    "gap_s",
    "rest_s",
    "after",
    "waited",
    "service",
    "operation",
];
/// Number of required columns, the first in [`COLUMNS`].
const NEEDED: usize = 9;
/// Indices of the columns that contain names, from which a leading apostrophe may be removed.
const NAMES: [usize; 4] = [TRANSACTION, COMPONENT, SERVICE, OPERATION];

/// Returns the transactions of a table of calls in order of arrival. Fails with the first problem,
/// as `:line: message`.
pub fn parse(text: impl Read) -> Result<Book, String> {
    let mut reader = csv::ReaderBuilder::new().delimiter(b'\t').quoting(false).from_reader(text);
    let places = header(reader.byte_headers().map_err(|e| rows::broken(&e))?)?;
    let mut table = Table::default();
    let mut row = csv::ByteRecord::new();
    while reader.read_byte_record(&mut row).map_err(|e| rows::broken(&e))? {
        interrupt::steps(16);
        let line = row.position().map_or(0, csv::Position::line);
        let cells: Result<Vec<&str>, String> = places
            .iter()
            .enumerate()
            .map(|(column, place)| place.map_or(Ok(""), |place| cell(column, &row[place])))
            .collect();
        cells.and_then(|cells| table.add(&cells)).map_err(|what| format!(":{line}: {what}"))?;
    }
    if table.book.transactions.is_empty() {
        return Err(": has no transaction; at least one line must follow the first line".to_owned());
    }
    let mut book = table.book;
    book.components = table.components.names;
    book.services = table.services.names;
    book.operations = table.operations.names;
    book.transactions.sort_by_key(|t| t.start);
    Ok(book)
}

/// Returns, for each of [`COLUMNS`], its position in the first line of the file, from 0; `None` if
/// the file lacks the column.
fn header(names: &csv::ByteRecord) -> Result<[Option<usize>; COLUMNS.len()], String> {
    let mut places = [None; COLUMNS.len()];
    for (at, name) in names.iter().enumerate() {
        let shown = || shorten(&String::from_utf8_lossy(name));
        let Some(column) = COLUMNS.iter().position(|c| c.as_bytes() == name) else {
            let known = COLUMNS.join(", ");
            return Err(format!(":1: there is no column \"{}\"; columns are {known}", shown()));
        };
        if places[column].replace(at).is_some() {
            return Err(format!(":1: has two columns {}", shown()));
        }
    }
    match COLUMNS[..NEEDED].iter().zip(&places).find(|(_, place)| place.is_none()) {
        Some((name, _)) => Err(format!(":1: has no column {name}")),
        None => Ok(places),
    }
}

fn cell(column: usize, bytes: &[u8]) -> Result<&str, String> {
    let name = COLUMNS[column];
    if bytes.len() > MOST_NAME && column != AFTER {
        return Err(format!("{name}: is longer than {MOST_NAME} bytes"));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| format!("{name}: is not text in UTF-8"))?;
    if text.contains('\0') {
        return Err(format!("{name}: has a NUL byte"));
    }
    Ok(if NAMES.contains(&column) { plain(text) } else { text })
}

/// Returns the name in a cell. A name that a spreadsheet would interpret as a formula is written
/// with an apostrophe before it (`python/eastwest/spreadsheet.py` explains why). This apostrophe is
/// removed; an apostrophe before any other character is a part of the name.
fn plain(cell: &str) -> &str {
    let rest = cell.trim_start_matches('\'');
    let guarded = rest.len() < cell.len() && rest.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if guarded { &cell[1..] } else { cell }
}

/// Distinct names, each with a number in the order of first occurrence.
#[derive(Default)]
struct Names {
    names: Vec<String>,
    numbers: BTreeMap<String, u32>,
}

impl Names {
    fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number: u32 = at_most(self.names.len());
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }
}

/// Calls that have been read from the table so far, with their numbers for the limits.
#[derive(Default)]
struct Table {
    book: Book,
    components: Names,
    services: Names,
    operations: Names,
    calls: usize,
    afters: usize,
}

impl Table {
    fn add(&mut self, cells: &[&str]) -> Result<(), String> {
        let name = cells[TRANSACTION];
        if name.is_empty() {
            return Err("transaction: has no name".to_owned());
        }
        if cells[COMPONENT].is_empty() {
            return Err("component: has no name".to_owned());
        }
        let last = self.book.transactions.last();
        let first = cells[CALL] == "0";
        if !first && last.is_none_or(|t| t.name != name) {
            let shown = shorten(name);
            return Err(format!(
                "call: the first call of transaction \"{shown}\" must have number 0"
            ));
        }
        let start = time(START, cells[START], !first)?;
        let none = &[][..];
        let before = if first { none } else { last.map_or(none, |t| &t.calls[..]) };
        let mut call = self.links(cells, before)?;
        call.component = self.components.number(cells[COMPONENT]);
        call.service = self.services.number(cells[SERVICE]);
        call.operation = self.operations.number(cells[OPERATION]);
        self.calls += 1;
        self.afters += call.after.len();
        if self.calls > MOST_CALLS || self.afters > MOST_AFTER_IN_ALL {
            return Err(format!(
                "too many calls: the file may have at most {MOST_CALLS} calls, and \
                 {MOST_AFTER_IN_ALL} numbers in the column after in total"
            ));
        }
        match self.book.transactions.last_mut().filter(|_| !first) {
            Some(transaction) => transaction.calls.push(call),
            None => {
                let name = name.to_owned();
                self.book.transactions.push(Recorded { name, start, calls: vec![call] });
            }
        }
        Ok(())
    }

    /// Returns the call in a row, without the numbers of its component, service and operation.
    /// `before` are the earlier calls of its transaction.
    fn links(&self, cells: &[&str], before: &[Call]) -> Result<Call, String> {
        let number: u32 = at_most(before.len());
        if cells[CALL].parse() != Ok(number) {
            let found = shorten(cells[CALL]);
            return Err(format!(
                "call: is \"{found}\", but must be {number}: calls of a \
                                transaction are numbered in order"
            ));
        }
        let parent = match (number, cells[PARENT]) {
            (0, "") => None,
            (0, other) => {
                return Err(format!(
                    "parent: is \"{}\", but call 0 must have no parent",
                    shorten(other)
                ));
            }
            (_, text) => Some(below(PARENT, text, number)?),
        };
        let mut after: Vec<u32> = Vec::new();
        for text in cells[AFTER].split(',').filter(|_| !cells[AFTER].is_empty()) {
            let other = below(AFTER, text, number)?;
            if parent.is_none() || before[other as usize].parent != parent {
                return Err(format!(
                    "after: names call {other}, which must have the same parent as this call"
                ));
            }
            if after.len() == MOST_AFTER {
                return Err(format!("after: names more than {MOST_AFTER} calls"));
            }
            after.push(other);
        }
        after.sort_unstable();
        after.dedup();
        let waited = match cells[WAITED] {
            "" | "yes" => true,
            "no" => false,
            other => {
                return Err(format!("waited: is \"{}\", but must be yes or no", shorten(other)));
            }
        };
        Ok(Call {
            parent,
            component: 0,
            service: 0,
            operation: 0,
            request_bytes: bytes(REQUEST, cells[REQUEST])?,
            response_bytes: bytes(RESPONSE, cells[RESPONSE])?,
            after: after.into(),
            gap: time(GAP, cells[GAP], false)?,
            rest: time(REST, cells[REST], false)?,
            waited,
        })
    }
}

/// Returns the call number in a cell. It must be less than `number`, the number of the call in this
/// row, because only earlier calls can be named.
fn below(column: usize, text: &str, number: u32) -> Result<u32, String> {
    text.parse().ok().filter(|&n: &u32| n < number).ok_or_else(|| {
        let (name, shown) = (COLUMNS[column], shorten(text));
        format!("{name}: is \"{shown}\", but must be the number of an earlier call, below {number}")
    })
}

fn bytes(column: usize, text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|n| (1..=MOST_BYTES).contains(n)).ok_or_else(|| {
        let (name, shown) = (COLUMNS[column], shorten(text));
        format!("{name}: \"{shown}\" is not a whole number from 1 to {MOST_BYTES}")
    })
}

/// Returns the time in a cell, which is given in seconds. If `absent` is true, the cell must be
/// empty, and the result is 0.
fn time(column: usize, text: &str, absent: bool) -> Result<Span, String> {
    let (name, shown) = (COLUMNS[column], || shorten(text));
    if absent {
        return match text {
            "" => Ok(Span::ZERO),
            _ => Err(format!("{name}: is \"{}\", but only call 0 may have a value here", shown())),
        };
    }
    let seconds = text.parse().ok().filter(|t| (0.0..=LATEST_S).contains(t));
    seconds.map(Span::from_secs_f64_nearest).ok_or_else(|| {
        format!("{name}: \"{}\" is not a number of seconds from 0 to {LATEST_S}", shown())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::rows::damaged;
    use eastwest_engine::random::Stream;

    const HEAD: &str = "transaction\tcall\tparent\tstart_s\tcomponent\tservice\toperation\t\
                        request_bytes\tresponse_bytes\tafter\tgap_s\trest_s\twaited\n";
    const GOOD: &str = "late\t0\t\t2.5\tweb\tshop\tGET /\t300\t4000\t\t0\t0.001\t\n\
                        late\t1\t0\t\tdb\tdata\t\"q\t200\t9000\t\t1e-3\t0.02\tyes\n\
                        late\t2\t0\t\tdb\tdata\t\"q\t200\t1\t\t0.000001\t0\tno\n\
                        late\t3\t0\t\tweb\tshop\tx\t1\t1\t1,2,1\t0\t0\tyes\n\
                        soon\t0\t\t0.25\tweb\tshop\tGET /\t300\t4000\t\t0\t0.001\tyes\n";

    fn table(rows: &str) -> Result<Book, String> {
        parse(format!("{HEAD}{rows}").as_bytes())
    }

    #[test]
    fn calls_are_read_and_transactions_are_in_order_of_arrival() {
        let book = table(GOOD).expect("two transactions");
        assert_eq!(book.components, ["web", "db"]);
        assert_eq!(book.services, ["shop", "data"]);
        assert_eq!(book.operations, ["GET /", "\"q", "x"]);
        let names: Vec<&str> = book.transactions.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["soon", "late"]);
        let late = &book.transactions[1];
        assert_eq!((late.start, late.calls.len()), (Span::from_ms(2500), 4));
        assert_eq!((late.calls[1].gap, late.calls[1].rest), (Span::from_ms(1), Span::from_ms(20)));
        assert_eq!((late.calls[1].request_bytes, late.calls[1].response_bytes), (200, 9000));
        assert_eq!((late.calls[2].waited, late.calls[2].parent), (false, Some(0)));
        assert_eq!(&late.calls[3].after[..], [1, 2]);
    }

    #[test]
    fn names_that_look_like_formulas_come_back_as_they_were() {
        let row = "'=late\t0\t\t0\t'@web\t''-x\t'GET\t1\t1\t\t0\t0\t\n";
        let book = table(row).expect("a transaction");
        assert_eq!(book.transactions[0].name, "=late");
        assert_eq!(book.components, ["@web"]);
        assert_eq!(book.services, ["'-x"]);
        assert_eq!(book.operations, ["'GET"]);
        assert_eq!(["=x", "'", "''", "'a=", "-"].map(plain), ["=x", "'", "''", "'a=", "-"]);
    }

    #[test]
    fn few_columns_are_needed() {
        let head = COLUMNS[..NEEDED].join("\t");
        let book = parse(format!("{head}\r\na\t0\t\t0\tc\t1\t1\t0\t0\r\n").as_bytes());
        let call = &book.expect("a call").transactions[0].calls[0];
        assert!(call.waited && call.after.is_empty());
        let without = head.replace("\tgap_s", "");
        assert!(parse(without.as_bytes()).is_err_and(|e| e.contains(":1: has no column gap_s")));
        assert!(
            parse(format!("{head}\tgap_s").as_bytes()).is_err_and(|e| e.contains("two columns"))
        );
        assert!(
            parse(format!("{head}\tgap").as_bytes())
                .is_err_and(|e| e.contains("no column \"gap\""))
        );
        assert!(parse(head.as_bytes()).is_err_and(|e| e.contains("has no transaction")));
        assert!(parse(&b""[..]).is_err());
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let cases = [
            ("a\t1\t\t0\tc\t\t\t1\t1\t\t0\t0\t\n", ":2: call: the first call of transaction \"a\""),
            ("a\t0\t\t\tc\t\t\t1\t1\t\t0\t0\t\n", ":2: start_s: \"\""),
            ("a\t0\t\t-1\tc\t\t\t1\t1\t\t0\t0\t\n", "start_s: \"-1\""),
            ("a\t0\t\tNaN\tc\t\t\t1\t1\t\t0\t0\t\n", "start_s: \"NaN\""),
            (
                "a\t0\t0\t0\tc\t\t\t1\t1\t\t0\t0\t\n",
                "parent: is \"0\", but call 0 must have no parent",
            ),
            ("a\t0\t\t0\t\t\t\t1\t1\t\t0\t0\t\n", "component: has no name"),
            ("\t0\t\t0\tc\t\t\t1\t1\t\t0\t0\t\n", "transaction: has no name"),
            ("a\t0\t\t0\tc\t\t\t0\t1\t\t0\t0\t\n", "request_bytes: \"0\""),
            (
                "a\t0\t\t0\tc\t\t\t1\t1\t\t0\t0\tmaybe\n",
                "waited: is \"maybe\", but must be yes or no",
            ),
            ("a\t0\t\t0\tc\t\t\t1\t1\t\t0\n", ":2: has 11 columns"),
            ("a\0\t0\t\t0\tc\t\t\t1\t1\t\t0\t0\t\n", "transaction: has a NUL byte"),
        ];
        for (rows, expected) in cases {
            let found = table(rows).expect_err(rows);
            assert!(found.contains(expected), "{rows:?}: {found}");
        }
        let second = [
            ("a\t2\t0\t\tc\t\t\t1\t1\t\t0\t0\t\n", ":3: call: is \"2\", but must be 1"),
            (
                "a\t1\t1\t\tc\t\t\t1\t1\t\t0\t0\t\n",
                "parent: is \"1\", but must be the number of an earlier call",
            ),
            ("a\t1\t\t\tc\t\t\t1\t1\t\t0\t0\t\n", "parent: is \"\""),
            ("a\t1\t0\t3\tc\t\t\t1\t1\t\t0\t0\t\n", "start_s: is \"3\", but only call 0"),
            (
                "a\t1\t0\t\tc\t\t\t1\t1\t0\t0\t0\t\n",
                "after: names call 0, which must have the same parent as this call",
            ),
            ("a\t1\t0\t\tc\t\t\t1\t1\tx\t0\t0\t\n", "after: is \"x\""),
            ("b\t1\t0\t\tc\t\t\t1\t1\t\t0\t0\t\n", "the first call of transaction \"b\""),
        ];
        for (row, expected) in second {
            let found = table(&format!("a\t0\t\t0\tc\t\t\t1\t1\t\t0\t0\t\n{row}")).expect_err(row);
            assert!(found.contains(expected), "{row:?}: {found}");
        }
    }

    #[test]
    fn damaged_files_give_transactions_or_a_reason() {
        let mut random = Stream::new(1, "fuzz/transactions");
        let good_text = format!("{HEAD}{GOOD}").into_bytes();
        let (mut good, mut bad) = (0, 0);
        for _ in 0..20_000 {
            let text = damaged(&good_text, b"\"\t\n\0,-9e", &mut random);
            match parse(&text[..]) {
                Ok(book) => {
                    good += 1;
                    for (number, call) in
                        book.transactions.iter().flat_map(|t| t.calls.iter().enumerate())
                    {
                        assert_eq!(call.parent.is_none(), number == 0);
                        assert!(call.parent.is_none_or(|p| (p as usize) < number));
                        assert!(call.after.iter().all(|&a| (a as usize) < number));
                        assert!((call.component as usize) < book.components.len());
                    }
                }
                Err(message) => {
                    bad += 1;
                    assert!(message.starts_with(':') && !message.contains('\0'), "{message}");
                }
            }
        }
        assert!(good > 1000 && bad > 1000, "{good} good, {bad} bad");
    }
}
