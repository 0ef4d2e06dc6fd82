//! Questions to the namenode: where blocks are, where new ones go.
//!
//! A client keeps one connection to the master while it works on a file, sends one request at a
//! time and gets one answer, `namenode_time` after the request has arrived (Shvachko et al. 2010;
//! `ClientProtocol`: getBlockLocations, create, addBlock, complete). A client on the master itself
//! needs no network. Departures: requests do not queue at the namenode; the names of files have one
//! length; leases, block reports and the datanodes' own heartbeats are not modelled.

use super::connections::Use;
use super::control::control_message;
use super::{MapReduce, Timer};
use crate::Action;
use eastwest_types::{ConnId, HostId, Side, Time};
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

impl MapReduce {
    /// A client that is going to ask.
    pub(super) fn namenode_session(&mut self, caller: Caller, host: HostId) -> u32 {
        self.sessions.add(Session { caller, host, conn: None, asked: false })
    }

    /// Sends a request.
    pub(super) fn ask_namenode(&mut self, now: Time, session: u32, out: &mut Vec<Action>) {
        self.sessions.get(session).asked = true;
        let Session { host, conn, .. } = *self.sessions.get(session);
        if host == self.master {
            self.namenode_asked(now, session, out);
            return;
        }
        let conn = conn.unwrap_or_else(|| {
            let purpose = Use::Namenode { session };
            self.conns.open(purpose, (host, self.master), self.config.control_class, out)
        });
        self.sessions.get(session).conn = Some(conn);
        let bytes = u64::from(self.config.hdfs.namenode_request_bytes);
        out.push(control_message(conn, Side::Client, bytes, 0, None));
    }

    /// At the namenode: a request has arrived.
    pub(super) fn namenode_asked(&mut self, now: Time, session: u32, out: &mut Vec<Action>) {
        let wait = self.config.hdfs.namenode_time.expect("who never answers is not asked");
        out.push(Timer::Namenode(session).at(now + wait));
    }

    /// At the namenode: the answer is ready.
    pub(super) fn namenode_answers(&mut self, now: Time, session: u32, out: &mut Vec<Action>) {
        match self.sessions.get(session).conn {
            Some(conn) => {
                let bytes = u64::from(self.config.hdfs.namenode_answer_bytes);
                out.push(control_message(conn, Side::Server, bytes, 0, None));
            }
            None => self.namenode_answered(now, session, out),
        }
    }

    /// At the client: the answer is there.
    pub(super) fn namenode_answered(&mut self, now: Time, session: u32, out: &mut Vec<Action>) {
        let s = self.sessions.get(session);
        if !std::mem::replace(&mut s.asked, false) {
            return; // the answer to a request that was sent again
        }
        match s.caller {
            Caller::Split { task } => {
                self.namenode_bye(session, out);
                self.split_located(now, task, out);
            }
            Caller::Writer { writer } => self.writer_answered(now, writer, out),
            Caller::Reader { client } => {
                self.namenode_bye(session, out);
                self.client_located(now, client, out);
            }
        }
    }

    /// The connection to the namenode is gone: the client asks again.
    pub(super) fn session_lost(&mut self, now: Time, session: u32, out: &mut Vec<Action>) {
        let s = self.sessions.get(session);
        s.conn = None;
        if s.asked {
            self.ask_namenode(now, session, out);
        }
    }

    /// Whether a client awaits the namenode's answer.
    pub(super) fn session_waits(&self, session: u32) -> bool {
        self.sessions.find(session).is_some_and(|s| s.asked)
    }

    /// The client is gone.
    pub(super) fn drop_session(&mut self, session: u32, out: &mut Vec<Action>) {
        if let Some(conn) = self.sessions.remove(session).conn {
            self.conns.abort(conn, out);
        }
    }

    /// The connection of a caller to the namenode, if it is asking.
    pub(super) fn session_of(&self, caller: Caller) -> Option<u32> {
        self.sessions.iter().find(|(_, s)| s.caller == caller).map(|(number, _)| number)
    }

    /// The client has no more questions.
    pub(super) fn namenode_bye(&mut self, session: u32, out: &mut Vec<Action>) {
        if let Some(conn) = self.sessions.remove(session).conn {
            self.conns.close(conn, out);
        }
    }
}
