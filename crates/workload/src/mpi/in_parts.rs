//! Execution of an MPI program in the parts of a partitioned run (one run on several threads). The
//! program begins in an undivided run, until all its connections are open. Then each part executes the
//! ranks on its own hosts.
//!
//! A part is told of the messages that other parts send to its ranks ([`Mpi::announce`]) before they
//! arrive. The arrival of a message is an event in the parts of both its ranks: a send with rendezvous
//! is complete when the data has arrived. Ranks that continue in one event report in rounds: first the
//! ranks that the event has completed something for, then those that continue because of these, and so
//! on; in each round, the receiver's rank precedes the sender's. So the reports of two parts can be put
//! into the order of an undivided run.

use super::collective::{Call, Seat, Teams};
use super::engine::{part_of, tag_of, without_part};
use super::groups::Member;
use super::matching::{Slots, parts_of};
use super::record::{Node, Record};
use super::replay::Mpi;
use crate::protocol::Action;
use eastwest_types::{HostId, MpiEntry, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a message on average below which a partitioned run was slower than an undivided one.
const SHORT_MESSAGE: u64 = 100_000;

/// Properties of a program that its records tell.
pub struct Outline {
    /// Number of connections of the program.
    pub connections: usize,
    /// Number of messages on all connections: an MPI message with rendezvous is three of them.
    pub messages: u64,
    /// Payload bytes that ranks send before they have used all their connections, and payload bytes
    /// of all messages.
    pub early_and_all_bytes: (u64, u64),
}

/// Slots that messages have in an undivided run, from the sends and receives of all parts in their
/// order.
pub struct UnitedSlots {
    slots: Slots<bool>,
    /// Slots of the messages that were sent in parts, by tag without the part of the message.
    of: BTreeMap<u64, u32>,
}

impl UnitedSlots {
    /// Records that the message with this network tag was sent.
    pub fn send(&mut self, tag: u64) {
        self.of.insert(without_part(tag), self.slots.add(true));
    }

    /// Returns the network tag that the message has in an undivided run.
    pub fn undivided(&self, tag: u64) -> u64 {
        let slot = self.of.get(&without_part(tag));
        slot.map_or(tag, |&slot| tag_of(slot, part_of(tag).1))
    }

    /// Records that the message with this network tag was received.
    pub fn receive(&mut self, tag: u64) {
        let slot = self.of.remove(&without_part(tag)).unwrap_or(part_of(tag).0);
        self.slots.remove(slot);
    }
}

impl Outline {
    /// Whether ranks send more than half of their bytes before they have used all their connections.
    pub fn opens_late(&self) -> bool {
        let (early, all) = self.early_and_all_bytes;
        early > all / 2
    }

    /// Whether messages have so few bytes on average that their reports take longer than threads gain.
    pub fn has_short_messages(&self) -> bool {
        self.early_and_all_bytes.1 < self.messages * SHORT_MESSAGE
    }
}

impl Mpi {
    /// Reads the whole program. Returns the reason why it cannot be executed in parts, as a clause
    /// that continues "One thread was used, because", if there is one.
    pub fn outline(&self) -> Result<Outline, &'static str> {
        if self.config.chunk_overhead > Span::ZERO {
            return Err("messages of an MPI program wait for proxies (chunk_overhead)");
        }
        let mut pairs = BTreeSet::new();
        let (mut messages, mut early, mut all) = (0, 0, 0);
        for rank in 0..self.config.program.ranks() {
            let mut own = BTreeSet::new();
            let (mut sent, mut sent_early) = (0, 0);
            self.each_send(rank, &mut |to, channel, bytes| {
                let [a, b] = [rank, to].map(|rank| self.config.hosts[rank as usize]);
                if a == b {
                    return Err("ranks of an MPI program on one host send messages to each other");
                }
                messages += if bytes > self.config.eager_limit { 3 } else { 1 };
                sent += bytes + u64::from(self.config.envelope);
                if own.insert((rank.min(to), rank.max(to), channel)) {
                    sent_early = sent;
                }
                Ok(())
            })?;
            pairs.append(&mut own);
            (early, all) = (early + sent_early, all + sent);
        }
        Ok(Outline { connections: pairs.len(), messages, early_and_all_bytes: (early, all) })
    }

    /// Calls `send` with receiver, channel and bytes of each message that a rank sends.
    fn each_send(
        &self,
        rank: u32,
        send: &mut dyn FnMut(u32, u32, u64) -> Result<(), &'static str>,
    ) -> Result<(), &'static str> {
        let mut source = self.config.program.source(rank);
        while let Some(Node { record, group, needs, .. }) =
            source.next(&self.config.groups).map_err(|_| "the program cannot be read")?
        {
            if needs.iter().any(|need| need.rank != rank) {
                return Err("nodes of an MPI program wait for nodes of other ranks");
            }
            let Member { group, own } =
                self.config.groups.find(rank, group).expect("the parser has found the group");
            let call = match record {
                Record::Send { to, bytes, .. } => {
                    send(self.in_world(group, to), 0, bytes)?;
                    continue;
                }
                Record::Collective { call, .. } => call,
                Record::Group(definition) => match Call::of_definition(&definition.how) {
                    Some(call) => Box::new(call),
                    None => continue,
                },
                _ => continue,
            };
            let (ranks, algorithms) = (self.size(group), &self.config.algorithms);
            let hosts =
                || (0..ranks).map(|own| self.config.hosts[self.in_world(group, own) as usize]);
            let teams = algorithms.uses_hosts().then(|| Teams::of(hosts())).flatten();
            let seat = Seat { rank: own, ranks, teams: teams.as_ref() };
            for lane in 0..algorithms.lanes(&call, ranks) {
                let steps = (0..).map_while(|step| algorithms.step(&call, seat, lane, step));
                for (to, bytes) in steps.flat_map(|step| step.sends) {
                    send(self.in_world(group, to), lane % algorithms.channels, bytes)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the number of ranks of the program.
    pub fn size_of_program(&self) -> u32 {
        self.config.program.ranks()
    }

    /// Returns the number of connections that the program has opened.
    pub fn connections(&self) -> usize {
        self.conns.len()
    }

    /// Returns the number of messages that have arrived over the network, plus the number of ranks
    /// that have finished.
    pub fn progress_in_network(&self) -> u64 {
        self.arrivals + u64::from(self.through)
    }

    /// Begins to execute only the ranks on hosts for which `owns` is true. `is_first`: this is the
    /// first part, which counts what has happened before.
    pub fn become_part(&mut self, is_first: bool, owns: impl Fn(HostId) -> bool) {
        debug_assert!(self.ready.is_empty());
        let own: Vec<bool> = self.config.hosts.iter().map(|&host| owns(host)).collect();
        if is_first {
            self.slots_before = self.messages.same_slots();
        }
        for slot in self.messages.slots_in_use() {
            let message = self.messages.get(slot);
            let has_arrived = message.send.is_none() && message.arrived < Time::NEVER;
            let is_needed = own[message.to as usize] || own[message.from as usize] && !has_arrived;
            if !is_needed {
                self.remove_message(slot);
            }
        }
        self.own = Some(own);
        if !is_first {
            (self.through, self.records) = (0, 0);
        }
    }

    /// Whether this part of a partitioned run, or the undivided run, executes a rank.
    pub(super) fn executes(&self, rank: u32) -> bool {
        self.own.as_ref().is_none_or(|own| own[rank as usize])
    }

    /// Whether this part of a partitioned run executes the rank that the wake-up with this token
    /// continues.
    pub fn is_woken(&self, token: u64) -> bool {
        self.executes(Mpi::rank_of_wake_up(token))
    }

    /// Makes this part of a partitioned run undivided again, after its end. Returns whether no message
    /// was sent and not received.
    pub fn end_parts<'a>(&mut self, others: impl Iterator<Item = &'a Mpi>) -> bool {
        self.own = None;
        let mut in_use = self.messages.in_use();
        for other in others {
            in_use += other.messages.in_use();
            (self.through, self.records) =
                (self.through + other.through, self.records + other.records);
        }
        in_use == 0
    }

    /// Returns the slots of messages at the time when the run was divided, from the first part.
    pub fn united_slots(&mut self) -> UnitedSlots {
        UnitedSlots { slots: std::mem::take(&mut self.slots_before), of: BTreeMap::new() }
    }

    /// Records that a rank has entered a collective call in one of the parts. Returns false if the
    /// ranks do not make the same calls.
    pub fn unite_entry(&mut self, at: Time, entry: MpiEntry) -> bool {
        self.record_entry(at, entry).is_ok()
    }

    /// Records that a rank has left a collective call in one of the parts.
    pub fn unite_left(&mut self, at: Time, within: u64, out: &mut Vec<Action>) {
        let ranks = self.size(parts_of(within).0);
        self.leave(at, within, ranks, out);
    }
}
