//! `speculation`: second attempts at slow tasks.

use crate::scenario::quantity::{Fraction, Ratio};
use crate::scenario::reader::{Section, key};
use eastwest_types::Span;
use eastwest_workload::mapreduce::SpeculationConfig;

/// Reads the table.
pub fn read(s: &mut Section) -> SpeculationConfig {
    let usual = SpeculationConfig::default();
    let mut on = |name, doc, usual: bool| s.get(key(name, doc).value(usual));
    let maps = on(
        "maps",
        "Copy slow maps (mapreduce.map.speculative; Hadoop's default is true).",
        usual.maps,
    );
    let reduces = on(
        "reduces",
        "Copy slow reduces (mapreduce.reduce.speculative; Hadoop's default is true).",
        usual.reduces,
    );
    let mut part =
        |name, doc, usual: f64| s.get(key(name, doc).value(Fraction(usual)).range("0", "1")).0;
    let cap_running = part(
        "cap_running",
        "YARN: copies at one time as a part of a job's running tasks of a kind \
         (mapreduce.job.speculative.speculative-cap-running-tasks).",
        usual.cap_running,
    );
    let cap_total = part(
        "cap_total",
        "YARN: or as a part of all of them \
         (mapreduce.job.speculative.speculative-cap-total-tasks).",
        usual.cap_total,
    );
    let gap = part(
        "gap",
        "Hadoop 1: how far below the mean progress a slow task is (SPECULATIVE_GAP).",
        usual.gap,
    );
    let minimum = s.get(
        key(
            "minimum",
            "YARN: or so many, whichever is most (mapreduce.job.speculative.minimum-allowed-tasks).",
        )
        .value(usual.minimum)
        .range("0", "1000000"),
    );
    let threshold = s.get(
        key(
            "threshold",
            "YARN: standard deviations above the mean from which on a run time is slow \
             (mapreduce.job.speculative.slowtaskthreshold).",
        )
        .value(Ratio(usual.threshold))
        .range("0", "1000"),
    );
    let mut span =
        |name, doc, usual: Span, least| s.get(key(name, doc).value(usual).range(least, "100 h"));
    let interval = span(
        "interval",
        "Time between two looks at running tasks \
         (mapreduce.job.speculative.retry-after-no-speculate).",
        usual.interval,
        "1 ms",
    );
    let pause = span(
        "pause",
        "YARN: time until a job's next copy (mapreduce.job.speculative.retry-after-speculate).",
        usual.pause,
        "0 s",
    );
    let lag =
        span("lag", "Hadoop 1: how long a task must have run (SPECULATIVE_LAG).", usual.lag, "0 s");
    SpeculationConfig {
        maps,
        reduces,
        cap_running,
        cap_total,
        minimum,
        threshold: threshold.0,
        interval,
        pause,
        gap,
        lag,
    }
}
