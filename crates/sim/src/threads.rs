//! One run on several threads: parts by racks, windows as long as the least delay of a cable, and a
//! barrier between two. See docs/internals/partitions.md and [`crate::parts`].

mod pace;
mod step;
mod watch;
mod windows;

pub use pace::{Clock, Spans};
pub use watch::{PartsNow, Watcher, Wish};

use crate::parts::lookahead;
use crate::plan::{Plan, Transport, WorkloadPlan};
use crate::results::Results;
use crate::world::{Progress, RunError, World};
use eastwest_engine::order::{Class, Key};
use eastwest_network::config::PortSet;
use eastwest_network::energy::LinkPolicy;
use eastwest_network::partition::{CORE, Partition};
use eastwest_network::queue::QueueConfig;
use eastwest_network::routing::{Ecmp, RoutingConfig};
use eastwest_network::topology::Topology;
use eastwest_types::{Span, Time};
use pace::Pace;
use serde::{Deserialize, Serialize};
use std::thread;
use std::time::Duration;
use step::in_step;
use windows::{Exchange, Lead, Report, Windows, windows};

/// How a run is carried out in parts. It decides how long a run takes, not what comes out.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// Flows left at which the rest is done in step, event by event: the end of the run is one event.
    pub last_flows: u64,
    /// Between two looks at the caller's wishes.
    pub look_every: Duration,
    /// After so many windows it is looked whether they had so many events on average; with fewer the run
    /// is done in one.
    pub pays: (u64, u64),
    /// How long it is tried whether all threads together are faster than one; without, they are never
    /// one after the other.
    pub spans: Option<Spans>,
}

impl Default for Habits {
    fn default() -> Habits {
        let spans = Some(Spans::default());
        let look_every = Duration::from_millis(20);
        Habits { last_flows: 100, look_every, pays: (1024, 400), spans }
    }
}

/// How a run on several threads ended.
pub enum Ended {
    /// As in one.
    Done(Box<Finished>),
    /// It has to be done in one, for this reason.
    InOne(&'static str),
}

/// A run that was done in parts: its results can be asked for, but it does not go on.
pub struct Finished {
    world: World,
    parallel: Parallel,
}

/// What happened in a run in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parallel {
    /// Threads used, of those that were asked for: there are no more than racks or pods.
    pub threads: usize,
    /// Windows in which all parts did what does not concern the others, and of these those that one
    /// thread did for all, since that was faster.
    pub windows: u64,
    /// See [`Parallel::windows`].
    pub alone: u64,
    /// How often a thread waited so long for others that it slept.
    pub sleeps: u64,
}

impl Finished {
    /// What came out, bit for bit as on one thread.
    pub fn into_results(self) -> Results {
        Results::new(self.world)
    }

    /// How far it came.
    pub fn progress(&self) -> Progress {
        self.world.progress()
    }

    /// How it was done.
    pub fn parallel(&self) -> Parallel {
        self.parallel
    }
}

/// The part of every node, if there are racks or pods to divide.
fn divide(topology: &Topology, parts: usize) -> Option<Vec<u8>> {
    let part = |unit: u32, units: u32| (unit as usize * parts / units as usize) as u8;
    match *topology {
        Topology::LeafSpine { leaves, hosts_per_leaf, spines, .. } => {
            let hosts = (0..leaves * hosts_per_leaf).map(|h| part(h / hosts_per_leaf, leaves));
            let switches = (0..leaves).map(|leaf| part(leaf, leaves));
            Some(hosts.chain(switches).chain((0..spines).map(|_| CORE)).collect())
        }
        Topology::FatTree { k, hosts_per_edge, .. } => {
            let half = k / 2;
            let hosts = (0..k * half * hosts_per_edge).map(|h| part(h / hosts_per_edge / half, k));
            let switches = (0..2).flat_map(|_| (0..k * half).map(|s| part(s / half, k)));
            Some(hosts.chain(switches).chain((0..half * half).map(|_| CORE)).collect())
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

/// Why a plan cannot be run in parts, as far as that is known beforehand: in words that go on after
/// "one thread, since".
pub fn obstacle(plan: &Plan) -> Option<&'static str> {
    let (fabric, measure) = (&plan.fabric, &plan.measure);
    let listed = |w: &WorkloadPlan| w.workload.listed_flows().is_some() && !w.background;
    let custom = |queue: &QueueConfig| matches!(queue, QueueConfig::Custom(_));
    let awake = |policy: LinkPolicy| !policy.saves_power();
    [
        (units(&fabric.topology) < 2, "the fabric has no two racks or pods"),
        (!plan.workloads.iter().all(listed), "a workload answers to what arrives, or has no end"),
        (
            plan.workloads.iter().any(|w| w.transport != Transport::Tcp),
            "a workload uses another transport than TCP",
        ),
        (fabric.dcb.is_on(), "switches pause and notify each other"),
        (!fabric.faults.is_empty(), "faults change links"),
        (fabric.routing != RoutingConfig::Ecmp(Ecmp), "routes are not those of ECMP"),
        (fabric.reference_ports, "ports are those of reference"),
        (custom(&fabric.switch_queue) || custom(&fabric.host_queue), "a queue is an extension"),
        (
            !(awake(fabric.energy.host.policy) && awake(fabric.energy.fabric.policy)),
            "links save energy",
        ),
        (!measure.capture.ports.is_empty(), "packets are captured"),
        (!measure.flow_parts.is_empty(), "times of flows are split into parts"),
        (!measure.tcp_trace.is_empty(), "senders are traced"),
        (!measure.flow_samples.senders.is_empty(), "throughput of connections is sampled"),
        (measure.ports != PortSet::default(), "ports are measured packet for packet"),
        (measure.pauses.ports != PortSet::default(), "pauses are logged"),
    ]
    .into_iter()
    .find_map(|(is, why)| is.then_some(why))
}

/// All parts of a run, each a world of its own, and what they have in common.
#[derive(Serialize, Deserialize)]
pub struct Parts {
    worlds: Vec<World>,
    lookahead: Span,
    /// Where the run ends at the latest.
    until: Time,
    /// Flows in all.
    total: u64,
    /// Which workloads the run does not wait for.
    background: Vec<bool>,
}

impl Parts {
    /// How far they are.
    pub fn now(&self) -> Time {
        self.worlds.iter().map(|world| world.site.network.now).max().unwrap_or(Time::ZERO)
    }

    pub(crate) fn first(&self) -> &World {
        self.worlds.first().expect("there are parts")
    }

    pub(crate) fn worlds_mut(&mut self) -> &mut [World] {
        &mut self.worlds
    }

    /// Divides the run that `plan` makes, the same at each call, into parts; or returns why that cannot be.
    fn new(
        plan: &dyn Fn() -> Result<Plan, RunError>,
        threads: usize,
    ) -> Result<Result<Parts, &'static str>, RunError> {
        let first = plan()?;
        if let Some(why) = obstacle(&first) {
            return Ok(Err(why));
        }
        let parts = threads.min(units(&first.fabric.topology) as usize).min(usize::from(CORE) - 1);
        let Some(part_of) = divide(&first.fabric.topology, parts).filter(|_| parts > 1) else {
            return Ok(Err("one thread was asked for"));
        };
        let total = first.workloads.iter().filter_map(|w| w.workload.listed_flows()).sum();
        let first = World::new(first).map_err(RunError::Limit)?;
        let (lookahead, until) = (lookahead(&first), first.site.until);
        if lookahead == Span::ZERO
            || first.site.transports.tcp.stack.shortest_timeout() <= lookahead
        {
            return Ok(Err("cables have no delay, or one beyond the timeouts of TCP"));
        }
        if !first.site.network.fabric.can_be_partitioned() {
            return Ok(Err("ports decide later than when a packet comes, or have several queues"));
        }
        let background = first.site.drivers.all.iter().map(|d| d.background).collect();
        let mut worlds = vec![first];
        while worlds.len() < parts {
            worlds.push(World::new(plan()?).map_err(RunError::Limit)?);
        }
        let order = worlds[0].site.network.sources.order();
        for (world, part) in worlds.iter_mut().zip(0u8..) {
            world.become_part();
            world.site.network.fabric.become_part(Partition::new(
                part,
                parts,
                part_of.clone(),
                order,
            ));
        }
        Ok(Ok(Parts { worlds, lookahead, until, total, background }))
    }

    /// Puts all together after this event, which was the last.
    fn finish(mut self, last: (Key, u32), parallel: Parallel) -> Finished {
        for world in &mut self.worlds {
            world.note_losses(Time::NEVER);
            world.site.network.fabric.count_remote(last, world.site.network.sources.order());
        }
        let first = self.worlds.remove(0);
        let mut world = first.unite(self.worlds, last);
        world.site.until = self.until;
        for (driver, background) in world.site.drivers.all.iter_mut().zip(self.background) {
            driver.background = background;
        }
        Finished { world, parallel }
    }
}

/// Runs on so many threads, of which the caller's is one, what `plan` makes, each time the same. `watcher` is
/// told now and then; where it wants no more the run stops with [`RunError::Interrupted`].
pub fn run(
    plan: &dyn Fn() -> Result<Plan, RunError>,
    threads: usize,
    habits: Habits,
    clock: Clock,
    watcher: &mut dyn Watcher,
) -> Result<Ended, RunError> {
    match Parts::new(plan, threads)? {
        Ok(parts) => go_on(parts, habits, clock, watcher),
        Err(why) => Ok(Ended::InOne(why)),
    }
}

/// Goes on with parts that were kept, on as many threads.
pub fn resume(
    parts: Parts,
    habits: Habits,
    clock: Clock,
    watcher: &mut dyn Watcher,
) -> Result<Ended, RunError> {
    go_on(parts, Habits { pays: (0, 0), ..habits }, clock, watcher)
}

fn go_on(
    mut parts: Parts,
    habits: Habits,
    clock: Clock,
    watcher: &mut dyn Watcher,
) -> Result<Ended, RunError> {
    let all = Report::of_all(&parts.worlds.iter_mut().collect::<Vec<_>>());
    let mut lead = Lead {
        watcher,
        look_every: habits.look_every,
        clock,
        looked: clock(),
        until: parts.until,
        pays: habits.pays,
        total: parts.total,
        background: parts.background.clone(),
        lookahead: parts.lookahead,
        pace: habits.spans.map(|spans| Pace::new(clock, spans, all.events)),
        wish: Wish { go_on: true, keep: false },
        windows: 0,
        alone: 0,
        events: all.events,
    };
    let until = parts.until.min(Time(Time::NEVER.0 - 1));
    let flows = parts.total - habits.last_flows.min(parts.total / 4);
    let (ended, sleeps) = together(&mut parts, until, flows, &mut lead)?;
    let last = match ended {
        Windows::Interrupted => return Err(RunError::Interrupted),
        Windows::InOne(_) if !lead.wish.go_on => return Err(RunError::Interrupted),
        Windows::InOne(why) => return Ok(Ended::InOne(why)),
        Windows::Last => last_event(&mut parts, until, &mut lead)?,
    };
    Ok(match last {
        Err(why) => Ended::InOne(why),
        Ok(last) => {
            let (threads, windows, alone) = (parts.worlds.len(), lead.windows, lead.alone);
            let parallel = Parallel { threads, windows, alone, sleeps };
            Ended::Done(Box::new(parts.finish(last, parallel)))
        }
    })
}

/// All windows on all threads; tells how often one slept.
fn together(
    parts: &mut Parts,
    until: Time,
    flows: u64,
    lead: &mut Lead,
) -> Result<(Windows, u64), RunError> {
    let x = Exchange::new(&mut parts.worlds, parts.lookahead, until, flows);
    thread::scope(|scope| {
        for me in 1..x.parts() {
            let x = &x;
            let part = thread::Builder::new().spawn_scoped(scope, move || windows(x, me, None));
            if let Err(e) = part {
                x.meeting.abandon();
                return Err(RunError::Limit(format!("no thread could be started: {e}")));
            }
        }
        Ok((windows(&x, 0, Some(lead)), x.meeting.slept()))
    })
}

/// Windows that are done in step between two looks at the caller's wishes.
const WINDOWS_IN_STEP: u64 = 1024;

/// Does the rest in step: the last event of the run, or why it has to be done in one.
fn last_event(
    parts: &mut Parts,
    until: Time,
    lead: &mut Lead,
) -> Result<Result<(Key, u32), &'static str>, RunError> {
    let (slice, total) = (Span(parts.lookahead.0.saturating_mul(WINDOWS_IN_STEP)), parts.total);
    let mut all: Vec<&mut World> = parts.worlds.iter_mut().collect();
    if Report::of_all(&all).done >= total {
        return Ok(Err("the last flows ended at nearly one time"));
    }
    loop {
        if lead.keep(&all).is_some() {
            return Err(RunError::Interrupted);
        }
        let next =
            all.iter_mut().map(|w| w.site.network.sources.winner().0.time()).min().unwrap_or(until);
        let end = Time(next.0.saturating_add(slice.0)).min(until);
        let last = in_step(&mut all, end, total);
        let report = Report::of_all(&all);
        if let Some(why) = report.obstacle() {
            return Ok(Err(why));
        }
        if let Some(last) = last {
            return Ok(Ok(last));
        }
        if all.iter_mut().all(|w| w.site.network.sources.winner().0 == Key::NEVER) {
            return Ok(Err("nothing is left to happen"));
        }
        if end == until {
            return Ok(Ok((Key::new(until, Class::Change), u32::MAX)));
        }
        if lead.look(&report, all[0].site.network.now).is_some() {
            return Err(RunError::Interrupted);
        }
    }
}
