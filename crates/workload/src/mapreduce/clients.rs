//! Stand-alone HDFS clients: `hdfs dfs -put` and `-get`, and the read and write tests of the
//! literature without MapReduce around them.
//!
//! A job with `clients` has no tasks. As many clients as it has maps start when it is submitted, on
//! one host or on the workers in turn; each reads its share of the input block by block from the
//! nearest replicas, then writes its share of the output. The job ends with its last client; the table of tasks lists clients as maps.
//! Departures: the start of the client's virtual machine is `task_start` on its host, without
//! contention if that is the master; the bytes of a client's own file take no time to produce.

use super::blocks::Written;
use super::config::Clients;
use super::connections::Use;
use super::control::{control_message, data_message};
use super::hardware::Work;
use super::namenode::Caller;
use super::write::Owner;
use super::{MapReduce, Timer};
use crate::Action;
use eastwest_engine::random::Stream;
use eastwest_types::{ConnId, HostId, Locality, Purpose, Side, TaskKind, TaskRecord, Time};
use serde::{Deserialize, Serialize};

/// A client from its start to its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Client {
    job: u32,
    index: u32,
    host: HostId,
    /// The worker on the same host, if there is one.
    worker: Option<u32>,
    assigned: Time,
    started: Time,
    input_done: Time,
    /// Bytes not asked for yet.
    left: u64,
    /// Bytes of the block being read.
    block: u64,
    /// Its replicas that have not failed the client.
    replicas: Vec<u32>,
    /// Replicas that have.
    failures: u32,
    /// Parts of the block that are not through: the transfer, and the datanode's disk.
    parts: u32,
    conn: Option<ConnId>,
    /// Draws where the blocks lie and which replica is read.
    blocks: Stream,
    /// Blocks of the file it has written.
    pub written: Vec<Written>,
    locality: Locality,
}

/// How far a replica is, worst of all blocks.
fn farther(a: Locality, b: Locality) -> Locality {
    let order = |l| match l {
        Locality::None => 0,
        Locality::Node => 1,
        Locality::Rack => 2,
        Locality::Remote => 3,
    };
    if order(a) >= order(b) { a } else { b }
}

impl MapReduce {
    /// Starts the clients of a job.
    pub(super) fn start_clients(
        &mut self,
        now: Time,
        job: u32,
        clients: Clients,
        out: &mut Vec<Action>,
    ) {
        for index in 0..self.spec(job).maps {
            let (host, worker) = match clients {
                Clients::On(host) => {
                    let worker = self.workers.iter().position(|w| w.host == host);
                    (host, worker.map(|w| w as u32))
                }
                Clients::Workers => {
                    let worker = index % self.workers.len() as u32;
                    (self.host(worker), Some(worker))
                }
            };
            let blocks = self.stream("client", job, index);
            let client = self.clients.add(Client {
                job,
                index,
                host,
                worker,
                assigned: now,
                started: now,
                input_done: now,
                left: self.spec(job).split_bytes(index),
                block: 0,
                replicas: Vec::new(),
                failures: 0,
                parts: 0,
                conn: None,
                blocks,
                written: Vec::new(),
                locality: Locality::None,
            });
            out.push(Timer::Client(client).at(now + self.config.costs.task_start));
        }
    }

    /// A client's virtual machine runs.
    pub(super) fn client_start(&mut self, now: Time, client: u32, out: &mut Vec<Action>) {
        let c = self.clients.get(client);
        c.started = now;
        if c.left == 0 || self.config.hdfs.namenode_time.is_none() {
            self.client_located(now, client, out);
            return;
        }
        let host = c.host;
        let session = self.namenode_session(Caller::Reader { client }, host);
        self.ask_namenode(now, session, out);
    }

    /// A client knows where its blocks are: reads the next one, or goes on to write.
    pub(super) fn client_located(&mut self, now: Time, client: u32, out: &mut Vec<Action>) {
        let most = self.config.hdfs.block_bytes;
        let copies = self.config.hdfs.replication;
        let c = self.clients.get(client);
        if c.left == 0 {
            c.input_done = now;
            self.client_writes(now, client, out);
            return;
        }
        c.block = c.left.min(most);
        c.left -= c.block;
        c.replicas = self.racks.place(None, copies, &mut c.blocks);
        c.replicas.retain(|&w| !self.workers[w as usize].dead);
        self.read_nearest(now, client, out);
    }

    /// Reads a block from the nearest replica that is left; a client without any fails, and so does
    /// its job.
    fn read_nearest(&mut self, now: Time, client: u32, out: &mut Vec<Action>) {
        let disks = self.config.node.disks.is_some();
        let c = self.clients.get(client);
        if c.replicas.is_empty() {
            self.client_failed(now, client, "a client found no replica of a block", out);
            return;
        }
        let (holder, locality) = self.racks.nearest_to(c.worker, &c.replicas, &mut c.blocks);
        c.locality = farther(c.locality, locality);
        let (bytes, job, host, round) = (c.block, c.job, c.host, c.failures);
        c.parts = 1;
        if locality != Locality::Node {
            c.parts += u32::from(disks);
            let ends = (host, self.host(holder));
            let purpose = Use::Read { client, holder };
            let conn = self.conns.open(purpose, ends, self.config.class, out);
            self.clients.get(client).conn = Some(conn);
            let request = u64::from(self.config.hdfs.read_request_bytes);
            out.push(control_message(conn, Side::Client, request, 0, Some(job)));
        } else {
            self.hardware.read(now, holder, bytes, Work::ClientRead { client, round }, out);
        }
    }

    /// At a datanode: a client's request has arrived; it reads while it sends.
    pub(super) fn send_block(
        &mut self,
        now: Time,
        (client, holder): (u32, u32),
        conn: ConnId,
        out: &mut Vec<Action>,
    ) {
        let c = self.clients.get(client);
        let (job, bytes, round) = (c.job, c.block, c.failures);
        if self.config.node.disks.is_some() {
            self.hardware.read(now, holder, bytes, Work::ClientRead { client, round }, out);
        }
        let framing = self.config.hdfs.read_framing(bytes);
        let ends = (conn, Side::Server);
        out.push(data_message(ends, (bytes, framing), Purpose::MapInput, Some(job)));
    }

    /// A part of reading a block is through.
    pub(super) fn read_part(&mut self, now: Time, client: u32, out: &mut Vec<Action>) {
        let c = self.clients.get(client);
        c.parts -= 1;
        if c.parts > 0 {
            return;
        }
        if let Some(conn) = c.conn.take() {
            self.conns.close(conn, out);
        }
        self.client_located(now, client, out);
    }

    /// A datanode has read a block, unless the client has turned away from it.
    pub(super) fn block_read(
        &mut self,
        now: Time,
        (client, round): (u32, u32),
        out: &mut Vec<Action>,
    ) {
        if self.clients.get(client).failures == round {
            self.read_part(now, client, out);
        }
    }

    /// The connection to a datanode is gone: the client reads the block from the next replica.
    pub(super) fn read_lost(
        &mut self,
        now: Time,
        (client, holder): (u32, u32),
        out: &mut Vec<Action>,
    ) {
        let c = self.clients.get(client);
        c.conn = None;
        c.failures += 1;
        c.replicas.retain(|&w| w != holder);
        self.read_nearest(now, client, out);
    }

    /// A client has failed: so has its job.
    pub(super) fn client_failed(
        &mut self,
        now: Time,
        client: u32,
        reason: &'static str,
        out: &mut Vec<Action>,
    ) {
        let job = self.clients.get(client).job;
        self.fail_job(now, job, reason, out);
    }

    /// Ends the clients of a job.
    pub(super) fn drop_clients(&mut self, job: u32, out: &mut Vec<Action>) {
        let of_job: Vec<u32> =
            self.clients.iter().filter(|(_, c)| c.job == job).map(|(number, _)| number).collect();
        for client in of_job {
            self.clients.remove(client);
            self.conns
                .abort_where(|u| matches!(u, Use::Read { client: of, .. } if of == client), out);
            self.drop_files_of(client, out);
        }
    }

    fn client_writes(&mut self, now: Time, client: u32, out: &mut Vec<Action>) {
        let c = self.clients.get(client);
        let (of, at) = ((c.job, c.index), (c.host, c.worker));
        let spec = &self.config.jobs[c.job as usize];
        let bytes = spec.written_bytes(c.index);
        if bytes == 0 {
            self.client_done(now, client, out);
            return;
        }
        let copies = spec.output_replication.unwrap_or(self.config.hdfs.output_replication);
        let writer = self.open_writer(now, Owner::Client(client), of, at, (bytes, copies), out);
        self.hand_over(now, writer, bytes, out);
    }

    /// A client is through.
    pub(super) fn client_done(&mut self, now: Time, client: u32, out: &mut Vec<Action>) {
        let mut c = self.clients.remove(client);
        self.keep_file(now, (c.job, c.index), std::mem::take(&mut c.written), out);
        let spec = &self.config.jobs[c.job as usize];
        let (read, written) = (spec.split_bytes(c.index), spec.written_bytes(c.index));
        self.count_client(c.job, read, written);
        let spec = &self.config.jobs[c.job as usize];
        let maps = spec.maps;
        out.push(Action::Task(Box::new(TaskRecord {
            job: c.job,
            task: c.index,
            kind: TaskKind::Map,
            host: c.host,
            assigned: c.assigned,
            started: c.started,
            input_done: c.input_done,
            finished: now,
            locality: c.locality,
            bytes_in: spec.split_bytes(c.index),
            bytes_out: spec.written_bytes(c.index),
            computed: c.input_done,
            merged: c.input_done,
            spills: 0,
            file_bytes_read: 0,
            file_bytes_written: 0,
            cpu: self.config.costs.task_start,
        })));
        let job = self.job(c.job);
        job.started.get_or_insert(c.assigned);
        job.maps_done += 1;
        if job.maps_done == maps {
            self.job_over(now, c.job, None, out);
        }
    }
}
