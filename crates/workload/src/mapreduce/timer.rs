//! Wake-ups of the MapReduce model, with their purposes and tokens.

use crate::protocol::Action;
use eastwest_types::Time;

/// Number of the timer [`Timer::Penalty`] in the high byte of its token.
const PENALTY: u64 = 15;

/// Declares each timer once, with its name and its number, which is the high byte of its token.
/// Timers that belong to a numbered entry (a task, a job, a worker) have the number of the entry in
/// the low four bytes.
macro_rules! timers {
    (
        plain { $($(#[$doc:meta])* $kind:literal $plain:ident,)+ }
        numbered { $($(#[$docs:meta])* $kinds:literal $numbered:ident,)+ }
    ) => {
        /// Purpose of a wake-up of the MapReduce model.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Timer {
            $($(#[$doc])* $plain,)+
            $($(#[$docs])* $numbered(u32),)+
            /// End of the time during which a reduce does not fetch from a worker after a failed
            /// fetch.
            Penalty {
                /// Number of the reduce in the table of running tasks.
                task: u32,
                /// Number of the worker (in approximate runs of the part), below 2²⁴.
                from: u32,
            },
        }

        impl Timer {
            /// Returns the token that identifies the wake-up of this timer.
            pub fn token(self) -> u64 {
                let (kind, from, of) = match self {
                    $(Timer::$plain => ($kind, 0, 0),)+
                    $(Timer::$numbered(of) => ($kinds, 0, of),)+
                    Timer::Penalty { task, from } => (PENALTY, from, task),
                };
                kind << 56 | u64::from(from) << 32 | u64::from(of)
            }

            /// Returns the timer that a token identifies.
            pub fn of(token: u64) -> Timer {
                let of = token as u32;
                match token >> 56 {
                    $($kind => Timer::$plain,)+
                    $($kinds => Timer::$numbered(of),)+
                    PENALTY => Timer::Penalty { task: of, from: (token >> 32) as u32 & 0x00ff_ffff },
                    kind => unreachable!("no timer has kind {kind}"),
                }
            }

            /// Returns the action that schedules a wake-up of this timer at the time `at`.
            pub fn at(self, at: Time) -> Action {
                Action::Wake { at, token: self.token() }
            }
        }
    };
}

timers! {
    plain {
        /// Submission of the jobs that are due at this time.
        0 Submit,
        /// Check by the master for workers whose heartbeats are missing.
        13 Look,
        /// Check of the read timeouts of connections.
        14 ReadTimeouts,
        /// Check of running tasks for slow ones, which get a second attempt.
        16 Speculate,
        /// Check by the namenode for dead datanodes.
        17 Recheck,
        /// Round in which the namenode starts copies of blocks with too few replicas.
        18 Replicate,
        /// Assignment of waiting tasks to a worker, in runs without heartbeat messages.
        22 Ask,
    }
    numbered {
        /// End of a job's set-up, after which its maps can be assigned.
        1 Setup,
        /// End of a job's clean-up, after which the job has ended.
        2 Cleanup,
        /// Departure of a worker's heartbeat, or its arrival in runs without heartbeat messages.
        3 Heartbeat,
        /// End of a task's commit.
        4 Commit,
        /// Possible end of a piece of work on the cores of a machine.
        5 Cores,
        /// Possible end of a piece of work on the disks of a machine.
        6 Disks,
        /// End of the namenode's service time for a client's request.
        7 Namenode,
        /// Start of the next block of an HDFS writer.
        8 Block,
        /// Start of a stand-alone HDFS client.
        9 Client,
        /// Start of a job's application master, or its next call to the resource manager.
        10 Master,
        /// Start of a task in its container, after the container's launch.
        11 Container,
        /// Next request of a reduce for finished maps to its application master.
        12 Poll,
        /// Start of the copy of a block, or timeout of a failed copy.
        19 Copy,
        /// Next search of a map for a replica of its split.
        20 Seek,
        /// Arrival of the answer to a heartbeat, in runs without heartbeat messages.
        21 Answer,
        /// End of a piece of work on a dedicated core or disk.
        23 Dedicated,
    }
}
