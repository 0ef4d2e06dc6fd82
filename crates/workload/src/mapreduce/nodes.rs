//! State of everything on the machines of a cluster except the master.

use super::clients::StandAlone;
use super::connections::Use;
use super::context::Context;
use super::hdfs::Hdfs;
use super::here::Here;
use super::namenode::Caller;
use super::task::{Stage, Task};
use super::tasks::Tasks;
use super::timer::Timer;
use serde::{Deserialize, Serialize};

/// State of everything on the machines below the master: connections and hardware, HDFS,
/// stand-alone clients, tasks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Nodes {
    /// Settings, connections and machines of the cluster, and the event that is being handled.
    pub cx: Context,
    /// HDFS, the distributed file system.
    pub hdfs: Hdfs,
    /// State of the stand-alone HDFS clients.
    pub clients: StandAlone,
    /// Running jobs and their tasks.
    pub tasks: Tasks,
}

impl Nodes {
    /// Removes a task attempt from its worker: aborts its connections and the file that it writes.
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

    /// Returns the host of a wake-up.
    pub fn host_of(&self, timer: Timer) -> Here {
        let Nodes { cx, hdfs, tasks, .. } = self;
        let of_worker = |worker| Here::At(cx.host(worker));
        match timer {
            Timer::Commit(task) | Timer::Seek(task) => of_worker(tasks.worker_of(task)),
            Timer::Block(writer) => Here::At(hdfs.host_of(writer)),
            Timer::Cores(worker) | Timer::Disks(worker) | Timer::Heartbeat(worker) => {
                of_worker(worker)
            }
            Timer::Namenode(_) | Timer::Submit | Timer::Setup(_) | Timer::Cleanup(_) => {
                Here::At(cx.master)
            }
            Timer::Look | Timer::Recheck => Here::At(cx.master),
            _ => Here::Anywhere,
        }
    }
}
