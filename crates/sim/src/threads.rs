//! One run on several threads: the fabric is divided while there is much to do in it, and put together
//! again for whatever looks at all of it. See docs/internals/partitions.md.

use crate::plan::Plan;
use crate::world::{RunError, SAMPLES, World};
use eastwest_engine::clocks::Watch;
use eastwest_engine::order::Key;
use eastwest_measure::events::{EventRow, What};
use eastwest_network::config::QueueConfig;
use eastwest_network::cut::LostIn;
use eastwest_network::fabric::Fabric;
use eastwest_network::parts::{Division, Exchange, LEADER, Part, divide, unite};
use eastwest_types::{Span, Time};
use eastwest_workload::Workload;
use std::thread;

/// When a run is divided, and for how long. It decides how long a run takes, not what comes out.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// Events in one, before it is looked whether parts would pay.
    pub taste: u64,
    /// Events in one where they would not.
    pub alone: u64,
    /// Events of the first part before all are put together and the caller is asked.
    pub together: u64,
    /// Events within a lookahead from which on parts pay.
    pub pays: u64,
    /// Events in one after threads had to wait for cores; each time in a row twice as many.
    pub patience: u64,
}

impl Default for Habits {
    fn default() -> Habits {
        Habits { taste: 1 << 14, alone: 1 << 16, together: 1 << 21, pays: 150, patience: 1 << 20 }
    }
}

/// Events in one between two times in parts, so that whoever wanted to see the whole has seen it.
const BETWEEN: u64 = 1 << 6;
/// Events in one at most after threads had to wait for cores.
const MOST_PATIENCE: u64 = 1 << 26;
/// Steps of the first part after which it looks whether there is still enough to do.
const STEPS_PER_LOOK: u32 = 64;

/// Why parts were put together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Together {
    /// The run is over.
    Over,
    /// Something has to see the whole.
    Seen,
    /// There is not enough to do any more.
    Sparse,
    /// Parts waited for cores, which others use.
    Busy,
}

/// A row of the table of events that waits for its place.
pub struct RowOfPart {
    /// The event that made it.
    pub event: (Key, u32),
    /// Of what one event sent, which it is about; 0 for others.
    pub number: u32,
    /// The row.
    pub row: EventRow,
}

/// Who simulates the switches of a run.
pub struct Team {
    division: Division,
    parts: Vec<Part>,
    /// When the run is divided.
    pub habits: Habits,
    /// Times that the fabric was divided.
    pub divided: u64,
    /// Events meanwhile, and in all.
    events: (u64, u64),
}

impl Team {
    /// For a run of this plan on so many threads, or why it has to be one.
    pub fn new(plan: &Plan, threads: usize) -> Result<Team, String> {
        if let Some(why) = obstacle(plan) {
            return Err(why.to_owned());
        }
        let build = || Fabric::build(&plan.fabric, plan.seed).map_err(|e| e.to_string());
        let first = build()?;
        let division = Division::new(&first, threads.max(2))?;
        let sources = World::sources(&first);
        let mut parts = vec![Part::new(first, plan.seed, sources)];
        while parts.len() + 1 < division.parts() {
            parts.push(Part::new(build()?, plan.seed, sources));
        }
        Ok(Team { division, parts, habits: Habits::default(), divided: 0, events: (0, 0) })
    }

    /// Threads in use where there is enough to do.
    pub fn threads(&self) -> usize {
        self.division.parts()
    }

    /// How a run that is over was simulated, in a few words.
    pub fn note(&self) -> String {
        match self.divided {
            0 => "one thread: there was not enough to do at one time for more".to_owned(),
            _ => {
                let (parted, all) = self.events;
                let percent = 100 * parted / all.max(1);
                format!("{} threads, for {percent} % of all events", self.threads())
            }
        }
    }

    /// Whether so many events in so much time are worth several threads.
    fn pays(&self, events: u64, time: Span) -> bool {
        let wanted = u128::from(self.habits.pays) * u128::from(time.0);
        u128::from(events) * u128::from(self.division.lookahead().0) >= wanted
    }
}

/// What a plan asks for that is not done in parts.
fn obstacle(plan: &Plan) -> Option<&'static str> {
    let fabric = &plan.fabric;
    let own = |queue: &QueueConfig| matches!(queue, QueueConfig::Custom(_));
    let frames = |w: &Workload| matches!(w, Workload::Ethernet(_));
    [
        (fabric.dcb.is_on(), "its switches pause and notify each other"),
        (!fabric.faults.is_empty(), "faults change its links while it runs"),
        (own(&fabric.switch_queue) || own(&fabric.host_queue), "it has a queue of your own"),
        (!plan.measure.capture.ports.is_empty(), "packets are captured"),
        (plan.tcp.small_queues.on, "its senders look into the card of their host"),
        (plan.workloads.iter().any(|w| frames(&w.workload)), "it sends frames without transport"),
    ]
    .into_iter()
    .find_map(|(is, why)| is.then_some(why))
}

impl World {
    /// As [`World::run`], on the threads of a team.
    pub fn run_with(
        &mut self,
        team: &mut Team,
        look: &mut dyn FnMut(&mut World) -> bool,
    ) -> Result<(), RunError> {
        self.begin();
        let habits = team.habits;
        let (mut most, mut patience, mut resume) = (habits.taste, habits.patience, 0);
        loop {
            let (time, events) = (self.now, self.events);
            let mut over = match self.tracer.is_on() {
                true => self.stretch::<true>(events + most)?,
                false => self.stretch::<false>(events + most)?,
            };
            let goes_on = most == BETWEEN || team.pays(self.events - events, self.now.since(time));
            most = habits.alone;
            if !over && goes_on && self.events >= resume {
                match self.run_in_parts(team)? {
                    Together::Over => over = true,
                    Together::Seen => (most, patience) = (BETWEEN, habits.patience),
                    Together::Sparse => {}
                    Together::Busy => {
                        resume = self.events + patience;
                        patience = (2 * patience).min(MOST_PATIENCE);
                    }
                }
            }
            if over {
                team.events.1 = self.events;
                self.fabric.settle(self.now);
                return Ok(());
            }
            self.note_losses(Time::NEVER);
            if !look(self) {
                return Err(RunError::Interrupted);
            }
        }
    }

    /// Goes on in parts as long as that is possible and pays.
    fn run_in_parts(&mut self, team: &mut Team) -> Result<Together, RunError> {
        let before = self.events;
        self.note_losses(Time::NEVER);
        let Team { division, parts, habits, .. } = team;
        let exchange = Exchange::new(division, self.now);
        let whole = (&mut self.fabric, &mut self.sources);
        divide(division, &exchange, self.now, whole, parts);
        let started = thread::scope(|scope| {
            for (part, number) in parts.iter_mut().zip(1..) {
                let exchange = &exchange;
                let follow = move || part.follow(number, exchange);
                if let Err(e) = thread::Builder::new().spawn_scoped(scope, follow) {
                    exchange.clocks().abandon();
                    return Err(RunError::Limit(format!("no thread could be started: {e}")));
                }
            }
            Ok(self.lead(&exchange, habits))
        });
        let ended = started?;
        team.divided += 1;
        let united = unite(division, &exchange, (&mut self.fabric, &mut self.sources), parts);
        self.events = self.events + united.events - united.doubled;
        team.events.0 += self.events - before;
        self.keep_losses(united.losses);
        self.put_rows_in_order();
        ended
    }

    /// What the first part does: everything at hosts.
    fn lead(&mut self, exchange: &Exchange, habits: &Habits) -> Result<Together, RunError> {
        let clocks = exchange.clocks();
        let _watch = Watch(clocks);
        let samples = self.sources.key(self.fabric.links.len() as u32 + SAMPLES).time();
        let end = Time(samples.0.min(self.until.0 + 1));
        let most = self.events + habits.together;
        let (mut steps, mut looked, mut slept) = (0, self.events, 0);
        loop {
            let now = clocks.of(LEADER);
            let bound = exchange.bound(LEADER).min(end);
            if bound <= now {
                if now == end || !clocks.wait(LEADER, || exchange.bound(LEADER) > now) {
                    exchange.stop(None);
                    return Ok(Together::Seen);
                }
                continue;
            }
            exchange.receive(LEADER, &mut self.fabric, &mut self.sources);
            let limit = bound.min(now + exchange.step());
            self.fabric.let_run_before(limit);
            let ended = self.stretch::<true>(u64::MAX);
            self.keep_losses_of_parts();
            exchange.send(LEADER, &mut self.fabric);
            if ended != Ok(false) {
                let last = self.fabric.last_of_part();
                clocks.advance(LEADER, last.map_or(now, |last| last.event.0.time()));
                exchange.stop(last);
                return ended.map(|_| Together::Over);
            }
            clocks.advance(LEADER, limit);
            steps += 1;
            if steps == STEPS_PER_LOOK {
                // half of the events, steps of a quarter of the lookahead, and half as a margin
                let few = habits.pays * u64::from(STEPS_PER_LOOK) / 16;
                let why = if clocks.slept() - slept > u64::from(STEPS_PER_LOOK) / 2 {
                    Some(Together::Busy)
                } else if self.events - looked <= few {
                    Some(Together::Sparse)
                } else {
                    (self.events >= most).then_some(Together::Seen)
                };
                if let Some(why) = why {
                    exchange.stop(None);
                    return Ok(why);
                }
                (steps, looked, slept) = (0, self.events, clocks.slept());
            }
        }
    }

    /// Makes rows of what was lost in any part, as far as it is known.
    pub(crate) fn keep_losses_of_parts(&mut self) {
        let losses = self.fabric.take_losses_of_part();
        self.keep_losses(losses);
    }

    fn keep_losses(&mut self, losses: Vec<LostIn>) {
        for LostIn { event, number, lost } in losses {
            let row = self.row_of(&lost);
            self.rows_of_parts.push(RowOfPart { event, number, row });
        }
    }

    /// The rows of all parts go into the table as they would have in one.
    fn put_rows_in_order(&mut self) {
        let mut rows = std::mem::take(&mut self.rows_of_parts);
        // drops come last at one time, in the order of events; what TCP does is in its order already
        rows.sort_by_key(|r| match r.row.what {
            What::Drop => (r.row.at, Some((self.sources.order(r.event), r.number))),
            _ => (r.row.at, None),
        });
        rows.into_iter().for_each(|r| self.records.events.push(r.row));
    }
}
