//! Purposes of wake-ups.

use crate::protocol::Action;
use eastwest_types::Time;

/// Number of [`Timer::Penalty`].
const PENALTY: u64 = 15;

/// Declares each timer once: its number, which is the high byte of its token, and its name. Timers
/// of numbered entries have the number of the entry in the low four bytes.
macro_rules! timers {
    (
        plain { $($(#[$doc:meta])* $kind:literal $plain:ident,)+ }
        numbered { $($(#[$docs:meta])* $kinds:literal $numbered:ident,)+ }
    ) => {
        /// Purpose of a wake-up.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Timer {
            $($(#[$doc])* $plain,)+
            $($(#[$docs])* $numbered(u32),)+
            /// End of a worker's penalty for a reduce.
            Penalty {
                /// Number of the reduce in the table of tasks.
                task: u32,
                /// Number of the worker, below 2²⁴.
                from: u32,
            },
        }

        impl Timer {
            /// Returns the token of the wake-up.
            pub fn token(self) -> u64 {
                let (kind, from, of) = match self {
                    $(Timer::$plain => ($kind, 0, 0),)+
                    $(Timer::$numbered(of) => ($kinds, 0, of),)+
                    Timer::Penalty { task, from } => (PENALTY, from, task),
                };
                kind << 56 | u64::from(from) << 32 | u64::from(of)
            }

            /// Returns the timer with this token.
            pub fn of(token: u64) -> Timer {
                let of = token as u32;
                match token >> 56 {
                    $($kind => Timer::$plain,)+
                    $($kinds => Timer::$numbered(of),)+
                    PENALTY => Timer::Penalty { task: of, from: (token >> 32) as u32 & 0x00ff_ffff },
                    kind => unreachable!("no timer has kind {kind}"),
                }
            }

            /// Returns the action that wakes the workload for this timer at a time.
            pub fn at(self, at: Time) -> Action {
                Action::Wake { at, token: self.token() }
            }
        }
    };
}

timers! {
    plain {
        /// Submission of the jobs that are due.
        0 Submit,
        /// Check for workers without heartbeats.
        13 Look,
        /// Check of read timeouts.
        14 ReadTimeouts,
        /// Check of running tasks for slow ones.
        16 Speculate,
        /// Check for dead datanodes.
        17 Recheck,
        /// Replication round of the namenode.
        18 Replicate,
        /// Assignment of waiting tasks to a worker, without heartbeat messages.
        22 Ask,
    }
    numbered {
        /// End of a job's set-up.
        1 Setup,
        /// End of a job's clean-up.
        2 Cleanup,
        /// Heartbeat of a worker.
        3 Heartbeat,
        /// End of a task's commit.
        4 Commit,
        /// Possible end of work on the cores of a machine.
        5 Cores,
        /// Possible end of work on the disks of a machine.
        6 Disks,
        /// End of the namenode's service time for a client's request.
        7 Namenode,
        /// Next block of a writer.
        8 Block,
        /// Start of a stand-alone client of HDFS.
        9 Client,
        /// Start of an application master, or its call of the resource manager.
        10 Master,
        /// Start of a task's container.
        11 Container,
        /// Request of a reduce for finished maps.
        12 Poll,
        /// Start of a copy of a block, or its timeout.
        19 Copy,
        /// Search of a map for a replica of its split.
        20 Seek,
        /// Arrival of an answer to a heartbeat, without messages.
        21 Answer,
        /// End of work on dedicated cores and disks.
        23 Dedicated,
    }
}
