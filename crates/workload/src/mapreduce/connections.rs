//! Open connections of a MapReduce cluster, with the purpose of each connection.

use crate::protocol::Action;
use eastwest_types::{ClassId, ConnId, HostId};
use serde::{Deserialize, Serialize};

/// Purpose of a connection. Tasks are identified by their index in the table of running tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Use {
    /// Heartbeats of a worker (client) and the master's answers.
    Heartbeat {
        /// Number of the worker that sends the heartbeats.
        worker: u32,
    },
    /// A map (client) reads its input split from another worker.
    Split {
        /// Index of the map in the table of running tasks.
        task: u32,
        /// Number of the worker that has the replica of the split.
        holder: u32,
    },
    /// A stand-alone HDFS client reads a block from a datanode.
    Read {
        /// Number of the stand-alone HDFS client.
        client: u32,
        /// Number of the worker that has the replica of the block.
        holder: u32,
    },
    /// A reduce (client) fetches map outputs of one worker.
    Fetch {
        /// Index of the reduce in the table of running tasks.
        task: u32,
        /// Number of the worker that has the map outputs; in approximate runs number of the part of
        /// the reduce's input.
        from: u32,
    },
    /// One hop of a write pipeline; its client is the end nearer to the writer.
    Pipeline {
        /// Number of the writer in the table of files being written.
        writer: u32,
        /// Number of the hop in the pipeline: 0 from the writer to the first remote replica.
        hop: u32,
    },
    /// A datanode (client) sends the data that a block has so far to a datanode that joins the
    /// block's pipeline.
    Transfer {
        /// Number of the block's writer in the table of files being written.
        writer: u32,
    },
    /// A datanode (client) sends a copy of a block to another datanode.
    Copy {
        /// Number of the copy in the table of block copies in progress.
        copy: u32,
    },
    /// The resource manager (client) tells a node to launch an application master.
    Master {
        /// Number of the application master's job.
        job: u32,
    },
    /// Calls of an application master (client) to the resource manager.
    Application {
        /// Number of the application master's job.
        job: u32,
    },
    /// An application master (client) tells a node to launch a container.
    Launch {
        /// Index of the task that the container will run, in the table of running tasks.
        task: u32,
    },
    /// A task (client) reports its end to its application master.
    Report {
        /// Number of the report in the table of unreceived reports.
        report: u32,
    },
    /// A reduce (client) asks its application master for the list of finished maps.
    Events {
        /// Index of the reduce in the table of running tasks.
        task: u32,
    },
    /// Requests of an HDFS client to the namenode (server).
    Namenode {
        /// Number of the client's session at the namenode.
        session: u32,
    },
}

/// Table of open connections; the number of a closed connection is used again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Connections {
    uses: Vec<Option<Use>>,
    free: Vec<u32>,
}

impl Connections {
    /// Opens a connection from `client` to `server` for `purpose`, in the traffic class `class`.
    /// Returns the number of the connection.
    pub fn open(
        &mut self,
        purpose: Use,
        (client, server): (HostId, HostId),
        class: ClassId,
        out: &mut Vec<Action>,
    ) -> ConnId {
        debug_assert_ne!(client, server);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.uses.push(None);
            self.uses.len() as u32 - 1
        });
        debug_assert!(self.uses[slot as usize].is_none());
        self.uses[slot as usize] = Some(purpose);
        let conn = ConnId(slot);
        out.push(Action::Open { conn, client, server, class, cards: None });
        conn
    }

    /// Closes a connection after all data is delivered.
    pub fn close(&mut self, conn: ConnId, out: &mut Vec<Action>) {
        let was = self.uses[conn.0 as usize].take();
        assert!(was.is_some(), "connection {} was closed twice", conn.0);
        self.free.push(conn.0);
        out.push(Action::Close { conn });
    }

    /// Aborts a connection; data in flight is lost.
    pub fn abort(&mut self, conn: ConnId, out: &mut Vec<Action>) {
        self.gone(conn);
        out.push(Action::Abort { conn });
    }

    /// Removes a connection that is already aborted from the table, so that its number can be used
    /// again.
    pub fn gone(&mut self, conn: ConnId) {
        let was = self.uses[conn.0 as usize].take();
        assert!(was.is_some(), "connection {} is gone twice", conn.0);
        self.free.push(conn.0);
    }

    /// Aborts all connections for whose purpose `ends` returns true.
    pub fn abort_where(&mut self, ends: impl Fn(Use) -> bool, out: &mut Vec<Action>) {
        for slot in 0..self.uses.len() {
            if self.uses[slot].is_some_and(&ends) {
                self.abort(ConnId(slot as u32), out);
            }
        }
    }

    /// Closes all connections for whose purpose `ends` returns true.
    pub fn close_where(&mut self, ends: impl Fn(Use) -> bool, out: &mut Vec<Action>) {
        for slot in 0..self.uses.len() {
            if self.uses[slot].is_some_and(&ends) {
                self.close(ConnId(slot as u32), out);
            }
        }
    }

    /// Returns all open connections with their purposes.
    pub fn open_ones(&self) -> impl Iterator<Item = (ConnId, Use)> + '_ {
        let named = (0..).zip(&self.uses);
        named.filter_map(|(slot, purpose)| Some((ConnId(slot), (*purpose)?)))
    }

    /// Returns the purpose of a connection, or `None` if it is not open.
    pub fn find(&self, conn: ConnId) -> Option<Use> {
        self.uses.get(conn.0 as usize).copied().flatten()
    }

    /// Closes all connections in the order of their numbers.
    pub fn close_all(&mut self, out: &mut Vec<Action>) {
        for slot in 0..self.uses.len() {
            if self.uses[slot].is_some() {
                self.close(ConnId(slot as u32), out);
            }
        }
    }

    /// Returns the largest number of connections that were open at one time.
    #[cfg(test)]
    pub fn most(&self) -> usize {
        self.uses.len()
    }

    /// Returns the purpose of an open connection.
    pub fn purpose(&self, conn: ConnId) -> Use {
        self.uses[conn.0 as usize].expect("messages arrive on open connections only")
    }
}
