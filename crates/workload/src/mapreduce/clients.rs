//! Stand-alone HDFS clients: `hdfs dfs -put` and `-get`, and read and write tests of HDFS without
//! MapReduce.
//!
//! A job with `clients` has no tasks. When the job is submitted, `maps` clients start, all on one
//! host or distributed over the workers. Each client reads its share of the input block by block
//! from the nearest replicas, then writes its share of the output. The job ends when its last
//! client has ended; the table of tasks lists clients as maps. Differences from Hadoop: the
//! client's Java virtual machine starts in `task_start`, without contention if it is on the
//! master's host; producing the content of a written file takes no time.

use super::config::Clients;
use super::connections::Use;
use super::context::Context;
use super::file::{Owner, Place, Written};
use super::hdfs::Hdfs;
use super::namenode::Caller;
use super::note::Note;
use super::slab::Slab;
use super::timer::Timer;
use super::work::Work;
use crate::protocol::Action;
use eastwest_engine::random::Stream;
use eastwest_types::{ConnId, Locality, Purpose, Side, TaskKind, TaskRecord, Time};
use serde::{Deserialize, Serialize};

/// State of a running stand-alone HDFS client, which reads and writes files without MapReduce.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Client {
    job: u32,
    index: u32,
    at: Place,
    assigned: Time,
    started: Time,
    input_done: Time,
    /// Input bytes that the client has not requested yet.
    left: u64,
    /// Size in bytes of the block that the client is reading.
    block: u64,
    /// Workers with a replica of the block that is being read, without the workers from which a
    /// read of the block has failed.
    replicas: Vec<u32>,
    /// Number of failed block reads of the client so far; after each, another replica of the block
    /// is read.
    failures: u32,
    /// Number of unfinished parts of the block read: network transfer, and disk read at the
    /// datanode.
    parts: u32,
    conn: Option<ConnId>,
    /// Random stream that chooses the workers with replicas of each block, and the replica to read.
    blocks: Stream,
    locality: Locality,
}

/// Returns the locality, `a` or `b`, that means the longer way from data to reader; the order is
/// none, node, rack, remote.
fn farther(a: Locality, b: Locality) -> Locality {
    let order = |l| match l {
        Locality::None => 0,
        Locality::Node => 1,
        Locality::Rack => 2,
        Locality::Remote => 3,
    };
    if order(a) >= order(b) { a } else { b }
}

/// Table of the running stand-alone HDFS clients.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StandAlone {
    clients: Slab<Client>,
}

impl StandAlone {
    /// Starts the stand-alone HDFS clients of a job.
    pub fn start(&mut self, cx: &mut Context, job: u32, clients: Clients) {
        for index in 0..cx.spec(job).maps {
            let at = match clients {
                Clients::On(host) => {
                    let worker = cx.hosts.iter().position(|&of| of == host);
                    Place { host, worker: worker.map(|w| w as u32) }
                }
                Clients::Workers => {
                    let worker = index % cx.hosts.len() as u32;
                    Place { host: cx.host(worker), worker: Some(worker) }
                }
            };
            let blocks = cx.stream("client", job, index);
            let client = self.clients.add(Client {
                job,
                index,
                at,
                assigned: cx.now,
                started: cx.now,
                input_done: cx.now,
                left: cx.spec(job).split_bytes(index),
                block: 0,
                replicas: Vec::new(),
                failures: 0,
                parts: 0,
                conn: None,
                blocks,
                locality: Locality::None,
            });
            cx.wake_in(cx.config.costs.task_start, Timer::Client(client));
        }
    }

    /// Begins the work of a client whose Java virtual machine has started: asks the namenode which
    /// datanodes have the blocks of its input; if no request is needed, reads or writes at once.
    pub fn client_start(&mut self, cx: &mut Context, hdfs: &mut Hdfs, client: u32) {
        let c = self.clients.get(client);
        c.started = cx.now;
        if c.left == 0 || cx.config.hdfs.namenode_time.is_none() {
            self.client_located(cx, hdfs, client);
            return;
        }
        let host = c.at.host;
        let session = hdfs.namenode.session(Caller::Reader { client }, host);
        hdfs.namenode.ask(cx, session);
    }

    /// Reads the client's next block, or starts to write if no block is left to read. The namenode
    /// has already returned the replicas of the blocks.
    pub fn client_located(&mut self, cx: &mut Context, hdfs: &mut Hdfs, client: u32) {
        let most = cx.config.hdfs.block_bytes;
        let copies = cx.config.hdfs.replication;
        let c = self.clients.get(client);
        if c.left == 0 {
            c.input_done = cx.now;
            self.client_writes(cx, hdfs, client);
            return;
        }
        c.block = c.left.min(most);
        c.left -= c.block;
        c.replicas = cx.racks.place(None, copies, &mut c.blocks);
        c.replicas.retain(|&w| !hdfs.replicas.is_dead(w));
        self.read_nearest(cx, client);
    }

    /// Reads the client's present block from its nearest remaining replica. If no replica remains,
    /// the client and its job fail.
    fn read_nearest(&mut self, cx: &mut Context, client: u32) {
        let disks = cx.config.node.disks.is_some();
        let c = self.clients.get(client);
        if c.replicas.is_empty() {
            self.client_failed(cx, client, "an HDFS client found no replica of a block");
            return;
        }
        let (holder, locality) = cx.racks.nearest_to(c.at.worker, &c.replicas, &mut c.blocks);
        c.locality = farther(c.locality, locality);
        let (bytes, job, host, round) = (c.block, c.job, c.at.host, c.failures);
        c.parts = 1;
        if locality != Locality::Node {
            c.parts += u32::from(disks);
            let ends = (host, cx.host(holder));
            let purpose = Use::Read { client, holder };
            let conn = cx.open(purpose, ends);
            self.clients.get(client).conn = Some(conn);
            let request = cx.config.hdfs.read_request_bytes;
            cx.tell(conn, Side::Client, request, 0, Some(job));
        } else {
            cx.read(holder, bytes, Work::ClientRead { client, round });
        }
    }

    /// Handles a client's read request at the datanode `holder`, which sends the block and reads it
    /// from disk at the same time.
    pub fn send_block(&mut self, cx: &mut Context, (client, holder): (u32, u32), conn: ConnId) {
        let c = self.clients.get(client);
        let (job, bytes, round) = (c.job, c.block, c.failures);
        if cx.config.node.disks.is_some() {
            cx.read(holder, bytes, Work::ClientRead { client, round });
        }
        let framing = cx.config.hdfs.read_framing(bytes);
        let ends = (conn, Side::Server);
        cx.send(ends, (bytes, framing), Purpose::MapInput, Some(job));
    }

    /// Counts a finished part (transfer or disk read) of a client's read of a block; after the last
    /// part the client continues.
    pub fn read_part(&mut self, cx: &mut Context, hdfs: &mut Hdfs, client: u32) {
        let c = self.clients.get(client);
        c.parts -= 1;
        if c.parts > 0 {
            return;
        }
        if let Some(conn) = c.conn.take() {
            cx.close(conn);
        }
        self.client_located(cx, hdfs, client);
    }

    /// Handles the end of a datanode's disk read for a client; ignores it if the client has changed
    /// to another replica since then.
    pub fn block_read(&mut self, cx: &mut Context, hdfs: &mut Hdfs, (client, round): (u32, u32)) {
        if self.clients.get(client).failures == round {
            self.read_part(cx, hdfs, client);
        }
    }

    /// Reads the client's present block from the next replica, after the connection to a datanode
    /// failed.
    pub fn read_lost(&mut self, cx: &mut Context, (client, holder): (u32, u32)) {
        let c = self.clients.get(client);
        c.conn = None;
        c.failures += 1;
        c.replicas.retain(|&w| w != holder);
        self.read_nearest(cx, client);
    }

    /// Handles the failure of a stand-alone HDFS client: its job fails.
    pub fn client_failed(&mut self, cx: &mut Context, client: u32, reason: &'static str) {
        let job = self.clients.get(client).job;
        cx.note(Note::ClientFailed { job, reason });
    }

    /// Aborts all stand-alone HDFS clients of a failed job, with their connections and open files.
    pub fn drop_job(&mut self, cx: &mut Context, hdfs: &mut Hdfs, job: u32) {
        let of_job: Vec<u32> =
            self.clients.iter().filter(|(_, c)| c.job == job).map(|(number, _)| number).collect();
        for client in of_job {
            self.clients.remove(client);
            cx.abort_where(|u| matches!(u, Use::Read { client: of, .. } if of == client));
            hdfs.drop_files_of(cx, client);
        }
    }

    fn client_writes(&mut self, cx: &mut Context, hdfs: &mut Hdfs, client: u32) {
        let c = self.clients.get(client);
        let (of, at) = ((c.job, c.index), c.at);
        let spec = &cx.config.jobs[c.job as usize];
        let bytes = spec.written_bytes(c.index);
        if bytes == 0 {
            self.client_done(cx, hdfs, client, Vec::new());
            return;
        }
        let copies = spec.output_replication.unwrap_or(cx.config.hdfs.output_replication);
        let writer = hdfs.open_writer(cx, Owner::Client(client), of, at, (bytes, copies));
        hdfs.hand_over(cx, writer, bytes);
    }

    /// Handles the end of a stand-alone HDFS client that has written all blocks of its file.
    pub fn client_done(
        &mut self,
        cx: &mut Context,
        hdfs: &mut Hdfs,
        client: u32,
        blocks: Vec<Written>,
    ) {
        let c = self.clients.remove(client);
        hdfs.replicas.keep_file(cx, (c.job, c.index), blocks);
        let spec = cx.spec(c.job);
        let (read, written) = (spec.split_bytes(c.index), spec.written_bytes(c.index));
        cx.out.push(Action::Task(Box::new(TaskRecord {
            job: c.job,
            task: c.index,
            kind: TaskKind::Map,
            host: c.at.host,
            assigned: c.assigned,
            started: c.started,
            input_done: c.input_done,
            finished: cx.now,
            locality: c.locality,
            bytes_in: read,
            bytes_out: written,
            computed: c.input_done,
            merged: c.input_done,
            spills: 0,
            file_bytes_read: 0,
            file_bytes_written: 0,
            cpu: cx.config.costs.task_start,
        })));
        let (job, assigned) = (c.job, c.assigned);
        cx.note(Note::ClientThrough { job, assigned, read, written });
    }

    /// Whether a stand-alone HDFS client is still running.
    pub fn runs(&self, client: u32) -> bool {
        self.clients.find(client).is_some()
    }

    /// Returns the number of running stand-alone HDFS clients.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.clients.count().0
    }
}
