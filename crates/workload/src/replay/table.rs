//! Traces with named columns: tab-separated text whose first line names the columns. `eastwest
//! trace import` writes such a file, [`FILE`], into each of its folders; it can also be written by
//! hand.
//!
//! | column | content |
//! |---|---|
//! | `submit_s` | submission, seconds from the start, with up to twelve decimals |
//! | `input_bytes`, `shuffle_bytes`, `output_bytes` | bytes read by maps, moved to reduces, written; empty if unknown: read as 0 and counted |
//! | `name` | name of the job; optional |
//! | `maps`, `reduces` | numbers of tasks; optional, may be empty: then they follow from the bytes |
//!
//! Columns may be in any order. Columns with other names are refused, so that a misspelt name is
//! found. Lines and numbers have the rules of [SWIM](super::swim) traces.

use super::rows::{self, Fault, check_text, digits, fault, whole};
use super::{BadRows, Trace, TraceError, TraceJob, shown};
use eastwest_types::{Span, Time};
use std::io::BufRead;

/// Name of the job trace in a folder that `eastwest trace import` has written.
pub const FILE: &str = "jobs.tsv";

const SUBMIT: usize = 0;
const INPUT: usize = 1;
const SHUFFLE: usize = 2;
const OUTPUT: usize = 3;
const NAME: usize = 4;
const MAPS: usize = 5;
const REDUCES: usize = 6;
/// Names of all columns of a trace; the first [`NEEDED`] columns are required.
const COLUMNS: [&str; 7] =
    ["submit_s", "input_bytes", "shuffle_bytes", "output_bytes", "name", "maps", "reduces"];
/// Number of the columns that every trace must have: the first columns of [`COLUMNS`].
const NEEDED: usize = 4;
/// Largest number of maps, or of reduces, of a recorded job.
const MOST_TASKS: u64 = 1_000_000;
/// Largest number of decimals of a time in seconds; 12 decimals are picoseconds.
const DECIMALS: usize = 12;

/// Whether a text is a trace with named columns: its first line has the column `submit_s`.
pub fn begins_one(text: &[u8]) -> bool {
    let line = text.split(|&byte| byte == b'\n').find(|line| !line.is_empty()).unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.split(|&byte| byte == b'\t').any(|field| field == COLUMNS[SUBMIT].as_bytes())
}

/// Reads a job trace with named columns; `file` is the name in error messages; `bad_rows` decides
/// whether invalid rows are skipped. Also returns the number of empty size fields, which are read
/// as 0 bytes.
pub fn read(
    file: &str,
    reader: impl BufRead,
    bad_rows: BadRows,
) -> Result<(Trace, u64), TraceError> {
    let mut places: Option<Places> = None;
    let mut unknown = 0;
    let mut number = 0u64;
    let trace = rows::read(file, reader, bad_rows, |line| match &places {
        None => {
            places = Some(header(line).map_err(Fault::fatal)?);
            Ok(None)
        }
        Some(places) => {
            let (job, missing) = parse(line, places, number)?;
            number += 1;
            unknown += missing;
            Ok(Some(job))
        }
    })?;
    Ok((trace, unknown))
}

/// Position (from 0) in a line of each column of [`COLUMNS`]; `None` if the trace does not have the
/// column.
struct Places {
    of: [Option<usize>; COLUMNS.len()],
    count: usize,
}

fn header(line: &[u8]) -> Result<Places, Fault> {
    let mut of = [None; COLUMNS.len()];
    let mut count = 0;
    for (at, field) in line.split(|&byte| byte == b'\t').enumerate() {
        let Some(column) = COLUMNS.iter().position(|name| name.as_bytes() == field) else {
            let found = format!("a column \"{}\"", shown(field));
            return Err(Fault::of_row(found, format!("only the columns {}", COLUMNS.join(", "))));
        };
        if of[column].replace(at).is_some() {
            let found = format!("two columns {}", COLUMNS[column]);
            return Err(Fault::of_row(found, "each column at most once"));
        }
        count = at + 1;
    }
    match COLUMNS[..NEEDED].iter().zip(&of).find(|(_, place)| place.is_none()) {
        Some((name, _)) => Err(Fault::of_row(
            format!("no column {name}"),
            format!("a column {name} in the first line"),
        )),
        None => Ok(Places { of, count }),
    }
}

/// Parses the job in a line; `places`: position of each column; `number`: number of the job in the
/// trace, for the name of a job without name. Also returns the number of its empty size fields.
fn parse(line: &[u8], places: &Places, number: u64) -> Result<(TraceJob, u64), Fault> {
    let count = line.split(|&byte| byte == b'\t').count();
    if count != places.count {
        let expected = format!("{} columns as in the first line", places.count);
        return Err(Fault::of_row(format!("{count} columns"), expected));
    }
    let mut fields: [&[u8]; COLUMNS.len()] = [b""; COLUMNS.len()];
    for (at, field) in line.split(|&byte| byte == b'\t').enumerate() {
        let column = places.of.iter().position(|&place| place == Some(at)).expect("all are known");
        check_text(at, COLUMNS[column], field)?;
        fields[column] = field;
    }
    let place = |column: usize| places.of[column].unwrap_or(0);
    let mut missing = 0;
    let mut bytes = |column: usize| match fields[column] {
        b"" => {
            missing += 1;
            Ok(0)
        }
        field => whole(place(column), COLUMNS[column], field, u64::MAX, "bytes"),
    };
    let (input_bytes, shuffle_bytes, output_bytes) =
        (bytes(INPUT)?, bytes(SHUFFLE)?, bytes(OUTPUT)?);
    let tasks = |column: usize| match fields[column] {
        b"" => Ok(None),
        field => whole(place(column), COLUMNS[column], field, MOST_TASKS, "tasks")
            .map(|count| Some(u32::try_from(count).expect("at most MOST_TASKS"))),
    };
    let reduces = tasks(REDUCES)?;
    if reduces == Some(0) && shuffle_bytes > 0 {
        let expected = format!("at least one reduce, because {shuffle_bytes} bytes are shuffled");
        return Err(fault(place(REDUCES), COLUMNS[REDUCES], fields[REDUCES], expected));
    }
    let name = String::from_utf8_lossy(fields[NAME]).trim().to_owned();
    let job = TraceJob {
        name: if name.is_empty() { format!("job{number}") } else { name },
        submit: submission(place(SUBMIT), fields[SUBMIT])?,
        input_bytes,
        shuffle_bytes,
        output_bytes,
        maps: tasks(MAPS)?.filter(|&maps| maps > 0),
        reduces,
    };
    Ok((job, missing))
}

/// Parses a submission time in seconds with decimals, without rounding.
fn submission(place: usize, field: &[u8]) -> Result<Span, Fault> {
    let wrong = || {
        let last = Time::NEVER.0 / 1_000_000_000_000;
        let expected = format!("seconds from 0 to {last}, with at most {DECIMALS} decimals");
        fault(place, COLUMNS[SUBMIT], field, expected)
    };
    let mut parts = field.splitn(2, |&byte| byte == b'.');
    let seconds =
        parts.next().filter(|part| !part.is_empty()).and_then(digits).ok_or_else(wrong)?;
    let decimals = match parts.next() {
        None => 0,
        Some(part) if part.is_empty() || part.len() > DECIMALS => return Err(wrong()),
        Some(part) => {
            // adds zeros up to the full number of decimals
            let scale: u64 = std::iter::repeat_n(10, DECIMALS - part.len()).product();
            digits(part).ok_or_else(wrong)? * scale
        }
    };
    let ps = seconds.checked_mul(1_000_000_000_000).and_then(|ps| ps.checked_add(decimals));
    ps.filter(|&ps| ps < Time::NEVER.0).map(Span).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "name\tsubmit_s\tinput_bytes\tshuffle_bytes\toutput_bytes\tmaps\treduces\n";

    fn rows(rows: &str) -> Result<(Trace, u64), TraceError> {
        read("jobs.tsv", format!("{HEAD}{rows}").as_bytes(), BadRows::Stop)
    }

    fn message(text: &str) -> String {
        read("jobs.tsv", text.as_bytes(), BadRows::Skip).expect_err("not a trace").to_string()
    }

    #[test]
    fn columns_have_names_and_what_is_not_known_is_counted() {
        let (trace, unknown) =
            rows("a\t1.5\t10\t20\t\t3\t4\n\t0.000000000001\t\t0\t1\t\t\n").expect("a trace");
        assert_eq!((trace.jobs.len(), unknown), (2, 2));
        let (b, a) = (&trace.jobs[0], &trace.jobs[1]);
        assert_eq!((b.name.as_str(), b.submit, b.maps, b.reduces), ("job1", Span(1), None, None));
        assert_eq!((a.name.as_str(), a.submit), ("a", Span::from_ms(1500)));
        assert_eq!((a.input_bytes, a.shuffle_bytes, a.output_bytes), (10, 20, 0));
        assert_eq!((a.maps, a.reduces), (Some(3), Some(4)));
        assert_eq!((trace.notes.out_of_order, trace.notes.lines), (1, 3));
    }

    #[test]
    fn columns_stand_in_any_order_and_few_are_needed() {
        let text = "output_bytes\tsubmit_s\tshuffle_bytes\tinput_bytes\r\n3\t7\t2\t1\r\n";
        assert!(begins_one(text.as_bytes()) && begins_one(b"\nsubmit_s"));
        assert!(!begins_one(b"a\t1\t1\t2\t3\t4\n") && !begins_one(b""));
        let (trace, unknown) = read("j", text.as_bytes(), BadRows::Stop).expect("a trace");
        let job = &trace.jobs[0];
        assert_eq!((job.input_bytes, job.shuffle_bytes, job.output_bytes, unknown), (1, 2, 3, 0));
        assert_eq!((job.submit, job.name.as_str()), (Span::from_secs(7), "job0"));
    }

    #[test]
    fn a_first_line_that_is_wrong_stops_whatever_is_said_of_bad_rows() {
        let cases = [
            ("submit_s\tshufle_bytes\n", "jobs.tsv:1: found a column \"shufle_bytes\""),
            ("submit_s\tsubmit_s\n", "jobs.tsv:1: found two columns submit_s"),
            ("submit_s\tinput_bytes\n1\t2\n", "jobs.tsv:1: found no column shuffle_bytes"),
        ];
        for (text, expected) in cases {
            assert!(message(text).starts_with(expected), "{}", message(text));
        }
    }

    #[test]
    fn bad_values_say_where_and_what_was_expected() {
        let cases = [
            (
                "a\t1\t2\t3\n",
                "jobs.tsv:2: found 4 columns, expected 7 columns as in the first line",
            ),
            (
                "a\t-1\t2\t3\t4\t5\t6\n",
                "jobs.tsv:2: column 2 (submit_s): found \"-1\", expected seconds",
            ),
            ("a\t1.\t2\t3\t4\t5\t6\n", "column 2 (submit_s): found \"1.\""),
            ("a\t.5\t2\t3\t4\t5\t6\n", "column 2 (submit_s): found \".5\""),
            ("a\t1e3\t2\t3\t4\t5\t6\n", "column 2 (submit_s)"),
            ("a\t\t2\t3\t4\t5\t6\n", "column 2 (submit_s): found nothing"),
            ("a\t99999999\t2\t3\t4\t5\t6\n", "column 2 (submit_s)"),
            ("a\t0.0000000000001\t2\t3\t4\t5\t6\n", "with at most 12 decimals"),
            ("a\t1\tx\t3\t4\t5\t6\n", "column 3 (input_bytes): found \"x\""),
            ("a\t1\t2\t3\t4\t5.0\t6\n", "column 6 (maps): found \"5.0\""),
            ("a\t1\t2\t3\t4\t5\t1000001\n", "column 7 (reduces): found \"1000001\""),
            ("a\t1\t2\t3\t4\t5\t0\n", "column 7 (reduces): found \"0\", expected at least one"),
            ("a\0\t1\t2\t3\t4\t5\t6\n", "column 1 (name): found \"a\\0\""),
        ];
        for (text, expected) in cases {
            let error = rows(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }
}
