//! Max–min fair rates of flows that share ports.
//!
//! Every flow has a path of ports, a weight and a cap. Rates are weighted max–min fair: the rate of
//! a flow can only grow at the expense of a flow whose rate per weight is not larger (D. Bertsekas
//! and R. Gallager, *Data Networks*, 2nd edition, 6.5.2). Progressive filling computes them: all
//! rates grow together until a port is full or a cap is reached. The rates of the flows that this
//! port or cap limits stay constant, and the other rates continue to grow.
//!
//! A change has effects only through full ports. A computation of rates (filling) therefore
//! includes only the flows that are connected to the change through full ports. During the filling,
//! the load of all other flows is constant. If a port becomes full and a flow outside the filling
//! has more than the rate per weight of this port, the port is included and the filling is
//! repeated.
//!
//! Acknowledgements load the ports of the return path in proportion to the rate. They use bandwidth
//! there, but do not limit their flow: the few lost or delayed bytes do not change its rate.
//!
//! Rates are whole bits per second: sums are exact, and results are identical on all machines.

use eastwest_types::{Span, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Minimum rate of a flow, in bit/s.
const SLOWEST_BPS: u64 = 1_000;
/// Value for no limit, in bit/s: the cap of a flow without cap, and the level (rate per weight) of
/// a port that is not full.
pub const NO_LIMIT: u64 = u64::MAX;
/// Reciprocal of the fraction of a port's rate (1/200) by which the rate of acknowledgements must
/// change so that fair rates are computed again.
const ECHO_PART: u64 = 200;
/// Maximum number of passes in which [`Share::settle`] computes fair rates. A further pass is
/// necessary if the rates of acknowledgements have changed.
const ECHO_PASSES: u32 = 2;

/// Number of load levels of a port for which times are recorded; each is 1/32 of the capacity.
pub const LOADS: usize = 32;
/// Time for which a port carried nothing, followed by the times for which its load was at each of
/// the [`LOADS`] levels.
pub type LoadTimes = [Span; LOADS + 1];

/// An egress port (one direction of a link), with the flows through it and the sums of their rates.
#[derive(Clone, Debug)]
struct Port {
    capacity_bps: u64,
    /// Flows that send data through the port: number of the flow, and index of the port in its
    /// path.
    members: Vec<(u32, u32)>,
    /// Rate per weight of the flows that this port limits, or [`NO_LIMIT`] if it is not full.
    level_bps: u64,
    /// Sum of the data rates of the flows through the port, in bit/s.
    load_bps: u64,
    /// Sum of the rates of acknowledgements through the port, in bit/s.
    echo_bps: u64,
    /// Time at which the load of the port last changed.
    since: Time,
    /// Number of the last computation of rates (filling) that included the port.
    stamp: u32,
    /// Index of the port in `vessels` during the computation of rates number `stamp`.
    place: u32,
}

#[derive(Clone, Copy, Debug)]
struct Hop {
    port: u32,
    /// Index of this flow in the list of flows (`members`) of the port.
    at: u32,
}

#[derive(Clone, Debug, Default)]
struct Flow {
    hops: Vec<Hop>,
    back: Vec<u32>,
    /// Bits of acknowledgements per million bits of data.
    echo_ppm: u32,
    weight: u32,
    cap_bps: u64,
    rate_bps: u64,
    stamp: u32,
    /// Number of the last computation of rates (filling) that changed the flow's rate.
    noted: u32,
    frozen: bool,
}

/// Path, weight and cap of a flow for which a fair rate is computed.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    /// Ports of the path on which the flow sends data.
    pub path: &'a [u32],
    /// Ports of the path on which its acknowledgements return.
    pub back: &'a [u32],
    /// Bits of acknowledgements per million bits of data.
    pub echo_ppm: u32,
    /// Number of equal flows that this flow represents; at least 1.
    pub weight: u32,
    /// Upper limit of the flow's rate in bit/s (its cap).
    pub cap_bps: u64,
}

/// State of a port during one computation of rates (filling).
#[derive(Clone, Copy, Debug)]
struct Vessel {
    port: u32,
    /// Rate in bit/s that the port still has for flows that grow.
    room_bps: u64,
    /// Sum of the weights of the port's flows that still grow.
    growing: u64,
    /// Whether the computation of rates (filling) includes all flows of the port.
    whole: bool,
    /// Rate per weight at which the port became full, or [`NO_LIMIT`].
    level_bps: u64,
}

/// Ports and flows with their weighted max–min fair rates.
#[derive(Clone, Debug, Default)]
pub struct Share {
    ports: Vec<Port>,
    flows: Vec<Flow>,
    free: Vec<u32>,
    /// Flows that are new, or whose rate was lowered or cap has changed with an effect, since the
    /// last computation of rates.
    touched_flows: Vec<u32>,
    /// Full ports that have lost a flow since the last computation of rates.
    touched_ports: Vec<u32>,
    stamp: u32,
    vessels: Vec<Vessel>,
    filled: Vec<u32>,
    /// Rates that the current filling has computed, indexed by flow, in bit/s.
    rates: Vec<u64>,
    /// Flows whose rates have changed, with their previous rates in bit/s.
    changed: Vec<(u32, u64)>,
    /// Number of rates of flows computed so far, a measure of the work.
    pub work: u64,
    /// Time at which the current changes take effect.
    now: Time,
    /// For each port, the times for which its load was at each level; empty unless
    /// [`Share::keep_times`] was called.
    times: Vec<LoadTimes>,
}

impl Share {
    /// Returns the memory in bytes of a port without flows.
    pub fn bytes_per_port() -> u64 {
        size_of::<Port>() as u64
    }

    /// Returns ports with these capacities in bit/s, and no flows.
    pub fn new(capacities_bps: impl IntoIterator<Item = u64>) -> Share {
        let port = |capacity_bps| Port {
            capacity_bps,
            members: Vec::new(),
            level_bps: NO_LIMIT,
            load_bps: 0,
            echo_bps: 0,
            since: Time::ZERO,
            stamp: 0,
            place: 0,
        };
        Share { ports: capacities_bps.into_iter().map(port).collect(), ..Share::default() }
    }

    /// Starts to record the time for which each port has each load.
    pub fn keep_times(&mut self) {
        self.times = vec![[Span::ZERO; LOADS + 1]; self.ports.len()];
    }

    /// Returns, for each port, the time that it had no load, and the time that it had each of the
    /// 32 levels of load, from the call of [`Share::keep_times`] until `now`; empty without this
    /// call.
    pub fn times(&mut self, now: Time) -> &[LoadTimes] {
        self.now = now;
        for port in 0..self.times.len() {
            self.note_load(port as u32);
        }
        &self.times
    }

    /// Sets the time at which the following changes take effect.
    pub fn at(&mut self, now: Time) {
        self.now = now;
    }

    /// Adds a flow and returns its number. Until the next [`Share::settle`] the flow has a
    /// provisional rate: the minimum of its cap, the unused rates of its ports that are not full,
    /// and its weight times the rate per weight at its full ports.
    pub fn add(&mut self, demand: &Demand) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            self.flows.push(Flow::default());
            (self.flows.len() - 1) as u32
        });
        let mut rate = demand.cap_bps;
        let weight = demand.weight.max(1);
        let f = &mut self.flows[id as usize];
        f.hops.clear();
        f.back.clear();
        f.back.extend_from_slice(demand.back);
        for &port in demand.path {
            let p = &mut self.ports[port as usize];
            f.hops.push(Hop { port, at: p.members.len() as u32 });
            p.members.push((id, f.hops.len() as u32 - 1));
            let level = if p.level_bps < NO_LIMIT {
                p.level_bps.saturating_mul(u64::from(weight))
            } else {
                p.capacity_bps.saturating_sub(p.load_bps + p.echo_bps)
            };
            rate = rate.min(level.min(p.capacity_bps));
        }
        (f.echo_ppm, f.weight, f.cap_bps) = (demand.echo_ppm, weight, demand.cap_bps);
        (f.rate_bps, f.stamp, f.noted) = (0, 0, 0);
        self.set_rate(id, rate.max(SLOWEST_BPS));
        self.touched_flows.push(id);
        id
    }

    /// Removes a flow. Other flows get its rate at the next [`Share::settle`].
    pub fn remove(&mut self, id: u32) {
        self.set_rate(id, 0);
        let hops = std::mem::take(&mut self.flows[id as usize].hops);
        for hop in &hops {
            let p = &mut self.ports[hop.port as usize];
            p.members.swap_remove(hop.at as usize);
            if let Some(&(moved, which)) = p.members.get(hop.at as usize) {
                self.flows[moved as usize].hops[which as usize].at = hop.at;
            }
            if p.level_bps < NO_LIMIT {
                self.touched_ports.push(hop.port);
            }
        }
        let f = &mut self.flows[id as usize];
        f.hops = hops;
        f.hops.clear();
        f.weight = 0;
        self.free.push(id);
    }

    /// Changes the cap of a flow to `cap_bps` bit/s. Rates change at the next [`Share::settle`].
    pub fn set_cap(&mut self, id: u32, cap_bps: u64) {
        let f = &mut self.flows[id as usize];
        // A cap that limits the flow neither before nor after the change has no effect on rates.
        let binds = f.rate_bps >= f.cap_bps.min(cap_bps);
        if f.cap_bps != cap_bps && binds {
            self.touched_flows.push(id);
        }
        f.cap_bps = cap_bps;
    }

    /// Reduces the rate of a flow to `rate_bps` bit/s at once. Other flows get the freed rate at
    /// the next [`Share::settle`].
    pub fn lower(&mut self, id: u32, rate_bps: u64) {
        self.set_rate(id, rate_bps.clamp(SLOWEST_BPS, self.rate(id).max(SLOWEST_BPS)));
        self.touched_flows.push(id);
    }

    /// Whether the flow's own upper limit (its cap) limits its rate, not a port.
    pub fn is_held_by_cap(&self, id: u32) -> bool {
        let f = &self.flows[id as usize];
        f.rate_bps >= f.cap_bps
    }

    /// Returns the current rate of a flow in bit/s.
    pub fn rate(&self, id: u32) -> u64 {
        self.flows[id as usize].rate_bps
    }

    /// Returns the current load of a port in bit/s: data and acknowledgements.
    pub fn load(&self, port: u32) -> u64 {
        let p = &self.ports[port as usize];
        (p.load_bps + p.echo_bps).min(p.capacity_bps)
    }

    /// Whether a port is full, so that it limits the rates of flows.
    pub fn is_full(&self, port: u32) -> bool {
        self.ports[port as usize].level_bps < NO_LIMIT
    }

    /// Returns the flows that send data through a port.
    pub fn members(&self, port: u32) -> impl Iterator<Item = u32> {
        self.ports[port as usize].members.iter().map(|m| m.0)
    }

    /// Returns the number of flows that send data through a port.
    pub fn count(&self, port: u32) -> usize {
        self.ports[port as usize].members.len()
    }

    /// Whether rates must be computed, because a change since the last [`Share::settle`], such as a
    /// new flow, may affect the fair rates.
    pub fn is_touched(&self) -> bool {
        !(self.touched_flows.is_empty() && self.touched_ports.is_empty())
    }

    /// Computes the fair rates again. Returns the flows whose rates have changed, each with its
    /// previous rate in bit/s.
    pub fn settle(&mut self) -> &[(u32, u64)] {
        self.changed.clear();
        if !self.is_touched() {
            return &self.changed;
        }
        self.gather();
        let mut passes = 0;
        loop {
            self.fill();
            if self.take_in() {
                continue;
            }
            passes += 1;
            if !self.assign() || passes == ECHO_PASSES {
                break;
            }
        }
        let vessels = std::mem::take(&mut self.vessels);
        for v in &vessels {
            self.ports[v.port as usize].level_bps = v.level_bps;
        }
        self.vessels = vessels;
        let flows = &self.flows;
        // A flow that two fillings have changed is listed once, with its rate before the first.
        self.changed.retain(|&(id, before)| flows[id as usize].rate_bps != before);
        &self.changed
    }

    /// Adds the time since the last change of a port's load to the recorded times. To be called
    /// before the load changes or the times are read.
    fn note_load(&mut self, port: u32) {
        let p = &mut self.ports[port as usize];
        let load = (p.load_bps + p.echo_bps).min(p.capacity_bps);
        let part = (load as u128 * LOADS as u128).div_ceil(u128::from(p.capacity_bps)) as usize;
        let span = self.now.since(p.since);
        self.times[port as usize][part] += span;
        p.since = self.now;
    }

    fn set_rate(&mut self, id: u32, rate_bps: u64) {
        if !self.times.is_empty() {
            let f = &self.flows[id as usize];
            let ports: Vec<u32> =
                f.hops.iter().map(|h| h.port).chain(f.back.iter().copied()).collect();
            ports.into_iter().for_each(|port| self.note_load(port));
        }
        let f = &mut self.flows[id as usize];
        let echo = |rate: u64, ppm: u32| rate * u64::from(ppm) / 1_000_000;
        let (before, after) = (f.rate_bps, rate_bps);
        let (echo_before, echo_after) = (echo(before, f.echo_ppm), echo(after, f.echo_ppm));
        f.rate_bps = rate_bps;
        for hop in &f.hops {
            let p = &mut self.ports[hop.port as usize];
            p.load_bps = p.load_bps - before + after;
        }
        for &port in &f.back {
            let p = &mut self.ports[port as usize];
            p.echo_bps = p.echo_bps - echo_before + echo_after;
        }
    }

    /// Collects the flows and ports for which rates must be computed because of changes since the
    /// last computation.
    fn gather(&mut self) {
        self.stamp += 1;
        self.vessels.clear();
        self.filled.clear();
        let mut flows = std::mem::take(&mut self.touched_flows);
        let mut ports = std::mem::take(&mut self.touched_ports);
        for id in flows.drain(..) {
            if self.flows[id as usize].weight > 0 {
                self.include(id);
            }
        }
        for port in ports.drain(..) {
            let place = self.vessel(port);
            self.vessels[place].whole = true;
        }
        (self.touched_flows, self.touched_ports) = (flows, ports);
        self.spread(0);
    }

    /// Includes in the computation of rates all flows of the full ports from index `from` of
    /// `vessels` on, and all ports and flows that these flows affect.
    fn spread(&mut self, from: usize) {
        let mut next = from;
        while next < self.vessels.len() {
            if self.vessels[next].whole {
                self.include_members(self.vessels[next].port);
            }
            next += 1;
        }
    }

    fn include_members(&mut self, port: u32) {
        for at in 0..self.ports[port as usize].members.len() {
            let (id, _) = self.ports[port as usize].members[at];
            self.include(id);
        }
    }

    fn include(&mut self, id: u32) {
        if self.flows[id as usize].stamp == self.stamp {
            return;
        }
        self.flows[id as usize].stamp = self.stamp;
        self.filled.push(id);
        for at in 0..self.flows[id as usize].hops.len() {
            self.vessel(self.flows[id as usize].hops[at].port);
        }
    }

    /// Returns the index of a port in the current computation of rates (filling), and includes the
    /// port if it is new. Full ports are marked, so that all their flows are included.
    fn vessel(&mut self, port: u32) -> usize {
        let p = &mut self.ports[port as usize];
        if p.stamp != self.stamp {
            p.stamp = self.stamp;
            p.place = self.vessels.len() as u32;
            let whole = p.level_bps < NO_LIMIT;
            let fresh = Vessel { port, room_bps: 0, growing: 0, whole, level_bps: NO_LIMIT };
            self.vessels.push(fresh);
        }
        p.place as usize
    }

    /// Computes the rates of the collected flows by progressive filling of their ports.
    fn fill(&mut self) {
        self.start_filling();
        let mut caps: Vec<(u64, u32)> = Vec::new();
        for &id in &self.filled {
            let f = &self.flows[id as usize];
            if f.cap_bps < NO_LIMIT {
                caps.push((f.cap_bps / u64::from(f.weight), id));
            }
        }
        caps.sort_unstable();
        let mut caps = caps.into_iter().peekable();
        let full_at = |v: &Vessel| v.room_bps / v.growing.max(1);
        let grows = self.vessels.iter().enumerate().filter(|(_, v)| v.growing > 0);
        let mut next: BinaryHeap<Reverse<(u64, u32)>> =
            grows.map(|(i, v)| Reverse((full_at(v), i as u32))).collect();
        while let Some(Reverse((level, place))) = next.pop() {
            let v = self.vessels[place as usize];
            if v.growing == 0 {
                continue;
            }
            if let Some(&(cap, id)) = caps.peek()
                && cap <= level
            {
                caps.next();
                next.push(Reverse((level, place)));
                if !self.flows[id as usize].frozen {
                    self.freeze(id, self.flows[id as usize].cap_bps);
                }
                continue;
            }
            let now = full_at(&v);
            if now > level {
                next.push(Reverse((now, place)));
                continue;
            }
            self.vessels[place as usize].level_bps = level.max(1);
            for at in 0..self.ports[v.port as usize].members.len() {
                let (id, _) = self.ports[v.port as usize].members[at];
                let f = &self.flows[id as usize];
                if f.stamp == self.stamp && !f.frozen {
                    self.freeze(id, level * u64::from(f.weight));
                }
            }
        }
    }

    /// Prepares the collected ports for a computation of rates. The rate that flows outside the
    /// computation use is subtracted from the rate of each port.
    fn start_filling(&mut self) {
        self.work += self.filled.len() as u64;
        for v in &mut self.vessels {
            let p = &self.ports[v.port as usize];
            (v.room_bps, v.growing, v.level_bps) = (p.load_bps, 0, NO_LIMIT);
        }
        // First `room_bps` is reduced by the rates of the flows inside the filling. The rest of the
        // load is from outside.
        for &id in &self.filled {
            let f = &mut self.flows[id as usize];
            f.frozen = false;
            for hop in &f.hops {
                let v = &mut self.vessels[self.ports[hop.port as usize].place as usize];
                v.room_bps -= f.rate_bps;
                v.growing += u64::from(f.weight);
            }
        }
        for v in &mut self.vessels {
            let p = &self.ports[v.port as usize];
            v.room_bps = p.capacity_bps.saturating_sub(p.echo_bps + v.room_bps);
        }
        self.rates.resize(self.flows.len(), 0);
    }

    fn freeze(&mut self, id: u32, rate_bps: u64) {
        let rate = rate_bps.max(SLOWEST_BPS);
        self.rates[id as usize] = rate;
        let f = &mut self.flows[id as usize];
        f.frozen = true;
        for hop in &f.hops {
            let v = &mut self.vessels[self.ports[hop.port as usize].place as usize];
            v.room_bps = v.room_bps.saturating_sub(rate);
            v.growing -= u64::from(f.weight);
        }
    }

    /// Includes in the computation all flows of each port that has become full while a flow outside
    /// the computation has more than the rate per weight of this port. Returns whether there was
    /// such a port, so that rates must be computed again.
    fn take_in(&mut self) -> bool {
        let known = self.vessels.len();
        let mut any = false;
        for place in 0..known {
            let v = self.vessels[place];
            if v.whole || v.level_bps == NO_LIMIT {
                continue;
            }
            let over = |&(id, _): &(u32, u32)| {
                let f = &self.flows[id as usize];
                f.stamp != self.stamp && f.rate_bps / u64::from(f.weight) > v.level_bps
            };
            if self.ports[v.port as usize].members.iter().any(over) {
                self.vessels[place].whole = true;
                self.include_members(v.port);
                any = true;
            }
        }
        self.spread(known);
        any
    }

    /// Gives the flows the computed rates. Returns whether the rates of acknowledgements have
    /// changed so much that rates must be computed again.
    fn assign(&mut self) -> bool {
        let echo = |s: &Share, v: &Vessel| s.ports[v.port as usize].echo_bps;
        let before: Vec<u64> = self.vessels.iter().map(|v| echo(self, v)).collect();
        let filled = std::mem::take(&mut self.filled);
        for &id in &filled {
            let (old, new) = (self.flows[id as usize].rate_bps, self.rates[id as usize]);
            if old != new {
                self.set_rate(id, new);
                let f = &mut self.flows[id as usize];
                if f.noted != self.stamp {
                    f.noted = self.stamp;
                    self.changed.push((id, old));
                }
            }
        }
        self.filled = filled;
        let mut vessels = self.vessels.iter().zip(before).filter(|(v, _)| v.level_bps < NO_LIMIT);
        vessels.any(|(v, before)| {
            let p = &self.ports[v.port as usize];
            p.echo_bps.abs_diff(before) > p.capacity_bps / ECHO_PART
        })
    }
}
