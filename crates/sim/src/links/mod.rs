//! Simulation link by link: a fluid gives the time that a flow needs because it shares links with
//! others, and cables that are simulated in packets, one by one, give its deviations from the fluid.
//!
//! The method develops that of Parsimon (K. Zhao, P. Goyal, M. Alizadeh, T. Anderson, *Scalable Tail
//! Latency Estimation for Data Center Networks*, NSDI 2023). It needs flows whose starts do not
//! depend on the ends of others (open-loop workloads). docs/mechanisms/link-mode.md has the method
//! and its differences from the paper.

mod delays;
mod flow;
mod fluid;
mod idle;
mod link_run;
mod sharing;
mod similar;
mod threads;

use crate::approximate::{Approximate, LinkCounts};
use crate::approximate_run::ApproximateRun;
use crate::flow_world::{LEAST_PACE, ports};
use crate::plan::Plan;
use crate::progress::RunError;
use crate::site::Site;
use crate::wakes::{Executed, WakeUp};
use delays::{At, Delays, join};
use eastwest_engine::order::Key;
use eastwest_engine::random::Stream;
use eastwest_fluid::network::Pace;
use eastwest_fluid::transfer::Train;
use eastwest_network::topology::CableConfig;
use eastwest_types::{ClassId, ConnId, HostId, Side, Span, Time};
use eastwest_workload::{Action, Event};
use flow::OpenFlow;
use fluid::{FluidFlow, completions};
use idle::Idle;
use link_run::{LinkRun, Settings, Whole, simulate, times};
use sharing::{Sharing, is_long};
use similar::Similar;
use threads::each_cable;

/// Minimum simulated time between two computations of the rates in the whole fabric.
const PACE: Pace = Pace { least: LEAST_PACE, per_flow: Span::from_ns(20) };
/// Number of events of workloads between two calls of the caller of the run.
const EVENTS_PER_LOOK: u64 = 1 << 12;

/// A run that simulates cables one by one.
pub struct LinksWorld {
    /// Workloads, routes and records. The packets and transports of this state are not used.
    site: Site,
    settings: Settings,
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
    /// Distributions of the deviations in both directions of the cables of each class.
    delays: Vec<[Delays; 2]>,
}

impl Simulated {
    /// Collects the results of the simulated cables. `at` returns the size of a flow and its wait at a
    /// link.
    fn new(similar: Similar, runs: Vec<LinkRun>, at: impl Fn(u32, u32) -> At) -> Simulated {
        let mut run_of = vec![None; similar.class_of.len()];
        let mut rows: Vec<[Vec<_>; 2]> = (0..similar.classes).map(|_| Default::default()).collect();
        for (index, (run, &(cable, class))) in runs.iter().zip(&similar.simulated).enumerate() {
            run_of[cable as usize] = Some(index);
            for (way, (rows, delays)) in rows[class].iter_mut().zip(&run.delays).enumerate() {
                let link = 2 * cable + way as u32;
                rows.extend(delays.iter().map(|d| (at(link, d.flow), d.deviation_ps)));
            }
        }
        let delays = rows.into_iter().map(|class| class.map(Delays::new)).collect();
        Simulated { similar, runs, run_of, delays }
    }

    /// Returns the deviation of a flow from the fluid at a link in picoseconds: its own if the cable
    /// was simulated, otherwise one drawn from similar cables. `at` returns the size of the flow and
    /// its wait at the link.
    fn deviation(&self, link: u32, flow: u32, at: impl FnOnce() -> At, random: &mut Stream) -> i64 {
        let (cable, way) = (link as usize / 2, link as usize % 2);
        let own = self.run_of[cable].and_then(|index| self.runs[index].deviation_of(way, flow));
        own.unwrap_or_else(|| {
            let class = self.similar.class_of[cable].expect("a cable with a flow has a class");
            self.delays[class][way].draw(at(), random)
        })
    }
}

/// Returns the flows that cross a cable in both directions; `crossing` has those of each link.
fn ways(crossing: &[Vec<u32>], cable: u32) -> [&[u32]; 2] {
    [2 * cable, 2 * cable + 1].map(|link| &crossing[link as usize][..])
}

impl ApproximateRun for LinksWorld {
    fn new(plan: Plan) -> Result<LinksWorld, String> {
        let settings = Settings {
            seed: plan.seed,
            fabric: plan.fabric.clone(),
            tcp: plan.tcp.clone(),
            rules: crate::flow_world::rules(&plan.tcp, &plan.fabric),
            classes: plan.classes.clone(),
            switch_power: plan.switch_power,
        };
        let names = vec![Vec::new(); plan.workloads.len()];
        let (site, flows) = (Site::new(plan)?, Vec::new());
        Ok(LinksWorld { site, settings, flows, names, counts: LinkCounts::default() })
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
        let alone = self.alone(&links);
        let fluid = self.fluid(look)?;
        let sharing = self.sharing((&links, &crossing), (&alone, &fluid), threads, look)?;
        let whole = Whole {
            settings: &self.settings,
            links: &links,
            flows: &self.flows,
            sharing: &sharing,
        };
        let chosen: Vec<u32> = similar.simulated.iter().map(|s| s.0).collect();
        self.site.cables = Some((0, chosen.len() as u64));
        let simulate = |cable: u32, proceed: &dyn Fn() -> bool| {
            simulate(&whole, cable, ways(&crossing, cable), proceed)
        };
        let note = |site: &mut Site, run: &LinkRun| {
            site.events += run.events;
            site.cables = site.cables.map(|(done, all)| (done + 1, all));
        };
        let runs = each_cable(&mut self.site, (&chosen, threads), look, &simulate, note)?;
        self.count(&similar, &runs);
        let simulated = Simulated::new(similar, runs, |link, flow| self.at(link, flow, &sharing));
        let ends = self.ends(&simulated, &sharing, (&alone, &fluid));
        self.deliver_all(ends, look)
    }

    fn finish(mut self) -> Site {
        self.site.approximate = Some(Approximate::Links(self.counts));
        self.site
    }
}

impl LinksWorld {
    /// Returns the size of a flow and its wait at a link.
    fn at(&self, link: u32, number: u32, sharing: &[Sharing]) -> At {
        let flow = &self.flows[number as usize];
        let bytes = flow.bytes();
        let at = flow.paths[0].iter().position(|&l| l == link);
        let wait = sharing[number as usize].each[at.expect("the flow crosses the link")];
        At { bytes, packets: self.settings.rules.train(bytes).packets, wait }
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

    /// Returns the time of each flow over its idle path.
    fn alone(&self, links: &[CableConfig]) -> Vec<Span> {
        let idle = Idle::new(&self.settings.fabric, &self.settings.tcp);
        let cables = |path: &[u32]| -> Vec<CableConfig> {
            path.iter().map(|&l| links[l as usize]).collect()
        };
        let of = |flow: &OpenFlow| {
            let [there, back] = &flow.paths;
            idle.time(&cables(there), &cables(back), flow.bytes())
        };
        self.flows.iter().map(of).collect()
    }

    /// Returns the completion time of each flow in the fluid of the whole fabric.
    fn fluid(&mut self, look: &mut dyn FnMut(&mut Site) -> bool) -> Result<Vec<Span>, RunError> {
        let of = |flow: &OpenFlow| FluidFlow {
            start: flow.start,
            paths: flow.paths.clone(),
            bytes: flow.bytes(),
        };
        let flows: Vec<FluidFlow> = self.flows.iter().map(of).collect();
        let Settings { fabric, rules, .. } = &self.settings;
        let ports = ports(&self.site.network, fabric);
        let proceed = &mut || look(&mut self.site);
        completions(ports, (*rules, PACE), &flows, proceed).ok_or(RunError::Interrupted)
    }

    /// Returns the waits of each flow for its shares of rates. `crossing` has the flows of each link;
    /// `alone` and `fluid` are the times of the flows over idle paths and in the fluid.
    fn sharing(
        &mut self,
        (links, crossing): (&[CableConfig], &[Vec<u32>]),
        (alone, fluid): (&[Span], &[Span]),
        threads: usize,
        look: &mut dyn FnMut(&mut Site) -> bool,
    ) -> Result<Vec<Sharing>, RunError> {
        let Settings { fabric, rules, .. } = &self.settings;
        let whole = Whole { settings: &self.settings, links, flows: &self.flows, sharing: &[] };
        let all_ports = ports(&self.site.network, fabric);
        let sharing_of = |(flow, (&alone, &fluid)): (&OpenFlow, (&Span, &Span))| {
            let path = &flow.paths[0];
            let ports = path.iter().map(|&l| all_ports[l as usize]);
            let base = whole.left_out(path) * 2;
            Sharing {
                long: is_long(ports, rules, flow.bytes(), base),
                each: vec![Span::ZERO; path.len()].into(),
                whole: Span(fluid.0.saturating_sub(alone.0)),
            }
        };
        let of_flows = self.flows.iter().zip(alone.iter().zip(fluid));
        let mut sharing: Vec<Sharing> = of_flows.map(sharing_of).collect();
        let crossed = |cable: &u32| ways(crossing, *cable).iter().any(|way| !way.is_empty());
        let cables: Vec<u32> = (0..links.len() as u32 / 2).filter(crossed).collect();
        let times = |cable: u32, proceed: &dyn Fn() -> bool| {
            times(&whole, cable, ways(crossing, cable), proceed)
        };
        let found = each_cable(&mut self.site, (&cables, threads), look, &times, |_, _| ())?;
        for (&cable, times) in cables.iter().zip(&found) {
            for &(flow, way, time) in times {
                let (flow, link) = (flow as usize, 2 * cable + way as u32);
                let at = self.flows[flow].paths[0].iter().position(|&l| l == link);
                let wait = Span(time.0.saturating_sub(alone[flow].0));
                sharing[flow].each[at.expect("the flow crosses the link")] = wait;
            }
        }
        Ok(sharing)
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

    /// Returns the time of arrival of each flow and its number, in order of arrival. `alone` and
    /// `fluid` are the times of the flows over idle paths and in the fluid.
    fn ends(
        &self,
        simulated: &Simulated,
        sharing: &[Sharing],
        (alone, fluid): (&[Span], &[Span]),
    ) -> Vec<(Time, u32)> {
        let mut random = Stream::new(self.settings.seed, "links/delays");
        let mut of = |(number, flow): (usize, &OpenFlow)| {
            let each: Vec<i64> = flow.paths[0]
                .iter()
                .map(|&l| {
                    let at = || self.at(l, number as u32, sharing);
                    simulated.deviation(l, number as u32, at, &mut random)
                })
                .collect();
            let time = fluid[number].0 as i64 + join(&each, &sharing[number]);
            let time = Span(u64::try_from(time).unwrap_or(0)).max(alone[number]);
            (flow.start + time, number as u32)
        };
        let mut ends: Vec<(Time, u32)> = self.flows.iter().enumerate().map(&mut of).collect();
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
        let bare = self.settings.rules.wire(self.settings.rules.ack);
        for flow in &self.flows[..started] {
            let Train { packets, wire, acks, .. } = self.settings.rules.train(flow.bytes());
            let ways = [(packets + 2, wire + 2 * bare), (acks + 1, (acks + 1) * bare)];
            for (path, (packets, bytes)) in flow.paths.iter().zip(ways) {
                for &link in path {
                    let link = &mut self.site.network.fabric.links[link as usize];
                    link.add_counts(packets, bytes);
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
