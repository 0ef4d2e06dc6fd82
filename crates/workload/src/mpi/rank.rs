//! State of a rank of a replayed MPI program.

use super::collective::Call;
use super::matching::{Posted, Unexpected};
use super::record::Record;
use super::trace::Source;
use eastwest_types::name::Name;
use eastwest_types::{Activity, MpiIteration, Span, Time};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// State of a node of a program that has been read and has not ended.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Doing {
    /// The node waits for other nodes or for its stream.
    Nothing(Record),
    /// The rank sleeps or computes; includes the computation at the end of a collective call.
    Busy,
    /// The processor prepares a message: the send follows.
    Preparing(Record),
    /// This number of messages has been received; the processor has not begun to take them in.
    Received(u32),
    /// The node waits until this number of requests is complete.
    Waiting(u32),
    /// The rank is in a collective call.
    Collective { call: Box<Call>, lanes: Lanes },
}

/// Progress of a rank in the lanes of a collective call.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Lanes {
    /// For each lane: its next step, and the number of unfinished requests of its present step.
    of: Vec<(u32, u32)>,
    /// Lanes whose present step is complete.
    ready: VecDeque<u32>,
    /// Number of lanes with steps left.
    left: u32,
}

impl Lanes {
    pub(super) fn new(lanes: u32) -> Lanes {
        Lanes { of: vec![(0, 0); lanes as usize], ready: (0..lanes).collect(), left: lanes }
    }

    /// Returns the first lane whose present step is complete, and its next step; `None` if all
    /// lanes wait.
    pub(super) fn next(&self) -> Option<(u32, u32)> {
        self.ready.front().map(|&lane| (lane, self.of[lane as usize].0))
    }

    /// Ends the first lane whose present step is complete. Returns whether all lanes have ended.
    pub(super) fn end(&mut self) -> bool {
        self.ready.pop_front();
        self.left -= 1;
        self.left == 0
    }

    /// Begins the next step of the first lane whose present step is complete; the new step waits
    /// for `open` requests.
    pub(super) fn begin(&mut self, open: u32) {
        let lane = self.ready[0];
        let (step, left) = &mut self.of[lane as usize];
        (*step, *left) = (*step + 1, open);
        if open > 0 {
            self.ready.pop_front();
        }
    }

    /// Counts a complete request of a lane. Returns whether the node must be continued because
    /// this lane can go on and no other lane could.
    pub(super) fn complete(&mut self, lane: u32) -> bool {
        let (_, open) = &mut self.of[lane as usize];
        *open -= 1;
        if *open == 0 {
            self.ready.push_back(lane);
        }
        *open == 0 && self.ready.len() == 1
    }
}

/// A node that waits for another node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Follower {
    pub(super) rank: u32,
    pub(super) node: u32,
    /// Whether the follower waits for the start of the other node; otherwise for its end.
    pub(super) start: bool,
}

/// A node of a rank from its reading to its end.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) doing: Doing,
    /// Group of the node, and number of the rank in it.
    pub(super) group: u32,
    pub(super) own: u32,
    /// Number of the collective call of the node in its group at this rank, from 1; 0 if the node is
    /// no collective call.
    pub(super) collective: u32,
    /// Number of nodes for which the node still waits.
    pub(super) needs: u32,
    pub(super) followers: Vec<Follower>,
    /// Stream that the node occupies from its start to its end.
    pub(super) stream: Option<u16>,
    /// Stream that the node occupies now.
    pub(super) occupied: Option<u16>,
    pub(super) priority: i32,
    /// Whether later nodes are read after the end of the node.
    pub(super) blocking: bool,
    /// Number of messages that the processor takes in after their arrival.
    pub(super) takes_in: u32,
    /// Request of a non-blocking collective call, complete at the end of the node.
    pub(super) request: Option<u32>,
    /// Present activity of the rank in the node, such as computing or waiting; the time since
    /// `since` counts for it.
    pub(super) activity: Activity,
    #[serde(with = "eastwest_types::name")]
    pub(super) call: Name,
    /// Time at which the present activity began.
    pub(super) since: Time,
    /// Whether the node counts in the iteration of its rank, as computation or as communication.
    pub(super) counted: bool,
}

impl Task {
    /// Returns whether the node has started: it waits neither for other nodes nor for its stream.
    pub(super) fn has_started(&self) -> bool {
        !matches!(self.doing, Doing::Nothing(_))
    }

    /// Starts an activity of the rank in the node at the time `now`.
    pub(super) fn begin(&mut self, now: Time, activity: Activity, call: Name) {
        (self.activity, self.call, self.since) = (activity, call, now);
    }
}

/// Iteration of a rank with a graph, and how much of it is computation or communication.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Iteration {
    pub(super) number: u32,
    pub(super) began: Time,
    /// Number of nodes of the iteration that have been read.
    pub(super) nodes: u64,
    pub(super) computed: Span,
    pub(super) exposed: Span,
    /// Number of nodes that compute now, and number of collective calls in progress.
    computing: u32,
    communicating: u32,
    /// Time of the last change of these numbers.
    since: Time,
}

impl Iteration {
    /// Counts a node that starts (`more`) or ends an activity at the time `now`.
    pub(super) fn change(&mut self, now: Time, activity: Activity, more: bool) {
        let passed = now.since(self.since);
        self.since = now;
        if self.computing > 0 {
            self.computed += passed;
        } else if self.communicating > 0 {
            self.exposed += passed;
        }
        let count = match activity {
            Activity::Compute => &mut self.computing,
            Activity::Collective => &mut self.communicating,
            _ => return,
        };
        *count = if more { *count + 1 } else { *count - 1 };
    }

    /// Ends the iteration of a rank at the time `now`, and begins the next one.
    pub(super) fn end(&mut self, rank: u32, now: Time) -> MpiIteration {
        let Iteration { number, began, computed, exposed, .. } = *self;
        *self = Iteration { number: number + 1, began: now, since: now, ..Iteration::default() };
        MpiIteration { rank, number, began, ended: now, computed, exposed }
    }
}

/// Stream of a rank, such as a core or a queue of an accelerator: it executes one node at a time.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Stream {
    pub(super) busy: bool,
    /// Nodes that wait for the stream: priority, order of their readiness, number of the node.
    pub(super) waiting: BTreeSet<(Reverse<i32>, u64, u32)>,
}

/// State of a rank of an MPI program.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Rank {
    pub(super) source: Source,
    /// Number of the next node that will be read.
    pub(super) next: u32,
    /// Nodes that have been read and have not ended, by number.
    pub(super) tasks: BTreeMap<u32, Box<Task>>,
    /// Nodes that can start, in the order in which they became ready.
    pub(super) startable: VecDeque<u32>,
    /// Number of nodes in `tasks` after whose end the next node is read.
    pub(super) blocking: u32,
    /// Whether all nodes have been read.
    pub(super) exhausted: bool,
    /// Whether all nodes have ended.
    pub(super) through: bool,
    pub(super) streams: BTreeMap<u16, Stream>,
    /// Streams whose node has ended at the present time.
    pub(super) released: VecDeque<u16>,
    /// Number of nodes that have waited for a stream.
    pub(super) queued: u64,
    /// Requests of non-blocking calls that the program has not waited for, in the order of the
    /// calls.
    pub(super) open: VecDeque<u32>,
    pub(super) posted: Posted,
    pub(super) unexpected: Unexpected,
    /// Number of collective calls that the rank has read, by group.
    pub(super) collectives: BTreeMap<u32, u32>,
    pub(super) iteration: Iteration,
    /// Time until which the rank's proxy handles messages.
    pub(super) proxy_until: Time,
    /// Times until which messages leave and enter through the rank's port to the switch inside its
    /// host.
    pub(super) port_until: (Time, Time),
    pub(super) spent: [Span; Activity::ALL.len()],
    pub(super) sent: (u64, u64),
    pub(super) sent_in_collectives: (u64, u64),
}

/// A collective call that some ranks have entered and not all ranks have left.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Meeting {
    /// Name of the call.
    #[serde(with = "eastwest_types::name")]
    pub(super) call: Name,
    pub(super) root: u32,
    /// Rank that entered the collective call first.
    pub(super) first: u32,
    /// Number of lanes of the call.
    pub(super) lanes: u32,
    /// Bytes for the bus bandwidth, from the first rank's arguments.
    pub(super) bus_bytes: Option<u64>,
    /// Times at which the first and the last rank so far entered the call, and the latter rank.
    pub(super) entered: Time,
    pub(super) complete: Time,
    pub(super) last: u32,
    /// Number of ranks that have left the call.
    pub(super) left: u32,
}

impl Rank {
    pub(super) fn new(source: Source) -> Rank {
        Rank {
            source,
            next: 0,
            tasks: BTreeMap::new(),
            startable: VecDeque::new(),
            blocking: 0,
            exhausted: false,
            through: false,
            streams: BTreeMap::new(),
            released: VecDeque::new(),
            queued: 0,
            open: VecDeque::new(),
            posted: Posted::new(),
            unexpected: Unexpected::new(),
            collectives: BTreeMap::new(),
            iteration: Iteration::default(),
            proxy_until: Time::ZERO,
            port_until: (Time::ZERO, Time::ZERO),
            spent: [Span::ZERO; Activity::ALL.len()],
            sent: (0, 0),
            sent_in_collectives: (0, 0),
        }
    }

    /// Counts a node that starts an activity in the iteration of a graph.
    pub(super) fn count(&mut self, now: Time, node: u32, activity: Activity) {
        if self.source.is_graph() && matches!(activity, Activity::Compute | Activity::Collective) {
            self.iteration.change(now, activity, true);
            self.task(node).counted = true;
        }
    }

    /// Returns the state of a node that has been read and has not ended.
    pub(super) fn task(&mut self, node: u32) -> &mut Task {
        self.tasks.get_mut(&node).expect("the node has not ended")
    }
}
