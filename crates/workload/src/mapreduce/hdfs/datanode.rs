//! Datanodes of a write pipeline: each one receives a block, stores it, and forwards it.
//!
//! As in Hadoop's DataXceiver.writeBlock, a datanode opens the connection to the next datanode when
//! the request for the block reaches it: the set-up request, or the first chunk if there is no set-up.
//! It forwards each chunk when it has received it completely (BlockReceiver), and acknowledges it
//! when it has stored the chunk and the next datanode has acknowledged it (PacketResponder). When the
//! end of the block is acknowledged, it closes its connection to the next datanode; its connection
//! from the writer's side ends when the FIN of that side arrives.

use super::packets::{CLOSE, PACKET_HEADER, SETUP, acknowledge, replica_chunk};
use crate::mapreduce::connections::Use;
use crate::mapreduce::content::{Content, WriteRequest};
use crate::mapreduce::context::Context;
use crate::mapreduce::work::Work;
use eastwest_types::{ConnId, Side};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// State of a block at a datanode that receives it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Receiver {
    /// Request that began the write of the block at this datanode.
    request: WriteRequest,
    /// Connection over which the block arrives.
    conn: ConnId,
    /// Connection to the next datanode; `None` at the last datanode, and when the next datanode has
    /// acknowledged the end of the block.
    next: Option<ConnId>,
    /// Bytes of the block that have arrived.
    arrived: u64,
    /// Bytes of the block that this datanode has stored.
    stored: u64,
    /// Bytes of the block that the next datanode has acknowledged; `u64::MAX` at the last datanode.
    below: u64,
    /// Bytes of the block that this datanode has acknowledged.
    acknowledged: u64,
}

/// Progress of a block over one hop of its pipeline: bytes that have arrived, and bytes that are
/// acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Bytes of the block that have arrived at the datanode.
    pub arrived: u64,
    /// Bytes of the block that the datanode has acknowledged.
    pub acknowledged: u64,
}

/// Blocks that datanodes receive from writers, by writer and number of the pipeline's hop that ends
/// at the datanode.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Datanodes {
    receivers: BTreeMap<(u32, u32), Receiver>,
}

impl Datanodes {
    fn receiver(&mut self, cx: &Context, at: (u32, u32)) -> &mut Receiver {
        let r = self.receivers.get_mut(&at).expect("the datanode receives the block");
        cx.here.may_use(cx.host(r.request.datanode));
        r
    }

    /// Handles a message from the writer's side at the datanode behind the hop `at` (writer, hop):
    /// a chunk of `bytes` bytes, or with the values `SETUP` and `CLOSE` of `bytes` the requests that
    /// begin and end a block.
    pub fn arrived(&mut self, cx: &mut Context, at: (u32, u32), conn: ConnId, bytes: u64) {
        if !self.receivers.contains_key(&at) {
            self.begin(cx, at, conn);
        }
        let r = self.receiver(cx, at);
        let (job, next) = (r.request.job, r.next);
        match (bytes, next) {
            (SETUP, Some(next)) => {
                cx.tell(next, Side::Client, cx.config.hdfs.setup_bytes, SETUP, Some(job));
            }
            (CLOSE, Some(next)) => {
                cx.tell(next, Side::Client, PACKET_HEADER, CLOSE, Some(job));
            }
            (SETUP, None) => acknowledge(cx, conn, SETUP, job),
            (CLOSE, None) => self.end(cx, at),
            _ => self.store(cx, at, bytes),
        }
    }

    /// Begins to receive a block: opens the connection to the next datanode, and passes it the
    /// request, which travels with the next message.
    fn begin(&mut self, cx: &mut Context, (writer, hop): (u32, u32), conn: ConnId) {
        let request = cx.conns.take(conn, Side::Client).write_request();
        let mut next = None;
        if let Some((&datanode, targets)) = request.targets.split_first() {
            let ends = (cx.host(request.datanode), cx.host(datanode));
            let opened = cx.open(Use::Pipeline { writer, hop: hop + 1 }, ends);
            let request = WriteRequest { datanode, targets: targets.to_vec(), ..request };
            cx.conns.put(opened, Side::Client, Content::Write(request));
            next = Some(opened);
        }
        let below = if next.is_none() { u64::MAX } else { 0 };
        let (arrived, stored, acknowledged) = (0, 0, 0);
        let receiver = Receiver { request, conn, next, arrived, stored, below, acknowledged };
        self.receivers.insert((writer, hop), receiver);
    }

    /// Forwards a chunk that has arrived at a datanode, and stores it.
    fn store(&mut self, cx: &mut Context, at: (u32, u32), bytes: u64) {
        let r = self.receiver(cx, at);
        r.arrived += bytes;
        let (pipe, datanode) = (r.request.pipe, r.request.datanode);
        if let Some(next) = r.next {
            let framing = cx.config.hdfs.write_framing(bytes);
            cx.out.push(replica_chunk(next, bytes, framing, r.request.job));
        }
        let (writer, hop) = at;
        if cx.store(datanode, bytes, Work::Replica { writer, pipe, hop, bytes }) {
            self.stored(cx, at, pipe, bytes);
        }
    }

    /// Handles a chunk that the datanode behind a hop has stored. `pipe`: number of the writer's
    /// pipeline when the write began; chunks of earlier pipelines are ignored.
    pub fn stored(&mut self, cx: &mut Context, at: (u32, u32), pipe: u32, bytes: u64) {
        if self.receivers.get(&at).is_some_and(|r| r.request.pipe == pipe) {
            self.receiver(cx, at).stored += bytes;
            self.pass_acknowledgement(cx, at);
        }
    }

    /// Handles an acknowledgement of `bytes` bytes at the datanode that has forwarded them over the
    /// hop after `at`. The values `SETUP` and `CLOSE` of `bytes` mean the answers to the requests
    /// that begin and end a block.
    pub fn acknowledged(&mut self, cx: &mut Context, at: (u32, u32), bytes: u64) {
        let r = self.receiver(cx, at);
        match bytes {
            SETUP => acknowledge(cx, r.conn, SETUP, r.request.job),
            CLOSE => self.end(cx, at),
            _ => {
                r.below += bytes;
                self.pass_acknowledgement(cx, at);
            }
        }
    }

    /// Sends an acknowledgement for the bytes that a datanode and all later datanodes of the pipeline
    /// have stored. Without a request that ends the block, the last acknowledgement ends it.
    fn pass_acknowledgement(&mut self, cx: &mut Context, at: (u32, u32)) {
        let r = self.receiver(cx, at);
        let bytes = r.stored.min(r.below) - r.acknowledged;
        if bytes == 0 {
            return;
        }
        r.acknowledged += bytes;
        let is_last = r.acknowledged == r.request.bytes;
        acknowledge(cx, r.conn, bytes, r.request.job);
        if is_last && cx.config.hdfs.setup_bytes == 0 {
            self.close(cx, at);
        }
    }

    /// Acknowledges the end of a block at a datanode, and ends the block there.
    fn end(&mut self, cx: &mut Context, at: (u32, u32)) {
        let r = self.receiver(cx, at);
        acknowledge(cx, r.conn, CLOSE, r.request.job);
        self.close(cx, at);
    }

    /// Ends a block at a datanode, which closes its connection to the next one.
    fn close(&mut self, cx: &mut Context, at: (u32, u32)) {
        let ended = self.receivers.remove(&at).expect("a block ends once");
        if let Some(next) = ended.next {
            cx.close_from(next, Side::Client);
        }
    }

    /// Returns the progress of a writer's block over each opened hop of its pipeline, in order; a hop
    /// over which nothing has arrived has progress 0.
    pub fn progress(&self, writer: u32) -> Vec<Progress> {
        let mut hops = Vec::new();
        let mut is_open = true;
        for hop in 0.. {
            if !is_open {
                break;
            }
            let receiver = self.receivers.get(&(writer, hop));
            is_open = receiver.is_some_and(|r| r.next.is_some());
            hops.push(receiver.map_or(Progress::default(), |r| Progress {
                arrived: r.arrived,
                acknowledged: r.acknowledged,
            }));
        }
        hops
    }

    /// Forgets the block of a writer at all datanodes of its pipeline, whose connections are aborted.
    pub fn forget(&mut self, writer: u32) {
        self.receivers.retain(|&(of, _), _| of != writer);
    }

    /// Returns the number of blocks that datanodes are receiving.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.receivers.len()
    }
}
