//! Simulation link by link: cables are simulated in packets one by one, and the delays of a flow at
//! its links are added to the time that it needs on its idle path.
//!
//! The method is that of Parsimon (K. Zhao, P. Goyal, M. Alizadeh, T. Anderson, *Scalable Tail
//! Latency Estimation for Data Center Networks*, NSDI 2023). It needs flows whose starts do not
//! depend on the ends of others (open-loop workloads). docs/mechanisms/link-mode.md has the method
//! and its differences from the paper.

mod delays;
mod flow;
mod idle;
mod link_run;
mod similar;

use crate::approximate::{Approximate, LinkCounts};
use crate::approximate_run::ApproximateRun;
use crate::plan::Plan;
use crate::progress::RunError;
use crate::site::Site;
use crate::wakes::{Executed, WakeUp};
use delays::{Delays, join};
use eastwest_engine::order::Key;
use eastwest_engine::random::Stream;
use eastwest_fluid::transfer::{Rules, Train};
use eastwest_network::topology::CableConfig;
use eastwest_types::{ClassId, ConnId, HostId, Side, Span, Time};
use eastwest_workload::{Action, Event};
use flow::OpenFlow;
use idle::Idle;
use link_run::{LinkRun, Settings, Whole, simulate};
use similar::Similar;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// Wall-clock time between two calls of the caller of the run.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Number of events of workloads between two calls of the caller of the run.
const EVENTS_PER_LOOK: u64 = 1 << 12;

/// A run that simulates cables one by one.
pub struct LinksWorld {
    /// Workloads, routes and records. The packets and transports of this state are not used.
    site: Site,
    settings: Settings,
    rules: Rules,
    /// All flows, ordered by start.
    flows: Vec<OpenFlow>,
    /// Flow of each connection, by workload and the workload's number for the connection.
    names: Vec<Vec<u32>>,
    counts: LinkCounts,
}

/// The simulated cables.
struct Simulated {
    similar: Similar,
    /// Results of each simulated cable.
    runs: Vec<LinkRun>,
    /// Index of each cable in `runs`; `None` for a cable that was not simulated.
    run_of: Vec<Option<usize>>,
    /// Distributions of the delays in both directions of the cables of each class.
    delays: Vec<[Delays; 2]>,
}

impl Simulated {
    /// Collects the results of the simulated cables. `size` returns the bytes and packets of a
    /// flow.
    fn new(similar: Similar, runs: Vec<LinkRun>, size: impl Fn(u32) -> (u64, u64)) -> Simulated {
        let mut run_of = vec![None; similar.class_of.len()];
        let mut rows: Vec<[Vec<_>; 2]> = (0..similar.classes).map(|_| Default::default()).collect();
        for (index, (run, &(cable, class))) in runs.iter().zip(&similar.simulated).enumerate() {
            run_of[cable as usize] = Some(index);
            for (rows, delays) in rows[class].iter_mut().zip(&run.delays) {
                rows.extend(delays.iter().map(|d| {
                    let (bytes, packets) = size(d.flow);
                    (bytes, packets, d.extra_ps)
                }));
            }
        }
        let delays = rows.into_iter().map(|class| class.map(Delays::new)).collect();
        Simulated { similar, runs, run_of, delays }
    }

    /// Returns the delay of a flow at a link in picoseconds: its own delay if the cable was
    /// simulated, otherwise a delay drawn from similar cables.
    fn delay(&self, link: u32, flow: u32, size: (u64, u64), random: &mut Stream) -> i64 {
        let (cable, way) = (link as usize / 2, link as usize % 2);
        let own = self.run_of[cable].and_then(|index| self.runs[index].delay_of(way, flow));
        own.unwrap_or_else(|| {
            let class = self.similar.class_of[cable].expect("a cable with a flow has a class");
            self.delays[class][way].draw(size, random)
        })
    }
}

impl ApproximateRun for LinksWorld {
    fn new(plan: Plan) -> Result<LinksWorld, String> {
        let rules = crate::flow_world::rules(&plan.tcp, &plan.fabric);
        let settings = Settings {
            seed: plan.seed,
            fabric: plan.fabric.clone(),
            tcp: plan.tcp.clone(),
            classes: plan.classes.clone(),
            switch_power: plan.switch_power,
        };
        let names = vec![Vec::new(); plan.workloads.len()];
        let (site, flows) = (Site::new(plan)?, Vec::new());
        Ok(LinksWorld { site, settings, rules, flows, names, counts: LinkCounts::default() })
    }

    fn site_mut(&mut self) -> &mut Site {
        &mut self.site
    }

    fn act(&mut self, workload: u16, action: Action) {
        let now = self.site.network.now;
        match action {
            Action::Wake { at, token } => {
                let wake_up = WakeUp { workload, token, executed: Executed::default() };
                self.site.drivers.wakes.push(at.max(now), wake_up);
            }
            Action::Open { conn, client, server, class, cards } => {
                self.open((workload, conn.0, class), (client, server), cards);
            }
            Action::Send { conn, payload, header, tag, purpose, job, .. } => {
                let flow = self.names[usize::from(workload)][conn.0 as usize];
                let message = &mut self.flows[flow as usize].message;
                message.end = payload + u64::from(header);
                message.payload = payload;
                (message.tag, message.purpose, message.job) = (tag, purpose, job);
            }
            Action::Close { .. } => {}
            Action::Finished => self.site.drivers.finish(workload),
            other => unreachable!("an open-loop workload does not request {other:?}"),
        }
    }

    fn run(
        &mut self,
        threads: usize,
        look: &mut dyn FnMut(&mut Site) -> bool,
    ) -> Result<(), RunError> {
        self.site.cables = Some((0, 0));
        self.list_flows(look)?;
        let fabric = &self.site.network.fabric;
        let links: Vec<CableConfig> = fabric.links.iter().map(|l| l.cable).collect();
        let mut crossing: Vec<Vec<u32>> = vec![Vec::new(); links.len()];
        let mut bytes = vec![[0; 2]; links.len() / 2];
        for (flow, number) in self.flows.iter().zip(0..) {
            for &link in &flow.paths[0] {
                crossing[link as usize].push(number);
                bytes[link as usize / 2][link as usize % 2] += flow.bytes();
            }
        }
        let cables = fabric.graph.cables.iter();
        let kinds: Vec<_> = cables.map(|c| (c.tiers, c.config.rate.0, c.config.delay.0)).collect();
        let similar = similar::classes(&kinds, &bytes);
        let chosen: Vec<u32> = similar.simulated.iter().map(|s| s.0).collect();
        let runs = self.simulate_all(&links, &chosen, &crossing, threads, look)?;
        self.count(&similar, &runs);
        let simulated = Simulated::new(similar, runs, |flow| self.size(flow));
        let ends = self.ends(&links, &simulated);
        self.deliver_all(ends, look)
    }

    fn finish(mut self) -> Site {
        self.site.approximate = Some(Approximate::Links(self.counts));
        self.site
    }
}

impl LinksWorld {
    /// Returns the bytes and packets of a flow.
    fn size(&self, flow: u32) -> (u64, u64) {
        let bytes = self.flows[flow as usize].bytes();
        (bytes, self.rules.train(bytes).packets)
    }

    /// Lists the flows that the workloads start until the end of the run. No flow arrives, because
    /// the starts do not depend on arrivals.
    fn list_flows(&mut self, look: &mut dyn FnMut(&mut Site) -> bool) -> Result<(), RunError> {
        for w in 0..self.site.drivers.all.len() {
            self.tell(w as u16, Event::Begin);
        }
        for told in 1u64.. {
            let next = self.site.drivers.wakes.first();
            let is_over = next == Key::NEVER || next.time() > self.site.until;
            if is_over || self.site.drivers.stuck.is_some() {
                break;
            }
            self.site.network.now = next.time();
            let wake_up = self.site.drivers.wakes.pop().expect("the list has a wake-up");
            self.tell(wake_up.workload, Event::Wake { token: wake_up.token });
            if told % EVENTS_PER_LOOK == 0 && !look(&mut self.site) {
                return Err(RunError::Interrupted);
            }
        }
        self.site.network.now = Time::ZERO;
        self.site.drivers.stuck.take().map_or(Ok(()), Err)
    }

    /// Simulates the chosen cables on several threads. `crossing` has the flows of each link.
    /// Returns the results in the order of `chosen`.
    fn simulate_all(
        &mut self,
        links: &[CableConfig],
        chosen: &[u32],
        crossing: &[Vec<u32>],
        threads: usize,
        look: &mut dyn FnMut(&mut Site) -> bool,
    ) -> Result<Vec<LinkRun>, RunError> {
        let whole = &Whole { settings: &self.settings, links, flows: &self.flows };
        let (next, stop) = (&AtomicUsize::new(0), &AtomicBool::new(false));
        let proceed = || !stop.load(Ordering::Relaxed);
        let mut results: Vec<Option<LinkRun>> = chosen.iter().map(|_| None).collect();
        let site = &mut self.site;
        let (mut done, all) = (0, chosen.len() as u64);
        site.cables = Some((done, all));
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..threads.clamp(1, chosen.len().max(1)) {
                let sender = sender.clone();
                scope.spawn(move || {
                    while proceed() {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(&cable) = chosen.get(index) else { return };
                        let ways = [2 * cable, 2 * cable + 1].map(|l| &crossing[l as usize][..]);
                        let run = simulate(whole, cable, ways, &proceed);
                        sender.send((index, run)).expect("the receiver outlives the threads");
                    }
                });
            }
            drop(sender);
            let ended = loop {
                match receiver.recv_timeout(LOOK_EVERY) {
                    Ok((index, Ok(run))) => {
                        site.events += run.events;
                        done += 1;
                        site.cables = Some((done, all));
                        results[index] = Some(run);
                    }
                    Ok((index, Err(RunError::Stuck(why)))) => {
                        let port = site.network.port_name(2 * chosen[index] as usize);
                        break Err(RunError::Stuck(format!("{port}, simulated alone: {why}")));
                    }
                    Ok((_, Err(error))) => break Err(error),
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Err(mpsc::RecvTimeoutError::Disconnected) => break Ok(()),
                }
                if !look(site) {
                    break Err(RunError::Interrupted);
                }
            };
            stop.store(ended.is_err(), Ordering::Relaxed);
            ended
        })?;
        Ok(results.into_iter().map(|run| run.expect("all cables were simulated")).collect())
    }

    /// Counts the simulated cables and flows, and the flows that waited for a timeout there.
    fn count(&mut self, similar: &Similar, runs: &[LinkRun]) {
        let mut seen = vec![[false; 2]; self.flows.len()];
        for delayed in runs.iter().flat_map(|run| run.delays.iter().flatten()) {
            let [crosses, waits] = &mut seen[delayed.flow as usize];
            *crosses = true;
            *waits |= delayed.timeouts > 0;
        }
        self.counts = LinkCounts {
            links: similar.class_of.iter().flatten().count() as u64,
            simulated_links: runs.len() as u64,
            flows: self.flows.len() as u64,
            simulated_flows: seen.iter().filter(|s| s[0]).count() as u64,
            flows_with_timeouts: seen.iter().filter(|s| s[1]).count() as u64,
            not_arrived: 0,
        };
    }

    /// Returns the time of arrival of each flow and its number, in order of arrival.
    fn ends(&self, links: &[CableConfig], simulated: &Simulated) -> Vec<(Time, u32)> {
        let idle = Idle::new(&self.settings.fabric, &self.settings.tcp);
        let mut random = Stream::new(self.settings.seed, "links/delays");
        let cables = |path: &[u32]| -> Vec<CableConfig> {
            path.iter().map(|&l| links[l as usize]).collect()
        };
        let of = |(flow, number): (&OpenFlow, u32)| {
            let [there, back] = &flow.paths;
            let alone = idle.time(&cables(there), &cables(back), flow.bytes());
            let size = self.size(number);
            let each = there.iter().map(|&l| simulated.delay(l, number, size, &mut random));
            (flow.start + alone + Span(join(each)), number)
        };
        let mut ends: Vec<(Time, u32)> = self.flows.iter().zip(0..).map(of).collect();
        ends.sort_unstable();
        ends
    }

    /// Records the flows and notifies their workloads, in order of arrival, until the workloads
    /// have finished or the run is over.
    fn deliver_all(
        &mut self,
        ends: Vec<(Time, u32)>,
        look: &mut dyn FnMut(&mut Site) -> bool,
    ) -> Result<(), RunError> {
        let tcp = self.site.transports.tcp.stack.config();
        let (segment, header) = (tcp.segment, tcp.header());
        let mut arrived = 0;
        while self.site.drivers.unfinished > 0 {
            let next = ends.get(arrived).filter(|end| end.0 <= self.site.until);
            let Some(&(finish, number)) = next else {
                if self.site.until < Time::NEVER {
                    self.site.network.now = self.site.until;
                }
                break;
            };
            arrived += 1;
            self.site.network.now = finish;
            let flow = &self.flows[number as usize];
            let (src, dst) = flow.ends;
            let fabric = &self.site.network.fabric;
            let ideal = fabric.ideal_time(src, dst, flow.message.payload, segment, header);
            self.site.probes.records.flow(flow.row(finish, u64::from(number), ideal));
            let (workload, conn, tag) = (flow.workload, ConnId(flow.name), flow.message.tag);
            self.tell(workload, Event::Delivered { conn, from: Side::Client, tag });
            if arrived as u64 % EVENTS_PER_LOOK == 0 && !look(&mut self.site) {
                return Err(RunError::Interrupted);
            }
        }
        let started = self.flows.partition_point(|flow| flow.start <= self.site.network.now);
        self.counts.not_arrived = started.saturating_sub(arrived) as u64;
        self.count_bytes(started);
        self.site.show();
        Ok(())
    }

    /// Adds the packets and bytes of the first `started` flows to the counters of their links:
    /// handshake, data and acknowledgements.
    fn count_bytes(&mut self, started: usize) {
        let bare = self.rules.wire(self.rules.ack);
        for flow in &self.flows[..started] {
            let Train { packets, wire, acks, .. } = self.rules.train(flow.bytes());
            let ways = [(packets + 2, wire + 2 * bare), (acks + 1, (acks + 1) * bare)];
            for (path, (packets, bytes)) in flow.paths.iter().zip(ways) {
                for &link in path {
                    let counters = &mut self.site.network.fabric.links[link as usize].counters;
                    counters.packets += packets;
                    counters.bytes += bytes;
                }
            }
        }
    }

    fn open(
        &mut self,
        (workload, name, class): (u16, u32, ClassId),
        (client, server): (HostId, HostId),
        cards: Option<(u32, u32)>,
    ) {
        let network = &mut self.site.network;
        let paths = match network.paths_of_new((client, server), cards) {
            Ok(paths) => paths,
            Err(why) => return self.site.drivers.stop(why),
        };
        let names = &mut self.names[usize::from(workload)];
        if names.len() <= name as usize {
            names.resize(name as usize + 1, 0);
        }
        names[name as usize] = self.flows.len() as u32;
        let of = (workload, name, class);
        self.flows.push(OpenFlow::opened(of, (client, server), network.now, paths));
    }
}
