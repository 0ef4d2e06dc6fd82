//! Requests of HDFS clients to the namenode: replicas of blocks to read, target datanodes of new
//! blocks.
//!
//! A client keeps one connection to the master while it works on a file, sends one request at a
//! time and gets one answer, `namenode_time` after the arrival of the request (Shvachko et al.
//! 2010; `ClientProtocol`: getBlockLocations, create, addBlock, complete). A client on the master's
//! host needs no network. Differences from Hadoop: requests do not queue at the namenode; the names
//! of files have one length; leases, block reports and the datanodes' own heartbeats are not
//! modelled.

use super::connections::Use;
use super::context::Context;
use super::slab::Slab;
use super::timer::Timer;
use eastwest_types::{ConnId, HostId, Side};
use serde::{Deserialize, Serialize};

/// Client that sends requests to the namenode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Caller {
    /// A map that asks for the replicas of its input split.
    Split {
        /// Index of the map in the table of running tasks.
        task: u32,
    },
    /// A writer of a file, which asks for new blocks.
    Writer {
        /// Number of the writer in the table of files being written.
        writer: u32,
    },
    /// A stand-alone HDFS client that reads.
    Reader {
        /// Number of the stand-alone HDFS client.
        client: u32,
    },
}

/// Session of a client at the namenode, with its connection.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Session {
    caller: Caller,
    host: HostId,
    conn: Option<ConnId>,
    /// Whether a request of the client is unanswered.
    asked: bool,
}

/// Sessions of all clients at the namenode.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Namenode {
    sessions: Slab<Session>,
}

impl Namenode {
    /// Opens a session of a client at the namenode and returns the number of the session.
    pub fn session(&mut self, caller: Caller, host: HostId) -> u32 {
        self.sessions.add(Session { caller, host, conn: None, asked: false })
    }

    /// Sends the request of a client to the namenode over the connection of its session.
    pub fn ask(&mut self, cx: &mut Context, session: u32) {
        let s = self.sessions.get(session);
        s.asked = true;
        if s.host == cx.master {
            self.asked(cx, session);
            return;
        }
        let (host, master) = (s.host, cx.master);
        let conn = *s
            .conn
            .get_or_insert_with(|| cx.open_control(Use::Namenode { session }, (host, master)));
        let bytes = cx.config.hdfs.namenode_request_bytes;
        cx.tell(conn, Side::Client, bytes, 0, None);
    }

    /// Handles the arrival of a client's request at the namenode: the answer is ready after the
    /// service time.
    pub fn asked(&self, cx: &mut Context, session: u32) {
        let wait = cx.config.hdfs.namenode_time.expect("who never answers is not asked");
        cx.wake_in(wait, Timer::Namenode(session));
    }

    /// Sends the answer that is ready at the namenode to the client. Returns false if the answer
    /// goes over the network; true if the client is on the namenode's host and has the answer
    /// already.
    pub fn answers(&mut self, cx: &mut Context, session: u32) -> bool {
        let conn = self.sessions.get(session).conn;
        if let Some(conn) = conn {
            let bytes = cx.config.hdfs.namenode_answer_bytes;
            cx.tell(conn, Side::Server, bytes, 0, None);
        }
        conn.is_none()
    }

    /// Handles the arrival of the namenode's answer at the client. Returns the client, or `None` if
    /// no request is unanswered any more. The session of a reader ends with the answer.
    pub fn answered(&mut self, cx: &mut Context, session: u32) -> Option<Caller> {
        let s = self.sessions.get(session);
        if !std::mem::replace(&mut s.asked, false) {
            return None;
        }
        let caller = s.caller;
        if !matches!(caller, Caller::Writer { .. }) {
            self.bye(cx, session);
        }
        Some(caller)
    }

    /// Sends the unanswered request of a session again, if there is one, after its connection to
    /// the namenode was lost.
    pub fn lost(&mut self, cx: &mut Context, session: u32) {
        let s = self.sessions.get(session);
        s.conn = None;
        if s.asked {
            self.ask(cx, session);
        }
    }

    /// Whether a session with this number is open at the namenode.
    pub fn knows(&self, session: u32) -> bool {
        self.sessions.find(session).is_some()
    }

    /// Whether the client of a session waits for the namenode's answer.
    pub fn waits(&self, session: u32) -> bool {
        self.sessions.find(session).is_some_and(|s| s.asked)
    }

    /// Aborts the session of a client that has ended, with its connection.
    pub fn drop_session(&mut self, cx: &mut Context, session: u32) {
        if let Some(conn) = self.sessions.remove(session).conn {
            cx.abort(conn);
        }
    }

    /// Aborts the session of a caller that has ended, if the caller has a session.
    pub fn drop_caller(&mut self, cx: &mut Context, caller: Caller) {
        let its = self.sessions.iter().find(|(_, s)| s.caller == caller);
        if let Some(session) = its.map(|(number, _)| number) {
            self.drop_session(cx, session);
        }
    }

    /// Closes the session of a client that sends no further requests.
    pub fn bye(&mut self, cx: &mut Context, session: u32) {
        if let Some(conn) = self.sessions.remove(session).conn {
            cx.close(conn);
        }
    }

    /// Returns the number of open sessions at the namenode.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.sessions.count().0
    }
}
