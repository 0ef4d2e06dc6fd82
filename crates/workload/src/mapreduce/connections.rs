//! Open connections of a MapReduce cluster, with the purpose of each connection.

use super::content::Content;
use crate::protocol::Action;
use eastwest_types::{ClassId, ConnId, HostId, Side};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

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

/// An open connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Connection {
    purpose: Use,
    /// Hosts of the client and of the server.
    ends: [HostId; 2],
    /// Contents of the messages in flight, sent by the client and by the server, in order.
    in_flight: [VecDeque<Content>; 2],
}

/// Table of open connections; the number of a closed connection is used again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Connections {
    table: Vec<Option<Connection>>,
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
            self.table.push(None);
            self.table.len() as u32 - 1
        });
        debug_assert!(self.table[slot as usize].is_none());
        let (ends, in_flight) = ([client, server], Default::default());
        self.table[slot as usize] = Some(Connection { purpose, ends, in_flight });
        let conn = ConnId(slot);
        out.push(Action::Open { conn, client, server, class, cards: None });
        conn
    }

    fn remove(&mut self, conn: ConnId) -> Connection {
        self.free.push(conn.0);
        self.table[conn.0 as usize].take().expect("a connection ends once")
    }

    /// Closes a connection after all data is delivered.
    pub fn close(&mut self, conn: ConnId, out: &mut Vec<Action>) {
        self.remove(conn);
        out.push(Action::Close { conn });
    }

    /// Aborts a connection; data in flight is lost.
    pub fn abort(&mut self, conn: ConnId, out: &mut Vec<Action>) {
        self.remove(conn);
        out.push(Action::Abort { conn });
    }

    /// Removes a connection that is already aborted from the table, so that its number can be used
    /// again. Returns its purpose and the contents of the messages that have not arrived.
    pub fn gone(&mut self, conn: ConnId) -> (Use, impl Iterator<Item = Content> + use<>) {
        let lost = self.remove(conn);
        (lost.purpose, lost.in_flight.into_iter().flatten())
    }

    /// Aborts all connections for whose purpose `ends` returns true.
    pub fn abort_where(&mut self, ends: impl Fn(Use) -> bool, out: &mut Vec<Action>) {
        for (conn, purpose) in self.open_ones().collect::<Vec<_>>() {
            if ends(purpose) {
                self.abort(conn, out);
            }
        }
    }

    /// Closes all connections for whose purpose `ends` returns true, in the order of their numbers.
    pub fn close_where(&mut self, ends: impl Fn(Use) -> bool, out: &mut Vec<Action>) {
        for (conn, purpose) in self.open_ones().collect::<Vec<_>>() {
            if ends(purpose) {
                self.close(conn, out);
            }
        }
    }

    /// Returns all open connections with their purposes.
    pub fn open_ones(&self) -> impl Iterator<Item = (ConnId, Use)> + '_ {
        let named = (0..).zip(&self.table);
        named.filter_map(|(slot, open)| Some((ConnId(slot), open.as_ref()?.purpose)))
    }

    /// Returns the purpose of a connection, or `None` if it is not open.
    pub fn find(&self, conn: ConnId) -> Option<Use> {
        Some(self.table.get(conn.0 as usize)?.as_ref()?.purpose)
    }

    /// Returns the largest number of connections that were open at one time.
    #[cfg(test)]
    pub fn most(&self) -> usize {
        self.table.len()
    }

    fn get(&mut self, conn: ConnId) -> &mut Connection {
        self.table[conn.0 as usize].as_mut().expect("messages use open connections only")
    }

    /// Returns the purpose of an open connection, and the host that receives the messages of the
    /// side `from`.
    pub fn to(&mut self, conn: ConnId, from: Side) -> (Use, HostId) {
        let open = self.get(conn);
        (open.purpose, open.ends[from.other() as usize])
    }

    /// Adds the content of a message that the side `from` sends.
    pub fn put(&mut self, conn: ConnId, from: Side, content: Content) {
        self.get(conn).in_flight[from as usize].push_back(content);
    }

    /// Removes and returns the content of a message that has arrived from the side `from`.
    pub fn take(&mut self, conn: ConnId, from: Side) -> Content {
        let content = self.get(conn).in_flight[from as usize].pop_front();
        content.expect("the message has a content")
    }

    /// Returns the contents of the messages in flight on a connection.
    pub fn contents(&mut self, conn: ConnId) -> impl Iterator<Item = &mut Content> {
        self.get(conn).in_flight.iter_mut().flatten()
    }
}
