//! What wake-ups are for.

use crate::protocol::Action;
use eastwest_types::Time;

/// Number of [`Timer::Penalty`].
const PENALTY: u64 = 15;

/// Declares each timer once: its number, which is the high byte of its token, and its name. Numbered
/// ones are for one of many; which is in the low four bytes.
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
            /// A reduce may ask a worker again.
            Penalty {
                /// The reduce.
                task: u32,
                /// The worker, below 2²⁴.
                from: u32,
            },
        }

        impl Timer {
            /// The token of a wake-up for it.
            pub fn token(self) -> u64 {
                let (kind, from, of) = match self {
                    $(Timer::$plain => ($kind, 0, 0),)+
                    $(Timer::$numbered(of) => ($kinds, 0, of),)+
                    Timer::Penalty { task, from } => (PENALTY, from, task),
                };
                kind << 56 | u64::from(from) << 32 | u64::from(of)
            }

            /// Returns the timer that has this token.
            pub fn of(token: u64) -> Timer {
                let of = token as u32;
                match token >> 56 {
                    $($kind => Timer::$plain,)+
                    $($kinds => Timer::$numbered(of),)+
                    PENALTY => Timer::Penalty { task: of, from: (token >> 32) as u32 & 0x00ff_ffff },
                    kind => unreachable!("no timer has kind {kind}"),
                }
            }

            /// Returns the action that wakes the workload for it at a time.
            pub fn at(self, at: Time) -> Action {
                Action::Wake { at, token: self.token() }
            }
        }
    };
}

timers! {
    plain {
        /// Submit the jobs that are due.
        0 Submit,
        /// The master looks for workers that are not heard of.
        13 Look,
        /// Connections are looked at.
        14 ReadTimeouts,
        /// Running tasks are looked at: slow ones are copied.
        16 Speculate,
        /// The namenode looks for datanodes that are dead.
        17 Recheck,
        /// The namenode has blocks copied.
        18 Replicate,
        /// A worker may take waiting tasks.
        22 Ask,
    }
    numbered {
        /// A job's maps can be given out.
        1 Setup,
        /// A job has finished.
        2 Cleanup,
        /// A worker's heartbeat is due.
        3 Heartbeat,
        /// A task has committed.
        4 Commit,
        /// Work on the cores of a machine may be through.
        5 Cores,
        /// Work on the disks of a machine may be through.
        6 Disks,
        /// The namenode's answer to a client is ready.
        7 Namenode,
        /// A writer may begin its next block.
        8 Block,
        /// A stand-alone client of HDFS runs.
        9 Client,
        /// An application master starts, or calls the resource manager.
        10 Master,
        /// A task's container runs.
        11 Container,
        /// A reduce asks for finished maps.
        12 Poll,
        /// A copy of a block is begun, or given up.
        19 Copy,
        /// A map looks again for a replica of its split.
        20 Seek,
        /// An answer to a heartbeat that is no message arrives.
        21 Answer,
        /// Work that shares nothing is through.
        23 Dedicated,
    }
}
