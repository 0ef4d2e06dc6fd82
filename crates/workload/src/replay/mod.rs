//! Jobs from recorded workloads: the result of trace readers, and functions that scale and select
//! jobs before a replay.
//!
//! A trace is untrusted text. Readers never panic, have at most one line and the jobs read so far
//! in memory, and stop at limits ([`MAX_LINE_BYTES`], [`MAX_LINES`]) far above those of real
//! traces.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

mod rows;
pub mod swim;
pub mod table;

use eastwest_types::Span;
use std::fmt;

/// Longest line of a trace that a reader accepts, in bytes without the line feed.
pub const MAX_LINE_BYTES: usize = 65_536;
/// Largest number of lines of a trace that a reader accepts.
pub const MAX_LINES: u64 = 10_000_000;

/// A job as recorded in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceJob {
    /// Name of the job in the trace (untrusted text).
    pub name: String,
    /// Time of the job's submission, from the start of the trace.
    pub submit: Span,
    /// Input bytes of the job's maps.
    pub input_bytes: u64,
    /// Bytes moved from the job's maps to its reduces; 0 for a job without reduces.
    pub shuffle_bytes: u64,
    /// Bytes that the job writes, each counted once, independent of the number of replicas.
    pub output_bytes: u64,
    /// Number of map tasks, at least 1; `None` if the trace does not give it.
    pub maps: Option<u32>,
    /// Number of reduce tasks; 0 only if nothing is shuffled; `None` if the trace does not give it.
    pub reduces: Option<u32>,
}

/// Action of a trace reader for an invalid row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadRows {
    /// Stop reading at the first invalid row and return the error.
    Stop,
    /// Skip invalid rows, count them and continue.
    Skip,
}

/// Observations of a trace reader that are reported to the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceNotes {
    /// Number of lines of the trace that were read.
    pub lines: u64,
    /// Number of invalid rows that were skipped.
    pub skipped: u64,
    /// Errors of the first skipped rows, at most [`TraceNotes::FIRST_SKIPPED`].
    pub first_skipped: Vec<TraceError>,
    /// Number of lines without content (blank lines).
    pub blank: u64,
    /// Number of jobs whose submission time is before the submission time of an earlier row. Jobs
    /// are sorted by submission time; jobs of equal time stay in the order of their rows.
    pub out_of_order: u64,
    /// Number of jobs that have the name of an earlier job.
    pub repeated_names: u64,
    /// Whether the last line has no line feed, so that the file may be incomplete.
    pub unterminated: bool,
}

impl TraceNotes {
    /// Largest number of errors of skipped rows that are stored.
    pub const FIRST_SKIPPED: usize = 5;
}

/// A job trace that has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Jobs of the trace, at least one, in order of submission.
    pub jobs: Vec<TraceJob>,
    /// Observations of the reader that are reported to the user.
    pub notes: TraceNotes,
}

/// Kind of an error in a job trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceErrorKind {
    /// The trace file could not be read (input/output error).
    Unreadable,
    /// The content of the trace file is invalid.
    Invalid,
}

/// An error in a job trace, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// Name of the trace file, as the user gave it.
    pub file: String,
    /// Line of the error from 1; 0 for the file as a whole.
    pub line: u64,
    /// Column of the error: number from 1, and name; `None` if the error is not in one column.
    pub column: Option<(u32, &'static str)>,
    /// Invalid text, shortened and escaped so that it is safe to print.
    pub found: String,
    /// Description of a valid text at the place of the error.
    pub expected: String,
    /// Kind of the error: unreadable file or invalid content.
    pub kind: TraceErrorKind,
}

impl fmt::Display for TraceError {
    /// Writes the error in the form `day.tsv:17: column 4 (map-input bytes): found "12x", expected
    /// a whole number …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if let Some((number, name)) = self.column {
            write!(f, ": column {number} ({name})")?;
        }
        write!(f, ": found {}, expected {}", self.found, self.expected)
    }
}

impl std::error::Error for TraceError {}

/// Scales jobs to a cluster of `nodes` nodes instead of `original_nodes`: every size is multiplied
/// by nodes / original nodes and rounded to the nearest byte, halves up; submission times do not
/// change. This is the scaling of SWIM (Chen et al., MASCOTS 2011), which keeps the data per node
/// constant. Sizes below half a byte become zero. Recorded numbers of tasks are scaled too, which
/// keeps the data per task constant.
pub fn scale(jobs: &mut [TraceJob], nodes: u32, original_nodes: u32) -> Result<(), String> {
    if nodes == 0 || original_nodes == 0 {
        return Err(format!(
            "scaling from {original_nodes} to {nodes} nodes: both must be above zero"
        ));
    }
    let scaled = |bytes: u64| {
        let double = u128::from(bytes) * u128::from(nodes) * 2 + u128::from(original_nodes);
        u64::try_from(double / (u128::from(original_nodes) * 2)).ok()
    };
    // All sizes are checked first, so that an error leaves the jobs unchanged.
    for job in jobs.iter() {
        let largest = job.input_bytes.max(job.shuffle_bytes).max(job.output_bytes);
        if scaled(largest).is_none() {
            return Err(format!(
                "scaling from {original_nodes} to {nodes} nodes: {largest} bytes of job {:?} \
                 would no longer fit into 64 bits",
                shown(job.name.as_bytes())
            ));
        }
    }
    for job in jobs {
        for bytes in [&mut job.input_bytes, &mut job.shuffle_bytes, &mut job.output_bytes] {
            *bytes = scaled(*bytes).expect("no size is above the largest, which fits");
        }
        let fewest = u32::from(job.shuffle_bytes > 0);
        job.maps = job.maps.map(|maps| tasks(maps, nodes, original_nodes).max(1));
        job.reduces = job.reduces.map(|reduces| tasks(reduces, nodes, original_nodes).max(fewest));
    }
    Ok(())
}

/// Returns the number of tasks of a job after scaling, rounded; at most `u32::MAX`.
fn tasks(count: u32, nodes: u32, original_nodes: u32) -> u32 {
    let double = u128::from(count) * u128::from(nodes) * 2 + u128::from(original_nodes);
    u32::try_from(double / (u128::from(original_nodes) * 2)).unwrap_or(u32::MAX)
}

/// Returns the jobs submitted at or after `from` and before `to`, with times relative to `from`. A
/// job at exactly `to` belongs to the next window, so that adjoining windows contain each job once.
pub fn window(jobs: &[TraceJob], from: Span, to: Span) -> Vec<TraceJob> {
    jobs.iter()
        .filter(|job| from <= job.submit && job.submit < to)
        .map(|job| TraceJob { submit: job.submit - from, ..job.clone() })
        .collect()
}

/// Returns untrusted bytes as text, shortened and with control characters of terminals escaped.
fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 40;
    let cut = &bytes[..bytes.len().min(MOST)];
    let mut text: String = String::from_utf8_lossy(cut).escape_debug().collect();
    if bytes.len() > MOST {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(submit_s: u64, bytes: u64) -> TraceJob {
        TraceJob {
            name: format!("at {submit_s}"),
            submit: Span::from_secs(submit_s),
            input_bytes: bytes,
            shuffle_bytes: bytes / 2,
            output_bytes: 0,
            maps: None,
            reduces: None,
        }
    }

    #[test]
    fn sizes_scale_to_the_nearest_byte_and_times_stay() {
        let mut jobs = [job(5, 45), job(6, 44), job(7, 8_822_021_618_207), job(8, 14)];
        scale(&mut jobs, 20, 600).expect("possible");
        let input: Vec<u64> = jobs.iter().map(|j| j.input_bytes).collect();
        assert_eq!(input, [2, 1, 294_067_387_274, 0], "45 / 30 = 1.5 goes up");
        assert_eq!(jobs[0].submit, Span::from_secs(5));
    }

    #[test]
    fn recorded_tasks_scale_with_the_bytes_and_never_vanish() {
        let recorded = |maps, reduces| TraceJob { maps, reduces, ..job(0, 600) };
        let mut jobs =
            [recorded(Some(90), Some(10)), recorded(Some(1), Some(0)), recorded(None, None)];
        scale(&mut jobs, 20, 600).expect("possible");
        let tasks: Vec<_> = jobs.iter().map(|j| (j.maps, j.reduces)).collect();
        assert_eq!(tasks, [(Some(3), Some(1)), (Some(1), Some(1)), (None, None)]);
    }

    #[test]
    fn scaling_never_overflows() {
        let mut jobs = [job(0, u64::MAX)];
        scale(&mut jobs, u32::MAX, u32::MAX).expect("the same size");
        assert_eq!(jobs[0].input_bytes, u64::MAX);
        let before = jobs.clone();
        let refused = scale(&mut jobs, 3, 2).expect_err("beyond 64 bits");
        assert!(refused.contains("64 bits"), "{refused}");
        assert_eq!(jobs, before, "a refusal changes nothing");
        assert!(scale(&mut jobs, 0, 1).is_err() && scale(&mut jobs, 1, 0).is_err());
    }

    #[test]
    fn adjoining_windows_hold_each_job_once() {
        let jobs = [job(0, 1), job(9, 1), job(10, 1), job(10, 2), job(20, 1)];
        let secs = Span::from_secs;
        let first = window(&jobs, secs(0), secs(10));
        let second = window(&jobs, secs(10), secs(20));
        assert_eq!((first.len(), second.len()), (2, 2));
        assert_eq!(second[0].submit, Span::ZERO, "times count from the start of the window");
        assert_eq!(second[1].input_bytes, 2);
        assert!(window(&jobs, secs(30), secs(10)).is_empty());
    }

    #[test]
    fn untrusted_text_is_cut_and_escaped() {
        assert_eq!(shown(b"a\x1b[31m\n\xff"), "a\\u{1b}[31m\\n\u{fffd}");
        assert_eq!(shown(&[b'x'; 100]).chars().count(), 41);
    }
}
