//! Writing of files to HDFS.
//!
//! A file is divided into blocks of `block_bytes`, written one after another. The replicas of a
//! block form a pipeline, with newly chosen datanodes for every block: the writer sends to the
//! first remote replica, which sends to the next one, and so on. If the writer's host stores data,
//! the writer has the first replica itself. The writer sends chunks as they are produced, at most
//! `write_window` of them unacknowledged (Shvachko et al. 2010, section 3.A; DataStreamer). What the
//! datanodes of the other replicas do is in [`datanode`]. Each chunk contains the checksums of its
//! bytes and the headers of its packets. A block is written when every chunk is acknowledged and the
//! writer's own replica is stored.
//!
//! With `setup_bytes` a block begins with a request that opens the connections hop by hop and is
//! answered in the opposite direction; it ends with an empty packet and its acknowledgement, as in
//! DataTransferProtocol. With `namenode_time` the writer sends requests for the file, for each
//! block, and at the end. Differences from Hadoop: a chunk larger than a packet delays later
//! replicas; acknowledgements have one size. Losses of datanodes are handled in [`recovery`].

mod datanode;
mod packets;
mod recovery;

use super::connections::Use;
use super::content::{Content, WriteRequest};
use super::context::Context;
use super::file::{Owner, Place, Written};
use super::here::Here;
use super::namenode::{Caller, Namenode};
use super::note::Note;
use super::replication::Replicas;
use super::slab::Slab;
use super::timer::Timer;
use super::work::Work;
use datanode::Datanodes;
use eastwest_engine::random::Stream;
use eastwest_types::{ConnId, HostId, Side};
use packets::{CLOSE, PACKET_HEADER, SETUP, replica_chunk};
use serde::{Deserialize, Serialize};

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
    /// Connections of the block's pipeline that the writer has opened: the one to the first remote
    /// replica; in approximate runs those of all hops; none if the writer's own replica is the only
    /// one.
    hops: Vec<ConnId>,
    /// Number of remote replicas that have not stored the block, in approximate runs.
    unstored: usize,
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
}

/// HDFS, the distributed file system: namenode, replicas of blocks, and files being written.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hdfs {
    /// Sessions and requests of clients at the namenode.
    pub namenode: Namenode,
    /// Table of the replicas of all blocks, and re-replication.
    pub replicas: Replicas,
    writers: Slab<Writer>,
    /// Blocks of writers at the datanodes that receive them.
    datanodes: Datanodes,
}

impl Hdfs {
    /// Returns an empty HDFS in which `workers` workers store data.
    pub fn new(workers: usize, seed: u64) -> Hdfs {
        Hdfs {
            namenode: Namenode::default(),
            replicas: Replicas::new(workers, seed),
            writers: Slab::default(),
            datanodes: Datanodes::default(),
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
        let w = self.writer(cx.here, writer);
        w.produced += bytes;
        match w.state {
            State::Idle => self.next_block(cx, writer),
            State::Streaming => self.fill_pipeline(cx, writer),
            _ => {}
        }
    }

    /// Handles the namenode's answer to a writer, which continues with the next step of its file.
    pub fn writer_answered(&mut self, cx: &mut Context, writer: u32) {
        let w = self.writer(cx.here, writer);
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

    /// Returns the state of a writer on its own host.
    fn writer(&mut self, here: Here, writer: u32) -> &mut Writer {
        let w = self.writers.get(writer);
        here.may_use(w.at.host);
        w
    }

    /// Whether the writer with this number is still writing a file.
    pub fn writes(&self, writer: u32) -> bool {
        self.writers.find(writer).is_some()
    }

    /// Returns the host of a writer.
    pub fn host_of(&self, writer: u32) -> HostId {
        self.writers.find(writer).expect("the file is being written").at.host
    }

    /// Returns the number of files that are being written, and of blocks that datanodes are receiving.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.writers.count().0 + self.datanodes.count()
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

    /// Opens the connection to the first remote replica of a block and starts to send data, or starts
    /// the set-up of the pipeline. In approximate runs opens all connections of the pipeline, and
    /// sends the whole block over each.
    fn open_pipeline(&mut self, cx: &mut Context, writer: u32) {
        let w = self.writers.get(writer);
        let (first, pipe, job) = (w.replica_after(0), w.pipe, w.job);
        let remote = w.block.chain.len() - first;
        w.state = State::Streaming;
        if cx.config.coarse.blocks {
            let (bytes, mut from) = (w.block.bytes, w.at.host);
            w.block.unstored = remote;
            for hop in 0..remote {
                let to = cx.host(w.block.chain[first + hop]);
                let conn = cx.open(Use::Pipeline { writer, hop: hop as u32 }, (from, to));
                w.block.hops.push(conn);
                let framing = cx.config.hdfs.write_framing(bytes);
                cx.out.push(replica_chunk(conn, bytes, framing, job));
                from = to;
            }
        } else if let Some((&datanode, targets)) = w.block.chain[first..].split_first() {
            let (bytes, targets) = (w.block.bytes - w.block.resumed, targets.to_vec());
            let ends = (w.at.host, cx.host(datanode));
            let conn = cx.open(Use::Pipeline { writer, hop: 0 }, ends);
            w.block.hops.push(conn);
            // The request travels with the set-up or with the first chunk.
            let request = WriteRequest { job, pipe, bytes, datanode, targets };
            cx.conns.put(conn, Side::Client, Content::Write(request));
            let setup = cx.config.hdfs.setup_bytes;
            if setup > 0 {
                w.state = State::SettingUp;
                cx.tell(conn, Side::Client, setup, SETUP, Some(job));
                return;
            }
        }
        self.fill_pipeline(cx, writer);
    }

    /// Sends data to the pipeline and stores it at the writer's own replica, limited by the window
    /// of unacknowledged chunks and by the produced bytes.
    fn fill_pipeline(&mut self, cx: &mut Context, writer: u32) {
        let hdfs = &cx.config.hdfs;
        let window = hdfs.write_chunk_bytes.saturating_mul(u64::from(hdfs.write_window));
        let w = self.writers.get(writer);
        let there = w.block.bytes.min(w.produced - w.written);
        match w.block.hops.first().copied() {
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

    /// Handles a message from the writer's side at the datanode behind the hop `at` (writer, hop): a
    /// chunk of `bytes` bytes, or with the values `SETUP` and `CLOSE` of `bytes` the requests that
    /// begin and end a block.
    pub fn chunk_arrived(&mut self, cx: &mut Context, at: (u32, u32), conn: ConnId, bytes: u64) {
        if !cx.config.coarse.blocks {
            self.datanodes.arrived(cx, at, conn, bytes);
            return;
        }
        let (writer, hop) = at;
        let w = self.writers.get(writer);
        let (pipe, datanode) = (w.pipe, w.block.chain[w.replica_after(hop as usize)]);
        if cx.store(datanode, bytes, Work::Replica { writer, pipe, hop, bytes }) {
            self.whole_stored(cx, writer);
        }
    }

    /// Handles a chunk after the datanode behind the hop `at` (writer, hop) has stored it. `pipe`:
    /// number of the writer's pipeline when the write began; chunks of earlier pipelines are ignored.
    pub fn chunk_stored(&mut self, cx: &mut Context, at: (u32, u32), pipe: u32, bytes: u64) {
        if !cx.config.coarse.blocks {
            self.datanodes.stored(cx, at, pipe, bytes);
        } else if self.writes(at.0) {
            self.whole_stored(cx, at.0);
        }
    }

    /// Counts a datanode that has stored a whole block, in an approximate run.
    fn whole_stored(&mut self, cx: &mut Context, writer: u32) {
        let w = self.writers.get(writer);
        w.block.unstored -= 1;
        if w.block.unstored == 0 {
            w.block.acknowledged = w.block.bytes;
        }
        self.block_written(cx, writer);
    }

    /// Handles an acknowledgement of `bytes` bytes over the hop `hop` of the writer's pipeline. The
    /// values `SETUP` and `CLOSE` of `bytes` mean the answers to the requests that begin and end a
    /// block.
    pub fn chunk_acknowledged(&mut self, cx: &mut Context, (writer, hop): (u32, u32), bytes: u64) {
        if hop > 0 {
            self.datanodes.acknowledged(cx, (writer, hop - 1), bytes);
            return;
        }
        let w = self.writer(cx.here, writer);
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
        self.writer(cx.here, writer).block.local += bytes;
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
            Some(&conn) if closes => {
                w.state = State::Closing;
                let job = Some(w.job);
                cx.tell(conn, Side::Client, PACKET_HEADER, CLOSE, job);
            }
            _ => self.block_closed(cx, writer),
        }
    }

    /// Ends a completely written block: closes the writer's connection to it and begins the next block.
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
        for conn in std::mem::take(&mut w.block.hops) {
            if cx.config.coarse.blocks {
                cx.close(conn);
            } else {
                cx.close_from(conn, Side::Client);
            }
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
        self.datanodes.forget(writer);
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
