//! Rows of job traces: lines of limited length, treatment of invalid rows, and jobs in order of
//! submission. The formats (`swim`, `table`) define the content of a line.

use super::{
    BadRows, MAX_LINE_BYTES, MAX_LINES, Trace, TraceError, TraceErrorKind, TraceJob, TraceNotes,
    shown,
};
use eastwest_engine::interrupt;
use eastwest_types::Span;
use std::io::{self, BufRead};

/// Largest number of bytes that are skipped to find the end of a line that is too long.
const MAX_DISCARDED_BYTES: u64 = 1 << 30;

/// An error in a row of a trace, without the name of the file and the line.
pub(super) struct Fault {
    column: Option<(u32, &'static str)>,
    found: String,
    expected: String,
    /// Whether reading stops even if bad rows are skipped, because later rows cannot be understood.
    fatal: bool,
}

impl Fault {
    /// Returns an error that concerns a row as a whole.
    pub fn of_row(found: impl Into<String>, expected: impl Into<String>) -> Fault {
        Fault { column: None, found: found.into(), expected: expected.into(), fatal: false }
    }

    /// Returns the error marked as fatal: reading stops after it.
    pub fn fatal(self) -> Fault {
        Fault { fatal: true, ..self }
    }

    fn at(self, file: &str, line: u64) -> TraceError {
        let Fault { column, found, expected, .. } = self;
        let kind = TraceErrorKind::Invalid;
        TraceError { file: file.to_owned(), line, column, found, expected, kind }
    }
}

/// Work of the reading of one line, in memory accesses, as counted by the regular check for
/// interrupts ([`eastwest_engine::interrupt`]).
const STEPS: u64 = 16;

/// Reads a job trace; `parse` returns the job of a line, or `None` for a line without a job. `file`
/// is the name in error messages; `bad_rows` decides whether invalid rows are skipped.
pub(super) fn read(
    file: &str,
    reader: impl BufRead,
    bad_rows: BadRows,
    mut parse: impl FnMut(&[u8]) -> Result<Option<TraceJob>, Fault>,
) -> Result<Trace, TraceError> {
    let mut lines = Lines { reader, buffer: Vec::new() };
    let mut notes = TraceNotes::default();
    let mut jobs: Vec<TraceJob> = Vec::new();
    let mut latest = Span::ZERO;
    loop {
        interrupt::steps(STEPS);
        let line = notes.lines + 1;
        if line > MAX_LINES {
            return Err(too_many(file, line));
        }
        let row = match lines.next() {
            Ok(Line::End) => break,
            Ok(Line::Whole { terminated }) => {
                notes.unterminated = !terminated;
                if lines.buffer.is_empty() {
                    notes.lines = line;
                    notes.blank += 1;
                    continue;
                }
                parse(&lines.buffer)
            }
            Ok(Line::TooLong) => Err(Fault::of_row(
                format!("a line of more than {MAX_LINE_BYTES} bytes"),
                format!("a line of at most {MAX_LINE_BYTES} bytes with one job"),
            )),
            Err(error) => return Err(unreadable(file, line, &error)),
        };
        notes.lines = line;
        match row {
            Ok(None) => {}
            Ok(Some(job)) => {
                notes.out_of_order += u64::from(job.submit < latest);
                latest = latest.max(job.submit);
                jobs.push(job);
            }
            Err(fault) => {
                let stop = fault.fatal || bad_rows == BadRows::Stop;
                let error = fault.at(file, line);
                if stop {
                    return Err(error);
                }
                notes.skipped += 1;
                if notes.first_skipped.len() < TraceNotes::FIRST_SKIPPED {
                    notes.first_skipped.push(error);
                }
            }
        }
    }
    if jobs.is_empty() {
        return Err(no_jobs(file, &notes));
    }
    if notes.out_of_order > 0 {
        jobs.sort_by_key(|job| job.submit);
    }
    notes.repeated_names = repeated_names(&jobs);
    Ok(Trace { jobs, notes })
}

/// Result of reading a line; the buffer contains a valid line without its line feed.
enum Line {
    Whole { terminated: bool },
    TooLong,
    End,
}

/// Reader of a file by lines of limited length.
struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    fn next(&mut self) -> io::Result<Line> {
        self.buffer.clear();
        // Maximum read for one line: the longest line, a carriage return and a line feed.
        let most = MAX_LINE_BYTES as u64 + 2;
        let read = io::Read::take(&mut self.reader, most).read_until(b'\n', &mut self.buffer)?;
        if read == 0 {
            return Ok(Line::End);
        }
        let terminated = self.buffer.ends_with(b"\n");
        if !terminated && read as u64 == most {
            self.discard_line()?;
            return Ok(Line::TooLong);
        }
        if terminated {
            self.buffer.pop();
            if self.buffer.ends_with(b"\r") {
                self.buffer.pop();
            }
        }
        if self.buffer.len() > MAX_LINE_BYTES {
            return Ok(Line::TooLong);
        }
        Ok(Line::Whole { terminated })
    }

    /// Skips the rest of a line that is too long.
    fn discard_line(&mut self) -> io::Result<()> {
        let mut discarded = 0;
        while discarded < MAX_DISCARDED_BYTES {
            let chunk = self.reader.fill_buf()?;
            let (length, done) = match chunk.iter().position(|&byte| byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (chunk.len(), chunk.is_empty()),
            };
            self.reader.consume(length);
            discarded += length as u64;
            if done {
                return Ok(());
            }
        }
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a line without end after {MAX_DISCARDED_BYTES} bytes"),
        ))
    }
}

fn unreadable(file: &str, line: u64, error: &io::Error) -> TraceError {
    TraceError {
        file: file.to_owned(),
        line,
        column: None,
        found: error.to_string(),
        expected: "a file that can be read to its end".into(),
        kind: TraceErrorKind::Unreadable,
    }
}

fn too_many(file: &str, line: u64) -> TraceError {
    let found = format!("more than {MAX_LINES} lines");
    Fault::of_row(found, format!("at most {MAX_LINES} lines")).at(file, line)
}

fn no_jobs(file: &str, notes: &TraceNotes) -> TraceError {
    let found = match (notes.lines, notes.skipped) {
        (0, _) => "an empty file".to_owned(),
        (_, 0) => "no line with a job".to_owned(),
        (_, skipped) => format!(
            "{skipped} rows, none of which can be used; the first: {}",
            notes.first_skipped.first().map(ToString::to_string).unwrap_or_default()
        ),
    };
    Fault::of_row(found, "at least one job").at(file, 0)
}

/// Returns the number of jobs that have the name of an earlier job.
fn repeated_names(jobs: &[TraceJob]) -> u64 {
    let mut names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    names.sort_unstable();
    names.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64
}

/// Returns an error in one column. `column`: index of the column from 0; `name`: its name; `found`:
/// the invalid text; `expected`: description of a valid text.
pub(super) fn fault(
    column: usize,
    name: &'static str,
    found: &[u8],
    expected: impl Into<String>,
) -> Fault {
    Fault {
        column: Some((u32::try_from(column).map_or(u32::MAX, |column| column + 1), name)),
        found: if found.is_empty() { "nothing".into() } else { format!("\"{}\"", shown(found)) },
        expected: expected.into(),
        fatal: false,
    }
}

/// Checks that a field is UTF-8 text without NUL bytes; returns an error otherwise.
pub(super) fn check_text(column: usize, name: &'static str, field: &[u8]) -> Result<(), Fault> {
    if field.contains(&0) {
        return Err(fault(column, name, field, "text without NUL bytes"));
    }
    if std::str::from_utf8(field).is_err() {
        return Err(fault(column, name, field, "text in UTF-8"));
    }
    Ok(())
}

/// Parses the field of a column, which must be an integer from 0 to `most`. `column`: index of the
/// column from 0; `name`, `unit`: its name and unit in error messages.
pub(super) fn whole(
    column: usize,
    name: &'static str,
    field: &[u8],
    most: u64,
    unit: &str,
) -> Result<u64, Fault> {
    digits(field).filter(|&value| value <= most).ok_or_else(|| {
        fault(column, name, field, format!("a whole number of {unit} from 0 to {most}"))
    })
}

/// Parses decimal digits; `None` for any other character or an overflow.
pub(super) fn digits(field: &[u8]) -> Option<u64> {
    let plain = field.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(field).ok().filter(|_| plain).and_then(|digits| digits.parse().ok())
}
