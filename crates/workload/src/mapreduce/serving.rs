//! Servers of data: datanodes that send blocks, and workers that send map outputs.
//!
//! A server sends what it has read. It reads runs of `run_bytes` from its disks, one after another,
//! and writes each run to the connection when the read of the run ends (Hadoop's BlockSender, and
//! ReadaheadPool with `dfs.datanode.readahead.bytes`; MapOutputServlet and ShuffleHandler for map
//! outputs). Data in the page cache is sent at once. The receiver has all data when the last run
//! has arrived. Difference from Hadoop: a server reads on while earlier runs wait for the network.

use super::content::ReadRequest;
use super::context::Context;
use super::response::Response;
use super::work::Work;
use eastwest_types::{ConnId, Purpose, Side};

/// Message tag of a run that is followed by further runs of the response.
pub const MORE: u64 = 1;

impl Context {
    /// Answers a request for data at the worker `worker`, which has received it over a connection.
    pub fn serve(&mut self, conn: ConnId, worker: u32, request: ReadRequest) {
        let from_disk = match request.written_offset {
            Some(offset) => request.bytes > 0 && !self.in_memory(worker, offset),
            None => self.config.node.disks.is_some(),
        };
        if !from_disk {
            self.send_run(conn, request, (0, request.bytes));
            return;
        }
        let serial = self.conns.serial(conn).expect("the request came over it");
        let response = Response { conn, serial, worker, request, sent: 0, run: 0 };
        let number = self.responses.add(response);
        self.read_run(number);
    }

    /// Starts the disk read of the next run of a response.
    fn read_run(&mut self, number: u32) {
        let most = self.config.node.run_bytes.max(1);
        let r = self.responses.get(number);
        r.run = most.min(r.request.bytes - r.sent);
        let (worker, bytes) = (r.worker, r.run);
        self.read(worker, bytes, Work::Serve(number));
    }

    /// Handles the end of the disk read of a run: sends the run and reads the next one. The response
    /// ends if its connection has ended.
    pub fn run_read(&mut self, number: u32) {
        let r = self.responses.get(number);
        let (from, to) = (r.sent, r.sent + r.run);
        r.sent = to;
        let Response { conn, serial, worker, request, .. } = *r;
        self.here.may_use(self.host(worker));
        let is_open = self.conns.serial(conn) == Some(serial);
        if is_open {
            self.send_run(conn, request, (from, to));
        }
        if is_open && to < request.bytes {
            self.read_run(number);
        } else {
            self.responses.remove(number);
        }
    }

    /// Sends the bytes from `from` to `to` of the requested data. A response with map outputs begins
    /// with its header; a block has checksums and the headers of HDFS's data packets.
    fn send_run(&mut self, conn: ConnId, request: ReadRequest, (from, to): (u64, u64)) {
        let hdfs = &self.config.hdfs;
        let (purpose, framing) = match request.written_offset {
            Some(_) if from == 0 => (Purpose::Shuffle, self.config.shuffle.fetch_header_bytes),
            Some(_) => (Purpose::Shuffle, 0),
            None => (Purpose::MapInput, hdfs.read_framing(to) - hdfs.read_framing(from)),
        };
        let tag = if to < request.bytes { MORE } else { 0 };
        let (ends, job) = ((conn, Side::Server), Some(request.job));
        self.send(ends, (to - from, framing), tag, purpose, job);
    }
}
