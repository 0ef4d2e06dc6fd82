//! Durations that applications have measured, as histograms.

use crate::table;
use crate::table::Names;

table! {
    /// Histograms of the [measures of applications](../mechanisms/applications.md), such as the
    /// time of a query, over the whole run. One row for each bucket that is not empty; a bucket is
    /// at most 0.8 % wide.
    pub ApplicationTimes = "application_times" since 10
    of (workload, measure, (upper_us, count)) in (u16, &'a str, (f64, u64)), names: &'a Names;

    /// name of the workload
    workload: label(&names.workloads) = workload;

    /// name of the measure, without its unit: `query` is the distribution of
    /// `applications.W.query_us`
    measure: str = measure.to_owned();

    /// upper bound of the bucket in µs, not included in the bucket
    upper_us: f64 = upper_us;

    /// number of durations in the bucket
    count: u64 = count;
}
