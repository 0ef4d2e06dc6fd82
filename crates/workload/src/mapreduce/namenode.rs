//! Questions to the namenode: where blocks are, where new ones go.
//!
//! A client keeps one connection to the master while it works on a file, sends one request at a time and gets
//! one answer, `namenode_time` after the request has arrived (Shvachko et al. 2010; `ClientProtocol`:
//! getBlockLocations, create, addBlock, complete). A client on the master itself needs no network. Differences
//! from Hadoop: requests do not queue at the namenode; the names of files have one length; leases, block
//! reports and the datanodes' own heartbeats are not modelled.

use super::connections::Use;
use super::context::Context;
use super::slab::Slab;
use super::timer::Timer;
use eastwest_types::{ConnId, HostId, Side};
use serde::{Deserialize, Serialize};

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Caller {
    /// A map, for its split.
    Split {
        /// The map.
        task: u32,
    },
    /// A writer, for its file and its blocks.
    Writer {
        /// The writer.
        writer: u32,
    },
    /// A stand-alone client that reads.
    Reader {
        /// The client.
        client: u32,
    },
}

/// A client's connection to the namenode.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Session {
    caller: Caller,
    host: HostId,
    conn: Option<ConnId>,
    /// A request has no answer yet.
    asked: bool,
}

/// Clients that ask.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Namenode {
    sessions: Slab<Session>,
}

impl Namenode {
    /// A client that is going to ask; returns its number.
    pub fn session(&mut self, caller: Caller, host: HostId) -> u32 {
        self.sessions.add(Session { caller, host, conn: None, asked: false })
    }

    /// Sends a request.
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

    /// At the namenode: a request has arrived.
    pub fn asked(&self, cx: &mut Context, session: u32) {
        let wait = cx.config.hdfs.namenode_time.expect("who never answers is not asked");
        cx.wake_in(wait, Timer::Namenode(session));
    }

    /// At the namenode: the answer is ready. False if it goes over the network; else it is there.
    pub fn answers(&mut self, cx: &mut Context, session: u32) -> bool {
        let conn = self.sessions.get(session).conn;
        if let Some(conn) = conn {
            let bytes = cx.config.hdfs.namenode_answer_bytes;
            cx.tell(conn, Side::Server, bytes, 0, None);
        }
        conn.is_none()
    }

    /// At the client: the answer is there. Returns who has it, unless the request was sent again.
    /// Who reads has no more questions.
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

    /// The connection to the namenode is gone: the client asks again.
    pub fn lost(&mut self, cx: &mut Context, session: u32) {
        let s = self.sessions.get(session);
        s.conn = None;
        if s.asked {
            self.ask(cx, session);
        }
    }

    /// Whether a client is still there.
    pub fn knows(&self, session: u32) -> bool {
        self.sessions.find(session).is_some()
    }

    /// Whether a client awaits the namenode's answer.
    pub fn waits(&self, session: u32) -> bool {
        self.sessions.find(session).is_some_and(|s| s.asked)
    }

    /// The client is gone.
    pub fn drop_session(&mut self, cx: &mut Context, session: u32) {
        if let Some(conn) = self.sessions.remove(session).conn {
            cx.abort(conn);
        }
    }

    /// A caller is gone, if it is asking.
    pub fn drop_caller(&mut self, cx: &mut Context, caller: Caller) {
        let its = self.sessions.iter().find(|(_, s)| s.caller == caller);
        if let Some(session) = its.map(|(number, _)| number) {
            self.drop_session(cx, session);
        }
    }

    /// The client has no more questions.
    pub fn bye(&mut self, cx: &mut Context, session: u32) {
        if let Some(conn) = self.sessions.remove(session).conn {
            cx.close(conn);
        }
    }

    /// Clients that are there.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.sessions.count().0
    }
}
