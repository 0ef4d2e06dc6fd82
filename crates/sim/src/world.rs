//! The world of one run and the loop that moves it: takes the next event, lets the layer it belongs
//! to handle it, and carries what that layer wants over to the others.

use crate::flow_samples::Over;
use crate::network::Source;
use crate::plan::Plan;
use crate::probes::Probes;
pub use crate::progress::{Progress, RunError};
use crate::rocev2;
use crate::share::Share;
use crate::site::Site;
use crate::tcp::Ask;
use eastwest_engine::order::{Class, Key};
use eastwest_network::dcb::Cnm;
use eastwest_network::taps::Seen;
use eastwest_types::{EndpointId, Packet, Span, Time};
use eastwest_workload::Event;
use serde::{Deserialize, Serialize};

/// A simulated data centre, packet by packet.
#[derive(Serialize, Deserialize)]
pub struct World {
    /// Network, transports, drivers, probes.
    pub(crate) site: Site,
    /// Workloads have been told that the run begins.
    begun: bool,
    /// What a part of a run in parts has to do with others.
    pub(crate) share: Option<Box<Share>>,
    /// Links looked at by events since the caller's wishes were last looked at.
    #[serde(skip)]
    links_seen: usize,
}

/// How many events pass between two looks at the caller's wishes.
const EVENTS_PER_LOOK: u64 = 1 << 16;
/// An event that looks at all links counts more: after so many of them there is such a look, too.
const LINKS_PER_LOOK: usize = 1 << 22;

impl World {
    /// Builds the world of a plan. Fails where routes cannot be followed.
    pub fn new(plan: Plan) -> Result<World, String> {
        Ok(World { site: Site::new(plan)?, begun: false, share: None, links_seen: 0 })
    }

    /// Returns what it consists of.
    pub fn site_mut(&mut self) -> &mut Site {
        &mut self.site
    }

    /// Returns how far the run is.
    pub fn progress(&self) -> Progress {
        self.site.progress()
    }

    /// Returns the digest of all that has happened; call once, at the end.
    pub fn digest(&mut self) -> String {
        self.site.digest()
    }

    /// Checks that no packet was lost without being counted; see [`Site::conserved`].
    pub fn conserved(&self) -> Result<(), String> {
        self.site.conserved()
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
        let (probes, network) = (&self.site.probes, &self.site.network);
        let ended = match (probes.look_inside(network), network.fabric.has_dcb()) {
            (false, false) => self.run_all::<false, false>(most, look),
            (false, true) => self.run_all::<false, true>(most, look),
            (true, false) => self.run_all::<true, false>(most, look),
            (true, true) => self.run_all::<true, true>(most, look),
        };
        if ended != Err(RunError::Interrupted) {
            let network = &mut self.site.network;
            network.fabric.settle(network.now);
        }
        ended
    }

    /// The number of the event after which the loop looks up.
    fn next_look(&self, most: u64) -> u64 {
        most.min((self.site.events / EVENTS_PER_LOOK + 1) * EVENTS_PER_LOOK)
    }

    /// Tells workloads that the run begins, once.
    pub(crate) fn begin(&mut self) {
        if !std::mem::replace(&mut self.begun, true) {
            for w in 0..self.site.drivers.all.len() {
                self.tell(w as u16, Event::Begin);
            }
            self.carry_notices();
        }
    }

    fn run_all<const INSIDE: bool, const DCB: bool>(
        &mut self,
        most: u64,
        look: &mut dyn FnMut(&mut World) -> bool,
    ) -> Result<(), RunError> {
        self.begin();
        while !self.stretch::<INSIDE, DCB>(self.next_look(most))? {
            let is_due = self.site.events % EVENTS_PER_LOOK == 0;
            if is_due {
                self.note_losses(Time::NEVER);
            }
            if (is_due || self.links_seen >= LINKS_PER_LOOK) && !look(self) {
                return Err(RunError::Interrupted);
            }
            self.links_seen = 0;
            if self.site.events >= most {
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
    pub(crate) fn stretch<const INSIDE: bool, const DCB: bool>(
        &mut self,
        events: u64,
    ) -> Result<bool, RunError> {
        let links = self.site.network.fabric.links.len() as u32;
        while self.site.drivers.unfinished > 0 && self.site.drivers.stuck.is_none() {
            let site = &mut self.site;
            let (key, source) = site.network.sources.winner();
            if key == Key::NEVER && !site.drivers.await_the_end(site.until) {
                self.note_losses(Time::NEVER);
                let site = &mut self.site;
                let outstanding = site.describe_stuck(site.transports.outstanding());
                return Err(site.drivers.stuck.take().unwrap_or(RunError::Stuck(outstanding)));
            }
            if key.time() > site.until {
                site.network.now = site.until;
                site.network.fabric.find_deadlock(site.until);
                self.note_losses(Time::NEVER);
                return self.site.drivers.stuck.take().map_or(Ok(true), Err);
            }
            site.network.now = key.time();
            site.events += 1;
            if source < links {
                let network = &mut site.network;
                let arrived = network.fabric.fire::<INSIDE, DCB>(key, source, &mut network.sources);
                if INSIDE && let Some(seen) = network.fabric.taps.take() {
                    self.capture(&seen);
                }
                if let Some(packet) = arrived {
                    let site = &mut self.site;
                    if let Some(endpoint) = site.network.fabric.next_reader.take() {
                        site.transports.tcp.stack.prefetch(endpoint);
                    }
                    self.deliver::<INSIDE, DCB>(&packet);
                    if !self.site.transports.tcp.notices.is_empty() {
                        self.carry_notices();
                    }
                }
            } else {
                self.fire_other(source);
                self.carry_notices();
                if self.links_seen >= LINKS_PER_LOOK && self.share.is_none() {
                    return Ok(false);
                }
            }
            if self.site.events >= events {
                return Ok(false);
            }
        }
        self.site.drivers.stuck.take().map_or(Ok(true), Err)
    }

    fn fire_other(&mut self, source: u32) {
        let source = self.site.network.source(source).expect("it is not a link");
        match self.share.is_some() {
            true => self.fire_in_part(source),
            false => self.fire(source),
        }
    }

    /// Carries out an event that is not a link's.
    pub(crate) fn fire(&mut self, source: Source) {
        let site = &mut self.site;
        let links = site.network.fabric.links.len();
        match source {
            Source::Timers => {
                let id = site.network.take_timer();
                if id >= rocev2::ALARM {
                    site.transports.queue_pairs().on_alarm(&mut site.network, id);
                    return self.carry_queue_pair_notices();
                }
                let endpoint = EndpointId(id as u32);
                site.probes.paths.prompted(true);
                site.ask_tcp(&Ask::Wake(endpoint));
                site.probes.paths.prompted(false);
                if site.probes.tracer.is_on() {
                    self.trace(endpoint);
                }
            }
            Source::Wakes => {
                let woken = site.drivers.wakes.pop();
                let (workload, token) = woken.expect("the wake-up list stood in the tree");
                site.network.set(Source::Wakes, site.drivers.wakes.first());
                self.wake_up(workload, token);
            }
            Source::Samples => {
                let Site { network, probes, .. } = site;
                network.fabric.settle(network.now);
                probes.records.sample(&network.fabric, network.now);
                self.links_seen += links;
                let next = match site.at_rest() {
                    true => Key::NEVER,
                    false => Key::new(site.probes.records.samples.next(), Class::Sample),
                };
                site.network.set(Source::Samples, next);
            }
            Source::Faults if site.network.fabric.deadlock().is_some() => {
                // what it holds never moves again
                site.network.set(Source::Faults, Key::NEVER);
                site.drivers.unfinished = 0;
            }
            Source::Faults => {
                let network = &mut site.network;
                network.fabric.change(network.now, &mut network.sources);
                self.links_seen += LINKS_PER_LOOK;
                let next = match site.at_rest() {
                    true => Key::NEVER,
                    false => site.network.next_change(),
                };
                site.network.set(Source::Faults, next);
            }
        }
    }

    /// Takes a packet that a tap has seen.
    fn capture(&mut self, seen: &Seen) {
        let Site { probes, network, transports, .. } = &mut self.site;
        if let Some(capture) = &mut probes.capture {
            let origin = transports.origin_of(&seen.packet);
            capture.take(network, &transports.tcp.stack, &origin, seen);
        }
    }

    /// Writes a row of the window of a sender, if it is traced and has changed.
    fn trace(&mut self, end: EndpointId) {
        let Site { probes, network, transports, .. } = &mut self.site;
        let tcp = &transports.tcp;
        probes.tracer.look(network.now, &tcp.stack, &tcp.connections, end);
    }

    /// Delivers a packet that has reached its host.
    #[inline(always)]
    fn deliver<const INSIDE: bool, const DCB: bool>(&mut self, packet: &Packet) {
        let Site { network, transports, probes, .. } = &mut self.site;
        let latency = network.now.since(packet.born);
        if packet.notes & Packet::DATAGRAM != 0 {
            return self.deliver_datagram::<INSIDE>(packet, latency);
        }
        let sack = network.fabric.pool.take_sack(packet.sack);
        let to = packet.dst_endpoint;
        let class = transports.tcp.stack.endpoint(to).class();
        let Probes { records, paths, .. } = probes;
        records.latency(class, packet, latency);
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
                let kept = tcp.stack.endpoint(to).kept();
                probes.flow_samples.arrived(Over::Tcp, to, network.now, kept);
            }
            self.trace(to);
        }
    }

    #[inline(never)]
    fn deliver_datagram<const INSIDE: bool>(&mut self, packet: &Packet, latency: Span) {
        let Site { network, transports, probes, .. } = &mut self.site;
        if packet.flags != 0 {
            let (to, queue_pairs) = (packet.dst_endpoint, transports.queue_pairs());
            let class = queue_pairs.stack.end(to).class();
            probes.records.latency(class, packet, latency);
            queue_pairs.on_packet(network, packet);
            if INSIDE && probes.flow_samples.is_on() {
                let received = queue_pairs.stack.end(to).received();
                probes.flow_samples.arrived(Over::RoceV2, to, network.now, received);
            }
            return self.carry_queue_pair_notices();
        }
        if self.share.is_some() {
            return self.delivered_across(packet.dst_endpoint, packet.seq);
        }
        if let Some(cnm) = Cnm::delivered(packet) {
            return network.fabric.apply_cnm(network.now, &cnm, &mut network.sources);
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
