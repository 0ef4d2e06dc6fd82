//! The connections a MapReduce cluster has open, and what each is for.

use crate::protocol::Action;
use eastwest_types::{ClassId, ConnId, HostId};
use serde::{Deserialize, Serialize};

/// What a connection carries. Tasks are given by their slot in the table of running tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Use {
    /// Heartbeats of a worker (client) and the master's answers.
    Heartbeat {
        /// The worker.
        worker: u32,
    },
    /// A map (client) reads a remote split.
    Split {
        /// The map.
        task: u32,
        /// The worker that has it.
        holder: u32,
    },
    /// A stand-alone client reads a block.
    Read {
        /// The client.
        client: u32,
        /// The worker that has it.
        holder: u32,
    },
    /// A reduce (client) fetches map outputs of one worker.
    Fetch {
        /// The reduce.
        task: u32,
        /// Where the outputs are.
        from: u32,
    },
    /// One hop of a write pipeline; the client is nearer to the writer.
    Pipeline {
        /// Who writes.
        writer: u32,
        /// 0 from the writer to the first remote replica, and so on.
        hop: u32,
    },
    /// A datanode (client) sends what there is of a block to one that joins its pipeline.
    Transfer {
        /// Whose block it is.
        writer: u32,
    },
    /// A datanode (client) sends a copy of a block to another one.
    Copy {
        /// The copy.
        copy: u32,
    },
    /// The resource manager (client) tells a node to launch an application master.
    Master {
        /// Its job.
        job: u32,
    },
    /// Calls of an application master (client) to the resource manager.
    Application {
        /// Its job.
        job: u32,
    },
    /// An application master (client) tells a node to launch a container.
    Launch {
        /// The task it is for.
        task: u32,
    },
    /// A task (client) tells its application master that it is done.
    Report {
        /// What it tells.
        report: u32,
    },
    /// A reduce (client) asks its application master for finished maps.
    Events {
        /// The reduce.
        task: u32,
    },
    /// Questions to the namenode (server).
    Namenode {
        /// Who asks.
        session: u32,
    },
}

/// Table of open connections; numbers of closed ones are used again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Connections {
    uses: Vec<Option<Use>>,
    free: Vec<u32>,
}

impl Connections {
    /// Opens a connection from `client` to `server`.
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
        out.push(Action::Open { conn, client, server, class });
        conn
    }

    /// Closes a connection.
    pub fn close(&mut self, conn: ConnId, out: &mut Vec<Action>) {
        let was = self.uses[conn.0 as usize].take();
        assert!(was.is_some(), "connection {} was closed twice", conn.0);
        self.free.push(conn.0);
        out.push(Action::Close { conn });
    }

    /// Ends a connection at once, with what is on its way.
    pub fn abort(&mut self, conn: ConnId, out: &mut Vec<Action>) {
        self.gone(conn);
        out.push(Action::Abort { conn });
    }

    /// A connection is gone by itself.
    pub fn gone(&mut self, conn: ConnId) {
        let was = self.uses[conn.0 as usize].take();
        assert!(was.is_some(), "connection {} is gone twice", conn.0);
        self.free.push(conn.0);
    }

    /// Ends all connections of some use.
    pub fn abort_where(&mut self, ends: impl Fn(Use) -> bool, out: &mut Vec<Action>) {
        for slot in 0..self.uses.len() {
            if self.uses[slot].is_some_and(&ends) {
                self.abort(ConnId(slot as u32), out);
            }
        }
    }

    /// Closes all connections of some use.
    pub fn close_where(&mut self, ends: impl Fn(Use) -> bool, out: &mut Vec<Action>) {
        for slot in 0..self.uses.len() {
            if self.uses[slot].is_some_and(&ends) {
                self.close(ConnId(slot as u32), out);
            }
        }
    }

    /// All open connections, and what they are for.
    pub fn open_ones(&self) -> impl Iterator<Item = (ConnId, Use)> + '_ {
        let named = (0..).zip(&self.uses);
        named.filter_map(|(slot, purpose)| Some((ConnId(slot), (*purpose)?)))
    }

    /// What a connection is for, if it is open.
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

    /// Connections there were at once, at most.
    #[cfg(test)]
    pub fn most(&self) -> usize {
        self.uses.len()
    }

    /// What an open connection is for.
    pub fn purpose(&self, conn: ConnId) -> Use {
        self.uses[conn.0 as usize].expect("messages arrive on open connections only")
    }
}
