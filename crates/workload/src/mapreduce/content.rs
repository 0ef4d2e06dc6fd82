//! Contents of messages between the hosts of the cluster.
//!
//! A message carries its content from the sender to the receiver; the receiver reads nothing else of
//! the sender's state.

use super::report::Report;
use eastwest_types::TaskKind;
use serde::{Deserialize, Serialize};

/// Content of a message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Content {
    /// Heartbeat of a worker to the master.
    Heartbeat(Heartbeat),
    /// The master's answer to a heartbeat.
    Answer(Answer),
}

/// Heartbeat of a worker: its state at the departure (Hadoop's TaskTrackerStatus).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Numbers of free map slots and free reduce slots of the worker.
    pub free: [u32; 2],
    /// Reports of attempts that have ended since the last heartbeat.
    pub reports: Vec<Report>,
    /// Map outputs that reduces on the worker could not fetch since the last heartbeat, as (job,
    /// map, worker that stores the output).
    pub fetch_failures: Vec<(u32, u32, u32)>,
    /// Reduces on the worker that still fetch map outputs.
    pub fetching: Vec<KnownMaps>,
}

/// Finished maps that a reduce knows (`fromEventId` of getMapCompletionEvents).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct KnownMaps {
    /// Number of the reduce in the table of running tasks.
    pub task: u32,
    /// Number of the reduce's job.
    pub job: u32,
    /// Number of finished maps of the job that the reduce knows.
    pub maps: u32,
}

/// The master's answer to a heartbeat (Hadoop's HeartbeatResponse).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Answer {
    /// Tasks that the worker starts, as (number in the table of running tasks, kind).
    pub launches: Vec<(u32, TaskKind)>,
    /// Numbers of finished maps, each as (reduce, number of finished maps of its job).
    pub map_events: Vec<(u32, u32)>,
}

impl Answer {
    /// Removes a killed attempt from the tasks that the worker starts.
    pub fn forget(&mut self, task: u32) {
        self.launches.retain(|&(of, _)| of != task);
        self.map_events.retain(|&(of, _)| of != task);
    }
}

impl Content {
    /// Returns the content of a heartbeat. Panics if the message is no heartbeat.
    pub fn heartbeat(self) -> Heartbeat {
        match self {
            Content::Heartbeat(heartbeat) => heartbeat,
            other => unreachable!("a heartbeat contains no {other:?}"),
        }
    }

    /// Returns the content of an answer to a heartbeat. Panics if the message is no answer.
    pub fn answer(self) -> Answer {
        match self {
            Content::Answer(answer) => answer,
            other => unreachable!("an answer to a heartbeat contains no {other:?}"),
        }
    }
}
