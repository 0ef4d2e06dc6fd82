//! A file on its way into HDFS.
//!
//! A file is cut into blocks of `block_bytes`, written one after another. A block's replicas form a
//! pipeline: the writer, itself the first replica where it stores data, sends to the next, and so
//! on, with fresh targets for every block. The writer sends chunks as they are produced, at most
//! `write_window` of them unacknowledged; a replica passes on a chunk once it has arrived whole and
//! acknowledges it back up the chain when it has taken it in for its disk and the acknowledgement
//! from below is there (Shvachko et al. 2010, section 3.A; DataStreamer and BlockReceiver). Each
//! chunk carries the checksums of its bytes and the headers of its packets. A block is written when
//! every chunk is acknowledged and the writer's own replica has been taken in.
//!
//! With `setup_bytes` a block begins with a request that opens the connections hop by hop and is
//! answered back up the chain, and ends with an empty packet and its acknowledgement, as in
//! DataTransferProtocol. With `namenode_time` the writer asks for the file, for each block, and at
//! the end. Departures: a chunk larger than a packet delays later replicas; acknowledgements are of
//! one size. What happens when a datanode is lost is in [`recovery`].

mod recovery;

use super::blocks::Written;
use super::config::HdfsConfig;
use super::connections::Use;
use super::control::control_message;
use super::hardware::Work;
use super::namenode::Caller;
use super::{MapReduce, Timer};
use crate::Action;
use eastwest_engine::random::Stream;
use eastwest_types::{ConnId, HostId, Purpose, Side, Time};
use serde::{Deserialize, Serialize};

/// Tag of the request that sets up a pipeline, and of its answer.
const SETUP: u64 = 0;
/// Tag of the empty packet that ends a block, and of its acknowledgement.
const CLOSE: u64 = u64::MAX;
/// Header of a packet: two lengths and a PacketHeaderProto (offset, sequence, last, length).
const PACKET_HEADER: u64 = 31;
/// Room Hadoop leaves for the largest header of a packet (`PKT_MAX_HEADER_LEN`).
const MOST_HEADER: u64 = 33;
/// A checksum (CRC32C).
const CHECKSUM: u64 = 4;
/// Bytes of a file in a packet of a read (`BlockSender`: 64 KiB).
const READ_PACKET: u64 = 65_536;

impl HdfsConfig {
    /// Checksums and headers of packets that hold `packet` bytes of a file.
    fn overhead(&self, bytes: u64, packet: u64) -> u32 {
        let per = u64::from(self.bytes_per_checksum);
        if per == 0 {
            return 0;
        }
        let sums = CHECKSUM * bytes.div_ceil(per);
        u32::try_from(sums + PACKET_HEADER * bytes.div_ceil(packet)).unwrap_or(u32::MAX)
    }

    /// What goes over the wire beside the bytes of a chunk that is written.
    pub fn write_framing(&self, bytes: u64) -> u32 {
        let per = u64::from(self.bytes_per_checksum);
        let room = u64::from(self.packet_bytes).saturating_sub(MOST_HEADER);
        self.overhead(bytes, (room / (per + CHECKSUM)).max(1) * per.max(1))
    }

    /// What goes over the wire beside bytes that are read.
    pub fn read_framing(&self, bytes: u64) -> u32 {
        self.overhead(bytes, READ_PACKET)
    }
}

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Owner {
    /// A task's.
    Task(u32),
    /// A stand-alone client's.
    Client(u32),
}

/// What a writer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    /// Bytes to begin a block with, or the end of the file.
    Idle,
    /// A wake-up before the next block.
    Pausing,
    /// The namenode's leave to create the file.
    Creating,
    /// The namenode's choice of targets.
    Asking,
    /// The pipeline.
    SettingUp,
    /// Chunks and acknowledgements.
    Streaming,
    /// The namenode's choice of a datanode in the place of a lost one.
    Replacing,
    /// What there is of the block to arrive at that one.
    Transferring,
    /// The acknowledgement of the empty packet.
    Closing,
    /// The namenode's word that the file is complete.
    Completing,
}

/// A connection of a pipeline, and the replica at its end.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Hop {
    conn: ConnId,
    /// Where the replica lies.
    replica: u32,
    /// Bytes of the block that have arrived at the replica since the pipeline was set up.
    arrived: u64,
    /// Bytes of the block the replica has taken in.
    stored: u64,
    /// Bytes acknowledged by all replicas below.
    below: u64,
    /// Bytes acknowledged up.
    acknowledged: u64,
}

/// A file on its way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Writer {
    owner: Owner,
    job: u32,
    host: HostId,
    /// The worker that is the first replica of every block, if the writer is one.
    worker: Option<u32>,
    replicas: u32,
    /// Draws the targets of blocks.
    targets: Stream,
    state: State,
    session: Option<u32>,
    /// Bytes of the file.
    total: u64,
    /// Of these, produced.
    produced: u64,
    /// Of these, in blocks that are written.
    written: u64,
    /// Bytes of this block.
    block: u64,
    /// Bytes of this block sent or stored.
    sent: u64,
    /// Of this block, handed to the writer's own replica.
    handed: u64,
    /// Bytes of this block that were acknowledged when its present pipeline was set up.
    resumed: u64,
    /// Pipelines so far: work for earlier ones counts no more.
    pipe: u32,
    /// Datanodes that have failed this file: they get no more of it.
    excluded: Vec<u32>,
    /// How often this block's pipeline could not be set up.
    retries: u32,
    /// How often a datanode for the running pipeline could not be won.
    replacements: u32,
    /// Parts of what it is sent that are not through.
    transfer_parts: u32,
    /// Blocks that are through.
    blocks: Vec<Written>,
    /// Bytes of this block acknowledged by all other replicas.
    acknowledged: u64,
    /// Bytes of this block the writer's own replica has taken in.
    local: u64,
    /// Replicas of this block.
    chain: Vec<u32>,
    /// Hops of the pipeline; none if there is only the writer's own replica.
    hops: Vec<Hop>,
}

impl MapReduce {
    /// A file of so many bytes and replicas to be written by a host, which may be a worker.
    pub(super) fn open_writer(
        &mut self,
        now: Time,
        owner: Owner,
        (job, index): (u32, u32),
        (host, worker): (HostId, Option<u32>),
        (total, replicas): (u64, u32),
        out: &mut Vec<Action>,
    ) -> u32 {
        let asks = self.config.hdfs.namenode_time.is_some();
        let targets = self.stream("output", job, index);
        let writer = self.writers.add(Writer {
            owner,
            job,
            host,
            worker,
            replicas,
            targets,
            state: if asks { State::Creating } else { State::Idle },
            session: None,
            total,
            produced: 0,
            written: 0,
            block: 0,
            sent: 0,
            handed: 0,
            resumed: 0,
            pipe: 0,
            excluded: Vec::new(),
            retries: 0,
            replacements: 0,
            transfer_parts: 0,
            blocks: Vec::new(),
            acknowledged: 0,
            local: 0,
            chain: Vec::new(),
            hops: Vec::new(),
        });
        if asks {
            let session = self.namenode_session(Caller::Writer { writer }, host);
            self.writers.get(writer).session = Some(session);
            self.ask_namenode(now, session, out);
        } else if self.config.coarse.blocks {
            self.next_block(now, writer, out);
        }
        writer
    }

    /// More of the file is produced.
    pub(super) fn hand_over(&mut self, now: Time, writer: u32, bytes: u64, out: &mut Vec<Action>) {
        let w = self.writers.get(writer);
        w.produced += bytes;
        match w.state {
            State::Idle => self.next_block(now, writer, out),
            State::Streaming => self.fill_pipeline(now, writer, out),
            _ => {}
        }
    }

    /// The namenode has answered.
    pub(super) fn writer_answered(&mut self, now: Time, writer: u32, out: &mut Vec<Action>) {
        let w = self.writers.get(writer);
        match w.state {
            State::Creating => {
                w.state = State::Idle;
                self.next_block(now, writer, out);
            }
            State::Asking => self.set_up(now, writer, out),
            State::Replacing => self.replace(now, writer, out),
            State::Completing => self.file_written(now, writer, out),
            state => unreachable!("nothing was asked in {state:?}"),
        }
    }

    /// Begins a block if there are bytes for it, or completes the file.
    pub(super) fn next_block(&mut self, now: Time, writer: u32, out: &mut Vec<Action>) {
        let w = self.writers.get(writer);
        let complete = w.written == w.total;
        w.state = State::Idle;
        if !complete && w.produced == w.written && !self.config.coarse.blocks {
            return;
        }
        w.state = if complete { State::Completing } else { State::Asking };
        match w.session {
            Some(session) => self.ask_namenode(now, session, out),
            None => self.writer_answered(now, writer, out),
        }
    }

    /// The targets of a block are known: its pipeline is set up.
    fn set_up(&mut self, now: Time, writer: u32, out: &mut Vec<Action>) {
        let most = self.config.hdfs.block_bytes;
        let w = self.writers.get(writer);
        w.block = most.min(w.total - w.written);
        (w.sent, w.acknowledged, w.local) = (0, 0, 0);
        (w.handed, w.resumed, w.replacements) = (0, 0, 0);
        let usable = |d: u32| !self.workers[d as usize].dead && !w.excluded.contains(&d);
        w.chain = self.racks.place_on(w.worker, w.replicas, &usable, &mut w.targets);
        if w.chain.is_empty() {
            self.writer_failed(now, writer, out);
        } else {
            self.open_pipeline(now, writer, out);
        }
    }

    /// Opens the connections to the other replicas of a block, and streams.
    fn open_pipeline(&mut self, now: Time, writer: u32, out: &mut Vec<Action>) {
        let whole = self.config.coarse.blocks;
        let setup = if whole { 0 } else { self.config.hdfs.setup_bytes };
        let w = self.writers.get(writer);
        let hops = w.chain.len() - usize::from(w.worker.is_some());
        if hops > 0 && setup > 0 {
            self.writers.get(writer).state = State::SettingUp;
            self.set_up_hop(writer, out);
            return;
        }
        for _ in 0..hops {
            let conn = self.open_hop(writer, out);
            if whole {
                let Writer { block, job, .. } = *self.writers.get(writer);
                let framing = self.config.hdfs.write_framing(block);
                out.push(replica_chunk(conn, block, framing, job));
            }
        }
        self.writers.get(writer).state = State::Streaming;
        self.fill_pipeline(now, writer, out);
    }

    /// Opens the next connection of the pipeline.
    fn open_hop(&mut self, writer: u32, out: &mut Vec<Action>) -> ConnId {
        let w = self.writers.get(writer);
        let hop = w.hops.len();
        let replica = w.chain[hop + usize::from(w.worker.is_some())];
        let last = hop + 1 + usize::from(w.worker.is_some()) == w.chain.len();
        let from = match w.hops.last() {
            Some(above) => self.workers[above.replica as usize].host,
            None => w.host,
        };
        let ends = (from, self.workers[replica as usize].host);
        let purpose = Use::Pipeline { writer, hop: hop as u32 };
        let conn = self.conns.open(purpose, ends, self.config.class, out);
        let below = if last { u64::MAX } else { 0 };
        w.hops.push(Hop { conn, replica, arrived: 0, stored: 0, below, acknowledged: 0 });
        conn
    }

    /// Opens the next connection and sends the request down it.
    fn set_up_hop(&mut self, writer: u32, out: &mut Vec<Action>) {
        let conn = self.open_hop(writer, out);
        let job = self.writers.get(writer).job;
        let bytes = u64::from(self.config.hdfs.setup_bytes);
        out.push(control_message(conn, Side::Client, bytes, SETUP, Some(job)));
    }

    /// Sends and stores as the window and what is produced allow.
    fn fill_pipeline(&mut self, now: Time, writer: u32, out: &mut Vec<Action>) {
        let hdfs = &self.config.hdfs;
        let window = hdfs.write_chunk_bytes.saturating_mul(u64::from(hdfs.write_window));
        let w = self.writers.get(writer);
        let there = w.block.min(w.produced - w.written);
        match w.hops.first().map(|hop| hop.conn) {
            None => w.sent = there,
            Some(_) if self.config.coarse.blocks => w.sent = there,
            Some(conn) => loop {
                let bytes = hdfs.write_chunk_bytes.min(w.block - w.sent);
                if bytes == 0 || w.sent + bytes > there || w.sent + bytes > w.acknowledged + window
                {
                    break;
                }
                w.sent += bytes;
                out.push(replica_chunk(conn, bytes, hdfs.write_framing(bytes), w.job));
            },
        }
        let bytes = w.sent.saturating_sub(w.handed);
        w.handed += bytes;
        if let (Some(worker), true) = (w.worker, bytes > 0) {
            let what = Work::Local { writer, bytes };
            if self.hardware.write(now, worker, bytes, what, out) {
                self.writers.get(writer).local += bytes;
            }
        }
        self.block_written(now, writer, out);
    }

    /// A message has come down a hop.
    pub(super) fn chunk_arrived(
        &mut self,
        now: Time,
        (writer, hop): (u32, u32),
        bytes: u64,
        out: &mut Vec<Action>,
    ) {
        let hdfs = &self.config.hdfs;
        let w = self.writers.get(writer);
        let job = w.job;
        let last = hop as usize + 1 + usize::from(w.worker.is_some()) == w.chain.len();
        let Hop { conn, replica, .. } = w.hops[hop as usize];
        if bytes == SETUP || bytes == CLOSE {
            match (last, bytes) {
                (true, _) => self.acknowledge(conn, bytes, job, out),
                (false, SETUP) => self.set_up_hop(writer, out),
                (false, _) => {
                    let next = w.hops[hop as usize + 1].conn;
                    out.push(control_message(next, Side::Client, PACKET_HEADER, CLOSE, Some(job)));
                }
            }
            return;
        }
        w.hops[hop as usize].arrived += bytes;
        if !last && !self.config.coarse.blocks {
            let next = w.hops[hop as usize + 1].conn;
            out.push(replica_chunk(next, bytes, hdfs.write_framing(bytes), job));
        }
        let pipe = w.pipe;
        let what = Work::Replica { writer, pipe, hop, bytes };
        if self.hardware.store(now, replica, bytes, what, out) {
            self.chunk_stored(now, (writer, pipe, hop), bytes, out);
        }
    }

    fn acknowledge(&self, conn: ConnId, bytes: u64, job: u32, out: &mut Vec<Action>) {
        let ack = u64::from(self.config.hdfs.ack_bytes);
        out.push(control_message(conn, Side::Server, ack, bytes, Some(job)));
    }

    /// A replica has taken in a chunk.
    pub(super) fn chunk_stored(
        &mut self,
        now: Time,
        (writer, pipe, hop): (u32, u32, u32),
        bytes: u64,
        out: &mut Vec<Action>,
    ) {
        let w = self.writers.get(writer);
        if w.pipe != pipe {
            return;
        }
        w.hops[hop as usize].stored += bytes;
        if self.config.coarse.blocks {
            w.acknowledged = w.hops.iter().map(|hop| hop.stored).min().unwrap_or(0);
            self.block_written(now, writer, out);
            return;
        }
        self.pass_acknowledgement(writer, hop, out);
    }

    /// Acknowledges what a replica and all below it have.
    fn pass_acknowledgement(&mut self, writer: u32, hop: u32, out: &mut Vec<Action>) {
        let w = self.writers.get(writer);
        let job = w.job;
        let h = &mut w.hops[hop as usize];
        let bytes = h.stored.min(h.below) - h.acknowledged;
        if bytes > 0 {
            h.acknowledged += bytes;
            let conn = h.conn;
            self.acknowledge(conn, bytes, job, out);
        }
    }

    /// An acknowledgement has come back over a hop.
    pub(super) fn chunk_acknowledged(
        &mut self,
        now: Time,
        (writer, hop): (u32, u32),
        bytes: u64,
        out: &mut Vec<Action>,
    ) {
        let w = self.writers.get(writer);
        let job = w.job;
        if hop > 0 {
            let above = &mut w.hops[hop as usize - 1];
            if bytes == SETUP || bytes == CLOSE {
                let conn = above.conn;
                self.acknowledge(conn, bytes, job, out);
            } else {
                above.below += bytes;
                self.pass_acknowledgement(writer, hop - 1, out);
            }
            return;
        }
        match bytes {
            SETUP => w.state = State::Streaming,
            CLOSE => return self.block_closed(now, writer, out),
            _ => w.acknowledged += bytes,
        }
        self.fill_pipeline(now, writer, out);
    }

    /// Bytes of the writer's own replica were taken in.
    pub(super) fn local_stored(
        &mut self,
        now: Time,
        writer: u32,
        bytes: u64,
        out: &mut Vec<Action>,
    ) {
        self.writers.get(writer).local += bytes;
        self.block_written(now, writer, out);
    }

    /// Ends the block once every replica has all of it.
    fn block_written(&mut self, now: Time, writer: u32, out: &mut Vec<Action>) {
        let closes = self.config.hdfs.setup_bytes > 0 && !self.config.coarse.blocks;
        let w = self.writers.get(writer);
        let all = |bytes| bytes == w.block;
        let remote = w.hops.is_empty() || all(w.acknowledged);
        let local = w.worker.is_none() || all(w.local);
        if w.state != State::Streaming || !all(w.sent) || !remote || !local {
            return;
        }
        match w.hops.first() {
            Some(hop) if closes => {
                w.state = State::Closing;
                let (conn, job) = (hop.conn, Some(w.job));
                out.push(control_message(conn, Side::Client, PACKET_HEADER, CLOSE, job));
            }
            _ => self.block_closed(now, writer, out),
        }
    }

    /// The block is through: its connections close, the next one begins.
    fn block_closed(&mut self, now: Time, writer: u32, out: &mut Vec<Action>) {
        let w = self.writers.get(writer);
        w.written += w.block;
        w.retries = 0;
        let (bytes, wanted, replicas) = (w.block, w.replicas, std::mem::take(&mut w.chain));
        w.blocks.push(Written { bytes, wanted, replicas });
        w.state = State::Idle;
        if w.hops.is_empty() && w.session.is_none() {
            // Nothing takes time here; a wake-up keeps many small blocks off the stack.
            w.state = State::Pausing;
            out.push(Timer::Block(writer).at(now));
            return;
        }
        for hop in std::mem::take(&mut w.hops) {
            self.conns.close(hop.conn, out);
        }
        self.next_block(now, writer, out);
    }

    /// The file is complete.
    fn file_written(&mut self, now: Time, writer: u32, out: &mut Vec<Action>) {
        let w = self.writers.remove(writer);
        if let Some(session) = w.session {
            self.namenode_bye(session, out);
        }
        match w.owner {
            Owner::Task(task) => {
                self.tasks.get(task).written = w.blocks;
                self.commit(now, task, out);
            }
            Owner::Client(client) => {
                self.clients.get(client).written = w.blocks;
                self.client_done(now, client, out);
            }
        }
    }
}

impl MapReduce {
    /// Nobody needs the files a client writes any more, nor the answers it waits for.
    pub(super) fn drop_files_of(&mut self, client: u32, out: &mut Vec<Action>) {
        let its = |w: &Writer| w.owner == Owner::Client(client);
        let writers: Vec<u32> =
            self.writers.iter().filter(|(_, w)| its(w)).map(|(number, _)| number).collect();
        for writer in writers {
            self.drop_writer(writer, out);
        }
        if let Some(session) = self.session_of(Caller::Reader { client }) {
            self.drop_session(session, out);
        }
    }

    /// Nobody needs the file any more.
    pub(super) fn drop_writer(&mut self, writer: u32, out: &mut Vec<Action>) {
        let w = self.writers.remove(writer);
        self.conns.abort_where(|u| is_hop_of(u, writer), out);
        if let Some(session) = w.session {
            self.drop_session(session, out);
        }
    }

    /// Whether a pipeline's first unacknowledged byte, or an answer, is awaited.
    pub(super) fn writer_waits(&self, writer: u32) -> bool {
        self.writers.find(writer).is_some_and(|w| match w.state {
            State::SettingUp | State::Closing => true,
            State::Streaming => w.sent > w.acknowledged,
            _ => false,
        })
    }
}

fn is_hop_of(purpose: Use, writer: u32) -> bool {
    match purpose {
        Use::Pipeline { writer: of, .. } | Use::Transfer { writer: of } => of == writer,
        _ => false,
    }
}

/// A chunk on its way over a hop of the pipeline.
fn replica_chunk(conn: ConnId, bytes: u64, header: u32, job: u32) -> Action {
    Action::Send {
        conn,
        from: Side::Client,
        payload: bytes,
        header,
        tag: bytes,
        purpose: Purpose::Replica,
        job: Some(job),
        record: true,
    }
}
