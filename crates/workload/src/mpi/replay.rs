//! Replay of an MPI program: handles arrivals of messages, and executes all ranks that can
//! continue.

use super::collective::{Algorithms, Teams};
use super::config::MpiConfig;
use super::matching::{Message, Request, Slots};
use super::placement::local_ranks;
use super::rank::{Follower, Meeting, Rank};
use crate::demand::Objections;
use crate::protocol::{Action, Cluster, Event};
use eastwest_types::{ConnId, Time};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// State of the replay of an MPI program.
#[derive(Debug, Serialize, Deserialize)]
pub struct Mpi {
    pub(super) config: MpiConfig,
    /// For each rank: its number among the ranks of its host, from 0.
    pub(super) local_ranks: Vec<u32>,
    pub(super) ranks: Vec<Rank>,
    /// Posted receives and sends with rendezvous, until they are complete and their rank has waited
    /// for them or tested them.
    pub(super) requests: Slots<Request>,
    /// Messages, from their send until their receive is complete.
    pub(super) messages: Slots<Message>,
    /// Connections by their two ranks, of which the smaller one is first, and their channel.
    pub(super) conns: BTreeMap<(u32, u32, u32), ConnId>,
    /// Arrival time of the last message between two ranks on one host, by (sender, receiver); keeps
    /// the messages in order.
    pub(super) local: BTreeMap<(u32, u32), Time>,
    /// Collective calls that some ranks have entered and not all ranks have left, by communicator.
    pub(super) meetings: BTreeMap<u64, Meeting>,
    /// For each group with collective calls: its ranks by host, if an algorithm in two levels is
    /// chosen and possible.
    pub(super) teams: BTreeMap<u32, Option<Teams>>,
    /// Nodes that wait for a node that its rank has not read yet, by rank and number of this node.
    pub(super) early: BTreeMap<(u32, u32), Vec<Follower>>,
    /// Number of nodes of graphs that have been read and have not ended.
    pub(super) graph_nodes: u64,
    /// Ranks that can continue at the present time, each with a node that can continue.
    pub(super) ready: VecDeque<(u32, Option<u32>)>,
    /// Number of scheduled wake-ups plus number of messages in flight.
    pub(super) pending: u64,
    /// Number of ranks that have finished.
    pub(super) through: u32,
    /// Number of records executed so far, of all ranks.
    pub(super) records: u64,
    /// Whether the replay has ended, with or without an error.
    pub(super) over: bool,
}

impl Mpi {
    /// Returns the initial state of a replay of an MPI program, or the reasons why the settings are
    /// invalid.
    pub fn new(config: MpiConfig, cluster: &Cluster) -> Result<Mpi, Vec<String>> {
        let ranks = config.program.ranks();
        let hosts = cluster.rack_of.len();
        let mut no = Objections::new();
        no.require((1..=MpiConfig::MOST_RANKS).contains(&ranks), || {
            format!("ranks: must be 1 to {}, not {ranks}", MpiConfig::MOST_RANKS)
        });
        no.require(config.hosts.len() == ranks as usize, || {
            format!(
                "placement: places {} ranks, but the program has {ranks} ranks",
                config.hosts.len()
            )
        });
        let channels = config.algorithms.channels;
        no.require((1..=Algorithms::MOST_CHANNELS).contains(&channels), || {
            format!("channels: must be 1 to {}, not {channels}", Algorithms::MOST_CHANNELS)
        });
        let beyond = config.hosts.iter().find(|h| h.0 as usize >= hosts);
        no.require(beyond.is_none(), || {
            format!(
                "placement: there is no host {}; the fabric has {hosts} hosts, numbered from 0",
                beyond.map_or(0, |host| host.0)
            )
        });
        no.unless_any(|| Mpi {
            ranks: (0..ranks).map(|r| Rank::new(config.program.source(r))).collect(),
            requests: Slots::default(),
            messages: Slots::default(),
            conns: BTreeMap::new(),
            local: BTreeMap::new(),
            meetings: BTreeMap::new(),
            teams: BTreeMap::new(),
            early: BTreeMap::new(),
            graph_nodes: 0,
            ready: VecDeque::new(),
            pending: 0,
            through: 0,
            records: 0,
            over: false,
            local_ranks: local_ranks(&config.hosts),
            config,
        })
    }

    /// Whether messages between hosts are sent as parcels of Ethernet frames; if not, they use
    /// connections.
    pub fn sends_parcels(&self) -> bool {
        self.config.frame.is_some()
    }

    /// Returns the number of ranks of the program.
    pub fn ranks(&self) -> u32 {
        self.config.program.ranks()
    }

    /// Returns the number of executed records and the number of records of all ranks; the second is
    /// 0 if unknown.
    pub fn progress(&self) -> (u64, u64) {
        (self.records.min(self.config.records), self.config.records)
    }

    /// Handles an event and appends the actions that follow from it to `out`.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Action>) {
        if self.over {
            return;
        }
        let happened = match event {
            Event::Begin => {
                self.ready.extend((0..self.config.program.ranks()).map(|rank| (rank, None)));
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
                unreachable!(
                    "this workload requests neither failure nor progress events, so it receives none"
                )
            }
        };
        if let Err(what) = happened.and_then(|()| self.settle(now, out)) {
            self.over = true;
            out.push(Action::Fail(what));
        }
    }

    /// Executes all ranks that can continue, and checks whether the program has ended or is in a
    /// deadlock.
    fn settle(&mut self, now: Time, out: &mut Vec<Action>) -> Result<(), String> {
        while let Some((rank, node)) = self.ready.pop_front() {
            self.go_on(now, rank, node, out)?;
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
