//! SWIM traces: tab-separated text with one job in each line.
//!
//! The format of the Statistical Workload Injector for MapReduce (Chen, Ganapathi, Griffith and
//! Katz, MASCOTS 2011): job name, submission in seconds, seconds since the previous submission,
//! bytes read by maps, bytes shuffled, bytes written by reduces. Files with 8 or 9 columns add
//! paths or durations, which are not used. The third column (gap) must be a number and is not used;
//! submission times come from the second column.
//!
//! A job with zero shuffle bytes has maps only, and the last size is their output. The published
//! files contain jobs without any bytes, which are not removed.
//!
//! Extensions: lines may end in `\r\n`, blank lines are ignored and counted, a last line without a
//! line feed is used and reported. Numbers are plain decimal digits: no sign, no spaces.

use super::rows::{self, Fault, check_text, fault, whole};
use super::{BadRows, Trace, TraceError, TraceJob, shown};
use eastwest_types::{Span, Time};
use std::io::BufRead;

/// Names of the columns that are read, in their order.
const COLUMNS: [&str; 6] =
    ["job name", "submit time", "gap", "map-input bytes", "shuffle bytes", "reduce-output bytes"];

/// Largest submission time in seconds that simulated time can represent.
const MAX_SUBMIT_S: u64 = Time::NEVER.0 / 1_000_000_000_000;

/// Reads a job trace in the SWIM format; `file` is the name in error messages; `bad_rows` decides
/// whether invalid rows are skipped.
pub fn read(file: &str, reader: impl BufRead, bad_rows: BadRows) -> Result<Trace, TraceError> {
    rows::read(file, reader, bad_rows, |line| parse(line).map(Some))
}

/// Parses the job in a line of a SWIM trace.
fn parse(line: &[u8]) -> Result<TraceJob, Fault> {
    let columns = line.split(|&byte| byte == b'\t').count();
    // A line may consist of many tabs, so columns are counted without storing them.
    if !matches!(columns, 6 | 8 | 9) {
        let found = match columns {
            1 => format!("one column: \"{}\"", shown(line)),
            _ => format!("{columns} columns"),
        };
        return Err(Fault::of_row(found, "6, 8 or 9 columns separated by tabs"));
    }
    let mut fields = [&line[..0]; 6];
    for (i, field) in line.split(|&byte| byte == b'\t').enumerate() {
        check_text(i, name_of(i), field)?;
        if let Some(slot) = fields.get_mut(i) {
            *slot = field;
        }
    }
    // The field is valid UTF-8, as checked above.
    let name = String::from_utf8_lossy(fields[0]).into_owned();
    if name.trim().is_empty() {
        return Err(fault(0, COLUMNS[0], fields[0], "a name"));
    }
    let number = |i: usize, most, unit| whole(i, COLUMNS[i], fields[i], most, unit);
    let submit_s = number(1, MAX_SUBMIT_S, "seconds")?;
    number(2, u64::MAX, "seconds")?;
    Ok(TraceJob {
        name,
        submit: Span::from_secs(submit_s),
        input_bytes: number(3, u64::MAX, "bytes")?,
        shuffle_bytes: number(4, u64::MAX, "bytes")?,
        output_bytes: number(5, u64::MAX, "bytes")?,
        maps: None,
        reduces: None,
    })
}

/// Returns the name of a column for error messages; `column` counts from 0.
fn name_of(column: usize) -> &'static str {
    COLUMNS.get(column).copied().unwrap_or("not used")
}

#[cfg(test)]
mod tests {
    use super::super::{MAX_LINE_BYTES, TraceErrorKind, TraceNotes};
    use super::*;
    use std::io;

    fn stop(text: &[u8]) -> Result<Trace, TraceError> {
        read("day.tsv", text, BadRows::Stop)
    }

    fn message(text: &[u8]) -> String {
        stop(text).expect_err("not a trace").to_string()
    }

    #[test]
    fn rows_of_6_8_and_9_columns_are_jobs() {
        let text = b"a\t1\t1\t10\t20\t30\nb\t2\t1\t11\t0\t31\tin\tout\r\nc\t3\t1\t1\t2\t3\t4\t5\t6";
        let trace = stop(text).expect("a trace");
        assert_eq!(trace.jobs.len(), 3);
        let b = &trace.jobs[1];
        assert_eq!((b.name.as_str(), b.submit), ("b", Span::from_secs(2)));
        assert_eq!((b.input_bytes, b.shuffle_bytes, b.output_bytes), (11, 0, 31));
        assert_eq!(trace.notes, TraceNotes { lines: 3, unterminated: true, ..Default::default() });
    }

    #[test]
    fn every_kind_of_bad_row_says_where_and_what_was_expected() {
        let cases: [(&[u8], &str); 13] = [
            (b"", "day.tsv: found an empty file, expected at least one job"),
            (b"\n\r\n", "day.tsv: found no line with a job, expected at least one job"),
            (
                b"a\t1\t1",
                "day.tsv:1: found 3 columns, expected 6, 8 or 9 columns separated by tabs",
            ),
            (
                b"a,1,1,2,3,4\n",
                "day.tsv:1: found one column: \"a,1,1,2,3,4\", expected 6, 8 or 9 columns separated by tabs",
            ),
            (
                b"a\t1\t1\t2\t3\t4\t5\n",
                "day.tsv:1: found 7 columns, expected 6, 8 or 9 columns separated by tabs",
            ),
            (
                b"\na\t-1\t1\t2\t3\t4\n",
                "day.tsv:2: column 2 (submit time): found \"-1\", expected a whole number of seconds from 0 to 2305843",
            ),
            (
                b"a\t2305844\t1\t2\t3\t4\n",
                "day.tsv:1: column 2 (submit time): found \"2305844\", expected a whole number of seconds from 0 to 2305843",
            ),
            (
                b"a\t1\tx\t2\t3\t4\n",
                "day.tsv:1: column 3 (gap): found \"x\", expected a whole number of seconds from 0 to 18446744073709551615",
            ),
            (
                b"a\t1\t1\t18446744073709551616\t3\t4\n",
                "day.tsv:1: column 4 (map-input bytes): found \"18446744073709551616\", expected a whole number of bytes from 0 to 18446744073709551615",
            ),
            (
                b"a\t1\t1\t2\t\t4\n",
                "day.tsv:1: column 5 (shuffle bytes): found nothing, expected a whole number of bytes from 0 to 18446744073709551615",
            ),
            (
                b"a\t1\t1\t2\t3\t+4\n",
                "day.tsv:1: column 6 (reduce-output bytes): found \"+4\", expected a whole number of bytes from 0 to 18446744073709551615",
            ),
            (
                b"a\t1\t1\t2\t3\t4\tin\to\0ut\n",
                "day.tsv:1: column 8 (not used): found \"o\\0ut\", expected text without NUL bytes",
            ),
            (
                b"caf\xe9\t1\t1\t2\t3\t4\n",
                "day.tsv:1: column 1 (job name): found \"caf\u{fffd}\", expected text in UTF-8",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(message(text), expected);
        }
        assert!(
            message(b" \t1\t1\t2\t3\t4\n").contains("(job name): found \" \", expected a name")
        );
    }

    #[test]
    fn bad_rows_can_be_skipped_and_are_counted() {
        let mut text = b"a\t1\t1\t2\t3\t4\n".to_vec();
        for _ in 0..7 {
            text.extend_from_slice(b"short\n");
        }
        text.extend_from_slice(b"b\t2\t1\t2\t3\t4\n");
        let trace = read("day.tsv", text.as_slice(), BadRows::Skip).expect("two jobs");
        assert_eq!((trace.jobs.len(), trace.notes.skipped, trace.notes.lines), (2, 7, 9));
        assert_eq!(trace.notes.first_skipped.len(), TraceNotes::FIRST_SKIPPED);
        assert_eq!(trace.notes.first_skipped[4].line, 6);
        assert_eq!(stop(&text).expect_err("a bad row").line, 2);
        let none = read("day.tsv", b"x\ny\n".as_slice(), BadRows::Skip).expect_err("no jobs");
        assert!(none.to_string().contains("2 rows, none of which"), "{none}");
    }

    #[test]
    fn long_lines_are_bounded_and_the_next_line_is_found_again() {
        let row = |name: &[u8]| [name, b"\t1\t1\t2\t3\t4".as_slice()].concat();
        let fits = row(&vec![b'n'; MAX_LINE_BYTES - 10]);
        assert_eq!(fits.len(), MAX_LINE_BYTES);
        assert!(stop(&fits).is_ok());
        assert!(stop(&[&fits, b"\r\n".as_slice()].concat()).is_ok());
        for excess in [1, 2, 3, 100_000] {
            let long = row(&vec![b'n'; MAX_LINE_BYTES - 10 + excess]);
            assert!(message(&long).contains("more than 65536 bytes"), "{excess}");
            let text = [&long, b"\n".as_slice(), &row(b"next")].concat();
            let trace = read("day.tsv", text.as_slice(), BadRows::Skip).expect("the next line");
            assert_eq!((trace.jobs.len(), trace.notes.skipped, trace.notes.lines), (1, 1, 2));
        }
    }

    #[test]
    fn a_stream_without_end_is_given_up() {
        let nothing = io::BufReader::with_capacity(1 << 20, io::repeat(0));
        let error = read("/dev/zero", nothing, BadRows::Skip).expect_err("endless");
        assert!(error.to_string().contains("a line without end"), "{error}");
        let blank = io::BufReader::with_capacity(1 << 20, io::repeat(b'\n'));
        let error = read("blank", blank, BadRows::Skip).expect_err("endless");
        assert!(error.to_string().contains("more than 10000000 lines"), "{error}");
    }

    #[test]
    fn unsorted_rows_are_sorted_stably_and_repeated_names_kept() {
        let text = b"a\t5\t0\t1\t1\t1\nb\t3\t0\t1\t1\t1\na\t3\t0\t2\t1\t1\nc\t5\t0\t3\t1\t1\na\t4\t0\t4\t1\t1\n";
        let trace = stop(text).expect("a trace");
        let order: Vec<(&str, u64)> =
            trace.jobs.iter().map(|job| (job.name.as_str(), job.input_bytes)).collect();
        assert_eq!(order, [("b", 1), ("a", 2), ("a", 4), ("a", 1), ("c", 3)]);
        assert_eq!((trace.notes.out_of_order, trace.notes.repeated_names), (3, 2));
    }

    #[test]
    fn a_reader_that_fails_is_the_worlds_fault() {
        struct Broken;
        impl io::Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("disk on fire"))
            }
        }
        let text = b"a\t1\t1\t2\t3\t4\n".as_slice();
        let reader = io::BufReader::new(io::Read::chain(text, Broken));
        let error = read("day.tsv", reader, BadRows::Skip).expect_err("broken");
        assert_eq!(error.kind, TraceErrorKind::Unreadable);
        assert_eq!(error.line, 2);
        assert!(error.to_string().contains("disk on fire"));
    }
}
