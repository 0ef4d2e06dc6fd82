//! Requests and messages of MPI ranks, and the matching of messages with receives.

use super::collective::Kind;
use eastwest_types::Time;
use eastwest_types::name::Name;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Table whose slots are used again: it is only as large as the largest number of entries at one
/// time.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Slots<T> {
    held: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots { held: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    pub fn add(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.held[slot as usize] = Some(value);
                slot
            }
            None => {
                self.held.push(Some(value));
                self.held.len() as u32 - 1
            }
        }
    }

    pub fn remove(&mut self, slot: u32) -> T {
        self.free.push(slot);
        self.held[slot as usize].take().expect("it is in the table")
    }

    pub fn get(&self, slot: u32) -> &T {
        self.held[slot as usize].as_ref().expect("it is in the table")
    }

    pub fn get_mut(&mut self, slot: u32) -> &mut T {
        self.held[slot as usize].as_mut().expect("it is in the table")
    }

    pub fn in_use(&self) -> usize {
        self.held.len() - self.free.len()
    }

    /// Returns the slots in use.
    pub fn slots_in_use(&self) -> Vec<u32> {
        let slots = (0..).zip(&self.held).filter(|(_, held)| held.is_some());
        slots.map(|(slot, _)| slot).collect()
    }

    /// Returns a table with the same slots in use and the same order of free slots.
    pub fn same_slots(&self) -> Slots<bool> {
        let held = self.held.iter().map(|held| held.as_ref().map(|_| true)).collect();
        Slots { held, free: self.free.clone() }
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.held.iter().flatten()
    }
}

/// Returns the communicator of the messages of a collective call in a group: its number in the
/// group, from 1. The program's own sends and receives in the group have the number 0.
pub(super) fn communicator(group: u32, collective: u32) -> u64 {
    u64::from(group) << 32 | u64::from(collective)
}

/// Returns the group and the number of the collective call of a communicator.
pub(super) fn parts_of(communicator: u64) -> (u32, u32) {
    ((communicator >> 32) as u32, communicator as u32)
}

/// Returns whether the messages of a communicator are the program's own sends and receives; if not,
/// they are those of a collective call.
pub(super) fn is_own(communicator: u64) -> bool {
    parts_of(communicator).1 == 0
}

/// Properties of the messages that a receive accepts: communicator, source, tag, size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Wanted {
    pub communicator: u64,
    pub from: Option<u32>,
    pub tag: Option<i64>,
    /// Largest message in bytes that the receive accepts; `None`: any size.
    pub most: Option<u64>,
}

impl Wanted {
    fn takes(&self, message: &Message) -> bool {
        self.communicator == message.communicator
            && self.from.is_none_or(|from| from == message.from)
            && self.tag.is_none_or(|tag| tag == message.tag)
    }
}

/// Kind of a request of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Of {
    /// A receive; the second value is the source and tag of the matched message, `None` before the
    /// match.
    Receive(Wanted, Option<(u32, i64)>),
    /// A send with rendezvous.
    Send { communicator: u64, to: u32, tag: i64, bytes: u64 },
    /// A non-blocking collective call.
    Collective { group: u32, kind: Kind },
}

/// A request of a rank: a receive, a send with rendezvous or a non-blocking collective call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub rank: u32,
    pub of: Of,
    /// Whether the request is complete.
    pub done: bool,
    /// Node of the rank that waits for the request; such a request is removed when it is complete.
    pub awaited: Option<u32>,
}

impl Of {
    /// Returns the lane of a request of a collective call: its tag.
    pub fn lane(&self) -> u32 {
        match self {
            Of::Receive(Wanted { tag, .. }, _) => tag.unwrap_or(0) as u32,
            Of::Send { tag, .. } => *tag as u32,
            Of::Collective { .. } => 0,
        }
    }
}

impl Request {
    pub fn new(rank: u32, of: Of) -> Request {
        Request { rank, of, done: false, awaited: None }
    }
}

/// An MPI message in progress, or an MPI message that has arrived and is not matched yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Message {
    pub from: u32,
    /// In a partitioned run: number among the messages that the rank `from` has sent, from 1. 0 if the
    /// message was sent in an undivided run.
    pub number: u32,
    pub to: u32,
    pub communicator: u64,
    pub tag: i64,
    pub bytes: u64,
    #[serde(with = "eastwest_types::name")]
    pub call: Name,
    pub sent: Time,
    pub arrived: Time,
    pub matched: Time,
    /// Request of the send; `None` for an eager message, whose send is complete at once.
    pub send: Option<u32>,
    /// Request of the receive with which the message was matched; `None` before the match.
    pub receive: Option<u32>,
}

/// Communicator, source and tag of a message.
type Key = (u64, u32, i64);

/// Entries in the order in which they were added, with their numbers in this order. Entries with one
/// key are found at once, however many others wait.
#[derive(Debug, Serialize, Deserialize)]
struct Ordered {
    by_key: BTreeMap<Key, VecDeque<(u64, u32)>>,
    added: u64,
}

impl Ordered {
    fn new() -> Ordered {
        Ordered { by_key: BTreeMap::new(), added: 0 }
    }

    fn first(&self, key: Key) -> Option<u64> {
        Some(self.by_key.get(&key)?.front()?.0)
    }

    fn remove_first(&mut self, key: Key) -> Option<u32> {
        let of_key = self.by_key.get_mut(&key)?;
        let (_, entry) = of_key.pop_front()?;
        if of_key.is_empty() {
            self.by_key.remove(&key);
        }
        Some(entry)
    }
}

/// Posted receives of a rank that are not matched yet.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Posted {
    /// Receives of one source and tag.
    exact: Ordered,
    /// Receives of any source or tag, with their order among all receives.
    wild: VecDeque<(u64, u32)>,
}

impl Posted {
    pub fn new() -> Posted {
        Posted { exact: Ordered::new(), wild: VecDeque::new() }
    }

    /// Adds the request of a receive.
    pub fn add(&mut self, request: u32, wanted: &Wanted) {
        let order = self.exact.added;
        self.exact.added += 1;
        match (wanted.from, wanted.tag) {
            (Some(from), Some(tag)) => {
                let key = (wanted.communicator, from, tag);
                self.exact.by_key.entry(key).or_default().push_back((order, request));
            }
            _ => self.wild.push_back((order, request)),
        }
    }

    /// Removes and returns the first posted receive that accepts a message; `None` if there is none.
    pub fn take(&mut self, requests: &Slots<Request>, message: &Message) -> Option<u32> {
        let takes = |request: u32| match requests.get(request).of {
            Of::Receive(wanted, _) => wanted.takes(message),
            Of::Send { .. } | Of::Collective { .. } => false,
        };
        let key = (message.communicator, message.from, message.tag);
        let exact = self.exact.first(key);
        let wild = self.wild.iter().position(|&(order, request)| {
            exact.is_none_or(|exact| order < exact) && takes(request)
        });
        match wild {
            Some(at) => self.wild.remove(at).map(|(_, request)| request),
            None => self.exact.remove_first(key),
        }
    }
}

/// Messages that have arrived at a rank and are not matched yet.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Unexpected(Ordered);

impl Unexpected {
    pub fn new() -> Unexpected {
        Unexpected(Ordered::new())
    }

    /// Adds a message; `slot` is its number in the table of messages.
    pub fn add(&mut self, slot: u32, message: &Message) {
        let key = (message.communicator, message.from, message.tag);
        self.0.by_key.entry(key).or_default().push_back((self.0.added, slot));
        self.0.added += 1;
    }

    /// Removes and returns the first arrived message that a receive accepts; `None` if there is
    /// none.
    pub fn take(&mut self, wanted: &Wanted) -> Option<u32> {
        let key = match (wanted.from, wanted.tag) {
            (Some(from), Some(tag)) => (wanted.communicator, from, tag),
            _ => {
                let first = (wanted.communicator, u32::MIN, i64::MIN);
                let last = (wanted.communicator, u32::MAX, i64::MAX);
                let fits = |&(_, from, tag): &Key| {
                    wanted.from.is_none_or(|f| f == from) && wanted.tag.is_none_or(|t| t == tag)
                };
                let fitting = self.0.by_key.range(first..=last).filter(|(key, _)| fits(key));
                *fitting.min_by_key(|(_, of_key)| of_key.front().map(|first| first.0))?.0
            }
        };
        self.0.remove_first(key)
    }
}
