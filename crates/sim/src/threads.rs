//! Parallel execution of one run (*partitioned* run). The fabric is partitioned by racks or pods
//! among threads. Each part runs in windows of simulated time as long as the smallest delay of a
//! cable (the lookahead), with a barrier between windows. docs/internals/partitions.md describes
//! the method; [`crate::parts`] contains the behaviour of one part.

mod beginning;
mod mode_chooser;
mod part_messages;
mod report;
mod step;
mod watch;
mod windows;

pub use mode_chooser::{Clock, TrialTimes};
pub use watch::{PartsSnapshot, Request, Watcher};

use crate::frame::Frame;
use crate::parts::{LONGEST_STREAM, lookahead};
use crate::plan::{Plan, Transport, WorkloadPlan};
use crate::results::Results;
use crate::world::{Progress, RunError, World};
use beginning::run_beginning;
use eastwest_engine::order::{Class, Key};
use eastwest_network::config::{FabricConfig, PortSet};
use eastwest_network::energy::LinkPolicy;
use eastwest_network::fabric::Fabric;
use eastwest_network::footprint::Sizes;
use eastwest_network::partition::{CORE, Partition};
use eastwest_network::queue::QueueConfig;
use eastwest_network::routing::{Ecmp, RoutingConfig};
use eastwest_network::topology::Topology;
use eastwest_types::{Span, Time};
use mode_chooser::ModeChooser;
use report::{PartReport, SLOT_IS_USED_AGAIN};
use serde::{Deserialize, Serialize};
use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;
use step::{deliver_lost_frames, in_step};
use windows::{Coordinator, Exchange, Windows, windows};

/// Options of a partitioned run. The options change the wall-clock time of the run, not the
/// results.
#[derive(Clone, Copy, Debug)]
pub struct ParallelOptions {
    /// Number of unfinished flows from which on the rest of the run is executed in step, event by
    /// event, to find the last event; at most a quarter of all flows.
    pub last_flows: u64,
    /// Wall-clock time between two calls of [`Watcher::on_progress`].
    pub check_interval: Duration,
    /// Number of windows after which the run is checked once, and the minimum mean number of events
    /// per window: with fewer events the run is repeated undivided.
    pub min_events_per_window: (u64, u64),
    /// Durations of the trials that measure whether several threads are faster than one thread;
    /// `None`: several threads are always used.
    pub spans: Option<TrialTimes>,
}

impl Default for ParallelOptions {
    fn default() -> ParallelOptions {
        let spans = Some(TrialTimes::default());
        let check_interval = Duration::from_millis(20);
        ParallelOptions {
            last_flows: 100,
            check_interval,
            min_events_per_window: (1024, 400),
            spans,
        }
    }
}

/// Outcome of a run on several threads.
pub enum Outcome {
    /// The run has finished, with the results of an undivided run.
    Done(Box<Finished>),
    /// The run must be repeated undivided on one thread; the value is the reason, see [`obstacle`].
    Sequential(&'static str),
}

/// A finished partitioned run, from which the results can be made.
pub struct Finished {
    world: World,
    parallel: Parallel,
}

/// Statistics of a partitioned run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parallel {
    /// Number of threads used, at most the number of racks or pods.
    pub threads: usize,
    /// Number of windows in which the parts were executed.
    pub windows: u64,
    /// Number of windows in which one thread executed all parts, because this was faster.
    pub alone: u64,
    /// Number of times that a thread slept while it waited for others, summed over all threads.
    pub sleeps: u64,
}

impl Finished {
    /// Returns the results, which are bit for bit equal to the results of a run on one thread.
    pub fn into_results(self) -> Results {
        Results::new(self.world)
    }

    /// Returns the progress of the run.
    pub fn progress(&self) -> Progress {
        self.world.progress()
    }

    /// Returns the frame at the end of the run.
    pub fn last_frame(&mut self) -> Frame {
        let site = &mut self.world.site;
        site.network.fabric.settle(site.network.now);
        Frame::of(site.progress(), &site.network, &site.transports, &site.probes.records)
    }

    /// Returns the statistics of the partitioned execution.
    pub fn parallel(&self) -> Parallel {
        self.parallel
    }
}

/// Returns the number of the part of unit `unit` (rack, pod or core switch) of `units` units, which
/// are divided evenly among `parts` parts.
fn part_of_unit(unit: u32, units: u32, parts: usize) -> u8 {
    (unit as usize * parts / units as usize) as u8
}

/// Returns the part number of every node, indexed by node. Spines and core switches have the number
/// [`CORE`], unless the ports of a switch depend on each other. `None` if the topology has no racks
/// or pods to divide.
fn divide(fabric: &FabricConfig, parts: usize) -> Option<Vec<u8>> {
    let has_whole_cores = fabric.dcb.is_on() || fabric.shared_queues().is_some();
    let cores = |number: u32| {
        let of = move |core| if has_whole_cores { part_of_unit(core, number, parts) } else { CORE };
        (0..number).map(of)
    };
    let part = |unit: u32, units: u32| part_of_unit(unit, units, parts);
    match fabric.topology {
        Topology::LeafSpine { leaves, hosts_per_leaf, spines, .. } => {
            let hosts = (0..leaves * hosts_per_leaf).map(|h| part(h / hosts_per_leaf, leaves));
            let switches = (0..leaves).map(|leaf| part(leaf, leaves));
            Some(hosts.chain(switches).chain(cores(spines)).collect())
        }
        Topology::FatTree { k, hosts_per_edge, .. } => {
            let half = k / 2;
            let hosts = (0..k * half * hosts_per_edge).map(|h| part(h / hosts_per_edge / half, k));
            let switches = (0..2).flat_map(|_| (0..k * half).map(|s| part(s / half, k)));
            Some(hosts.chain(switches).chain(cores(half * half)).collect())
        }
        _ => None,
    }
}

/// Returns the number of racks or pods of a fabric, the units that are divided among threads.
fn units(topology: &Topology) -> u32 {
    match *topology {
        Topology::LeafSpine { leaves, .. } => leaves,
        Topology::FatTree { k, .. } => k,
        _ => 0,
    }
}

/// Returns the reason why a run of this plan cannot be partitioned from its beginning, as a clause that
/// continues "One thread was used, because"; `None` if the plan does not prevent a partitioned run.
pub fn obstacle(plan: &Plan) -> Option<&'static str> {
    let has_mpi = plan.workloads.iter().any(|w| w.workload.mpi().is_some());
    let late = has_mpi.then_some("an MPI program opens connections when data arrive");
    sharing(plan, false).err().or(late)
}

/// How the parts of a partitioned run share workloads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sharing {
    /// Each part handles the events of workloads at its own hosts. With an MPI program this begins when
    /// all connections are open.
    ByHosts,
    /// Each part handles all events of all workloads.
    Replicated,
}

/// Returns how the parts of a run of this plan share its workloads, or the reason why the run cannot be
/// partitioned. `is_again`: in an earlier try, parts could not handle the events of workloads at their
/// own hosts.
fn sharing(plan: &Plan, is_again: bool) -> Result<Sharing, &'static str> {
    obstacle_of_network(plan).map_or(Ok(()), Err)?;
    match obstacle_by_hosts(plan).or(is_again.then_some(SLOT_IS_USED_AGAIN)) {
        None => Ok(Sharing::ByHosts),
        Some(_) if can_be_replicated(plan) => Ok(Sharing::Replicated),
        Some(why) => Err(why),
    }
}

/// Whether all parts of a partitioned run can handle all events of the workloads of this plan.
fn can_be_replicated(plan: &Plan) -> bool {
    plan.workloads.iter().all(|w| w.workload.can_be_replicated())
}

/// Returns the reason why parts of a run of this plan cannot each handle the events of workloads at
/// their own hosts; `None` if they can.
fn obstacle_by_hosts(plan: &Plan) -> Option<&'static str> {
    let workloads = &plan.workloads;
    let awaited = || workloads.iter().filter(|w| !w.background);
    let local = |w: &WorkloadPlan| {
        // a background workload that never ends has no flows to wait for
        let size = w.workload.size_in_parts();
        w.workload.mpi().is_some() || size.is_some_and(|flows| w.background || flows > 0)
    };
    let closing = || workloads.iter().filter(|w| w.workload.closes_all_at_end());
    [
        (
            !workloads.iter().all(local),
            "a workload opens connections when data arrive, or reacts at other hosts, and its kind \
             does not allow a copy of it in each thread",
        ),
        (
            workloads.len() > 1 && workloads.iter().any(|w| w.workload.mpi().is_some()),
            "an MPI program runs beside another workload",
        ),
        (
            closing().any(|w| w.background) || (closing().count() > 0 && awaited().count() > 1),
            "a workload that closes its connections at its end may end before the run",
        ),
    ]
    .into_iter()
    .find_map(|(is, why)| is.then_some(why))
}

/// Returns the reason why a run of this plan cannot be partitioned, whatever its workloads are; `None`
/// if there is none.
fn obstacle_of_network(plan: &Plan) -> Option<&'static str> {
    let (fabric, measure) = (&plan.fabric, &plan.measure);
    let workloads = &plan.workloads;
    let custom = |queue: &QueueConfig| matches!(queue, QueueConfig::Custom(_));
    let awake = |policy: LinkPolicy| !policy.saves_power();
    let connected = || workloads.iter().filter(|w| w.workload.has_connections());
    [
        (units(&fabric.topology) < 2, "the fabric has fewer than two racks or pods"),
        (
            workloads.iter().any(|w| w.workload.sends_parcels()),
            "messages of an MPI program are sent as raw Ethernet frames",
        ),
        (
            connected().zip(connected().skip(1)).any(|(a, b)| a.transport != b.transport),
            "workloads use different transports",
        ),
        (Sizes::of(&fabric.topology).with_several_cards > 0, "hosts have several network cards"),
        (plan.hosts.is_some(), "hosts need time to process packets ([hosts])"),
        (!fabric.faults.is_empty(), "the scenario has faults of links"),
        (fabric.routing != RoutingConfig::Ecmp(Ecmp), "routing is not ECMP"),
        (fabric.reference_ports, "ports use the slower reference mode (reference_ports)"),
        (
            fabric.queues().any(custom),
            "a queue is a mechanism of \
             your own",
        ),
        (fabric.telemetry, "a congestion control reads telemetry"),
        (
            !(awake(fabric.energy.host.policy) && awake(fabric.energy.fabric.policy)),
            "links save energy ([fabric.energy])",
        ),
        (!measure.capture.ports.is_empty(), "packets are captured (measure.capture)"),
        (
            !measure.flow_parts.is_empty(),
            "completion times of flows are split into parts (measure.flow_parts)",
        ),
        (!measure.tcp_trace.is_empty(), "congestion windows are traced (measure.tcp_trace)"),
        (
            !measure.flow_samples.senders.is_empty(),
            "throughput of connections is sampled (measure.flow_samples)",
        ),
        (
            !measure.packet_hops.senders.is_empty(),
            "the ways of packets are recorded (measure.packet_hops)",
        ),
        (measure.ports != PortSet::default(), "ports record every packet (measure.ports)"),
        (measure.pauses.ports != PortSet::default(), "pauses are logged (measure.pauses)"),
    ]
    .into_iter()
    .find_map(|(is, why)| is.then_some(why))
}

/// All parts of a partitioned run; each part has its own [`World`] (state of a run).
#[derive(Serialize, Deserialize)]
pub struct Parts {
    worlds: Vec<World>,
    lookahead: Span,
    /// Simulated time at which the run ends at the latest.
    until: Time,
    /// Number of flows in the run, over all workloads.
    total: u64,
    /// Least number of unfinished flows from which on the rest of the run is executed in step.
    last_flows: u64,
    /// For each workload: true if the run may end before this workload has finished.
    background: Vec<bool>,
    /// Set until the run is divided, if the parts execute its beginning undivided.
    #[serde(skip)]
    undivided: Option<Undivided>,
}

/// Data for the division of a run whose beginning is executed undivided.
struct Undivided {
    /// Number of the part of each node.
    part_of: Vec<u8>,
    /// Number of connections of the MPI program, which are open when the run is divided.
    connections: usize,
    /// For each part: the fabric before the first event. Ports of other parts are taken from it.
    unused: Vec<Fabric>,
}

/// Number of messages of each rank of an MPI program that are executed in step at the end of the run.
const LAST_MESSAGES_OF_RANK: u64 = 8;

impl Parts {
    /// Returns the simulated time of the part that has advanced furthest.
    pub fn now(&self) -> Time {
        self.worlds.iter().map(|world| world.site.network.now).max().unwrap_or(Time::ZERO)
    }

    /// Returns the state of the first part.
    pub(crate) fn first(&self) -> &World {
        self.worlds.first().expect("the run has parts")
    }

    /// Returns mutable access to the states of all parts.
    pub(crate) fn worlds_mut(&mut self) -> &mut [World] {
        &mut self.worlds
    }

    /// Divides the run of the plan that the function `plan` returns among at most `threads` parts;
    /// `plan` must return equal plans at each call. Returns the parts, or as inner error the reason
    /// why the run cannot be divided. `must_gain`: runs that surely become slower are not divided.
    /// `is_again`: see [`sharing`].
    fn new(
        plan: &dyn Fn() -> Result<Plan, RunError>,
        threads: usize,
        must_gain: bool,
        is_again: bool,
    ) -> Result<Result<Parts, &'static str>, RunError> {
        let first = plan()?;
        let mut sharing = match sharing(&first, is_again) {
            Ok(sharing) => sharing,
            Err(why) => return Ok(Err(why)),
        };
        let parts = threads.min(units(&first.fabric.topology) as usize).min(usize::from(CORE) - 1);
        let Some(part_of) = divide(&first.fabric, parts).filter(|_| parts > 1) else {
            return Ok(Err("one thread was requested"));
        };
        let (mut total, mut last_flows, mut connections) = (0, 0, None);
        let mut mpi = first.workloads.iter().find_map(|w| w.workload.mpi());
        if let Some(mpi) = mpi.take_if(|_| sharing == Sharing::ByHosts) {
            match mpi.outline() {
                Ok(outline) if must_gain && outline.has_short_messages() => {
                    return Ok(Err(
                        "messages of an MPI program are so short that several threads would be slower",
                    ));
                }
                Ok(outline) if !outline.opens_late() => {
                    let ranks = u64::from(mpi.size_of_program());
                    total = outline.messages + ranks;
                    last_flows = LAST_MESSAGES_OF_RANK * ranks;
                    connections = Some(outline.connections);
                }
                _ if can_be_replicated(&first) => sharing = Sharing::Replicated,
                Ok(_) => return Ok(Err("an MPI program opens connections until late in the run")),
                Err(why) => return Ok(Err(why)),
            }
        } else if sharing == Sharing::ByHosts {
            let awaited = first.workloads.iter().filter(|w| !w.background);
            total = awaited.filter_map(|w| w.workload.size_in_parts()).sum();
        }
        let can_be_replicated = can_be_replicated(&first);
        let mut worlds = build(first, plan, parts)?;
        let transport = worlds[0].site.drivers.transport_in_parts();
        let Some(of_parts) = worlds[0].site.transports.of_mut(transport.number()).partitionable()
        else {
            return Ok(Err("the transport of the workloads does not support several threads"));
        };
        let first_free = Time::ZERO + of_parts.shortest_time_wait();
        let first = &worlds[0];
        let opens_until = first.site.drivers.all.iter().map(|d| d.workload.opens_until()).max();
        let opens_until = opens_until.map_or(Time::ZERO, |at| at.min(first.site.until));
        if can_be_replicated && (first_free < opens_until && opens_until < Time::NEVER) {
            // Slots will probably be used again, which only copies of workloads can follow.
            (sharing, total) = (Sharing::Replicated, 0);
        }
        if may_exceed_stream(first) {
            return Ok(Err("a bulk transfer may carry more than 2 GiB on one connection"));
        }
        let (lookahead, until) = (lookahead(first), first.site.until);
        let timeout = || first.site.transports.tcp.stack.shortest_timeout();
        let mut connected = first.site.drivers.all.iter().filter(|d| d.workload.has_connections());
        let has_tcp = connected.any(|driver| driver.transport == Transport::Tcp);
        if lookahead == Span::ZERO || (has_tcp && timeout() <= lookahead) {
            return Ok(Err("a cable has no delay, or all delays exceed a timeout of TCP"));
        }
        debug_assert!(first.site.network.fabric.can_be_partitioned());
        let background = first.site.drivers.all.iter().map(|d| d.background).collect();
        let mut parts =
            Parts { worlds, lookahead, until, total, last_flows, background, undivided: None };
        match connections {
            Some(connections) => {
                let unused = build(plan()?, plan, parts.worlds.len())?;
                let unused = unused.into_iter().map(|world| world.site.network.fabric).collect();
                parts.undivided = Some(Undivided { part_of, connections, unused });
            }
            None => parts.divide(&part_of, Vec::new(), sharing),
        }
        Ok(Ok(parts))
    }

    /// Makes the states of the run, which are equal, the parts of a partitioned run. `part_of` has the
    /// number of the part of each node. `unused`: the fabric of each part before the first event; empty
    /// if the run has not begun.
    fn divide(&mut self, part_of: &[u8], unused: Vec<Fabric>, sharing: Sharing) {
        let order = self.worlds[0].site.network.sources.order();
        let parts = self.worlds.len();
        let mut unused = unused.into_iter();
        for (world, part) in self.worlds.iter_mut().zip(0u8..) {
            let mut partition = Partition::new(part, parts, part_of.to_vec(), order);
            partition.replicates = sharing == Sharing::Replicated;
            world.become_part(partition, unused.next());
        }
    }

    /// Unites all parts after the last event `last` of the run. Returns the reason why the run must be
    /// repeated undivided, if there is one.
    fn finish(mut self, last: (Key, u32), parallel: Parallel) -> Result<Finished, &'static str> {
        for world in &mut self.worlds {
            world.site.network.now = last.0.time(); // until which the state is as on one thread
            world.site.network.fabric.settle(last.0.time());
            world.record_losses(Time::NEVER);
            world.site.network.fabric.count_elsewhere(last, world.site.network.sources.order());
        }
        let mut all: Vec<&mut World> = self.worlds.iter_mut().collect();
        deliver_lost_frames(&mut all);
        let first = self.worlds.remove(0);
        let mut world = first.unite(self.worlds, last)?;
        world.site.until = self.until;
        if last.1 == NO_SOURCE {
            world.site.network.fabric.find_deadlock(self.until);
        }
        for (driver, background) in world.site.drivers.all.iter_mut().zip(self.background) {
            driver.background = background;
        }
        Ok(Finished { world, parallel })
    }
}

/// Whether a workload sends for so long that the fastest link of a host can carry [`LONGEST_STREAM`]
/// bytes.
fn may_exceed_stream(world: &World) -> bool {
    let longest = world.site.drivers.all.iter().filter_map(|d| d.workload.sends_for()).max();
    let fabric = &world.site.network.fabric;
    let of_hosts = fabric.links.iter().filter(|link| link.from < fabric.graph.hosts);
    let fastest = of_hosts.map(|link| link.cable.rate).max();
    let until = world.site.until.since(Time::ZERO);
    longest.zip(fastest).is_some_and(|(time, rate)| rate.time_for(LONGEST_STREAM) < time.min(until))
}

/// Builds the states of `parts` parts at the same time, each in its own thread. `first` is the plan
/// of the first part, `plan` returns those of the others.
fn build(
    first: Plan,
    plan: &dyn Fn() -> Result<Plan, RunError>,
    parts: usize,
) -> Result<Vec<World>, RunError> {
    let others = (1..parts).map(|_| plan()).collect::<Result<Vec<_>, _>>()?;
    thread::scope(|scope| {
        let start = |plan| thread::Builder::new().spawn_scoped(scope, || World::new(plan));
        let others = others.into_iter().map(start).collect::<Result<Vec<_>, _>>();
        let others = others.map_err(|e| RunError::without_thread(&e))?;
        let first = World::new(first);
        let built = others.into_iter().map(|t| t.join().unwrap_or_else(|e| resume_unwind(e)));
        [first].into_iter().chain(built).map(|world| world.map_err(RunError::Limit)).collect()
    })
}

/// Executes a run on several threads. `plan` returns the plan of the run and must return equal
/// plans at each call. `threads` includes the thread of the caller. `watcher` is called regularly;
/// if it does not want to proceed, the run stops with [`RunError::Interrupted`].
pub fn run(
    plan: &dyn Fn() -> Result<Plan, RunError>,
    threads: usize,
    options: ParallelOptions,
    clock: Clock,
    watcher: &mut dyn Watcher,
) -> Result<Outcome, RunError> {
    let mut run = |is_again| match Parts::new(
        plan,
        threads,
        options.min_events_per_window.0 > 0,
        is_again,
    )? {
        Ok(parts) => run_parts(parts, options, clock, watcher),
        Err(why) => Ok(Outcome::Sequential(why)),
    };
    match run(false)? {
        Outcome::Sequential(SLOT_IS_USED_AGAIN) => run(true),
        outcome => Ok(outcome),
    }
}

/// Continues a partitioned run from a checkpoint, with one thread for each part. The number of
/// events per window is not checked again.
pub fn resume(
    parts: Parts,
    options: ParallelOptions,
    clock: Clock,
    watcher: &mut dyn Watcher,
) -> Result<Outcome, RunError> {
    run_parts(parts, ParallelOptions { min_events_per_window: (0, 0), ..options }, clock, watcher)
}

/// Executes the windows of a partitioned run on all threads, then the rest in step on one thread,
/// and unites the parts.
fn run_parts(
    mut parts: Parts,
    options: ParallelOptions,
    clock: Clock,
    watcher: &mut dyn Watcher,
) -> Result<Outcome, RunError> {
    let mut coordinator = Coordinator {
        watcher,
        check_interval: options.check_interval,
        clock,
        last_check: clock(),
        until: parts.until,
        min_events_per_window: options.min_events_per_window,
        total: parts.total,
        last_flows: parts.last_flows,
        background: parts.background.clone(),
        lookahead: parts.lookahead,
        mode_chooser: None,
        request: Request { proceed: true, checkpoint: false },
        windows: 0,
        alone: 0,
        events: 0,
        events_before: 0,
        squares: 0,
    };
    if let Some(Undivided { part_of, connections, unused }) = parts.undivided.take() {
        if !run_beginning(&mut parts.worlds, connections, &mut coordinator)? {
            return match coordinator.request.proceed {
                true => Ok(Outcome::Sequential("an MPI program ends when it opens connections")),
                false => Err(RunError::Interrupted),
            };
        }
        parts.divide(&part_of, unused, Sharing::ByHosts);
    }
    let events = PartReport::of_all(&parts.worlds.iter_mut().collect::<Vec<_>>()).events;
    (coordinator.events, coordinator.events_before) = (events, events);
    coordinator.mode_chooser = options.spans.map(|spans| ModeChooser::new(clock, spans, events));
    let until = parts.until.min(Time(Time::NEVER.0 - 1));
    let flows = match parts.total {
        0 => u64::MAX, // only the end time ends the run
        total => total - options.last_flows.max(parts.last_flows).min(total / 4),
    };
    let (ended, sleeps) = run_windows(&mut parts, until, flows, &mut coordinator)?;
    let last = match ended {
        Windows::Interrupted => return Err(RunError::Interrupted),
        Windows::Sequential(_) if !coordinator.request.proceed => {
            return Err(RunError::Interrupted);
        }
        Windows::Sequential(why) => return Ok(Outcome::Sequential(why)),
        Windows::Last => match parts.first().part_state().ended {
            Some(last) => Ok(last),
            None => run_rest_in_step(&mut parts, until, &mut coordinator)?,
        },
    };
    Ok(match last {
        Err(why) => Outcome::Sequential(why),
        Ok(last) => {
            let (threads, windows, alone) =
                (parts.worlds.len(), coordinator.windows, coordinator.alone);
            let parallel = Parallel { threads, windows, alone, sleeps };
            match parts.finish(last, parallel) {
                Ok(finished) => Outcome::Done(Box::new(finished)),
                Err(why) => Outcome::Sequential(why),
            }
        }
    })
}

/// Executes the windows of all parts on all threads. Returns the reason why the windows ended, and
/// how often a thread slept at the barrier.
fn run_windows(
    parts: &mut Parts,
    until: Time,
    flows: u64,
    coordinator: &mut Coordinator,
) -> Result<(Windows, u64), RunError> {
    let x = Exchange::new(&mut parts.worlds, parts.lookahead, until, flows);
    thread::scope(|scope| {
        for me in 1..x.parts() {
            let x = &x;
            let part = thread::Builder::new().spawn_scoped(scope, move || windows(x, me, None));
            if let Err(e) = part {
                x.meeting.abandon();
                return Err(RunError::without_thread(&e));
            }
        }
        Ok((windows(&x, 0, Some(coordinator)), x.meeting.slept()))
    })
}

/// Source of the last event of a run that its end time ends: no event has this source.
const NO_SOURCE: u32 = u32::MAX;

/// Simulated time executed in step between two calls of the observer, in windows (lookahead times).
const WINDOWS_IN_STEP: u64 = 1024;

/// Executes the rest of the run in step on one thread. Returns the last event of the run, or the
/// reason why the run must be repeated undivided.
fn run_rest_in_step(
    parts: &mut Parts,
    until: Time,
    coordinator: &mut Coordinator,
) -> Result<Result<(Key, u32), &'static str>, RunError> {
    let slice = Span(parts.lookahead.0.saturating_mul(WINDOWS_IN_STEP));
    let total = if parts.total == 0 { u64::MAX } else { parts.total };
    let mut all: Vec<&mut World> = parts.worlds.iter_mut().collect();
    if PartReport::of_all(&all).done >= total {
        return Ok(Err("the last flows ended within one delay of a cable of each other"));
    }
    loop {
        if coordinator.checkpoint_if_requested(&all).is_some() {
            return Err(RunError::Interrupted);
        }
        let next =
            all.iter_mut().map(|w| w.site.network.sources.winner().0.time()).min().unwrap_or(until);
        let end = Time(next.0.saturating_add(slice.0)).min(until);
        let last = in_step(&mut all, end, total);
        let report = PartReport::of_all(&all);
        if let Some(why) = report.obstacle() {
            return Ok(Err(why));
        }
        if let Some(last) = last {
            if !all[0].replicates() {
                all.iter_mut().for_each(|world| world.end_workloads(last));
            }
            return Ok(Ok(last));
        }
        let awaits = all[0].replicates() && !all[0].site.drivers.await_the_end(until);
        if (total < u64::MAX || awaits)
            && all.iter_mut().all(|w| w.site.network.sources.winner().0 == Key::NEVER)
        {
            return Ok(Err("no events were left although flows had not finished"));
        }
        if end == until {
            return Ok(Ok((Key::new(until, Class::Change), NO_SOURCE)));
        }
        if coordinator.on_progress(&report, all[0]).is_some() {
            return Err(RunError::Interrupted);
        }
    }
}
