//! A map task: read a split, compute, then spill for the reduces or write the output.
//!
//! Reading and computing overlap, since records are handed to the map function as they arrive:
//! a map of `b` bytes that starts at `t` has computed at max(input complete, t + b / map_rate).
//! Input is complete at t + b / disk_rate for a local split and when TCP has delivered the last byte
//! for a remote one. A job without input generates its data at the same rate. The spill of `s`
//! bytes follows and lasts s / disk_rate; Hadoop overlaps all but the last spill with the map
//! function, which is inside the measured default of `map_rate`.

use super::connections::Use;
use super::control::control_message;
use super::task::Stage;
use super::{MapReduce, Timer};
use crate::Action;
use eastwest_types::{ConnId, Purpose, Side, Time};

impl MapReduce {
    pub(super) fn map_start(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let t = self.tasks.get(task);
        let (job, map, worker, split) = (t.job, t.index, t.worker, t.bytes_in);
        let spec = self.spec(job);
        let work = match spec.bytes.input {
            0 if spec.reduces > 0 => spec.spill_bytes(map),
            0 => spec.written_bytes(map),
            _ => split,
        };
        let computed = now + self.config.costs.map_rate.time_for(work);
        let holder = if split == 0 {
            worker
        } else {
            let mut stream = self.stream("replica", job, map);
            let state = self.jobs[job as usize].as_ref().expect("the job runs");
            self.racks.nearest(worker, state.maps.replicas(map), &mut stream)
        };
        if holder == worker {
            let read = now + self.config.node.read_rate.time_for(split);
            let t = self.tasks.get(task);
            t.input_done = read;
            t.stage = Stage::Mapping;
            out.push(Timer::Task(task).at(read.max(computed)));
        } else {
            let ends = (self.host(worker), self.host(holder));
            let conn = self.conns.open(Use::Split { task }, ends, self.config.class, out);
            let request = u64::from(self.config.hdfs.read_request_bytes);
            out.push(control_message(conn, Side::Client, request, 0, Some(job)));
            self.tasks.get(task).stage = Stage::Reading { computed };
        }
    }

    /// At the holder of a replica: the request has arrived.
    pub(super) fn send_split(&mut self, task: u32, conn: ConnId, out: &mut Vec<Action>) {
        let t = self.tasks.get(task);
        out.push(Action::Send {
            conn,
            from: Side::Server,
            payload: t.bytes_in,
            header: 0,
            tag: 0,
            purpose: Purpose::MapInput,
            job: Some(t.job),
            record: true,
        });
    }

    pub(super) fn split_arrived(
        &mut self,
        now: Time,
        task: u32,
        conn: ConnId,
        out: &mut Vec<Action>,
    ) {
        self.conns.close(conn, out);
        let t = self.tasks.get(task);
        let Stage::Reading { computed } = t.stage else {
            unreachable!("a split arrives while its map reads")
        };
        t.input_done = now;
        t.stage = Stage::Mapping;
        out.push(Timer::Task(task).at(now.max(computed)));
    }

    /// The map function is through.
    pub(super) fn mapped(&mut self, now: Time, task: u32, out: &mut Vec<Action>) {
        let t = self.tasks.get(task);
        let (job, map) = (t.job, t.index);
        let spec = &self.config.jobs[job as usize];
        if spec.reduces == 0 {
            self.write_output(now, task, out);
            return;
        }
        let t = self.tasks.get(task);
        t.bytes_out = spec.spill_bytes(map);
        t.stage = Stage::Spilling;
        out.push(Timer::Task(task).at(now + self.config.node.write_rate.time_for(t.bytes_out)));
    }
}
