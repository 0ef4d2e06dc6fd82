//! Test with the Facebook trace of 2009 that comes with Eastwest: the reader must return its known
//! properties.

use eastwest_types::Span;
use eastwest_workload::replay::{BadRows, Trace, TraceJob, TraceNotes, scale, swim, window};

const DAY: &[u8] =
    include_bytes!("../../../python/eastwest/data/swim/FB-2009_samples_24_times_1hr_0.tsv");
const FIRST_50: &[u8] = include_bytes!(
    "../../../python/eastwest/data/swim/FB-2009_samples_24_times_1hr_0_first50jobs.tsv"
);

fn day() -> Trace {
    swim::read("day.tsv", DAY, BadRows::Stop).expect("the shipped trace")
}

fn shuffle_bytes(jobs: &[TraceJob]) -> u64 {
    jobs.iter().map(|job| job.shuffle_bytes).sum()
}

#[test]
fn the_whole_day_reads_without_a_note() {
    let trace = day();
    assert_eq!(trace.jobs.len(), 5_894);
    assert_eq!(trace.notes, TraceNotes { lines: 5_894, ..TraceNotes::default() });
    let first = &trace.jobs[0];
    assert_eq!((first.name.as_str(), first.submit), ("job0", Span::from_secs(49)));
    assert_eq!(
        (first.input_bytes, first.shuffle_bytes, first.output_bytes),
        (740_773, 2_339_561, 627_471)
    );
    let last = &trace.jobs[5_893];
    assert_eq!((last.name.as_str(), last.submit), ("job5893", Span::from_secs(86_404)));
}

#[test]
fn the_traps_of_this_file_are_passed() {
    let jobs = day().jobs;
    let largest = jobs.iter().map(|job| job.input_bytes.max(job.shuffle_bytes)).max();
    assert_eq!(largest, Some(8_822_021_618_207), "far beyond 2^31 and 2^32");
    let empty = jobs
        .iter()
        .filter(|job| job.input_bytes == 0 && job.shuffle_bytes == 0 && job.output_bytes == 0)
        .count();
    assert_eq!(empty, 33, "jobs of no bytes are kept");
    let maps_only = jobs.iter().filter(|job| job.shuffle_bytes == 0).count();
    assert_eq!(maps_only, 4_448, "75 %");
    let hour =
        |h: u64| window(&jobs, Span::from_secs(3600 * h), Span::from_secs(3600 * (h + 1))).len();
    assert_eq!(hour(11), 0, "the day has an empty hour");
    assert_eq!((0..25).map(hour).sum::<usize>(), 5_894);
    assert_eq!(hour(24), 2, "two jobs lie after the 24th hour");
    let below = |limit: u64| {
        let small =
            |job: &&TraceJob| job.input_bytes + job.shuffle_bytes + job.output_bytes < limit;
        jobs.iter().filter(small).count() as f64 / 5_894.0
    };
    assert!((below(1_000_000_000) - 0.704).abs() < 0.001, "70 % below 10^9 bytes");
    assert!((below(1 << 30) - 0.788).abs() < 0.001, "79 % below 2^30 bytes");
}

#[test]
fn the_first_four_hours_on_20_workers_shuffle_50_gb() {
    let jobs = day().jobs;
    let mut first = window(&jobs, Span::ZERO, Span::from_secs(4 * 3600));
    assert_eq!(first.len(), 623);
    assert_eq!(shuffle_bytes(&first), 1_500_817_473_720);
    scale(&mut first, 20, 600).expect("possible");
    assert_eq!(shuffle_bytes(&first), 50_027_249_128);
    let mut all = jobs.clone();
    scale(&mut all, 20, 600).expect("possible");
    assert_eq!(shuffle_bytes(&all), 740_557_076_906);
    let vanished = jobs
        .iter()
        .zip(&all)
        .filter(|(before, after)| before.shuffle_bytes > 0 && after.shuffle_bytes == 0)
        .count();
    assert_eq!(vanished, 5, "shuffles below half a byte after scaling");
    assert!(jobs.iter().zip(&all).all(|(before, after)| before.submit == after.submit));
}

#[test]
fn the_short_sample_is_the_start_of_the_day() {
    let short = swim::read("first50.tsv", FIRST_50, BadRows::Stop).expect("the shipped sample");
    assert_eq!(short.jobs.len(), 50);
    assert_eq!(short.jobs, day().jobs[..50]);
}

#[test]
fn cutting_the_file_anywhere_is_noticed() {
    // Cuts the file within row 3,000, which leaves a short row, an empty number, or a line without
    // a line feed.
    let start = DAY
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n')
        .nth(2_998)
        .map(|(at, _)| at + 1)
        .expect("3,000 rows");
    let length = DAY[start..].iter().position(|&byte| byte == b'\n').expect("a line's end");
    for cut in 1..=length {
        match swim::read("cut.tsv", &DAY[..start + cut], BadRows::Stop) {
            Err(error) => assert_eq!(error.line, 3_000, "{error}"),
            Ok(trace) => assert!(trace.notes.unterminated, "cut after {cut} bytes"),
        }
    }
}
