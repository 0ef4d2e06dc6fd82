//! Workers that are not heard of any more.
//!
//! The master looks at its workers every third of `expiry` (JobTracker's ExpireTrackers, YARN's
//! AbstractLivelinessMonitor). One that has not been heard of for `expiry` is lost: its attempts are
//! killed and their tasks wait again; maps that were done on it run again as long as their job's
//! reduces need outputs; what its application masters managed starts again. If it is heard of later
//! it is a new worker with all its slots free. When the namenode believes it lost, and what becomes
//! of its blocks, is [`super::replication`]'s business.

use super::config::Framework;
use super::scheduler::index;
use super::{MapReduce, Timer};
use crate::Action;
use eastwest_types::{TaskKind, Time};

impl MapReduce {
    /// Looks at all workers.
    pub(super) fn look(&mut self, now: Time, out: &mut Vec<Action>) {
        let expiry = self.config.failures.expiry;
        for worker in 0..self.workers.len() as u32 {
            let w = &mut self.workers[worker as usize];
            if now.since(w.heard) >= expiry && !w.lost {
                w.lost = true;
                self.lose(now, worker, out);
            }
            if self.finished {
                return;
            }
        }
        self.look_later(now, out);
    }

    fn lose(&mut self, now: Time, worker: u32, out: &mut Vec<Action>) {
        let attempts: Vec<u32> =
            self.tasks.iter().filter(|(_, t)| t.worker == worker).map(|(n, _)| n).collect();
        for task in attempts {
            self.kill_attempt(task, out);
        }
        for (job, map) in self.scheduler.lost(worker) {
            self.scheduler.finished(TaskKind::Map, job);
            self.run_again_unplaced(job, map);
        }
        let w = &mut self.workers[worker as usize];
        w.free = [self.config.map_slots, self.config.reduce_slots];
        w.free_sent = w.free;
        w.fetch_failures.clear();
        let mut unheard = std::mem::take(&mut w.reported);
        unheard.append(&mut w.finished);
        unheard.extend(self.drop_reports(|report| report.worker == worker, out));
        for report in unheard {
            if self.jobs[report.job as usize].is_some() {
                self.scheduler.finished(report.kind, report.job);
                self.speculation.unreported(&report);
                self.run_again(report.job, report.kind, report.index);
            }
        }
        self.outputs_on(worker);
        if self.config.framework == Framework::Yarn {
            self.node_lost(now, worker, out);
        }
    }

    /// Maps that were done on a lost worker run again where a reduce may need them.
    fn outputs_on(&mut self, worker: u32) {
        for job in 0..self.jobs.len() as u32 {
            let Some(state) = self.jobs[job as usize].as_ref() else { continue };
            if state.reduces_done == self.config.jobs[job as usize].reduces {
                continue;
            }
            let lost: Vec<u32> =
                state.map_at.iter().filter(|&(_, &at)| at == worker).map(|(&map, _)| map).collect();
            for map in lost {
                self.output_lost(job, map);
                self.run_again(job, TaskKind::Map, map);
            }
        }
    }

    /// At the master: a worker is heard of.
    pub(super) fn heard(&mut self, now: Time, worker: u32, out: &mut Vec<Action>) {
        let w = &mut self.workers[worker as usize];
        w.heard = now;
        w.lost = false;
        if std::mem::take(&mut w.dead) {
            self.datanode_back(worker);
            self.replicate_soon(now, out);
        }
    }

    /// A slot or a container is free again.
    pub(super) fn free_slot(&mut self, worker: u32, (job, kind): (u32, TaskKind)) {
        match self.config.framework {
            Framework::Mr1 => {
                self.workers[worker as usize].free[index(kind)] += 1;
                self.slots_changed(worker);
            }
            Framework::Yarn => self.free_container(worker, (job, kind)),
        }
    }

    /// The first look.
    pub(super) fn begin_looking(&mut self, now: Time, out: &mut Vec<Action>) {
        self.look_later(now, out);
        self.recheck_later(now, out);
        out.push(Timer::Watch.at(now + super::watch::INTERVAL));
    }
}
