//! Quincy: a minimum-cost flow assigns maps to workers (Isard et al., SOSP 2009).
//!
//! When map slots are free and maps wait, a policy decides how many maps of each job run (fair
//! shares as in the paper's fair variants, or first in, first out). A flow through the following
//! network decides which maps of these jobs run, and on which workers; b is the number of bytes of
//! a split:
//!
//! ```text
//!                    ┌ 0 ────── worker with the split ──┐ free slots of the worker
//! source ─ job ─ map ┼ ψ · b ── a rack with the split ──┴ rack ─ sink   free slots of the rack
//!          quota     └ ξ · b ── anywhere ───────────────┘
//! ```
//!
//! This is the network of the paper's section 4.2 without running tasks. Its lower and upper bounds
//! of the flow to a job's "unscheduled" node are equal here and appear as the job's quota, so the
//! cost of waiting has no effect. A map that is planned for a worker is sent in the answer to the
//! worker's next heartbeat and is not planned again. Differences from the paper: no preemption and
//! no migration; within a rack the worker with the most free slots is chosen; one flow plans at
//! most [`MOST`] maps; of large jobs only some waiting maps take part, so that the cost of a flow
//! does not grow with the queue. The solver is `ac-library-rs`: successive shortest paths with
//! potentials, integers only.

use super::config::QuincyConfig;
use super::load::Jobs;
use crate::mapreduce::racks::Racks;
use ac_library::MinCostFlowGraph;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Largest number of maps that one computation of the minimum-cost flow assigns to workers.
const MOST: u64 = 128;
/// Limit of the number of free workers times the number of jobs. Up to this limit, the minimum-cost
/// flow considers the maps with splits near each free worker; above it, only the first maps of each
/// job.
const LOOKS: usize = 20_000;
/// Largest number of bytes of a split that counts in the costs of the minimum-cost flow, so that
/// costs stay far below 64 bits.
const LARGEST: u64 = 1 << 40;

/// Number of maps of each job that the minimum-cost flow must assign to workers, by job.
#[derive(Clone, Debug, Default)]
pub struct Quotas(BTreeMap<u32, u32>);

impl Quotas {
    /// Adds one map of a job to the maps that the minimum-cost flow must assign to workers.
    pub fn add(&mut self, job: u32) {
        *self.0.entry(job).or_default() += 1;
    }
    /// Whether there are no maps that the minimum-cost flow must assign to workers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A waiting map that takes part in the minimum-cost flow, so that it may be assigned to a worker.
struct Candidate {
    job: u32,
    map: u32,
}

/// Destination of a map in the minimum-cost flow: a given worker, any worker of a rack, or any
/// worker.
#[derive(Clone, Copy)]
enum Place {
    Worker(u32),
    Rack(u32),
    Anywhere,
}

/// State of the scheduler Quincy: free slots of workers, and maps that are planned for workers and
/// not yet assigned.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Quincy {
    rack_cost: u64,
    core_cost: u64,
    free: Vec<u32>,
    rack_free: Vec<u64>,
    /// Workers with free slots in each rack, in descending order of free slots.
    emptiest: Vec<BTreeSet<(Reverse<u32>, u32)>>,
    rack_of: Vec<u32>,
    all_free: u64,
    planned: Vec<VecDeque<(u32, u32)>>,
}

impl Quincy {
    pub(super) fn new(config: &QuincyConfig, racks: &Racks) -> Quincy {
        let workers = racks.workers();
        Quincy {
            rack_cost: u64::from(config.rack_cost),
            core_cost: u64::from(config.core_cost),
            free: vec![0; workers],
            rack_free: vec![0; racks.count()],
            emptiest: vec![BTreeSet::new(); racks.count()],
            rack_of: (0..workers as u32).map(|w| racks.of(w)).collect(),
            all_free: 0,
            planned: vec![VecDeque::new(); workers],
        }
    }

    /// Sets the number of free slots of a worker; slots for maps already planned for it are
    /// subtracted.
    pub(super) fn set_free(&mut self, worker: u32, free: u32) {
        let planned = self.planned[worker as usize].len() as u32;
        self.change(worker, free.saturating_sub(planned));
    }

    fn change(&mut self, worker: u32, now: u32) {
        let was = std::mem::replace(&mut self.free[worker as usize], now);
        let rack = self.rack_of[worker as usize] as usize;
        self.rack_free[rack] = self.rack_free[rack] + u64::from(now) - u64::from(was);
        self.all_free = self.all_free + u64::from(now) - u64::from(was);
        self.emptiest[rack].remove(&(Reverse(was), worker));
        if now > 0 {
            self.emptiest[rack].insert((Reverse(now), worker));
        }
    }

    /// Returns the number of maps that the minimum-cost flow can assign now, at most `MOST`; `None`
    /// if no slot is free.
    pub(super) fn room(&self) -> Option<u64> {
        Some(self.all_free.min(MOST)).filter(|&n| n > 0)
    }

    /// Removes and returns the next map that was planned for a worker, as (job, map); `None` if
    /// there is none.
    pub(super) fn next_for(&mut self, worker: u32) -> Option<(u32, u32)> {
        self.planned[worker as usize].pop_front()
    }

    /// Removes the slots of a lost worker. Returns the maps that were planned for it, as (job,
    /// map).
    pub(super) fn lost(&mut self, worker: u32) -> Vec<(u32, u32)> {
        self.change(worker, 0);
        std::mem::take(&mut self.planned[worker as usize]).into()
    }

    /// Removes and returns the maps of a job that are planned for workers and not assigned yet.
    pub(super) fn take_back(&mut self, job: u32) -> Vec<u32> {
        let mut taken = Vec::new();
        for worker in 0..self.planned.len() {
            let of = &mut self.planned[worker];
            let before = taken.len();
            taken.extend(of.iter().filter(|&&(j, _)| j == job).map(|&(_, map)| map));
            of.retain(|&(j, _)| j != job);
            let fewer = (taken.len() - before) as u32;
            if fewer > 0 {
                self.change(worker as u32, self.free[worker] + fewer);
            }
        }
        taken
    }

    /// Plans maps of each job for workers with free slots by a minimum-cost flow, as many as the
    /// job's quota. No quota may exceed the number of waiting maps, and the sum of quotas may not
    /// exceed the number of free slots.
    pub(super) fn place(&mut self, quotas: &Quotas, racks: &Racks, jobs: &mut impl Jobs) {
        let tasks = self.candidates(quotas, jobs);
        let placed = self.solve(quotas, &tasks, racks, jobs);
        let mut far: Vec<&Candidate> = Vec::new();
        let mut near: BTreeMap<u32, Vec<&Candidate>> = BTreeMap::new();
        for (task, place) in tasks.iter().zip(&placed.of_task) {
            match *place {
                Some(Place::Worker(worker)) => self.commit(task, worker, jobs),
                Some(Place::Rack(rack)) => near.entry(rack).or_default().push(task),
                Some(Place::Anywhere) => far.push(task),
                None => {}
            }
        }
        let mut far = far.into_iter();
        for &(rack, n) in &placed.into_rack {
            near.entry(rack).or_default().extend(far.by_ref().take(n));
        }
        for (rack, tasks) in near {
            for task in tasks {
                let emptiest = self.emptiest[rack as usize].first();
                let &(_, worker) = emptiest.expect("the flow keeps to the rack's free slots");
                self.commit(task, worker, jobs);
            }
        }
    }

    fn commit(&mut self, task: &Candidate, worker: u32, jobs: &mut impl Jobs) {
        jobs.maps(task.job).take(task.map);
        self.planned[worker as usize].push_back((task.job, task.map));
        self.change(worker, self.free[worker as usize] - 1);
    }

    /// Returns the waiting maps that take part in the minimum-cost flow. With few free workers: for
    /// each job the maps with splits on these workers or in their racks, limited to a useful
    /// number, and its first maps. With many free workers: the first maps of each job.
    fn candidates(&self, quotas: &Quotas, jobs: &mut impl Jobs) -> Vec<Candidate> {
        let free: Vec<u32> = self.emptiest.iter().flatten().map(|&(_, worker)| worker).collect();
        let look = free.len() * quotas.0.len() <= LOOKS;
        let mut all = Vec::new();
        for (&job, &quota) in &quotas.0 {
            let maps = jobs.maps(job);
            let quota = quota as usize;
            let mut chosen = BTreeSet::new();
            let first = if look { quota } else { 8 * quota + 16 };
            chosen.extend(maps.first(first));
            if look {
                for &worker in &free {
                    let most = quota.min(4 * self.free[worker as usize] as usize + 4);
                    chosen.extend(maps.on_worker(worker, most));
                }
                for (rack, _) in self.open_racks() {
                    chosen.extend(maps.in_rack(rack, quota));
                }
            }
            all.extend(chosen.into_iter().map(|map| Candidate { job, map }));
        }
        all
    }

    fn open_racks(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        (0..).zip(self.rack_free.iter().copied()).filter(|&(_, free)| free > 0)
    }

    /// Builds the graph of jobs, maps, workers and racks, computes its flow of least cost, and
    /// returns the destination of each map.
    fn solve(
        &self,
        quotas: &Quotas,
        tasks: &[Candidate],
        racks: &Racks,
        jobs: &mut impl Jobs,
    ) -> Placed {
        // The solver visits nodes of equal distance in descending order of their numbers and stops
        // at the sink, so numbers must increase along the paths.
        const SOURCE: usize = 0;
        const ANYWHERE: usize = 1;
        let job_node: BTreeMap<u32, usize> = quotas.0.keys().copied().zip(2..).collect();
        let first_task = 2 + job_node.len();
        let first_worker = first_task + tasks.len();
        let worker_node: BTreeMap<u32, usize> =
            self.free_holders(tasks, jobs).into_iter().zip(first_worker..).collect();
        let first_rack = first_worker + worker_node.len();
        let rack_node: BTreeMap<u32, usize> =
            self.open_racks().map(|(rack, _)| rack).zip(first_rack..).collect();
        let sink = first_rack + rack_node.len();

        let mut graph = MinCostFlowGraph::<i64>::new(sink + 1);
        for (job, &quota) in &quotas.0 {
            graph.add_edge(SOURCE, job_node[job], i64::from(quota), 0);
        }
        let mut ways: Vec<(usize, usize, Place)> = Vec::new();
        for (number, task) in tasks.iter().enumerate() {
            let node = first_task + number;
            graph.add_edge(job_node[&task.job], node, 1, 0);
            let maps = jobs.maps(task.job);
            let bytes = maps.split_bytes().min(LARGEST);
            let cost = |per_byte: u64| (bytes * per_byte) as i64;
            let mut near = BTreeSet::new();
            for worker in maps.replicas(task.map) {
                if let Some(&to) = worker_node.get(worker) {
                    ways.push((graph.add_edge(node, to, 1, 0), number, Place::Worker(*worker)));
                }
                near.insert(racks.of(*worker));
            }
            for rack in near {
                if let Some(&to) = rack_node.get(&rack) {
                    let way = graph.add_edge(node, to, 1, cost(self.rack_cost));
                    ways.push((way, number, Place::Rack(rack)));
                }
            }
            let way = graph.add_edge(node, ANYWHERE, 1, cost(self.core_cost));
            ways.push((way, number, Place::Anywhere));
        }
        for (&worker, &node) in &worker_node {
            let free = i64::from(self.free[worker as usize]);
            graph.add_edge(node, rack_node[&racks.of(worker)], free, 0);
        }
        let mut from_anywhere = Vec::new();
        for (rack, free) in self.open_racks() {
            let (node, free) = (rack_node[&rack], free as i64);
            from_anywhere.push((graph.add_edge(ANYWHERE, node, free, 0), rack));
            graph.add_edge(node, sink, free, 0);
        }
        let wanted = quotas.0.values().map(|&q| i64::from(q)).sum();
        let (flow, _) = graph.flow(SOURCE, sink, wanted);
        assert_eq!(flow, wanted, "quotas keep to waiting maps and free slots");
        Placed::read(&graph, tasks.len(), &ways, &from_anywhere)
    }

    /// Returns the workers with free slots that have a replica of a split of the maps in `tasks`.
    fn free_holders(&self, tasks: &[Candidate], jobs: &mut impl Jobs) -> BTreeSet<u32> {
        let mut held = BTreeSet::new();
        for task in tasks {
            let replicas = jobs.maps(task.job).replicas(task.map).iter();
            held.extend(replicas.filter(|&&w| self.free[w as usize] > 0));
        }
        held
    }
}

/// Result of the minimum-cost flow: the destinations of the maps.
struct Placed {
    /// Destination of each map that took part in the minimum-cost flow; `None` if the map continues
    /// to wait.
    of_task: Vec<Option<Place>>,
    /// Number of maps with the destination "any worker" that go into each rack, as (rack, number).
    into_rack: Vec<(u32, usize)>,
}

impl Placed {
    /// Reads the result from the solved graph: which of the edges `ways` (edge, map, destination)
    /// and which of the edges into racks (`from_anywhere`) carry flow.
    fn read(
        graph: &MinCostFlowGraph<i64>,
        tasks: usize,
        ways: &[(usize, usize, Place)],
        from_anywhere: &[(usize, u32)],
    ) -> Placed {
        let mut of_task = vec![None; tasks];
        for &(edge, number, place) in ways {
            if graph.get_edge(edge).flow > 0 {
                of_task[number] = Some(place);
            }
        }
        let into_rack = from_anywhere
            .iter()
            .map(|&(edge, rack)| (rack, graph.get_edge(edge).flow as usize))
            .collect();
        Placed { of_task, into_rack }
    }
}
