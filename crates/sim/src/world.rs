//! Event loop of a run in packet mode: selects the next event in the event list, calls the layer
//! (network, transport or workload) that handles it, and passes the requests of this layer to the
//! other layers.

use crate::critical_path::Prompt;
use crate::network::Source;
use crate::part_state::PartState;
use crate::plan::Plan;
use crate::probes::Probes;
use crate::processing::{Segment, Spent, Work};
pub use crate::progress::{Progress, RunError};
use crate::site::Site;
use crate::stream_transports::number::TransportNumber;
use crate::tcp::TcpRequest;
use eastwest_engine::order::{Class, Key};
use eastwest_network::dcb::Cnm;
use eastwest_network::taps::Seen;
use eastwest_types::{EndpointId, Packet, Span, Time};
use eastwest_workload::{Action, Event};
use serde::{Deserialize, Serialize};

/// Complete state of a run in packet mode.
#[derive(Serialize, Deserialize)]
pub struct World {
    /// State that all modes share: network, transports, workloads, probes.
    pub(crate) site: Site,
    /// Whether workloads have been notified that the run begins.
    has_started: bool,
    /// In a partitioned run: state of this part that other parts need; `None` in an undivided run.
    pub(crate) part_state: Option<Box<PartState>>,
    /// Number of links that events such as samples have visited since the caller was last asked
    /// whether the run continues.
    #[serde(skip)]
    links_visited: usize,
    /// Empty vector for the actions of workloads, whose memory is used again.
    #[serde(skip)]
    pub(crate) actions: Vec<Action>,
}

/// Reason why [`World::run_events`] returns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    /// The run is over.
    Over,
    /// A [frame](crate::frame) is due.
    Frame,
    /// The requested number of events was executed, or events have visited many links.
    Check,
}

/// Number of events after which the caller is asked whether the run continues.
const EVENTS_PER_CHECK: u64 = 1 << 16;
/// Number of visited links after which the caller is also asked whether the run continues: a sample
/// visits all links, so it costs much more than other events.
const LINKS_PER_CHECK: usize = 1 << 22;

impl World {
    /// Builds the state of a run from its plan. Fails if the fabric cannot be built, for example
    /// because a host has no path to another one.
    pub fn new(plan: Plan) -> Result<World, String> {
        let (site, actions) = (Site::new(plan)?, Vec::new());
        Ok(World { site, has_started: false, part_state: None, links_visited: 0, actions })
    }

    /// Returns mutable access to the state that all modes share (network, transports, workloads,
    /// probes).
    pub fn site_mut(&mut self) -> &mut Site {
        &mut self.site
    }

    /// Returns the progress of the run.
    pub fn progress(&self) -> Progress {
        self.site.progress()
    }

    /// Returns the digest of the run, 32 hexadecimal digits. This function must be called only
    /// once, at the end of the run.
    pub fn digest(&mut self) -> String {
        self.site.digest()
    }

    /// Checks that every packet is delivered, lost, absorbed by a switch or in flight; see
    /// [`Site::conserved`]. Fails with a description of the violation.
    pub fn conserved(&self) -> Result<(), String> {
        self.site.conserved()
    }

    /// Ends a run that its caller has stopped before its end, so that the results of this part of
    /// the run can be made.
    pub fn end_here(&mut self) {
        let network = &mut self.site.network;
        network.fabric.settle(network.now);
    }

    /// Runs the simulation to its end. `keep_running` is called regularly, and when a requested
    /// [frame](crate::frame) is due; if it returns false, the run stops between two events with
    /// [`RunError::Interrupted`]. A checkpoint can then be written, and a further call continues
    /// the run.
    pub fn run(
        &mut self,
        keep_running: &mut dyn FnMut(&mut World) -> bool,
    ) -> Result<(), RunError> {
        self.run_to(u64::MAX, keep_running)
    }

    /// Runs like [`World::run`], but stops with [`RunError::Interrupted`] after `max_events` events
    /// in total.
    pub fn run_to(
        &mut self,
        max_events: u64,
        keep_running: &mut dyn FnMut(&mut World) -> bool,
    ) -> Result<(), RunError> {
        // Runs without detailed probes or without DCB ports have their own variants of the event
        // loop (`INSIDE`: with detailed probes, `DCB`: with ports that use PFC or QCN). This saves
        // branches in the execution of each event.
        let (probes, network) = (&self.site.probes, &self.site.network);
        let ended = match (probes.look_inside(network), network.fabric.has_dcb()) {
            (false, false) => self.run_loop::<false, false>(max_events, keep_running),
            (false, true) => self.run_loop::<false, true>(max_events, keep_running),
            (true, false) => self.run_loop::<true, false>(max_events, keep_running),
            (true, true) => self.run_loop::<true, true>(max_events, keep_running),
        };
        if ended != Err(RunError::Interrupted) {
            let network = &mut self.site.network;
            network.fabric.settle(network.now);
        }
        if ended.is_ok() {
            self.site.show();
        }
        ended
    }

    /// Returns the number of the event after which the caller is next asked whether the run
    /// continues.
    fn next_check(&self, max_events: u64) -> u64 {
        max_events.min((self.site.events / EVENTS_PER_CHECK + 1) * EVENTS_PER_CHECK)
    }

    /// Whether workloads have been notified that the run begins.
    pub(crate) fn has_started(&self) -> bool {
        self.has_started
    }

    /// Notifies all workloads that the run begins. Further calls do nothing.
    pub(crate) fn start_workloads(&mut self) {
        if !std::mem::replace(&mut self.has_started, true) {
            let connections = self.site.reserve_connections();
            if self.part_state.is_some() {
                self.reserve_in_part(connections);
            }
            for w in 0..self.site.drivers.all.len() {
                self.notify_workload(w as u16, Event::Begin);
            }
            self.dispatch_notices();
        }
    }

    /// Executes events until the run is over, the caller interrupts the run, or `max_events` events
    /// were executed in total. The constants select the [variant](World::run_to) of the loop.
    fn run_loop<const INSIDE: bool, const DCB: bool>(
        &mut self,
        max_events: u64,
        keep_running: &mut dyn FnMut(&mut World) -> bool,
    ) -> Result<(), RunError> {
        self.start_workloads();
        loop {
            match self.run_events::<INSIDE, DCB>(self.next_check(max_events))? {
                Pause::Over => return Ok(()),
                Pause::Frame => {
                    self.show_frame(keep_running)?;
                    continue;
                }
                Pause::Check => {}
            }
            let is_due = self.site.events % EVENTS_PER_CHECK == 0;
            if is_due {
                self.record_losses(Time::NEVER);
            }
            if (is_due || self.links_visited >= LINKS_PER_CHECK) && !keep_running(self) {
                return Err(RunError::Interrupted);
            }
            self.links_visited = 0;
            if self.site.events >= max_events {
                return Err(RunError::Interrupted);
            }
        }
    }

    /// Passes the frame that is due to the caller of the run.
    fn show_frame(
        &mut self,
        keep_running: &mut dyn FnMut(&mut World) -> bool,
    ) -> Result<(), RunError> {
        self.site.advance_to_frame();
        let network = &mut self.site.network;
        network.fabric.settle(network.now);
        self.site.show();
        let proceed = keep_running(self);
        let next = self.site.network.sources.winner().0.time();
        self.site.defer_frame(next);
        if proceed { Ok(()) } else { Err(RunError::Interrupted) }
    }

    /// Main event loop: executes events until their total number reaches `events`, a snapshot of
    /// the run ([`frame`](crate::frame)) is due, an event has visited many links, or the run is
    /// over. Returns which of these has happened, or an error if the run cannot continue.
    ///
    /// `Tournament::winner` returns the source (link, timers …) with the next event and does not
    /// remove the event: the handler of the event sets the next event of this source.
    ///
    /// This function is separate from its caller, so that the compiler optimizes the code for
    /// packets independently of the rest.
    #[inline(never)]
    pub(crate) fn run_events<const INSIDE: bool, const DCB: bool>(
        &mut self,
        events: u64,
    ) -> Result<Pause, RunError> {
        // One comparison per event finds the end of the run, the next frame, and a list without
        // events.
        let last = Key::last_until(self.site.until.min(self.site.next_frame()));
        while self.site.drivers.unfinished > 0 && self.site.drivers.stuck.is_none() {
            // Only workloads end the run, and a packet that arrives at a switch reaches none.
            let mut only_moves_packets = true;
            while only_moves_packets {
                let site = &mut self.site;
                let (key, source) = site.network.sources.winner();
                if key > last {
                    return self.pause_before(key);
                }
                site.network.now = key.time();
                site.events += 1;
                if (source as usize) < site.network.fabric.links.len() {
                    let network = &mut site.network;
                    let arrived =
                        network.fabric.fire::<INSIDE, DCB>(key, source, &mut network.sources);
                    if INSIDE && let Some(seen) = network.fabric.taps.take() {
                        self.capture(&seen);
                    }
                    if INSIDE && let Some(hop) = self.site.network.fabric.journeys.take_hop() {
                        let place = self.site.transports.place_of(&hop.packet);
                        self.site.probes.packet_hops.take(&hop, &place);
                    }
                    if let Some(slot) = arrived {
                        self.receive::<INSIDE, DCB>(slot);
                        only_moves_packets = false;
                    }
                } else if let Some(id) = site.network.card_alarms.id_of(source) {
                    match self.part_state.is_some() {
                        true => self.on_card_alarm_in_part((key, source), id),
                        false => self.on_card_alarm((key, source), id),
                    }
                    only_moves_packets = false;
                } else {
                    self.dispatch_other(source);
                    self.dispatch_notices();
                    if self.links_visited >= LINKS_PER_CHECK && self.part_state.is_none() {
                        return Ok(Pause::Check);
                    }
                    only_moves_packets = false;
                }
                if self.site.events >= events {
                    return Ok(Pause::Check);
                }
            }
        }
        self.site.drivers.stuck.take().map_or(Ok(Pause::Over), Err)
    }

    /// Removes a packet that has reached its host from the pool and delivers it.
    #[inline(always)]
    fn receive<const INSIDE: bool, const DCB: bool>(&mut self, slot: u32) {
        let site = &mut self.site;
        let packet = site.network.fabric.pool.remove(slot);
        if let Some(endpoint) = site.network.fabric.next_reader.take() {
            site.transports.tcp.stack.prefetch(endpoint);
        }
        self.deliver::<INSIDE, DCB>(&packet);
        if !self.site.transports.tcp.notices.is_empty() {
            self.dispatch_notices();
        }
    }

    /// Returns the reason why the event `key` is not executed: the run is over before it, a frame is
    /// due before it, or no events are left, which may be an error.
    #[cold]
    #[inline(never)]
    fn pause_before(&mut self, key: Key) -> Result<Pause, RunError> {
        let site = &mut self.site;
        let is_alone = self.part_state.is_none(); // another part may have events
        if key == Key::NEVER && is_alone && !site.drivers.await_the_end(site.until) {
            self.record_losses(Time::NEVER);
            let site = &mut self.site;
            let outstanding = site.describe_stuck(site.transports.outstanding());
            return Err(site.drivers.stuck.take().unwrap_or(RunError::Stuck(outstanding)));
        }
        if site.next_frame() < site.until {
            return Ok(Pause::Frame);
        }
        site.network.now = site.until;
        site.network.fabric.find_deadlock(site.until);
        self.record_losses(Time::NEVER);
        self.site.drivers.stuck.take().map_or(Ok(Pause::Over), Err)
    }

    /// Handles the expiry of the alarm `id` of a card, which is the event (key, source).
    #[inline(always)]
    pub(crate) fn on_card_alarm(&mut self, (key, source): (Key, u32), id: u64) {
        let site = &mut self.site;
        let (transport, number) = TransportNumber::of_timer(id);
        let has_notices =
            site.transports.further_mut(transport).on_timer(&mut site.network, number);
        // The transport may have armed the alarm again.
        let events = &mut site.network.sources;
        if events.key(source) == key {
            events.set(source, Key::NEVER);
        }
        if has_notices {
            self.dispatch_further_notices(transport);
        }
    }

    /// Executes an event of a source other than a link, in an undivided run or in a part of a
    /// partitioned run.
    fn dispatch_other(&mut self, source: u32) {
        let source = self.site.network.source(source).expect("the source is not a link");
        match self.part_state.is_some() {
            true => self.dispatch_in_part(source),
            false => self.dispatch(source),
        }
    }

    /// Handles the expiry of the earliest timer of all transports.
    #[inline]
    fn on_transport_timer(&mut self) {
        let site = &mut self.site;
        let (transport, number) = TransportNumber::of_timer(site.network.take_timer());
        if transport != TransportNumber::TCP {
            let further = site.transports.further_mut(transport);
            if further.on_timer(&mut site.network, number) {
                self.dispatch_further_notices(transport);
            }
            return;
        }
        let endpoint = EndpointId(number as u32);
        let paths_are_on = site.probes.paths.is_on();
        if paths_are_on {
            let stack = &site.transports.tcp.stack;
            site.probes.paths.timer_expires(stack, endpoint, site.network.now);
        }
        site.request_tcp(&TcpRequest::Timer(endpoint));
        if paths_are_on {
            site.probes.paths.prompted(Prompt::Application);
        }
        if site.probes.tracer.is_on() {
            self.trace(endpoint);
        }
    }

    /// Executes an event of a source other than a link: a timer, a wake-up, a sample or a fault.
    pub(crate) fn dispatch(&mut self, source: Source) {
        let site = &mut self.site;
        let links = site.network.fabric.links.len();
        match source {
            Source::Timers => {
                self.on_transport_timer();
                self.site.network.end_timer();
            }
            Source::Wakes => {
                let woken = site.drivers.wakes.pop();
                let woken = woken.expect("a wake-up is due, so the list has one");
                site.network.set(Source::Wakes, site.drivers.wakes.first());
                self.on_wakeup(woken.workload, woken.token);
            }
            Source::Samples => {
                let Site { network, probes, .. } = site;
                network.fabric.settle(network.now);
                probes.records.sample(&network.fabric, network.now);
                self.links_visited += links;
                let next = match site.is_idle() {
                    true => Key::NEVER,
                    false => Key::new(site.probes.records.samples.next(), Class::Sample),
                };
                site.network.set(Source::Samples, next);
            }
            Source::Processing => {
                if let Some((work, spent)) = site.network.next_work() {
                    self.finish_work(work, spent);
                }
            }
            Source::Faults if site.network.fabric.deadlock().is_some() => {
                // the packets of the deadlock are never sent again, so the run ends
                site.network.set(Source::Faults, Key::NEVER);
                site.drivers.unfinished = 0;
            }
            Source::Faults => {
                let network = &mut site.network;
                network.fabric.change(network.now, &mut network.sources);
                self.links_visited += LINKS_PER_CHECK;
                let next = match site.is_idle() {
                    true => Key::NEVER,
                    false => site.network.next_change(),
                };
                site.network.set(Source::Faults, next);
            }
        }
    }

    /// Records a packet in the packet capture; a tap (observer of a link) has seen the packet.
    fn capture(&mut self, seen: &Seen) {
        let Site { probes, network, transports, .. } = &mut self.site;
        if let Some(capture) = &mut probes.capture {
            let headers = || transports.headers(&seen.packet, seen.sack.as_ref());
            capture.take(network, seen, headers);
        }
    }

    /// Writes a row with the congestion window of a sender to the table `tcp_trace`, if the sender
    /// is traced and its window, slow-start threshold or phase has changed.
    fn trace(&mut self, end: EndpointId) {
        let Site { probes, network, transports, .. } = &mut self.site;
        let tcp = &transports.tcp;
        probes.tracer.look(network.now, &tcp.stack, &tcp.connections, end);
    }

    /// Delivers a packet that has reached its destination host to its transport, or to a CPU core
    /// of the host if `[hosts]` is simulated.
    #[inline(always)]
    fn deliver<const INSIDE: bool, const DCB: bool>(&mut self, packet: &Packet) {
        let Site { network, transports, probes, .. } = &mut self.site;
        let latency = network.now.since(packet.born);
        if packet.notes & Packet::DATAGRAM != 0 {
            return self.deliver_datagram::<INSIDE>(packet, latency);
        }
        let sack = network.fabric.pool.take_sack(packet.sack);
        if INSIDE && network.processing.is_some() {
            // A delivered packet has no field for its host; the host follows from the endpoint.
            let host = transports.tcp.stack.endpoint(packet.dst_endpoint).local();
            let paths = &mut probes.paths;
            let is_recorded = paths.is_on();
            let path = if is_recorded { paths.reaches_core(network, packet) } else { 0 };
            let segment = Segment { packet: *packet, sack, path, remaining: 0 };
            if !network.receive_by_core(host, segment) && is_recorded {
                paths.lose(path);
            }
            return;
        }
        let to = packet.dst_endpoint;
        let class = transports.tcp.stack.endpoint(to).class();
        let Probes { records, paths, .. } = probes;
        records.latency(class, packet, latency);
        if INSIDE && network.fabric.pool.keeps_telemetry() {
            transports.tcp.take_telemetry(network, packet);
        }
        if INSIDE && paths.is_on() {
            paths.arrives_at(network, &transports.tcp.stack, packet);
        }
        transports.tcp.work::<INSIDE, DCB, _>(network, paths, |stack, now, out| {
            stack.on_packet(now, packet, sack.as_ref(), out);
        });
        if INSIDE {
            let tcp = &transports.tcp;
            if paths.is_on() {
                paths.has_arrived(&tcp.stack, to);
            }
            if probes.flow_samples.is_on() {
                let kept = tcp.stack.endpoint(to).buffered();
                probes.flow_samples.arrived(TransportNumber::TCP, to, network.now, kept);
            }
            self.trace(to);
        }
    }

    /// Handles the end of the work of a CPU core, which took the time `spent`: a received segment
    /// is passed to TCP, a burst of segments to the network card.
    fn finish_work(&mut self, work: Work, spent: Spent) {
        let Site { network, transports, probes, .. } = &mut self.site;
        match work {
            Work::Message => {}
            Work::Sent(host, burst) => {
                for segment in burst {
                    if probes.paths.is_on() {
                        let slot = network.fabric.pool.next_slot();
                        probes.paths.leaves_core(network.now, segment.path, spent, slot);
                    }
                    network.send_segment(host, segment);
                }
            }
            Work::Received(Segment { packet, sack, .. }, frames) => {
                let to = packet.dst_endpoint;
                let class = transports.tcp.stack.endpoint(to).class();
                for frame in &frames {
                    probes.records.latency(class, &packet, network.now.since(frame.born));
                }
                if probes.paths.is_on() {
                    let stack = &transports.tcp.stack;
                    probes.paths.core_passes_on(network.now, stack, to, &frames, spent);
                }
                let frames = frames.len() as u16;
                transports.tcp.work::<true, true, _>(
                    network,
                    &mut probes.paths,
                    |tcp, now, out| {
                        tcp.on_merged(now, &packet, sack.as_ref(), frames, out);
                    },
                );
                if probes.paths.is_on() {
                    probes.paths.has_arrived(&transports.tcp.stack, to);
                }
                if probes.flow_samples.is_on() {
                    let kept = transports.tcp.stack.endpoint(to).buffered();
                    probes.flow_samples.arrived(TransportNumber::TCP, to, network.now, kept);
                }
                self.trace(to);
            }
        }
    }

    /// Delivers a packet that does not belong to TCP: a packet of a RoCEv2 queue pair, a datagram,
    /// a raw Ethernet frame, a congestion notification message (CNM) of QCN, or the arrival of a
    /// message that another part of a [partitioned](crate::parts) run has announced.
    #[inline(never)]
    fn deliver_datagram<const INSIDE: bool>(&mut self, packet: &Packet, latency: Span) {
        let Site { network, transports, probes, .. } = &mut self.site;
        if let Some(number) = packet.stream_transport() {
            let (to, number) = (packet.dst_endpoint, TransportNumber(number));
            let transport = transports.further_mut(number);
            let (class, notices) = transport.on_packet(network, packet);
            probes.records.latency(class, packet, latency);
            if INSIDE && probes.flow_samples.is_on() {
                let received = transport.received(to);
                probes.flow_samples.arrived(number, to, network.now, received);
            }
            if notices {
                self.dispatch_further_notices(number);
            }
            return;
        }
        if let Some(cnm) = Cnm::delivered(packet) {
            return network.fabric.apply_cnm(network.now, &cnm, &mut network.sources);
        }
        if self.part_state.is_some() && packet.ack > 0 && packet.payload == 0 {
            return self.delivered_across(packet.dst_endpoint, packet.seq); // a promise
        }
        probes.records.datagram(packet, latency);
        if packet.ack > 0 {
            if INSIDE && probes.paths.is_on() {
                probes.paths.frame(network, packet);
            }
            if INSIDE && probes.flow_samples.is_on() {
                let stream = packet.ack as u32 - 1;
                let row = &transports.streams.rows[stream as usize];
                probes.flow_samples.frame(stream, row, network.now, packet.payload);
            }
            self.frame_arrived(packet, latency);
        }
    }
}

impl From<World> for Site {
    fn from(world: World) -> Site {
        world.site
    }
}
