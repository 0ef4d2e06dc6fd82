//! Settings of speculative execution.

use eastwest_types::Span;
use serde::{Deserialize, Serialize};

/// Speculative execution: when a running task gets a second attempt. Hadoop's default is on for
/// both kinds of tasks; here it is off, as in the published simulations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpeculationConfig {
    /// Whether slow maps get a second attempt (`mapreduce.map.speculative`; Hadoop: true).
    pub maps: bool,
    /// Whether slow reduces get a second attempt (`mapreduce.reduce.speculative`; Hadoop: true).
    pub reduces: bool,
    /// Largest number of second attempts at one time, as a fraction (0 to 1) of a job's running
    /// tasks of one kind; the largest of three limits holds
    /// (`mapreduce.job.speculative.speculative-cap-running-tasks`: 0.1).
    pub cap_running: f64,
    /// Largest number of second attempts at one time, as a fraction (0 to 1) of all tasks of a job
    /// of one kind; the largest of three limits holds
    /// (`mapreduce.job.speculative.speculative-cap-total-tasks`: 0.01).
    pub cap_total: f64,
    /// Largest number of second attempts at one time, as a number; the largest of three limits
    /// holds (`mapreduce.job.speculative.minimum-allowed-tasks`: 10).
    pub minimum: u32,
    /// Number of standard deviations above the mean run time from which a task is slow
    /// (`mapreduce.job.speculative.slowtaskthreshold`: 1.0).
    pub threshold: f64,
    /// Time between two checks of the running tasks
    /// (`mapreduce.job.speculative.retry-after-no-speculate`: 1 s).
    pub interval: Span,
    /// Time from the request of a second attempt to the job's next request
    /// (`mapreduce.job.speculative.retry-after-speculate`: 15 s).
    pub pause: Span,
    /// Hadoop 1: a task is slow if its progress (0 to 1) is at least this much below the mean of
    /// its job (`SPECULATIVE_GAP`: 0.2).
    pub gap: f64,
    /// Hadoop 1: run time from which a task can be slow (`SPECULATIVE_LAG`: 60 s).
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
