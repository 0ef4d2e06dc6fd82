//! Windows: every part does what happens before their end, then all meet and exchange what they have for
//! each other.

use super::pace::{Clock, Done, Pace};
use super::step::in_step;
use super::watch::{PartsNow, Watcher, Wish};
use crate::world::{Progress, World};
use eastwest_engine::meeting::{Meeting, Watch};
use eastwest_network::partition::Mail;
use eastwest_types::{Span, Time};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a part tells the others between two windows.
#[derive(Clone, Copy)]
pub struct Report {
    /// Its next event, or the first of what it sends.
    next: Time,
    /// When it next has to be in step with the others.
    step: Time,
    pub done: u64,
    pub events: u64,
    /// Packet transmissions, as of a few windows ago.
    hops: u64,
    wrong: Option<&'static str>,
    last_open: Option<Time>,
    first_over: Option<Time>,
    /// One thread goes on with all parts.
    alone: bool,
}

impl Report {
    const NOTHING: Report = Report {
        next: Time::NEVER,
        step: Time::NEVER,
        done: 0,
        events: 0,
        hops: 0,
        wrong: None,
        last_open: None,
        first_over: None,
        alone: false,
    };

    /// What a part can say of itself.
    fn of(world: &World) -> Report {
        let share = world.share();
        Report {
            done: share.done,
            events: world.site.events - share.repeated,
            hops: share.hops,
            wrong: share.wrong,
            last_open: share.last_open,
            first_over: share.first_over,
            ..Report::NOTHING
        }
    }

    /// Returns the sum of the reports of all parts.
    pub fn of_all(worlds: &[&mut World]) -> Report {
        worlds.iter().fold(Report::NOTHING, |sum, world| sum.and(Report::of(world)))
    }

    fn and(self, other: Report) -> Report {
        Report {
            next: self.next.min(other.next),
            step: self.step.min(other.step),
            done: self.done + other.done,
            events: self.events + other.events,
            hops: self.hops + other.hops,
            wrong: self.wrong.or(other.wrong),
            last_open: self.last_open.max(other.last_open),
            first_over: [self.first_over, other.first_over].into_iter().flatten().min(),
            alone: self.alone || other.alone,
        }
    }

    /// Why the run cannot go on in parts.
    pub fn obstacle(&self) -> Option<&'static str> {
        // its slot may be the next connection's, and the order decides which
        let reused = match (self.first_over, self.last_open) {
            (Some(over), Some(open)) => over <= open,
            _ => false,
        };
        self.wrong.or(reused.then_some("connections end before others are opened"))
    }
}

/// What all threads share.
pub struct Exchange<'a> {
    worlds: Vec<Mutex<&'a mut World>>,
    pub meeting: Meeting,
    /// By parity of the window, sender and receiver.
    mail: Vec<Mutex<Mail>>,
    /// By parity and part.
    reports: Vec<Mutex<Report>>,
    lookahead: Span,
    until: Time,
    /// Flows after which the rest is done in step.
    flows: u64,
}

pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Exchange<'a> {
    /// Returns an exchange between these parts, which can run ahead of each other by `lookahead`.
    pub fn new(worlds: &'a mut [World], lookahead: Span, until: Time, flows: u64) -> Exchange<'a> {
        let parts = worlds.len();
        Exchange {
            worlds: worlds.iter_mut().map(Mutex::new).collect(),
            meeting: Meeting::new(parts),
            mail: (0..2 * parts * parts).map(|_| Mutex::default()).collect(),
            reports: (0..2 * parts).map(|_| Mutex::new(Report::NOTHING)).collect(),
            lookahead,
            until,
            flows,
        }
    }

    /// How many there are.
    pub fn parts(&self) -> usize {
        self.worlds.len()
    }

    /// All parts at once, for one thread while the others wait.
    pub fn with_all<R>(&self, f: impl FnOnce(&mut [&mut World]) -> R) -> R {
        let mut guards: Vec<_> = self.worlds.iter().map(locked).collect();
        let mut worlds: Vec<&mut World> = guards.iter_mut().map(|guard| &mut ***guard).collect();
        f(&mut worlds)
    }

    fn mail(&self, parity: usize, from: usize, to: usize) -> MutexGuard<'_, Mail> {
        locked(&self.mail[(parity * self.parts() + from) * self.parts() + to])
    }

    /// Hands over what a part has for others, and says how far it is.
    fn tell(&self, parity: usize, me: usize, world: &mut World, alone: bool) {
        let mut next = world.site.network.sources.winner().0.time();
        let cut = world.partition_mut();
        next = next.min(std::mem::replace(&mut cut.first_out, Time::NEVER));
        for (to, out) in cut.out.iter_mut().enumerate() {
            std::mem::swap(&mut *self.mail(parity, me, to), out);
        }
        let bound = if next == Time::NEVER { next } else { next + self.lookahead };
        let mut step = world.next_look_across(bound);
        if step == bound {
            step = Time::NEVER;
        }
        if me == 0 {
            step = step.min(world.next_sample());
        }
        *locked(&self.reports[parity * self.parts() + me]) =
            Report { next, step, alone, ..Report::of(world) };
    }

    /// What all parts have told.
    fn told(&self, parity: usize) -> Report {
        let all = &self.reports[parity * self.parts()..][..self.parts()];
        all.iter().fold(Report::NOTHING, |sum, report| sum.and(*locked(report)))
    }

    /// Takes what others have for a part.
    fn receive(&self, parity: usize, me: usize, world: &mut World) {
        for from in 0..self.parts() {
            let mut mail = self.mail(parity, from, me);
            world.site.network.fabric.receive(&mut mail, &mut world.site.network.sources);
        }
    }

    /// Whether windows come to an end here.
    fn ends(&self, all: &Report) -> Option<Windows> {
        if let Some(why) = all.obstacle() {
            return Some(Windows::InOne(why));
        }
        (all.next > self.until || all.done >= self.flows).then_some(Windows::Last)
    }

    /// Where the window ends that all parts are before.
    fn end(&self, all: &Report) -> Time {
        (all.next + self.lookahead).min(all.step).min(Time(self.until.0 + 1))
    }
}

/// Why windows came to an end.
pub enum Windows {
    /// The rest is to be done in step.
    Last,
    /// The run is to be done in one.
    InOne(&'static str),
    /// Somebody wants no more.
    Interrupted,
}

/// What the thread of part 0 does besides, for all.
pub struct Lead<'a> {
    /// Is told now and then how far the run is.
    pub watcher: &'a mut dyn Watcher,
    /// After so long, by this clock.
    pub look_every: Duration,
    pub clock: Clock<'a>,
    /// When it was asked last.
    pub looked: Duration,
    /// Where the run ends at the latest.
    pub until: Time,
    /// Windows and events so far, on average, from which on parts pay; less is done in one.
    pub pays: (u64, u64),
    /// Number of flows in the run.
    pub total: u64,
    /// What else is written down with all parts.
    pub background: Vec<bool>,
    pub lookahead: Span,
    /// Together or one after the other.
    pub pace: Option<Pace<'a>>,
    /// What the watcher wants, where all parts are needed for it.
    pub wish: Wish,
    /// Windows so far.
    pub windows: u64,
    /// Windows that one thread did for all parts.
    pub alone: u64,
    /// Events so far.
    pub events: u64,
}

impl Lead<'_> {
    fn is_alone(&mut self, x: &Exchange) -> bool {
        let (windows, events, sleeps) = (self.windows, self.events, x.meeting.slept());
        self.pace.as_mut().is_some_and(|pace| pace.is_alone(Done { events, windows, sleeps }))
    }

    /// After a window: whether, and how, windows come to an end.
    fn counts(&mut self, all: &Report, world: &World) -> Option<Windows> {
        self.windows += 1;
        self.events = all.events;
        if self.windows == self.pays.0 && all.events < self.pays.0 * self.pays.1 {
            return Some(Windows::InOne("too little happens within the delay of a cable"));
        }
        if self.pace.as_ref().is_some_and(Pace::is_hopeless) {
            return Some(Windows::InOne("several threads are no faster, as where cores are busy"));
        }
        self.look(all, world.site.network.now)
    }

    /// Lets the watcher look, if it is time.
    pub fn look(&mut self, all: &Report, simulated: Time) -> Option<Windows> {
        let now = (self.clock)();
        if self.wish.keep || now.saturating_sub(self.looked) < self.look_every {
            return None;
        }
        self.looked = now;
        let progress = Progress {
            now: simulated,
            until: self.until,
            done: (all.done, self.total),
            packet_hops: all.hops,
            events: all.events,
        };
        let wish = self.watcher.look(&progress);
        if wish.keep {
            self.wish = wish;
            return None;
        }
        (!wish.go_on).then_some(Windows::Interrupted)
    }

    /// Has all parts kept, if that is wanted; tells whether the run stops then.
    pub fn keep(&mut self, worlds: &[&mut World]) -> Option<Windows> {
        if !self.wish.keep {
            return None;
        }
        let worlds = worlds.iter().map(|world| &**world).collect();
        let (lookahead, until, total) = (self.lookahead, self.until, self.total);
        let background = &self.background;
        self.watcher.keep(&PartsNow { worlds, lookahead, until, total, background });
        self.wish.keep = false;
        (!self.wish.go_on).then_some(Windows::Interrupted)
    }
}

/// The windows of one part, on a thread of its own.
pub fn windows(x: &Exchange, me: usize, mut lead: Option<&mut Lead>) -> Windows {
    let _watch = Watch(&x.meeting);
    locked(&x.worlds[me]).begin();
    let mut parity = 0;
    loop {
        parity ^= 1;
        let mut world = locked(&x.worlds[me]);
        let alone = lead.as_mut().is_some_and(|lead| lead.is_alone(x) || lead.wish.keep);
        x.tell(parity, me, &mut world, alone);
        drop(world);
        if !x.meeting.meet() {
            return Windows::Interrupted;
        }
        let all = x.told(parity);
        let mut world = locked(&x.worlds[me]);
        x.receive(parity, me, &mut world);
        let ends = x.ends(&all).or_else(|| lead.as_mut()?.counts(&all, &world));
        if let Some(end) = ends {
            if x.ends(&all).is_none() {
                x.meeting.abandon(); // the others do not know
            }
            return end;
        }
        if !all.alone && all.step > all.next {
            run_window(&mut world, x.end(&all));
            continue;
        }
        drop(world);
        if !x.meeting.meet() {
            return Windows::Interrupted;
        }
        if let Some(lead) = &mut lead
            && let Some(end) = x.with_all(|worlds| on_one_thread(worlds, x, &all, lead))
        {
            x.meeting.abandon();
            return end;
        }
        if !x.meeting.meet() {
            return Windows::Interrupted;
        }
    }
}

fn run_window(world: &mut World, end: Time) {
    if world.run_window(end).is_err() {
        world.go_wrong("a part cannot go on");
    }
}

/// One thread does for all what has to be done in step, or, as long as that is better, all windows. Between
/// two of them nothing is on its way from one part to another, so that all can be kept.
fn on_one_thread(
    worlds: &mut [&mut World],
    x: &Exchange,
    first: &Report,
    lead: &mut Lead,
) -> Option<Windows> {
    let mut all = *first;
    loop {
        if let Some(end) = lead.keep(worlds) {
            return Some(end);
        }
        if all.step <= all.next {
            in_step(worlds, all.step.min(x.until), x.flows);
        } else {
            let end = x.end(&all);
            worlds.iter_mut().for_each(|world| run_window(world, end));
        }
        if !first.alone {
            return None;
        }
        for (me, world) in worlds.iter_mut().enumerate() {
            x.tell(0, me, world, false);
        }
        all = x.told(0);
        for (me, world) in worlds.iter_mut().enumerate() {
            x.receive(0, me, world);
        }
        if x.ends(&all).is_some() {
            return None; // that is found out by all, next
        }
        let end = lead.counts(&all, worlds[0]);
        lead.alone += 1;
        if end.is_some() || !lead.is_alone(x) {
            return end;
        }
    }
}
