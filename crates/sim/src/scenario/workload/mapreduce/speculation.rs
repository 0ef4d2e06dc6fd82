//! `speculation`: speculative attempts of slow tasks.

use super::fields::{Range, count, flag, share, span};
use eastwest_settings::quantity::Ratio;
use eastwest_settings::reader::{Section, key};
use eastwest_workload::mapreduce::SpeculationConfig;

const WAIT: Range = ("0 s", "100 h");

/// Reads the table `speculation`.
pub fn read(s: &mut Section) -> SpeculationConfig {
    let usual = SpeculationConfig::default();
    let doc = "Copy slow maps (mapreduce.map.speculative; Hadoop's default is true).";
    let maps = flag(s, "maps", doc, usual.maps);
    let doc = "Copy slow reduces (mapreduce.reduce.speculative; Hadoop's default is true).";
    let reduces = flag(s, "reduces", doc, usual.reduces);
    let doc = "YARN: copies at one time as a part of a job's running tasks of a kind \
               (mapreduce.job.speculative.speculative-cap-running-tasks).";
    let cap_running = share(s, "cap_running", doc, usual.cap_running);
    let doc = "YARN: or as a part of all of them \
               (mapreduce.job.speculative.speculative-cap-total-tasks).";
    let cap_total = share(s, "cap_total", doc, usual.cap_total);
    let doc = "Hadoop 1: how far below the mean progress a slow task is (SPECULATIVE_GAP).";
    let gap = share(s, "gap", doc, usual.gap);
    let doc = "YARN: or so many, whichever is most \
               (mapreduce.job.speculative.minimum-allowed-tasks).";
    let minimum = count(s, "minimum", doc, usual.minimum, ("0", "1000000"));
    let threshold = s.get(
        key(
            "threshold",
            "YARN: standard deviations above the mean from which on a run time is slow \
             (mapreduce.job.speculative.slowtaskthreshold).",
        )
        .value(Ratio(usual.threshold))
        .range("0", "1000"),
    );
    let doc = "Time between two looks at running tasks \
               (mapreduce.job.speculative.retry-after-no-speculate).";
    let interval = span(s, "interval", doc, usual.interval, ("1 ms", "100 h"));
    let doc = "YARN: time until a job's next copy \
               (mapreduce.job.speculative.retry-after-speculate).";
    let pause = span(s, "pause", doc, usual.pause, WAIT);
    let doc = "Hadoop 1: how long a task must have run (SPECULATIVE_LAG).";
    let lag = span(s, "lag", doc, usual.lag, WAIT);
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
