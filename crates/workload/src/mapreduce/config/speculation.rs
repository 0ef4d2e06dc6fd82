//! Settings of speculative execution: second attempts of slow tasks.

use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// Settings of speculative execution, which decide when a running task gets a second attempt.
/// Hadoop enables it by default; here it is off, as in the published simulations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpeculationConfig {
    /// Whether slow maps get a second attempt (`mapreduce.map.speculative`; Hadoop: true).
    pub maps: bool,
    /// Whether slow reduces get a second attempt (`mapreduce.reduce.speculative`; Hadoop: true).
    pub reduces: bool,
    /// First of three limits of second attempts at one time: a fraction (0 to 1) of a job's running
    /// tasks of one kind. The largest of the three limits holds
    /// (`mapreduce.job.speculative.speculative-cap-running-tasks`: 0.1).
    pub cap_running: f64,
    /// Second of three limits of second attempts at one time: a fraction (0 to 1) of all tasks of a
    /// job of one kind. The largest of the three limits holds
    /// (`mapreduce.job.speculative.speculative-cap-total-tasks`: 0.01).
    pub cap_total: f64,
    /// Third of three limits of second attempts of a job at one time: a number. The largest of the
    /// three limits holds (`mapreduce.job.speculative.minimum-allowed-tasks`: 10).
    pub minimum: u32,
    /// Number of standard deviations by which the estimated run time of a task must be above the
    /// mean, so that the task counts as slow (`mapreduce.job.speculative.slowtaskthreshold`: 1.0).
    pub threshold: f64,
    /// Time between two checks of the running tasks for slow tasks
    /// (`mapreduce.job.speculative.retry-after-no-speculate`: 1 s).
    pub interval: Span,
    /// Time after the request of a second attempt during which no further second attempt of the
    /// job's tasks is requested (`mapreduce.job.speculative.retry-after-speculate`: 15 s).
    pub pause: Span,
    /// Hadoop 1: a task counts as slow if its progress (0 to 1) is at least this value below the
    /// mean progress of the job's tasks of its kind (`SPECULATIVE_GAP`: 0.2).
    pub gap: f64,
    /// Hadoop 1: shortest run time of a task that can count as slow (`SPECULATIVE_LAG`: 60 s).
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
