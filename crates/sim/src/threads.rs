//! One run on several threads: parts by racks, windows as long as the least delay of a cable, and a
//! barrier between two. See docs/internals/partitions.md and [`crate::parts`].

use crate::parts::lookahead;
use crate::plan::{Plan, Transport};
use crate::scenario::Scenario;
use crate::world::{Progress, RunError, SAMPLES, TRANSPORT_TIMERS, World};
use eastwest_engine::meeting::{Meeting, Watch};
use eastwest_engine::order::{Class, Key};
use eastwest_network::config::{RoutingConfig, Topology};
use eastwest_network::cut::{Cut, Mail, TOP};
use eastwest_types::{Span, Time};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

/// When parts pay. It decides how long a run takes, not what comes out.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// Flows left at which the rest is done in step, event by event: the end of the run is one event.
    pub last_flows: u64,
    /// Windows after which it is looked how many events they had.
    pub look: u64,
    /// Events within a window, on average, from which on parts pay.
    pub pays: u64,
    /// Events in step, by one thread, where it is fewer for a while.
    pub in_step: u64,
}

impl Default for Habits {
    fn default() -> Habits {
        Habits { last_flows: 100, look: 256, pays: 100, in_step: 20_000 }
    }
}

/// How a run on several threads ended.
pub enum Ended {
    /// With this world, as in one.
    Done(Box<World>),
    /// It has to be done in one, for this reason.
    InOne(String),
}

/// What a part tells the others between two windows.
#[derive(Clone, Copy)]
struct Report {
    /// Its next event, or the first of what it sends.
    next: Time,
    /// When it next has to be in step with the others.
    step: Time,
    done: u64,
    events: u64,
    wrong: Option<&'static str>,
    last_open: Option<Time>,
    first_over: Option<Time>,
}

const NOTHING: Report = Report {
    next: Time::NEVER,
    step: Time::NEVER,
    done: 0,
    events: 0,
    wrong: None,
    last_open: None,
    first_over: None,
};

impl Report {
    fn and(self, other: Report) -> Report {
        Report {
            next: self.next.min(other.next),
            step: self.step.min(other.step),
            done: self.done + other.done,
            events: self.events + other.events,
            wrong: self.wrong.or(other.wrong),
            last_open: self.last_open.max(other.last_open),
            first_over: [self.first_over, other.first_over].into_iter().flatten().min(),
        }
    }

    /// Why the run cannot go on in parts.
    fn obstacle(&self) -> Option<&'static str> {
        // its slot may be the next connection's, and the order decides which
        let reused = match (self.first_over, self.last_open) {
            (Some(over), Some(open)) => over <= open,
            _ => false,
        };
        self.wrong.or(reused.then_some("connections end before others are opened"))
    }
}

/// What all threads share.
struct Exchange<'a> {
    worlds: Vec<Mutex<&'a mut World>>,
    meeting: Meeting,
    /// By parity of the window, sender and receiver.
    mail: Vec<Mutex<Mail>>,
    /// By parity and part.
    reports: Vec<Mutex<Report>>,
    lookahead: Span,
    until: Time,
    total: u64,
    habits: Habits,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Exchange<'_> {
    fn parts(&self) -> usize {
        self.worlds.len()
    }

    fn mail(&self, parity: usize, from: usize, to: usize) -> MutexGuard<'_, Mail> {
        locked(&self.mail[(parity * self.parts() + from) * self.parts() + to])
    }

    /// Hands over what a part has for others, and says how far it is.
    fn tell(&self, parity: usize, me: usize, world: &mut World) {
        let mut next = world.sources.winner().0.time();
        if let Some(cut) = &mut world.fabric.cut {
            next = next.min(std::mem::replace(&mut cut.first_out, Time::NEVER));
            for (to, out) in cut.out.iter_mut().enumerate() {
                std::mem::swap(&mut *self.mail(parity, me, to), out);
            }
        }
        let bound = if next == Time::NEVER { next } else { next + self.lookahead };
        let mut step = world.next_look_across(bound);
        if step == bound {
            step = Time::NEVER;
        }
        if me == 0 {
            step = step.min(world.next_sample());
        }
        let share = world.share.as_ref().expect("it is a part");
        *locked(&self.reports[parity * self.parts() + me]) = Report {
            next,
            step,
            done: share.done,
            events: world.events,
            wrong: share.wrong,
            last_open: share.last_open,
            first_over: share.first_over,
        };
    }

    /// What all parts have told.
    fn told(&self, parity: usize) -> Report {
        let all = &self.reports[parity * self.parts()..][..self.parts()];
        all.iter().fold(NOTHING, |sum, report| sum.and(*locked(report)))
    }

    /// Takes what others have for a part.
    fn receive(&self, parity: usize, me: usize, world: &mut World) {
        for from in 0..self.parts() {
            let mut mail = self.mail(parity, from, me);
            world.fabric.receive(&mut mail, &mut world.sources);
        }
    }
}

/// Why windows came to an end.
enum Windows {
    /// The rest is to be done in step.
    Last,
    /// The run is to be done in one.
    InOne(&'static str),
    Interrupted,
}

/// The windows of one part. Part 0 does for all what has to be done in step, and asks `look`.
fn windows(
    x: &Exchange,
    me: usize,
    mut look: Option<&mut dyn FnMut(&Progress) -> bool>,
) -> Windows {
    let _watch = Watch(&x.meeting);
    locked(&x.worlds[me]).begin();
    let (mut parity, mut count, mut events) = (0, 0, 0);
    loop {
        parity ^= 1;
        let mut world = locked(&x.worlds[me]);
        x.tell(parity, me, &mut world);
        drop(world);
        if !x.meeting.meet() {
            return Windows::Interrupted;
        }
        let all = x.told(parity);
        let mut world = locked(&x.worlds[me]);
        x.receive(parity, me, &mut world);
        if let Some(why) = all.obstacle() {
            return Windows::InOne(why);
        }
        if all.next > x.until || all.done + x.habits.last_flows >= x.total {
            return Windows::Last;
        }
        count += 1;
        // what is to be done in step now: events up to a time, at most so many
        let mut step = (all.step <= all.next).then_some((all.step, u64::MAX));
        if count % x.habits.look == 0 {
            let sparse = all.events - events < x.habits.pays * x.habits.look;
            if sparse && count == x.habits.look {
                return Windows::InOne("too little happens at one time");
            }
            if sparse {
                step = Some((x.until, x.habits.in_step));
            }
            events = all.events;
            if let Some(look) = &mut look
                && !look(&Progress {
                    events: all.events,
                    done: (all.done, x.total),
                    ..world.progress()
                })
            {
                x.meeting.abandon();
                return Windows::Interrupted;
            }
        }
        let end = (all.next + x.lookahead).min(all.step).min(Time(x.until.0 + 1));
        let Some((until, most)) = step else {
            if world.run_window(end).is_err() {
                world.go_wrong("a part cannot go on");
            }
            continue;
        };
        drop(world);
        if !x.meeting.meet() {
            return Windows::Interrupted;
        }
        if me == 0 {
            let mut guards: Vec<_> = x.worlds.iter().map(locked).collect();
            let mut worlds: Vec<&mut World> =
                guards.iter_mut().map(|guard| &mut ***guard).collect();
            in_step(&mut worlds, x, (until, most), x.total - x.habits.last_flows);
        }
        if !x.meeting.meet() {
            return Windows::Interrupted;
        }
    }
}

/// Carries out the events of all parts up to and including `until`, at most so many, or until so many
/// flows are done, in the order of one run. Returns the last event, if the flows are done.
fn in_step(
    worlds: &mut [&mut World],
    x: &Exchange,
    (until, most): (Time, u64),
    flows: u64,
) -> Option<(Key, u32)> {
    let (mut last, mut count) = (None, 0);
    for world in worlds.iter_mut() {
        world.until = x.until;
        world.share.as_mut().expect("it is a part").in_step = true;
    }
    loop {
        let done: u64 = worlds.iter().map(|w| w.share.as_ref().expect("a part").done).sum();
        let wrong = worlds.iter().any(|w| w.share.as_ref().expect("a part").wrong.is_some());
        if wrong || count >= most {
            last = None;
            break;
        }
        count += 1;
        let firsts = worlds.iter_mut().enumerate().map(|(part, w)| {
            let first = w.sources.winner();
            // a promise goes before the event that it is about, which is taken along
            (w.sources.order(first), w.fabric.promised(first.1).is_none(), part, first)
        });
        if done >= flows {
            break;
        }
        let (.., part, first) = firsts.min().expect("there are parts");
        let sample = Key::new(worlds[0].next_sample(), Class::Sample);
        if sample < first.0 && sample.time() <= until {
            sample_all(worlds, sample.time());
            continue;
        }
        if first.0.time() > until {
            last = None;
            break;
        }
        last = Some(first);
        // a promised delivery is an event of two parts: first comes that of the receiver
        if let Some((number, owner)) = worlds[part].fabric.promised(first.1) {
            let handed = |w: &World| w.fabric.links[first.1 as usize].counters.packets as u32;
            while handed(worlds[owner]) <= number && worlds[owner].sources.winner() == first {
                one_event(worlds, owner, first.1);
            }
        }
        one_event(worlds, part, first.1);
    }
    for world in worlds.iter_mut() {
        world.share.as_mut().expect("it is a part").in_step = false;
    }
    last
}

/// Carries out the next event of a part, and hands over at once what comes of it.
fn one_event(worlds: &mut [&mut World], part: usize, source: u32) {
    let links = worlds[part].fabric.links.len() as u32;
    if source == links + TRANSPORT_TIMERS
        && let Some(end) = worlds[part].timer_across()
    {
        let cut = worlds[part].fabric.cut.as_ref().expect("it is a part");
        let other = cut.part_of(worlds[part].stack.endpoint(end.peer()).local());
        if let Ok([this, other]) = worlds.get_disjoint_mut([part, other]) {
            this.stack.mirror(end.peer(), &other.stack);
        }
    }
    let world = &mut *worlds[part];
    let over = world.stack.has_ended();
    if world.stretch::<false>(world.events + 1).is_err() {
        world.go_wrong("a part cannot go on");
    }
    world.promise();
    world.check_late();
    let now = world.now;
    if !over && world.stack.has_ended() {
        world.share.as_mut().expect("it is a part").first_over = Some(now);
    }
    let cut = world.fabric.cut.as_mut().expect("it is a part");
    cut.first_out = Time::NEVER;
    let mut out = std::mem::take(&mut cut.out);
    for (mail, other) in out.iter_mut().zip(worlds.iter_mut()) {
        other.fabric.receive(mail, &mut other.sources);
    }
    worlds[part].fabric.cut.as_mut().expect("it is a part").out = out;
}

/// Takes a sample of all parts.
fn sample_all(worlds: &mut [&mut World], now: Time) {
    let rest = worlds.iter().all(|world| world.at_rest());
    for world in worlds.iter_mut() {
        let last = (Key::new(now, Class::Sample), 0);
        world.fabric.count_gone(last, &world.sources);
    }
    let (first, others) = worlds.split_first_mut().expect("there are parts");
    for (other, part) in others.iter_mut().zip(1u8..) {
        first.fabric.swap_links(&mut other.fabric, part);
    }
    first.records.sample(&first.fabric, now);
    first.events += 1;
    for (other, part) in others.iter_mut().zip(1u8..) {
        first.fabric.swap_links(&mut other.fabric, part);
    }
    if rest {
        first.go_wrong("nothing is left to happen");
    }
}

/// The part of every node, if there are racks or pods to divide.
fn divide(topology: &Topology, parts: usize) -> Option<Vec<u8>> {
    let part = |unit: u32, units: u32| (unit as usize * parts / units as usize) as u8;
    match *topology {
        Topology::LeafSpine { leaves, hosts_per_leaf, spines, .. } => {
            let hosts = (0..leaves * hosts_per_leaf).map(|h| part(h / hosts_per_leaf, leaves));
            let switches = (0..leaves).map(|leaf| part(leaf, leaves));
            Some(hosts.chain(switches).chain((0..spines).map(|_| TOP)).collect())
        }
        Topology::FatTree { k, hosts_per_edge, .. } => {
            let half = k / 2;
            let hosts = (0..k * half * hosts_per_edge).map(|h| part(h / hosts_per_edge / half, k));
            let switches = (0..2).flat_map(|_| (0..k * half).map(|s| part(s / half, k)));
            Some(hosts.chain(switches).chain((0..half * half).map(|_| TOP)).collect())
        }
        _ => None,
    }
}

/// Racks or pods of a fabric.
fn units(topology: &Topology) -> u32 {
    match *topology {
        Topology::LeafSpine { leaves, .. } => leaves,
        Topology::FatTree { k, .. } => k,
        _ => 0,
    }
}

/// What a world has that is not done in parts.
fn obstacle(plan: &Plan) -> Option<&'static str> {
    let fabric = &plan.fabric;
    let listed =
        |w: &crate::plan::WorkloadPlan| w.workload.listed_flows().is_some() && !w.background;
    let measure = &plan.measure;
    [
        (units(&fabric.topology) < 2, "its fabric has no racks or pods to divide"),
        (!plan.workloads.iter().all(listed), "a workload answers to what arrives, or has no end"),
        (
            plan.workloads.iter().any(|w| w.transport != Transport::Tcp),
            "it uses another transport than TCP",
        ),
        (fabric.dcb.is_on(), "its switches pause and notify each other"),
        (!fabric.faults.is_empty(), "faults change its links"),
        (fabric.routing != RoutingConfig::Ecmp, "its routes are not those of ECMP"),
        (fabric.reference_ports, "its ports are those of reference"),
        (!measure.capture.ports.is_empty(), "packets are captured"),
        (!measure.flow_parts.is_empty(), "what every packet meets on its way is kept"),
        (!measure.tcp_trace.is_empty(), "senders are traced"),
    ]
    .into_iter()
    .find_map(|(is, why)| is.then_some(why))
}

/// Runs a scenario on so many threads.
pub fn run(
    scenario: &Scenario,
    threads: usize,
    habits: Habits,
    look: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Ended, RunError> {
    let in_one = |why: &str| Ok(Ended::InOne(why.to_owned()));
    let plan = || Plan::new(scenario).map_err(|reasons| RunError::Limit(reasons.join("; ")));
    let first = plan()?;
    if let Some(why) = obstacle(&first) {
        return in_one(why);
    }
    let parts = threads.min(units(&first.fabric.topology) as usize).min(usize::from(TOP) - 1);
    let Some(part_of) = divide(&first.fabric.topology, parts).filter(|_| parts > 1) else {
        return in_one("there is one thread");
    };
    let total = first.workloads.iter().filter_map(|w| w.workload.listed_flows()).sum();
    let mut worlds = vec![World::new(first).map_err(RunError::Limit)?];
    while worlds.len() < parts {
        worlds.push(World::new(plan()?).map_err(RunError::Limit)?);
    }
    let (lookahead, until) = (lookahead(&worlds[0]), worlds[0].until);
    let tcp = worlds[0].stack.config();
    if lookahead == Span::ZERO || tcp.min_rto.min(tcp.initial_rto) <= lookahead {
        return in_one("its cables have no delay, or more than its timeouts");
    }
    if !worlds[0].fabric.can_be_divided() {
        return in_one("its ports look at packets after they have been enqueued");
    }
    let background: Vec<bool> = worlds[0].drivers.iter().map(|d| d.background).collect();
    for (world, part) in worlds.iter_mut().zip(0u8..) {
        world.become_part();
        world.fabric.become_part(Cut::new(part, parts, part_of.clone()));
    }
    let x = Exchange {
        worlds: worlds.iter_mut().map(Mutex::new).collect(),
        meeting: Meeting::new(parts),
        mail: (0..2 * parts * parts).map(|_| Mutex::default()).collect(),
        reports: (0..2 * parts).map(|_| Mutex::new(NOTHING)).collect(),
        lookahead,
        until: until.min(Time(Time::NEVER.0 - 1)),
        total,
        habits,
    };
    let ended = thread::scope(|scope| {
        for me in 1..parts {
            let x = &x;
            if let Err(e) = thread::Builder::new().spawn_scoped(scope, move || windows(x, me, None))
            {
                x.meeting.abandon();
                return Err(RunError::Limit(format!("no thread could be started: {e}")));
            }
        }
        Ok(windows(&x, 0, Some(look)))
    })?;
    match ended {
        Windows::Interrupted => return Err(RunError::Interrupted),
        Windows::InOne(why) => return in_one(why),
        Windows::Last => {}
    }
    let mut guards: Vec<_> = x.worlds.iter().map(locked).collect();
    let mut all: Vec<&mut World> = guards.iter_mut().map(|guard| &mut ***guard).collect();
    let done: u64 = all.iter().map(|w| w.share.as_ref().expect("a part").done).sum();
    if done >= total {
        return in_one("the last flows ended in one window");
    }
    let last = in_step(&mut all, &x, (x.until, u64::MAX), total);
    let said = all.iter().map(|w| {
        let share = w.share.as_ref().expect("it is a part");
        let (last_open, first_over) = (share.last_open, share.first_over);
        Report { wrong: share.wrong, last_open, first_over, ..NOTHING }
    });
    if let Some(why) = said.fold(NOTHING, Report::and).obstacle() {
        return in_one(why);
    }
    if last.is_none() && all.iter_mut().all(|w| w.sources.winner().0 == Key::NEVER) {
        return in_one("nothing is left to happen");
    }
    let last = last.unwrap_or((Key::new(x.until, Class::Change), u32::MAX));
    for world in all {
        world.note_losses(Time::NEVER);
        world.fabric.count_gone(last, &world.sources);
    }
    drop(guards);
    drop(x);
    let first = worlds.remove(0);
    let mut world = first.unite(worlds, last);
    world.until = until;
    for (driver, background) in world.drivers.iter_mut().zip(background) {
        driver.background = background;
    }
    let _ = SAMPLES;
    Ok(Ended::Done(Box::new(world)))
}
