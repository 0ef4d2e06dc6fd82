//! Fuzz test of the trace readers with randomly damaged rows: the readers never panic, and their
//! results are consistent.
//!
//! Each input consists of a few rows of the Facebook trace that comes with Eastwest, damaged by
//! random edits. Input `i` depends on `i` only, so that the number in a failure message is enough
//! to repeat it. `EASTWEST_FUZZ_INPUTS` sets the number of inputs (default 100,000).

use eastwest_engine::random::Stream;
use eastwest_workload::replay::{BadRows, Trace, TraceError, TraceErrorKind, scale, swim, table};
use proptest::prelude::*;

const DAY: &[u8] =
    include_bytes!("../../../python/eastwest/data/swim/FB-2009_samples_24_times_1hr_0.tsv");

/// Byte strings that are difficult for parsers, inserted into rows.
const PIECES: [&[u8]; 16] = [
    b"\t",
    b"\n",
    b"\r\n",
    b"\0",
    b"-1",
    b"+7",
    b" ",
    b"1e9",
    b"0.5",
    b"NaN",
    b"18446744073709551615",
    b"18446744073709551616",
    b"2305844",
    b"99999999999999999999999999999999999999999999999999",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
];

/// Returns a few successive rows of the real trace.
fn real_rows(rows: &[&[u8]], stream: &mut Stream) -> Vec<u8> {
    let count = 1 + stream.below(4) as usize;
    let first = stream.below((rows.len() - count) as u64) as usize;
    rows[first..first + count].concat()
}

/// Returns a random position in a text, including the position after its last byte.
fn place(text: &[u8], stream: &mut Stream) -> usize {
    stream.below(text.len() as u64 + 1) as usize
}

fn damage(text: &mut Vec<u8>, rows: &[&[u8]], stream: &mut Stream) {
    let at = place(text, stream);
    match stream.below(8) {
        0 => {
            if let Some(byte) = text.get_mut(at) {
                *byte ^= 1 << stream.below(8);
            }
        }
        1 => text.truncate(at),
        2 => {
            let end = at + stream.below(8) as usize;
            text.drain(at..end.min(text.len()));
        }
        3 => {
            let piece = PIECES[stream.below(PIECES.len() as u64) as usize];
            text.splice(at..at, piece.iter().copied());
        }
        4 => {
            // Joins the beginning of this text with the end of another excerpt.
            let other = real_rows(rows, stream);
            let from = place(&other, stream);
            text.truncate(at);
            text.extend_from_slice(&other[from..]);
        }
        5 => {
            // Repeats up to 40 bytes, which are one or a few fields.
            let end = (at + stream.below(40) as usize).min(text.len());
            let copy = text[at..end].to_vec();
            text.splice(at..at, copy);
        }
        6 => {
            // Replaces a field by a difficult byte string.
            let piece = PIECES[stream.below(PIECES.len() as u64) as usize];
            let separates = |byte: &u8| matches!(byte, b'\t' | b'\n');
            let start = text[..at].iter().rposition(separates).map_or(0, |i| i + 1);
            let end = text[at..].iter().position(separates).map_or(text.len(), |i| at + i);
            text.splice(start..end, piece.iter().copied());
        }
        _ => {
            let byte = stream.next_u64() as u8;
            let length = stream.below(32) as usize;
            text.splice(at..at, std::iter::repeat_n(byte, length));
        }
    }
}

fn check_error(error: &TraceError) {
    assert_eq!(error.kind, TraceErrorKind::Invalid);
    let text = error.to_string();
    assert!(text.len() < 1_000, "{text}");
    assert!(!text.chars().any(char::is_control), "{text:?}");
    assert!(text.starts_with("in.tsv") && text.contains("found ") && text.contains(", expected "));
}

fn check_trace(text: &[u8], trace: &Trace) {
    let notes = &trace.notes;
    assert!(!trace.jobs.is_empty());
    assert!(trace.jobs.is_sorted_by_key(|job| job.submit));
    let header = u64::from(table::begins_one(text));
    assert_eq!(notes.lines, trace.jobs.len() as u64 + notes.skipped + notes.blank + header);
    let ends = text.iter().filter(|&&byte| byte == b'\n').count() as u64;
    assert_eq!(notes.lines, ends + u64::from(notes.unterminated));
    notes.first_skipped.iter().for_each(check_error);
    // Scaling the jobs must not panic.
    let mut jobs = trace.jobs.clone();
    let _ = scale(&mut jobs, 20, 600);
    let _ = scale(&mut jobs, 7, 3);
}

/// Reads a text in the format that its first line indicates: SWIM, or with named columns.
fn read(text: &[u8], bad_rows: BadRows) -> Result<Trace, TraceError> {
    match table::begins_one(text) {
        true => table::read("in.tsv", text, bad_rows).map(|(trace, _)| trace),
        false => swim::read("in.tsv", text, bad_rows),
    }
}

/// Reads a text twice, once stopping at invalid rows and once skipping them, and compares the
/// results.
fn check(text: &[u8]) {
    let stop = read(text, BadRows::Stop);
    let skip = read(text, BadRows::Skip);
    match (&stop, &skip) {
        (Ok(stop), Ok(skip)) => assert_eq!(stop, skip),
        (Err(error), Ok(trace)) => assert_eq!(Some(error), trace.notes.first_skipped.first()),
        (Err(_), Err(error)) => check_error(error),
        (Ok(_), Err(error)) => panic!("only skipping failed: {error}"),
    }
    if let Err(error) = &stop {
        check_error(error);
    }
    if let Ok(trace) = &skip {
        check_trace(text, trace);
    }
}

/// First line of a trace with named columns.
const HEADER: &[u8] = b"name\tsubmit_s\tmaps\tinput_bytes\tshuffle_bytes\toutput_bytes\n";

#[test]
fn damaged_rows_never_break_the_reader() {
    damaged_rows(b"", "fuzz/swim", 100_000);
}

#[test]
fn damaged_rows_with_named_columns_never_break_the_reader() {
    damaged_rows(HEADER, "fuzz/table", 50_000);
}

fn damaged_rows(header: &[u8], name: &'static str, usual: u64) {
    let inputs = match std::env::var("EASTWEST_FUZZ_INPUTS") {
        Ok(count) => count.parse().expect("EASTWEST_FUZZ_INPUTS is a number"),
        Err(_) => usual,
    };
    let rows: Vec<&[u8]> = DAY.split_inclusive(|&byte| byte == b'\n').collect();
    let (mut whole, mut partly, mut none) = (0u64, 0u64, 0u64);
    for input in 0..inputs {
        let mut stream = Stream::new(input, name);
        let mut text = [header, &real_rows(&rows, &mut stream)].concat();
        for _ in 0..=stream.below(4) {
            damage(&mut text, &rows, &mut stream);
        }
        let outcome = std::panic::catch_unwind(|| check(&text));
        assert!(outcome.is_ok(), "input {input}: {:?}", String::from_utf8_lossy(&text));
        match read(&text, BadRows::Skip) {
            Ok(trace) if trace.notes.skipped == 0 => whole += 1,
            Ok(_) => partly += 1,
            Err(_) => none += 1,
        }
    }
    // The test is useful only if the damage leads to each of the three outcomes.
    if inputs >= 1_000 {
        let least = inputs / 20;
        assert!(whole > least && partly > least && none > least, "{whole} {partly} {none}");
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_break_the_reader(text in prop::collection::vec(any::<u8>(), 0..2_000)) {
        check(&text);
    }

    #[test]
    fn written_jobs_are_read_back(
        jobs in prop::collection::vec(
            ("[a-zé_ ]{1,12}x", 0..2_305_843u64, any::<u64>(), any::<u64>(), any::<u64>()),
            1..20,
        )
    ) {
        let text: String = jobs
            .iter()
            .map(|(name, submit, input, shuffle, output)| {
                format!("{name}\t{submit}\t0\t{input}\t{shuffle}\t{output}\n")
            })
            .collect();
        let trace = swim::read("in.tsv", text.as_bytes(), BadRows::Stop).expect("a trace");
        let mut expected = jobs;
        expected.sort_by_key(|job| job.1);
        prop_assert_eq!(trace.jobs.len(), expected.len());
        for (job, (name, submit, input, shuffle, output)) in trace.jobs.iter().zip(expected) {
            prop_assert_eq!(&job.name, &name);
            prop_assert_eq!(job.submit, eastwest_types::Span::from_secs(submit));
            prop_assert_eq!(
                (job.input_bytes, job.shuffle_bytes, job.output_bytes),
                (input, shuffle, output)
            );
        }
    }
}
