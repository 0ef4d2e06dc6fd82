//! MPI programs replayed over the network: ranks compute, send, receive and meet in collectives as a
//! trace says or a generator makes up ([`Program`]); the simulated network decides when.
//!
//! **Messages.** Up to `eager_limit` a message is sent as it is called for, and the send is complete
//! at once. A longer one asks first (rendezvous): a request travels, the receiver answers when a
//! receive matches, then the data go; the send is complete when they have arrived. Every message has an
//! envelope beside its bytes. A message matches the first posted receive of its communicator, source
//! and tag, or the first such message meets a receive that is posted later; messages of one pair keep
//! their order. Each pair of ranks on different hosts has one connection, opened by the first
//! that sends (Open MPI's way); over a lossless network messages go as [parcels](crate::Parcel). Ranks of one host pass messages through memory, at a latency and a rate.
//!
//! **Collectives** are made of messages, in a communicator of their own: [`collective`].
//!
//! **Time.** Computing takes operations over a rate; each rank has a core to itself. MPI calls take
//! no time of the processor. Departure from libraries: an eager message matches when its last byte has
//! arrived, not its first; buffers for unexpected messages are unlimited; `test` costs nothing.
//!
//! **Deadlocks** are noticed at once: when nobody computes and nothing is under way, those who wait
//! wait for each other. The report says who waits for what.

pub mod cg;
pub mod check;
pub mod collective;
mod engine;
mod matching;
mod placement;
mod rank;
pub mod record;
mod report;
mod trace;

pub use placement::{Placement, place};
pub use trace::{Program, TraceFile, Trouble};

use crate::demand::Objections;
use crate::{Action, Cluster, Event};
use collective::Algorithms;
use eastwest_types::{ClassId, ConnId, HostId, Rate, Span, Time};
use matching::{Message, Request, Slots};
use rank::Rank;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Settings of a replayed MPI program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MpiConfig {
    /// What its ranks do.
    pub program: Program,
    /// Where they are: the host of each.
    pub hosts: Vec<HostId>,
    /// Floating-point operations per second of a core.
    pub flops_per_s: f64,
    /// What computing times are multiplied by.
    pub compute_scale: f64,
    /// Bytes of the largest message that is sent unasked.
    pub eager_limit: u64,
    /// Bytes that accompany each message on the wire.
    pub envelope: u32,
    /// Time of the smallest message within a host.
    pub local_latency: Span,
    /// Rate of memory, for messages within a host.
    pub local_rate: Rate,
    /// Bytes of a full frame without link framing, where messages travel as [parcels](crate::Parcel) on a
    /// network that loses none; over connections else.
    pub frame: Option<u16>,
    /// How collectives are done.
    pub algorithms: Algorithms,
    /// How many records all ranks have, for the progress bar; 0 where that is not known.
    pub records: u64,
    /// Class of all packets.
    pub class: ClassId,
}

impl MpiConfig {
    /// Default of `flops_per_s`: that of SimGrid's example platforms.
    pub const FLOPS_PER_S: f64 = 1e9;
    /// Default of `eager_limit`: that of Open MPI over TCP (`btl_tcp_eager_limit`) and of SimGrid
    /// (`smpi/send-is-detached-thresh`).
    pub const EAGER_LIMIT: u64 = 65_536;
    /// Default of `envelope`: about what Open MPI's TCP and matching headers take.
    pub const ENVELOPE: u32 = 32;
    /// Default of `local_latency`: shared memory of today's machines.
    pub const LOCAL_LATENCY: Span = Span::from_ns(500);
    /// Default of `local_rate`: likewise, 5 GB/s.
    pub const LOCAL_RATE: Rate = Rate::gbit(40);
    /// Most ranks.
    pub const MOST_RANKS: u32 = 65_536;
}

/// A replay in progress.
#[derive(Debug, Serialize, Deserialize)]
pub struct Mpi {
    config: MpiConfig,
    ranks: Vec<Rank>,
    /// Receives that are posted and rendezvous sends, until they are complete and somebody knows.
    requests: Slots<Request>,
    /// Messages from their send to the end of their receive.
    messages: Slots<Message>,
    /// Connections by their ranks, the smaller first.
    conns: BTreeMap<(u32, u32), ConnId>,
    /// When the last message within a host arrives, by sender and receiver: they keep their order.
    local: BTreeMap<(u32, u32), Time>,
    /// Collectives that some have entered and not all have left, by their number.
    meetings: BTreeMap<u64, rank::Meeting>,
    /// Ranks that can go on.
    ready: VecDeque<u32>,
    /// Wake-ups and messages that are still to come.
    pending: u64,
    /// Ranks that are through.
    through: u32,
    /// Records done.
    records: u64,
    /// Nothing more is done.
    over: bool,
}

impl Mpi {
    /// A replay, or why there cannot be one.
    pub fn new(config: MpiConfig, cluster: &Cluster) -> Result<Mpi, Vec<String>> {
        let ranks = config.program.ranks();
        let hosts = cluster.rack_of.len();
        let mut no = Objections::new();
        no.require((1..=MpiConfig::MOST_RANKS).contains(&ranks), || {
            format!("ranks: {ranks} is not 1 to {}", MpiConfig::MOST_RANKS)
        });
        no.require(config.hosts.len() == ranks as usize, || {
            format!("placement: places {} ranks, the program has {ranks}", config.hosts.len())
        });
        let beyond = config.hosts.iter().find(|h| h.0 as usize >= hosts);
        no.require(beyond.is_none(), || format!("placement: the fabric has {hosts} hosts"));
        no.require(config.flops_per_s > 0.0, || "flops_per_s: must be above 0".into());
        no.require(config.local_rate.0 > 0, || "local_rate: must be above 0".into());
        no.require(config.envelope > 0, || "envelope: must be at least one byte".into());
        no.unless_any(|| Mpi {
            ranks: (0..ranks).map(|r| Rank::new(config.program.source(r))).collect(),
            requests: Slots::default(),
            messages: Slots::default(),
            conns: BTreeMap::new(),
            local: BTreeMap::new(),
            meetings: BTreeMap::new(),
            ready: VecDeque::new(),
            pending: 0,
            through: 0,
            records: 0,
            over: false,
            config,
        })
    }

    /// Whether messages go as parcels.
    pub fn sends_parcels(&self) -> bool {
        self.config.frame.is_some()
    }

    /// Records done, and records in all.
    pub fn progress(&self) -> (u64, u64) {
        (self.records.min(self.config.records), self.config.records)
    }

    /// Takes an event and adds what should follow.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Action>) {
        if self.over {
            return;
        }
        let happened = match event {
            Event::Begin => {
                self.ready.extend(0..self.config.program.ranks());
                Ok(())
            }
            Event::Wake { token } => {
                self.pending -= 1;
                self.woken(now, token, out)
            }
            Event::Delivered { tag, .. } | Event::Arrived { tag } => {
                self.pending -= 1;
                self.arrived(now, tag, out)
            }
            Event::Failed { .. } | Event::Received { .. } => {
                unreachable!("failures are not borne, progress is not asked for")
            }
        };
        if let Err(what) = happened.and_then(|()| self.settle(now, out)) {
            self.over = true;
            out.push(Action::Fail(what));
        }
    }

    /// Lets all go on that can, and looks whether that was the end.
    fn settle(&mut self, now: Time, out: &mut Vec<Action>) -> Result<(), String> {
        while let Some(rank) = self.ready.pop_front() {
            self.go_on(now, rank, out)?;
        }
        if self.pending > 0 {
            return Ok(());
        }
        if self.through < self.config.program.ranks() {
            return Err(self.describe_deadlock());
        }
        if self.messages.in_use() > 0 {
            return Err(self.describe_unreceived());
        }
        self.over = true;
        let conns = std::mem::take(&mut self.conns);
        out.extend(conns.into_values().map(|conn| Action::Close { conn }));
        out.push(Action::Finished);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
