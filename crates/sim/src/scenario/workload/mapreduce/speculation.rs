//! The table `speculation` of a MapReduce workload: second (speculative) attempts of slow tasks.

use super::fields::{Range, count, flag, share, span};
use eastwest_settings::quantity::Ratio;
use eastwest_settings::reader::{Section, key};
use eastwest_workload::mapreduce::SpeculationConfig;

const WAIT: Range = ("0 s", "100 h");

/// Reads the table `speculation`: second (speculative) attempts of slow tasks.
pub fn read(s: &mut Section) -> SpeculationConfig {
    let usual = SpeculationConfig::default();
    let doc = "Whether slow maps get a second attempt (mapreduce.map.speculative; Hadoop's \
               default is true).";
    let maps = flag(s, "maps", doc, usual.maps);
    let doc = "Whether slow reduces get a second attempt (mapreduce.reduce.speculative; Hadoop's \
               default is true).";
    let reduces = flag(s, "reduces", doc, usual.reduces);
    let doc = "YARN: limit of simultaneous second attempts, as a share of the job's running tasks \
               of one kind (mapreduce.job.speculative.speculative-cap-running-tasks).";
    let cap_running = share(s, "cap_running", doc, usual.cap_running);
    let doc = "YARN: limit of simultaneous second attempts, as a share of all tasks of one kind \
               (mapreduce.job.speculative.speculative-cap-total-tasks). The largest of \
               cap_running, cap_total and minimum counts.";
    let cap_total = share(s, "cap_total", doc, usual.cap_total);
    let doc = "Hadoop 1: difference to the mean progress from which a task counts as slow \
               (SPECULATIVE_GAP).";
    let gap = share(s, "gap", doc, usual.gap);
    let doc = "YARN: number of simultaneous second attempts that is always allowed \
               (mapreduce.job.speculative.minimum-allowed-tasks).";
    let minimum = count(s, "minimum", doc, usual.minimum, ("0", "1000000"));
    let threshold = s.get(
        key(
            "threshold",
            "YARN: number of standard deviations above the mean run time from which a task counts \
             as slow (mapreduce.job.speculative.slowtaskthreshold).",
        )
        .value(Ratio(usual.threshold))
        .range("0", "1000"),
    );
    let doc = "Time between two checks for slow tasks \
               (mapreduce.job.speculative.retry-after-no-speculate).";
    let interval = span(s, "interval", doc, usual.interval, ("1 ms", "100 h"));
    let doc = "YARN: minimum time between two second attempts of a job \
               (mapreduce.job.speculative.retry-after-speculate).";
    let pause = span(s, "pause", doc, usual.pause, WAIT);
    let doc = "Hadoop 1: run time before which a task never counts as slow (SPECULATIVE_LAG).";
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
