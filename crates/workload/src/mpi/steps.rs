//! Execution of the records (actions) of MPI ranks, one after the other.

use super::collective::Call;
use super::matching::{Of, WORLD, Wanted};
use super::rank::{Doing, Meeting};
use super::record::{Record, Which};
use super::replay::Mpi;
use crate::protocol::Action;
use eastwest_types::name::Name;
use eastwest_types::{Activity, MpiRank, MpiState, Span, Time};

impl Mpi {
    /// Executes records of a rank until it has to wait.
    pub(super) fn go_on(
        &mut self,
        now: Time,
        rank: u32,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        loop {
            match self.ranks[rank as usize].doing {
                Doing::Next => {}
                Doing::Busy | Doing::Waiting(0) => self.end(now, rank, out),
                Doing::Collective { .. } => match self.collective_goes_on(now, rank, out)? {
                    true => self.end(now, rank, out),
                    false => return Ok(()),
                },
                Doing::Waiting(_) | Doing::Through => return Ok(()),
            }
            let next = self.ranks[rank as usize].source.next().map_err(|t| t.to_string())?;
            let Some(record) = next else {
                self.through(now, rank, out);
                return Ok(());
            };
            self.records += 1;
            self.perform(now, rank, record, out)?;
            if matches!(self.ranks[rank as usize].doing, Doing::Busy) {
                return Ok(()); // the rank continues at its wake-up
            }
        }
    }

    /// Ends the present activity of a rank, and reports its duration.
    fn end(&mut self, now: Time, rank: u32, out: &mut Vec<Action>) {
        let r = &mut self.ranks[rank as usize];
        r.doing = Doing::Next;
        let (activity, call, began) = (r.activity, r.call, r.since);
        if now > began {
            r.spent[activity as usize] += now.since(began);
            out.push(Action::MpiState(MpiState { rank, activity, call, began, ended: now }));
        }
    }

    fn through(&mut self, now: Time, rank: u32, out: &mut Vec<Action>) {
        let r = &mut self.ranks[rank as usize];
        r.doing = Doing::Through;
        self.through += 1;
        out.push(Action::MpiRank(Box::new(MpiRank {
            rank,
            host: self.config.hosts[rank as usize],
            finished: now,
            spent: r.spent,
            sent: r.sent,
            sent_in_collectives: r.sent_in_collectives,
            collectives: r.collectives,
        })));
    }

    fn perform(
        &mut self,
        now: Time,
        rank: u32,
        record: Record,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        match record {
            Record::Init { .. } | Record::Finalize | Record::Nothing => {}
            Record::Compute { flops } => {
                let span = self.computing(flops);
                self.busy(now, rank, Activity::Compute, "compute", span, out);
            }
            Record::Sleep { seconds } => {
                let span = Span::from_secs_f64_nearest(seconds);
                self.busy(now, rank, Activity::Sleep, "sleep", span, out);
            }
            Record::Send { to, tag, bytes, blocking } => {
                let call = if blocking { "send" } else { "isend" };
                let request = self.send(now, (rank, to), (WORLD, tag), bytes, call, out);
                match (request, blocking) {
                    (Some(request), true) => {
                        self.await_all(now, rank, (Activity::Send, call), [request]);
                    }
                    (Some(request), false) => self.ranks[rank as usize].open.push_back(request),
                    // The send is complete; a later wait for it returns at once.
                    (None, _) => {}
                }
            }
            Record::Recv { from, tag, most, blocking } => {
                let wanted = Wanted { communicator: WORLD, from, tag, most };
                let request = self.receive(now, rank, wanted, out)?;
                if blocking {
                    self.await_all(now, rank, (Activity::Receive, "recv"), [request]);
                } else {
                    self.ranks[rank as usize].open.push_back(request);
                }
            }
            Record::Wait(which) => {
                if let Some(request) = self.take_open(rank, which) {
                    self.await_all(now, rank, (Activity::Wait, "wait"), [request]);
                }
            }
            Record::Test(which) => {
                let found = self.find_open(rank, which);
                if let Some((at, request)) = found.filter(|f| self.requests.get(f.1).done) {
                    self.ranks[rank as usize].open.remove(at);
                    self.requests.remove(request);
                }
            }
            Record::WaitAll => {
                let open = std::mem::take(&mut self.ranks[rank as usize].open);
                self.await_all(now, rank, (Activity::Wait, "waitall"), open);
            }
            Record::Collective(call) => self.enter(now, rank, call)?,
        }
        Ok(())
    }

    /// Returns the time that a rank needs for `flops` floating-point operations.
    fn computing(&self, flops: f64) -> Span {
        let seconds = flops / self.config.flops_per_s * self.config.compute_scale;
        Span::from_secs_f64_nearest(seconds)
    }

    fn busy(
        &mut self,
        now: Time,
        rank: u32,
        activity: Activity,
        call: Name,
        span: Span,
        out: &mut Vec<Action>,
    ) {
        if span > Span::ZERO {
            let r = &mut self.ranks[rank as usize];
            r.begin(now, activity, call);
            r.doing = Doing::Busy;
            self.wake_rank(now + span, rank, out);
        }
    }

    /// Makes a rank wait for requests; requests that are already complete are removed.
    fn await_all(
        &mut self,
        now: Time,
        rank: u32,
        (activity, call): (Activity, Name),
        requests: impl IntoIterator<Item = u32>,
    ) {
        let left = self.await_open(requests);
        let r = &mut self.ranks[rank as usize];
        r.begin(now, activity, call);
        r.doing = Doing::Waiting(left);
    }

    /// Marks unfinished requests as awaited and removes finished requests. Returns the number of
    /// unfinished requests.
    fn await_open(&mut self, requests: impl IntoIterator<Item = u32>) -> u32 {
        let mut open = 0;
        for request in requests {
            if self.requests.get(request).done {
                self.requests.remove(request);
            } else {
                self.requests.get_mut(request).awaited = true;
                open += 1;
            }
        }
        open
    }

    /// Returns the first request of a rank that fits source, destination and tag, with its position
    /// in the list of open requests.
    fn find_open(&self, rank: u32, which: Which) -> Option<(usize, u32)> {
        let fits = |wanted: Option<u32>, is: Option<u32>| match (wanted, is) {
            (Some(wanted), Some(is)) => wanted == is,
            _ => true,
        };
        let open = self.ranks[rank as usize].open.iter();
        open.copied().enumerate().find(|&(_, request)| {
            let (src, dst, tag) = match self.requests.get(request).of {
                Of::Send { to, tag, .. } => (Some(rank), Some(to), Some(tag)),
                Of::Receive(wanted, met) => {
                    (wanted.from.or(met.map(|m| m.0)), Some(rank), wanted.tag.or(met.map(|m| m.1)))
                }
            };
            let tags = match (which.tag, tag) {
                (Some(wanted), Some(is)) => wanted == is,
                _ => true,
            };
            fits(which.src, src) && fits(which.dst, dst) && tags
        })
    }

    fn take_open(&mut self, rank: u32, which: Which) -> Option<u32> {
        let (at, request) = self.find_open(rank, which)?;
        self.ranks[rank as usize].open.remove(at);
        Some(request)
    }

    /// Starts a collective call of a rank. Returns an error if another rank's call with this number
    /// has another kind or root.
    fn enter(&mut self, now: Time, rank: u32, call: Box<Call>) -> Result<(), String> {
        let r = &mut self.ranks[rank as usize];
        r.collectives += 1;
        let (number, kind, root) = (r.collectives, call.kind, call.root);
        r.begin(now, Activity::Collective, kind.name());
        r.doing = Doing::Collective { call, number, step: 0, open: 0 };
        let meeting = Meeting { kind, root, first: rank, left: 0 };
        let there = self.meetings.entry(number).or_insert(meeting);
        if (there.kind, there.root) == (kind, root) {
            return Ok(());
        }
        Err(format!(
            "collective call number {number} of rank {rank} is {} with root {root}, that of rank {} is \
             {} with root {}; all ranks must make the same collective calls in the same order",
            kind.name(),
            there.first,
            there.kind.name(),
            there.root,
        ))
    }

    /// Executes the next steps of a rank's collective call. Returns whether the call has ended.
    fn collective_goes_on(
        &mut self,
        now: Time,
        rank: u32,
        out: &mut Vec<Action>,
    ) -> Result<bool, String> {
        loop {
            let r = &mut self.ranks[rank as usize];
            let Doing::Collective { call, number, step, open: 0 } = &mut r.doing else {
                return Ok(false);
            };
            let (number, name) = (*number, call.kind.name());
            let ranks = self.config.program.ranks();
            let Some(next) = self.config.algorithms.step(call, rank, ranks, *step) else {
                let flops = call.flops;
                self.leave(number);
                let span = self.computing(flops);
                if span > Span::ZERO {
                    self.ranks[rank as usize].doing = Doing::Busy;
                    self.wake_rank(now + span, rank, out);
                }
                return Ok(span == Span::ZERO);
            };
            *step += 1;
            let mut requests = Vec::new();
            for from in next.receives {
                let wanted =
                    Wanted { communicator: number, from: Some(from), tag: Some(0), most: None };
                requests.push(self.receive(now, rank, wanted, out)?);
            }
            for (to, bytes) in next.sends {
                requests.extend(self.send(now, (rank, to), (number, 0), bytes, name, out));
            }
            let left = self.await_open(requests);
            if let Doing::Collective { open, .. } = &mut self.ranks[rank as usize].doing {
                *open = left;
            }
        }
    }

    fn leave(&mut self, number: u64) {
        let ranks = self.config.program.ranks();
        if let Some(meeting) = self.meetings.get_mut(&number) {
            meeting.left += 1;
            if meeting.left == ranks {
                self.meetings.remove(&number);
            }
        }
    }

    /// Marks a request as complete; the rank continues if this was the last request for which it
    /// waited.
    pub(super) fn complete(&mut self, request: u32) {
        let awaited = {
            let r = self.requests.get_mut(request);
            r.done = true;
            r.awaited
        };
        if !awaited {
            return;
        }
        let rank = self.requests.remove(request).rank;
        let left = match &mut self.ranks[rank as usize].doing {
            Doing::Waiting(left) | Doing::Collective { open: left, .. } => left,
            Doing::Next | Doing::Busy | Doing::Through => unreachable!("it waits for a request"),
        };
        *left -= 1;
        if *left == 0 {
            self.ready.push_back(rank);
        }
    }
}
