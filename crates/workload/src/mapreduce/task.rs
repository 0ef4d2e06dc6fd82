//! A task on its worker, and the table of running tasks.

use super::shuffle::Fetching;
use super::write::Writer;
use eastwest_types::{Locality, TaskKind, Time};

/// What a task is doing. A task waits for one wake-up at most.
#[derive(Clone, Debug)]
pub enum Stage {
    /// The assignment is on its way to the worker.
    Assigned,
    /// Its Java virtual machine starts; waits for a wake-up.
    Starting,
    /// A map waits for its remote split and computes meanwhile, at the earliest until this time.
    Reading {
        /// When the map function would be through if the split were there.
        computed: Time,
    },
    /// A map reads locally, computes; waits for a wake-up.
    Mapping,
    /// A map writes its output for the reduces; waits for a wake-up.
    Spilling,
    /// A reduce fetches; waits for messages, and for a wake-up while it copies a local output.
    Shuffling,
    /// A reduce merges and computes; waits for a wake-up.
    Reducing,
    /// Job output goes to its replicas; waits for messages and for the local disk's wake-up.
    Writing(Box<Writer>),
}

/// A task from its assignment until it has finished.
#[derive(Clone, Debug)]
pub struct Task {
    /// Number of its job.
    pub job: u32,
    /// Number within its job and kind.
    pub index: u32,
    /// Map or reduce.
    pub kind: TaskKind,
    /// Where it runs.
    pub worker: u32,
    /// When the assignment reached the worker.
    pub assigned: Time,
    /// When it began to read or fetch.
    pub started: Time,
    /// When its input was complete.
    pub input_done: Time,
    /// How far a map's split is.
    pub locality: Locality,
    /// Read or fetched.
    pub bytes_in: u64,
    /// Spilled or written.
    pub bytes_out: u64,
    /// What it is doing.
    pub stage: Stage,
    /// Of a reduce until its shuffle is done: what it has fetched from where.
    pub fetching: Option<Box<Fetching>>,
}

/// Running tasks by slot; slots of finished ones are used again.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    slots: Vec<Option<Task>>,
    free: Vec<u32>,
}

impl Tasks {
    /// Adds a task and returns its slot.
    pub fn add(&mut self, task: Task) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = Some(task);
            return slot;
        }
        self.slots.push(Some(task));
        self.slots.len() as u32 - 1
    }

    /// Removes a finished task.
    pub fn remove(&mut self, slot: u32) -> Task {
        self.free.push(slot);
        self.slots[slot as usize].take().expect("a task finishes once")
    }

    /// A running task.
    pub fn get(&mut self, slot: u32) -> &mut Task {
        self.slots[slot as usize].as_mut().expect("the task runs")
    }

    /// Running tasks, and slots of the table.
    #[cfg(test)]
    pub fn count(&self) -> (usize, usize) {
        (self.slots.len() - self.free.len(), self.slots.len())
    }
}
