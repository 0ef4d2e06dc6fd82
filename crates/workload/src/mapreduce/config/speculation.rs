//! Settings of speculative execution.

use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// When a running task is given a second attempt. Hadoop's default is on for both kinds of tasks;
/// here it is off, as in the published simulations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpeculationConfig {
    /// Copy slow maps (`mapreduce.map.speculative`; Hadoop: true).
    pub maps: bool,
    /// Copy slow reduces (`mapreduce.reduce.speculative`; Hadoop: true).
    pub reduces: bool,
    /// Copies at one time as a part of a job's running tasks of one kind
    /// (`mapreduce.job.speculative.speculative-cap-running-tasks`: 0.1).
    pub cap_running: f64,
    /// Or as a part of all of them (`mapreduce.job.speculative.speculative-cap-total-tasks`: 0.01).
    pub cap_total: f64,
    /// Or so many, whichever is most (`mapreduce.job.speculative.minimum-allowed-tasks`: 10).
    pub minimum: u32,
    /// Standard deviations above the mean from which on a run time is slow
    /// (`mapreduce.job.speculative.slowtaskthreshold`: 1.0).
    pub threshold: f64,
    /// Time between two looks at the running tasks
    /// (`mapreduce.job.speculative.retry-after-no-speculate`: 1 s).
    pub interval: Span,
    /// Time until a job's next copy after one was asked for
    /// (`mapreduce.job.speculative.retry-after-speculate`: 15 s).
    pub pause: Span,
    /// Hadoop 1: how far below the job's mean progress a slow task is (`SPECULATIVE_GAP`: 0.2).
    pub gap: f64,
    /// Hadoop 1: how long a task must have run (`SPECULATIVE_LAG`: 60 s).
    pub lag: Span,
}

impl Default for SpeculationConfig {
    fn default() -> Self {
        SpeculationConfig {
            maps: false,
            reduces: false,
            cap_running: 0.1,
            cap_total: 0.01,
            minimum: 10,
            threshold: 1.0,
            interval: Span::from_secs(1),
            pause: Span::from_secs(15),
            gap: 0.2,
            lag: Span::from_secs(60),
        }
    }
}
