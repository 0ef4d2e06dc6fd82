//! Writing of files to HDFS.
//!
//! A file is divided into blocks of `block_bytes`, written one after another. The replicas of a
//! block form a pipeline, with newly chosen datanodes for every block: the writer sends to the
//! first remote replica, which sends to the next one, and so on. If the writer's host stores data,
//! the writer has the first replica itself. The writer sends chunks as they are produced, at most
//! `write_window` of them unacknowledged. A replica forwards a chunk when it has received it
//! completely. It acknowledges a chunk towards the writer when it has stored the chunk and the next
//! replica has acknowledged it (Shvachko et al. 2010, section 3.A; DataStreamer and BlockReceiver).
//! Each chunk contains the checksums of its bytes and the headers of its packets. A block is
//! written when every chunk is acknowledged and the writer's own replica is stored.
//!
//! With `setup_bytes` a block begins with a request that opens the connections hop by hop and is
//! answered in the opposite direction; it ends with an empty packet and its acknowledgement, as in
//! DataTransferProtocol. With `namenode_time` the writer sends requests for the file, for each
//! block, and at the end. Differences from Hadoop: a chunk larger than a packet delays later
//! replicas; acknowledgements have one size. Losses of datanodes are handled in [`recovery`].

mod recovery;

use super::config::HdfsConfig;
use super::connections::Use;
use super::context::Context;
use super::file::{Owner, Place, Written};
use super::namenode::{Caller, Namenode};
use super::note::Note;
use super::replication::Replicas;
use super::slab::Slab;
use super::timer::Timer;
use super::work::Work;
use crate::protocol::Action;
use eastwest_engine::random::Stream;
use eastwest_types::{ConnId, HostId, Purpose, Side};
use serde::{Deserialize, Serialize};

/// Message tag of the request that sets up a pipeline, and of the answer to it.
const SETUP: u64 = 0;
/// Message tag of the empty packet that ends a block, and of its acknowledgement.
const CLOSE: u64 = u64::MAX;
/// Length of the header of an HDFS data packet in bytes: two lengths and a PacketHeaderProto
/// (offset, sequence, last, length).
const PACKET_HEADER: u64 = 31;
/// Bytes that Hadoop reserves for the largest header of an HDFS data packet (`PKT_MAX_HEADER_LEN`).
const MOST_HEADER: u64 = 33;
/// Length of a checksum in bytes (CRC32C).
const CHECKSUM: u64 = 4;
/// File bytes in one HDFS data packet of a read (`BlockSender`: 64 KiB).
const READ_PACKET: u64 = 65_536;

impl HdfsConfig {
    /// Returns the number of bytes that HDFS adds to `bytes` file bytes: checksums, and headers of
    /// HDFS's own data packets (not of network packets). Each data packet has `packet` file bytes.
    fn overhead(&self, bytes: u64, packet: u64) -> u32 {
        let per = u64::from(self.bytes_per_checksum);
        if per == 0 {
            return 0;
        }
        let sums = CHECKSUM * bytes.div_ceil(per);
        u32::try_from(sums + PACKET_HEADER * bytes.div_ceil(packet)).unwrap_or(u32::MAX)
    }

    /// Returns the number of bytes that HDFS adds to a written chunk of `bytes` file bytes:
    /// checksums, and the headers of its own data packets.
    pub fn write_framing(&self, bytes: u64) -> u32 {
        let per = u64::from(self.bytes_per_checksum);
        let room = u64::from(self.packet_bytes).saturating_sub(MOST_HEADER);
        self.overhead(bytes, (room / (per + CHECKSUM)).max(1) * per.max(1))
    }

    /// Returns the number of bytes that HDFS adds to a read of `bytes` file bytes: checksums, and
    /// the headers of its own data packets.
    pub fn read_framing(&self, bytes: u64) -> u32 {
        self.overhead(bytes, READ_PACKET)
    }
}

/// State of an HDFS writer: the event for which it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    /// The writer waits for data of a new block, or for the end of the file.
    Idle,
    /// The writer waits for a wake-up before the next block.
    Pausing,
    /// The writer waits for the namenode's answer to the creation of the file.
    Creating,
    /// The writer waits for the target datanodes of a block from the namenode.
    Asking,
    /// The writer waits for the set-up of the block's pipeline.
    SettingUp,
    /// The writer sends data and waits for more data or for acknowledgements.
    Streaming,
    /// The writer waits for the namenode to choose a replacement of a lost datanode.
    Replacing,
    /// The writer waits for the transfer of the block's data to a replacement datanode.
    Transferring,
    /// The writer waits for the acknowledgement of the empty packet that ends a block.
    Closing,
    /// The writer waits for the namenode's answer to the completion of the file.
    Completing,
}

/// One hop of a write pipeline: a connection, and the replica at its end.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Hop {
    conn: ConnId,
    /// Number of the worker that stores the replica.
    replica: u32,
    /// Bytes of the block that have arrived at this replica since the pipeline was set up.
    arrived: u64,
    /// Bytes of the block that this replica has stored since the pipeline was set up.
    stored: u64,
    /// Bytes of the block that all later replicas of the pipeline have acknowledged; `u64::MAX` at
    /// the last replica.
    below: u64,
    /// Bytes of the block that this replica has acknowledged towards the writer.
    acknowledged: u64,
}

/// State of the block of a file that is being written.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct OpenBlock {
    bytes: u64,
    /// Bytes of the block that the writer has sent, or stored if its own replica is the only one.
    sent: u64,
    /// Bytes of the block that were handed to the disk of the writer's own replica.
    handed: u64,
    /// Bytes of the block that were acknowledged when the present pipeline was set up.
    resumed: u64,
    /// Bytes of the block that all replicas except the writer's own have acknowledged.
    acknowledged: u64,
    /// Bytes of the block that the writer's own replica has stored.
    local: u64,
    /// Workers with replicas of the block, in the order of the pipeline.
    chain: Vec<u32>,
    /// Hops of the block's pipeline; empty if the writer's own replica is the only one.
    hops: Vec<Hop>,
    /// Number of failed attempts to replace a lost datanode of the present pipeline.
    replacements: u32,
    /// Number of unfinished parts of the transfer to a replacement datanode: network, disk read,
    /// disk write.
    transfer_parts: u32,
}

/// State of a file that is being written to HDFS.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Writer {
    owner: Owner,
    job: u32,
    at: Place,
    replicas: u32,
    /// Random stream that chooses the target datanodes of blocks.
    targets: Stream,
    state: State,
    session: Option<u32>,
    /// Size of the complete file in bytes.
    total: u64,
    /// Bytes of the file that the task or client has produced so far.
    produced: u64,
    /// Bytes of the file in completely written blocks.
    written: u64,
    /// Number of the present pipeline, counted from 0 for the file; disk work for an earlier
    /// pipeline is ignored.
    pipe: u32,
    /// Datanodes that have failed during the write of this file; they are not used for it again.
    excluded: Vec<u32>,
    /// Number of failed set-ups of the present block's pipeline.
    retries: u32,
    /// Completely written blocks of the file.
    blocks: Vec<Written>,
    /// Block that the writer is writing.
    block: OpenBlock,
}

impl Writer {
    /// Returns the replica at the end of a hop, as index into the chain of replicas. If the writer
    /// is a worker, index 0 is its own replica, which needs no hop.
    fn replica_after(&self, hop: usize) -> usize {
        hop + usize::from(self.at.worker.is_some())
    }

    /// Whether a hop is the last one of the block's pipeline.
    fn is_last(&self, hop: usize) -> bool {
        self.replica_after(hop) + 1 == self.block.chain.len()
    }
}

/// HDFS, the distributed file system: namenode, replicas of blocks, and files being written.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hdfs {
    /// Sessions and requests of clients at the namenode.
    pub namenode: Namenode,
    /// Table of the replicas of all blocks, and re-replication.
    pub replicas: Replicas,
    writers: Slab<Writer>,
}

impl Hdfs {
    /// Returns an empty HDFS in which `workers` workers store data.
    pub fn new(workers: usize, seed: u64) -> Hdfs {
        Hdfs {
            namenode: Namenode::default(),
            replicas: Replicas::new(workers, seed),
            writers: Slab::default(),
        }
    }

    /// Opens a file of `total` bytes with `replicas` replicas, for a writer at the place `at`: the
    /// task or client `owner`, which has the number `index` in its job. Returns the number of the
    /// writer.
    pub fn open_writer(
        &mut self,
        cx: &mut Context,
        owner: Owner,
        (job, index): (u32, u32),
        at: Place,
        (total, replicas): (u64, u32),
    ) -> u32 {
        let asks = cx.config.hdfs.namenode_time.is_some();
        let targets = cx.stream("output", job, index);
        let writer = self.writers.add(Writer {
            owner,
            job,
            at,
            replicas,
            targets,
            state: if asks { State::Creating } else { State::Idle },
            session: None,
            total,
            produced: 0,
            written: 0,
            pipe: 0,
            excluded: Vec::new(),
            retries: 0,
            blocks: Vec::new(),
            block: OpenBlock::default(),
        });
        if asks {
            let session = self.namenode.session(Caller::Writer { writer }, at.host);
            self.writers.get(writer).session = Some(session);
            self.namenode.ask(cx, session);
        } else if cx.config.coarse.blocks {
            self.next_block(cx, writer);
        }
        writer
    }

    /// Hands the next `bytes` produced bytes of a file to its writer, which sends them as far as
    /// its window allows.
    pub fn hand_over(&mut self, cx: &mut Context, writer: u32, bytes: u64) {
        let w = self.writers.get(writer);
        w.produced += bytes;
        match w.state {
            State::Idle => self.next_block(cx, writer),
            State::Streaming => self.fill_pipeline(cx, writer),
            _ => {}
        }
    }

    /// Handles the namenode's answer to a writer, which continues with the next step of its file.
    pub fn writer_answered(&mut self, cx: &mut Context, writer: u32) {
        let w = self.writers.get(writer);
        match w.state {
            State::Creating => {
                w.state = State::Idle;
                self.next_block(cx, writer);
            }
            State::Asking => self.set_up(cx, writer),
            State::Replacing => self.replace(cx, writer),
            State::Completing => self.file_written(cx, writer),
            state => unreachable!("nothing was asked in {state:?}"),
        }
    }

    /// Sends the namenode's answer to the client of a session; a client on the namenode's host gets
    /// the answer at once.
    pub fn namenode_answers(&mut self, cx: &mut Context, session: u32) {
        if self.namenode.answers(cx, session) {
            self.namenode_answered(cx, session);
        }
    }

    /// Handles the arrival of the namenode's answer at the client of a session.
    pub fn namenode_answered(&mut self, cx: &mut Context, session: u32) {
        match self.namenode.answered(cx, session) {
            Some(Caller::Split { task }) => cx.note(Note::SplitLocated { task }),
            Some(Caller::Reader { client }) => cx.note(Note::ReaderLocated { client }),
            Some(Caller::Writer { writer }) => self.writer_answered(cx, writer),
            None => {}
        }
    }

    /// Whether the writer with this number is still writing a file.
    pub fn writes(&self, writer: u32) -> bool {
        self.writers.find(writer).is_some()
    }

    /// Returns the host of a writer.
    pub fn host_of(&self, writer: u32) -> HostId {
        self.writers.find(writer).expect("the file is being written").at.host
    }

    /// Returns the number of files that are being written.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.writers.count().0
    }

    /// Begins the next block of a file if data for it is produced; completes the file after the
    /// last block.
    pub fn next_block(&mut self, cx: &mut Context, writer: u32) {
        let w = self.writers.get(writer);
        let complete = w.written == w.total;
        w.state = State::Idle;
        if !complete && w.produced == w.written && !cx.config.coarse.blocks {
            return;
        }
        w.state = if complete { State::Completing } else { State::Asking };
        match w.session {
            Some(session) => self.namenode.ask(cx, session),
            None => self.writer_answered(cx, writer),
        }
    }

    /// Chooses the target datanodes of a block and begins its pipeline.
    fn set_up(&mut self, cx: &mut Context, writer: u32) {
        let most = cx.config.hdfs.block_bytes;
        let w = self.writers.get(writer);
        let usable = |d: u32| !self.replicas.is_dead(d) && !w.excluded.contains(&d);
        let chain = cx.racks.place_on(w.at.worker, w.replicas, &usable, &mut w.targets);
        let bytes = most.min(w.total - w.written);
        w.block = OpenBlock { bytes, chain, ..OpenBlock::default() };
        if w.block.chain.is_empty() {
            self.writer_failed(cx, writer);
        } else {
            self.open_pipeline(cx, writer);
        }
    }

    /// Opens the connections of a block's pipeline and starts to send data, or starts the set-up of
    /// the pipeline.
    fn open_pipeline(&mut self, cx: &mut Context, writer: u32) {
        let whole = cx.config.coarse.blocks;
        let setup = if whole { 0 } else { cx.config.hdfs.setup_bytes };
        let w = self.writers.get(writer);
        let (job, block) = (w.job, w.block.bytes);
        let hops = w.block.chain.len() - w.replica_after(0);
        if hops > 0 && setup > 0 {
            w.state = State::SettingUp;
            self.set_up_hop(cx, writer);
            return;
        }
        for _ in 0..hops {
            let conn = self.open_hop(cx, writer);
            if whole {
                let framing = cx.config.hdfs.write_framing(block);
                cx.out.push(replica_chunk(conn, block, framing, job));
            }
        }
        self.writers.get(writer).state = State::Streaming;
        self.fill_pipeline(cx, writer);
    }

    /// Opens the connection of the next hop of a block's pipeline.
    fn open_hop(&mut self, cx: &mut Context, writer: u32) -> ConnId {
        let w = self.writers.get(writer);
        let hop = w.block.hops.len();
        let replica = w.block.chain[w.replica_after(hop)];
        let below = if w.is_last(hop) { u64::MAX } else { 0 };
        let from = match w.block.hops.last() {
            Some(above) => cx.host(above.replica),
            None => w.at.host,
        };
        let ends = (from, cx.host(replica));
        let purpose = Use::Pipeline { writer, hop: hop as u32 };
        let conn = cx.open(purpose, ends);
        w.block.hops.push(Hop { conn, replica, arrived: 0, stored: 0, below, acknowledged: 0 });
        conn
    }

    /// Opens the connection of the next hop and sends the set-up request of the pipeline over it.
    fn set_up_hop(&mut self, cx: &mut Context, writer: u32) {
        let conn = self.open_hop(cx, writer);
        let job = self.writers.get(writer).job;
        cx.tell(conn, Side::Client, cx.config.hdfs.setup_bytes, SETUP, Some(job));
    }

    /// Sends data to the pipeline and stores it at the writer's own replica, limited by the window
    /// of unacknowledged chunks and by the produced bytes.
    fn fill_pipeline(&mut self, cx: &mut Context, writer: u32) {
        let hdfs = &cx.config.hdfs;
        let window = hdfs.write_chunk_bytes.saturating_mul(u64::from(hdfs.write_window));
        let w = self.writers.get(writer);
        let there = w.block.bytes.min(w.produced - w.written);
        match w.block.hops.first().map(|hop| hop.conn) {
            None => w.block.sent = there,
            Some(_) if cx.config.coarse.blocks => w.block.sent = there,
            Some(conn) => loop {
                let bytes = hdfs.write_chunk_bytes.min(w.block.bytes - w.block.sent);
                if bytes == 0
                    || w.block.sent + bytes > there
                    || w.block.sent + bytes > w.block.acknowledged + window
                {
                    break;
                }
                w.block.sent += bytes;
                cx.out.push(replica_chunk(conn, bytes, hdfs.write_framing(bytes), w.job));
            },
        }
        let bytes = w.block.sent.saturating_sub(w.block.handed);
        w.block.handed += bytes;
        if let (Some(worker), true) = (w.at.worker, bytes > 0) {
            let what = Work::Local { writer, bytes };
            if cx.write(worker, bytes, what) {
                self.writers.get(writer).block.local += bytes;
            }
        }
        self.block_written(cx, writer);
    }

    /// Handles the arrival of a chunk of `bytes` bytes at the replica at the end of the hop `hop`
    /// of the writer's pipeline. The values `SETUP` and `CLOSE` of `bytes` mean the requests that
    /// begin and end a block.
    pub fn chunk_arrived(&mut self, cx: &mut Context, (writer, hop): (u32, u32), bytes: u64) {
        let hdfs = &cx.config.hdfs;
        let w = self.writers.get(writer);
        let job = w.job;
        let last = w.is_last(hop as usize);
        let Hop { conn, replica, .. } = w.block.hops[hop as usize];
        if bytes == SETUP || bytes == CLOSE {
            match (last, bytes) {
                (true, _) => self.acknowledge(cx, conn, bytes, job),
                (false, SETUP) => self.set_up_hop(cx, writer),
                (false, _) => {
                    let next = w.block.hops[hop as usize + 1].conn;
                    cx.tell(next, Side::Client, PACKET_HEADER, CLOSE, Some(job));
                }
            }
            return;
        }
        w.block.hops[hop as usize].arrived += bytes;
        if !last && !cx.config.coarse.blocks {
            let next = w.block.hops[hop as usize + 1].conn;
            cx.out.push(replica_chunk(next, bytes, hdfs.write_framing(bytes), job));
        }
        let pipe = w.pipe;
        let what = Work::Replica { writer, pipe, hop, bytes };
        if cx.store(replica, bytes, what) {
            self.chunk_stored(cx, (writer, pipe, hop), bytes);
        }
    }

    fn acknowledge(&self, cx: &mut Context, conn: ConnId, bytes: u64, job: u32) {
        let ack = cx.config.hdfs.ack_bytes;
        cx.tell(conn, Side::Server, ack, bytes, Some(job));
    }

    /// Handles a chunk after the replica at the end of a hop has stored it: the chunk can be
    /// acknowledged. `pipe`: number of the writer's pipeline when the write began; chunks of
    /// earlier pipelines are ignored.
    pub fn chunk_stored(
        &mut self,
        cx: &mut Context,
        (writer, pipe, hop): (u32, u32, u32),
        bytes: u64,
    ) {
        let w = self.writers.get(writer);
        if w.pipe != pipe {
            return;
        }
        w.block.hops[hop as usize].stored += bytes;
        if cx.config.coarse.blocks {
            w.block.acknowledged = w.block.hops.iter().map(|hop| hop.stored).min().unwrap_or(0);
            self.block_written(cx, writer);
            return;
        }
        self.pass_acknowledgement(cx, writer, hop);
    }

    /// Sends an acknowledgement for the bytes that a replica and all later replicas of the pipeline
    /// have stored.
    fn pass_acknowledgement(&mut self, cx: &mut Context, writer: u32, hop: u32) {
        let w = self.writers.get(writer);
        let job = w.job;
        let h = &mut w.block.hops[hop as usize];
        let bytes = h.stored.min(h.below) - h.acknowledged;
        if bytes > 0 {
            h.acknowledged += bytes;
            let conn = h.conn;
            self.acknowledge(cx, conn, bytes, job);
        }
    }

    /// Handles an acknowledgement of `bytes` bytes over the hop `hop` of the writer's pipeline. The
    /// values `SETUP` and `CLOSE` of `bytes` mean the answers to the requests that begin and end a
    /// block.
    pub fn chunk_acknowledged(&mut self, cx: &mut Context, (writer, hop): (u32, u32), bytes: u64) {
        let w = self.writers.get(writer);
        let job = w.job;
        if hop > 0 {
            let above = &mut w.block.hops[hop as usize - 1];
            if bytes == SETUP || bytes == CLOSE {
                let conn = above.conn;
                self.acknowledge(cx, conn, bytes, job);
            } else {
                above.below += bytes;
                self.pass_acknowledgement(cx, writer, hop - 1);
            }
            return;
        }
        match bytes {
            SETUP => w.state = State::Streaming,
            CLOSE => return self.block_closed(cx, writer),
            _ => w.block.acknowledged += bytes,
        }
        self.fill_pipeline(cx, writer);
    }

    /// Counts `bytes` bytes that the writer's own replica has stored, and ends the block if it is
    /// complete.
    pub fn local_stored(&mut self, cx: &mut Context, writer: u32, bytes: u64) {
        self.writers.get(writer).block.local += bytes;
        self.block_written(cx, writer);
    }

    /// Ends a block when each of its replicas has stored all bytes of the block.
    fn block_written(&mut self, cx: &mut Context, writer: u32) {
        let closes = cx.config.hdfs.setup_bytes > 0 && !cx.config.coarse.blocks;
        let w = self.writers.get(writer);
        let all = |bytes| bytes == w.block.bytes;
        let remote = w.block.hops.is_empty() || all(w.block.acknowledged);
        let local = w.at.worker.is_none() || all(w.block.local);
        if w.state != State::Streaming || !all(w.block.sent) || !remote || !local {
            return;
        }
        match w.block.hops.first() {
            Some(hop) if closes => {
                w.state = State::Closing;
                let (conn, job) = (hop.conn, Some(w.job));
                cx.tell(conn, Side::Client, PACKET_HEADER, CLOSE, job);
            }
            _ => self.block_closed(cx, writer),
        }
    }

    /// Ends a completely written block: closes its connections and begins the next block.
    fn block_closed(&mut self, cx: &mut Context, writer: u32) {
        let w = self.writers.get(writer);
        w.written += w.block.bytes;
        w.retries = 0;
        let (bytes, wanted, replicas) =
            (w.block.bytes, w.replicas, std::mem::take(&mut w.block.chain));
        w.blocks.push(Written { bytes, wanted, replicas });
        w.state = State::Idle;
        if w.block.hops.is_empty() && w.session.is_none() {
            // The writer has waited for nothing here; a wake-up avoids a deep recursion over many
            // small blocks.
            w.state = State::Pausing;
            cx.wake(cx.now, Timer::Block(writer));
            return;
        }
        for hop in std::mem::take(&mut w.block.hops) {
            cx.close(hop.conn);
        }
        self.next_block(cx, writer);
    }

    /// Ends a complete file: closes its session at the namenode and informs its owner.
    fn file_written(&mut self, cx: &mut Context, writer: u32) {
        let w = self.writers.remove(writer);
        if let Some(session) = w.session {
            self.namenode.bye(cx, session);
        }
        cx.note(Note::FileWritten { owner: w.owner, blocks: w.blocks });
    }
}

impl Hdfs {
    /// Aborts the files that a stand-alone client is writing, and its requests to the namenode.
    pub fn drop_files_of(&mut self, cx: &mut Context, client: u32) {
        let its = |w: &Writer| w.owner == Owner::Client(client);
        let writers: Vec<u32> =
            self.writers.iter().filter(|(_, w)| its(w)).map(|(number, _)| number).collect();
        for writer in writers {
            self.drop_writer(cx, writer);
        }
        self.namenode.drop_caller(cx, Caller::Reader { client });
    }

    /// Aborts the write of a file that is not needed any more, with its connections.
    pub fn drop_writer(&mut self, cx: &mut Context, writer: u32) {
        let w = self.writers.remove(writer);
        cx.abort_where(|u| is_hop_of(u, writer));
        if let Some(session) = w.session {
            self.namenode.drop_session(cx, session);
        }
    }

    /// Whether a writer waits for its pipeline: for an acknowledgement, or for the answer to the
    /// request that begins or ends a block.
    pub fn writer_waits(&self, writer: u32) -> bool {
        self.writers.find(writer).is_some_and(|w| match w.state {
            State::SettingUp | State::Closing => true,
            State::Streaming => w.block.sent > w.block.acknowledged,
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

/// Returns the action that sends a chunk of `bytes` file bytes over a hop of a pipeline; `header`:
/// bytes of checksums and packet headers that HDFS adds.
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
