//! Execution of the nodes (actions) of MPI ranks.
//!
//! A node of a graph starts when the nodes for which it waits have ended, or started, and when its
//! stream is free; the records of a sequence start one after the other. Of the nodes that wait for
//! a stream, the one with the largest priority is next, and of those the one that was ready first.
//! A node that has started is not interrupted.

use super::collective::{Call, Seat, Teams};
use super::groups::Member;
use super::matching::{Of, Request, Wanted, communicator, parts_of};
use super::rank::{Doing, Follower, Lanes, Meeting, Task};
use super::record::{Node, Record, Which};
use super::replay::Mpi;
use crate::protocol::Action;
use eastwest_types::name::Name;
use eastwest_types::{Activity, MpiCollective, MpiEntry, MpiRank, MpiState, Span, Time};
use std::cmp::Reverse;

/// Largest number of nodes of all graphs of a program: all of them are in memory until they end.
const MOST_GRAPH_NODES: u64 = 20_000_000;

impl Mpi {
    /// Continues a node whose computation or requests are complete, if `node` names one, and then
    /// all nodes of the rank that can start.
    pub(super) fn go_on(
        &mut self,
        now: Time,
        rank: u32,
        node: Option<u32>,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        if let Some(node) = node {
            self.continue_task(now, (rank, node), out)?;
        }
        loop {
            let r = &mut self.ranks[rank as usize];
            if let Some(node) = r.startable.pop_front() {
                self.start(now, (rank, node), out)?;
            } else if let Some(stream) = r.released.pop_front() {
                let released = r.streams.entry(stream).or_default();
                released.busy = false;
                if let Some((_, _, node)) = released.waiting.pop_first() {
                    r.startable.push_front(node);
                }
            } else if r.exhausted || r.blocking > 0 {
                break;
            } else {
                self.read(rank)?;
            }
        }
        let r = &self.ranks[rank as usize];
        if r.exhausted && r.tasks.is_empty() && !r.through {
            self.end_rank(now, rank, out);
        }
        Ok(())
    }

    /// Reads the next node of a rank.
    fn read(&mut self, rank: u32) -> Result<(), String> {
        let r = &mut self.ranks[rank as usize];
        let next = r.source.next(&self.config.groups).map_err(|t| t.to_string())?;
        let Some(Node { record, group, needs, stream, priority }) = next else {
            r.exhausted = true;
            return Ok(());
        };
        let (number, in_sequence) = (r.next, !r.source.is_graph());
        r.next += 1;
        let Member { group, own } =
            self.config.groups.find(rank, group).expect("the parser has found the group");
        let blocking = match in_sequence {
            true => !record.is_collective_in_background(),
            false => record == Record::WaitAll,
        };
        let collective = match record.is_collective() {
            true => {
                let entered = r.collectives.entry(group).or_default();
                *entered += 1;
                *entered
            }
            false => 0,
        };
        r.blocking += u32::from(blocking);
        let task = Task {
            doing: Doing::Nothing(record),
            group,
            own,
            collective,
            needs: 0,
            followers: Vec::new(),
            stream,
            occupied: None,
            priority,
            blocking,
            takes_in: 0,
            request: None,
            activity: Activity::Compute,
            call: "init",
            since: Time::ZERO,
            counted: false,
        };
        r.tasks.insert(number, Box::new(task));
        self.graph_nodes += u64::from(!in_sequence);
        r.iteration.nodes += u64::from(!in_sequence && !blocking);
        if self.graph_nodes > MOST_GRAPH_NODES {
            return Err(format!(
                "the program has more than {MOST_GRAPH_NODES} nodes in graphs, which is the maximum"
            ));
        }
        let mut unmet = 0;
        if blocking && !in_sequence {
            // all nodes before this one that have not ended
            for (_, task) in r.tasks.range_mut(..number) {
                task.followers.push(Follower { rank, node: number, start: false });
                unmet += 1;
            }
        }
        for need in needs {
            let follower = Follower { rank, node: number, start: need.start };
            let other = &mut self.ranks[need.rank as usize];
            if need.node >= other.next {
                let early = self.early.entry((need.rank, need.node)).or_default();
                early.push(follower);
                unmet += 1;
            } else if let Some(task) = other.tasks.get_mut(&need.node)
                && !(need.start && task.has_started())
            {
                task.followers.push(follower);
                unmet += 1;
            }
        }
        let followers = match self.early.is_empty() {
            true => Vec::new(),
            false => self.early.remove(&(rank, number)).unwrap_or_default(),
        };
        let r = &mut self.ranks[rank as usize];
        let task = r.task(number);
        (task.needs, task.followers) = (unmet, followers);
        if unmet == 0 {
            r.startable.push_back(number);
        }
        Ok(())
    }

    /// Tells the nodes that wait for the start of a node (`start`) or for its end.
    fn tell(&mut self, followers: Vec<Follower>) {
        for Follower { rank, node, .. } in followers {
            let r = &mut self.ranks[rank as usize];
            let task = r.task(node);
            task.needs -= 1;
            if task.needs == 0 {
                r.startable.push_back(node);
                self.ready.push_back((rank, None));
            }
        }
    }

    /// Starts a node that waits for no other node, or continues it where it needs the processor;
    /// if its stream is busy, it waits for the stream.
    fn start(
        &mut self,
        now: Time,
        (rank, node): (u32, u32),
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        let (send, receive) = (self.config.send_overhead, self.config.receive_overhead);
        let r = &mut self.ranks[rank as usize];
        let in_graph = r.source.is_graph();
        let task = r.tasks.get_mut(&node).expect("the node has not ended");
        let overhead = match task.doing {
            Doing::Nothing(Record::Send { .. }) => send,
            Doing::Received(messages) => Span(receive.0 * u64::from(messages)),
            _ => Span::ZERO,
        };
        // the processor is stream 0
        let processor = (in_graph && overhead > Span::ZERO).then_some(0);
        if let Some(wanted) = task.stream.or(processor)
            && task.occupied.is_none()
        {
            let stream = r.streams.entry(wanted).or_default();
            if stream.busy {
                stream.waiting.insert((Reverse(task.priority), r.queued, node));
                r.queued += 1;
                return Ok(());
            }
            stream.busy = true;
            task.occupied = Some(wanted);
        }
        if !task.has_started() {
            task.since = now;
            let followers = std::mem::take(&mut task.followers);
            let (followed, kept) = followers.into_iter().partition(|follower| follower.start);
            task.followers = kept;
            self.tell(followed);
        }
        let task = self.ranks[rank as usize].task(node);
        match std::mem::replace(&mut task.doing, Doing::Waiting(0)) {
            Doing::Nothing(record @ Record::Send { .. }) if overhead > Span::ZERO => {
                task.begin(now, Activity::Send, "send");
                task.doing = Doing::Preparing(record);
                self.wake_node(now + overhead, (rank, node), out);
                return Ok(());
            }
            Doing::Nothing(record) => self.perform(now, (rank, node), record, out)?,
            Doing::Received(_) => {
                task.doing = Doing::Busy;
                self.wake_node(now + overhead, (rank, node), out);
                return Ok(());
            }
            _ => unreachable!("only these need a start"),
        }
        self.continue_task(now, (rank, node), out)
    }

    /// Continues a node whose computation is complete.
    pub(super) fn computed(
        &mut self,
        now: Time,
        (rank, node): (u32, u32),
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        let task = self.ranks[rank as usize].task(node);
        if let Doing::Preparing(record) = std::mem::replace(&mut task.doing, Doing::Waiting(0)) {
            let began = task.since;
            self.perform(now, (rank, node), record, out)?;
            let r = &mut self.ranks[rank as usize];
            let task = r.task(node);
            task.since = began;
            if task.stream.is_none() {
                let released = task.occupied.take();
                r.released.extend(released);
            }
        }
        self.ready.push_back((rank, Some(node)));
        Ok(())
    }

    /// Continues a node that has started; ends it if nothing is left to do.
    fn continue_task(
        &mut self,
        now: Time,
        (rank, node): (u32, u32),
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        let ended = match self.ranks[rank as usize].task(node).doing {
            Doing::Waiting(open) => open == 0,
            Doing::Collective { .. } => self.collective_goes_on(now, (rank, node), out)?,
            _ => false,
        };
        let receive = self.config.receive_overhead;
        let r = &mut self.ranks[rank as usize];
        let task = r.task(node);
        if ended && task.takes_in > 0 && receive > Span::ZERO {
            task.doing = Doing::Received(std::mem::take(&mut task.takes_in));
            r.startable.push_back(node);
        } else if ended {
            self.end(now, (rank, node), out);
        }
        Ok(())
    }

    /// Ends a node, reports its duration, and tells the nodes that wait for its end.
    fn end(&mut self, now: Time, (rank, node): (u32, u32), out: &mut Vec<Action>) {
        let r = &mut self.ranks[rank as usize];
        let task = *r.tasks.remove(&node).expect("the node has not ended");
        self.records += 1;
        let (activity, call, began) = (task.activity, task.call, task.since);
        let is_in_time_line = match r.source.is_graph() {
            true => task.stream.is_some(),
            false => task.blocking,
        };
        if now > began && is_in_time_line {
            r.spent[activity as usize] += now.since(began);
            out.push(Action::MpiState(MpiState { rank, activity, call, began, ended: now }));
        }
        r.blocking -= u32::from(task.blocking);
        if task.counted {
            r.iteration.change(now, activity, false);
        }
        if r.source.is_graph() && task.blocking {
            out.push(Action::MpiIteration(Box::new(r.iteration.end(rank, now))));
        }
        self.graph_nodes -= u64::from(r.source.is_graph());
        r.released.extend(task.occupied);
        if let Some(request) = task.request {
            self.complete(request);
        }
        self.tell(task.followers);
    }

    fn end_rank(&mut self, now: Time, rank: u32, out: &mut Vec<Action>) {
        let r = &mut self.ranks[rank as usize];
        r.through = true;
        if r.iteration.nodes > 0 {
            out.push(Action::MpiIteration(Box::new(r.iteration.end(rank, now))));
        }
        self.through += 1;
        out.push(Action::MpiRank(Box::new(MpiRank {
            rank,
            host: self.config.hosts[rank as usize],
            finished: now,
            spent: r.spent,
            sent: r.sent,
            sent_in_collectives: r.sent_in_collectives,
            collectives: r.collectives.values().map(|&n| u64::from(n)).sum(),
        })));
    }

    fn perform(
        &mut self,
        now: Time,
        of: (u32, u32),
        record: Record,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        let (rank, node) = of;
        let (group, in_sequence) = {
            let r = &mut self.ranks[rank as usize];
            (r.task(node).group, !r.source.is_graph())
        };
        match record {
            Record::Graph | Record::Init { .. } | Record::Finalize | Record::Nothing => {}
            Record::Compute { flops } => {
                let span = self.computing(flops);
                self.busy(now, of, Activity::Compute, "compute", span, out);
            }
            Record::Sleep { seconds } => {
                let span = Span::from_secs_f64_nearest(seconds);
                self.busy(now, of, Activity::Sleep, "sleep", span, out);
            }
            Record::Send { to, tag, bytes, blocking } => {
                let call = if blocking { "send" } else { "isend" };
                let to = self.in_world(group, to);
                let message = (communicator(group, 0), tag);
                let request = self.send(now, (rank, to), message, bytes, call, out);
                match request {
                    Some(request) if blocking || !in_sequence => {
                        self.await_all(now, of, (Activity::Send, call), [request]);
                    }
                    Some(request) => self.ranks[rank as usize].open.push_back(request),
                    // The send is complete; a later wait for it returns at once.
                    None => {}
                }
            }
            Record::Recv { from, tag, most, blocking } => {
                let from = from.map(|from| self.in_world(group, from));
                let wanted = Wanted { communicator: communicator(group, 0), from, tag, most };
                let request = self.receive(now, rank, wanted, out)?;
                if blocking || !in_sequence {
                    let call = if blocking { "recv" } else { "irecv" };
                    self.await_all(now, of, (Activity::Receive, call), [request]);
                } else {
                    self.ranks[rank as usize].open.push_back(request);
                }
            }
            Record::Wait(which) => {
                if let Some(request) = self.take_open((rank, group), which) {
                    self.await_all(now, of, (Activity::Wait, "wait"), [request]);
                }
            }
            Record::Test(which) => {
                let found = self.find_open((rank, group), which);
                if let Some((at, request)) = found.filter(|f| self.requests.get(f.1).done) {
                    self.ranks[rank as usize].open.remove(at);
                    self.requests.remove(request);
                }
            }
            Record::WaitAll => {
                let open = std::mem::take(&mut self.ranks[rank as usize].open);
                self.await_all(now, of, (Activity::Wait, "waitall"), open);
            }
            Record::Group(definition) => {
                if let Some(call) = Call::of_definition(&definition.how) {
                    self.enter(now, of, Box::new(call), out)?;
                }
            }
            Record::Collective { call, blocking } => {
                if !blocking && in_sequence {
                    let request = Request::new(rank, Of::Collective { group, kind: call.kind });
                    let request = self.requests.add(request);
                    let r = &mut self.ranks[rank as usize];
                    r.task(node).request = Some(request);
                    r.open.push_back(request);
                }
                self.enter(now, of, call, out)?;
            }
        }
        Ok(())
    }

    /// Returns the rank in the program of a rank of a group.
    pub(super) fn in_world(&self, group: u32, rank: u32) -> u32 {
        self.config.groups.members(group).map_or(rank, |members| members[rank as usize])
    }

    /// Returns the time that a rank needs for `flops` floating-point operations.
    fn computing(&self, flops: f64) -> Span {
        let seconds = flops / self.config.flops_per_s * self.config.compute_scale;
        Span::from_secs_f64_nearest(seconds)
    }

    fn busy(
        &mut self,
        now: Time,
        (rank, node): (u32, u32),
        activity: Activity,
        call: Name,
        span: Span,
        out: &mut Vec<Action>,
    ) {
        if span > Span::ZERO {
            let r = &mut self.ranks[rank as usize];
            r.count(now, node, activity);
            let task = r.task(node);
            task.begin(now, activity, call);
            task.doing = Doing::Busy;
            self.wake_node(now + span, (rank, node), out);
        }
    }

    /// Makes a node wait for requests; requests that are already complete are removed.
    fn await_all(
        &mut self,
        now: Time,
        (rank, node): (u32, u32),
        (activity, call): (Activity, Name),
        requests: impl IntoIterator<Item = u32>,
    ) {
        let requests: Vec<u32> = requests.into_iter().collect();
        let is_receive =
            |request: &&u32| matches!(self.requests.get(**request).of, Of::Receive(..));
        let receives = requests.iter().filter(is_receive).count() as u32;
        let left = self.await_open(node, requests);
        let task = self.ranks[rank as usize].task(node);
        task.begin(now, activity, call);
        task.doing = Doing::Waiting(left);
        task.takes_in = receives;
    }

    /// Marks unfinished requests as awaited by a node of their rank and removes finished requests.
    /// Returns the number of unfinished requests.
    fn await_open(&mut self, node: u32, requests: impl IntoIterator<Item = u32>) -> u32 {
        let mut open = 0;
        for request in requests {
            if self.requests.get(request).done {
                self.requests.remove(request);
            } else {
                self.requests.get_mut(request).awaited = Some(node);
                open += 1;
            }
        }
        open
    }

    /// Returns the first open request of a rank that a wait or test in a group names, with its
    /// position among the open requests. Without a group (0), ranks are those of the program, and
    /// requests of messages in all groups fit.
    fn find_open(&self, (rank, group): (u32, u32), which: Which) -> Option<(usize, u32)> {
        let in_world = |number: Option<u32>| number.map(|number| self.in_world(group, number));
        let (src, dst) = (in_world(which.src), in_world(which.dst));
        let is_here = |within: u64| group == 0 || within == communicator(group, 0);
        let open = self.ranks[rank as usize].open.iter();
        open.copied().enumerate().find(|&(_, request)| match self.requests.get(request).of {
            Of::Collective { group: of, kind } => of == group && which.collective == Some(kind),
            _ if which.collective.is_some() => false,
            Of::Send { communicator, to, tag, .. } => {
                is_here(communicator)
                    && can_be(src, Some(rank))
                    && can_be(dst, Some(to))
                    && can_be(which.tag, Some(tag))
            }
            Of::Receive(wanted, met) => {
                is_here(wanted.communicator)
                    && can_be(src, wanted.from.or(met.map(|m| m.0)))
                    && can_be(dst, Some(rank))
                    && can_be(which.tag, wanted.tag.or(met.map(|m| m.1)))
            }
        })
    }

    fn take_open(&mut self, of: (u32, u32), which: Which) -> Option<u32> {
        let (at, request) = self.find_open(of, which)?;
        self.ranks[of.0 as usize].open.remove(at);
        Some(request)
    }

    /// Starts a collective call of a rank, see [`Mpi::record_entry`].
    fn enter(
        &mut self,
        now: Time,
        (rank, node): (u32, u32),
        call: Box<Call>,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        let (kind, root) = (call.kind, call.root);
        let r = &mut self.ranks[rank as usize];
        r.count(now, node, Activity::Collective);
        let task = r.task(node);
        let (group, number) = (task.group, task.collective);
        task.begin(now, Activity::Collective, kind.name());
        if self.config.algorithms.uses_hosts() && !self.teams.contains_key(&group) {
            let hosts = (0..self.size(group)).map(|own| self.in_world(group, own));
            let teams = Teams::of(hosts.map(|rank| self.config.hosts[rank as usize]));
            self.teams.insert(group, teams);
        }
        let ranks = self.size(group);
        let lanes = self.config.algorithms.lanes(&call, ranks);
        let bus_bytes = call.bus_bytes(ranks);
        let task = self.ranks[rank as usize].task(node);
        task.doing = Doing::Collective { call, lanes: Lanes::new(lanes) };
        let call = kind.name();
        let entry = MpiEntry { group, number, rank, call, root, lanes, bus_bytes };
        if self.own.is_some() {
            out.push(Action::MpiEntry(Box::new(entry)));
            return Ok(());
        }
        self.record_entry(now, entry)
    }

    /// Records that a rank has entered a collective call. Returns an error if another rank's call
    /// with this number in the group has another kind, root or number of lanes.
    pub(super) fn record_entry(&mut self, now: Time, entry: MpiEntry) -> Result<(), String> {
        let MpiEntry { group, number, rank, call, root, lanes, bus_bytes } = entry;
        let meeting = Meeting {
            call,
            root,
            first: rank,
            lanes,
            bus_bytes,
            entered: now,
            complete: now,
            last: rank,
            left: 0,
        };
        let there = self.meetings.entry(communicator(group, number)).or_insert(meeting);
        (there.complete, there.last) = (now, rank);
        let there = *there;
        if (there.call, there.root, there.lanes) == (call, root, lanes) {
            return Ok(());
        }
        let (whose, ranks) = match group {
            0 => (String::new(), "all ranks"),
            _ => (format!(" in a group of {} ranks", self.size(group)), "all its ranks"),
        };
        if (there.call, there.root) == (call, root) {
            return Err(format!(
                "collective call number {number} of rank {rank}{whose} is {} with another size than \
                 that of rank {}: the sizes give {lanes} and {} chunks",
                call, there.first, there.lanes,
            ));
        }
        Err(format!(
            "collective call number {number} of rank {rank}{whose} is {} with root {root}, that of \
             rank {} is {} with root {}; {ranks} must make the same collective calls in the same \
             order",
            call, there.first, there.call, there.root,
        ))
    }

    /// Returns the number of ranks of a group.
    pub(super) fn size(&self, group: u32) -> u32 {
        let all = self.config.program.ranks();
        self.config.groups.members(group).map_or(all, |members| members.len() as u32)
    }

    /// Executes the next steps of a rank's collective call. Returns whether the call has ended.
    fn collective_goes_on(
        &mut self,
        now: Time,
        (rank, node): (u32, u32),
        out: &mut Vec<Action>,
    ) -> Result<bool, String> {
        let task = self.ranks[rank as usize].task(node);
        let (group, own) = (task.group, task.own);
        let ranks = self.size(group);
        loop {
            let task = self.ranks[rank as usize].task(node);
            let within = communicator(group, task.collective);
            let Doing::Collective { call, lanes } = &mut task.doing else {
                return Ok(false);
            };
            let Some((lane, step)) = lanes.next() else { return Ok(false) };
            let name = call.kind.name();
            let teams = self.teams.get(&group).and_then(Option::as_ref);
            let seat = Seat { rank: own, ranks, teams };
            let Some(next) = self.config.algorithms.step(call, seat, lane, step) else {
                if !lanes.end() {
                    continue;
                }
                let flops = call.flops;
                self.leave(now, within, ranks, out);
                let span = self.computing(flops);
                if span > Span::ZERO {
                    self.ranks[rank as usize].task(node).doing = Doing::Busy;
                    self.wake_node(now + span, (rank, node), out);
                }
                return Ok(span == Span::ZERO);
            };
            let mut requests = Vec::new();
            for from in next.receives {
                let from = Some(self.in_world(group, from));
                let wanted =
                    Wanted { communicator: within, from, tag: Some(lane.into()), most: None };
                requests.push(self.receive(now, rank, wanted, out)?);
            }
            for (to, bytes) in next.sends {
                let to = self.in_world(group, to);
                requests.extend(self.send(
                    now,
                    (rank, to),
                    (within, lane.into()),
                    bytes,
                    name,
                    out,
                ));
            }
            let open = self.await_open(node, requests);
            if let Doing::Collective { lanes, .. } = &mut self.ranks[rank as usize].task(node).doing
            {
                lanes.begin(open);
            }
        }
    }

    /// Counts a rank that has left a collective call of `ranks` ranks.
    pub(super) fn leave(&mut self, now: Time, within: u64, ranks: u32, out: &mut Vec<Action>) {
        if self.own.is_some() {
            return out.push(Action::MpiLeft { communicator: within });
        }
        let meeting = self.meetings.get_mut(&within).expect("the rank has entered it");
        meeting.left += 1;
        if meeting.left < ranks {
            return;
        }
        let Meeting { call, bus_bytes, entered, complete, last, .. } = *meeting;
        self.meetings.remove(&within);
        let (group, number) = parts_of(within);
        out.push(Action::MpiCollective(Box::new(MpiCollective {
            group,
            number,
            call,
            ranks,
            bus_bytes,
            entered,
            complete,
            last,
            ended: now,
        })));
    }

    /// Marks a request as complete; a node continues if this was the last request for which it
    /// waited.
    pub(super) fn complete(&mut self, request: u32) {
        let r = self.requests.get_mut(request);
        r.done = true;
        let Some(node) = r.awaited else { return };
        let Request { rank, of, .. } = self.requests.remove(request);
        let goes_on = match &mut self.ranks[rank as usize].task(node).doing {
            Doing::Waiting(left) => {
                *left -= 1;
                *left == 0
            }
            Doing::Collective { lanes, .. } => lanes.complete(of.lane()),
            _ => unreachable!("it waits for a request"),
        };
        if goes_on {
            self.ready.push_back((rank, Some(node)));
        }
    }
}

/// Whether a wait for `wanted` fits a request with the value `is`; `None` stands for any value.
fn can_be<T: PartialEq>(wanted: Option<T>, is: Option<T>) -> bool {
    wanted.zip(is).is_none_or(|(wanted, is)| wanted == is)
}
