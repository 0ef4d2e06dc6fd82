//! Quincy: maps are placed by a flow of least cost (Isard et al., SOSP 2009).
//!
//! When map slots are free and maps wait, a policy decides how many maps of which jobs run (fair
//! shares as in the paper's fair variants, or first in first out), and a flow through this network
//! decides which maps of these jobs run, and where; b is the bytes of a split:
//!
//! ```text
//!                    ┌ 0 ────── worker with the split ──┐ free slots of the worker
//! source ─ job ─ map ┼ ψ · b ── a rack with the split ──┴ rack ─ sink   free slots of the rack
//!          quota     └ ξ · b ── anywhere ───────────────┘
//! ```
//!
//! This is the network of the paper's section 4.2 without running tasks. Its lower and upper bounds
//! of the flow to a job's "unscheduled" node are equal here and appear as the job's quota, so that
//! the cost of waiting cancels out. A placed map is sent to its worker in the answer to the next
//! heartbeat and is not placed again. Differences from the paper: no preemption and no migration;
//! within a rack the worker with the most free slots is chosen; at most [`MOST`] maps are placed by
//! one flow, and of large jobs only some waiting maps take part, so that the cost of a flow does not
//! grow with the queue. The solver is `ac-library-rs`: successive shortest paths with potentials,
//! integers only.

use super::config::QuincyConfig;
use super::load::Jobs;
use crate::mapreduce::racks::Racks;
use ac_library::MinCostFlowGraph;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Most maps that one flow places.
const MOST: u64 = 128;
/// Most lists of workers that are examined for one flow.
const LOOKS: usize = 20_000;
/// Largest size of a split for its cost: costs stay far below 64 bits.
const LARGEST: u64 = 1 << 40;

/// Number of maps of each job to place.
#[derive(Clone, Debug, Default)]
pub struct Quotas(BTreeMap<u32, u32>);

impl Quotas {
    /// Adds one map of a job to the maps to place.
    pub fn add(&mut self, job: u32) {
        *self.0.entry(job).or_default() += 1;
    }
    /// Whether there are no maps to place.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A map that takes part in a flow.
struct Candidate {
    job: u32,
    map: u32,
}

/// Place of a map in a flow.
#[derive(Clone, Copy)]
enum Place {
    Worker(u32),
    Rack(u32),
    Anywhere,
}

/// Scheduler Quincy: free slots of workers, and maps that are placed on workers and not yet
/// assigned.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Quincy {
    rack_cost: u64,
    core_cost: u64,
    free: Vec<u32>,
    rack_free: Vec<u64>,
    /// Workers with free slots of every rack, those with most free slots first.
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

    /// Sets the free slots of a worker, less those for maps already planned for it.
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

    /// Returns the number of maps that one flow can place now, at most `MOST`; `None` if no slot is
    /// free.
    pub(super) fn room(&self) -> Option<u64> {
        Some(self.all_free.min(MOST)).filter(|&n| n > 0)
    }

    /// Removes and returns the next map that was placed on a worker, as (job, map); `None` if there
    /// is none.
    pub(super) fn next_for(&mut self, worker: u32) -> Option<(u32, u32)> {
        self.planned[worker as usize].pop_front()
    }

    /// Removes the slots of a lost worker. Returns the maps placed on it, as (job, map).
    pub(super) fn lost(&mut self, worker: u32) -> Vec<(u32, u32)> {
        self.change(worker, 0);
        std::mem::take(&mut self.planned[worker as usize]).into()
    }

    /// Removes and returns the maps of a job that are placed and not assigned yet.
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

    /// Places as many maps of each job as its quota allows. No quota exceeds the number of waiting
    /// maps, and the sum of all quotas does not exceed the free slots.
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

    /// Returns the maps that are candidates for the flow. With few free workers: of each job the
    /// maps with splits on these workers or in their racks, as many as could be useful, and the
    /// first maps. With many free workers: the first maps.
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

    /// Builds the network, computes the flow, and returns the place of each candidate.
    fn solve(
        &self,
        quotas: &Quotas,
        tasks: &[Candidate],
        racks: &Racks,
        jobs: &mut impl Jobs,
    ) -> Placed {
        // The solver visits nodes of one distance from the highest number down, and stops at the
        // sink: numbers increase along the paths.
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

    /// Returns the workers with free slots that hold a split of these maps.
    fn free_holders(&self, tasks: &[Candidate], jobs: &mut impl Jobs) -> BTreeSet<u32> {
        let mut held = BTreeSet::new();
        for task in tasks {
            let replicas = jobs.maps(task.job).replicas(task.map).iter();
            held.extend(replicas.filter(|&&w| self.free[w as usize] > 0));
        }
        held
    }
}

/// Result of a flow.
struct Placed {
    /// Place of every candidate; `None` if it keeps waiting.
    of_task: Vec<Option<Place>>,
    /// Number of candidates without a given worker that go into each rack.
    into_rack: Vec<(u32, usize)>,
}

impl Placed {
    /// Returns which of the `ways` (edge, candidate, place) and of the edges into racks carry flow.
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
