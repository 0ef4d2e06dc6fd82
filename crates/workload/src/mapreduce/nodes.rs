//! Processes on the machines of a cluster.

use super::clients::StandAlone;
use super::connections::Use;
use super::context::Context;
use super::hdfs::Hdfs;
use super::namenode::Caller;
use super::task::{Stage, Task};
use super::tasks::Tasks;
use serde::{Deserialize, Serialize};

/// Machines, file system, its clients, and tasks: everything below the master.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Nodes {
    /// Settings, connections and machines.
    pub cx: Context,
    /// Distributed file system.
    pub hdfs: Hdfs,
    /// Stand-alone clients of the file system.
    pub clients: StandAlone,
    /// Jobs and their tasks.
    pub tasks: Tasks,
}

impl Nodes {
    /// Removes an attempt from its worker: drops its connections and files.
    pub fn drop_attempt(&mut self, task: u32) -> Task {
        let Nodes { cx, hdfs, tasks, .. } = self;
        hdfs.namenode.drop_caller(cx, Caller::Split { task });
        let t = tasks.attempts.remove(task);
        if let Stage::Producing(producing) = &t.stage {
            if let Some(writer) = producing.writer {
                hdfs.drop_writer(cx, writer);
            }
        }
        cx.abort_where(|purpose| match purpose {
            Use::Split { task: of, .. } | Use::Fetch { task: of, .. } => of == task,
            Use::Launch { task: of } | Use::Events { task: of } => of == task,
            _ => false,
        });
        t
    }
}
