//! Settings of jobs: their bytes and numbers of tasks.

use eastwest_types::name::Name;
use eastwest_types::{HostId, Time};
use serde::{Deserialize, Serialize};

/// Settings of a job: name, bytes, numbers of tasks, time of submission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobSpec {
    /// Name of the job in tables (untrusted text).
    pub name: String,
    /// Kind of the job, for tables: `terasort`, `search`, `index`, `trace` or another name.
    #[serde(with = "eastwest_types::name")]
    pub kind: Name,
    /// Time at which the job is submitted to the master.
    pub submit: Time,
    /// Bytes that the job reads, shuffles and writes.
    pub bytes: JobBytes,
    /// Number of map tasks of the job, at least 1.
    pub maps: u32,
    /// Number of reduce tasks of the job; 0 means that the maps write the job's output.
    pub reduces: u32,
    /// Pool of the job in the Fair scheduler (default: a pool for this job alone), or its queue in
    /// the Capacity scheduler (default: `default`).
    pub pool: Option<String>,
    /// User of the job within a queue of the Capacity scheduler. All jobs without a user belong to
    /// one common user.
    pub user: Option<String>,
    /// Output bytes of all maps before a combiner, which reduces them to the shuffled bytes.
    /// `None`: the job has no combiner. Ignored if the job shuffles nothing.
    pub uncombined: Option<u64>,
    /// Number of replicas of the job's output. `None`: the number in the settings of the file
    /// system.
    pub output_replication: Option<u32>,
    /// Hosts of stand-alone HDFS clients, which read the input or write the output like `hdfs dfs
    /// -get` and `-put`; the number of clients is `maps`. `None`: the job consists of tasks.
    pub clients: Option<Clients>,
}

/// Hosts on which stand-alone HDFS clients run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Clients {
    /// All clients run on this host, which may be the master.
    On(HostId),
    /// Workers one after another: client `i` runs on worker `i` modulo the number of workers.
    Workers,
}

/// Bytes that a job reads, shuffles and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JobBytes {
    /// Bytes that the job's maps read from HDFS.
    pub input: u64,
    /// Bytes moved from maps to reduces, including bytes that stay on their worker.
    pub shuffle: u64,
    /// Bytes that the job writes to HDFS, each counted once, independent of the number of replicas.
    pub output: u64,
}

impl JobBytes {
    /// Returns the bytes of a sort job: shuffle and output are equal to the input (E-EON, table
    /// 4.2: 640 / 640 / 640 MB).
    pub fn terasort(input: u64) -> JobBytes {
        JobBytes { input, shuffle: input, output: input }
    }
    /// Returns the bytes of a job that searches `input` bytes for a rare word. The ratios are from
    /// E-EON (Fischer e Silva 2018), table 4.2: 640 MB of input, 0.033 MB of shuffle, 0.033 MB of
    /// output.
    pub fn search(input: u64) -> JobBytes {
        JobBytes::by_ratio(input, (33, 640_000), (1, 1))
    }
    /// Returns the bytes of a job that builds an inverted index of `input` bytes (E-EON, table 4.2:
    /// 640 / 114 / 114 MB).
    pub fn index(input: u64) -> JobBytes {
        JobBytes::by_ratio(input, (114, 640), (1, 1))
    }
    /// Returns the bytes of a job, given two ratios as fractions (numerator, denominator):
    /// `shuffle` to input, and `output` to shuffle. Bytes are rounded down; denominators must not
    /// be zero; results above 64 bits saturate.
    pub fn by_ratio(input: u64, shuffle: (u64, u64), output: (u64, u64)) -> JobBytes {
        let part = |of: u64, (n, d): (u64, u64)| {
            u64::try_from(u128::from(of) * u128::from(n) / u128::from(d)).unwrap_or(u64::MAX)
        };
        let shuffle = part(input, shuffle);
        JobBytes { input, shuffle, output: part(shuffle, output) }
    }
}

/// Rule for the numbers of tasks of a job, given its bytes.
///
/// ```text
/// maps    = max(1, ⌈b / split_bytes⌉)   b = input, or shuffle if there is no input, or output
/// reduces = 0                           if nothing is shuffled
///           clamp(⌈shuffle / bytes_per_reducer⌉, 1, max(1, ⌊fill · workers · reduce_slots⌋))
/// ```
///
/// One map per block is Hadoop's rule for input; a number of bytes per reducer is Hive's rule. The
/// upper bound, with which all reduces run at once and some slots stay free for failures, is the
/// recommendation of Hadoop's MapReduce tutorial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeRule {
    /// Bytes of the input split of a map (block size of Hadoop 1 and E-EON: 64 MB, here 64 · 10⁶).
    pub split_bytes: u64,
    /// Shuffle bytes for which a job gets one more reduce task
    /// (`hive.exec.reducers.bytes.per.reducer`: 256 · 10⁶).
    pub bytes_per_reducer: u64,
    /// Largest fraction of all reduce slots of the cluster that one job may use, in percent
    /// (Hadoop's tutorial: 95).
    pub reduce_fill_percent: u32,
}

impl Default for SizeRule {
    fn default() -> Self {
        SizeRule {
            split_bytes: 64_000_000,
            bytes_per_reducer: 256_000_000,
            reduce_fill_percent: 95,
        }
    }
}

impl SizeRule {
    /// Returns the numbers of maps and reduces of a job that moves `bytes`, on a cluster with
    /// `reduce_slots` reduce slots in total. Saturates at `u32::MAX`, which is above the limit
    /// [`MAX_TASKS`](super::MAX_TASKS).
    pub fn tasks(&self, bytes: JobBytes, reduce_slots: u64) -> (u32, u32) {
        let count =
            |bytes: u64, part: u64| u32::try_from(bytes.div_ceil(part.max(1))).unwrap_or(u32::MAX);
        let read = [bytes.input, bytes.shuffle, bytes.output];
        let read = read.into_iter().find(|&b| b > 0).unwrap_or(0);
        let maps = count(read, self.split_bytes).max(1);
        if bytes.shuffle == 0 {
            return (maps, 0);
        }
        let most = reduce_slots.saturating_mul(u64::from(self.reduce_fill_percent)) / 100;
        let most = u32::try_from(most).unwrap_or(u32::MAX).max(1);
        (maps, count(bytes.shuffle, self.bytes_per_reducer).clamp(1, most))
    }
}

impl JobSpec {
    /// Returns a job with given bytes and numbers of tasks. A job of the kind `terasort` writes one
    /// replica, like TeraSort (`mapreduce.terasort.output.replication`: 1).
    pub fn fixed(
        name: impl Into<String>,
        kind: &'static str,
        submit: Time,
        bytes: JobBytes,
        maps: u32,
        reduces: u32,
    ) -> JobSpec {
        JobSpec {
            name: name.into(),
            kind,
            submit,
            bytes,
            maps,
            reduces,
            pool: None,
            user: None,
            uncombined: None,
            output_replication: (kind == "terasort").then_some(1),
            clients: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_ratios_give_the_published_bytes() {
        let search = JobBytes::search(640_000_000);
        assert_eq!((search.shuffle, search.output), (33_000, 33_000));
        let index = JobBytes::index(640_000_000);
        assert_eq!((index.shuffle, index.output), (114_000_000, 114_000_000));
        assert_eq!(JobBytes::terasort(5), JobBytes { input: 5, shuffle: 5, output: 5 });
        assert_eq!(JobBytes::by_ratio(u64::MAX, (3, 1), (1, 2)).shuffle, u64::MAX);
    }

    #[test]
    fn tasks_follow_from_bytes() {
        let rule = SizeRule::default();
        let tasks = |input, shuffle, output| rule.tasks(JobBytes { input, shuffle, output }, 40);
        assert_eq!(tasks(640_000_000, 640_000_000, 0), (10, 3));
        assert_eq!(tasks(640_000_001, 1, 0), (11, 1));
        assert_eq!(tasks(0, 0, 0), (1, 0));
        assert_eq!(tasks(0, 128_000_001, 0), (3, 1));
        assert_eq!(tasks(0, 0, 65_000_000), (2, 0));
        assert_eq!(tasks(1, u64::MAX, 0), (1, 38));
        assert_eq!(rule.tasks(JobBytes::terasort(u64::MAX), 0), (u32::MAX, 1));
    }
}
