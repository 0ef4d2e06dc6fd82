//! The world of one run and the loop that moves it: takes the next event, lets the layer it belongs
//! to handle it, and carries what that layer wants over to the others.

use crate::approximate::Approximate;
use crate::capture::Capture;
use crate::carrier::Carrier;
use crate::connections::Connections;
use crate::critical_path::CriticalPaths;
use crate::endpoint_settings::EndpointSettings;
use crate::flow_samples::Sampler;
use crate::lpi;
use crate::messages::Messages;
use crate::parts::Share;
use crate::pauses;
use crate::plan::{ClassPlan, Plan, Transport};
use crate::ports;
use crate::records::Records;
use crate::rocev2::{self, RoceV2};
use crate::streams::Streams;
use crate::switch_power::SwitchPower;
use crate::tracer::Tracer;
use crate::wakes::Wakes;
use eastwest_engine::order::{Class, Key};
use eastwest_engine::timers::Timers;
use eastwest_engine::tournament::Tournament;
use eastwest_network::dcb::Cnm;
use eastwest_network::fabric::Fabric;
use eastwest_transport::tcp::{Notice, Sink, Stack};
use eastwest_types::{EndpointId, HostId, Packet, SackBlocks, Side, Span, Time};
use eastwest_workload::{Action, Event, Workload};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a run ended without result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The caller asked to stop.
    Interrupted,
    /// Something can no longer finish.
    Stuck(String),
    /// A limit of the program was reached.
    Limit(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Interrupted => write!(f, "interrupted"),
            RunError::Stuck(what) => write!(f, "the simulation can no longer finish: {what}"),
            RunError::Limit(what) => write!(f, "{what}"),
        }
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// Where it ends at the latest.
    pub until: Time,
    /// Work done and in all, over workloads with an end.
    pub done: (u64, u64),
    /// Packet transmissions so far.
    pub packet_hops: u64,
    /// Events so far.
    pub events: u64,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Driver {
    pub name: String,
    pub background: bool,
    pub transport: Transport,
    pub finished: bool,
    pub workload: Workload,
}

/// A simulated data centre.
#[derive(Serialize, Deserialize)]
pub struct World {
    pub(crate) now: Time,
    /// Workloads have been told that the run begins.
    begun: bool,
    pub(crate) until: Time,
    pub(crate) events: u64,
    pub(crate) sources: Tournament,
    pub(crate) fabric: Fabric,
    pub(crate) switch_power: SwitchPower,
    pub(crate) stack: Stack,
    pub(crate) endpoint_settings: EndpointSettings,
    pub(crate) rocev2: Option<Box<RoceV2>>,
    pub(crate) tracer: Tracer,
    pub(crate) paths: CriticalPaths,
    pub(crate) flow_samples: Sampler,
    pub(crate) capture: Option<Capture>,
    pub(crate) transport_timers: Timers,
    pub(crate) wakes: Wakes,
    /// Empty between two events.
    #[serde(skip)]
    pub(crate) notices: Vec<(EndpointId, Notice)>,
    pub(crate) messages: Messages,
    pub(crate) drivers: Vec<Driver>,
    /// Workloads that the run still waits for, or 1 where it waits for its end in time.
    pub(crate) unfinished: usize,
    pub(crate) classes: Vec<ClassPlan>,
    pub(crate) records: Records,
    pub(crate) streams: Streams,
    pub(crate) carrier: Carrier,
    pub(crate) connections: Connections,
    /// Connections and datagrams so far: stands for the client's port.
    pub(crate) opened: u64,
    /// Ends the run after the event that set it.
    #[serde(skip)]
    pub(crate) stuck: Option<RunError>,
    /// What a run without packets, which is not kept, says of itself.
    #[serde(skip)]
    pub(crate) approximate: Option<Approximate>,
    /// What a part of a run in parts has to do with others.
    pub(crate) share: Option<Box<Share>>,
    /// Links looked at by events since the caller's wishes were last looked at.
    #[serde(skip)]
    links_seen: usize,
}

/// Event sources after the links.
pub(crate) const TRANSPORT_TIMERS: u32 = 0;
pub(crate) const WAKES: u32 = 1;
pub(crate) const SAMPLES: u32 = 2;
const FAULTS: u32 = 3;
const OTHER_SOURCES: usize = 4;

/// The key of the next change of links' conditions.
fn change_key(fabric: &Fabric) -> Key {
    match fabric.next_change() {
        Time::NEVER => Key::NEVER,
        at => Key::new(at, Class::Change),
    }
}

/// How many events pass between two looks at the caller's wishes.
const EVENTS_PER_LOOK: u64 = 1 << 16;
/// An event that looks at all links counts more: after so many of them there is such a look, too.
const LINKS_PER_LOOK: usize = 1 << 22;

/// What transport endpoints say goes here. `INSIDE` and `BRIDGED` make four of it, one for each loop, so that
/// the compiler also makes four of all that TCP does with it: code that is called from one place is part of
/// that place, and with several loops there would be several.
pub(crate) struct Out<'a, const INSIDE: bool, const BRIDGED: bool> {
    now: Time,
    fabric: &'a mut Fabric,
    sources: &'a mut Tournament,
    timers: &'a mut Timers,
    notices: &'a mut Vec<(EndpointId, Notice)>,
    /// Whoever looks inside, where somebody does.
    inside: Option<(&'a mut CriticalPaths, &'a Messages)>,
}

/// What TCP is asked for by others than packets.
pub(crate) enum Ask {
    /// A wake-up is due.
    Wake(EndpointId),
    /// The application writes so many bytes.
    Write(EndpointId, u64),
    /// It closes its side.
    Close(EndpointId),
}

impl<const INSIDE: bool, const BRIDGED: bool> Sink for Out<'_, INSIDE, BRIDGED> {
    #[inline]
    fn send(&mut self, from: HostId, packet: Packet, sack: Option<SackBlocks>) {
        if INSIDE && let Some((paths, messages)) = &mut self.inside {
            paths.sends(self.now, &packet, messages, self.fabric.pool.next_slot());
        }
        self.fabric.send(self.now, from, packet, sack, self.sources);
    }

    fn leaves_at(&self, from: HostId, dscp: u8) -> Time {
        self.fabric.leaves_at(from, dscp)
    }

    #[inline]
    fn arm(&mut self, at: Time, endpoint: EndpointId) {
        let id = u64::from(endpoint.0);
        if self.timers.push(at, id, id) {
            let source = self.fabric.links.len() as u32 + TRANSPORT_TIMERS;
            self.sources.set(source, self.timers.first());
        }
    }

    fn notify(&mut self, endpoint: EndpointId, notice: Notice) {
        self.notices.push((endpoint, notice));
    }
}

impl World {
    /// Builds the world of a plan. Fails where routes cannot be followed.
    pub fn new(plan: Plan) -> Result<World, String> {
        let mut fabric = Fabric::build(&plan.fabric, plan.seed).map_err(|e| e.to_string())?;
        lpi::start(&mut fabric, &plan.measure);
        pauses::start(&mut fabric, &plan.measure.pauses);
        let links = fabric.links.len();
        fabric.halt_with(links as u32 + FAULTS);
        let mut sources = Tournament::new(links + OTHER_SOURCES, plan.seed);
        let records = Records::new(&fabric, &plan);
        let streams = Streams::new(plan.workloads.iter().map(|w| &w.workload));
        let parcels = plan.workloads.iter().any(|w| w.workload.sends_parcels());
        fabric.losses.kept = records.events.is_on() || streams.any() || parcels;
        if plan.rocev2.is_some() || streams.any() || parcels {
            fabric.look_at_hosts();
        }
        let carrier = Carrier::new(streams.rows.len() as u32);
        sources.set(links as u32 + SAMPLES, Key::new(records.samples.next(), Class::Sample));
        sources.set(links as u32 + FAULTS, change_key(&fabric));
        let workloads = plan.workloads.len();
        let drivers: Vec<Driver> = plan
            .workloads
            .into_iter()
            .map(|w| Driver {
                name: w.name,
                background: w.background,
                transport: w.transport,
                finished: false,
                workload: w.workload,
            })
            .collect();
        let unfinished = drivers.iter().filter(|d| !d.background).count().max(1);
        let paths = CriticalPaths::new(plan.measure.flow_parts, plan.measure.flow_parts_rows);
        if paths.is_on() {
            fabric.journeys.keep();
        }
        let jitter = plan.fabric.processing_jitter;
        let capture = Capture::new(&plan.measure.capture, jitter, &mut fabric);
        let (endpoint_settings, settings) = EndpointSettings::new(&plan.tcp, plan.tcp_overrides);
        let mut stack = Stack::new(plan.tcp);
        for config in settings.into_iter().skip(1) {
            stack.add_settings(config).expect("the scenario has so few overrides that all fit");
        }
        Ok(World {
            now: Time::ZERO,
            begun: false,
            until: plan.until,
            events: 0,
            sources,
            fabric,
            switch_power: plan.switch_power,
            stack,
            endpoint_settings,
            rocev2: plan.rocev2.map(|config| Box::new(RoceV2::new(config, workloads))),
            capture,
            tracer: Tracer::new(plan.measure.tcp_trace, plan.measure.tcp_trace_rows),
            paths,
            flow_samples: Sampler::new(plan.measure.flow_samples),
            transport_timers: Timers::new(Class::Timer, plan.seed),
            wakes: Wakes::new(plan.seed),
            notices: Vec::new(),
            messages: Messages::new(workloads),
            drivers,
            unfinished,
            classes: plan.classes,
            records,
            streams,
            carrier,
            connections: Connections::default(),
            opened: 0,
            stuck: None,
            approximate: None,
            share: None,
            links_seen: 0,
        })
    }

    /// Runs to the end. `look` is called now and then; where it returns false the run stops with
    /// [`RunError::Interrupted`], between two events: it can be kept as a checkpoint, and called again
    /// it goes on.
    pub fn run(&mut self, look: &mut dyn FnMut(&mut World) -> bool) -> Result<(), RunError> {
        self.run_to(u64::MAX, look)
    }

    /// As [`World::run`], but stops when there have been `most` events in all.
    pub fn run_to(
        &mut self,
        most: u64,
        look: &mut dyn FnMut(&mut World) -> bool,
    ) -> Result<(), RunError> {
        // whoever does not look inside, or has no bridged ports, does not pay for it: not even a branch
        // per event
        let inside = self.tracer.is_on()
            || self.fabric.taps.any()
            || self.paths.is_on()
            || self.flow_samples.is_on();
        let ended = match (inside, self.fabric.is_bridged()) {
            (false, false) => self.run_all::<false, false>(most, look),
            (false, true) => self.run_all::<false, true>(most, look),
            (true, false) => self.run_all::<true, false>(most, look),
            (true, true) => self.run_all::<true, true>(most, look),
        };
        if ended != Err(RunError::Interrupted) {
            self.fabric.settle(self.now);
        }
        ended
    }

    /// The number of the event after which the loop looks up.
    fn next_look(&self, most: u64) -> u64 {
        most.min((self.events / EVENTS_PER_LOOK + 1) * EVENTS_PER_LOOK)
    }

    /// Tells workloads that the run begins, once.
    pub(crate) fn begin(&mut self) {
        if !std::mem::replace(&mut self.begun, true) {
            for w in 0..self.drivers.len() {
                self.tell(w as u16, Event::Begin);
            }
            self.carry_notices();
        }
    }

    fn run_all<const INSIDE: bool, const BRIDGED: bool>(
        &mut self,
        most: u64,
        look: &mut dyn FnMut(&mut World) -> bool,
    ) -> Result<(), RunError> {
        self.begin();
        while !self.stretch::<INSIDE, BRIDGED>(self.next_look(most))? {
            let is_due = self.events % EVENTS_PER_LOOK == 0;
            if is_due {
                self.note_losses(Time::NEVER);
            }
            if (is_due || self.links_seen >= LINKS_PER_LOOK) && !look(self) {
                return Err(RunError::Interrupted);
            }
            self.links_seen = 0;
            if self.events >= most {
                return Err(RunError::Interrupted);
            }
        }
        Ok(())
    }

    /// Goes on until there have been so many events in all. Tells whether the run is over.
    ///
    /// A function of its own: the loop over packets is compiled without what happens between two
    /// stretches.
    #[inline(never)]
    pub(crate) fn stretch<const INSIDE: bool, const BRIDGED: bool>(
        &mut self,
        events: u64,
    ) -> Result<bool, RunError> {
        let links = self.fabric.links.len() as u32;
        while self.unfinished > 0 && self.stuck.is_none() {
            let (key, source) = self.sources.winner();
            if key == Key::NEVER && !self.awaits_its_end() {
                self.note_losses(Time::NEVER);
                let outstanding = self.describe_outstanding();
                return Err(self.stuck.take().unwrap_or(RunError::Stuck(outstanding)));
            }
            if key.time() > self.until {
                self.now = self.until;
                self.fabric.look_for_deadlock(self.until);
                self.note_losses(Time::NEVER);
                return self.stuck.take().map_or(Ok(true), Err);
            }
            self.now = key.time();
            self.events += 1;
            if source < links {
                let arrived = self.fabric.fire::<INSIDE, BRIDGED>(key, source, &mut self.sources);
                if INSIDE && let Some(seen) = self.fabric.taps.take() {
                    self.capture(&seen);
                }
                if let Some(packet) = arrived {
                    if let Some(endpoint) = self.fabric.next_reader.take() {
                        self.stack.prefetch(endpoint);
                    }
                    self.deliver::<INSIDE, BRIDGED>(&packet);
                    if !self.notices.is_empty() {
                        self.carry_notices();
                    }
                }
            } else {
                self.fire_other(source - links, links);
                self.carry_notices();
                if self.links_seen >= LINKS_PER_LOOK && self.share.is_none() {
                    return Ok(false);
                }
            }
            if self.events >= events {
                return Ok(false);
            }
        }
        self.stuck.take().map_or(Ok(true), Err)
    }

    /// Whether nothing but its end in time ends the run.
    pub(crate) fn awaits_its_end(&self) -> bool {
        self.until < Time::NEVER && self.drivers.iter().all(|d| d.background)
    }

    fn fire_other(&mut self, source: u32, links: u32) {
        if self.share.is_some() {
            return self.fire_other_in_part(source, links);
        }
        self.fire(source, links);
    }

    /// Carries out an event that is not a link's.
    pub(crate) fn fire(&mut self, source: u32, links: u32) {
        match source {
            TRANSPORT_TIMERS => {
                let id = self.transport_timers.pop().expect("the timer list stood in the tree");
                self.sources.set(links + TRANSPORT_TIMERS, self.transport_timers.first());
                if id >= rocev2::ALARM {
                    return self.queue_pair_alarm(id);
                }
                let endpoint = EndpointId(id as u32);
                self.paths.prompted(true);
                self.ask_tcp(&Ask::Wake(endpoint));
                self.paths.prompted(false);
                if self.tracer.is_on() {
                    self.trace(endpoint);
                }
            }
            WAKES => {
                let woken = self.wakes.pop();
                let (workload, token) = woken.expect("the wake-up list stood in the tree");
                self.sources.set(links + WAKES, self.wakes.first());
                self.wake_up(workload, token);
            }
            SAMPLES => {
                self.fabric.settle(self.now);
                self.records.sample(&self.fabric, self.now);
                self.links_seen += links as usize;
                let next = if self.at_rest() {
                    Key::NEVER
                } else {
                    Key::new(self.records.samples.next(), Class::Sample)
                };
                self.sources.set(links + SAMPLES, next);
            }
            FAULTS if self.fabric.deadlock().is_some() => {
                // what it holds never moves again
                self.sources.set(links + FAULTS, Key::NEVER);
                self.unfinished = 0;
            }
            FAULTS => {
                self.fabric.change(self.now, &mut self.sources);
                self.links_seen += LINKS_PER_LOOK;
                let next = if self.at_rest() { Key::NEVER } else { change_key(&self.fabric) };
                self.sources.set(links + FAULTS, next);
            }
            _ => unreachable!("there are {OTHER_SOURCES} other sources"),
        }
    }

    /// With nothing else left to happen, samples and faults alone must not keep the world going.
    pub(crate) fn at_rest(&self) -> bool {
        self.transport_timers.first() == Key::NEVER
            && self.wakes.first() == Key::NEVER
            && self.fabric.pool.in_use() == 0
    }

    /// A packet has reached its host.
    #[inline(always)]
    fn deliver<const INSIDE: bool, const BRIDGED: bool>(&mut self, packet: &Packet) {
        let latency = self.now.since(packet.born);
        if packet.notes & Packet::DATAGRAM != 0 {
            return self.deliver_datagram::<INSIDE>(packet, latency);
        }
        let sack = self.fabric.pool.take_sack(packet.sack);
        let class = self.stack.endpoint(packet.dst_endpoint).class;
        self.records.latency(class, packet, latency);
        if INSIDE && self.paths.is_on() {
            self.path_arrives(packet);
        }
        self.tcp_in::<INSIDE, BRIDGED, _>(|stack, now, out| {
            stack.on_packet(now, packet, sack.as_ref(), out);
        });
        if INSIDE {
            self.trace(packet.dst_endpoint);
            if self.paths.is_on() {
                self.path_arrived(packet.dst_endpoint);
            }
            if self.flow_samples.is_on() {
                self.sample_connection(packet.dst_endpoint);
            }
        }
    }

    #[inline(never)]
    fn deliver_datagram<const INSIDE: bool>(&mut self, packet: &Packet, latency: Span) {
        if packet.flags != 0 {
            return self.queue_pair_packet::<INSIDE>(packet, latency);
        }
        if self.share.is_some() {
            return self.delivered_across(packet.dst_endpoint, packet.seq);
        }
        if let Some(cnm) = Cnm::delivered(packet) {
            return self.fabric.slow_down(self.now, &cnm, &mut self.sources);
        }
        self.records.datagram(packet, latency);
        if packet.ack > 0 {
            if INSIDE && self.paths.is_on() {
                self.frame_path(packet);
            }
            if INSIDE && self.flow_samples.is_on() {
                self.sample_frame(packet.ack as u32 - 1, packet.payload);
            }
            self.frame_arrived(packet, latency);
        }
    }

    /// Passes on what endpoints had to say to applications.
    pub(crate) fn carry_notices(&mut self) {
        while !self.notices.is_empty() {
            let (endpoint, notice) = self.notices.remove(0);
            if notice != Notice::Closed && !self.stack.knows(endpoint) {
                continue; // the connection was ended meanwhile
            }
            match notice {
                Notice::Delivered => self.deliver_messages(endpoint),
                Notice::Closed => self.messages.gone(endpoint),
                Notice::Repair { step, from, to } => self.note_repair(endpoint, step, from, to),
                Notice::Failed if self.share.is_some() => {
                    self.go_wrong("a connection was given up");
                }
                // a goodbye that was given up after everything had arrived: nobody misses it
                Notice::Failed if !self.messages.is_needed(endpoint) => self.note_failure(endpoint),
                Notice::Failed => self.connection_failed(endpoint),
            }
        }
        if self.rocev2.is_some() {
            self.carry_queue_pair_notices();
        }
    }

    /// TCP has given up a connection that is still needed. Who bears that is told; others are stuck.
    fn connection_failed(&mut self, endpoint: EndpointId) {
        self.note_failure(endpoint);
        let owner = self.messages.owner(endpoint);
        let bearing = |&(w, _): &(u16, _)| self.drivers[usize::from(w)].workload.bears_failures();
        if let Some((workload, name)) = owner.filter(bearing) {
            let client = match endpoint.side() {
                Side::Client => endpoint,
                Side::Server => endpoint.peer(),
            };
            if let Some(name) = name {
                self.messages.close(workload, name);
            }
            self.abort(client);
            if let Some(name) = name {
                self.tell(workload, Event::Failed { conn: eastwest_types::ConnId(name) });
            }
            return;
        }
        let e = self.stack.endpoint(endpoint);
        self.stuck = Some(RunError::Stuck(format!(
            "at {} the connection from {} to {} was given up after {} timeouts in a row{}",
            self.now,
            self.fabric.graph.names[e.local().0 as usize],
            self.fabric.graph.names[e.remote().0 as usize],
            self.stack.config_of(endpoint).max_retries + 1,
            self.describe_failures(),
        )));
    }

    /// Tells a workload what happened and does what it asks for.
    pub(crate) fn tell(&mut self, workload: u16, event: Event) {
        let mut actions: Vec<Action> = Vec::new();
        self.drivers[usize::from(workload)].workload.handle(self.now, event, &mut actions);
        for action in actions {
            self.act(workload, action);
        }
    }

    /// Registers a wake-up of a workload.
    pub(crate) fn wake(&mut self, workload: u16, at: Time, token: u64) {
        debug_assert!(at >= self.now, "a wake-up in the past");
        if self.wakes.push(workload, at.max(self.now), token) {
            let links = self.fabric.links.len() as u32;
            self.sources.set(links + WAKES, self.wakes.first());
        }
    }

    /// Asks TCP for something, where it may be looked at.
    #[inline]
    pub(crate) fn ask_tcp(&mut self, ask: &Ask) {
        match self.paths.is_on() {
            true => self.ask_in::<true>(ask),
            false => self.ask_in::<false>(ask),
        }
    }

    #[inline]
    fn ask_in<const INSIDE: bool>(&mut self, ask: &Ask) {
        self.tcp_in::<INSIDE, false, _>(|stack, now, out| match *ask {
            Ask::Wake(end) => stack.on_wake(now, end, out),
            Ask::Write(end, bytes) => stack.write(now, end, bytes, out),
            Ask::Close(end) => stack.close(now, end, out),
        });
    }

    /// Lets the transport stack work; what it wants from the network and the clock happens at once,
    /// what it has to say to applications waits in `notices`.
    #[inline]
    pub(crate) fn tcp_in<const INSIDE: bool, const BRIDGED: bool, R>(
        &mut self,
        f: impl FnOnce(&mut Stack, Time, &mut Out<INSIDE, BRIDGED>) -> R,
    ) -> R {
        let mut out = Out {
            now: self.now,
            fabric: &mut self.fabric,
            sources: &mut self.sources,
            timers: &mut self.transport_timers,
            notices: &mut self.notices,
            inside: (INSIDE && self.paths.is_on()).then_some((&mut self.paths, &self.messages)),
        };
        f(&mut self.stack, self.now, &mut out)
    }

    /// The source of the timers of all transports, in the order of events.
    pub(crate) fn timer_source(&self) -> u32 {
        self.fabric.links.len() as u32 + TRANSPORT_TIMERS
    }

    /// How far the run is.
    pub fn progress(&self) -> Progress {
        let done = self
            .drivers
            .iter()
            .map(|d| d.workload.progress())
            .filter(|p| p.1 > 0)
            .fold((0, 0), |sum, p| (sum.0 + p.0, sum.1 + p.1));
        Progress {
            now: self.now,
            until: self.until,
            done,
            packet_hops: self.fabric.packet_hops(),
            events: self.events,
        }
    }

    /// Which links are down, for messages; empty where none is.
    pub(crate) fn describe_failures(&self) -> String {
        let mut down = self.fabric.links.iter().filter(|l| l.is_down());
        let some: Vec<String> =
            down.by_ref().take(6).map(|l| ports::name(&self.fabric, l)).collect();
        match (some.is_empty(), down.count()) {
            (true, _) => String::new(),
            (_, 0) => format!("; links that are down: {}", some.join(", ")),
            (_, more) => format!("; links that are down: {} and {more} more", some.join(", ")),
        }
    }

    /// What is still to arrive over TCP or queue pairs, and who waits.
    pub(crate) fn describe_outstanding(&self) -> String {
        self.describe_stuck(|slot, side| {
            let end = self.stack.endpoint(EndpointId::new(slot + side as usize, 0));
            (end.local(), end.remote())
        })
    }

    /// The same, where `ends` knows the sender and the receiver of a connection's side: without packets
    /// there are no endpoints to ask.
    pub(crate) fn describe_stuck(&self, ends: impl Fn(usize, Side) -> (HostId, HostId)) -> String {
        let on_connections = self.messages.outstanding().map(|(slot, side, m)| {
            let (from, to) = ends(slot, side);
            (from, to, m)
        });
        let on_queue_pairs = self.rocev2.iter().flat_map(|all| all.outstanding());
        let mut lines: Vec<String> = on_connections
            .chain(on_queue_pairs)
            .take(5)
            .map(|(from, to, m)| {
                let name = |h: HostId| &self.fabric.graph.names[h.0 as usize];
                format!(
                    "{} message of {} B from {} to {} sent at {}",
                    m.purpose.name(),
                    m.payload,
                    name(from),
                    name(to),
                    m.sent
                )
            })
            .collect();
        let waiting: Vec<&str> = self
            .drivers
            .iter()
            .filter(|d| !d.finished && !d.background)
            .map(|d| d.name.as_str())
            .collect();
        lines.push(format!(
            "at {} nothing is left to happen, but not finished: {}{}",
            self.now,
            waiting.join(", "),
            self.describe_failures(),
        ));
        lines.join("; ")
    }

    /// The digest of all that has happened; call once, at the end.
    pub fn digest(&mut self) -> String {
        std::mem::take(&mut self.records.digest).finish(&self.fabric.links, self.now)
    }
}
