//! Simulation of one cable: the flows that cross it, on a small fabric of their own, in packets and
//! as a fluid.
//!
//! The cable has its own rate, delay and queues. Every sender has a cable with the rate of its own
//! network card, so that its flows reach the cable no faster than in the whole fabric. Behind the
//! cable every receiver has a fast cable, which has no queue. A long flow has cables of its own, with
//! the rates that the links before and behind the simulated one leave to it ([`Sharing`]). The delays
//! of these cables contain those of the links that are left out, so that flows have the round-trip
//! times of the whole fabric. Data in both directions of the cable is simulated together, because
//! acknowledgements share the queues of the data in the opposite direction.

use super::flow::OpenFlow;
use super::fluid::{FluidFlow, completions};
use super::sharing::{Sharing, slowed};
use crate::flow_world::port;
use crate::plan::{ClassPlan, Plan, Transport, WorkloadPlan};
use crate::scenario::MeasureConfig;
use crate::switch_power::SwitchPower;
use crate::world::{RunError, World};
use eastwest_engine::random::mix;
use eastwest_fluid::network::Pace;
use eastwest_fluid::transfer::Rules;
use eastwest_measure::flows::FlowRow;
use eastwest_network::config::{FabricConfig, PortSet};
use eastwest_network::routing::{Ecmp, EqualPaths, RoutingConfig};
use eastwest_network::topology::{CableConfig, Topology};
use eastwest_transport::tcp::config::TcpConfig;
use eastwest_types::{ClassId, HostId, Rate, Span, Time};
use eastwest_workload::flow_list::{FlowList, FlowListConfig, ListedFlow};
use eastwest_workload::{Cluster, Workload};
use std::collections::BTreeMap;

/// Ratio of the rate of the cables behind the simulated cable to the fastest rate of the fabric.
const FAST: u64 = 10;
/// Interval between samples over time, which no run reaches: the samples are not used.
const NO_SAMPLES: Span = Span::from_secs(1_000_000);

/// Settings of the whole run that apply to the simulation of each cable.
pub struct Settings {
    /// Seed of the run.
    pub seed: u64,
    /// Settings of the network.
    pub fabric: FabricConfig,
    /// Settings of TCP.
    pub tcp: TcpConfig,
    /// Settings of TCP for the fluid.
    pub rules: Rules,
    /// Traffic classes.
    pub classes: Vec<ClassPlan>,
    /// Power model of switches.
    pub switch_power: SwitchPower,
}

/// The whole fabric, to which a simulated cable belongs.
pub struct Whole<'a> {
    /// Settings of the run.
    pub settings: &'a Settings,
    /// Rate and delay of each link.
    pub links: &'a [CableConfig],
    /// All flows of the run, ordered by start.
    pub flows: &'a [OpenFlow],
    /// Waits of each flow for its shares of rates; empty if they are not known yet.
    pub sharing: &'a [Sharing],
}

impl Whole<'_> {
    /// Returns the delay of links that are left out: propagation, store and forward. A packet
    /// counts with the mean of a full packet and the smallest one, so that the round-trip time of
    /// data and acknowledgement is right.
    pub fn left_out(&self, links: &[u32]) -> Span {
        let fabric = &self.settings.fabric;
        let bytes = u64::from(fabric.mtu + fabric.framing + fabric.min_frame) / 2;
        let cables = links.iter().map(|&link| self.links[link as usize]);
        cables.fold(Span::ZERO, |sum, c| sum + c.delay + c.rate.time_for(bytes))
    }
}

/// Result of a flow at a simulated cable.
#[derive(Clone, Copy, Debug)]
pub struct Delayed {
    /// Number of the flow.
    pub flow: u32,
    /// Completion time on the small fabric with packets minus that in the fluid, in picoseconds.
    pub deviation_ps: i64,
    /// Number of retransmission timeouts of the flow.
    pub timeouts: u32,
}

/// Results of the simulation of one cable.
pub struct LinkRun {
    /// Result of each flow in both directions of the cable (a → b, b → a), by number of the flow.
    pub delays: [Vec<Delayed>; 2],
    /// Number of simulated events.
    pub events: u64,
}

impl LinkRun {
    /// Returns the deviation of a flow in a direction of the cable from the fluid, in picoseconds;
    /// `None` if the flow does not cross the cable.
    pub fn deviation_of(&self, way: usize, flow: u32) -> Option<i64> {
        let delays = &self.delays[way];
        let at = delays.binary_search_by_key(&flow, |d| d.flow).ok()?;
        Some(delays[at].deviation_ps)
    }
}

/// A flow on the small fabric.
struct SmallFlow {
    /// Number of the flow in the whole fabric.
    number: u32,
    /// Direction of the simulated cable in which its data goes.
    way: usize,
    /// Sender and receiver on the small fabric.
    ends: [HostId; 2],
}

/// Owner of a cable of the small fabric: a host of the whole fabric, and the number of the flow if it
/// alone uses the cable.
type Owner = (HostId, Option<u32>);

/// The small fabric of one cable. Its host 0 is the host at the cable, if there is one.
struct Small<'a> {
    whole: &'a Whole<'a>,
    /// Number of the cable in the whole fabric.
    cable: u32,
    /// Whether the cable leads from a host.
    at_host: bool,
    fast: Rate,
    /// Numbers of the other hosts by side of the cable, owner, rate and delay.
    numbers: BTreeMap<(usize, Owner, u64, u64), u32>,
    /// Side and cable of each of the other hosts.
    others: Vec<(usize, CableConfig)>,
}

impl Small<'_> {
    /// Returns the number of hosts.
    fn hosts(&self) -> u32 {
        u32::from(self.at_host) + self.others.len() as u32
    }

    /// Returns the number of the host with this cable; adds the host if it is new.
    fn host(&mut self, side: usize, owner: Owner, cable: CableConfig) -> HostId {
        let next = self.hosts();
        let key = (side, owner, cable.rate.0, cable.delay.0);
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.others.push((side, cable));
        }
        HostId(number)
    }

    /// Adds a flow whose data crosses the cable in the direction `way`.
    fn add(&mut self, number: u32, way: usize) -> SmallFlow {
        let (links, link) = (self.whole.links, 2 * self.cable + way as u32);
        let flow = &self.whole.flows[number as usize];
        let path = &flow.paths[0];
        let at = path.iter().position(|&l| l == link).expect("the flow crosses the link");
        let (before, behind) = (&path[..at], &path[at + 1..]);
        let sharing = self.whole.sharing.get(number as usize).filter(|sharing| sharing.long);
        let waits = sharing.map_or([Span::ZERO; 2], |sharing| sharing.elsewhere(at));
        let bits = self.whole.settings.rules.train(flow.bytes()).wire as f64 * 8.0;
        let slowest = |links_of: &[u32]| links_of.iter().map(|&l| links[l as usize].rate).min();
        let line = slowest(path).expect("the path has the link");
        let mut ends = [HostId(0); 2];
        if let Some((&first, rest)) = before.split_first() {
            let rate = match waits[0] {
                Span::ZERO => slowest(before).expect("the path has a first link"),
                wait => slowed(line, bits, wait),
            };
            let delay = links[first as usize].delay + self.whole.left_out(rest);
            let owner = (flow.ends.0, sharing.map(|_| number));
            ends[0] = self.host(way, owner, CableConfig { rate, delay });
        }
        if !behind.is_empty() {
            let limits = waits[1] > Span::ZERO || slowest(behind) < slowest(&path[..=at]);
            let (rate, alone) = match sharing.filter(|_| limits) {
                None => (self.fast, None),
                Some(_) => (slowed(line, bits, waits[1]), Some(number)),
            };
            let cable = CableConfig { rate, delay: self.whole.left_out(behind) };
            ends[1] = self.host(1 - way, (flow.ends.1, alone), cable);
        }
        SmallFlow { number, way, ends }
    }

    /// Returns the completion time of each flow on the small fabric in the fluid.
    fn fluid(
        &self,
        flows: &[SmallFlow],
        proceed: &dyn Fn() -> bool,
    ) -> Result<Vec<Span>, RunError> {
        let Settings { fabric, rules, .. } = self.whole.settings;
        let (first, target) = (u32::from(self.at_host), self.whole.links[2 * self.cable as usize]);
        // ports 0 and 1: the cable; then two ports, to the switch and from it, of each other host
        let ways = [(self.at_host, false), (false, self.at_host)];
        let ports = ways.map(|ends| port(fabric, target, ends)).into_iter();
        let of_host = |cable| [(true, false), (false, true)].map(|ends| port(fabric, cable, ends));
        let others = self.others.iter().flat_map(|&(_, cable)| of_host(cable));
        let listed = flows.iter().map(|small| {
            let flow = &self.whole.flows[small.number as usize];
            let up_of = |end: usize| small.ends[end].0.checked_sub(first).map(|n| 2 + 2 * n);
            let [sender, receiver] = [up_of(0), up_of(1)];
            let way = small.way as u32;
            let there = sender.into_iter().chain([way]).chain(receiver.map(|up| up + 1));
            let back = receiver.into_iter().chain([1 - way]).chain(sender.map(|up| up + 1));
            let paths = [there.collect(), back.collect()];
            FluidFlow { start: flow.start, paths, bytes: flow.bytes() }
        });
        let listed: Vec<FluidFlow> = listed.collect();
        let ports = ports.chain(others);
        completions(ports, (*rules, Pace::default()), &listed, &mut || proceed())
            .ok_or(RunError::Interrupted)
    }

    fn topology(&self) -> Topology {
        let (hosts, first) = (self.hosts(), u32::from(self.at_host));
        // a host at the simulated cable replaces the switch of side 0
        let switch = |side: usize| hosts + side as u32 - first;
        let near = if self.at_host { 0 } else { switch(0) };
        let target = self.whole.links[2 * self.cable as usize];
        let others = (first..).zip(&self.others).map(|(n, &(side, c))| (n, switch(side), c));
        Topology::Graph {
            hosts: (0..hosts).map(|n| format!("h{n}")).collect(),
            switches: (first..2).map(|n| format!("s{n}")).collect(),
            cables: others.chain([(near, switch(1), target)]).collect(),
            regular: None,
        }
    }

    /// Returns the plan of the simulation, with one list of flows for each traffic class.
    fn plan(&self, lists: &BTreeMap<ClassId, Vec<(&SmallFlow, Span)>>) -> Result<Plan, RunError> {
        let Settings { seed, fabric, tcp, classes, switch_power, .. } = self.whole.settings;
        let cluster = Cluster { rack_of: vec![0; self.hosts() as usize], seed: 0 };
        let listed = |&(f, _): &(&SmallFlow, Span)| {
            let flow = &self.whole.flows[f.number as usize];
            let [src, dst] = f.ends;
            ListedFlow { start: flow.start.since(Time::ZERO), src, dst, bytes: flow.bytes() }
        };
        let workloads = lists.iter().map(|(&class, flows)| {
            let flows = flows.iter().map(listed).collect();
            let list = FlowList::new(FlowListConfig { flows, class }, &cluster);
            Ok(WorkloadPlan {
                name: format!("class {}", class.0),
                background: false,
                transport: Transport::Tcp,
                workload: Workload::FlowList(list.map_err(|why| RunError::Limit(why.join("; ")))?),
            })
        });
        Ok(Plan {
            seed: mix(seed ^ mix(u64::from(self.cable) + 1)),
            until: Time::NEVER,
            fabric: FabricConfig {
                topology: self.topology(),
                routing: RoutingConfig::Ecmp(Ecmp),
                equal_paths: EqualPaths::default(),
                measured: PortSet::default(),
                ..fabric.clone()
            },
            switch_power: *switch_power,
            tcp: tcp.clone(),
            tcp_overrides: Vec::new(),
            further: Default::default(),
            hosts: None,
            classes: classes.clone(),
            workloads: workloads.collect::<Result<_, RunError>>()?,
            measure: MeasureConfig { sample_interval: Some(NO_SAMPLES), ..Default::default() },
        })
    }
}

/// Returns the small fabric of cable number `cable`, and the flows that cross it; `ways` has their
/// numbers for both directions.
fn small<'a>(whole: &'a Whole, cable: u32, ways: [&[u32]; 2]) -> (Small<'a>, Vec<SmallFlow>) {
    // cables of hosts lead from the host to a switch
    let is_end = |flow: u32, way: usize| {
        let path = &whole.flows[flow as usize].paths[0];
        path[[0, path.len() - 1][way]] == 2 * cable + way as u32
    };
    let at_host = (0..2).any(|way| ways[way].iter().any(|&flow| is_end(flow, way)));
    let fastest = whole.links.iter().map(|c| c.rate).max().expect("there is a link");
    let mut small = Small {
        whole,
        cable,
        at_host,
        fast: Rate(FAST * fastest.0),
        numbers: BTreeMap::new(),
        others: Vec::new(),
    };
    let of_way = |way: usize| ways[way].iter().map(move |&number| (number, way));
    let mut flows: Vec<(u32, usize)> = of_way(0).chain(of_way(1)).collect();
    flows.sort_unstable(); // a list of flows keeps the order of flows with equal starts
    let flows = flows.into_iter().map(|(number, way)| small.add(number, way)).collect();
    (small, flows)
}

/// Calculates cable number `cable` as a fluid, with the flows that cross it; `ways` has their numbers
/// for both directions. Returns the number of each flow, its direction, and its completion time.
/// `proceed` is called regularly; if it returns false, the run stops.
pub fn times(
    whole: &Whole,
    cable: u32,
    ways: [&[u32]; 2],
    proceed: &dyn Fn() -> bool,
) -> Result<Vec<(u32, usize, Span)>, RunError> {
    let (small, flows) = small(whole, cable, ways);
    let times = small.fluid(&flows, proceed)?;
    Ok(flows.iter().zip(times).map(|(flow, time)| (flow.number, flow.way, time)).collect())
}

/// Simulates cable number `cable` with the flows that cross it; `ways` has their numbers for both
/// directions. `proceed` is called regularly; if it returns false, the run stops.
pub fn simulate(
    whole: &Whole,
    cable: u32,
    ways: [&[u32]; 2],
    proceed: &dyn Fn() -> bool,
) -> Result<LinkRun, RunError> {
    let (small, flows) = small(whole, cable, ways);
    let fluid = small.fluid(&flows, proceed)?;
    let mut lists: BTreeMap<ClassId, Vec<(&SmallFlow, Span)>> = BTreeMap::new();
    for (flow, fluid) in flows.iter().zip(fluid) {
        let class = whole.flows[flow.number as usize].class;
        lists.entry(class).or_default().push((flow, fluid));
    }
    let mut world = World::new(small.plan(&lists)?).map_err(RunError::Limit)?;
    world.run(&mut |_| proceed())?;
    let site = world.site_mut();
    let mut run = LinkRun { delays: Default::default(), events: site.events };
    let lists: Vec<&Vec<(&SmallFlow, Span)>> = lists.values().collect();
    for &FlowRow { workload, tag, start, finish, timeouts, .. } in site.probes.records.flows.rows()
    {
        let (flow, fluid) = lists[usize::from(workload)][tag as usize];
        let deviation_ps = finish.since(start).0 as i64 - fluid.0 as i64;
        run.delays[flow.way].push(Delayed { flow: flow.number, deviation_ps, timeouts });
    }
    run.delays.iter_mut().for_each(|way| way.sort_unstable_by_key(|d| d.flow));
    Ok(run)
}
