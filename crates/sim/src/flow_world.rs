//! Simulation in flow mode, with rates of flows instead of packets (crate `eastwest-fluid`). Flow
//! mode and packet mode share workloads, routes and records. Results that need packets are empty in
//! flow mode.

use crate::approximate::{Approximate, FlowCounts};
use crate::approximate_run::ApproximateRun;
use crate::flow_energy;
use crate::messages::{LossCounts, Message};
use crate::plan::Plan;
use crate::progress::RunError;
use crate::site::Site;
use crate::wakes::{Executed, WakeUp};
use eastwest_engine::order::Key;
use eastwest_fluid::delay::{PortSpec, Queue};
use eastwest_fluid::network::{Carried, Delivered, Network, Pace};
use eastwest_fluid::transfer::Rules;
use eastwest_network::config::FabricConfig;
use eastwest_network::energy::eee::StateTimes;
use eastwest_network::queue::QueueConfig;
use eastwest_network::topology::CableConfig;
use eastwest_transport::tcp::config::TcpConfig;
use eastwest_types::{ClassId, ConnId, EndpointId, HostId, Limit, Side, Span, Time};
use eastwest_workload::{Action, Event};
use std::collections::BTreeMap;

/// Number of events between two calls of the caller of the run ([`ApproximateRun::run`]). The number
/// is small because one event may change the rates of all flows.
const EVENTS_PER_CHECK: u64 = 1 << 4;
/// Minimum simulated time between two computations of the rates of flows: about one round trip.
pub(crate) const LEAST_PACE: Span = Span::from_us(20);
/// Additional simulated time between two computations of rates, for each flow and host:
/// computations take longer with many flows in a large fabric.
const PACE_PER_FLOW_AND_HOST: Span = Span::from_ns(20);

/// A run in flow mode, on one thread: a simulated data centre with rates of flows instead of
/// packets.
pub struct FlowWorld {
    /// Workloads, routes and records. Flow mode does not use the packets and transport timers of
    /// this state.
    site: Site,
    net: Network,
    /// Number, client and server of every connection, by its index in the fluid network `net`.
    opened: Vec<(u64, HostId, HostId)>,
    /// Number of connections that workloads have declared or opened.
    connections: u64,
    /// Connections that are declared and not open, by workload and its name for the connection.
    declared: BTreeMap<(u16, u32), Declared>,
    /// Target queueing delay of every port, by link number; `None` if the queue discipline of the
    /// port has no target.
    targets: Vec<Option<Span>>,
    /// Bytes of a full packet on a link, with framing.
    full: f64,
    /// Whether any link can sleep (Energy-Efficient Ethernet).
    sleeps: bool,
}

/// A connection that is declared and not open.
struct Declared {
    paths: [Box<[u32]>; 2],
    class: ClassId,
    /// Number, client and server.
    opened: (u64, HostId, HostId),
}

/// Returns the limit of a queue in bytes; `packet` is the size of a full packet in bytes.
fn room(queue: &QueueConfig, packet: u64) -> u64 {
    match queue.limit() {
        Limit::Packets(n) => u64::from(n) * packet,
        Limit::Bytes(n) => n,
    }
}

/// Returns one direction of a cable for the fluid network. `ends` is whether it begins at a host, and
/// whether it ends at a host.
pub(crate) fn port(config: &FabricConfig, cable: CableConfig, ends: (bool, bool)) -> PortSpec {
    let full = config.mtu + config.framing;
    let (at_host, to_host) = ends;
    let queue = if at_host { &config.host_queue } else { &config.switch_queue };
    let mut bytes = room(queue, u64::from(full));
    if let Some(shared) = config.shared_queues().filter(|_| !at_host) {
        // limit of a queue in the shared memory (dynamic threshold) if all other queues are empty
        let alone = shared.alpha / (1.0 + shared.alpha) * shared.size as f64;
        bytes = bytes.min((alone as u64).max(shared.reserve));
    }
    let queue = match queue.target(cable.rate, full) {
        Some(target) => Queue::Aims(target, bytes),
        None => Queue::DropTail(bytes),
    };
    let jitter = Span(config.processing_jitter.0 / 2);
    let last = if to_host { jitter } else { Span::ZERO };
    PortSpec { rate: cable.rate, delay: cable.delay + last, queue }
}

/// Returns the ports of a fabric, one for each link, for the fluid network.
pub(crate) fn ports(network: &crate::network::Network, config: &FabricConfig) -> Vec<PortSpec> {
    let hosts = network.fabric.graph.hosts;
    let links = network.fabric.links.iter();
    links.map(|l| port(config, l.cable, (l.from < hosts, l.to < hosts))).collect()
}

/// Sets the counters of each link to the packets and bytes that its port has carried.
fn count_bytes(network: &mut crate::network::Network, carried: &[Carried]) {
    for (link, carried) in network.fabric.links.iter_mut().zip(carried) {
        link.set_counts(carried.packets, carried.bytes);
    }
}

/// Returns the rules of TCP for the fluid network.
pub(crate) fn rules(tcp: &TcpConfig, config: &FabricConfig) -> Rules {
    Rules {
        segment: tcp.segment,
        header: tcp.header(),
        ack: tcp.header(),
        ack_every: tcp.ack_every,
        framing: config.framing,
        min_frame: config.min_frame,
        initial_window: u64::from(tcp.initial_window) * u64::from(tcp.segment),
        max_window: tcp.max_window,
        idle_restart: tcp.idle_restart.then_some(tcp.min_rto),
    }
}

impl ApproximateRun for FlowWorld {
    fn new(plan: Plan) -> Result<FlowWorld, String> {
        let (config, rules) = (plan.fabric.clone(), rules(&plan.tcp, &plan.fabric));
        let site = Site::new(plan)?;
        let ports = ports(&site.network, &config);
        let targets = ports.iter().map(|p| match p.queue {
            Queue::Aims(target, _) => Some(target),
            Queue::DropTail(_) => None,
        });
        let targets: Vec<Option<Span>> = targets.collect();
        let per_flow = PACE_PER_FLOW_AND_HOST * u64::from(site.network.fabric.graph.hosts);
        let pace = Pace { least: LEAST_PACE, per_flow };
        let mut net = Network::new(ports, rules, pace);
        let energy = &config.energy;
        let sleeps = energy.host.policy.falls_asleep() || energy.fabric.policy.falls_asleep();
        if sleeps {
            net.keep_times();
        }
        let full = f64::from(config.mtu + config.framing);
        let (opened, declared) = (Vec::new(), BTreeMap::new());
        Ok(FlowWorld { site, net, opened, connections: 0, declared, targets, full, sleeps })
    }

    fn site_mut(&mut self) -> &mut Site {
        &mut self.site
    }

    fn act(&mut self, workload: u16, action: Action) {
        let now = self.site.network.now;
        match action {
            Action::Wake { at, token } => {
                let executed = Executed::default();
                let wake_up = WakeUp { workload, token, executed };
                self.site.drivers.wakes.push(at.max(now), wake_up);
            }
            Action::Open { conn, client, server, class, cards } => {
                self.declare((workload, conn.0, class), (client, server), cards);
                self.connect(workload, conn.0);
            }
            Action::Declare { conn, client, server, class, cards } => {
                self.declare((workload, conn.0, class), (client, server), cards);
            }
            Action::Connect { conn } => self.connect(workload, conn.0),
            Action::Send { conn, from, payload, header, tag, purpose, job, record } => {
                let client = self.site.transports.tcp.messages.endpoint(workload, conn.0);
                let bytes = payload + u64::from(header);
                let start = self.net.written((client.slot() / 2) as u32)[from as usize];
                let message = Message {
                    start,
                    end: start + bytes,
                    tag,
                    payload,
                    purpose,
                    job,
                    record,
                    sent: now,
                    before: LossCounts::default(),
                };
                self.site.transports.tcp.messages.push(client, from, message);
                self.net.send(now, (client.slot() / 2) as u32, from, bytes);
            }
            // flow mode does not simulate closing one direction (FIN)
            Action::Shutdown { .. } => {}
            Action::Close { conn } => {
                let client = self.site.transports.tcp.messages.close(workload, conn.0);
                if self.net.close((client.slot() / 2) as u32) {
                    self.site.transports.tcp.messages.gone(client);
                }
            }
            Action::Abort { conn } => {
                let client = self.site.transports.tcp.messages.close(workload, conn.0);
                self.net.abort(now, (client.slot() / 2) as u32);
                self.site.transports.tcp.messages.gone(client);
            }
            Action::Ask { conn } => {
                // as in packet mode, the workload may have closed the connection when it was
                // notified of an earlier answer
                let Some(client) = self.site.transports.tcp.messages.find(workload, conn.0) else {
                    return;
                };
                let bytes = self.net.received((client.slot() / 2) as u32);
                self.tell(workload, Event::Received { conn, bytes });
            }
            Action::Datagram { .. }
            | Action::Frame { .. }
            | Action::Parcel(_)
            | Action::Truncate { .. } => {
                unreachable!("flow mode has no datagrams and no transfers that end at a time")
            }
            Action::Fail(why) => self.site.drivers.fail(workload, now, &why),
            Action::Finished => self.site.drivers.finish(workload),
            report => self.site.probes.records.take(workload, now, report),
        }
    }

    fn run(
        &mut self,
        _threads: usize,
        look: &mut dyn FnMut(&mut Site) -> bool,
    ) -> Result<(), RunError> {
        for w in 0..self.site.drivers.all.len() {
            self.tell(w as u16, Event::Begin);
        }
        let mut next_check = EVENTS_PER_CHECK;
        while self.site.drivers.unfinished > 0 && self.site.drivers.stuck.is_none() {
            let wake = self.site.drivers.wakes.first();
            let arrival = self.net.next();
            let is_idle = wake == Key::NEVER && arrival == Time::NEVER;
            if is_idle && !self.site.drivers.await_the_end(self.site.until) {
                return Err(RunError::Stuck(self.describe_stuck()));
            }
            let wake = if wake == Key::NEVER { Time::NEVER } else { wake.time() };
            let sample =
                if is_idle { Time::NEVER } else { self.site.probes.records.samples.next() };
            let now = arrival.min(wake).min(sample);
            let horizon = self.site.until.min(self.site.next_frame());
            if now > horizon || now == Time::NEVER {
                if horizon < self.site.until {
                    self.site.advance_to_frame();
                    self.show();
                    let proceed = look(&mut self.site);
                    self.site.defer_frame(now);
                    if !proceed {
                        return Err(RunError::Interrupted);
                    }
                    continue;
                }
                self.site.network.now = self.site.until;
                break;
            }
            self.site.network.now = now;
            self.site.events += 1;
            if arrival == now {
                if let Some(delivered) = self.net.advance() {
                    self.deliver(delivered);
                }
            } else if wake == now {
                let WakeUp { workload, token, .. } =
                    self.site.drivers.wakes.pop().expect("the list has a wake-up");
                self.tell(workload, Event::Wake { token });
            } else {
                self.settle();
                let Site { network, probes, .. } = &mut self.site;
                probes.records.sample(&network.fabric, now);
            }
            if self.site.events >= next_check {
                next_check += EVENTS_PER_CHECK;
                if !look(&mut self.site) {
                    return Err(RunError::Interrupted);
                }
            }
        }
        if let Some(error) = self.site.drivers.stuck.take() {
            return Err(error);
        }
        self.show();
        Ok(())
    }

    fn finish(mut self) -> Site {
        self.settle();
        self.site.approximate = Some(Approximate::Flow(FlowCounts {
            overflows: self.net.overflows(),
            ports: self.net.overflows_of().iter().filter(|&&n| n > 0).count(),
        }));
        self.site
    }
}

impl FlowWorld {
    /// Makes the frame of the current time available to the caller of the run, if frames are
    /// requested.
    fn show(&mut self) {
        if self.site.frames.is_some() {
            let network = &mut self.site.network;
            count_bytes(network, &self.net.carried_so_far(network.now));
            if self.sleeps {
                self.note_states();
            }
            self.site.show();
        }
    }

    /// Describes, for an error message, the messages that have not arrived and the workloads that
    /// wait for them.
    fn describe_stuck(&self) -> String {
        let outstanding = self.site.transports.tcp.messages.outstanding().map(|(slot, side, m)| {
            let (_, client, server) = self.opened[slot / 2];
            let (from, to) = if side == Side::Client { (client, server) } else { (server, client) };
            (from, to, m)
        });
        self.site.describe_stuck(outstanding)
    }

    /// Copies the bytes that each port has carried to its link, and records the times in each power
    /// state.
    fn settle(&mut self) {
        let network = &mut self.site.network;
        count_bytes(network, self.net.carried(network.now));
        if self.sleeps {
            self.note_states();
        }
    }

    /// Records the times in each power state for links that can sleep.
    fn note_states(&mut self) {
        let w = &mut self.site;
        let run = w.network.now.since(Time::ZERO);
        let singles = self.net.singles().to_vec();
        let times = self.net.times(w.network.now);
        let fabric = &w.network.fabric;
        let always: Vec<StateTimes> = fabric
            .links
            .iter()
            .zip(times)
            .zip(&singles)
            .enumerate()
            .map(|(i, ((l, times), s))| {
                let class = fabric.class_of(i);
                let busy = l.sending_time(run);
                match class.sleeping(l.cable.rate, self.targets[i]) {
                    Some(sleep) => {
                        let single = (s.packets, s.bytes);
                        let (rate, full) = (l.cable.rate, self.full);
                        flow_energy::states(&sleep, times, rate, full, single, (run, busy))
                    }
                    None => class.policy.states(run, busy),
                }
            })
            .collect();
        // with `both_directions` a link sleeps only while both directions sleep; the sleep times of
        // the two directions are assumed to be independent
        let both = |i: usize| {
            let (a, b) = (always[i], always[i ^ 1]);
            let share = b.asleep.0 as f64 / run.0.max(1) as f64;
            a.asleep_only(Span((a.asleep.0 as f64 * share) as u64))
        };
        w.network.fabric.power.given_states = (0..always.len())
            .map(|i| if w.network.fabric.class_of(i).both { both(i) } else { always[i] })
            .collect();
    }

    /// Delivers a message that has arrived: records the message and notifies its workload.
    fn deliver(&mut self, delivered: Delivered) {
        let client = EndpointId::new(2 * delivered.conn as usize, 0);
        let receiver = match delivered.from {
            Side::Client => client.peer(),
            Side::Server => client,
        };
        let w = &mut self.site;
        let d = w.transports.tcp.messages.pop(receiver, u64::MAX).expect("the message was written");
        let (number, from, to) = self.opened[delivered.conn as usize];
        if d.message.record {
            let ends = if delivered.from == Side::Client { (from, to) } else { (to, from) };
            let tcp = w.transports.tcp.stack.config();
            let (segment, header) = (tcp.segment, tcp.header());
            let ideal =
                w.network.fabric.ideal_time(ends.0, ends.1, d.message.payload, segment, header);
            let row = d.row(w.network.now, ends, LossCounts::default(), number, ideal);
            w.probes.records.flow(row);
        }
        if let Some(name) = d.name {
            let (conn, tag) = (ConnId(name), d.message.tag);
            self.tell(d.workload, Event::Delivered { conn, from: d.from, tag });
        }
        if self.net.free_if_quiet(delivered.conn) {
            self.site.transports.tcp.messages.gone(client);
        }
    }

    /// Gives a connection, which is the connection `name` of a workload, its number and its paths.
    fn declare(
        &mut self,
        (workload, name, class): (u16, u32, ClassId),
        (client, server): (HostId, HostId),
        cards: Option<(u32, u32)>,
    ) {
        match self.site.network.paths_of_new((client, server), cards) {
            Ok(paths) => {
                let opened = (self.connections, client, server);
                self.connections += 1;
                self.declared.insert((workload, name), Declared { paths, class, opened });
            }
            Err(why) => self.site.drivers.stop(why),
        }
    }

    /// Opens the declared connection `name` of a workload.
    fn connect(&mut self, workload: u16, name: u32) {
        let Some(Declared { paths, class, opened }) = self.declared.remove(&(workload, name))
        else {
            return; // it has no path, so that the run stops
        };
        let w = &mut self.site;
        let conn = self.net.open(w.network.now, paths);
        if conn as usize >= EndpointId::MAX_SLOTS / 2 {
            let most = EndpointId::MAX_SLOTS / 2;
            return w.drivers.stop_at_limit(format!(
                "the run needs more than {most} simultaneous connections, which is the maximum \
                 of the simulator"
            ));
        }
        match self.opened.get_mut(conn as usize) {
            Some(place) => *place = opened,
            None => self.opened.push(opened),
        }
        w.transports.tcp.messages.open(
            workload,
            name,
            EndpointId::new(2 * conn as usize, 0),
            class,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Context, read};
    use eastwest_types::Purpose;

    #[test]
    fn what_is_stuck_is_told_with_its_hosts() {
        let text = "schema = 1\nfidelity = 'flow'\n[fabric]\nkind = 'star'\nhosts = 4\n\
            host_rate = '1 Gbit/s'\n[[workload]]\nname = 'all'\nkind = 'permutation'\nbytes = '1 KB'\n";
        let scenario = read(text, &Context::default(), &[]).unwrap_or_else(|p| panic!("{p:#?}"));
        let plan = Plan::new(&scenario).unwrap_or_else(|p| panic!("{p:?}"));
        let mut run = FlowWorld::new(plan).expect("routes");
        run.declare((0, 0, ClassId(0)), (HostId(1), HostId(3)), None);
        run.connect(0, 0);
        // a message that is recorded but not passed to the network never arrives
        let client = run.site.transports.tcp.messages.endpoint(0, 0);
        for (from, payload) in [(Side::Client, 700), (Side::Server, 900)] {
            let message = Message {
                start: 0,
                end: payload,
                tag: 0,
                payload,
                purpose: Purpose::Message,
                job: None,
                record: true,
                sent: Time::ZERO,
                before: LossCounts::default(),
            };
            run.site.transports.tcp.messages.push(client, from, message);
        }
        let said = run.describe_stuck();
        assert!(said.contains("message of 700 B from h1 to h3"), "{said}");
        assert!(said.contains("message of 900 B from h3 to h1"), "{said}");
        assert!(said.contains("not finished: all"), "{said}");
    }
}
